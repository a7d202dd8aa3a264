/*
 * dnnl_pool.c - pooling through oneDNN.
 *
 * The index output of max_pool is oneDNN's workspace: the cell of the window, counted as the op does, u8 or i32. It has the
 * layout of the picture, so max_pool_grad follows the index, and dy, whichever layout it has, is brought to that.
 */
#include "dnnl_kernel.h"
#include "padding.h"

static const yk_pool_attrs no_attrs;

void yk__dnnl_pool_geometry(const yk_pool_attrs *a, const yk_desc *x, const yk_desc *y, yk_prim *q) {
  if (!a) a = &no_attrs;
  q->kind = YK_PRIM_POOL;
  for (int i = 0; i < 2; i++) {
    int64_t window = a->window[i] ? a->window[i] : 1, stride = a->stride[i] ? a->stride[i] : window;
    yk_edges pad = yk__cpu_padding(a->padding, x->dim[1 + i], y->dim[1 + i], window, stride, &a->pad[2 * i]);
    q->window[i] = window;
    q->stride[i] = stride;
    q->dilate[i] = 0;
    q->pad_lo[i] = pad.before;
    q->pad_hi[i] = pad.after;
  }
}

/* Describe the pooling with both pictures in `layout`. */
static yk_code describe(const yk_kernel *k, yk_prim q, const yk_desc *x, const yk_desc *y, uint16_t layout,
                        dnnl_primitive_desc_t *out) {
  yk_desc xd = *x, yd = *y;
  yk_md xm = { 0 }, ym = { 0 };
  xd.layout = yd.layout = layout;
  yk__dnnl_pool_geometry(k->attrs, x, y, &q);
  YK_TRY(yk__layout_md(&xd, YK_ROLE_PICTURE, 1, &xm));
  yk_code code = yk__layout_md(&yd, YK_ROLE_PICTURE, 1, &ym);
  if (code == YK_OK) {
    q.src = &xm;
    q.dst = &ym;
    code = yk__dnnl_describe(&q, YK_IMPL_FAST, out);
  }
  yk__md_free(&xm);
  yk__md_free(&ym);
  return code;
}

/* Is the primitive's workspace the op's index: of its dtype, in the layout of the picture? */
static yk_code check_index(const_dnnl_primitive_desc_t pd, const yk_desc *index, uint16_t layout) {
  yk_md md = { 0 };
  uint16_t got = 0;
  if (yk__desc_md(pd, DNNL_ARG_WORKSPACE, &md)) return YK_CPU_FAIL(ENOMEM, "oneDNN ran out of memory while preparing");
  yk_code code;
  dnnl_data_type_t want = yk__layout_dtype(index->dtype);
  if (!yk__md_is_set(&md)) code = YK_CPU_REFUSE("oneDNN keeps no index here");
  else if ((dnnl_data_type_t)yk__md_dtype(&md) != want) code = YK_CPU_REFUSE("oneDNN's index has another dtype");
  else code = yk__layout_of(&md, YK_ROLE_PICTURE, 1, &got);
  if (code == YK_OK && got != layout) code = YK_CPU_REFUSE("oneDNN keeps its index in a layout of its own");
  yk__md_free(&md);
  return code;
}

/* A picture's offered layout, or plain if it is another role's. Refuses if that would change a final one. */
static yk_code follow(const yk_cpu_prepare *p, const yk_desc *d, uint16_t *out) {
  yk_role role;
  uint32_t groups;
  *out = d->layout;
  if (d->layout == YK_LAYOUT_PLAIN || (yk__layout_role(d->layout, &role, &groups) && role == YK_ROLE_PICTURE)) return YK_OK;
  if (p->spec->flags & YK_SPEC_FIXED) return YK_CPU_REFUSE("layout %u is none of pictures", (unsigned)d->layout);
  *out = YK_LAYOUT_PLAIN;
  return YK_OK;
}

/* One op: its pictures, its index if it has one, and the value whose layout all of them take. */
typedef struct yk_pooling { yk_prim_dir dir; dnnl_alg_kind_t alg; yk_desc *x, *y, *index, *lead; } yk_pooling;

