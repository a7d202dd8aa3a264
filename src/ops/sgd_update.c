/*
 * sgd_update.c - gradient descent on n variables at once: w -= lr g. One node for many variables, so that an optimizer
 * costs one launch and not hundreds.
 */
#include <yoke/math.h>
#include "update.h"

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 2, 1); }

static yk_code ref(const yk_ref *c) {
  uint32_t n = yk__update_n(c->attrs);
  double lr = c->in[2 * n][0];
  for (uint32_t k = 0; k < n; k++) {
    double *w = (double *)(uintptr_t)c->in[k];
    int64_t count = yk__desc_count(&c->din[k]);
    for (int64_t i = 0; i < count; i++) w[i] -= lr * c->in[n + k][i];
  }
  return YK_OK;
}

static const yk_port in[] = {
  { "w", YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_WRITE, 0 }, { "g", YK_FLOATS, YK_PORT_VARIADIC, 1 },
  { "lr", YK_FLOATS, 0, 1 }, { 0 }
};
static const yk_update_attrs three = { .n = 3 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]; T[]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,7,5]; T[]", NULL, 0, 0, 0 },
  { "T[7]; T[0,3]; T[4,5]; T[7]; T[0,3]; T[4,5]; T[]", &three, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_sgd_update = {
  .name = "sgd_update", .label = "ApplyGradientDescent", .doc = "w -= lr g, for n variables",
  .version = 1, .attr_bytes = sizeof(yk_update_attrs), .traits = YK_STATEFUL | YK_NO_GRAD | YK_MERGE, .attrs = yk__update_attrs,
  .in = in, .out = yk__out_op, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_sgd_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *w, const yk_value *grad, yk_value lr) {
  yk_value *refs = yk__update_refs(where, g, n, w), op;
  if (!refs) return (yk_value){ 0 };
  op = yk__update_build(where, g, &yk__op_sgd_update, (yk_update_attrs){ .n = (uint32_t)n }, 2,
                        (const yk_value *const[]){ refs, grad }, 1, &lr);
  yk__free(refs);
  return op;
}
