/*
 * logical_not.c - turn every truth value around. Booleans carry no gradient.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return x == 0 ? 1 : 0; }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static const yk_case cases[] = { YK__CASES_1(NULL, 0, 1), { 0 } };

const yk_op yk__op_logical_not = {
  .name = "logical_not", .label = "LogicalNot", .doc = "true where x is false",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_NO_GRAD,
  .in = yk__bool1, .out = yk__out1, .infer = yk__infer_same, .ref = ref, .cases = cases,
};

yk_value yk_logical_not_at(const char *where, yk_graph *g, yk_value x) {
  return yk__build(where, g, &yk__op_logical_not, NULL, 1, x);
}
