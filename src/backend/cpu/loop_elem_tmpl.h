/*
 * loop_elem_tmpl.h - loop_elem.def turned into functions for one type; included once a type by loop_elem_isa.c.
 *
 * The includer defines T, F(f) for the suffix, and U for integers. Integer types get only the formulae that exist for them.
 */
#define LOOP1(name, expr)                                                                              \
  static void F(name##_v)(ARGS) {                                                                      \
    const T *a = xv;                                                                                   \
    T *o = ov;                                                                                         \
    const T p0 = (T)p[0], p1 = (T)p[1];                                                                \
    UNUSED; (void)p0; (void)p1;                                                                        \
    SIMD for (int64_t i = 0; i < n; i++) {                                                             \
      const T x = a[i];                                                                                \
      o[i] = (expr);                                                                                   \
    }                                                                                                  \
  }
#define LOOP2(name, R, mode, xi, yi, expr)                                                             \
  static void F(name##_##mode)(ARGS) {                                                                 \
    const T *a = xv, *b = yv;                                                                          \
    R *o = ov;                                                                                         \
    const T p0 = (T)p[0], p1 = (T)p[1], x0 = a[0], y0 = b[0];                                          \
    UNUSED; (void)p0; (void)p1; (void)x0; (void)y0;                                                    \
    SIMD for (int64_t i = 0; i < n; i++) {                                                             \
      const T x = xi, y = yi;                                                                          \
      o[i] = (R)(expr);                                                                                \
    }                                                                                                  \
  }
#define LOOP2_ALL(name, R, expr)                                                                       \
  LOOP2(name, R, vv, a[i], b[i], expr) LOOP2(name, R, vs, a[i], y0, expr) LOOP2(name, R, sv, x0, b[i], expr)

#ifdef U
#define FUN1(name, f)
#define FUN2(name, f)
#define FUN3(name, f)
#define NUM1(name, f, i) LOOP1(name, i)
#define NUM2(name, f, i) LOOP2_ALL(name, T, i)
#else
static inline T F(gelu_tanh_slope)(T x) {
  T u = C(1.5957691216057307118) * (x + C(0.044715) * x * x * x), s = F(m_sigmoid)(u);
  return s + x * s * (C(1) - s) * C(1.5957691216057307118) * (C(1) + C(0.134145) * x * x);
}
static inline T F(silu_slope)(T x) {
  T s = F(m_sigmoid)(x);
  return s * (C(1) + x * (C(1) - s));
}
#define FUN1(name, f) LOOP1(name, f)
#define FUN2(name, f) LOOP2(name, T, v, a[i], b[i], f)
#define FUN3(name, f)                                                                                  \
  static void F(name##_v)(ARGS) {                                                                      \
    const T *a = xv, *b = yv, *c = zv;                                                                 \
    T *o = ov;                                                                                         \
    (void)p;                                                                                           \
    SIMD for (int64_t i = 0; i < n; i++) {                                                             \
      const T x = a[i], y = b[i], z = c[i];                                                            \
      o[i] = (f);                                                                                      \
    }                                                                                                  \
  }
#define NUM1(name, f, i) LOOP1(name, f)
#define NUM2(name, f, i) LOOP2_ALL(name, T, f)
#endif
#define CMP2(name, f) LOOP2_ALL(name, uint8_t, f)
#include "loop_elem.def"
#undef FUN1
#undef FUN2
#undef FUN3
#undef NUM1
#undef NUM2
#undef CMP2
#undef LOOP1
#undef LOOP2
#undef LOOP2_ALL
