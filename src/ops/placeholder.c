/*
 * placeholder.c - a value that every run must be fed. Dimensions that differ from run to run are -1; the feed's shape
 * is checked against the known ones.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_placeholder_attrs a = YK__ATTRS(yk_placeholder_attrs, c);
  yk_shape shape = { a.rank, { 0 } };
  if (a.rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "rank %u, at most %d is possible", a.rank, YK_MAX_RANK);
  memcpy(shape.dim, a.dim, sizeof shape.dim);
  YK_TRY(yk__shape_check((yk_dtype)a.dtype, &shape, 1));
  c->out[0] = yk__desc((yk_dtype)a.dtype, shape);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  (void)c;
  return YK_FAIL(EINVAL, "a placeholder has no value of its own: it must be fed");
}

static const yk_port none[] = { { 0 } };
static const yk_attr attrs[] = {
  YK__DTYPE(yk_placeholder_attrs, dtype), YK__INT(yk_placeholder_attrs, rank, 0, 0, YK_MAX_RANK),
  YK__DIMS(yk_placeholder_attrs, dim, YK_MAX_RANK, -1), { 0 }
};
static const yk_placeholder_attrs matrix = { .dtype = YK_F32, .rank = 2, .dim = { 4, 7 } };
static const yk_case cases[] = { { "", &matrix, 0, 0, 0 }, { 0 } };

/* Two placeholders of one shape are two values: not pure, so never merged. */
const yk_op yk__op_placeholder = {
  .name = "placeholder", .label = "Placeholder", .doc = "a value that every run must be fed",
  .version = 1, .attr_bytes = sizeof(yk_placeholder_attrs), .traits = YK_SOURCE | YK_NO_GRAD, .attrs = attrs,
  .in = none, .out = yk__out1, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_placeholder_at(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape) {
  yk_placeholder_attrs a = { .dtype = (int32_t)dtype, .rank = shape.rank };
  memcpy(a.dim, shape.dim, sizeof a.dim);
  return yk__build(where, name ? yk_named(g, name) : g, &yk__op_placeholder, &a, 0);
}
