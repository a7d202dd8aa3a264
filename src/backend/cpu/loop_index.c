/*
 * loop_index.c - kernels that pick by index: gather, one_hot, top_k, in_top_k, argmax, and their gradients.
 *
 * Indices come from data, so they are checked before anything is written: one out of range fails and is told. What a comparison
 * needs is written once a type through a macro; halves are converted around.
 */
#include "loop_nn.h"

#include <math.h>
#include <string.h>

static int64_t index_at(const void *p, uint8_t dtype, int64_t i) {
  return dtype == YK_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}

/* ---- gather -------------------------------------------------------------------------------------------------- */

typedef struct gather { yk_loop_body body; int64_t outer, limit, inner, count; uint32_t bytes; } gather;
typedef struct gather_call { const yk_kernel *k; const gather *g; const char *src; const void *index; char *dst; } gather_call;

static yk_code check_indices(const yk_kernel *k, const gather *g, const void *index, const char *op) {
  for (int64_t i = 0; i < g->count; i++) {
    int64_t at = index_at(index, k->in[1].dtype, i);
    if (at < 0 || at >= g->limit)
      return YK_CPU_FAIL(EINVAL, "%s: index %lld at position %lld is outside [0, %lld)", op, (long long)at, (long long)i,
                         (long long)g->limit);
  }
  return YK_OK;
}

static void gather_rows(int64_t begin, int64_t end, void *arg) {
  const gather_call *c = arg;
  const gather *g = c->g;
  size_t row = (size_t)g->inner * g->bytes;
  for (int64_t i = begin; i < end; i++) {
    int64_t from = i / g->count * g->limit + index_at(c->index, c->k->in[1].dtype, i % g->count);
    memcpy(c->dst + (size_t)i * row, c->src + (size_t)from * row, row);
  }
}

static yk_code gather_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const gather *g = k->state;
  gather_call c = { k, g, arg[0], arg[1], arg[2] };
  (void)workspace;
  YK_TRY(check_indices(k, g, arg[1], "gather"));
  if (g->inner) yk__cpu_host->parallel_for(g->outer * g->count, 1 + L_GRAIN / g->inner, gather_rows, &c);
  return YK_OK;
}

static int32_t axis_of(const void *attrs) { return attrs ? ((const yk_axis_attrs *)attrs)->axis : 0; }

static void gather_shape(gather *g, const yk_desc *params, const yk_desc *index, int32_t axis) {
  uint32_t at = yk__loop_axis(params, axis);
  g->outer = yk__loop_span(params, 0, at);
  g->limit = params->dim[at];
  g->inner = yk__loop_span(params, at + 1, params->rank);
  g->count = yk__cpu_count(index);
  g->bytes = (uint32_t)yk__cpu_dtype_bytes(params->dtype);
}

yk_code yk__cpu_loop_gather(yk_cpu_prepare *p) {
  gather *g;
  YK_TRY(yk__loop_body(p, sizeof *g, gather_run, "plain:gather", &g));
  gather_shape(g, &p->k->in[0], &p->k->in[1], axis_of(p->k->attrs));
  return YK_OK;
}

/* Rows with the same index are added in order, so one core has all rows of a stripe of columns. */
static void gather_grad_columns(int64_t begin, int64_t end, void *arg) {
  const gather_call *c = arg;
  const gather *g = c->g;
  yk_elem_fn add = yk__loop_elem()->fn[E_add][yk__loop_type(c->k->in[0].dtype)][L_VV];
  const double none[2] = { 0, 0 };
  for (int64_t o = 0; o < g->outer; o++) {
    for (int64_t i = 0; i < g->count; i++) {
      int64_t to = o * g->limit + index_at(c->index, c->k->in[1].dtype, i);
      char *dst = c->dst + (to * g->inner + begin) * g->bytes;
      add(end - begin, dst, c->src + ((o * g->count + i) * g->inner + begin) * g->bytes, NULL, dst, none);
    }
  }
}

