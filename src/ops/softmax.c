/*
 * softmax.c - exp(x) scaled to sum one along the last axis, and its gradient.
 *
 * The largest element is subtracted first, which changes nothing but keeps exp in range.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code infer(const yk_infer *c) {
  if (c->in[0].rank < 1) return YK_FAIL(EINVAL, "the input is a scalar, expected at least rank 1 [..., C]");
  return yk__infer_same_all(c);
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, softmax_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t count = yk__desc_count(&c->din[0]), n = c->din[0].dim[c->din[0].rank - 1];
  for (int64_t row = 0; row < count; row += n) {
    const double *x = c->in[0] + row;
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) c->out[0][row + i] = exp(x[i] - top) / sum;
  }
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[7]", NULL, 0, 0, 0 }, { "T[4,10]", NULL, -3, 3, 0 }, { "T[2,3,19]", NULL, 0, 0, 0 }, { "T[3,1]", NULL, 0, 0, 0 },
  { "T[0,5]", NULL, 0, 0, 0 }, { "T[2,64]", NULL, -40, 40, 0 },
  { 0 },
};

const yk_op yk__op_softmax = {
  .name = "softmax", .label = "Softmax", .doc = "exp(x) scaled to sum one along the last axis.", .version = 1, .traits = YK_PURE | YK_WIDE,
  .in = yk__float1, .out = (const yk_port[]){ { "s", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- softmax_grad: dy, s -> s*(dy - sum(dy*s)) ------------------------------------------------------------------ */

static const yk_reduce_attrs last_axis = { .naxes = 1, .axis = { -1 }, .keepdims = 1 };

/* With cotangent g: to dy the same form again; to s  g*(dy - sum(dy*s)) - dy*sum(g*s). */
static yk_code grad_grad(yk_grad *c) {
  yk_value g = c->dout[0], dy = c->in[0], s = c->in[1];
  yk_value dys = YK__OPA(c, reduce_sum, &last_axis, 1, YK__OP2(c, mul, dy, s));
  yk_value gs = YK__OPA(c, reduce_sum, &last_axis, 1, YK__OP2(c, mul, g, s));
  c->din[0] = YK__OP2(c, softmax_grad, g, s);
  c->din[1] = YK__OP2(c, sub, YK__OP2(c, mul, g, YK__OP2(c, sub, dy, dys)), YK__OP2(c, mul, dy, gs));
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) {
  int64_t count = yk__desc_count(&c->din[0]), n = c->din[0].dim[c->din[0].rank - 1];
  for (int64_t row = 0; row < count; row += n) {
    const double *dy = c->in[0] + row, *s = c->in[1] + row;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += dy[i] * s[i];
    for (int64_t i = 0; i < n; i++) c->out[0][row + i] = s[i] * (dy[i] - sum);
  }
  return YK_OK;
}

static const yk_case cases_grad[] = {
  { "T[7]; T[7]", NULL, 0, 0, 0 },         { "T[4,10]; T[4,10]", NULL, 0, 0, 0 }, { "T[2,3,19]; T[2,3,19]", NULL, 0, 0, 0 },
  { "T[3,1]; T[3,1]", NULL, 0.1, 0.9, 0 }, { "T[0,5]; T[0,5]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_softmax_grad = {
  .name = "softmax_grad", .label = "SoftmaxGrad", .doc = "Gradient of softmax from dy and the softmax s.",
  .version = 1, .traits = YK_PURE,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "s", YK_FLOATS, 0, 1 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_softmax_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_softmax, NULL, 1, x); }
