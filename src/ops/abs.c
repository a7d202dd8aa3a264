/*
 * abs.c - absolute value. The gradient at 0 is 0, which sign gives without a special case.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, fabs); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->dout[0], YK__OP1(c, sign, c->in[0]));
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_abs = {
  .name = "abs", .label = "Abs", .doc = "|x|",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__arith1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_abs_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_abs, NULL, 1, x); }
