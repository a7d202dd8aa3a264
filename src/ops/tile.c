/*
 * tile.c - a value repeated along its axes, and its gradient. The gradient adds up what comes back to all the copies
 * of an element.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

static yk_code tiled(const yk_tile_attrs *a, const yk_desc *x, yk_desc *out) {
  yk_desc r = yk__as(x, x->dtype);
  if (a->rank != x->rank) return YK_FAIL(EINVAL, "multiple has %u entries, but the tensor has %u axes", a->rank, x->rank);
  for (int k = 0; k < x->rank; k++) {
    if (a->multiple[k] < 0) return YK_FAIL(EINVAL, "multiple[%d] is %lld, expected at least 0", k, (long long)a->multiple[k]);
    if (x->dim[k] >= 0) r.dim[k] = x->dim[k] * a->multiple[k];
  }
  *out = r;
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_tile_attrs a = YK__ATTRS(yk_tile_attrs, c);
  return tiled(&a, &c->in[0], &c->out[0]);
}

/* Element of x that element i of the tiled tensor repeats. */
static int64_t origin(const yk_desc *big, const yk_desc *x, int64_t i) {
  int64_t index[YK_MAX_RANK];
  yk__unravel(big, i, index);
  for (int k = 0; k < x->rank; k++) index[k] %= x->dim[k];
  return yk__ravel(x, index);
}

static yk_code ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = c->in[0][origin(&c->dout[0], &c->din[0], i)];
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, tile_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_tile_attrs, rank, 0, 0, YK_MAX_RANK), YK__DIMS(yk_tile_attrs, multiple, YK_MAX_RANK, 0), { 0 }
};
static const yk_tile_attrs three = { 1, { 3 } }, both = { 2, { 2, 3 } }, middle = { 3, { 1, 2, 1 } }, none = { 2, { 0, 2 } };
static const yk_case cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[33]", &three, 0, 0, 0 }, { "T[4,7]", &both, 0, 0, 0 }, { "T[4,7,5]", &middle, 0, 0, 0 },
  { "T[4,7]", &none, 0, 0, 0 }, { "T[3,0]", &both, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_tile = {
  .name = "tile", .label = "Tile", .doc = "x repeated along its axes",
  .version = 1, .attr_bytes = sizeof(yk_tile_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_tile_at(const char *where, yk_graph *g, yk_value x, const int64_t *multiple) {
  const yk_desc *d = yk_value_desc(g, x);
  yk_tile_attrs a = { .rank = d ? d->rank : 0 };
  memcpy(a.multiple, multiple, a.rank * sizeof *multiple);
  return yk__build(where, g, &yk__op_tile, &a, 1, x);
}

/* ---- tile_grad: dy, like x -> dx ------------------------------------------------------------------------------------------ */

static yk_code grad_infer(const yk_infer *c) {
  yk_tile_attrs a = YK__ATTRS(yk_tile_attrs, c);
  yk_desc want, merged, dy = yk__as(&c->in[0], c->in[1].dtype);
  YK_TRY(tiled(&a, &c->in[1], &want));
  YK_TRY(yk__shape_merge(&dy, &want, &merged));
  return yk__infer_like(c);
}

static yk_code grad_ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->din[0]);
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < n; i++) c->out[0][origin(&c->din[0], &c->dout[0], i)] += c->in[0][i];
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, tile, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static const yk_case grad_cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[99]; T[33]", &three, 0, 0, 0 }, { "T[8,21]; T[4,7]", &both, 0, 0, 0 },
  { "T[4,14,5]; T[4,7,5]", &middle, 0, 0, 0 }, { "T[0,14]; T[4,7]", &none, 0, 0, 0 }, { "T[6,0]; T[3,0]", &both, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_tile_grad = {
  .name = "tile_grad", .label = "TileGrad", .doc = "dy added up over the copies",
  .version = 1, .attr_bytes = sizeof(yk_tile_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY, .attrs = attrs,
  .in = yk__grad_like, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
