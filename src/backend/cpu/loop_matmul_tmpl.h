/*
 * loop_matmul_tmpl.h - matrix product for one type; included by loop_matmul_isa.c.
 *
 * The includer defines T and F(f). Tasks are blocks of the result; within one the second factor is taken in pieces that fit
 * the second cache. A transposed second factor is turned first, so that the inner loop always runs along n.
 */
typedef struct F(mm_call) { const yk_matmul_state *s; const T *a, *b, *bias; T *y, *turned; } F(mm_call);

static void F(turn_rows)(int64_t begin, int64_t end, void *arg) {
  const F(mm_call) *c = arg;
  const yk_matmul_state *s = c->s;
  for (int64_t r = begin; r < end; r++) {                                /* r = (matrix, stripe of 16 rows of the turned one) */
    const int64_t stripes = (s->k + 15) / 16, k0 = r % stripes * 16, k1 = k0 + 16 < s->k ? k0 + 16 : s->k;
    const T *b = c->b + r / stripes * s->k * s->n;
    T *t = c->turned + r / stripes * s->k * s->n;
    for (int64_t j = 0; j < s->n; j++)
      for (int64_t i = k0; i < k1; i++) t[i * s->n + j] = b[j * s->k + i];
  }
}

static void F(mm_blocks)(int64_t begin, int64_t end, void *arg) {
  const F(mm_call) *c = arg;
  const yk_matmul_state *s = c->s;
  const int64_t mb = (s->m + MM_ROWS - 1) / MM_ROWS, nb = (s->n + MM_COLUMNS - 1) / MM_COLUMNS;
  for (int64_t task = begin; task < end; task++) {
    int64_t batch = task / nb / mb, ai = 0, bi = 0, rest = batch;
    const int64_t n0 = task % nb * MM_COLUMNS, n = s->n - n0 < MM_COLUMNS ? s->n - n0 : MM_COLUMNS;
    const int64_t m0 = task / nb % mb * MM_ROWS, m1 = m0 + MM_ROWS < s->m ? m0 + MM_ROWS : s->m;
    for (uint32_t d = s->nbatch; d-- > 0; rest /= s->dim[d]) {
      ai += rest % s->dim[d] * s->a_stride[d];
      bi += rest % s->dim[d] * s->b_stride[d];
    }
    const T *a = c->a + ai * s->m * s->k, *b = c->b + bi * s->k * s->n + n0;
    T *y = c->y + batch * s->m * s->n + n0;
    for (int64_t i = m0; i < m1; i++) memset(y + i * s->n, 0, (size_t)n * sizeof *y);
    for (int64_t k0 = 0; k0 < s->k; k0 += MM_DEPTH) {
      const int64_t k = s->k - k0 < MM_DEPTH ? s->k - k0 : MM_DEPTH;
      for (int64_t i = m0; i < m1; i++) {
        const T *row = s->transpose_a ? a + k0 * s->m + i : a + i * s->k + k0;
        F(gemv)(k, row, s->transpose_a ? s->m : 1, b + k0 * s->n, s->n, n, y + i * s->n);
      }
    }
    for (int64_t i = m0; i < m1; i++) {
      if (c->bias) s->add(n, y + i * s->n, c->bias + n0, NULL, y + i * s->n, s->p);
      if (s->act) s->act(n, y + i * s->n, NULL, NULL, y + i * s->n, s->p);
    }
  }
}

/* Sum of the second factor over its rows, in double. */
static void F(mm_bias_columns)(int64_t begin, int64_t end, void *arg) {
  const F(mm_call) *c = arg;
  const yk_matmul_state *s = c->s;
  for (int64_t at = begin; at < end; at += 64) {
    const int64_t m = end - at < 64 ? end - at : 64;
    double sum[64] = { 0 };
    for (int64_t r = 0; r < s->b_matrices * s->k; r++) {
      const T *row = c->b + r * s->n + at;
      SIMD for (int64_t j = 0; j < m; j++) sum[j] += (double)row[j];
    }
    for (int64_t j = 0; j < m; j++) c->y[at + j] = (T)sum[j];
  }
}

static yk_code F(matmul)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_matmul_state *s = k->state;
  F(mm_call) c = { s, arg[0], arg[1], s->bias ? arg[s->bias] : NULL, arg[s->out], workspace };
  const int64_t blocks = (s->m + MM_ROWS - 1) / MM_ROWS * ((s->n + MM_COLUMNS - 1) / MM_COLUMNS);
  const int64_t work = (s->m < MM_ROWS ? s->m : MM_ROWS) * (s->n < MM_COLUMNS ? s->n : MM_COLUMNS) * (s->k + 1) + 1;
  if (s->transpose_b && s->k) {
    yk__cpu_host->parallel_for(s->b_matrices * ((s->k + 15) / 16), 1 + L_GRAIN / (16 * s->n + 1), F(turn_rows), &c);
    c.b = workspace;
  }
  yk__cpu_host->parallel_for(s->batch * blocks, 1 + 4 * L_GRAIN / work, F(mm_blocks), &c);
  if (s->bias_grad) {
    c.y = arg[s->bias_grad];
    yk__cpu_host->parallel_for(s->n, 64, F(mm_bias_columns), &c);
  }
  return YK_OK;
}
