/*
 * loop_update_isa.c - inner loops of the optimizer steps and moving averages.
 *
 * Compiled once for each instruction set. Variables, slots and gradients never overlap, and each is run over once.
 */
#include "loop_isa.h"

#define UPDATES(tag, T)                                                                                \
  static void sgd_##tag(int64_t n, void *wv, const void *gv, double lr) {                              \
    T *restrict w = wv;                                                                                \
    const T *restrict g = gv;                                                                          \
    const T r = (T)lr;                                                                                 \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) w[i] -= r * g[i];                              \
  }                                                                                                    \
  static void momentum_##tag(int64_t n, void *wv, void *av, const void *gv, double lr, double m, uint32_t nesterov) { \
    T *restrict w = wv, *restrict a = av;                                                              \
    const T *restrict g = gv;                                                                          \
    const T r = (T)lr, mu = (T)m;                                                                      \
    if (nesterov) {                                                                                    \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                            \
        a[i] = mu * a[i] + g[i];                                                                       \
        w[i] -= r * g[i] + r * mu * a[i];                                                              \
      }                                                                                                \
    } else {                                                                                           \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                                            \
        a[i] = mu * a[i] + g[i];                                                                       \
        w[i] -= r * a[i];                                                                              \
      }                                                                                                \
    }                                                                                                  \
  }                                                                                                    \
  static void ema_##tag(int64_t n, void *sv, const void *vv, double decay) {                           \
    T *restrict s = sv;                                                                                \
    const T *restrict v = vv;                                                                          \
    const T k = (T)1 - (T)decay;                                                                       \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) s[i] -= k * (s[i] - v[i]);                     \
  }
UPDATES(f32, float)
UPDATES(f64, double)

extern const yk_update_table YK_ISA_NAME(yk__update_table);
const yk_update_table YK_ISA_NAME(yk__update_table) = {
  .fn = { { sgd_f32, momentum_f32, ema_f32 }, { sgd_f64, momentum_f64, ema_f64 } } };
