/*
 * all_finite.c - whether none of many values holds a NaN or an infinity, as one bool. It is what a step asks before it lets
 * its updates happen, so it must be cheap: one kernel reads all values as they lie, whatever their layouts.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  c->out[0] = (yk_desc){ .dtype = YK_BOOL };
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_finite_attrs a = YK__ATTRS(yk_finite_attrs, c);
  c->out[0][0] = 1;
  for (uint16_t k = 0; k < c->nin; k++) {
    int64_t n = yk__desc_count(&c->din[k]);
    for (int64_t i = 0; i < n; i++)
      if (a.nan_only ? isnan(c->in[k][i]) : !isfinite(c->in[k][i])) c->out[0][0] = 0;
  }
  return YK_OK;
}

static const yk_port in[] = { { "x", YK_FLOATS, YK_PORT_VARIADIC, 0 }, { 0 } };
static const yk_port out[] = { { "ok", YK_T(YK_BOOL), 0, 0 }, { 0 } };
static const yk_attr attrs[] = { YK__FLAG(yk_finite_attrs, nan_only), { 0 } };
static const yk_finite_attrs nan_only = { 1 };
static const yk_case cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[33]; T[4,7,5]; T[0,3]", NULL, 0, 0, 0 }, { "T[4,7,5]; f32[33]; f64[]", &nan_only, 0, 0, 0 },
  { "T[3,0]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_all_finite = {
  .name = "all_finite", .label = "AllFinite", .doc = "whether no element of many values is NaN or infinite",
  .version = 1, .attr_bytes = sizeof(yk_finite_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = attrs,
  .in = in, .out = out, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_all_finite_at(const char *where, yk_graph *g, size_t n, const yk_value *x, bool only_nan) {
  return yk__build_n(where, g, &yk__op_all_finite, &(yk_finite_attrs){ only_nan }, n, x, 0);
}
