/*
 * minimum.c - the smaller of two elements. Where both are equal the whole gradient goes to the first.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return a <= b || isnan(a) ? a : b; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static yk_code grad(yk_grad *c) {
  yk_value first = YK__OP2(c, less_equal, c->in[0], c->in[1]), zero = YK__NUM(c, c->dout[0], 0);
  c->din[0] = YK__OP3(c, where, first, c->dout[0], zero);
  c->din[1] = YK__OP3(c, where, first, zero, c->dout[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, -2, 2), { 0 } };

const yk_op yk__op_minimum = {
  .name = "minimum", .label = "Minimum", .doc = "the smaller of a and b, with broadcasting",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__number2, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_minimum_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_minimum, NULL, 2, a, b);
}
