/*
 * reciprocal.c - one over every element, and its guarded gradient. The gradient uses the output.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return 1 / x; }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, reciprocal_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, 0.5, 4), { 0 } };

const yk_op yk__op_reciprocal = {
  .name = "reciprocal", .label = "Reciprocal", .doc = "1 / x",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_reciprocal_at(const char *where, yk_graph *g, yk_value x) {
  return yk__build(where, g, &yk__op_reciprocal, NULL, 1, x);
}

/* ---- reciprocal_grad ----------------------------------------------------------------------------------- */

static double grad_eval(double dy, double y) { return dy == 0 ? 0 : -dy * y * y; }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  yk_value both = YK__OP2(c, mul, c->dout[0], c->in[0]);
  c->din[0] = YK__OP2(c, reciprocal_grad, c->dout[0], c->in[1]);
  c->din[1] = YK__OP2(c, mul, both, YK__OP2(c, mul, c->in[1], YK__NUM(c, c->in[1], -2)));
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, 0.5, 2), { 0 } };

const yk_op yk__op_reciprocal_grad = {
  .name = "reciprocal_grad", .label = "ReciprocalGrad", .doc = "-dy y^2, 0 where dy is 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
