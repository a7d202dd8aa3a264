/*
 * The moves of synchronous replicas, one by one as in the worked examples, and in a thousand random schedules of threads that
 * leave, stop early and die. No graph takes part: the chief's update is w -= lr * mean.
 */
#include <sched.h>
#include "base/rng.h"
#include "base/thread.h"
#include "rig.h"
#include "train/sync.h"

/* ---- a core with one scalar variable ---- */

typedef struct play { yk_sync_core *c; yk_tensor *mean; double w, lr; int64_t step; } play;

static yk_sync_core *core_of(int r, int t, int tokens, uint32_t n, const yk_sync_slot *slots, int64_t timeout_ms) {
  yk_sync_options o = YK_SYNC_OPTIONS_INIT;
  yk_sync_core *c = NULL;
  o.replicas_to_aggregate = r;
  o.total_num_replicas = t;
  o.num_tokens = tokens;
  o.timeout_ms = timeout_ms;
  CHECK_OK(yk__sync_new(&o, n, slots, &c));
  CHECK_OK(yk__sync_begin(c, 0, tokens));
  return c;
}

static const yk_sync_slot scalar = { "w", { .dtype = YK_F32 }, false };

static play play_new(int r, int t, int tokens) {
  play p = { .c = core_of(r, t, tokens, 1, &scalar, 60000), .lr = 2 };
  CHECK_OK(yk_tensor_new(YK_F32, YK_SCALAR, &p.mean));
  for (int w = 0; w < p.c->total; w++) CHECK_OK(yk__sync_enter(p.c, w));
  return p;
}

static void play_end(play *p) {
  yk_tensor_free(p->mean);
  yk__sync_free(p->c);
}

static void applies(play *p, int w, float grad) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, &grad, &t));
  CHECK_OK(yk__sync_apply(p->c, w, (const yk_tensor *const[]){ t }));
  yk_tensor_free(t);
}

static void takes(play *p, int w, int64_t token) {
  CHECK_OK(yk__sync_token(p->c, w));
  CHECK_INT(p->c->member[w].local_step, token);
}

static void chief(play *p) {
  CHECK_OK(yk__sync_take(p->c, &p->mean));
  p->w -= p->lr * yk_tensor_at(p->mean, 0);
  CHECK_OK(yk__sync_publish(p->c, ++p->step, false));
}

/* Workers that stand in line for a token step aside, or come back in the order of their numbers, in which they came. */
static void line(play *p, bool away) {
  for (int w = 0; w < p->c->total; w++) {
    yk_sync_member *m = &p->c->member[w];
    if (!m->stands) continue;
    if (away) yk__tensor_queue_leave(p->c->tokens, &m->place);
    else yk__tensor_queue_stand(p->c->tokens, &m->place);
  }
}

/* One line of a table: accumulator's count and step, the queue, global step and w. The queue is read by taking it out and putting it back. */
static void expect(play *p, int count, int step, int nqueue, const int *queue, int gs, double w) {
  CHECK_INT(yk_accumulator_count(p->c->accumulator[0]), count);
  CHECK_INT(yk_accumulator_global_step(p->c->accumulator[0]), step);
  CHECK_INT(yk_tensor_queue_size(p->c->tokens), nqueue);
  line(p, true);
  for (int i = 0; i < nqueue; i++) {
    yk_tensor *t = NULL;
    CHECK_OK(yk_tensor_queue_dequeue(p->c->tokens, &t));
    CHECK_INT(yk_tensor_at(t, 0), queue[i]);
    CHECK_OK(yk_tensor_queue_enqueue(p->c->tokens, (const yk_tensor *const[]){ t }));
    yk_tensor_free(t);
  }
  line(p, false);
  CHECK_INT(p->c->global_step, gs);
  CHECK_NEAR(p->w, w, 1e-6);
  CHECK_INT(p->c->entered - p->c->taken, nqueue);
}
#define QUEUE(...) (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (const int[]){ __VA_ARGS__ }
#define NO_QUEUE 0, NULL

