/*
 * gelu.c - x times the normal distribution function of x, exactly or in the tanh form, and its gradient from the
 * input. The second derivative is built from exp and tanh, so gelu_grad can be differentiated once more.
 */
#include <yoke/math.h>
#include "common.h"

static const double ROOT_HALF = 0.70710678118654752440;       /* 1 / sqrt(2) */
static const double DENSITY   = 0.39894228040143267794;       /* 1 / sqrt(2 pi): height of the normal density */
static const double TANH_K    = 0.79788456080286535588;       /* sqrt(2 / pi) */
static const double TANH_C    = 0.044715;

static int approximate(const void *attrs) { return ((const yk_gelu_attrs *)attrs)->approximate; }

static double eval(const double *v, const void *attrs) {
  double x = v[0];
  if (!approximate(attrs)) return 0.5 * x * (1 + erf(x * ROOT_HALF));
  return 0.5 * x * (1 + tanh(TANH_K * (x + TANH_C * x * x * x)));
}

static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, gelu_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = { YK__FLAG(yk_gelu_attrs, approximate), { 0 } };
static const yk_gelu_attrs tanh_form = { 1 };
static const yk_case cases[] = { YK__CASES_1(NULL, -3, 3), YK__CASES_1(&tanh_form, -3, 3), { 0 } };

const yk_op yk__op_gelu = {
  .name = "gelu", .label = "Gelu", .doc = "x times the normal distribution function of x",
  .version = 1, .attr_bytes = sizeof(yk_gelu_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_gelu_at(const char *where, yk_graph *g, yk_value x, bool tanh_approximation) {
  return yk__build(where, g, &yk__op_gelu, &(yk_gelu_attrs){ tanh_approximation }, 1, x);
}

/* ---- gelu_grad --------------------------------------------------------------------------------------------------- */

static double grad_eval(const double *v, const void *attrs_) {
  double x = v[1], t, du;
  if (!approximate(attrs_)) return v[0] * (0.5 * (1 + erf(x * ROOT_HALF)) + x * DENSITY * exp(-0.5 * x * x));
  t = tanh(TANH_K * (x + TANH_C * x * x * x));
  du = TANH_K * (1 + 3 * TANH_C * x * x);
  return v[0] * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du);
}

static yk_code grad_ref(const yk_ref *c) { return yk__ref_map(c, grad_eval); }

/* Density(x) * (2 - x^2). */
static yk_value bend_exact(yk_grad *c, yk_value x) {
  yk_value xx = YK__OP1(c, square, x);
  yk_value density = YK__OP2(c, mul, YK__OP1(c, exp, YK__OP2(c, mul, xx, YK__NUM(c, x, -0.5))), YK__NUM(c, x, DENSITY));
  return YK__OP2(c, mul, density, YK__OP2(c, sub, YK__NUM(c, x, 2), xx));
}

/* With u(x) the argument of tanh, t = tanh(u), s = 1 - t^2:  s u' + x s (u''/2 - t u'^2), where x u''/2 = 3 K C x^2. */
static yk_value bend_tanh(yk_grad *c, yk_value x) {
  yk_value xx = YK__OP1(c, square, x), one = YK__NUM(c, x, 1);
  yk_value cube = YK__OP2(c, mul, YK__OP2(c, mul, xx, x), YK__NUM(c, x, TANH_C));
  yk_value t = YK__OP1(c, tanh, YK__OP2(c, mul, YK__OP2(c, add, x, cube), YK__NUM(c, x, TANH_K)));
  yk_value s = YK__OP2(c, sub, one, YK__OP1(c, square, t));
  yk_value bend = YK__OP2(c, mul, xx, YK__NUM(c, x, 3 * TANH_K * TANH_C));
  yk_value du = YK__OP2(c, add, bend, YK__NUM(c, x, TANH_K));
  yk_value turn = YK__OP2(c, mul, YK__OP2(c, mul, x, t), YK__OP1(c, square, du));
  return YK__OP2(c, mul, s, YK__OP2(c, sub, YK__OP2(c, add, du, bend), turn));
}

static yk_code grad_grad(yk_grad *c) {
  yk_value both = YK__OP2(c, mul, c->dout[0], c->in[0]), x = c->in[1];
  c->din[0] = YK__OPA(c, gelu_grad, c->attrs, 2, c->dout[0], x);
  c->din[1] = YK__OP2(c, mul, both, approximate(c->attrs) ? bend_tanh(c, x) : bend_exact(c, x));
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -2, 2), YK__CASES_SAME_2(&tanh_form, -2, 2), { 0 } };

const yk_op yk__op_gelu_grad = {
  .name = "gelu_grad", .label = "GeluGrad", .doc = "dy times the derivative of gelu at x",
  .version = 1, .attr_bytes = sizeof(yk_gelu_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
