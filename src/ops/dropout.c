/*
 * dropout.c - set a random part of the elements to zero and scale up the rest, and the gradient.
 *
 * The mask is a function of (seed, step, element number), so it is the same on any device and any number of
 * threads; a new step gives a new one.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static const yk_attr attrs[] = { YK__REAL(yk_dropout_attrs, rate, 0, 0, 1), YK__SEED(yk_dropout_attrs, seed), { 0 } };

static yk_code check_rate(const yk_dropout_attrs *a) {
  if (a->rate >= 0 && a->rate < 1) return YK_OK;
  return YK_FAIL(EINVAL, "rate is %g, expected at least 0 and less than 1", a->rate);
}

static yk_code infer(const yk_infer *c) {
  YK_TRY(check_rate(c->attrs));
  YK_TRY(yk__want_scalar(c, "step", 1));
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  c->out[1] = yk__as(&c->in[0], YK_U8);
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  if (c->dout[0].id) c->din[0] = YK__OPA(c, dropout_grad, c->attrs, 2, c->dout[0], c->out[1]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  const yk_dropout_attrs *a = c->attrs;
  int64_t n = yk__desc_count(&c->dout[0]);
  uint32_t word[4] = { 0 };
  for (int64_t i = 0; i < n; i++) {
    if (i % 4 == 0) c->host->random_block(a->seed, 0, (uint64_t)(int64_t)c->in[1][0], (uint64_t)(i / 4), 0, word);
    c->out[1][i] = (word[i % 4] >> 8) * 0x1p-24 >= a->rate ? 1 : 0;
    c->out[0][i] = c->out[1][i] > 0 ? c->in[0][i] / (1 - a->rate) : 0;
  }
  return YK_OK;
}

static const yk_dropout_attrs half = { .rate = 0.5, .seed = 7 }, tenth = { .rate = 0.1, .seed = 1ull << 40 };
static const yk_case cases[] = {
  { "T[4,7]; i64[]", NULL, 0, 0, 0 },      { "T[]; i64[]", &half, 0, 0, 0 },        { "T[33]; i64[]", &half, 0, 5, 0 },
  { "T[2,3,5,7]; i64[]", &tenth, 0, 100, 0 }, { "T[0,3]; i64[]", &half, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_dropout = {
  .name = "dropout", .label = "Dropout", .doc = "Zero each element with probability `rate`, scale the others by 1/(1-rate).",
  .version = 1, .attr_bytes = sizeof(yk_dropout_attrs), .traits = YK_PURE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { "step", YK_T(YK_I64), YK_PORT_NODIFF, 0 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "mask", YK_T(YK_U8), 0, 0 }, { 0 } },
  .attrs = attrs, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- dropout_grad: dy, mask -> dx ---------------------------------------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  YK_TRY(check_rate(c->attrs));
  return yk__infer_same_all(c);
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, dropout_grad, c->attrs, 2, c->dout[0], c->in[1]);
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) {
  const yk_dropout_attrs *a = c->attrs;
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = c->in[1][i] != 0 ? c->in[0][i] / (1 - a->rate) : 0;
  return YK_OK;
}

static const yk_case cases_grad[] = {
  { "T[4,7]; u8[4,7]", NULL, 0, 1, 0 }, { "T[33]; u8[33]", &half, 0, 1, 0 }, { "T[2,3,5,7]; u8[2,3,5,7]", &tenth, 0, 1, 0 },
  { "T[0,3]; u8[0,3]", &half, 0, 1, 0 },
  { 0 },
};

const yk_op yk__op_dropout_grad = {
  .name = "dropout_grad", .label = "DropoutGrad", .doc = "Gradient of dropout from dy and the mask.",
  .version = 1, .attr_bytes = sizeof(yk_dropout_attrs), .traits = YK_PURE,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "mask", YK_T(YK_U8), YK_PORT_NODIFF, 0 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } },
  .attrs = attrs, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_dropout_at(const char *where, yk_graph *g, yk_value x, double rate, uint64_t seed) {
  yk_dropout_attrs a = { .rate = rate };
  if (rate == 0) return yk__build(where, g, &yk__op_identity, NULL, 1, x);   /* a view: no mask, no draws */
  a.seed = yk__seed(g, seed);
  return yk__build(where, g, &yk__op_dropout, &a, 2, x, yk__run_counter(g));
}
