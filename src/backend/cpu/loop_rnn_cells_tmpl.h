/*
 * loop_rnn_cells_tmpl.h - one step of each kind of recurrent layer, and of its gradient, for one type; after loop_rnn_tmpl.h.
 *
 * A step is a product of the block's rows and then a pass over each row. The pass comes twice, once with the usual activations
 * as constants. Formulae are those of op_attrs.h; derivatives are taken from the kept results.
 */

/* ---- lstm ------------------------------------------------------------------------------------------------------ */

INLINE void F(lstm_row)(const yk_rnn_state *s, const int fast, const T *z, const T *p, T *gates, T *cells, T *c, T *h, T *y) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T i = F(gate)(s, fast, z[j] + p[j]), f = F(gate)(s, fast, z[u + j] + p[u + j]);
    const T g = F(act)(s, fast, z[2 * u + j] + p[2 * u + j]), o = F(gate)(s, fast, z[3 * u + j] + p[3 * u + j]);
    const T cell = F(flushed)(f * c[j] + i * g), out = o * F(act)(s, fast, cell);
    gates[j] = i;
    gates[u + j] = f;
    gates[2 * u + j] = g;
    gates[3 * u + j] = o;
    cells[j] = c[j] = cell;
    y[j] = h[j] = out;
  }
}

static void F(lstm_step)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const yk_rnn_state *s = c->s;
  const int64_t u = s->u, h_row = yk__rnn_padded(u);
  F(multiply)(c, 0, b->rows, b->h, h_row, b->product[0]);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    const T *z = c->z + at * 4 * u, *p = b->product[0] + r * s->pitch[0];
    T *gates = c->gates + at * 4 * u, *cells = c->cells + at * u, *h = b->h + r * h_row, *cell = b->c + r * u;
    T *y = c->y + ((b->first + r) * s->t + k) * u;
    if (!F(on)(c, at)) {
      memset(gates, 0, (size_t)(4 * u) * sizeof(T));
      memcpy(cells, cell, (size_t)u * sizeof(T));
      F(masked_output)(c, b, r, k);
    } else if (s->fast) {
      F(lstm_row)(s, 1, z, p, gates, cells, cell, h, y);
    } else {
      F(lstm_row)(s, 0, z, p, gates, cells, cell, h, y);
    }
  }
}

#define OPTIONAL(i) ((i) < k->nin ? arg[i] : NULL)
static yk_code F(lstm)(const yk_kernel *k, void *const *arg, void *workspace) {
  void *const *out = arg + k->nin;
  F(rnn) c = { .s = k->state, .z = arg[0], .recurrent = arg[1], .h0 = OPTIONAL(2), .c0 = OPTIONAL(3), .mask = OPTIONAL(4), .y = out[0],
               .h1 = out[1], .c1 = out[2], .gates = out[3], .cells = out[4], .step = F(lstm_step) };
  return F(run)(&c, workspace);
}

/* dz over the gates, in place if they are one; h of this step goes to `after` (h before the next one), if there is one. */
INLINE void F(lstm_back_row)(const yk_rnn_state *s, const int fast, const T *gates, const T *cells, const T *last, const T *dh, T *dc, T *in,
                             T *dz, T *h) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T i = gates[j], f = gates[u + j], g = gates[2 * u + j], o = gates[3 * u + j], y = F(act)(s, fast, cells[j]);
    const T e = F(flushed)(dc[j] + dh[j] * o * F(act_slope)(s, fast, y));
    const T di = F(flushed)(e * g * F(gate_slope)(s, fast, i)), df = F(flushed)(e * last[j] * F(gate_slope)(s, fast, f));
    const T dg = F(flushed)(e * i * F(act_slope)(s, fast, g)), dout = F(flushed)(dh[j] * y * F(gate_slope)(s, fast, o));
    dc[j] = e * f;
    h[j] = o * y;
    dz[j] = in[j] = di;
    dz[u + j] = in[u + j] = df;
    dz[2 * u + j] = in[2 * u + j] = dg;
    dz[3 * u + j] = in[3 * u + j] = dout;
  }
}

