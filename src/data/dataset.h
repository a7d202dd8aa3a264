/*
 * dataset.h - the inside of a data set: pictures and labels in one block each.
 *
 * Public half: <yoke/data.h>. Readers fill one in and hand it over.
 */
#ifndef YK_DATA_DATASET_H
#define YK_DATA_DATASET_H

#include <yoke/data.h>

struct yk_dataset {
  const char *name;                 /* static */
  int64_t n, height, width, channels, nclasses;
  uint8_t *image;                   /* [n, height, width, channels] */
  uint8_t *label;                   /* [n] */
  const char *const *class_name;    /* [nclasses] static, or NULL */
};

/* A set with room for n pictures, contents undefined; ENOMEM tells the size. */
yk_code yk__dataset_new(const char *name, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t nclasses,
                        yk_dataset **out) YK_CHECKED;

#endif
