/*
 * matmul_grad_bias.c - the weight's and the bias's gradient of a dense layer in one pass over dy.
 *
 * a is the layer's input [B, K] with transpose_a set, b is dy [B, N]: outputs a'*dy [K, N] and the sum of dy over
 * its rows [N]. Made by the planner out of matmul and bias_add_grad; lower() gives those two back.
 */
#include "ops/matmul_shape.h"

static const yk_port ports[] = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_attr attrs[] = { YK__FLAG(yk_matmul_attrs, transpose_a), { 0 } };

static yk_code infer(const yk_infer *c) {
  char ta[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  const yk_matmul_attrs *a = c->attrs;
  yk_desc y;
  if (c->in[0].rank != 2 || c->in[1].rank != 2)
    return YK_FAIL(EINVAL, "a is %s and b is %s, expected rank 2", yk__desc_text(&c->in[0], ta, sizeof ta),
                   yk__desc_text(&c->in[1], tb, sizeof tb));
  if (a->transpose_b) return YK_FAIL(EINVAL, "transpose_b is set, but the rows of b are summed as they are stored");
  YK_TRY(yk__matmul_shape(a, &c->in[0], &c->in[1], &y));
  c->out[0] = y;
  c->out[1] = (yk_desc){ .dtype = c->in[1].dtype, .rank = 1, .dim = { c->in[1].dim[1] } };
  return YK_OK;
}

static yk_code lower(yk_grad *c) {
  c->din[0] = YK__OPA(c, matmul, c->attrs, 2, c->in[0], c->in[1]);
  c->din[1] = YK__OP1(c, bias_add_grad, c->in[1]);
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_value from_w = { 0 }, from_b = { 0 };
  if (c->dout[0].id) yk__matmul_grad(c, c->dout[0], &c->din[0], &from_w);
  if (c->dout[1].id) from_b = YK__OP2(c, broadcast_to, c->dout[1], c->in[1]);
  c->din[1] = !from_b.id ? from_w : !from_w.id ? from_b : YK__OP2(c, add, from_w, from_b);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t count = yk__desc_count(&c->din[1]), n = c->dout[1].dim[0];
  yk__matmul_ref(c->attrs, &c->din[0], &c->din[1], &c->dout[0], c->in[0], c->in[1], c->out[0]);
  yk__ref_zero(c, 1);
  for (int64_t i = 0; i < count; i++) c->out[1][i % n] += c->in[1][i];
  return YK_OK;
}

static double flops(const yk_infer *c) {
  return yk__matmul_flops(c->attrs, &c->in[0], &c->out[0]) + (double)yk__desc_count(&c->in[1]);
}

static const yk_matmul_attrs at = { .transpose_a = 1 };
static const yk_case cases[] = {
  { "T[7,4]; T[7,5]", &at, 0, 0, 0 },   { "T[19,64]; T[19,16]", &at, 0, 0, 0 }, { "T[1,3]; T[1,1]", &at, 0, 0, 0 },
  { "T[0,4]; T[0,5]", &at, 0, 0, 0 },   { "T[4,7]; T[7,5]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_matmul_grad_bias = {
  .name = "matmul_grad_bias", .label = "FusedMatMulGrad", .doc = "a*b, and the sum of b over its rows.",
  .version = 1, .attr_bytes = sizeof(yk_matmul_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = ports, .out = (const yk_port[]){ { "dw", YK_FLOATS, 0, 1 }, { "db", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer, .grad = grad, .lower = lower, .ref = ref, .cases = cases, .flops = flops,
};
