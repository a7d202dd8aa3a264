/*
 * loop_lamb.c - LAMB's update: two passes over each variable, with the norms between them.
 *
 * The first pass moves m and v and adds up the squares of w and of the direction; the second moves w by the direction,
 * which it works out again rather than keeping it. Sums are of pieces of fixed size, added in order, so that the bits do not
 * depend on the team. Of f16 and bf16 the first pass writes nothing and the second does its work again, so that the
 * direction is not that of rounded moments.
 */
#include "loop_update.h"

#include <math.h>

typedef struct lamb {
  yk_loop_rule r;
  void (*norms)(int64_t n, void *const *t, const double *p, double *sums);
  uint32_t n;
  int64_t pieces;
  int64_t at[];                          /* [n+1] first piece of each variable, then [n] its elements */
} lamb;

typedef struct lamb_call { const yk_kernel *k; void *const *arg; double p[U_NUMBERS], *sums; } lamb_call;   /* sums [pieces][2] */

static void norms(const lamb *u, int64_t n, char *const *t, const double *p, double *sums) {
  float buf[4][L_BLOCK];
  if (!u->r.load) {
    u->norms(n, (void *const[]){ t[0], t[1], t[2], t[3] }, p, sums);
    return;
  }
  for (int64_t i = 0; i < n; i += L_BLOCK) {
    int64_t m = n - i < L_BLOCK ? n - i : L_BLOCK;
    for (int j = 0; j < 4; j++) u->r.load(m, t[j] + i * 2, NULL, NULL, buf[j], NULL);
    u->norms(m, (void *const[]){ buf[0], buf[1], buf[2], buf[3] }, p, sums);
  }
}

static void step(const lamb *u, int64_t n, char *const *t, const double *p) {
  float buf[4][L_BLOCK];
  if (!u->r.load) {
    u->r.fn(n, (void *const[]){ t[0], t[1], t[2] }, p);
    return;
  }
  for (int64_t i = 0; i < n; i += L_BLOCK) {
    int64_t m = n - i < L_BLOCK ? n - i : L_BLOCK;
    double again[2] = { 0, 0 };
    for (int j = 0; j < 4; j++) u->r.load(m, t[j] + i * 2, NULL, NULL, buf[j], NULL);
    u->norms(m, (void *const[]){ buf[0], buf[1], buf[2], buf[3] }, p, again);
    u->r.fn(m, (void *const[]){ buf[0], buf[1], buf[2] }, p);
    for (int j = 0; j < 3; j++) u->r.store(m, buf[j], NULL, NULL, t[j] + i * 2, NULL);
  }
}

/* Variable and place of piece number i; returns how many elements it has. */
static int64_t piece(const lamb *u, int64_t i, void *const *arg, uint32_t *variable, char **t) {
  uint32_t lo = 0, hi = u->n;
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (u->at[mid] <= i) lo = mid;
    else hi = mid;
  }
  while (u->at[lo + 1] <= i) lo++;                        /* over variables without elements */
  int64_t from = (i - u->at[lo]) * L_GRAIN, left = u->at[u->n + 1 + lo] - from;
  for (uint32_t j = 0; j < 4; j++) t[j] = (char *)arg[j * u->n + lo] + from * u->r.bytes;
  *variable = lo;
  return left < L_GRAIN ? left : L_GRAIN;
}

static void first_pass(int64_t begin, int64_t end, void *argv) {
  const lamb_call *c = argv;
  const lamb *u = c->k->state;
  for (int64_t i = begin; i < end; i++) {
    char *t[4];
    uint32_t variable;
    int64_t n = piece(u, i, c->arg, &variable, t);
    c->sums[2 * i] = c->sums[2 * i + 1] = 0;
    norms(u, n, t, c->p, &c->sums[2 * i]);
  }
}

static void second_pass(int64_t begin, int64_t end, void *argv) {
  const lamb_call *c = argv;
  const lamb *u = c->k->state;
  for (int64_t i = begin; i < end; i++) {
    char *t[4];
    uint32_t variable;
    double p[U_NUMBERS];
    int64_t n = piece(u, i, c->arg, &variable, t);
    for (int j = 0; j < U_NUMBERS; j++) p[j] = c->p[j];
    p[6] *= c->sums[2 * u->at[variable]];
    step(u, n, t, p);
  }
}

/* The quotient of each variable's norms, left where its first sum was. */
static void quotients(const lamb *u, double *sums) {
  for (uint32_t k = 0; k < u->n; k++) {
    double w2 = 0, r2 = 0;
    for (int64_t i = u->at[k]; i < u->at[k + 1]; i++) {
      w2 += sums[2 * i];
      r2 += sums[2 * i + 1];
    }
    if (u->at[k] < u->at[k + 1]) sums[2 * u->at[k]] = w2 > 0 && r2 > 0 ? sqrt(w2) / sqrt(r2) : w2 == w2 && r2 == r2 ? 1 : w2 + r2;
  }
}

static yk_code lamb_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const lamb *u = k->state;
  lamb_call c = { .k = k, .arg = arg, .sums = workspace };
  if (yk__loop_off(k, arg, 4 * u->n + u->r.scalars)) return YK_OK;
  yk__loop_rule_numbers(&u->r, k, arg, 4 * u->n, c.p);
  yk__cpu_host->parallel_for(u->pieces, 1, first_pass, &c);
  quotients(u, c.sums);
  yk__cpu_host->parallel_for(u->pieces, 1, second_pass, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_lamb(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_loop_rule r;
  YK_TRY(yk__loop_rule(p, &r));
  uint32_t n = (k->nin - r.scalars) / r.operands;
  lamb *u = yk__cpu_state(p, sizeof *u + (2 * (size_t)n + 1) * sizeof u->at[0]);
  if (!u) return YK_ENOMEM;
  u->r = r;
  u->norms = yk__loop_update()->lamb_norms[k->in[0].dtype == YK_F64];
  u->n = n;
  for (uint32_t i = 0; i < n; i++) {
    int64_t *elements = &u->at[n + 1 + i];
    YK_TRY(yk__loop_follow(p, i, n, r.operands, elements));
    u->at[i + 1] = u->at[i] + (*elements + L_GRAIN - 1) / L_GRAIN;
  }
  u->pieces = u->at[n];
  for (uint32_t i = 0; i < k->nout; i++) k->out[i].layout = YK_LAYOUT_PLAIN;
  p->workspace = (uint64_t)u->pieces * 2 * sizeof(double);
  k->run = lamb_run;
  k->impl = r.impl;
  return YK_OK;
}
