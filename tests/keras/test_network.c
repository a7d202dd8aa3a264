/*
 * Networks of layers: shapes, names and order, numbers against those worked out by hand, sharing, nesting, and any number of devices.
 */
#include "support/check.h"
#include <string.h>
#include <yoke/yoke.h>

static yk_keras *begin(void) {
  yk_keras *k;
  CHECK_OK(yk_keras_new(7, &k));
  return k;
}

static yk_tensor *ramp(yk_shape s) {
  yk_tensor *t;
  CHECK_OK(yk_tensor_new(YK_F32, s, &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++) ((float *)yk_tensor_data(t))[i] = (float)(i % 13) / 13 - 0.4f;
  return t;
}

static void same_shape(yk_sym s, int64_t a, int64_t b) {
  const yk_desc *d = yk_sym_desc(s);
  if (d == NULL || d->rank != 2 || d->dim[0] != a || d->dim[1] != b) fail_msg("not [%lld, %lld]", (long long)a, (long long)b);
}

/* y = relu(x.w + b) by hand. */
static void test_dense(void **state) {
  enum { N = 5, C = 3, U = 4 };
  yk_keras *k = begin();
  yk_tensor *w, *b, *x = ramp(YK_SHAPE(N, C)), *y;
  (void)state;
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(C) });
  yk_layer *dense = yk_layer_dense(k, &(yk_dense_config){ .units = U, .activation = "relu" });
  yk_sym out = yk_apply(dense, in);
  CHECK_OK(yk_keras_status(k));
  same_shape(out, -1, U);
  assert_string_equal(yk_layer_name(dense), "dense_1");
  yk_network *n = yk_network_new(k, NULL, 1, &in, 1, &out);
  b = ramp(YK_SHAPE(U));
  CHECK_OK(yk_layer_set_weight(dense, "bias", b));
  CHECK_OK(yk_layer_weight(dense, "kernel", &w));
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)&x, 2, &y));
  CHECK_INT(yk_tensor_desc(y)->dim[0], N);
  for (int64_t i = 0; i < N; i++)
    for (int64_t u = 0; u < U; u++) {
      double want = yk_tensor_at(b, u);
      for (int64_t c = 0; c < C; c++) want += yk_tensor_at(x, i * C + c) * yk_tensor_at(w, c * U + u);
      if (want < 0) want = 0;
      double got = yk_tensor_at(y, i * U + u);
      if (!(fabs(got - want) <= 1e-6)) fail_msg("[%lld, %lld]: %g, expected %g", (long long)i, (long long)u, got, want);
    }
  yk_tensor_free(w); yk_tensor_free(b); yk_tensor_free(x); yk_tensor_free(y);
  yk_keras_free(k);
}

/* Keras's own example: one branch twice through a shared layer, joined. */
static yk_network *siamese(yk_keras *k, yk_layer **shared) {
  yk_sym in[2] = { yk_input(k, &(yk_input_config){ .name = "a", .shape = YK_SHAPE(6) }),
                   yk_input(k, &(yk_input_config){ .name = "b", .shape = YK_SHAPE(6) }) };
  *shared = yk_layer_dense(k, &(yk_dense_config){ .units = 4, .activation = "tanh" });
  yk_sym both[2] = { yk_apply(*shared, in[0]), yk_apply(*shared, in[1]) };
  yk_sym joined = yk_apply_n(yk_layer_concatenate(k, NULL), 2, both);
  yk_sym out[2] = { yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "main_output", .units = 3, .activation = "softmax" }),
                             joined),
                    yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "aux_output", .units = 1 }), both[0]) };
  return yk_network_new(k, "pair", 2, in, 2, out);
}

static void test_structure(void **state) {
  static const char *const order[] = { "a", "b", "dense_1", "concatenate_1", "main_output", "aux_output" };
  yk_keras *k = begin();
  yk_layer *shared;
  char *text;
  int64_t all, trainable;
  (void)state;
  yk_network *n = siamese(k, &shared);
  CHECK_OK(yk_keras_status(k));
  for (size_t i = 0; i < 6; i++) assert_string_equal(yk_layer_name(yk_network_layer_at(n, i)), order[i]);
  assert_null(yk_network_layer_at(n, 6));
  yk_network_parameters(n, &all, &trainable);
  CHECK_INT(all, 6 * 4 + 4 + 8 * 3 + 3 + 4 + 1);
  CHECK_INT(trainable, all);
  CHECK_OK(yk_network_summary(n, &text));
  if (strstr(text, "(None, 8)") == NULL || strstr(text, "dense_1[0][0], dense_1[1][0]") == NULL ||
      strstr(text, "parameters: 60; trainable: 60") == NULL)
    fail_msg("%s", text);
  yk_free(text);
  yk_keras_free(k);
}

/* The same numbers on any number of devices, with fewer rows than devices too, and inside another network. */
static void run(uint32_t ndevices, int64_t rows, bool nested, float out[64]) {
  static const char *const device[] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3" };
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_keras *k = begin();
  yk_layer *shared;
  yk_tensor *in[2] = { ramp(YK_SHAPE(rows, 6)), ramp(YK_SHAPE(rows, 6)) }, *got[2];
  yk_network *n = siamese(k, &shared);
  o.virtual_gpus = (int32_t)ndevices;
  place.ndevices = ndevices;
  place.devices = device;
  place.session = &o;
  if (nested) {
    yk_sym x[2] = { yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(6) }),
                    yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(6) }) };
    yk_sym y = yk_apply_n(yk_network_layer(n), 2, x), outer[2] = { y, yk_sym_output(y, 1) };
    n = yk_network_new(k, "outer", 2, x, 2, outer);
  }
  CHECK_OK(yk_keras_status(k));
  CHECK_OK(yk_network_place(n, &place));
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)in, 0, got));
  CHECK_INT(yk_tensor_desc(got[0])->dim[0], rows);
  for (int64_t i = 0; i < rows * 3; i++) out[i] = (float)yk_tensor_at(got[0], i);
  for (int64_t i = 0; i < rows; i++) out[rows * 3 + i] = (float)yk_tensor_at(got[1], i);
  for (int i = 0; i < 2; i++) {
    yk_tensor_free(in[i]);
    yk_tensor_free(got[i]);
  }
  yk_keras_free(k);
}

