/*
 * dnnl_block.h - normalisations and max pooling of pictures in oneDNN's blocked layout, [N, C/B, H, W, B].
 *
 * Convolutions often want this layout, and what stands between them must not force it back to the plain one. oneDNN's own
 * batch norm goes over its input three times and cannot use the forward output in the gradient of a fused relu; its LRN has
 * fast code for few windows only; its max pooling stores the index a byte at a time without AVX-512. These kernels go over
 * each value twice, or once, in vectors of one block.
 */
#ifndef YK_BACKEND_CPU_DNNL_BLOCK_H
#define YK_BACKEND_CPU_DNNL_BLOCK_H

#include <stdint.h>

enum { BLOCK_MAX_CHANNELS = 2048, BLOCK_MAX_RADIUS = 16 };     /* of a picture that LRN takes */

typedef struct yk_block_state {
  int64_t pictures, blocks, pixels;      /* N, C/B rounded up, H*W */
  int64_t channels, padded;              /* C, blocks*B */
  int64_t chunks;                        /* pictures are summed in this many parts, whatever the team */
  int64_t tiles;                         /* LRN: parts of a picture */
  double epsilon, bias, alpha, beta;
  int32_t relu, radius;
  void (*sum)(int64_t begin, int64_t end, void *call);
  void (*apply)(int64_t begin, int64_t end, void *call);
} yk_block_state;

/* One run. Arrays over channels have `padded` entries, zero beyond the last channel. */
typedef struct yk_block_call {
  const yk_block_state *s;
  const void *x, *dy, *y;                /* y: forward output if a relu was fused, else NULL (gradients) */
  void *out;                             /* y, or dx */
  double *partial;                       /* [chunks, 2, padded] */
  const float *mean, *scale, *shift, *slope;   /* forward: (x-mean)*scale + shift; gradient: scale*g - shift - slope*(x-mean) */
} yk_block_call;

/* Max pooling. Steps are in elements, from picture to picture, block to block, pixel to pixel: so the plain layout is a case. */
typedef struct yk_block_pool {
  int64_t pictures, blocks;
  int64_t height, width, rows, columns;  /* of x; of y */
  int64_t window[2], stride[2], pad[2];
  int64_t x_picture, x_block, y_picture, y_block, pixel;
  const int32_t *over[2];                /* gradient: the outputs [first, last) whose window holds row (column) i of x, at 2*i */
  void (*fn)(int64_t begin, int64_t end, void *call);
} yk_block_pool;
typedef struct yk_block_pool_call { const yk_block_pool *s; const void *in; void *out; uint8_t *index; } yk_block_pool_call;

/* Work items: pooling, apply: picture*blocks + block; sums: chunk*blocks + block; LRN: picture*tiles + tile. */
typedef void (*yk_block_fn)(int64_t begin, int64_t end, void *call);
typedef struct yk_block_fns {
  yk_block_fn stat_sum, norm, grad_sum, norm_grad, lrn, lrn_grad, max_pool, max_pool_grad;
} yk_block_fns;
typedef struct yk_block_table { yk_block_fns fn[2][2]; } yk_block_table;       /* f32, bf16; blocks of 8, 16 */

const yk_block_table *yk__block_table(void);                                    /* of this machine */

#endif
