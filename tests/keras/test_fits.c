/*
 * Fits that Keras itself ran: from the same model, over the same examples in the same order, history and evaluation follow Keras's own, on
 * one device and on several. tests/golden/make_keras_fits.py made the files.
 */
#include "support/check.h"
#include <yoke/yoke.h>
#include "store/safetensors.h"

#define TOLERANCE 1e-3

typedef struct fit_case {
  const char *name;
  yk_optimizer_kind kind;
  double rate, momentum;
  bool nesterov;
  yk_loss loss[2];       size_t nlosses;
  yk_metric metric[2];   size_t nmetrics;
  double split, clip_norm;
  double class_weight[3]; size_t nclasses;
} fit_case;

static const fit_case cases[] = {
  { .name = "mlp", .kind = YK_OPT_MOMENTUM, .rate = 0.1, .momentum = 0.9, .loss = { { .name = "categorical_crossentropy" } }, .nlosses = 1,
    .metric = { { .name = "accuracy" }, { .name = "mse" } }, .nmetrics = 2, .split = 0.2 },
  { .name = "convnet", .kind = YK_OPT_ADAM, .rate = 0.01, .loss = { { .name = "sparse_categorical_crossentropy" } }, .nlosses = 1,
    .metric = { { .name = "accuracy" } }, .nmetrics = 1, .split = 0.25 },
  { .name = "lstm", .kind = YK_OPT_RMSPROP, .rate = 0.01, .loss = { { .name = "binary_crossentropy" } }, .nlosses = 1,
    .metric = { { .name = "accuracy" } }, .nmetrics = 1, .split = 0.25 },
  { .name = "two_outputs", .kind = YK_OPT_ADAGRAD, .rate = 0.05,
    .loss = { { .output = "aux_output", .name = "mse", .weight = 0.3 }, { .output = "main_output", .name = "categorical_crossentropy" } },
    .nlosses = 2, .metric = { { .output = "main_output", .name = "accuracy" }, { .output = "aux_output", .name = "mae" } }, .nmetrics = 2,
    .split = 0.2 },
  { .name = "weighted", .kind = YK_OPT_ADADELTA, .rate = 1, .loss = { { .name = "sparse_categorical_crossentropy" } }, .nlosses = 1,
    .metric = { { .name = "accuracy" }, { .name = "accuracy", .weighted = true } }, .nmetrics = 2 },
  { .name = "class_weights", .kind = YK_OPT_MOMENTUM, .rate = 0.1, .momentum = 0.8, .nesterov = true,
    .loss = { { .name = "sparse_categorical_crossentropy" } }, .nlosses = 1, .metric = { { .name = "accuracy" } }, .nmetrics = 1,
    .clip_norm = 0.5, .class_weight = { 1, 3, 0.5 }, .nclasses = 3 },
};

static yk_optimizer optimizer_of(const fit_case *c) {
  yk_optimizer o = { 0 };
  switch (c->kind) {
    case YK_OPT_MOMENTUM: o = YK_KERAS_SGD(c->rate, c->momentum); break;
    case YK_OPT_ADAM: return YK_KERAS_ADAM(c->rate);
    case YK_OPT_RMSPROP: return YK_KERAS_RMSPROP(c->rate);
    case YK_OPT_ADADELTA: return YK_KERAS_ADADELTA(c->rate);
    case YK_OPT_ADAGRAD: o = YK_KERAS_ADAGRAD(c->rate); o.initial_accumulator = 0.1; break;    /* tf.keras's start */
    default: fail_msg("no such optimizer");
  }
  o.nesterov = c->nesterov;
  return o;
}

static char *path_of(const char *name, const char *ending, char path[1024]) {
  const char *tests = getenv("YOKE_TEST_DATA");
  snprintf(path, 1024, "%s/golden/keras_fits/%s%s", tests != NULL ? tests : "tests", name, ending);
  return path;
}

static yk_tensor *value(const yk_safetensors *f, const char *prefix, const char *name) {
  char key[160];
  yk_tensor *t = NULL;
  snprintf(key, sizeof key, "%s%s", prefix, name);
  if (yk__safetensors_desc(f, key) != NULL) CHECK_OK(yk__safetensors_get(f, key, &t));
  return t;
}

