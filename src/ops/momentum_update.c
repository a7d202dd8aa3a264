/*
 * momentum_update.c - gradient descent with momentum on n variables at once: a = m a + g; w -= lr a. The learning rate
 * multiplies when w moves, not inside a. Nesterov's form moves w by lr g + lr m a, with the new a. In Keras's form the rate
 * is inside, so that a rate that changes does not touch the steps already in a.
 */
#include <yoke/math.h>
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  const yk_update_attrs *u = attrs;
  double *w = t[0], *a = t[1], lr = s[0], m = s[1];
  if (u->keras) {
    *a = m * *a - lr * g;
    *w += u->nesterov ? m * *a - lr * g : *a;
  } else {
    *a = m * *a + g;
    *w -= u->nesterov ? lr * g + lr * m * *a : lr * *a;
  }
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 3, 2); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 2, 2, rule); }
static yk_code infer_rows(const yk_infer *c) { return yk__update_infer_rows(c, 2, 2); }
static yk_code ref_rows(const yk_ref *c) { return yk__update_ref_rows(c, 2, 2, rule); }

#define SCALARS { "lr", YK_FLOATS, 0, 1 }, { "m", YK_FLOATS, 0, 1 }, YK__UPDATE_END
static const yk_port in[] = { YK__WRITTEN("w", 0), YK__WRITTEN("a", 1), YK__GRADIENT, SCALARS };
static const yk_port in_rows[] = { YK__WRITTEN("w", 0), YK__WRITTEN("a", 1), YK__ROWS, SCALARS };
static const yk_update_attrs two = { .n = 2 }, two_nesterov = { .n = 2, .nesterov = 1 }, nesterov = { .nesterov = 1 },
                             keras = { .keras = 1 }, keras_nesterov = { .n = 2, .nesterov = 1, .keras = 1 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]; T[33]; T[]; T[]", NULL, 0, 0, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[]; T[]", &nesterov, 0, 0, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[]; T[]", &two, 0, 0, 0 },
  { "T[7]; T[4,3]; T[7]; T[4,3]; T[7]; T[4,3]; T[]; T[]", &two_nesterov, 0, 0, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[]; T[]", &keras, 0, 0, 0 },
  { "T[7]; T[4,3]; T[7]; T[4,3]; T[7]; T[4,3]; T[]; T[]", &keras_nesterov, 0, 0, 0 }, { 0 }
};
static const yk_case cases_rows[] = {
  { "T[4]; T[4]; T[6]; i32[6]; T[]; T[]", NULL, 0, 3, 0 }, { "T[5,33]; T[5,33]; T[7,33]; i64[7]; T[]; T[]", &nesterov, 0, 3, 0 },
  { "T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[9,3]; T[0,2,2]; i32[9]; i32[0]; T[]; T[]", &two, 0, 3, 0 },
  { "T[5,33]; T[5,33]; T[7,33]; i64[7]; T[]; T[]", &keras, 0, 3, 0 },
  { "T[4]; T[4]; T[6]; i32[6]; T[]; T[]; bool[]", NULL, 0, 3, 0 }, { 0 }
};

YK__UPDATE_OP(momentum_update, "ApplyMomentum", "a = m a + g; w -= lr a, for n variables", yk_update_attrs, yk__update_attrs, in,
              infer, ref, cases);
YK__UPDATE_OP(sparse_momentum_update, "SparseApplyMomentum", "a = m a + g; w -= lr a, for the rows that are named",
              yk_update_attrs, yk__update_attrs, in_rows, infer_rows, ref_rows, cases_rows);

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
