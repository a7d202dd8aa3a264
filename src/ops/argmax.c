/*
 * argmax.c - where along an axis the largest or the smallest element is; of equal ones the first. The result is an
 * index, so no gradient flows.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_arg_attrs a = YK__ATTRS(yk_arg_attrs, c);
  yk_desc r = { .dtype = (uint8_t)(a.dtype ? a.dtype : YK_I64) };
  int axis = 0;
  YK_TRY(yk__axis(a.axis, c->in[0].rank, &axis));
  if (!(YK__IDS & YK_T(r.dtype))) return YK_FAIL(EINVAL, "dtype %s, expected i32 or i64", yk_dtype_name((yk_dtype)r.dtype));
  for (int k = 0; k < c->in[0].rank; k++)
    if (k != axis) r.dim[r.rank++] = c->in[0].dim[k];
  if (c->in[0].dim[axis] == 0 && yk__desc_count(&r) != 0) return YK_FAIL(EINVAL, "axis %d is empty, so nothing is first", axis);
  c->out[0] = r;
  return YK_OK;
}

static yk_code first_of(const yk_ref *c, double sign) {
  yk_arg_attrs a = YK__ATTRS(yk_arg_attrs, c);
  const yk_desc *x = &c->din[0];
  int axis = 0;
  YK_TRY(yk__axis(a.axis, x->rank, &axis));
  int64_t outer = yk__span(x, 0, axis), width = x->dim[axis], inner = yk__span(x, axis + 1, x->rank);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      int64_t best = 0;
      for (int64_t k = 1; k < width; k++)
        if (sign * c->in[0][(o * width + k) * inner + i] > sign * c->in[0][(o * width + best) * inner + i]) best = k;
      c->out[0][o * inner + i] = (double)best;
    }
  return YK_OK;
}

static yk_code max_ref(const yk_ref *c) { return first_of(c, 1); }
static yk_code min_ref(const yk_ref *c) { return first_of(c, -1); }

static const yk_attr attrs[] = {
  YK__INT(yk_arg_attrs, axis, 0, -YK_MAX_RANK, YK_MAX_RANK - 1), YK__DTYPE(yk_arg_attrs, dtype), { 0 }
};
static const yk_arg_attrs last = { -1, YK_I32 }, middle = { 1, 0 };
static const yk_case cases[] = {
  { "T[33]", NULL, 0, 50, 0 }, { "T[4,7]", NULL, 0, 3, 0 }, { "T[7,33]", &last, 0, 50, 0 }, { "T[4,7,5]", &middle, 0, 3, 0 },
  { "T[0,7]", &last, 0, 1, 0 }, { 0 }
};

const yk_op yk__op_argmax = {
  .name = "argmax", .label = "ArgMax", .doc = "first index of the largest element along an axis",
  .version = 1, .attr_bytes = sizeof(yk_arg_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = attrs,
  .in = yk__number1, .out = yk__out1, .infer = infer, .ref = max_ref, .cases = cases,
};

const yk_op yk__op_argmin = {
  .name = "argmin", .label = "ArgMin", .doc = "first index of the smallest element along an axis",
  .version = 1, .attr_bytes = sizeof(yk_arg_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = attrs,
  .in = yk__number1, .out = yk__out1, .infer = infer, .ref = min_ref, .cases = cases,
};

yk_value yk_argmax_at(const char *where, yk_graph *g, yk_value x, int axis) {
  return yk__build(where, g, &yk__op_argmax, &(yk_arg_attrs){ axis, YK_I64 }, 1, x);
}

yk_value yk_argmin_at(const char *where, yk_graph *g, yk_value x, int axis) {
  return yk__build(where, g, &yk__op_argmin, &(yk_arg_attrs){ axis, YK_I64 }, 1, x);
}
