/*
 * loop_norm_isa.c - vector code of batch norm, layer norm and local response normalisation.
 *
 * Compiled once for each instruction set; the templates are included once for f32 and once for f64. All are bound by memory:
 * batch norm goes over its input twice, its gradient over three values twice.
 */
#include "loop_norm.h"

#include <string.h>
#include "loop_math.h"

#define SIMD _Pragma("omp simd")
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define SIMD_SUM(s) PRAGMA(omp simd reduction(+ : s))
#define SIMD_SUM2(s, q) PRAGMA(omp simd reduction(+ : s, q))
#define SQRT_f32 sqrtf
#define SQRT_f64 sqrt

typedef struct call {
  const yk_norm_state *s;
  void *const *arg;
  double *partial;                       /* [chunks, 2, n] */
  void *scale;                           /* [n] or [3, n] factors of the second pass */
  const void *mean;
  void *y;                               /* train, infer: the output; gradients: the forward one if a relu was fused, or NULL */
  void *dx, *dgamma, *dbeta;
  int fixed;                             /* statistics are constants */
} call;

enum { LRN_SPAN = NORM_BLOCK + 4 * LRN_RADIUS };

#define T float
#define F(f) f##_f32
#include "loop_norm_tmpl.h"
#include "loop_lrn_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_norm_tmpl.h"
#include "loop_lrn_tmpl.h"
#undef T
#undef F

#define BOTH(name) { name##_f32, name##_f64 }
extern const yk_body_table YK_ISA_NAME(yk__norm_table);
const yk_body_table YK_ISA_NAME(yk__norm_table) = { .body = {
  [NORM_BN_TRAIN] = BOTH(bn_train), [NORM_BN_GRAD] = BOTH(bn_grad), [NORM_BN_INFER] = BOTH(bn_infer),
  [NORM_BN_INFER_GRAD] = BOTH(bn_grad),
  [NORM_LAYER] = BOTH(layer), [NORM_LAYER_GRAD] = BOTH(layer_grad), [NORM_LRN] = BOTH(lrn), [NORM_LRN_GRAD] = BOTH(lrn) } };
