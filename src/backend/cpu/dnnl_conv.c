/*
 * dnnl_conv.c - convolutions through oneDNN: forward, both gradients, transposed.
 *
 * All five ops are one convolution from a picture x through a filter w to a picture y, seen from another side, so they share
 * one geometry and one way of settling layouts: a picture keeps the layout it is offered as long as oneDNN has code made for
 * it, because a reorder costs more than the few percent between layouts; filters, which are small, take what oneDNN
 * likes best; and a filter's gradient is asked for in the layout the forward pass wants, so that updates need no reorder.
 */
#include "dnnl_kernel.h"
#include "padding.h"

/* One op seen as the convolution x * w -> y. Index: argument number of the launch; -1 = none. */
typedef struct yk_conv {
  yk_cpu_prepare *p;
  yk_prim_dir dir;
  yk_desc *x, *w, *y, *bias;
  int at_x, at_w, at_y, at_bias;
  uint32_t groups;
  yk_prim prim;                     /* geometry and activation; descriptors are filled in for each attempt */
  double flops, bytes;
} yk_conv;

static const yk_conv2d_attrs no_attrs;

static int64_t or1(int32_t v) { return v == 0 ? 1 : v; }

static void set_geometry(yk_conv *c) {
  const yk_conv2d_attrs *a = c->p->k->attrs ? c->p->k->attrs : &no_attrs;
  yk_prim *q = &c->prim;
  c->groups = (uint32_t)or1(a->groups);
  q->kind = YK_PRIM_CONV;
  q->dir = c->dir;
  q->alg = dnnl_convolution_direct;
  for (int i = 0; i < 2; i++) {
    int64_t stride = or1(a->stride[i]), dilation = or1(a->dilation[i]);
    int64_t window = (c->w->dim[i] - 1) * dilation + 1;
    yk_edges pad = yk__cpu_padding(a->padding, c->x->dim[1 + i], c->y->dim[1 + i], window, stride, &a->pad[2 * i]);
    q->stride[i] = stride;
    q->dilate[i] = dilation - 1;
    q->pad_lo[i] = pad.before;
    q->pad_hi[i] = pad.after;
  }
  int64_t pixels = yk__cpu_count(c->y) / c->y->dim[3];
  c->flops = 2.0 * (double)pixels * (double)yk__cpu_count(c->w);
  c->bytes = (double)(yk__cpu_count(c->x) + yk__cpu_count(c->w) + yk__cpu_count(c->y)) * (double)yk__cpu_dtype_bytes(c->x->dtype);
}

/* The layouts of one attempt; what the primitive then has. */
typedef struct yk_conv_layouts { uint16_t x, w, y; } yk_conv_layouts;

static yk_code md_in(const yk_desc *d, uint16_t layout, yk_role role, uint32_t groups, yk_md *out) {
  yk_desc copy = *d;
  copy.layout = layout;
  return yk__layout_md(&copy, role, groups, out);
}

static yk_code describe(const yk_conv *c, yk_prim_dir dir, yk_conv_layouts l, yk_impl least, dnnl_primitive_desc_t *out) {
  yk_md x = { 0 }, w = { 0 }, y = { 0 }, b = { 0 };
  yk_code code = md_in(c->x, l.x, YK_ROLE_PICTURE, 1, &x);
  if (code == YK_OK) code = md_in(c->w, l.w, YK_ROLE_FILTER, c->groups, &w);
  if (code == YK_OK) code = md_in(c->y, l.y, YK_ROLE_PICTURE, 1, &y);
  if (code == YK_OK && c->bias) code = md_in(c->bias, YK_LAYOUT_PLAIN, YK_ROLE_SAME, 1, &b);
  if (code == YK_OK) {
    yk_prim q = c->prim;
    q.dir = dir;
    q.src = &x;
    q.wei = &w;
    q.dst = &y;
    q.bias = c->bias && dir != YK_PRIM_BWD_DATA ? &b : NULL;
    code = yk__dnnl_describe(&q, least, out);
  }
  yk__md_free(&x);
  yk__md_free(&w);
  yk__md_free(&y);
  yk__md_free(&b);
  return code;
}

static yk_code chosen(const_dnnl_primitive_desc_t pd, int arg, yk_role role, uint32_t groups, uint16_t *out) {
  yk_md md;
  if (yk__desc_md(pd, arg, &md)) return YK_CPU_FAIL(ENOMEM, "oneDNN ran out of memory while preparing");
  yk_code code = yk__layout_of(&md, role, groups, out);
  yk__md_free(&md);
  return code;
}

/* The layouts pd ended up with. */
static yk_code layouts_of(const yk_conv *c, yk_prim_dir dir, const_dnnl_primitive_desc_t pd, yk_conv_layouts *out) {
  yk_conv_layouts l;
  YK_TRY(chosen(pd, dir == YK_PRIM_BWD_DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, YK_ROLE_PICTURE, 1, &l.x));
  YK_TRY(chosen(pd, dir == YK_PRIM_BWD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, YK_ROLE_FILTER, c->groups, &l.w));
  YK_TRY(chosen(pd, dir == YK_PRIM_FWD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, YK_ROLE_PICTURE, 1, &l.y));
  *out = l;
  return YK_OK;
}

