/*
 * pool.h - geometry of max and average pooling.
 *
 * A window may reach into the padding but never lies in it entirely, so every output cell has a
 * maximum and a mean.
 */
#ifndef YK_OPS_POOL_H
#define YK_OPS_POOL_H

#include "ops/common.h"
#include "ops/window.h"

typedef struct yk_pool {
  yk_window at[2];               /* vertical, horizontal */
  yk_desc y;                     /* [N, H', W', C] of x's dtype */
} yk_pool;

/* Geometry over x [N,H,W,C]. EINVAL: rank, a window larger than the padded x, padding as large as the window. */
yk_code yk__pool_of(const yk_pool_attrs *a, const yk_desc *x, yk_pool *out) YK_CHECKED;
/* The same, and dy checked to be of y's shape. */
yk_code yk__pool_of_grad(const yk_pool_attrs *a, const yk_desc *x, const yk_desc *dy, yk_pool *out) YK_CHECKED;
/* Rows or columns of x under output cell o: [*begin, *end), clipped to x. */
void yk__pool_range(const yk_window *w, int64_t o, int64_t *begin, int64_t *end);

extern const yk_attr yk__pool_attrs[];

/* The cases of both poolings' forward and gradient forms differ in their shapes only; these are their attributes. */
extern const yk_pool_attrs yk__pool_3x3_s2, yk__pool_2x2, yk__pool_3x2_s1_valid, yk__pool_3x3_s2_valid, yk__pool_2x3_s3_same,
  yk__pool_explicit;

#endif