/* Where h of step k belongs: before the next step that is not masked; NULL if there is none. */
static T *F(next_before)(const F(rnn) *c, const F(block) *b, int64_t r, int64_t k) {
  for (k++; k < c->s->t; k++) {
    const int64_t at = F(at)(c, b, r, k);
    if (F(on)(c, at)) return c->before + at * c->s->u;
  }
  return NULL;
}

/* dh of the rows that were not masked = what came out of the product. */
static void F(take_product)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  for (int64_t r = 0; r < b->rows; r++)
    if (F(on)(c, F(at)(c, b, r, k))) memcpy(b->h + r * h_row, b->product[0] + r * c->s->pitch[0], (size_t)u * sizeof(T));
}

static void F(lstm_back_one)(const F(rnn) *c, const F(block) *b, int64_t r, int64_t k, T *spare) {
  const yk_rnn_state *s = c->s;
  const int64_t u = s->u, at = F(at)(c, b, r, k), row = b->first + r;
  T *in = b->in + r * 4 * u, *dz = c->dz + at * 4 * u, *next = F(next_before)(c, b, r, k);
  int64_t earlier = k;
  const T *last = k ? c->kept + F(at)(c, b, r, k - 1) * u : c->c0 ? c->c0 + row * u : NULL;
  if (!last) last = memset(spare, 0, (size_t)u * sizeof(T));
  T *h = next ? next : spare + u;
  if (s->fast) F(lstm_back_row)(s, 1, c->gates + at * 4 * u, c->kept + at * u, last, b->h + r * yk__rnn_padded(u), b->c + r * u, in, dz, h);
  else F(lstm_back_row)(s, 0, c->gates + at * 4 * u, c->kept + at * u, last, b->h + r * yk__rnn_padded(u), b->c + r * u, in, dz, h);
  while (earlier > 0 && !F(on)(c, F(at)(c, b, r, earlier - 1))) earlier--;
  if (earlier == 0) F(copy_or_zero)(c->before + at * u, c->h0 ? c->h0 + row * u : NULL, u);
}

static void F(lstm_back_step)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const int64_t u = c->s->u;
  F(add_dy)(c, b, k);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    if (F(on)(c, at)) {
      F(lstm_back_one)(c, b, r, k, b->product[0]);
      continue;
    }
    memset(c->dz + at * 4 * u, 0, (size_t)(4 * u) * sizeof(T));
    memset(c->before + at * u, 0, (size_t)u * sizeof(T));
    memset(b->in + r * 4 * u, 0, (size_t)(4 * u) * sizeof(T));
  }
  F(multiply)(c, 0, b->rows, b->in, 4 * u, c->mask ? b->product[0] : b->h);
  if (c->mask) F(take_product)(c, b, k);
}

static yk_code F(lstm_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  void *const *out = arg + k->nin;
  F(rnn) c = { .s = k->state, .gates = arg[0], .recurrent = arg[1], .kept = arg[2], .dy = OPTIONAL(3), .dh = OPTIONAL(4), .dc = OPTIONAL(5),
               .h0 = OPTIONAL(6), .c0 = OPTIONAL(7), .mask = OPTIONAL(8), .dz = out[0], .h1 = out[1], .c1 = out[2], .before = out[3],
               .step = F(lstm_back_step) };
  return F(run)(&c, workspace);
}

/* ---- gru --------------------------------------------------------------------------------------------------------- */

