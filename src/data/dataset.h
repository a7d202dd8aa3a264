/*
 * dataset.h - the inside of a data set: a table of components, and a reader that fetches example i.
 *
 * Public half: <yoke/data.h>. What formats differ in is behind yk_reader; what they share (a part held out for tests, corrupt records
 * that are passed over) is done once, in dataset.c, so a reader only says where example i is and what is wrong with it.
 */
#ifndef YK_DATA_DATASET_H
#define YK_DATA_DATASET_H

#include <yoke/data.h>
#include "base/thread.h"

/* How one kind of set is read. Any thread. */
typedef struct yk_reader {
  /* Example i, dense, to out[component]; ECORRUPT: this record only. */
  yk_code (*read)(const yk_dataset *d, int64_t i, void *const *out);
  const uint8_t *(*image)(const yk_dataset *d, int64_t i);    /* NULL: pictures are not in memory. Else the components are picture and label */
  int32_t (*label)(const yk_dataset *d, int64_t i);           /* NULL: labels are not */
  void (*close)(yk_dataset *d);                               /* frees d->self, which may be NULL */
} yk_reader;

/* Records found to be corrupt. */
typedef struct yk_skips {
  int64_t limit;                    /* 0: the first one is an error */
  yk_mutex lock;
  int64_t count;                    /* also those that were left out when the set was opened */
  char first[512];
  _Atomic uint8_t *bad;             /* [total], once the set is sealed; NULL while the limit is 0 */
} yk_skips;

struct yk_dataset {
  const yk_reader *reader;
  void *self;                       /* the reader's */
  const char *name;                 /* static */
  int64_t n;                        /* examples of this split */
  int64_t total, first;             /* examples of the files, if a part of them is another split: a permutation of them from `first` on */
  uint32_t ncomponents;
  char *component_name[YK_MAX_COMPONENTS];
  yk_desc component[YK_MAX_COMPONENTS];
  int picture, label;               /* components, or -1 */
  int64_t nclasses;
  const char *const *class_name;    /* [nclasses] static, or NULL */
  char **own_class_name;            /* [nclasses], or NULL */
  yk_skips skips;
};

/* An empty set. Fill in self, n, nclasses and components, then seal it. Failures on the way: yk_dataset_free(). */
yk_code yk__dataset_new(const char *name, const yk_reader *reader, yk_dataset **out) YK_CHECKED;
/* One more component. EINVAL: too many of them, two of one name, or a rank too high for a batch. */
yk_code yk__dataset_add(yk_dataset *d, const char *name, const yk_desc *desc) YK_CHECKED;
/* Finds picture and label among the components, and takes the holdout. No reads before this. */
yk_code yk__dataset_seal(yk_dataset *d, const yk_dataset_options *o, yk_split split) YK_CHECKED;
/* A corrupt record, told by this thread's message: count it, or, if there are more than may be, return ECORRUPT. Any thread. */
yk_code yk__dataset_skip(const yk_dataset *d) YK_CHECKED;
/* Checked i; see yk_dataset_read. */
yk_code yk__dataset_get(const yk_dataset *d, int64_t i, void *const *out) YK_CHECKED;
int64_t yk__example_bytes(const yk_desc *d);

/* EINVAL if it is neither of the two. */
yk_code yk__split_check(yk_split split) YK_CHECKED;

/* ---- pictures in memory: pictures.c ------------------------------------------------------------------------------------- */

typedef struct yk_pictures {
  int64_t bytes;                    /* of one picture */
  uint8_t *image;                   /* [n, height, width, channels] */
  uint8_t *label;                   /* [n] */
  /* A set that is made, not read: picture i is drawn into `out` when it is first asked for. `draw` NULL: all are there. */
  void (*draw)(const struct yk_pictures *p, int64_t i, uint8_t *out);
  uint64_t seed, split;             /* for `draw` */
  _Atomic uint8_t *drawn;           /* [n] yk_drawn */
} yk_pictures;

typedef enum yk_drawn { YK_NOT_DRAWN, YK_BEING_DRAWN, YK_DRAWN } yk_drawn;

/* A sealed set with room for n pictures, contents undefined; *pictures is d->self. ENOMEM tells the size. */
yk_code yk__pictures_new(const char *name, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t nclasses,
                         yk_dataset **out, yk_pictures **pictures) YK_CHECKED;

/* ---- augmentation ------------------------------------------------------------------------------------------------------- */

/* A picture's dimensions, and the side of what is made of it. */
typedef struct yk_frame { int64_t h, w, c, size; } yk_frame;
/* EINVAL if pictures of this kind cannot be augmented so. */
yk_code yk__augment_check(yk_augment kind, const yk_frame *f) YK_CHECKED;
/* Checked arguments only. in: u8 [h, w, c]; out: f32 [size, size, c]. Any thread. */
void yk__augment(yk_augment kind, const yk_frame *f, const uint8_t *in, uint64_t seed, uint64_t draw, float *out);

/* Image of i under a permutation of [0, n) that (seed, epoch) chooses; 0 <= i < n. */
int64_t yk__permute(uint64_t seed, uint64_t epoch, int64_t n, int64_t i);

#endif
