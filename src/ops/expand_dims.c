/*
 * expand_dims.c - dims of 1 put in and taken out. Views: the bytes stay, and gradients go back through reshape_like.
 */
#include <yoke/math.h>
#include "common.h"

static const yk_attr attrs[] = {
  YK__INT(yk_axes_attrs, naxes, 0, 0, YK_MAX_RANK),
  YK__INTS(yk_axes_attrs, axis, YK_MAX_RANK, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), { 0 }
};

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, reshape_like, c->dout[0], c->in[0]);
  return YK_OK;
}

static yk_code expand_infer(const yk_infer *c) {
  yk_axes_attrs a = YK__ATTRS(yk_axes_attrs, c);
  int rank = c->in[0].rank + (int)a.naxes, from = 0;
  yk_desc r = { .dtype = c->in[0].dtype };
  uint32_t bits = 0;
  if (a.naxes == 0) return YK_FAIL(EINVAL, "no axes given");
  if (rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "the result would have rank %d, at most %d is possible", rank, YK_MAX_RANK);
  YK_TRY(yk__axes(a.naxes, a.axis, rank, &bits));
  for (int k = 0; k < rank; k++) r.dim[k] = (bits >> k) & 1u ? 1 : c->in[0].dim[from++];
  r.rank = (uint8_t)rank;
  c->out[0] = r;
  return YK_OK;
}

static const yk_axes_attrs first = { 1, { 0 } }, last = { 1, { -1 } }, two = { 2, { 1, -1 } };
static const yk_case expand_cases[] = {
  { "T[]", &first, 0, 0, 0 }, { "T[33]", &last, 0, 0, 0 }, { "T[4,7]", &two, 0, 0, 0 }, { "T[3,0]", &first, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_expand_dims = {
  .name = "expand_dims", .label = "ExpandDims", .doc = "x with dims of 1 inserted",
  .version = 1, .attr_bytes = sizeof(yk_axes_attrs), .traits = YK_PURE | YK_VIEW, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = expand_infer, .grad = grad, .ref = yk__ref_copy, .cases = expand_cases,
};

yk_value yk_expand_dims_at(const char *where, yk_graph *g, yk_value x, int axis) {
  return yk__build(where, g, &yk__op_expand_dims, &(yk_axes_attrs){ 1, { axis } }, 1, x);
}

/* ---- squeeze --------------------------------------------------------------------------------------------------------- */

static yk_code squeeze_infer(const yk_infer *c) {
  yk_axes_attrs a = YK__ATTRS(yk_axes_attrs, c);
  const yk_desc *x = &c->in[0];
  yk_desc r = { .dtype = x->dtype };
  uint32_t bits = 0;
  YK_TRY(yk__axes(a.naxes, a.axis, x->rank, &bits));
  for (int k = 0; k < x->rank; k++) {
    int named = a.naxes && ((bits >> k) & 1u);
    if (a.naxes == 0 && x->dim[k] < 0)
      return YK_FAIL(EINVAL, "dim %d is not known yet, so whether it is 1 is not either: name the axes to take out", k);
    if (named && x->dim[k] >= 0 && x->dim[k] != 1)
      return YK_FAIL(EINVAL, "axis %d has %lld elements, only an axis of 1 can be taken out", k, (long long)x->dim[k]);
    if (!named && (a.naxes || x->dim[k] != 1)) r.dim[r.rank++] = x->dim[k];
  }
  c->out[0] = r;
  return YK_OK;
}

static const yk_case squeeze_cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[1,33]", &first, 0, 0, 0 }, { "T[4,1,7,1]", &two, 0, 0, 0 }, { "T[1,7,1,5]", NULL, 0, 0, 0 },
  { "T[0,1]", &last, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_squeeze = {
  .name = "squeeze", .label = "Squeeze", .doc = "x without its dims of 1",
  .version = 1, .attr_bytes = sizeof(yk_axes_attrs), .traits = YK_PURE | YK_VIEW, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = squeeze_infer, .grad = grad, .ref = yk__ref_copy, .cases = squeeze_cases,
};

yk_value yk_squeeze_at(const char *where, yk_graph *g, yk_value x, const yk_axes_attrs *axes) {
  return yk__build(where, g, &yk__op_squeeze, axes, 1, x);
}
