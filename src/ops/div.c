/*
 * div.c - quotient of two tensors that broadcast together. Floats only, so that nothing can trap; log_grad is
 * the division that gives 0 where its dividend is 0, which keeps gradients of unused branches free of NaN.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return a / b; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

/* da = dy / b; db = -(da * a) / b, not -da * out: where nothing flows back, 0 times an infinite out would be NaN. */
static yk_code grad(yk_grad *c) {
  yk_value a = c->in[0], b = c->in[1], dy = c->dout[0];
  if (yk_value_desc(c->g, b) && yk_value_desc(c->g, b)->rank == 0) {
    /* A scalar divisor of 0 spoils everything anyway: no guard, and no spreading of it to a whole tensor. */
    c->din[0] = YK__OP2(c, div, dy, b);
    c->din[1] = YK__OP1(c, neg, YK__OP2(c, mul, c->din[0], c->out[0]));
    return YK_OK;
  }
  b = yk__spread(c, b, dy);
  c->din[0] = YK__OP2(c, log_grad, dy, b);
  c->din[1] = YK__OP1(c, neg, YK__OP2(c, log_grad, YK__OP2(c, mul, c->din[0], a), b));
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, 0.5, 3), { 0 } };

const yk_op yk__op_div = {
  .name = "div", .label = "Div", .doc = "a / b, with broadcasting",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = yk__float2, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_div_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_div, NULL, 2, a, b);
}
