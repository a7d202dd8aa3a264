/*
 * batch_norm_infer.c - batch normalisation with given statistics, and its gradient.
 *
 * y = (x - mean)*r*gamma + beta with r = 1/sqrt(var + epsilon). mean and var are moving averages: constants as far as
 * gradients are concerned.
 */
#include "ops/norm.h"

static const yk_attr attrs[] = { YK__REAL(yk_norm_attrs, epsilon, 1e-3, 0, YK__HUGE), { 0 } };
static const yk_norm_attrs wide = { .epsilon = 0.1 };

static yk_code infer(const yk_infer *c) {
  static const char *const names[] = { "gamma", "beta", "mean", "var" };
  int64_t channels = -1;
  YK_TRY(yk__norm_check(c, 0, 1, 5, names, &channels));
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  c->out[0].dim[c->out[0].rank - 1] = channels;
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, batch_norm_infer_grad, c->attrs, 5, c->dout[0], c->in[0], c->in[1], c->in[3], c->in[4]);
  c->din[1] = yk_output(c->g, c->din[0], 1);
  c->din[2] = yk_output(c->g, c->din[0], 2);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t count = yk__desc_count(&c->dout[0]), channels = c->din[1].dim[0];
  for (int64_t i = 0; i < count; i++) {
    int64_t k = i % channels;
    c->out[0][i] = (c->in[0][i] - c->in[3][k]) / sqrt(c->in[4][k] + yk__norm_epsilon(c->attrs)) * c->in[1][k] + c->in[2][k];
  }
  return YK_OK;
}

#define SHAPES(T, S, x, c) T "[" x "]; " S "[" c "]; " S "[" c "]; " S "[" c "]; " S "[" c "]"
#define SHAPES_5(T, S)     SHAPES(T, S, "8,5", "5")
#define SHAPES_16(T, S)    SHAPES(T, S, "2,3,4,16", "16")
#define SHAPES_19(T, S)    SHAPES(T, S, "4,3,19", "19")
#define SHAPES_EMPTY(T, S) SHAPES(T, S, "0,3,3,8", "8")
static const yk_case cases[] = {
  YK__STAT_CASES(SHAPES_5, NULL, 0.1, 2),
  YK__STAT_CASES(SHAPES_16, NULL, 0.1, 2),
  YK__STAT_CASES(SHAPES_19, &wide, 0.1, 2),
  YK__STAT_CASES(SHAPES_EMPTY, NULL, 0.1, 2),
  { 0 },
};

const yk_op yk__op_batch_norm_infer = {
  .name = "batch_norm_infer", .label = "FusedBatchNorm", .doc = "Batch normalisation by given means and variances.",
  .version = 1, .attr_bytes = sizeof(yk_norm_attrs), .traits = YK_PURE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { "gamma", YK__STATS, 0, 0 }, { "beta", YK__STATS, 0, 2 },
                           { "mean", YK__STATS, YK_PORT_NODIFF, 2 }, { "var", YK__STATS, YK_PORT_NODIFF, 2 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } },
  .attrs = attrs, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- batch_norm_infer_grad: dy, x, gamma, mean, var -> dx, dgamma, dbeta ------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  static const char *const names[] = { "gamma", "mean", "var" };
  int64_t channels = -1;
  YK_TRY(yk__norm_check(c, 1, 2, 5, names, &channels));
  YK_TRY(yk__norm_same_shape(c, 0, 1, "dy", "x"));
  c->out[0] = yk__as(&c->in[1], c->in[1].dtype);
  c->out[0].dim[c->out[0].rank - 1] = channels;
  c->out[1] = c->out[2] = yk__per_channel(&c->in[1], channels);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through batch_norm_infer are not available");
}

static yk_code ref_grad(const yk_ref *c) {
  const double *dy = c->in[0], *x = c->in[1], *gamma = c->in[2], *mean = c->in[3], *var = c->in[4];
  int64_t count = yk__desc_count(&c->din[1]), channels = c->dout[1].dim[0];
  yk__ref_zero(c, 1);
  yk__ref_zero(c, 2);
  for (int64_t i = 0; i < count; i++) {
    int64_t k = i % channels;
    double r = 1 / sqrt(var[k] + yk__norm_epsilon(c->attrs));
    c->out[0][i] = dy[i] * gamma[k] * r;
    c->out[1][k] += dy[i] * (x[i] - mean[k]) * r;
    c->out[2][k] += dy[i];
  }
  return YK_OK;
}

#define GRAD_SHAPES(T, S, x, c) T "[" x "]; " T "[" x "]; " S "[" c "]; " S "[" c "]; " S "[" c "]"
#define GRAD_5(T, S)     GRAD_SHAPES(T, S, "8,5", "5")
#define GRAD_16(T, S)    GRAD_SHAPES(T, S, "2,3,4,16", "16")
#define GRAD_19(T, S)    GRAD_SHAPES(T, S, "4,3,19", "19")
#define GRAD_EMPTY(T, S) GRAD_SHAPES(T, S, "0,3,3,8", "8")
static const yk_case cases_grad[] = {
  YK__STAT_CASES(GRAD_5, NULL, 0.1, 2),
  YK__STAT_CASES(GRAD_16, NULL, 0.1, 2),
  YK__STAT_CASES(GRAD_19, &wide, 0.1, 2),
  YK__STAT_CASES(GRAD_EMPTY, NULL, 0.1, 2),
  { 0 },
};

const yk_op yk__op_batch_norm_infer_grad = {
  .name = "batch_norm_infer_grad", .label = "FusedBatchNormGrad", .doc = "Gradient of batch_norm_infer.",
  .version = 1, .attr_bytes = sizeof(yk_norm_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, 0, 1 }, { "gamma", YK__STATS, 0, 0 },
                           { "mean", YK__STATS, 0, 3 }, { "var", YK__STATS, 0, 3 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { "dgamma", YK__STATS, 0, 3 }, { "dbeta", YK__STATS, 0, 3 }, { 0 } },
  .attrs = attrs, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};