/* Gates u and r, n and what it came from, from the product of h with all of the kernel; then h. */
INLINE void F(gru_row)(const yk_rnn_state *s, const int fast, const T *z, const T *p, const T *bias, T *gates, T *states, T *h, T *y) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T g = F(gate)(s, fast, z[j] + (p[j] + bias[j])), r = F(gate)(s, fast, z[u + j] + (p[u + j] + bias[u + j]));
    const T q = p[2 * u + j] + bias[2 * u + j], n = F(act)(s, fast, z[2 * u + j] + r * q);
    const T out = F(flushed)(g * h[j] + ((T)1 - g) * n);
    gates[j] = g;
    gates[u + j] = r;
    gates[2 * u + j] = n;
    gates[3 * u + j] = q;
    states[j] = y[j] = h[j] = out;
  }
}

/* reset_before, first half: gates u and r, and r*h for the second product; second half: n, then h. */
INLINE void F(gru_reset_row)(const yk_rnn_state *s, const T *z, const T *p, const T *h, T *gates, T *rh) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T g = F(gate)(s, 0, z[j] + p[j]), r = F(gate)(s, 0, z[u + j] + p[u + j]);
    gates[j] = g;
    gates[u + j] = r;
    gates[3 * u + j] = rh[j] = r * h[j];
  }
}
INLINE void F(gru_new_row)(const yk_rnn_state *s, const T *z, const T *q, T *gates, T *states, T *h, T *y) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T n = F(act)(s, 0, z[2 * u + j] + q[j]), out = F(flushed)(gates[j] * h[j] + ((T)1 - gates[j]) * n);
    gates[2 * u + j] = n;
    states[j] = y[j] = h[j] = out;
  }
}

static void F(gru_reset)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    F(gru_reset_row)(c->s, c->z + at * 3 * u, b->product[0] + r * c->s->pitch[0], b->h + r * h_row, c->gates + at * 4 * u, b->in + r * u);
  }
  F(multiply)(c, 1, b->rows, b->in, u, b->product[1]);
}

static void F(gru_step)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const yk_rnn_state *s = c->s;
  const int64_t u = s->u, h_row = yk__rnn_padded(u);
  F(multiply)(c, 0, b->rows, b->h, h_row, b->product[0]);
  if (s->reset_before) F(gru_reset)(c, b, k);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    const T *z = c->z + at * 3 * u, *p = b->product[0] + r * s->pitch[0];
    T *gates = c->gates + at * 4 * u, *states = c->cells + at * u, *h = b->h + r * h_row, *y = c->y + ((b->first + r) * s->t + k) * u;
    if (!F(on)(c, at)) {
      memset(gates, 0, (size_t)(4 * u) * sizeof(T));
      memcpy(states, h, (size_t)u * sizeof(T));
      F(masked_output)(c, b, r, k);
    } else if (s->reset_before) {
      F(gru_new_row)(s, z, b->product[1] + r * s->pitch[1], gates, states, h, y);
    } else if (s->fast) {
      F(gru_row)(s, 1, z, p, c->bias, gates, states, h, y);
    } else {
      F(gru_row)(s, 0, z, p, c->bias, gates, states, h, y);
    }
  }
}

static yk_code F(gru)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_rnn_state *s = k->state;
  void *const *out = arg + k->nin;
  F(rnn) c = { .s = s, .z = arg[0], .recurrent = arg[1], .h0 = OPTIONAL(2), .mask = OPTIONAL(3), .bias = OPTIONAL(4), .y = out[0],
               .h1 = out[1], .gates = out[2], .cells = out[3], .step = F(gru_step) };
  if (!c.bias) c.bias = memset((T *)workspace + s->packed + s->slots * s->scratch, 0, (size_t)s->columns * sizeof(T));
  return F(run)(&c, workspace);
}

/* dh is replaced by its part that passes the update gate; `in` gets the gradient of h*recurrent. With reset_before only what does
 * not need the second product: dr follows. */
