/*
 * adadelta_update.c - Adadelta on n variables at once: steps of the size of past steps, over the size of past gradients.
 * Both sizes are running mean squares; epsilon is inside both roots.
 *
 * Zeiler, "ADADELTA: an adaptive learning rate method", 2012.
 */
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  const yk_rule_attrs *u = attrs;
  double *w = t[0], *a = t[1], *d = t[2], rho = (double)(float)u->rho;
  *a = rho * *a + (1 - rho) * g * g;
  double step = g * sqrt(*d + u->epsilon) / sqrt(*a + u->epsilon);
  *w -= s[0] * step;
  *d = rho * *d + (1 - rho) * step * step;
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 4, 1); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 3, 1, rule); }
static yk_code infer_rows(const yk_infer *c) { return yk__update_infer_rows(c, 3, 1); }
static yk_code ref_rows(const yk_ref *c) { return yk__update_ref_rows(c, 3, 1, rule); }

#define SLOTS YK__WRITTEN("w", 0), YK__WRITTEN("a", 1), YK__WRITTEN("d", 1)
static const yk_port in[] = { SLOTS, YK__GRADIENT, YK__RATE, YK__UPDATE_END }, in_rows[] = { SLOTS, YK__ROWS, YK__RATE, YK__UPDATE_END };
static const yk_attr attrs[] = {
  YK__COUNT(yk_rule_attrs), YK__REAL(yk_rule_attrs, rho, 0, 0, 1), YK__REAL(yk_rule_attrs, epsilon, 0, 0, YK__HUGE), { 0 }
};
static const yk_rule_attrs plain = { .rho = 0.95, .epsilon = 1e-4 }, two = { .n = 2, .rho = 0.5, .epsilon = 1e-4 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; f32[]", &plain, 0.1, 0.9, 0 }, { "T[33]; T[33]; T[33]; T[33]; f32[]", &plain, 0.1, 0.9, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[4,7,5]; f32[]", &plain, 0.1, 0.9, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]", &two, 0.1, 0.9, 0 }, { 0 }
};
static const yk_case cases_rows[] = {
  { "T[4]; T[4]; T[4]; T[6]; i32[6]; f32[]", &plain, 0, 3, 0 },
  { "T[5,33]; T[5,33]; T[5,33]; T[7,33]; i64[7]; f32[]", &plain, 0, 3, 0 },
  { "T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[9,3]; T[0,2,2]; i32[9]; i32[0]; f32[]", &two, 0, 3, 0 }, { 0 }
};

YK__UPDATE_OP(adadelta_update, "ApplyAdadelta", "Adadelta, for n variables", yk_rule_attrs, attrs, in, infer, ref, cases);
YK__UPDATE_OP(sparse_adadelta_update, "SparseApplyAdadelta", "Adadelta, for the rows that are named", yk_rule_attrs, attrs, in_rows,
              infer_rows, ref_rows, cases_rows);
