/*
 * loop_elem.c - element-wise kernels: any broadcasting, any type, in place where shapes allow it.
 *
 * Preparing turns the shapes into the fewest dimensions that describe them (usually one); running hands runs of elements to
 * the inner loops of loop_elem_isa.c. Each input either advances with the output or stands still within a run. Halves are
 * converted to f32 and back a block at a time, so they need no loops of their own.
 */
#include "loop.h"

#include <string.h>

enum { MAX_IN = 3, SHORT_RUN = 32 };

typedef struct elem {
  yk_elem_fn fn[8];                      /* by the bits of the inputs that advance */
  yk_elem_fn load[MAX_IN], store;        /* conversion to and from f32, or NULL */
  int64_t n;                             /* elements of the output */
  uint32_t nin, mode;                    /* mode of a run */
  uint32_t nd;                           /* dims after merging; at most 1: no row loop */
  int64_t dim[YK_MAX_RANK], stride[MAX_IN][YK_MAX_RANK];
  uint32_t bytes[MAX_IN], out_bytes;
  uint32_t dense[MAX_IN];                /* the input has the output's shape */
  uint32_t periodic;                     /* whatever is not dense repeats with every row */
  double p[2];
} elem;

typedef struct elem_call { const elem *e; const char *in[MAX_IN]; char *out; } elem_call;

/* One run of n elements through f32 blocks. */
static void run_half(const elem *e, int64_t n, const char *const *in, char *out, uint32_t mode) {
  float buf[MAX_IN][L_BLOCK], res[L_BLOCK];
  const void *src[MAX_IN] = { NULL, NULL, NULL };
  for (uint32_t i = 0; i < e->nin; i++) {
    src[i] = in[i];
    if (e->load[i] && !(mode >> i & 1u)) {
      e->load[i](1, in[i], NULL, NULL, buf[i], e->p);
      src[i] = buf[i];
    }
  }
  for (int64_t at = 0; at < n; at += L_BLOCK) {
    int64_t m = n - at < L_BLOCK ? n - at : L_BLOCK;
    char *dst = out + at * e->out_bytes;
    for (uint32_t i = 0; i < e->nin; i++) {
      if (!(mode >> i & 1u)) continue;
      src[i] = in[i] + at * e->bytes[i];
      if (!e->load[i]) continue;
      e->load[i](m, src[i], NULL, NULL, buf[i], e->p);
      src[i] = buf[i];
    }
    e->fn[mode](m, src[0], src[1], src[2], e->store ? (void *)res : (void *)dst, e->p);
    if (e->store) e->store(m, res, NULL, NULL, dst, e->p);
  }
}

static void run(const elem *e, int64_t n, const char *const *in, char *out, uint32_t mode) {
  if (e->store || e->load[0] || e->load[1]) run_half(e, n, in, out, mode);
  else e->fn[mode](n, in[0], in[1], in[2], out, e->p);
}

static void piece_flat(int64_t begin, int64_t end, void *arg) {
  const elem_call *c = arg;
  const elem *e = c->e;
  const char *in[MAX_IN] = { NULL, NULL, NULL };
  for (uint32_t i = 0; i < e->nin; i++) in[i] = c->in[i] + (e->mode >> i & 1u ? begin * e->bytes[i] : 0);
  run(e, end - begin, in, c->out + begin * e->out_bytes, e->mode);
}

/* Position of element `index` of the output: coordinates, and offsets into the inputs in elements. */
static void locate(const elem *e, int64_t index, int64_t *at, int64_t *off) {
  for (uint32_t i = 0; i < e->nin; i++) off[i] = 0;
  for (uint32_t d = e->nd; d-- > 0; index /= e->dim[d]) {
    at[d] = index % e->dim[d];
    for (uint32_t i = 0; i < e->nin; i++) off[i] += at[d] * e->stride[i][d];
  }
}

/* Advance by `step` within the last dimension, carrying into the others. step never passes the end of the row. */
static void advance(const elem *e, int64_t step, int64_t *at, int64_t *off) {
  uint32_t d = e->nd - 1;
  at[d] += step;
  for (uint32_t i = 0; i < e->nin; i++) off[i] += step * e->stride[i][d];
  while (at[d] == e->dim[d] && d > 0) {
    for (uint32_t i = 0; i < e->nin; i++) off[i] += e->stride[i][d - 1] - e->dim[d] * e->stride[i][d];
    at[d] = 0;
    at[--d]++;
  }
}

