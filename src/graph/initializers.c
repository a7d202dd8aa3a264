/*
 * initializers.c - the nodes that compute a variable's first value, and regularizers' penalties.
 *
 * Formulae are those of TensorFlow 1.15 and Keras 2. A random initial value takes its
 * seed from the graph's seed and the variable's name, so that nothing else in the
 * graph can change it.
 */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "graph/store.h"
#include "op/registry.h"
#include "tensor/desc.h"

/* Standard deviation of a standard normal distribution cut off at two deviations. */
#define TRUNCATED_DEVIATION .87962566103423978

enum { SMALL = 1024 };          /* elements of a constant that is stored as it is */

static yk_value constant(const char *where, yk_graph *g, const yk_tensor *t) {
  yk_constant_attrs attrs = { t };
  return yk_add_node_at(where, g, &yk__op_constant, &attrs, NULL, 0, 0);
}

static yk_code filled(yk_dtype dtype, yk_shape shape, double x, yk_tensor **out) {
  yk_tensor *t = NULL;
  YK_TRY(yk_tensor_new(dtype, shape, &t));
  char *p = yk_tensor_data(t);
  size_t item = yk_dtype_bytes(dtype);
  for (int64_t i = 0, n = yk_tensor_count(t); i < n; i++) yk__from_double(dtype, &x, p + (size_t)i * item, 1);
  *out = t;
  return YK_OK;
}

yk_value yk__fill_value(const char *where, yk_graph *g, const yk_desc *desc, double x) {
  bool small = desc->rank == 0 || yk__desc_count(desc) <= SMALL;
  yk_shape shape = yk__desc_shape(desc);
  yk_tile_attrs tile = { .rank = desc->rank };
  for (uint32_t i = 0; i < desc->rank && !small; i++) {    /* one element, repeated: no large tensor in the graph */
    tile.multiple[i] = desc->dim[i];
    shape.dim[i] = 1;
  }
  yk_tensor *t = NULL;
  yk_code code = filled((yk_dtype)desc->dtype, shape, x, &t);
  if (code != YK_OK) return yk__graph_fail(where, g, code);
  yk_value v = constant(where, g, t);
  yk_tensor_free(t);
  return small ? v : yk__build(where, g, &yk__op_tile, &tile, 1, v);
}

static void fans(const yk_desc *d, double *in, double *out) {
  double receptive = 1;
  for (int i = 0; i < d->rank - 2; i++) receptive *= (double)d->dim[i];
  *in = d->rank == 0 ? 1 : d->rank == 1 ? (double)d->dim[0] : receptive * (double)d->dim[d->rank - 2];
  *out = d->rank == 0 ? 1 : receptive * (double)d->dim[d->rank - 1];
}

/* What a random kind means: the op and its two numbers. */
typedef struct draw { const yk_op *op; double a, b; } draw;

static draw draw_of(const yk_init *init, const yk_desc *desc) {
  double in, out;
  fans(desc, &in, &out);
  double average = fmax(1, (in + out) / 2), only_in = fmax(1, in);
  double limit = init->kind == YK_INIT_HE_UNIFORM ? sqrt(6 / only_in) : sqrt(3 / average);
  switch (init->kind) {
    case YK_INIT_UNIFORM:          return (draw){ &yk__op_random_uniform, init->a, init->b };
    case YK_INIT_NORMAL:           return (draw){ &yk__op_random_normal, init->a, init->b };
    case YK_INIT_TRUNCATED_NORMAL: return (draw){ &yk__op_truncated_normal, init->a, init->b };
    case YK_INIT_GLOROT_NORMAL:    return (draw){ &yk__op_truncated_normal, 0, sqrt(1 / average) / TRUNCATED_DEVIATION };
    case YK_INIT_HE_NORMAL:        return (draw){ &yk__op_truncated_normal, 0, sqrt(2 / only_in) / TRUNCATED_DEVIATION };
    default:                       return (draw){ &yk__op_random_uniform, -limit, limit };
  }
}

static yk_value random_value(const char *where, yk_graph *g, const char *name, const yk_desc *desc, const yk_init *init) {
  draw d = draw_of(init, desc);
  uint64_t seed = init->seed ? init->seed : yk__hash(name, strlen(name), g->seed);
  yk_random_attrs attrs = { .dtype = desc->dtype, .rank = desc->rank, .a = d.a, .b = d.b, .seed = seed ? seed : 1 };
  memcpy(attrs.dim, desc->dim, sizeof attrs.dim);
  return yk__build(where, g, d.op, &attrs, 1, yk__run_counter(g));
}

