/*
 * reduce_mean.c - mean over axes: the sum divided by the number of elements, NaN where there are none. Floats only,
 * since a mean of integers would have to round.
 */
#include <yoke/math.h>
#include "reduce.h"

static double eval(double so_far, double x) { return so_far + x; }

static yk_code ref(const yk_ref *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  int64_t n = yk__desc_count(&c->dout[0]);
  double count = (double)yk__reduce_count(&c->din[0], &a);
  YK_TRY(yk__reduce_ref(c, 0, eval));
  for (int64_t i = 0; i < n; i++) c->out[0][i] /= count;
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  a.mean = 1;
  c->din[0] = YK__OPA(c, reduce_grad, &a, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_REDUCE(0, 0), { 0 } };

const yk_op yk__op_reduce_mean = {
  .name = "reduce_mean", .label = "Mean", .doc = "mean over axes",
  .version = 1, .attr_bytes = sizeof(yk_reduce_attrs), .traits = YK_PURE | YK_WIDE, .attrs = yk__reduce_attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__reduce_infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_reduce_mean_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs) {
  return yk__reduce_build(where, g, &yk__op_reduce_mean, x, attrs);
}
