/*
 * loop_pool_tmpl.h - pooling for one type; included by loop_pool_isa.c.
 *
 * The includer defines T and F(f). The inner loops run over channels, a block at a time.
 */
typedef struct F(pool_call) { const yk_pool_state *s; const T *in; T *out; void *index; } F(pool_call);

/* One block of channels of one output cell; x is the picture. */
static void F(max_cell)(const yk_window *g, const T *x, int64_t y0, int64_t x0, int64_t at, int64_t m, T *best, int32_t *cell) {
  int first = 1;
  for (int64_t i = yk__window_first(y0, 1); i < yk__window_end(y0, 1, g->kh, g->h); i++) {
    for (int64_t j = yk__window_first(x0, 1); j < yk__window_end(x0, 1, g->kw, g->w); j++) {
      const T *v = x + ((y0 + i) * g->w + x0 + j) * g->c + at;
      const int32_t id = (int32_t)(i * g->kw + j);
      if (first) {
        first = 0;
        SIMD for (int64_t k = 0; k < m; k++) {
          best[k] = v[k];
          cell[k] = id;
        }
      } else {
        SIMD for (int64_t k = 0; k < m; k++) {
          const int better = v[k] > best[k] || (v[k] != v[k] && best[k] == best[k]);
          best[k] = better ? v[k] : best[k];
          cell[k] = better ? id : cell[k];
        }
      }
    }
  }
  if (first) {
    memset(best, 0, (size_t)m * sizeof *best);
    memset(cell, 0, (size_t)m * sizeof *cell);
  }
}

static void F(max_rows)(int64_t begin, int64_t end, void *arg) {
  const F(pool_call) *c = arg;
  const yk_window *g = &c->s->g;
  T best[POOL_BLOCK];
  int32_t cell[POOL_BLOCK];
  for (int64_t r = begin; r < end; r++) {
    const T *x = c->in + r / g->oh * g->h * g->w * g->c;
    for (int64_t o = 0; o < g->ow; o++) {
      for (int64_t at = 0; at < g->c; at += POOL_BLOCK) {
        const int64_t m = g->c - at < POOL_BLOCK ? g->c - at : POOL_BLOCK, to = (r * g->ow + o) * g->c + at;
        F(max_cell)(g, x, r % g->oh * g->sh - g->top, o * g->sw - g->left, at, m, best, cell);
        memcpy(c->out + to, best, (size_t)m * sizeof *best);
        if (c->s->index_bytes == 1) {
          uint8_t *id = (uint8_t *)c->index + to;
          for (int64_t k = 0; k < m; k++) id[k] = (uint8_t)cell[k];
        } else {
          memcpy((int32_t *)c->index + to, cell, (size_t)m * sizeof *cell);
        }
      }
    }
  }
}

static yk_code F(max_pool)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_pool_state *s = k->state;
  F(pool_call) c = { s, arg[0], arg[1], arg[2] };
  (void)workspace;
  const int64_t work = s->g.ow * s->g.c * s->g.kh * s->g.kw;
  if (s->g.c) yk__cpu_host->parallel_for(s->g.n * s->g.oh, 1 + L_GRAIN / (work + 1), F(max_rows), &c);
  return YK_OK;
}

/* Windows may overlap, so one core has all of a picture. */
static void F(max_grad_pictures)(int64_t begin, int64_t end, void *arg) {
  const F(pool_call) *c = arg;
  const yk_window *g = &c->s->g;
  for (int64_t n = begin; n < end; n++) {
    T *dx = c->out + n * g->h * g->w * g->c;
    memset(dx, 0, (size_t)(g->h * g->w * g->c) * sizeof *dx);
    for (int64_t o = 0; o < g->oh * g->ow; o++) {
      const int64_t from = (n * g->oh * g->ow + o) * g->c, y0 = o / g->ow * g->sh - g->top, x0 = o % g->ow * g->sw - g->left;
      for (int64_t k = 0; k < g->c; k++) {
        const int64_t id = c->s->index_bytes == 1 ? ((const uint8_t *)c->index)[from + k] : ((const int32_t *)c->index)[from + k];
        const int64_t y = y0 + id / g->kw, x = x0 + id % g->kw;
        if (y < 0 || y >= g->h || x < 0 || x >= g->w) continue;          /* a window of padding only */
        dx[(y * g->w + x) * g->c + k] += c->in[from + k];
      }
    }
  }
}

