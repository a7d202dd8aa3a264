/*
 * loop_move.c - kernels that only move elements: transpose, concat, split, slice, pad, tile, broadcast, fill, copy.
 *
 * Each is a list of strided copies between one input and one output, after an optional fill of the output. A copy is reduced
 * to the fewest dimensions; where the innermost one is contiguous on both sides rows go by memcpy, where the two sides
 * disagree (transpose) the data goes through small square tiles, so that neither side is read across cache lines.
 */
#include "loop.h"

#include <string.h>

enum { MAX_DIMS = 2 * YK_MAX_RANK, TILE = 32 };

typedef struct copy {
  uint32_t in, out, nd;
  int64_t from, to;                                      /* first element on either side */
  int64_t dim[MAX_DIMS], src[MAX_DIMS], dst[MAX_DIMS];   /* strides in elements */
  int64_t total;
  int tiled;                                             /* the last two dims are copied by tiles */
} copy;

typedef struct move {
  uint32_t bytes;                                        /* of an element */
  uint32_t fill;                                         /* fill every output first */
  uint32_t ncopy;
  int64_t count;                                         /* elements of out[0], for fill */
  uint64_t pattern;
  copy at[];
} move;

typedef struct move_call { const move *m; const copy *c; const char *src; char *dst; } move_call;

#define STRIDED(type)                                                                                  \
  do {                                                                                                 \
    const type *s = (const type *)(const void *)src;                                                   \
    type *d = (type *)(void *)dst;                                                                     \
    if (ss == 0) for (int64_t i = 0; i < n; i++) d[i * ds] = *s;                                       \
    else for (int64_t i = 0; i < n; i++) d[i * ds] = s[i * ss];                                        \
  } while (0)

static void copy_row(uint32_t bytes, int64_t n, const char *src, int64_t ss, char *dst, int64_t ds) {
  if (ss == 1 && ds == 1) {
    memmove(dst, src, (size_t)n * bytes);
    return;
  }
  switch (bytes) {
    case 1: STRIDED(uint8_t); break;
    case 2: STRIDED(uint16_t); break;
    case 4: STRIDED(uint32_t); break;
    default: STRIDED(uint64_t); break;
  }
}

/* Offsets of the row `index` of the first nd dims. */
static void locate(const copy *c, uint32_t nd, int64_t index, int64_t *src, int64_t *dst) {
  *src = c->from;
  *dst = c->to;
  for (uint32_t d = nd; d-- > 0; index /= c->dim[d]) {
    int64_t at = index % c->dim[d];
    *src += at * c->src[d];
    *dst += at * c->dst[d];
  }
}

static void rows(int64_t begin, int64_t end, void *arg) {
  const move_call *k = arg;
  const copy *c = k->c;
  uint32_t last = c->nd - 1, bytes = k->m->bytes;
  for (int64_t i = begin; i < end; i++) {
    int64_t src, dst;
    locate(c, last, i, &src, &dst);
    copy_row(bytes, c->dim[last], k->src + src * bytes, c->src[last], k->dst + dst * bytes, c->dst[last]);
  }
}

/* One long row in pieces. */
static void one_row(int64_t begin, int64_t end, void *arg) {
  const move_call *k = arg;
  const copy *c = k->c;
  uint32_t bytes = k->m->bytes;
  copy_row(bytes, end - begin, k->src + (c->from + begin * c->src[0]) * bytes, c->src[0],
           k->dst + (c->to + begin * c->dst[0]) * bytes, c->dst[0]);
}

/* Tasks: (outer index, stripe of TILE along the dim that is contiguous in the source). */
static void tiles(int64_t begin, int64_t end, void *arg) {
  const move_call *k = arg;
  const copy *c = k->c;
  uint32_t a = c->nd - 2, b = c->nd - 1, bytes = k->m->bytes;
  int64_t stripes = (c->dim[a] + TILE - 1) / TILE;
  for (int64_t task = begin; task < end; task++) {
    int64_t src, dst, i0 = task % stripes * TILE, in = c->dim[a] - i0 < TILE ? c->dim[a] - i0 : TILE;
    locate(c, a, task / stripes, &src, &dst);
    src += i0 * c->src[a];
    dst += i0 * c->dst[a];
    for (int64_t j = 0; j < c->dim[b]; j += TILE) {
      int64_t jn = c->dim[b] - j < TILE ? c->dim[b] - j : TILE;
      for (int64_t i = 0; i < in; i++)
        copy_row(bytes, jn, k->src + (src + i * c->src[a] + j * c->src[b]) * bytes, c->src[b],
                 k->dst + (dst + i * c->dst[a] + j * c->dst[b]) * bytes, c->dst[b]);
    }
  }
}

