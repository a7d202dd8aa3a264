/*
 * split.c - a value cut into pieces along an axis, equal ones or of given sizes. The gradient joins what comes back,
 * with zeros for pieces that nobody used. unstack is built on top.
 */
#include <string.h>
#include <yoke/math.h>
#include "common.h"

enum { MOST = 16 };

/* Sizes of the pieces; -1 while the dim is unknown and the pieces are to be equal. */
static yk_code pieces(const yk_split_attrs *a, const yk_desc *x, int *axis, int64_t *size) {
  uint32_t n = a->n ? a->n : 1;
  int64_t total = 0, have;
  YK_TRY(yk__axis(a->axis, x->rank, axis));
  have = x->dim[*axis];
  if (n > MOST) return YK_FAIL(EINVAL, "%u pieces, at most %d are possible", n, MOST);
  for (uint32_t i = 0; i < n; i++) total += a->size[i];
  if (total == 0 && have > 0 && have % n != 0)
    return YK_FAIL(EINVAL, "axis %d has %lld elements, which %u equal pieces do not share evenly", *axis, (long long)have, n);
  if (total != 0 && have >= 0 && have != total)
    return YK_FAIL(EINVAL, "the sizes add up to %lld, but axis %d has %lld elements", (long long)total, *axis, (long long)have);
  for (uint32_t i = 0; i < n; i++) size[i] = total != 0 ? a->size[i] : have < 0 ? -1 : have / n;
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_split_attrs a = YK__ATTRS(yk_split_attrs, c);
  int64_t size[MOST];
  int axis = 0;
  uint32_t n = a.n ? a.n : 1;
  YK_TRY(pieces(&a, &c->in[0], &axis, size));
  if (c->nout != n) return YK_FAIL(EINVAL, "%u outputs for %u pieces", c->nout, n);
  for (uint32_t i = 0; i < n; i++) {
    c->out[i] = yk__as(&c->in[0], c->in[0].dtype);
    c->out[i].dim[axis] = size[i];
  }
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_split_attrs a = YK__ATTRS(yk_split_attrs, c);
  int axis = 0, rank = c->din[0].rank;
  int64_t offset = 0;
  YK_TRY(yk__axis(a.axis, rank, &axis));
  int64_t outer = yk__span(&c->din[0], 0, axis), whole = yk__span(&c->din[0], axis, rank);
  for (uint16_t i = 0; i < c->nout; i++) {
    int64_t piece = yk__span(&c->dout[i], axis, rank);
    for (int64_t o = 0; o < outer; o++)
      for (int64_t k = 0; k < piece; k++) c->out[i][o * piece + k] = c->in[0][o * whole + offset + k];
    offset += piece;
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_split_attrs a = YK__ATTRS(yk_split_attrs, c);
  yk_value piece[MOST];
  for (uint16_t i = 0; i < c->nout; i++) piece[i] = c->dout[i].id ? c->dout[i] : YK__OP1(c, zeros_like, c->out[i]);
  c->din[0] = yk_concat_at(c->where, c->g, c->nout, piece, a.axis);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__INT(yk_split_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), YK__INT(yk_split_attrs, n, 1, 1, MOST),
  YK__DIMS(yk_split_attrs, size, MOST, 0), { 0 }
};
static const yk_port out[] = { { "y", YK_ANYTYPE, YK_PORT_VARIADIC, 0 }, { 0 } };
static const yk_split_attrs three = { 0, 3, { 0 } }, last = { -1, 2, { 2, 5 } },
                            middle = { 1, 3, { 4, 0, 3 } }, one = { 0, 1, { 0 } };
static const yk_case cases[] = {
  { "T[33]", &three, 0, 0, 0 }, { "T[4,7]", &last, 0, 0, 0 }, { "T[4,7,5]", &middle, 0, 0, 0 }, { "T[7]", &one, 0, 0, 0 },
  { "T[0,4]", &three, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_split = {
  .name = "split", .label = "SplitV", .doc = "x cut into pieces along an axis",
  .version = 1, .attr_bytes = sizeof(yk_split_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__any1, .out = out, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_split_at(const char *where, yk_graph *g, yk_value x, int axis, size_t n, const int64_t *sizes, yk_value *pieces_out) {
  yk_split_attrs a = { .axis = axis, .n = (uint32_t)n };
  if (n < 1 || n > MOST) {
    yk_graph_fail_at(where, g, YK_EINVAL, "split: %zu pieces, expected 1 to %d", n, MOST);
    return yk__outputs(g, n, pieces_out);
  }
  if (sizes) memcpy(a.size, sizes, n * sizeof *sizes);
  yk_value first = yk__build_n(where, g, &yk__op_split, &a, 1, &x, n);
  for (size_t i = 0; i < n; i++) pieces_out[i] = yk_output(g, first, (uint16_t)i);
  return yk__outputs(g, n, pieces_out);
}

yk_value yk_unstack_at(const char *where, yk_graph *g, yk_value x, int axis, size_t n, yk_value *slices) {
  const yk_desc *d = yk_value_desc(g, x);
  int k = d && axis < 0 ? axis + d->rank : axis;
  if (d && k >= 0 && k < d->rank && yk__dims_clash(d->dim[k], (int64_t)n))
    yk_graph_fail_at(where, g, YK_EINVAL, "unstack: axis %d has %lld elements, not %zu", axis, (long long)d->dim[k], n);
  else if (yk_split_at(where, g, x, k, n, NULL, slices).id)
    for (size_t i = 0; i < n; i++) slices[i] = yk_squeeze_at(where, g, slices[i], &(yk_axes_attrs){ 1, { k } });
  return yk__outputs(g, n, slices);
}
