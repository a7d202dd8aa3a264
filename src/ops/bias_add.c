/*
 * bias_add.c - add one number a channel, and the gradient of that.
 *
 * The channel is the last axis. add() would do the same by broadcasting; this one is kept apart because
 * kernels of matmul and convolution can absorb it.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code infer(const yk_infer *c) {
  char tx[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  const yk_desc *x = &c->in[0], *b = &c->in[1];
  if (x->rank < 1) return YK_FAIL(EINVAL, "x is %s, expected at least rank 1 [..., C]", yk__desc_text(x, tx, sizeof tx));
  if (b->rank != 1 || yk__dims_clash(b->dim[0], x->dim[x->rank - 1]))
    return YK_FAIL(EINVAL, "bias is %s, expected one number for each channel (last axis) of x %s", yk__desc_text(b, tb, sizeof tb),
                   yk__desc_text(x, tx, sizeof tx));
  c->out[0] = yk__as(x, x->dtype);
  if (x->dim[x->rank - 1] < 0) c->out[0].dim[x->rank - 1] = b->dim[0];
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = c->dout[0];
  c->din[1] = YK__OP1(c, bias_add_grad, c->dout[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->dout[0]), channels = c->din[1].dim[0];
  for (int64_t i = 0; i < n; i++) c->out[0][i] = c->in[0][i] + c->in[1][i % channels];
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[7]; T[7]", NULL, 0, 0, 0 },           { "T[4,19]; T[19]", NULL, 0, 0, 0 }, { "T[2,5,7,3]; T[3]", NULL, 0, 0, 0 },
  { "T[2,3,4,64]; T[64]", NULL, 0, 0, 0 },   { "T[3,1]; T[1]", NULL, 0, 0, 0 },   { "T[0,5]; T[5]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_bias_add = {
  .name = "bias_add", .label = "BiasAdd", .doc = "x [..., C] + b [C].", .version = 1, .traits = YK_PURE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 1 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- bias_add_grad: dy [..., C] -> [C] ----------------------------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  const yk_desc *dy = &c->in[0];
  if (dy->rank < 1) return YK_FAIL(EINVAL, "dy is a scalar, expected at least rank 1 [..., C]");
  c->out[0] = (yk_desc){ .dtype = dy->dtype, .rank = 1, .dim = { dy->dim[dy->rank - 1] } };
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, broadcast_to, c->dout[0], c->in[0]);
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->din[0]), channels = c->dout[0].dim[0];
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < n; i++) c->out[0][i % channels] += c->in[0][i];
  return YK_OK;
}

static const yk_case cases_grad[] = {
  { "T[7]", NULL, 0, 0, 0 },       { "T[4,19]", NULL, 0, 0, 0 }, { "T[2,5,7,3]", NULL, 0, 0, 0 },
  { "T[2,3,4,64]", NULL, 0, 0, 0 }, { "T[3,1]", NULL, 0, 0, 0 },  { "T[0,5]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_bias_add_grad = {
  .name = "bias_add_grad", .label = "BiasAddGrad", .doc = "Sum of dy [..., C] over everything but the channel.",
  .version = 1, .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { 0 } }, .out = (const yk_port[]){ { "db", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_bias_add_at(const char *where, yk_graph *g, yk_value x, yk_value b) {
  return yk__build(where, g, &yk__op_bias_add, NULL, 2, x, b);
}
