/*
 * test_gradients.c - gradients of replicas: summed, clipped after the sum, accumulated; penalties that count once.
 *
 * Also the promise that training does not depend on the number of devices, with an optimizer that has slots and powers.
 */
#include "train/rig.h"
#include "support/pictures.h"

/* ---- clipping after the reduction ------------------------------------------------------------------------------------ */

static void test_clip_after_sum(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL);
  static const float parts[2][2] = { { 3, 0 }, { 0, 4 } };
  yk_gradient tower[2], sum;
  (void)state;
  for (int t = 0; t < 2; t++)
    YK_DEVICE(g, t ? "/gpu:1" : "/gpu:0") { tower[t] = (yk_gradient){ yk_identity(g, yk_constant_f32(g, YK_SHAPE(2), parts[t])), w }; }
  yk_sum_gradients(g, 2, (const yk_gradient *const[]){ &tower[0], &tower[1] }, 1, &sum);
  yk_value norm = yk_clip_by_global_norm(g, 1, 1, &sum), train = yk_apply_gradients(g, &YK_SGD(1), 1, &sum, NULL);
  rig_open(&r, 2);
  CHECK_NEAR(rig_fetch(&r, norm, 0), 5, 1e-6);
  CHECK_NEAR(rig_fetch(&r, sum.grad, 0), 0.6, 1e-6);
  CHECK_NEAR(rig_fetch(&r, sum.grad, 1), 0.8, 1e-6);
  rig_run(&r, train);
  CHECK_NEAR(rig_value(&r, w, 0), -0.6, 1e-6);
  CHECK_NEAR(rig_value(&r, w, 1), -0.8, 1e-6);
  rig_close(&r);
}

static void clip_fails(int how, double x, const char *text) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_gradient pair = { yk_scalar_f32(g, 1), NULL };
  if (how == 0) yk_clip_by_value(g, x, 0, 1, &pair);
  if (how == 1) yk_clip_by_norm(g, x, 1, &pair);
  if (how == 2) yk_clip_by_global_norm(g, x, 1, &pair);
  if (how == 3) {
    pair.grad.id = 0;
    yk_global_norm(g, 1, &pair);
  }
  CHECK_INT(pair.grad.id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, text);
  rig_close(&r);
}

static void test_clip_errors(void **state) {
  (void)state;
  clip_fails(0, 1, "[1, 0]");
  clip_fails(1, 0, "norm of 0");
  clip_fails(2, -1, "norm of -1");
  clip_fails(2, NAN, "norm of nan");
  clip_fails(3, 0, "none of the 1 variables");
}

/* Squares of f16 overflow; their norm does not. */
static void test_clip_halves(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_gradient pair[2] = { { yk_fill(g, YK_F16, YK_SHAPE(4), 3000), NULL }, { yk_fill(g, YK_F64, YK_SHAPE(1), 8000), NULL } };
  yk_value norm;
  (void)state;
  norm = yk_clip_by_global_norm(g, 1, 2, pair);
  rig_open(&r, 0);
  CHECK_NEAR(rig_fetch(&r, norm, 0), 10000, 1e-9);
  CHECK_NEAR(rig_fetch(&r, pair[0].grad, 3), 0.3, 5e-4);
  CHECK_NEAR(rig_fetch(&r, pair[1].grad, 0), 0.8, 1e-9);
  rig_close(&r);
}

/* ---- a penalty counts once, whatever the number of towers ---------------------------------------------------------------- */

enum { CLASSES = 4, BATCH = 8 };

/* w alone, 2, with the penalty 0.1*w^2; logits that do not depend on it but in form. */
static yk_value penalised(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_variable *v = yk_get_variable(g, "w", YK_F32, YK_SCALAR, YK_CONSTANT(2), NULL);
  yk_value w = yk_read(v), zero = yk_mul(g, yk_scalar_f32(g, 0), w);
  (void)training;
  yk_add_to_collection(g, YK_LOSSES, yk_mul(g, yk_scalar_f32(g, 0.1f), yk_square(g, w)));
  yk_value flat = yk_slice(g, yk_flatten(g, images), (const int64_t[]){ 0, 0 }, (const int64_t[]){ -1, classes });
  return yk_mul(g, flat, zero);
}

