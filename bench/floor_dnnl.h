/*
 * floor_dnnl.h - the primitives of the floor that the CPU driver's dnnl_compat.h does not have, over oneDNN 2.6 and 3.x.
 *
 * Batch normalisation, response normalisation, the gradient of relu, and addition. All return 0 or oneDNN's status, and
 * expect their scratch memory from the caller.
 */
#ifndef YK_BENCH_FLOOR_DNNL_H
#define YK_BENCH_FLOOR_DNNL_H

#include <stdbool.h>
#include "backend/cpu/dnnl_compat.h"

typedef struct floor_lrn { int window; float alpha, beta, k; } floor_lrn;   /* alpha is divided by the window */

/* Is the shift an input of the gradient of a batch normalisation? oneDNN counts the arguments. */
enum { FLOOR_NORM_GRAD_TAKES_SHIFT = DNNL_VERSION_MAJOR < 3 };

/* x describes source, destination and their differences alike. *out: dnnl_primitive_desc_destroy. */
int floor_describe_norm(dnnl_engine_t e, bool backward, bool relu, const yk_md *x, dnnl_primitive_desc_t *out);
int floor_describe_lrn(dnnl_engine_t e, bool backward, const floor_lrn *a, const yk_md *x, dnnl_primitive_desc_t *out);
/* From the result of relu, in place in the difference. */
int floor_describe_relu_grad(dnnl_engine_t e, const yk_md *x, dnnl_primitive_desc_t *out);
/* a + b, or relu of it, in place in a. */
int floor_describe_add(dnnl_engine_t e, bool relu, const yk_md *x, dnnl_primitive_desc_t *out);

#endif