static void test_devices(void **state) {
  float want[64], got[64];
  (void)state;
  for (int64_t rows = 1; rows <= 7; rows += 2) {
    run(0, rows, false, want);
    for (uint32_t n = 1; n <= 4; n++)
      for (int nested = 0; nested < 2; nested++) {
        run(n, rows, nested != 0, got);
        for (int64_t i = 0; i < rows * 4; i++)
          if (!(fabsf(got[i] - want[i]) <= 1e-6f))
            fail_msg("%u devices, %lld rows: %g, expected %g", n, (long long)rows, (double)got[i], (double)want[i]);
      }
  }
}

/* A weight that a session has is fetched from it, and what is set goes there. */
static void test_weights_move(void **state) {
  yk_keras *k = begin();
  yk_layer *shared;
  yk_tensor *in[2] = { ramp(YK_SHAPE(2, 6)), ramp(YK_SHAPE(2, 6)) }, *first[2], *second[2], *before, *after, *zero;
  (void)state;
  yk_network *n = siamese(k, &shared);
  CHECK_OK(yk_layer_weight(shared, "kernel", &before));
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)in, 0, first));
  CHECK_OK(yk_layer_weight(shared, "kernel", &after));
  assert_memory_equal(yk_tensor_data(before), yk_tensor_data(after), yk_tensor_bytes(before));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(6, 4), &zero));
  CHECK_OK(yk_layer_set_weight(shared, "kernel", zero));
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)in, 0, second));
  for (int64_t i = 0; i < 2; i++) CHECK_NEAR(yk_tensor_at(second[1], i), 0, 0);      /* tanh(0) and a bias of 0 */
  CHECK_CODE(yk_layer_set_weight(shared, "kernel", in[0]), YK_EINVAL, "weight 'kernel' of layer 'dense_1' is f32[6,4]");
  CHECK_CODE(yk_layer_weight(shared, "gamma", &before), YK_ENOTFOUND, "it has kernel, bias");
  for (int i = 0; i < 2; i++) {
    yk_tensor_free(in[i]);
    yk_tensor_free(first[i]);
    yk_tensor_free(second[i]);
  }
  yk_tensor_free(before);
  yk_tensor_free(after);
  yk_tensor_free(zero);
  yk_keras_free(k);
}

/* Each mistake is told once, with layer, place, and what was expected. */
#define MISTAKE(text, ...)                                                                                     \
  do {                                                                                                         \
    yk_keras *k = begin();                                                                                     \
    yk_sym x = yk_input(k, &(yk_input_config){ .name = "x", .shape = YK_SHAPE(6) });                           \
    yk_sym y = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 2 }), x);                               \
    __VA_ARGS__;                                                                                               \
    (void)x;                                                                                                   \
    (void)y;                                                                                                   \
    CHECK_CODE(yk_keras_status(k), YK_EINVAL, text);                                                           \
    yk_keras_free(k);                                                                                          \
  } while (0)

static void test_mistakes(void **state) {
  (void)state;
  MISTAKE("Dense 'dense_2': units is 0; expected 1 to 1e+09", yk_layer_dense(k, NULL));
  MISTAKE("activation is 'rely'; expected an activation",
          yk_layer_dense(k, &(yk_dense_config){ .units = 1, .activation = "rely" }));
  MISTAKE("Dropout 'drop': rate is 2; expected 0 to 1", yk_layer_dropout(k, &(yk_dropout_config){ .name = "drop", .rate = 2 }));
  MISTAKE("Add 'add_1': called on 1 inputs; expected at least 2", yk_apply(yk_layer_add(k, NULL), x));
  MISTAKE("input 0 is no symbol of this yk_keras", yk_apply(yk_layer_flatten(k, NULL), (yk_sym){ 0 }));
  MISTAKE("axis is 1 of 3; only the last one",
          yk_sym z = yk_apply(yk_layer_reshape(k, &(yk_reshape_config){ .target_shape = YK_SHAPE(2, 3) }), x);
          yk_apply(yk_layer_batch_normalization(k, &(yk_norm_config){ .axis = 1 }), z));
  MISTAKE("an example has 6 elements, its new shape 4",
          yk_apply(yk_layer_reshape(k, &(yk_reshape_config){ .target_shape = YK_SHAPE(2, 2) }), x));
  MISTAKE("depend on 'x', which is none of its 1 inputs", yk_sym z = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(6) });
          yk_network_new(k, NULL, 1, &z, 1, &y));
  MISTAKE("two of its layers are called 'twin'",
          yk_sym z = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "twin", .units = 2 }), x);
          z = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "twin", .units = 2 }), z);
          yk_network_new(k, NULL, 1, &x, 1, &z));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dense),        cmocka_unit_test(test_structure), cmocka_unit_test(test_devices),
    cmocka_unit_test(test_weights_move), cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
