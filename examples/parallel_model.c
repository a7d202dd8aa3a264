/*
 * parallel_model.c - one model, any number of devices: a list of names is all that changes.
 *
 * A small convolutional network learns drawn figures on several GPUs, which are emulated here so that the program runs anywhere. Each batch is
 * split over them. What is saved is the model itself: the file is loaded again on one device and tested there.
 *
 *   parallel_model [DEVICES [EPOCHS [EXAMPLES [FILE]]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <yoke/yoke.h>

enum { MOST = 8 };

static yk_network *model(yk_keras *k) {
  yk_sym in = yk_input(k, &(yk_input_config){ .name = "picture", .shape = YK_SHAPE(32, 32, 3) });
  yk_sym x = yk_apply(yk_layer_conv2d(k, &(yk_conv_config){ .filters = 16, .kernel_size = { 3, 3 }, .strides = { 2, 2 }, .activation = "relu" }), in);
  x = yk_apply(yk_layer_batch_normalization(k, NULL), x);
  x = yk_apply(yk_layer_conv2d(k, &(yk_conv_config){ .filters = 32, .kernel_size = { 3, 3 }, .strides = { 2, 2 }, .activation = "relu" }), x);
  x = yk_apply(yk_layer_flatten(k, NULL), x);
  x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "label", .units = 10, .activation = "softmax" }), x);
  return yk_network_new(k, "figures", 1, &in, 1, &x);
}

static yk_code compile(yk_network *n) {
  yk_optimizer adam = YK_KERAS_ADAM(2e-3);
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  o.optimizer = &adam;
  o.nlosses = o.nmetrics = 1;
  o.losses = &(yk_loss){ .name = "sparse_categorical_crossentropy" };
  o.metrics = &(yk_metric){ .name = "accuracy" };
  return yk_network_compile(n, &o);
}

/* Fit on `devices` GPUs; the best network of all epochs is in the file. */
static yk_code train(size_t devices, int64_t epochs, const yk_examples *learn, const yk_examples *test, const char *file) {
  static const char *const names[MOST] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3", "/gpu:4", "/gpu:5", "/gpu:6", "/gpu:7" };
  yk_session_options session = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_fit_options fit = YK_FIT_OPTIONS_INIT;
  yk_callback *best = NULL;
  yk_keras *k;
  session.virtual_gpus = (int32_t)devices;
  place.session = &session;
  place.ndevices = devices;
  place.devices = names;
  fit.batch_size = 64;
  fit.epochs = epochs;
  fit.verbose = 2;
  fit.validation = test;
  if (yk_keras_new(1, &k) != YK_OK) return YK_ENOMEM;
  yk_network *n = model(k);
  yk_code rc = yk_keras_status(k);
  if (rc == YK_OK) rc = yk_network_place(n, &place);
  if (rc == YK_OK) rc = compile(n);
  if (rc == YK_OK) rc = yk_callback_checkpoint(&(yk_checkpoint_config){ .path = file, .save_best_only = true }, &best);
  fit.callbacks = &best;
  fit.ncallbacks = 1;
  if (rc == YK_OK) rc = yk_network_fit(n, learn, &fit, NULL);
  yk_callback_free(best);
  yk_keras_free(k);
  return rc;
}

static yk_code evaluate(const char *file, const yk_examples *test) {
  double got[2];
  yk_network *n;
  yk_keras *k;
  if (yk_keras_new(1, &k) != YK_OK) return YK_ENOMEM;
  yk_code rc = yk_network_load(k, file, &n);
  if (rc == YK_OK) rc = compile(n);
  if (rc == YK_OK) rc = yk_network_evaluate(n, test, 0, got);
  if (rc == YK_OK) printf("%s on one device: loss %.4f, accuracy %.4f\n", file, got[0], got[1]);
  yk_keras_free(k);
  return rc;
}

int main(int argc, char **argv) {
  size_t devices = argc > 1 ? (size_t)strtol(argv[1], NULL, 10) : 4;
  int64_t epochs = argc > 2 ? strtol(argv[2], NULL, 10) : 4, examples = argc > 3 ? strtol(argv[3], NULL, 10) : 4000;
  const char *file = argc > 4 ? argv[4] : "figures.h5";
  yk_dataset *d[2] = { NULL, NULL };
  if (devices < 1 || devices > MOST) return fprintf(stderr, "parallel_model: 1 to %d devices\n", MOST), 2;
  yk_code rc = yk_dataset_shapes10(1, YK_TRAIN, examples, &d[0]);
  if (rc == YK_OK) rc = yk_dataset_shapes10(1, YK_TEST, examples / 4, &d[1]);
  yk_examples learn = { .dataset = d[0] }, test = { .dataset = d[1] };
  if (rc == YK_OK) rc = train(devices, epochs, &learn, &test, file);
  if (rc == YK_OK) rc = evaluate(file, &test);
  if (rc != YK_OK) fprintf(stderr, "parallel_model: %s\n", yk_error_message());
  yk_dataset_free(d[0]);
  yk_dataset_free(d[1]);
  return rc == YK_OK ? 0 : 1;
}
