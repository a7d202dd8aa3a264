/*
 * loop_reduce.c - sums, means, extremes and products over any set of axes.
 *
 * The input is seen as the fewest dimensions, each kept or folded. Work is cut into tasks of fixed size that depend on the
 * shapes only; each folds its part into its own accumulators, and a second pass combines the parts in order. So the
 * bits of the result do not depend on how many cores took part.
 */
#include "loop_isa.h"

#include <math.h>
#include <string.h>

enum { MAX_DIMS = 2 * YK_MAX_RANK, UNIT = 8192, MAX_SLICES = 64, COLUMNS = 4096 };

typedef struct fold_dims { uint32_t n; int64_t len[MAX_DIMS]; uint8_t folded[MAX_DIMS]; } fold_dims;

typedef struct reduce {
  void (*run)(int64_t n, const void *x, yk_accum *acc);
  void (*rows)(int64_t rows, int64_t stride, int64_t n, const void *x, yk_accum *acc);
  yk_elem_fn load, store;                /* halves */
  uint32_t bytes, out_dtype;
  yk_accum unit;                         /* what an empty fold gives */
  yk_fold fold;
  uint8_t is_float;
  double scale;                          /* of the result: 1, or 1/2 */
  double divide;                         /* count of a mean, or 0 */
  /* kept dims and folded dims, outermost first, without the inner block below */
  uint32_t nkept, nfolded;
  int64_t kept[MAX_DIMS], kept_stride[MAX_DIMS], folded[MAX_DIMS], folded_stride[MAX_DIMS];
  int64_t width;                         /* > 0: the last dim is kept and has this length; 0: it is folded */
  int64_t length, step;                  /* inner folded extent (a run, or rows `width` apart); what one unit takes of it */
  int64_t groups, units, slices, column_blocks, block;   /* tasks = groups * column_blocks * slices */
  int64_t outputs;
} reduce;

typedef struct reduce_call { const reduce *r; const char *x; char *y; yk_accum *part; } reduce_call;

static int64_t offset_of(uint32_t n, const int64_t *len, const int64_t *stride, int64_t index) {
  int64_t off = 0;
  while (n-- > 0) {
    off += index % len[n] * stride[n];
    index /= len[n];
  }
  return off;
}

static void fold_run(const reduce *r, int64_t n, const char *x, yk_accum *acc) {
  float buf[L_BLOCK];
  if (!r->load) {
    r->run(n, x, acc);
    return;
  }
  for (int64_t at = 0; at < n; at += L_BLOCK) {
    int64_t m = n - at < L_BLOCK ? n - at : L_BLOCK;
    r->load(m, x + at * r->bytes, NULL, NULL, buf, NULL);
    r->run(m, buf, acc);
  }
}

static void fold_rows(const reduce *r, int64_t rows, int64_t n, const char *x, yk_accum *acc) {
  float buf[L_BLOCK];
  if (!r->load) {
    r->rows(rows, r->width, n, x, acc);
    return;
  }
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t at = 0; at < n; at += L_BLOCK) {
      int64_t m = n - at < L_BLOCK ? n - at : L_BLOCK;
      r->load(m, x + (row * r->width + at) * r->bytes, NULL, NULL, buf, NULL);
      r->rows(1, m, m, buf, acc + at);
    }
  }
}

/* Task = (group, column block, slice): folds its share of the units into its own accumulators. */
static void reduce_tasks(int64_t begin, int64_t end, void *arg) {
  const reduce_call *c = arg;
  const reduce *r = c->r;
  int64_t per_run = (r->length + r->step - 1) / r->step, row = r->width ? r->width : 1;
  for (int64_t task = begin; task < end; task++) {
    int64_t slice = task % r->slices, column = task / r->slices % r->column_blocks, group = task / r->slices / r->column_blocks;
    int64_t at = column * r->block, n = row - at < r->block ? row - at : r->block;
    yk_accum *acc = c->part + (group * r->slices + slice) * row + at;
    int64_t base = offset_of(r->nkept, r->kept, r->kept_stride, group) + at;
    for (int64_t i = 0; i < n; i++) acc[i] = r->unit;
    for (int64_t u = slice * r->units / r->slices; u < (slice + 1) * r->units / r->slices; u++) {
      int64_t from = u % per_run * r->step, m = r->length - from < r->step ? r->length - from : r->step;
      const char *x = c->x + (base + offset_of(r->nfolded, r->folded, r->folded_stride, u / per_run) + from * row) * r->bytes;
      if (r->width) fold_rows(r, m, n, x, acc);
      else fold_run(r, m, x, acc);
    }
  }
}

