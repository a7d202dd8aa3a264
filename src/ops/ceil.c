/*
 * ceil.c - round up to a whole number. A step function: its gradient is zero wherever it exists.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, ceil); }

static const yk_case cases[] = { YK__CASES_1(NULL, -3, 3), { 0 } };

const yk_op yk__op_ceil = {
  .name = "ceil", .label = "Ceil", .doc = "smallest whole number not below x",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_NO_GRAD,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .ref = ref, .cases = cases,
};

yk_value yk_ceil_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_ceil, NULL, 1, x); }