static yk_code prepare(yk_cpu_prepare *p, const yk_pooling *o, const yk_bind *bind, int nbind) {
  yk_kernel *k = p->k;
  dnnl_primitive_desc_t pd = NULL;
  uint16_t layout;
  YK_TRY(yk__dnnl_accepts(p));
  YK_TRY(follow(p, o->lead, &layout));
  if ((p->spec->flags & YK_SPEC_FIXED) && k->in[0].layout != layout) return YK_CPU_REFUSE("dy and index differ in layout");
  yk_prim prim = { .dir = o->dir, .alg = o->alg };
  double bytes = (double)(yk__cpu_count(o->x) + yk__cpu_count(o->y)) * (double)yk__cpu_dtype_bytes(o->x->dtype);
  yk_dnnl_team team = yk__dnnl_team_begin(p, 0.0, bytes);
  yk_code code = describe(k, prim, o->x, o->y, layout, &pd);
  if (code == YK_OK && o->index) code = check_index(pd, o->index, layout);
  if (code == YK_OK) code = yk__dnnl_finish(p, pd, team, bind, nbind);
  yk__dnnl_team_end(team);
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  if (code != YK_OK) return code;
  o->x->layout = o->y->layout = layout;
  if (o->index) o->index->layout = layout;
  return YK_OK;
}

/* Where the processor has bf16 instructions, oneDNN adds what overlapping windows send to a cell in bf16, rounding each sum. */
static yk_code check_sums(const yk_kernel *k) {
  yk_prim q = { .dir = YK_PRIM_BWD };
  yk__dnnl_pool_geometry(k->attrs, &k->out[0], &k->in[0], &q);
  if (k->in[0].dtype != YK_BF16 || (q.stride[0] >= q.window[0] && q.stride[1] >= q.window[1])) return YK_OK;
  return YK_CPU_REFUSE("oneDNN may add overlapping windows in bf16");
}

yk_code yk__cpu_dnnl_max_pool(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_pooling o = { YK_PRIM_FWD, dnnl_pooling_max, &k->in[0], &k->out[0], &k->out[1], &k->in[0] };
  static const yk_bind bind[] = { { DNNL_ARG_SRC, 0 }, { DNNL_ARG_DST, 1 }, { DNNL_ARG_WORKSPACE, 2 } };
  /* Where the processor has bf16 instructions, oneDNN writes two numbers of cells into the place of one. */
  if (k->out[1].dtype == YK_I32 && k->in[0].dtype == YK_BF16) return YK_CPU_REFUSE("a large window in bf16");
  if (k->out[1].dtype == YK_I32 && yk__cpu_layout_padded(&k->in[0])) {
    /* With windows that large oneDNN leaves the lowest float in channels that are padding. */
    if (p->spec->flags & YK_SPEC_FIXED) return YK_CPU_REFUSE("a large window over padded channels");
    k->in[0].layout = YK_LAYOUT_PLAIN;
  }
  return prepare(p, &o, bind, 3);
}

yk_code yk__cpu_dnnl_max_pool_grad(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_pooling o = { YK_PRIM_BWD, dnnl_pooling_max, &k->out[0], &k->in[0], &k->in[1], &k->in[1] };
  static const yk_bind bind[] = { { DNNL_ARG_DIFF_DST, 0 }, { DNNL_ARG_WORKSPACE, 1 }, { DNNL_ARG_DIFF_SRC, 3 } };
  YK_TRY(check_sums(k));
  return prepare(p, &o, bind, 3);
}

yk_code yk__cpu_dnnl_avg_pool(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_pooling o = { YK_PRIM_INFER, dnnl_pooling_avg_exclude_padding, &k->in[0], &k->out[0], NULL, &k->in[0] };
  static const yk_bind bind[] = { { DNNL_ARG_SRC, 0 }, { DNNL_ARG_DST, 1 } };
  return prepare(p, &o, bind, 2);
}

yk_code yk__cpu_dnnl_avg_pool_grad(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_pooling o = { YK_PRIM_BWD, dnnl_pooling_avg_exclude_padding, &k->out[0], &k->in[0], NULL, &k->in[0] };
  static const yk_bind bind[] = { { DNNL_ARG_DIFF_DST, 0 }, { DNNL_ARG_DIFF_SRC, 2 } };
  YK_TRY(check_sums(k));
  return prepare(p, &o, bind, 2);
}
