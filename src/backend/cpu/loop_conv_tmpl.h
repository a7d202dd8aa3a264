/*
 * loop_conv_tmpl.h - convolution and its gradients for one type, without unfolding; included by loop_conv_isa.c.
 *
 * The includer defines T and F(f). Each is a sum of small vector-matrix products: forward over the input channels of a
 * window cell, backward over its output channels, the filter's over the pixels of an output row.
 */
typedef struct F(conv_call) { const yk_conv_state *s; const T *a, *b, *bias; T *out; } F(conv_call);

/* y += x * w for one output row; a = x, b = w. */
static void F(forward_rows)(int64_t begin, int64_t end, void *arg) {
  const F(conv_call) *c = arg;
  const yk_conv_state *s = c->s;
  const yk_window *g = &s->g;
  const int64_t cg = g->c / s->groups, og = s->o / s->groups;
  for (int64_t r = begin; r < end; r++) {
    const T *x = c->a + r / g->oh * g->h * g->w * g->c;
    const int64_t y0 = r % g->oh * g->sh - g->top;
    T *row = c->out + r * g->ow * s->o;
    memset(row, 0, (size_t)(g->ow * s->o) * sizeof *row);
    for (int64_t p = 0; p < g->ow; p++) {
      const int64_t x0 = p * g->sw - g->left;
      T *y = row + p * s->o;
      for (int64_t i = yk__window_first(y0, g->dh); i < yk__window_end(y0, g->dh, g->kh, g->h); i++) {
        for (int64_t j = yk__window_first(x0, g->dw); j < yk__window_end(x0, g->dw, g->kw, g->w); j++) {
          const T *v = x + ((y0 + i * g->dh) * g->w + x0 + j * g->dw) * g->c, *w = c->b + (i * g->kw + j) * cg * s->o;
          for (int64_t k = 0; k < s->groups; k++) F(gemv)(cg, v + k * cg, 1, w + k * og, s->o, og, y + k * og);
        }
      }
      if (c->bias) s->add(s->o, y, c->bias, NULL, y, s->p);
    }
    if (s->act && s->o) s->act(g->ow * s->o, row, NULL, NULL, row, s->p);
  }
}

static yk_code F(forward)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_conv_state *s = k->state;
  F(conv_call) c = { s, arg[s->a], arg[s->b], s->bias ? arg[s->bias] : NULL, arg[s->out] };
  (void)workspace;
  yk__cpu_host->parallel_for(s->g.n * s->g.oh, 1, F(forward_rows), &c);
  return YK_OK;
}

/* dx += dy * w' for one input row; a = dy, b = w' [kh, kw, o, c/groups]. */
static void F(input_rows)(int64_t begin, int64_t end, void *arg) {
  const F(conv_call) *c = arg;
  const yk_conv_state *s = c->s;
  const yk_window *g = &s->g;
  const int64_t cg = g->c / s->groups, og = s->o / s->groups;
  for (int64_t r = begin; r < end; r++) {
    const T *dy = c->a + r / g->h * g->oh * g->ow * s->o;
    T *row = c->out + r * g->w * g->c;
    memset(row, 0, (size_t)(g->w * g->c) * sizeof *row);
    for (int64_t i = 0; i < g->kh; i++) {
      const int64_t at = r % g->h + g->top - i * g->dh, p = at / g->sh;
      if (at < 0 || at % g->sh || p >= g->oh) continue;
      for (int64_t j = 0; j < g->kw; j++) {
        const T *w = c->b + (i * g->kw + j) * s->o * cg;
        for (int64_t q = 0; q < g->ow; q++) {
          const int64_t x = q * g->sw - g->left + j * g->dw;
          if (x < 0 || x >= g->w) continue;
          const T *v = dy + (p * g->ow + q) * s->o;
          for (int64_t k = 0; k < s->groups; k++) F(gemv)(og, v + k * og, 1, w + k * og * cg, cg, cg, row + x * g->c + k * cg);
        }
      }
    }
  }
}

static yk_code F(grad_input)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_conv_state *s = k->state;
  const int64_t cg = s->g.c / s->groups, cells = s->g.kh * s->g.kw;
  F(conv_call) c = { s, arg[s->a], workspace, NULL, arg[s->out] };
  const T *w = arg[s->b];
  T *turned = workspace;
  for (int64_t i = 0; i < cells; i++)
    for (int64_t ci = 0; ci < cg; ci++)
      for (int64_t o = 0; o < s->o; o++) turned[(i * s->o + o) * cg + ci] = w[(i * cg + ci) * s->o + o];
  yk__cpu_host->parallel_for(s->g.n * s->g.h, 1, F(input_rows), &c);
  return YK_OK;
}

/* dw[i, j, ci, :] for one (i, j, ci): sum over all pictures and output pixels; a = x, b = dy. */
static void F(filter_rows)(int64_t begin, int64_t end, void *arg) {
  const F(conv_call) *c = arg;
  const yk_conv_state *s = c->s;
  const yk_window *g = &s->g;
  const int64_t cg = g->c / s->groups, og = s->o / s->groups;
  for (int64_t task = begin; task < end; task++) {
    const int64_t ci = task % cg, j = task / cg % g->kw, i = task / cg / g->kw, shift = j * g->dw - g->left;
    const int64_t first = yk__window_first(shift, g->sw), last = yk__window_end(shift, g->sw, g->ow, g->w);
    T *dw = c->out + task * s->o;
    memset(dw, 0, (size_t)s->o * sizeof *dw);
    for (int64_t r = 0; r < g->n * g->oh; r++) {
      const int64_t y = r % g->oh * g->sh - g->top + i * g->dh;
      if (y < 0 || y >= g->h || last <= first) continue;
      const T *x = c->a + ((r / g->oh * g->h + y) * g->w + first * g->sw + shift) * g->c + ci;
      const T *dy = c->b + (r * g->ow + first) * s->o;
      for (int64_t k = 0; k < s->groups; k++)
        F(gemv)(last - first, x + k * cg, g->sw * g->c, dy + k * og, s->o, og, dw + k * og);
    }
  }
}

/* db = sum of dy over all pixels, in double. */
static void F(bias_columns)(int64_t begin, int64_t end, void *arg) {
  const F(conv_call) *c = arg;
  const yk_conv_state *s = c->s;
  for (int64_t at = begin; at < end; at += 64) {
    const int64_t m = end - at < 64 ? end - at : 64;
    double sum[64] = { 0 };
    for (int64_t r = 0; r < s->g.n * s->g.oh * s->g.ow; r++) {
      const T *dy = c->b + r * s->o + at;
      SIMD for (int64_t j = 0; j < m; j++) sum[j] += (double)dy[j];
    }
    for (int64_t j = 0; j < m; j++) c->out[at + j] = (T)sum[j];
  }
}

static yk_code F(grad_filter)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_conv_state *s = k->state;
  F(conv_call) c = { s, arg[s->a], arg[s->b], NULL, arg[s->out] };
  (void)workspace;
  yk__cpu_host->parallel_for(s->g.kh * s->g.kw * (s->g.c / s->groups), 1, F(filter_rows), &c);
  if (s->bias) {
    c.out = arg[s->bias];
    yk__cpu_host->parallel_for(s->o, 64, F(bias_columns), &c);
  }
  return YK_OK;
}
