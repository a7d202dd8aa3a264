/*
 * loop_pool.h - geometry of windows over pictures, shared by pooling and convolution in plain loops.
 *
 * Pictures are [N, H, W, C]. Padding is what comes before the first row and column; what comes after follows from the sizes.
 */
#ifndef YK_CPU_LOOP_POOL_H
#define YK_CPU_LOOP_POOL_H

#include "loop_nn.h"

enum { POOL_MAX, POOL_MAX_GRAD, POOL_AVG, POOL_AVG_GRAD };

typedef struct yk_window {
  int64_t n, h, w, c, oh, ow;            /* pictures, input size, channels, output size */
  int64_t kh, kw, sh, sw, dh, dw, top, left;
} yk_window;

typedef struct yk_pool_state { yk_loop_body body; yk_window g; uint32_t index_bytes; } yk_pool_state;

/* Cells of a window that lie inside: first and one past the last, along one axis. */
static inline int64_t yk__window_first(int64_t start, int64_t step) { return start >= 0 ? 0 : (-start + step - 1) / step; }
static inline int64_t yk__window_end(int64_t start, int64_t step, int64_t cells, int64_t size) {
  int64_t end = start >= size ? 0 : (size - start + step - 1) / step;
  return end < cells ? end : cells;
}

#endif
