/*
 * mul.c - product of two tensors that broadcast together. Each gradient is dy times the other factor.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return a * b; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->dout[0], c->in[1]);
  c->din[1] = YK__OP2(c, mul, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, -2, 2), { 0 } };

const yk_op yk__op_mul = {
  .name = "mul", .label = "Mul", .doc = "a * b, with broadcasting",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__arith2, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_mul_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_mul, NULL, 2, a, b);
}
