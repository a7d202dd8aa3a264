/*
 * sigmoid_xent.c - cross entropy between sigmoid(x) and a probability z, element by element.
 *
 * max(x,0) - x*z + log(1 + exp(-|x|)): the form that neither overflows nor loses digits for large |x|.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->dout[0], YK__OP2(c, sub, YK__OP1(c, sigmoid, c->in[0]), c->in[1]));
  c->din[1] = YK__OP1(c, neg, YK__OP2(c, mul, c->dout[0], c->in[0]));
  return YK_OK;
}

static double formula(double x, double z) { return fmax(x, 0) - x * z + log1p(exp(-fabs(x))); }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, formula); }

static const yk_case cases[] = { YK__CASES_SAME_2(NULL, 0, 0), { "T[4,7]; T[4,7]", NULL, -30, 30, 0 }, { 0 } };

const yk_op yk__op_sigmoid_xent = {
  .name = "sigmoid_xent", .label = "SigmoidCrossEntropyWithLogits", .doc = "Cross entropy of sigmoid(x) against z, element by element.",
  .version = 1, .traits = YK_PURE | YK_WIDE | YK_ELEMENTWISE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { "z", YK_FLOATS, 0, 1 }, { 0 } },
  .out = (const yk_port[]){ { "loss", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = yk__infer_same_all, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_sigmoid_cross_entropy_at(const char *where, yk_graph *g, yk_value logits, yk_value labels) {
  return yk__build(where, g, &yk__op_sigmoid_xent, NULL, 2, logits, labels);
}
