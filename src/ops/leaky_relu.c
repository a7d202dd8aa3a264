/*
 * leaky_relu.c - x where positive, else alpha times x, and its gradient. Alpha may be negative, so the sign of the
 * output does not tell the branch: the gradient looks at the input.
 */
#include <yoke/math.h>
#include "common.h"

static double slope(const void *attrs) {
  double alpha = ((const yk_alpha_attrs *)attrs)->alpha;
  return alpha == 0 ? 0.2 : alpha;
}

static double eval(const double *v, const void *attrs) { return v[0] > 0 ? v[0] : slope(attrs) * v[0]; }
static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, leaky_relu_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = { YK__REAL(yk_alpha_attrs, alpha, 0.2, -YK__HUGE, YK__HUGE), { 0 } };
static const yk_alpha_attrs half = { 0.5 };
static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { "T[4,7]", &half, -2, 2, 0 }, { 0 } };

const yk_op yk__op_leaky_relu = {
  .name = "leaky_relu", .label = "LeakyRelu", .doc = "x where positive, else alpha x",
  .version = 1, .attr_bytes = sizeof(yk_alpha_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_leaky_relu_at(const char *where, yk_graph *g, yk_value x, double alpha) {
  return yk__build(where, g, &yk__op_leaky_relu, &(yk_alpha_attrs){ alpha }, 1, x);
}

/* ---- leaky_relu_grad --------------------------------------------------------------------------------------- */

static double grad_eval(const double *v, const void *attrs_) { return v[1] > 0 ? v[0] : slope(attrs_) * v[0]; }
static yk_code grad_ref(const yk_ref *c) { return yk__ref_map(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, leaky_relu_grad, c->attrs, 2, c->dout[0], c->in[1]);   /* flat in x */
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -1, 1), { "T[4,7]; T[4,7]", &half, -1, 1, 0 }, { 0 } };

const yk_op yk__op_leaky_relu_grad = {
  .name = "leaky_relu_grad", .label = "LeakyReluGrad", .doc = "dy where x is positive, else alpha dy",
  .version = 1, .attr_bytes = sizeof(yk_alpha_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
