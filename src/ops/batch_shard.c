/*
 * batch_shard.c - the rows of a batch that one of several replicas works on, and its gradient. All shards have N/count
 * rows, the first N%count one more, so any batch size can be shared out and nothing is lost or doubled.
 */
#include <yoke/math.h>
#include "common.h"

/* First row and number of rows of the shard. */
static void rows_of(const yk_shard_attrs *a, int64_t n, int64_t *first, int64_t *rows) {
  int64_t count = a->count ? a->count : 1, index = a->index, each = n / count, more = n % count;
  *first = index * each + (index < more ? index : more);
  *rows = each + (index < more);
}

static yk_code shard(const yk_infer *c, const yk_desc *x, yk_desc *out) {
  yk_shard_attrs a = YK__ATTRS(yk_shard_attrs, c);
  yk_desc r = yk__as(x, x->dtype);
  int64_t first = 0;
  if (x->rank < 1) return YK_FAIL(EINVAL, "the input is a scalar, expected a batch");
  if (a.index >= (a.count ? a.count : 1))
    return YK_FAIL(EINVAL, "shard %u of %u; expected 0 to %u", a.index, a.count, a.count - 1);
  if (x->dim[0] >= 0) rows_of(&a, x->dim[0], &first, &r.dim[0]);
  *out = r;
  return YK_OK;
}

static yk_code infer(const yk_infer *c) { return shard(c, &c->in[0], &c->out[0]); }

static yk_code ref(const yk_ref *c) {
  yk_shard_attrs a = YK__ATTRS(yk_shard_attrs, c);
  int64_t first = 0, rows = 0, width = yk__span(&c->din[0], 1, c->din[0].rank);
  rows_of(&a, c->din[0].dim[0], &first, &rows);
  for (int64_t i = 0; i < rows * width; i++) c->out[0][i] = c->in[0][first * width + i];
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, batch_shard_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_shard_attrs, index, 0, 0, 65535), YK__INT(yk_shard_attrs, count, 1, 1, 65536), { 0 }
};
static const yk_shard_attrs first3 = { 0, 3 }, second3 = { 1, 3 }, last3 = { 2, 3 }, last9 = { 8, 9 };
static const yk_case cases[] = {
  { "T[7]", NULL, 0, 0, 0 }, { "T[7,5]", &first3, 0, 0, 0 }, { "T[33]", &second3, 0, 0, 0 }, { "T[7,5]", &last3, 0, 0, 0 },
  { "T[7,2,3]", &second3, 0, 0, 0 }, { "T[7,5]", &last9, 0, 0, 0 }, { "T[0,5]", &first3, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_batch_shard = {
  .name = "batch_shard", .label = "BatchShard", .doc = "the rows of one of several shards of a batch",
  .version = 1, .attr_bytes = sizeof(yk_shard_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_batch_shard_at(const char *where, yk_graph *g, yk_value x, unsigned index, unsigned count) {
  return yk__build(where, g, &yk__op_batch_shard, &(yk_shard_attrs){ index, count }, 1, x);
}

/* ---- batch_shard_grad: dy, like x -> dx zero outside the shard ------------------------------------------------------------- */

static yk_code grad_infer(const yk_infer *c) {
  yk_desc want, merged, dy = yk__as(&c->in[0], c->in[1].dtype);
  YK_TRY(shard(c, &c->in[1], &want));
  YK_TRY(yk__shape_merge(&dy, &want, &merged));
  return yk__infer_like(c);
}

static yk_code grad_ref(const yk_ref *c) {
  yk_shard_attrs a = YK__ATTRS(yk_shard_attrs, c);
  int64_t first = 0, rows = 0, width = yk__span(&c->dout[0], 1, c->dout[0].rank);
  rows_of(&a, c->dout[0].dim[0], &first, &rows);
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < rows * width; i++) c->out[0][first * width + i] = c->in[0][i];
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, batch_shard, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static const yk_case grad_cases[] = {
  { "T[7]; T[7]", NULL, 0, 0, 0 }, { "T[3,5]; T[7,5]", &first3, 0, 0, 0 }, { "T[11]; T[33]", &second3, 0, 0, 0 },
  { "T[2,5]; T[7,5]", &last3, 0, 0, 0 }, { "T[0,5]; T[7,5]", &last9, 0, 0, 0 }, { "T[0,5]; T[0,5]", &first3, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_batch_shard_grad = {
  .name = "batch_shard_grad", .label = "BatchShardGrad", .doc = "dy in the rows of its shard, zero outside",
  .version = 1, .attr_bytes = sizeof(yk_shard_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY, .attrs = attrs,
  .in = yk__grad_like, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