/* One attempt: a description in layouts that have numbers. */
static yk_code attempt(const yk_conv *c, yk_conv_layouts l, yk_impl least, dnnl_primitive_desc_t *out, yk_conv_layouts *got) {
  dnnl_primitive_desc_t pd = NULL;
  YK_TRY(describe(c, c->dir, l, least, &pd));
  yk_code code = layouts_of(c, c->dir, pd, got);
  if (code != YK_OK) (void)dnnl_primitive_desc_destroy(pd);
  else *out = pd;
  return code;
}

/* A layout this value can be asked in: the offered one if it is plain or of the role. */
static uint16_t usable(uint16_t layout, yk_role want, uint32_t groups) {
  yk_role role;
  uint32_t g;
  if (yk__layout_role(layout, &role, &g) && role == want && g == groups) return layout;
  return YK_LAYOUT_PLAIN;
}

/* The filter layout the forward pass takes with x in layout `x`: what the variable will have. ANY if there is none. */
static uint16_t forward_filter(const yk_conv *c, uint16_t x) {
  dnnl_primitive_desc_t pd = NULL;
  yk_conv_layouts ask = { x, YK_LAYOUT_ANY, YK_LAYOUT_ANY }, got;
  yk_conv forward = *c;
  forward.dir = YK_PRIM_FWD;
  if (attempt(&forward, ask, YK_IMPL_DIRECT, &pd, &got) != YK_OK) {
    ask.x = YK_LAYOUT_ANY;
    if (attempt(&forward, ask, YK_IMPL_FAST, &pd, &got) != YK_OK) return YK_LAYOUT_ANY;
  }
  (void)dnnl_primitive_desc_destroy(pd);
  return got.w;
}

enum { MAX_TRIES = 10 };
typedef struct yk_conv_tries { int n; yk_conv_layouts ask[MAX_TRIES]; yk_impl least[MAX_TRIES]; } yk_conv_tries;

static void add_try(yk_conv_tries *t, uint16_t x, uint16_t w, uint16_t y, yk_impl least) {
  t->ask[t->n] = (yk_conv_layouts){ x, w, y };
  t->least[t->n++] = least;
}

static void list_tries(const yk_conv *c, yk_conv_tries *t) {
  const uint16_t any = YK_LAYOUT_ANY;
  uint16_t x = usable(c->x->layout, YK_ROLE_PICTURE, 1), y = usable(c->y->layout, YK_ROLE_PICTURE, 1);
  uint16_t w = usable(c->w->layout, YK_ROLE_FILTER, c->groups), ww = w == YK_LAYOUT_PLAIN ? any : w;
  t->n = 0;
  if (c->dir == YK_PRIM_FWD) {
    add_try(t, x, ww, any, YK_IMPL_DIRECT);
    add_try(t, x, any, any, YK_IMPL_DIRECT);
    add_try(t, any, any, any, YK_IMPL_DIRECT);
    add_try(t, x, any, x, YK_IMPL_FAST);           /* from here on: copies around a matrix product, in any layout alike */
    add_try(t, x, w, x, YK_IMPL_FAST);
    add_try(t, any, any, any, YK_IMPL_FAST);
  } else if (c->dir == YK_PRIM_BWD_DATA) {
    add_try(t, any, ww, y, YK_IMPL_DIRECT);
    add_try(t, any, any, y, YK_IMPL_DIRECT);
    add_try(t, any, any, any, YK_IMPL_DIRECT);
    add_try(t, y, any, y, YK_IMPL_FAST);
    add_try(t, y, w, y, YK_IMPL_FAST);
    add_try(t, any, any, any, YK_IMPL_FAST);
  } else {
    uint16_t f = w != YK_LAYOUT_PLAIN ? w : forward_filter(c, x);
    add_try(t, x, f, y, YK_IMPL_DIRECT);
    add_try(t, x, any, y, YK_IMPL_DIRECT);
    add_try(t, x, f, any, YK_IMPL_DIRECT);
    add_try(t, any, f, y, YK_IMPL_DIRECT);
    add_try(t, any, f, any, YK_IMPL_DIRECT);
    add_try(t, any, any, any, YK_IMPL_DIRECT);
    add_try(t, x, any, y, YK_IMPL_FAST);
    add_try(t, x, w, y, YK_IMPL_FAST);
    add_try(t, any, any, any, YK_IMPL_FAST);
  }
}

