/*
 * relu.c - rectified linear unit, and its gradient. The slope at 0 is 0, so the output tells as much as the
 * input, and the input need not be kept.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return x > 0 ? x : 0; }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, relu_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_relu = {
  .name = "relu", .label = "Relu", .doc = "x where positive, else 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_relu_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_relu, NULL, 1, x); }

/* ---- relu_grad ----------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double y) { return y > 0 ? dy : 0; }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, relu_grad, c->dout[0], c->in[1]);   /* flat in y */
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -1, 1), { 0 } };

const yk_op yk__op_relu_grad = {
  .name = "relu_grad", .label = "ReluGrad", .doc = "dy where y is positive, else 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
