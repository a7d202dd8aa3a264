/*
 * conv2d_grad_filter_bias.c - the filter's and the bias's gradient of a convolution in one pass over dy.
 *
 * Made by the planner out of conv2d_grad_filter and bias_add_grad where both read the same dy; lower() gives
 * those two back. The bias gradient is the plain sum of dy over pictures and places.
 */
#include "ops/conv.h"

static const yk_port ports[] = { { "x", YK_FLOATS, 0, 0 }, { "dy", YK_FLOATS, 0, 1 },
                                 { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 } };

static yk_code infer(const yk_infer *c) {
  yk_conv v;
  YK_TRY(yk__conv_of_grad(c->attrs, &c->in[0], &c->in[2], &c->in[1], &v));
  c->out[0] = yk__as(&c->in[2], c->in[0].dtype);
  c->out[0].dim[3] = v.o;
  c->out[1] = (yk_desc){ .dtype = c->in[0].dtype, .rank = 1, .dim = { v.o } };
  return YK_OK;
}

static yk_code lower(yk_grad *c) {
  c->din[0] = YK__OPA(c, conv2d_grad_filter, c->attrs, 3, c->in[0], c->in[1], c->in[2]);
  c->din[1] = YK__OP1(c, bias_add_grad, c->in[1]);
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_value from_w = { 0 }, from_b = { 0 };
  if (c->dout[0].id) {
    c->din[0] = YK__OPA(c, conv2d_grad_input, c->attrs, 3, c->in[1], c->dout[0], c->in[0]);
    from_w = YK__OPA(c, conv2d, c->attrs, 2, c->in[0], c->dout[0]);
  }
  if (c->dout[1].id) from_b = YK__OP2(c, broadcast_to, c->dout[1], c->in[1]);
  c->din[1] = !from_b.id ? from_w : !from_w.id ? from_b : YK__OP2(c, add, from_w, from_b);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->din[1]), o = c->dout[1].dim[0];
  yk_conv v;
  YK_TRY(yk__conv_of_grad(c->attrs, &c->din[0], &c->din[2], &c->din[1], &v));
  yk__conv_ref(&v, YK_CONV_TO_W, (double *)c->in[0], c->out[0], (double *)c->in[1]);
  yk__ref_zero(c, 1);
  for (int64_t i = 0; i < n; i++) c->out[1][i % o] += c->in[1][i];
  return YK_OK;
}

static double flops(const yk_infer *c) { return yk__conv_flops(&c->in[1], &c->out[0]) + (double)yk__desc_count(&c->in[1]); }

static const yk_conv2d_attrs strided = { .stride = { 2, 2 } }, valid = { .padding = YK_VALID }, grouped = { .groups = 2 };
static const yk_case cases[] = {
  { "T[2,5,7,3]; T[2,5,7,8]; T[3,3,3,8]", NULL, 0, 0, 0 },
  { "T[2,4,4,16]; T[2,4,4,19]; T[5,5,16,19]", NULL, 0, 0, 0 },
  { "T[0,5,5,3]; T[0,5,5,8]; T[3,3,3,8]", NULL, 0, 0, 0 },
  { "T[2,7,8,8]; T[2,4,4,8]; T[3,3,8,8]", &strided, 0, 0, 0 },
  { "T[2,7,8,3]; T[2,5,7,16]; T[3,2,3,16]", &valid, 0, 0, 0 },
  { "T[2,5,5,6]; T[2,5,5,4]; T[3,3,3,4]", &grouped, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_conv2d_grad_filter_bias = {
  .name = "conv2d_grad_filter_bias", .label = "FusedConv2DBackpropFilter",
  .doc = "Gradients of a convolution with respect to its filter and its bias.",
  .version = 1, .attr_bytes = sizeof(yk_conv2d_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = ports, .out = (const yk_port[]){ { "dw", YK_FLOATS, 0, 1 }, { "db", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = yk__conv_attrs,
  .infer = infer, .grad = grad, .lower = lower, .ref = ref, .cases = cases, .flops = flops,
};