static void piece_rows(int64_t begin, int64_t end, void *arg) {
  const elem_call *c = arg;
  const elem *e = c->e;
  int64_t at[YK_MAX_RANK], off[MAX_IN], width = e->dim[e->nd - 1];
  locate(e, begin, at, off);
  while (begin < end) {
    int64_t m = width - at[e->nd - 1];
    const char *in[MAX_IN] = { NULL, NULL, NULL };
    if (m > end - begin) m = end - begin;
    for (uint32_t i = 0; i < e->nin; i++) in[i] = c->in[i] + off[i] * e->bytes[i];
    run(e, m, in, c->out + begin * e->out_bytes, e->mode);
    advance(e, m, at, off);
    begin += m;
  }
}

static void copy_one(char *dst, const char *src, uint32_t bytes) {
  switch (bytes) {
    case 1: *dst = *src; break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    default: memcpy(dst, src, 8); break;
  }
}

/* Rows too short to be worth a call each: gather what does not lie as the output does, then run whole blocks. What repeats
 * with every row (a bias of few channels) is gathered once, into a block of whole rows. */
static void piece_gather(int64_t begin, int64_t end, void *arg) {
  const elem_call *c = arg;
  const elem *e = c->e;
  char buf[MAX_IN][L_BLOCK * 8];
  int64_t at[YK_MAX_RANK], off[MAX_IN];
  const uint32_t all = (1u << e->nin) - 1;
  const int64_t block = e->periodic ? L_BLOCK / e->dim[e->nd - 1] * e->dim[e->nd - 1] : L_BLOCK, start = begin;
  locate(e, begin, at, off);
  while (begin < end) {
    int64_t m = end - begin < block ? end - begin : block;
    const char *in[MAX_IN] = { NULL, NULL, NULL };
    for (int64_t j = 0; j < m && (begin == start || !e->periodic); j++) {
      for (uint32_t i = 0; i < e->nin; i++)
        if (!e->dense[i]) copy_one(buf[i] + j * e->bytes[i], c->in[i] + off[i] * e->bytes[i], e->bytes[i]);
      advance(e, 1, at, off);
    }
    for (uint32_t i = 0; i < e->nin; i++) in[i] = e->dense[i] ? c->in[i] + begin * e->bytes[i] : buf[i];
    run(e, m, in, c->out + begin * e->out_bytes, all);
    begin += m;
  }
}

static yk_code elem_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const elem *e = k->state;
  elem_call c = { .e = e, .out = arg[k->nin] };
  (void)workspace;
  if (e->n == 0) return YK_OK;
  for (uint32_t i = 0; i < e->nin; i++) c.in[i] = arg[i];
  if (e->nd > 1) {
    yk__cpu_host->parallel_for(e->n, L_GRAIN, e->dim[e->nd - 1] < SHORT_RUN ? piece_gather : piece_rows, &c);
  } else if (e->n <= L_GRAIN) {
    piece_flat(0, e->n, &c);
  } else {
    yk__cpu_host->parallel_for(e->n, L_GRAIN, piece_flat, &c);
  }
  return YK_OK;
}

/* ---- preparing --------------------------------------------------------------------------------------------- */

/* Merge neighbouring dimensions that all inputs step through alike; drop those of one. */
static void merge_dims(elem *e, const yk_desc *in, const yk_desc *out) {
  int64_t full[MAX_IN][YK_MAX_RANK], dim[YK_MAX_RANK];
  uint32_t nd = 0;
  for (uint32_t i = 0; i < e->nin; i++) {
    int64_t stride = 1;
    for (uint32_t back = 0; back < out->rank; back++) {
      uint32_t d = out->rank - 1 - back;
      int64_t len = back < in[i].rank ? in[i].dim[in[i].rank - 1 - back] : 1;
      full[i][d] = len == 1 && out->dim[d] != 1 ? 0 : stride;
      stride *= len;
    }
  }
  for (uint32_t d = 0; d < out->rank; d++) {
    int joins = nd > 0;
    if (out->dim[d] == 1) continue;
    for (uint32_t i = 0; i < e->nin && joins; i++) joins = e->stride[i][nd - 1] == full[i][d] * out->dim[d];
    if (!joins) dim[nd++] = 1;
    dim[nd - 1] *= out->dim[d];
    for (uint32_t i = 0; i < e->nin; i++) e->stride[i][nd - 1] = full[i][d];
  }
  e->nd = nd;
  memcpy(e->dim, dim, nd * sizeof *dim);
  for (uint32_t i = 0; i < e->nin; i++) {
    if (nd == 0 || e->stride[i][nd - 1]) e->mode |= 1u << i;
    e->dense[i] = yk__cpu_count(&in[i]) == e->n;
  }
  e->periodic = 1;
  for (uint32_t i = 0; i < e->nin; i++)
    for (uint32_t d = 0; d + 1 < nd && !e->dense[i]; d++) e->periodic &= e->stride[i][d] == 0;
}

