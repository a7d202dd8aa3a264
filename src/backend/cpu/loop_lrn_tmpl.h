/*
 * loop_lrn_tmpl.h - local response normalisation for one type; included by loop_norm_isa.c.
 *
 * The includer defines T and F(f). A block of channels with its neighbours is copied into padded buffers, zero outside the
 * row, so that the window needs no test of bounds.
 */

/* power[j] = size[j]^-beta; the usual exponents need no logarithm. */
static void F(lrn_power)(int64_t m, double beta, const T *size, T *power) {
  const T b = (T)-beta;
  if (beta == 0.5) {
    SIMD for (int64_t j = 0; j < m; j++) power[j] = (T)1 / F(SQRT)(size[j]);
  } else if (beta == 0.75) {
    SIMD for (int64_t j = 0; j < m; j++) {
      const T root = F(SQRT)(size[j]);
      power[j] = (T)1 / (root * F(SQRT)(root));
    }
  } else if (beta == 1.0) {
    SIMD for (int64_t j = 0; j < m; j++) power[j] = (T)1 / size[j];
  } else {
    SIMD for (int64_t j = 0; j < m; j++) power[j] = F(m_exp)(b * F(m_log)(size[j]));
  }
}

/* out[j] = sum of in[j .. j + 2r], j in [0, m) */
static void F(window_sum)(int64_t m, int64_t r, const T *in, T *out) {
  memset(out, 0, (size_t)m * sizeof *out);
  for (int64_t d = 0; d <= 2 * r; d++) {
    const T *a = in + d;
    SIMD for (int64_t j = 0; j < m; j++) out[j] += a[j];
  }
}

/* v[j] = x[at - pad + j], zero outside [0, n). */
static void F(padded)(int64_t n, int64_t at, int64_t pad, int64_t m, const T *x, T *v) {
  for (int64_t j = 0; j < m; j++) {
    const int64_t i = at - pad + j;
    v[j] = i >= 0 && i < n ? x[i] : (T)0;
  }
}

/* size[j] = bias + alpha * (sum of squares in the window of element j); v holds r more values on both sides. */
static void F(lrn_size)(const yk_norm_state *s, int64_t m, const T *v, T *square, T *size) {
  const int64_t r = s->radius;
  const T bias = (T)s->bias, alpha = (T)s->alpha;
  SIMD for (int64_t j = 0; j < m + 2 * r; j++) square[j] = v[j] * v[j];
  F(window_sum)(m, r, square, size);
  SIMD for (int64_t j = 0; j < m; j++) size[j] = bias + alpha * size[j];
}

static void F(lrn_rows)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const yk_norm_state *s = c->s;
  T v[LRN_SPAN], square[LRN_SPAN], size[LRN_SPAN], power[LRN_SPAN];
  for (int64_t row = begin; row < end; row++) {
    const T *x = (const T *)c->arg[0] + row * s->n;
    for (int64_t at = 0; at < s->n; at += NORM_BLOCK) {
      const int64_t m = s->n - at < NORM_BLOCK ? s->n - at : NORM_BLOCK;
      T *y = (T *)c->arg[1] + row * s->n + at;
      F(padded)(s->n, at, s->radius, m + 2 * s->radius, x, v);
      F(lrn_size)(s, m, v, square, size);
      F(lrn_power)(m, s->beta, size, power);
      SIMD for (int64_t j = 0; j < m; j++) y[j] = v[j + s->radius] * power[j];
    }
  }
}

/* dx = g N^-beta - 2 alpha beta x * windowed sum of g x N^(-beta-1); N is needed r channels further out. */
static void F(lrn_grad_rows)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const yk_norm_state *s = c->s;
  const int64_t r = s->radius;
  const T factor = (T)(2.0 * s->alpha * s->beta);
  T v[LRN_SPAN], g[LRN_SPAN], square[LRN_SPAN], size[LRN_SPAN], power[LRN_SPAN];
  for (int64_t row = begin; row < end; row++) {
    const T *dy = (const T *)c->arg[0] + row * s->n, *x = (const T *)c->arg[1] + row * s->n;
    for (int64_t at = 0; at < s->n; at += NORM_BLOCK) {
      const int64_t m = s->n - at < NORM_BLOCK ? s->n - at : NORM_BLOCK, wide = m + 2 * r;
      T *dx = (T *)c->arg[2] + row * s->n + at;
      F(padded)(s->n, at, 2 * r, m + 4 * r, x, v);
      F(padded)(s->n, at, r, wide, dy, g);
      F(lrn_size)(s, wide, v, square, size);
      F(lrn_power)(wide, s->beta, size, power);
      SIMD for (int64_t j = 0; j < wide; j++) square[j] = g[j] * v[j + r] * power[j] / size[j];
      F(window_sum)(m, r, square, size);
      SIMD for (int64_t j = 0; j < m; j++) dx[j] = g[j + r] * power[j + r] - factor * v[j + 2 * r] * size[j];
    }
  }
}

static yk_code F(lrn)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_norm_state *s = k->state;
  call c = { .s = s, .arg = arg };
  (void)workspace;
  if (s->n) yk__cpu_host->parallel_for(s->rows, 1 + L_GRAIN / 4 / s->n, k->nin == 1 ? F(lrn_rows) : F(lrn_grad_rows), &c);
  return YK_OK;
}
