/*
 * selu.c - self-normalising exponential unit, and its gradient from the output. The two constants are those that
 * keep mean 0 and variance 1 (Klambauer et al., 2017).
 */
#include <yoke/math.h>
#include "common.h"

static const double ALPHA = 1.6732632423543772848170429916717, SCALE = 1.0507009873554804934193349852946;

static double eval(double x) { return x > 0 ? SCALE * x : SCALE * ALPHA * expm1(x); }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, selu_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -3, 3), { 0 } };

const yk_op yk__op_selu = {
  .name = "selu", .label = "Selu", .doc = "scale * (x or alpha (exp(x) - 1))",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_selu_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_selu, NULL, 1, x); }

/* ---- selu_grad ----------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double y) { return y < 0 ? dy * (y + SCALE * ALPHA) : dy * SCALE; }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  yk_value zero = YK__NUM(c, c->in[1], 0), both = YK__OP2(c, mul, c->dout[0], c->in[0]);
  c->din[0] = YK__OP2(c, selu_grad, c->dout[0], c->in[1]);
  c->din[1] = YK__OP3(c, where, YK__OP2(c, less, c->in[1], zero), both, zero);
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -1.5, 1.5), { 0 } };

const yk_op yk__op_selu_grad = {
  .name = "selu_grad", .label = "SeluGrad", .doc = "dy times the slope of selu where it has the value y",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
