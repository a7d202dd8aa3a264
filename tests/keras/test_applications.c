/*
 * Built-in networks: ResNet50 is layer for layer what Keras makes, as tests/golden/resnet50_layers.txt tells (make_resnet50_layers.py wrote it); the
 * classifiers of sequences learn, on one device and on two; numbers that do not fit are refused. With YOKE_SAVED, weights of ResNet50 and what it
 * predicts stay in that folder for tests/golden/check_keras_files.py, where Keras's own ResNet50 loads them.
 */
#include "support/check.h"
#include <string.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "keras/keras.h"
#include "store/safetensors.h"
#include "tensor/desc.h"

static yk_keras *begin(void) {
  yk_keras *k;
  CHECK_OK(yk_keras_new(7, &k));
  return k;
}

/* ---- ResNet50 ---------------------------------------------------------------------------------------------------------------- */

static const char *name_of(const yk_layer *l) { return l->class == &yk__class_input ? "input" : l->name; }

static void put_layer(const yk_layer *l, char *out, size_t n) {
  const yk_desc *d = yk_sym_desc((yk_sym){ (yk_layer *)l, 0, 0 });
  int64_t all = 0, trainable = 0;
  int at = snprintf(out, n, "%s %s None", name_of(l), l->class->name);
  CHECK_INT(d->dim[0], -1);
  for (uint32_t i = 1; i < d->rank; i++) at += snprintf(out + at, n - (size_t)at, ",%lld", (long long)d->dim[i]);
  for (uint32_t i = 0; i < l->nweight; i++) {
    all += yk__desc_count(&l->weight[i].desc);
    if (!l->weight[i].not_trainable) trainable += yk__desc_count(&l->weight[i].desc);
  }
  at += snprintf(out + at, n - (size_t)at, " %lld %lld", (long long)all, (long long)trainable);
  for (uint32_t i = 0; i < l->call[0].nin; i++) at += snprintf(out + at, n - (size_t)at, " %s", name_of(l->call[0].in[i].layer));
}

static void test_layers(void **state) {
  char path[512], want[400], got[400];
  int64_t all, trainable;
  const char *tests = getenv("YOKE_TEST_DATA");
  yk_keras *k = begin();
  (void)state;
  snprintf(path, sizeof path, "%s/golden/resnet50_layers.txt", tests != NULL ? tests : "tests");
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  yk_network *n = yk_resnet50(k, NULL);
  CHECK_OK(yk_keras_status(k));
  for (size_t i = 0; yk_network_layer_at(n, i) != NULL; i++) {
    assert_non_null(fgets(want, sizeof want, f));
    want[strcspn(want, "\n")] = '\0';
    put_layer(yk_network_layer_at(n, i), got, sizeof got);
    if (strcmp(got, want) != 0) fail_msg("layer %zu is\n%s\nKeras has\n%s", i, got, want);
  }
  yk_network_parameters(n, &all, &trainable);
  snprintf(got, sizeof got, "%lld %lld\n", (long long)all, (long long)trainable);
  assert_non_null(fgets(want, sizeof want, f));
  assert_string_equal(got, want);
  CHECK_INT(all, 25636712);
  CHECK_INT(all - trainable, 53120);
  assert_null(fgets(want, sizeof want, f));
  fclose(f);
  yk_keras_free(k);
}

/* Statistics and scales that are no ones and zeros, so that one that is left out shows. */
static void stir(yk_network *n) {
  static const char *const name[] = { "gamma", "beta", "moving_mean", "moving_variance" };
  for (size_t i = 0; yk_network_layer_at(n, i) != NULL; i++) {
    yk_layer *l = yk_network_layer_at(n, i);
    if (strcmp(yk_layer_class_name(l), "BatchNormalization") != 0) continue;
    for (size_t w = 0; w < 4; w++) {
      yk_tensor *t;
      CHECK_OK(yk_layer_weight(l, name[w], &t));
      for (int64_t j = 0; j < yk_tensor_count(t); j++) {
        float wave = sinf((float)(j + (int64_t)i * 7 + (int64_t)w * 3));
        ((float *)yk_tensor_data(t))[j] = w == 0 ? 1.3f + 0.2f * wave : w == 3 ? 1 + 0.5f * wave : 0.1f * wave;
      }
      CHECK_OK(yk_layer_set_weight(l, name[w], t));
      yk_tensor_free(t);
    }
  }
}

