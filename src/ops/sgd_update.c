/*
 * sgd_update.c - gradient descent on n variables at once: w -= lr g. One node for many variables, so that an optimizer
 * costs one launch and not hundreds.
 */
#include <yoke/math.h>
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  (void)attrs;
  *t[0] -= s[0] * g;
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 2, 1); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 1, 1, rule); }
static yk_code infer_rows(const yk_infer *c) { return yk__update_infer_rows(c, 1, 1); }
static yk_code ref_rows(const yk_ref *c) { return yk__update_ref_rows(c, 1, 1, rule); }

static const yk_port in[] = { YK__WRITTEN("w", 0), YK__GRADIENT, { "lr", YK_FLOATS, 0, 1 }, YK__UPDATE_END };
static const yk_port in_rows[] = { YK__WRITTEN("w", 0), YK__ROWS, { "lr", YK_FLOATS, 0, 1 }, YK__UPDATE_END };
static const yk_update_attrs two = { .n = 2 }, three = { .n = 3 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]; T[]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,7,5]; T[]", NULL, 0, 0, 0 },
  { "T[7]; T[0,3]; T[4,5]; T[7]; T[0,3]; T[4,5]; T[]", &three, 0, 0, 0 }, { "T[33]; T[33]; T[]; bool[]", NULL, 0, 0, 0 }, { 0 }
};
static const yk_case cases_rows[] = {
  { "T[4]; T[6]; i32[6]; T[]", NULL, 0, 3, 0 }, { "T[5,33]; T[7,33]; i64[7]; T[]", NULL, 0, 3, 0 },
  { "T[5,3]; T[4,2,2]; T[9,3]; T[0,2,2]; i32[9]; i32[0]; T[]", &two, 0, 3, 0 }, { 0 }
};

YK__UPDATE_OP(sgd_update, "ApplyGradientDescent", "w -= lr g, for n variables", yk_update_attrs, yk__update_attrs, in, infer, ref,
              cases);
YK__UPDATE_OP(sparse_sgd_update, "SparseApplyGradientDescent", "w -= lr g, for the rows that are named", yk_update_attrs,
              yk__update_attrs, in_rows, infer_rows, ref_rows, cases_rows);

yk_value yk_sgd_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *w, const yk_value *grad, yk_value lr) {
  yk_value *refs = yk__update_refs(where, g, n, w), op;
  if (!refs) return (yk_value){ 0 };
  op = yk__update_build(where, g, &yk__op_sgd_update, (yk_update_attrs){ .n = (uint32_t)n }, 2,
                        (const yk_value *const[]){ refs, grad }, 1, &lr);
  yk__free(refs);
  return op;
}
