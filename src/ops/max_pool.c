/*
 * max_pool.c - the largest cell under each window, and the gradient, which goes to that cell.
 *
 * `index` remembers which cell it was, counted over the whole window in reading order with padding cells counted too;
 * among equals the first one wins.
 */
#include <yoke/nn.h>
#include "ops/pool.h"

static int index_type(const yk_pool *p) { return p->at[0].size * p->at[1].size <= 256 ? YK_U8 : YK_I32; }

static yk_code infer(const yk_infer *c) {
  yk_pool p;
  YK_TRY(yk__pool_of(c->attrs, &c->in[0], &p));
  c->out[0] = p.y;
  c->out[1] = yk__as(&p.y, index_type(&p));
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  if (c->dout[0].id) c->din[0] = YK__OPA(c, max_pool_grad, c->attrs, 3, c->dout[0], c->out[1], c->in[0]);
  return YK_OK;
}

/* The first maximum under output cell `cell` = { n, row, column, channel }, and its place in the window. */
static double first_max(const yk_pool *p, const yk_desc *x, const double *v, const int64_t *cell, int64_t *index) {
  int64_t r0, r1, c0, c1, at[YK_MAX_RANK] = { cell[0], 0, 0, cell[3] };
  double best = -INFINITY;
  yk__pool_range(&p->at[0], cell[1], &r0, &r1);
  yk__pool_range(&p->at[1], cell[2], &c0, &c1);
  *index = -1;
  for (at[1] = r0; at[1] < r1; at[1]++)
    for (at[2] = c0; at[2] < c1; at[2]++) {
      double value = v[yk__ravel(x, at)];
      if (*index >= 0 && !(value > best)) continue;
      best = value;
      *index = (at[1] - yk__window_start(&p->at[0], cell[1])) * p->at[1].size + at[2] - yk__window_start(&p->at[1], cell[2]);
    }
  return best;
}

static yk_code ref(const yk_ref *c) {
  int64_t cell[YK_MAX_RANK], index = 0, n = yk__desc_count(&c->dout[0]);
  yk_pool p;
  YK_TRY(yk__pool_of(c->attrs, &c->din[0], &p));
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&p.y, i, cell);
    c->out[0][i] = first_max(&p, &c->din[0], c->in[0], cell, &index);
    c->out[1][i] = (double)index;
  }
  return YK_OK;
}

static const yk_pool_attrs large = { .window = { 17, 16 }, .stride = { 1, 1 } };
static const yk_case cases[] = {
  { "T[2,6,6,4]", &yk__pool_2x2, 0, 0, 0 },          { "T[2,7,9,3]", &yk__pool_3x3_s2, 0, 0, 0 },
  { "T[1,6,5,64]", &yk__pool_3x3_s2, 0, 0, 0 },      { "T[0,6,6,3]", &yk__pool_3x3_s2, 0, 0, 0 },
  { "T[2,5,5,19]", &yk__pool_3x2_s1_valid, 0, 0, 0 }, { "T[2,8,7,8]", &yk__pool_3x3_s2_valid, 0, 0, 0 },
  { "T[1,8,5,1]", &yk__pool_2x3_s3_same, 0, 0, 0 },  { "T[2,6,7,16]", &yk__pool_explicit, 0, 0, 0 },
  { "T[1,4,3,2]", NULL, 0, 0, 0 },                   { "T[1,4,5,1]", &large, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_max_pool = {
  .name = "max_pool", .label = "MaxPool", .doc = "Largest cell under each window of x [N,H,W,C], and which one it was.",
  .version = 1, .attr_bytes = sizeof(yk_pool_attrs), .traits = YK_PURE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "index", YK_T(YK_U8) | YK_T(YK_I32), 0, 0 }, { 0 } },
  .attrs = yk__pool_attrs, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- max_pool_grad: dy, index, like x -> dx ------------------------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  char td[YK__DESC_TEXT], ti[YK__DESC_TEXT];
  yk_pool p;
  YK_TRY(yk__pool_of_grad(c->attrs, &c->in[2], &c->in[0], &p));
  if (c->in[1].dtype != index_type(&p))
    return YK_FAIL(EINVAL, "index is %s, expected %s for a window of %lld by %lld", yk__desc_text(&c->in[1], ti, sizeof ti),
                   yk_dtype_name((yk_dtype)index_type(&p)), (long long)p.at[0].size, (long long)p.at[1].size);
  for (int i = 0; i < 4; i++)
    if (c->in[1].rank != 4 || yk__dims_clash(c->in[1].dim[i], c->in[0].dim[i]))
      return YK_FAIL(EINVAL, "index is %s, expected the shape of dy %s", yk__desc_text(&c->in[1], ti, sizeof ti),
                     yk__desc_text(&c->in[0], td, sizeof td));
  c->out[0] = yk__as(&c->in[2], c->in[0].dtype);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through max_pool are not available");
}

static yk_code ref_grad(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->din[0]);
  yk_pool p;
  YK_TRY(yk__pool_of_grad(c->attrs, &c->din[2], &c->din[0], &p));
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < n; i++) {
    int64_t cell[YK_MAX_RANK], index = (int64_t)c->in[1][i];
    yk__unravel(&p.y, i, cell);
    cell[1] = yk__window_start(&p.at[0], cell[1]) + index / p.at[1].size;
    cell[2] = yk__window_start(&p.at[1], cell[2]) + index % p.at[1].size;
    if (cell[1] < 0 || cell[1] >= p.at[0].in || cell[2] < 0 || cell[2] >= p.at[1].in) continue;   /* no maximum lies there */
    c->out[0][yk__ravel(&c->dout[0], cell)] += c->in[0][i];
  }
  return YK_OK;
}

/* Values from 0 to 3 are cells of the first row or two of each window; none leaves a picture without padding. */
static const yk_case cases_grad[] = {
  { "T[2,3,3,4]; u8[2,3,3,4]; T[2,6,6,4]", &yk__pool_2x2, 0, 3, 0 },
  { "T[2,3,4,3]; u8[2,3,4,3]; T[2,7,9,3]", &yk__pool_3x3_s2_valid, 0, 3, 0 },
  { "T[0,3,4,3]; u8[0,3,4,3]; T[0,7,9,3]", &yk__pool_3x3_s2_valid, 0, 3, 0 },
  { "T[2,3,4,19]; u8[2,3,4,19]; T[2,5,5,19]", &yk__pool_3x2_s1_valid, 0, 3, 0 },
  { 0 },
};

const yk_op yk__op_max_pool_grad = {
  .name = "max_pool_grad", .label = "MaxPoolGrad", .doc = "Gradient of max_pool: dy goes to the cell that was largest.",
  .version = 1, .attr_bytes = sizeof(yk_pool_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, { "index", YK_T(YK_U8) | YK_T(YK_I32), YK_PORT_NODIFF, 0 },
                           { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 } },
  .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } },
  .attrs = yk__pool_attrs, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_max_pool_at(const char *where, yk_graph *g, yk_value x, const yk_pool_attrs *attrs) {
  return yk__build(where, g, &yk__op_max_pool, attrs, 1, x);
}

yk_value yk_global_max_pool_at(const char *where, yk_graph *g, yk_value x) {
  return yk__build(where, g, &yk__op_reduce_max, &(yk_reduce_attrs){ .naxes = 2, .axis = { 1, 2 } }, 1, x);
}
