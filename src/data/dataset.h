/*
 * dataset.h - the inside of a data set: pictures and labels in one block each.
 *
 * Public half: <yoke/data.h>. Readers fill one in and hand it over; a queue asks once whether an augmentation can be done, and
 * then does it without further checks.
 */
#ifndef YK_DATA_DATASET_H
#define YK_DATA_DATASET_H

#include <stdatomic.h>
#include <yoke/data.h>

struct yk_dataset {
  const char *name;                 /* static */
  int64_t n, height, width, channels, nclasses;
  uint8_t *image;                   /* [n, height, width, channels] */
  uint8_t *label;                   /* [n] */
  const char *const *class_name;    /* [nclasses] static, or NULL */
  /* A set that is made, not read: picture i is drawn into `out` when it is first asked for. `draw` NULL: all are there. */
  void (*draw)(const yk_dataset *d, int64_t i, uint8_t *out);
  uint64_t seed, split;             /* for `draw` */
  _Atomic uint8_t *drawn;           /* [n] yk_drawn */
};

typedef enum yk_drawn { YK_NOT_DRAWN, YK_BEING_DRAWN, YK_DRAWN } yk_drawn;

/* A set with room for n pictures, contents undefined; ENOMEM tells the size. */
yk_code yk__dataset_new(const char *name, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t nclasses,
                        yk_dataset **out) YK_CHECKED;

/* EINVAL if it is neither of the two. */
yk_code yk__split_check(yk_split split) YK_CHECKED;

/* A picture's dimensions, and the side of what is made of it. */
typedef struct yk_frame { int64_t h, w, c, size; } yk_frame;
/* EINVAL if pictures of this kind cannot be augmented so. */
yk_code yk__augment_check(yk_augment kind, const yk_frame *f) YK_CHECKED;
/* Checked arguments only. in: u8 [h, w, c]; out: f32 [size, size, c]. Any thread. */
void yk__augment(yk_augment kind, const yk_frame *f, const uint8_t *in, uint64_t seed, uint64_t draw, float *out);

/* Image of i under a permutation of [0, n) that (seed, epoch) chooses; 0 <= i < n. */
int64_t yk__permute(uint64_t seed, uint64_t epoch, int64_t n, int64_t i);

#endif
