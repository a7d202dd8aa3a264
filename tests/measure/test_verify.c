/*
 * Verification passes what is right, for every network, whatever the shares, and catches what is not: a weight, a slot, a statistic that
 * one side has otherwise, by little; with batch normalisation too.
 */
#include "support/check.h"
#include <math.h>
#include "measure/verify.h"

enum { PICTURES = 40 };

static yk_dataset *pictures;
static const char *const gpus[] = { "/gpu:0", "/gpu:1", "/gpu:2" };

static int setup(void **state) {
  (void)state;
  CHECK_OK(yk_dataset_shapes10(3, YK_TRAIN, PICTURES, &pictures));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  yk_dataset_free(pictures);
  return 0;
}

static yk_verify_job job(const char *model, size_t ndevices, int64_t batch) {
  yk_verify_job j = { .data = pictures, .seed = 7, .rate = 0.01, .steps = 2, .tolerance = 1e-5 };
  j.towers = (yk_tower_options)YK_TOWER_OPTIONS_INIT;
  j.queue = (yk_queue_options)YK_QUEUE_OPTIONS_INIT;
  j.session = (yk_session_options)YK_SESSION_OPTIONS_INIT;
  j.towers.model = yk_model_find(model);
  j.towers.classes = 10;
  j.towers.batch = batch;
  j.towers.ndevices = ndevices;
  j.towers.devices = gpus;
  j.queue.augment = j.towers.model->train_augment;
  j.queue.image_size = j.towers.model->image_size ? j.towers.model->image_size : 8;
  j.queue.shuffle = true;
  j.queue.seed = 7;
  j.queue.capacity = 2 * batch;
  j.session.virtual_gpus = (int32_t)ndevices;
  j.session.virtual_gpu_bytes = 512 << 20;
  j.session.cores = 1;
  return j;
}

static const yk_difference *find(const yk_difference *d, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(d[i].name, name) == 0) return &d[i];
  return NULL;
}

static void expect_good(const yk_verify_job *j, bool normalised) {
  yk_verdict v;
  CHECK_OK(yk__verify(j, &v));
  if (!v.good || !v.replicas.made || !v.whole.made) fail_msg("%s on %zu devices: %s", j->towers.model->name, j->towers.ndevices, v.text);
  CHECK_INT(v.normalised, normalised);
  CHECK_INT(v.replicas.steps, j->steps);
  assert_true(v.replicas.ngradients >= 6 && v.replicas.nvariables > v.replicas.ngradients);
  CHECK_INT(v.whole.ngradients, v.replicas.ngradients);
  assert_memory_equal(v.text, "verified: ", 10);
  yk__verdict_free(&v);
}

static void test_right(void **state) {
  yk_verify_job j = job("mlp", 2, 7);
  (void)state;
  expect_good(&j, false);
  j = job("cifar10", 3, 4);
  expect_good(&j, false);
  j = job("resnet20", 2, 3);
  expect_good(&j, true);
}

/* Wherever variables live, and with more replicas than devices. */
static void test_strategies(void **state) {
  (void)state;
  for (int k = YK_STRATEGY_HOME; k <= YK_STRATEGY_MIRRORED; k++) {
    yk_verify_job j = job("cifar10", 2, 5);
    j.towers.strategy = (yk_strategy)k;
    j.towers.replicas = k == YK_STRATEGY_HOME ? 3 : 0;
    expect_good(&j, false);
  }
}

/* Momentum and an adaptive one, with clipping. */
static void test_optimizers(void **state) {
  yk_optimizer all[] = { YK_NESTEROV(0.01, 0.9), YK_ADAM(1e-3) };
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    yk_verify_job j = job("cifar10", 2, 3);
    j.towers.optimizer = &all[i];
    j.towers.clip_norm = 1;
    j.rate = all[i].rate;
    expect_good(&j, false);
  }
}

/* ---- what is wrong ---- */

typedef struct fault { const char *variable; double add; int64_t step; } fault;

/* One element of a variable, once. */
static yk_code spoil(yk_session *s, yk_graph *g, int64_t step, void *arg) {
  const fault *f = arg;
  yk_tensor *t = NULL;
  if (step != f->step) return YK_OK;
  for (size_t i = 0; i < yk_variable_count(g); i++) {
    const yk_variable *v = yk_variable_get(g, i);
    if (strcmp(yk_variable_name(v), f->variable) != 0) continue;
    YK_TRY(yk_variable_fetch(s, v, &t));
    ((float *)yk_tensor_data(t))[0] += (float)f->add;
    yk_code rc = yk_variable_set(s, v, t);
    yk_tensor_free(t);
    return rc;
  }
  return YK_ENOTFOUND;
}

static void expect_caught(yk_verify_job j, fault f, const char *text) {
  yk_verdict v;
  j.spoil = spoil;
  j.arg = &f;
  CHECK_OK(yk__verify(&j, &v));
  if (v.good || v.replicas.good) fail_msg("%s += %g before step %lld was not noticed: %s", f.variable, f.add, (long long)f.step, v.text);
  if (strstr(v.text, text) == NULL) fail_msg("the verdict lacks \"%s\": %s", text, v.text);
  yk__verdict_free(&v);
}

static void test_caught(void **state) {
  (void)state;
  expect_caught(job("mlp", 2, 7), (fault){ "hidden2/weights", 1e-3, 1 }, "NOT the same as equal replicas on one device: the value of");
  expect_caught(job("mlp", 2, 7), (fault){ "hidden2/weights", 1e-2, 0 }, "NOT the same as equal replicas on one device: the ");
  yk_verify_job j = job("cifar10", 2, 3);
  yk_optimizer momentum = YK_MOMENTUM(0.01, 0.9);
  j.towers.optimizer = &momentum;
  expect_caught(j, (fault){ "local3/weights", 1e-2, 1 }, "NOT the same");
}

/* A running statistic feeds nothing in training: only the values tell. */
static void test_statistics(void **state) {
  (void)state;
  expect_caught(job("resnet20", 2, 3), (fault){ "norm0/moving_mean", 0.1, 1 }, "the value of norm0/moving_mean differs by");
}

static void test_tolerance(void **state) {
  yk_verdict v;
  yk_verify_job j = job("mlp", 2, 7);
  (void)state;
  j.tolerance = 0;
  CHECK_OK(yk__verify(&j, &v));
  assert_false(v.whole.good);                        /* sums in another order */
  const yk_difference *d = find(v.whole.gradient, v.whole.ngradients, "hidden1/weights");
  assert_non_null(d);
  if (!(d->relative > 0 && d->relative < 1e-5 && d->scale > 0)) fail_msg("hidden1/weights differs by %g of %g", d->relative, d->scale);
  yk__verdict_free(&v);
}

static void test_refused(void **state) {
  yk_verdict v;
  yk_verify_job j = job("mlp", 3, 2);
  (void)state;
  CHECK_CODE(yk__verify(&j, &v), YK_EINVAL, "a batch of 2 for 3 replicas");
  j = job("mlp", 2, 4);
  j.steps = 0;
  CHECK_CODE(yk__verify(&j, &v), YK_EINVAL, "0 steps");
  j.steps = 1;
  j.tolerance = (double)NAN;
  CHECK_CODE(yk__verify(&j, &v), YK_EINVAL, "a tolerance of");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_right), cmocka_unit_test(test_strategies), cmocka_unit_test(test_optimizers), cmocka_unit_test(test_caught),
    cmocka_unit_test(test_statistics), cmocka_unit_test(test_tolerance), cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
