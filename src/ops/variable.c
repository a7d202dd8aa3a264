/*
 * variable.c - the storage of a variable, as a value that only read_variable and write ports accept. Made by
 * yk_get_variable(); its contents belong to the session.
 */
#include <string.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_variable_attrs a = YK__ATTRS(yk_variable_attrs, c);
  yk_shape shape = { a.rank, { 0 } };
  if (a.rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "rank %u, at most %d is possible", a.rank, YK_MAX_RANK);
  memcpy(shape.dim, a.dim, sizeof shape.dim);
  YK_TRY(yk__shape_check((yk_dtype)a.dtype, &shape, 0));
  c->out[0] = yk__desc((yk_dtype)a.dtype, shape);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  (void)c;
  return YK_FAIL(EINVAL, "a variable has no value of its own: the session holds it");
}

static const yk_port none[] = { { 0 } };
static const yk_attr attrs[] = {
  YK__DTYPE(yk_variable_attrs, dtype), YK__INT(yk_variable_attrs, rank, 0, 0, YK_MAX_RANK),
  YK__DIMS(yk_variable_attrs, dim, YK_MAX_RANK, 0), YK__INT(yk_variable_attrs, index, 0, 0, INT32_MAX), { 0 }
};
static const yk_variable_attrs matrix = { .dtype = YK_F32, .rank = 2, .dim = { 4, 7 } };
static const yk_case cases[] = { { "", &matrix, 0, 0, 0 }, { 0 } };

const yk_op yk__op_variable = {
  .name = "variable", .label = "Variable", .doc = "the storage of a variable",
  .version = 1, .attr_bytes = sizeof(yk_variable_attrs), .traits = YK_SOURCE | YK_NO_GRAD, .attrs = attrs,
  .in = none, .out = yk__out1, .infer = infer, .ref = ref, .cases = cases,
};
