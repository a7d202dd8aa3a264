/*
 * loop_conv_isa.c - vector code of the convolutions that oneDNN does not take (f64, odd shapes).
 *
 * Compiled once for each instruction set; the templates are included once for f32 and once for f64.
 */
#include "loop_conv.h"

#include <string.h>

#define SIMD _Pragma("omp simd")

#define T float
#define F(f) f##_f32
#include "loop_gemv_tmpl.h"
#include "loop_conv_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_gemv_tmpl.h"
#include "loop_conv_tmpl.h"
#undef T
#undef F

#define BOTH(name) { name##_f32, name##_f64 }
extern const yk_body_table YK_ISA_NAME(yk__conv_table);
const yk_body_table YK_ISA_NAME(yk__conv_table) = { .body = {
  [CONV_FORWARD] = BOTH(forward), [CONV_GRAD_INPUT] = BOTH(grad_input), [CONV_GRAD_FILTER] = BOTH(grad_filter) } };
