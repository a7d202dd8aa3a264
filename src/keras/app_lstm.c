/*
 * app_lstm.c - a classifier of sequences: LSTMs one over the other, the last output of the last one, a softmax.
 *
 * Numbers of words become vectors first; 0 is padding, whose steps are passed over.
 */
#include <yoke/applications.h>
#include <stdio.h>
#include "keras/keras.h"

enum { UNITS = 64 };

yk_network *yk_lstm_network_at(const char *where, yk_keras *k, const yk_lstm_network_config *config) {
  yk_lstm_network_config c = config != NULL ? *config : (yk_lstm_network_config){ 0 };
  char name[64];
  if (yk_keras_status(k) != YK_OK) return NULL;
  if (c.units == 0) c.units = UNITS;
  if (c.layers == 0) c.layers = 1;
  if (c.layers < 1)
    return yk_graph_fail_at(where, k->sketch, YK_EINVAL, "an LSTM network of %lld layers: expected 1 or more", (long long)c.layers), NULL;
  yk_sym in = yk_input_at(where, k, &(yk_input_config){ .name = "sequence", .shape = c.input_shape }), x = in;
  if (c.words > 0)
    x = yk_apply_at(where, yk_layer_embedding_at(where, k, &(yk_embedding_config){ .name = "embedding", .input_dim = c.words, .output_dim = c.units,
                                                                                   .mask_zero = true }), x);
  for (int64_t i = 1; i <= c.layers && yk_keras_status(k) == YK_OK; i++) {
    snprintf(name, sizeof name, "lstm_%lld", (long long)i);
    x = yk_apply_at(where, yk_layer_lstm_at(where, k, &(yk_recurrent_config){ .name = name, .units = c.units, .return_sequences = i < c.layers }), x);
    snprintf(name, sizeof name, "dropout_%lld", (long long)i);
    if (c.dropout != 0) x = yk_apply_at(where, yk_layer_dropout_at(where, k, &(yk_dropout_config){ .name = name, .rate = c.dropout }), x);
  }
  yk_dense_config dense = { .name = "predictions", .units = c.classes, .activation = "softmax" };
  yk_sym out = yk_apply_at(where, yk_layer_dense_at(where, k, &dense), x);
  return yk_network_new_at(where, k, c.name != NULL ? c.name : "lstm", 1, &in, 1, &out);
}
