/*
 * loop_math.h - elementary functions in f32 that a compiler can vectorise, and their f64 twins.
 *
 * Every function is one expression without branches or calls, so a loop around it becomes vector code; errors are
 * about 2 units in the last place, infinities, NaN and denormals come out right. The f64 twins call the C library:
 * double is for checking gradients, not for speed. The polynomials are Chebyshev fits made for the intervals noted.
 */
#ifndef YK_CPU_LOOP_MATH_H
#define YK_CPU_LOOP_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t m_bits(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
static inline float m_float(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }

/* 2^n for n in [-126, 127]. */
static inline float m_pow2(int32_t n) { return m_float((uint32_t)(n + 127) << 23); }

/* exp(x) = 2^n * (1 + q), |r| <= ln2/2: the parts that exp and expm1 share. Adding 1.5*2^23 rounds to an integer. */
static inline float m_exp_parts(float x, int32_t *n) {
  const float magic = 12582912.0f;
  float shifted = x * 1.44269504089f + magic, k = shifted - magic;
  float r = (x - k * 0.693359375f) + k * 2.12194440055e-4f;
  float p = 0.00139276846166f;
  p = p * r + 0.00836438069329f;
  p = p * r + 0.0416665454211f;
  p = p * r + 0.166665696281f;
  p = p * r + 0.5f;
  *n = (int32_t)(m_bits(shifted) - m_bits(magic));
  return p * r * r + r;
}

static inline float m_exp_f32(float x) {
  int32_t n, half;
  float q;
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  q = m_exp_parts(x, &n);
  half = n >> 1;                                          /* two factors: 2^n itself may overflow or be a denormal */
  return ((q + 1.0f) * m_pow2(half)) * m_pow2(n - half);
}

/* exp(x) - 1 without cancellation, for x <= 88. */
static inline float m_expm1_f32(float x) {
  int32_t n;
  float q, s;
  x = x < -25.0f ? -25.0f : x;
  x = x > 88.0f ? 88.0f : x;
  q = m_exp_parts(x, &n);
  s = m_pow2(n > 127 ? 127 : n);
  return s * q + (s - 1.0f);
}

/* log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)]. */
static inline float m_log_core(float f) {
  float z = f * f, p = 0.0697161147145f;
  p = p * f - 0.114797338466f;
  p = p * f + 0.116854199235f;
  p = p * f - 0.124256873315f;
  p = p * f + 0.142490576457f;
  p = p * f - 0.166678023195f;
  p = p * f + 0.200007157489f;
  p = p * f - 0.24999996958f;
  p = p * f + 0.3333333118f;
  return f + (p * f * z - 0.5f * z);
}

static inline float m_log_f32(float x) {
  float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x, y;
  int32_t e = x < 1.17549435e-38f ? -23 : 0;
  uint32_t u = m_bits(scaled) - 0x3f3504f3u;              /* bits of sqrt(1/2): the exponent below is then the rounded one */
  float k;
  e += (int32_t)u >> 23;
  k = (float)e;
  y = m_log_core(m_float((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f);
  y = (y - k * 2.12194440055e-4f) + k * 0.693359375f;
  y = x == 0.0f ? -INFINITY : y;
  y = x < 0.0f ? NAN : y;
  return x < INFINITY ? y : x;                            /* infinity and NaN map to themselves */
}

/* log(1 + x) for x >= 0: the rounding of 1 + x is put back to first order. */
static inline float m_log1p_f32(float x) {
  float w = 1.0f + x;
  return m_log_f32(w) + (x - (w - 1.0f)) / w;
}

static inline float m_sigmoid_f32(float x) { return 1.0f / (1.0f + m_exp_f32(-x)); }

static inline float m_tanh_f32(float x) {
  float a = x < 0.0f ? x : -x, t, y;                      /* -|x| */
  t = m_expm1_f32(2.0f * a);
  y = -t / (t + 2.0f);
  y = x < 0.0f ? -y : y;
  return x != 0.0f ? y : x;                               /* keeps -0 and, with x NaN, y NaN */
}

static inline float m_softplus_f32(float x) {
  float a = x < 0.0f ? x : -x, p = x > 0.0f ? x : 0.0f;
  return p + m_log1p_f32(m_exp_f32(a));
}

/* P(X <= x) of the standard normal: half of erfc(|x|/sqrt 2) = exp(-x^2/2) * u * R(u), u = 1/(1 + 0.35 t). */
static inline float m_phi_f32(float x, float gauss) {
  float t = (x < 0.0f ? -x : x) * 0.707106781187f, u = 1.0f / (1.0f + 0.35f * t), r = 0.03748224488f, e;
  r = r * u - 0.15420886f;
  r = r * u + 0.1710619049f;
  r = r * u - 0.01485844487f;
  r = r * u + 0.07726273482f;
  r = r * u + 0.1507353006f;
  r = r * u + 0.1497675571f;
  r = r * u + 0.1881593563f;
  r = r * u + 0.1971134837f;
  r = r * u + 0.1974847275f;
  e = 0.5f * gauss * (u * r);
  return x < 0.0f ? e : 1.0f - e;
}

static inline float m_gauss_f32(float x) { return m_exp_f32(-0.5f * x * x); }        /* exp(-x^2/2) */

static inline double m_exp_f64(double x) { return exp(x); }
static inline double m_expm1_f64(double x) { return expm1(x); }
static inline double m_log_f64(double x) { return log(x); }
static inline double m_log1p_f64(double x) { return log1p(x); }
static inline double m_sigmoid_f64(double x) { return 1.0 / (1.0 + exp(-x)); }
static inline double m_tanh_f64(double x) { return tanh(x); }
static inline double m_softplus_f64(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static inline double m_gauss_f64(double x) { return exp(-0.5 * x * x); }
static inline double m_phi_f64(double x, double gauss) { (void)gauss; return 0.5 * erfc(-x * 0.70710678118654752440); }

#endif