INLINE void F(gru_back_row)(const yk_rnn_state *s, const int fast, const T *gates, const T *last, T *dh, T *in, T *dz) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T g = gates[j], r = gates[u + j], n = gates[2 * u + j], q = gates[3 * u + j];
    const T dg = F(flushed)(dh[j] * (last[j] - n) * F(gate_slope)(s, fast, g));
    const T dn = F(flushed)(dh[j] * ((T)1 - g) * F(act_slope)(s, fast, n)), dr = F(flushed)(dn * q * F(gate_slope)(s, fast, r));
    dh[j] = F(flushed)(dh[j] * g);
    dz[j] = in[j] = dg;
    dz[u + j] = in[u + j] = dr;
    dz[2 * u + j] = dn;
    in[2 * u + j] = s->reset_before ? dn : dn * r;
  }
}
/* p: gradient of r*h. */
INLINE void F(gru_back_reset_row)(const yk_rnn_state *s, const T *gates, const T *last, const T *p, T *dh, T *in, T *dz) {
  const int64_t u = s->u;
  SIMD for (int64_t j = 0; j < u; j++) {
    const T r = gates[u + j], dr = F(flushed)(p[j] * last[j] * F(gate_slope)(s, 0, r));
    dh[j] += p[j] * r;
    dz[u + j] = in[u + j] = dr;
  }
}

/* The state before step k of row r. */
static const T *F(state_before)(const F(rnn) *c, const F(block) *b, int64_t r, int64_t k, T *zero) {
  const int64_t u = c->s->u;
  if (k > 0) return c->kept + F(at)(c, b, r, k - 1) * u;
  if (c->h0) return c->h0 + (b->first + r) * u;
  return memset(zero, 0, (size_t)u * sizeof(T));
}

/* Adds to dh, row by row, what came through the product. */
static void F(add_product)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  for (int64_t r = 0; r < b->rows; r++) {
    T *dh = b->h + r * h_row;
    const T *p = b->product[0] + r * c->s->pitch[0];
    if (F(on)(c, F(at)(c, b, r, k))) SIMD for (int64_t j = 0; j < u; j++) dh[j] += p[j];
  }
}

static void F(gru_back_reset)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const int64_t u = c->s->u, h_row = yk__rnn_padded(u);
  F(multiply)(c, 1, b->rows, b->in + 2 * u, 4 * u, b->product[1]);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    T *in = b->in + r * 4 * u;
    if (!F(on)(c, at)) continue;
    F(gru_back_reset_row)(c->s, c->gates + at * 4 * u, c->before + at * u, b->product[1] + r * c->s->pitch[1], b->h + r * h_row, in,
                          c->dz + at * 3 * u);
    memcpy(c->dq + at * 3 * u, in, (size_t)(3 * u) * sizeof(T));
  }
}

static void F(gru_back_step)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const yk_rnn_state *s = c->s;
  const int64_t u = s->u, h_row = yk__rnn_padded(u);
  F(add_dy)(c, b, k);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    T *in = b->in + r * 4 * u, *dz = c->dz + at * 3 * u, *dh = b->h + r * h_row;
    if (F(on)(c, at)) {
      const T *last = F(state_before)(c, b, r, k, b->product[0]);
      if (s->fast) F(gru_back_row)(s, 1, c->gates + at * 4 * u, last, dh, in, dz);
      else F(gru_back_row)(s, 0, c->gates + at * 4 * u, last, dh, in, dz);
      memcpy(c->before + at * u, last, (size_t)u * sizeof(T));
    } else {
      memset(in, 0, (size_t)(4 * u) * sizeof(T));
      memset(dz, 0, (size_t)(3 * u) * sizeof(T));
      memset(c->before + at * u, 0, (size_t)u * sizeof(T));
    }
    memcpy(c->dq + at * 3 * u, in, (size_t)(3 * u) * sizeof(T));
  }
  if (s->reset_before) F(gru_back_reset)(c, b, k);
  F(multiply)(c, 0, b->rows, b->in, 4 * u, b->product[0]);
  F(add_product)(c, b, k);
}