/* With final layouts of the inputs little is left to ask: the output like the input, if oneDNN's own choice fails. */
static void list_fixed(const yk_conv *c, yk_conv_tries *t) {
  yk_conv_layouts l = { c->x->layout, c->w->layout, c->y->layout };
  if (c->dir == YK_PRIM_FWD) l.y = YK_LAYOUT_ANY;
  if (c->dir == YK_PRIM_BWD_DATA) l.x = YK_LAYOUT_ANY;
  if (c->dir == YK_PRIM_BWD_WEIGHTS) l.w = forward_filter(c, l.x);
  t->n = 0;
  add_try(t, l.x, l.w, l.y, YK_IMPL_FAST);
  if (c->dir == YK_PRIM_FWD) add_try(t, l.x, l.w, l.x, YK_IMPL_FAST);
  if (c->dir == YK_PRIM_BWD_DATA) add_try(t, l.y, l.w, l.y, YK_IMPL_FAST);
  if (c->dir == YK_PRIM_BWD_WEIGHTS) add_try(t, l.x, YK_LAYOUT_ANY, l.y, YK_IMPL_FAST);
}

static yk_code finish(yk_conv *c, dnnl_primitive_desc_t pd, yk_conv_layouts got, yk_dnnl_team team) {
  const int backward_data = c->dir == YK_PRIM_BWD_DATA, backward_filter = c->dir == YK_PRIM_BWD_WEIGHTS;
  yk_bind bind[] = {
    { backward_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, c->at_x },
    { backward_filter ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, c->at_w },
    { c->dir == YK_PRIM_FWD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, c->at_y },
    { backward_filter ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, c->at_bias },
  };
  YK_TRY(yk__dnnl_finish(c->p, pd, team, bind, c->bias ? 4 : 3));
  yk_kernel *k = c->p->k;
  for (uint32_t i = 0; i < k->nout; i++) k->out[i].layout = YK_LAYOUT_PLAIN;
  c->x->layout = got.x;
  c->w->layout = got.w;
  c->y->layout = got.y;
  if (c->bias) c->bias->layout = YK_LAYOUT_PLAIN;
  return YK_OK;
}

static yk_code settle(yk_conv *c) {
  YK_TRY(yk__dnnl_accepts(c->p));
  set_geometry(c);
  yk_code code = YK_OK;
  yk_conv_tries t;
  yk_dnnl_team team = yk__dnnl_team_begin(c->p, c->flops, c->bytes);
  if (c->p->spec->flags & YK_SPEC_FIXED) list_fixed(c, &t);
  else list_tries(c, &t);
  dnnl_primitive_desc_t pd = NULL;
  yk_conv_layouts got;
  for (int i = 0; i < t.n; i++) {
    code = attempt(c, t.ask[i], t.least[i], &pd, &got);
    if (code != YK_EUNSUPPORTED) break;
  }
  if (code == YK_OK) code = finish(c, pd, got, team);
  yk__dnnl_team_end(team);
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  return code;
}

/* ---- the ops ------------------------------------------------------------------------------------------------------ */

yk_code yk__cpu_dnnl_conv2d(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_conv c = { .p = p, .dir = YK_PRIM_FWD, .x = &k->in[0], .w = &k->in[1], .y = &k->out[0],
                .at_x = 0, .at_w = 1, .at_y = 2, .at_bias = -1 };
  return settle(&c);
}

yk_code yk__cpu_dnnl_conv2d_bias_act(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_conv2d_attrs *a = k->attrs ? k->attrs : &no_attrs;
  yk_conv c = { .p = p, .dir = YK_PRIM_FWD, .x = &k->in[0], .w = &k->in[1], .bias = &k->in[2], .y = &k->out[0],
                .at_x = 0, .at_w = 1, .at_bias = 2, .at_y = 3 };
  if (a->act != YK_ACT_NONE)
    YK_TRY(yk__dnnl_act(a->act, a->alpha, &c.prim.act, &c.prim.act_alpha, &c.prim.act_beta, &c.prim.act_scale));
  return settle(&c);
}

yk_code yk__cpu_dnnl_conv2d_grad_input(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_conv c = { .p = p, .dir = YK_PRIM_BWD_DATA, .y = &k->in[0], .w = &k->in[1], .x = &k->out[0],
                .at_y = 0, .at_w = 1, .at_x = 3, .at_bias = -1 };
  return settle(&c);
}

yk_code yk__cpu_dnnl_conv2d_grad_filter(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_conv c = { .p = p, .dir = YK_PRIM_BWD_WEIGHTS, .x = &k->in[0], .y = &k->in[1], .w = &k->out[0],
                .at_x = 0, .at_y = 1, .at_w = 3, .at_bias = -1 };
  k->out[0].layout = k->in[2].layout;               /* the variable's own, if it has settled */
  return settle(&c);
}

yk_code yk__cpu_dnnl_conv2d_grad_filter_bias(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_conv c = { .p = p, .dir = YK_PRIM_BWD_WEIGHTS, .x = &k->in[0], .y = &k->in[1], .w = &k->out[0], .bias = &k->out[1],
                .at_x = 0, .at_y = 1, .at_w = 3, .at_bias = 4 };
  k->out[0].layout = k->in[2].layout;
  return settle(&c);
}

yk_code yk__cpu_dnnl_conv2d_transpose(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_conv c = { .p = p, .dir = YK_PRIM_BWD_DATA, .y = &k->in[0], .w = &k->in[1], .x = &k->out[0],
                .at_y = 0, .at_w = 1, .at_x = 2, .at_bias = -1 };
  return settle(&c);
}
