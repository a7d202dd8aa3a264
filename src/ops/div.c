/*
 * div.c - quotient of two tensors that broadcast together. Floats only, so that nothing can trap; log_grad is
 * the division that gives 0 where its dividend is 0, which keeps gradients of unused branches free of NaN.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(double a, double b) { return a / b; }
static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, eval); }

static yk_code grad(yk_grad *c) {
  /* A scalar divisor of 0 spoils everything anyway: no guard, and no spreading of it to a whole tensor. */
  int scalar = yk_value_desc(c->g, c->in[1]) && yk_value_desc(c->g, c->in[1])->rank == 0;
  yk_value da = scalar ? YK__OP2(c, div, c->dout[0], c->in[1])
                       : YK__OP2(c, log_grad, c->dout[0], yk__spread(c, c->in[1], c->dout[0]));
  c->din[0] = da;
  c->din[1] = YK__OP1(c, neg, YK__OP2(c, mul, da, c->out[0]));
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
