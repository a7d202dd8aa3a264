/*
 * dataset.c - data sets in memory.
 *
 * The pictures stay bytes; what a network reads is made when it is needed, so a
 * set of 50,000 CIFAR pictures takes 150 MB and not 600.
 */
#include "data/dataset.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

yk_code yk__dataset_new(const char *name, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t nclasses,
                        yk_dataset **out) {
  yk_dataset *d = yk__calloc(1, sizeof *d);
  if (d == NULL) return YK_ENOMEM;
  *d = (yk_dataset){ .name = name, .n = n, .height = height, .width = width, .channels = channels, .nclasses = nclasses };
  d->image = yk__alloc((size_t)(n * height * width * channels));
  d->label = yk__alloc((size_t)n);
  if (d->image == NULL || d->label == NULL) {
    yk_dataset_free(d);
    return YK_FAIL(ENOMEM, "no memory for %" PRId64 " pictures of %" PRId64 "x%" PRId64 "x%" PRId64, n, height, width, channels);
  }
  *out = d;
  return YK_OK;
}

yk_code yk__split_check(yk_split split) {
  if (split == YK_TRAIN || split == YK_TEST) return YK_OK;
  return YK_FAIL(EINVAL, "a data set has the splits train (%d) and test (%d), not %d", YK_TRAIN, YK_TEST, (int)split);
}

yk_code yk_dataset_images(int64_t n, int64_t height, int64_t width, int64_t channels, const uint8_t *images, const uint8_t *labels,
                          int64_t nclasses, yk_dataset **out) {
  yk_dataset *d;
  if (images == NULL || labels == NULL || out == NULL)
    return YK_FAIL(EINVAL, "yk_dataset_images needs images, labels and a place for the result");
  if (n < 1 || height < 1 || width < 1 || channels < 1 || nclasses < 1 || nclasses > 256)
    return YK_FAIL(EINVAL, "a data set needs at least one picture of at least 1x1x1 and 1 to 256 classes, got n %" PRId64 ", %" PRId64 "x%" PRId64
                   "x%" PRId64 ", %" PRId64 " classes", n, height, width, channels, nclasses);
  if (n > INT64_MAX / height / width / channels) return YK_FAIL(EINVAL, "a data set of %" PRId64 " pictures is too large", n);
  for (int64_t i = 0; i < n; i++)
    if (labels[i] >= nclasses) return YK_FAIL(EINVAL, "label %u of picture %" PRId64 " is not below %" PRId64, labels[i], i, nclasses);
  YK_TRY(yk__dataset_new("images", n, height, width, channels, nclasses, &d));
  memcpy(d->image, images, (size_t)(n * height * width * channels));
  memcpy(d->label, labels, (size_t)n);
  *out = d;
  return YK_OK;
}

void yk_dataset_free(yk_dataset *d) {
  if (d == NULL) return;
  yk__free(d->image);
  yk__free(d->label);
  yk__free((void *)d->drawn);
  yk__free(d);
}

int64_t yk_dataset_size(const yk_dataset *d) {
  return d->n;
}

int64_t yk_dataset_classes(const yk_dataset *d) {
  return d->nclasses;
}

const char *yk_dataset_name(const yk_dataset *d) {
  return d->name;
}

const char *yk_dataset_class_name(const yk_dataset *d, int64_t label) {
  return d->class_name != NULL && label >= 0 && label < d->nclasses ? d->class_name[label] : NULL;
}

yk_shape yk_dataset_shape(const yk_dataset *d) {
  return YK_SHAPE(d->height, d->width, d->channels);
}

/* One thread draws a picture; others that want the same one wait that fraction of a millisecond. */
static void draw(const yk_dataset *d, int64_t i, uint8_t *image) {
  uint8_t state = YK_NOT_DRAWN;
  if (atomic_compare_exchange_strong(&d->drawn[i], &state, YK_BEING_DRAWN)) {
    d->draw(d, i, image);
    atomic_store_explicit(&d->drawn[i], YK_DRAWN, memory_order_release);
    return;
  }
  while (atomic_load_explicit(&d->drawn[i], memory_order_acquire) != YK_DRAWN) sched_yield();
}

const uint8_t *yk_dataset_image(const yk_dataset *d, int64_t i) {
  if (i < 0 || i >= d->n) return NULL;
  uint8_t *image = d->image + i * d->height * d->width * d->channels;
  if (d->draw != NULL && atomic_load_explicit(&d->drawn[i], memory_order_acquire) != YK_DRAWN) draw(d, i, image);
  return image;
}

int32_t yk_dataset_label(const yk_dataset *d, int64_t i) {
  return i >= 0 && i < d->n ? d->label[i] : -1;
}
