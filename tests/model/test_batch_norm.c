/*
 * test_batch_norm.c - statistics of batches over replicas: moving averages follow their mean, synchronised ones are those of the
 * whole batch.
 */
#include "model/towers.h"

static yk_value normalised(yk_graph *g, yk_value images, bool training) {
  yk_batch_norm_options o = { .training = training, .momentum = 0.9 };
  yk_value x = yk_flatten(g, images), y = { 0 };
  YK_VARIABLE_SCOPE(g, "norm") { y = yk_batch_norm(g, x, &o); }
  return y;
}

static yk_value build_normalised(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_value x = normalised(g, images, training);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(yk_value_desc(g, x)->dim[1], 12), YK_GLOROT_UNIFORM, NULL);
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(12, classes), YK_GLOROT_UNIFORM, NULL);
  yk_batch_norm_options o = { .training = training, .momentum = 0.9 };
  if (!w || !v) return (yk_value){ 0 };
  x = yk_matmul(g, x, yk_read(w), NULL);
  YK_VARIABLE_SCOPE(g, "norm2") { x = yk_batch_norm(g, x, &o); }
  return yk_matmul(g, yk_relu(g, x), yk_read(v), NULL);
}

static const yk_model model = { .name = "normalised", .doc = "two normalised layers", .build = build_normalised, .image_size = 3,
                                .batch = 8, .learning_rate = 0.1 };

/* Rows that are all 1, then all 3, and again. */
static yk_code ones_and_threes(void *self, int64_t rows, void *const *out) {
  float *x = out[0], value = *(int *)self % 2 ? 3 : 1;
  ++*(int *)self;
  for (int64_t i = 0; i < rows * 9; i++) x[i] = value;
  memset(out[1], 0, sizeof(int32_t) * (size_t)rows);
  return YK_OK;
}

typedef struct rig { yk_graph *g; yk_session *s; yk_towers t; } rig;

static void open_rig(rig *r, const yk_source *source, yk_strategy strategy, size_t n, int64_t batch, bool sync) {
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  CHECK_OK(yk_graph_new(&r->g));
  yk_graph_set_seed(r->g, 3);
  o.model = &model;
  o.source = source;
  o.classes = 10;
  o.batch = batch;
  o.ndevices = n;
  o.devices = gpus;
  o.strategy = strategy;
  o.sync_batch_norm = sync;
  yk_build_towers(r->g, &o, &r->t);
  yk_value init = yk_global_variables_initializer(r->g);
  so.virtual_gpus = (int32_t)n;
  CHECK_OK(yk_session_open(r->g, &so, &r->s));
  CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &init, NULL));
}

static void close_rig(rig *r) {
  yk_session_close(r->s);
  yk_graph_free(r->g);
}

static double element(const rig *r, const char *name, int64_t k) {
  yk_tensor *t = NULL;
  for (size_t i = 0; i < yk_variable_count(r->g); i++)
    if (!strcmp(yk_variable_name(yk_variable_get(r->g, i)), name)) CHECK_OK(yk_variable_fetch(r->s, yk_variable_get(r->g, i), &t));
  if (!t) fail_msg("no variable %s", name);
  double x = yk_tensor_at(t, k);
  yk_tensor_free(t);
  return x;
}

static void saved(const rig *r, const char *folder) {
  yk_saver *saver;
  yk_saver_options so = YK_SAVER_OPTIONS_INIT;
  CHECK_OK(yk_saver_open(folder, &so, &saver));
  CHECK_OK(yk_saver_save(saver, r->s, 1, 0, NULL));
  CHECK_OK(yk_saver_close(saver));
}

