/*
 * dnnl_compat.c - the only file that knows which oneDNN it is compiled against.
 *
 * Upper half: memory descriptors, twice. Lower half: one describe_<kind> function a primitive, where the two versions differ
 * by the name of the call and the order of its arguments. A backward primitive needs its forward one as a hint; it is
 * made here from the same descriptors and dropped at once.
 */
#include "dnnl_compat.h"
#include <string.h>
#include <yoke/tensor.h>

/* ---- memory descriptors ---------------------------------------------------------------------------------------- */

#if DNNL_VERSION_MAJOR >= 3

#define MD(p) ((p) ? (p)->d : NULL)

int yk__md_tag(int nd, const dnnl_dim_t *dim, dnnl_data_type_t t, int tag, yk_md *out) {
  return (int)dnnl_memory_desc_create_with_tag(&out->d, nd, dim, t, (dnnl_format_tag_t)tag);
}

int yk__md_strides(int nd, const dnnl_dim_t *dim, const dnnl_dim_t *stride, dnnl_data_type_t t, yk_md *out) {
  return (int)dnnl_memory_desc_create_with_strides(&out->d, nd, dim, t, stride);
}

int yk__md_copy(const yk_md *md, yk_md *out) {
  return (int)dnnl_memory_desc_clone(&out->d, md->d);
}

void yk__md_free(yk_md *md) {
  if (md->d) (void)dnnl_memory_desc_destroy(md->d);
  md->d = NULL;
}

int yk__md_is_set(const yk_md *md) {
  return md->d != NULL && dnnl_memory_desc_get_size(md->d) > 0;
}

size_t yk__md_bytes(const yk_md *md) {
  return md->d ? dnnl_memory_desc_get_size(md->d) : 0;
}

int yk__md_dtype(const yk_md *md) {
  dnnl_data_type_t t = dnnl_data_type_undef;
  (void)dnnl_memory_desc_query(md->d, dnnl_query_data_type, &t);
  return (int)t;
}

int yk__md_info(const yk_md *md, yk_md_info *out) {
  const_dnnl_memory_desc_t d = md->d;
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  dnnl_dims_t *dim = NULL, *padded = NULL, *stride = NULL, *block = NULL, *index = NULL;
  if (!d) return 1;
  if (dnnl_memory_desc_query(d, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked) return 1;
  if (dnnl_memory_desc_query(d, dnnl_query_ndims_s32, &out->ndims) != dnnl_success ||
      dnnl_memory_desc_query(d, dnnl_query_dims, &dim) != dnnl_success ||
      dnnl_memory_desc_query(d, dnnl_query_padded_dims, &padded) != dnnl_success ||
      dnnl_memory_desc_query(d, dnnl_query_strides, &stride) != dnnl_success ||
      dnnl_memory_desc_query(d, dnnl_query_inner_nblks_s32, &out->nblocks) != dnnl_success ||
      dnnl_memory_desc_query(d, dnnl_query_inner_blks, &block) != dnnl_success ||
      dnnl_memory_desc_query(d, dnnl_query_inner_idxs, &index) != dnnl_success)
    return 1;
  for (int i = 0; i < out->ndims; i++) {
    out->dim[i] = (*dim)[i];
    out->padded[i] = (*padded)[i];
    out->stride[i] = (*stride)[i];
  }
  for (int i = 0; i < out->nblocks; i++) {
    out->block[i] = (*block)[i];
    out->index[i] = (int)(*index)[i];
  }
  return 0;
}

static int query_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index, yk_md *out) {
  const_dnnl_memory_desc_t d = dnnl_primitive_desc_query_md(pd, what, index);
  yk_md none = { NULL };
  *out = none;
  return d ? (int)dnnl_memory_desc_clone(&out->d, d) : 0;
}

int yk__memory(const yk_md *md, dnnl_engine_t engine, dnnl_memory_t *out) {
  return (int)dnnl_memory_create(out, md->d, engine, DNNL_MEMORY_NONE);
}

int yk__memory_point(dnnl_memory_t m, void *data, dnnl_stream_t stream) {
  (void)stream;
  return (int)dnnl_memory_set_data_handle(m, data);
}

#else

#define MD(p) ((p) ? &(p)->d : NULL)

int yk__md_tag(int nd, const dnnl_dim_t *dim, dnnl_data_type_t t, int tag, yk_md *out) {
  return (int)dnnl_memory_desc_init_by_tag(&out->d, nd, dim, t, (dnnl_format_tag_t)tag);
}