/* Two replicas, both needed, gradients 0.1 and 0.3, the usual two tokens. */
static void test_two_of_two(void **state) {
  play p = play_new(2, 2, -1);
  (void)state;
  expect(&p, 0, 0, QUEUE(0, 0), 0, 0);
  applies(&p, 0, 0.1f);
  takes(&p, 0, 0);
  expect(&p, 1, 0, QUEUE(0), 0, 0);
  applies(&p, 1, 0.3f);
  expect(&p, 2, 0, QUEUE(0), 0, 0);
  chief(&p);
  expect(&p, 0, 1, QUEUE(0, 1, 1), 1, -0.4);
  takes(&p, 1, 0);                                 /* an old one */
  expect(&p, 0, 1, QUEUE(1, 1), 1, -0.4);
  applies(&p, 0, 0.1f);                            /* both are stale */
  takes(&p, 0, 1);
  applies(&p, 1, 0.3f);
  takes(&p, 1, 1);
  expect(&p, 0, 1, NO_QUEUE, 1, -0.4);
  CHECK_INT(p.c->dropped, 2);
  applies(&p, 0, 0.1f);
  applies(&p, 1, 0.3f);
  expect(&p, 2, 1, NO_QUEUE, 1, -0.4);
  chief(&p);
  expect(&p, 0, 2, QUEUE(2, 2), 2, -0.8);
  takes(&p, 0, 2);
  takes(&p, 1, 2);
  expect(&p, 0, 2, NO_QUEUE, 2, -0.8);
  CHECK_INT(p.c->steps, 6);
  CHECK_INT(p.c->dropped, 2);
  play_end(&p);
}

/* Without first tokens no round is wasted. */
static void test_without_tokens(void **state) {
  play p = play_new(2, 2, 0);
  (void)state;
  for (int i = 0; i < 5; i++) {
    expect(&p, 0, i, NO_QUEUE, i, -0.4 * i);
    applies(&p, 0, 0.1f);
    applies(&p, 1, 0.3f);
    chief(&p);
    takes(&p, 0, i + 1);
    takes(&p, 1, i + 1);
  }
  CHECK_INT(p.c->dropped, 0);
  play_end(&p);
}

/* Three replicas, two needed: gradients 0.1, 0.3, 0.5. */
static void test_one_backup(void **state) {
  play p = play_new(2, 3, 3);
  (void)state;
  expect(&p, 0, 0, QUEUE(0, 0, 0), 0, 0);
  applies(&p, 0, 0.1f);
  takes(&p, 0, 0);
  applies(&p, 2, 0.5f);
  takes(&p, 2, 0);
  expect(&p, 2, 0, QUEUE(0), 0, 0);
  chief(&p);
  expect(&p, 0, 1, QUEUE(0, 1, 1, 1), 1, -0.6);
  applies(&p, 1, 0.3f);                            /* late */
  takes(&p, 1, 0);
  expect(&p, 0, 1, QUEUE(1, 1, 1), 1, -0.6);
  CHECK_INT(p.c->dropped, 1);
  applies(&p, 0, 0.1f);
  applies(&p, 1, 0.3f);
  applies(&p, 2, 0.5f);
  for (int w = 0; w < 3; w++) takes(&p, w, 1);
  expect(&p, 0, 1, NO_QUEUE, 1, -0.6);
  CHECK_INT(p.c->dropped, 4);
  applies(&p, 0, 0.1f);
  applies(&p, 1, 0.3f);
  chief(&p);
  expect(&p, 0, 2, QUEUE(2, 2, 2), 2, -1.0);
  takes(&p, 0, 2);
  takes(&p, 1, 2);
  expect(&p, 0, 2, QUEUE(2), 2, -1.0);
  applies(&p, 2, 0.5f);                            /* late again */
  takes(&p, 2, 2);
  expect(&p, 0, 2, NO_QUEUE, 2, -1.0);
  CHECK_INT(p.c->dropped, 5);
  CHECK_INT(p.c->steps, 9);
  CHECK_INT(p.c->entered, 3 + 2 * 3);
  CHECK_INT(p.c->taken, 9);
  play_end(&p);
}

