/*
 * loop_random.c - random draws and dropout.
 *
 * Each element is a pure function of (seed, stream, step, index): the formulae stand in op_attrs.h. So the pieces a team takes
 * do not matter, and a backward pass could draw the same mask again.
 */
#include "loop.h"

#include <math.h>
#include <string.h>

enum { UNIFORM, NORMAL, TRUNCATED, STREAM_UNIFORM = 1, STREAM_NORMAL = 2, STREAM_TRUNCATED = 3, DRAW = 512 };

typedef struct draw {
  yk_elem_fn store;                      /* from f64 to the dtype, or from f32 to a half */
  uint32_t kind, dtype, bytes;
  int64_t n;
  double a, b;
  uint64_t seed;
} draw;
typedef struct draw_call { const draw *r; uint64_t step; char *y; } draw_call;

static double normal(uint64_t seed, uint64_t stream, uint64_t step, uint64_t i, uint32_t round) {
  uint32_t w[4], at = 2 * (uint32_t)(i % 2);
  yk__cpu_host->random_block(seed, stream, step, i / 2, round, w);
  double u1 = ((double)(w[at] >> 8) + 1.0) * 0x1p-24, u2 = (double)(w[at + 1] >> 8) * 0x1p-24;
  return sqrt(-2.0 * log(u1)) * cos(6.283185307179586477 * u2);
}

static double truncated(uint64_t seed, uint64_t step, uint64_t i) {
  for (uint32_t round = 0;; round++) {
    double z = normal(seed, STREAM_TRUNCATED, step, i, round);
    if (z > -2.0 && z < 2.0) return z;
  }
}

static double uniform64(const draw *r, uint64_t step, uint64_t i) {
  uint32_t w[4], at = 2 * (uint32_t)(i % 2);
  yk__cpu_host->random_block(r->seed, STREAM_UNIFORM, step, i / 2, 0, w);
  return ((double)(w[at] >> 5) * 67108864.0 + (double)(w[at + 1] >> 6)) * 0x1p-53;
}

/* Elements [begin, end) as doubles. */
static void draw_values(const draw *r, uint64_t step, uint64_t begin, uint64_t end, double *v) {
  uint32_t w[4] = { 0, 0, 0, 0 };
  for (uint64_t i = begin; i < end; i++) {
    double u;
    if (r->kind == NORMAL) {
      u = normal(r->seed, STREAM_NORMAL, step, i, 0);
    } else if (r->kind == TRUNCATED) {
      u = truncated(r->seed, step, i);
    } else if (r->dtype == YK_F64) {
      u = uniform64(r, step, i);
    } else {
      if (i == begin || i % 4 == 0) yk__cpu_host->random_block(r->seed, STREAM_UNIFORM, step, i / 4, 0, w);
      u = (double)(w[i % 4] >> 8) * 0x1p-24;
    }
    v[i - begin] = r->kind == UNIFORM ? r->a + (r->b - r->a) * u : r->a + r->b * u;
  }
}

static void store_values(const draw *r, int64_t n, double *v, char *y) {
  const yk_elem_table *t = yk__loop_elem();
  const double none[2] = { 0, 0 };
  float f[DRAW];
  if (r->dtype == YK_I32 || r->dtype == YK_I64 || r->dtype == YK_U8)
    for (int64_t i = 0; i < n; i++) v[i] = floor(v[i]);
  t->cast[L_F64][yk__loop_type((uint8_t)r->dtype)](n, v, NULL, NULL, r->store ? (void *)f : (void *)y, none);
  if (r->store) r->store(n, f, NULL, NULL, y, none);
}

static void draw_piece(int64_t begin, int64_t end, void *arg) {
  const draw_call *c = arg;
  double v[DRAW];
  for (int64_t i = begin; i < end; i += DRAW) {
    int64_t m = end - i < DRAW ? end - i : DRAW;
    draw_values(c->r, c->step, (uint64_t)i, (uint64_t)(i + m), v);
    store_values(c->r, m, v, c->y + i * c->r->bytes);
  }
}

