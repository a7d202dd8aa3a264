/*
 * adagrad_update.c - Adagrad on n variables at once: the gradient over the root of the sum of its squares so far. TensorFlow
 * has no epsilon but starts the sum at 0.1; Keras starts at 0 and adds epsilon to the root.
 *
 * Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic optimization", 2011.
 */
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  const yk_rule_attrs *a = attrs;
  *t[1] += g * g;
  if (g != 0) *t[0] -= s[0] * g / (sqrt(*t[1]) + (a->keras ? a->epsilon : 0));
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 3, 1); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 2, 1, rule); }
static yk_code infer_rows(const yk_infer *c) { return yk__update_infer_rows(c, 2, 1); }
static yk_code ref_rows(const yk_ref *c) { return yk__update_ref_rows(c, 2, 1, rule); }

static const yk_port in[] = { YK__WRITTEN("w", 0), YK__WRITTEN("acc", 1), YK__GRADIENT, YK__RATE, YK__UPDATE_END };
static const yk_port in_rows[] = { YK__WRITTEN("w", 0), YK__WRITTEN("acc", 1), YK__ROWS, YK__RATE, YK__UPDATE_END };
static const yk_attr attrs[] = {
  YK__COUNT(yk_rule_attrs), YK__FLAG(yk_rule_attrs, keras), YK__REAL(yk_rule_attrs, epsilon, 0, 0, YK__HUGE), { 0 }
};
static const yk_rule_attrs keras = { .keras = 1, .epsilon = 1e-3 }, two = { .n = 2 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]; f32[]", NULL, 0.1, 0.9, 0 }, { "T[33]; T[33]; T[33]; f32[]", &keras, 0.1, 0.9, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; f32[]", NULL, 0.1, 0.9, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]", &two, 0.1, 0.9, 0 }, { 0 }
};
static const yk_case cases_rows[] = {
  { "T[4]; T[4]; T[6]; i32[6]; f32[]", NULL, 0, 3, 0 }, { "T[5,33]; T[5,33]; T[7,33]; i64[7]; f32[]", &keras, 0, 3, 0 },
  { "T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[9,3]; T[0,2,2]; i32[9]; i32[0]; f32[]", &two, 0, 3, 0 }, { 0 }
};

YK__UPDATE_OP(adagrad_update, "ApplyAdagrad", "Adagrad, for n variables", yk_rule_attrs, attrs, in, infer, ref, cases);
YK__UPDATE_OP(sparse_adagrad_update, "SparseApplyAdagrad", "Adagrad, for the rows that are named", yk_rule_attrs, attrs, in_rows,
              infer_rows, ref_rows, cases_rows);
