/*
 * multi_output.c - two inputs, two outputs with names, and the same names on any number of devices.
 *
 * Headlines, as word numbers, and a few facts about each are to tell how often it was shared. The main output is learned from both; an
 * auxiliary one, from the headline alone, helps the recurrent layer along. Headlines here are drawn: those with many high words are shared.
 *
 *   multi_output [DEVICES [EPOCHS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <yoke/yoke.h>

enum { ROWS = 600, WORDS = 12, VOCABULARY = 50, FACTS = 4 };

static yk_network *model(yk_keras *k) {
  yk_sym in[2] = { yk_input(k, &(yk_input_config){ .name = "main_input", .shape = YK_SHAPE(WORDS), .dtype = YK_I32 }),
                   yk_input(k, &(yk_input_config){ .name = "aux_input", .shape = YK_SHAPE(FACTS) }) }, out[2], both[2];
  yk_sym x = yk_apply(yk_layer_embedding(k, &(yk_embedding_config){ .input_dim = VOCABULARY, .output_dim = 16 }), in[0]);
  both[0] = yk_apply(yk_layer_lstm(k, &(yk_recurrent_config){ .units = 16 }), x);
  both[1] = in[1];
  out[1] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "aux_output", .units = 1, .activation = "sigmoid" }), both[0]);
  x = yk_apply_n(yk_layer_concatenate(k, NULL), 2, both);
  x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 32, .activation = "relu" }), x);
  out[0] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "main_output", .units = 1, .activation = "sigmoid" }), x);
  return yk_network_new(k, "headlines", 2, in, 2, out);
}

/* Losses, their weights and metrics by the names of outputs. */
static yk_code compile(yk_network *n) {
  yk_optimizer rmsprop = YK_KERAS_RMSPROP(5e-3);
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  o.optimizer = &rmsprop;
  o.nlosses = 2;
  o.losses = (const yk_loss[]){ { .output = "main_output", .name = "binary_crossentropy" },
                                { .output = "aux_output", .name = "binary_crossentropy", .weight = 0.2 } };
  o.nmetrics = 1;
  o.metrics = &(yk_metric){ .output = "main_output", .name = "accuracy" };
  return yk_network_compile(n, &o);
}

/* Half of the headlines have words from the upper half of the vocabulary in most places. */
static yk_code draw(yk_tensor *x[2], yk_tensor **y) {
  uint32_t state = 1;
  if (yk_tensor_new(YK_I32, YK_SHAPE(ROWS, WORDS), &x[0]) != YK_OK || yk_tensor_new(YK_F32, YK_SHAPE(ROWS, FACTS), &x[1]) != YK_OK ||
      yk_tensor_new(YK_F32, YK_SHAPE(ROWS, 1), y) != YK_OK) return YK_ENOMEM;
  for (int r = 0; r < ROWS; r++) {
    int shared = r % 2;
    ((float *)yk_tensor_data(*y))[r] = (float)shared;
    for (int i = 0; i < WORDS; i++) {
      state = state * 1664525u + 1013904223u;
      int high = state >> 28 < 11 ? shared : !shared;
      ((int32_t *)yk_tensor_data(x[0]))[r * WORDS + i] = (int32_t)(state >> 8) % (VOCABULARY / 2) + (high ? VOCABULARY / 2 : 0);
    }
    for (int i = 0; i < FACTS; i++) ((float *)yk_tensor_data(x[1]))[r * FACTS + i] = (float)((r * 7 + i * 3) % 10) / 10;
  }
  return YK_OK;
}

int main(int argc, char **argv) {
  static const char *const names[] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3" };
  int devices = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 2;
  yk_session_options session = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_fit_options fit = YK_FIT_OPTIONS_INIT;
  yk_tensor *x[2] = { NULL, NULL }, *y[2] = { NULL, NULL };
  yk_history *h = NULL;
  yk_keras *k;
  if (devices < 1 || devices > 4) return fprintf(stderr, "multi_output: 1 to 4 devices\n"), 2;
  session.virtual_gpus = devices;
  place.session = &session;
  place.ndevices = (size_t)devices;
  place.devices = names;
  fit.epochs = argc > 2 ? strtol(argv[2], NULL, 10) : 8;
  fit.verbose = 0;
  fit.validation_split = 0.2;
  if (yk_keras_new(3, &k) != YK_OK) return 1;
  yk_network *n = model(k);
  yk_code rc = yk_keras_status(k);
  if (rc == YK_OK) rc = draw(x, &y[0]);
  y[1] = y[0];                                             /* both outputs learn the same */
  yk_examples data = { .x = (const yk_tensor *const *)x, .y = (const yk_tensor *const *)y };
  if (rc == YK_OK) rc = yk_network_place(n, &place);
  if (rc == YK_OK) rc = compile(n);
  if (rc == YK_OK) rc = yk_network_fit(n, &data, &fit, &h);
  if (rc != YK_OK) fprintf(stderr, "multi_output: %s\n", yk_error_message());
  for (size_t i = 0; yk_history_name(h, i) != NULL; i++) {
    const double *value = yk_history_values(h, yk_history_name(h, i));
    printf("%s: %.4f -> %.4f\n", yk_history_name(h, i), value[0], value[yk_history_epochs(h) - 1]);
  }
  yk_history_free(h);
  for (int i = 0; i < 2; i++) yk_tensor_free(x[i]);
  yk_tensor_free(y[0]);
  yk_keras_free(k);
  return rc == YK_OK ? 0 : 1;
}