static void run_copy(const move *m, const copy *c, const char *src, char *dst) {
  move_call k = { m, c, src, dst };
  if (c->total == 0) return;
  if (c->nd == 1) {
    if (src + c->from * m->bytes == dst + c->to * m->bytes) return;      /* in place */
    yk__cpu_host->parallel_for(c->dim[0], 4 * L_GRAIN, one_row, &k);
  } else if (c->tiled) {
    int64_t stripes = (c->dim[c->nd - 2] + TILE - 1) / TILE, outer = c->total / c->dim[c->nd - 1] / c->dim[c->nd - 2];
    int64_t work = c->dim[c->nd - 1] * (c->dim[c->nd - 2] < TILE ? c->dim[c->nd - 2] : TILE);
    yk__cpu_host->parallel_for(outer * stripes, 1 + L_GRAIN / work, tiles, &k);
  } else {
    yk__cpu_host->parallel_for(c->total / c->dim[c->nd - 1], 1 + L_GRAIN / c->dim[c->nd - 1], rows, &k);
  }
}

typedef struct fill_call { char *dst; uint32_t bytes; uint64_t pattern; } fill_call;

static void fill_piece(int64_t begin, int64_t end, void *arg) {
  const fill_call *f = arg;
  copy_row(f->bytes, end - begin, (const char *)&f->pattern, 0, f->dst + begin * f->bytes, 1);
}

static yk_code move_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const move *m = k->state;
  (void)workspace;
  if (m->fill && m->count) {
    fill_call f = { arg[k->nin], m->bytes, m->pattern };
    yk__cpu_host->parallel_for(m->count, 4 * L_GRAIN, fill_piece, &f);
  }
  for (uint32_t i = 0; i < m->ncopy; i++) run_copy(m, &m->at[i], arg[m->at[i].in], arg[k->nin + m->at[i].out]);
  return YK_OK;
}

/* ---- preparing --------------------------------------------------------------------------------------------- */

static yk_code move_new(yk_cpu_prepare *p, uint32_t ncopy, const char *impl, move **out) {
  yk_kernel *k = p->k;
  YK_TRY(yk__cpu_want_plain(p));
  move *m = yk__cpu_state(p, sizeof *m + ncopy * sizeof(copy));
  if (!m) return YK_ENOMEM;
  m->bytes = (uint32_t)yk__cpu_dtype_bytes(k->out[0].dtype);
  m->ncopy = ncopy;
  m->count = yk__cpu_count(&k->out[0]);
  for (uint32_t i = 0; i < ncopy; i++) m->at[i].total = 1;
  k->run = move_run;
  k->impl = impl;
  *out = m;
  return YK_OK;
}

static void add_dim(copy *c, int64_t dim, int64_t src, int64_t dst) {
  c->total *= dim;
  if (dim == 1) return;
  if (c->nd > 0 && c->src[c->nd - 1] == src * dim && c->dst[c->nd - 1] == dst * dim) c->dim[c->nd - 1] *= dim;
  else c->dim[c->nd++] = dim;
  c->src[c->nd - 1] = src;
  c->dst[c->nd - 1] = dst;
}

static void swap_dims(copy *c, uint32_t a, uint32_t b) {
  int64_t t = c->dim[a]; c->dim[a] = c->dim[b]; c->dim[b] = t;
  t = c->src[a]; c->src[a] = c->src[b]; c->src[b] = t;
  t = c->dst[a]; c->dst[a] = c->dst[b]; c->dst[b] = t;
}

/* After the last add_dim: a scalar becomes a row of one; find the pair of dims to tile. */
static void close_dims(copy *c) {
  if (c->nd == 0) {
    c->nd = 1;
    c->dim[0] = c->total;
    c->src[0] = c->dst[0] = 1;
  }
  uint32_t last = c->nd - 1;
  if (c->src[last] <= 1) return;
  for (uint32_t d = 0; d < last; d++) {
    if (c->src[d] != 1) continue;
    swap_dims(c, d, last - 1);
    c->tiled = 1;
  }
}

