/*
 * dnnl_matmul.c - matrix products through oneDNN.
 *
 * A transposed operand is the same memory with its strides exchanged, and batches over a common right operand are more rows,
 * so most products become one plain two-dimensional call. Dense layers (the fused forms) are also tried as oneDNN's inner
 * product, which may keep the weights in a blocked layout; that is taken only where it has code of its own for it, since
 * a matrix product that packs its operands itself gains nothing from it.
 */
#include "dnnl_kernel.h"
#include <string.h>

typedef struct yk_product {
  yk_cpu_prepare *p;
  const yk_matmul_attrs *a;
  yk_desc *left, *right, *bias, *out;
  int64_t m, n, k;                    /* rows (batches folded in where flat), columns, depth */
  int flat;                           /* one two-dimensional product */
  int64_t pitch;                      /* elements from row to row of the right operand: n, or more if it is copied first */
  double flops, bytes;
  yk_prim prim;                       /* carries the activation */
} yk_product;

static const yk_matmul_attrs no_attrs;

static void measure(yk_product *q) {
  const yk_desc *l = q->left, *r = q->right;
  q->a = q->p->k->attrs ? q->p->k->attrs : &no_attrs;
  uint32_t lr = l->rank, rr = r->rank;
  q->m = l->dim[q->a->transpose_a ? lr - 1 : lr - 2];
  q->k = l->dim[q->a->transpose_a ? lr - 2 : lr - 1];
  q->n = r->dim[q->a->transpose_b ? rr - 2 : rr - 1];
  int64_t batches = 1, shared = 1;
  for (uint32_t i = 0; i + 2 < lr; i++) batches *= l->dim[i];
  for (uint32_t i = 0; i + 2 < rr; i++) shared *= r->dim[i];
  q->flat = shared == 1 && (batches == 1 || !q->a->transpose_a);
  if (q->flat) q->m *= batches;
  int64_t elements = yk__cpu_count(l) + yk__cpu_count(r) + yk__cpu_count(q->out);
  q->flops = 2.0 * (double)yk__cpu_count(q->out) * (double)q->k;
  q->bytes = (double)elements * (double)yk__cpu_dtype_bytes(l->dtype);
}

/* ---- one matrix product, or a batch of them ------------------------------------------------------------------------ */

/* [..., rows, columns], `rank` dimensions with leading ones added, the last two exchanged if `transpose`. */
static int matrix_md(const yk_desc *d, uint32_t rank, int transpose, yk_md *out) {
  dnnl_dim_t dim[YK_MAX_RANK], stride[YK_MAX_RANK], run = 1;
  uint32_t lead = rank - d->rank;
  for (uint32_t i = rank; i-- > 0;) {
    dim[i] = i >= lead ? d->dim[i - lead] : 1;
    stride[i] = run;
    run *= dim[i];
  }
  if (transpose) {
    dnnl_dim_t x = dim[rank - 1], s = stride[rank - 1];
    dim[rank - 1] = dim[rank - 2];
    stride[rank - 1] = stride[rank - 2];
    dim[rank - 2] = x;
    stride[rank - 2] = s;
  }
  return yk__md_strides((int)rank, dim, stride, yk__layout_dtype(d->dtype), out);
}

/*
 * Rows of the right operand that are a multiple of 2 KiB apart fall into few sets of the cache, and oneDNN's own packing
 * then runs at half speed: 256x1024x1024 took 13 ms where 256x1000x1000 took 5.6. A copy with other distances costs about a
 * millisecond a million elements, which enough rows on the left pay for.
 */
enum { BAD_BYTES = 2048, PITCH_EXTRA = 16, ENOUGH_ROWS = 64 };

static int wants_copy(const yk_product *q) {
  return q->flat && !q->a->transpose_b && q->right->dtype == YK_F32 && q->n * (int64_t)sizeof(float) % BAD_BYTES == 0 &&
         q->m >= ENOUGH_ROWS && q->k >= ENOUGH_ROWS;
}

static int pitched_md(const yk_desc *d, int64_t rows, int64_t columns, int64_t pitch, yk_md *out) {
  const dnnl_dim_t dim[2] = { rows, columns }, stride[2] = { pitch, 1 };
  return yk__md_strides(2, dim, stride, yk__layout_dtype(d->dtype), out);
}

