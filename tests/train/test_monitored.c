/*
 * test_monitored.c - monitored sessions: the order of events, who feeds and fetches, how they end, and each hook.
 *
 * The network is one variable that counts up, so every number is known.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <yoke/monitored.h>
#include "base/alloc.h"
#include "train/rig.h"

static char events[4096], lines[4096];

static void note(const char *what) { snprintf(events + strlen(events), sizeof events - strlen(events), "%s ", what); }
static void line(void *arg, const char *text) {
  (void)arg;
  snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s|", text);
}

static void saw(const char *want) {
  if (strcmp(events, want) != 0) fail_msg("events: \"%s\", expected \"%s\"", events, want);
}

/* A hook that notes what happens, and may fail. */
typedef struct spy { const char *id; yk_value fetch, feed; const yk_tensor *tensor; yk_code after, end; double got; } spy;
static void tell(const spy *s, const char *what) {
  char text[64];
  snprintf(text, sizeof text, "%s.%s", s->id, what);
  note(text);
}
static yk_code spy_begin(void *self, yk_graph *g) {
  tell(self, "begin");
  assert_int_equal(yk_graph_frozen(g), 0);
  return YK_OK;
}
static yk_code spy_created(void *self, yk_monitored *m) {
  tell(self, "created");
  assert_non_null(yk_monitored_session(m));
  return YK_OK;
}
static yk_code spy_before(void *self, yk_hook_request *r) {
  spy *s = self;
  tell(s, "before");
  if (s->fetch.id != 0) r->fetch[r->nfetch++] = s->fetch;
  if (s->feed.id != 0) r->feed[r->nfeed++] = (yk_feed){ s->feed, s->tensor };
  return YK_OK;
}
static yk_code spy_after(void *self, const yk_hook_result *r) {
  spy *s = self;
  tell(s, "after");
  if (s->fetch.id != 0) s->got = yk_tensor_at(r->fetched[0], 0);
  return s->after;
}
static yk_code spy_end(void *self, yk_monitored *m) {
  (void)m;
  tell(self, "end");
  return ((spy *)self)->end;
}
static yk_hook hook_of(spy *s) {
  return (yk_hook){ .name = s->id, .begin = spy_begin, .created = spy_created, .before_run = spy_before, .after_run = spy_after,
                    .end = spy_end, .self = s };
}

/* ---- the network ---------------------------------------------------------------------------------------------------------- */

typedef struct source { int64_t left; yk_code fail; } source;
static yk_code next(void *self, int64_t rows, void *const *out) {
  source *s = self;
  if (s->fail != YK_OK) {
    yk_code rc = s->fail;
    s->fail = YK_OK;
    return rc;
  }
  if (s->left-- <= 0) return YK_ERANGE;
  for (int64_t i = 0; i < rows; i++) ((float *)out[0])[i] = 1;
  return YK_OK;
}

typedef struct net { yk_graph *g; source data; yk_source from; yk_value x, loss, train; yk_variable *w, *step; } net;

static void open_net(net *n, int64_t batches) {
  *n = (net){ .data = { batches, YK_OK } };
  events[0] = lines[0] = '\0';
  CHECK_OK(yk_graph_new(&n->g));
  n->from = (yk_source){ .self = &n->data, .next = next, .ncomponents = 1, .component = { { .dtype = YK_F32 } } };
  n->w = yk_get_variable(n->g, "w", YK_F32, YK_SCALAR, YK_CONSTANT(10), NULL);
  n->step = yk_global_step(n->g);
  n->x = yk_placeholder(n->g, "x", YK_F32, YK_SCALAR);
  yk_value batch[1], up[2];
  yk_dequeue(n->g, &n->from, 2, batch);
  up[0] = yk_assign_add(n->g, n->w, yk_reduce_mean(n->g, batch[0], NULL));
  up[1] = yk_assign_add(n->g, n->step, yk_scalar(n->g, YK_I64, 1));
  n->train = yk_group(n->g, 2, up);
  n->loss = yk_mul(yk_named(n->g, "loss"), yk_read(n->w), yk_scalar_f32(n->g, 2));
}

