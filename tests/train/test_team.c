/*
 * test_team.c - a chief and workers of monitored training: who waits for whom, who initialises and saves, and how all of it ends.
 *
 * Threads meet at events that the test makes, never after a time; waits that are to end in vain are given a few milliseconds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <yoke/monitored.h>
#include "train/rig.h"

enum { WORKERS = 3 };

typedef struct net { yk_graph *g; yk_variable *w, *step; yk_value train, init; yk_monitored_team *team; atomic_int opened, inits; } net;

/* w counts steps of all workers from 10 on. */
static void net_new(net *n) {
  *n = (net){ 0 };
  CHECK_OK(yk_graph_new(&n->g));
  n->w = yk_get_variable(n->g, "w", YK_F32, YK_SCALAR, YK_CONSTANT(10), NULL);
  n->step = yk_global_step(n->g);
  yk_value up[2] = { yk_assign_add(n->g, n->w, yk_scalar_f32(n->g, 1)), yk_assign_add(n->g, n->step, yk_scalar(n->g, YK_I64, 1)) };
  n->train = yk_group(n->g, 2, up);
  n->init = yk_global_variables_initializer(n->g);
  CHECK_OK(yk_monitored_team_new(WORKERS, &n->team));
}

static void net_free(net *n) {
  yk_monitored_team_free(n->team);
  yk_graph_free(n->g);
}

static yk_monitored_options member(net *n, int32_t worker) {
  yk_monitored_options o = YK_MONITORED_OPTIONS_INIT;
  o.team = n->team;
  o.worker = worker;
  o.wait_ms = 60000;
  if (worker == 0) o.init = n->init;                 /* the graph may be final already */
  return o;
}

static yk_code step(yk_monitored *m, net *n) { return yk_monitored_run(m, 0, NULL, 0, NULL, 1, &n->train, NULL); }

typedef struct hand { net *n; int32_t worker; int64_t steps; yk_code open, run, close; char message[400]; double first; pthread_t thread; } hand;

/* Open, run until the end, close. */
static void *labour(void *arg) {
  hand *h = arg;
  yk_monitored *m = NULL;
  yk_monitored_options o = member(h->n, h->worker);
  yk_tensor *t = NULL;
  h->open = yk_monitored_open(h->n->g, &o, &m);
  if (h->open == YK_OK) {
    if (yk_variable_fetch(yk_monitored_session(m), h->n->w, &t) == YK_OK) h->first = yk_tensor_at(t, 0);
    yk_tensor_free(t);
    atomic_fetch_add(&h->n->opened, 1);
    while (!yk_monitored_should_stop(m) && (h->run = step(m, h->n)) == YK_OK) h->steps++;
    if (h->run != YK_OK) snprintf(h->message, sizeof h->message, "%s", yk_error_message());
    h->close = yk_monitored_close(m);
  } else snprintf(h->message, sizeof h->message, "%s", yk_error_message());
  return NULL;
}

static void start(hand *h, net *n, int32_t worker) {
  *h = (hand){ .n = n, .worker = worker };
  CHECK_INT(pthread_create(&h->thread, NULL, labour, h), 0);
}

/* Workers that come before their chief wait for it; it initialises once, all steps count, and its stop ends all. */
static void test_together(void **state) {
  net n;
  hand h[WORKERS];
  yk_monitored *m = NULL;
  int64_t at;
  (void)state;
  net_new(&n);
  for (int i = 0; i < WORKERS; i++) start(&h[i], &n, i + 1);
  yk_monitored_options o = member(&n, 0);
  CHECK_OK(yk_monitored_open(n.g, &o, &m));
  while (atomic_load(&n.opened) < WORKERS) CHECK_OK(step(m, &n));
  do CHECK_OK(yk_monitored_step(m, &at)); while (at < 60);
  yk_monitored_request_stop(m);
  CHECK_OK(yk_monitored_close(m));                   /* waits for them */
  for (int i = 0; i < WORKERS; i++) {
    CHECK_INT(pthread_join(h[i].thread, NULL), 0);
    CHECK_INT(h[i].open, YK_OK);
    CHECK_INT(h[i].run == YK_OK || h[i].run == YK_ERANGE, 1);
    CHECK_INT(h[i].close, YK_OK);
    if (h[i].first < 10) fail_msg("worker %d found w at %g", i + 1, h[i].first);
  }
  net_free(&n);
}

