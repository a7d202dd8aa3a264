/*
 * add_n.c - sum of several tensors of one shape, from left to right. The order is part of the contract: towers'
 * gradients must add up to the same bits on every run.
 */
#include <yoke/math.h>
#include "common.h"

static const yk_port in[] = { { "x", YK__ARITH, YK_PORT_VARIADIC, 1 }, { 0 } };

static yk_code infer(const yk_infer *c) {
  if (c->nin == 0) return YK_FAIL(EINVAL, "no inputs; expected at least one");
  for (uint16_t i = 1; i < c->nin; i++)
    if (c->in[i].dtype != c->in[0].dtype)
      return YK_FAIL(EINVAL, "input %u is %s, but input 0 is %s", i, yk_dtype_name((yk_dtype)c->in[i].dtype),
                     yk_dtype_name((yk_dtype)c->in[0].dtype));
  return yk__infer_same_all(c);
}

static yk_code ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) {
    double sum = c->in[0][i];
    for (uint16_t k = 1; k < c->nin; k++) sum += c->in[k][i];
    c->out[0][i] = sum;
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  for (uint16_t k = 0; k < c->nin; k++) c->din[k] = c->dout[0];
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,7,5]; T[4,7,5]", NULL, 0, 0, 0 },
  { "T[7]; T[7]; T[7]; T[7]; T[7]", NULL, 0, 0, 0 }, { "T[0,3]; T[0,3]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_add_n = {
  .name = "add_n", .label = "AddN", .doc = "sum of all inputs, added left to right",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_FAR,
  .in = in, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_add_n_at(const char *where, yk_graph *g, size_t n, const yk_value *xs) {
  return yk__build_n(where, g, &yk__op_add_n, NULL, n, xs, 1);
}
