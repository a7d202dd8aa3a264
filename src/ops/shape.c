/*
 * shape.c - the shape of a value, its number of elements, and one of its dims, as numbers the graph can compute with.
 * Only the description of the input is used, so the value itself need not exist.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code shape_infer(const yk_infer *c) {
  c->out[0] = yk__desc(YK_I64, YK_SHAPE(c->in[0].rank));
  return YK_OK;
}

static yk_code shape_ref(const yk_ref *c) {
  for (int k = 0; k < c->din[0].rank; k++) c->out[0][k] = (double)c->din[0].dim[k];
  return YK_OK;
}

static yk_code size_infer(const yk_infer *c) {
  c->out[0] = yk__desc(YK_I64, YK_SCALAR);
  return YK_OK;
}

static yk_code size_ref(const yk_ref *c) {
  c->out[0][0] = (double)yk__desc_count(&c->din[0]);
  return YK_OK;
}

static yk_code dim_infer(const yk_infer *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  int axis = 0;
  YK_TRY(yk__axis(a.axis, c->in[0].rank, &axis));
  c->out[0] = yk__desc(YK_I64, YK_SCALAR);
  return YK_OK;
}

static yk_code dim_ref(const yk_ref *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  int axis = 0;
  YK_TRY(yk__axis(a.axis, c->din[0].rank, &axis));
  c->out[0][0] = (double)c->din[0].dim[axis];
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, 0, 0), { 0 } };

const yk_op yk__op_shape = {
  .name = "shape", .label = "Shape", .doc = "the dims of a value",
  .version = 1, .traits = YK_PURE | YK_NO_GRAD,
  .in = yk__like1, .out = yk__out1, .infer = shape_infer, .ref = shape_ref, .cases = cases,
};

const yk_op yk__op_size = {
  .name = "size", .label = "Size", .doc = "the number of elements of a value",
  .version = 1, .traits = YK_PURE | YK_NO_GRAD,
  .in = yk__like1, .out = yk__out1, .infer = size_infer, .ref = size_ref, .cases = cases,
};

static const yk_attr dim_attrs[] = { YK__INT(yk_axis_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), { 0 } };
static const yk_axis_attrs last = { -1 }, second = { 1 };
static const yk_case dim_cases[] = {
  { "T[7]", NULL, 0, 0, 0 }, { "T[4,7,5]", &last, 0, 0, 0 }, { "T[4,7,5]", &second, 0, 0, 0 }, { "T[3,0]", &last, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_dim = {
  .name = "dim", .label = "Dim", .doc = "one dim of a value",
  .version = 1, .attr_bytes = sizeof(yk_axis_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = dim_attrs,
  .in = yk__like1, .out = yk__out1, .infer = dim_infer, .ref = dim_ref, .cases = dim_cases,
};

yk_value yk_shape_at(const char *where, yk_graph *g, yk_value like) { return yk__build(where, g, &yk__op_shape, NULL, 1, like); }
yk_value yk_size_at(const char *where, yk_graph *g, yk_value like) { return yk__build(where, g, &yk__op_size, NULL, 1, like); }
yk_value yk_dim_at(const char *where, yk_graph *g, yk_value like, int axis) {
  return yk__build(where, g, &yk__op_dim, &(yk_axis_attrs){ axis }, 1, like);
}