static void dense_strides(const yk_desc *d, int64_t *stride) {
  int64_t s = 1;
  for (uint32_t i = d->rank; i-- > 0; s *= d->dim[i]) stride[i] = s;
}

/* The block `dim` of `src` at `src_at` goes to `dst` at `dst_at`; positions NULL mean the origin. */
static void copy_block(copy *c, const int64_t *dim, const yk_desc *src, const int64_t *src_at, const yk_desc *dst,
                       const int64_t *dst_at) {
  int64_t ss[YK_MAX_RANK], ds[YK_MAX_RANK];
  dense_strides(src, ss);
  dense_strides(dst, ds);
  for (uint32_t i = 0; i < src->rank; i++) {
    c->from += src_at ? src_at[i] * ss[i] : 0;
    c->to += dst_at ? dst_at[i] * ds[i] : 0;
    add_dim(c, dim[i], ss[i], ds[i]);
  }
  close_dims(c);
}

uint64_t yk__loop_encode(uint8_t dtype, double value) {
  const yk_elem_table *t = yk__loop_elem();
  const double p[2] = { 0, 0 };
  uint64_t bits = 0;
  float f;
  void *out = yk__loop_half(dtype) ? (void *)&f : (void *)&bits;
  t->cast[L_F64][dtype == YK_BOOL ? L_NTYPES : yk__loop_type(dtype)](1, &value, NULL, NULL, out, p);
  if (yk__loop_half(dtype)) t->from_f32[dtype == YK_BF16](1, &f, NULL, NULL, &bits, p);
  return bits;
}

static void set_fill(move *m, uint8_t dtype, double value) {
  m->fill = 1;
  m->pattern = yk__loop_encode(dtype, value);
}

yk_code yk__cpu_loop_copy(yk_cpu_prepare *p) {
  move *m;
  YK_TRY(move_new(p, 1, "plain:copy", &m));
  add_dim(&m->at[0], m->count, 1, 1);
  close_dims(&m->at[0]);
  p->inplace = 1;
  return YK_OK;
}

yk_code yk__cpu_loop_fill(yk_cpu_prepare *p) {
  move *m;
  YK_TRY(move_new(p, 0, "plain:fill", &m));
  set_fill(m, p->k->out[0].dtype, strcmp(p->spec->op, "ones_like") == 0);
  return YK_OK;
}

yk_code yk__cpu_loop_transpose(yk_cpu_prepare *p) {
  const yk_transpose_attrs *a = p->k->attrs;
  const yk_desc *x = &p->k->in[0], *y = &p->k->out[0];
  int64_t ss[YK_MAX_RANK] = { 0 }, ds[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, 1, "plain:transpose", &m));
  dense_strides(x, ss);
  dense_strides(y, ds);
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t from = a && a->rank ? (uint32_t)(a->perm[i] < 0 ? a->perm[i] + (int32_t)x->rank : a->perm[i]) : x->rank - 1 - i;
    add_dim(&m->at[0], y->dim[i], ss[from], ds[i]);
  }
  close_dims(&m->at[0]);
  return YK_OK;
}

static int32_t axis_of(const void *attrs) { return attrs ? ((const yk_axis_attrs *)attrs)->axis : 0; }

yk_code yk__cpu_loop_concat(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  uint32_t axis = yk__loop_axis(&k->out[0], axis_of(k->attrs));
  int64_t at[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, k->nin, "plain:concat", &m));
  for (uint32_t i = 0; i < k->nin; i++) {
    m->at[i].in = i;
    copy_block(&m->at[i], k->in[i].dim, &k->in[i], NULL, &k->out[0], at);
    at[axis] += k->in[i].dim[axis];
  }
  return YK_OK;
}

yk_code yk__cpu_loop_concat_grad(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_concat_grad_attrs *a = k->attrs;
  uint32_t axis = yk__loop_axis(&k->in[0], a ? a->axis : 0);
  int64_t at[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, 1, "plain:concat_grad", &m));
  for (int32_t i = 0; i < (a ? a->index : 0); i++) at[axis] += k->in[1 + i].dim[axis];
  copy_block(&m->at[0], k->out[0].dim, &k->in[0], at, &k->out[0], NULL);
  return YK_OK;
}

