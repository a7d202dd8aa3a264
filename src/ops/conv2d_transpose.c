/*
 * conv2d_transpose.c - transposed convolution: the gradient of a convolution, used forwards.
 *
 * x [N,H,W,C] and w [h,w,O,C] give y [N,H',W',O] such that conv2d of a picture of y's size with w has x's size. Several
 * sizes of y may do; `out` chooses one, and is refused if it does not lead back to x.
 */
#include <yoke/nn.h>
#include "ops/conv.h"

static const yk_port ports[] = { { "x", YK_FLOATS, 0, 0 }, { "w", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_attr attrs[] = { YK__CONV_ATTRS, YK__INTS(yk_conv2d_attrs, out, 2, 0, 0, 1 << 30), { 0 } };

/* Size of y along axis i, as asked for or else the default; -1 = unknown. */
static int64_t output_size(const yk_conv2d_attrs *a, const yk_desc *x, const yk_desc *w, int i) {
  int64_t in = x->dim[1 + i], stride = a->stride[i] ? a->stride[i] : 1, dilation = a->dilation[i] ? a->dilation[i] : 1;
  if (a->out[i]) return a->out[i];
  if (in < 0) return -1;
  if (a->padding == YK_SAME) return in * stride;
  if (w->dim[i] < 0) return -1;
  if (in == 0) return 0;
  return (in - 1) * stride + (w->dim[i] - 1) * dilation + 1 - (a->padding == YK_EXPLICIT ? a->pad[2 * i] + a->pad[2 * i + 1] : 0);
}

/* y's description, and the geometry of the convolution from y back to x. */
static yk_code geometry(const yk_conv2d_attrs *a, const yk_desc *x, const yk_desc *w, yk_desc *y, yk_conv *v) {
  char tx[YK__DESC_TEXT], tw[YK__DESC_TEXT];
  int64_t groups = a->groups ? a->groups : 1;
  yk_desc d = { .dtype = x->dtype, .rank = 4 };
  if (x->rank != 4) return YK_FAIL(EINVAL, "picture is %s, expected rank 4 [N, H, W, C]", yk__desc_text(x, tx, sizeof tx));
  if (w->rank != 4) return YK_FAIL(EINVAL, "filter is %s, expected rank 4 [h, w, outputs, C]", yk__desc_text(w, tw, sizeof tw));
  if (yk__dims_clash(x->dim[3], w->dim[3]))
    return YK_FAIL(EINVAL, "picture %s has %lld channels, but filter %s [h, w, outputs, channels] takes %lld",
                   yk__desc_text(x, tx, sizeof tx), (long long)x->dim[3], yk__desc_text(w, tw, sizeof tw), (long long)w->dim[3]);
  d.dim[0] = x->dim[0];
  d.dim[3] = w->dim[2] < 0 ? -1 : w->dim[2] * groups;
  for (int i = 0; i < 2; i++) {
    d.dim[1 + i] = output_size(a, x, w, i);
    if (d.dim[1 + i] < -1 || (d.dim[1 + i] == -1 && x->dim[1 + i] >= 0 && w->dim[i] >= 0))
      return YK_FAIL(EINVAL, "the padding cuts away more than the %s of the output", i ? "width" : "height");
  }
  YK_TRY(yk__conv_of(a, &d, w, v));
  for (int i = 0; i < 2; i++)
    if (yk__dims_clash(v->at[i].out, x->dim[1 + i]))
      return YK_FAIL(EINVAL, "out=%d,%d: a convolution over %lld cells of %s gives %lld, but the picture is %s", a->out[0], a->out[1],
                     (long long)d.dim[1 + i], i ? "width" : "height", (long long)v->at[i].out, yk__desc_text(x, tx, sizeof tx));
  *y = d;
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_conv v;
  yk_desc y;
  YK_TRY(geometry(c->attrs, &c->in[0], &c->in[1], &y, &v));
  c->out[0] = y;
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_conv2d_attrs a = yk__conv_plain(c->attrs);
  c->din[0] = YK__OPA(c, conv2d, &a, 2, c->dout[0], c->in[1]);
  c->din[1] = YK__OPA(c, conv2d_grad_filter, &a, 3, c->dout[0], c->in[0], c->in[1]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_conv v;
  yk_desc y;
  YK_TRY(geometry(c->attrs, &c->din[0], &c->din[1], &y, &v));
  yk__conv_ref(&v, YK_CONV_TO_X, c->out[0], (double *)c->in[1], (double *)c->in[0]);
  return YK_OK;
}

static double flops(const yk_infer *c) { return yk__conv_flops(&c->in[0], &c->in[1]); }

static const yk_conv2d_attrs same2 = { .stride = { 2, 2 } }, valid = { .padding = YK_VALID, .stride = { 2, 3 } },
  given = { .stride = { 2, 2 }, .out = { 5, 7 } }, explicit_pad = { .padding = YK_EXPLICIT, .pad = { 1, 0, 1, 2 }, .stride = { 2, 2 } },
  dilated = { .dilation = { 2, 1 }, .padding = YK_VALID }, grouped = { .groups = 2, .stride = { 2, 1 } };
static const yk_case cases[] = {
  { "T[2,4,5,3]; T[3,3,8,3]", NULL, 0, 0, 0 },
  { "T[1,3,4,16]; T[4,4,3,16]", &same2, 0, 0, 0 },
  { "T[0,3,4,3]; T[3,3,8,3]", &same2, 0, 0, 0 },
  { "T[2,3,4,3]; T[3,2,4,3]", &valid, 0, 0, 0 },
  { "T[2,3,4,3]; T[3,3,4,3]", &given, 0, 0, 0 },
  { "T[2,3,4,3]; T[4,3,4,3]", &explicit_pad, 0, 0, 0 },
  { "T[1,4,4,3]; T[3,3,4,3]", &dilated, 0, 0, 0 },
  { "T[1,4,4,6]; T[3,3,2,6]", &grouped, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_conv2d_transpose = {
  .name = "conv2d_transpose", .label = "Conv2DTranspose", .doc = "Transposed convolution: x [N,H,W,C], w [h,w,O,C] to y [N,H',W',O].",
  .version = 1, .attr_bytes = sizeof(yk_conv2d_attrs), .traits = YK_PURE | YK_NARROW,
  .in = ports, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer, .grad = grad, .ref = ref, .cases = cases, .flops = flops,
};

yk_value yk_conv2d_transpose_at(const char *where, yk_graph *g, yk_value x, yk_value w, const yk_conv2d_attrs *options) {
  return yk__build(where, g, &yk__op_conv2d_transpose, options, 2, x, w);
}
