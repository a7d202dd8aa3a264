/*
 * floor.c - round down to a whole number. A step function: its gradient is zero wherever it exists.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, floor); }

static const yk_case cases[] = { YK__CASES_1(NULL, -3, 3), { 0 } };

const yk_op yk__op_floor = {
  .name = "floor", .label = "Floor", .doc = "largest whole number not above x",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE | YK_NO_GRAD,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .ref = ref, .cases = cases,
};

yk_value yk_floor_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_floor, NULL, 1, x); }
