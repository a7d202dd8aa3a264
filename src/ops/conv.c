/*
 * conv.c - geometry, checks and the reference loop of the convolution family.
 *
 * Nothing here is an operation: conv2d.c and its siblings are. Unknown sizes pass every
 * check and stay unknown, so that a graph can be built before the batch is known.
 */
#include "ops/conv.h"

#include <string.h>

const yk_attr yk__conv_attrs[] = { YK__CONV_ATTRS, { 0 } };

yk_conv2d_attrs yk__conv_plain(const yk_conv2d_attrs *a) {
  yk_conv2d_attrs p = *a;
  memset(p.out, 0, sizeof p.out);
  p.act = 0;
  p.alpha = 0;
  return p;
}

static yk_code check_channels(const yk_desc *x, const yk_desc *w, int64_t groups) {
  char tx[YK__DESC_TEXT], tw[YK__DESC_TEXT];
  int64_t c = x->dim[3], i = w->dim[2], o = w->dim[3];
  yk__desc_text(x, tx, sizeof tx);
  yk__desc_text(w, tw, sizeof tw);
  if (i == 0 || o == 0) return YK_FAIL(EINVAL, "filter %s [h, w, channels/groups, outputs] has no channels", tw);
  if (c >= 0 && i >= 0 && c != i * groups)
    return YK_FAIL(EINVAL, "picture %s has %lld channels, but filter %s with groups=%lld takes %lld", tx, (long long)c, tw,
                   (long long)groups, (long long)(i * groups));
  if (c >= 0 && c % groups != 0)
    return YK_FAIL(EINVAL, "the %lld channels of picture %s cannot be cut into %lld groups", (long long)c, tx, (long long)groups);
  if (o >= 0 && o % groups != 0)
    return YK_FAIL(EINVAL, "the %lld outputs of filter %s cannot be cut into %lld groups", (long long)o, tw, (long long)groups);
  return YK_OK;
}

static yk_code check_rank(const yk_desc *x, const yk_desc *w) {
  char t[YK__DESC_TEXT];
  if (x->rank != 4) return YK_FAIL(EINVAL, "picture is %s, expected rank 4 [N, H, W, C]", yk__desc_text(x, t, sizeof t));
  if (w->rank != 4)
    return YK_FAIL(EINVAL, "filter is %s, expected rank 4 [h, w, channels/groups, outputs]", yk__desc_text(w, t, sizeof t));
  return YK_OK;
}

yk_code yk__conv_of(const yk_conv2d_attrs *a, const yk_desc *x, const yk_desc *w, yk_conv *out) {
  int64_t groups = a->groups ? a->groups : 1;
  yk_conv c;
  YK_TRY(check_rank(x, w));
  YK_TRY(check_channels(x, w, groups));
  c = (yk_conv){ .n = x->dim[0], .c = x->dim[3], .o = w->dim[3], .groups = groups };
  if (c.c < 0 && w->dim[2] >= 0) c.c = w->dim[2] * groups;
  YK_TRY(yk__window_2d(x->dim + 1, w->dim, a->stride, a->dilation, a->padding, a->pad, c.at));
  *out = c;
  return YK_OK;
}

yk_desc yk__conv_output(const yk_conv *c, const yk_desc *x) {
  return (yk_desc){ .dtype = x->dtype, .rank = 4, .dim = { c->n, c->at[0].out, c->at[1].out, c->o } };
}

yk_code yk__conv_of_grad(const yk_conv2d_attrs *a, const yk_desc *x, const yk_desc *w, const yk_desc *dy, yk_conv *out) {
  char tx[YK__DESC_TEXT], tw[YK__DESC_TEXT], td[YK__DESC_TEXT], ty[YK__DESC_TEXT];
  yk_conv c;
  yk_desc y;
  YK_TRY(yk__conv_of(a, x, w, &c));
  y = yk__conv_output(&c, x);
  for (int i = 0; i < 4; i++)
    if (dy->rank != 4 || (y.dim[i] >= 0 && dy->dim[i] >= 0 && y.dim[i] != dy->dim[i]))
      return YK_FAIL(EINVAL, "dy is %s, but picture %s with filter %s gives %s", yk__desc_text(dy, td, sizeof td),
                     yk__desc_text(x, tx, sizeof tx), yk__desc_text(w, tw, sizeof tw), yk__desc_text(&y, ty, sizeof ty));
  if (c.n < 0) c.n = dy->dim[0];
  if (c.o < 0) c.o = dy->dim[3];
  *out = c;
  return YK_OK;
}

/* All channel pairs of one group at one (x cell, tap, y cell); the three point at the group's first channel. */
static void channels(const yk_conv *c, yk_conv_sum sum, double *x, double *w, double *y) {
  int64_t ci = c->c / c->groups, co = c->o / c->groups;
  for (int64_t i = 0; i < ci; i++)
    for (int64_t o = 0; o < co; o++) {
      double *wp = w + i * c->o + o;
      if (sum == YK_CONV_TO_Y) y[o] += x[i] * *wp;
      else if (sum == YK_CONV_TO_X) x[i] += y[o] * *wp;
      else *wp += x[i] * y[o];
    }
}

/* All taps of the window that makes the y cell (n, oh, ow). */
static void taps(const yk_conv *c, yk_conv_sum sum, double *x, double *w, double *y, int64_t oh, int64_t ow) {
  const yk_window *v = &c->at[0], *h = &c->at[1];
  int64_t ci = c->c / c->groups, co = c->o / c->groups;
  for (int64_t kh = 0; kh < v->size; kh++)
    for (int64_t kw = 0; kw < h->size; kw++) {
      int64_t ih = yk__window_start(v, oh) + kh * v->dilation, iw = yk__window_start(h, ow) + kw * h->dilation;
      if (ih < 0 || ih >= v->in || iw < 0 || iw >= h->in) continue;
      for (int64_t g = 0; g < c->groups; g++)
        channels(c, sum, x + (ih * h->in + iw) * c->c + g * ci, w + (kh * h->size + kw) * ci * c->o + g * co, y + g * co);
    }
}

void yk__conv_ref(const yk_conv *c, yk_conv_sum sum, double *x, double *w, double *y) {
  const yk_window *v = &c->at[0], *h = &c->at[1];
  int64_t nx = v->in * h->in * c->c, ny = v->out * h->out * c->o, nw = v->size * h->size * (c->c / c->groups) * c->o;
  double *to = sum == YK_CONV_TO_X ? x : sum == YK_CONV_TO_W ? w : y;
  int64_t count = sum == YK_CONV_TO_X ? c->n * nx : sum == YK_CONV_TO_W ? nw : c->n * ny;
  for (int64_t i = 0; i < count; i++) to[i] = 0;
  for (int64_t n = 0; n < c->n; n++)
    for (int64_t oh = 0; oh < v->out; oh++)
      for (int64_t ow = 0; ow < h->out; ow++)
        taps(c, sum, x + n * nx, w, y + n * ny + (oh * h->out + ow) * c->o, oh, ow);
}

double yk__conv_flops(const yk_desc *y, const yk_desc *w) {
  return 2.0 * (double)yk__desc_count(y) * (double)w->dim[0] * (double)w->dim[1] * (double)w->dim[2];
}