static void compare(const char *what, const char *name, int64_t at, double got, double want) {
  if (!(fabs(got - want) <= TOLERANCE * fmax(1, fabs(want))))
    fail_msg("%s: %s[%lld]: %.6f, Keras has %.6f", what, name, (long long)at, got, want);
}

static yk_network *load(const fit_case *c, uint32_t ndevices, yk_keras **k) {
  static const char *const device[] = { "/gpu:0", "/gpu:1", "/gpu:2" };
  char path[1024];
  yk_network *n = NULL;
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_compile_options compile = YK_COMPILE_OPTIONS_INIT;
  CHECK_OK(yk_keras_new(1, k));
  CHECK_OK(yk_network_load(*k, path_of(c->name, ".h5", path), &n));
  o.virtual_gpus = (int32_t)ndevices;
  place.ndevices = ndevices;
  place.devices = device;
  place.session = &o;
  CHECK_OK(yk_network_place(n, &place));
  yk_optimizer optimizer = optimizer_of(c);
  compile.optimizer = &optimizer;
  compile.nlosses = c->nlosses;
  compile.losses = c->loss;
  compile.nmetrics = c->nmetrics;
  compile.metrics = c->metric;
  compile.clip_norm = c->clip_norm;
  CHECK_OK(yk_network_compile(n, &compile));
  return n;
}

static void fit(const fit_case *c, uint32_t ndevices) {
  char path[1024], what[64];
  yk_keras *k;
  yk_safetensors *values;
  yk_history *h;
  yk_tensor *x[2] = { NULL }, *y[2] = { NULL }, *w = NULL;
  snprintf(what, sizeof what, "%s on %u", c->name, ndevices > 0 ? ndevices : 1);
  CHECK_OK(yk__safetensors_open(path_of(c->name, ".safetensors", path), &values));
  for (int i = 0; i < 2; i++) {
    x[i] = value(values, "x", i ? "1" : "0");
    y[i] = value(values, "y", i ? "1" : "0");
  }
  w = value(values, "w", "0");
  yk_network *n = load(c, ndevices, &k);
  yk_examples e = { .x = (const yk_tensor *const *)x, .y = (const yk_tensor *const *)y };
  if (w != NULL) e.sample_weight = (const yk_tensor *const *)&w;
  yk_fit_options o = YK_FIT_OPTIONS_INIT;
  o.batch_size = 8;
  o.epochs = 5;
  o.no_shuffle = true;
  o.verbose = 0;
  o.validation_split = c->split;
  o.class_weight = c->class_weight;
  o.nclass_weights = c->nclasses;
  yk_code rc = yk_network_fit(n, &e, &o, &h);
  if (rc != YK_OK) fail_msg("%s: %s", what, yk_error_message());
  CHECK_INT(yk_history_epochs(h), 5);
  size_t names = 0;
  for (const char *name; (name = yk_history_name(h, names)) != NULL; names++) {
    yk_tensor *want = value(values, "h:", name);
    if (want == NULL) fail_msg("%s: Keras's history has no '%s'", what, name);
    for (int64_t i = 0; i < 5; i++) compare(what, name, i, yk_history_values(h, name)[i], yk_tensor_at(want, i));
    yk_tensor_free(want);
  }
  CHECK_INT(names, (c->split > 0 ? 2 : 1) * (1 + c->nmetrics + (c->nlosses > 1 ? c->nlosses : 0)));
  e.sample_weight = NULL;
  double got[8];
  CHECK_OK(yk_network_evaluate(n, &e, 16, got));
  yk_tensor *end = value(values, "end", "");
  for (int64_t i = 0; i < yk_tensor_count(end); i++) compare(what, "evaluation", i, got[i], yk_tensor_at(end, i));
  yk_tensor_free(end);
  for (int i = 0; i < 2; i++) yk_tensor_free(x[i]), yk_tensor_free(y[i]);
  yk_tensor_free(w);
  yk_history_free(h);
  yk__safetensors_close(values);
  yk_keras_free(k);
}

static void test_one_device(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) fit(&cases[i], 0);
}

static void test_three_devices(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) fit(&cases[i], 3);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_device), cmocka_unit_test(test_three_devices) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
