/*
 * winograd_isa.c - vector code of the Winograd convolutions.
 *
 * Compiled once for each instruction set, a vector being as wide as the registers. What does not depend on the filter's
 * size is here: loads and stores, the transform of a tile of the picture, and the matrix products; the rest is a
 * template, included for 3x3 and 5x5 filters.
 */
#include "winograd.h"
#include "loop.h"

#include <string.h>

#if defined(__AVX512F__)
#define W 16
#elif defined(__AVX2__)
#define W 8
#else
#define W 4
#endif

typedef float V __attribute__((vector_size(4 * W)));
typedef int32_t I __attribute__((vector_size(4 * W)));
typedef float U __attribute__((vector_size(4 * W), aligned(4), may_alias));      /* in memory, at any float */
#define LOAD(p) ((V)*(const U *)(p))
#define STORE(p, v) (*(U *)(p) = (v))
#define INLINE static inline __attribute__((always_inline))

/* W values of a filter, `step` elements apart. */
INLINE V filter_values(const float *p, int64_t step) {
  V v;
  if (step == 1) return LOAD(p);
  for (int i = 0; i < W; i++) v[i] = p[i * step];
  return v;
}

/* NaN stays NaN. */
INLINE V clamped(V x, V low, V high) {
  const I under = x < low, over = x > high;
  return (V)(((I)x & ~(under | over)) | ((I)low & under) | ((I)high & over));
}

/* The points are 0, A, -A, B, -B and infinity; A*A = 1/2, B*B = 2. */
#define A 0.70710678118654752f
#define B 1.41421356237309505f

/* Six pixels to the six points: rows of B' in the paper. */
INLINE void picture_points(const V *d, V *out) {
  const V even_a = d[4] - 2.0f * d[2], odd_a = d[3] - 2.0f * d[1];
  const V even_b = d[4] - 0.5f * d[2], odd_b = d[3] - 0.5f * d[1];
  out[0] = d[0] - 2.5f * d[2] + d[4];
  out[1] = even_a + A * odd_a;
  out[2] = even_a - A * odd_a;
  out[3] = even_b + B * odd_b;
  out[4] = even_b - B * odd_b;
  out[5] = d[1] - 2.5f * d[3] + d[5];
}

/* c[rows][vecs] (+)= sum over depth of a[row] * b[vec]; rows and vecs are constants where this is inlined. What was in c is
 * added last: a sum of sums of `depth` loses less than one long sum. */
INLINE void product(const int rows, const int vecs, const int add, const float *a, int64_t a_row, int64_t a_step, const float *b,
                    int64_t b_step, int64_t depth, float *c, int64_t c_row) {
  V sum[WINO_ROWS][WINO_PANEL];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vecs; v++) sum[r][v] = (V){ 0 };
  for (int64_t i = 0; i < depth; i++, a += a_step, b += b_step) {
    V right[WINO_PANEL];
    for (int v = 0; v < vecs; v++) right[v] = LOAD(b + v * W);
    for (int r = 0; r < rows; r++)
      for (int v = 0; v < vecs; v++) sum[r][v] += a[r * a_row] * right[v];
  }
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vecs; v++) STORE(c + r * c_row + v * W, add ? LOAD(c + r * c_row + v * W) + sum[r][v] : sum[r][v]);
}

#define CASE(n) case n: product(n, vecs, add, a, a_row, a_step, b, b_step, depth, c, c_row); break
INLINE void product_rows(int rows, const int vecs, const int add, const float *a, int64_t a_row, int64_t a_step, const float *b,
                         int64_t b_step, int64_t depth, float *c, int64_t c_row) {
  switch (rows) {
    CASE(1);
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
    CASE(6);
    default: break;
  }
}
#undef CASE

/* Where the i-th of `parts` nearly equal parts of [0, n) begins. */
static inline int64_t part(int64_t n, int64_t parts, int64_t i) { return n / parts * i + (i < n % parts ? i : n % parts); }

/* m[tile][o] = v[tile][c] * u[c][o] for one point; u lies in panels of WINO_PANEL vectors, the last one perhaps of one. */
static void multiply(const yk_wino *s, int64_t tiles, const float *v, const float *u, float *m) {
  const int64_t groups = yk__wino_groups(tiles), wide = WINO_PANEL * W, whole = s->o / wide;
  for (int64_t p = 0; p < whole; p++)
    for (int64_t g = 0; g < groups; g++) {
      const int64_t t = part(tiles, groups, g);
      product_rows((int)(part(tiles, groups, g + 1) - t), WINO_PANEL, 0, v + t * s->v_row, s->v_row, 1, u + p * wide * s->c, wide, s->c,
                   m + t * s->m_row + p * wide, s->m_row);
    }
  for (int64_t g = 0; whole * wide < s->o && g < groups; g++) {
    const int64_t t = part(tiles, groups, g);
    product_rows((int)(part(tiles, groups, g + 1) - t), 1, 0, v + t * s->v_row, s->v_row, 1, u + whole * wide * s->c, W, s->c,
                 m + t * s->m_row + whole * wide, s->m_row);
  }
}