/* Four gradients of two replicas: two each, with tokens of the same step. */
static void test_more_than_replicas(void **state) {
  play p = play_new(4, 2, 2);
  (void)state;
  for (int w = 0; w < 2; w++) {
    applies(&p, w, 0.1f);
    takes(&p, w, 0);
  }
  expect(&p, 2, 0, NO_QUEUE, 0, 0);
  applies(&p, 0, 0.3f);
  applies(&p, 1, 0.3f);
  chief(&p);
  expect(&p, 0, 1, QUEUE(1, 1, 1, 1), 1, -0.4);
  takes(&p, 0, 1);
  takes(&p, 1, 1);                                 /* it stood in line when the tokens came */
  applies(&p, 0, 0.5f);
  takes(&p, 0, 1);
  applies(&p, 0, 0.5f);
  takes(&p, 0, 1);
  applies(&p, 0, 0.5f);                            /* three of one replica, one of the other */
  applies(&p, 1, 0.5f);
  chief(&p);
  expect(&p, 0, 2, QUEUE(2, 2, 2, 2), 2, -1.4);
  CHECK_INT(p.c->dropped, 0);
  play_end(&p);
}

/* ---- leaving ---- */

static void test_leavers(void **state) {
  play p = play_new(2, 2, 0);
  (void)state;
  applies(&p, 0, 0.1f);
  expect(&p, 1, 0, NO_QUEUE, 0, 0);
  yk__sync_leave(p.c, 1);                          /* without a gradient: one is enough now, and one token enters */
  chief(&p);
  expect(&p, 0, 1, QUEUE(1), 1, -0.2);
  takes(&p, 0, 1);
  applies(&p, 0, 0.1f);
  yk__sync_leave(p.c, 0);                          /* the last one: what it gave is still applied */
  chief(&p);
  expect(&p, 0, 2, NO_QUEUE, 2, -0.4);
  CHECK_CODE(yk__sync_take(p.c, &p.mean), YK_ERANGE, "nobody is left");
  play_end(&p);
  p = play_new(2, 3, 0);                           /* with a backup the quorum stays */
  yk__sync_leave(p.c, 2);
  applies(&p, 0, 0.1f);
  applies(&p, 1, 0.3f);
  chief(&p);
  expect(&p, 0, 1, QUEUE(1, 1), 1, -0.4);
  play_end(&p);
  p = play_new(3, 2, 1);                           /* three gradients of two: the other one takes over the token */
  applies(&p, 0, 0.1f);
  takes(&p, 0, 0);
  applies(&p, 0, 0.3f);
  expect(&p, 2, 0, NO_QUEUE, 0, 0);
  yk__sync_leave(p.c, 1);
  expect(&p, 2, 0, QUEUE(0), 0, 0);
  takes(&p, 0, 0);
  applies(&p, 0, 0.5f);
  chief(&p);
  expect(&p, 0, 1, QUEUE(1, 1, 1), 1, -0.6);
  play_end(&p);
}

/* ---- ends and time-outs ---- */

/* What entered with the end is still taken; what comes later is told. */
static void test_the_last_update(void **state) {
  play p = play_new(2, 2, 0);
  (void)state;
  applies(&p, 0, 0.1f);
  applies(&p, 1, 0.3f);
  CHECK_OK(yk__sync_take(p.c, &p.mean));
  CHECK_OK(yk__sync_publish(p.c, 1, true));
  CHECK_CODE(yk__sync_ended(p.c), YK_ERANGE, "sync_replicas: the training has ended, at global step 1");
  takes(&p, 0, 1);
  takes(&p, 1, 1);
  applies(&p, 0, 0.1f);
  CHECK_CODE(yk__sync_token(p.c, 0), YK_ERANGE, "the training has ended");
  CHECK_CODE(yk__sync_take(p.c, &p.mean), YK_ERANGE, "cancelled");
  play_end(&p);
}