static void test_penalty(void **state) {
  static const char *const devices[] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3" };
  static const yk_model model = { .name = "penalised", .doc = "", .build = penalised, .image_size = 4, .batch = BATCH, .learning_rate = 1 };
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_towers t;
  pictures p;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_gradient grad;
  (void)state;
  pictures_open(&p, 3, BATCH, 4, 4, 1, CLASSES);
  o.model = &model;
  o.source = &p.source;
  o.classes = CLASSES;
  o.batch = BATCH;
  o.ndevices = 4;
  o.devices = devices;
  yk_build_towers(g, &o, &t);
  CHECK_INT(yk_compute_gradients(g, t.loss, 0, NULL, &grad, 1), 1);
  rig_open(&r, 4);
  CHECK_NEAR(rig_fetch(&r, t.loss, 0), 0.4 + log(CLASSES), 1e-6);
  CHECK_NEAR(rig_fetch(&r, grad.grad, 0), 0.4, 1e-6);
  rig_run(&r, t.train);
  CHECK_NEAR(rig_value(&r, rig_find(g, "w"), 0), 2 - 0.4, 1e-6);
  rig_close(&r);
  pictures_close(&p);
}

/* ---- one and two devices ---------------------------------------------------------------------------------------------------- */

static void train_mlp(const yk_optimizer *opt, double clip, size_t n, const char *const *devices, double loss[5]) {
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_towers t;
  pictures p;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_step *step;
  const yk_tensor *const *out;
  pictures_open(&p, 3, 16, 8, 8, 1, 10);
  o.model = yk_model_find("mlp");
  o.source = &p.source;
  o.classes = 10;
  o.batch = 16;
  o.ndevices = n;
  o.devices = devices;
  o.optimizer = opt;
  o.clip_norm = clip;
  yk_build_towers(g, &o, &t);
  rig_open(&r, (int)n);
  CHECK_OK(yk_step_prepare(r.s, 0, NULL, 1, &t.loss, 1, &t.train, &step));
  for (int i = 0; i < 5; i++) {
    CHECK_OK(yk_step_run(step, NULL, &out));
    loss[i] = yk_tensor_at(out[0], 0);
  }
  yk_step_free(step);
  rig_close(&r);
  pictures_close(&p);
}

static void test_devices_agree(void **state) {
  static const char *const devices[] = { "/gpu:0", "/gpu:1" };
  yk_optimizer o[] = { YK_ADAM(1e-4), YK_LAMB(1e-3, 0.01), YK_RMSPROP(1e-4), YK_NESTEROV(1e-3, 0.9) };
  (void)state;
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
    double one[5], two[5];
    train_mlp(&o[i], 0.5, 1, devices, one);
    train_mlp(&o[i], 0.5, 2, devices, two);
    for (int k = 0; k < 5; k++) CHECK_NEAR(two[k], one[k], 1e-5 * fmax(1, fabs(one[k])));
    if (!(one[4] < one[0])) fail_msg("optimizer %zu does not learn: loss %g, then %g", i, one[0], one[4]);
  }
}

/* ---- accumulation ------------------------------------------------------------------------------------------------------------ */

/* Three rounds of four runs, each fed its own x, against updates from the mean over the round. */
static void test_accumulation(void **state) {
  enum { EVERY = 4, ROUNDS = 3 };
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3), YK_CONSTANT(1), NULL), *step = yk_global_step(g);
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SCALAR), loss = yk_reduce_sum(g, yk_mul(g, yk_square(g, yk_read(w)), x), NULL);
  yk_gradient grad, mean;
  double want = 1, velocity = 0;
  (void)state;
  yk_compute_gradients(g, loss, 0, NULL, &grad, 1);
  yk_value add = yk_accumulate_gradients(g, EVERY, 1, &grad, &mean);
  yk_clip_by_value(g, -1, 1, 1, &mean);
  yk_value train = yk_apply_accumulated(g, &YK_MOMENTUM(0.1, 0.9), 1, &mean, step);
  rig_open(&r, 0);
  yk_round round = { .every = EVERY };
  CHECK_OK(yk_step_prepare(r.s, 1, &x, 1, &loss, 1, &add, &round.accumulate));
  CHECK_OK(yk_step_prepare(r.s, 1, &x, 1, &loss, 1, &train, &round.apply));
  for (int k = 0; k < EVERY * ROUNDS; k++) {
    yk_tensor *t = NULL;
    const yk_tensor *const *out;
    CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, &(float){ 0.1f * (float)(k % 5) }, &t));
    CHECK_OK(yk_round_run(&round, (const yk_tensor *const[]){ t }, &out));
    CHECK_NEAR(yk_tensor_at(out[0], 0), 3 * want * want * 0.1 * (k % 5), 1e-5);
    if (k % EVERY == EVERY - 1) {
      double sum = 0;
      for (int i = k - EVERY + 1; i <= k; i++) sum += 0.1 * (i % 5);
      velocity = 0.9 * velocity + fmin(1, 2 * want * sum / EVERY);
      want -= 0.1 * velocity;
    }
    CHECK_INT(round.done, (k + 1) % EVERY);
    CHECK_NEAR(rig_value(&r, w, 2), want, 1e-6);
    CHECK_NEAR(rig_value(&r, step, 0), (k + 1) / EVERY, 0);
    yk_tensor_free(t);
  }
  CHECK_NEAR(rig_value(&r, rig_find(g, "w/Accumulated"), 0), 0, 0);
  yk_step_free(round.accumulate);
  yk_step_free(round.apply);
  CHECK_CODE(yk_round_run(&(yk_round){ .every = 0 }, NULL, NULL), YK_EINVAL, "a round of 0 runs");
  rig_close(&r);
}

