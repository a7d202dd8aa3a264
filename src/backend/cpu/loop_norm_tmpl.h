/*
 * loop_norm_tmpl.h - batch and layer normalisation for one type; included by loop_norm_isa.c.
 *
 * The includer defines T and F(f). Statistics are sums in double of differences to a value near the mean, which
 * stays exact where sums of squares would cancel.
 */

/* ---- batch_norm_train: partial[chunk] = sums of d and d*d, d = x - first row ------------------------------------- */

static void F(stat_chunks)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *x = c->arg[0];
  for (int64_t i = begin; i < end; i++) {
    int64_t last, first = yk__norm_chunk(c->s, i, &last);
    for (int64_t at = 0; at < n; at += NORM_BLOCK) {
      const int64_t m = n - at < NORM_BLOCK ? n - at : NORM_BLOCK;
      double *s = c->partial + 2 * i * n + at, *q = s + n;
      memset(s, 0, (size_t)m * sizeof *s);
      memset(q, 0, (size_t)m * sizeof *q);
      for (int64_t r = first; r < last; r++) {
        const T *row = x + r * n + at, *zero = x + at;
        SIMD for (int64_t j = 0; j < m; j++) {
          const double d = (double)row[j] - (double)zero[j];
          s[j] += d;
          q[j] += d * d;
        }
      }
    }
  }
}

static void F(stat_finish)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *x = c->arg[0], *gamma = c->arg[1];
  T *mean = c->arg[4], *var = c->arg[5], *scale = c->scale;
  for (int64_t j = begin; j < end; j++) {
    double s = 0, q = 0, rows = (double)c->s->rows, v;
    for (int64_t i = 0; i < c->s->chunks; i++) {
      s += c->partial[2 * i * n + j];
      q += c->partial[(2 * i + 1) * n + j];
    }
    v = (q - s * s / rows) / rows;
    if (v < 0) v = 0;
    mean[j] = (T)((double)x[j] + s / rows);
    var[j] = (T)v;
    scale[j] = (T)((double)gamma[j] / sqrt(v + c->s->epsilon));
  }
}

/* y = act((x - mean) * scale + beta) */
static void F(bn_apply)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *mean = c->mean, *scale = c->scale, *beta = c->arg[2];
  const int relu = c->s->relu;
  for (int64_t r = begin; r < end; r++) {
    const T *x = (const T *)c->arg[0] + r * n;
    T *y = (T *)c->y + r * n;
    if (relu) {
      SIMD for (int64_t j = 0; j < n; j++) {
        const T v = (x[j] - mean[j]) * scale[j] + beta[j];
        y[j] = v < 0 ? (T)0 : v;
      }
    } else {
      SIMD for (int64_t j = 0; j < n; j++) y[j] = (x[j] - mean[j]) * scale[j] + beta[j];
    }
  }
}

static yk_code F(bn_train)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_norm_state *s = k->state;
  call c = { .s = s, .arg = arg, .partial = workspace, .mean = arg[4], .y = arg[3] };
  if (s->rows == 0) {
    memset(arg[4], 0, (size_t)s->n * sizeof(T));
    memset(arg[5], 0, (size_t)s->n * sizeof(T));
  }
  if (s->n == 0 || s->rows == 0) return YK_OK;
  c.scale = c.partial + 2 * s->chunks * s->n;
  yk__cpu_host->parallel_for(s->chunks, 1, F(stat_chunks), &c);
  yk__cpu_host->parallel_for(s->n, 1024, F(stat_finish), &c);
  yk__cpu_host->parallel_for(s->rows, 1 + L_GRAIN / s->n, F(bn_apply), &c);
  return YK_OK;
}

static yk_code F(bn_infer)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_norm_state *s = k->state;
  call c = { .s = s, .arg = arg, .scale = workspace, .mean = arg[3], .y = arg[5] };
  const T *gamma = arg[1], *var = arg[4];
  T *scale = workspace;
  if (s->n == 0) return YK_OK;
  for (int64_t j = 0; j < s->n; j++) scale[j] = (T)((double)gamma[j] / sqrt((double)var[j] + s->epsilon));
  yk__cpu_host->parallel_for(s->rows, 1 + L_GRAIN / s->n, F(bn_apply), &c);
  return YK_OK;
}

