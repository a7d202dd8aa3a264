/*
 * logical_or.c - true where at least one is true, with broadcasting. Booleans carry no gradient.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return a != 0 || b != 0; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, 0, 1), { 0 } };

const yk_op yk__op_logical_or = {
  .name = "logical_or", .label = "LogicalOr", .doc = "true where at least one is",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_NO_GRAD,
  .in = yk__bool2, .out = yk__out1, .infer = yk__infer_compare, .ref = ref, .cases = cases,
};

yk_value yk_logical_or_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_logical_or, NULL, 2, a, b);
}
