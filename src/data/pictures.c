/*
 * pictures.c - pictures and labels in memory, a byte each: CIFAR-10, shapes10, and what a program hands over.
 *
 * The pictures stay bytes; what a network reads is made when it is needed, so a
 * set of 50,000 CIFAR pictures takes 150 MB and not 600.
 */
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/dataset.h"

/* One thread draws a picture; others that want the same one wait that fraction of a millisecond. */
static void draw(const yk_pictures *p, int64_t i, uint8_t *image) {
  uint8_t state = YK_NOT_DRAWN;
  if (atomic_compare_exchange_strong(&p->drawn[i], &state, YK_BEING_DRAWN)) {
    p->draw(p, i, image);
    atomic_store_explicit(&p->drawn[i], YK_DRAWN, memory_order_release);
    return;
  }
  while (atomic_load_explicit(&p->drawn[i], memory_order_acquire) != YK_DRAWN) sched_yield();
}

static const uint8_t *image_of(const yk_dataset *d, int64_t i) {
  const yk_pictures *p = d->self;
  uint8_t *image = p->image + i * p->bytes;
  if (p->draw != NULL && atomic_load_explicit(&p->drawn[i], memory_order_acquire) != YK_DRAWN) draw(p, i, image);
  return image;
}

static int32_t label_of(const yk_dataset *d, int64_t i) {
  return ((const yk_pictures *)d->self)->label[i];
}

static yk_code read_one(const yk_dataset *d, int64_t i, void *const *out) {
  const yk_pictures *p = d->self;
  int32_t label = p->label[i];
  memcpy(out[0], image_of(d, i), (size_t)p->bytes);
  memcpy(out[1], &label, sizeof label);
  return YK_OK;
}

static void close_all(yk_dataset *d) {
  yk_pictures *p = d->self;
  if (p == NULL) return;
  yk__free(p->image);
  yk__free(p->label);
  yk__free((void *)p->drawn);
  yk__free(p);
}

static const yk_reader reader = { .read = read_one, .image = image_of, .label = label_of, .close = close_all };

static yk_code fill_in(yk_dataset *d, int64_t n, const yk_desc *picture) {
  yk_pictures *p = d->self = yk__calloc(1, sizeof *p);
  if (p == NULL) return YK_ENOMEM;
  d->n = n;
  YK_TRY(yk__dataset_add(d, "image", picture));
  YK_TRY(yk__dataset_add(d, "label", &(yk_desc){ .dtype = YK_I32 }));
  YK_TRY(yk__dataset_seal(d, NULL, YK_TRAIN));
  p->bytes = yk__example_bytes(picture);
  p->image = yk__alloc((size_t)(n * p->bytes));
  p->label = yk__alloc((size_t)n);
  if (p->image != NULL && p->label != NULL) return YK_OK;
  return YK_FAIL(ENOMEM, "no memory for %" PRId64 " pictures of %" PRId64 "x%" PRId64 "x%" PRId64, n, picture->dim[0],
                 picture->dim[1],
                 picture->dim[2]);
}

yk_code yk__pictures_new(const char *name, int64_t n, int64_t height, int64_t width, int64_t channels, int64_t nclasses,
                         yk_dataset **out, yk_pictures **pictures) {
  yk_desc picture = { .dtype = YK_U8, .rank = 3, .dim = { height, width, channels } };
  yk_dataset *d;
  YK_TRY(yk__dataset_new(name, &reader, &d));
  d->nclasses = nclasses;
  yk_code rc = fill_in(d, n, &picture);
  if (rc != YK_OK) {
    yk_dataset_free(d);
    return rc;
  }
  *out = d;
  *pictures = d->self;
  return YK_OK;
}

yk_code yk_dataset_images(int64_t n, int64_t height, int64_t width, int64_t channels, const uint8_t *images,
                          const uint8_t *labels,
                          int64_t nclasses, yk_dataset **out) {
  yk_dataset *d;
  yk_pictures *p;
  if (images == NULL || labels == NULL || out == NULL)
    return YK_FAIL(EINVAL, "yk_dataset_images needs images, labels and a place for the result");
  if (n < 1 || height < 1 || width < 1 || channels < 1 || nclasses < 1 || nclasses > 256)
    return YK_FAIL(EINVAL, "a data set needs at least one picture of at least 1x1x1 and 1 to 256 classes, got n %" PRId64 ", %" PRId64 "x%" PRId64
                   "x%" PRId64 ", %" PRId64 " classes", n, height, width, channels, nclasses);
  if (n > INT64_MAX / height / width / channels) return YK_FAIL(EINVAL, "a data set of %" PRId64 " pictures is too large", n);
  for (int64_t i = 0; i < n; i++)
    if (labels[i] >= nclasses)
      return YK_FAIL(EINVAL, "label %u of picture %" PRId64 " is not below %" PRId64, labels[i], i, nclasses);
  YK_TRY(yk__pictures_new("images", n, height, width, channels, nclasses, &d, &p));
  memcpy(p->image, images, (size_t)(n * p->bytes));
  memcpy(p->label, labels, (size_t)n);
  *out = d;
  return YK_OK;
}
