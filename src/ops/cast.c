/*
 * cast.c - the same numbers in another dtype. Floats turn into integers by truncation, saturating at the ends, NaN
 * becoming 0; anything that is not 0 is true. A gradient flows only between floats.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_cast_attrs a = YK__ATTRS(yk_cast_attrs, c);
  if (a.dtype <= YK_NONE || a.dtype >= YK_NDTYPES) return YK_FAIL(EINVAL, "dtype %d is not one to cast to", a.dtype);
  c->out[0] = yk__as(&c->in[0], a.dtype);
  return YK_OK;
}

static double truncated(double x, double lo, double hi) { return isnan(x) ? 0 : x < lo ? lo : x > hi ? hi : trunc(x); }

static double eval(const double *v, const void *attrs) {
  switch (((const yk_cast_attrs *)attrs)->dtype) {
    case YK_BOOL: return v[0] != 0;
    case YK_U8:   return truncated(v[0], 0, UINT8_MAX);
    case YK_I32:  return truncated(v[0], INT32_MIN, INT32_MAX);
    case YK_I64:  return truncated(v[0], (double)INT64_MIN, (double)INT64_MAX);
    default:      return v[0];
  }
}

static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code grad(yk_grad *c) {
  const yk_desc *x = yk_value_desc(c->g, c->in[0]);
  if (x && (YK_FLOATS & YK_T(x->dtype)))
    c->din[0] = YK__OPA(c, cast, (&(yk_cast_attrs){ x->dtype }), 1, c->dout[0]);
  return YK_OK;
}

static const yk_attr attrs[] = { YK__DTYPE(yk_cast_attrs, dtype), { 0 } };
static const yk_cast_attrs f32 = { YK_F32 }, f64 = { YK_F64 }, f16 = { YK_F16 }, bf16 = { YK_BF16 }, i32 = { YK_I32 },
                           i64 = { YK_I64 }, u8 = { YK_U8 }, boolean = { YK_BOOL };
static const yk_case cases[] = {
  YK__CASES_1(&f32, -5, 5), YK__CASES_1(&f64, -5, 5), { "T[4,7]", &f16, -5, 5, 0 }, { "T[4,7]", &bf16, -5, 5, 0 },
  { "T[4,7]", &i32, -5, 5, 0 }, { "T[33]", &i64, -5, 5, 0 }, { "T[33]", &u8, -5, 300, 0 }, { "T[33]", &boolean, -2, 2, 0 }, { 0 }
};

const yk_op yk__op_cast = {
  .name = "cast", .label = "Cast", .doc = "the same numbers in another dtype",
  .version = 1, .attr_bytes = sizeof(yk_cast_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__any1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_cast_at(const char *where, yk_graph *g, yk_value x, yk_dtype dtype) {
  return yk__build(where, g, &yk__op_cast, &(yk_cast_attrs){ (int32_t)dtype }, 1, x);
}
