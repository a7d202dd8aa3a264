/*
 * summary_image.c - pictures in event files.
 *
 * All pictures of a call are one event, as readers expect it, so a call that fails leaves none of them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "base/alloc.h"
#include "base/error.h"
#include "store/summary.h"
#include "tensor/desc.h"

enum { VALUE_IMAGE = 4, IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_COLORS = 3, IMAGE_PNG = 4 };
enum { DEFAULT_MAX = 3, MOST_SIDE = 1 << 15, MOST_BYTES = 1 << 28 };

static yk_code check(const char *tag, const yk_tensor *t, int64_t max) {
  const yk_desc *d = t != NULL ? yk_tensor_desc(t) : NULL;
  char text[256];
  if (d == NULL) return YK_FAIL(EINVAL, "yk_summary_image: '%s': NULL tensor", tag);
  if (max < 0) return YK_FAIL(EINVAL, "yk_summary_image: '%s': at most %" PRId64 " pictures; expected 0 or more", tag, max);
  bool good = d->rank == 4 && (d->dtype == YK_U8 || d->dtype == YK_F32) && (d->dim[3] == 1 || d->dim[3] == 3 || d->dim[3] == 4);
  for (int i = 1; i < 3 && good; i++) good = d->dim[i] >= 1 && d->dim[i] <= MOST_SIDE;
  if (good && d->dim[1] * d->dim[2] * d->dim[3] <= MOST_BYTES) return YK_OK;
  return YK_FAIL(EINVAL, "yk_summary_image: '%s': the tensor is %s; expected u8 or f32 [N, height, width, 1, 3 or 4], sides of 1 to %d, "
                 "256 MiB a picture", tag, yk__desc_text(d, text, sizeof text), MOST_SIDE);
}

/* f32 [pixels, channels] as u8. A pixel any channel of which is not finite is red, or white where there is but one channel. */
static void scale(const float *x, int64_t pixels, int64_t channels, uint8_t *out) {
  static const uint8_t bad[4] = { 255, 0, 0, 255 };
  float lo = 0, hi = 0;
  for (int64_t i = 0; i < pixels * channels; i++) {
    if (!isfinite(x[i])) continue;
    if (x[i] < lo) lo = x[i];
    if (x[i] > hi) hi = x[i];
  }
  float most = hi > -lo ? hi : -lo, offset = lo < 0 ? 128 : 0, factor = most < 1e-6f ? 0 : (lo < 0 ? 127 : 255) / most;
  for (int64_t p = 0; p < pixels; p++, x += channels, out += channels) {
    bool finite = true;
    for (int64_t c = 0; c < channels; c++) finite &= isfinite(x[c]) != 0;
    for (int64_t c = 0; c < channels; c++) out[c] = finite ? (uint8_t)(x[c] * factor + offset) : bad[c];
  }
}

/* The pixels of each picture, dense u8: the tensor's own, or *own, the caller's. */
static yk_code pixels_of(const yk_tensor *t, int64_t n, const uint8_t **pixels, uint8_t **own) {
  const yk_desc *d = yk_tensor_desc(t);
  int64_t size = d->dim[1] * d->dim[2] * d->dim[3];
  *own = NULL;
  *pixels = yk_tensor_data(t);
  if (d->dtype == YK_U8 || n == 0) return YK_OK;
  *own = yk__alloc((size_t)(n * size));
  if (*own == NULL) return YK_ENOMEM;
  for (int64_t i = 0; i < n; i++)
    scale((const float *)yk_tensor_data(t) + i * size, size / d->dim[3], d->dim[3], *own + i * size);
  *pixels = *own;
  return YK_OK;
}

static void put_image(yk_str *e, const char *tag, int64_t index, const yk_desc *d, const uint8_t *pixels) {
  char end[32] = "/image";
  if (index >= 0) snprintf(end, sizeof end, "/image/%" PRId64, index);
  size_t v = yk__proto_begin(e, YK__SUMMARY_VALUE), name = yk__proto_begin(e, YK__VALUE_TAG);
  yk__str_add(e, "%s%s", tag, end);
  yk__proto_end(e, name);
  size_t image = yk__proto_begin(e, VALUE_IMAGE);
  yk__proto_int(e, IMAGE_HEIGHT, d->dim[1]);
  yk__proto_int(e, IMAGE_WIDTH, d->dim[2]);
  yk__proto_int(e, IMAGE_COLORS, d->dim[3]);
  size_t png = yk__proto_begin(e, IMAGE_PNG);
  yk__png_put(e, pixels, (uint32_t)d->dim[2], (uint32_t)d->dim[1], (uint32_t)d->dim[3]);
  yk__proto_end(e, png);
  yk__proto_end(e, image);
  yk__proto_end(e, v);
}

yk_code yk_summary_image(yk_summary_writer *w, const char *tag, int64_t step, const yk_tensor *pictures, int64_t max) {
  const uint8_t *pixels;
  uint8_t *own;
  yk_str *e;
  YK_TRY(yk__summary_check(w, "yk_summary_image", tag));
  YK_TRY(check(tag, pictures, max));
  const yk_desc *d = yk_tensor_desc(pictures);
  int64_t most = max != 0 ? max : DEFAULT_MAX, n = d->dim[0] < most ? d->dim[0] : most;
  YK_TRY(pixels_of(pictures, n, &pixels, &own));
  yk_code rc = yk__summary_begin(w, step, &e);
  if (rc == YK_OK) {
    size_t summary = yk__proto_begin(e, YK__EVENT_SUMMARY);
    for (int64_t i = 0; i < n && !e->failed; i++)
      put_image(e, tag, max == 1 ? -1 : i, d, pixels + i * d->dim[1] * d->dim[2] * d->dim[3]);
    yk__proto_end(e, summary);
    rc = yk__summary_end(w);
  }
  yk__free(own);
  return rc;
}
