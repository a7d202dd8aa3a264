/*
 * less_equal.c - true where a is at most b, with broadcasting. Any comparison with NaN is false, and the result
 * is a boolean, which carries no gradient.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return a <= b; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, -2, 2), { 0 } };

const yk_op yk__op_less_equal = {
  .name = "less_equal", .label = "LessEqual", .doc = "true where a is at most b",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_NO_GRAD,
  .in = yk__number2, .out = yk__out1, .infer = yk__infer_compare, .ref = ref, .cases = cases,
};

yk_value yk_less_equal_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_less_equal, NULL, 2, a, b);
}