static void test_who_is_missing(void **state) {
  yk_sync_core *c = core_of(3, 3, 0, 1, &scalar, 3);
  yk_tensor *t = NULL;
  (void)state;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SCALAR, &t));
  CHECK_OK(yk__sync_enter(c, 0));
  CHECK_OK(yk__sync_enter(c, 1));
  CHECK_CODE(yk__sync_enter(c, 1), YK_EINVAL, "worker 1 was opened before");
  CHECK_CODE(yk__sync_enter(c, 3), YK_EINVAL, "no worker 3 of 3");
  CHECK_OK(yk__sync_apply(c, 0, (const yk_tensor *const[]){ t }));
  yk_code rc = yk__sync_token(c, 0);
  CHECK_CODE(rc, YK_EBUSY, "sync_replicas: worker 0 at global step 0: FIFOQueue 'sync_token_q': dequeue waited 3 ms for 1 element");
  rc = yk__sync_take(c, &t);
  const char *m = yk_error_message();
  CHECK_INT(rc, YK_EBUSY);
  if (!strstr(m, "sync_replicas: the chief at global step 0: accumulator 'w:0/grad_accum': take waited 3 ms for 3 gradients of step 0; 1 are "
              "there. Missing: worker 1 computes since ") || !strstr(m, "; worker 2 has not started since ") || strstr(m, "worker 0"))
    fail_msg("%s", m);
  CHECK_INT(yk_tensor_new((yk_dtype)77, YK_SCALAR, &t), YK_EINVAL);
  yk__sync_failed(c, 1, YK_EINVAL);
  rc = yk__sync_take(c, &t);
  if (!strstr(yk_error_message(), "worker 1 failed") || !strstr(yk_error_message(), "with EINVAL")) fail_msg("%s", yk_error_message());
  yk__sync_leave(c, 1);
  rc = yk__sync_take(c, &t);
  if (!strstr(yk_error_message(), "for 2 gradients") || !strstr(yk_error_message(), "worker 1 left with EINVAL")) fail_msg("%s", yk_error_message());
  CHECK_INT(rc, YK_EBUSY);
  yk__sync_stop(c, rc);                            /* everybody is told the same */
  CHECK_CODE(yk__sync_token(c, 0), YK_EBUSY, "worker 1 left with EINVAL");
  yk__sync_stop(c, YK_OK);
  CHECK_CODE(yk__sync_ended(c), YK_EBUSY, "the chief");
  yk_tensor_free(t);
  yk__sync_free(c);
}

static void test_numbers(void **state) {
  yk_sync_options o = YK_SYNC_OPTIONS_INIT;
  yk_sync_core *c = NULL;
  (void)state;
#define REFUSED(text) CHECK_CODE(yk__sync_new(&o, 1, &scalar, &c), YK_EINVAL, text)
  REFUSED("replicas_to_aggregate is 0, expected 1 or more");
  o.replicas_to_aggregate = 5;
  o.total_num_replicas = -1;
  REFUSED("total_num_replicas is -1");
  o.total_num_replicas = 2;
  o.num_tokens = 2;
  REFUSED("num_tokens is 2, but at least replicas_to_aggregate - total_num_replicas = 3 are needed");
  o.num_tokens = -2;
  REFUSED("num_tokens is -2");
  o.num_tokens = 3;
  o.timeout_ms = -1;
  REFUSED("timeout_ms is -1");
  o.timeout_ms = 0;
  o.name = "mine";
  o.total_num_replicas = 0;
  CHECK_OK(yk__sync_new(&o, 1, &scalar, &c));
  CHECK_INT(c->total, 5);
  yk__sync_free(c);
  yk__sync_free(NULL);
}

