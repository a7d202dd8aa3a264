/*
 * core.c - Input, Dense, Activation, Dropout, Flatten, Reshape, Permute, RepeatVector.
 *
 * Weights have Keras's names and shapes.
 */
#include <string.h>
#include "keras/keras.h"


/* ---- Input --------------------------------------------------------------------------------------------------------------- */

static const yk_config_field INPUT_FIELDS[] = {
  { .key = "batch_input_shape", .kind = YK__F_SHAPE, YK__AT(yk_input_config, shape) }, { 0 } };

static void call_input(yk_layer_call *c) {
  const yk_input_config *a = c->layer->config;
  yk_shape s = { .rank = a->shape.rank + 1, .dim = { a->batch > 0 ? a->batch : -1 } };
  if (s.rank > YK_MAX_RANK) {
    yk__layer_fail(c->layer, c->where, "%u dimensions besides the batch; at most %d", (unsigned)a->shape.rank, YK_MAX_RANK - 1);
    return;
  }
  for (uint32_t i = 0; i < a->shape.rank; i++) s.dim[i + 1] = a->shape.dim[i] > 0 ? a->shape.dim[i] : -1;
  c->out[0] = yk_placeholder_at(c->where, c->g, NULL, a->dtype != YK_NONE ? a->dtype : YK_F32, s);
}

const yk_layer_class yk__class_input = {
  .name = "InputLayer", .config_bytes = sizeof(yk_input_config), .fields = INPUT_FIELDS, .call = call_input };

yk_sym yk_input_at(const char *where, yk_keras *k, const yk_input_config *config) {
  yk_input_config c = config != NULL ? *config : (yk_input_config){ 0 };
  if (yk_keras_status(k) == YK_OK && c.name == NULL) c.name = yk__auto_name(k, "input");
  return yk_apply_n_at(where, yk__layer_new(where, k, &yk__class_input, &c), 0, NULL);
}

/* ---- Dense --------------------------------------------------------------------------------------------------------------- */

