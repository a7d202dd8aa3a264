/*
 * gather.c - the slices of a tensor that indices name, and its gradient, which adds what comes back into zeros. An
 * index out of range fails the run: silently clamping it would hide a wrong label or vocabulary.
 */
#include <yoke/math.h>
#include "common.h"

/* params.shape[:axis] + indices.shape + params.shape[axis+1:] */
static yk_code gathered(const yk_desc *params, const yk_desc *indices, int32_t axis_attr, yk_desc *out) {
  yk_desc r = { .dtype = params->dtype };
  int axis = 0, rank = params->rank - 1 + indices->rank;
  YK_TRY(yk__axis(axis_attr, params->rank, &axis));
  if (rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "the result would have rank %d, at most %d is possible", rank, YK_MAX_RANK);
  for (int k = 0; k < axis; k++) r.dim[r.rank++] = params->dim[k];
  for (int k = 0; k < indices->rank; k++) r.dim[r.rank++] = indices->dim[k];
  for (int k = axis + 1; k < params->rank; k++) r.dim[r.rank++] = params->dim[k];
  *out = r;
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  return gathered(&c->in[0], &c->in[1], a.axis, &c->out[0]);
}

/* Walk all picked elements: from[place in params] and to[place in the result]. add: into params, else out of them. */
static yk_code walk(const yk_ref *c, const yk_desc *params, const double *from, double *to, int add) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  int axis = 0;
  YK_TRY(yk__axis(a.axis, params->rank, &axis));
  int64_t outer = yk__span(params, 0, axis), depth = params->dim[axis], inner = yk__span(params, axis + 1, params->rank);
  int64_t picks = yk__desc_count(&c->din[1]);
  for (int64_t p = 0; p < picks; p++) {
    double at = c->in[1][p];
    if (at < 0 || at >= (double)depth)
      return YK_FAIL(EINVAL, "gather: index %lld (element %lld) is outside [0, %lld)", (long long)at, (long long)p,
                     (long long)depth);
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++) {
        int64_t in_params = (o * depth + (int64_t)at) * inner + i, in_picks = (o * picks + p) * inner + i;
        if (add) to[in_params] += from[in_picks];
        else to[in_picks] = from[in_params];
      }
  }
  return YK_OK;
}

static yk_code ref(const yk_ref *c) { return walk(c, &c->din[0], c->in[0], c->out[0], 0); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, gather_grad, c->attrs, 3, c->dout[0], c->in[1], c->in[0]);
  return YK_OK;
}

static const yk_port in[] = { { "params", YK_ANYTYPE, 0, 0 }, { "indices", YK__IDS, YK_PORT_NODIFF, 0 }, { 0 } };
static const yk_attr attrs[] = { YK__INT(yk_axis_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), { 0 } };
static const yk_axis_attrs last = { -1 }, second = { 1 };
/* Values, indices among them, lie in [0, 3]: every gathered axis has at least 4 elements. */
static const yk_case cases[] = {
  { "T[7]; i32[]", NULL, 0, 3, 0 }, { "T[7]; i32[33]", NULL, 0, 3, 0 }, { "T[7,5]; i64[4]", NULL, 0, 3, 0 },
  { "T[4,7]; i32[2,3]", &last, 0, 3, 0 }, { "T[3,7,5]; i64[9]", &second, 0, 3, 0 }, { "T[7,5]; i32[0]", NULL, 0, 3, 0 }, { 0 }
};

const yk_op yk__op_gather = {
  .name = "gather", .label = "GatherV2", .doc = "the slices of params that the indices name",
  .version = 1, .attr_bytes = sizeof(yk_axis_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = in, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_gather_at(const char *where, yk_graph *g, yk_value params, yk_value indices, int axis) {
  return yk__build(where, g, &yk__op_gather, &(yk_axis_attrs){ axis }, 2, params, indices);
}

/* ---- gather_grad: dy, indices, like params -> dparams --------------------------------------------------------------------- */

static yk_code grad_infer(const yk_infer *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  yk_desc want, merged, dy = yk__as(&c->in[0], c->in[2].dtype);
  YK_TRY(gathered(&c->in[2], &c->in[1], a.axis, &want));
  YK_TRY(yk__shape_merge(&dy, &want, &merged));
  return yk__infer_like(c);
}

static yk_code grad_ref(const yk_ref *c) {
  yk__ref_zero(c, 0);
  return walk(c, &c->dout[0], c->in[0], c->out[0], 1);
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, gather, c->attrs, 2, c->dout[0], c->in[1]);
  return YK_OK;
}

static const yk_port grad_in[] = {
  { "dy", YK_FLOATS, 0, 0 }, { "indices", YK__IDS, YK_PORT_NODIFF, 0 },
  { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 }
};
static const yk_case grad_cases[] = {
  { "T[]; i32[]; T[7]", NULL, 0, 3, 0 }, { "T[33]; i32[33]; T[7]", NULL, 0, 3, 0 }, { "T[4,5]; i64[4]; T[7,5]", NULL, 0, 3, 0 },
  { "T[4,2,3]; i32[2,3]; T[4,7]", &last, 0, 3, 0 }, { "T[3,9,5]; i64[9]; T[3,7,5]", &second, 0, 3, 0 },
  { "T[0,5]; i32[0]; T[7,5]", NULL, 0, 3, 0 }, { 0 }
};

const yk_op yk__op_gather_grad = {
  .name = "gather_grad", .label = "GatherGrad", .doc = "dy added into zeros at the indices",
  .version = 1, .attr_bytes = sizeof(yk_axis_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY, .attrs = attrs,
  .in = grad_in, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
