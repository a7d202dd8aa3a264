/*
 * loop_pool_isa.c - vector code of the pooling kernels.
 *
 * Compiled once for each instruction set; the template is included once for f32 and once for f64.
 */
#include "loop_pool.h"

#include <string.h>

#define SIMD _Pragma("omp simd")
enum { POOL_BLOCK = 256 };

#define T float
#define F(f) f##_f32
#include "loop_pool_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_pool_tmpl.h"
#undef T
#undef F

#define BOTH(name) { name##_f32, name##_f64 }
extern const yk_body_table YK_ISA_NAME(yk__pool_table);
const yk_body_table YK_ISA_NAME(yk__pool_table) = { .body = {
  [POOL_MAX] = BOTH(max_pool), [POOL_MAX_GRAD] = BOTH(max_pool_grad), [POOL_AVG] = BOTH(avg_pool),
  [POOL_AVG_GRAD] = BOTH(avg_pool_grad) } };