static yk_code go(yk_monitored *m, net *n) { return yk_monitored_run(m, 0, NULL, 0, NULL, 1, &n->train, NULL); }

static yk_monitored *monitor(net *n, size_t nhooks, const yk_hook *hooks, const char *folder) {
  yk_monitored_options o = YK_MONITORED_OPTIONS_INIT;
  yk_monitored *m = NULL;
  o.nhooks = nhooks;
  o.hooks = hooks;
  o.folder = folder;
  o.save.steps = 3;
  CHECK_OK(yk_monitored_open(n->g, &o, &m));
  return m;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

static void test_order(void **state) {
  (void)state;
  net n;
  open_net(&n, 2);
  spy a = { .id = "a", .fetch = n.loss }, b = { .id = "b", .fetch = yk_read(n.w) };
  yk_hook hooks[2] = { hook_of(&a), hook_of(&b) };
  yk_monitored *m = monitor(&n, 2, hooks, NULL);
  saw("a.begin b.begin a.created b.created ");
  const yk_tensor *const *got = NULL;
  yk_value mine = yk_read(n.step);
  CHECK_OK(yk_monitored_run(m, 0, NULL, 1, &mine, 1, &n.train, &got));
  assert_true(yk_tensor_at(got[0], 0) <= 1);
  CHECK_NEAR(a.got, 2 * b.got, 2);
  CHECK_OK(go(m, &n));
  CHECK_INT(go(m, &n), YK_ERANGE);                         /* the data end: a good end */
  assert_true(yk_monitored_should_stop(m));
  CHECK_INT(go(m, &n), YK_EINVAL);
  CHECK_OK(yk_monitored_close(m));
  saw("a.begin b.begin a.created b.created a.before b.before a.after b.after a.before b.before a.after b.after a.before b.before a.end b.end ");
  yk_graph_free(n.g);
}

/* From the fourth run on no memory is asked for. */
static void test_no_allocation(void **state) {
  (void)state;
  net n;
  yk_hook hooks[2];
  open_net(&n, 100);
  CHECK_OK(yk_hook_stop_at_step(50, 0, &hooks[0]));
  CHECK_OK(yk_hook_nan(n.loss, false, &hooks[1]));
  yk_monitored *m = monitor(&n, 2, hooks, NULL);
  for (int i = 0; i < 4; i++) CHECK_OK(go(m, &n));
  yk__alloc_fail_at(1);
  for (int i = 0; i < 10; i++) CHECK_OK(go(m, &n));
  yk__alloc_fail_at(0);
  CHECK_OK(yk_monitored_close(m));
  for (int i = 0; i < 2; i++) yk_hook_free(&hooks[i]);
  yk_graph_free(n.g);
}

static void test_failure(void **state) {
  (void)state;
  net n;
  open_net(&n, 100);
  spy a = { .id = "a", .after = YK_EIO };
  yk_hook hooks[1] = { hook_of(&a) };
  yk_monitored *m = monitor(&n, 1, hooks, NULL);
  CHECK_INT(go(m, &n), YK_EIO);
  assert_true(yk_monitored_should_stop(m));
  CHECK_OK(yk_monitored_close(m));
  saw("a.begin a.created a.before a.after ");              /* no end */
  yk_graph_free(n.g);
}

static void test_conflicts(void **state) {
  (void)state;
  for (int two = 0; two < 2; two++) {
    net n;
    yk_tensor *t = NULL;
    open_net(&n, 100);
    CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, (const float[]){ 3 }, &t));
    spy a = { .id = "first", .feed = n.x, .tensor = t, .fetch = n.x }, b = { .id = "second", .feed = n.x, .tensor = t };
    yk_hook hooks[2] = { hook_of(&a), hook_of(&b) };
    yk_monitored *m = monitor(&n, two ? 2 : 1, hooks, NULL);
    if (!two) {
      CHECK_OK(go(m, &n));
      CHECK_NEAR(a.got, 3, 0);
    }
    yk_code rc = two ? go(m, &n) : yk_monitored_run(m, 1, &(yk_feed){ n.x, t }, 0, NULL, 1, &n.train, NULL);
    CHECK_INT(rc, YK_EINVAL);
    if (strstr(yk_error_message(), two ? "'x' is fed twice: by first and by second" : "'x' is fed twice: by the caller and by first") == NULL)
      fail_msg("message \"%s\"", yk_error_message());
    CHECK_OK(yk_monitored_close(m));
    yk_tensor_free(t);
    yk_graph_free(n.g);
  }
}