/* Batch means 1 and 3, momentum 0.9, from 0: 0.9*0 + 0.1*2 = 0.2, on every copy and in the file. */
static void test_moving_mean(void **state) {
  (void)state;
  for (int s = YK_STRATEGY_HOME; s <= YK_STRATEGY_MIRRORED; s++) {
    char folder[64] = "/tmp/yoke-norm-XXXXXX", command[96];
    int calls = 0;
    yk_source source = { .self = &calls, .next = ones_and_threes, .ncomponents = 2,
                         .component = { { .dtype = YK_F32, .rank = 3, .dim = { 3, 3, 1 } }, { .dtype = YK_I32 } } };
    rig r, other;
    yk_checkpoint *c;
    assert_non_null(mkdtemp(folder));
    open_rig(&r, &source, (yk_strategy)s, 2, 4, false);
    CHECK_OK(yk_session_run(r.s, 0, NULL, 0, NULL, 1, &r.t.train, NULL));
    CHECK_NEAR(element(&r, "norm/moving_mean", 8), 0.2, 1e-7);
    CHECK_NEAR(element(&r, "norm/moving_variance", 8), 0.9, 1e-6);
    if (s == YK_STRATEGY_MIRRORED) {
      CHECK_NEAR(element(&r, "norm/moving_mean/copy_1", 8), 0.2, 1e-7);
      CHECK_NEAR(element(&r, "norm/moving_variance/copy_1", 8), 0.9, 1e-6);
    }
    CHECK_OK(yk_check_replicas(r.s, r.g));
    saved(&r, folder);
    close_rig(&r);
    open_rig(&other, &source, YK_STRATEGY_HOME, 1, 4, false);
    CHECK_OK(yk_checkpoint_latest(folder, &c));
    CHECK_OK(yk_checkpoint_restore(c, other.s, NULL));
    CHECK_NEAR(element(&other, "norm/moving_mean", 8), 0.2, 1e-7);
    yk_checkpoint_close(c);
    close_rig(&other);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
  }
}

/* ---- synchronised ------------------------------------------------------------------------------------------------------ */

enum { STEPS = 6 };

static void train_rig(rig *r, double *loss) {
  const yk_tensor *const *out;
  yk_step *step;
  CHECK_OK(yk_step_prepare(r->s, 0, NULL, 1, &r->t.loss, 1, &r->t.train, &step));
  for (int i = 0; i < STEPS; i++) {
    CHECK_OK(yk_step_run(step, NULL, &out));
    loss[i] = yk_tensor_at(out[0], 0);
  }
  yk_step_free(step);
}

/* Largest difference of losses and moving statistics from one device that has the whole batch. */
static double off(yk_strategy strategy, size_t n, int64_t batch, bool sync) {
  pictures p;
  rig one, many;
  double want[STEPS], got[STEPS], most = 0;
  pictures_open(&p, 9, 30, 3, 3, 1, 10);
  open_rig(&one, &p.source, YK_STRATEGY_HOME, 1, batch, false);
  train_rig(&one, want);
  p.next = 0;
  open_rig(&many, &p.source, strategy, n, batch, sync);
  train_rig(&many, got);
  for (int i = 0; i < STEPS; i++) most = fmax(most, fabs(got[i] - want[i]));
  for (int64_t k = 0; k < 9; k++) {
    most = fmax(most, fabs(element(&one, "norm/moving_mean", k) - element(&many, "norm/moving_mean", k)));
    most = fmax(most, fabs(element(&one, "norm2/moving_variance", k) - element(&many, "norm2/moving_variance", k)));
  }
  CHECK_OK(yk_check_replicas(many.s, many.g));
  close_rig(&one);
  close_rig(&many);
  pictures_close(&p);
  return most;
}

static void test_synchronised(void **state) {
  (void)state;
  for (int s = YK_STRATEGY_HOME; s <= YK_STRATEGY_MIRRORED; s++) {
    CHECK_NEAR(off((yk_strategy)s, 4, 10, true), 0, 2e-5);      /* shares 3, 3, 2, 2 */
    CHECK_NEAR(off((yk_strategy)s, 3, 12, true), 0, 2e-5);
  }
  CHECK_NEAR(off(YK_STRATEGY_HOME, 1, 12, true), 0, 2e-5);
  double apart = off(YK_STRATEGY_HOME, 4, 10, false);
  if (!(apart > 1e-3)) fail_msg("not synchronised, losses are only %g away", apart);
}

/* What one replica normalises depends on all of them. */
static void test_part(void **state) {
  (void)state;
  pictures p;
  rig r;
  yk_tensor *out = NULL;
  pictures_open(&p, 9, 30, 3, 3, 1, 10);
  open_rig(&r, &p.source, YK_STRATEGY_HOME, 2, 4, true);
  yk_value part = yk_find(r.g, "tower_1/Sum");
  assert_int_not_equal(part.id, 0);
  CHECK_CODE(yk_session_run(r.s, 0, NULL, 1, &part, 0, NULL, &out), YK_EINVAL, "run all replicas in one step");
  close_rig(&r);
  pictures_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_moving_mean), cmocka_unit_test(test_synchronised), cmocka_unit_test(test_part) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