static yk_code gather_grad_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const gather *g = k->state;
  gather_call c = { k, g, arg[0], arg[1], arg[3] };
  (void)workspace;
  YK_TRY(check_indices(k, g, arg[1], "gather_grad"));
  yk__cpu_fill_bytes(arg[3], 0, (size_t)(g->outer * g->limit * g->inner) * g->bytes);
  if (g->inner && g->count)
    yk__cpu_host->parallel_for(g->inner, 1 + L_GRAIN / (g->outer * g->count + 1), gather_grad_columns, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_gather_grad(yk_cpu_prepare *p) {
  gather *g;
  YK_TRY(yk__loop_body(p, sizeof *g, gather_grad_run, "plain:gather_grad", &g));
  gather_shape(g, &p->k->out[0], &p->k->in[1], axis_of(p->k->attrs));
  if (yk__loop_half(p->k->out[0].dtype)) g->bytes = 4;
  yk__loop_workspace(p, 0);
  return YK_OK;
}

/* ---- one_hot --------------------------------------------------------------------------------------------------- */

typedef struct one_hot { yk_loop_body body; int64_t depth; uint32_t bytes; uint64_t on, off; } one_hot;
typedef struct one_hot_call { const yk_kernel *k; const one_hot *o; const void *index; char *y; } one_hot_call;

static void one_hot_rows(int64_t begin, int64_t end, void *arg) {
  const one_hot_call *c = arg;
  const one_hot *o = c->o;
  for (int64_t i = begin; i < end; i++) {
    int64_t hot = index_at(c->index, c->k->in[0].dtype, i);
    char *row = c->y + i * o->depth * o->bytes;
    for (int64_t j = 0; j < o->depth; j++) memcpy(row + j * o->bytes, j == hot ? &o->on : &o->off, o->bytes);
  }
}

static yk_code one_hot_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const one_hot *o = k->state;
  one_hot_call c = { k, o, arg[0], arg[1] };
  (void)workspace;
  if (o->depth) yk__cpu_host->parallel_for(yk__cpu_count(&k->in[0]), 1 + L_GRAIN / o->depth, one_hot_rows, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_one_hot(yk_cpu_prepare *p) {
  const yk_one_hot_attrs *a = p->k->attrs;
  uint8_t dtype = p->k->out[0].dtype;
  one_hot *o;
  YK_TRY(yk__loop_body(p, sizeof *o, one_hot_run, "plain:one_hot", &o));
  int plain = !a || (a->on == 0 && a->off == 0);
  o->depth = p->k->out[0].dim[p->k->out[0].rank - 1];
  o->bytes = (uint32_t)yk__cpu_dtype_bytes(dtype);
  o->on = yk__loop_encode(dtype, plain ? 1 : a->on);
  o->off = yk__loop_encode(dtype, plain ? 0 : a->off);
  return YK_OK;
}

/* ---- argmax, argmin ------------------------------------------------------------------------------------------------ */

typedef struct extreme { yk_loop_body body; int64_t outer, n, inner; int sign; yk_loop_type type; } extreme;
typedef struct extreme_call { const yk_kernel *k; const extreme *e; const void *x; void *y; } extreme_call;

/* First index of the extreme; a NaN counts as the extreme. */
#define FIRST_BEST(T)                                                                                  \
  do {                                                                                                 \
    const T *x = (const T *)c->x + i / e->inner * e->n * e->inner + i % e->inner;                      \
    T v = x[0];                                                                                        \
    for (int64_t j = 1; j < e->n && v == v; j++) {                                                     \
      const T w = x[j * e->inner];                                                                     \
      if (e->sign > 0 ? w > v : w < v) { v = w; best = j; }                                            \
      if (w != w) { v = w; best = j; }                                                                 \
    }                                                                                                  \
  } while (0)

static void extreme_outputs(int64_t begin, int64_t end, void *arg) {
  const extreme_call *c = arg;
  const extreme *e = c->e;
  for (int64_t i = begin; i < end; i++) {
    int64_t best = 0;
    switch (e->type) {
      case L_F64: FIRST_BEST(double); break;
      case L_I32: FIRST_BEST(int32_t); break;
      case L_I64: FIRST_BEST(int64_t); break;
      case L_U8: FIRST_BEST(uint8_t); break;
      default: FIRST_BEST(float); break;
    }
    if (c->k->out[0].dtype == YK_I32) ((int32_t *)c->y)[i] = (int32_t)best;
    else ((int64_t *)c->y)[i] = best;
  }
}

static yk_code extreme_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const extreme *e = k->state;
  extreme_call c = { k, e, arg[0], arg[1] };
  (void)workspace;
  if (e->n) yk__cpu_host->parallel_for(e->outer * e->inner, 1 + L_GRAIN / e->n, extreme_outputs, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_extreme(yk_cpu_prepare *p) {
  const yk_arg_attrs *a = p->k->attrs;
  const yk_desc *x = &p->k->in[0];
  extreme *e;
  YK_TRY(yk__loop_body(p, sizeof *e, extreme_run, "plain:argmax", &e));
  uint32_t axis = yk__loop_axis(x, a ? a->axis : 0);
  e->outer = yk__loop_span(x, 0, axis);
  e->n = x->dim[axis];
  e->inner = yk__loop_span(x, axis + 1, x->rank);
  e->sign = strcmp(p->spec->op, "argmax") == 0 ? 1 : -1;
  e->type = yk__loop_type(x->dtype);
  yk__loop_workspace(p, 0);
  return YK_OK;
}

/* ---- top_k ------------------------------------------------------------------------------------------------------------- */

typedef struct top { yk_loop_body body; int64_t rows, n, k; yk_loop_type type; } top;
typedef struct top_call { const top *t; const void *x; void *values; int32_t *index; } top_call;

/* Insertion into the k best so far: k is small. A later equal element never moves an earlier one. */
#define TOP_ROW(T)                                                                                     \
  do {                                                                                                 \
    const T *x = (const T *)c->x + r * t->n;                                                           \
    T *v = (T *)c->values + r * t->k;                                                                  \
    int32_t *at = c->index + r * t->k;                                                                 \
    int64_t have = 0;                                                                                  \
    for (int64_t j = 0; j < t->n; j++) {                                                               \
      int64_t pos = have;                                                                              \
      if (have == t->k && !(x[j] > v[have - 1])) continue;                                             \
      while (pos > 0 && x[j] > v[pos - 1]) pos--;                                                      \
      if (have < t->k) have++;                                                                         \
      for (int64_t m = have - 1; m > pos; m--) { v[m] = v[m - 1]; at[m] = at[m - 1]; }                 \
      v[pos] = x[j];                                                                                   \
      at[pos] = (int32_t)j;                                                                            \
    }                                                                                                  \
  } while (0)

static void top_rows(int64_t begin, int64_t end, void *arg) {
  const top_call *c = arg;
  const top *t = c->t;
  for (int64_t r = begin; r < end; r++) {
    switch (t->type) {
      case L_F64: TOP_ROW(double); break;
      case L_I32: TOP_ROW(int32_t); break;
      case L_I64: TOP_ROW(int64_t); break;
      case L_U8: TOP_ROW(uint8_t); break;
      default: TOP_ROW(float); break;
    }
  }
}

static yk_code top_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const top *t = k->state;
  top_call c = { t, arg[0], arg[1], arg[2] };
  (void)workspace;
  if (t->k) yk__cpu_host->parallel_for(t->rows, 1 + L_GRAIN / (t->n + 1), top_rows, &c);
  return YK_OK;
}

static void top_shape(top *t, const yk_desc *x, const yk_desc *values) {
  t->n = x->dim[x->rank - 1];
  t->rows = yk__loop_span(x, 0, x->rank - 1);
  t->k = values->dim[values->rank - 1];
  t->type = yk__loop_type(x->dtype);
}

yk_code yk__cpu_loop_top_k(yk_cpu_prepare *p) {
  top *t;
  YK_TRY(yk__loop_body(p, sizeof *t, top_run, "plain:top_k", &t));
  top_shape(t, &p->k->in[0], &p->k->out[0]);
  yk__loop_workspace(p, 0);
  return YK_OK;
}

/* dy into zeros; a position named twice gets both. */
static yk_code top_grad_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const top *t = k->state;
  const int32_t *index = arg[1];
  const int64_t bytes = t->type == L_F64 ? 8 : 4;
  const yk_elem_fn add = yk__loop_elem()->fn[E_add][t->type][L_VV];
  const double none[2] = { 0, 0 };
  (void)workspace;
  for (int64_t i = 0; i < t->rows * t->k; i++)
    if (index[i] < 0 || index[i] >= t->n)
      return YK_CPU_FAIL(EINVAL, "top_k_grad: index %d at position %lld is outside [0, %lld)", index[i], (long long)i,
                         (long long)t->n);
  yk__cpu_fill_bytes(arg[3], 0, (size_t)(t->rows * t->n * bytes));
  for (int64_t i = 0; i < t->rows * t->k; i++) {
    char *dx = (char *)arg[3] + (i / t->k * t->n + index[i]) * bytes;
    add(1, dx, (const char *)arg[0] + i * bytes, NULL, dx, none);
  }
  return YK_OK;
}

yk_code yk__cpu_loop_top_k_grad(yk_cpu_prepare *p) {
  top *t;
  YK_TRY(yk__loop_body(p, sizeof *t, top_grad_run, "plain:top_k_grad", &t));
  top_shape(t, &p->k->out[0], &p->k->in[0]);
  if (t->type != L_F32 && t->type != L_F64) return YK_CPU_REFUSE("only floating point");
  yk__loop_workspace(p, 0);
  return YK_OK;
}

/* in_top_k: fewer than k elements of the row are larger than the target's. */
static yk_code in_top_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const top *t = k->state;
  uint8_t *y = arg[2];
  (void)workspace;
  for (int64_t r = 0; r < t->rows; r++) {
    int64_t target = index_at(arg[1], k->in[1].dtype, r), larger = 0;
    int ok = target >= 0 && target < t->n;
    for (int64_t j = 0; j < t->n && ok; j++) {
      if (t->type == L_F64) {
        const double *x = (const double *)arg[0] + r * t->n;
        ok = isfinite(x[j]);
        larger += x[j] > x[target];
      } else {
        const float *x = (const float *)arg[0] + r * t->n;
        ok = isfinite(x[j]);
        larger += x[j] > x[target];
      }
    }
    y[r] = ok && larger < t->k;
  }
  return YK_OK;
}

yk_code yk__cpu_loop_in_top_k(yk_cpu_prepare *p) {
  const yk_top_k_attrs *a = p->k->attrs;
  top *t;
  YK_TRY(yk__loop_body(p, sizeof *t, in_top_run, "plain:in_top_k", &t));
  top_shape(t, &p->k->in[0], &p->k->in[0]);
  t->k = a && a->k ? a->k : 1;
  yk__loop_workspace(p, 0);
  return YK_OK;
}
