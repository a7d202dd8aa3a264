/*
 * conv2d_bias_act.c - convolution, bias and activation in one kernel.
 *
 * Made by the planner out of three nodes; lower() is exactly those three again. Its gradient, needed only
 * when a program builds it by hand, recomputes the value before the activation where the derivative wants it.
 */
#include "ops/conv.h"

static const yk_port ports[] = { { "x", YK_FLOATS, 0, 0 }, { "w", YK_FLOATS, 0, 1 }, { "b", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_attr attrs[] = { YK__CONV_ATTRS, YK__ENUM(yk_conv2d_attrs, act, 0, 0, YK_ACT_SOFTPLUS),
                                 YK__REAL(yk_conv2d_attrs, alpha, 0, -YK__HUGE, YK__HUGE), { 0 } };

static yk_code infer(const yk_infer *c) {
  char tw[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  yk_conv v;
  YK_TRY(yk__conv_of(c->attrs, &c->in[0], &c->in[1], &v));
  if (c->in[2].rank != 1 || yk__dims_clash(c->in[2].dim[0], v.o))
    return YK_FAIL(EINVAL, "bias is %s, expected one number for each output channel of filter %s",
                   yk__desc_text(&c->in[2], tb, sizeof tb), yk__desc_text(&c->in[1], tw, sizeof tw));
  c->out[0] = yk__conv_output(&v, &c->in[0]);
  return YK_OK;
}

static yk_value before_act(yk_grad *c, const yk_conv2d_attrs *plain) {
  return YK__OP2(c, bias_add, YK__OPA(c, conv2d, plain, 2, c->in[0], c->in[1]), c->in[2]);
}

static yk_code lower(yk_grad *c) {
  const yk_conv2d_attrs *a = c->attrs;
  yk_conv2d_attrs plain = yk__conv_plain(a);
  c->din[0] = yk__act_build(c->where, c->g, a->act, a->alpha, before_act(c, &plain));
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  const yk_conv2d_attrs *a = c->attrs;
  yk_conv2d_attrs plain = yk__conv_plain(a);
  yk_value dy = c->dout[0];
  if (a->act) dy = yk__act_grad_build(c->where, c->g, a->act, a->alpha, dy, before_act(c, &plain), c->out[0]);
  c->din[0] = YK__OPA(c, conv2d_grad_input, &plain, 3, dy, c->in[1], c->in[0]);
  c->din[1] = YK__OPA(c, conv2d_grad_filter, &plain, 3, c->in[0], dy, c->in[1]);
  c->din[2] = YK__OP1(c, bias_add_grad, dy);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  const yk_conv2d_attrs *a = c->attrs;
  int64_t n = yk__desc_count(&c->dout[0]), o = c->dout[0].dim[3];
  yk_conv v;
  YK_TRY(yk__conv_of(a, &c->din[0], &c->din[1], &v));
  yk__conv_ref(&v, YK_CONV_TO_Y, (double *)c->in[0], (double *)c->in[1], c->out[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = yk__act_ref(a->act, a->alpha, c->out[0][i] + c->in[2][i % o]);
  return YK_OK;
}

static double flops(const yk_infer *c) { return yk__conv_flops(&c->out[0], &c->in[1]) + 2.0 * (double)yk__desc_count(&c->out[0]); }

static const yk_conv2d_attrs relu = { .act = YK_ACT_RELU }, relu_strided = { .act = YK_ACT_RELU, .stride = { 2, 2 } },
  relu6 = { .act = YK_ACT_RELU6, .padding = YK_VALID }, leaky = { .act = YK_ACT_LEAKY_RELU, .alpha = 0.1 },
  elu = { .act = YK_ACT_ELU }, selu = { .act = YK_ACT_SELU }, gelu = { .act = YK_ACT_GELU },
  silu = { .act = YK_ACT_SILU, .groups = 2 }, tanh_ = { .act = YK_ACT_TANH, .dilation = { 2, 2 } }, sigmoid = { .act = YK_ACT_SIGMOID },
  softplus = { .act = YK_ACT_SOFTPLUS, .padding = YK_EXPLICIT, .pad = { 1, 0, 2, 1 } };

static const yk_case cases[] = {
  { "T[2,5,7,3]; T[3,3,3,8]; T[8]", NULL, 0, 0, 0 },
  { "T[2,5,7,3]; T[5,5,3,16]; T[16]", &relu, 0, 0, 0 },
  { "T[0,5,7,3]; T[3,3,3,8]; T[8]", &relu, 0, 0, 0 },
  { "T[2,7,6,8]; T[3,3,8,19]; T[19]", &relu_strided, 0, 0, 0 },
  { "T[2,5,5,3]; T[3,3,3,4]; T[4]", &relu6, 0, 0, 0 },
  { "T[1,4,4,3]; T[3,3,3,4]; T[4]", &leaky, 0, 0, 0 },
  { "T[1,4,4,3]; T[3,3,3,4]; T[4]", &elu, 0, 0, 0 },
  { "T[1,4,4,3]; T[3,3,3,4]; T[4]", &selu, 0, 0, 0 },
  { "T[1,4,4,3]; T[3,3,3,4]; T[4]", &gelu, 0, 0, 0 },
  { "T[1,4,4,4]; T[3,3,2,4]; T[4]", &silu, 0, 0, 0 },
  { "T[1,6,6,3]; T[3,3,3,4]; T[4]", &tanh_, 0, 0, 0 },
  { "T[1,4,4,3]; T[1,1,3,4]; T[4]", &sigmoid, 0, 0, 0 },
  { "T[1,4,4,3]; T[3,3,3,4]; T[4]", &softplus, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_conv2d_bias_act = {
  .name = "conv2d_bias_act", .label = "FusedConv2D", .doc = "act(conv2d(x, w) + b).",
  .version = 1, .attr_bytes = sizeof(yk_conv2d_attrs), .traits = YK_PURE,
  .in = ports, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer, .grad = grad, .lower = lower, .ref = ref, .cases = cases, .flops = flops,
};
