/*
 * loop_rnn_tmpl.h - packing, products and the walk over blocks and steps, for one type; included by loop_rnn_isa.c.
 *
 * The includer defines T and F(f). What happens in a step is a function of the kind, in loop_rnn_cells_tmpl.h; everything here
 * is the same for all of them.
 */
typedef T F(V) __attribute__((vector_size(VECTOR)));
typedef T F(U) __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));     /* in memory, at any element */
enum { F(WIDE) = 2 * VECTOR / (int)sizeof(T), F(LANES) = VECTOR / (int)sizeof(T) };

/* Some rows of the sequences, and scratch of their own. */
typedef struct F(block) {
  int64_t first, rows;           /* sequences */
  T *h, *c, *in, *product[2];    /* h has rows of padded u, in of 4u */
} F(block);

/* One run: arguments by meaning, NULL where absent. */
typedef struct F(rnn) {
  const yk_rnn_state *s;
  const T *z, *recurrent, *kept, *h0, *c0, *bias, *dy, *dh, *dc;   /* kept: cells or states, which the forward pass wrote */
  const uint8_t *mask;
  T *y, *h1, *c1, *gates, *cells, *dz, *dq, *before;
  T *pack[2], *scratch;
  void (*step)(const struct F(rnn) *c, const F(block) *b, int64_t k);
} F(rnn);

static void F(pack)(const yk_rnn_state *s, int which, const T *from, T *to) {
  const yk_rnn_pack *p = &s->pack[which];
  const int64_t down = p->turned ? 1 : s->columns, across = p->turned ? s->columns : 1;
  const T *at = from + p->first;
  for (int64_t j0 = 0; j0 < s->pitch[which]; j0 += F(WIDE))
    for (int64_t i = 0; i < p->depth; i++)
      for (int64_t j = j0; j < j0 + F(WIDE); j++) *to++ = j < p->columns ? at[i * down + j * across] : (T)0;
}

INLINE void F(tile)(const int rows, int64_t depth, const T *a, int64_t a_row, const T *b, T *c, int64_t c_row) {
  F(V) sum[TILE][2];
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (F(V)){ 0 };
  for (int64_t i = 0; i < depth; i++, b += F(WIDE)) {
    const F(V) left = (F(V))*(const F(U) *)b, right = (F(V))*(const F(U) *)(b + F(LANES));
    for (int r = 0; r < rows; r++) {
      sum[r][0] += a[r * a_row + i] * left;
      sum[r][1] += a[r * a_row + i] * right;
    }
  }
  for (int r = 0; r < rows; r++) {
    *(F(U) *)(c + r * c_row) = sum[r][0];
    *(F(U) *)(c + r * c_row + F(LANES)) = sum[r][1];
  }
}

/* c[rows][columns] = a[rows][depth] * the packed factor; c has room for whole panels. */
static void F(multiply)(const F(rnn) *call, int which, int64_t rows, const T *a, int64_t a_row, T *c) {
  const yk_rnn_state *s = call->s;
  const int64_t depth = s->pack[which].depth, pitch = s->pitch[which];
  for (int64_t j = 0; j < s->pack[which].columns; j += F(WIDE)) {
    const T *b = call->pack[which] + j * depth;
    int64_t r = 0;
    for (; r + TILE <= rows; r += TILE) F(tile)(TILE, depth, a + r * a_row, a_row, b, c + r * pitch + j, pitch);
    for (; r + 2 <= rows; r += 2) F(tile)(2, depth, a + r * a_row, a_row, b, c + r * pitch + j, pitch);
    if (r < rows) F(tile)(1, depth, a + r * a_row, a_row, b, c + r * pitch + j, pitch);
  }
}

/* Element number of step k (in the order taken) of row r, in units of a row of z. */
INLINE int64_t F(at)(const F(rnn) *c, const F(block) *b, int64_t r, int64_t k) {
  return (b->first + r) * c->s->t + (c->s->backwards ? c->s->t - 1 - k : k);
}
INLINE int F(on)(const F(rnn) *c, int64_t at) { return !c->mask || c->mask[at]; }

static void F(copy_or_zero)(T *to, const T *from, int64_t n) {
  if (from) memcpy(to, from, (size_t)n * sizeof(T));
  else memset(to, 0, (size_t)n * sizeof(T));
}

/* What y shows in a masked step: the output before, which is h once there was a step at all. */
static void F(masked_output)(const F(rnn) *c, const F(block) *b, int64_t r, int64_t k) {
  int seen = 0;
  for (int64_t i = 0; i < k && !c->s->zero_output && !seen; i++) seen = F(on)(c, F(at)(c, b, r, i));
  F(copy_or_zero)(c->y + ((b->first + r) * c->s->t + k) * c->s->u, seen ? b->h + r * yk__rnn_padded(c->s->u) : NULL, c->s->u);
}

