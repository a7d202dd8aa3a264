/*
 * activation_layers.c - activations that are layers of their own, with numbers or weights: ReLU, LeakyReLU, PReLU, ELU, ThresholdedReLU, Softmax.
 *
 * Keras 2 and 3 call some of the numbers differently; the tables have both.
 */
#include <math.h>
#include "keras/keras.h"

static yk_value number(const yk_layer_call *c, double x) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  return d != NULL ? Y(scalar, (yk_dtype)d->dtype, x) : (yk_value){ 0 };
}

#define SLOPE(member) YK__AT(yk_slope_config, member)
#define ACTIVATION(id, title, type, table, weights)                                                                          \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(type), .fields = table, .min_in = 1, .max_in = 1, \
                                          .keeps_mask = true, .build = (weights), .call = call_##id };                       \
  YK__CONSTRUCTOR(id, type)

/* ---- ReLU ------------------------------------------------------------------------------------------------------------------ */

static const yk_config_field RELU_FIELDS[] = {
  { .key = "max_value", .kind = YK__F_REAL, YK__AT(yk_relu_config, max_value), .number = HUGE_VAL, .lo = 0, .hi = HUGE_VAL },
  { .key = "negative_slope", .kind = YK__F_REAL, YK__AT(yk_relu_config, negative_slope) },
  { .key = "threshold", .kind = YK__F_REAL, YK__AT(yk_relu_config, threshold) },
  { 0 }
};

/* max_value from there on, x from threshold on, slope * (x - threshold) below it. */
static void call_relu(yk_layer_call *c) {
  const yk_relu_config *a = c->layer->config;
  yk_value x = c->in[0];
  if (a->negative_slope == 0 && a->threshold == 0) {
    c->out[0] = a->max_value == 6 ? Y(relu6, x) : Y(relu, x);
    if (a->max_value == 6) return;
  } else {
    yk_value at = number(c, a->threshold), below = Y(mul, Y(sub, x, at), number(c, a->negative_slope));
    c->out[0] = Y(where, Y(greater_equal, x, at), x, below);
  }
  if (a->max_value < HUGE_VAL) c->out[0] = Y(minimum, c->out[0], number(c, a->max_value));
}
ACTIVATION(relu, "ReLU", yk_relu_config, RELU_FIELDS, NULL)

/* ---- one number --------------------------------------------------------------------------------------------------------------- */

static const yk_config_field LEAKY_FIELDS[] = {
  { .key = "alpha", .major = 2, .kind = YK__F_REAL, SLOPE(alpha), .number = 0.3 },
  { .key = "negative_slope", .major = 3, .kind = YK__F_REAL, SLOPE(alpha), .number = 0.3 }, { 0 } };
static const yk_config_field ELU_FIELDS[] = { { .key = "alpha", .kind = YK__F_REAL, SLOPE(alpha), .number = 1, .lo = 0, .hi = HUGE_VAL }, { 0 } };
static const yk_config_field THRESHOLD_FIELDS[] = { { .key = "theta", .kind = YK__F_REAL, SLOPE(alpha), .number = 1 }, { 0 } };

static double alpha(const yk_layer_call *c) { return ((const yk_slope_config *)c->layer->config)->alpha; }

static void call_leaky_relu(yk_layer_call *c) {
  c->out[0] = alpha(c) != 0 ? Y(leaky_relu, c->in[0], alpha(c)) : Y(relu, c->in[0]);
}
static void call_elu(yk_layer_call *c) { c->out[0] = alpha(c) > 0 ? Y(elu, c->in[0], alpha(c)) : Y(relu, c->in[0]); }
static void call_thresholded_relu(yk_layer_call *c) {
  c->out[0] = Y(where, Y(greater, c->in[0], number(c, alpha(c))), c->in[0], number(c, 0));
}
ACTIVATION(leaky_relu, "LeakyReLU", yk_slope_config, LEAKY_FIELDS, NULL)
ACTIVATION(elu, "ELU", yk_slope_config, ELU_FIELDS, NULL)
ACTIVATION(thresholded_relu, "ThresholdedReLU", yk_slope_config, THRESHOLD_FIELDS, NULL)

/* ---- PReLU --------------------------------------------------------------------------------------------------------------------- */

static const yk_config_field PRELU_FIELDS[] = {
  { .key = "alpha_initializer", .kind = YK__F_INITIALIZER, YK__AT(yk_prelu_config, alpha_initializer), .words = "zeros" },
  { .key = "alpha_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_prelu_config, alpha_regularizer) },
  { .key = "alpha_constraint", .kind = YK__F_CONSTRAINT, YK__AT(yk_prelu_config, alpha_constraint) },
  { .key = "shared_axes", .kind = YK__F_DIMS, YK__AT(yk_prelu_config, shared_axes) },
  { 0 }
};

static void build_prelu(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_prelu_config *a = l->config;
  yk_desc d = { .dtype = in[0]->dtype, .rank = (uint8_t)(in[0]->rank - 1) };
  (void)nin;
  for (uint32_t i = 0; i < d.rank; i++) d.dim[i] = in[0]->dim[i + 1];
  for (uint32_t i = 0; i < a->shared_axes.n; i++) {
    int64_t axis = a->shared_axes.at[i];
    if (axis < 1 || axis > d.rank) yk__layer_fail(l, where, "shared axis %lld of %u; axes count from 1", (long long)axis, (unsigned)d.rank);
    else d.dim[axis - 1] = 1;
  }
  for (uint32_t i = 0; i < d.rank; i++)
    if (d.dim[i] < 0) yk__layer_fail(l, where, "dimension %u of its input must be known, or shared", (unsigned)i + 1);
  yk__weight_add(l, &(yk_weight){ .name = "alpha", .desc = d, .initializer = a->alpha_initializer, .penalty = a->alpha_regularizer,
                                  .constraint = a->alpha_constraint });
}

static void call_prelu(yk_layer_call *c) {
  yk_value below = Y(mul, yk__weight(c, "alpha"), Y(minimum, c->in[0], number(c, 0)));
  c->out[0] = Y(add, Y(relu, c->in[0]), below);
}
ACTIVATION(prelu, "PReLU", yk_prelu_config, PRELU_FIELDS, build_prelu)

/* ---- Softmax --------------------------------------------------------------------------------------------------------------------- */

static const yk_config_field SOFTMAX_FIELDS[] = {
  { .key = "axis", .kind = YK__F_AXIS, YK__AT(yk_axis_config, axis), .number = -1, .lo = -YK_MAX_RANK, .hi = YK_MAX_RANK - 1 }, { 0 } };

static void call_softmax(yk_layer_call *c) {
  int32_t axis = ((const yk_axis_config *)c->layer->config)->axis, swap[YK_MAX_RANK];
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (d == NULL) return;
  int32_t rank = d->rank, last = rank - 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > last) {
    yk__layer_fail(c->layer, c->where, "axis %d of an input with %d dimensions", (int)axis, (int)rank);
    return;
  }
  for (int32_t i = 0; i < rank; i++) swap[i] = i == axis ? last : i == last ? axis : i;
  c->out[0] = axis == last ? Y(softmax, c->in[0]) : Y(transpose, Y(softmax, Y(transpose, c->in[0], swap)), swap);
}
ACTIVATION(softmax, "Softmax", yk_axis_config, SOFTMAX_FIELDS, NULL)
