/*
 * augment.c - from a picture's bytes to a network's input.
 *
 * The formulae are those of TensorFlow's CIFAR-10 tutorial. Every one of them is affine in a channel's bytes, so a picture is
 * read twice, once to sum up the window that was cut out and once to map it. Random choices are functions of (seed, draw
 * number): an example looks the same whichever thread prepares it.
 */
#include <inttypes.h>
#include <math.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/dataset.h"

enum { STREAM = 101, PAD = 4, MAX_SIDE = 4096, MAX_CHANNELS = 64 };   /* random streams of ops are small numbers */

/* Where the window begins (outside the picture if it was padded), and whether it is mirrored. */
typedef struct yk_window { int64_t top, left; int flip; } yk_window;
/* Of one channel of the window: mean, and variance around it. */
typedef struct yk_moments { double mean, variance; } yk_moments;
/* out = (byte - middle) * scale: exact where a channel is flat, which scale * byte + offset is not. */
typedef struct yk_affine { float middle, scale; } yk_affine;

static yk_window draw_window(uint64_t seed, uint64_t draw, int64_t free_rows, int64_t free_columns) {
  yk_window v;
  v.top = (int64_t)yk__rng_below(seed, STREAM, draw, 0, (uint64_t)free_rows + 1);
  v.left = (int64_t)yk__rng_below(seed, STREAM + 1, draw, 0, (uint64_t)free_columns + 1);
  v.flip = yk__rng_uniform_f32(seed, STREAM + 2, draw, 0) < 0.5f;
  return v;
}

static yk_window centre(const yk_frame *f) {
  return (yk_window){ .top = (f->h - f->size) / 2, .left = (f->w - f->size) / 2 };
}

/* Sums in integers: exact, so the variance of a flat channel is exactly 0. MAX_SIDE keeps them below 2^64. */
static yk_moments channel_moments(const yk_frame *f, const uint8_t *in, const yk_window *v, int64_t k) {
  uint64_t n = (uint64_t)(f->size * f->size), sum = 0, squares = 0;
  for (int64_t y = 0; y < f->size; y++) {
    const uint8_t *row = in + ((v->top + y) * f->w + v->left) * f->c + k;
    uint32_t row_sum = 0, row_squares = 0;
    for (int64_t x = 0; x < f->size; x++) {
      uint32_t byte = row[x * f->c];
      row_sum += byte;
      row_squares += byte * byte;
    }
    sum += row_sum;
    squares += row_squares;
  }
  return (yk_moments){ .mean = (double)sum / (double)n, .variance = (double)(squares * n - sum * sum) / ((double)n * (double)n) };
}

/* Channel k of the window, mapped. */
static void map_channel(const yk_frame *f, const uint8_t *in, const yk_window *v, int64_t k, yk_affine a, float *out) {
  int64_t step = v->flip ? -f->c : f->c;
  for (int64_t y = 0; y < f->size; y++) {
    const uint8_t *row = in + ((v->top + y) * f->w + (v->flip ? v->left + f->size - 1 : v->left)) * f->c + k;
    float *to = out + y * f->size * f->c + k;
    for (int64_t x = 0; x < f->size; x++) to[x * f->c] = ((float)row[x * step] - a.middle) * a.scale;
  }
}

/*
 * The window with its contrast changed, (x - mean of the channel) * contrast + mean of the channel, then standardised over all
 * channels, (x - mean) / max(deviation, 1/sqrt(count)). Contrast leaves a channel's mean alone and scales its deviation.
 */
static void standardise(const yk_frame *f, const uint8_t *in, const yk_window *v, double contrast, yk_affine map[MAX_CHANNELS]) {
  yk_moments m[MAX_CHANNELS];
  double mean = 0, variance = 0, deviation;
  for (int64_t k = 0; k < f->c; k++) {
    m[k] = channel_moments(f, in, v, k);
    mean += m[k].mean / (double)f->c;
  }
  for (int64_t k = 0; k < f->c; k++)
    variance += (contrast * contrast * m[k].variance + (m[k].mean - mean) * (m[k].mean - mean)) / (double)f->c;
  deviation = fmax(sqrt(variance), 1.0 / sqrt((double)(f->size * f->size * f->c)));
  for (int64_t k = 0; k < f->c; k++)
    map[k] = (yk_affine){ .middle = (float)(m[k].mean + (mean - m[k].mean) / contrast), .scale = (float)(contrast / deviation) };
}

