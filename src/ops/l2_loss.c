/*
 * l2_loss.c - half the sum of squares, the usual weight penalty. Half, so that the gradient is x itself.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  c->out[0] = (yk_desc){ .dtype = c->in[0].dtype };
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->din[0]);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += c->in[0][i] * c->in[0][i];
  c->out[0][0] = sum / 2;
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->in[0], c->dout[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -1, 1), { 0 } };

const yk_op yk__op_l2_loss = {
  .name = "l2_loss", .label = "L2Loss", .doc = "half the sum of squares",
  .version = 1, .traits = YK_PURE | YK_WIDE | YK_ZERO_ON_EMPTY,
  .in = yk__float1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_l2_loss_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_l2_loss, NULL, 1, x); }
