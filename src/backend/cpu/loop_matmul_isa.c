/*
 * loop_matmul_isa.c - vector code of the matrix products that oneDNN does not take (f64 above all).
 *
 * Compiled once for each instruction set; the templates are included once for f32 and once for f64.
 */
#include "loop_matmul.h"

#include <string.h>

#define SIMD _Pragma("omp simd")
enum { MM_ROWS = 32, MM_COLUMNS = 256, MM_DEPTH = 128 };

#define T float
#define F(f) f##_f32
#include "loop_gemv_tmpl.h"
#include "loop_matmul_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_gemv_tmpl.h"
#include "loop_matmul_tmpl.h"
#undef T
#undef F

extern const yk_body_table YK_ISA_NAME(yk__matmul_table);
const yk_body_table YK_ISA_NAME(yk__matmul_table) = { .body = { { matmul_f32, matmul_f64 } } };
