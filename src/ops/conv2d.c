/*
 * conv2d.c - two-dimensional convolution and its two gradients.
 *
 * The three are bilinear in the same pairs of arrays, so each one's own gradient is made of
 * the other two. The formula is a correlation: the filter is not flipped.
 */
#include <yoke/nn.h>
#include "ops/conv.h"

static const yk_port in_conv[] = { { "x", YK_FLOATS, 0, 0 }, { "w", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_port in_grad_input[] = { { "dy", YK_FLOATS, 0, 0 }, { "w", YK_FLOATS, 0, 1 },
                                         { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 } };
static const yk_port in_grad_filter[] = { { "x", YK_FLOATS, 0, 0 }, { "dy", YK_FLOATS, 0, 1 },
                                          { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 } };

static const yk_conv2d_attrs valid = { .padding = YK_VALID }, stride2 = { .stride = { 2, 2 } }, stride3 = { .stride = { 3, 2 } },
  valid_stride = { .stride = { 2, 3 }, .padding = YK_VALID }, dilated = { .dilation = { 2, 3 } },
  dilated_valid = { .dilation = { 2, 1 }, .padding = YK_VALID }, groups2 = { .groups = 2 },
  depthwise = { .groups = 8, .stride = { 2, 1 } }, explicit_pad = { .padding = YK_EXPLICIT, .pad = { 1, 0, 0, 2 } },
  explicit_stride = { .padding = YK_EXPLICIT, .pad = { 2, 1, 1, 3 }, .stride = { 2, 2 }, .dilation = { 1, 2 } };

/* ---- conv2d ---------------------------------------------------------------------------------------------- */

static yk_code infer_conv(const yk_infer *c) {
  yk_conv v;
  YK_TRY(yk__conv_of(c->attrs, &c->in[0], &c->in[1], &v));
  c->out[0] = yk__conv_output(&v, &c->in[0]);
  return YK_OK;
}

static yk_code grad_conv(yk_grad *c) {
  yk_conv2d_attrs a = yk__conv_plain(c->attrs);
  c->din[0] = YK__OPA(c, conv2d_grad_input, &a, 3, c->dout[0], c->in[1], c->in[0]);
  c->din[1] = YK__OPA(c, conv2d_grad_filter, &a, 3, c->in[0], c->dout[0], c->in[1]);
  return YK_OK;
}

static yk_code ref_conv(const yk_ref *c) {
  yk_conv v;
  YK_TRY(yk__conv_of(c->attrs, &c->din[0], &c->din[1], &v));
  yk__conv_ref(&v, YK_CONV_TO_Y, (double *)c->in[0], (double *)c->in[1], c->out[0]);
  return YK_OK;
}

static double flops_conv(const yk_infer *c) { return yk__conv_flops(&c->out[0], &c->in[1]); }

static const yk_case cases_conv[] = {
  { "T[2,5,7,3]; T[3,3,3,8]", NULL, 0, 0, 0 },
  { "T[1,6,6,1]; T[5,5,1,4]", NULL, 0, 0, 0 },
  { "T[3,4,5,16]; T[1,1,16,19]", NULL, 0, 0, 0 },
  { "T[1,4,4,64]; T[3,3,64,16]", NULL, 0, 0, 0 },
  { "T[0,5,5,3]; T[3,3,3,8]", NULL, 0, 0, 0 },
  { "T[2,7,8,3]; T[3,2,3,16]", &valid, 0, 0, 0 },
  { "T[2,7,8,8]; T[3,3,8,8]", &stride2, 0, 0, 0 },
  { "T[1,9,7,3]; T[2,3,3,5]", &stride3, 0, 0, 0 },
  { "T[2,5,5,4]; T[1,1,4,6]", &stride3, 0, 0, 0 },
  { "T[2,8,9,3]; T[3,4,3,4]", &valid_stride, 0, 0, 0 },
  { "T[1,9,10,3]; T[3,3,3,4]", &dilated, 0, 0, 0 },
  { "T[2,7,5,4]; T[3,3,4,3]", &dilated_valid, 0, 0, 0 },
  { "T[2,5,5,6]; T[3,3,3,4]", &groups2, 0, 0, 0 },
  { "T[1,6,5,8]; T[3,3,1,16]", &depthwise, 0, 0, 0 },
  { "T[2,5,6,3]; T[3,3,3,8]", &explicit_pad, 0, 0, 0 },
  { "T[2,6,7,2]; T[3,3,2,3]", &explicit_stride, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_conv2d = {
  .name = "conv2d", .label = "Conv2D", .doc = "Two-dimensional convolution of pictures [N,H,W,C] with filters [h,w,C/groups,O].",
  .version = 1, .attr_bytes = sizeof(yk_conv2d_attrs), .traits = YK_PURE | YK_NARROW,
  .in = in_conv, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = yk__conv_attrs,
  .infer = infer_conv, .grad = grad_conv, .ref = ref_conv, .cases = cases_conv, .flops = flops_conv,
};

/* ---- conv2d_grad_input: dy, w, like x -> dx ----------------------------------------------------------------- */

static yk_code infer_grad_input(const yk_infer *c) {
  yk_conv v;
  YK_TRY(yk__conv_of_grad(c->attrs, &c->in[2], &c->in[1], &c->in[0], &v));
  c->out[0] = yk__as(&c->in[2], c->in[0].dtype);
  c->out[0].dim[0] = v.n;
  c->out[0].dim[3] = v.c;
  return YK_OK;
}

static yk_code grad_grad_input(yk_grad *c) {
  c->din[0] = YK__OPA(c, conv2d, c->attrs, 2, c->dout[0], c->in[1]);
  c->din[1] = YK__OPA(c, conv2d_grad_filter, c->attrs, 3, c->dout[0], c->in[0], c->in[1]);
  return YK_OK;
}

static yk_code ref_grad_input(const yk_ref *c) {
  yk_conv v;
  YK_TRY(yk__conv_of_grad(c->attrs, &c->din[2], &c->din[1], &c->din[0], &v));
  yk__conv_ref(&v, YK_CONV_TO_X, c->out[0], (double *)c->in[1], (double *)c->in[0]);
  return YK_OK;
}

static double flops_grad_input(const yk_infer *c) { return yk__conv_flops(&c->in[0], &c->in[1]); }

static const yk_case cases_grad_input[] = {
  { "T[2,5,7,8]; T[3,3,3,8]; T[2,5,7,3]", NULL, 0, 0, 0 },
  { "T[1,6,6,4]; T[5,5,1,4]; T[1,6,6,1]", NULL, 0, 0, 0 },
  { "T[3,4,5,19]; T[1,1,16,19]; T[3,4,5,16]", NULL, 0, 0, 0 },
  { "T[0,5,5,8]; T[3,3,3,8]; T[0,5,5,3]", NULL, 0, 0, 0 },
  { "T[2,5,7,16]; T[3,2,3,16]; T[2,7,8,3]", &valid, 0, 0, 0 },
  { "T[2,4,4,8]; T[3,3,8,8]; T[2,7,8,8]", &stride2, 0, 0, 0 },
  { "T[1,3,4,5]; T[2,3,3,5]; T[1,9,7,3]", &stride3, 0, 0, 0 },
  { "T[2,2,3,6]; T[1,1,4,6]; T[2,5,5,4]", &stride3, 0, 0, 0 },
  { "T[2,3,2,4]; T[3,4,3,4]; T[2,8,9,3]", &valid_stride, 0, 0, 0 },
  { "T[1,9,10,4]; T[3,3,3,4]; T[1,9,10,3]", &dilated, 0, 0, 0 },
  { "T[2,5,5,4]; T[3,3,3,4]; T[2,5,5,6]", &groups2, 0, 0, 0 },
  { "T[1,3,5,16]; T[3,3,1,16]; T[1,6,5,8]", &depthwise, 0, 0, 0 },
  { "T[2,4,6,8]; T[3,3,3,8]; T[2,5,6,3]", &explicit_pad, 0, 0, 0 },
  { "T[2,4,4,3]; T[3,3,2,3]; T[2,6,7,2]", &explicit_stride, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_conv2d_grad_input = {
  .name = "conv2d_grad_input", .label = "Conv2DBackpropInput", .doc = "Gradient of conv2d with respect to its picture.",
  .version = 1, .attr_bytes = sizeof(yk_conv2d_attrs), .traits = YK_PURE,
  .in = in_grad_input, .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = yk__conv_attrs,
  .infer = infer_grad_input, .grad = grad_grad_input, .ref = ref_grad_input, .cases = cases_grad_input, .flops = flops_grad_input,
};

/* ---- conv2d_grad_filter: x, dy, like w -> dw ------------------------------------------------------------------ */

static yk_code infer_grad_filter(const yk_infer *c) {
  yk_conv v;
  YK_TRY(yk__conv_of_grad(c->attrs, &c->in[0], &c->in[2], &c->in[1], &v));
  c->out[0] = yk__as(&c->in[2], c->in[0].dtype);
  c->out[0].dim[3] = v.o;
  return YK_OK;
}

static yk_code grad_grad_filter(yk_grad *c) {
  c->din[0] = YK__OPA(c, conv2d_grad_input, c->attrs, 3, c->in[1], c->dout[0], c->in[0]);
  c->din[1] = YK__OPA(c, conv2d, c->attrs, 2, c->in[0], c->dout[0]);
  return YK_OK;
}

static yk_code ref_grad_filter(const yk_ref *c) {
  yk_conv v;
  YK_TRY(yk__conv_of_grad(c->attrs, &c->din[0], &c->din[2], &c->din[1], &v));
  yk__conv_ref(&v, YK_CONV_TO_W, (double *)c->in[0], c->out[0], (double *)c->in[1]);
  return YK_OK;
}

static double flops_grad_filter(const yk_infer *c) { return yk__conv_flops(&c->in[1], &c->out[0]); }

static const yk_case cases_grad_filter[] = {
  { "T[2,5,7,3]; T[2,5,7,8]; T[3,3,3,8]", NULL, 0, 0, 0 },
  { "T[1,6,6,1]; T[1,6,6,4]; T[5,5,1,4]", NULL, 0, 0, 0 },
  { "T[3,4,5,16]; T[3,4,5,19]; T[1,1,16,19]", NULL, 0, 0, 0 },
  { "T[0,5,5,3]; T[0,5,5,8]; T[3,3,3,8]", NULL, 0, 0, 0 },
  { "T[2,7,8,3]; T[2,5,7,16]; T[3,2,3,16]", &valid, 0, 0, 0 },
  { "T[2,7,8,8]; T[2,4,4,8]; T[3,3,8,8]", &stride2, 0, 0, 0 },
  { "T[1,9,7,3]; T[1,3,4,5]; T[2,3,3,5]", &stride3, 0, 0, 0 },
  { "T[2,5,5,4]; T[2,2,3,6]; T[1,1,4,6]", &stride3, 0, 0, 0 },
  { "T[2,8,9,3]; T[2,3,2,4]; T[3,4,3,4]", &valid_stride, 0, 0, 0 },
  { "T[1,9,10,3]; T[1,9,10,4]; T[3,3,3,4]", &dilated, 0, 0, 0 },
  { "T[2,5,5,6]; T[2,5,5,4]; T[3,3,3,4]", &groups2, 0, 0, 0 },
  { "T[1,6,5,8]; T[1,3,5,16]; T[3,3,1,16]", &depthwise, 0, 0, 0 },
  { "T[2,5,6,3]; T[2,4,6,8]; T[3,3,3,8]", &explicit_pad, 0, 0, 0 },
  { "T[2,6,7,2]; T[2,4,4,3]; T[3,3,2,3]", &explicit_stride, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_conv2d_grad_filter = {
  .name = "conv2d_grad_filter", .label = "Conv2DBackpropFilter", .doc = "Gradient of conv2d with respect to its filter.",
  .version = 1, .attr_bytes = sizeof(yk_conv2d_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = in_grad_filter, .out = (const yk_port[]){ { "dw", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = yk__conv_attrs,
  .infer = infer_grad_filter, .grad = grad_grad_filter, .ref = ref_grad_filter, .cases = cases_grad_filter,
  .flops = flops_grad_filter,
};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

yk_value yk_conv2d_at(const char *where, yk_graph *g, yk_value x, yk_value w, const yk_conv2d_attrs *attrs) {
  return yk__build(where, g, &yk__op_conv2d, attrs, 2, x, w);
}

yk_value yk_depthwise_conv2d_at(const char *where, yk_graph *g, yk_value x, yk_value w, const yk_conv2d_attrs *attrs) {
  char text[YK__DESC_TEXT];
  const yk_desc *d = yk_value_desc(g, w);
  yk_conv2d_attrs a = attrs ? *attrs : (yk_conv2d_attrs){ 0 };
  yk_reshape_attrs flat;
  if (!d) return yk__build(where, g, &yk__op_conv2d, attrs, 2, x, w);   /* a missing value: reported as for conv2d */
  if (d->rank != 4 || !yk__desc_known(d))
    return yk_graph_fail_at(where, g, YK_EINVAL, "depthwise_conv2d: filter is %s, expected known dims [h, w, channels, multiplier]",
                            yk__desc_text(d, text, sizeof text));
  if (a.groups)
    return yk_graph_fail_at(where, g, YK_EINVAL, "depthwise_conv2d: groups=%d is given, but each channel is its own group", a.groups);
  flat = (yk_reshape_attrs){ .rank = 4, .dim = { d->dim[0], d->dim[1], 1, d->dim[2] * d->dim[3] } };
  a.groups = (int32_t)d->dim[2];
  return yk__build(where, g, &yk__op_conv2d, &a, 2, x, yk__build(where, g, &yk__op_reshape, &flat, 1, w));
}