static void save(yk_network *n, const yk_tensor *x, const yk_tensor *y, const char *folder) {
  char path[1024];
  yk_saved values[2] = { { "in0", x }, { "out0", y } };
  snprintf(path, sizeof path, "%s/resnet50.safetensors", folder);
  CHECK_OK(yk__safetensors_write(path, 2, values));
  snprintf(path, sizeof path, "%s/resnet50_tf.h5", folder);
  CHECK_OK(yk_network_save_weights(n, path));
  CHECK_OK(yk_network_set_keras(n, 3));
  snprintf(path, sizeof path, "%s/resnet50.weights.h5", folder);
  CHECK_OK(yk_network_save_weights(n, path));
}

/* A small one, so that it is quick; two sizes, since the sides of its steps are rounded. */
static void test_resnet50(void **state) {
  yk_keras *k = begin();
  yk_tensor *x, *y;
  (void)state;
  yk_network *n = yk_resnet50(k, &(yk_resnet50_config){ .input_shape = YK_SHAPE(40, 33, 3), .classes = 7 });
  CHECK_OK(yk_keras_status(k));
  stir(n);
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3, 40, 33, 3), &x));
  for (int64_t i = 0; i < yk_tensor_count(x); i++) ((float *)yk_tensor_data(x))[i] = cosf((float)i * 0.37f);
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)&x, 0, &y));
  CHECK_INT(yk_tensor_desc(y)->dim[1], 7);
  for (int64_t r = 0; r < 3; r++) {
    double sum = 0;
    for (int64_t i = 0; i < 7; i++) sum += yk_tensor_at(y, r * 7 + i);
    CHECK_NEAR(sum, 1, 1e-5);
  }
  if (getenv("YOKE_SAVED") != NULL) save(n, x, y, getenv("YOKE_SAVED"));
  yk_tensor_free(x);
  yk_tensor_free(y);
  yk_keras_free(k);
}

static void same_dims(const yk_network *n, uint32_t rank, const int64_t *dim) {
  const yk_desc *d = yk_sym_desc(n->out[0]);
  CHECK_INT(d->rank, rank);
  for (uint32_t i = 1; i < rank; i++) CHECK_INT(d->dim[i], dim[i - 1]);
}

static void test_no_top(void **state) {
  yk_keras *k = begin();
  (void)state;
  yk_resnet50_config c = { .name = "a", .input_shape = YK_SHAPE(64, 96, 1), .no_top = true };
  same_dims(yk_resnet50(k, &c), 4, (const int64_t[]){ 2, 3, 2048 });
  yk_keras_free(k);
  for (int i = 0; i < 2; i++) {
    k = begin();
    c.pooling = i ? "max" : "avg";
    same_dims(yk_resnet50(k, &c), 2, (const int64_t[]){ 2048 });
    yk_keras_free(k);
  }
  k = begin();
  c.input_shape = YK_SHAPE(-1, -1, 3);
  c.pooling = NULL;
  same_dims(yk_resnet50(k, &c), 4, (const int64_t[]){ -1, -1, 2048 });
  yk_keras_free(k);
}

/* ---- sequences ----------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 48, STEPS = 6, FEATURES = 3, CLASSES = 3 };

/* The class is the feature that rises; as words, the number in the third step. */
static void examples(bool words, yk_tensor **x, yk_tensor **y) {
  CHECK_OK(yk_tensor_new(words ? YK_I32 : YK_F32, words ? YK_SHAPE(ROWS, STEPS) : YK_SHAPE(ROWS, STEPS, FEATURES), x));
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(ROWS), y));
  for (int64_t r = 0; r < ROWS; r++) {
    int32_t class = (int32_t)(r % CLASSES);
    ((int32_t *)yk_tensor_data(*y))[r] = class;
    for (int64_t t = 0; t < STEPS; t++) {
      if (words) ((int32_t *)yk_tensor_data(*x))[r * STEPS + t] = t == 2 ? class + 1 : 4 + (int32_t)((r * 5 + t * 3) % 6);
      for (int64_t c = 0; c < FEATURES && !words; c++)
        ((float *)yk_tensor_data(*x))[(r * STEPS + t) * FEATURES + c] = (c == class ? (float)t * 0.4f : 0) + (float)((r * 7 + t * 3 + c) % 5) * 0.1f;
    }
  }
}

static yk_network *make(yk_keras *k, bool attends, bool words) {
  yk_shape s = words ? YK_SHAPE(STEPS) : YK_SHAPE(STEPS, FEATURES);
  if (attends)
    return yk_transformer(k, &(yk_transformer_config){ .input_shape = s, .classes = CLASSES, .units = 16, .heads = 2, .layers = 1,
                                                       .dropout = YK_EXACTLY_ZERO, .words = words ? 10 : 0 });
  return yk_lstm_network(k, &(yk_lstm_network_config){ .input_shape = s, .classes = CLASSES, .units = 16, .layers = 2, .words = words ? 10 : 0 });
}

