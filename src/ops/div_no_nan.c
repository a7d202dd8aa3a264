/*
 * div_no_nan.c - quotient that is 0 where the divisor is 0. Its gradients follow the same rule, so they are
 * built from it.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return b == 0 ? 0 : a / b; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, div_no_nan, c->dout[0], c->in[1]);
  c->din[1] = YK__OP1(c, neg, YK__OP2(c, mul, c->din[0], c->out[0]));
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, 0.5, 3), { 0 } };

const yk_op yk__op_div_no_nan = {
  .name = "div_no_nan", .label = "DivNoNan", .doc = "a / b, but 0 where b is 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float2, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_div_no_nan_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_div_no_nan, NULL, 2, a, b);
}
