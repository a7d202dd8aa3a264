/*
 * reduce_sum.c - sum over axes. The gradient spreads dy back over them; that is reduce_grad.
 */
#include <yoke/math.h>
#include "reduce.h"

static double eval(double so_far, double x) { return so_far + x; }
static yk_code ref(const yk_ref *c) { return yk__reduce_ref(c, 0, eval); }

static yk_code grad(yk_grad *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  a.mean = 0;
  c->din[0] = YK__OPA(c, reduce_grad, &a, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_REDUCE(0, 0), { "T[0,7]", &yk__reduce_first, 0, 0, 0 }, { 0 } };

const yk_op yk__op_reduce_sum = {
  .name = "reduce_sum", .label = "Sum", .doc = "sum over axes",
  .version = 1, .attr_bytes = sizeof(yk_reduce_attrs), .traits = YK_PURE | YK_WIDE | YK_ZERO_ON_EMPTY, .attrs = yk__reduce_attrs,
  .in = yk__arith1, .out = yk__out1, .infer = yk__reduce_infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_reduce_sum_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs) {
  return yk__reduce_build(where, g, &yk__op_reduce_sum, x, attrs);
}