static yk_code draw_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const draw *r = k->state;
  draw_call c = { r, (uint64_t)*(const int64_t *)arg[0], arg[k->nin] };
  (void)workspace;
  if (r->n) yk__cpu_host->parallel_for(r->n, L_GRAIN, draw_piece, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_random(yk_cpu_prepare *p) {
  static const char *const impl[] = { "plain:random_uniform", "plain:random_normal", "plain:truncated_normal" };
  const yk_random_attrs *a = p->k->attrs;
  draw *r;
  YK_TRY(yk__cpu_want_plain(p));
  if (!a) return YK_CPU_REFUSE("a random op without attributes");
  r = yk__cpu_state(p, sizeof *r);
  if (!r) return YK_ENOMEM;
  r->kind = strcmp(p->spec->op, "random_uniform") == 0 ? UNIFORM : strcmp(p->spec->op, "random_normal") == 0 ? NORMAL : TRUNCATED;
  r->dtype = p->k->out[0].dtype;
  r->bytes = (uint32_t)yk__cpu_dtype_bytes(p->k->out[0].dtype);
  r->n = yk__cpu_count(&p->k->out[0]);
  r->seed = a->seed;
  r->a = a->a;
  r->b = a->b;
  if (r->kind == UNIFORM ? r->a == 0 && r->b == 0 : r->b == 0) r->b = 1;
  if (yk__loop_half(p->k->out[0].dtype)) r->store = yk__loop_elem()->from_f32[r->dtype == YK_BF16];
  p->k->run = draw_run;
  p->k->impl = impl[r->kind];
  return YK_OK;
}

/* ---- dropout ---------------------------------------------------------------------------------------------------- */

typedef struct dropout {
  yk_elem_fn load, store;
  uint32_t backward, dtype, bytes;
  int64_t n;
  double rate, scale;
  uint64_t seed;
} dropout;
typedef struct dropout_call { const dropout *d; uint64_t step; const char *x; char *y; uint8_t *mask; } dropout_call;

static void draw_mask(const dropout *d, uint64_t step, int64_t begin, int64_t n, uint8_t *mask) {
  uint32_t w[4] = { 0, 0, 0, 0 };
  for (int64_t j = 0; j < n; j++) {
    uint64_t i = (uint64_t)(begin + j);
    if (j == 0 || i % 4 == 0) yk__cpu_host->random_block(d->seed, 0, step, i / 4, 0, w);
    mask[j] = (double)(w[i % 4] >> 8) * 0x1p-24 >= d->rate;
  }
}

static void apply_mask(const dropout *d, int64_t n, const char *x, const uint8_t *mask, char *y) {
  float in[L_BLOCK], out[L_BLOCK];
  if (d->dtype == YK_F64) {
    const double *a = (const double *)(const void *)x;
    double *b = (double *)(void *)y;
    for (int64_t i = 0; i < n; i++) b[i] = mask[i] ? a[i] * d->scale : 0.0;
    return;
  }
  const float *a = d->load ? in : (const float *)(const void *)x, s = (float)d->scale;
  float *b = d->load ? out : (float *)(void *)y;
  if (d->load) d->load(n, x, NULL, NULL, in, NULL);
  for (int64_t i = 0; i < n; i++) b[i] = mask[i] ? a[i] * s : 0.0f;
  if (d->load) d->store(n, out, NULL, NULL, y, NULL);
}

static void dropout_piece(int64_t begin, int64_t end, void *arg) {
  const dropout_call *c = arg;
  for (int64_t i = begin; i < end; i += L_BLOCK) {
    int64_t m = end - i < L_BLOCK ? end - i : L_BLOCK;
    if (!c->d->backward) draw_mask(c->d, c->step, i, m, c->mask + i);
    apply_mask(c->d, m, c->x + i * c->d->bytes, c->mask + i, c->y + i * c->d->bytes);
  }
}

static yk_code dropout_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const dropout *d = k->state;
  dropout_call c = { d, 0, arg[0], arg[2], NULL };
  (void)workspace;
  if (d->backward) {
    c.mask = arg[1];
  } else {
    c.step = (uint64_t)*(const int64_t *)arg[1];
    c.mask = arg[3];
  }
  if (d->n) yk__cpu_host->parallel_for(d->n, 4096, dropout_piece, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_dropout(yk_cpu_prepare *p) {
  const yk_dropout_attrs *a = p->k->attrs;
  dropout *d;
  YK_TRY(yk__cpu_want_plain(p));
  d = yk__cpu_state(p, sizeof *d);
  if (!d) return YK_ENOMEM;
  d->backward = strcmp(p->spec->op, "dropout_grad") == 0;
  d->dtype = p->k->in[0].dtype;
  d->bytes = (uint32_t)yk__cpu_dtype_bytes(p->k->in[0].dtype);
  d->n = yk__cpu_count(&p->k->in[0]);
  d->rate = a ? a->rate : 0;
  d->scale = 1.0 / (1.0 - d->rate);
  d->seed = a ? a->seed : 0;
  if (yk__loop_half(p->k->in[0].dtype)) {
    d->load = yk__loop_elem()->to_f32[d->dtype == YK_BF16];
    d->store = yk__loop_elem()->from_f32[d->dtype == YK_BF16];
  }
  p->inplace = 1;
  p->k->run = dropout_run;
  p->k->impl = d->backward ? "plain:dropout_grad" : "plain:dropout";
  return YK_OK;
}