/* The middle of the picture in a border of PAD zeros (its own mean, once standardised), and the window in that. */
static void map_padded(const yk_frame *f, const uint8_t *in, const yk_window *v, const yk_affine *map, float *out) {
  yk_window middle = centre(f);
  for (int64_t y = 0; y < f->size; y++)
    for (int64_t x = 0; x < f->size; x++, out += f->c) {
      int64_t sy = y + v->top - PAD, sx = (v->flip ? f->size - 1 - x : x) + v->left - PAD;
      const uint8_t *pixel = in + ((middle.top + sy) * f->w + middle.left + sx) * f->c;
      int inside = sy >= 0 && sy < f->size && sx >= 0 && sx < f->size;
      for (int64_t k = 0; k < f->c; k++) out[k] = inside ? ((float)pixel[k] - map[k].middle) * map[k].scale : 0.0f;
    }
}

/* The tutorial's brightness, a number from -63 to 63 added to the whole picture without clipping, is taken away again by the
 * standardisation, so it is not drawn. */
void yk__augment(yk_augment kind, const yk_frame *f, const uint8_t *in, uint64_t seed, uint64_t draw, float *out) {
  yk_affine map[MAX_CHANNELS];
  yk_window v = centre(f);
  double contrast = 1;
  if (kind == YK_AUGMENT_CIFAR_TRAIN) {
    v = draw_window(seed, draw, f->h - f->size, f->w - f->size);
    contrast = 0.2 + 1.6 * (double)yk__rng_uniform_f32(seed, STREAM + 2, draw, 1);
  }
  if (kind == YK_AUGMENT_NONE)
    for (int64_t k = 0; k < f->c; k++) map[k] = (yk_affine){ .middle = 127.5f, .scale = 1.0f / 255.0f };
  else
    standardise(f, in, &v, contrast, map);
  if (kind == YK_AUGMENT_PAD_CROP_FLIP) {
    v = draw_window(seed, draw, 2 * PAD, 2 * PAD);
    map_padded(f, in, &v, map, out);
    return;
  }
  for (int64_t k = 0; k < f->c; k++) map_channel(f, in, &v, k, map[k], out);
}

yk_code yk__augment_check(yk_augment kind, const yk_frame *f) {
  if ((unsigned)kind > YK_AUGMENT_STANDARDISE) return YK_FAIL(EINVAL, "unknown augmentation %d", (int)kind);
  if (f->size < 1 || f->size > f->h || f->size > f->w)
    return YK_FAIL(EINVAL, "pictures of %" PRId64 "x%" PRId64 " cannot be cut to %" PRId64 "x%" PRId64, f->h, f->w, f->size, f->size);
  if (f->size > MAX_SIDE || f->c < 1 || f->c > MAX_CHANNELS)
    return YK_FAIL(EINVAL, "augmentation makes pictures of at most %dx%d with 1 to %d channels, not %" PRId64 "x%" PRId64 "x%" PRId64, MAX_SIDE,
                   MAX_SIDE, MAX_CHANNELS, f->size, f->size, f->c);
  return YK_OK;
}

yk_code yk_augment_image(yk_augment kind, const uint8_t *in, int64_t h, int64_t w, int64_t c, int64_t size, uint64_t seed, uint64_t draw,
                         float *out) {
  yk_frame f = { .h = h, .w = w, .c = c, .size = size };
  if (in == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_augment_image needs a picture and a place for the result");
  YK_TRY(yk__augment_check(kind, &f));
  yk__augment(kind, &f, in, seed, draw, out);
  return YK_OK;
}
