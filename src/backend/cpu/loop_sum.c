/*
 * loop_sum.c - sums of several tensors, left to right, into one tensor or into several variables.
 *
 * A block is added up where the first-level cache holds it. What no cache could hold until somebody reads it goes past the caches to
 * memory, which spares reading the lines that are overwritten: a sum of n tensors into n moves the 2n that it must, and no more.
 */
#include "loop_update.h"

#include <stdbool.h>
#include <string.h>

enum { SUM_BYTES = 8192 };               /* of the sum that are made at a time */

typedef struct sum {
  yk_elem_fn add, load, store;
  uint32_t nin, nout, bytes;             /* of an element */
  void (*few)(int64_t n, uint32_t k, const float *const *x, float *out);
  void (*past)(size_t n, const char *from, char *to);
  void (*settle)(void);
  bool stream;                           /* write past the caches */
  bool is_f32;
} sum;
typedef struct sum_call { const sum *s; void *const *in, *const *out; } sum_call;

/* f32: m elements from `at` on, to `to`; several inputs in one pass, so that many reads are under way at a time. */
static void add_f32(const sum_call *c, int64_t at, int64_t m, float *to) {
  const float *x[SUM_WAYS];
  for (uint32_t i = 0; i < c->s->nin;) {
    uint32_t k = 0;
    if (i > 0) x[k++] = to;
    while (k < SUM_WAYS && i < c->s->nin) x[k++] = (const float *)c->in[i++] + at;
    c->s->few(m, k, x, to);
  }
}

/* Half types: through f32. */
static void add_half(const sum_call *c, int64_t at, int64_t m, char *to) {
  const sum *s = c->s;
  const double none[2] = { 0, 0 };
  for (int64_t j = 0; j < m; j += L_BLOCK) {
    float wide[L_BLOCK], next[L_BLOCK];
    int64_t k = m - j < L_BLOCK ? m - j : L_BLOCK;
    s->load(k, (const char *)c->in[0] + (at + j) * s->bytes, NULL, NULL, wide, NULL);
    for (uint32_t i = 1; i < s->nin; i++) {
      s->load(k, (const char *)c->in[i] + (at + j) * s->bytes, NULL, NULL, next, NULL);
      s->add(k, wide, next, NULL, wide, none);
    }
    s->store(k, wide, NULL, NULL, to + j * s->bytes, NULL);
  }
}

static void add_block(const sum_call *c, int64_t at, int64_t m, char *to) {
  const sum *s = c->s;
  const double none[2] = { 0, 0 };
  const char *first = (const char *)c->in[0] + at * s->bytes;
  if (s->is_f32) {
    add_f32(c, at, m, (float *)(void *)to);
  } else if (s->load) {
    add_half(c, at, m, to);
  } else {
    if (s->nin == 1 && to != first) memcpy(to, first, (size_t)m * s->bytes);
    for (uint32_t i = 1; i < s->nin; i++) s->add(m, i == 1 ? first : to, (const char *)c->in[i] + at * s->bytes, NULL, to, none);
  }
}

static void sum_piece(int64_t begin, int64_t end, void *arg) {
  const sum_call *c = arg;
  const sum *s = c->s;
  _Alignas(64) char block[SUM_BYTES];
  int64_t size = (int64_t)(sizeof block / s->bytes);
  bool apart = s->stream || s->nout > 1;               /* an output might be one of the later inputs */
  for (int64_t at = begin; at < end; at += size) {
    int64_t m = end - at < size ? end - at : size;
    char *made = apart ? block : (char *)c->out[0] + at * s->bytes;
    add_block(c, at, m, made);
    for (uint32_t k = 0; k < s->nout && apart; k++) {
      char *to = (char *)c->out[k] + at * s->bytes;
      if (s->stream) s->past((size_t)m * s->bytes, made, to);
      else memcpy(to, made, (size_t)m * s->bytes);
    }
  }
  if (s->stream) s->settle();
}

/* Would what is written leave the last cache before anybody could read it there? */
static bool beyond_caches(uint64_t bytes) {
  enum { SMALL = 8 << 20 };              /* not worth asking */
  return bytes > SMALL && bytes > yk__cpu_cache_bytes();
}

