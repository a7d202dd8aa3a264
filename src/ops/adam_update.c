/*
 * adam_update.c - Adam on n variables at once, with decoupled weight decay if asked for (AdamW). Epsilon is added to the
 * uncorrected root of v, as TensorFlow does ("epsilon hat" of the paper); the correction is in the rate alpha.
 *
 * Kingma, Ba, "Adam: a method for stochastic optimization", 2014; Loshchilov, Hutter, "Decoupled weight decay
 * regularization", 2017. The powers of beta are inputs, so that they can be variables that a checkpoint holds.
 */
#include "update.h"

static void rule(double *const *t, double g, const double *s, const void *attrs) {
  const yk_rule_attrs *a = attrs;
  double *w = t[0], *m = t[1], *v = t[2], c1 = 1 - (double)(float)a->beta1, c2 = 1 - (double)(float)a->beta2;
  double alpha = s[0] * sqrt(1 - s[2]) / (1 - s[1]);
  *m += c1 * (g - *m);
  *v += c2 * (g * g - *v);
  *w -= a->decay * s[0] * *w + alpha * (a->nesterov ? (1 - c1) * *m + c1 * g : *m) / (sqrt(*v) + a->epsilon);
}

static yk_code infer(const yk_infer *c) { return yk__update_infer(c, 4, 3); }
static yk_code ref(const yk_ref *c) { return yk__update_ref(c, 3, 3, rule); }

static const yk_port in[] = {
  YK__WRITTEN("w", 0), YK__WRITTEN("m", 1), YK__WRITTEN("v", 1), YK__GRADIENT, YK__RATE, { "p1", YK_T(YK_F32), 0, 0 },
  { "p2", YK_T(YK_F32), 0, 0 }, YK__UPDATE_END
};
static const yk_attr attrs[] = {
  YK__COUNT(yk_rule_attrs), YK__FLAG(yk_rule_attrs, nesterov), YK__REAL(yk_rule_attrs, beta1, 0, 0, 1),
  YK__REAL(yk_rule_attrs, beta2, 0, 0, 1), YK__REAL(yk_rule_attrs, epsilon, 0, 0, YK__HUGE),
  YK__REAL(yk_rule_attrs, decay, 0, 0, YK__HUGE), { 0 }
};
#define USUAL .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8
static const yk_rule_attrs plain = { USUAL }, decayed = { USUAL, .decay = 0.01 }, nesterov = { USUAL, .nesterov = 1 },
                           two = { USUAL, .n = 2, .decay = 0.1 };
/* v >= 0, and powers away from 1. */
static const yk_case cases[] = {
  { "T[]; T[]; T[]; T[]; f32[]; f32[]; f32[]", &plain, 0.1, 0.9, 0 },
  { "T[33]; T[33]; T[33]; T[33]; f32[]; f32[]; f32[]", &decayed, 0.1, 0.9, 0 },
  { "T[33]; T[33]; T[33]; T[33]; f32[]; f32[]; f32[]; bool[]", &plain, 0.1, 0.9, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[4,7,5]; f32[]; f32[]; f32[]", &nesterov, 0.1, 0.9, 0 },
  { "T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; T[7]; T[0,3]; f32[]; f32[]; f32[]", &two, 0.1, 0.9, 0 }, { 0 }
};

YK__UPDATE_OP(adam_update, "ApplyAdam", "Adam or AdamW, for n variables", yk_rule_attrs, attrs, in, infer, ref, cases);