yk_code yk__cpu_loop_split(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_split_attrs *a = k->attrs;
  uint32_t axis = yk__loop_axis(&k->in[0], a ? a->axis : 0);
  int64_t at[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, k->nout, "plain:split", &m));
  for (uint32_t i = 0; i < k->nout; i++) {
    m->at[i].out = i;
    copy_block(&m->at[i], k->out[i].dim, &k->in[0], at, &k->out[i], NULL);
    at[axis] += k->out[i].dim[axis];
  }
  return YK_OK;
}

/* slice, slice_like: the block of out's shape that starts at begin. */
yk_code yk__cpu_loop_slice(yk_cpu_prepare *p) {
  const yk_slice_attrs *a = p->k->attrs;
  move *m;
  YK_TRY(move_new(p, 1, "plain:slice", &m));
  copy_block(&m->at[0], p->k->out[0].dim, &p->k->in[0], a ? a->begin : NULL, &p->k->out[0], NULL);
  return YK_OK;
}

yk_code yk__cpu_loop_slice_grad(yk_cpu_prepare *p) {
  const yk_slice_attrs *a = p->k->attrs;
  move *m;
  YK_TRY(move_new(p, 1, "plain:slice_grad", &m));
  set_fill(m, p->k->out[0].dtype, 0);
  copy_block(&m->at[0], p->k->in[0].dim, &p->k->in[0], NULL, &p->k->out[0], a ? a->begin : NULL);
  return YK_OK;
}

yk_code yk__cpu_loop_pad(yk_cpu_prepare *p) {
  const yk_pad_attrs *a = p->k->attrs;
  move *m;
  YK_TRY(move_new(p, 1, "plain:pad", &m));
  set_fill(m, p->k->out[0].dtype, a ? a->value : 0);
  copy_block(&m->at[0], p->k->in[0].dim, &p->k->in[0], NULL, &p->k->out[0], a ? a->before : NULL);
  return YK_OK;
}

/* First row of a shard: the first N % count shards have one row more. */
static int64_t shard_begin(const yk_shard_attrs *a, int64_t rows_all) {
  int64_t count = a && a->count ? a->count : 1, index = a ? a->index : 0, more = rows_all % count;
  return index * (rows_all / count) + (index < more ? index : more);
}

yk_code yk__cpu_loop_batch_shard(yk_cpu_prepare *p) {
  int64_t at[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, 1, "plain:batch_shard", &m));
  at[0] = shard_begin(p->k->attrs, p->k->in[0].dim[0]);
  copy_block(&m->at[0], p->k->out[0].dim, &p->k->in[0], at, &p->k->out[0], NULL);
  return YK_OK;
}

yk_code yk__cpu_loop_batch_shard_grad(yk_cpu_prepare *p) {
  int64_t at[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, 1, "plain:batch_shard_grad", &m));
  at[0] = shard_begin(p->k->attrs, p->k->out[0].dim[0]);
  set_fill(m, p->k->out[0].dtype, 0);
  copy_block(&m->at[0], p->k->in[0].dim, &p->k->in[0], NULL, &p->k->out[0], at);
  return YK_OK;
}

yk_code yk__cpu_loop_reverse(yk_cpu_prepare *p) {
  const yk_desc *x = &p->k->in[0];
  const uint32_t axis = yk__loop_axis(x, axis_of(p->k->attrs));
  int64_t stride[YK_MAX_RANK] = { 0 };
  move *m;
  YK_TRY(move_new(p, 1, "plain:reverse", &m));
  dense_strides(x, stride);
  m->at[0].from = (x->dim[axis] - 1) * stride[axis];
  for (uint32_t i = 0; i < x->rank; i++) add_dim(&m->at[0], x->dim[i], i == axis ? -stride[i] : stride[i], stride[i]);
  close_dims(&m->at[0]);
  return YK_OK;
}