static yk_accum combine(yk_fold fold, int is_float, yk_accum a, yk_accum b) {
  if (is_float) {
    switch (fold) {
      case FOLD_PROD: a.f *= b.f; break;
      case FOLD_MIN: a.f = b.f < a.f || b.f != b.f ? b.f : a.f; break;
      case FOLD_MAX: a.f = b.f > a.f || b.f != b.f ? b.f : a.f; break;
      default: a.f += b.f; break;
    }
  } else {
    switch (fold) {
      case FOLD_PROD: a.i = (int64_t)((uint64_t)a.i * (uint64_t)b.i); break;
      case FOLD_MIN: a.i = b.i < a.i ? b.i : a.i; break;
      case FOLD_MAX: a.i = b.i > a.i ? b.i : a.i; break;
      default: a.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i); break;
    }
  }
  return a;
}

static void store_one(const reduce *r, yk_accum a, char *y, int64_t i) {
  float f;
  if (r->is_float) {
    a.f *= r->scale;
    if (r->divide != 0) a.f /= r->divide;
  } else if (r->divide != 0) {
    a.i /= (int64_t)r->divide;
  }
  switch (r->out_dtype) {
    case YK_F64: ((double *)(void *)y)[i] = a.f; break;
    case YK_I32: ((int32_t *)(void *)y)[i] = (int32_t)(uint32_t)(uint64_t)a.i; break;
    case YK_I64: ((int64_t *)(void *)y)[i] = a.i; break;
    case YK_U8: case YK_BOOL: ((uint8_t *)y)[i] = (uint8_t)a.i; break;
    case YK_F32: ((float *)(void *)y)[i] = (float)a.f; break;
    default:
      f = (float)a.f;
      r->store(1, &f, NULL, NULL, y + i * 2, NULL);
  }
}

static void reduce_finish(int64_t begin, int64_t end, void *arg) {
  const reduce_call *c = arg;
  const reduce *r = c->r;
  int64_t row = r->width ? r->width : 1;
  for (int64_t i = begin; i < end; i++) {
    const yk_accum *part = c->part + i / row * r->slices * row + i % row;
    yk_accum a = part[0];
    for (int64_t s = 1; s < r->slices; s++) a = combine(r->fold, r->is_float, a, part[s * row]);
    store_one(r, a, c->y, i);
  }
}

static yk_code reduce_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const reduce *r = k->state;
  reduce_call c = { r, arg[0], arg[k->nin], workspace };
  if (r->outputs == 0) return YK_OK;
  int64_t tasks = r->groups * r->column_blocks * r->slices;
  int64_t work = r->units / r->slices * r->step * (r->width ? r->block : 1) + 1;
  yk__cpu_host->parallel_for(tasks, work >= L_GRAIN ? 1 : L_GRAIN / work, reduce_tasks, &c);
  yk__cpu_host->parallel_for(r->outputs, 2048, reduce_finish, &c);
  return YK_OK;
}

/* ---- preparing --------------------------------------------------------------------------------------------- */

static void dims_add(fold_dims *d, int64_t len, int folded) {
  if (len == 1) return;
  if (d->n > 0 && d->folded[d->n - 1] == (uint8_t)folded) {
    d->len[d->n - 1] *= len;
    return;
  }
  d->len[d->n] = len;
  d->folded[d->n++] = (uint8_t)folded;
}

