/*
 * softplus.c - smooth version of relu, and its gradient: the logistic function of the input. log1p and the
 * larger of x and 0 keep both tails exact.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, softplus_grad, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -4, 4), { 0 } };

const yk_op yk__op_softplus = {
  .name = "softplus", .label = "Softplus", .doc = "log(1 + exp(x))",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_softplus_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_softplus, NULL, 1, x); }

/* ---- softplus_grad ------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double x) { return dy / (1 + exp(-x)); }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  yk_value both = YK__OP2(c, mul, c->dout[0], c->in[0]);
  c->din[0] = YK__OP2(c, softplus_grad, c->dout[0], c->in[1]);
  c->din[1] = YK__OP2(c, sigmoid_grad, both, YK__OP1(c, sigmoid, c->in[1]));
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -3, 3), { 0 } };

const yk_op yk__op_softplus_grad = {
  .name = "softplus_grad", .label = "SoftplusGrad", .doc = "dy / (1 + exp(-x))",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
