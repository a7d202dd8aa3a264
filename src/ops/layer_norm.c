/*
 * layer_norm.c - normalisation of each row by its own mean and variance, and its gradient.
 *
 * A row is the last axis, of C elements; rstd = 1/sqrt(biased variance + epsilon). With xhat = (x - mean)*rstd and
 * d = dy*gamma: dx = rstd*(d - mean(d) - xhat*mean(d*xhat)), means over the row; dgamma and dbeta sum over the rows.
 */
#include <yoke/nn.h>
#include "ops/norm.h"

static const yk_attr attrs[] = { YK__REAL(yk_norm_attrs, epsilon, 1e-3, 0, YK__HUGE), { 0 } };
static const yk_norm_attrs wide = { .epsilon = 0.1 };

/* Description of mean and rstd: x without its last axis. */
static yk_desc row_stat(const yk_desc *x) {
  yk_desc r = yk__as(x, yk__stat_type(x->dtype));
  r.dim[--r.rank] = 0;
  return r;
}

static yk_code infer(const yk_infer *c) {
  static const char *const names[] = { "gamma", "beta" };
  int64_t channels = -1;
  YK_TRY(yk__norm_check(c, 0, 1, 3, names, &channels));
  if (channels == 0) return YK_FAIL(EINVAL, "x has rows of 0 elements, expected at least 1");
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  c->out[0].dim[c->out[0].rank - 1] = channels;
  c->out[1] = c->out[2] = row_stat(&c->in[0]);
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  if (c->dout[1].id || c->dout[2].id)
    return YK_FAIL(EUNSUPPORTED, "gradients through its outputs mean and rstd are not available");
  if (!c->dout[0].id) return YK_OK;
  c->din[0] = YK__OPA(c, layer_norm_grad, c->attrs, 5, c->dout[0], c->in[0], c->in[1], c->out[1], c->out[2]);
  c->din[1] = yk_output(c->g, c->din[0], 1);
  c->din[2] = yk_output(c->g, c->din[0], 2);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t rows = yk__desc_count(&c->dout[1]), n = c->din[1].dim[0];
  for (int64_t r = 0; r < rows; r++) {
    const double *x = c->in[0] + r * n;
    double mean = 0, var = 0, rstd;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
    rstd = 1 / sqrt(var + yk__norm_epsilon(c->attrs));
    for (int64_t i = 0; i < n; i++) c->out[0][r * n + i] = (x[i] - mean) * rstd * c->in[1][i] + c->in[2][i];
    c->out[1][r] = mean;
    c->out[2][r] = rstd;
  }
  return YK_OK;
}

#define SHAPES(T, S, x, c) T "[" x "]; " S "[" c "]; " S "[" c "]"
#define SHAPES_5(T, S)     SHAPES(T, S, "8,5", "5")
#define SHAPES_16(T, S)    SHAPES(T, S, "2,3,16", "16")
#define SHAPES_19(T, S)    SHAPES(T, S, "2,2,3,19", "19")
#define SHAPES_EMPTY(T, S) SHAPES(T, S, "0,8", "8")
static const yk_case cases[] = {
  YK__STAT_CASES(SHAPES_5, NULL, 0, 0),
  YK__STAT_CASES(SHAPES_16, &wide, 0, 0),
  YK__STAT_CASES(SHAPES_19, NULL, 0, 0),
  YK__STAT_CASES(SHAPES_EMPTY, NULL, 0, 0),
  { 0 },
};