static yk_code check_given(const char *name, const yk_desc *desc, const yk_desc *given, const char *what) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_desc merged;
  if (given->dtype == desc->dtype && yk__shape_merge(desc, given, &merged) == YK_OK) return YK_OK;
  return YK_FAIL(EINVAL, "variable '%s' is %s, but the %s it should start from is %s", name, yk__desc_text(desc, a, sizeof a),
                 what, yk__desc_text(given, b, sizeof b));
}

static yk_value from_tensor(const char *where, yk_graph *g, const char *name, const yk_desc *desc, const yk_tensor *t) {
  yk_tensor *copy = NULL;
  yk_code code = t ? check_given(name, desc, yk_tensor_desc(t), "tensor")
                   : YK_FAIL(EINVAL, "variable '%s': YK_INIT_TENSOR without a tensor", name);
  if (code == YK_OK) code = yk_tensor_from((yk_dtype)desc->dtype, yk__desc_shape(desc), yk_tensor_data(t), &copy);
  if (code != YK_OK) return yk__graph_fail(where, g, code);
  yk_value v = constant(where, g, copy);
  yk_tensor_free(copy);
  return v;
}

yk_value yk__initial_value(const char *where, yk_graph *g, const char *name, const yk_desc *desc, const yk_init *init) {
  bool is_float = (YK_T(desc->dtype) & YK_FLOATS) != 0;
  switch (init->kind) {
    case YK_INIT_DEFAULT:
      return is_float ? random_value(where, g, name, desc, init) : yk__fill_value(where, g, desc, 0);
    case YK_INIT_ZEROS:    return yk__fill_value(where, g, desc, 0);
    case YK_INIT_ONES:     return yk__fill_value(where, g, desc, 1);
    case YK_INIT_CONSTANT: return yk__fill_value(where, g, desc, init->a);
    case YK_INIT_TENSOR:   return from_tensor(where, g, name, desc, init->tensor);
    case YK_INIT_VALUE: {
      const yk_desc *given = yk_value_desc(g, init->value);
      yk_code code = given ? check_given(name, desc, given, "value")
                           : YK_FAIL(EINVAL, "variable '%s': YK_INIT_VALUE without a value of this graph", name);
      return code == YK_OK ? init->value : yk__graph_fail(where, g, code);
    }
    case YK_INIT_UNIFORM: case YK_INIT_NORMAL: case YK_INIT_TRUNCATED_NORMAL: case YK_INIT_GLOROT_UNIFORM:
    case YK_INIT_GLOROT_NORMAL: case YK_INIT_HE_NORMAL: case YK_INIT_HE_UNIFORM:
      return random_value(where, g, name, desc, init);
  }
  return yk_graph_fail_at(where, g, YK_EINVAL, "variable '%s': no initializer has the number %d", name, (int)init->kind);
}

/* ---- penalties ---- */

static yk_value scaled(const char *where, yk_graph *g, double scale, yk_value x, int dtype) {
  yk_desc scalar = { .dtype = (uint8_t)dtype };
  return yk__build(where, g, &yk__op_mul, NULL, 2, yk__fill_value(where, g, &scalar, scale), x);
}

yk_value yk__penalty(const char *where, yk_graph *g, const yk_regularizer *r, yk_value w) {
  yk_value l1 = { 0 }, l2 = { 0 };
  const yk_desc *d = yk_value_desc(g, w);
  if (!d || r->none) return l1;
  if (r->fn) return r->fn(g, w, r->arg);
  if (!(YK_T(d->dtype) & YK_FLOATS)) return l1;           /* counters inherit a scope's decay, but have no size to punish */
  if (r->l1 != 0) {
    yk_value size = yk__build(where, g, &yk__op_abs, NULL, 1, w);
    l1 = scaled(where, g, r->l1, yk__build(where, g, &yk__op_reduce_sum, NULL, 1, size), d->dtype);
  }
  if (r->l2 != 0) l2 = scaled(where, g, r->l2, yk__build(where, g, &yk__op_l2_loss, NULL, 1, w), d->dtype);
  if (l1.id && l2.id) return yk__build(where, g, &yk__op_add, NULL, 2, l1, l2);
  return l1.id ? l1 : l2;
}