static int same_dims(const yk_desc *a, const yk_desc *b) {
  if (a->rank != b->rank) return 0;
  return memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

/* Functions with f(0) = 0, which may run over padding. */
static int keeps_zero(const char *op) {
  static const char *const ops[] = { "neg", "abs", "sign", "square", "sqrt", "sin", "floor", "ceil", "leaky_relu", "elu", "selu",
                                     "gelu", "silu", "tanh", "relu", "relu6", "add", "sub", "mul", "div_no_nan", "maximum",
                                     "minimum", "squared_difference", "cast" };
  size_t n = strlen(op);
  if (n > 5 && strcmp(op + n - 5, "_grad") == 0) return 1;             /* dy = 0 gives 0 */
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(ops[i], op) == 0) return 1;
  return 0;
}

static int is_scalar(const yk_desc *d) { return yk__cpu_count(d) == 1; }
static int has_layouts(uint8_t dtype) { return dtype == YK_F32 || yk__loop_half(dtype); }

/* The input whose layout the others follow: the first in a private one, else the first that has the output's shape; the rest may
 * only be scalars. A gradient that comes plain from a reduction thus joins the blocked values it meets, once. -1: some input is neither. */
static int leading_input(const yk_kernel *k) {
  int lead = -1;
  for (uint32_t i = 0; i < k->nin; i++) {
    if (same_dims(&k->in[i], &k->out[0])) {
      if (lead < 0 || (k->in[lead].layout == YK_LAYOUT_PLAIN && k->in[i].layout != YK_LAYOUT_PLAIN)) lead = (int)i;
    } else if (!is_scalar(&k->in[i])) {
      return -1;
    }
  }
  return lead;
}

/*
 * The private layout of the leading input may be kept if only the buffer's length counts: no padding, or a function that keeps it
 * zero; with a scalar, that is only a product. *n: elements of the buffer; returns the layout, plain if it may not be kept.
 */
static uint16_t kept_layout(const yk_cpu_prepare *p, int64_t *n) {
  const yk_kernel *k = p->k;
  int lead = leading_input(k), scalars = 0;
  uint64_t bytes;
  if (lead < 0 || k->in[lead].layout == YK_LAYOUT_PLAIN || !has_layouts(k->out[0].dtype)) return YK_LAYOUT_PLAIN;
  const yk_desc *x = &k->in[lead];
  for (uint32_t i = 0; i < k->nin; i++) {
    int scalar = !same_dims(&k->in[i], x);
    scalars += scalar;
    if (!has_layouts(k->in[i].dtype)) return YK_LAYOUT_PLAIN;
    if (!scalar && (p->spec->flags & YK_SPEC_FIXED) && k->in[i].layout != x->layout) return YK_LAYOUT_PLAIN;
  }
  if (yk__cpu_layout_bytes(x, &bytes) != YK_OK) return YK_LAYOUT_PLAIN;
  *n = (int64_t)(bytes / yk__cpu_dtype_bytes(x->dtype));
  if (*n == yk__cpu_count(x)) return x->layout;
  return keeps_zero(p->spec->op) && (scalars == 0 || strcmp(p->spec->op, "mul") == 0) ? x->layout : YK_LAYOUT_PLAIN;
}

/* *flat: elements of a buffer run over without looking at its shape; 0 = plain layout. */
static yk_code settle_layouts(yk_cpu_prepare *p, int64_t *flat) {
  yk_kernel *k = p->k;
  uint16_t layout = kept_layout(p, flat);
  if (layout == YK_LAYOUT_PLAIN) {
    *flat = 0;
    return yk__cpu_want_plain(p);
  }
  for (uint32_t i = 0; i < k->nin; i++)
    if (same_dims(&k->in[i], &k->out[0])) k->in[i].layout = layout;
  k->out[0].layout = layout;
  return YK_OK;
}

/* Shapes, conversions and in-place bits; the caller has yet to set fn and p. */
static yk_code elem_new(yk_cpu_prepare *p, elem **out) {
  yk_kernel *k = p->k;
  const yk_elem_table *t = yk__loop_elem();
  int64_t flat = 0;
  elem *e = yk__cpu_state(p, sizeof *e);
  if (!e) return YK_ENOMEM;
  if (k->nin > MAX_IN) return YK_CPU_REFUSE("%u inputs, at most 3", (unsigned)k->nin);
  YK_TRY(settle_layouts(p, &flat));
  e->nin = k->nin;
  e->n = yk__cpu_count(&k->out[0]);
  e->out_bytes = (uint32_t)yk__cpu_dtype_bytes(k->out[0].dtype);
  if (yk__loop_half(k->out[0].dtype)) e->store = t->from_f32[k->out[0].dtype == YK_BF16];
  for (uint32_t i = 0; i < k->nin; i++) {
    e->bytes[i] = (uint32_t)yk__cpu_dtype_bytes(k->in[i].dtype);
    if (yk__loop_half(k->in[i].dtype)) e->load[i] = t->to_f32[k->in[i].dtype == YK_BF16];
    if (e->bytes[i] == e->out_bytes && same_dims(&k->in[i], &k->out[0])) p->inplace |= 1u << i;
  }
  merge_dims(e, k->in, &k->out[0]);
  if (flat) e->n = flat;                               /* one run, scalars standing still: merge_dims found that already */
  k->run = elem_run;
  *out = e;
  return YK_OK;
}

