/*
 * transpose.c - axes in another order: axis k of the result is axis perm[k] of x. The gradient is the transpose by the
 * inverse permutation.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

/* The permutation as given, or the axes in reverse order. */
static yk_code permutation(const yk_transpose_attrs *a, int rank, int *perm) {
  uint32_t seen = 0;
  if (a->rank != 0 && a->rank != (uint32_t)rank)
    return YK_FAIL(EINVAL, "perm has %u entries, but the input has %d axes", a->rank, rank);
  for (int k = 0; k < rank; k++) {
    perm[k] = a->rank ? a->perm[k] : rank - 1 - k;
    if (perm[k] < 0 || perm[k] >= rank || (seen & (1u << perm[k])))
      return YK_FAIL(EINVAL, "perm[%d] is %d; expected each of 0 to %d once", k, perm[k], rank - 1);
    seen |= 1u << perm[k];
  }
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_transpose_attrs a = YK__ATTRS(yk_transpose_attrs, c);
  int perm[YK_MAX_RANK];
  yk_desc r = yk__as(&c->in[0], c->in[0].dtype);
  YK_TRY(permutation(&a, r.rank, perm));
  for (int k = 0; k < r.rank; k++) r.dim[k] = c->in[0].dim[perm[k]];
  c->out[0] = r;
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_transpose_attrs a = YK__ATTRS(yk_transpose_attrs, c);
  int64_t to[YK_MAX_RANK], from[YK_MAX_RANK] = { 0 }, n = yk__desc_count(&c->dout[0]);
  int perm[YK_MAX_RANK];
  YK_TRY(permutation(&a, c->din[0].rank, perm));
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&c->dout[0], i, to);
    for (int k = 0; k < c->dout[0].rank; k++) from[perm[k]] = to[k];
    c->out[0][i] = c->in[0][yk__ravel(&c->din[0], from)];
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_transpose_attrs a = YK__ATTRS(yk_transpose_attrs, c), inverse = { .rank = a.rank };
  for (uint32_t k = 0; k < a.rank; k++) inverse.perm[a.perm[k]] = (int32_t)k;
  c->din[0] = YK__OPA(c, transpose, &inverse, 1, c->dout[0]);   /* reversing is its own inverse */
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_transpose_attrs, rank, 0, 0, YK_MAX_RANK),
  YK__INTS(yk_transpose_attrs, perm, YK_MAX_RANK, 0, 0, YK_MAX_RANK - 1), { 0 }
};
static const yk_transpose_attrs turn = { 3, { 2, 0, 1 } }, nchw = { 4, { 0, 3, 1, 2 } }, same = { 2, { 0, 1 } };
static const yk_case cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[33]", NULL, 0, 0, 0 }, { "T[7,33]", NULL, 0, 0, 0 }, { "T[4,7,5]", &turn, 0, 0, 0 },
  { "T[2,5,7,3]", &nchw, 0, 0, 0 }, { "T[7,5]", &same, 0, 0, 0 }, { "T[2,3,4,5]", NULL, 0, 0, 0 }, { "T[3,0]", NULL, 0, 0, 0 },
  { 0 }
};

const yk_op yk__op_transpose = {
  .name = "transpose", .label = "Transpose", .doc = "x with its axes in another order",
  .version = 1, .attr_bytes = sizeof(yk_transpose_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_transpose_at(const char *where, yk_graph *g, yk_value x, const int32_t *perm) {
  yk_transpose_attrs a = { 0 };
  const yk_desc *d = yk_value_desc(g, x);
  if (perm && d) {
    a.rank = d->rank;
    memcpy(a.perm, perm, d->rank * sizeof *perm);
  }
  return yk__build(where, g, &yk__op_transpose, &a, 1, x);
}
