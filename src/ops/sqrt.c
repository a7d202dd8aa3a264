/*
 * sqrt.c - square root, and its guarded gradient. At 0 the slope is infinite, and 0 * infinity would be NaN:
 * sqrt_grad gives 0 where dy is 0, so a branch that where() did not take stays harmless.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, sqrt); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, sqrt_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, 0.5, 4), { 0 } };

const yk_op yk__op_sqrt = {
  .name = "sqrt", .label = "Sqrt", .doc = "square root",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_sqrt_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_sqrt, NULL, 1, x); }

/* ---- sqrt_grad ----------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double y) { return dy == 0 ? 0 : dy / (2 * y); }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  /* d/dy of dy / (2 y) is -result / y; log_grad is the guarded division. */
  c->din[0] = YK__OP2(c, sqrt_grad, c->dout[0], c->in[1]);
  c->din[1] = YK__OP2(c, log_grad, YK__OP1(c, neg, YK__OP2(c, mul, c->dout[0], c->out[0])), c->in[1]);
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, 0.5, 2), { 0 } };

const yk_op yk__op_sqrt_grad = {
  .name = "sqrt_grad", .label = "SqrtGrad", .doc = "dy / (2 y), 0 where dy is 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