static int flat_md(const yk_desc *d, int64_t rows, int64_t columns, int transpose, yk_md *out) {
  yk_desc f = { .dtype = d->dtype, .rank = 2, .dim = { transpose ? columns : rows, transpose ? rows : columns } };
  return matrix_md(&f, 2, transpose, out);
}

static int bias_md(const yk_desc *d, uint32_t rank, yk_md *out) {
  return matrix_md(d, rank, 0, out);
}

static yk_code as_matmul(yk_product *q, dnnl_primitive_desc_t *out) {
  yk_md a = { 0 }, b = { 0 }, c = { 0 }, bias = { 0 };
  int ta = q->a->transpose_a, tb = q->a->transpose_b, rc;
  uint32_t rank = q->out->rank;
  if (q->flat) {
    rank = 2;
    rc = flat_md(q->left, q->m, q->k, ta, &a);
    if (!rc) rc = q->pitch > q->n ? pitched_md(q->right, q->k, q->n, q->pitch, &b) : flat_md(q->right, q->k, q->n, tb, &b);
    if (!rc) rc = flat_md(q->out, q->m, q->n, 0, &c);
  } else {
    rc = matrix_md(q->left, rank, ta, &a);
    if (!rc) rc = matrix_md(q->right, rank, tb, &b);
    if (!rc) rc = matrix_md(q->out, rank, 0, &c);
  }
  if (!rc && q->bias) rc = bias_md(q->bias, rank, &bias);
  yk_code code;
  if (rc) {
    code = YK_CPU_REFUSE("oneDNN takes no such matrix (status %d)", rc);
  } else {
    yk_prim prim = q->prim;
    prim.kind = YK_PRIM_MATMUL;
    prim.dir = YK_PRIM_FWD;
    prim.src = &a;
    prim.wei = &b;
    prim.dst = &c;
    prim.bias = q->bias ? &bias : NULL;
    code = yk__dnnl_describe(&prim, YK_IMPL_FAST, out);
  }
  yk__md_free(&a);
  yk__md_free(&b);
  yk__md_free(&c);
  yk__md_free(&bias);
  return code;
}

/* ---- dense layers: x [M,I] * w [I,O] -> y [M,O] ---------------------------------------------------------------------- */

typedef struct yk_dense { yk_prim_dir dir; int64_t m, i, o; yk_desc w; const yk_desc *bias; yk_prim prim; } yk_dense;

static yk_code dense_describe(const yk_dense *d, uint16_t layout, yk_impl least, dnnl_primitive_desc_t *out) {
  yk_md x = { 0 }, y = { 0 }, w = { 0 }, bias = { 0 };
  yk_desc wd = d->w;
  wd.layout = layout;
  int rc = flat_md(&d->w, d->m, d->i, 0, &x);
  if (!rc) rc = flat_md(&d->w, d->m, d->o, 0, &y);
  if (!rc && d->bias) rc = bias_md(d->bias, 1, &bias);
  yk_code code = rc ? YK_CPU_REFUSE("oneDNN takes no such matrix (status %d)", rc) : yk__layout_md(&wd, YK_ROLE_DENSE, 1, &w);
  if (code == YK_OK) {
    yk_prim prim = d->prim;
    prim.kind = YK_PRIM_DENSE;
    prim.dir = d->dir;
    prim.src = &x;
    prim.wei = &w;
    prim.dst = &y;
    prim.bias = d->bias && d->dir != YK_PRIM_BWD_DATA ? &bias : NULL;
    code = yk__dnnl_describe(&prim, least, out);
  }
  yk__md_free(&x);
  yk__md_free(&y);
  yk__md_free(&w);
  yk__md_free(&bias);
  return code;
}

