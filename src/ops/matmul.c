/*
 * matmul.c - matrix product, batched and with either side transposed.
 *
 * The gradient of a product is two products; which side is transposed there follows from the table in
 * yk__matmul_grad. Summing over a batch axis that was broadcast is autodiff's business.
 */
#include "ops/matmul_shape.h"

#include <yoke/nn.h>

static const yk_port ports[] = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_attr attrs[] = { YK__FLAG(yk_matmul_attrs, transpose_a), YK__FLAG(yk_matmul_attrs, transpose_b), { 0 } };

yk_code yk__matmul_shape(const yk_matmul_attrs *a, const yk_desc *da, const yk_desc *db, yk_desc *y) {
  char ta[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  int ra = da->rank, rb = db->rank;
  int64_t m, n, ka, kb;
  yk_desc batch_a = *da, batch_b = *db, r;
  yk__desc_text(da, ta, sizeof ta);
  yk__desc_text(db, tb, sizeof tb);
  if (ra < 2 || rb < 2) return YK_FAIL(EINVAL, "a is %s and b is %s, expected at least rank 2", ta, tb);
  m = da->dim[ra - 2 + (a->transpose_a ? 1 : 0)];
  ka = da->dim[ra - 1 - (a->transpose_a ? 1 : 0)];
  kb = db->dim[rb - 2 + (a->transpose_b ? 1 : 0)];
  n = db->dim[rb - 1 - (a->transpose_b ? 1 : 0)];
  if (yk__dims_clash(ka, kb))
    return YK_FAIL(EINVAL, "a %s%s has %lld columns, but b %s%s has %lld rows", ta, a->transpose_a ? " transposed" : "", (long long)ka,
                   tb, a->transpose_b ? " transposed" : "", (long long)kb);
  for (int i = 1; i <= 2; i++) batch_a.dim[ra - i] = batch_b.dim[rb - i] = 0;
  batch_a.rank = (uint8_t)(ra - 2);
  batch_b.rank = (uint8_t)(rb - 2);
  YK_TRY(yk__shape_broadcast(&batch_a, &batch_b, &r));
  r.dtype = da->dtype;
  r.layout = YK_LAYOUT_PLAIN;
  r.dim[r.rank++] = m;
  r.dim[r.rank++] = n;
  *y = r;
  return YK_OK;
}

void yk__matmul_ref(const yk_matmul_attrs *t, const yk_desc *da, const yk_desc *db, const yk_desc *dy, const double *a,
                    const double *b, double *y) {
  int64_t index[YK_MAX_RANK], m = dy->dim[dy->rank - 2], n = dy->dim[dy->rank - 1];
  int64_t k = da->dim[da->rank - 1 - (t->transpose_a ? 1 : 0)], batches = yk__span(dy, 0, dy->rank - 2);
  yk_desc ba = *da, bb = *db, by = *dy;
  ba.rank = (uint8_t)(ba.rank - 2);
  bb.rank = (uint8_t)(bb.rank - 2);
  by.rank = (uint8_t)(by.rank - 2);
  for (int64_t p = 0; p < batches; p++, y += m * n) {
    const double *pa, *pb;
    yk__unravel(&by, p, index);
    pa = a + yk__ravel_broadcast(&ba, &by, index) * m * k;
    pb = b + yk__ravel_broadcast(&bb, &by, index) * k * n;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t l = 0; l < k; l++) sum += pa[t->transpose_a ? l * m + i : i * k + l] * pb[t->transpose_b ? j * k + l : l * n + j];
        y[i * n + j] = sum;
      }
  }
}

void yk__matmul_grad(yk_grad *c, yk_value dy, yk_value *da, yk_value *db) {
  const yk_matmul_attrs *t = c->attrs;
  int ta = t->transpose_a != 0, tb = t->transpose_b != 0;
  yk_value a = c->in[0], b = c->in[1];
  /*        y = a b      y = a b'     y = a' b     y = a' b'
   *   da   dy b'        dy b         b dy'        b' dy'
   *   db   a' dy        dy' a        a dy         dy' a'     */
  yk_matmul_attrs wa = ta ? (yk_matmul_attrs){ .transpose_a = tb, .transpose_b = 1 } : (yk_matmul_attrs){ .transpose_b = !tb };
  yk_matmul_attrs wb = tb ? (yk_matmul_attrs){ .transpose_a = 1, .transpose_b = ta } : (yk_matmul_attrs){ .transpose_a = !ta };
  *da = ta ? YK__OPA(c, matmul, &wa, 2, b, dy) : YK__OPA(c, matmul, &wa, 2, dy, b);
  *db = tb ? YK__OPA(c, matmul, &wb, 2, dy, a) : YK__OPA(c, matmul, &wb, 2, a, dy);
}

static yk_code infer(const yk_infer *c) { return yk__matmul_shape(c->attrs, &c->in[0], &c->in[1], &c->out[0]); }

static yk_code grad(yk_grad *c) {
  yk__matmul_grad(c, c->dout[0], &c->din[0], &c->din[1]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk__matmul_ref(c->attrs, &c->din[0], &c->din[1], &c->dout[0], c->in[0], c->in[1], c->out[0]);
  return YK_OK;
}

double yk__matmul_flops(const yk_matmul_attrs *t, const yk_desc *da, const yk_desc *y) {
  return 2.0 * (double)yk__desc_count(y) * (double)da->dim[da->rank - 1 - (t->transpose_a ? 1 : 0)];
}

static double flops(const yk_infer *c) { return yk__matmul_flops(c->attrs, &c->in[0], &c->out[0]); }

static const yk_matmul_attrs at = { .transpose_a = 1 }, bt = { .transpose_b = 1 }, abt = { .transpose_a = 1, .transpose_b = 1 };
static const yk_case cases[] = {
  { "T[4,7]; T[7,5]", NULL, 0, 0, 0 },           { "T[1,1]; T[1,1]", NULL, 0, 0, 0 },       { "T[19,64]; T[64,16]", NULL, 0, 0, 0 },
  { "T[7,4]; T[7,5]", &at, 0, 0, 0 },            { "T[4,7]; T[5,7]", &bt, 0, 0, 0 },        { "T[7,4]; T[5,7]", &abt, 0, 0, 0 },
  { "T[0,7]; T[7,5]", NULL, 0, 0, 0 },           { "T[0,4]; T[0,5]", &at, 0, 0, 0 },        { "T[4,0]; T[0,5]", NULL, 0, 0, 0 },
  { "T[3,4,7]; T[3,7,5]", NULL, 0, 0, 0 },       { "T[3,7,4]; T[3,5,7]", &abt, 0, 0, 0 },   { "T[2,1,4,3]; T[3,3,5]", NULL, 0, 0, 0 },
  { "T[3,4,7]; T[7,5]", NULL, 0, 0, 0 },         { "T[4,7]; T[3,5,7]", &bt, 0, 0, 0 },      { "T[2,7,4]; T[2,7,5]", &at, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_matmul = {
  .name = "matmul", .label = "MatMul", .doc = "Matrix product a [..., M, K] * b [..., K, N]; batch axes broadcast.",
  .version = 1, .attr_bytes = sizeof(yk_matmul_attrs), .traits = YK_PURE | YK_NARROW | YK_ZERO_ON_EMPTY,
  .in = ports, .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { 0 } }, .attrs = attrs,
  .infer = infer, .grad = grad, .ref = ref, .cases = cases, .flops = flops,
};

yk_value yk_matmul_at(const char *where, yk_graph *g, yk_value a, yk_value b, const yk_matmul_attrs *options) {
  return yk__build(where, g, &yk__op_matmul, options, 2, a, b);
}
