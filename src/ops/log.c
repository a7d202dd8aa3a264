/*
 * log.c - natural logarithm, and its guarded gradient dy / x. log_grad gives 0 where dy is 0, also at x = 0;
 * other ops use it as a division with that guard.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, log); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, log_grad, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, 0.5, 4), { 0 } };

const yk_op yk__op_log = {
  .name = "log", .label = "Log", .doc = "natural logarithm",
  .version = 1, .traits = YK_PURE | YK_WIDE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_log_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_log, NULL, 1, x); }

/* ---- log_grad ------------------------------------------------------------------------------------------ */

static double grad_eval(double dy, double x) { return dy == 0 ? 0 : dy / x; }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, log_grad, c->dout[0], c->in[1]);
  c->din[1] = YK__OP2(c, log_grad, YK__OP1(c, neg, YK__OP2(c, mul, c->dout[0], c->out[0])), c->in[1]);
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, 0.5, 2), { 0 } };

const yk_op yk__op_log_grad = {
  .name = "log_grad", .label = "LogGrad", .doc = "dy / x, 0 where dy is 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
