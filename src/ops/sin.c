/*
 * sin.c - sine of every element, in radians. Its gradient is built from cos.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, sin); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->dout[0], YK__OP1(c, cos, c->in[0]));
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_sin = {
  .name = "sin", .label = "Sin", .doc = "sine",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_sin_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_sin, NULL, 1, x); }
