/*
 * loop_norm.h - what preparing and running share in the normalisations.
 *
 * Values are seen as [rows, n] with the channels last. Sums over rows are made in double over chunks of rows whose number
 * depends on the shape only, and the chunks are added in order, so the team's size never shows in a result.
 */
#ifndef YK_CPU_LOOP_NORM_H
#define YK_CPU_LOOP_NORM_H

#include "loop_nn.h"

enum { NORM_BN_TRAIN, NORM_BN_GRAD, NORM_BN_INFER, NORM_BN_INFER_GRAD, NORM_LAYER, NORM_LAYER_GRAD, NORM_LRN, NORM_LRN_GRAD };

enum { NORM_BLOCK = 256, LRN_RADIUS = 128 };   /* channels handled at a time; the largest radius with a fast path */

typedef struct yk_norm_state {
  yk_loop_body body;
  int64_t rows, n, chunks;
  double epsilon, bias, alpha, beta;
  int32_t relu, radius;
} yk_norm_state;

/* Rows of chunk i: [first, *end). */
static inline int64_t yk__norm_chunk(const yk_norm_state *s, int64_t i, int64_t *end) {
  *end = (i + 1) * s->rows / s->chunks;
  return i * s->rows / s->chunks;
}

#endif
