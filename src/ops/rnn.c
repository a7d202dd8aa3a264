/*
 * rnn.c - shape rules, activations and products that the recurrent operations share. The operations are in their own files.
 *
 * References take one sequence at a time and one step at a time, which is the definition; the order of sums is theirs.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include <string.h>
#include "ops/rnn.h"

#define COMMON(type)                                                                                  \
  YK__ENUM(type, activation, 0, YK_RNN_TANH, YK_RNN_LINEAR), YK__FLAG(type, go_backwards), YK__FLAG(type, zero_output)
#define GATES(type) YK__ENUM(type, recurrent_activation, 0, YK_RNN_SIGMOID, YK_RNN_HARD_SIGMOID_6)
const yk_attr yk__simple_rnn_attrs[] = { COMMON(yk_rnn_attrs), { 0 } };
const yk_attr yk__rnn_attrs[] = { COMMON(yk_rnn_attrs), GATES(yk_rnn_attrs), { 0 } };
const yk_attr yk__gru_attrs[] = { COMMON(yk_rnn_attrs), GATES(yk_rnn_attrs), YK__FLAG(yk_rnn_attrs, reset_before), { 0 } };

const yk_rnn_attrs yk__rnn_back = { .go_backwards = 1 };
const yk_rnn_attrs yk__rnn_hard = { .recurrent_activation = YK_RNN_HARD_SIGMOID };
const yk_rnn_attrs yk__rnn_relu = { .activation = YK_RNN_RELU, .recurrent_activation = YK_RNN_HARD_SIGMOID_6 };
const yk_rnn_attrs yk__rnn_zero = { .zero_output = 1, .go_backwards = 1 };

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static int64_t *dim_named(yk_rnn *r, char name) { return name == 'N' ? &r->n : name == 'T' ? &r->t : &r->u; }

yk_code yk__rnn_meet(const yk_infer *c, uint16_t i, const char *name, const char *dims, int times, yk_rnn *r) {
  char text[YK__DESC_TEXT];
  int rank = (int)strlen(dims);
  if (i >= c->nin || c->in[i].dtype == YK_NONE) return YK_OK;
  const yk_desc *d = &c->in[i];
  if (d->rank != rank) return YK_FAIL(EINVAL, "%s is %s, expected rank %d", name, yk__desc_text(d, text, sizeof text), rank);
  for (int k = 0; k < rank; k++) {
    int64_t *known = dim_named(r, dims[k]), by = k == rank - 1 && times > 1 ? times : 1;
    if (d->dim[k] < 0) continue;
    if (d->dim[k] % by != 0 || yk__dims_clash(*known, d->dim[k] / by))
      return YK_FAIL(EINVAL, "%s is %s, but dim %d is %lld times %c and %c is %lld in the inputs before", name,
                     yk__desc_text(d, text, sizeof text), k, (long long)by, dims[k], dims[k], (long long)*known);
    *known = d->dim[k] / by;
  }
  return YK_OK;
}

yk_desc yk__rnn_desc(const yk_infer *c, const yk_rnn *r, int times) {
  yk_desc d = { .dtype = c->in[0].dtype, .rank = times ? 3 : 2, .dim = { r->n, times ? r->t : r->u, 0 } };
  if (times) d.dim[2] = r->u < 0 ? -1 : r->u * times;
  return d;
}

/* ---- formulae ----------------------------------------------------------------------------------------------------- */

static double slope_of(const yk_rnn_attrs *a) { return a->recurrent_activation == YK_RNN_HARD_SIGMOID ? 0.2 : 1.0 / 6; }

double yk__rnn_act(const yk_rnn_attrs *a, double x) {
  if (a->activation == YK_RNN_TANH) return tanh(x);
  return a->activation == YK_RNN_RELU && x < 0 ? 0 : x;
}

double yk__rnn_gate(const yk_rnn_attrs *a, double x) {
  if (a->recurrent_activation == YK_RNN_SIGMOID) return 1 / (1 + exp(-x));
  return fmin(fmax(slope_of(a) * x + 0.5, 0), 1);
}

double yk__rnn_act_slope(const yk_rnn_attrs *a, double y) {
  if (a->activation == YK_RNN_TANH) return 1 - y * y;
  return a->activation == YK_RNN_LINEAR || y > 0;
}

double yk__rnn_gate_slope(const yk_rnn_attrs *a, double y) {
  if (a->recurrent_activation == YK_RNN_SIGMOID) return y * (1 - y);
  return y > 0 && y < 1 ? slope_of(a) : 0;
}

double yk__rnn_forward(const double *h, const double *r, int64_t units, int64_t columns, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < units; k++) sum += h[k] * r[k * columns + column];
  return sum;
}

double yk__rnn_backward(const double *d, const double *r, int64_t columns, int64_t from, int64_t to, int64_t row) {
  double sum = 0;
  for (int64_t k = from; k < to; k++) sum += r[row * columns + k] * d[k];
  return sum;
}

int64_t yk__rnn_first(const yk_rnn_attrs *a, const double *mask, int64_t i, int64_t steps) {
  int64_t first = 0;
  while (mask && first < steps && mask[i * steps + yk__rnn_step(a, steps, first)] == 0) first++;
  return first;
}

/* ---- products ------------------------------------------------------------------------------------------------------ */

static yk_value flat(const char *where, yk_graph *g, yk_value x, int64_t columns) {
  return yk_reshape_at(where, g, x, YK_SHAPE(-1, columns));
}

yk_value yk__rnn_outer(yk_grad *c, yk_value left, yk_value right) {
  const yk_desc *l = yk_value_desc(c->g, left), *r = yk_value_desc(c->g, right);
  const yk_matmul_attrs turned = { .transpose_a = 1 };
  if (!l || !r) return (yk_value){ 0 };
  if (l->dim[2] <= 0 || r->dim[2] <= 0)
    return YK__OPA(c, reduce_sum, (&(yk_reduce_attrs){ .naxes = 1 }), 1, YK__OPA(c, matmul, &turned, 2, left, right));
  const int64_t p = l->dim[2], q = r->dim[2];
  return YK__OPA(c, matmul, &turned, 2, flat(c->where, c->g, left, p), flat(c->where, c->g, right, q));
}

yk_value yk__rnn_project(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value bias) {
  const yk_desc *dx = yk_value_desc(g, x), *dk = yk_value_desc(g, kernel);
  yk_shape back = YK_SHAPE(-1, -1, -1);
  if (!dx || !dk) return (yk_value){ 0 };
  if (dx->rank != 3 || dk->rank != 2)
    return yk_graph_fail_at(where, g, YK_EINVAL, "a recurrent layer takes x of rank 3 [N, T, C] and a kernel of rank 2, got ranks %u and %u",
                            dx->rank, dk->rank);
  const int64_t n = dx->dim[0], t = dx->dim[1], channels = dx->dim[2] >= 0 ? dx->dim[2] : dk->dim[0], columns = dk->dim[1];
  /* As one matrix: its gradient is one product, not one a sequence. */
  const bool as_matrix = channels > 0 && columns > 0 && (n > 0 || t > 0);
  if (as_matrix) {
    x = flat(where, g, x, channels);
    back.dim[0] = t > 0 ? -1 : n;
    back.dim[1] = t > 0 ? t : -1;
    back.dim[2] = columns;
  }
  yk_value z = yk_matmul_at(where, g, x, kernel, NULL);
  if (bias.id) z = yk_bias_add_at(where, g, z, bias);
  return as_matrix ? yk_reshape_at(where, g, z, back) : z;
}
