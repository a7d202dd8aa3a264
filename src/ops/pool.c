/*
 * pool.c - geometry of max and average pooling; the operations are in max_pool.c and avg_pool.c.
 *
 * Padding is never part of the data: it does not count in a mean and cannot be a maximum.
 */
#include "ops/pool.h"

const yk_attr yk__pool_attrs[] = {
  YK__INTS(yk_pool_attrs, window, 2, 1, 0, 65536),
  YK__INTS(yk_pool_attrs, stride, 2, 0, 0, 65536),
  YK__ENUM(yk_pool_attrs, padding, YK_SAME, YK_SAME, YK_EXPLICIT),
  YK__INTS(yk_pool_attrs, pad, 4, 0, 0, 65536),
  { 0 },
};

const yk_pool_attrs yk__pool_3x3_s2 = { .window = { 3, 3 }, .stride = { 2, 2 } }, yk__pool_2x2 = { .window = { 2, 2 } },
  yk__pool_3x2_s1_valid = { .window = { 3, 2 }, .stride = { 1, 1 }, .padding = YK_VALID },
  yk__pool_3x3_s2_valid = { .window = { 3, 3 }, .stride = { 2, 2 }, .padding = YK_VALID },
  yk__pool_2x3_s3_same = { .window = { 2, 3 }, .stride = { 3, 1 } },
  yk__pool_explicit = { .window = { 3, 3 }, .stride = { 2, 2 }, .padding = YK_EXPLICIT, .pad = { 1, 0, 2, 1 } };

yk_code yk__pool_of(const yk_pool_attrs *a, const yk_desc *x, yk_pool *out) {
  static const int32_t no_dilation[2] = { 1, 1 };
  char t[YK__DESC_TEXT];
  int64_t size[2];
  int32_t stride[2];
  yk_pool p;
  if (x->rank != 4) return YK_FAIL(EINVAL, "picture is %s, expected rank 4 [N, H, W, C]", yk__desc_text(x, t, sizeof t));
  for (int i = 0; i < 2; i++) {
    size[i] = a->window[i] ? a->window[i] : 1;
    stride[i] = a->stride[i] ? a->stride[i] : (int32_t)size[i];
  }
  for (int i = 0; i < 4; i++)
    if (a->padding == YK_EXPLICIT && a->pad[i] >= size[i / 2])
      return YK_FAIL(EINVAL, "pad=%d,%d,%d,%d is not smaller than the window of %lld by %lld: a window would see padding only",
                     a->pad[0], a->pad[1], a->pad[2], a->pad[3], (long long)size[0], (long long)size[1]);
  YK_TRY(yk__window_2d(x->dim + 1, size, stride, no_dilation, a->padding, a->pad, p.at));
  p.y = yk__as(x, x->dtype);
  for (int i = 0; i < 2; i++) p.y.dim[1 + i] = p.at[i].out;
  *out = p;
  return YK_OK;
}

yk_code yk__pool_of_grad(const yk_pool_attrs *a, const yk_desc *x, const yk_desc *dy, yk_pool *out) {
  char tx[YK__DESC_TEXT], td[YK__DESC_TEXT], ty[YK__DESC_TEXT];
  yk_pool p;
  YK_TRY(yk__pool_of(a, x, &p));
  for (int i = 0; i < 4; i++)
    if (dy->rank != 4 || yk__dims_clash(dy->dim[i], p.y.dim[i]))
      return YK_FAIL(EINVAL, "dy is %s, but pooling of %s gives %s", yk__desc_text(dy, td, sizeof td), yk__desc_text(x, tx, sizeof tx),
                     yk__desc_text(&p.y, ty, sizeof ty));
  *out = p;
  return YK_OK;
}

void yk__pool_range(const yk_window *w, int64_t o, int64_t *begin, int64_t *end) {
  int64_t b = yk__window_start(w, o), e = b + w->size;
  *begin = b < 0 ? 0 : b;
  *end = e > w->in ? w->in : e;
}
