/*
 * matmul_shape.h - the shapes of a matrix product, shared by matmul and its fused forms.
 *
 * Everything but the last two axes is batch; batches are paired by NumPy broadcasting.
 */
#ifndef YK_OPS_MATMUL_SHAPE_H
#define YK_OPS_MATMUL_SHAPE_H

#include "ops/common.h"

/* y [..., M, N] of a [..., M, K] and b [..., K, N], either of them stored transposed. EINVAL shows both. */
yk_code yk__matmul_shape(const yk_matmul_attrs *a, const yk_desc *da, const yk_desc *db, yk_desc *y) YK_CHECKED;
/* Operations of the product a * b = y. */
double yk__matmul_flops(const yk_matmul_attrs *attrs, const yk_desc *da, const yk_desc *y);
/* y = a * b for known shapes. */
void yk__matmul_ref(const yk_matmul_attrs *attrs, const yk_desc *da, const yk_desc *db, const yk_desc *dy, const double *a,
                    const double *b, double *y);
/* Gradients of the product in c->in[0], c->in[1] (bias and activation left aside) from dy. */
void yk__matmul_grad(yk_grad *c, yk_value dy, yk_value *da, yk_value *db);

#endif
