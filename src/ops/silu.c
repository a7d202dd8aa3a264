/*
 * silu.c - x times its logistic function (also called swish), and its gradient from the input. Not monotone, so
 * the output does not determine the slope.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return x / (1 + exp(-x)); }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, silu_grad, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -4, 4), { 0 } };

const yk_op yk__op_silu = {
  .name = "silu", .label = "Silu", .doc = "x / (1 + exp(-x))",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_silu_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_silu, NULL, 1, x); }

/* ---- silu_grad ----------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double x) {
  double s = 1 / (1 + exp(-x));
  return dy * s * (1 + x * (1 - s));
}

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  /* With s = sigmoid(x), the second derivative is s (1 - s) (2 + x (1 - 2 s)). */
  yk_value both = YK__OP2(c, mul, c->dout[0], c->in[0]), x = c->in[1], s = YK__OP1(c, sigmoid, x);
  yk_value one = YK__NUM(c, x, 1), two = YK__NUM(c, x, 2);
  yk_value bend = YK__OP2(c, add, two, YK__OP2(c, mul, x, YK__OP2(c, sub, one, YK__OP2(c, mul, s, two))));
  c->din[0] = YK__OP2(c, silu_grad, c->dout[0], x);
  c->din[1] = YK__OP2(c, mul, YK__OP2(c, sigmoid_grad, both, s), bend);
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -3, 3), { 0 } };

const yk_op yk__op_silu_grad = {
  .name = "silu_grad", .label = "SiluGrad", .doc = "dy times the derivative of silu at x",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
