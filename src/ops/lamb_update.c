/*
 * lamb_update.c - LAMB on n variables at once: Adam's direction r, scaled for each variable so that the step is lr times
 * the variable's norm. The norms are of whole variables, so a variable is never split over devices.
 *
 * You et al., "Large batch optimization for deep learning", 2019. Weight decay is part of r, as in the paper; Keras
 * leaves it out of the norm.
 */
#include "update.h"

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 4, 3); }

static double direction(const yk_rule_attrs *a, const double *s, double w, double m, double v) {
  return m / (1 - s[1]) / (sqrt(v / (1 - s[2])) + a->epsilon) + a->decay * w;
}

static void one(const yk_rule_attrs *a, const double *s, int64_t count, double *w, double *m, double *v, const double *g) {
  double w2 = 0, r2 = 0;
  for (int64_t i = 0; i < count; i++) {
    m[i] += (1 - (double)(float)a->beta1) * (g[i] - m[i]);
    v[i] += (1 - (double)(float)a->beta2) * (g[i] * g[i] - v[i]);
    double r = direction(a, s, w[i], m[i], v[i]);
    w2 += w[i] * w[i];
    r2 += r * r;
  }
  double trust = w2 > 0 && r2 > 0 ? sqrt(w2) / sqrt(r2) : 1;
  for (int64_t i = 0; i < count; i++) w[i] -= s[0] * trust * direction(a, s, w[i], m[i], v[i]);
}

static yk_code ref(const yk_ref *c) {
  yk_rule_attrs a = YK__ATTRS(yk_rule_attrs, c);
  uint32_t n = yk__update_n(c->attrs);
  if (yk__update_off(c, 4 * n + 3)) return YK_OK;
  double s[3] = { c->in[4 * n][0], c->in[4 * n + 1][0], c->in[4 * n + 2][0] };
  for (uint32_t k = 0; k < n; k++)
    one(&a, s, yk__desc_count(&c->din[k]), (double *)(uintptr_t)c->in[k], (double *)(uintptr_t)c->in[n + k],
        (double *)(uintptr_t)c->in[2 * n + k], c->in[3 * n + k]);
  return YK_OK;
}

static const yk_port in[] = {
  YK__WRITTEN("w", 0), YK__WRITTEN("m", 1), YK__WRITTEN("v", 1), YK__GRADIENT, YK__RATE, { "p1", YK_T(YK_F32), 0, 0 },
  { "p2", YK_T(YK_F32), 0, 0 }, YK__UPDATE_END
};
static const yk_attr attrs[] = {
  YK__COUNT(yk_rule_attrs), YK__REAL(yk_rule_attrs, beta1, 0, 0, 1), YK__REAL(yk_rule_attrs, beta2, 0, 0, 1),
  YK__REAL(yk_rule_attrs, epsilon, 0, 0, YK__HUGE), YK__REAL(yk_rule_attrs, decay, 0, 0, YK__HUGE), { 0 }
};
#define USUAL .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6
static const yk_rule_attrs plain = { USUAL }, decayed = { USUAL, .decay = 0.01 }, two = { USUAL, .n = 2, .decay = 0.1 };
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; f32[]; f32[]; f32[]", &plain, 0.1, 0.9, 0 },
  { "T[33]; T[33]; T[33]; T[33]; f32[]; f32[]; f32[]", &decayed, 0.1, 0.9, 0 },
  { "T[33]; T[33]; T[33]; T[33]; f32[]; f32[]; f32[]; bool[]", &plain, 0.1, 0.9, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[4,7,5]; f32[]; f32[]; f32[]", &plain, 0.1, 0.9, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]; f32[]; f32[]", &two, 0.1, 0.9, 0 }, { 0 }
};

YK__UPDATE_OP(lamb_update, "ApplyLamb", "LAMB, for n variables", yk_rule_attrs, attrs, in, infer, ref, cases);
