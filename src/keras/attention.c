/*
 * attention.c - MultiHeadAttention: softmax(q.k / sqrt(key_dim)).v in several heads (Vaswani and others, 2017).
 *
 * The heads' products are one product with all heads' columns side by side; kernels keep Keras's shapes and are only looked at otherwise.
 */
#include <math.h>
#include <string.h>
#include "keras/keras.h"

#define AT(member) YK__AT(yk_attention_config, member)
static const yk_config_field FIELDS[] = {
  { .key = "num_heads", .kind = YK__F_INT, AT(num_heads), .lo = 1, .hi = 1e6 },
  { .key = "key_dim", .kind = YK__F_INT, AT(key_dim), .lo = 1, .hi = 1e6 },
  { .key = "value_dim", .kind = YK__F_INT, AT(value_dim), .lo = 0, .hi = 1e6 },
  { .key = "dropout", .kind = YK__F_REAL, AT(dropout), .lo = 0, .hi = 1 },
  { .key = "use_bias", .kind = YK__F_NOT, AT(no_bias) },
  { .key = "attention_axes", .kind = YK__F_FIXED, .words = "[1]" },
  { .key = "kernel_initializer", .kind = YK__F_INITIALIZER, AT(kernel_initializer), .words = "glorot_uniform" },
  { .key = "bias_initializer", .kind = YK__F_INITIALIZER, AT(bias_initializer), .words = "zeros" },
  { .key = "kernel_regularizer", .kind = YK__F_PENALTY, AT(kernel_regularizer) },
  { .key = "bias_regularizer", .kind = YK__F_PENALTY, AT(bias_regularizer) },
  { .key = "activity_regularizer", .kind = YK__F_PENALTY, AT(activity_regularizer) },
  { .key = "kernel_constraint", .kind = YK__F_CONSTRAINT, AT(kernel_constraint) },
  { .key = "bias_constraint", .kind = YK__F_CONSTRAINT, AT(bias_constraint) },
  { 0 }
};

static void settle(yk_layer *l) {
  yk_attention_config *a = l->config;
  if (a->value_dim == 0) a->value_dim = a->key_dim;
}

/* ---- weights ---------------------------------------------------------------------------------------------------------------- */

static void add_pair(yk_layer *l, const char *kernel, const char *bias, yk_desc k, yk_desc b) {
  const yk_attention_config *a = l->config;
  yk__weight_add(l, &(yk_weight){ .name = kernel, .desc = k, .initializer = a->kernel_initializer, .penalty = a->kernel_regularizer,
                                  .constraint = a->kernel_constraint });
  if (!a->no_bias)
    yk__weight_add(l, &(yk_weight){ .name = bias, .desc = b, .initializer = a->bias_initializer, .penalty = a->bias_regularizer,
                                    .constraint = a->bias_constraint });
}

/* Inputs query [N, T, D], value [N, S, E], key (value, if left out). */
static void build(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_attention_config *a = l->config;
  const yk_desc *q = in[0], *v = in[1], *k = in[nin > 2 ? 2 : 1];
  uint8_t t = q->dtype;
  for (uint32_t i = 0; i < nin; i++)
    if (in[i]->rank != 3 || in[i]->dim[2] < 0) {
      yk__layer_fail(l, where, "input %u has to be a sequence [N, T, C] with C known", (unsigned)i);
      return;
    }
  int64_t h = a->num_heads;
  add_pair(l, "query/kernel", "query/bias", (yk_desc){ .dtype = t, .rank = 3, .dim = { q->dim[2], h, a->key_dim } },
           (yk_desc){ .dtype = t, .rank = 2, .dim = { h, a->key_dim } });
  add_pair(l, "key/kernel", "key/bias", (yk_desc){ .dtype = t, .rank = 3, .dim = { k->dim[2], h, a->key_dim } },
           (yk_desc){ .dtype = t, .rank = 2, .dim = { h, a->key_dim } });
  add_pair(l, "value/kernel", "value/bias", (yk_desc){ .dtype = t, .rank = 3, .dim = { v->dim[2], h, a->value_dim } },
           (yk_desc){ .dtype = t, .rank = 2, .dim = { h, a->value_dim } });
  add_pair(l, "attention_output/kernel", "attention_output/bias",
           (yk_desc){ .dtype = t, .rank = 3, .dim = { h, a->value_dim, q->dim[2] } }, (yk_desc){ .dtype = t, .rank = 1, .dim = { q->dim[2] } });
}

/* ---- call ---------------------------------------------------------------------------------------------------------------------- */