/* ---- gradients of batch norm: partial[chunk] = sums of g and g*(x - mean) ----------------------------------------- */

static void F(grad_chunks)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  for (int64_t i = begin; i < end; i++) {
    int64_t last, first = yk__norm_chunk(c->s, i, &last);
    for (int64_t at = 0; at < n; at += NORM_BLOCK) {
      const int64_t m = n - at < NORM_BLOCK ? n - at : NORM_BLOCK;
      const T *mean = (const T *)c->mean + at;
      double *s = c->partial + 2 * i * n + at, *q = s + n;
      memset(s, 0, (size_t)m * sizeof *s);
      memset(q, 0, (size_t)m * sizeof *q);
      for (int64_t r = first; r < last; r++) {
        const T *dy = (const T *)c->arg[0] + r * n + at, *x = (const T *)c->arg[1] + r * n + at;
        const T *y = c->y ? (const T *)c->y + r * n + at : NULL;
        if (y) {
          SIMD for (int64_t j = 0; j < m; j++) {
            const double g = y[j] > 0 ? (double)dy[j] : 0.0;
            s[j] += g;
            q[j] += g * ((double)x[j] - (double)mean[j]);
          }
        } else {
          SIMD for (int64_t j = 0; j < m; j++) {
            s[j] += (double)dy[j];
            q[j] += (double)dy[j] * ((double)x[j] - (double)mean[j]);
          }
        }
      }
    }
  }
}

/* dgamma, dbeta, and the three factors of dx = k1*g - k2 - k3*(x - mean); k2 = k3 = 0 with fixed statistics. */
static void F(grad_finish)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *gamma = c->arg[2], *var = c->arg[4];
  T *dgamma = c->dgamma, *dbeta = c->dbeta, *k1 = c->scale, *k2 = k1 + n, *k3 = k2 + n;
  for (int64_t j = begin; j < end; j++) {
    double s = 0, q = 0, rows = (double)c->s->rows, r = 1.0 / sqrt((double)var[j] + c->s->epsilon), k = (double)gamma[j] * r;
    for (int64_t i = 0; i < c->s->chunks; i++) {
      s += c->partial[2 * i * n + j];
      q += c->partial[(2 * i + 1) * n + j];
    }
    dgamma[j] = (T)(q * r);
    dbeta[j] = (T)s;
    k1[j] = (T)k;
    k2[j] = c->fixed ? 0 : (T)(k * s / rows);
    k3[j] = c->fixed ? 0 : (T)(k * r * r * q / rows);
  }
}

static void F(grad_apply)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *mean = c->mean, *k1 = c->scale, *k2 = k1 + n, *k3 = k2 + n;
  for (int64_t r = begin; r < end; r++) {
    const T *dy = (const T *)c->arg[0] + r * n, *x = (const T *)c->arg[1] + r * n;
    const T *y = c->y ? (const T *)c->y + r * n : NULL;
    T *dx = (T *)c->dx + r * n;
    if (y) {
      SIMD for (int64_t j = 0; j < n; j++) {
        const T g = y[j] > 0 ? dy[j] : (T)0;
        dx[j] = k1[j] * g - k2[j] - k3[j] * (x[j] - mean[j]);
      }
    } else {
      SIMD for (int64_t j = 0; j < n; j++) dx[j] = k1[j] * dy[j] - k2[j] - k3[j] * (x[j] - mean[j]);
    }
  }
}