int yk__md_strides(int nd, const dnnl_dim_t *dim, const dnnl_dim_t *stride, dnnl_data_type_t t, yk_md *out) {
  return (int)dnnl_memory_desc_init_by_strides(&out->d, nd, dim, t, stride);
}

int yk__md_copy(const yk_md *md, yk_md *out) {
  *out = *md;
  return 0;
}

void yk__md_free(yk_md *md) {
  memset(md, 0, sizeof *md);
}

int yk__md_is_set(const yk_md *md) {
  return md->d.ndims > 0;
}

size_t yk__md_bytes(const yk_md *md) {
  return md->d.ndims > 0 ? dnnl_memory_desc_get_size(&md->d) : 0;
}

int yk__md_dtype(const yk_md *md) {
  return (int)md->d.data_type;
}

int yk__md_info(const yk_md *md, yk_md_info *out) {
  const dnnl_memory_desc_t *d = &md->d;
  const dnnl_blocking_desc_t *b = &d->format_desc.blocking;
  if (d->ndims <= 0 || d->format_kind != dnnl_blocked || d->extra.flags != 0 || d->offset0 != 0) return 1;
  out->ndims = d->ndims;
  out->nblocks = b->inner_nblks;
  for (int i = 0; i < d->ndims; i++) {
    out->dim[i] = d->dims[i];
    out->padded[i] = d->padded_dims[i];
    out->stride[i] = b->strides[i];
  }
  for (int i = 0; i < b->inner_nblks; i++) {
    out->block[i] = b->inner_blks[i];
    out->index[i] = (int)b->inner_idxs[i];
  }
  return 0;
}

static int query_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what, int index, yk_md *out) {
  const dnnl_memory_desc_t *d = dnnl_primitive_desc_query_md(pd, what, index);
  memset(out, 0, sizeof *out);
  if (d) out->d = *d;
  return 0;
}

int yk__memory(const yk_md *md, dnnl_engine_t engine, dnnl_memory_t *out) {
  return (int)dnnl_memory_create(out, &md->d, engine, DNNL_MEMORY_NONE);
}

int yk__memory_point(dnnl_memory_t m, void *data, dnnl_stream_t stream) {
  return (int)dnnl_memory_set_data_handle_v2(m, data, stream);
}

#endif

int yk__md_same(const yk_md *a, const yk_md *b) {
  yk_md_info x, y;
  if (yk__md_info(a, &x) || yk__md_info(b, &y)) return 0;
  if (x.ndims != y.ndims || x.nblocks != y.nblocks) return 0;
  dnnl_dim_t inner[YK__MD_MAX];
  for (int i = 0; i < x.ndims; i++) inner[i] = 1;
  for (int i = 0; i < x.nblocks; i++) {
    if (x.block[i] != y.block[i] || x.index[i] != y.index[i]) return 0;
    inner[x.index[i]] *= x.block[i];
  }
  for (int i = 0; i < x.ndims; i++) {
    if (x.dim[i] != y.dim[i] || x.padded[i] != y.padded[i]) return 0;
    if (x.padded[i] > inner[i] && x.stride[i] != y.stride[i]) return 0;
  }
  return 1;
}

int yk__desc_md(const_dnnl_primitive_desc_t pd, int arg, yk_md *out) {
  return query_md(pd, dnnl_query_exec_arg_md, arg, out);
}

size_t yk__desc_scratch(const_dnnl_primitive_desc_t pd) {
  yk_md md;
  if (query_md(pd, dnnl_query_scratchpad_md, 0, &md)) return 0;
  size_t bytes = yk__md_bytes(&md);
  yk__md_free(&md);
  return bytes;
}

const char *yk__desc_impl(const_dnnl_primitive_desc_t pd) {
  const char *s = NULL;
  if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &s) != dnnl_success || !s) return "";
  return s;
}

/* ---- primitives -------------------------------------------------------------------------------------------------- */

static dnnl_prop_kind_t forward_kind(const yk_prim *p) {
  return p->dir == YK_PRIM_INFER ? dnnl_forward_inference : dnnl_forward_training;
}

#if DNNL_VERSION_MAJOR >= 3

#define V3(call) return (int)(call)