/* Try the layer in weight layout `ask`; *got is what it has then. */
static yk_code dense_try(const yk_dense *d, uint16_t ask, yk_impl least, dnnl_primitive_desc_t *out, uint16_t *got) {
  dnnl_primitive_desc_t pd = NULL;
  yk_md w = { 0 };
  YK_TRY(dense_describe(d, ask, least, &pd));
  yk_code code = YK_OK;
  if (yk__desc_md(pd, d->dir == YK_PRIM_BWD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, &w))
    code = YK_CPU_FAIL(ENOMEM, "oneDNN ran out of memory while preparing");
  else
    code = yk__layout_of(&w, YK_ROLE_DENSE, 1, got);
  yk__md_free(&w);
  if (code != YK_OK) (void)dnnl_primitive_desc_destroy(pd);
  else *out = pd;
  return code;
}

static int is_dense_layout(uint16_t layout) {
  yk_role role;
  uint32_t groups;
  return yk__layout_role(layout, &role, &groups) && role == YK_ROLE_DENSE;
}

/* The layout in which the layer's forward pass would hold its weights. */
static uint16_t dense_forward_layout(const yk_dense *d) {
  yk_dense f = *d;
  dnnl_primitive_desc_t pd = NULL;
  uint16_t got = YK_LAYOUT_PLAIN;
  f.dir = YK_PRIM_FWD;
  if (dense_try(&f, YK_LAYOUT_ANY, YK_IMPL_DIRECT, &pd, &got) != YK_OK) return YK_LAYOUT_PLAIN;
  (void)dnnl_primitive_desc_destroy(pd);
  return got;
}

/* ---- the ops ------------------------------------------------------------------------------------------------------------ */

/* y = x*w: weights that are blocked already stay so; others become blocked if the layer is a fused one. */
static yk_code forward_dense(yk_product *q, yk_dnnl_team team) {
  yk_dense d = { .dir = YK_PRIM_FWD, .m = q->m, .i = q->k, .o = q->n, .w = *q->right, .bias = q->bias, .prim = q->prim };
  dnnl_primitive_desc_t pd = NULL;
  uint16_t offered = q->right->layout, got = 0;
  int fixed = (q->p->spec->flags & YK_SPEC_FIXED) != 0;
  yk_code code = YK_CPU_REFUSE("not a dense layer");
  if (!q->flat || q->a->transpose_a || q->a->transpose_b || q->right->rank != 2) return code;
  if (is_dense_layout(offered)) code = dense_try(&d, offered, YK_IMPL_DIRECT, &pd, &got);
  if (code != YK_OK && q->bias && !fixed) code = dense_try(&d, YK_LAYOUT_ANY, YK_IMPL_DIRECT, &pd, &got);
  if (code != YK_OK) return code;
  const int dst = q->bias ? 3 : 2;
  const yk_bind bind[] = { { DNNL_ARG_SRC, 0 }, { DNNL_ARG_WEIGHTS, 1 }, { DNNL_ARG_BIAS, 2 }, { DNNL_ARG_DST, dst } };
  code = yk__dnnl_finish(q->p, pd, team, bind, 4);
  (void)dnnl_primitive_desc_destroy(pd);
  if (code == YK_OK) q->right->layout = got;
  return code;
}

/* dx = dy*w^T with w blocked by the forward pass. */
static yk_code backward_dense(yk_product *q, yk_dnnl_team team) {
  yk_dense d = { .dir = YK_PRIM_BWD_DATA, .m = q->m, .i = q->n, .o = q->k, .w = *q->right };
  dnnl_primitive_desc_t pd = NULL;
  uint16_t got = 0;
  if (!q->flat || q->a->transpose_a || !q->a->transpose_b || q->bias || !is_dense_layout(q->right->layout))
    return YK_CPU_REFUSE("not the gradient of a dense layer");
  YK_TRY(dense_try(&d, q->right->layout, YK_IMPL_DIRECT, &pd, &got));
  static const yk_bind bind[] = { { DNNL_ARG_DIFF_DST, 0 }, { DNNL_ARG_WEIGHTS, 1 }, { DNNL_ARG_DIFF_SRC, 2 } };
  yk_code code = yk__dnnl_finish(q->p, pd, team, bind, 3);
  (void)dnnl_primitive_desc_destroy(pd);
  return code;
}

