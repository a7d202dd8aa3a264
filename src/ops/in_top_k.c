/*
 * in_top_k.c - is the target class among the k largest predictions? Classes that tie with the target at the boundary
 * do not push it out; a target that is no class, or a row that is not finite, counts as a miss.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_desc n = yk__desc(YK_BOOL, YK_SHAPE(-1)), rows, out, targets;
  YK_TRY(yk__want_rank(c, 0, 2));
  YK_TRY(yk__want_rank(c, 1, 1));
  rows = n;
  rows.dim[0] = c->in[0].dim[0];
  targets = yk__as(&c->in[1], YK_BOOL);
  YK_TRY(yk__shape_merge(&rows, &targets, &out));
  c->out[0] = out;
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_top_k_attrs a = YK__ATTRS(yk_top_k_attrs, c);
  int64_t rows = c->din[0].dim[0], classes = c->din[0].dim[1];
  for (int64_t r = 0; r < rows; r++) {
    const double *p = c->in[0] + r * classes;
    double target = c->in[1][r];
    int64_t above = 0;
    int valid = target >= 0 && target < (double)classes;
    for (int64_t i = 0; i < classes && valid; i++) {
      valid = isfinite(p[i]);
      above += p[i] > p[(int64_t)target];
    }
    c->out[0][r] = valid && above < (a.k ? a.k : 1);
  }
  return YK_OK;
}

static const yk_port in[] = { { "predictions", YK_FLOATS, YK_PORT_NODIFF, 0 }, { "targets", YK__IDS, YK_PORT_NODIFF, 0 }, { 0 } };
static const yk_attr attrs[] = { YK__INT(yk_top_k_attrs, k, 1, 1, INT32_MAX), { 0 } };
static const yk_top_k_attrs three = { 3 }, many = { 20 };
static const yk_case cases[] = {
  { "T[33,7]; i32[33]", NULL, 0, 6, 0 }, { "T[33,7]; i64[33]", &three, 0, 6, 0 }, { "T[7,5]; i32[7]", &three, -2, 8, 0 },
  { "T[4,7]; i32[4]", &many, 0, 6, 0 }, { "T[0,7]; i32[0]", NULL, 0, 6, 0 }, { 0 }
};

const yk_op yk__op_in_top_k = {
  .name = "in_top_k", .label = "InTopKV2", .doc = "is the target among the k largest predictions",
  .version = 1, .attr_bytes = sizeof(yk_top_k_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = attrs,
  .in = in, .out = yk__out1, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_in_top_k_at(const char *where, yk_graph *g, yk_value predictions, yk_value targets, int k) {
  return yk__build(where, g, &yk__op_in_top_k, &(yk_top_k_attrs){ k }, 2, predictions, targets);
}
