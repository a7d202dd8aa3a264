/*
 * app_transformer.c - the encoder of a transformer as a classifier of sequences: attention and Dense layers that add to what they are given.
 *
 * Normalisation comes before each part, not after it, so that training needs no warm-up. Steps know their order by a convolution over three
 * of them, where others add vectors for positions.
 */
#include <yoke/applications.h>
#include <math.h>
#include <stdio.h>
#include "keras/keras.h"

enum { UNITS = 64, HEADS = 4, LAYERS = 2, WIDER = 4 };
#define DROPOUT 0.1

typedef struct making { const char *where; yk_keras *k; const yk_transformer_config *c; int64_t layer; } making;
typedef char name[64];

static const char *named(const making *m, const char *what, name out) {
  snprintf(out, sizeof(name), "layer%lld_%.32s", (long long)m->layer, what);
  return out;
}

static yk_sym norm(const making *m, yk_sym x, const char *n) {
  return yk_apply_at(m->where, yk_layer_layer_normalization_at(m->where, m->k, &(yk_norm_config){ .name = n, .epsilon = 1e-6 }), x);
}

static yk_sym dense(const making *m, yk_sym x, const char *n, int64_t units, const char *activation) {
  yk_dense_config c = { .name = n, .units = units, .activation = activation };
  return yk_apply_at(m->where, yk_layer_dense_at(m->where, m->k, &c), x);
}

/* x + y, of which some of y are dropped in training. */
static yk_sym add(const making *m, yk_sym x, yk_sym y, const char *part) {
  name n;
  char what[32];
  snprintf(what, sizeof what, "%.16s_dropout", part);
  if (m->c->dropout != 0)
    y = yk_apply_at(m->where, yk_layer_dropout_at(m->where, m->k, &(yk_dropout_config){ .name = named(m, what, n), .rate = m->c->dropout }), y);
  snprintf(what, sizeof what, "%.16s_add", part);
  yk_sym both[2] = { x, y };
  return yk_apply_n_at(m->where, yk_layer_add_at(m->where, m->k, &(yk_plain_config){ .name = named(m, what, n) }), 2, both);
}

static yk_sym layer(const making *m, yk_sym x) {
  name n;
  yk_sym y = norm(m, x, named(m, "attention_norm", n)), twice[2] = { y, y };
  yk_attention_config attention = { .name = named(m, "attention", n), .num_heads = m->c->heads, .key_dim = m->c->units / m->c->heads };
  y = yk_apply_n_at(m->where, yk_layer_multi_head_attention_at(m->where, m->k, &attention), 2, twice);
  x = add(m, x, y, "attention");
  y = norm(m, x, named(m, "dense_norm", n));
  y = dense(m, y, named(m, "dense1", n), m->c->feed_forward, "gelu");
  return add(m, x, dense(m, y, named(m, "dense2", n), m->c->units, NULL), "dense");
}

/* Vectors of `units` for each step. */
static yk_sym embed(const making *m, yk_sym x) {
  yk_embedding_config words = { .name = "embedding", .input_dim = m->c->words, .output_dim = m->c->units };
  yk_conv_config mix = { .name = "neighbours", .filters = m->c->units, .kernel_size = { 3 }, .padding = "same" };
  if (m->c->words > 0) x = yk_apply_at(m->where, yk_layer_embedding_at(m->where, m->k, &words), x);
  return yk_apply_at(m->where, yk_layer_conv1d_at(m->where, m->k, &mix), x);
}

yk_network *yk_transformer_at(const char *where, yk_keras *k, const yk_transformer_config *config) {
  yk_transformer_config c = config != NULL ? *config : (yk_transformer_config){ 0 };
  making m = { where, k, &c, 1 };
  if (yk_keras_status(k) != YK_OK) return NULL;
  if (c.units == 0) c.units = UNITS;
  if (c.heads == 0) c.heads = HEADS;
  if (c.layers == 0) c.layers = LAYERS;
  if (c.feed_forward == 0) c.feed_forward = WIDER * c.units;
  if (c.dropout == 0 && !signbit(c.dropout)) c.dropout = DROPOUT;
  if (c.layers < 1)
    return yk_graph_fail_at(where, k->sketch, YK_EINVAL, "a transformer of %lld layers: expected 1 or more", (long long)c.layers), NULL;
  if (c.heads < 1 || c.units % c.heads != 0)
    return yk_graph_fail_at(where, k->sketch, YK_EINVAL, "a transformer of %lld units and %lld heads: expected a multiple of the heads",
                            (long long)c.units, (long long)c.heads), NULL;
  yk_sym in = yk_input_at(where, k, &(yk_input_config){ .name = "sequence", .shape = c.input_shape }), x = embed(&m, in);
  for (; m.layer <= c.layers && yk_keras_status(k) == YK_OK; m.layer++) x = layer(&m, x);
  x = norm(&m, x, "norm");
  x = yk_apply_at(where, yk_layer_global_average_pooling1d_at(where, k, &(yk_global_pooling_config){ .name = "mean" }), x);
  yk_sym out = dense(&m, x, "predictions", c.classes, "softmax");
  return yk_network_new_at(where, k, c.name != NULL ? c.name : "transformer", 1, &in, 1, &out);
}
