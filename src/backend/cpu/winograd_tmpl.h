/*
 * winograd_tmpl.h - what depends on the filter's size, for filters of RxR and tiles of MxM pixels of the other side.
 *
 * Included by winograd_isa.c with M, R (M + R = 7) and F(f) defined. The table of a filter's points serves both ways: G w G'
 * transforms a filter, G' s G takes the gradient back, so its factors 1/N are applied once a filter and never a tile.
 */

/* Row of G for a point with p^0..p^(R-1) scaled by n: rows of the paper, 1/N being 1, -2/3, 1/6. */
static const float F(taps)[WINO_TILE][R] = {
#if R == 3
#define POWERS(n, p, pp) { (n), (n) * (p), (n) * (pp) }
  { 1, 0, 0 }, POWERS(-2.0f / 3, A, 0.5f), POWERS(-2.0f / 3, -A, 0.5f), POWERS(1.0f / 6, B, 2.0f), POWERS(1.0f / 6, -B, 2.0f), { 0, 0, 1 }
#else
#define POWERS(n, p, pp) { (n), (n) * (p), (n) * (pp), (n) * (p) * (pp), (n) * (pp) * (pp) }
  { 1, 0, 0, 0, 0 }, POWERS(-2.0f / 3, A, 0.5f), POWERS(-2.0f / 3, -A, 0.5f), POWERS(1.0f / 6, B, 2.0f), POWERS(1.0f / 6, -B, 2.0f),
  { 0, 0, 0, 0, 1 }
#endif
#undef POWERS
};

/* Six points to M pixels. */
INLINE void F(pixels)(const V *d, V *out) {
  const V even_a = d[1] + d[2], odd_a = d[1] - d[2], even_b = d[3] + d[4], odd_b = d[3] - d[4];
  out[0] = d[0] + even_a + even_b;
#if M == 4
  out[1] = A * odd_a + B * odd_b;
  out[2] = 0.5f * even_a + 2.0f * even_b;
  out[3] = 0.5f * A * odd_a + 2.0f * B * odd_b + d[5];
#else
  out[1] = A * odd_a + B * odd_b + d[5];
#endif
}

/* M pixels to the six points, without the factors 1/N. */
INLINE void F(gradient_points)(const V *d, V *out) {
#if M == 4
  const V even_a = d[0] + 0.5f * d[2], odd_a = d[1] + 0.5f * d[3], even_b = d[0] + 2.0f * d[2], odd_b = d[1] + 2.0f * d[3];
#else
  const V even_a = d[0], odd_a = d[1], even_b = d[0], odd_b = d[1];
#endif
  out[0] = d[0];
  out[1] = even_a + A * odd_a;
  out[2] = even_a - A * odd_a;
  out[3] = even_b + B * odd_b;
  out[4] = even_b - B * odd_b;
  out[5] = d[M - 1];
}

/* Channel `c` of the side read, all channels written: the filter's 36 points, in the panels that multiply() reads. */
static void F(filter)(int64_t begin, int64_t end, void *arg) {
  const yk_wino_call *call = arg;
  const yk_wino *s = call->s;
  const yk_wino_filter *f = &s->filter;
  const int64_t wide = WINO_PANEL * W;
  for (int64_t c = begin; c < end; c++) {
    for (int64_t v = 0; v < s->o / W; v++) {
      V w[R][R], half[WINO_TILE][R];
      const float *from = call->filter + f->first + c * f->src + v * W * f->dst;
      for (int i = 0; i < R; i++)
        for (int j = 0; j < R; j++) w[i][j] = filter_values(from + i * f->row + j * f->col, f->dst);
      for (int i = 0; i < WINO_TILE; i++)
        for (int j = 0; j < R; j++) {
          half[i][j] = F(taps)[i][0] * w[0][j];
          for (int k = 1; k < R; k++) half[i][j] += F(taps)[i][k] * w[k][j];
        }
      const int64_t panel = v / WINO_PANEL * WINO_PANEL, width = (panel + WINO_PANEL) * W <= s->o ? wide : W;
      float *to = call->u + panel * W * s->c + c * width + (v - panel) * W;
      for (int i = 0; i < WINO_TILE; i++)
        for (int j = 0; j < WINO_TILE; j++) {
          V sum = F(taps)[j][0] * half[i][0];
          for (int k = 1; k < R; k++) sum += F(taps)[j][k] * half[i][k];
          STORE(to + (i * WINO_TILE + j) * s->c * s->o, sum);
        }
    }
  }
}

/* Row `in` of the 36 products to MxM pixels from (y, x) on, as far as they are inside. */
static void F(pixel_tile)(const yk_wino *s, const float *in, const float *bias, int64_t y, int64_t x, float *picture) {
  const yk_wino_side *side = &s->dst;
  const int rows = side->rows - y < M ? (int)(side->rows - y) : M, cols = side->cols - x < M ? (int)(side->cols - x) : M;
  const V low = (V){ 0 } + s->low, high = (V){ 0 } + s->high;
  for (int64_t v = 0; v < side->vectors; v++) {
    V half[M][WINO_TILE], d[WINO_TILE], out[M];
    float *to = picture + side->at[v] + (y * side->cols + x) * side->pixel;
    const V shift = bias ? LOAD(bias + v * W) : (V){ 0 };
    for (int j = 0; j < WINO_TILE; j++) {
      for (int i = 0; i < WINO_TILE; i++) d[i] = LOAD(in + (i * WINO_TILE + j) * s->m_point + v * W);
      F(pixels)(d, out);
      for (int i = 0; i < M; i++) half[i][j] = out[i];
    }
    for (int i = 0; i < M; i++) {
      if (i >= rows) break;
      F(pixels)(half[i], out);
      for (int j = 0; j < M; j++) {
        if (j >= cols) break;
        const V value = out[j] + shift;
        STORE(to + (i * side->cols + j) * side->pixel, clamped(value, low, high));
      }
    }
  }
}