/* ---- random schedules ---- */

enum { MOST = 5, SCHEDULES = 1000 };

typedef struct actor {
  struct schedule *s;
  yk_thread thread;
  int index, limit, dies_at;         /* steps it makes at most; before which it fails */
  uint64_t draws;
  int64_t steps, tokens;
  yk_code rc;
  char why[256];
} actor;

typedef struct schedule {
  uint64_t seed;
  yk_sync_core *c;
  int r, t, tokens, last;
  int64_t updates;
  double sum;                        /* of all means */
  actor worker[MOST], chief;
} schedule;

static uint64_t below(actor *a, uint64_t n) { return yk__rng_below(a->s->seed, (uint64_t)a->index + 1, 0, a->draws++, n); }
/* Some work; seldom a yield, which may cost a whole slice on a busy machine. */
static void dawdle(actor *a) {
  volatile uint64_t spun = 0;
  for (uint64_t n = below(a, 2000); spun < n;) spun = spun + 1;
  if (below(a, 50) == 0) sched_yield();
}

static void *work(void *arg) {
  actor *a = arg;
  yk_sync_core *c = a->s->c;
  yk_tensor *g[3] = { NULL };
  yk_code rc = yk_tensor_from(YK_F32, YK_SCALAR, (const float[]){ 1 }, &g[0]);
  if (rc == YK_OK) rc = yk_tensor_from(YK_F32, YK_SHAPE(1, 2), (const float[]){ 1, 1 }, &g[1]);
  if (rc == YK_OK) rc = yk_tensor_from(YK_I32, YK_SHAPE(1), (const int32_t[]){ a->index }, &g[2]);
  if (rc == YK_OK) rc = yk__sync_enter(c, a->index);
  while (rc == YK_OK && a->steps < a->limit) {
    dawdle(a);
    if (a->steps == a->dies_at) {
      yk__sync_failed(c, a->index, YK_EDEVICE);
      break;
    }
    rc = yk__sync_apply(c, a->index, (const yk_tensor *const *)g);
    if (rc != YK_OK) break;
    a->steps++;
    dawdle(a);
    rc = yk__sync_token(c, a->index);
    a->tokens += rc == YK_OK;
  }
  a->rc = rc;
  snprintf(a->why, sizeof a->why, "%s", yk_error_message());
  yk__sync_leave(c, a->index);
  for (int i = 0; i < 3; i++) yk_tensor_free(g[i]);
  return NULL;
}

static void *lead(void *arg) {
  actor *a = arg;
  schedule *s = a->s;
  yk_tensor *mean[3] = { NULL };
  yk_code rc = yk_tensor_new(YK_F32, YK_SCALAR, &mean[0]);
  while (rc == YK_OK && s->updates < s->last) {
    rc = yk__sync_take(s->c, mean);
    if (rc != YK_OK) break;
    s->sum += yk_tensor_at(mean[0], 0);
    dawdle(a);
    s->updates++;
    rc = yk__sync_publish(s->c, s->updates, s->updates == s->last && below(a, 2) == 0);
    dawdle(a);
  }
  a->rc = rc;
  snprintf(a->why, sizeof a->why, "%s", yk_error_message());
  yk__sync_stop(s->c, rc == YK_ERANGE ? YK_OK : rc);
  for (int i = 0; i < 3; i++) yk_tensor_free(mean[i]);
  return NULL;
}

