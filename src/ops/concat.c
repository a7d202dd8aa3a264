/*
 * concat.c - values joined along an axis, and the piece of a joined tensor that came from one of them. The second is
 * the gradient of the first: one node for each input that needs one. stack is built on top.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code join(const yk_desc *x, uint16_t n, int32_t axis_attr, yk_desc *out) {
  yk_desc r = yk__as(&x[0], x[0].dtype);
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  int axis = 0;
  YK_TRY(yk__axis(axis_attr, r.rank, &axis));
  for (uint16_t i = 1; i < n; i++) {
    int fits = x[i].rank == r.rank && x[i].dtype == r.dtype;
    for (int k = 0; fits && k < r.rank; k++) {
      if (k != axis && yk__dims_clash(x[i].dim[k], r.dim[k])) fits = 0;
      else if (k == axis) r.dim[k] = r.dim[k] < 0 || x[i].dim[k] < 0 ? -1 : r.dim[k] + x[i].dim[k];
      else if (r.dim[k] < 0) r.dim[k] = x[i].dim[k];
    }
    if (!fits)
      return YK_FAIL(EINVAL, "input %u is %s, input 0 is %s; all dims but axis %d must agree", i,
                     yk__desc_text(&x[i], a, sizeof a), yk__desc_text(&x[0], b, sizeof b), axis);
  }
  *out = r;
  return YK_OK;
}

static yk_code infer(const yk_infer *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  return join(c->in, c->nin, a.axis, &c->out[0]);
}

/* Copy between a piece and its place in the whole: rows are what lies at and behind the axis. */
typedef struct rows { int64_t outer, piece, whole, offset; } rows;

static yk_code place(const yk_desc *whole, const yk_desc *x, uint16_t index, int32_t axis_attr, rows *r) {
  int axis = 0;
  YK_TRY(yk__axis(axis_attr, whole->rank, &axis));
  *r = (rows){ yk__span(whole, 0, axis), yk__span(&x[index], axis, whole->rank), yk__span(whole, axis, whole->rank), 0 };
  for (uint16_t i = 0; i < index; i++) r->offset += yk__span(&x[i], axis, whole->rank);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  for (uint16_t i = 0; i < c->nin; i++) {
    rows r;
    YK_TRY(place(&c->dout[0], c->din, i, a.axis, &r));
    for (int64_t o = 0; o < r.outer; o++)
      for (int64_t k = 0; k < r.piece; k++) c->out[0][o * r.whole + r.offset + k] = c->in[i][o * r.piece + k];
  }
  return YK_OK;
}

/* concat_grad of dy for input `index`; `like` are the inputs of the concat. */
static yk_value piece_of(yk_grad *c, yk_value dy, const yk_value *like, uint16_t n, int32_t axis, uint16_t index) {
  yk_concat_grad_attrs a = { axis, index };
  yk_value *in = yk__calloc(n + 1u, sizeof *in), out;
  if (!in) return yk_graph_fail_at(c->where, c->g, YK_ENOMEM, "%s", yk_error_message());
  in[0] = dy;
  for (uint16_t i = 0; i < n; i++) in[i + 1] = like[i];
  out = yk__build_n(c->where, c->g, &yk__op_concat_grad, &a, n + 1u, in, 1);
  yk__free(in);
  return out;
}

static yk_code grad(yk_grad *c) {
  yk_axis_attrs a = YK__ATTRS(yk_axis_attrs, c);
  for (uint16_t i = 0; i < c->nin; i++)
    c->din[i] = c->nin == 1 ? c->dout[0] : piece_of(c, c->dout[0], c->in, c->nin, a.axis, i);
  return YK_OK;
}

