/*
 * common.c - port tables, shape rules and reference loops shared by the operations. See common.h.
 *
 * The loops turn every element number into an index and back: slow, but there
 * is nothing in them that could be wrong in an interesting way.
 */
#include "common.h"

/* ---- ports ------------------------------------------------------------------------------------------------ */

const yk_port yk__float1[]  = { { "x", YK_FLOATS, 0, 0 }, { 0 } };
const yk_port yk__float2[]  = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 1 }, { 0 } };
const yk_port yk__arith1[]  = { { "x", YK__ARITH, 0, 0 }, { 0 } };
const yk_port yk__arith2[]  = { { "a", YK__ARITH, 0, 0 }, { "b", YK__ARITH, 0, 1 }, { 0 } };
const yk_port yk__number1[] = { { "x", YK_NUMBERS, 0, 0 }, { 0 } };
const yk_port yk__number2[] = { { "a", YK_NUMBERS, 0, 0 }, { "b", YK_NUMBERS, 0, 1 }, { 0 } };
const yk_port yk__any1[]    = { { "x", YK_ANYTYPE, 0, 0 }, { 0 } };
const yk_port yk__any2[]    = { { "a", YK_ANYTYPE, 0, 0 }, { "b", YK_ANYTYPE, 0, 1 }, { 0 } };
const yk_port yk__bool1[]   = { { "x", YK_T(YK_BOOL), 0, 0 }, { 0 } };
const yk_port yk__bool2[]   = { { "a", YK_T(YK_BOOL), 0, 0 }, { "b", YK_T(YK_BOOL), 0, 1 }, { 0 } };
const yk_port yk__grad2[]   = { { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, 0, 1 }, { 0 } };
const yk_port yk__grad_like[] = { { "dy", YK_FLOATS, 0, 0 }, { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 } };
const yk_port yk__any_like[]  = { { "x", YK_ANYTYPE, 0, 0 }, { "like", YK_ANYTYPE, YK_PORT_SHAPE | YK_PORT_NODIFF, 0 }, { 0 } };
const yk_port yk__like1[]   = { { "like", YK_ANYTYPE, YK_PORT_SHAPE | YK_PORT_NODIFF, 0 }, { 0 } };
const yk_port yk__out1[]    = { { "y", YK_ANYTYPE, 0, 0 }, { 0 } };
const yk_port yk__out_op[]  = { { "op", YK_T(YK_NONE), 0, 0 }, { 0 } };

/* ---- building --------------------------------------------------------------------------------------------- */

yk_value yk__spread(yk_grad *c, yk_value x, yk_value like) {
  const yk_desc *a = yk_value_desc(c->g, x), *b = yk_value_desc(c->g, like);
  if (a && b && yk__desc_known(a) && yk__desc_known(b) && yk__desc_same_shape(a, b)) return x;
  return YK__OP2(c, broadcast_to, x, like);
}

yk_value yk__build_n(const char *where, yk_graph *g, const yk_op *op, const void *attrs, size_t nin, const yk_value *in,
                     size_t nout) {
  if (nin > UINT16_MAX) return yk_graph_fail_at(where, g, YK_EINVAL, "%s: %zu inputs, at most 65535 are possible", op->name, nin);
  return yk_add_node_at(where, g, op, attrs, in, (uint16_t)nin, (uint16_t)nout);
}

yk_value yk__outputs(const yk_graph *g, size_t n, yk_value *out) {
  bool good = g && g->status == YK_OK;
  for (size_t i = 0; i < n && !good; i++) out[i] = (yk_value){ 0 };
  return good && n ? out[0] : (yk_value){ 0 };
}

/* ---- shape rules; messages leave the name of the op to yk__op_infer() ------------------------------------ */

yk_desc yk__as(const yk_desc *d, int t) {
  yk_desc r = *d;
  r.dtype = (uint8_t)t;
  r.layout = YK_LAYOUT_PLAIN;
  return r;
}

