/*
 * batch_norm_train.c - batch normalisation with the statistics of this batch, and its gradient.
 *
 * n is the number of elements a channel, var the biased variance, r = 1/sqrt(var + epsilon), xhat = (x - mean)*r; then
 * dbeta = sum dy, dgamma = sum dy*xhat, dx = gamma*r*(dy - mean(dy) - xhat*mean(dy*xhat)). An empty batch has mean and
 * variance 0. With act = RELU the operation ends in a relu, and its gradient begins with that of one.
 */
#include "ops/norm.h"

static const yk_attr attrs[] = { YK__REAL(yk_norm_attrs, epsilon, 1e-3, 0, YK__HUGE),
                                 YK__ENUM(yk_norm_attrs, act, YK_ACT_NONE, YK_ACT_NONE, YK_ACT_RELU), { 0 } };
static const yk_norm_attrs relu = { .act = YK_ACT_RELU }, wide = { .epsilon = 0.1 };

static yk_code infer(const yk_infer *c) {
  static const char *const names[] = { "gamma", "beta" };
  int64_t channels = -1;
  YK_TRY(yk__norm_check(c, 0, 1, 3, names, &channels));
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  c->out[0].dim[c->out[0].rank - 1] = channels;
  c->out[1] = c->out[2] = yk__per_channel(&c->in[0], channels);
  return YK_OK;
}

/* What reaches x through the outputs mean and var: dmean/n + 2*dvar*(x - mean)/n. */
static yk_value through_statistics(yk_grad *c, int rank) {
  yk_reduce_attrs rest = { .naxes = (uint32_t)(rank - 1), .mean = 1 };
  const yk_desc *x = yk_value_desc(c->g, c->in[0]);
  int wide_type = yk__stat_type(x->dtype);
  yk_value xs = c->in[0], sum = { 0 };
  for (int i = 0; i < rank - 1; i++) rest.axis[i] = i;
  if (x->dtype != wide_type) xs = YK__OPA(c, cast, &(yk_cast_attrs){ .dtype = wide_type }, 1, xs);
  if (c->dout[1].id) sum = YK__OPA(c, reduce_grad, &rest, 2, c->dout[1], xs);
  if (c->dout[2].id) {
    yk_value half = YK__OP2(c, mul, YK__OPA(c, reduce_grad, &rest, 2, c->dout[2], xs), YK__OP2(c, sub, xs, c->out[1]));
    yk_value whole = YK__OP2(c, add, half, half);
    sum = sum.id ? YK__OP2(c, add, sum, whole) : whole;
  }
  if (x->dtype != wide_type) sum = YK__OPA(c, cast, &(yk_cast_attrs){ .dtype = x->dtype }, 1, sum);
  return sum;
}

static yk_code grad(yk_grad *c) {
  const yk_norm_attrs *a = c->attrs;
  const yk_desc *x = yk_value_desc(c->g, c->in[0]);
  if (!x) return YK_OK;
  if (c->dout[0].id) {
    /* y is read only if there is an activation; x, which is kept anyway, stands in for it. */
    yk_value y = a->act ? c->out[0] : c->in[0];
    c->din[0] = YK__OPA(c, batch_norm_grad, a, 6, c->dout[0], c->in[0], c->in[1], c->out[1], c->out[2], y);
    c->din[1] = yk_output(c->g, c->din[0], 1);
    c->din[2] = yk_output(c->g, c->din[0], 2);
  }
  if (c->dout[1].id || c->dout[2].id) {
    yk_value more = through_statistics(c, x->rank);
    c->din[0] = c->din[0].id ? YK__OP2(c, add, c->din[0], more) : more;
  }
  return YK_OK;
}

static yk_code lower(yk_grad *c) {
  const yk_norm_attrs *a = c->attrs;
  yk_norm_attrs plain = { .epsilon = a->epsilon };
  yk_value y = YK__OPA(c, batch_norm_train, &plain, 3, c->in[0], c->in[1], c->in[2]);
  c->din[0] = yk__act_build(c->where, c->g, a->act, 0, y);
  c->din[1] = yk_output(c->g, y, 1);
  c->din[2] = yk_output(c->g, y, 2);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  const yk_norm_attrs *a = c->attrs;
  int64_t count = yk__desc_count(&c->din[0]), channels = c->dout[1].dim[0];
  double n = (double)yk__span(&c->din[0], 0, c->din[0].rank - 1);
  yk__ref_zero(c, 1);
  yk__ref_zero(c, 2);
  for (int64_t i = 0; i < count; i++) c->out[1][i % channels] += c->in[0][i] / n;
  for (int64_t i = 0; i < count; i++) {
    double d = c->in[0][i] - c->out[1][i % channels];
    c->out[2][i % channels] += d * d / n;
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t k = i % channels;
    double y = (c->in[0][i] - c->out[1][k]) / sqrt(c->out[2][k] + yk__norm_epsilon(a)) * c->in[1][k] + c->in[2][k];
    c->out[0][i] = yk__act_ref(a->act, 0, y);
  }
  return YK_OK;
}

