/*
 * slice.c - a box cut out of a value, its gradient, and a box of the shape of another value. slice_grad puts dy back
 * where it was cut, zeros around; slice_like undoes slice_grad and pad, whose sizes may not be known as numbers.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

static yk_code check(const yk_slice_attrs *a, const yk_desc *x) {
  if (a->rank != x->rank) return YK_FAIL(EINVAL, "begin and size have %u entries, but the tensor has %u axes", a->rank, x->rank);
  for (int k = 0; k < x->rank; k++)
    if (a->begin[k] < 0 || a->size[k] < -1 || (x->dim[k] >= 0 && a->begin[k] > x->dim[k]))
      return YK_FAIL(EINVAL, "axis %d: begin %lld, size %lld of %lld elements", k, (long long)a->begin[k], (long long)a->size[k],
                     (long long)x->dim[k]);
  return YK_OK;
}

static yk_code fits(const yk_slice_attrs *a, const yk_desc *box, const yk_desc *x) {
  char t[YK__DESC_TEXT], u[YK__DESC_TEXT];
  if (box->rank != x->rank)
    return YK_FAIL(EINVAL, "%s and %s differ in rank", yk__desc_text(box, t, sizeof t), yk__desc_text(x, u, sizeof u));
  for (int k = 0; k < x->rank; k++)
    if (x->dim[k] >= 0 && box->dim[k] >= 0 && a->begin[k] + box->dim[k] > x->dim[k])
      return YK_FAIL(EINVAL, "axis %d: %lld elements from %lld go beyond the end, which is %lld", k, (long long)box->dim[k],
                     (long long)a->begin[k], (long long)x->dim[k]);
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_slice_attrs a = YK__ATTRS(yk_slice_attrs, c);
  const yk_desc *x = &c->in[0];
  yk_desc r = yk__as(x, x->dtype);
  YK_TRY(check(&a, x));
  for (int k = 0; k < x->rank; k++) r.dim[k] = a.size[k] >= 0 ? a.size[k] : x->dim[k] < 0 ? -1 : x->dim[k] - a.begin[k];
  YK_TRY(fits(&a, &r, x));
  c->out[0] = r;
  return YK_OK;
}

/* Element of x that element i of the box is. */
static int64_t inside(const yk_slice_attrs *a, const yk_desc *box, const yk_desc *x, int64_t i) {
  int64_t index[YK_MAX_RANK];
  yk__unravel(box, i, index);
  for (int k = 0; k < x->rank; k++) index[k] += a->begin[k];
  return yk__ravel(x, index);
}

static yk_code ref(const yk_ref *c) {
  yk_slice_attrs a = YK__ATTRS(yk_slice_attrs, c);
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = c->in[0][inside(&a, &c->dout[0], &c->din[0], i)];
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, slice_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_slice_attrs, rank, 0, 0, YK_MAX_RANK), YK__DIMS(yk_slice_attrs, begin, YK_MAX_RANK, 0),
  YK__DIMS(yk_slice_attrs, size, YK_MAX_RANK, -1), { 0 }
};
static const yk_slice_attrs line = { 1, { 5 }, { 20 } }, box = { 3, { 1, 0, 2 }, { 2, 7, 3 } },
                            tail = { 2, { 1, 3 }, { -1, -1 } },
                            none = { 2, { 1, 7 }, { 3, 0 } }, all = { 2, { 0, 0 }, { -1, -1 } };
static const yk_case cases[] = {
  { "T[]", NULL, 0, 0, 0 }, { "T[33]", &line, 0, 0, 0 }, { "T[4,7,5]", &box, 0, 0, 0 }, { "T[4,7]", &tail, 0, 0, 0 },
  { "T[4,7]", &none, 0, 0, 0 }, { "T[4,7]", &all, 0, 0, 0 }, { "T[3,0]", &all, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_slice = {
  .name = "slice", .label = "Slice", .doc = "a box cut out of x",
  .version = 1, .attr_bytes = sizeof(yk_slice_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_slice_at(const char *where, yk_graph *g, yk_value x, const int64_t *begin, const int64_t *size) {
  const yk_desc *d = yk_value_desc(g, x);
  yk_slice_attrs a = { .rank = d ? d->rank : 0 };
  memcpy(a.begin, begin, a.rank * sizeof *begin);
  memcpy(a.size, size, a.rank * sizeof *size);
  return yk__build(where, g, &yk__op_slice, &a, 1, x);
}

/* ---- slice_grad: dy, like x -> dx; sizes come from dy ------------------------------------------------------------------ */

static yk_code grad_infer(const yk_infer *c) {
  yk_slice_attrs a = YK__ATTRS(yk_slice_attrs, c);
  YK_TRY(check(&a, &c->in[1]));
  YK_TRY(fits(&a, &c->in[0], &c->in[1]));
  return yk__infer_like(c);
}

static yk_code grad_ref(const yk_ref *c) {
  yk_slice_attrs a = YK__ATTRS(yk_slice_attrs, c);
  int64_t n = yk__desc_count(&c->din[0]);
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < n; i++) c->out[0][inside(&a, &c->din[0], &c->dout[0], i)] = c->in[0][i];
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, slice_like, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case grad_cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[20]; T[33]", &line, 0, 0, 0 }, { "T[2,7,3]; T[4,7,5]", &box, 0, 0, 0 },
  { "T[3,4]; T[4,7]", &tail, 0, 0, 0 }, { "T[3,0]; T[4,7]", &none, 0, 0, 0 }, { "T[4,7]; T[4,7]", &all, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_slice_grad = {
  .name = "slice_grad", .label = "SliceGrad", .doc = "dy where it was cut out, zero outside",
  .version = 1, .attr_bytes = sizeof(yk_slice_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY, .attrs = attrs,
  .in = yk__grad_like, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};

/* ---- slice_like: x, like -> the box of like's shape from begin ------------------------------------------------------------ */

static yk_code like_infer(const yk_infer *c) {
  yk_slice_attrs a = YK__ATTRS(yk_slice_attrs, c);
  YK_TRY(check(&a, &c->in[0]));
  YK_TRY(fits(&a, &c->in[1], &c->in[0]));
  return yk__infer_like(c);
}

static const yk_case like_cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[20]", &line, 0, 0, 0 }, { "T[4,7,5]; T[2,7,3]", &box, 0, 0, 0 },
  { "T[4,7]; T[3,4]", &tail, 0, 0, 0 }, { "T[4,7]; T[3,0]", &none, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_slice_like = {
  .name = "slice_like", .label = "SliceLike", .doc = "the part of x of like's shape that starts at begin",
  .version = 1, .attr_bytes = sizeof(yk_slice_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any_like, .out = yk__out1, .infer = like_infer, .grad = grad, .ref = ref, .cases = like_cases,
};
