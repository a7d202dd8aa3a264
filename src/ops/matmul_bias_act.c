/*
 * matmul_bias_act.c - a dense layer in one kernel: act(a*b + bias).
 *
 * Made by the planner out of matmul, bias_add and an activation; lower() is those three again. YK_ZERO_ON_EMPTY does
 * not hold here: with nothing to sum over, the result is act(bias).
 */
#include "ops/matmul_shape.h"

static const yk_port ports[] = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 1 }, { "bias", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_attr attrs[] = { YK__FLAG(yk_matmul_attrs, transpose_a), YK__FLAG(yk_matmul_attrs, transpose_b),
                                 YK__ENUM(yk_matmul_attrs, act, 0, 0, YK_ACT_SOFTPLUS),
                                 YK__REAL(yk_matmul_attrs, alpha, 0, -YK__HUGE, YK__HUGE), { 0 } };

static yk_code infer(const yk_infer *c) {
  char ty[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  yk_desc y;
  YK_TRY(yk__matmul_shape(c->attrs, &c->in[0], &c->in[1], &y));
  if (c->in[2].rank != 1 || yk__dims_clash(c->in[2].dim[0], y.dim[y.rank - 1]))
    return YK_FAIL(EINVAL, "bias is %s, expected one number for each column of the product %s",
                   yk__desc_text(&c->in[2], tb, sizeof tb), yk__desc_text(&y, ty, sizeof ty));
  if (y.dim[y.rank - 1] < 0) y.dim[y.rank - 1] = c->in[2].dim[0];
  c->out[0] = y;
  return YK_OK;
}

static yk_value before_act(yk_grad *c) {
  const yk_matmul_attrs *a = c->attrs;
  yk_matmul_attrs plain = { .transpose_a = a->transpose_a, .transpose_b = a->transpose_b };
  return YK__OP2(c, bias_add, YK__OPA(c, matmul, &plain, 2, c->in[0], c->in[1]), c->in[2]);
}

static yk_code lower(yk_grad *c) {
  const yk_matmul_attrs *a = c->attrs;
  c->din[0] = yk__act_build(c->where, c->g, a->act, a->alpha, before_act(c));
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  const yk_matmul_attrs *a = c->attrs;
  yk_value dy = c->dout[0];
  if (a->act) dy = yk__act_grad_build(c->where, c->g, a->act, a->alpha, dy, before_act(c), c->out[0]);
  yk__matmul_grad(c, dy, &c->din[0], &c->din[1]);
  c->din[2] = YK__OP1(c, bias_add_grad, dy);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  const yk_matmul_attrs *a = c->attrs;
  int64_t count = yk__desc_count(&c->dout[0]), n = c->din[2].dim[0];
  yk__matmul_ref(a, &c->din[0], &c->din[1], &c->dout[0], c->in[0], c->in[1], c->out[0]);
  for (int64_t i = 0; i < count; i++) c->out[0][i] = yk__act_ref(a->act, a->alpha, c->out[0][i] + c->in[2][i % n]);
  return YK_OK;
}

static double flops(const yk_infer *c) {
  return yk__matmul_flops(c->attrs, &c->in[0], &c->out[0]) + 2.0 * (double)yk__desc_count(&c->out[0]);
}

static const yk_matmul_attrs relu = { .act = YK_ACT_RELU }, relu_t = { .act = YK_ACT_RELU, .transpose_b = 1 },
  relu6 = { .act = YK_ACT_RELU6 }, leaky = { .act = YK_ACT_LEAKY_RELU, .alpha = 0.1 }, elu = { .act = YK_ACT_ELU },
  selu = { .act = YK_ACT_SELU }, gelu = { .act = YK_ACT_GELU }, silu = { .act = YK_ACT_SILU },
  tanh_t = { .act = YK_ACT_TANH, .transpose_a = 1 }, sigmoid = { .act = YK_ACT_SIGMOID }, softplus = { .act = YK_ACT_SOFTPLUS };
static const yk_case cases[] = {
  { "T[4,7]; T[7,5]; T[5]", NULL, 0, 0, 0 },     { "T[19,64]; T[64,16]; T[16]", &relu, 0, 0, 0 }, { "T[0,7]; T[7,5]; T[5]", &relu, 0, 0, 0 },
  { "T[4,7]; T[5,7]; T[5]", &relu_t, 0, 0, 0 },  { "T[4,7]; T[7,5]; T[5]", &relu6, 0, 0, 0 },     { "T[4,7]; T[7,5]; T[5]", &leaky, 0, 0, 0 },
  { "T[4,7]; T[7,5]; T[5]", &elu, 0, 0, 0 },     { "T[4,7]; T[7,5]; T[5]", &selu, 0, 0, 0 },      { "T[4,7]; T[7,5]; T[5]", &gelu, 0, 0, 0 },
  { "T[4,7]; T[7,5]; T[5]", &silu, 0, 0, 0 },    { "T[7,4]; T[7,5]; T[5]", &tanh_t, 0, 0, 0 },    { "T[1,7]; T[7,1]; T[1]", &sigmoid, 0, 0, 0 },
  { "T[2,4,7]; T[7,5]; T[5]", &softplus, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_matmul_bias_act = {
  .name = "matmul_bias_act", .label = "FusedMatMul", .doc = "act(a*b + bias).",
  .version = 1, .attr_bytes = sizeof(yk_matmul_attrs), .traits = YK_PURE,
  .in = ports, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer, .grad = grad, .lower = lower, .ref = ref, .cases = cases, .flops = flops,
};
