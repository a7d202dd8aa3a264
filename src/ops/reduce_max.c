/*
 * reduce_max.c - largest element over axes. Where several are equal the gradient is shared equally among them; of no
 * elements at all the result is -INFINITY.
 */
#include <yoke/math.h>
#include "reduce.h"

static double eval(double so_far, double x) { return x > so_far || isnan(x) ? x : so_far; }
static yk_code ref(const yk_ref *c) { return yk__reduce_ref(c, -INFINITY, eval); }

static const yk_case cases[] = { YK__CASES_REDUCE(0, 20), { 0 } };

const yk_op yk__op_reduce_max = {
  .name = "reduce_max", .label = "Max", .doc = "largest element over axes",
  .version = 1, .attr_bytes = sizeof(yk_reduce_attrs), .traits = YK_PURE, .attrs = yk__reduce_attrs,
  .in = yk__number1, .out = yk__out1, .infer = yk__reduce_infer, .grad = yk__reduce_extreme_grad, .ref = ref, .cases = cases,
};

yk_value yk_reduce_max_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs) {
  return yk__reduce_build(where, g, &yk__op_reduce_max, x, attrs);
}
