/*
 * loop_softmax_isa.c - vector code of the softmax family.
 *
 * Compiled once for each instruction set. One row is one example; rows are shared out over the team. The template is
 * included once for f32 and once for f64.
 */
#include "loop_softmax.h"

#include "loop_math.h"

#define SIMD _Pragma("omp simd")
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define SIMD_SUM(s) PRAGMA(omp simd reduction(+ : s))
#define SIMD_MAX(s) PRAGMA(omp simd reduction(max : s))

typedef struct call { const yk_softmax_state *s; void *const *arg; } call;

#define T float
#define F(f) f##_f32
#include "loop_softmax_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_softmax_tmpl.h"
#undef T
#undef F

extern const yk_body_table YK_ISA_NAME(yk__softmax_table);
const yk_body_table YK_ISA_NAME(yk__softmax_table) = { .body = { { run_f32, run_f64 } } };
