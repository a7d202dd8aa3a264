/*
 * floor_chain.c - layers into primitives, primitives into a list, the list run from front to back.
 *
 * All memory is one mapping with huge pages advised, handed out from the front and never reused, so that neither page
 * faults nor planning blur what the primitives cost. One scratch buffer serves them all.
 */
#include "floor_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "common.h"

enum { MAX_OPS = 1024, MAX_LAYERS = 128, MAX_VALUES = 256, MAX_ARGS = 12, MAX_PARAMS = 256, HUGE_PAGE = 2 << 20 };
#define ARENA_BYTES ((size_t)16 << 30)        /* of addresses; what is touched is a fraction of it */

typedef struct tensor { yk_md md; float *data; } tensor;

struct floor_value { tensor y, dy; bool has_dy; };

typedef struct operation {
  bool reorder, scratch;                      /* scratch: its last argument is the scratch buffer */
  dnnl_primitive_t prim;                      /* NULL: plain */
  int nargs;
  dnnl_exec_arg_t arg[MAX_ARGS];
  void (*plain)(floor_chain *c, void *arg);
  void *plain_arg;
} operation;

typedef struct layer {
  void (*backward)(floor_chain *c, struct layer *l);
  floor_value *x, *side, *y;
  tensor in, w, b, mean, var, ws;             /* in: x as the forward primitive took it */
  yk_prim prim;                               /* sizes and strides, for convolutions and pools */
  yk_md any_src, any_wei, any_dst, flat;      /* what prim points to */
  bool relu, first;
  floor_lrn lrn;
  floor_pictures pictures;
  const float *dy;                            /* of the plain layers */
  float *dx;
} layer;

struct floor_chain {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  char *arena, *next;
  size_t scratch_bytes;
  operation op[MAX_OPS];
  layer layers[MAX_LAYERS];
  floor_value values[MAX_VALUES];
  floor_param param[MAX_PARAMS];
  int nops, nlayers, nvalues, nparams;
  float rate, momentum, decay, loss;
  char lrn[48];
};

