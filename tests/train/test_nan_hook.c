/*
 * test_nan_hook.c - a loss that becomes NaN under a monitored session: what is told of its origin, and that good weights are kept.
 *
 * loss = mean(log(x) * w): a row of the batch below 0 makes the NaN.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <yoke/monitored.h>
#include "train/rig.h"

typedef struct net { yk_graph *g; yk_variable *w; yk_value x, loss, train; } net;

static void net_new(net *n, bool guarded) {
  yk_gradient grad[1];
  CHECK_OK(yk_graph_new(&n->g));
  n->w = yk_get_variable(n->g, "w", YK_F32, YK_SCALAR, YK_CONSTANT(2), NULL);
  n->x = yk_placeholder(n->g, "x", YK_F32, YK_SHAPE(4));
  yk_variable *step = yk_global_step(n->g);
  yk_value log = yk_log(yk_named(n->g, "logarithm"), n->x);
  n->loss = yk_reduce_mean(yk_named(n->g, "loss"), yk_mul(n->g, log, yk_read(n->w)), NULL);
  CHECK_INT(yk_compute_gradients(n->g, n->loss, 1, &n->w, grad, 1), 1);
  if (guarded) {
    YK_GUARD(n->g, yk_all_good(n->g, 1, &n->loss, 1, grad, true)) { n->train = yk_apply_gradients(n->g, &YK_SGD(1), 1, grad, step); }
  } else n->train = yk_apply_gradients(n->g, &YK_SGD(1), 1, grad, step);
  CHECK_OK(yk_graph_status(n->g));
}

static yk_code run(yk_monitored *m, net *n, float third) {
  yk_tensor *t = NULL;
  const float e = 2.7182817f;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(4), (const float[]){ e, e, third, e }, &t));
  yk_code rc = yk_monitored_run(m, 1, &(yk_feed){ n->x, t }, 0, NULL, 1, &n->train, NULL);
  yk_tensor_free(t);
  return rc;
}

static double weight(yk_monitored *m, const net *n) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_variable_fetch(yk_monitored_session(m), n->w, &t));
  double x = yk_tensor_at(t, 0);
  yk_tensor_free(t);
  return x;
}

static yk_monitored *monitor(net *n, const yk_hook *hook, const char *folder) {
  yk_monitored_options o = YK_MONITORED_OPTIONS_INIT;
  yk_monitored *m = NULL;
  o.nhooks = 1;
  o.hooks = hook;
  o.folder = folder;
  o.save.steps = 1;
  CHECK_OK(yk_monitored_open(n->g, &o, &m));
  return m;
}

static int rewound;
static yk_code count(void *arg) { (void)arg; rewound++; return YK_OK; }

/* Named down to the row; under a guard the weights are those from before. */
static void test_origin(void **state) {
  net n;
  yk_hook hook;
  (void)state;
  net_new(&n, true);
  CHECK_OK(yk_hook_nan_examine(n.loss, false, count, NULL, &hook));
  yk_monitored *m = monitor(&n, &hook, NULL);
  CHECK_OK(run(m, &n, 2.7182817f));
  CHECK_NEAR(weight(m, &n), 1, 1e-6);
  yk_code rc = run(m, &n, -1);
  CHECK_INT(rc, YK_EINVAL);
  static const char *const says[] = { "'loss' is NaN at global step 1: NaN, first made by 'logarithm' (Log) on /cpu:0 at ", "test_nan_hook.c:",
                                      ", in row 2 of 4; no variable holds it" };
  for (size_t i = 0; i < sizeof says / sizeof *says; i++)
    if (strstr(yk_error_message(), says[i]) == NULL) fail_msg("no '%s' in: %s", says[i], yk_error_message());
  yk_error_clear();
  CHECK_INT(rewound, 1);
  CHECK_NEAR(weight(m, &n), 1, 1e-6);
  CHECK_OK(yk_monitored_close(m));
  yk_hook_free(&hook);
  yk_graph_free(n.g);
}

/* Without a guard the variables go back to the newest checkpoint, which is not one of NaN, though one was due in that very step. */
static void test_goes_back(void **state) {
  char folder[] = "/tmp/yoke-nan-XXXXXX", command[64];
  (void)state;
  assert_non_null(mkdtemp(folder));
  for (int stop = 0; stop < 2; stop++) {
    net n;
    yk_hook hook;
    net_new(&n, false);
    CHECK_OK(yk_hook_nan(n.loss, stop, &hook));
    yk_monitored *m = monitor(&n, &hook, folder);
    double before = weight(m, &n);
    CHECK_OK(run(m, &n, 2.7182817f));
    yk_code rc = run(m, &n, -1);
    CHECK_INT(rc, stop ? YK_OK : YK_EINVAL);
    if (!stop && strstr(yk_error_message(), "'w' held it too, so the variables are those of '") == NULL) fail_msg("%s", yk_error_message());
    yk_error_clear();
    assert_true(yk_monitored_should_stop(m));
    CHECK_NEAR(weight(m, &n), before - 1, 1e-6);
    CHECK_OK(yk_monitored_close(m));
    yk_hook_free(&hook);
    yk_graph_free(n.g);
  }
  yk_checkpoint *c = NULL;
  yk_tensor *t = NULL;
  CHECK_OK(yk_checkpoint_latest(folder, &c));
  CHECK_OK(yk_checkpoint_get(c, "w", &t));
  CHECK_NEAR(yk_tensor_at(t, 0), 0, 1e-6);
  yk_tensor_free(t);
  yk_checkpoint_close(c);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK_INT(system(command), 0);
}

/* A saver of the caller's own has no checkpoint to go back to here: it gets no new one either. */
static void test_saves_no_nan(void **state) {
  char folder[] = "/tmp/yoke-nan-XXXXXX", command[64];
  net n;
  yk_hook hook[2];
  yk_saver *saver = NULL;
  yk_monitored *m = NULL;
  (void)state;
  assert_non_null(mkdtemp(folder));
  net_new(&n, false);
  CHECK_OK(yk_saver_open(folder, NULL, &saver));
  CHECK_OK(yk_hook_checkpoint(saver, (yk_hook_timer){ .steps = 1 }, NULL, NULL, &hook[0]));
  CHECK_OK(yk_hook_nan(n.loss, true, &hook[1]));
  yk_monitored_options o = YK_MONITORED_OPTIONS_INIT;
  o.nhooks = 2;
  o.hooks = hook;
  CHECK_OK(yk_monitored_open(n.g, &o, &m));
  CHECK_OK(run(m, &n, -1));
  CHECK_OK(yk_monitored_close(m));
  if (strstr(yk_saver_latest(saver), "ckpt-0.safetensors") == NULL) fail_msg("the newest is %s", yk_saver_latest(saver));
  CHECK_OK(yk_saver_close(saver));
  for (int i = 0; i < 2; i++) yk_hook_free(&hook[i]);
  yk_graph_free(n.g);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK_INT(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_origin), cmocka_unit_test(test_goes_back), cmocka_unit_test(test_saves_no_nan) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
