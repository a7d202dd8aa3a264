/*
 * loop_softmax.h - what preparing and running share in the softmax family.
 *
 * All of them work on rows of `n` along the last axis; `kind` says what is done with a row.
 */
#ifndef YK_CPU_LOOP_SOFTMAX_H
#define YK_CPU_LOOP_SOFTMAX_H

#include "loop_nn.h"

enum { SM_SOFTMAX, SM_SOFTMAX_GRAD, SM_LOG_SOFTMAX, SM_LOG_SOFTMAX_GRAD, SM_XENT, SM_SPARSE_XENT };

typedef struct yk_softmax_state {
  yk_loop_body body;
  yk_loop_run rows_body;         /* behind the check of the labels */
  int64_t rows, n;
  uint32_t kind, out, label_dtype;   /* out: argument that gets the row */
} yk_softmax_state;

static inline int64_t yk__loop_label(const void *p, uint32_t dtype, int64_t i) {
  return dtype == YK_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}

#endif
