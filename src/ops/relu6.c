/*
 * relu6.c - rectified linear unit that stops at 6, and its gradient. The slope is 0 at both ends.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double x) { return x <= 0 ? 0 : x >= 6 ? 6 : x; }
static yk_code ref(const yk_ref *c) { return yk__ref_unary(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, relu6_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -8, 14), { 0 } };

const yk_op yk__op_relu6 = {
  .name = "relu6", .label = "Relu6", .doc = "x limited to [0, 6]",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_relu6_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_relu6, NULL, 1, x); }

/* ---- relu6_grad ---------------------------------------------------------------------------------------- */

static double grad_eval(double dy, double y) { return y > 0 && y < 6 ? dy : 0; }

static yk_code grad_ref(const yk_ref *c) { return yk__ref_binary(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, relu6_grad, c->dout[0], c->in[1]);   /* flat in y */
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(NULL, -3, 9), { 0 } };

const yk_op yk__op_relu6_grad = {
  .name = "relu6_grad", .label = "Relu6Grad", .doc = "dy where y is between 0 and 6, else 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__grad2, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