static const yk_config_field DENSE_FIELDS[] = {
  { .key = "units", .kind = YK__F_INT, YK__AT(yk_dense_config, units), .lo = 1, .hi = 1e9 },
  { .key = "activation", .kind = YK__F_ACTIVATION, YK__AT(yk_dense_config, activation), .words = "linear" },
  { .key = "use_bias", .kind = YK__F_NOT, YK__AT(yk_dense_config, no_bias) },
  { .key = "kernel_initializer",
    .kind = YK__F_INITIALIZER,
    YK__AT(yk_dense_config, kernel_initializer),
    .words = "glorot_uniform" },
  { .key = "bias_initializer", .kind = YK__F_INITIALIZER, YK__AT(yk_dense_config, bias_initializer), .words = "zeros" },
  { .key = "kernel_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_dense_config, kernel_regularizer) },
  { .key = "bias_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_dense_config, bias_regularizer) },
  { .key = "activity_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_dense_config, activity_regularizer) },
  { .key = "kernel_constraint", .kind = YK__F_CONSTRAINT, YK__AT(yk_dense_config, kernel_constraint) },
  { .key = "bias_constraint", .kind = YK__F_CONSTRAINT, YK__AT(yk_dense_config, bias_constraint) },
  { 0 }
};

static void build_dense(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_dense_config *a = l->config;
  (void)nin;
  int64_t channels = in[0]->rank > 1 ? in[0]->dim[in[0]->rank - 1] : -1;
  if (channels < 0) {
    yk__layer_fail(l, where, "the last dimension of its input must be known");
    return;
  }
  yk__weight_add(l, &(yk_weight){ .name = "kernel",
                                  .desc = { .dtype = in[0]->dtype, .rank = 2, .dim = { channels, a->units } },
                                  .initializer = a->kernel_initializer,
                                  .penalty = a->kernel_regularizer,
                                  .constraint = a->kernel_constraint });
  if (!a->no_bias)
    yk__weight_add(l, &(yk_weight){ .name = "bias",
                                    .desc = { .dtype = in[0]->dtype, .rank = 1, .dim = { a->units } },
                                    .initializer = a->bias_initializer,
                                    .penalty = a->bias_regularizer,
                                    .constraint = a->bias_constraint });
}

static void call_dense(yk_layer_call *c) {
  const yk_dense_config *a = c->layer->config;
  yk_value y = Y(matmul, c->in[0], yk__weight(c, "kernel"), NULL);
  if (!a->no_bias) y = Y(bias_add, y, yk__weight(c, "bias"));
  c->out[0] = yk__activation(c->where, c->g, a->activation, y);
}

const yk_layer_class yk__class_dense = { .name = "Dense",
                                         .config_bytes = sizeof(yk_dense_config),
                                         .fields = DENSE_FIELDS,
                                         .min_in = 1,
                                         .max_in = 1,
                                         .build = build_dense,
                                         .keeps_mask = true, .call = call_dense };
YK__CONSTRUCTOR(dense, yk_dense_config)

/* ---- Activation, Dropout --------------------------------------------------------------------------------------------------- */

static const yk_config_field ACTIVATION_FIELDS[] = {
  { .key = "activation", .kind = YK__F_ACTIVATION, YK__AT(yk_activation_config, activation), .words = "linear" }, { 0 } };

static void call_activation(yk_layer_call *c) {
  c->out[0] = yk__activation(c->where, c->g, ((const yk_activation_config *)c->layer->config)->activation, c->in[0]);
}

const yk_layer_class yk__class_activation = { .name = "Activation",
                                              .config_bytes = sizeof(yk_activation_config),
                                              .fields = ACTIVATION_FIELDS,
                                              .min_in = 1,
                                              .max_in = 1,
                                              .keeps_mask = true, .call = call_activation };
YK__CONSTRUCTOR(activation, yk_activation_config)

static const yk_config_field DROPOUT_FIELDS[] = {
  { .key = "rate", .kind = YK__F_REAL, YK__AT(yk_dropout_config, rate), .lo = 0, .hi = 1 }, { 0 } };

static void call_dropout(yk_layer_call *c) {
  const yk_dropout_config *a = c->layer->config;
  c->out[0] = c->training && a->rate > 0 && a->rate < 1 ? Y(dropout, c->in[0], a->rate, a->seed) : c->in[0];
}

const yk_layer_class yk__class_dropout = { .name = "Dropout",
                                           .config_bytes = sizeof(yk_dropout_config),
                                           .fields = DROPOUT_FIELDS,
                                           .min_in = 1,
                                           .max_in = 1,
                                           .keeps_mask = true, .call = call_dropout };
YK__CONSTRUCTOR(dropout, yk_dropout_config)

/* ---- shapes ------------------------------------------------------------------------------------------------------------------ */

static const yk_config_field FLATTEN_FIELDS[] = { YK__CHANNELS_LAST, { 0 } };

static void call_flatten(yk_layer_call *c) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  int64_t n = 1;
  for (uint32_t i = 1; d != NULL && i < d->rank; i++) n = d->dim[i] < 0 || n < 0 ? -1 : n * d->dim[i];
  c->out[0] = n < 0 ? Y(flatten, c->in[0]) : Y(reshape, c->in[0], YK_SHAPE(-1, n));
}

const yk_layer_class yk__class_flatten = { .name = "Flatten",
                                           .config_bytes = sizeof(yk_plain_config),
                                           .fields = FLATTEN_FIELDS,
                                           .min_in = 1,
                                           .max_in = 1,
                                           .call = call_flatten };
YK__CONSTRUCTOR(flatten, yk_plain_config)

static const yk_config_field RESHAPE_FIELDS[] = {
  { .key = "target_shape", .kind = YK__F_SHAPE, YK__AT(yk_reshape_config, target_shape) }, { 0 } };

/* The batch is the one unknown dimension of the result, so a -1 of the config is worked out here. */
static void call_reshape(yk_layer_call *c) {
  const yk_reshape_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  yk_shape s = { .rank = a->target_shape.rank + 1, .dim = { -1 } };
  int64_t have = 1, want = 1, open = -1;
  for (uint32_t i = 1; d != NULL && i < d->rank; i++) have *= d->dim[i];
  for (uint32_t i = 0; i < a->target_shape.rank; i++) {
    s.dim[i + 1] = a->target_shape.dim[i];
    if (s.dim[i + 1] < 0) open = i + 1;
    else want *= s.dim[i + 1];
  }
  if (open >= 0 && want > 0) s.dim[open] = have / want, want *= s.dim[open];
  if (have != want)
    yk__layer_fail(c->layer, c->where, "an example has %lld elements, its new shape %lld", (long long)have, (long long)want);
  else c->out[0] = Y(reshape, c->in[0], s);
}

static void settle_reshape(yk_layer *l) {
  if (((const yk_reshape_config *)l->config)->target_shape.rank + 1 > YK_MAX_RANK)
    yk__layer_fail(l, l->where, "too many dimensions");
}

const yk_layer_class yk__class_reshape = { .name = "Reshape",
                                           .config_bytes = sizeof(yk_reshape_config),
                                           .fields = RESHAPE_FIELDS,
                                           .min_in = 1,
                                           .max_in = 1,
                                           .settle = settle_reshape,
                                           .call = call_reshape };
YK__CONSTRUCTOR(reshape, yk_reshape_config)

static const yk_config_field PERMUTE_FIELDS[] = {
  { .key = "dims", .kind = YK__F_DIMS, YK__AT(yk_permute_config, dims) }, { 0 } };

static void call_permute(yk_layer_call *c) {
  const yk_permute_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  int32_t perm[YK_MAX_RANK] = { 0 };
  if (d == NULL || d->rank != a->dims.n + 1) {
    yk__layer_fail(c->layer, c->where, "%u dims for an input with %u besides the batch", (unsigned)a->dims.n,
                   d != NULL ? d->rank - 1u : 0u);
    return;
  }
  for (uint32_t i = 0; i < a->dims.n; i++) perm[i + 1] = (int32_t)a->dims.at[i];
  c->out[0] = Y(transpose, c->in[0], perm);
}

const yk_layer_class yk__class_permute = { .name = "Permute",
                                           .config_bytes = sizeof(yk_permute_config),
                                           .fields = PERMUTE_FIELDS,
                                           .min_in = 1,
                                           .max_in = 1,
                                           .call = call_permute };
YK__CONSTRUCTOR(permute, yk_permute_config)

static const yk_config_field REPEAT_FIELDS[] = {
  { .key = "n", .kind = YK__F_INT, YK__AT(yk_repeat_config, n), .lo = 1, .hi = 1e9 }, { 0 } };

static void call_repeat(yk_layer_call *c) {
  int64_t multiple[3] = { 1, ((const yk_repeat_config *)c->layer->config)->n, 1 };
  c->out[0] = Y(tile, Y(expand_dims, c->in[0], 1), multiple);
}

const yk_layer_class yk__class_repeat_vector = { .name = "RepeatVector",
                                                 .config_bytes = sizeof(yk_repeat_config),
                                                 .fields = REPEAT_FIELDS,
                                                 .min_in = 1,
                                                 .max_in = 1,
                                                 .call = call_repeat };
YK__CONSTRUCTOR(repeat_vector, yk_repeat_config)
