/*
 * pad.c - a value with more elements around it, all equal. The gradient cuts the middle out again, as large as x is in
 * this run.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_pad_attrs a = YK__ATTRS(yk_pad_attrs, c);
  yk_desc r = yk__as(&c->in[0], c->in[0].dtype);
  if (a.rank != r.rank) return YK_FAIL(EINVAL, "before and after have %u entries, but the tensor has %u axes", a.rank, r.rank);
  for (int k = 0; k < r.rank; k++) {
    if (a.before[k] < 0 || a.after[k] < 0)
      return YK_FAIL(EINVAL, "axis %d: before %lld, after %lld; expected none negative", k, (long long)a.before[k],
                     (long long)a.after[k]);
    if (r.dim[k] >= 0) r.dim[k] += a.before[k] + a.after[k];
  }
  c->out[0] = r;
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_pad_attrs a = YK__ATTRS(yk_pad_attrs, c);
  int64_t index[YK_MAX_RANK], n = yk__desc_count(&c->dout[0]), m = yk__desc_count(&c->din[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = a.value;
  for (int64_t i = 0; i < m; i++) {
    yk__unravel(&c->din[0], i, index);
    for (int k = 0; k < c->din[0].rank; k++) index[k] += a.before[k];
    c->out[0][yk__ravel(&c->dout[0], index)] = c->in[0][i];
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_pad_attrs a = YK__ATTRS(yk_pad_attrs, c);
  yk_slice_attrs s = { .rank = a.rank };
  memcpy(s.begin, a.before, sizeof s.begin);
  c->din[0] = YK__OPA(c, slice_like, &s, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_pad_attrs, rank, 0, 0, YK_MAX_RANK), YK__DIMS(yk_pad_attrs, before, YK_MAX_RANK, 0),
  YK__DIMS(yk_pad_attrs, after, YK_MAX_RANK, 0), YK__REAL(yk_pad_attrs, value, 0, -HUGE_VAL, HUGE_VAL), { 0 }
};
static const yk_pad_attrs line = { 1, { 2 }, { 3 }, 0 }, image = { 4, { 0, 1, 2, 0 }, { 0, 1, 0, 0 }, 0 },
                          one = { 2, { 1, 0 }, { 0, 2 }, 1 }, none = { 2, { 0, 0 }, { 0, 0 }, 0 };
static const yk_case cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[33]", &line, 0, 0, 0 }, { "T[2,5,7,3]", &image, 0, 0, 0 }, { "T[4,7]", &one, 0, 0, 0 },
  { "T[4,7]", &none, 0, 0, 0 }, { "T[3,0]", &one, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_pad = {
  .name = "pad", .label = "PadV2", .doc = "x with more elements around it",
  .version = 1, .attr_bytes = sizeof(yk_pad_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_pad_at(const char *where, yk_graph *g, yk_value x, const int64_t *before, const int64_t *after, double value) {
  const yk_desc *d = yk_value_desc(g, x);
  yk_pad_attrs a = { .rank = d ? d->rank : 0, .value = value };
  memcpy(a.before, before, a.rank * sizeof *before);
  memcpy(a.after, after, a.rank * sizeof *after);
  return yk__build(where, g, &yk__op_pad, &a, 1, x);
}
