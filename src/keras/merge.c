/*
 * merge.c - layers that join several inputs: Concatenate, Add, Subtract, Multiply, Average, Maximum, Minimum, Dot.
 *
 * Inputs of the element-wise ones broadcast, as Keras's do: those with fewer dimensions get them behind the batch.
 */
#include "keras/keras.h"

static const yk_config_field NO_FIELDS[] = { { 0 } };
static const yk_config_field CONCATENATE_FIELDS[] = { { .key = "axis",
                                                        .kind = YK__F_AXIS,
                                                        .offset = offsetof(yk_concatenate_config, axis),
                                                        .number = -1,
                                                        .lo = -YK_MAX_RANK,
                                                        .hi = YK_MAX_RANK - 1 },
                                                      { 0 } };

static void call_concatenate(yk_layer_call *c) {
  c->out[0] = Y(concat, c->nin, c->in, ((const yk_concatenate_config *)c->layer->config)->axis);
}

/* x with dims of 1 behind the batch until it has `rank`. */
static yk_value raise(yk_layer_call *c, yk_value x, uint32_t rank) {
  const yk_desc *d = yk_value_desc(c->g, x);
  for (uint32_t r = d != NULL ? d->rank : rank; r < rank; r++) x = Y(expand_dims, x, 1);
  return x;
}

static uint32_t highest(const yk_layer_call *c) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < c->nin; i++) {
    const yk_desc *d = yk_value_desc(c->g, c->in[i]);
    if (d != NULL && d->rank > rank) rank = d->rank;
  }
  return rank;
}

/* A step counts where it counts in all inputs that have a mask. */
static void join_masks(yk_layer_call *c) {
  for (uint32_t i = 0; c->in_mask != NULL && i < c->nin; i++) {
    if (c->in_mask[i].id == 0) continue;
    c->out_mask[0] = c->out_mask[0].id != 0 ? Y(logical_and, c->out_mask[0], c->in_mask[i]) : c->in_mask[i];
  }
}

static void fold(yk_layer_call *c, yk_value (*join)(const char *where, yk_graph *g, yk_value a, yk_value b)) {
  uint32_t rank = highest(c);
  join_masks(c);
  c->out[0] = raise(c, c->in[0], rank);
  for (uint32_t i = 1; i < c->nin; i++) c->out[0] = join(c->where, c->g, c->out[0], raise(c, c->in[i], rank));
}

static void call_add(yk_layer_call *c) { fold(c, yk_add_at); }
static void call_subtract(yk_layer_call *c) { fold(c, yk_sub_at); }
static void call_multiply(yk_layer_call *c) { fold(c, yk_mul_at); }
static void call_maximum(yk_layer_call *c) { fold(c, yk_maximum_at); }
static void call_minimum(yk_layer_call *c) { fold(c, yk_minimum_at); }

static void call_average(yk_layer_call *c) {
  fold(c, yk_add_at);
  const yk_desc *d = yk_value_desc(c->g, c->out[0]);
  if (d != NULL) c->out[0] = Y(mul, c->out[0], Y(scalar, (yk_dtype)d->dtype, 1.0 / c->nin));
}

const yk_layer_class yk__class_concatenate = { .name = "Concatenate",
                                               .config_bytes = sizeof(yk_concatenate_config),
                                               .fields = CONCATENATE_FIELDS,
                                               .min_in = 2,
                                               .max_in = YK__MAX_PORTS,
                                               .call = call_concatenate };
YK__CONSTRUCTOR(concatenate, yk_concatenate_config)
#define JOIN(id, title, most) \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_plain_config), .fields = NO_FIELDS, .min_in = 2, \
                                          .max_in = (most), .call = call_##id };   \
  YK__CONSTRUCTOR(id, yk_plain_config)
JOIN(add, "Add", YK__MAX_PORTS)
JOIN(subtract, "Subtract", 2)
JOIN(multiply, "Multiply", YK__MAX_PORTS)
JOIN(average, "Average", YK__MAX_PORTS)
JOIN(maximum, "Maximum", YK__MAX_PORTS)
JOIN(minimum, "Minimum", YK__MAX_PORTS)

/* ---- Dot ------------------------------------------------------------------------------------------------------------------------ */

static const yk_config_field DOT_FIELDS[] = {
  { .key = "axes", .kind = YK__F_PAIR, YK__AT(yk_dot_config, axes), .lo = -YK_MAX_RANK, .hi = YK_MAX_RANK - 1 },
  { .key = "normalize", .kind = YK__F_TRUE, YK__AT(yk_dot_config, normalize) },
  { 0 }
};

/* Input i as [N, A, K], K being the axis that is summed over; [N, K] is [N, 1, K]. {0} after a sticky error. */
static yk_value rows_over(yk_layer_call *c, uint32_t i, bool *flat) {
  const yk_dot_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[i]);
  static const int32_t swap[3] = { 0, 2, 1 };
  yk_value x = c->in[i];
  if (d == NULL) return x;
  int64_t axis = a->axes[i] < 0 ? a->axes[i] + d->rank : a->axes[i];
  *flat = d->rank == 2;
  if (d->rank < 2 || d->rank > 3 || axis < 1 || axis >= d->rank) {
    yk__layer_fail(c->layer, c->where, "axis %lld of input %u with %u dimensions; expected 2 or 3 of them, and none of the batch",
                   (long long)a->axes[i], (unsigned)i, (unsigned)d->rank);
    return (yk_value){ 0 };
  }
  if (a->normalize) {
    yk_reduce_attrs over = { .naxes = 1, .axis = { (int32_t)axis }, .keepdims = 1 };
    yk_value least = Y(scalar, (yk_dtype)d->dtype, 1e-12);
    x = Y(mul, x, Y(rsqrt, Y(maximum, Y(reduce_sum, Y(square, x), &over), least)));
  }
  return *flat ? Y(expand_dims, x, 1) : axis == 2 ? x : Y(transpose, x, swap);
}

static void call_dot(yk_layer_call *c) {
  bool flat[2] = { false, false };
  yk_value a = rows_over(c, 0, &flat[0]), b = rows_over(c, 1, &flat[1]);
  if (a.id == 0 || b.id == 0) return;
  yk_axes_attrs gone = { .naxes = 1, .axis = { flat[0] ? 1 : 2 } };
  c->out[0] = Y(matmul, a, b, &(yk_matmul_attrs){ .transpose_b = 1 });
  if (flat[0] || flat[1]) c->out[0] = Y(squeeze, c->out[0], &gone);
}

const yk_layer_class yk__class_dot = { .name = "Dot", .config_bytes = sizeof(yk_dot_config), .fields = DOT_FIELDS, .min_in = 2, .max_in = 2,
                                       .call = call_dot };
YK__CONSTRUCTOR(dot, yk_dot_config)
