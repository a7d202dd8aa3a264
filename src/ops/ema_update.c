/*
 * ema_update.c - exponential moving averages of n values at once: s -= (1 - decay) (s - v). The decay is an input,
 * since it usually grows with the number of steps made.
 */
#include <yoke/math.h>
#include "update.h"

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 2, 1); }

static yk_code ref(const yk_ref *c) {
  uint32_t n = yk__update_n(c->attrs);
  if (yk__update_off(c, 2 * n + 1)) return YK_OK;
  double decay = c->in[2 * n][0];
  for (uint32_t k = 0; k < n; k++) {
    double *s = (double *)(uintptr_t)c->in[k];
    int64_t count = yk__desc_count(&c->din[k]);
    for (int64_t i = 0; i < count; i++) s[i] -= (1 - decay) * (s[i] - c->in[n + k][i]);
  }
  return YK_OK;
}

static const yk_port in[] = {
  { "s", YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_WRITE, 0 }, { "v", YK_FLOATS, YK_PORT_VARIADIC, 1 },
  { "decay", YK_FLOATS, 0, 1 }, YK__UPDATE_END
};
static const yk_update_attrs two = { .n = 2 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]; T[]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,7,5]; T[]", NULL, 0, 0, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[]", &two, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_ema_update = {
  .name = "ema_update", .label = "AssignMovingAvg", .doc = "s -= (1 - decay) (s - v), for n variables",
  .version = 1, .attr_bytes = sizeof(yk_update_attrs), .traits = YK_STATEFUL | YK_NO_GRAD | YK_MERGE, .attrs = yk__update_attrs,
  .in = in, .out = yk__out_op, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_ema_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *s, const yk_value *v, yk_value decay) {
  yk_value *refs = yk__update_refs(where, g, n, s), op;
  if (!refs) return (yk_value){ 0 };
  op = yk__update_build(where, g, &yk__op_ema_update, (yk_update_attrs){ .n = (uint32_t)n }, 2,
                        (const yk_value *const[]){ refs, v }, 1, &decay);
  yk__free(refs);
  return op;
}