/* sum[c][o] += v[tile][c]' * e[tile][o] for one point, rows c of a group; DEPTH tiles at a time, so that they stay in the first cache. */
enum { DEPTH = 128 };
static void accumulate(const yk_wino *s, int rows, int64_t tiles, const float *v, const float *e, float *sum) {
  for (int64_t t = 0; t < tiles; t += DEPTH) {
    const int64_t depth = tiles - t < DEPTH ? tiles - t : DEPTH, wide = WINO_PANEL * W;
    int64_t at = 0;
    for (; at + wide <= s->o; at += wide)
      product_rows(rows, WINO_PANEL, 1, v + t * s->v_row, 1, s->v_row, e + t * s->m_row + at, s->m_row, depth, sum + at, s->o);
    if (at < s->o) product_rows(rows, 1, 1, v + t * s->v_row, 1, s->v_row, e + t * s->m_row + at, s->m_row, depth, sum + at, s->o);
  }
}

static void gradient_sum(int64_t begin, int64_t end, void *arg) {
  const yk_wino_call *call = arg;
  const yk_wino *s = call->s;
  const float *v = call->scratch, *e = v + WINO_POINTS * s->v_point;
  const int64_t groups = yk__wino_groups(s->c);
  for (int64_t item = begin; item < end; item++) {
    const int64_t point = item / groups, c = part(s->c, groups, item % groups), rows = part(s->c, groups, item % groups + 1) - c;
    float *sum = call->u + (point * s->c + c) * s->o;
    if (call->first == 0) memset(sum, 0, (size_t)(rows * s->o) * sizeof *sum);
    accumulate(s, (int)rows, call->tiles, v + point * s->v_point + c, e + point * s->m_point, sum);
  }
}

/* Which tile of which picture number `tile` is, and where it starts in units of tiles. */
typedef struct place { int64_t picture, row, col; } place;
static inline place place_of(const yk_wino *s, int64_t tile) {
  const int64_t each = s->tile_rows * s->tile_cols, in = tile % each;
  return (place){ tile / each, in / s->tile_cols, in % s->tile_cols };
}

/* Columns of a tile to points. `whole`: no part of the tile is outside of the picture. */
INLINE void picture_columns(const int whole, const float *const row[WINO_TILE], const I *keep, int64_t pixel, int64_t first,
                            int64_t last, V half[WINO_TILE][WINO_TILE]) {
  for (int j = 0; j < WINO_TILE; j++) {
    V d[WINO_TILE], out[WINO_TILE];
    if (!whole && (j < first || j >= last)) {
      for (int i = 0; i < WINO_TILE; i++) half[i][j] = (V){ 0 };
      continue;
    }
    for (int i = 0; i < WINO_TILE; i++) {
      d[i] = LOAD(row[i] + j * pixel);
      if (!whole) d[i] = (V)((I)d[i] & keep[i]);
    }
    picture_points(d, out);
    for (int i = 0; i < WINO_TILE; i++) half[i][j] = out[i];
  }
}

/* The tile whose first pixel is (y, x), perhaps outside, to row `out` of the 36 matrices. */
static void picture_tile(const yk_wino *s, const float *picture, int64_t y, int64_t x, float *out) {
  const yk_wino_side *side = &s->src;
  const int64_t pitch = side->cols * side->pixel;
  const int whole = y >= 0 && x >= 0 && y + WINO_TILE <= side->rows && x + WINO_TILE <= side->cols;
  const int64_t first = x < 0 ? -x : 0, last = side->cols - x < WINO_TILE ? side->cols - x : WINO_TILE;
  I keep[WINO_TILE];
  int64_t at[WINO_TILE];
  for (int i = 0; i < WINO_TILE; i++) {
    const int inside = y + i >= 0 && y + i < side->rows;
    keep[i] = (I){ 0 } - inside;
    at[i] = (inside ? y + i : 0) * pitch + x * side->pixel;
  }
  for (int64_t v = 0; v < side->vectors; v++) {
    V half[WINO_TILE][WINO_TILE], points[WINO_TILE];
    const float *row[WINO_TILE];
    for (int i = 0; i < WINO_TILE; i++) row[i] = picture + side->at[v] + at[i];
    if (whole) picture_columns(1, row, keep, side->pixel, 0, WINO_TILE, half);
    else picture_columns(0, row, keep, side->pixel, first, last, half);
    for (int i = 0; i < WINO_TILE; i++) {
      picture_points(half[i], points);
      for (int j = 0; j < WINO_TILE; j++) STORE(out + (i * WINO_TILE + j) * s->v_point + v * W, points[j]);
    }
  }
}

#define M 4
#define R 3
#define F(f) f##_3
#include "winograd_tmpl.h"
#undef M
#undef R
#undef F
#define M 2
#define R 5
#define F(f) f##_5
#include "winograd_tmpl.h"

#define FNS(n) { filter_##n, forward_##n, gradient_tiles_##n, finish_##n }
extern const yk_wino_table YK_ISA_NAME(yk__wino_table);
const yk_wino_table YK_ISA_NAME(yk__wino_table) = { .width = W, .size3 = FNS(3), .size5 = FNS(5), .gradient_sum = gradient_sum };
