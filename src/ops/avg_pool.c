/*
 * avg_pool.c - the mean of the cells under each window, and its gradient.
 *
 * Padding does not count: at an edge the sum is divided by the number of cells that are there. Both are
 * linear, so the gradient of the gradient is the pooling itself.
 */
#include <yoke/nn.h>
#include "ops/pool.h"

static yk_code infer(const yk_infer *c) {
  yk_pool p;
  YK_TRY(yk__pool_of(c->attrs, &c->in[0], &p));
  c->out[0] = p.y;
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, avg_pool_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

/* Tie every output cell to the cells of x under it: y = mean of x, or with `back` x += y / number of cells. */
static void walk(const yk_pool *p, const yk_desc *x, double *vx, double *vy, int back) {
  int64_t n = yk__desc_count(&p->y);
  for (int64_t i = 0; i < n; i++) {
    int64_t cell[YK_MAX_RANK], at[YK_MAX_RANK], r0, r1, c0, c1;
    double sum = 0, cells;
    yk__unravel(&p->y, i, cell);
    yk__pool_range(&p->at[0], cell[1], &r0, &r1);
    yk__pool_range(&p->at[1], cell[2], &c0, &c1);
    cells = (double)((r1 - r0) * (c1 - c0));
    at[0] = cell[0];
    at[3] = cell[3];
    for (at[1] = r0; at[1] < r1; at[1]++)
      for (at[2] = c0; at[2] < c1; at[2]++) {
        double *px = &vx[yk__ravel(x, at)];
        if (back) *px += vy[i] / cells;
        else sum += *px;
      }
    if (!back) vy[i] = sum / cells;
  }
}

static yk_code ref(const yk_ref *c) {
  yk_pool p;
  YK_TRY(yk__pool_of(c->attrs, &c->din[0], &p));
  walk(&p, &c->din[0], (double *)c->in[0], c->out[0], 0);
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[2,6,6,4]", &yk__pool_2x2, 0, 0, 0 },          { "T[2,7,9,3]", &yk__pool_3x3_s2, 0, 0, 0 },
  { "T[1,6,5,64]", &yk__pool_3x3_s2, 0, 0, 0 },      { "T[0,6,6,3]", &yk__pool_3x3_s2, 0, 0, 0 },
  { "T[2,5,5,19]", &yk__pool_3x2_s1_valid, 0, 0, 0 }, { "T[2,8,7,8]", &yk__pool_3x3_s2_valid, 0, 0, 0 },
  { "T[1,8,5,1]", &yk__pool_2x3_s3_same, 0, 0, 0 },  { "T[2,6,7,16]", &yk__pool_explicit, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_avg_pool = {
  .name = "avg_pool", .label = "AvgPool", .doc = "Mean of the cells under each window of x [N,H,W,C], padding not counted.",
  .version = 1, .attr_bytes = sizeof(yk_pool_attrs), .traits = YK_PURE,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, { 0 } }, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } },
  .attrs = yk__pool_attrs, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* ---- avg_pool_grad: dy, like x -> dx ---------------------------------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  yk_pool p;
  YK_TRY(yk__pool_of_grad(c->attrs, &c->in[1], &c->in[0], &p));
  c->out[0] = yk__as(&c->in[1], c->in[0].dtype);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, avg_pool, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) {
  yk_pool p;
  YK_TRY(yk__pool_of_grad(c->attrs, &c->din[1], &c->din[0], &p));
  yk__ref_zero(c, 0);
  walk(&p, &c->dout[0], c->out[0], (double *)c->in[0], 1);
  return YK_OK;
}

static const yk_case cases_grad[] = {
  { "T[2,3,3,4]; T[2,6,6,4]", &yk__pool_2x2, 0, 0, 0 },          { "T[2,4,5,3]; T[2,7,9,3]", &yk__pool_3x3_s2, 0, 0, 0 },
  { "T[0,3,3,3]; T[0,6,6,3]", &yk__pool_3x3_s2, 0, 0, 0 },       { "T[2,3,4,19]; T[2,5,5,19]", &yk__pool_3x2_s1_valid, 0, 0, 0 },
  { "T[2,3,3,8]; T[2,8,7,8]", &yk__pool_3x3_s2_valid, 0, 0, 0 }, { "T[1,3,5,1]; T[1,8,5,1]", &yk__pool_2x3_s3_same, 0, 0, 0 },
  { "T[2,3,4,16]; T[2,6,7,16]", &yk__pool_explicit, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_avg_pool_grad = {
  .name = "avg_pool_grad", .label = "AvgPoolGrad", .doc = "Gradient of avg_pool: dy shared out among the cells of its window.",
  .version = 1, .attr_bytes = sizeof(yk_pool_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = yk__grad_like, .out = (const yk_port[]){ { "dx", YK_FLOATS, 0, 1 }, { 0 } },
  .attrs = yk__pool_attrs, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = cases_grad,
};

yk_value yk_avg_pool_at(const char *where, yk_graph *g, yk_value x, const yk_pool_attrs *attrs) {
  return yk__build(where, g, &yk__op_avg_pool, attrs, 1, x);
}

yk_value yk_global_avg_pool_at(const char *where, yk_graph *g, yk_value x) {
  return yk__build(where, g, &yk__op_reduce_mean, &(yk_reduce_attrs){ .naxes = 2, .axis = { 1, 2 } }, 1, x);
}
