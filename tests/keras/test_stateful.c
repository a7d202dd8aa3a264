/*
 * States that go on from batch to batch: two runs over halves of a sequence are one run over the whole, on any number of devices, in predictions
 * and in training; a reset begins anew.
 */
#include "support/check.h"
#include <string.h>
#include <yoke/yoke.h>

enum { BATCH = 5, T = 6, C = 3, U = 4 };

typedef struct rig { yk_keras *k; yk_network *n; yk_layer *l; } rig;

static void open_rig(rig *r, const char *class, int64_t steps, bool stateful, uint32_t devices) {
  static const char *const device[] = { "/gpu:0", "/gpu:1", "/gpu:2" };
  yk_recurrent_config c = { .name = "memory", .units = U, .stateful = stateful };
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  CHECK_OK(yk_keras_new(5, &r->k));
  yk_sym in = yk_input(r->k, &(yk_input_config){ .shape = YK_SHAPE(steps, C), .batch = BATCH });
  r->l = yk_layer_new(r->k, class, &c);
  yk_sym out = yk_apply(r->l, in);
  r->n = yk_network_new(r->k, NULL, 1, &in, 1, &out);
  CHECK_OK(yk_keras_status(r->k));
  o.virtual_gpus = (int32_t)devices;
  place.ndevices = devices;
  place.devices = device;
  place.session = &o;
  CHECK_OK(yk_network_place(r->n, &place));
}

/* Steps [from, to) of a batch of sequences. */
static yk_tensor *steps(int64_t from, int64_t to) {
  yk_tensor *t;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(BATCH, to - from, C), &t));
  float *x = yk_tensor_data(t);
  for (int64_t n = 0; n < BATCH; n++)
    for (int64_t s = from; s < to; s++)
      for (int64_t c = 0; c < C; c++) *x++ = (float)((n * 31 + s * 7 + c * 3) % 17) / 17 - 0.5f;
  return t;
}

static void predict(rig *r, int64_t from, int64_t to, double out[BATCH * U]) {
  yk_tensor *x = steps(from, to), *y;
  CHECK_OK(yk_network_predict(r->n, (const yk_tensor *const *)&x, BATCH, &y));
  for (int64_t i = 0; i < BATCH * U; i++) out[i] = yk_tensor_at(y, i);
  yk_tensor_free(x);
  yk_tensor_free(y);
}

static void same(const char *what, const double *got, const double *want, bool equal) {
  double worst = 0;
  for (int i = 0; i < BATCH * U; i++) worst = fmax(worst, fabs(got[i] - want[i]));
  if ((worst <= 1e-6) != equal) fail_msg("%s: outputs differ by %g", what, worst);
}

static void one_class(const char *class) {
  double whole[BATCH * U], first[BATCH * U], second[BATCH * U], again[BATCH * U];
  rig r;
  open_rig(&r, class, T, false, 0);
  predict(&r, 0, T, whole);
  yk_keras_free(r.k);
  for (uint32_t devices = 0; devices <= 3; devices += 3) {
    open_rig(&r, class, T / 2, true, devices);
    predict(&r, 0, T / 2, first);
    predict(&r, T / 2, T, second);
    same(class, second, whole, true);
    predict(&r, 0, T / 2, again);                          /* goes on from there */
    same(class, again, first, false);
    CHECK_OK(yk_network_reset_states(r.n));
    predict(&r, 0, T / 2, again);
    same(class, again, first, true);
    yk_keras_free(r.k);
  }
}

static void test_classes(void **state) {
  (void)state;
  one_class("LSTM");
  one_class("GRU");
  one_class("SimpleRNN");
}

/* A training step carries on too. */
static void test_training(void **state) {
  double got[2][BATCH * U];
  (void)state;
  for (uint32_t i = 0; i < 2; i++) {
    rig r;
    yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
    yk_optimizer still = YK_KERAS_SGD(0, 0);
    open_rig(&r, "LSTM", T / 2, true, i ? 3 : 0);
    o.optimizer = &still;
    o.nlosses = 1;
    o.losses = &(yk_loss){ .name = "mse" };
    CHECK_OK(yk_network_compile(r.n, &o));
    yk_tensor *x = steps(0, T / 2), *y;
    CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(BATCH, U), &y));
    yk_examples e = { .x = (const yk_tensor *const *)&x, .y = (const yk_tensor *const *)&y };
    CHECK_OK(yk_network_train_on_batch(r.n, &e, NULL));
    predict(&r, T / 2, T, got[i]);
    yk_tensor_free(x);
    yk_tensor_free(y);
    yk_keras_free(r.k);
  }
  rig r;
  double whole[BATCH * U];
  open_rig(&r, "LSTM", T, false, 0);
  predict(&r, 0, T, whole);
  same("one device", got[0], whole, true);
  same("three devices", got[1], whole, true);
  yk_keras_free(r.k);
}

static void test_batch_unknown(void **state) {
  yk_keras *k;
  (void)state;
  CHECK_OK(yk_keras_new(1, &k));
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(3, 2) });
  yk_apply(yk_layer_lstm(k, &(yk_recurrent_config){ .name = "memory", .units = 2, .stateful = true }), in);
  CHECK_CODE(yk_keras_status(k), YK_EINVAL, "LSTM 'memory': it is stateful, so the batch of its input must be known");
  yk_keras_free(k);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_classes), cmocka_unit_test(test_training), cmocka_unit_test(test_batch_unknown) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