const yk_op yk__op_layer_norm = {
  .name = "layer_norm", .label = "LayerNorm", .doc = "Normalisation of each row (last axis) by its own mean and variance.",
  .version = 1, .attr_bytes = sizeof(yk_norm_attrs), .traits = YK_PURE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { "gamma", YK__STATS, 0, 0 }, { "beta", YK__STATS, 0, 2 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "mean", YK__STATS, 0, 2 }, { "rstd", YK__STATS, 0, 2 }, { 0 } },
  .attrs = attrs, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- layer_norm_grad: dy, x, gamma, mean, rstd -> dx, dgamma, dbeta --------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  static const char *const names[] = { "gamma" }, *const stat[] = { "mean", "rstd" };
  char tx[YK__DESC_TEXT], ts[YK__DESC_TEXT], tw[YK__DESC_TEXT];
  int64_t channels = -1;
  yk_desc want;
  YK_TRY(yk__norm_check(c, 1, 2, 3, names, &channels));
  YK_TRY(yk__norm_same_shape(c, 0, 1, "dy", "x"));
  want = row_stat(&c->in[1]);
  for (uint16_t i = 3; i < 5; i++) {
    int fits = c->in[i].rank == want.rank && c->in[i].dtype == want.dtype;
    for (int k = 0; fits && k < want.rank; k++) fits = !yk__dims_clash(c->in[i].dim[k], want.dim[k]);
    if (!fits)
      return YK_FAIL(EINVAL, "%s is %s, expected %s for x %s", stat[i - 3], yk__desc_text(&c->in[i], ts, sizeof ts),
                     yk__desc_text(&want, tw, sizeof tw), yk__desc_text(&c->in[1], tx, sizeof tx));
  }
  c->out[0] = yk__as(&c->in[1], c->in[1].dtype);
  c->out[0].dim[c->out[0].rank - 1] = channels;
  c->out[1] = c->out[2] = yk__per_channel(&c->in[1], channels);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through layer_norm are not available");
}

static yk_code ref_grad(const yk_ref *c) {
  const double *gamma = c->in[2];
  int64_t rows = yk__desc_count(&c->din[3]), n = c->din[2].dim[0];
  yk__ref_zero(c, 1);
  yk__ref_zero(c, 2);
  for (int64_t r = 0; r < rows; r++) {
    const double *dy = c->in[0] + r * n, *x = c->in[1] + r * n;
    double mean = c->in[3][r], rstd = c->in[4][r], mean_d = 0, mean_dx = 0;
    for (int64_t i = 0; i < n; i++) {
      double xhat = (x[i] - mean) * rstd;
      mean_d += dy[i] * gamma[i] / (double)n;
      mean_dx += dy[i] * gamma[i] * xhat / (double)n;
      c->out[1][i] += dy[i] * xhat;
      c->out[2][i] += dy[i];
    }
    for (int64_t i = 0; i < n; i++) c->out[0][r * n + i] = rstd * (dy[i] * gamma[i] - mean_d - (x[i] - mean) * rstd * mean_dx);
  }
  return YK_OK;
}

#define GRAD_SHAPES(T, S, rows, c) T "[" rows "," c "]; " T "[" rows "," c "]; " S "[" c "]; " S "[" rows "]; " S "[" rows "]"
#define GRAD_5(T, S)     GRAD_SHAPES(T, S, "8", "5")
#define GRAD_16(T, S)    GRAD_SHAPES(T, S, "2,3", "16")
#define GRAD_19(T, S)    GRAD_SHAPES(T, S, "2,2,3", "19")
#define GRAD_EMPTY(T, S) GRAD_SHAPES(T, S, "0", "8")
static const yk_case cases_grad[] = {
  YK__STAT_CASES(GRAD_5, NULL, 0.1, 2),
  YK__STAT_CASES(GRAD_16, &wide, 0.1, 2),
  YK__STAT_CASES(GRAD_19, NULL, 0.1, 2),
  YK__STAT_CASES(GRAD_EMPTY, NULL, 0.1, 2),
  { 0 },
};

const yk_op yk__op_layer_norm_grad = {
  .name = "layer_norm_grad", .label = "LayerNormGrad", .doc = "Gradient of layer_norm.",
  .version = 1, .attr_bytes = sizeof(yk_norm_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, 0, 1 }, { "gamma", YK__STATS, 0, 0 },
                           { "mean", YK__STATS, 0, 3 }, { "rstd", YK__STATS, 0, 3 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { "dgamma", YK__STATS, 0, 3 }, { "dbeta", YK__STATS, 0, 3 }, { 0 } },
  .attrs = attrs, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_layer_norm_at(const char *where, yk_graph *g, yk_value x, yk_value gamma, yk_value beta, const yk_norm_attrs *options) {
  return yk__build(where, g, &yk__op_layer_norm, options, 3, x, gamma, beta);
}
