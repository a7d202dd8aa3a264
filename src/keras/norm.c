/*
 * norm.c - BatchNormalization, LayerNormalization, Embedding.
 *
 * The graph's own batch normalisation keeps track of moving statistics over any number of replicas; its variables have Keras's names.
 */
#include <string.h>
#include "keras/keras.h"

#define NORM(member) YK__AT(yk_norm_config, member)
#define SIDE(prefix, first, member)                                                                                \
  { .key = prefix "_initializer", .kind = YK__F_INITIALIZER, NORM(member##_initializer), .words = (first) },       \
  { .key = prefix "_regularizer", .kind = YK__F_PENALTY, NORM(member##_regularizer) },                             \
  { .key = prefix "_constraint", .kind = YK__F_CONSTRAINT, NORM(member##_constraint) }
#define USUAL                                                                                                      \
  { .key = "axis", .kind = YK__F_AXIS, NORM(axis), .number = -1, .lo = -YK_MAX_RANK, .hi = YK_MAX_RANK - 1 },      \
  { .key = "epsilon", .kind = YK__F_REAL, NORM(epsilon), .number = 1e-3, .lo = 0, .hi = 1e6 },                     \
  { .key = "center", .kind = YK__F_NOT, NORM(no_center) }, { .key = "scale", .kind = YK__F_NOT, NORM(no_scale) },  \
  SIDE("beta", "zeros", beta), SIDE("gamma", "ones", gamma)
static const yk_config_field LAYER_FIELDS[] = { USUAL, { 0 } };
static const yk_config_field BATCH_FIELDS[] = {
  { .key = "momentum", .kind = YK__F_REAL, NORM(momentum), .number = .99, .lo = 0, .hi = 1 },
  USUAL,
  { .key = "moving_mean_initializer", .kind = YK__F_INITIALIZER, NORM(moving_mean_initializer), .words = "zeros" },
  { .key = "moving_variance_initializer", .kind = YK__F_INITIALIZER, NORM(moving_variance_initializer), .words = "ones" },
  { 0 }
};

static yk_desc vector(yk_layer *l, const char *where, const yk_desc *in) {
  yk_desc d = { .dtype = in->dtype, .rank = 1, .dim = { in->rank > 0 ? in->dim[in->rank - 1] : -1 } };
  int32_t axis = ((const yk_norm_config *)l->config)->axis;
  if (axis != -1 && axis != in->rank - 1)
    yk__layer_fail(l, where, "axis is %d of %u; only the last one can be normalised over", (int)axis, (unsigned)in->rank);
  if (d.dim[0] < 0) yk__layer_fail(l, where, "the last dimension of its input must be known");
  return d;
}

static void build_layer(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_norm_config *a = l->config;
  yk_desc d = vector(l, where, in[0]);
  (void)nin;
  if (!a->no_scale)
    yk__weight_add(l, &(yk_weight){ .name = "gamma",
                                    .desc = d,
                                    .initializer = a->gamma_initializer,
                                    .penalty = a->gamma_regularizer,
                                    .constraint = a->gamma_constraint });
  if (!a->no_center)
    yk__weight_add(l, &(yk_weight){ .name = "beta", .desc = d, .initializer = a->beta_initializer, .penalty = a->beta_regularizer,
                                    .constraint = a->beta_constraint });
}

static void build_batch(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_norm_config *a = l->config;
  yk_desc d = vector(l, where, in[0]);
  build_layer(l, where, nin, in);
  yk__weight_add(
      l, &(yk_weight){ .name = "moving_mean", .desc = d, .initializer = a->moving_mean_initializer, .not_trainable = true });
  yk__weight_add(
      l,
      &(yk_weight){ .name = "moving_variance", .desc = d, .initializer = a->moving_variance_initializer, .not_trainable = true });
}

/* gamma and beta are made here first, so that penalties and freezing are those of the layer. */
static void call_batch(yk_layer_call *c) {
  const yk_norm_config *a = c->layer->config;
  yk_batch_norm_options o = { .training = c->training && !c->layer->frozen, .momentum = a->momentum, .epsilon = a->epsilon,
                              .no_scale = a->no_scale, .no_center = a->no_center, .in_turn = true };
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  o.unbiased = d != NULL && d->rank == 4 && c->layer->k->major < 3;      /* its fused kernel does so, Keras 3's does not */
  if (!a->no_scale) yk__weight(c, "gamma");
  if (!a->no_center) yk__weight(c, "beta");
  c->out[0] = Y(batch_norm, c->in[0], &o);
}

static void call_layer(yk_layer_call *c) {
  const yk_norm_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  yk_norm_attrs x = { .epsilon = a->epsilon };
  if (d == NULL) return;
  yk_shape s = { .rank = 1, .dim = { d->dim[d->rank - 1] } };
  yk_value gamma = a->no_scale ? Y(fill, (yk_dtype)d->dtype, s, 1) : yk__weight(c, "gamma");
  yk_value beta = a->no_center ? Y(fill, (yk_dtype)d->dtype, s, 0) : yk__weight(c, "beta");
  c->out[0] = Y(layer_norm, c->in[0], gamma, beta, &x);
}

const yk_layer_class yk__class_batch_normalization = { .name = "BatchNormalization",
                                                       .config_bytes = sizeof(yk_norm_config),
                                                       .fields = BATCH_FIELDS,
                                                       .min_in = 1,
                                                       .max_in = 1,
                                                       .build = build_batch,
                                                       .keeps_mask = true, .call = call_batch };
YK__CONSTRUCTOR(batch_normalization, yk_norm_config)
const yk_layer_class yk__class_layer_normalization = { .name = "LayerNormalization",
                                                       .config_bytes = sizeof(yk_norm_config),
                                                       .fields = LAYER_FIELDS,
                                                       .min_in = 1,
                                                       .max_in = 1,
                                                       .build = build_layer,
                                                       .keeps_mask = true, .call = call_layer };
YK__CONSTRUCTOR(layer_normalization, yk_norm_config)

/* ---- UnitNormalization ------------------------------------------------------------------------------------------------------ */

static const yk_config_field UNIT_FIELDS[] = { { .key = "axis",
                                                 .kind = YK__F_AXIS,
                                                 YK__AT(yk_axis_config, axis),
                                                 .number = -1,
                                                 .lo = -YK_MAX_RANK,
                                                 .hi = YK_MAX_RANK - 1 },
                                               { 0 } };

static void call_unit_normalization(yk_layer_call *c) {
  yk_reduce_attrs along = { .naxes = 1, .axis = { ((const yk_axis_config *)c->layer->config)->axis }, .keepdims = true };
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (d == NULL) return;
  yk_value sum = Y(reduce_sum, Y(square, c->in[0]), &along);
  c->out[0] = Y(mul, c->in[0], Y(rsqrt, Y(maximum, sum, Y(scalar, (yk_dtype)d->dtype, 1e-12))));
}

const yk_layer_class yk__class_unit_normalization = { .name = "UnitNormalization",
                                                      .config_bytes = sizeof(yk_axis_config),
                                                      .fields = UNIT_FIELDS,
                                                      .min_in = 1,
                                                      .max_in = 1,
                                                      .keeps_mask = true,
                                                      .call = call_unit_normalization };
YK__CONSTRUCTOR(unit_normalization, yk_axis_config)

/* ---- Embedding ------------------------------------------------------------------------------------------------------------------ */

static const yk_config_field EMBEDDING_FIELDS[] = {
  { .key = "input_dim", .kind = YK__F_INT, YK__AT(yk_embedding_config, input_dim), .lo = 1, .hi = 1e12 },
  { .key = "output_dim", .kind = YK__F_INT, YK__AT(yk_embedding_config, output_dim), .lo = 1, .hi = 1e9 },
  { .key = "mask_zero", .kind = YK__F_TRUE, YK__AT(yk_embedding_config, mask_zero) },
  { .key = "embeddings_initializer",
    .kind = YK__F_INITIALIZER,
    YK__AT(yk_embedding_config, embeddings_initializer),
    .words = "random_uniform" },
  { .key = "embeddings_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_embedding_config, embeddings_regularizer) },
  { .key = "activity_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_embedding_config, activity_regularizer) },
  { .key = "embeddings_constraint", .kind = YK__F_CONSTRAINT, YK__AT(yk_embedding_config, embeddings_constraint) },
  { 0 }
};

static void build_embedding(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_embedding_config *a = l->config;
  (void)where;
  (void)nin;
  (void)in;
  yk__weight_add(l, &(yk_weight){ .name = "embeddings",
                                  .desc = { .dtype = YK_F32, .rank = 2, .dim = { a->input_dim, a->output_dim } },
                                  .initializer = a->embeddings_initializer,
                                  .penalty = a->embeddings_regularizer,
                                  .constraint = a->embeddings_constraint });
}

static void call_embedding(yk_layer_call *c) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  bool whole = d != NULL && (d->dtype == YK_I32 || d->dtype == YK_I64);
  if (((const yk_embedding_config *)c->layer->config)->mask_zero && d != NULL)
    c->out_mask[0] = Y(not_equal, c->in[0], Y(scalar, (yk_dtype)d->dtype, 0));
  c->out[0] = Y(gather, yk__weight(c, "embeddings"), whole ? c->in[0] : Y(cast, c->in[0], YK_I64), 0);
}

const yk_layer_class yk__class_embedding = { .name = "Embedding",
                                             .config_bytes = sizeof(yk_embedding_config),
                                             .fields = EMBEDDING_FIELDS,
                                             .min_in = 1,
                                             .max_in = 1,
                                             .build = build_embedding,
                                             .call = call_embedding };
YK__CONSTRUCTOR(embedding, yk_embedding_config)