static void test_accumulation_errors(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    rig r;
    yk_graph *g = rig_new(&r);
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL);
    yk_gradient grad = { i ? (yk_value){ 0 } : yk_read(w), w }, mean = { { 7 }, NULL };
    CHECK_INT(yk_accumulate_gradients(g, i, 1, &grad, &mean).id, 0);
    CHECK_INT(mean.grad.id, 0);
    CHECK_CODE(yk_graph_status(g), YK_EINVAL, i ? "none of the 1 variables" : "1 run or more, not 0");
    rig_close(&r);
  }
}

/* ---- schedules that make no sense ------------------------------------------------------------------------------------------- */

static void schedule_fails(yk_schedule c, const char *text) {
  rig r;
  yk_graph *g = rig_new(&r);
  CHECK_INT(yk_scheduled_rate(g, &c, yk_global_step(g)).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, text);
  rig_close(&r);
}

static void test_schedule_errors(void **state) {
  static const int64_t at[] = { 5, 5 };
  static const double rates[] = { 1, 2, 3 };
  yk_schedule c = YK_COSINE(0.1, 10);
  rig r;
  (void)state;
  c.alpha = 2;
  schedule_fails(c, "cosine decay: alpha is 2, expected 0 to 1");
  c = YK_COSINE(0.1, 10);
  c.warm_up = -1;
  schedule_fails(c, "cosine decay: warm_up is -1, expected 0 or more");
  c = YK_COSINE_RESTARTS(0.1, 10);
  c.t_mul = 0.5;
  schedule_fails(c, "t_mul is 0.5, expected 1 or more");
  c = YK_POLYNOMIAL(0.1, 10);
  c.power = 0;
  schedule_fails(c, "polynomial decay: power is 0, expected a number above 0");
  schedule_fails(YK_EXPONENTIAL(0.1, 0, 0.5), "exponential decay: steps is 0, expected 1 or more");
  schedule_fails(YK_EXPONENTIAL(0.1, 5, 0), "exponential decay: factor is 0");
  schedule_fails(YK_INVERSE_TIME(NAN, 5, 1), "inverse time decay: rate is nan");
  schedule_fails(YK_ONE_CYCLE(0.1, 3), "one cycle: the peak at 0.3 of 3 steps");
  schedule_fails(YK_PIECEWISE(2, at, rates), "must rise: 5 comes after 5");
  schedule_fails(YK_PIECEWISE(2, NULL, rates), "needs its boundaries");
  schedule_fails((yk_schedule){ .kind = YK_NSCHEDULES }, "no such schedule");
  yk_graph *g = rig_new(&r);
  CHECK_INT(yk_scheduled_rate(g, &c, NULL).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "needs a step variable");
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_clip_after_sum), cmocka_unit_test(test_clip_errors), cmocka_unit_test(test_clip_halves),
    cmocka_unit_test(test_penalty), cmocka_unit_test(test_devices_agree), cmocka_unit_test(test_accumulation),
    cmocka_unit_test(test_accumulation_errors), cmocka_unit_test(test_schedule_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
