/*
 * stop_gradient.c - the same value, through which no gradient flows. For what a loss uses but should not train.
 */
#include <yoke/math.h>
#include "common.h"

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_stop_gradient = {
  .name = "stop_gradient", .label = "StopGradient", .doc = "x, treated as a constant by gradients",
  .version = 1, .traits = YK_PURE | YK_VIEW | YK_NO_GRAD,
  .in = yk__any1, .out = yk__out1, .infer = yk__infer_same, .ref = yk__ref_copy, .cases = cases,
};

yk_value yk_stop_gradient_at(const char *where, yk_graph *g, yk_value x) {
  return yk__build(where, g, &yk__op_stop_gradient, NULL, 1, x);
}