static void F(forward)(int64_t begin, int64_t end, void *arg) {
  const yk_wino_call *call = arg;
  const yk_wino *s = call->s;
  for (int64_t slot = begin; slot < end; slot++) {
    float *v = call->scratch + slot * s->scratch, *m = v + WINO_POINTS * s->v_point;
    for (int64_t b = part(s->blocks, s->slots, slot); b < part(s->blocks, s->slots, slot + 1); b++) {
      const int64_t from = b * s->block, tiles = s->tiles - from < s->block ? s->tiles - from : s->block;
      for (int64_t t = 0; t < tiles; t++) {
        const place p = place_of(s, from + t);
        picture_tile(s, call->src + p.picture * s->src.picture, p.row * M - s->top, p.col * M - s->left, v + t * s->v_row);
      }
      for (int i = 0; i < WINO_POINTS; i++) multiply(s, tiles, v + i * s->v_point, call->u + i * s->c * s->o, m + i * s->m_point);
      for (int64_t t = 0; t < tiles; t++) {
        const place p = place_of(s, from + t);
        F(pixel_tile)(s, m + t * s->m_row, call->bias, p.row * M, p.col * M, call->out + p.picture * s->dst.picture);
      }
    }
  }
}

/* MxM pixels of dy from (y, x) on, zero outside, to row `out` of the 36 matrices; their sum is added to `sum`, if there is one. */
static void F(gradient_tile)(const yk_wino *s, const float *picture, int64_t y, int64_t x, float *out, double *sum) {
  const yk_wino_side *side = &s->dst;
  for (int64_t v = 0; v < side->vectors; v++) {
    V half[WINO_TILE][M], points[WINO_TILE], d[M], all = { 0 };
    const float *from = picture + side->at[v] + (y * side->cols + x) * side->pixel;
    for (int j = 0; j < M; j++) {
      for (int i = 0; i < M; i++) {
        d[i] = y + i < side->rows && x + j < side->cols ? LOAD(from + (i * side->cols + j) * side->pixel) : (V){ 0 };
        all += d[i];
      }
      F(gradient_points)(d, points);
      for (int i = 0; i < WINO_TILE; i++) half[i][j] = points[i];
    }
    for (int i = 0; i < WINO_TILE; i++) {
      F(gradient_points)(half[i], points);
      for (int j = 0; j < WINO_TILE; j++) STORE(out + (i * WINO_TILE + j) * s->m_point + v * W, points[j]);
    }
    for (int i = 0; sum && i < W; i++) sum[v * W + i] += (double)all[i];
  }
}

/* Strips of the block: its tiles of x and of dy to the 36 matrices. */
static void F(gradient_tiles)(int64_t begin, int64_t end, void *arg) {
  const yk_wino_call *call = arg;
  const yk_wino *s = call->s;
  float *v = call->scratch, *e = v + WINO_POINTS * s->v_point;
  for (int64_t strip = begin; strip < end; strip++) {
    double *bias = call->bias_sum ? call->bias_sum + strip * s->o : NULL;
    const int64_t last = (strip + 1) * WINO_STRIP < call->tiles ? (strip + 1) * WINO_STRIP : call->tiles;
    for (int64_t t = strip * WINO_STRIP; t < last; t++) {
      const place p = place_of(s, call->first + t);
      picture_tile(s, call->src + p.picture * s->src.picture, p.row * M - s->top, p.col * M - s->left, v + t * s->v_row);
      F(gradient_tile)(s, call->dst + p.picture * s->dst.picture, p.row * M, p.col * M, e + t * s->m_row, bias);
    }
  }
}

/* The points of the gradient taken back to the filter, for channels of x. */
static void F(finish)(int64_t begin, int64_t end, void *arg) {
  const yk_wino_call *call = arg;
  const yk_wino *s = call->s;
  for (int64_t c = begin; c < end; c++) {
    for (int64_t v = 0; v < s->o / W; v++) {
      V half[R][WINO_TILE];
      const float *from = call->u + c * s->o + v * W;
      float *to = call->out + c * s->o + v * W;
      for (int j = 0; j < WINO_TILE; j++)
        for (int i = 0; i < WINO_TILE; i++) {
          const V d = LOAD(from + (i * WINO_TILE + j) * s->c * s->o);
          for (int r = 0; r < R; r++) half[r][j] = i == 0 ? F(taps)[0][r] * d : half[r][j] + F(taps)[i][r] * d;
        }
      for (int r = 0; r < R; r++)
        for (int q = 0; q < R; q++) {
          V sum = F(taps)[0][q] * half[r][0];
          for (int j = 1; j < WINO_TILE; j++) sum += F(taps)[j][q] * half[r][j];
          STORE(to + (r * R + q) * s->c * s->o, sum);
        }
    }
  }
}