/* Adds dy of step k to b->h, except where y does not show the state. */
static void F(add_dy)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  for (int64_t r = 0; c->dy && r < b->rows; r++) {
    const T *dy = c->dy + ((b->first + r) * c->s->t + k) * u;
    T *dh = b->h + r * h_row;
    int shown = F(on)(c, F(at)(c, b, r, k));
    for (int64_t i = 0; i < k && !c->s->zero_output && !shown; i++) shown = F(on)(c, F(at)(c, b, r, i));
    if (shown) SIMD for (int64_t j = 0; j < u; j++) dh[j] += dy[j];
  }
}

static F(block) F(block_of)(const F(rnn) *c, int64_t slot, int64_t number) {
  const yk_rnn_state *s = c->s;
  F(block) b = { .first = number * s->rows };
  b.rows = s->n - b.first < s->rows ? s->n - b.first : s->rows;
  b.h = c->scratch + slot * s->scratch;
  b.c = b.h + s->rows * yk__rnn_padded(s->u);
  b.in = b.c + s->rows * s->u;
  b.product[0] = b.in + s->rows * 4 * s->u;
  b.product[1] = b.product[0] + s->rows * s->pitch[0];
  return b;
}

/* The state before the first step, or its gradient after the last. */
static void F(state_in)(const F(rnn) *c, const F(block) *b, const T *h, const T *s) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  for (int64_t r = 0; r < b->rows; r++) {
    F(copy_or_zero)(b->h + r * h_row, h ? h + (b->first + r) * u : NULL, u);
    F(copy_or_zero)(b->c + r * u, s ? s + (b->first + r) * u : NULL, u);
  }
}

static void F(state_out)(const F(rnn) *c, const F(block) *b) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  for (int64_t r = 0; r < b->rows; r++) {
    memcpy(c->h1 + (b->first + r) * u, b->h + r * h_row, (size_t)u * sizeof(T));
    if (c->c1) memcpy(c->c1 + (b->first + r) * u, b->c + r * u, (size_t)u * sizeof(T));
  }
}

static void F(slots)(int64_t begin, int64_t end, void *arg) {
  const F(rnn) *c = arg;
  const yk_rnn_state *s = c->s;
  const int backward = c->dz != NULL;
  for (int64_t slot = begin; slot < end; slot++)
    for (int64_t number = slot * s->blocks / s->slots; number < (slot + 1) * s->blocks / s->slots; number++) {
      const F(block) b = F(block_of)(c, slot, number);
      F(state_in)(c, &b, backward ? c->dh : c->h0, backward ? c->dc : c->c0);
      for (int64_t k = 0; k < s->t; k++) c->step(c, &b, backward ? s->t - 1 - k : k);
      F(state_out)(c, &b);
    }
}

static yk_code F(run)(F(rnn) *c, void *workspace) {
  const yk_rnn_state *s = c->s;
  if (s->n == 0) return YK_OK;
  for (uint32_t i = 0; i < s->npack; i++) {
    c->pack[i] = (T *)workspace + s->pack_at[i];
    F(pack)(s, (int)i, c->recurrent, c->pack[i]);
  }
  c->scratch = (T *)workspace + s->packed;
  yk__cpu_host->parallel_for(s->slots, 1 + L_GRAIN / (s->t * s->columns * s->rows + 1), F(slots), c);
  return YK_OK;
}

/* Derivatives from results, and the functions themselves; `fast` is a constant where these are inlined. */
INLINE T F(act)(const yk_rnn_state *s, const int fast, T x) {
  if (fast || s->activation == YK_RNN_TANH) return F(m_tanh)(x);
  return s->activation == YK_RNN_RELU && x < 0 ? (T)0 : x;
}
INLINE T F(gate)(const yk_rnn_state *s, const int fast, T x) {
  if (fast || !s->hard) return F(m_sigmoid)(x);
  const T v = (T)s->slope * x + (T)0.5;
  return v < 0 ? (T)0 : v > 1 ? (T)1 : v;
}
/*
 * x, or 0 where it is so small that its products with weights may be denormals. What a gate lets through shrinks at each step, so after
 * a hundred of them gradients, and states after zeros, get there; and denormals are slow on some processors, here and in the
 * products of all steps behind: they doubled the step of an LSTM.
 */
INLINE T F(flushed)(T x) {
  const T least = sizeof(T) == 4 ? (T)0x1p-102 : (T)0x1p-969;        /* the smallest normal number times 2^24, 2^53 */
  return x < least && x > -least ? (T)0 : x;
}
INLINE T F(act_slope)(const yk_rnn_state *s, const int fast, T y) {
  if (fast || s->activation == YK_RNN_TANH) return (T)1 - y * y;
  return s->activation == YK_RNN_LINEAR || y > 0 ? (T)1 : (T)0;
}
INLINE T F(gate_slope)(const yk_rnn_state *s, const int fast, T y) {
  if (fast || !s->hard) return y * ((T)1 - y);
  return y > 0 && y < 1 ? (T)s->slope : (T)0;
}
