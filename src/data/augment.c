/*
 * augment.c - from a picture's bytes to a network's input.
 *
 * The formulae are those of TensorFlow's CIFAR-10 tutorial. Random choices are
 * functions of (seed, draw number), so an example looks the same whichever
 * thread prepares it.
 */
#include <inttypes.h>
#include <math.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/dataset.h"

enum { STREAM = 101, PAD = 4, MAX_SIDE = 64, MAX_CHANNELS = 4 };   /* random streams of ops are small numbers */

typedef struct yk_choice { int64_t top, left; int flip; float brightness, contrast; } yk_choice;

static yk_choice choose(uint64_t seed, uint64_t draw, int64_t free_rows, int64_t free_columns) {
  yk_choice c;
  c.top = (int64_t)yk__rng_below(seed, STREAM, draw, 0, (uint64_t)free_rows + 1);
  c.left = (int64_t)yk__rng_below(seed, STREAM + 1, draw, 0, (uint64_t)free_columns + 1);
  c.flip = yk__rng_uniform_f32(seed, STREAM + 2, draw, 0) < 0.5f;
  c.brightness = -63.0f + 126.0f * yk__rng_uniform_f32(seed, STREAM + 2, draw, 1);
  c.contrast = 0.2f + 1.6f * yk__rng_uniform_f32(seed, STREAM + 2, draw, 2);
  return c;
}

/* out[y][x] = in[top+y][left+x], mirrored if asked. */
static void crop(const uint8_t *in, int64_t w, int64_t c, int64_t size, int64_t top, int64_t left, int flip, float *out) {
  for (int64_t y = 0; y < size; y++)
    for (int64_t x = 0; x < size; x++) {
      const uint8_t *pixel = in + ((top + y) * w + left + (flip ? size - 1 - x : x)) * c;
      for (int64_t k = 0; k < c; k++) out[(y * size + x) * c + k] = (float)pixel[k];
    }
}

/* (x - mean of its channel) * factor + mean. */
static void adjust_contrast(float *x, int64_t pixels, int64_t c, float factor) {
  for (int64_t k = 0; k < c; k++) {
    double sum = 0;
    float mean;
    for (int64_t i = 0; i < pixels; i++) sum += (double)x[i * c + k];
    mean = (float)(sum / (double)pixels);
    for (int64_t i = 0; i < pixels; i++) x[i * c + k] = (x[i * c + k] - mean) * factor + mean;
  }
}

static void standardise(float *x, int64_t n) {
  double sum = 0, squares = 0, mean, deviation;
  float m, scale;
  for (int64_t i = 0; i < n; i++) sum += (double)x[i];
  mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
  deviation = fmax(sqrt(squares / (double)n), 1.0 / sqrt((double)n));
  m = (float)mean;
  scale = (float)(1.0 / deviation);
  for (int64_t i = 0; i < n; i++) x[i] = (x[i] - m) * scale;
}

/* Shift within a border of zeros; the picture is standardised, so the border is its mean. */
static void shift(const float *x, int64_t size, int64_t c, int64_t dy, int64_t dx, int flip, float *out) {
  for (int64_t y = 0; y < size; y++)
    for (int64_t col = 0; col < size; col++) {
      int64_t sy = y + dy, sx = (flip ? size - 1 - col : col) + dx;
      int inside = sy >= 0 && sy < size && sx >= 0 && sx < size;
      for (int64_t k = 0; k < c; k++) out[(y * size + col) * c + k] = inside ? x[(sy * size + sx) * c + k] : 0.0f;
    }
}

static yk_code pad_crop_flip(const uint8_t *in, int64_t h, int64_t w, int64_t c, int64_t size, uint64_t seed, uint64_t draw, float *out) {
  float whole[MAX_SIDE * MAX_SIDE * MAX_CHANNELS];
  yk_choice ch = choose(seed, draw, 2 * PAD, 2 * PAD);
  if (size > MAX_SIDE || c > MAX_CHANNELS)
    return YK_FAIL(EINVAL, "pad-crop-flip takes pictures of at most %dx%dx%d, not %" PRId64 "x%" PRId64 "x%" PRId64, MAX_SIDE, MAX_SIDE, MAX_CHANNELS,
                   size, size, c);
  crop(in, w, c, size, (h - size) / 2, (w - size) / 2, 0, whole);
  standardise(whole, size * size * c);
  shift(whole, size, c, ch.top - PAD, ch.left - PAD, ch.flip, out);
  return YK_OK;
}

yk_code yk_augment_image(yk_augment kind, const uint8_t *in, int64_t h, int64_t w, int64_t c, int64_t size, uint64_t seed, uint64_t draw,
                         float *out) {
  int64_t n = size * size * c;
  yk_choice ch;
  if (size < 1 || size > h || size > w)
    return YK_FAIL(EINVAL, "pictures of %" PRId64 "x%" PRId64 " cannot be cut to %" PRId64 "x%" PRId64, h, w, size, size);
  switch (kind) {
    case YK_AUGMENT_CIFAR_TRAIN:
      ch = choose(seed, draw, h - size, w - size);
      crop(in, w, c, size, ch.top, ch.left, ch.flip, out);
      for (int64_t i = 0; i < n; i++) out[i] += ch.brightness;
      adjust_contrast(out, size * size, c, ch.contrast);
      standardise(out, n);
      return YK_OK;
    case YK_AUGMENT_PAD_CROP_FLIP:
      return pad_crop_flip(in, h, w, c, size, seed, draw, out);
    case YK_AUGMENT_CIFAR_EVAL:
    case YK_AUGMENT_STANDARDISE:
      crop(in, w, c, size, (h - size) / 2, (w - size) / 2, 0, out);
      standardise(out, n);
      return YK_OK;
    case YK_AUGMENT_NONE:
      crop(in, w, c, size, (h - size) / 2, (w - size) / 2, 0, out);
      for (int64_t i = 0; i < n; i++) out[i] = out[i] / 255.0f - 0.5f;
      return YK_OK;
  }
  return YK_FAIL(EINVAL, "unknown augmentation %d", (int)kind);
}
