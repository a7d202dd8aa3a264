/*
 * merge.c - layers that join several inputs: Concatenate, Add, Subtract, Multiply, Average, Maximum, Minimum.
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
