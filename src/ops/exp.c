/*
 * exp.c - exponential function. It is its own derivative, so the gradient reuses the output.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, exp); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_exp = {
  .name = "exp", .label = "Exp", .doc = "e to the power of x",
  .version = 1, .traits = YK_PURE | YK_WIDE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_exp_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_exp, NULL, 1, x); }
