/*
 * loop_update_rows.c - updates of the rows that a sparse gradient names.
 *
 * Positions are sorted by row, stably, so that all values of one row lie together in their order: they are added and the
 * formula is applied once. Rows are independent of one another, so they are shared out to the team and the bits do not
 * depend on its size. Nothing is written if any row is out of range.
 */
#include "loop_update.h"

#include <string.h>

typedef struct place { int64_t row, at; } place;         /* a row, and the position that names it */
typedef struct table { int64_t limit, inner, count; } table;   /* rows of a variable, elements of a row, positions */

typedef struct rows { yk_loop_rule r; uint32_t n; int64_t most; table t[]; } rows;
typedef struct rows_call {
  const yk_kernel *k;
  void *const *arg;
  const place *sorted;
  const int64_t *first;                                  /* [distinct+1] where each distinct row begins in `sorted` */
  uint32_t variable;
  double p[U_NUMBERS];
} rows_call;

static int64_t row_at(const void *p, uint8_t dtype, int64_t i) {
  return dtype == YK_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}

/* Stable sort by row, 11 bits at a time; the result is in a or b. */
static place *sort(place *a, place *b, int64_t n, int64_t limit) {
  enum { BITS = 11, BUCKETS = 1 << BITS };
  for (int shift = 0; shift < 63 && (limit - 1) >> shift > 0; shift += BITS) {
    int64_t start[BUCKETS] = { 0 }, sum = 0;
    for (int64_t i = 0; i < n; i++) start[(a[i].row >> shift) & (BUCKETS - 1)]++;
    for (int i = 0; i < BUCKETS; i++) {
      int64_t here = start[i];
      start[i] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; i++) b[start[(a[i].row >> shift) & (BUCKETS - 1)]++] = a[i];
    place *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

/* m elements from `from` of the sum of a row's values, in f32 or f64. */
static void add_up(const rows *u, const rows_call *c, const place *p, int64_t n, int64_t from, int64_t m, void *sum) {
  const char *values = c->arg[(u->r.operands - 1) * u->n + c->variable];
  int64_t inner = u->t[c->variable].inner;
  int f64 = c->k->in[0].dtype == YK_F64;
  yk_elem_fn add = yk__loop_elem()->fn[E_add][f64 ? L_F64 : L_F32][L_VV];
  const double none[2] = { 0, 0 };
  float half[L_BLOCK];
  for (int64_t i = 0; i < n; i++) {
    const char *value = values + (p[i].at * inner + from) * u->r.bytes;
    if (i == 0 && u->r.load) u->r.load(m, value, NULL, NULL, sum, NULL);
    else if (i == 0) memcpy(sum, value, (size_t)m * u->r.bytes);
    else if (u->r.load) {
      u->r.load(m, value, NULL, NULL, half, NULL);
      add(m, sum, half, NULL, sum, none);
    } else add(m, sum, value, NULL, sum, none);
  }
}

static void update_rows(int64_t begin, int64_t end, void *argv) {
  const rows_call *c = argv;
  const rows *u = c->k->state;
  int64_t inner = u->t[c->variable].inner;
  uint32_t last = u->r.operands - 1;
  union { float f[L_BLOCK]; double d[L_BLOCK]; } sum;
  for (int64_t s = begin; s < end; s++) {
    const place *p = c->sorted + c->first[s];
    int64_t n = c->first[s + 1] - c->first[s];
    for (int64_t from = 0; from < inner; from += L_BLOCK) {
      int64_t m = inner - from < L_BLOCK ? inner - from : L_BLOCK;
      char *t[U_OPERANDS];
      for (uint32_t j = 0; j < last; j++) t[j] = (char *)c->arg[j * u->n + c->variable] + (p->row * inner + from) * u->r.bytes;
      add_up(u, c, p, n, from, m, &sum);
      t[last] = (char *)&sum;
      yk__loop_rule_apply(&u->r, m, t, c->p, u->r.load ? sum.f : NULL);
    }
  }
}

static yk_code check(const yk_kernel *k, const rows *u, uint32_t i, const void *index) {
  const table *t = &u->t[i];
  uint8_t dtype = k->in[u->r.operands * u->n + i].dtype;
  for (int64_t at = 0; at < t->count; at++) {
    int64_t row = row_at(index, dtype, at);
    if (row < 0 || row >= t->limit)
      return YK_CPU_FAIL(EINVAL, "update of rows: row %lld at position %lld is outside [0, %lld)", (long long)row, (long long)at,
                         (long long)t->limit);
  }
  return YK_OK;
}

static void one_variable(rows_call *c, uint32_t i, place *a) {
  const rows *u = c->k->state;
  const table *t = &u->t[i];
  uint32_t input = u->r.operands * u->n + i;
  place *b = a + u->most, *sorted;
  int64_t *first = (int64_t *)(void *)(b + u->most), distinct = 0;
  for (int64_t at = 0; at < t->count; at++) a[at] = (place){ row_at(c->arg[input], c->k->in[input].dtype, at), at };
  sorted = sort(a, b, t->count, t->limit);
  for (int64_t at = 0; at < t->count; at++)
    if (at == 0 || sorted[at].row != sorted[at - 1].row) first[distinct++] = at;
  first[distinct] = t->count;
  c->variable = i;
  c->sorted = sorted;
  c->first = first;
  if (t->inner > 0) yk__cpu_host->parallel_for(distinct, 1 + L_GRAIN / t->inner, update_rows, c);
}

static yk_code rows_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const rows *u = k->state;
  rows_call c = { .k = k, .arg = arg };
  uint32_t index = u->r.operands * u->n;
  if (yk__loop_off(k, arg, index + u->n + u->r.scalars)) return YK_OK;
  for (uint32_t i = 0; i < u->n; i++) YK_TRY(check(k, u, i, arg[index + i]));
  yk__loop_rule_numbers(&u->r, k, arg, index + u->n, c.p);
  for (uint32_t i = 0; i < u->n; i++)
    if (u->t[i].count > 0) one_variable(&c, i, workspace);
  return YK_OK;
}

yk_code yk__cpu_loop_update_rows(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_loop_rule r;
  YK_TRY(yk__cpu_want_plain(p));
  YK_TRY(yk__loop_rule(p, &r));
  uint32_t n = (k->nin - r.scalars) / (r.operands + 1);
  rows *u = yk__cpu_state(p, sizeof *u + n * sizeof u->t[0]);
  if (!u) return YK_ENOMEM;
  u->r = r;
  u->n = n;
  for (uint32_t i = 0; i < n; i++) {
    const yk_desc *w = &k->in[i];
    u->t[i].limit = w->dim[0];
    u->t[i].inner = yk__loop_span(w, 1, w->rank);
    u->t[i].count = yk__cpu_count(&k->in[r.operands * n + i]);
    if (u->t[i].count > u->most) u->most = u->t[i].count;
  }
  p->workspace = (uint64_t)u->most * (2 * sizeof(place) + sizeof(int64_t)) + sizeof(int64_t);
  k->run = rows_run;
  k->impl = r.impl;
  return YK_OK;
}