/* From merged dims to the nest of loops, and the cut into tasks. */
static void plan_loops(reduce *r, const fold_dims *d) {
  int64_t stride[MAX_DIMS], s = 1, work;
  uint32_t n = d->n;
  for (uint32_t i = n; i-- > 0; s *= d->len[i]) stride[i] = s;
  r->groups = r->units = 1;
  r->length = 1;
  if (n > 0 && !d->folded[n - 1]) r->width = d->len[--n];
  if (n > 0 && d->folded[n - 1]) r->length = d->len[--n];
  for (uint32_t i = 0; i < n; i++) {
    int64_t *len = d->folded[i] ? r->folded : r->kept, *st = d->folded[i] ? r->folded_stride : r->kept_stride;
    uint32_t at = d->folded[i] ? r->nfolded++ : r->nkept++;
    len[at] = d->len[i];
    st[at] = stride[i];
    if (d->folded[i]) r->units *= d->len[i];
    else r->groups *= d->len[i];
  }
  r->block = r->width ? (r->width < COLUMNS ? r->width : COLUMNS) : 1;
  r->column_blocks = r->width ? (r->width + r->block - 1) / r->block : 1;
  r->step = UNIT / r->block > 0 ? UNIT / r->block : 1;
  if (r->step > r->length && r->length > 0) r->step = r->length;
  r->units *= (r->length + r->step - 1) / r->step;
  work = r->units * r->step * r->block;
  r->slices = r->groups * r->column_blocks >= MAX_SLICES ? 1 : work / (4 * UNIT);
  if (r->slices > MAX_SLICES) r->slices = MAX_SLICES;
  if (r->slices > r->units) r->slices = r->units;
  if (r->slices < 1) r->slices = 1;
}

static yk_accum unit_of(yk_fold fold, uint8_t dtype, int is_float) {
  yk_accum u = { .i = 0 };
  if (is_float) {
    u.f = fold == FOLD_PROD ? 1 : fold == FOLD_MIN ? (double)INFINITY : fold == FOLD_MAX ? -(double)INFINITY : 0;
  } else if (fold == FOLD_PROD) {
    u.i = 1;
  } else if (fold == FOLD_MIN) {
    u.i = dtype == YK_I32 ? INT32_MAX : dtype == YK_I64 ? INT64_MAX : 255;
  } else if (fold == FOLD_MAX) {
    u.i = dtype == YK_I32 ? INT32_MIN : dtype == YK_I64 ? INT64_MIN : 0;
  }
  return u;
}

/* Everything is summed up: then neither order nor zeros of padding matter, and a private layout may stay. *n: elements. */
static int sums_all(const yk_cpu_prepare *p, yk_fold fold, const fold_dims *d, int64_t *n) {
  const yk_desc *x = &p->k->in[0];
  uint64_t bytes;
  if (x->layout == YK_LAYOUT_PLAIN || (fold != FOLD_SUM && fold != FOLD_SQUARES)) return 0;
  if (d->n > 1 || (d->n == 1 && !d->folded[0]) || yk__cpu_layout_bytes(x, &bytes) != YK_OK) return 0;
  *n = (int64_t)(bytes / yk__cpu_dtype_bytes(x->dtype));
  return 1;
}

static yk_code reduce_new(yk_cpu_prepare *p, yk_fold fold, const fold_dims *d, int mean, double scale, const char *impl) {
  yk_kernel *k = p->k;
  uint8_t dtype = k->in[0].dtype;
  fold_dims all = { .n = 1, .len = { 0 }, .folded = { 1 } };
  const fold_dims *loops = d;
  reduce *r;
  if (sums_all(p, fold, d, &all.len[0])) {
    loops = &all;
    k->out[0].layout = YK_LAYOUT_PLAIN;
  } else {
    YK_TRY(yk__cpu_want_plain(p));
  }
  r = yk__cpu_state(p, sizeof *r);
  if (!r) return YK_ENOMEM;
  yk_loop_type type = yk__loop_type(dtype);
  r->run = yk__loop_reduce()->run[fold][type];
  r->rows = yk__loop_reduce()->rows[fold][type];
  if (yk__loop_half(dtype)) {
    r->load = yk__loop_elem()->to_f32[dtype == YK_BF16];
    r->store = yk__loop_elem()->from_f32[dtype == YK_BF16];
  }
  r->bytes = (uint32_t)yk__cpu_dtype_bytes(dtype);
  r->out_dtype = k->out[0].dtype;
  r->is_float = type == L_F32 || type == L_F64;
  r->fold = fold;
  r->unit = unit_of(fold, dtype, r->is_float);
  r->scale = scale;
  plan_loops(r, loops);
  r->outputs = yk__cpu_count(&k->out[0]);
  if (mean) {
    int64_t folded = 1;
    for (uint32_t i = 0; i < d->n; i++) folded *= d->folded[i] ? d->len[i] : 1;
    r->divide = (double)folded;
    if (folded == 0) r->scale = (double)NAN;           /* the mean of nothing */
  }
  p->workspace = (uint64_t)(r->outputs * r->slices) * sizeof(yk_accum);
  k->run = reduce_run;
  k->impl = impl;
  return YK_OK;
}

