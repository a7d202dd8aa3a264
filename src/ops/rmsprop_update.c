/*
 * rmsprop_update.c - RMSProp on n variables at once: the gradient over the root of its mean square, with momentum. TensorFlow
 * has epsilon inside the root, Keras outside; the centered form takes the variance instead of the mean square.
 *
 * Tieleman, Hinton, lecture 6.5 of "Neural networks for machine learning", 2012.
 */
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  const yk_rule_attrs *a = attrs;
  double *w = t[0], *ms = t[1], *mom = t[2], c = 1 - (double)(float)a->rho;
  *ms += c * (g * g - *ms);
  *mom = a->momentum * *mom + s[0] * g / (a->keras ? sqrt(*ms) + a->epsilon : sqrt(*ms + a->epsilon));
  *w -= *mom;
}

static void centered(double *const *t, double g, const double *s, const void *attrs) {
  const yk_rule_attrs *a = attrs;
  double *w = t[0], *ms = t[1], *mg = t[2], *mom = t[3], c = 1 - (double)(float)a->rho;
  *ms += c * (g * g - *ms);
  *mg += c * (g - *mg);
  *mom = a->momentum * *mom + s[0] * g / sqrt(*ms - *mg * *mg + a->epsilon);
  *w -= *mom;
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 4, 1); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 3, 1, rule); }
static yk_code infer_rows(const yk_infer *c) { return yk__update_infer_rows(c, 3, 1); }
static yk_code ref_rows(const yk_ref *c) { return yk__update_ref_rows(c, 3, 1, rule); }
static yk_code infer_centered(const yk_infer *c) { return yk__update_infer(c, 5, 1); }
static yk_code ref_centered(const yk_ref *c) { return yk__update_ref(c, 4, 1, centered); }
static yk_code infer_centered_rows(const yk_infer *c) { return yk__update_infer_rows(c, 4, 1); }
static yk_code ref_centered_rows(const yk_ref *c) { return yk__update_ref_rows(c, 4, 1, centered); }

#define SLOTS YK__WRITTEN("w", 0), YK__WRITTEN("ms", 1)
static const yk_port in[] = { SLOTS, YK__WRITTEN("mom", 1), YK__GRADIENT, YK__RATE, YK__UPDATE_END };
static const yk_port in_rows[] = { SLOTS, YK__WRITTEN("mom", 1), YK__ROWS, YK__RATE, YK__UPDATE_END };
static const yk_port in_centered[] = { SLOTS, YK__WRITTEN("mg", 1), YK__WRITTEN("mom", 1), YK__GRADIENT, YK__RATE, YK__UPDATE_END };
static const yk_port in_centered_rows[] = { SLOTS, YK__WRITTEN("mg", 1), YK__WRITTEN("mom", 1), YK__ROWS, YK__RATE, YK__UPDATE_END };
static const yk_attr attrs[] = {
  YK__COUNT(yk_rule_attrs), YK__FLAG(yk_rule_attrs, keras), YK__REAL(yk_rule_attrs, rho, 0, 0, 1),
  YK__REAL(yk_rule_attrs, momentum, 0, 0, YK__HUGE), YK__REAL(yk_rule_attrs, epsilon, 0, 0, YK__HUGE), { 0 }
};

#define USUAL .rho = 0.9, .momentum = 0.5, .epsilon = 1e-7
static const yk_rule_attrs plain = { USUAL }, keras = { USUAL, .keras = 1 }, two = { USUAL, .n = 2 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; f32[]", &plain, 0.1, 0.9, 0 }, { "T[33]; T[33]; T[33]; T[33]; f32[]", &keras, 0.1, 0.9, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[4,7,5]; f32[]", &plain, 0.1, 0.9, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]", &two, 0.1, 0.9, 0 }, { 0 }
};
static const yk_case cases_rows[] = {
  { "T[4]; T[4]; T[4]; T[6]; i32[6]; f32[]", &plain, 0, 3, 0 },
  { "T[5,33]; T[5,33]; T[5,33]; T[7,33]; i64[7]; f32[]", &keras, 0, 3, 0 },
  { "T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[9,3]; T[0,2,2]; i32[9]; i32[0]; f32[]", &two, 0, 3, 0 }, { 0 }
};
/* ms - mg^2 stays positive: all values lie in a range whose squares are below its least. */
static const yk_case cases_centered[] = {
  { "T[]; T[]; T[]; T[]; T[]; f32[]", &plain, 0.2, 0.4, 0 }, { "T[33]; T[33]; T[33]; T[33]; T[33]; f32[]", &plain, 0.2, 0.4, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]", &two, 0.2, 0.4, 0 }, { 0 }
};
static const yk_case cases_centered_rows[] = {
  { "T[4]; T[4]; T[4]; T[4]; T[1]; i32[1]; f32[]", &plain, 0.2, 0.4, 0 },
  { "T[5,33]; T[5,33]; T[5,33]; T[5,33]; T[1,33]; i64[1]; f32[]", &plain, 0.2, 0.4, 0 }, { 0 }
};

YK__UPDATE_OP(rmsprop_update, "ApplyRMSProp", "RMSProp, for n variables", yk_rule_attrs, attrs, in, infer, ref, cases);
YK__UPDATE_OP(sparse_rmsprop_update, "SparseApplyRMSProp", "RMSProp, for the rows that are named", yk_rule_attrs, attrs, in_rows,
              infer_rows, ref_rows, cases_rows);
YK__UPDATE_OP(rmsprop_centered_update, "ApplyCenteredRMSProp", "RMSProp by the variance, for n variables", yk_rule_attrs, attrs,
              in_centered, infer_centered, ref_centered, cases_centered);
YK__UPDATE_OP(sparse_rmsprop_centered_update, "SparseApplyCenteredRMSProp", "RMSProp by the variance, for the rows that are named",
              yk_rule_attrs, attrs, in_centered_rows, infer_centered_rows, ref_centered_rows, cases_centered_rows);