static void invent(schedule *s, uint64_t seed) {
  static const yk_sync_slot slots[2] = { { "w", { .dtype = YK_F32 }, false }, { "e", { .dtype = YK_F32, .rank = 2, .dim = { MOST, 2 } }, true } };
  *s = (schedule){ .seed = seed };
  s->chief = (actor){ .s = s, .index = MOST };
  s->r = 1 + (int)below(&s->chief, MOST);
  s->t = 1 + (int)below(&s->chief, MOST);
  s->last = 1 + (int)below(&s->chief, 8);
  int least = s->r > s->t ? s->r - s->t : 0;
  s->tokens = below(&s->chief, 3) == 0 ? -1 : least + (int)below(&s->chief, 4);
  for (int w = 0; w < s->t; w++) {
    actor *a = &s->worker[w];
    *a = (actor){ .s = s, .index = w, .limit = INT32_MAX, .dies_at = -1 };
    uint64_t fate = below(&s->chief, 6);
    if (fate == 0) a->limit = (int)below(&s->chief, 8);                /* runs out of data */
    if (fate == 1) a->dies_at = (int)below(&s->chief, 8);
  }
  s->c = core_of(s->r, s->t, s->tokens, 2, slots, 60000);
}

/* What must hold however it went. */
static void verify(const schedule *s) {
  const yk_sync_core *c = s->c;
  int64_t steps = 0, tokens = 0, endless = 0, init = s->tokens < 0 ? s->r : s->tokens;
  for (int w = 0; w < s->t; w++) {
    const actor *a = &s->worker[w];
    if (a->rc != YK_OK && a->rc != YK_ERANGE) fail_msg("seed %llu, worker %d: %s", (unsigned long long)s->seed, w, a->why);
    if (a->steps - a->tokens != 0 && a->steps - a->tokens != 1)
      fail_msg("seed %llu, worker %d: %lld steps, %lld tokens", (unsigned long long)s->seed, w, (long long)a->steps, (long long)a->tokens);
    steps += a->steps;
    tokens += a->tokens;
    endless += a->limit == INT32_MAX && a->dies_at < 0;
  }
  if (s->chief.rc != YK_OK && s->chief.rc != YK_ERANGE) fail_msg("seed %llu, chief: %s", (unsigned long long)s->seed, s->chief.why);
  CHECK_INT(c->steps, steps);
  CHECK_INT(c->taken, tokens);
  CHECK_INT(c->entered - c->taken, yk_tensor_queue_size(c->tokens));   /* each token that entered was taken by one step, or is there */
  if (endless > 0) CHECK_INT(s->updates, s->last);                     /* nobody's leaving holds up the others */
  if (endless == s->t) CHECK_INT(c->entered, init + s->updates * (s->r > s->t ? s->r : s->t));
  CHECK_NEAR(s->sum, (double)s->updates, 1e-6);                        /* means of ones */
  CHECK_INT(yk_accumulator_global_step(c->accumulator[0]), s->updates);
  int64_t happened = yk_accumulator_dropped(c->accumulator[0]);
  if (c->dropped < happened)
    fail_msg("seed %llu: %lld drops counted, %lld happened", (unsigned long long)s->seed, (long long)c->dropped, (long long)happened);
}

static void test_random_schedules(void **state) {
  static schedule s;
  int64_t dropped = 0, early = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
    invent(&s, seed);
    CHECK_OK(yk__thread_start(&s.chief.thread, "chief", lead, &s.chief));
    for (int w = 0; w < s.t; w++) CHECK_OK(yk__thread_start(&s.worker[w].thread, "worker", work, &s.worker[w]));
    for (int w = 0; w < s.t; w++) yk__thread_join(&s.worker[w].thread);
    yk__thread_join(&s.chief.thread);
    verify(&s);
    dropped += s.c->dropped;
    early += s.updates < s.last;
    yk__sync_free(s.c);
  }
  if (dropped == 0 || early == 0) fail_msg("%lld gradients dropped, %lld schedules without workers left: this proves too little",
                                           (long long)dropped, (long long)early);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_two_of_two), cmocka_unit_test(test_without_tokens), cmocka_unit_test(test_one_backup),
    cmocka_unit_test(test_more_than_replicas), cmocka_unit_test(test_leavers), cmocka_unit_test(test_the_last_update),
    cmocka_unit_test(test_who_is_missing),
    cmocka_unit_test(test_numbers), cmocka_unit_test(test_random_schedules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