static void test_not_ready(void **state) {
  (void)state;
  net n;
  yk_monitored *m = NULL;
  yk_monitored_options o = YK_MONITORED_OPTIONS_INIT;
  open_net(&n, 100);
  o.init = yk_initializer_op(n.w);
  CHECK_INT(yk_monitored_open(n.g, &o, &m), YK_EINVAL);
  if (strstr(yk_error_message(), "1 variables have no value: global_step") == NULL) fail_msg("message \"%s\"", yk_error_message());
  assert_null(m);
  yk_graph_free(n.g);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------------------ */

static void test_stop_and_log(void **state) {
  (void)state;
  static const char *const tags[] = { "twice", "step" };
  net n;
  yk_hook hooks[3];
  open_net(&n, 100);
  yk_value shown[2] = { n.loss, yk_read(n.step) };
  CHECK_INT(yk_hook_stop_at_step(5, 5, &hooks[0]), YK_EINVAL);
  CHECK_INT(yk_hook_logging(2, shown, tags, (yk_hook_timer){ 2, 1 }, false, line, NULL, &hooks[0]), YK_EINVAL);
  CHECK_OK(yk_hook_stop_at_step(5, 0, &hooks[0]));
  CHECK_OK(yk_hook_logging(2, shown, tags, (yk_hook_timer){ .steps = 2 }, true, line, NULL, &hooks[1]));
  CHECK_OK(yk_hook_final_op(yk_assign(n.g, n.w, yk_scalar_f32(n.g, -1)), &hooks[2]));
  yk_monitored *m = monitor(&n, 3, hooks, NULL);
  int runs = 0;
  while (!yk_monitored_should_stop(m)) {
    CHECK_OK(go(m, &n));
    runs++;
  }
  CHECK_INT(runs, 5);
  CHECK_INT(n.data.left, 95);
  CHECK_OK(yk_monitored_close(m));
  int found = 0;
  for (const char *p = lines; (p = strchr(p, '|')) != NULL; p++) found++;
  CHECK_INT(found, 4);                                     /* runs 0, 2, 4 and the end */
  if (strncmp(lines, "twice = ", 8) != 0 || strstr(lines, ", step = ") == NULL || strstr(strchr(lines, '|'), " sec)|") == NULL) fail_msg("%s", lines);
  if (strncmp(strrchr(lines, 't'), "tep = 5", 7) != 0 && strstr(lines, "twice = 30, step = 5 (") == NULL) fail_msg("%s", lines);
  for (int i = 0; i < 3; i++) yk_hook_free(&hooks[i]);
  yk_graph_free(n.g);
}

static void test_nan(void **state) {
  (void)state;
  for (int stop = 0; stop < 2; stop++) {
    net n;
    yk_hook hook;
    yk_tensor *t = NULL;
    open_net(&n, 100);
    CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, (const float[]){ NAN }, &t));
    CHECK_OK(yk_hook_nan(n.loss, stop, &hook));
    yk_monitored *m = monitor(&n, 1, &hook, NULL);
    CHECK_OK(go(m, &n));
    CHECK_OK(yk_variable_set(yk_monitored_session(m), n.w, t));
    CHECK_INT(go(m, &n), stop ? YK_OK : YK_EINVAL);
    if (!stop && strstr(yk_error_message(), "'loss' is NaN at global step 2") == NULL) fail_msg("message \"%s\"", yk_error_message());
    assert_true(yk_monitored_should_stop(m));
    CHECK_OK(yk_monitored_close(m));
    yk_hook_free(&hook);
    yk_tensor_free(t);
    yk_graph_free(n.g);
  }
}

