/*
 * loop_picture_isa.c - vector code of resizing and of features in boxes.
 *
 * Compiled once for each instruction set; the template is included once for f32 and once for f64.
 */
#include "loop_picture.h"

#include <string.h>

#define SIMD _Pragma("omp simd")

#define T float
#define F(f) f##_f32
#include "loop_picture_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_picture_tmpl.h"
#undef T
#undef F

#define BOTH(name) { name##_f32, name##_f64 }
extern const yk_body_table YK_ISA_NAME(yk__picture_table);
const yk_body_table YK_ISA_NAME(yk__picture_table) = { .body = {
  [PICTURE_RESIZE] = BOTH(resize), [PICTURE_RESIZE_GRAD] = BOTH(resize_grad), [PICTURE_ROI] = BOTH(roi), [PICTURE_ROI_GRAD] = BOTH(roi_grad) } };
