/*
 * sign.c - the sign of every element; NaN stays NaN. It is constant wherever it is differentiable, so no
 * gradient flows.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_sign = {
  .name = "sign", .label = "Sign", .doc = "-1, 0 or 1 as x is negative, zero or positive",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_NO_GRAD,
  .in = yk__arith1, .out = yk__out1, .infer = yk__infer_same, .ref = ref, .cases = cases,
};

yk_value yk_sign_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_sign, NULL, 1, x); }