/* x [N, T, D] through kernel [D, heads, width] and bias: [N, heads, T, width]. */
static yk_value project(yk_layer_call *c, yk_value x, const char *kernel, const char *bias, int64_t width) {
  const yk_attention_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, x);
  static const int32_t heads_first[4] = { 0, 2, 1, 3 };
  if (d == NULL) return (yk_value){ 0 };
  int64_t all = a->num_heads * width, steps = d->dim[1], rows = d->dim[0];
  yk_value y = Y(matmul, x, Y(reshape, yk__weight(c, kernel), YK_SHAPE(d->dim[2], all)), NULL);
  if (!a->no_bias) y = Y(bias_add, y, Y(reshape, yk__weight(c, bias), YK_SHAPE(all)));
  if (steps < 0 && rows < 0) {
    yk__layer_fail(c->layer, c->where, "the length of its sequences must be known");
    return (yk_value){ 0 };
  }
  return Y(transpose, Y(reshape, y, YK_SHAPE(steps < 0 ? rows : -1, steps, a->num_heads, width)), heads_first);
}

static yk_value large_where_not(yk_layer_call *c, yk_value allowed) {
  return Y(mul, Y(sub, Y(scalar, YK_F32, 1), Y(cast, allowed, YK_F32)), Y(scalar, YK_F32, -1e9));
}

/* 0 where query i may look at step k, -1e9 where it may not; {0}: everywhere. [N or 1, 1, T or 1, S] */
static yk_value mask_of(yk_layer_call *c) {
  const yk_attention_config *a = c->layer->config;
  yk_value sum = { 0 };
  const uint32_t key = c->nin > 2 ? 2 : 1;
  for (uint32_t i = 0; c->in_mask != NULL && i < c->nin; i++) {
    if (c->in_mask[i].id == 0 || (i == 2 && key != 2)) continue;
    yk_value m = i == 0 ? Y(expand_dims, Y(expand_dims, c->in_mask[0], 1), 3) : Y(expand_dims, Y(expand_dims, c->in_mask[i], 1), 1);
    m = large_where_not(c, m);
    sum = sum.id != 0 ? Y(add, sum, m) : m;
  }
  if (!a->use_causal_mask) return sum;
  const yk_desc *q = yk_value_desc(c->g, c->in[0]), *v = yk_value_desc(c->g, c->in[1]);
  if (q == NULL || v == NULL || q->dim[1] < 0 || v->dim[1] < 0) {
    yk__layer_fail(c->layer, c->where, "a causal mask needs sequences of known lengths");
    return sum;
  }
  float *table = yk__alloc((size_t)(q->dim[1] * v->dim[1]) * sizeof *table + 1);
  for (int64_t i = 0; table != NULL && i < q->dim[1] * v->dim[1]; i++) table[i] = i % v->dim[1] <= i / v->dim[1] ? 0 : -1e9f;
  if (table == NULL) yk_graph_fail_at(c->where, c->g, YK_ENOMEM, "no memory for a causal mask");
  else {
    yk_value m = Y(constant_f32, YK_SHAPE(1, 1, q->dim[1], v->dim[1]), table);
    sum = sum.id != 0 ? Y(add, sum, m) : m;
  }
  yk__free(table);
  return sum;
}

static void call(yk_layer_call *c) {
  const yk_attention_config *a = c->layer->config;
  static const int32_t heads_last[4] = { 0, 2, 1, 3 };
  yk_value q = project(c, c->in[0], "query/kernel", "query/bias", a->key_dim);
  yk_value k = project(c, c->in[c->nin > 2 ? 2 : 1], "key/kernel", "key/bias", a->key_dim);
  yk_value v = project(c, c->in[1], "value/kernel", "value/bias", a->value_dim);
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (yk_graph_status(c->g) != YK_OK || d == NULL) return;
  q = Y(mul, q, Y(scalar, (yk_dtype)d->dtype, 1 / sqrt((double)a->key_dim)));
  yk_value scores = Y(matmul, q, k, &(yk_matmul_attrs){ .transpose_b = 1 }), mask = mask_of(c);
  if (mask.id != 0) scores = Y(add, scores, mask);
  scores = Y(softmax, scores);
  if (c->training && a->dropout > 0) scores = Y(dropout, scores, a->dropout, 0);
  yk_value y = Y(transpose, Y(matmul, scores, v, NULL), heads_last);
  int64_t all = a->num_heads * a->value_dim;
  y = Y(reshape, y, YK_SHAPE(d->dim[1] < 0 ? d->dim[0] : -1, d->dim[1], all));
  y = Y(matmul, y, Y(reshape, yk__weight(c, "attention_output/kernel"), YK_SHAPE(all, d->dim[2])), NULL);
  c->out[0] = a->no_bias ? y : Y(bias_add, y, yk__weight(c, "attention_output/bias"));
  if (c->in_mask != NULL) c->out_mask[0] = c->in_mask[0];
}

const yk_layer_class yk__class_multi_head_attention = { .name = "MultiHeadAttention", .config_bytes = sizeof(yk_attention_config), .fields = FIELDS,
                                                        .min_in = 2, .max_in = 3, .settle = settle, .build = build, .call = call };
YK__CONSTRUCTOR(multi_head_attention, yk_attention_config)