static int describe_conv(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                         dnnl_primitive_desc_t *out) {
  const_dnnl_memory_desc_t s = MD(p->src), w = MD(p->wei), b = MD(p->bias), d = MD(p->dst);
  if (p->dir == YK_PRIM_BWD_DATA)
    V3(dnnl_convolution_backward_data_primitive_desc_create(out, e, p->alg, s, w, d, p->stride, p->dilate, p->pad_lo,
                                                            p->pad_hi, hint, a));
  if (p->dir == YK_PRIM_BWD_WEIGHTS)
    V3(dnnl_convolution_backward_weights_primitive_desc_create(out, e, p->alg, s, w, b, d, p->stride, p->dilate, p->pad_lo,
                                                               p->pad_hi, hint, a));
  V3(dnnl_convolution_forward_primitive_desc_create(out, e, forward_kind(p),
                                                    p->alg, s, w, b, d, p->stride, p->dilate, p->pad_lo, p->pad_hi, a));
}

static int describe_dense(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                          dnnl_primitive_desc_t *out) {
  const_dnnl_memory_desc_t s = MD(p->src), w = MD(p->wei), b = MD(p->bias), d = MD(p->dst);
  if (p->dir == YK_PRIM_BWD_DATA) V3(dnnl_inner_product_backward_data_primitive_desc_create(out, e, s, w, d, hint, a));
  if (p->dir == YK_PRIM_BWD_WEIGHTS) V3(dnnl_inner_product_backward_weights_primitive_desc_create(out, e, s, w, b, d, hint, a));
  V3(dnnl_inner_product_forward_primitive_desc_create(out, e, dnnl_forward_training, s, w, b, d, a));
}

static int describe_matmul(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                           dnnl_primitive_desc_t *out) {
  (void)hint;
  V3(dnnl_matmul_primitive_desc_create(out, e, MD(p->src), MD(p->wei), MD(p->bias), MD(p->dst), a));
}

static int describe_pool(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                         dnnl_primitive_desc_t *out) {
  if (p->dir == YK_PRIM_BWD)
    V3(dnnl_pooling_backward_primitive_desc_create(out, e, p->alg, MD(p->src), MD(p->dst), p->stride, p->window, p->dilate,
                                                   p->pad_lo, p->pad_hi, hint, a));
  V3(dnnl_pooling_forward_primitive_desc_create(out, e, forward_kind(p),
                                                p->alg, MD(p->src), MD(p->dst), p->stride, p->window, p->dilate, p->pad_lo,
                                                p->pad_hi, a));
}

static int append_act(dnnl_post_ops_t ops, const yk_prim *p) {
  int rc = (int)dnnl_post_ops_append_eltwise(ops, p->act, p->act_alpha, p->act_beta);
  if (rc || p->act_scale == 1.0f) return rc;
  return (int)dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_linear, p->act_scale, 0.0f);
}

dnnl_alg_kind_t yk__alg_softplus(float *alpha) {
  *alpha = 1.0f;
  return dnnl_eltwise_soft_relu;
}

#else

/* Finish a description of the 2.x kind: `rc` is what <kind>_desc_init returned. */
#define V2(init, desc) \
  do {                 \
    int rc_ = (int)(init); \
    return rc_ ? rc_ : (int)dnnl_primitive_desc_create(out, &(desc), a, e, hint); \
  } while (0)

static int describe_conv(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                         dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t c;
  const dnnl_memory_desc_t *s = MD(p->src), *w = MD(p->wei), *b = MD(p->bias), *d = MD(p->dst);
  if (p->dir == YK_PRIM_BWD_DATA)
    V2(dnnl_dilated_convolution_backward_data_desc_init(&c, p->alg, s, w, d, p->stride, p->dilate, p->pad_lo, p->pad_hi), c);
  if (p->dir == YK_PRIM_BWD_WEIGHTS)
    V2(dnnl_dilated_convolution_backward_weights_desc_init(&c, p->alg, s, w, b, d, p->stride, p->dilate, p->pad_lo, p->pad_hi),
       c);
  V2(dnnl_dilated_convolution_forward_desc_init(&c, forward_kind(p),
                                                p->alg, s, w, b, d, p->stride, p->dilate, p->pad_lo, p->pad_hi), c);
}

static int describe_dense(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                          dnnl_primitive_desc_t *out) {
  dnnl_inner_product_desc_t c;
  const dnnl_memory_desc_t *s = MD(p->src), *w = MD(p->wei), *b = MD(p->bias), *d = MD(p->dst);
  if (p->dir == YK_PRIM_BWD_DATA) V2(dnnl_inner_product_backward_data_desc_init(&c, s, w, d), c);
  if (p->dir == YK_PRIM_BWD_WEIGHTS) V2(dnnl_inner_product_backward_weights_desc_init(&c, s, w, b, d), c);
  V2(dnnl_inner_product_forward_desc_init(&c, dnnl_forward_training, s, w, b, d), c);
}

