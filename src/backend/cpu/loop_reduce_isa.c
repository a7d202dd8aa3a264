/*
 * loop_reduce_isa.c - inner loops of the reductions: fold a run into one value, or rows into a row.
 *
 * Compiled once for each instruction set. `omp simd reduction` lets the compiler keep partial results in vector lanes; the order
 * is then fixed by the code, so equal inputs give equal bits. Minimum and maximum hand on a NaN.
 */
#include "loop_isa.h"

#include <math.h>

#define RUN_ADD(name, tag, T, A, field, expr)                                                          \
  static void run_##name##_##tag(int64_t n, const void *xv, yk_accum *acc) {                           \
    const T *a = xv;                                                                                   \
    A s = 0;                                                                                           \
    _Pragma("omp simd reduction(+ : s)") for (int64_t i = 0; i < n; i++) {                             \
      const A x = (A)a[i];                                                                             \
      s += (expr);                                                                                     \
    }                                                                                                  \
    acc->field += s;                                                                                   \
  }
#define RUN_PROD(tag, T, A, field)                                                                     \
  static void run_prod_##tag(int64_t n, const void *xv, yk_accum *acc) {                               \
    const T *a = xv;                                                                                   \
    A s = 1;                                                                                           \
    _Pragma("omp simd reduction(* : s)") for (int64_t i = 0; i < n; i++) s *= (A)a[i];                 \
    acc->field *= s;                                                                                   \
  }
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define RUN_BEST(name, tag, T, A, field, op)                                                           \
  static void run_##name##_##tag(int64_t n, const void *xv, yk_accum *acc) {                           \
    const T *a = xv;                                                                                   \
    T s = (T)a[0];                                                                                     \
    int bad = 0;                                                                                       \
    PRAGMA(omp simd reduction(name : s) reduction(| : bad)) for (int64_t i = 0; i < n; i++) {          \
      const T x = a[i];                                                                                \
      s = x op s ? x : s;                                                                              \
      bad |= x != x;                                                                                   \
    }                                                                                                  \
    if (bad) acc->field = (A)NAN_OR_0(A);                                                              \
    else if ((A)s op acc->field) acc->field = (A)s;                                                    \
  }
#define NAN_OR_0(A) _Generic((A)0, double: (double)NAN, default: 0)

/* Columns in blocks, so that the accumulators of one block stay in the first cache. */
#define ROWS(name, tag, T, A, field, expr)                                                             \
  static void rows_##name##_##tag(int64_t rows, int64_t stride, int64_t n, const void *xv, yk_accum *accv) { \
    for (int64_t at = 0; at < n; at += 512) {                                                          \
      const int64_t m = n - at < 512 ? n - at : 512;                                                   \
      const T *a = (const T *)xv + at;                                                                 \
      A *acc = &accv[at].field;                                                                        \
      for (int64_t r = 0; r < rows; r++, a += stride) {                                                \
        _Pragma("omp simd") for (int64_t i = 0; i < m; i++) {                                          \
          const A x = (A)a[i], s = acc[i];                                                             \
          acc[i] = (expr);                                                                             \
        }                                                                                              \
      }                                                                                                \
    }                                                                                                  \
  }

#define FLOATS(tag, T)                                                                                 \
  RUN_ADD(sum, tag, T, double, f, x) RUN_ADD(squares, tag, T, double, f, x * x) RUN_PROD(tag, T, double, f) \
  RUN_BEST(min, tag, T, double, f, <) RUN_BEST(max, tag, T, double, f, >)                              \
  ROWS(sum, tag, T, double, f, s + x) ROWS(squares, tag, T, double, f, s + x * x) ROWS(prod, tag, T, double, f, s * x) \
  ROWS(min, tag, T, double, f, x < s || x != x ? x : s) ROWS(max, tag, T, double, f, x > s || x != x ? x : s)
#define WRAP(s, op, x) (int64_t)((uint64_t)(s) op (uint64_t)(x))
#define RUN_INT(name, tag, T, expr, unit, op)                                                          \
  static void run_##name##_##tag(int64_t n, const void *xv, yk_accum *acc) {                           \
    const T *a = xv;                                                                                   \
    uint64_t s = unit;                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                  \
      const uint64_t x = (uint64_t)(int64_t)a[i];                                                      \
      s = s op (expr);                                                                                 \
    }                                                                                                  \
    acc->i = WRAP(acc->i, op, s);                                                                      \
  }
#define INTS(tag, T)                                                                                   \
  RUN_INT(sum, tag, T, x, 0, +) RUN_INT(squares, tag, T, x * x, 0, +) RUN_INT(prod, tag, T, x, 1, *)   \
  RUN_BEST(min, tag, T, int64_t, i, <) RUN_BEST(max, tag, T, int64_t, i, >)                            \
  ROWS(sum, tag, T, int64_t, i, WRAP(s, +, x)) ROWS(squares, tag, T, int64_t, i, WRAP(s, +, WRAP(x, *, x))) \
  ROWS(prod, tag, T, int64_t, i, WRAP(s, *, x)) ROWS(min, tag, T, int64_t, i, x < s ? x : s)           \
  ROWS(max, tag, T, int64_t, i, x > s ? x : s)

FLOATS(f32, float)
FLOATS(f64, double)
INTS(i32, int32_t)
INTS(i64, int64_t)
INTS(u8, uint8_t)

#define ALL(kind, name) { kind##_##name##_f32, kind##_##name##_f64, kind##_##name##_i32, kind##_##name##_i64, kind##_##name##_u8 }
#define FOLDS(kind) { ALL(kind, sum), ALL(kind, squares), ALL(kind, prod), ALL(kind, min), ALL(kind, max) }

extern const yk_reduce_table YK_ISA_NAME(yk__reduce_table);
const yk_reduce_table YK_ISA_NAME(yk__reduce_table) = { .run = FOLDS(run), .rows = FOLDS(rows) };
