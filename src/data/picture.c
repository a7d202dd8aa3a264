/*
 * picture.c - decoding and resizing.
 *
 * Resizing is a weighted mean with a triangle as wide as the scale, rows first, then columns: plain bilinear interpolation where a
 * picture grows, and no aliasing where it shrinks. Pixel centres lie at half numbers.
 */
#include "data/picture.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

yk_coding yk__picture_coding(const uint8_t *p, size_t n) {
  if (n >= 3 && memcmp(p, "\xFF\xD8\xFF", 3) == 0) return YK_CODING_JPEG;
  if (n >= 8 && memcmp(p, "\x89PNG\r\n\x1A\n", 8) == 0) return YK_CODING_PNG;
  return YK_CODING_NONE;
}

yk_code yk__picture_check(int64_t h, int64_t w) {
  if (h >= 1 && w >= 1 && h <= YK__MOST_PIXELS / w) return YK_OK;
  return YK_FAIL(ECORRUPT, "it declares %" PRId64 "x%" PRId64 " pixels; at most %d are decoded", h, w, YK__MOST_PIXELS);
}

static yk_code read_bitmap(const uint8_t *p, size_t n, const yk_target *t, bool only_size, yk_bitmap *out) {
  switch (yk__picture_coding(p, n)) {
    case YK_CODING_JPEG: return yk__jpeg_read(p, n, t, only_size, out);
    case YK_CODING_PNG: return yk__png_read(p, n, t, only_size, out);
    default: break;
  }
  if (n == 0) return YK_FAIL(ECORRUPT, "it is empty");
  return YK_FAIL(ECORRUPT, "it is neither a JPEG nor a PNG: it begins with %02x %02x", p[0], n > 1 ? p[1] : 0u);
}

yk_code yk__picture_size(const uint8_t *p, size_t n, int64_t *height, int64_t *width) {
  yk_bitmap b = { NULL, 0, 0, 0 };
  yk_target t = { .channels = 3 };
  YK_TRY(read_bitmap(p, n, &t, true, &b));
  *height = b.h;
  *width = b.w;
  return YK_OK;
}

/* Along one axis: pixel i of the result is the sum over k < taps of weight[i * taps + k] * pixel first[i] + k. */
typedef struct yk_axis { int64_t n, taps, *first; float *weight; } yk_axis;

/* n pixels from the `span` pixels at `from` of `have`. */
static yk_code plan_axis(yk_axis *a, int64_t n, int64_t have, double from, double span) {
  double scale = span / (double)n, reach = scale > 1 ? scale : 1;
  a->n = n;
  a->taps = (int64_t)ceil(2 * reach) + 1;
  if (a->taps > have) a->taps = have;
  a->first = yk__alloc((size_t)n * sizeof *a->first);
  a->weight = yk__calloc((size_t)(n * a->taps), sizeof *a->weight);
  if (a->first == NULL || a->weight == NULL) return YK_ENOMEM;
  for (int64_t i = 0; i < n; i++) {
    double middle = from + ((double)i + 0.5) * scale, sum = 0;
    float *w = a->weight + i * a->taps;
    int64_t first = (int64_t)floor(middle - reach);
    if (first > have - a->taps) first = have - a->taps;
    if (first < 0) first = 0;
    a->first[i] = first;
    for (int64_t k = 0; k < a->taps; k++) {
      double far = fabs((double)(first + k) + 0.5 - middle) / reach;
      w[k] = far < 1 ? (float)(1 - far) : 0;
      sum += (double)w[k];
    }
    for (int64_t k = 0; k < a->taps; k++) w[k] = (float)((double)w[k] / sum);
  }
  return YK_OK;
}

static void free_axis(yk_axis *a) {
  yk__free(a->first);
  yk__free(a->weight);
}

/* Row y of the picture, narrowed to x->n pixels. */
static void narrow(const yk_bitmap *b, const yk_axis *x, int64_t y, float *out) {
  const uint8_t *row = b->pixel + y * b->w * b->c;
  for (int64_t i = 0; i < x->n; i++)
    for (int64_t k = 0; k < b->c; k++, out++) {
      const uint8_t *p = row + x->first[i] * b->c + k;
      const float *w = x->weight + i * x->taps;
      float sum = 0;
      for (int64_t t = 0; t < x->taps; t++) sum += w[t] * (float)p[t * b->c];
      *out = sum;
    }
}

/* Rows that weigh nothing are not even narrowed: `rows` keeps those of one result row at a time, by their number. */
static yk_code resize(const yk_bitmap *b, const yk_axis *x, const yk_axis *y, uint8_t *out) {
  int64_t width = x->n * b->c, kept = y->taps;
  float *rows = yk__alloc((size_t)(kept * width) * sizeof *rows), *sum = yk__alloc((size_t)width * sizeof *sum);
  int64_t *number = yk__alloc((size_t)kept * sizeof *number);
  yk_code rc = rows != NULL && sum != NULL && number != NULL ? YK_OK : YK_ENOMEM;
  for (int64_t k = 0; rc == YK_OK && k < kept; k++) number[k] = -1;
  for (int64_t i = 0; rc == YK_OK && i < y->n; i++) {
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t t = 0; t < kept; t++) {
      int64_t r = y->first[i] + t, slot = r % kept;
      float w = y->weight[i * kept + t], *row = rows + slot * width;
      if (w == 0) continue;
      if (number[slot] != r) narrow(b, x, r, row);
      number[slot] = r;
      for (int64_t k = 0; k < width; k++) sum[k] += w * row[k];
    }
    for (int64_t k = 0; k < width; k++) *out++ = (uint8_t)(sum[k] <= 0 ? 0 : sum[k] >= 255 ? 255 : (int)(sum[k] + 0.5f));
  }
  yk__free(rows);
  yk__free(sum);
  yk__free(number);
  return rc;
}

static yk_code fit(const yk_bitmap *b, const yk_target *t, uint8_t *out) {
  double h = (double)b->h, w = (double)b->w;
  yk_axis x = { .n = 0 }, y = { .n = 0 };
  if (b->h == t->height && b->w == t->width) {
    memcpy(out, b->pixel, (size_t)(b->h * b->w * b->c));
    return YK_OK;
  }
  if (t->fit == YK_FIT_CROP) {
    double scale = fmin(h / (double)t->height, w / (double)t->width);
    h = scale * (double)t->height;
    w = scale * (double)t->width;
  }
  yk_code rc = plan_axis(&x, t->width, b->w, ((double)b->w - w) / 2, w);
  if (rc == YK_OK) rc = plan_axis(&y, t->height, b->h, ((double)b->h - h) / 2, h);
  if (rc == YK_OK) rc = resize(b, &x, &y, out);
  free_axis(&x);
  free_axis(&y);
  return rc;
}

yk_code yk__picture_read(const uint8_t *p, size_t n, const yk_target *t, uint8_t *out) {
  yk_bitmap b = { NULL, 0, 0, 0 };
  YK_TRY(read_bitmap(p, n, t, false, &b));
  yk_code rc = fit(&b, t, out);
  yk__free(b.pixel);
  return rc;
}
