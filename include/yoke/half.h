/*
 * half.h - conversions between float and the two 16-bit formats, for extenders.
 *
 * IEEE binary16 and bfloat16, round to nearest even, subnormals and NaN kept.
 * Inline, so that a backend's loops can be vectorised by the compiler.
 */
#ifndef YK_HALF_H
#define YK_HALF_H

#include <stdint.h>
#include <string.h>

static inline float yk_bf16_to_f32(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

static inline uint16_t yk_f32_to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);   /* NaN stays quiet NaN */
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

static inline float yk_f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu, u;
  float f;
  if (e == 31) {
    u = sign | 0x7f800000u | (m << 13);
  } else if (e != 0) {
    u = sign | ((e + 112u) << 23) | (m << 13);
  } else {                                          /* zero or subnormal: m * 2^-24, exact in float */
    float v = (float)m * 5.9604644775390625e-8f;
    memcpy(&u, &v, sizeof u);
    u |= sign;
  }
  memcpy(&f, &u, sizeof f);
  return f;
}

static inline uint16_t yk_f32_to_f16(float f) {
  uint32_t u, sign, a;
  memcpy(&u, &f, sizeof u);
  sign = (u >> 16) & 0x8000u;
  a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);            /* NaN */
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);           /* rounds to infinity */
  if (a < 0x38800000u) {                                             /* subnormal: let float addition round at 2^-24 */
    float v, magic = 0.5f;
    uint32_t w;
    memcpy(&v, &a, sizeof v);
    v += magic;
    memcpy(&w, &v, sizeof w);
    return (uint16_t)(sign | (w - 0x3f000000u));
  }
  a += 0xfffu + ((a >> 13) & 1u);
  return (uint16_t)(sign | ((a - 0x38000000u) >> 13));
}

#endif
