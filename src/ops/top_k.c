/*
 * top_k.c - the k largest elements along the last axis and where they were, in descending order, equal ones by lower
 * index. The gradient puts what comes back at those places.
 */
#include <yoke/math.h>
#include "common.h"

static int k_of(const void *attrs) {
  int k = attrs ? ((const yk_top_k_attrs *)attrs)->k : 0;
  return k ? k : 1;
}

static yk_code infer(const yk_infer *c) {
  int k = k_of(c->attrs), rank = c->in[0].rank;
  if (rank < 1) return YK_FAIL(EINVAL, "the input is a scalar, expected at least one axis");
  if (c->in[0].dim[rank - 1] >= 0 && c->in[0].dim[rank - 1] < k)
    return YK_FAIL(EINVAL, "k is %d, but the last axis has %lld elements", k, (long long)c->in[0].dim[rank - 1]);
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  c->out[0].dim[rank - 1] = k;
  c->out[1] = yk__as(&c->out[0], YK_I32);
  return YK_OK;
}

/* Does element i come before element j? A NaN counts as the smallest. */
static int before(const double *x, int64_t i, int64_t j) {
  double a = isnan(x[i]) ? -INFINITY : x[i], b = isnan(x[j]) ? -INFINITY : x[j];
  return a > b || (a == b && i < j);
}

static yk_code ref(const yk_ref *c) {
  int k = k_of(c->attrs), rank = c->din[0].rank;
  int64_t width = c->din[0].dim[rank - 1], rows = yk__span(&c->din[0], 0, rank - 1);
  for (int64_t r = 0; r < rows; r++) {
    const double *x = c->in[0] + r * width;
    for (int64_t i = 0; i < width; i++) {
      int64_t place = 0;
      for (int64_t j = 0; j < width; j++) place += before(x, j, i);
      if (place >= k) continue;
      c->out[0][r * k + place] = x[i];
      c->out[1][r * k + place] = (double)i;
    }
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  if (c->dout[0].id)
    c->din[0] = YK__OPA(c, top_k_grad, c->attrs, 3, c->dout[0], yk_output(c->g, c->out[0], 1), c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = { YK__INT(yk_top_k_attrs, k, 1, 1, INT32_MAX), { 0 } };
static const yk_port out[] = { { "values", YK_NUMBERS, 0, 0 }, { "indices", YK_T(YK_I32), 0, 0 }, { 0 } };
static const yk_top_k_attrs three = { 3 }, all = { 7 };
static const yk_case cases[] = {
  { "T[33]", NULL, 0, 100, 0 }, { "T[33]", &three, 0, 5, 0 }, { "T[4,7]", &three, 0, 100, 0 }, { "T[2,3,7]", &all, 0, 100, 0 },
  { "T[0,7]", &three, 0, 1, 0 }, { 0 }
};

const yk_op yk__op_top_k = {
  .name = "top_k", .label = "TopKV2", .doc = "the k largest elements along the last axis, and their indices",
  .version = 1, .attr_bytes = sizeof(yk_top_k_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__number1, .out = out, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_top_k_at(const char *where, yk_graph *g, yk_value x, int k, yk_value both[2]) {
  both[0] = yk__build(where, g, &yk__op_top_k, &(yk_top_k_attrs){ k }, 1, x);
  both[1] = yk_output(g, both[0], 1);
  return yk__outputs(g, 2, both);
}

/* ---- top_k_grad: dy, indices, like x -> dx -------------------------------------------------------------------------------- */

static yk_code grad_infer(const yk_infer *c) {
  yk_desc a = yk__as(&c->in[0], YK_I32), b = yk__as(&c->in[1], YK_I32), merged;
  int rank = c->in[2].rank;
  YK_TRY(yk__shape_merge(&a, &b, &merged));
  if (merged.rank != rank || rank < 1)
    return YK_FAIL(EINVAL, "dy has rank %u, x has rank %d; expected the same, at least 1", merged.rank, rank);
  for (int k = 0; k + 1 < rank; k++)
    if (yk__dims_clash(merged.dim[k], c->in[2].dim[k]))
      return YK_FAIL(EINVAL, "axis %d of dy has %lld elements, of x %lld", k, (long long)merged.dim[k],
                     (long long)c->in[2].dim[k]);
  return yk__infer_like(c);
}

static yk_code grad_ref(const yk_ref *c) {
  int rank = c->din[2].rank;
  int64_t width = c->din[2].dim[rank - 1], k = c->din[0].dim[rank - 1], n = yk__desc_count(&c->din[0]);
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = (int64_t)c->in[1][i];
    if (at < 0 || at >= width)
      return YK_FAIL(EINVAL, "top_k_grad: index %lld is outside [0, %lld)", (long long)at, (long long)width);
    c->out[0][i / k * width + at] += c->in[0][i];
  }
  return YK_OK;
}

/* Pick along the last axis, row by row: multiply by one-hot rows and sum. Needs the width as a number. */
static yk_code grad_grad(yk_grad *c) {
  const yk_desc *x = yk_value_desc(c->g, c->in[2]);
  if (!x || x->dim[x->rank - 1] < 0 || x->rank >= YK_MAX_RANK)
    return YK_FAIL(EUNSUPPORTED, "top_k has a second derivative only where the last dim is known and the rank below %d",
                   YK_MAX_RANK);
  yk_one_hot_attrs rows = { .depth = x->dim[x->rank - 1], .dtype = x->dtype };
  yk_value wide = YK__OPA(c, expand_dims, (&(yk_axes_attrs){ 1, { -2 } }), 1, c->dout[0]);
  yk_value picked = YK__OP2(c, mul, wide, YK__OPA(c, one_hot, &rows, 1, c->in[1]));
  c->din[0] = YK__OPA(c, reduce_sum, (&(yk_reduce_attrs){ .naxes = 1, .axis = { -1 } }), 1, picked);
  return YK_OK;
}

static const yk_port grad_in[] = {
  { "dy", YK_FLOATS, 0, 0 }, { "indices", YK_T(YK_I32), YK_PORT_NODIFF, 0 },
  { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 }
};
static const yk_case grad_cases[] = {
  { "T[1]; i32[1]; T[33]", NULL, 0, 6, 0 }, { "T[4,1]; i32[4,1]; T[4,7]", NULL, 0, 6, 0 },
  { "T[2,5,3]; i32[2,5,3]; T[2,5,7]", &three, 0, 6, 0 }, { "T[0,3]; i32[0,3]; T[0,7]", &three, 0, 6, 0 }, { 0 }
};

const yk_op yk__op_top_k_grad = {
  .name = "top_k_grad", .label = "TopKGrad", .doc = "dy at the indices, zero elsewhere",
  .version = 1, .attr_bytes = sizeof(yk_top_k_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY, .attrs = attrs,
  .in = grad_in, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