typedef struct elem_name { const char *op; uint16_t id; const char *impl; } elem_name;
static const elem_name names[] = {
#define FUN1(name, f) { #name, E_##name, "plain:" #name },
#define FUN2 FUN1
#define FUN3 FUN1
#define NUM1(name, f, i) FUN1(name, f)
#define NUM2(name, f, i) FUN1(name, f)
#define CMP2 FUN1
#include "loop_elem.def"
};

static const elem_name *find(const char *op) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i].op, op) == 0) return &names[i];
  return strcmp(op, "bias_add") == 0 ? find("add") : NULL;
}

/* Attributes as the formulae want them. */
static void set_parameters(elem *e, uint16_t id, const void *attrs) {
  const yk_alpha_attrs *a = attrs;
  const yk_clip_attrs *c = attrs;
  if (id == E_leaky_relu || id == E_leaky_relu_grad) e->p[0] = a && a->alpha != 0 ? a->alpha : 0.2;
  if (id == E_elu || id == E_elu_grad) e->p[0] = a && a->alpha != 0 ? a->alpha : 1;
  if (id == E_clip || id == E_clip_grad) {
    e->p[0] = c ? c->lo : 0;
    e->p[1] = c ? c->hi : 0;
  }
}

yk_code yk__cpu_loop_elem(yk_cpu_prepare *p) {
  const elem_name *name = find(p->spec->op);
  elem *e;
  if (!name) return YK_CPU_REFUSE("not an element-wise function of the plain loops");
  if ((name->id == E_gelu || name->id == E_gelu_grad) && p->k->attrs && ((const yk_gelu_attrs *)p->k->attrs)->approximate)
    name = find(name->id == E_gelu ? "gelu_tanh" : "gelu_tanh_grad");
  const yk_elem_fn *fn = yk__loop_elem()->fn[name->id][yk__loop_type(p->k->in[0].dtype)];
  if (!fn[L_VV]) return YK_CPU_REFUSE("no loop for this type");
  YK_TRY(elem_new(p, &e));
  for (uint32_t mode = 0; mode < 8; mode++)
    e->fn[mode] = e->nin == 2 && mode == 1 && fn[L_VS] ? fn[L_VS] : e->nin == 2 && mode == 2 && fn[L_SV] ? fn[L_SV] : fn[L_VV];
  set_parameters(e, name->id, p->k->attrs);
  p->k->impl = name->impl;
  return YK_OK;
}

yk_code yk__cpu_loop_logic(yk_cpu_prepare *p) {
  const yk_elem_fn *fn = yk__loop_elem()->logic[strcmp(p->spec->op, "logical_and") == 0 ? 0 : p->k->nin == 2 ? 1 : 2];
  elem *e;
  YK_TRY(elem_new(p, &e));
  for (uint32_t mode = 0; mode < 8; mode++)
    e->fn[mode] = e->nin == 1 || mode == 0 || mode == 3 ? fn[L_VV] : fn[mode == 1 ? L_VS : L_SV];
  p->k->impl = "plain:logic";
  return YK_OK;
}

yk_code yk__cpu_loop_where(yk_cpu_prepare *p) {
  elem *e;
  YK_TRY(elem_new(p, &e));
  uint32_t width = e->out_bytes == 1 ? 0 : e->out_bytes == 2 ? 1 : e->out_bytes == 4 ? 2 : 3;
  memset(e->load, 0, sizeof e->load);                  /* bits are moved, not computed with */
  e->store = NULL;
  memcpy(e->fn, yk__loop_elem()->where[width], sizeof e->fn);
  p->k->impl = "plain:where";
  return YK_OK;
}

yk_code yk__cpu_loop_cast(yk_cpu_prepare *p) {
  uint8_t to = p->k->out[0].dtype;
  elem *e;
  YK_TRY(elem_new(p, &e));
  e->fn[0] = e->fn[1] = yk__loop_elem()->cast[yk__loop_type(p->k->in[0].dtype)][to == YK_BOOL ? L_NTYPES : yk__loop_type(to)];
  p->k->impl = "plain:cast";
  return YK_OK;
}
