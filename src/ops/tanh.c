/*
 * tanh.c - hyperbolic tangent, and its gradient from the output: 1 - y^2. Keeping y saves computing it again.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return tanh(x); }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, tanh_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_tanh = {
  .name = "tanh", .label = "Tanh", .doc = "hyperbolic tangent",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_tanh_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_tanh, NULL, 1, x); }

/* ---- tanh_grad ----------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double y) { return dy * (1 - y * y); }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  yk_value both = YK__OP2(c, mul, c->dout[0], c->in[0]);
  c->din[0] = YK__OP2(c, tanh_grad, c->dout[0], c->in[1]);
  c->din[1] = YK__OP2(c, mul, both, YK__OP2(c, mul, c->in[1], YK__NUM(c, c->in[1], -2)));
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -1, 1), { 0 } };

const yk_op yk__op_tanh_grad = {
  .name = "tanh_grad", .label = "TanhGrad", .doc = "dy (1 - y^2)",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
