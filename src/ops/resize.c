/*
 * resize.c - where each cell of a larger picture takes its value from; the operations are in resize_nearest.c and resize_bilinear.c.
 *
 * A cell's value is a weighted sum over at most two rows and two columns. The gradient adds along the same weights, which is why
 * forward and backward share the loop.
 */
#include "ops/resize.h"

const yk_attr yk__resize_attrs[] = { YK__INTS(yk_resize_attrs, scale, 2, 1, 0, 1024), { 0 } };
const yk_resize_attrs yk__resize_2 = { { 2, 2 } }, yk__resize_3x2 = { { 3, 2 } };

static int64_t scale_of(const void *attrs, int i) {
  const yk_resize_attrs *a = attrs;
  return a && a->scale[i] ? a->scale[i] : 1;
}

yk_code yk__resize_infer(const yk_infer *c) {
  YK_TRY(yk__want_rank(c, 0, 4));
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  for (int i = 0; i < 2; i++)
    if (c->in[0].dim[1 + i] >= 0) c->out[0].dim[1 + i] *= scale_of(c->attrs, i);
  return YK_OK;
}

yk_code yk__resize_infer_grad(const yk_infer *c) {
  YK_TRY(yk__want_rank(c, 0, 4));
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  for (int i = 0; i < 2; i++) {
    int64_t size = c->in[0].dim[1 + i], by = scale_of(c->attrs, i);
    if (size < 0) continue;
    if (size % by)
      return YK_FAIL(EINVAL, "dim %d of dy is %lld, which is no multiple of the scale %lld", 1 + i, (long long)size, (long long)by);
    c->out[0].dim[1 + i] = size / by;
  }
  return YK_OK;
}

/* Cell i of the large side lies between cells at[0] and at[1] of the small one, which has `size`; the weight of the second. */
static double between(int64_t i, int64_t by, int64_t size, int bilinear, int64_t at[2]) {
  double place = ((double)i + 0.5) / (double)by - 0.5, low = floor(place);
  if (!bilinear) {
    at[0] = at[1] = i / by;
    return 0;
  }
  at[0] = low < 0 ? 0 : (int64_t)low;
  at[1] = (int64_t)low + 1 < size ? (int64_t)low + 1 : size - 1;
  return place - low;
}

/* large[cell] += or small[...] += over all cells and their up to four neighbours. */
static void walk(const void *attrs, int bilinear, const yk_desc *small, const yk_desc *large, const double *from_small, double *to_large,
                 const double *from_large, double *to_small) {
  int64_t n = yk__desc_count(large), cell[YK_MAX_RANK], row[2], column[2];
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(large, i, cell);
    double down = between(cell[1], scale_of(attrs, 0), small->dim[1], bilinear, row);
    double across = between(cell[2], scale_of(attrs, 1), small->dim[2], bilinear, column);
    for (int k = 0; k < 4; k++) {
      double weight = (k & 2 ? down : 1 - down) * (k & 1 ? across : 1 - across);
      int64_t at[YK_MAX_RANK] = { cell[0], row[k >> 1], column[k & 1], cell[3] }, j = yk__ravel(small, at);
      if (to_large) to_large[i] += weight * from_small[j];
      else to_small[j] += weight * from_large[i];
    }
  }
}

yk_code yk__resize_ref(const yk_ref *c, int bilinear) {
  yk__ref_zero(c, 0);
  walk(c->attrs, bilinear, &c->din[0], &c->dout[0], c->in[0], c->out[0], NULL, NULL);
  return YK_OK;
}

yk_code yk__resize_ref_grad(const yk_ref *c, int bilinear) {
  yk__ref_zero(c, 0);
  walk(c->attrs, bilinear, &c->dout[0], &c->din[0], NULL, NULL, c->in[0], c->out[0]);
  return YK_OK;
}