/* Of elements of k->in[0]; n of them at each output. */
static void sum_init(sum *s, const yk_kernel *k, uint32_t nin, uint32_t nout, int64_t n) {
  uint8_t dtype = k->in[0].dtype;
  *s = (sum){ .nin = nin, .nout = nout, .bytes = (uint32_t)yk__cpu_dtype_bytes(dtype), .is_f32 = dtype == YK_F32 };
  s->few = yk__loop_sum()->few;
  s->past = yk__loop_sum()->past;
  s->settle = yk__loop_sum()->settle;
  s->stream = beyond_caches((uint64_t)n * s->bytes * nout);
  s->add = yk__loop_elem()->fn[E_add][yk__loop_type(dtype)][L_VV];
  if (!yk__loop_half(dtype)) return;
  s->load = yk__loop_elem()->to_f32[dtype == YK_BF16];
  s->store = yk__loop_elem()->from_f32[dtype == YK_BF16];
}

/* ---- add_n --------------------------------------------------------------------------------------------------------- */

typedef struct add_n { sum s; int64_t n; } add_n;

static yk_code add_n_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const add_n *a = k->state;
  sum_call c = { &a->s, arg, arg + k->nin };
  (void)workspace;
  if (a->n) yk__cpu_host->parallel_for(a->n, L_GRAIN, sum_piece, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_add_n(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  uint64_t bytes;
  add_n *a = yk__cpu_state(p, sizeof *a);
  if (!a) return YK_ENOMEM;
  a->n = yk__cpu_count(&k->in[0]);
  if (k->in[0].layout != YK_LAYOUT_PLAIN && !(p->spec->flags & YK_SPEC_FIXED) &&
      yk__cpu_layout_bytes(&k->in[0], &bytes) == YK_OK) {
    a->n = (int64_t)(bytes / yk__cpu_dtype_bytes(k->in[0].dtype));      /* padding is zero and stays zero */
    for (uint32_t i = 1; i < k->nin; i++) k->in[i].layout = k->in[0].layout;
    k->out[0].layout = k->in[0].layout;
  } else {
    YK_TRY(yk__cpu_want_plain(p));
  }
  sum_init(&a->s, k, k->nin, 1, a->n);
  p->inplace = k->nin > 1 ? 3 : 1;                     /* a block of the first two is read before the output's is written */
  k->run = add_n_run;
  k->impl = "plain:add_n";
  return YK_OK;
}

/* ---- assign_sum: sets of variables, then as many values, then perhaps a guard -------------------------------------- */

typedef struct assign_sum {
  uint32_t n, of;                        /* variables, those of a set */
  int64_t *count;                        /* [n/of] elements of a tensor of each set; behind `set` */
  sum set[];                             /* [n/of] */
} assign_sum;

static yk_code assign_sum_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const assign_sum *a = k->state;
  (void)workspace;
  if (yk__loop_off(k, arg, 2 * a->n)) return YK_OK;
  for (uint32_t first = 0, j = 0; first < a->n; first += a->of, j++) {
    sum_call c = { &a->set[j], arg + a->n + first, arg + first };
    if (a->count[j]) yk__cpu_host->parallel_for(a->count[j], L_GRAIN, sum_piece, &c);
  }
  return YK_OK;
}

yk_code yk__cpu_loop_assign_sum(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_assign_sum_attrs *attrs = k->attrs;
  uint32_t n = attrs && attrs->n ? attrs->n : 1, of = attrs && attrs->of > 0 ? (uint32_t)attrs->of : n, sets = n / of;
  assign_sum *a = yk__cpu_state(p, sizeof *a + sets * (sizeof a->set[0] + sizeof *a->count));
  if (!a) return YK_ENOMEM;
  YK_TRY(yk__cpu_want_plain(p));
  a->n = n;
  a->of = of;
  a->count = (int64_t *)(void *)(a->set + sets);
  for (uint32_t j = 0; j < sets; j++) {
    a->count[j] = yk__cpu_count(&k->in[j * of]);
    sum_init(&a->set[j], k, of, of, a->count[j]);
  }
  k->run = assign_sum_run;
  k->impl = "plain:assign_sum";
  return YK_OK;
}
