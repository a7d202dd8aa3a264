/*
 * log_softmax.c - x - log(sum(exp(x))) along the last axis, and its gradient.
 *
 * More exact than log(softmax(x)) where a probability is tiny.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code infer(const yk_infer *c) {
  if (c->in[0].rank < 1) return YK_FAIL(EINVAL, "the input is a scalar, expected at least rank 1 [..., C]");
  return yk__infer_same_all(c);
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, log_softmax_grad, c->dout[0], c->out[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t count = yk__desc_count(&c->din[0]), n = c->din[0].dim[c->din[0].rank - 1];
  for (int64_t row = 0; row < count; row += n) {
    const double *x = c->in[0] + row;
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) c->out[0][row + i] = x[i] - top - log(sum);
  }
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[7]", NULL, 0, 0, 0 }, { "T[4,10]", NULL, -3, 3, 0 }, { "T[2,3,19]", NULL, 0, 0, 0 }, { "T[0,5]", NULL, 0, 0, 0 },
  { "T[2,64]", NULL, -40, 40, 0 },
  { 0 },
};

const yk_op yk__op_log_softmax = {
  .name = "log_softmax", .label = "LogSoftmax", .doc = "Logarithm of softmax along the last axis.", .version = 1, .traits = YK_PURE | YK_WIDE,
  .in = yk__float1, .out = (const yk_port[]){ { "l", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- log_softmax_grad: dy, l -> dy - exp(l)*sum(dy) -------------------------------------------------------------- */

static const yk_reduce_attrs last_axis = { .naxes = 1, .axis = { -1 }, .keepdims = 1 };

/* With cotangent g: to dy  g - sum(g*exp(l)); to l  -g*exp(l)*sum(dy). */
static yk_code grad_grad(yk_grad *c) {
  yk_value g = c->dout[0], gs = YK__OP2(c, mul, g, YK__OP1(c, exp, c->in[1]));
  c->din[0] = YK__OP2(c, sub, g, YK__OPA(c, reduce_sum, &last_axis, 1, gs));
  c->din[1] = YK__OP1(c, neg, YK__OP2(c, mul, gs, YK__OPA(c, reduce_sum, &last_axis, 1, c->in[0])));
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) {
  int64_t count = yk__desc_count(&c->din[0]), n = c->din[0].dim[c->din[0].rank - 1];
  for (int64_t row = 0; row < count; row += n) {
    const double *dy = c->in[0] + row, *l = c->in[1] + row;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += dy[i];
    for (int64_t i = 0; i < n; i++) c->out[0][row + i] = dy[i] - exp(l[i]) * sum;
  }
  return YK_OK;
}

static const yk_case cases_grad[] = {
  { "T[7]; T[7]", NULL, 0, 0, 0 }, { "T[4,10]; T[4,10]", NULL, 0, 0, 0 }, { "T[2,3,19]; T[2,3,19]", NULL, -2, 0, 0 },
  { "T[0,5]; T[0,5]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_log_softmax_grad = {
  .name = "log_softmax_grad", .label = "LogSoftmaxGrad", .doc = "Gradient of log_softmax from dy and the log_softmax l.",
  .version = 1, .traits = YK_PURE,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "l", YK_FLOATS, 0, 1 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_log_softmax_at(const char *where, yk_graph *g, yk_value x) {
  return yk__build(where, g, &yk__op_log_softmax, NULL, 1, x);
}