static yk_code F(max_pool_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_pool_state *s = k->state;
  F(pool_call) c = { s, arg[0], arg[3], arg[1] };
  (void)workspace;
  if (s->g.c) yk__cpu_host->parallel_for(s->g.n, 1 + L_GRAIN / (s->g.h * s->g.w * s->g.c + 1), F(max_grad_pictures), &c);
  return YK_OK;
}

/* Valid cells of the window at (y0, x0): their ranges and their number. */
static int64_t F(valid)(const yk_window *g, int64_t y0, int64_t x0, int64_t *i0, int64_t *i1, int64_t *j0, int64_t *j1) {
  *i0 = yk__window_first(y0, 1);
  *i1 = yk__window_end(y0, 1, g->kh, g->h);
  *j0 = yk__window_first(x0, 1);
  *j1 = yk__window_end(x0, 1, g->kw, g->w);
  return *i1 > *i0 && *j1 > *j0 ? (*i1 - *i0) * (*j1 - *j0) : 0;
}

static void F(avg_rows)(int64_t begin, int64_t end, void *arg) {
  const F(pool_call) *c = arg;
  const yk_window *g = &c->s->g;
  for (int64_t r = begin; r < end; r++) {
    const T *x = c->in + r / g->oh * g->h * g->w * g->c;
    for (int64_t o = 0; o < g->ow; o++) {
      int64_t i0, i1, j0, j1, y0 = r % g->oh * g->sh - g->top, x0 = o * g->sw - g->left;
      int64_t count = F(valid)(g, y0, x0, &i0, &i1, &j0, &j1);
      const T share = count ? (T)1 / (T)count : 0;
      T *y = c->out + (r * g->ow + o) * g->c;
      memset(y, 0, (size_t)g->c * sizeof *y);
      for (int64_t i = i0; i < i1; i++) {
        for (int64_t j = j0; j < j1; j++) {
          const T *v = x + ((y0 + i) * g->w + x0 + j) * g->c;
          SIMD for (int64_t k = 0; k < g->c; k++) y[k] += v[k];
        }
      }
      SIMD for (int64_t k = 0; k < g->c; k++) y[k] *= share;
    }
  }
}

static yk_code F(avg_pool)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_pool_state *s = k->state;
  F(pool_call) c = { s, arg[0], arg[1], NULL };
  (void)workspace;
  const int64_t work = s->g.ow * s->g.c * s->g.kh * s->g.kw;
  if (s->g.c) yk__cpu_host->parallel_for(s->g.n * s->g.oh, 1 + L_GRAIN / (work + 1), F(avg_rows), &c);
  return YK_OK;
}

static void F(avg_grad_pictures)(int64_t begin, int64_t end, void *arg) {
  const F(pool_call) *c = arg;
  const yk_window *g = &c->s->g;
  for (int64_t n = begin; n < end; n++) {
    T *dx = c->out + n * g->h * g->w * g->c;
    memset(dx, 0, (size_t)(g->h * g->w * g->c) * sizeof *dx);
    for (int64_t o = 0; o < g->oh * g->ow; o++) {
      int64_t i0, i1, j0, j1, y0 = o / g->ow * g->sh - g->top, x0 = o % g->ow * g->sw - g->left;
      int64_t count = F(valid)(g, y0, x0, &i0, &i1, &j0, &j1);
      const T *dy = c->in + (n * g->oh * g->ow + o) * g->c;
      if (count == 0) continue;
      const T share = (T)1 / (T)count;
      for (int64_t i = i0; i < i1; i++) {
        for (int64_t j = j0; j < j1; j++) {
          T *v = dx + ((y0 + i) * g->w + x0 + j) * g->c;
          SIMD for (int64_t k = 0; k < g->c; k++) v[k] += share * dy[k];
        }
      }
    }
  }
}

static yk_code F(avg_pool_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_pool_state *s = k->state;
  F(pool_call) c = { s, arg[0], arg[2], NULL };
  (void)workspace;
  if (s->g.c) yk__cpu_host->parallel_for(s->g.n, 1 + L_GRAIN / (s->g.h * s->g.w * s->g.c + 1), F(avg_grad_pictures), &c);
  return YK_OK;
}