/* loss after a few epochs, on so many virtual GPUs (0: the CPU). */
static double learn(bool attends, bool words, uint32_t ndevices) {
  static const char *const device[] = { "/gpu:0", "/gpu:1" };
  yk_loss loss = { .name = "sparse_categorical_crossentropy" };
  yk_optimizer adam = YK_KERAS_ADAM(0.02);
  yk_compile_options how = YK_COMPILE_OPTIONS_INIT;
  yk_fit_options fit = YK_FIT_OPTIONS_INIT;
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_keras *k = begin();
  yk_network *n = make(k, attends, words);
  yk_tensor *x, *y;
  double value[4];
  CHECK_OK(yk_keras_status(k));
  examples(words, &x, &y);
  yk_examples data = { .x = (const yk_tensor *const *)&x, .y = (const yk_tensor *const *)&y };
  how.optimizer = &adam;
  how.losses = &loss, how.nlosses = 1;
  o.virtual_gpus = (int32_t)ndevices;
  place.ndevices = ndevices;
  place.devices = device;
  place.session = &o;
  CHECK_OK(yk_network_place(n, &place));
  CHECK_OK(yk_network_compile(n, &how));
  fit.epochs = 12;
  fit.batch_size = 16;
  fit.no_shuffle = true;
  fit.verbose = 0;
  CHECK_OK(yk_network_fit(n, &data, &fit, NULL));
  CHECK_OK(yk_network_evaluate(n, &data, 0, value));
  yk_tensor_free(x);
  yk_tensor_free(y);
  yk_keras_free(k);
  return value[0];
}

static void test_sequences(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    double one = learn(i & 1, i & 2, 0), two = learn(i & 1, i & 2, 2);
    if (!(one < 0.4)) fail_msg("%s%s: loss %g after training", i & 1 ? "transformer" : "lstm", i & 2 ? " on words" : "", one);
    CHECK_NEAR(one, two, 2e-3);
  }
}

/* ---- refused ---------------------------------------------------------------------------------------------------------------------- */

static void refuse(const char *want, yk_network *(*build)(yk_keras *k)) {
  yk_keras *k = begin();
  assert_null(build(k));
  CHECK_CODE(yk_keras_status(k), YK_EINVAL, want);
  yk_keras_free(k);
}

static yk_network *small(yk_keras *k) { return yk_resnet50(k, &(yk_resnet50_config){ .input_shape = YK_SHAPE(31, 64, 3) }); }
static yk_network *flat(yk_keras *k) { return yk_resnet50(k, &(yk_resnet50_config){ .input_shape = YK_SHAPE(64, 64) }); }
static yk_network *any_size(yk_keras *k) { return yk_resnet50(k, &(yk_resnet50_config){ .input_shape = YK_SHAPE(-1, 64, 3) }); }
static yk_network *mean(yk_keras *k) { return yk_resnet50(k, &(yk_resnet50_config){ .no_top = true, .pooling = "mean" }); }
static yk_network *uneven(yk_keras *k) {
  return yk_transformer(k, &(yk_transformer_config){ .input_shape = YK_SHAPE(4, 4), .classes = 2, .units = 10 });
}
static yk_network *no_classes(yk_keras *k) { return yk_lstm_network(k, &(yk_lstm_network_config){ .input_shape = YK_SHAPE(4, 4) }); }
static yk_network *few_layers(yk_keras *k) {
  return yk_lstm_network(k, &(yk_lstm_network_config){ .input_shape = YK_SHAPE(4, 4), .classes = 2, .layers = -1 });
}
static yk_network *no_sequence(yk_keras *k) { return yk_transformer(k, &(yk_transformer_config){ .input_shape = YK_SHAPE(4), .classes = 2 }); }

static void test_refused(void **state) {
  (void)state;
  refuse("sides of at least 32", small);
  refuse("pictures [height, width, channels]", flat);
  refuse("sides of at least 32", any_size);
  refuse("no pooling is called 'mean'; expected avg or max", mean);
  refuse("a transformer of 10 units and 4 heads", uneven);
  refuse("'predictions'", no_classes);
  refuse("layers", few_layers);
  refuse("'neighbours'", no_sequence);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_layers), cmocka_unit_test(test_resnet50), cmocka_unit_test(test_no_top),
                                      cmocka_unit_test(test_sequences), cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