int yk__dims_clash(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

yk_code yk__infer_same(const yk_infer *c) {
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  return YK_OK;
}

yk_code yk__infer_same_all(const yk_infer *c) {
  yk_desc r = yk__as(&c->in[0], c->in[0].dtype);
  for (uint16_t i = 1; i < c->nin; i++) {
    yk_desc other = yk__as(&c->in[i], r.dtype), merged;
    YK_TRY(yk__shape_merge(&r, &other, &merged));
    r = merged;
  }
  c->out[0] = r;
  return YK_OK;
}

static yk_code broadcast_all(const yk_infer *c, int dtype) {
  yk_desc r = yk__as(&c->in[0], dtype);
  for (uint16_t i = 1; i < c->nin; i++) {
    yk_desc other = yk__as(&c->in[i], dtype), wide;
    YK_TRY(yk__shape_broadcast(&r, &other, &wide));
    r = yk__as(&wide, dtype);
  }
  c->out[0] = r;
  return YK_OK;
}

yk_code yk__infer_broadcast(const yk_infer *c) { return broadcast_all(c, c->in[c->nin - 1].dtype); }
yk_code yk__infer_compare(const yk_infer *c) { return broadcast_all(c, YK_BOOL); }

yk_code yk__infer_like(const yk_infer *c) {
  c->out[0] = yk__as(&c->in[c->nin - 1], c->in[0].dtype);
  return YK_OK;
}

yk_code yk__infer_op(const yk_infer *c) {
  for (uint16_t i = 0; i < c->nout; i++) c->out[i] = (yk_desc){ 0 };
  return YK_OK;
}

yk_code yk__axis(int32_t axis, int rank, int *out) {
  if (axis < -rank || axis >= rank)
    return YK_FAIL(EINVAL, "axis %d is outside the %d axes of the input; expected %d to %d", axis, rank, -rank, rank - 1);
  *out = axis < 0 ? axis + rank : axis;
  return YK_OK;
}

yk_code yk__axes(uint32_t naxes, const int32_t *axis, int rank, uint32_t *bits) {
  uint32_t set = naxes ? 0 : (1u << rank) - 1u;
  if (naxes > YK_MAX_RANK) return YK_FAIL(EINVAL, "%u axes given, at most %d are possible", naxes, YK_MAX_RANK);
  for (uint32_t i = 0; i < naxes; i++) {
    int a = 0;
    YK_TRY(yk__axis(axis[i], rank, &a));
    if (set & (1u << a)) return YK_FAIL(EINVAL, "axis %d is given twice", axis[i]);
    set |= 1u << a;
  }
  *bits = set;
  return YK_OK;
}

yk_code yk__want_rank(const yk_infer *c, uint16_t i, int rank) {
  char text[YK__DESC_TEXT];
  if (c->in[i].rank == rank) return YK_OK;
  return YK_FAIL(EINVAL, "input %u is %s, expected rank %d", i, yk__desc_text(&c->in[i], text, sizeof text), rank);
}

yk_code yk__want_scalar(const yk_infer *c, const char *port, uint16_t i) {
  char text[YK__DESC_TEXT];
  if (c->in[i].rank == 0) return YK_OK;
  return YK_FAIL(EINVAL, "%s is %s, expected a scalar", port, yk__desc_text(&c->in[i], text, sizeof text));
}

/* ---- reference loops -------------------------------------------------------------------------------------- */

void yk__unravel(const yk_desc *d, int64_t i, int64_t *index) {
  for (int k = d->rank - 1; k >= 0; k--) {
    index[k] = i % d->dim[k];
    i /= d->dim[k];
  }
}

int64_t yk__ravel(const yk_desc *d, const int64_t *index) {
  int64_t i = 0;
  for (int k = 0; k < d->rank; k++) i = i * d->dim[k] + index[k];
  return i;
}

int64_t yk__ravel_broadcast(const yk_desc *small, const yk_desc *big, const int64_t *index) {
  int64_t i = 0;
  int skip = big->rank - small->rank;
  for (int k = 0; k < small->rank; k++) i = i * small->dim[k] + (small->dim[k] == 1 ? 0 : index[k + skip]);
  return i;
}

int64_t yk__span(const yk_desc *d, int from, int to) {
  int64_t n = 1;
  for (int k = from; k < to; k++) n *= d->dim[k];
  return n;
}

enum { MAX_MAPPED = 4 };      /* inputs of an element-wise formula: where has 3 */
static const double DEFAULTS[64];   /* any attribute struct, all zero */

yk_code yk__ref_map(const yk_ref *c, double (*f)(const double *v, const void *attrs)) {
  int64_t index[YK_MAX_RANK], n = yk__desc_count(&c->dout[0]);
  double v[MAX_MAPPED] = { 0 };
  if (c->nin > MAX_MAPPED) return YK_FAIL(EINTERNAL, "reference loop over %u inputs, made for at most %d", c->nin, MAX_MAPPED);
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&c->dout[0], i, index);
    for (uint16_t k = 0; k < c->nin; k++)
      if (c->in[k]) v[k] = c->in[k][yk__ravel_broadcast(&c->din[k], &c->dout[0], index)];
    c->out[0][i] = f(v, c->attrs ? c->attrs : DEFAULTS);
  }
  return YK_OK;
}

yk_code yk__ref_unary(const yk_ref *c, double (*f)(double x)) {
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = f(c->in[0][i]);
  return YK_OK;
}

yk_code yk__ref_binary(const yk_ref *c, double (*f)(double a, double b)) {
  int64_t index[YK_MAX_RANK], n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&c->dout[0], i, index);
    c->out[0][i] = f(c->in[0][yk__ravel_broadcast(&c->din[0], &c->dout[0], index)],
                     c->in[1][yk__ravel_broadcast(&c->din[1], &c->dout[0], index)]);
  }
  return YK_OK;
}

yk_code yk__ref_copy(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = c->in[0][i];
  return YK_OK;
}

void yk__ref_zero(const yk_ref *c, uint16_t out) {
  int64_t n = yk__desc_count(&c->dout[out]);
  for (int64_t i = 0; i < n; i++) c->out[out][i] = 0;
}