static int describe_matmul(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                           dnnl_primitive_desc_t *out) {
  dnnl_matmul_desc_t c;
  V2(dnnl_matmul_desc_init(&c, MD(p->src), MD(p->wei), MD(p->bias), MD(p->dst)), c);
}

static int describe_pool(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                         dnnl_primitive_desc_t *out) {
  dnnl_pooling_desc_t c;
  if (p->dir == YK_PRIM_BWD)
    V2(dnnl_pooling_backward_desc_init(&c, p->alg, MD(p->src), MD(p->dst), p->stride, p->window, p->pad_lo, p->pad_hi), c);
  V2(dnnl_pooling_forward_desc_init(&c, forward_kind(p), p->alg,
                                    MD(p->src), MD(p->dst), p->stride, p->window, p->pad_lo, p->pad_hi), c);
}

static int append_act(dnnl_post_ops_t ops, const yk_prim *p) {
  return (int)dnnl_post_ops_append_eltwise(ops, p->act_scale, p->act, p->act_alpha, p->act_beta);
}

dnnl_alg_kind_t yk__alg_softplus(float *alpha) {
  *alpha = 0.0f;
  return dnnl_eltwise_soft_relu;
}

#endif

static int describe_reorder(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t hint,
                            dnnl_primitive_desc_t *out) {
  (void)hint;
  return (int)dnnl_reorder_primitive_desc_create(out, MD(p->src), e, MD(p->dst), e, a);
}

typedef int (*describe_fn)(dnnl_engine_t, const yk_prim *, dnnl_primitive_attr_t, dnnl_primitive_desc_t, dnnl_primitive_desc_t *);
static const describe_fn describe[] = {
  [YK_PRIM_CONV] = describe_conv,       [YK_PRIM_DENSE] = describe_dense, [YK_PRIM_MATMUL] = describe_matmul,
  [YK_PRIM_POOL] = describe_pool,       [YK_PRIM_REORDER] = describe_reorder,
};

/* The forward primitive whose gradient p is. */
static int describe_hint(dnnl_engine_t e, const yk_prim *p, dnnl_primitive_attr_t a, dnnl_primitive_desc_t *out) {
  yk_prim f = *p;
  *out = NULL;
  if (p->dir == YK_PRIM_FWD || p->dir == YK_PRIM_INFER) return 0;
  f.dir = YK_PRIM_FWD;
  return describe[p->kind](e, &f, a, NULL, out);
}

static int make_attr(const yk_prim *p, dnnl_primitive_attr_t *out) {
  dnnl_primitive_attr_t a = NULL;
  dnnl_post_ops_t ops = NULL;
  int rc = (int)dnnl_primitive_attr_create(&a);
  if (!rc) rc = (int)dnnl_primitive_attr_set_scratchpad_mode(a, dnnl_scratchpad_mode_user);
  if (!rc && p->act) {
    rc = (int)dnnl_post_ops_create(&ops);
    if (!rc) rc = append_act(ops, p);
    if (!rc) rc = (int)dnnl_primitive_attr_set_post_ops(a, ops);
    if (ops) (void)dnnl_post_ops_destroy(ops);
  }
  if (rc && a) (void)dnnl_primitive_attr_destroy(a);
  if (!rc) *out = a;
  return rc;
}

int yk__prim_desc(dnnl_engine_t engine, const yk_prim *p, dnnl_primitive_desc_t *out) {
  dnnl_primitive_attr_t a = NULL;
  dnnl_primitive_desc_t hint = NULL, pd = NULL;
  int rc = make_attr(p, &a);
  if (rc) return rc;
  rc = describe_hint(engine, p, a, &hint);
  if (!rc) rc = describe[p->kind](engine, p, a, hint, &pd);
  if (hint) (void)dnnl_primitive_desc_destroy(hint);
  (void)dnnl_primitive_attr_destroy(a);
  if (!rc) *out = pd;
  return rc;
}

/* ---- the processor ------------------------------------------------------------------------------------------------ */

static int has_isa(dnnl_cpu_isa_t what) {
  return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)what) == (unsigned)what;
}

unsigned yk__dnnl_fast_types(void) {
  unsigned types = has_isa(dnnl_cpu_isa_avx512_core_bf16) ? 1u << YK_BF16 : 0;
#if DNNL_VERSION_MAJOR >= 3
  if (has_isa(dnnl_cpu_isa_avx512_core_fp16)) types |= 1u << YK_F16;
#endif
  return types;
}
