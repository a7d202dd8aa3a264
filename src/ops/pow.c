/*
 * pow.c - a to the power of b, with broadcasting, and its two guarded gradients. A negative base with a whole
 * exponent is fine forwards; the logarithm that the exponent's gradient needs is taken as 0 there.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) { return yk__ref_binary(c, pow); }

static yk_code grad(yk_grad *c) {
  yk_value dy = c->dout[0], x = yk__spread(c, c->in[0], dy);
  c->din[0] = YK__OP3(c, pow_grad_x, dy, x, yk__spread(c, c->in[1], dy));
  c->din[1] = YK__OP3(c, pow_grad_y, dy, x, c->out[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_BROADCAST(NULL, 0.5, 2), { 0 } };

const yk_op yk__op_pow = {
  .name = "pow", .label = "Pow", .doc = "a to the power of b, with broadcasting",
  .version = 1, .traits = YK_PURE | YK_WIDE | YK_ELEMENTWISE,
  .in = yk__float2, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_pow_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_pow, NULL, 2, a, b);
}

/* ---- pow_grad_x ---------------------------------------------------------------------------------------------------- */

static const yk_port three[] = { { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, 0, 1 }, { "y", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_case three_cases[] = {
  { "T[]; T[]; T[]", NULL, 0.5, 2, 0 }, { "T[7]; T[7]; T[7]", NULL, 0.5, 2, 0 }, { "T[33]; T[33]; T[33]", NULL, 0.5, 2, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]", NULL, 0.5, 2, 0 }, { "T[3,0]; T[3,0]; T[3,0]", NULL, 0.5, 2, 0 }, { 0 }
};

static double eval_x(const double *v, const void *attrs) {
  (void)attrs;
  return v[0] == 0 ? 0 : v[0] * v[2] * pow(v[1], v[2] - 1);
}

static yk_code ref_x(const yk_ref *c) { return yk__ref_map(c, eval_x); }

/* Of w y x^(y-1), with w = ddx dy:  in x: w y (y-1) x^(y-2);  in y: w p + w y p log(x) with p = x^(y-1). */
static yk_code grad_x(yk_grad *c) {
  yk_value w = YK__OP2(c, mul, c->dout[0], c->in[0]), x = c->in[1], y = c->in[2];
  yk_value wy = YK__OP2(c, mul, w, y), less_one = YK__OP2(c, sub, y, YK__NUM(c, y, 1)), p = YK__OP2(c, pow, x, less_one);
  c->din[0] = YK__OP3(c, pow_grad_x, c->dout[0], x, y);
  c->din[1] = YK__OP3(c, pow_grad_x, wy, x, less_one);
  c->din[2] = YK__OP2(c, add, YK__OP2(c, mul, w, p), YK__OP3(c, pow_grad_y, wy, x, p));
  return YK_OK;
}

const yk_op yk__op_pow_grad_x = {
  .name = "pow_grad_x", .label = "PowGradX", .doc = "dy y x^(y-1), 0 where dy is 0",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = three, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_x, .ref = ref_x, .cases = three_cases,
};

/* ---- pow_grad_y ---------------------------------------------------------------------------------------------------- */

static const yk_port three_z[] = { { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, 0, 1 }, { "z", YK_FLOATS, 0, 1 }, { 0 } };

static double eval_y(const double *v, const void *attrs) {
  (void)attrs;
  return v[0] == 0 || v[1] <= 0 ? 0 : v[0] * v[2] * log(v[1]);
}

static yk_code ref_y(const yk_ref *c) { return yk__ref_map(c, eval_y); }

/* Of w z log(x): in z: w log(x), which is this op again with z = 1; in x: w z / x where the logarithm was taken. */
static yk_code grad_y(yk_grad *c) {
  yk_value w = YK__OP2(c, mul, c->dout[0], c->in[0]), x = c->in[1], z = c->in[2], zero = YK__NUM(c, x, 0);
  yk_value ratio = YK__OP2(c, log_grad, YK__OP2(c, mul, w, z), x);
  c->din[0] = YK__OP3(c, pow_grad_y, c->dout[0], x, z);
  c->din[1] = YK__OP3(c, where, YK__OP2(c, greater, x, zero), ratio, zero);
  c->din[2] = YK__OP3(c, pow_grad_y, w, x, YK__OP1(c, ones_like, z));
  return YK_OK;
}

const yk_op yk__op_pow_grad_y = {
  .name = "pow_grad_y", .label = "PowGradY", .doc = "dy z log(x), with log taken as 0 where x is not positive",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = three_z, .out = yk__out1, .infer = yk__infer_same_all, .grad = grad_y, .ref = ref_y, .cases = three_cases,
};
