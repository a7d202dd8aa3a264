/*
 * ftrl_update.c - "follow the regularized leader" (proximal) on n variables at once: w is worked out anew each step from the
 * linear term z, so that l1 gives true zeros. z starts at 0, so the first step does not keep the initial w.
 *
 * McMahan et al., "Ad click prediction: a view from the trenches", 2013. Shrinkage is TensorFlow's: it adds 2*shrinkage*w
 * to the gradient in z only.
 */
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  const yk_rule_attrs *a = attrs;
  double *w = t[0], *n = t[1], *z = t[2], lr = s[0], more = *n + g * g;
  double new_power = pow(more, -a->lr_power), old_power = pow(*n, -a->lr_power);
  *z += g + 2 * a->shrinkage * *w - (new_power - old_power) / lr * *w;
  *n = more;
  *w = fabs(*z) > a->l1 ? ((*z > 0 ? a->l1 : -a->l1) - *z) / (new_power / lr + 2 * a->l2) : 0;
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 4, 1); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 3, 1, rule); }
static yk_code infer_rows(const yk_infer *c) { return yk__update_infer_rows(c, 3, 1); }
static yk_code ref_rows(const yk_ref *c) { return yk__update_ref_rows(c, 3, 1, rule); }

#define SLOTS YK__WRITTEN("w", 0), YK__WRITTEN("n", 1), YK__WRITTEN("z", 1)
static const yk_port in[] = { SLOTS, YK__GRADIENT, YK__RATE, YK__UPDATE_END }, in_rows[] = { SLOTS, YK__ROWS, YK__RATE, YK__UPDATE_END };
static const yk_attr attrs[] = {
  YK__COUNT(yk_rule_attrs), YK__REAL(yk_rule_attrs, lr_power, 0, -YK__HUGE, 0), YK__REAL(yk_rule_attrs, l1, 0, 0, YK__HUGE),
  YK__REAL(yk_rule_attrs, l2, 0, 0, YK__HUGE), YK__REAL(yk_rule_attrs, shrinkage, 0, 0, YK__HUGE), { 0 }
};
static const yk_rule_attrs plain = { .lr_power = -0.5 }, all = { .lr_power = -0.5, .l1 = 0.01, .l2 = 0.1, .shrinkage = 0.1 },
                           other = { .lr_power = -0.7, .l2 = 0.01 }, two = { .n = 2, .lr_power = -0.5, .l1 = 0.01 };
/* z > l1 everywhere: at the edge, rounding decides what w is. */
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; f32[]", &plain, 0.5, 0.9, 0 }, { "T[33]; T[33]; T[33]; T[33]; f32[]", &all, 0.5, 0.9, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[4,7,5]; f32[]", &other, 0.5, 0.9, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]", &two, 0.5, 0.9, 0 }, { 0 }
};
static const yk_case cases_rows[] = {
  { "T[4]; T[4]; T[4]; T[1]; i32[1]; f32[]", &plain, 0.5, 0.9, 0 },
  { "T[5,33]; T[5,33]; T[5,33]; T[2,33]; i64[2]; f32[]", &all, 0.5, 0.9, 0 },
  { "T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[5,3]; T[4,2,2]; T[2,3]; T[0,2,2]; i32[2]; i32[0]; f32[]", &two, 0.5, 0.9, 0 }, { 0 }
};

YK__UPDATE_OP(ftrl_update, "ApplyFtrl", "FTRL-proximal, for n variables", yk_rule_attrs, attrs, in, infer, ref, cases);
YK__UPDATE_OP(sparse_ftrl_update, "SparseApplyFtrl", "FTRL-proximal, for the rows that are named", yk_rule_attrs, attrs, in_rows,
              infer_rows, ref_rows, cases_rows);
