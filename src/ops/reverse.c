/*
 * reverse.c - the elements along one axis in the opposite order; the gradient is the same thing again.
 *
 * What a layer that reads a sequence from its end gives, turned back.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  int axis = 0;
  YK_TRY(yk__axis(a.axis, c->in[0].rank, &axis));
  return yk__infer_same(c);
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, reverse, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  int64_t index[YK_MAX_RANK], n = yk__desc_count(&c->dout[0]);
  int axis = 0;
  YK_TRY(yk__axis(a.axis, c->din[0].rank, &axis));
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&c->dout[0], i, index);
    index[axis] = c->din[0].dim[axis] - 1 - index[axis];
    c->out[0][i] = c->in[0][yk__ravel(&c->din[0], index)];
  }
  return YK_OK;
}

static const yk_attr attrs[] = { YK__INT(yk_axis_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), { 0 } };
static const yk_axis_attrs second = { 1 }, last = { -1 };
static const yk_case cases[] = {
  { "T[7]", NULL, 0, 0, 0 }, { "T[4,7,5]", NULL, 0, 0, 0 }, { "T[4,7,5]", &second, 0, 0, 0 }, { "T[3,33]", &last, 0, 0, 0 },
  { "T[2,1,3]", &second, 0, 0, 0 }, { "T[3,0]", &last, 0, 0, 0 }, { "T[0,3]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_reverse = {
  .name = "reverse", .label = "ReverseV2", .doc = "the elements along one axis in the opposite order",
  .version = 1, .attr_bytes = sizeof(yk_axis_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_reverse_at(const char *where, yk_graph *g, yk_value x, int axis) {
  return yk__build(where, g, &yk__op_reverse, &(yk_axis_attrs){ axis }, 1, x);
}