static char folder[64];

static bool there(int step) {
  char path[128];
  snprintf(path, sizeof path, "%s/ckpt-%d.safetensors", folder, step);
  return access(path, F_OK) == 0;
}

static void test_checkpoints(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-monitored-XXXXXX");
  assert_non_null(mkdtemp(folder));
  for (int turn = 0; turn < 2; turn++) {
    net n;
    yk_hook stop;
    open_net(&n, 100);
    CHECK_OK(yk_hook_stop_at_step(5, 0, &stop));
    yk_monitored *m = monitor(&n, 1, &stop, folder);
    int64_t at = -1;
    CHECK_OK(yk_monitored_step(m, &at));
    CHECK_INT(at, turn * 5);                               /* the second one goes on */
    int runs = 0;
    while (!yk_monitored_should_stop(m)) {
      CHECK_OK(go(m, &n));
      runs++;
      if (turn == 0 && runs == 2) assert_false(there(2));
      if (turn == 0 && runs == 3) assert_true(there(3));
    }
    CHECK_INT(runs, 5);
    CHECK_OK(yk_monitored_close(m));
    yk_hook_free(&stop);
    yk_graph_free(n.g);
    if (turn == 0) assert_true(there(0) && there(3) && there(5));
    else assert_true(there(8) && there(10));
  }
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK_INT(system(command), 0);
}

/* A peer that fails: the session is made anew, created() is told again, begin() is not. */
static void test_peer(void **state) {
  (void)state;
  net n;
  open_net(&n, 100);
  spy a = { .id = "a" };
  yk_hook hooks[1] = { hook_of(&a) };
  yk_monitored *m = monitor(&n, 1, hooks, NULL);
  n.data.fail = YK_EPEER;
  CHECK_OK(go(m, &n));
  CHECK_OK(yk_monitored_close(m));
  saw("a.begin a.created a.before a.created a.after a.end ");
  yk_graph_free(n.g);
}

static void test_profile_and_counter(void **state) {
  (void)state;
  net n;
  yk_hook hooks[2];
  snprintf(folder, sizeof folder, "/tmp/yoke-monitored-XXXXXX");
  assert_non_null(mkdtemp(folder));
  open_net(&n, 6);
  CHECK_OK(yk_hook_profiler(folder, (yk_hook_timer){ .steps = 2 }, &hooks[0]));
  CHECK_OK(yk_hook_step_counter((yk_hook_timer){ .steps = 2 }, NULL, line, NULL, &hooks[1]));
  yk_monitored *m = monitor(&n, 2, hooks, NULL);
  while (!yk_monitored_should_stop(m)) {
    yk_code rc = go(m, &n);
    if (rc != YK_ERANGE) CHECK_OK(rc);
  }
  CHECK_OK(yk_monitored_close(m));
  char path[128];
  for (int step = 1; step <= 6; step++) {
    snprintf(path, sizeof path, "%s/timeline-%d.json", folder, step);
    CHECK_INT(access(path, F_OK) == 0, step == 3 || step == 5);
  }
  int found = 0;
  for (const char *p = lines; (p = strstr(p, "global_step/sec: ")) != NULL; p++) found++;
  CHECK_INT(found, 2);                                     /* steps 3 and 5; nothing at step 1 */
  for (int i = 0; i < 2; i++) yk_hook_free(&hooks[i]);
  snprintf(path, sizeof path, "rm -r %s", folder);
  CHECK_INT(system(path), 0);
  yk_graph_free(n.g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_order), cmocka_unit_test(test_no_allocation), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_conflicts), cmocka_unit_test(test_not_ready),
    cmocka_unit_test(test_stop_and_log), cmocka_unit_test(test_nan), cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_peer),
    cmocka_unit_test(test_profile_and_counter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
