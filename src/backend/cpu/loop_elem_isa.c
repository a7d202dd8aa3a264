/*
 * loop_elem_isa.c - the inner loops of the element-wise kernels, one function a formula, type and broadcast pattern.
 *
 * Compiled once for each instruction set. The loops are marked `omp simd`, which states what is true here: no element
 * depends on another, even if the output is the same memory as an input. loop_elem.def has the formulae.
 */
#include "loop.h"

#include <yoke/half.h>
#include "loop_math.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

#define SIMD _Pragma("omp simd")
#define ARGS int64_t n, const void *xv, const void *yv, const void *zv, void *ov, const double *p
#define UNUSED (void)yv, (void)zv, (void)p

/* ---- floating point: the formulae twice ---------------------------------------------------------------- */

#define SQRT_f32 sqrtf
#define SQRT_f64 sqrt
#define SIN_f32 sinf
#define SIN_f64 sin
#define COS_f32 cosf
#define COS_f64 cos
#define FLOOR_f32 floorf
#define FLOOR_f64 floor
#define CEIL_f32 ceilf
#define CEIL_f64 ceil
#define POW_f32 powf
#define POW_f64 pow
#define ABS_f32 fabsf
#define ABS_f64 fabs
#define C(c) ((T)(c))

#define T float
#define F(f) f##_f32
#include "loop_elem_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_elem_tmpl.h"
#undef T
#undef F

/* ---- integers ------------------------------------------------------------------------------------------------ */

#define INT_HELPERS(T, U, tag)                                                                         \
  static inline T int_div_##tag(T x, T y) {                                                            \
    if (y == 0) return 0;                                                                              \
    return (T)-1 < 0 && y == (T)-1 ? (T)(0u - (U)x) : (T)(x / y);                                      \
  }                                                                                                    \
  static inline T int_pow_##tag(T x, T y) {                                                            \
    U r = 1, b = (U)x;                                                                                 \
    if (y < 0) return x == 1 ? (T)1 : (T)-1 < 0 && x == (T)-1 ? ((U)y & 1u ? (T)-1 : (T)1) : (T)0;     \
    for (; y > 0; y = (T)(y >> 1), b = (U)(b * b))                                                     \
      if ((U)y & 1u) r = (U)(r * b);                                                                   \
    return (T)r;                                                                                       \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
INT_HELPERS(int32_t, uint32_t, i32)
INT_HELPERS(int64_t, uint64_t, i64)
INT_HELPERS(uint8_t, uint32_t, u8)

#define T int32_t
#define U uint32_t
#define F(f) f##_i32
#include "loop_elem_tmpl.h"
#undef T
#undef U
#undef F
#define T int64_t
#define U uint64_t
#define F(f) f##_i64
#include "loop_elem_tmpl.h"
#undef T
#undef U
#undef F
#define T uint8_t
#define U uint32_t
#define F(f) f##_u8
#include "loop_elem_tmpl.h"
#undef T
#undef U
#undef F
#pragma GCC diagnostic pop

/* ---- bool, where, cast ------------------------------------------------------------------------------------ */

#define LOGIC(name, mode, xi, yi, expr)                                                                \
  static void name##_##mode(ARGS) {                                                                    \
    const uint8_t *a = xv, *b = yv;                                                                    \
    uint8_t *o = ov;                                                                                   \
    (void)b; UNUSED;                                                                                   \
    SIMD for (int64_t i = 0; i < n; i++) o[i] = (uint8_t)(expr);                                       \
  }
LOGIC(and, vv, i, i, (a[i] != 0) & (b[i] != 0))
LOGIC(and, vs, i, 0, (a[i] != 0) & (b[0] != 0))
LOGIC(and, sv, 0, i, (a[0] != 0) & (b[i] != 0))
LOGIC(or, vv, i, i, (a[i] != 0) | (b[i] != 0))
LOGIC(or, vs, i, 0, (a[i] != 0) | (b[0] != 0))
LOGIC(or, sv, 0, i, (a[0] != 0) | (b[i] != 0))
LOGIC(not, v, i, 0, a[i] == 0)

#define WHERE(tag, type, mode, cm, am, bm)                                                             \
  static void where_##tag##_##mode(ARGS) {                                                             \
    const uint8_t *c = xv;                                                                             \
    const type *a = yv, *b = zv;                                                                       \
    type *o = ov;                                                                                      \
    (void)p;                                                                                           \
    SIMD for (int64_t i = 0; i < n; i++) {                                                             \
      const type s = a[am * i], t = b[bm * i];                                                         \
      o[i] = c[cm * i] ? s : t;                                                                        \
    }                                                                                                  \
  }
#define WHERES(tag, type)                                                                              \
  WHERE(tag, type, 0, 0, 0, 0) WHERE(tag, type, 1, 1, 0, 0) WHERE(tag, type, 2, 0, 1, 0) WHERE(tag, type, 3, 1, 1, 0) \
  WHERE(tag, type, 4, 0, 0, 1) WHERE(tag, type, 5, 1, 0, 1) WHERE(tag, type, 6, 0, 1, 1) WHERE(tag, type, 7, 1, 1, 1)
WHERES(b1, uint8_t)
WHERES(b2, uint16_t)
WHERES(b4, uint32_t)
WHERES(b8, uint64_t)