static void must(int rc, const char *what) {
  if (rc == 0) return;
  fprintf(stderr, "floor: %s failed (oneDNN status %d)\n", what, rc);
  exit(1);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *take(floor_chain *c, size_t bytes) {
  void *at = c->next;
  bytes = (bytes + 127) / 128 * 128 + 128;    /* odd multiples of 128 too: buffers do not all begin at one cache set */
  must(c->next + bytes > c->arena + ARENA_BYTES, "the arena");
  c->next += bytes;
  return at;
}

static tensor tensor_new(floor_chain *c, const yk_md *md) {
  tensor t = { 0 };
  must(yk__md_copy(md, &t.md), "a descriptor");
  t.data = take(c, yk__md_bytes(md));
  return t;
}

/* What the primitive wants as `arg`, with memory. */
static tensor tensor_for(floor_chain *c, const_dnnl_primitive_desc_t pd, int arg) {
  yk_md md = { 0 };
  must(yk__desc_md(pd, arg, &md), "a query");
  must(!yk__md_is_set(&md), "a query for an argument");
  tensor t = tensor_new(c, &md);
  yk__md_free(&md);
  return t;
}

static yk_md md_of(int nd, const dnnl_dim_t *dim, int tag) {
  yk_md md = { 0 };
  must(yk__md_tag(nd, dim, dnnl_f32, tag, &md), "a descriptor");
  return md;
}

static tensor vector(floor_chain *c, dnnl_dim_t n, float value) {
  yk_md md = md_of(1, &n, dnnl_a);
  tensor t = tensor_new(c, &md);
  for (dnnl_dim_t i = 0; i < n; i++) t.data[i] = value;
  yk__md_free(&md);
  return t;
}

static void dims_of(const tensor *t, dnnl_dim_t dim[4], int *nd) {
  yk_md_info info;
  must(yk__md_info(&t->md, &info), "reading a descriptor");
  *nd = info.ndims;
  for (int i = 0; i < 4; i++) dim[i] = i < info.ndims ? info.dim[i] : 1;
}

/* Uniform in +-reach. */
static void draw(tensor *t, float reach) {
  size_t n = yk__md_bytes(&t->md) / sizeof(float);
  bench_fill(t->data, n);
  for (size_t i = 0; i < n; i++) t->data[i] *= 2 * reach;
}

static floor_value *value_new(floor_chain *c, tensor y) {
  must(c->nvalues == MAX_VALUES, "room for a value");
  floor_value *v = &c->values[c->nvalues++];
  v->y = y;
  return v;
}

static layer *layer_new(floor_chain *c, floor_value *x, void (*backward)(floor_chain *c, layer *l)) {
  must(c->nlayers == MAX_LAYERS, "room for a layer");
  layer *l = &c->layers[c->nlayers++];
  l->x = x;
  l->backward = backward;
  return l;
}

static void param_new(floor_chain *c, const tensor *w, const tensor *g) {
  must(c->nparams == MAX_PARAMS, "room for a parameter");
  size_t bytes = yk__md_bytes(&w->md);
  c->param[c->nparams++] = (floor_param){ w->data, g->data, take(c, bytes), bytes / sizeof(float) };
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

typedef struct binding { int arg; const tensor *t; } binding;

static operation *op_new(floor_chain *c) {
  must(c->nops == MAX_OPS, "room for an operation");
  return &c->op[c->nops++];
}

static void op_arg(floor_chain *c, operation *o, const_dnnl_primitive_desc_t pd, int arg, const tensor *t) {
  yk_md md = { 0 };
  must(yk__desc_md(pd, arg, &md), "a query");
  o->arg[o->nargs].arg = arg;
  must(yk__memory(yk__md_is_set(&md) ? &md : &t->md, c->engine, &o->arg[o->nargs].memory), "a memory");
  if (t != NULL) must(yk__memory_point(o->arg[o->nargs].memory, t->data, c->stream), "an address");
  o->nargs++;
  yk__md_free(&md);
}

/* Append a primitive; takes pd. */
static void op_prim(floor_chain *c, dnnl_primitive_desc_t pd, bool reorder, int n, const binding *b) {
  operation *o = op_new(c);
  size_t scratch = yk__desc_scratch(pd);
  o->reorder = reorder;
  for (int i = 0; i < n; i++) op_arg(c, o, pd, b[i].arg, b[i].t);
  if (scratch > 0) op_arg(c, o, pd, DNNL_ARG_SCRATCHPAD, NULL);
  o->scratch = scratch > 0;
  if (scratch > c->scratch_bytes) c->scratch_bytes = scratch;
  must((int)dnnl_primitive_create(&o->prim, pd), "a primitive");
  (void)dnnl_primitive_desc_destroy(pd);
}

static void op_plain(floor_chain *c, void (*fn)(floor_chain *c, void *arg), void *arg) {
  operation *o = op_new(c);
  o->plain = fn;
  o->plain_arg = arg;
}

static dnnl_primitive_desc_t describe(floor_chain *c, const yk_prim *p, yk_prim_dir dir) {
  dnnl_primitive_desc_t pd = NULL;
  yk_prim q = *p;
  q.dir = dir;
  must(yk__prim_desc(c->engine, &q, &pd), "describing a primitive");
  return pd;
}

/* t in the layout `want`: t itself, or a reordered copy. */
static tensor adapt(floor_chain *c, const tensor *t, const yk_md *want) {
  if (yk__md_same(&t->md, want)) return *t;
  tensor out = tensor_new(c, want);
  yk_prim p = { .kind = YK_PRIM_REORDER, .src = &t->md, .dst = &out.md };
  op_prim(c, describe(c, &p, YK_PRIM_FWD), true, 2, (binding[]){ { DNNL_ARG_FROM, t }, { DNNL_ARG_TO, &out } });
  return out;
}

/* t as the primitive wants its argument. */
static tensor adapt_for(floor_chain *c, const tensor *t, const_dnnl_primitive_desc_t pd, int arg) {
  yk_md md = { 0 };
  must(yk__desc_md(pd, arg, &md), "a query");
  tensor out = adapt(c, t, &md);
  yk__md_free(&md);
  return out;
}

/* dx is a gradient of v; where there is one already, add it. */
static void give(floor_chain *c, floor_value *v, tensor dx) {
  if (v->has_dy) {
    dnnl_primitive_desc_t pd = NULL;
    tensor other = adapt(c, &v->dy, &dx.md);
    must(floor_describe_add(c->engine, false, &dx.md, &pd), "describing a sum");
    op_prim(c, pd, false, 3, (binding[]){ { DNNL_ARG_SRC_0, &dx }, { DNNL_ARG_SRC_1, &other }, { DNNL_ARG_DST, &dx } });
  }
  v->dy = dx;
  v->has_dy = true;
}

/* The gradient of a layer's result in the layout of the result, with relu's gradient applied in place. */
static tensor taken(floor_chain *c, layer *l) {
  tensor dy = adapt(c, &l->y->dy, &l->y->y.md);
  if (!l->relu) return dy;
  dnnl_primitive_desc_t pd = NULL;
  must(floor_describe_relu_grad(c->engine, &dy.md, &pd), "describing the gradient of relu");
  op_prim(c, pd, false, 3, (binding[]){ { DNNL_ARG_DST, &l->y->y }, { DNNL_ARG_DIFF_DST, &dy }, { DNNL_ARG_DIFF_SRC, &dy } });
  return dy;
}

/* ---- convolution and dense layers ---------------------------------------------------------------------------------- */

static void linear_backward(floor_chain *c, layer *l) {
  tensor dy = taken(c, l), master = l->w;
  dnnl_primitive_desc_t pd = describe(c, &l->prim, YK_PRIM_BWD_WEIGHTS);
  tensor x = adapt_for(c, &l->in, pd, DNNL_ARG_SRC), d = adapt_for(c, &dy, pd, DNNL_ARG_DIFF_DST);
  tensor dw = tensor_for(c, pd, DNNL_ARG_DIFF_WEIGHTS), db = { 0 };
  binding b[4] = { { DNNL_ARG_SRC, &x }, { DNNL_ARG_DIFF_DST, &d }, { DNNL_ARG_DIFF_WEIGHTS, &dw }, { DNNL_ARG_DIFF_BIAS, &db } };
  if (l->prim.bias != NULL) {
    db = tensor_new(c, &l->b.md);
    param_new(c, &l->b, &db);
  }
  op_prim(c, pd, false, l->prim.bias != NULL ? 4 : 3, b);
  dw = adapt(c, &dw, &master.md);
  param_new(c, &master, &dw);
  if (l->first) return;
  pd = describe(c, &l->prim, YK_PRIM_BWD_DATA);
  tensor w = adapt_for(c, &master, pd, DNNL_ARG_WEIGHTS), dx = tensor_for(c, pd, DNNL_ARG_DIFF_SRC);
  d = adapt_for(c, &dy, pd, DNNL_ARG_DIFF_DST);
  op_prim(c, pd, false, 3, (binding[]){ { DNNL_ARG_DIFF_DST, &d }, { DNNL_ARG_WEIGHTS, &w }, { DNNL_ARG_DIFF_SRC, &dx } });
  give(c, l->x, dx);
}

/* l->prim is complete but for the activation. `reach`: of the initial weights. */
static floor_value *linear_forward(floor_chain *c, layer *l, int64_t units, float reach) {
  yk_prim p = l->prim;
  if (l->relu) {
    p.act = dnnl_eltwise_relu;
    p.act_scale = 1;
  }
  if (l->prim.bias != NULL) l->b = vector(c, units, 0);
  dnnl_primitive_desc_t pd = describe(c, &p, YK_PRIM_FWD);
  l->in = adapt_for(c, &l->x->y, pd, DNNL_ARG_SRC);
  l->w = tensor_for(c, pd, DNNL_ARG_WEIGHTS);
  draw(&l->w, reach);
  l->y = value_new(c, tensor_for(c, pd, DNNL_ARG_DST));
  op_prim(c, pd, false, l->prim.bias != NULL ? 4 : 3, (binding[]){ { DNNL_ARG_SRC, &l->in }, { DNNL_ARG_WEIGHTS, &l->w },
                                                                  { DNNL_ARG_DST, &l->y->y }, { DNNL_ARG_BIAS, &l->b } });
  return l->y;
}

floor_value *floor_add_conv(floor_chain *c, floor_value *x, const floor_conv *a) {
  layer *l = layer_new(c, x, linear_backward);
  int nd;
  dnnl_dim_t src[4], k = a->window, s = a->stride;
  dims_of(&x->y, src, &nd);
  dnnl_dim_t out = (src[2] + s - 1) / s, pad = (out - 1) * s + k - src[2];
  dnnl_dim_t wei[4] = { a->filters, src[1], k, k }, dst[4] = { src[0], a->filters, out, out };
  if (pad < 0) pad = 0;
  l->any_src = md_of(4, src, dnnl_format_tag_any);
  l->any_wei = md_of(4, wei, dnnl_format_tag_any);
  l->any_dst = md_of(4, dst, dnnl_format_tag_any);
  l->flat = md_of(1, &a->filters, dnnl_a);
  l->prim = (yk_prim){ .kind = YK_PRIM_CONV, .alg = dnnl_convolution_direct, .src = &l->any_src, .wei = &l->any_wei, .dst = &l->any_dst,
                       .bias = a->bias ? &l->flat : NULL, .stride = { s, s }, .pad_lo = { pad / 2, pad / 2 },
                       .pad_hi = { pad - pad / 2, pad - pad / 2 } };
  l->relu = a->relu;
  l->first = a->first;
  return linear_forward(c, l, a->filters, 0.05f);
}

floor_value *floor_add_dense(floor_chain *c, floor_value *x, int64_t units, bool relu, bool first) {
  layer *l = layer_new(c, x, linear_backward);
  int nd;
  dnnl_dim_t src[4], dst[2];
  dims_of(&x->y, src, &nd);
  dnnl_dim_t wei[4] = { units, src[1], src[2], src[3] };
  dst[0] = src[0];
  dst[1] = units;
  l->any_src = md_of(nd, src, dnnl_format_tag_any);
  l->any_wei = md_of(nd, wei, dnnl_format_tag_any);
  l->any_dst = md_of(2, dst, dnnl_format_tag_any);
  l->flat = md_of(1, &units, dnnl_a);
  l->prim = (yk_prim){ .kind = YK_PRIM_DENSE, .src = &l->any_src, .wei = &l->any_wei, .dst = &l->any_dst, .bias = &l->flat };
  l->relu = relu;
  l->first = first;
  return linear_forward(c, l, units, 0.04f);
}

/* ---- normalisation ------------------------------------------------------------------------------------------------- */

static void norm_backward(floor_chain *c, layer *l) {
  dnnl_primitive_desc_t pd = NULL;
  tensor dy = adapt(c, &l->y->dy, &l->y->y.md), dx = tensor_new(c, &l->in.md), dgamma = tensor_new(c, &l->w.md),
         dbeta = tensor_new(c, &l->b.md);
  binding b[10] = { { DNNL_ARG_SRC, &l->in }, { DNNL_ARG_DIFF_DST, &dy }, { DNNL_ARG_MEAN, &l->mean }, { DNNL_ARG_VARIANCE, &l->var },
                    { DNNL_ARG_SCALE, &l->w }, { DNNL_ARG_DIFF_SRC, &dx }, { DNNL_ARG_DIFF_SCALE, &dgamma },
                    { DNNL_ARG_DIFF_SHIFT, &dbeta } };
  int n = 8;
  if (FLOOR_NORM_GRAD_TAKES_SHIFT) b[n++] = (binding){ DNNL_ARG_SHIFT, &l->b };
  if (l->ws.data != NULL) b[n++] = (binding){ DNNL_ARG_WORKSPACE, &l->ws };
  must(floor_describe_norm(c->engine, true, l->prim.act != 0, &l->in.md, &pd), "describing a normalisation");
  op_prim(c, pd, false, n, b);
  param_new(c, &l->w, &dgamma);
  param_new(c, &l->b, &dbeta);
  give(c, l->x, dx);
}

floor_value *floor_add_norm(floor_chain *c, floor_value *x, bool relu) {
  layer *l = layer_new(c, x, norm_backward);
  dnnl_primitive_desc_t pd = NULL;
  int nd;
  dnnl_dim_t dim[4];
  dims_of(&x->y, dim, &nd);
  l->in = x->y;
  l->mean = vector(c, dim[1], 0);
  l->var = vector(c, dim[1], 0);
  l->w = vector(c, dim[1], 1);
  l->b = vector(c, dim[1], 0);
  l->prim.act = relu ? dnnl_eltwise_relu : 0;          /* the primitive does it both ways, unlike l->relu */
  l->y = value_new(c, tensor_new(c, &x->y.md));
  must(floor_describe_norm(c->engine, false, relu, &x->y.md, &pd), "describing a normalisation");
  if (relu) l->ws = tensor_for(c, pd, DNNL_ARG_WORKSPACE);
  binding b[7] = { { DNNL_ARG_SRC, &l->in }, { DNNL_ARG_DST, &l->y->y }, { DNNL_ARG_MEAN, &l->mean }, { DNNL_ARG_VARIANCE, &l->var },
                   { DNNL_ARG_SCALE, &l->w }, { DNNL_ARG_SHIFT, &l->b }, { DNNL_ARG_WORKSPACE, &l->ws } };
  op_prim(c, pd, false, relu ? 7 : 6, b);
  return l->y;
}

static void join_backward(floor_chain *c, layer *l) {
  tensor dy = taken(c, l);
  give(c, l->x, dy);
  give(c, l->side, dy);
}

floor_value *floor_add_join(floor_chain *c, floor_value *x, floor_value *side) {
  layer *l = layer_new(c, x, join_backward);
  dnnl_primitive_desc_t pd = NULL;
  tensor other = adapt(c, &side->y, &x->y.md);
  l->side = side;
  l->relu = true;
  l->y = value_new(c, x->y);
  must(floor_describe_add(c->engine, true, &x->y.md, &pd), "describing a sum");
  op_prim(c, pd, false, 3, (binding[]){ { DNNL_ARG_SRC_0, &x->y }, { DNNL_ARG_SRC_1, &other }, { DNNL_ARG_DST, &l->y->y } });
  return l->y;
}

/* ---- pools ------------------------------------------------------------------------------------------------------------ */

static void pool_backward(floor_chain *c, layer *l) {
  yk_prim p = l->prim;
  tensor dy = adapt(c, &l->y->dy, &l->y->y.md), dx = tensor_new(c, &l->in.md);
  p.src = &dx.md;
  p.dst = &dy.md;
  dnnl_primitive_desc_t pd = describe(c, &p, YK_PRIM_BWD);
  op_prim(c, pd, false, l->ws.data != NULL ? 3 : 2, (binding[]){ { DNNL_ARG_DIFF_DST, &dy }, { DNNL_ARG_DIFF_SRC, &dx },
                                                                 { DNNL_ARG_WORKSPACE, &l->ws } });
  give(c, l->x, dx);
}

static floor_value *add_pool(floor_chain *c, floor_value *x, dnnl_alg_kind_t alg, dnnl_dim_t window, dnnl_dim_t stride) {
  layer *l = layer_new(c, x, pool_backward);
  int nd;
  dnnl_dim_t dim[4];
  dims_of(&x->y, dim, &nd);
  if (window == 0) window = stride = dim[2];
  dnnl_dim_t out = (dim[2] + stride - 1) / stride, pad = (out - 1) * stride + window - dim[2], dst[4] = { dim[0], dim[1], out, out };
  if (pad < 0) pad = 0;
  l->in = x->y;
  l->any_dst = md_of(4, dst, dnnl_format_tag_any);
  l->prim = (yk_prim){ .kind = YK_PRIM_POOL, .alg = alg, .src = &l->in.md, .dst = &l->any_dst, .stride = { stride, stride },
                       .window = { window, window }, .pad_lo = { pad / 2, pad / 2 }, .pad_hi = { pad - pad / 2, pad - pad / 2 } };
  dnnl_primitive_desc_t pd = describe(c, &l->prim, YK_PRIM_FWD);
  l->y = value_new(c, tensor_for(c, pd, DNNL_ARG_DST));
  if (alg == dnnl_pooling_max) l->ws = tensor_for(c, pd, DNNL_ARG_WORKSPACE);
  op_prim(c, pd, false, l->ws.data != NULL ? 3 : 2, (binding[]){ { DNNL_ARG_SRC, &l->in }, { DNNL_ARG_DST, &l->y->y },
                                                                 { DNNL_ARG_WORKSPACE, &l->ws } });
  return l->y;
}

floor_value *floor_add_max_pool(floor_chain *c, floor_value *x) { return add_pool(c, x, dnnl_pooling_max, 3, 2); }

floor_value *floor_add_mean_pool(floor_chain *c, floor_value *x) { return add_pool(c, x, dnnl_pooling_avg_exclude_padding, 0, 0); }

/* ---- response normalisation ------------------------------------------------------------------------------------------- */

static void lrn_plain(floor_chain *c, void *arg) {
  layer *l = arg;
  (void)c;
  floor_lrn_forward(&l->pictures, &l->lrn, l->in.data, l->y->y.data);
}

static void lrn_plain_back(floor_chain *c, void *arg) {
  layer *l = arg;
  (void)c;
  floor_lrn_backward(&l->pictures, &l->lrn, l->in.data, l->dy, l->dx);
}

static void lrn_backward(floor_chain *c, layer *l) {
  tensor dy = adapt(c, &l->y->dy, &l->y->y.md), dx = tensor_new(c, &l->in.md);
  dnnl_primitive_desc_t pd = NULL;
  if (l->pictures.block != 0) {
    l->dy = dy.data;
    l->dx = dx.data;
    op_plain(c, lrn_plain_back, l);
  } else {
    must(floor_describe_lrn(c->engine, true, &l->lrn, &l->in.md, &pd), "describing a response normalisation");
    op_prim(c, pd, false, l->ws.data != NULL ? 4 : 3, (binding[]){ { DNNL_ARG_SRC, &l->in }, { DNNL_ARG_DIFF_DST, &dy },
                                                                   { DNNL_ARG_DIFF_SRC, &dx }, { DNNL_ARG_WORKSPACE, &l->ws } });
  }
  give(c, l->x, dx);
}

/* The plain loop's view of x; false if it is laid out some other way. */
static bool pictures_of(const tensor *x, floor_pictures *out) {
  yk_md_info i;
  if (yk__md_info(&x->md, &i) || i.ndims != 4 || i.dim[1] != FLOOR_LRN_CHANNELS || i.padded[1] != i.dim[1]) return false;
  bool whole = i.nblocks == 0 && i.stride[1] == 1 && i.stride[3] == i.dim[1];
  bool blocked = i.nblocks == 1 && i.index[0] == 1 && i.stride[3] == i.block[0];
  *out = (floor_pictures){ i.dim[0], i.dim[2] * i.dim[3], whole ? i.dim[1] : i.block[0] };
  return whole || blocked;
}

floor_value *floor_add_lrn(floor_chain *c, floor_value *x, const floor_lrn *a) {
  layer *l = layer_new(c, x, lrn_backward);
  dnnl_primitive_desc_t pd = NULL;
  yk_md md = { 0 };
  l->in = x->y;
  l->lrn = *a;
  l->y = value_new(c, tensor_new(c, &x->y.md));
  must(floor_describe_lrn(c->engine, false, a, &x->y.md, &pd), "describing a response normalisation");
  if (strncmp(yk__desc_impl(pd), "jit", 3) != 0 && pictures_of(&x->y, &l->pictures)) {
    (void)dnnl_primitive_desc_destroy(pd);
    snprintf(c->lrn, sizeof c->lrn, "plain");
    op_plain(c, lrn_plain, l);
    return l->y;
  }
  l->pictures.block = 0;
  snprintf(c->lrn, sizeof c->lrn, "%s", yk__desc_impl(pd));
  must(yk__desc_md(pd, DNNL_ARG_WORKSPACE, &md), "a query");
  if (yk__md_is_set(&md)) l->ws = tensor_new(c, &md);
  yk__md_free(&md);
  op_prim(c, pd, false, l->ws.data != NULL ? 3 : 2, (binding[]){ { DNNL_ARG_SRC, &l->in }, { DNNL_ARG_DST, &l->y->y },
                                                                 { DNNL_ARG_WORKSPACE, &l->ws } });
  return l->y;
}

/* ---- loss, update, the whole ------------------------------------------------------------------------------------------- */

static void loss_plain(floor_chain *c, void *arg) {
  const layer *l = arg;
  c->loss = floor_loss(l->pictures.n, l->pictures.cells, l->in.data, l->dx);
}

static void loss_backward(floor_chain *c, layer *l) { give(c, l->x, (tensor){ l->in.md, l->dx }); }

void floor_add_loss(floor_chain *c, floor_value *logits) {
  layer *l = layer_new(c, logits, loss_backward);
  int nd;
  dnnl_dim_t dim[4];
  dims_of(&logits->y, dim, &nd);
  yk_md rows = md_of(2, dim, dnnl_ab);
  l->in = adapt(c, &logits->y, &rows);
  l->dx = take(c, yk__md_bytes(&rows));
  l->pictures = (floor_pictures){ .n = dim[0], .cells = dim[1] };
  op_plain(c, loss_plain, l);
  yk__md_free(&rows);
}

static void update_plain(floor_chain *c, void *arg) {
  (void)arg;
  floor_update((size_t)c->nparams, c->param, c->rate, c->momentum, c->decay);
}

void floor_chain_finish(floor_chain *c) {
  for (int i = c->nlayers - 1; i >= 0; i--) c->layers[i].backward(c, &c->layers[i]);
  op_plain(c, update_plain, NULL);
  void *scratch = take(c, c->scratch_bytes);
  for (int i = 0; i < c->nops; i++)
    if (c->op[i].scratch) must(yk__memory_point(c->op[i].arg[c->op[i].nargs - 1].memory, scratch, c->stream), "an address");
}

void floor_chain_run(floor_chain *c, bool reorders) {
  for (int i = 0; i < c->nops; i++) {
    operation *o = &c->op[i];
    if (o->reorder && !reorders) continue;
    if (o->plain != NULL) o->plain(c, o->plain_arg);
    else must((int)dnnl_primitive_execute(o->prim, c->stream, o->nargs, o->arg), "a primitive");
  }
  must((int)dnnl_stream_wait(c->stream), "waiting");
}

floor_value *floor_input(floor_chain *c, int64_t n, int64_t channels, int64_t side) {
  dnnl_dim_t dim[4] = { n, channels, side, side };
  yk_md md = side != 0 ? md_of(4, dim, dnnl_abcd) : md_of(2, dim, dnnl_ab);
  tensor t = tensor_new(c, &md);
  draw(&t, 0.5f);
  yk__md_free(&md);
  return value_new(c, t);
}

floor_chain *floor_chain_new(float rate, float momentum, float decay) {
  floor_chain *c = calloc(1, sizeof *c);
  must(c == NULL, "allocating the chain");
  c->arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  must(c->arena == MAP_FAILED, "mapping memory");
  (void)madvise(c->arena, ARENA_BYTES, MADV_HUGEPAGE);
  c->next = c->arena + (HUGE_PAGE - (uintptr_t)c->arena % HUGE_PAGE) % HUGE_PAGE;
  must((int)dnnl_engine_create(&c->engine, dnnl_cpu, 0), "making an engine");
  must((int)dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags), "making a stream");
  c->rate = rate;
  c->momentum = momentum;
  c->decay = decay;
  snprintf(c->lrn, sizeof c->lrn, "none");
  return c;
}

void floor_chain_free(floor_chain *c) {
  for (int i = 0; i < c->nops; i++) {
    for (int k = 0; k < c->op[i].nargs; k++) (void)dnnl_memory_destroy(c->op[i].arg[k].memory);
    if (c->op[i].prim != NULL) (void)dnnl_primitive_destroy(c->op[i].prim);
  }
  (void)dnnl_stream_destroy(c->stream);
  (void)dnnl_engine_destroy(c->engine);
  (void)munmap(c->arena, ARENA_BYTES);
  free(c);
}

double floor_chain_loss(const floor_chain *c) { return (double)c->loss; }

int floor_chain_reorders(const floor_chain *c) {
  int n = 0;
  for (int i = 0; i < c->nops; i++) n += c->op[i].reorder;
  return n;
}

int floor_chain_operations(const floor_chain *c) { return c->nops - floor_chain_reorders(c); }

const char *floor_chain_lrn(const floor_chain *c) { return c->lrn; }