static const yk_port in[] = { { "x", YK_ANYTYPE, YK_PORT_VARIADIC, 1 }, { 0 } };
static const yk_attr attrs[] = { YK__INT(yk_axis_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), { 0 } };
static const yk_axis_attrs last = { -1 }, second = { 1 };
static const yk_case cases[] = {
  { "T[7]", NULL, 0, 0, 0 }, { "T[7]; T[33]", NULL, 0, 0, 0 }, { "T[4,7]; T[4,5]; T[4,1]", &last, 0, 0, 0 },
  { "T[4,7,5]; T[4,2,5]", &second, 0, 0, 0 }, { "T[4,0]; T[4,7]", &last, 0, 0, 0 }, { "T[0,3]; T[0,3]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_concat = {
  .name = "concat", .label = "ConcatV2", .doc = "values joined along an axis",
  .version = 1, .attr_bytes = sizeof(yk_axis_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = in, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_concat_at(const char *where, yk_graph *g, size_t n, const yk_value *xs, int axis) {
  return yk__build_n(where, g, &yk__op_concat, &(yk_axis_attrs){ axis }, n, xs, 1);
}

yk_value yk_stack_at(const char *where, yk_graph *g, size_t n, const yk_value *xs, int axis) {
  yk_value *wide = yk__calloc(n ? n : 1, sizeof *wide), out;
  if (!wide) return yk_graph_fail_at(where, g, YK_ENOMEM, "%s", yk_error_message());
  for (size_t i = 0; i < n; i++) wide[i] = yk_expand_dims_at(where, g, xs[i], axis);
  out = yk_concat_at(where, g, n, wide, axis);
  yk__free(wide);
  return out;
}

/* ---- concat_grad ------------------------------------------------------------------------------------------------------- */

static yk_code grad_infer(const yk_infer *c) {
  yk_concat_grad_attrs a = YK__ATTRS(yk_concat_grad_attrs, c);
  yk_desc whole, merged, dy = yk__as(&c->in[0], c->in[1].dtype);
  if (a.index < 0 || a.index >= c->nin - 1) return YK_FAIL(EINVAL, "index %d of %u joined inputs", a.index, c->nin - 1u);
  YK_TRY(join(c->in + 1, (uint16_t)(c->nin - 1), a.axis, &whole));
  YK_TRY(yk__shape_merge(&dy, &whole, &merged));
  c->out[0] = yk__as(&c->in[1 + a.index], c->in[0].dtype);
  return YK_OK;
}

static yk_code grad_ref(const yk_ref *c) {
  yk_concat_grad_attrs a = YK__ATTRS(yk_concat_grad_attrs, c);
  rows r;
  YK_TRY(place(&c->din[0], c->din + 1, (uint16_t)a.index, a.axis, &r));
  for (int64_t o = 0; o < r.outer; o++)
    for (int64_t k = 0; k < r.piece; k++) c->out[0][o * r.piece + k] = c->in[0][o * r.whole + r.offset + k];
  return YK_OK;
}

/* The piece back in its place, zeros elsewhere. */
static yk_code grad_grad(yk_grad *c) {
  yk_concat_grad_attrs a = YK__ATTRS(yk_concat_grad_attrs, c);
  uint16_t n = (uint16_t)(c->nin - 1);
  yk_value *piece = yk__calloc(n, sizeof *piece);
  if (!piece) return YK_ENOMEM;
  for (uint16_t i = 0; i < n; i++) piece[i] = i == a.index ? c->dout[0] : YK__OP1(c, zeros_like, c->in[i + 1]);
  c->din[0] = yk_concat_at(c->where, c->g, n, piece, a.axis);
  yk__free(piece);
  return YK_OK;
}

static const yk_port grad_in[] = {
  { "dy", YK_FLOATS, 0, 0 }, { "like", YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 }
};
static const yk_attr grad_attrs[] = {
  YK__INT(yk_concat_grad_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), YK__INT(yk_concat_grad_attrs, index, 0, 0, 65535), { 0 }
};
static const yk_concat_grad_attrs second_last = { -1, 1 }, first_middle = { 1, 0 },
                                  second_middle = { 1, 1 }, second_first = { 0, 1 };
static const yk_case grad_cases[] = {
  { "T[40]; T[7]; T[33]", NULL, 0, 0, 0 }, { "T[40]; T[7]; T[33]", &second_first, 0, 0, 0 },
  { "T[4,13]; T[4,7]; T[4,5]; T[4,1]", &second_last, 0, 0, 0 }, { "T[4,9,5]; T[4,7,5]; T[4,2,5]", &first_middle, 0, 0, 0 },
  { "T[4,9,5]; T[4,7,5]; T[4,2,5]", &second_middle, 0, 0, 0 }, { "T[4,7]; T[4,7]; T[4,0]", &second_last, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_concat_grad = {
  .name = "concat_grad", .label = "ConcatGrad", .doc = "the piece of dy that came from one of the joined values",
  .version = 1, .attr_bytes = sizeof(yk_concat_grad_attrs), .traits = YK_PURE, .attrs = grad_attrs,
  .in = grad_in, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
