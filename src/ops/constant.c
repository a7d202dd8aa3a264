/*
 * constant.c - a value fixed when the graph is built, and the builders that make one from numbers. The node owns a
 * reference to the tensor; the planner uploads it once.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_constant_attrs a = YK__ATTRS(yk_constant_attrs, c);
  if (!a.value) return YK_FAIL(EINVAL, "no tensor given");
  c->out[0] = *yk_tensor_desc(a.value);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_constant_attrs a = YK__ATTRS(yk_constant_attrs, c);
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = yk_tensor_at(a.value, i);
  return YK_OK;
}

static const yk_port none[] = { { 0 } };
static const yk_attr attrs[] = { YK__POINTER(yk_constant_attrs, value), { 0 } };

/* No cases: an attribute that is a tensor cannot be written as constant data. */
const yk_op yk__op_constant = {
  .name = "constant", .label = "Const", .doc = "a value fixed when the graph is built",
  .version = 1, .attr_bytes = sizeof(yk_constant_attrs), .traits = YK_PURE | YK_SOURCE | YK_NO_GRAD, .attrs = attrs,
  .in = none, .out = yk__out1, .infer = infer, .ref = ref,
};

yk_value yk_constant_at(const char *where, yk_graph *g, const yk_tensor *tensor) {
  return yk__build(where, g, &yk__op_constant, &(yk_constant_attrs){ tensor }, 0);
}

/* The constant of a tensor that nobody else keeps. */
static yk_value take(const char *where, yk_graph *g, yk_code code, yk_tensor *t) {
  if (code != YK_OK) return yk_graph_fail_at(where, g, code, "%s", yk_error_message());
  yk_value v = yk_constant_at(where, g, t);
  yk_tensor_free(t);
  return v;
}

yk_value yk_constant_from_at(const char *where, yk_graph *g, yk_dtype dtype, yk_shape shape, const void *data) {
  yk_tensor *t = NULL;
  yk_code code = yk_tensor_from(dtype, shape, data, &t);
  return take(where, g, code, t);
}

yk_value yk_constant_f32_at(const char *where, yk_graph *g, yk_shape shape, const float *data) {
  return yk_constant_from_at(where, g, YK_F32, shape, data);
}

yk_value yk_fill_at(const char *where, yk_graph *g, yk_dtype dtype, yk_shape shape, double x) {
  yk_tensor *t = NULL;
  yk_code code = yk_tensor_new(dtype, shape, &t);
  int64_t n = code == YK_OK ? yk_tensor_count(t) : 0;
  size_t width = yk_dtype_bytes(dtype);
  for (int64_t i = 0; i < n; i++) yk__from_double(dtype, &x, (char *)yk_tensor_data(t) + (size_t)i * width, 1);
  return take(where, g, code, t);
}

yk_value yk_scalar_at(const char *where, yk_graph *g, yk_dtype dtype, double x) {
  return yk_fill_at(where, g, dtype, YK_SCALAR, x);
}

yk_value yk_scalar_f32_at(const char *where, yk_graph *g, float x) { return yk_fill_at(where, g, YK_F32, YK_SCALAR, x); }

yk_value yk__scalar_like(const char *where, yk_graph *g, yk_value like, double x) {
  const yk_desc *d = yk_value_desc(g, like);
  return d ? yk_fill_at(where, g, (yk_dtype)d->dtype, YK_SCALAR, x) : (yk_value){ 0 };
}
