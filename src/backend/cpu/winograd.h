/*
 * winograd.h - convolutions of 3x3 and 5x5 filters at stride 1 by Winograd's minimal filtering.
 *
 * Tiles of 6x6 pixels are transformed so that a convolution of a tile becomes 36 independent products, one a point of the
 * transform; over channels each point is a matrix product. A 3x3 filter gives 4x4 pixels a tile and takes a quarter of the
 * multiplications of the sliding window, a 5x5 filter gives 2x2 and takes 36 of 100. All three passes work that way: towards
 * the picture it is a convolution with the turned filter, towards the filter the tiles of both pictures are transformed and
 * multiplied over the tiles. Formulae: Lavin and Gray, "Fast algorithms for convolutional neural networks" (2015), for the
 * points 0, +-sqrt(1/2), +-sqrt(2) and infinity, whose rounding error is about twice that of the sliding window.
 */
#ifndef YK_CPU_WINOGRAD_H
#define YK_CPU_WINOGRAD_H

#include <stdint.h>

enum {
  WINO_TILE = 6, WINO_POINTS = WINO_TILE * WINO_TILE,
  WINO_ROWS = 6, WINO_PANEL = 2,         /* rows and vectors of a product held in registers */
  WINO_STRIP = 16                        /* tiles of a piece of the filter's gradient, whose bias is summed apart */
};

/* A picture of [rows, cols, channels]; steps in elements. Channels v*width .. v*width+width-1 of a pixel lie together at at[v]. */
typedef struct yk_wino_side { int64_t rows, cols, vectors, picture, pixel; const int64_t *at; } yk_wino_side;

/* A filter as the side that reads it sees it: element (i, j, s, d) at first + i*row + j*col + s*src + d*dst. */
typedef struct yk_wino_filter { int64_t first, row, col, src, dst; } yk_wino_filter;

typedef struct yk_wino {
  int64_t tile_rows, tile_cols, tiles;   /* of one picture; of all */
  int64_t top, left;                     /* padding before the side that is read */
  int64_t c, o;                          /* channels of src and dst */
  yk_wino_side src, dst;                 /* read and written; for the filter's gradient: x and dy, both read */
  yk_wino_filter filter;
  int64_t block, blocks;                 /* tiles worked on at a time: by one slot; all together for the filter's gradient */
  int64_t v_row, m_row;                  /* of the 36 matrices [block, c] and [block, o]: elements from row to row, */
  int64_t v_point, m_point;              /* and from one point's matrix to the next */
  int64_t slots;                         /* pieces of work with matrices of their own */
  int64_t scratch;                       /* elements of the matrices of one slot */
  float low, high;                       /* fused activation: clamped to these; -inf and inf for none */
} yk_wino;

typedef struct yk_wino_call {
  const yk_wino *s;
  const float *src, *dst, *filter, *bias; /* dst: dy, for the filter's gradient only; bias may be NULL */
  float *out;                             /* y, dx or dw */
  float *u;                               /* the filter's points, or those of its gradient: [36][c][o] */
  float *scratch;                         /* [slots][s->scratch] */
  double *bias_sum;                       /* [strips of a block][o], NULL if not asked for */
  int64_t first, tiles;                   /* of the block that gradient_tiles and gradient_sum work on */
} yk_wino_call;

typedef void (*yk_wino_fn)(int64_t begin, int64_t end, void *call);
/* Work items: filter, finish: channels of src; forward: slots; gradient_tiles: strips of the block. */
typedef struct yk_wino_fns { yk_wino_fn filter, forward, gradient_tiles, finish; } yk_wino_fns;
typedef struct yk_wino_table {
  int32_t width;                          /* floats of a vector */
  yk_wino_fns size3, size5;
  yk_wino_fn gradient_sum;                /* work items: 36 * yk__wino_groups() */
} yk_wino_table;

/* Groups of at most WINO_ROWS rows that n rows are cut into. */
static inline int64_t yk__wino_groups(int64_t n) { return (n + WINO_ROWS - 1) / WINO_ROWS; }

#endif