static uint32_t axes_mask(const yk_desc *x, const yk_reduce_attrs *a) {
  uint32_t mask = 0;
  if (!a || a->naxes == 0) return (1u << x->rank) - 1;
  for (uint32_t i = 0; i < a->naxes; i++) mask |= 1u << yk__loop_axis(x, a->axis[i]);
  return mask;
}

yk_code yk__cpu_loop_reduce(yk_cpu_prepare *p) {
  static const struct { const char *op; yk_fold fold; int mean; const char *impl; } kinds[] = {
    { "reduce_sum", FOLD_SUM, 0, "plain:reduce_sum" }, { "reduce_mean", FOLD_SUM, 1, "plain:reduce_mean" },
    { "reduce_min", FOLD_MIN, 0, "plain:reduce_min" }, { "reduce_max", FOLD_MAX, 0, "plain:reduce_max" },
    { "reduce_prod", FOLD_PROD, 0, "plain:reduce_prod" } };
  const yk_desc *x = &p->k->in[0];
  uint32_t mask = axes_mask(x, p->k->attrs);
  fold_dims d = { .n = 0 };
  for (uint32_t i = 0; i < x->rank; i++) dims_add(&d, x->dim[i], mask >> i & 1u);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].op, p->spec->op) == 0) return reduce_new(p, kinds[i].fold, &d, kinds[i].mean, 1, kinds[i].impl);
  return YK_CPU_REFUSE("not a reduction");
}

yk_code yk__cpu_loop_l2_loss(yk_cpu_prepare *p) {
  fold_dims d = { .n = 0 };
  dims_add(&d, yk__cpu_count(&p->k->in[0]), 1);
  return reduce_new(p, FOLD_SQUARES, &d, 0, 0.5, "plain:l2_loss");
}

/* sum_to, bias_add_grad, tile_grad: a sum whose folded axes follow from the shapes. */
yk_code yk__cpu_loop_sum_to(yk_cpu_prepare *p) {
  const yk_desc *x = &p->k->in[0], *y = &p->k->out[0];
  fold_dims d = { .n = 0 };
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t back = x->rank - i;
    int64_t len = back <= y->rank ? y->dim[y->rank - back] : 1;
    dims_add(&d, x->dim[i], len == 1 && x->dim[i] != 1);
  }
  return reduce_new(p, FOLD_SUM, &d, 0, 1, "plain:sum_to");
}

yk_code yk__cpu_loop_bias_add_grad(yk_cpu_prepare *p) {
  const yk_desc *x = &p->k->in[0];
  fold_dims d = { .n = 0 };
  dims_add(&d, yk__loop_span(x, 0, x->rank - 1), 1);
  dims_add(&d, x->dim[x->rank - 1], 0);
  return reduce_new(p, FOLD_SUM, &d, 0, 1, "plain:bias_add_grad");
}

yk_code yk__cpu_loop_tile_grad(yk_cpu_prepare *p) {
  const yk_desc *y = &p->k->out[0];
  fold_dims d = { .n = 0 };
  for (uint32_t i = 0; i < y->rank; i++) {
    dims_add(&d, y->dim[i] ? p->k->in[0].dim[i] / y->dim[i] : 1, 1);
    dims_add(&d, y->dim[i], 0);
  }
  return reduce_new(p, FOLD_SUM, &d, 0, 1, "plain:tile_grad");
}