/* A folder for the chief: it restores, it alone saves. */
static void test_restores(void **state) {
  char folder[] = "/tmp/yoke-team-XXXXXX", command[64];
  (void)state;
  assert_non_null(mkdtemp(folder));
  for (int turn = 0; turn < 2; turn++) {
    net n;
    hand h;
    yk_hook stop;
    yk_monitored *m = NULL;
    net_new(&n);
    yk_monitored_options o = member(&n, 0);
    CHECK_OK(yk_hook_stop_at_step(5, 0, &stop));
    o.folder = folder;
    o.nhooks = 1;
    o.hooks = &stop;
    CHECK_OK(yk_monitored_open(n.g, &o, &m));
    start(&h, &n, 2);
    while (!yk_monitored_should_stop(m)) CHECK_OK(step(m, &n));
    CHECK_OK(yk_monitored_close(m));
    CHECK_INT(pthread_join(h.thread, NULL), 0);
    CHECK_INT(h.open == YK_OK || h.open == YK_ERANGE, 1);      /* it may have come too late */
    if (turn == 1 && h.open == YK_OK && h.first < 15) fail_msg("w is %g, not restored", h.first);
    yk_hook_free(&stop);
    net_free(&n);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK_INT(system(command), 0);
}

/* Who is missing, in the message. */
static void test_waits_in_vain(void **state) {
  net n;
  yk_monitored *m = NULL, *w = NULL;
  (void)state;
  net_new(&n);
  yk_monitored_options o = member(&n, 2), c = member(&n, 0);
  o.wait_ms = c.wait_ms = 20;
  CHECK_CODE(yk_monitored_open(n.g, &o, &w), YK_EBUSY,
             "worker 2 waited 20 ms for variables to be initialised or restored. Missing: the chief, which has");
  assert_null(w);
  CHECK_OK(yk_monitored_open(n.g, &c, &m));
  CHECK_OK(yk_monitored_open(n.g, &o, &w));
  CHECK_CODE(yk_monitored_open(n.g, &o, &(yk_monitored *){ NULL }), YK_EINVAL, "worker 2 of the team is there already");
  CHECK_CODE(yk_monitored_open(n.g, &c, &(yk_monitored *){ NULL }), YK_EINVAL, "the team has a chief already");
  CHECK_OK(step(w, &n));
  CHECK_CODE(yk_monitored_close(m), YK_EBUSY, "the chief waited 20 ms for its workers to close. Still there: worker 2");
  assert_true(yk_monitored_should_stop(w));
  CHECK_CODE(step(w, &n), YK_ERANGE, "the chief has stopped");
  CHECK_OK(yk_monitored_close(w));
  CHECK_OK(yk_monitored_close(m));                   /* once more, and now it can */
  CHECK_CODE(yk_monitored_open(n.g, &o, &w), YK_ERANGE, "the training has ended");
  net_free(&n);
}

static yk_code fails(void *self, yk_monitored *m) {
  (void)self;
  (void)m;
  return YK_EIO;
}

/* A chief that fails while it opens, or later: the workers get its failure. A worker that fails leaves the others alone. */
static void test_failures(void **state) {
  net n;
  hand h;
  yk_monitored *m = NULL, *w = NULL;
  yk_hook bad = { .name = "bad", .created = fails };
  (void)state;
  net_new(&n);
  start(&h, &n, 1);
  yk_monitored_options c = member(&n, 0), o = member(&n, 2);
  c.nhooks = 1;
  c.hooks = &bad;
  CHECK_CODE(yk_monitored_open(n.g, &c, &m), YK_EIO, "hook bad");
  CHECK_INT(pthread_join(h.thread, NULL), 0);
  if (h.open == YK_OK || (h.open != YK_EBUSY && strstr(h.message, "the chief has failed: hook bad") == NULL))
    fail_msg("worker 1: code %d, %s", (int)h.open, h.message);
  c = member(&n, 0);
  CHECK_OK(yk_monitored_open(n.g, &c, &m));          /* another one begins anew */
  CHECK_OK(yk_monitored_open(n.g, &o, &w));
  CHECK_CODE(yk_monitored_run(w, 1, &(yk_feed){ { 9999 }, NULL }, 0, NULL, 1, &n.train, NULL), YK_ENOTFOUND, "");
  assert_true(yk_monitored_should_stop(w));
  assert_false(yk_monitored_should_stop(m));
  CHECK_OK(yk_monitored_close(w));
  CHECK_OK(step(m, &n));
  CHECK_OK(yk_monitored_open(n.g, &o, &w));
  CHECK_CODE(yk_monitored_run(m, 1, &(yk_feed){ { 9999 }, NULL }, 0, NULL, 1, &n.train, NULL), YK_ENOTFOUND, "");
  CHECK_CODE(step(w, &n), YK_ENOTFOUND, "the chief has failed: ");
  CHECK_OK(yk_monitored_close(w));
  CHECK_OK(yk_monitored_close(m));
  net_free(&n);
}

static void test_refused(void **state) {
  net n;
  yk_monitored *m = NULL;
  yk_monitored_team *none = NULL;
  (void)state;
  net_new(&n);
  CHECK_CODE(yk_monitored_team_new(0, &none), YK_EINVAL, "a team of 0 workers");
  yk_monitored_options o = member(&n, 1);
  o.folder = "/tmp";
  CHECK_CODE(yk_monitored_open(n.g, &o, &m), YK_EINVAL, "worker 1 has a folder of checkpoints of its own");
  o = member(&n, 1);
  o.init = n.train;
  CHECK_CODE(yk_monitored_open(n.g, &o, &m), YK_EINVAL, "worker 1 has initializers of its own");
  o = member(&n, 4);
  CHECK_CODE(yk_monitored_open(n.g, &o, &m), YK_EINVAL, "worker 4 of a team of 3");
  o.team = NULL;
  CHECK_CODE(yk_monitored_open(n.g, &o, &m), YK_EINVAL, "worker 4 without a team");
  net_free(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_together), cmocka_unit_test(test_restores), cmocka_unit_test(test_waits_in_vain),
                                      cmocka_unit_test(test_failures), cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
