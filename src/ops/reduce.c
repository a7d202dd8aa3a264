/*
 * reduce.c - shape rule and reference loop of the reductions. See reduce.h.
 */
#include "reduce.h"

const yk_attr yk__reduce_attrs[] = {
  YK__INT(yk_reduce_attrs, naxes, 0, 0, YK_MAX_RANK),
  YK__INTS(yk_reduce_attrs, axis, YK_MAX_RANK, 0, -YK_MAX_RANK, YK_MAX_RANK - 1),
  YK__FLAG(yk_reduce_attrs, keepdims), YK__FLAG(yk_reduce_attrs, mean), { 0 }
};

const yk_reduce_attrs yk__reduce_first = { .naxes = 1, .axis = { 0 } };
const yk_reduce_attrs yk__reduce_last = { .naxes = 1, .axis = { -1 } };
const yk_reduce_attrs yk__reduce_mid_keep = { .naxes = 1, .axis = { 1 }, .keepdims = 1 };
const yk_reduce_attrs yk__reduce_two = { .naxes = 2, .axis = { -2, 0 } };
const yk_reduce_attrs yk__reduce_keep = { .keepdims = 1 };

yk_code yk__reduce_shape(const yk_desc *x, const yk_reduce_attrs *a, yk_desc *out) {
  yk_desc r = { .dtype = x->dtype };
  uint32_t bits = 0;
  YK_TRY(yk__axes(a->naxes, a->axis, x->rank, &bits));
  for (int k = 0; k < x->rank; k++) {
    int reduced = (bits >> k) & 1u;
    if (!reduced || a->keepdims) r.dim[r.rank++] = reduced ? 1 : x->dim[k];
  }
  *out = r;
  return YK_OK;
}

yk_code yk__reduce_infer(const yk_infer *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  return yk__reduce_shape(&c->in[0], &a, &c->out[0]);
}

static uint32_t reduced_axes(const yk_desc *x, const yk_reduce_attrs *a) {
  uint32_t bits = 0;
  return yk__axes(a->naxes, a->axis, x->rank, &bits) == YK_OK ? bits : 0;   /* infer has checked them */
}

int64_t yk__reduce_place(const yk_desc *x, const yk_reduce_attrs *a, const int64_t *index) {
  uint32_t bits = reduced_axes(x, a);
  int64_t i = 0;
  for (int k = 0; k < x->rank; k++)
    if (!((bits >> k) & 1u)) i = i * x->dim[k] + index[k];
  return i;
}

int64_t yk__reduce_count(const yk_desc *x, const yk_reduce_attrs *a) {
  uint32_t bits = reduced_axes(x, a);
  int64_t n = 1;
  for (int k = 0; k < x->rank; k++)
    if ((bits >> k) & 1u) n *= x->dim[k];
  return n;
}

yk_code yk__reduce_ref(const yk_ref *c, double start, double (*f)(double so_far, double x)) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  int64_t index[YK_MAX_RANK], nout = yk__desc_count(&c->dout[0]), n = yk__desc_count(&c->din[0]);
  for (int64_t i = 0; i < nout; i++) c->out[0][i] = start;
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&c->din[0], i, index);
    double *to = &c->out[0][yk__reduce_place(&c->din[0], &a, index)];
    *to = f(*to, c->in[0][i]);
  }
  return YK_OK;
}

yk_code yk__reduce_extreme_grad(yk_grad *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  yk_value x = c->in[0], dy = c->dout[0], hit, share;
  const yk_desc *d = yk_value_desc(c->g, x);
  if (!d) return YK_FAIL(EINTERNAL, "input %u is not a value of the graph", x.id);
  a.mean = 0;
  hit = YK__OP2(c, equal, x, YK__OPA(c, reduce_grad, &a, 2, c->out[0], x));
  hit = YK__OPA(c, cast, (&(yk_cast_attrs){ d->dtype }), 1, hit);
  share = YK__OP2(c, div, dy, YK__OPA(c, reduce_sum, &a, 1, hit));
  c->din[0] = YK__OP2(c, mul, hit, YK__OPA(c, reduce_grad, &a, 2, share, x));
  return YK_OK;
}

yk_value yk__reduce_build(const char *where, yk_graph *g, const yk_op *op, yk_value x, const yk_reduce_attrs *a) {
  return yk__build(where, g, op, a, 1, x);
}