yk_code yk__cpu_loop_tile(yk_cpu_prepare *p) {
  const yk_desc *x = &p->k->in[0], *y = &p->k->out[0];
  int64_t ss[YK_MAX_RANK], ds[YK_MAX_RANK];
  move *m;
  YK_TRY(move_new(p, 1, "plain:tile", &m));
  dense_strides(x, ss);
  dense_strides(y, ds);
  for (uint32_t i = 0; i < x->rank; i++) {
    add_dim(&m->at[0], x->dim[i] ? y->dim[i] / x->dim[i] : 0, 0, ds[i] * x->dim[i]);
    add_dim(&m->at[0], x->dim[i], ss[i], ds[i]);
  }
  close_dims(&m->at[0]);
  return YK_OK;
}

yk_code yk__cpu_loop_broadcast_to(yk_cpu_prepare *p) {
  const yk_desc *x = &p->k->in[0], *y = &p->k->out[0];
  int64_t ss[YK_MAX_RANK], ds[YK_MAX_RANK];
  move *m;
  YK_TRY(move_new(p, 1, "plain:broadcast_to", &m));
  dense_strides(x, ss);
  dense_strides(y, ds);
  for (uint32_t i = 0; i < y->rank; i++) {
    uint32_t back = y->rank - i;
    int64_t len = back <= x->rank ? x->dim[x->rank - back] : 1;
    add_dim(&m->at[0], y->dim[i], len == 1 ? 0 : ss[x->rank - back], ds[i]);
  }
  close_dims(&m->at[0]);
  return YK_OK;
}

/* ---- reduce_grad: spread dy over the folded axes, divided by their count for a mean ------------------------------- */

typedef struct spread { move *m; yk_elem_fn divide, load, store; uint64_t count; int64_t n; } spread;

static yk_code spread_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const move *m = k->state;
  const spread *s = (const spread *)(const void *)(m->at + 1);
  const double none[2] = { 0, 0 };
  char *tmp = workspace;
  float buf[L_BLOCK];
  for (int64_t at = 0; at < s->n; at += L_BLOCK) {
    int64_t n = s->n - at < L_BLOCK ? s->n - at : L_BLOCK;
    const char *src = (const char *)arg[0] + at * m->bytes;
    char *dst = tmp + at * m->bytes;
    if (s->load) {
      s->load(n, src, NULL, NULL, buf, none);
      s->divide(n, buf, &s->count, NULL, buf, none);
      s->store(n, buf, NULL, NULL, dst, none);
    } else {
      s->divide(n, src, &s->count, NULL, dst, none);
    }
  }
  run_copy(m, &m->at[0], tmp, arg[k->nin]);
  return YK_OK;
}

yk_code yk__cpu_loop_reduce_grad(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_reduce_attrs *a = k->attrs;
  const yk_desc *y = &k->out[0];
  uint8_t dtype = y->dtype;
  int64_t ss = yk__cpu_count(&k->in[0]), ds[YK_MAX_RANK], count = 1;
  uint32_t mask = 0;
  move *m;
  YK_TRY(move_new(p, 2, "plain:reduce_grad", &m));            /* the second copy's place holds `spread` */
  for (uint32_t i = 0; a && i < a->naxes; i++) mask |= 1u << yk__loop_axis(y, a->axis[i]);
  if (!a || a->naxes == 0) mask = (1u << y->rank) - 1;
  dense_strides(y, ds);
  for (uint32_t i = 0; i < y->rank; i++) {
    int folded = mask >> i & 1u;
    if (folded) count *= y->dim[i];
    else ss = y->dim[i] ? ss / y->dim[i] : 0;
    add_dim(&m->at[0], y->dim[i], folded ? 0 : ss, ds[i]);
  }
  close_dims(&m->at[0]);
  if (!a || !a->mean) {
    m->ncopy = 1;
    return YK_OK;
  }
  spread *s = (spread *)(void *)(m->at + 1);
  memset(s, 0, sizeof *s);
  s->divide = yk__loop_elem()->fn[E_div][yk__loop_type(dtype)][L_VS];
  s->n = yk__cpu_count(&k->in[0]);
  s->count = yk__loop_encode(yk__loop_half(dtype) ? YK_F32 : dtype, (double)count);
  if (yk__loop_half(dtype)) {
    s->load = yk__loop_elem()->to_f32[dtype == YK_BF16];
    s->store = yk__loop_elem()->from_f32[dtype == YK_BF16];
  }
  p->workspace = (uint64_t)s->n * m->bytes;
  k->run = spread_run;
  return YK_OK;
}
