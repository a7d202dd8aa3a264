/*
 * loop_matmul.h - what preparing and running share in the matrix products.
 *
 * A product is a batch of [m, k] x [k, n]; where a factor is broadcast over a batch dim, its stride there is 0.
 */
#ifndef YK_CPU_LOOP_MATMUL_H
#define YK_CPU_LOOP_MATMUL_H

#include "loop_nn.h"

typedef struct yk_matmul_state {
  yk_loop_body body;
  int64_t m, n, k, batch, b_matrices;
  uint32_t nbatch;                       /* batch dims of the result */
  int64_t dim[YK_MAX_RANK], a_stride[YK_MAX_RANK], b_stride[YK_MAX_RANK];   /* strides in matrices */
  int32_t transpose_a, transpose_b;
  yk_elem_fn add, act;
  double p[2];
  uint32_t out, bias, bias_grad;         /* argument numbers; 0 = none */
} yk_matmul_state;

#endif
