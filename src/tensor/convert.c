/*
 * convert.c - elements of any dtype to and from double.
 *
 * This is the exact, unhurried conversion of references, tests and printing.
 * A double goes to a 16-bit format with one rounding only: rounding to float
 * first is done "to odd", which keeps what the second rounding needs to know.
 */
#include "tensor/desc.h"

#include <yoke/half.h>

#include <math.h>
#include <string.h>

void yk__to_double(yk_dtype t, const void *src, double *dst, int64_t n) {
  int64_t i;
  switch (t) {
    case YK_F32:  for (i = 0; i < n; i++) dst[i] = (double)((const float *)src)[i]; break;
    case YK_F64:  for (i = 0; i < n; i++) dst[i] = ((const double *)src)[i]; break;
    case YK_F16:  for (i = 0; i < n; i++) dst[i] = (double)yk_f16_to_f32(((const uint16_t *)src)[i]); break;
    case YK_BF16: for (i = 0; i < n; i++) dst[i] = (double)yk_bf16_to_f32(((const uint16_t *)src)[i]); break;
    case YK_I32:  for (i = 0; i < n; i++) dst[i] = (double)((const int32_t *)src)[i]; break;
    case YK_I64:  for (i = 0; i < n; i++) dst[i] = (double)((const int64_t *)src)[i]; break;
    case YK_U8:   for (i = 0; i < n; i++) dst[i] = (double)((const uint8_t *)src)[i]; break;
    case YK_BOOL: for (i = 0; i < n; i++) dst[i] = ((const uint8_t *)src)[i] != 0; break;
    case YK_NONE:
    case YK_NDTYPES: break;
  }
}

/* The float next to d, on the side where the last bit is odd; d itself if it is a float. */
static float to_odd(double d) {
  float f = (float)d;
  uint32_t u;
  if (isnan(d) || (double)f == d) return f;
  memcpy(&u, &f, sizeof u);
  if (u & 1u) return f;
  u = fabs((double)f) < fabs(d) ? u + 1 : u - 1;      /* infinity becomes the largest float */
  memcpy(&f, &u, sizeof f);
  return f;
}

/* Truncated towards zero, kept within [lo, hi]. `above` is the first double beyond hi. */
static int64_t saturate(double d, int64_t lo, int64_t hi, double above) {
  if (isnan(d)) return 0;
  if (d >= above) return hi;
  if (d <= (double)lo) return lo;
  return (int64_t)d;
}

void yk__from_double(yk_dtype t, const double *src, void *dst, int64_t n) {
  int64_t i;
  switch (t) {
    case YK_F32:  for (i = 0; i < n; i++) ((float *)dst)[i] = (float)src[i]; break;
    case YK_F64:  for (i = 0; i < n; i++) ((double *)dst)[i] = src[i]; break;
    case YK_F16:  for (i = 0; i < n; i++) ((uint16_t *)dst)[i] = yk_f32_to_f16(to_odd(src[i])); break;
    case YK_BF16: for (i = 0; i < n; i++) ((uint16_t *)dst)[i] = yk_f32_to_bf16(to_odd(src[i])); break;
    case YK_I32:
      for (i = 0; i < n; i++) ((int32_t *)dst)[i] = (int32_t)saturate(src[i], INT32_MIN, INT32_MAX, 2147483648.0);
      break;
    case YK_I64:
      for (i = 0; i < n; i++) ((int64_t *)dst)[i] = saturate(src[i], INT64_MIN, INT64_MAX, 9223372036854775808.0);
      break;
    case YK_U8:   for (i = 0; i < n; i++) ((uint8_t *)dst)[i] = (uint8_t)saturate(src[i], 0, 255, 256.0); break;
    case YK_BOOL: for (i = 0; i < n; i++) ((uint8_t *)dst)[i] = !isnan(src[i]) && src[i] != 0; break;
    case YK_NONE:
    case YK_NDTYPES: break;
  }
}
