/*
 * momentum_update.c - gradient descent with momentum on n variables at once: a = m a + g; w -= lr a. The learning rate
 * multiplies when w moves, not inside a. Nesterov's form moves w by lr g + lr m a, with the new a.
 */
#include <yoke/math.h>
#include "update.h"

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 3, 2); }

static yk_code ref(const yk_ref *c) {
  yk_update_attrs attrs = YK__ATTRS(yk_update_attrs, c);
  uint32_t n = yk__update_n(c->attrs);
  double lr = c->in[3 * n][0], m = c->in[3 * n + 1][0];
  for (uint32_t k = 0; k < n; k++) {
    double *w = (double *)(uintptr_t)c->in[k], *a = (double *)(uintptr_t)c->in[n + k];
    const double *g = c->in[2 * n + k];
    int64_t count = yk__desc_count(&c->din[k]);
    for (int64_t i = 0; i < count; i++) {
      a[i] = m * a[i] + g[i];
      w[i] -= attrs.nesterov ? lr * g[i] + lr * m * a[i] : lr * a[i];
    }
  }
  return YK_OK;
}

static const yk_port in[] = {
  { "w", YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_WRITE, 0 }, { "a", YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_WRITE, 1 },
  { "g", YK_FLOATS, YK_PORT_VARIADIC, 1 }, { "lr", YK_FLOATS, 0, 1 }, { "m", YK_FLOATS, 0, 1 }, { 0 }
};
static const yk_update_attrs two = { .n = 2 }, two_nesterov = { .n = 2, .nesterov = 1 }, nesterov = { .nesterov = 1 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]; T[33]; T[]; T[]", NULL, 0, 0, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[]; T[]", &nesterov, 0, 0, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[]; T[]", &two, 0, 0, 0 },
  { "T[7]; T[4,3]; T[7]; T[4,3]; T[7]; T[4,3]; T[]; T[]", &two_nesterov, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_momentum_update = {
  .name = "momentum_update", .label = "ApplyMomentum", .doc = "a = m a + g; w -= lr a, for n variables",
  .version = 1, .attr_bytes = sizeof(yk_update_attrs), .traits = YK_STATEFUL | YK_NO_GRAD | YK_MERGE, .attrs = yk__update_attrs,
  .in = in, .out = yk__out_op, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_momentum_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *w, yk_variable *const *a,
                               const yk_value *grad, yk_value lr, yk_value momentum, bool nesterov_form) {
  yk_value *w_refs = yk__update_refs(where, g, n, w), *a_refs = w_refs ? yk__update_refs(where, g, n, a) : NULL, op = { 0 };
  if (a_refs)
    op = yk__update_build(where, g, &yk__op_momentum_update, (yk_update_attrs){ .n = (uint32_t)n, .nesterov = nesterov_form }, 3,
                          (const yk_value *const[]){ w_refs, a_refs, grad }, 2, (const yk_value[]){ lr, momentum });
  yk__free(w_refs);
  yk__free(a_refs);
  return op;
}
