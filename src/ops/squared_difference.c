/*
 * squared_difference.c - square of the difference of two tensors that broadcast together. The two gradients
 * differ only in sign.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return (a - b) * (a - b); }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static yk_code grad(yk_grad *c) {
  yk_value twice = YK__OP2(c, mul, c->dout[0], YK__NUM(c, c->dout[0], 2));
  c->din[0] = YK__OP2(c, mul, twice, YK__OP2(c, sub, c->in[0], c->in[1]));
  c->din[1] = YK__OP1(c, neg, c->din[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, -2, 2), { 0 } };

const yk_op yk__op_squared_difference = {
  .name = "squared_difference", .label = "SquaredDifference", .doc = "(a - b)^2, with broadcasting",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__arith2, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_squared_difference_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_squared_difference, NULL, 2, a, b);
}
