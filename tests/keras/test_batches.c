/*
 * Batches of every size on every number of devices: a training step, an evaluation and a prediction are those of one device, with batch
 * normalisation, recurrent layers, penalties, and weights of examples; also where devices get no rows at all.
 */
#include "support/check.h"
#include <yoke/yoke.h>

enum { MOST = 17, DEVICES = 8, PARAMETERS = 400 };
#define TOLERANCE 1e-5

typedef yk_network *(*model)(yk_keras *k);

static yk_network *dense(yk_keras *k) {
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(4, 3) });
  yk_sym x = yk_apply(yk_layer_flatten(k, NULL), in);
  x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 6, .activation = "tanh", .kernel_regularizer = { .l2 = 0.01 },
                                                     .activity_regularizer = { .l1 = 0.01 } }), x);
  x = yk_apply(yk_layer_batch_normalization(k, &(yk_norm_config){ .epsilon = 0.1 }), x);
  x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 3, .activation = "softmax" }), x);
  return yk_network_new(k, "dense", 1, &in, 1, &x);
}

static yk_network *recurrent(yk_keras *k) {
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(4, 3) });
  yk_sym x = yk_apply(yk_layer_masking(k, NULL), in);
  x = yk_apply(yk_layer_lstm(k, &(yk_recurrent_config){ .units = 4 }), x);
  x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 3, .activation = "softmax",
                                                     .kernel_constraint = { .kind = YK_CONSTRAINT_UNIT_NORM } }), x);
  return yk_network_new(k, "recurrent", 1, &in, 1, &x);
}

typedef struct result { double trained[2], tested[2], predicted[MOST * 3], weight[PARAMETERS]; int nweights; } result;
static result want[MOST + 1];

static yk_tensor *examples(int64_t rows, yk_shape s) {
  yk_tensor *t;
  s.dim[0] = rows;
  CHECK_OK(yk_tensor_new(YK_F32, s, &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++) ((float *)yk_tensor_data(t))[i] = (float)(i * 37 % 101) / 101 - 0.45f;
  return t;
}

static yk_tensor *labels(int64_t rows) {
  yk_tensor *t;
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(rows), &t));
  for (int64_t i = 0; i < rows; i++) ((int32_t *)yk_tensor_data(t))[i] = (int32_t)(i * 7 % 3);
  return t;
}

/* What all weights are before each step; the same on each number of devices. */
static void reset(yk_network *n, result *r, bool read) {
  r->nweights = 0;
  for (size_t i = 0; yk_network_layer_at(n, i) != NULL; i++) {
    static const char *const names[] = {
      "kernel", "recurrent_kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance"
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      yk_tensor *t;
      yk_layer *l = yk_network_layer_at(n, i);
      if (yk_layer_weight(l, names[k], &t) != YK_OK) continue;
      for (int64_t e = 0; e < yk_tensor_count(t); e++) {
        if (read) r->weight[r->nweights++] = yk_tensor_at(t, e);
        else ((float *)yk_tensor_data(t))[e] = (float)((e * 13 + (int64_t)k * 5) % 29) / 29 - (k < 3 ? 0.5f : -0.5f);
      }
      if (!read) CHECK_OK(yk_layer_set_weight(l, names[k], t));
      yk_tensor_free(t);
    }
  }
}

static void run(yk_network *n, int64_t rows, result *r) {
  yk_tensor *x = examples(rows, YK_SHAPE(rows, 4, 3)), *y = labels(rows), *w = examples(rows, YK_SHAPE(rows)), *p;
  for (int64_t i = 0; i < rows; i++) ((float *)yk_tensor_data(w))[i] += 0.7f;
  yk_examples e = { .x = (const yk_tensor *const *)&x,
                    .y = (const yk_tensor *const *)&y,
                    .sample_weight = (const yk_tensor *const *)&w };
  reset(n, r, false);
  CHECK_OK(yk_network_train_on_batch(n, &e, r->trained));
  reset(n, r, true);
  CHECK_OK(yk_network_evaluate(n, &e, rows > 5 ? 5 : rows, r->tested));
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)&x, rows, &p));
  for (int64_t i = 0; i < rows * 3; i++) r->predicted[i] = yk_tensor_at(p, i);
  yk_tensor_free(x); yk_tensor_free(y); yk_tensor_free(w); yk_tensor_free(p);
}

static void close_to(const char *what, int devices, int64_t rows, int i, double got, double expected) {
  if (!(fabs(got - expected) <= TOLERANCE * fmax(1, fabs(expected))))
    fail_msg("%d devices, %lld rows: %s[%d] is %.8g, on one device %.8g", devices, (long long)rows, what, i, got, expected);
}

static void compare(int devices, int64_t rows, const result *got, const result *one) {
  for (int i = 0; i < 2; i++) close_to("training", devices, rows, i, got->trained[i], one->trained[i]);
  for (int i = 0; i < 2; i++) close_to("evaluation", devices, rows, i, got->tested[i], one->tested[i]);
  for (int i = 0; i < rows * 3; i++) close_to("prediction", devices, rows, i, got->predicted[i], one->predicted[i]);
  CHECK_INT(got->nweights, one->nweights);
  for (int i = 0; i < got->nweights; i++) close_to("weight", devices, rows, i, got->weight[i], one->weight[i]);
}

static void on_devices(model make, int devices, yk_strategy strategy) {
  static const char *const device[DEVICES] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3", "/gpu:4", "/gpu:5", "/gpu:6", "/gpu:7" };
  static result got;
  yk_keras *k;
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_compile_options compile = YK_COMPILE_OPTIONS_INIT;
  yk_optimizer sgd = YK_KERAS_SGD(0.05, 0.9);
  CHECK_OK(yk_keras_new(1, &k));
  yk_network *n = make(k);
  CHECK_OK(yk_keras_status(k));
  o.virtual_gpus = devices;
  place.ndevices = (size_t)devices;
  place.devices = device;
  place.session = &o;
  place.strategy = strategy;
  if (devices > 0) CHECK_OK(yk_network_place(n, &place));
  compile.optimizer = &sgd;
  compile.nlosses = compile.nmetrics = 1;
  compile.losses = &(yk_loss){ .name = "sparse_categorical_crossentropy" };
  compile.metrics = &(yk_metric){ .name = "accuracy" };
  for (int64_t rows = 1; rows <= MOST; rows++) {
    CHECK_OK(yk_network_compile(n, &compile));             /* no momentum of the batch before */
    run(n, rows, devices > 0 ? &got : &want[rows]);
    if (devices > 0) compare(devices, rows, &got, &want[rows]);
  }
  CHECK_CODE(yk_network_place(n, &(yk_network_options)YK_NETWORK_OPTIONS_INIT), YK_EINVAL, "runs already; place it before its first run");
  yk_keras_free(k);
}

static void all(model make) {
  static const yk_strategy strategy[] = { YK_STRATEGY_SHARDED, YK_STRATEGY_HOME, YK_STRATEGY_MIRRORED };
  on_devices(make, 0, YK_STRATEGY_AUTO);
  for (int devices = 1; devices <= DEVICES; devices++) on_devices(make, devices, strategy[devices % 3]);
}

static void test_dense(void **state) { (void)state; all(dense); }
static void test_recurrent(void **state) { (void)state; all(recurrent); }

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_dense), cmocka_unit_test(test_recurrent) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