static yk_code plain_product(yk_product *q, yk_dnnl_team team) {
  dnnl_primitive_desc_t pd = NULL;
  YK_TRY(yk__cpu_want_plain(q->p));
  q->pitch = q->n;
  YK_TRY(as_matmul(q, &pd));
  if (wants_copy(q) && strncmp(yk__desc_impl(pd), "gemm", 4) == 0) {
    (void)dnnl_primitive_desc_destroy(pd);
    q->pitch = q->n + PITCH_EXTRA;
    YK_TRY(as_matmul(q, &pd));
  }
  const int dst = q->bias ? 3 : 2;
  const yk_bind bind[] = { { DNNL_ARG_SRC, 0 }, { DNNL_ARG_WEIGHTS, 1 }, { DNNL_ARG_BIAS, 2 }, { DNNL_ARG_DST, dst } };
  yk_code code = yk__dnnl_finish(q->p, pd, team, bind, 4);
  (void)dnnl_primitive_desc_destroy(pd);
  if (code == YK_OK && q->pitch > q->n)
    yk__dnnl_stage(q->p, 1, q->k, (size_t)q->n * sizeof(float), (size_t)q->pitch * sizeof(float));
  return code;
}

/* All inputs but the right operand plain; the output is. */
static yk_code others_plain(yk_product *q) {
  uint16_t keep = q->right->layout;
  q->right->layout = YK_LAYOUT_PLAIN;
  yk_code code = yk__cpu_want_plain(q->p);
  q->right->layout = keep;
  return code;
}

static yk_code product(yk_product *q) {
  YK_TRY(yk__dnnl_accepts(q->p));
  measure(q);
  if (q->bias && q->a->act != YK_ACT_NONE)
    YK_TRY(yk__dnnl_act(q->a->act, q->a->alpha, &q->prim.act, &q->prim.act_alpha, &q->prim.act_beta, &q->prim.act_scale));
  YK_TRY(others_plain(q));
  yk_dnnl_team team = yk__dnnl_team_begin(q->p, q->flops, q->bytes);
  yk_code code = forward_dense(q, team);
  if (code == YK_EUNSUPPORTED) code = backward_dense(q, team);
  if (code == YK_EUNSUPPORTED) code = plain_product(q, team);
  yk__dnnl_team_end(team);
  return code;
}

yk_code yk__cpu_dnnl_matmul(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_product q = { .p = p, .left = &k->in[0], .right = &k->in[1], .out = &k->out[0] };
  return product(&q);
}

yk_code yk__cpu_dnnl_matmul_bias_act(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_product q = { .p = p, .left = &k->in[0], .right = &k->in[1], .bias = &k->in[2], .out = &k->out[0] };
  return product(&q);
}

yk_code yk__cpu_dnnl_matmul_grad_bias(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_product q = { .p = p, .left = &k->in[0], .right = &k->in[1], .out = &k->out[0] };
  YK_TRY(yk__dnnl_accepts(p));
  measure(&q);
  if (!q.a->transpose_a || q.a->transpose_b || k->in[0].rank != 2 || k->in[1].rank != 2)
    return YK_CPU_REFUSE("not the weight gradient of a dense layer: x transposed, dy not, both matrices");
  YK_TRY(yk__cpu_want_plain(p));
  yk_dense d = { .dir = YK_PRIM_BWD_WEIGHTS, .m = q.k, .i = q.m, .o = q.n, .w = k->out[0], .bias = &k->out[1] };
  dnnl_primitive_desc_t pd = NULL;
  uint16_t got = 0;
  yk_dnnl_team team = yk__dnnl_team_begin(p, q.flops, q.bytes);
  yk_code code = dense_try(&d, dense_forward_layout(&d), YK_IMPL_DIRECT, &pd, &got);
  if (code == YK_EUNSUPPORTED) code = dense_try(&d, YK_LAYOUT_PLAIN, YK_IMPL_FAST, &pd, &got);
  static const yk_bind bind[] = { { DNNL_ARG_SRC, 0 }, { DNNL_ARG_DIFF_DST, 1 }, { DNNL_ARG_DIFF_WEIGHTS, 2 },
                                  { DNNL_ARG_DIFF_BIAS, 3 } };
  if (code == YK_OK) code = yk__dnnl_finish(p, pd, team, bind, 4);
  yk__dnnl_team_end(team);
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  if (code == YK_OK) k->out[0].layout = got;
  return code;
}
