/*
 * elu.c - exponential linear unit, and its gradient from the output. Below 0 the slope is alpha exp(x), which is
 * y + alpha: no exponential to compute again.
 */
#include <yoke/math.h>
#include "common.h"

static double scale(const void *attrs) {
  double alpha = ((const yk_alpha_attrs *)attrs)->alpha;
  return alpha == 0 ? 1 : alpha;
}

static double eval(const double *v, const void *attrs) { return v[0] > 0 ? v[0] : scale(attrs) * expm1(v[0]); }
static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, elu_grad, c->attrs, 2, c->dout[0], c->out[0]);
  return YK_OK;
}

/* A negative alpha would make the output ambiguous. */
static const yk_attr attrs[] = { YK__REAL(yk_alpha_attrs, alpha, 1, 0, YK__HUGE), { 0 } };
static const yk_alpha_attrs half = { 0.5 };
static const yk_case cases[] = { YK__CASES_1(NULL, -3, 3), { "T[4,7]", &half, -3, 3, 0 }, { 0 } };

const yk_op yk__op_elu = {
  .name = "elu", .label = "Elu", .doc = "x where positive, else alpha (exp(x) - 1)",
  .version = 1, .attr_bytes = sizeof(yk_alpha_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_elu_at(const char *where, yk_graph *g, yk_value x, double alpha) {
  return yk__build(where, g, &yk__op_elu, &(yk_alpha_attrs){ alpha }, 1, x);
}

/* ---- elu_grad -------------------------------------------------------------------------------------------------- */

static double grad_eval(const double *v, const void *attrs_) { return v[1] < 0 ? v[0] * (v[1] + scale(attrs_)) : v[0]; }
static yk_code grad_ref(const yk_ref *c) { return yk__ref_map(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  yk_value zero = YK__NUM(c, c->in[1], 0), both = YK__OP2(c, mul, c->dout[0], c->in[0]);
  c->din[0] = YK__OPA(c, elu_grad, c->attrs, 2, c->dout[0], c->in[1]);
  c->din[1] = YK__OP3(c, where, YK__OP2(c, less, c->in[1], zero), both, zero);
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -0.9, 0.9), { "T[4,7]; T[4,7]", &half, -0.45, 0.45, 0 }, { 0 } };

const yk_op yk__op_elu_grad = {
  .name = "elu_grad", .label = "EluGrad", .doc = "dy times the slope of elu where it has the value y",
  .version = 1, .attr_bytes = sizeof(yk_alpha_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
