/*
 * anchors.c - the boxes that a region proposal network corrects: the same few at every cell of a feature map.
 *
 * Sizes are square roots of areas, so a ratio changes the shape and leaves the area.
 */
#include <inttypes.h>
#include <math.h>
#include <yoke/detect.h>
#include "base/error.h"

enum { MOST_KINDS = 64, MOST_CELLS = 1 << 14 };

static bool all_positive(size_t n, const double *x) {
  for (size_t i = 0; i < n; i++)
    if (x == NULL || !(x[i] > 0) || !isfinite(x[i])) return false;
  return true;
}

static yk_code check(const yk_anchor_options *o, yk_tensor **out) {
  if (o == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_anchors: NULL argument");
  if (o->rows < 1 || o->columns < 1 || o->rows > MOST_CELLS || o->columns > MOST_CELLS)
    return YK_FAIL(EINVAL, "anchors over %" PRId64 " x %" PRId64 " cells; expected 1 to %d each way", o->rows, o->columns, MOST_CELLS);
  if (!(o->stride > 0) || !isfinite(o->stride)) return YK_FAIL(EINVAL, "anchors every %g pixels; expected a stride above 0", o->stride);
  if (o->nsizes < 1 || o->nsizes > MOST_KINDS || o->nratios > MOST_KINDS)
    return YK_FAIL(EINVAL, "anchors of %zu sizes and %zu ratios; expected at least one size, and at most %d of each", o->nsizes, o->nratios,
                   MOST_KINDS);
  if (!all_positive(o->nsizes, o->sizes) || !all_positive(o->nratios, o->ratios))
    return YK_FAIL(EINVAL, "a size or a ratio of anchors is not above 0");
  return YK_OK;
}

yk_code yk_anchors(const yk_anchor_options *o, yk_tensor **out) {
  YK_TRY(check(o, out));
  const size_t nratios = o->nratios ? o->nratios : 1;
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(o->rows * o->columns * (int64_t)(nratios * o->nsizes), 4), out));
  float *box = yk_tensor_data(*out);
  for (int64_t cell = 0; cell < o->rows * o->columns; cell++)
    for (size_t r = 0; r < nratios; r++)
      for (size_t s = 0; s < o->nsizes; s++, box += 4) {
        double y = ((double)(cell / o->columns) + 0.5) * o->stride, x = ((double)(cell % o->columns) + 0.5) * o->stride;
        double tall = sqrt(o->nratios ? o->ratios[r] : 1), h = o->sizes[s] * tall / 2, w = o->sizes[s] / tall / 2;
        box[0] = (float)(y - h);
        box[1] = (float)(x - w);
        box[2] = (float)(y + h);
        box[3] = (float)(x + w);
      }
  return YK_OK;
}