static yk_code F(gru_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  void *const *out = arg + k->nin;
  F(rnn) c = { .s = k->state, .gates = arg[0], .recurrent = arg[1], .kept = arg[2], .dy = OPTIONAL(3), .dh = OPTIONAL(4), .h0 = OPTIONAL(5),
               .mask = OPTIONAL(6), .dz = out[0], .h1 = out[1], .dq = out[2], .before = out[3], .step = F(gru_back_step) };
  return F(run)(&c, workspace);
}

/* ---- simple_rnn ---------------------------------------------------------------------------------------------------- */

INLINE void F(simple_row)(const yk_rnn_state *s, const int fast, const T *z, const T *p, T *states, T *h, T *y) {
  SIMD for (int64_t j = 0; j < s->u; j++) states[j] = y[j] = h[j] = F(flushed)(F(act)(s, fast, z[j] + p[j]));
}

static void F(simple_step)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const yk_rnn_state *s = c->s;
  const int64_t u = s->u, h_row = yk__rnn_padded(u);
  F(multiply)(c, 0, b->rows, b->h, h_row, b->product[0]);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    const T *z = c->z + at * u, *p = b->product[0] + r * s->pitch[0];
    T *states = c->cells + at * u, *h = b->h + r * h_row, *y = c->y + ((b->first + r) * s->t + k) * u;
    if (!F(on)(c, at)) {
      memcpy(states, h, (size_t)u * sizeof(T));
      F(masked_output)(c, b, r, k);
    } else if (s->fast) {
      F(simple_row)(s, 1, z, p, states, h, y);
    } else {
      F(simple_row)(s, 0, z, p, states, h, y);
    }
  }
}

static yk_code F(simple)(const yk_kernel *k, void *const *arg, void *workspace) {
  void *const *out = arg + k->nin;
  F(rnn) c = { .s = k->state, .z = arg[0], .recurrent = arg[1], .h0 = OPTIONAL(2), .mask = OPTIONAL(3), .y = out[0], .h1 = out[1],
               .cells = out[2], .step = F(simple_step) };
  return F(run)(&c, workspace);
}

INLINE void F(simple_back_row)(const yk_rnn_state *s, const int fast, const T *states, const T *dh, T *in, T *dz) {
  SIMD for (int64_t j = 0; j < s->u; j++) dz[j] = in[j] = F(flushed)(dh[j] * F(act_slope)(s, fast, states[j]));
}

static void F(simple_back_step)(const F(rnn) *c, const F(block) *b, int64_t k) {
  const yk_rnn_state *s = c->s;
  const int64_t u = s->u, h_row = yk__rnn_padded(u);
  F(add_dy)(c, b, k);
  for (int64_t r = 0; r < b->rows; r++) {
    const int64_t at = F(at)(c, b, r, k);
    T *in = b->in + r * 4 * u, *dz = c->dz + at * u;
    const int on = F(on)(c, at);
    F(copy_or_zero)(c->before + at * u, on ? F(state_before)(c, b, r, k, b->product[0]) : NULL, u);
    if (!on) {
      memset(in, 0, (size_t)u * sizeof(T));
      memset(dz, 0, (size_t)u * sizeof(T));
    } else if (s->fast) {
      F(simple_back_row)(s, 1, c->kept + at * u, b->h + r * h_row, in, dz);
    } else {
      F(simple_back_row)(s, 0, c->kept + at * u, b->h + r * h_row, in, dz);
    }
  }
  F(multiply)(c, 0, b->rows, b->in, 4 * u, b->product[0]);
  F(take_product)(c, b, k);
}

static yk_code F(simple_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  void *const *out = arg + k->nin;
  F(rnn) c = { .s = k->state, .kept = arg[0], .recurrent = arg[1], .dy = OPTIONAL(2), .dh = OPTIONAL(3), .h0 = OPTIONAL(4),
               .mask = OPTIONAL(5), .dz = out[0], .h1 = out[1], .before = out[2], .step = F(simple_back_step) };
  return F(run)(&c, workspace);
}
#undef OPTIONAL
