/*
 * one_hot.c - a row for each index, `on` at the index and `off` elsewhere. An index outside the row is not an error:
 * its row is all `off`.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_one_hot_attrs a = YK__ATTRS(yk_one_hot_attrs, c);
  yk_desc r = yk__as(&c->in[0], a.dtype ? a.dtype : YK_F32);
  if (r.rank == YK_MAX_RANK)
    return YK_FAIL(EINVAL, "the result would have rank %d, at most %d is possible", r.rank + 1, YK_MAX_RANK);
  if (a.depth < 1) return YK_FAIL(EINVAL, "depth is %lld, expected at least 1", (long long)a.depth);
  r.dim[r.rank++] = a.depth;
  c->out[0] = r;
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_one_hot_attrs a = YK__ATTRS(yk_one_hot_attrs, c);
  int64_t n = yk__desc_count(&c->din[0]);
  if (a.on == 0 && a.off == 0) a.on = 1;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < a.depth; k++) c->out[0][i * a.depth + k] = c->in[0][i] == (double)k ? a.on : a.off;
  return YK_OK;
}

static const yk_port in[] = { { "indices", YK__IDS, YK_PORT_NODIFF, 0 }, { 0 } };
static const yk_attr attrs[] = {
  YK__DIMS(yk_one_hot_attrs, depth, 1, 1), YK__REAL(yk_one_hot_attrs, on, 0, -YK__HUGE, YK__HUGE),
  YK__REAL(yk_one_hot_attrs, off, 0, -YK__HUGE, YK__HUGE), YK__DTYPE(yk_one_hot_attrs, dtype), { 0 }
};
static const yk_one_hot_attrs ten = { .depth = 10 }, smooth = { .depth = 7, .on = 0.75, .off = 0.25, .dtype = YK_F16 },
                              flags = { .depth = 5, .dtype = YK_BOOL },
                              longs = { .depth = 3, .on = 2, .off = -1, .dtype = YK_I64 };
static const yk_case cases[] = {
  { "T[]", &ten, -2, 12, 0 }, { "T[33]", &ten, -2, 12, 0 }, { "T[4,7]", &smooth, 0, 6, 0 }, { "T[7]", &flags, 0, 5, 0 },
  { "T[2,3]", &longs, -1, 3, 0 }, { "T[0]", &ten, 0, 1, 0 }, { 0 }
};

const yk_op yk__op_one_hot = {
  .name = "one_hot", .label = "OneHot", .doc = "a row for each index, different at the index",
  .version = 1, .attr_bytes = sizeof(yk_one_hot_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = attrs,
  .in = in, .out = yk__out1, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_one_hot_at(const char *where, yk_graph *g, yk_value indices, const yk_one_hot_attrs *a) {
  return yk__build(where, g, &yk__op_one_hot, a, 1, indices);
}
