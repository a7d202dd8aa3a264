/*
 * loop_softmax_tmpl.h - softmax, log-softmax and the cross entropies for one type; included by loop_softmax_isa.c.
 *
 * The includer defines T and F(f). Every row is shifted by its maximum first, so that no exponential overflows.
 */
static T F(row_max)(int64_t n, const T *x) {
  T m = x[0];
  SIMD_MAX(m) for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
  return m;
}

/* e = exp(x - max), their sum. */
static T F(row_exp)(int64_t n, const T *x, T max, T *e) {
  T s = 0;
  SIMD_SUM(s) for (int64_t i = 0; i < n; i++) {
    const T v = F(m_exp)(x[i] - max);
    e[i] = v;
    s += v;
  }
  return s;
}

/* Sum of exp(x - max) without keeping the terms. */
static T F(row_exp_sum)(int64_t n, const T *x, T max) {
  T s = 0;
  SIMD_SUM(s) for (int64_t i = 0; i < n; i++) s += F(m_exp)(x[i] - max);
  return s;
}

static void F(softmax_row)(int64_t n, const T *x, T *y) {
  T max = F(row_max)(n, x), s = F(row_exp)(n, x, max, y), r = (T)1 / s;
  SIMD for (int64_t i = 0; i < n; i++) y[i] *= r;
}

static void F(log_softmax_row)(int64_t n, const T *x, T *y) {
  T max = F(row_max)(n, x), s = F(row_exp_sum)(n, x, max), l = F(m_log)(s);
  SIMD for (int64_t i = 0; i < n; i++) y[i] = x[i] - max - l;
}

static void F(softmax_grad_row)(int64_t n, const T *dy, const T *s, T *dx) {
  T dot = 0;
  SIMD_SUM(dot) for (int64_t i = 0; i < n; i++) dot += dy[i] * s[i];
  SIMD for (int64_t i = 0; i < n; i++) dx[i] = s[i] * (dy[i] - dot);
}

static void F(log_softmax_grad_row)(int64_t n, const T *dy, const T *l, T *dx) {
  T sum = 0;
  SIMD_SUM(sum) for (int64_t i = 0; i < n; i++) sum += dy[i];
  SIMD for (int64_t i = 0; i < n; i++) dx[i] = dy[i] - F(m_exp)(l[i]) * sum;
}

/* loss = sum of labels * (log s - (x - max)); the difference to the softmax goes into back. */
static T F(xent_row)(int64_t n, const T *x, const T *labels, T *back) {
  T max = F(row_max)(n, x), s = F(row_exp)(n, x, max, back), l = F(m_log)(s), r = (T)1 / s, loss = 0;
  SIMD_SUM(loss) for (int64_t i = 0; i < n; i++) loss += labels[i] * (l - (x[i] - max));
  SIMD for (int64_t i = 0; i < n; i++) back[i] = back[i] * r - labels[i];
  return loss;
}

static T F(sparse_row)(int64_t n, const T *x, int64_t label, T *back) {
  T max = F(row_max)(n, x), s = F(row_exp)(n, x, max, back), r = (T)1 / s;
  T loss = F(m_log)(s) - (x[label] - max);
  SIMD for (int64_t i = 0; i < n; i++) back[i] *= r;
  back[label] -= (T)1;
  return loss;
}

static void F(rows)(int64_t begin, int64_t end, void *arg) {
  const call *c = arg;
  const int64_t n = c->s->n;
  for (int64_t r = begin; r < end; r++) {
    const T *a = (const T *)c->arg[0] + r * n, *b = (const T *)c->arg[1] + r * n;
    T *y = (T *)c->arg[c->s->out] + r * n;
    switch (c->s->kind) {
      case SM_SOFTMAX: F(softmax_row)(n, a, y); break;
      case SM_SOFTMAX_GRAD: F(softmax_grad_row)(n, a, b, y); break;
      case SM_LOG_SOFTMAX: F(log_softmax_row)(n, a, y); break;
      case SM_LOG_SOFTMAX_GRAD: F(log_softmax_grad_row)(n, a, b, y); break;
      case SM_XENT: ((T *)c->arg[2])[r] = F(xent_row)(n, a, b, y); break;
      default: ((T *)c->arg[2])[r] = F(sparse_row)(n, a, yk__loop_label(c->arg[1], c->s->label_dtype, r), y); break;
    }
  }
}

static yk_code F(run)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_softmax_state *s = k->state;
  call c = { s, arg };
  (void)workspace;
  if (s->n) yk__cpu_host->parallel_for(s->rows, 1 + L_GRAIN / 4 / s->n, F(rows), &c);
  return YK_OK;
}
