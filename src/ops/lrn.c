/*
 * lrn.c - local response normalisation across channels, and its gradient.
 *
 * y_i = x_i * N_i^-beta with N_i = bias + alpha * sum over |j-i| <= radius of x_j^2, j cut off at the first and last
 * channel. alpha is not divided by the size of the window.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static const yk_attr attrs[] = {
  YK__INT(yk_lrn_attrs, radius, 5, 0, 1 << 20), YK__REAL(yk_lrn_attrs, bias, 1, -YK__HUGE, YK__HUGE),
  YK__REAL(yk_lrn_attrs, alpha, 1, -YK__HUGE, YK__HUGE), YK__REAL(yk_lrn_attrs, beta, 0.5, -YK__HUGE, YK__HUGE), { 0 },
};

static yk_lrn_attrs with_defaults(const yk_lrn_attrs *a) {
  return (yk_lrn_attrs){ a->radius ? a->radius : 5, a->bias != 0 ? a->bias : 1, a->alpha != 0 ? a->alpha : 1,
                         a->beta != 0 ? a->beta : 0.5 };
}

/* Sum of f[j] over the window around channel i of `channels`. */
static double around(const double *f, int64_t i, int64_t channels, int64_t radius) {
  double sum = 0;
  for (int64_t j = i - radius < 0 ? 0 : i - radius; j < channels && j <= i + radius; j++) sum += f[j];
  return sum;
}

static double norm(const yk_lrn_attrs *a, const double *x, int64_t i, int64_t channels) {
  double sum = 0;
  for (int64_t j = i - a->radius < 0 ? 0 : i - a->radius; j < channels && j <= i + a->radius; j++) sum += x[j] * x[j];
  return a->bias + a->alpha * sum;
}

static yk_code check_rank(const yk_desc *x) {
  if (x->rank < 1) return YK_FAIL(EINVAL, "x is a scalar, expected at least rank 1 [..., C]");
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  YK_TRY(check_rank(&c->in[0]));
  return yk__infer_same(c);
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, lrn_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_lrn_attrs a = with_defaults(c->attrs);
  int64_t n = yk__desc_count(&c->din[0]), channels = c->din[0].dim[c->din[0].rank - 1];
  for (int64_t i = 0; i < n; i++) {
    const double *row = c->in[0] + i / channels * channels;
    c->out[0][i] = c->in[0][i] * pow(norm(&a, row, i % channels, channels), -a.beta);
  }
  return YK_OK;
}

static const yk_lrn_attrs cifar = { .radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75 },
  alexnet = { .radius = 2, .bias = 2, .alpha = 1e-4, .beta = 0.75 }, strong = { .radius = 1, .bias = 0.5, .alpha = 0.3, .beta = 1.25 };
static const yk_case cases[] = {
  { "T[2,3,4,16]", NULL, 0, 0, 0 },   { "T[2,3,4,3]", NULL, 0, 0, 0 },    { "T[1,4,4,64]", &cifar, 0, 0, 0 },
  { "T[2,2,3,19]", &alexnet, 0, 0, 0 }, { "T[3,8]", &strong, 0, 0, 0 },   { "T[2,1]", &strong, 0, 0, 0 },
  { "T[0,3,4,8]", NULL, 0, 0, 0 },    { "T[1,2,2,64]", &cifar, -30, 30, 0 },
  { 0 },
};

const yk_op yk__op_lrn = {
  .name = "lrn", .label = "LRN", .doc = "Local response normalisation along the last axis.",
  .version = 1, .attr_bytes = sizeof(yk_lrn_attrs), .traits = YK_PURE,
  .in = yk__float1, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- lrn_grad: dy, x -> dx -------------------------------------------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  YK_TRY(check_rank(&c->in[0]));
  return yk__infer_same_all(c);
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through lrn are not available");
}

/* dx_k = dy_k * N_k^-beta - 2 alpha beta x_k * sum over |i-k| <= radius of dy_i x_i N_i^(-beta-1) */
static yk_code ref_grad(const yk_ref *c) {
  yk_lrn_attrs a = with_defaults(c->attrs);
  int64_t n = yk__desc_count(&c->din[0]), channels = c->din[0].dim[c->din[0].rank - 1];
  double *f = yk__calloc((size_t)(channels > 0 ? channels : 1), sizeof *f);
  if (!f) return YK_ENOMEM;
  for (int64_t row = 0; row < n; row += channels) {
    const double *dy = c->in[0] + row, *x = c->in[1] + row;
    for (int64_t i = 0; i < channels; i++) f[i] = dy[i] * x[i] * pow(norm(&a, x, i, channels), -a.beta - 1);
    for (int64_t k = 0; k < channels; k++)
      c->out[0][row + k] = dy[k] * pow(norm(&a, x, k, channels), -a.beta) -
                           2 * a.alpha * a.beta * x[k] * around(f, k, channels, a.radius);
  }
  yk__free(f);
  return YK_OK;
}

static const yk_case cases_grad[] = {
  { "T[2,3,4,16]; T[2,3,4,16]", NULL, 0, 0, 0 },       { "T[2,3,4,3]; T[2,3,4,3]", NULL, 0, 0, 0 },
  { "T[1,4,4,64]; T[1,4,4,64]", &cifar, 0, 0, 0 },     { "T[2,2,3,19]; T[2,2,3,19]", &alexnet, 0, 0, 0 },
  { "T[3,8]; T[3,8]", &strong, 0, 0, 0 },              { "T[2,1]; T[2,1]", &strong, 0, 0, 0 },
  { "T[0,3,4,8]; T[0,3,4,8]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_lrn_grad = {
  .name = "lrn_grad", .label = "LRNGrad", .doc = "Gradient of lrn.",
  .version = 1, .attr_bytes = sizeof(yk_lrn_attrs), .traits = YK_PURE,
  .in = yk__grad2, .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_lrn_at(const char *where, yk_graph *g, yk_value x, const yk_lrn_attrs *options) {
  return yk__build(where, g, &yk__op_lrn, options, 1, x);
}
