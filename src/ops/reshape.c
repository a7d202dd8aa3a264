/*
 * reshape.c - the same elements in another shape, given as numbers or by another value. Views: the bytes stay.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

/* The dim of -1, from the number of elements; -1 stays if that is not known yet. */
static yk_code fill_in(const yk_desc *x, int free_dim, yk_desc *out) {
  int64_t count = yk__desc_count(x), rest = 1;
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  for (int k = 0; k < out->rank; k++)
    if (k != free_dim) rest *= out->dim[k];
  if (count < 0) return YK_OK;
  if (free_dim >= 0 && rest > 0 && count % rest == 0) out->dim[free_dim] = count / rest;
  else if (free_dim >= 0 || rest != count)
    return YK_FAIL(EINVAL, "%s has %lld elements, which do not fit %s", yk__desc_text(x, a, sizeof a), (long long)count,
                   yk__desc_text(out, b, sizeof b));
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_reshape_attrs a = YK__ATTRS(yk_reshape_attrs, c);
  yk_desc r = { .dtype = c->in[0].dtype };
  int free_dim = -1;
  if (a.rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "rank %u, at most %d is possible", a.rank, YK_MAX_RANK);
  r.rank = (uint8_t)a.rank;
  for (int k = 0; k < r.rank; k++) {
    r.dim[k] = a.dim[k];
    if (a.dim[k] >= 0) continue;
    if (a.dim[k] != -1 || free_dim >= 0)
      return YK_FAIL(EINVAL, "dim %d is %lld; expected sizes, and -1 at most once", k, (long long)a.dim[k]);
    free_dim = k;
  }
  YK_TRY(fill_in(&c->in[0], free_dim, &r));
  c->out[0] = r;
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, reshape_like, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_reshape_attrs, rank, 0, 0, YK_MAX_RANK), YK__DIMS(yk_reshape_attrs, dim, YK_MAX_RANK, -1), { 0 }
};
static const yk_reshape_attrs flat = { 1, { -1 } }, three = { 3, { 7, -1, 2 } }, given = { 2, { 5, 28 } }, none = { 2, { 0, 5 } };
static const yk_case cases[] = {
  { "T[]", &flat, 0, 0, 0 }, { "T[1,1]", NULL, 0, 0, 0 }, { "T[33]", &flat, 0, 0, 0 }, { "T[4,7,5]", &flat, 0, 0, 0 },
  { "T[4,7,5]", &three, 0, 0, 0 }, { "T[4,7,5]", &given, 0, 0, 0 }, { "T[3,0]", &none, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_reshape = {
  .name = "reshape", .label = "Reshape", .doc = "the same elements in another shape",
  .version = 1, .attr_bytes = sizeof(yk_reshape_attrs), .traits = YK_PURE | YK_VIEW, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = yk__ref_copy, .cases = cases,
};

yk_value yk_reshape_at(const char *where, yk_graph *g, yk_value x, yk_shape shape) {
  yk_reshape_attrs a = { .rank = shape.rank };
  memcpy(a.dim, shape.dim, sizeof a.dim);
  return yk__build(where, g, &yk__op_reshape, &a, 1, x);
}

yk_value yk_flatten_at(const char *where, yk_graph *g, yk_value x) {
  const yk_desc *d = yk_value_desc(g, x);
  int64_t features = d && d->rank > 0 ? yk__span(d, 1, d->rank) : 1;
  for (int k = 1; d && k < d->rank; k++)
    if (d->dim[k] < 0) features = -1;
  if (d && d->rank > 0 && d->dim[0] < 0 && features < 0)
    return yk_graph_fail_at(where, g, YK_EINVAL, "flatten: the batch and another dimension are unknown; only one of them may be");
  if (!d || d->rank == 0) return yk_reshape_at(where, g, x, YK_SHAPE(1, 1));
  return yk_reshape_at(where, g, x, YK_SHAPE(d->dim[0], features));
}

/* ---- reshape_like ------------------------------------------------------------------------------------------------------- */

static yk_code like_infer(const yk_infer *c) {
  int64_t a = yk__desc_count(&c->in[0]), b = yk__desc_count(&c->in[1]);
  char t[YK__DESC_TEXT], u[YK__DESC_TEXT];
  if (yk__dims_clash(a, b))
    return YK_FAIL(EINVAL, "%s and %s differ in the number of elements", yk__desc_text(&c->in[0], t, sizeof t),
                   yk__desc_text(&c->in[1], u, sizeof u));
  return yk__infer_like(c);
}

static const yk_case like_cases[] = {
  { "T[]; T[1,1]", NULL, 0, 0, 0 }, { "T[33]; T[3,11]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[140]", NULL, 0, 0, 0 },
  { "T[4,7,5]; T[5,4,7]", NULL, 0, 0, 0 }, { "T[0,3]; T[7,0]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_reshape_like = {
  .name = "reshape_like", .label = "ReshapeLike", .doc = "the elements of x in the shape of like",
  .version = 1, .traits = YK_PURE | YK_VIEW,
  .in = yk__any_like, .out = yk__out1, .infer = like_infer, .grad = grad, .ref = yk__ref_copy, .cases = like_cases,
};

yk_value yk_reshape_like_at(const char *where, yk_graph *g, yk_value x, yk_value like) {
  return yk__build(where, g, &yk__op_reshape_like, NULL, 2, x, like);
}