static yk_code F(bn_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_norm_state *s = k->state;
  call c = { .s = s, .arg = arg, .partial = workspace, .mean = arg[3], .y = s->relu ? arg[5] : NULL };
  c.fixed = k->nin == 5;                 /* infer_grad has no y */
  c.dx = arg[k->nin];
  c.dgamma = arg[k->nin + 1];
  c.dbeta = arg[k->nin + 2];
  c.scale = c.partial + 2 * s->chunks * s->n;
  if (s->n == 0) return YK_OK;
  yk__cpu_host->parallel_for(s->chunks, 1, F(grad_chunks), &c);
  yk__cpu_host->parallel_for(s->n, 1024, F(grad_finish), &c);
  yk__cpu_host->parallel_for(s->rows, 1 + L_GRAIN / s->n, F(grad_apply), &c);
  return YK_OK;
}

/* ---- layer norm ------------------------------------------------------------------------------------------------------ */

static void F(layer_rows)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *gamma = c->arg[1], *beta = c->arg[2];
  for (int64_t r = begin; r < end; r++) {
    const T *x = (const T *)c->arg[0] + r * n;
    T *y = (T *)c->arg[3] + r * n;
    double s = 0, q = 0;
    SIMD_SUM(s) for (int64_t j = 0; j < n; j++) s += (double)x[j];
    const double mean = s / (double)n;
    SIMD_SUM(q) for (int64_t j = 0; j < n; j++) q += ((double)x[j] - mean) * ((double)x[j] - mean);
    const T m = (T)mean, rstd = (T)(1.0 / sqrt(q / (double)n + c->s->epsilon));
    ((T *)c->arg[4])[r] = m;
    ((T *)c->arg[5])[r] = rstd;
    SIMD for (int64_t j = 0; j < n; j++) y[j] = (x[j] - m) * rstd * gamma[j] + beta[j];
  }
}

static yk_code F(layer)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_norm_state *s = k->state;
  call c = { .s = s, .arg = arg };
  (void)workspace;
  if (s->n) yk__cpu_host->parallel_for(s->rows, 1 + L_GRAIN / 4 / s->n, F(layer_rows), &c);
  return YK_OK;
}

/* One chunk of rows: dx of each, and the chunk's share of dgamma and dbeta. */
static void F(layer_grad_chunks)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  const T *gamma = c->arg[2];
  for (int64_t i = begin; i < end; i++) {
    int64_t last, first = yk__norm_chunk(c->s, i, &last);
    double *db = c->partial + 2 * i * n, *dg = db + n;
    memset(db, 0, 2 * (size_t)n * sizeof *db);
    for (int64_t r = first; r < last; r++) {
      const T *dy = (const T *)c->arg[0] + r * n, *x = (const T *)c->arg[1] + r * n;
      const T m = ((const T *)c->arg[3])[r], rstd = ((const T *)c->arg[4])[r];
      T *dx = (T *)c->arg[5] + r * n;
      double s = 0, q = 0;
      SIMD_SUM2(s, q) for (int64_t j = 0; j < n; j++) {
        const T g = dy[j] * gamma[j];
        s += (double)g;
        q += (double)(g * ((x[j] - m) * rstd));
      }
      const T c1 = (T)(s / (double)n), c2 = (T)(q / (double)n);
      SIMD for (int64_t j = 0; j < n; j++) {
        const T xh = (x[j] - m) * rstd;
        dg[j] += (double)(dy[j] * xh);
        db[j] += (double)dy[j];
        dx[j] = rstd * (dy[j] * gamma[j] - c1 - xh * c2);
      }
    }
  }
}

static void F(layer_grad_finish)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  for (int64_t j = begin; j < end; j++) {
    double db = 0, dg = 0;
    for (int64_t i = 0; i < c->s->chunks; i++) {
      db += c->partial[2 * i * n + j];
      dg += c->partial[(2 * i + 1) * n + j];
    }
    ((T *)c->arg[6])[j] = (T)dg;
    ((T *)c->arg[7])[j] = (T)db;
  }
}

static yk_code F(layer_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_norm_state *s = k->state;
  call c = { .s = s, .arg = arg, .partial = workspace };
  if (s->n == 0) return YK_OK;
  yk__cpu_host->parallel_for(s->chunks, 1, F(layer_grad_chunks), &c);
  yk__cpu_host->parallel_for(s->n, 1024, F(layer_grad_finish), &c);
  return YK_OK;
}