/* To an integer: truncate, saturate, NaN gives 0. */
#define CAST(from, ft, to, tt, expr)                                                                   \
  static void cast_##from##_##to(ARGS) {                                                               \
    const ft *a = xv;                                                                                  \
    tt *o = ov;                                                                                        \
    UNUSED;                                                                                            \
    SIMD for (int64_t i = 0; i < n; i++) {                                                             \
      const ft x = a[i];                                                                               \
      o[i] = (tt)(expr);                                                                               \
    }                                                                                                  \
  }
static inline int32_t f_to_i32(double x) {
  x = x != x ? 0.0 : x;
  x = x < -2147483648.0 ? -2147483648.0 : x;
  return (int32_t)(x > 2147483647.0 ? 2147483647.0 : x);
}
static inline int64_t f_to_i64(double x) {
  if (x != x) return 0;
  if (x <= -9223372036854775808.0) return INT64_MIN;
  return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;
}
static inline uint8_t f_to_u8(double x) {
  x = x > 0.0 ? x : 0.0;
  return (uint8_t)(int32_t)(x > 255.0 ? 255.0 : x);
}
static inline int32_t i_to_i32(int64_t x) { return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x; }
static inline uint8_t i_to_u8(int64_t x) { return x < 0 ? 0 : x > 255 ? 255 : (uint8_t)x; }
#define CASTS_FLOAT(from, ft)                                                                          \
  CAST(from, ft, f32, float, x) CAST(from, ft, f64, double, x) CAST(from, ft, i32, int32_t, f_to_i32((double)x)) \
  CAST(from, ft, i64, int64_t, f_to_i64((double)x)) CAST(from, ft, u8, uint8_t, f_to_u8((double)x)) \
  CAST(from, ft, bool, uint8_t, x != 0)
#define CASTS_INT(from, ft)                                                                            \
  CAST(from, ft, f32, float, x) CAST(from, ft, f64, double, x) CAST(from, ft, i32, int32_t, i_to_i32(x)) \
  CAST(from, ft, i64, int64_t, x) CAST(from, ft, u8, uint8_t, i_to_u8(x)) CAST(from, ft, bool, uint8_t, x != 0)
CASTS_FLOAT(f32, float)
CASTS_FLOAT(f64, double)
CASTS_INT(i32, int32_t)
CASTS_INT(i64, int64_t)
CASTS_INT(u8, uint8_t)

/* ---- halves ----------------------------------------------------------------------------------------------- */

static void bf16_to_f32(ARGS) {
  const uint16_t *a = xv;
  uint32_t *o = ov;
  UNUSED;
  SIMD for (int64_t i = 0; i < n; i++) o[i] = (uint32_t)a[i] << 16;
}

static void f32_to_bf16(ARGS) {
  const uint32_t *a = xv;
  uint16_t *o = ov;
  UNUSED;
  SIMD for (int64_t i = 0; i < n; i++) {
    uint32_t u = a[i], even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, nan = (u >> 16) | 0x40u;
    o[i] = (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : even);
  }
}

static void f16_to_f32(ARGS) {
  const uint16_t *a = xv;
  float *o = ov;
  int64_t i = 0;
  UNUSED;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(a + i))));
#endif
  for (; i < n; i++) o[i] = yk_f16_to_f32(a[i]);
}

static void f32_to_f16(ARGS) {
  const float *a = xv;
  uint16_t *o = ov;
  int64_t i = 0;
  UNUSED;
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(void *)(o + i), _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) o[i] = yk_f32_to_f16(a[i]);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

#define FUN1(name, f) [E_##name] = { [L_F32] = { [L_VV] = name##_v_f32 }, [L_F64] = { [L_VV] = name##_v_f64 } },
#define FUN2 FUN1
#define FUN3 FUN1
#define NUM1(name, f, i) [E_##name] = { [L_F32] = { [L_VV] = name##_v_f32 }, [L_F64] = { [L_VV] = name##_v_f64 }, \
    [L_I32] = { [L_VV] = name##_v_i32 }, [L_I64] = { [L_VV] = name##_v_i64 }, [L_U8] = { [L_VV] = name##_v_u8 } },
#define THREE(name, t) { name##_vv_##t, name##_vs_##t, name##_sv_##t }
#define CMP2(name, f) [E_##name] = { [L_F32] = THREE(name, f32), [L_F64] = THREE(name, f64), [L_I32] = THREE(name, i32), \
    [L_I64] = THREE(name, i64), [L_U8] = THREE(name, u8) },
#define NUM2(name, f, i) CMP2(name, f)
#define EIGHT(tag) { where_##tag##_0, where_##tag##_1, where_##tag##_2, where_##tag##_3, where_##tag##_4, where_##tag##_5, \
    where_##tag##_6, where_##tag##_7 }
#define TO(from) { cast_##from##_f32, cast_##from##_f64, cast_##from##_i32, cast_##from##_i64, cast_##from##_u8, \
    cast_##from##_bool }

extern const yk_elem_table YK_ISA_NAME(yk__elem_table);
const yk_elem_table YK_ISA_NAME(yk__elem_table) = {
  .fn = {
#include "loop_elem.def"
  },
  .where = { EIGHT(b1), EIGHT(b2), EIGHT(b4), EIGHT(b8) },
  .cast = { TO(f32), TO(f64), TO(i32), TO(i64), TO(u8) },
  .logic = { { and_vv, and_vs, and_sv }, { or_vv, or_vs, or_sv }, { not_v, NULL, NULL } },
  .to_f32 = { f16_to_f32, bf16_to_f32 },
  .from_f32 = { f32_to_f16, f32_to_bf16 },
};