#define SHAPES_8x5(T, S)   T "[8,5]; " S "[5]; " S "[5]"
#define SHAPES_16(T, S)    T "[2,3,4,16]; " S "[16]; " S "[16]"
#define SHAPES_3(T, S)     T "[2,3,5,3]; " S "[3]; " S "[3]"
#define SHAPES_19(T, S)    T "[4,3,19]; " S "[19]; " S "[19]"
#define SHAPES_64(T, S)    T "[1,4,4,64]; " S "[64]; " S "[64]"
#define SHAPES_1(T, S)     T "[6,1]; " S "[1]; " S "[1]"
#define SHAPES_EMPTY(T, S) T "[0,3,3,8]; " S "[8]; " S "[8]"
static const yk_case cases[] = {
  YK__STAT_CASES(SHAPES_8x5, NULL, 0, 0),
  YK__STAT_CASES(SHAPES_16, NULL, 0, 0),
  YK__STAT_CASES(SHAPES_3, &relu, 0, 0),
  YK__STAT_CASES(SHAPES_19, &wide, 0, 0),
  YK__STAT_CASES(SHAPES_64, &relu, 0, 0),
  YK__STAT_CASES(SHAPES_1, &wide, 0, 0),
  YK__STAT_CASES(SHAPES_EMPTY, NULL, 0, 0),
  { "f32[16,8]; f32[8]; f32[8]", &wide, 99, 101, 1e-3 },   /* mean far from zero */
  { 0 },
};

const yk_op yk__op_batch_norm_train = {
  .name = "batch_norm_train", .label = "FusedBatchNorm", .doc = "Batch normalisation by the mean and the biased variance of this batch.",
  .version = 1, .attr_bytes = sizeof(yk_norm_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { "gamma", YK__STATS, 0, 0 }, { "beta", YK__STATS, 0, 2 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "mean", YK__STATS, 0, 2 }, { "var", YK__STATS, 0, 2 }, { 0 } },
  .attrs = attrs, .infer = infer, .grad = grad, .lower = lower, .ref = ref, .cases = cases,
};

/* ---- batch_norm_grad: dy, x, gamma, mean, var, y -> dx, dgamma, dbeta --------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  static const char *const names[] = { "gamma", "mean", "var" };
  int64_t channels = -1;
  YK_TRY(yk__norm_check(c, 1, 2, 5, names, &channels));
  YK_TRY(yk__norm_same_shape(c, 0, 1, "dy", "x"));
  YK_TRY(yk__norm_same_shape(c, 5, 1, "y", "x"));
  c->out[0] = yk__as(&c->in[1], c->in[1].dtype);
  c->out[0].dim[c->out[0].rank - 1] = channels;
  c->out[1] = c->out[2] = yk__per_channel(&c->in[1], channels);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through batch_norm_train are not available");
}

static yk_code ref_grad(const yk_ref *c) {
  const yk_norm_attrs *a = c->attrs;
  const double *dy = c->in[0], *x = c->in[1], *gamma = c->in[2], *mean = c->in[3], *var = c->in[4], *y = c->in[5];
  int64_t count = yk__desc_count(&c->din[1]), channels = c->dout[1].dim[0];
  double n = (double)yk__span(&c->din[1], 0, c->din[1].rank - 1), eps = yk__norm_epsilon(a);
  double *dgamma = c->out[1], *dbeta = c->out[2];
  yk__ref_zero(c, 1);
  yk__ref_zero(c, 2);
  for (int64_t i = 0; i < count; i++) {
    int64_t k = i % channels;
    double d = a->act && !(y[i] > 0) ? 0 : dy[i];
    dbeta[k] += d;
    dgamma[k] += d * (x[i] - mean[k]) / sqrt(var[k] + eps);
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t k = i % channels;
    double d = a->act && !(y[i] > 0) ? 0 : dy[i], r = 1 / sqrt(var[k] + eps);
    c->out[0][i] = gamma[k] * r * (d - dbeta[k] / n - (x[i] - mean[k]) * r * dgamma[k] / n);
  }
  return YK_OK;
}

#define GRAD_SHAPES(T, S, x, c) T "[" x "]; " T "[" x "]; " S "[" c "]; " S "[" c "]; " S "[" c "]; " T "[" x "]"
#define GRAD_8x5(T, S)   GRAD_SHAPES(T, S, "8,5", "5")
#define GRAD_16(T, S)    GRAD_SHAPES(T, S, "2,3,4,16", "16")
#define GRAD_3(T, S)     GRAD_SHAPES(T, S, "2,3,5,3", "3")
#define GRAD_19(T, S)    GRAD_SHAPES(T, S, "4,3,19", "19")
#define GRAD_EMPTY(T, S) GRAD_SHAPES(T, S, "0,3,3,8", "8")
static const yk_case cases_grad[] = {
  YK__STAT_CASES(GRAD_8x5, NULL, 0.1, 2),
  YK__STAT_CASES(GRAD_16, NULL, 0.1, 2),
  YK__STAT_CASES(GRAD_3, &relu, 0.1, 2),
  YK__STAT_CASES(GRAD_19, &wide, 0.1, 2),
  YK__STAT_CASES(GRAD_EMPTY, NULL, 0.1, 2),
  { 0 },
};

const yk_op yk__op_batch_norm_grad = {
  .name = "batch_norm_grad", .label = "FusedBatchNormGrad", .doc = "Gradient of batch_norm_train.",
  .version = 1, .attr_bytes = sizeof(yk_norm_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, 0, 1 }, { "gamma", YK__STATS, 0, 0 },
                           { "mean", YK__STATS, 0, 3 }, { "var", YK__STATS, 0, 3 }, { "y", YK_FLOATS, 0, 1 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { "dgamma", YK__STATS, 0, 3 }, { "dbeta", YK__STATS, 0, 3 }, { 0 } },
  .attrs = attrs, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};
