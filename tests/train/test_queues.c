/*
 * Tensor queues, rule by rule, and the coordinator with its threads. What waits is seen by what it already took or gave, never by
 * the clock: a time-out here only ends what cannot go on.
 */
#include <sched.h>
#include "base/thread.h"
#include "rig.h"

/* ---- a queue of numbers ---- */

static yk_tensor_queue *open_kind(yk_tensor_queue_kind kind, int64_t capacity, int64_t stay) {
  yk_tensor_queue_options o = YK_TENSOR_QUEUE_OPTIONS_INIT;
  yk_tensor_queue *q = NULL;
  o.kind = kind;
  o.name = "q";
  o.capacity = capacity;
  o.min_after_dequeue = stay;
  o.seed = 7;
  o.ncomponents = 1;
  o.component[0] = (yk_desc){ .dtype = YK_I32 };
  o.timeout_ms = 60000;
  CHECK_OK(yk_tensor_queue_open(&o, &q));
  return q;
}

static yk_tensor_queue *open_fifo(int64_t capacity) { return open_kind(YK_QUEUE_FIFO, capacity, 0); }

static yk_code put(yk_tensor_queue *q, int32_t x) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_I32, YK_SCALAR, &x, &t));
  yk_code rc = yk_tensor_queue_enqueue(q, (const yk_tensor *const[]){ t });
  yk_tensor_free(t);
  return rc;
}

/* first, first+1, ... */
static yk_code put_many(yk_tensor_queue *q, int32_t first, int32_t n) {
  int32_t x[32];
  yk_tensor *t = NULL;
  for (int32_t i = 0; i < n; i++) x[i] = first + i;
  CHECK_OK(yk_tensor_from(YK_I32, YK_SHAPE(n), x, &t));
  yk_code rc = yk_tensor_queue_enqueue_many(q, (const yk_tensor *const[]){ t });
  yk_tensor_free(t);
  return rc;
}

static void expect_one(yk_tensor_queue *q, int want) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_queue_dequeue(q, &t));
  CHECK_INT(yk_tensor_desc(t)->rank, 0);
  CHECK_INT(yk_tensor_at(t, 0), want);
  yk_tensor_free(t);
}

static void expect_many(yk_tensor *t, int n, const int *want) {
  CHECK_INT(yk_tensor_desc(t)->rank, 1);
  CHECK_INT(yk_tensor_count(t), n);
  for (int i = 0; i < n; i++) CHECK_INT(yk_tensor_at(t, i), want[i]);
  yk_tensor_free(t);
}
#define EXPECT_MANY(t, ...) expect_many(t, (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (const int[]){ __VA_ARGS__ })

/* Another thread is where it leaves so many elements there: it has nothing to do but wait. */
static void until_size(const yk_tensor_queue *q, int64_t n) {
  while (yk_tensor_queue_size(q) != n) sched_yield();
}

/* ---- first in, first out ---- */

static void test_fifo(void **state) {
  yk_tensor_queue *q = open_fifo(10);
  yk_tensor *t = NULL;
  (void)state;
  CHECK_OK(put(q, 5));
  CHECK_OK(put_many(q, 6, 4));
  CHECK_OK(put_many(q, 0, 0));
  CHECK_INT(yk_tensor_queue_size(q), 5);
  expect_one(q, 5);
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 3, &t));
  EXPECT_MANY(t, 6, 7, 8);
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 0, &t));
  CHECK_INT(yk_tensor_count(t), 0);
  yk_tensor_free(t);
  CHECK_OK(put_many(q, 20, 9));
  CHECK_OK(yk_tensor_queue_dequeue_up_to(q, 2, &t));
  EXPECT_MANY(t, 9, 20);
  yk_tensor_queue_free(q);
  q = open_fifo(0);                                /* without limit */
  for (int i = 0; i < 10; i++) CHECK_OK(put_many(q, 10 * i, 10));
  for (int i = 0; i < 100; i++) expect_one(q, i);
  yk_tensor_queue_free(q);
}

static void test_closed(void **state) {
  yk_tensor_queue *q = open_fifo(10);
  yk_tensor *t = NULL, *same = (yk_tensor *)&state;
  (void)state;
  CHECK_OK(put_many(q, 0, 5));
  CHECK_INT(yk_tensor_queue_closed(q), 0);
  CHECK_OK(yk_tensor_queue_close(q, false));
  CHECK_INT(yk_tensor_queue_closed(q), 1);
  CHECK_CODE(yk_tensor_queue_close(q, false), YK_ECANCELLED, "FIFOQueue 'q' is already closed");
  CHECK_OK(yk_tensor_queue_close(q, true));
  CHECK_CODE(put(q, 9), YK_ECANCELLED, "FIFOQueue 'q' is closed");
  CHECK_CODE(put_many(q, 9, 2), YK_ECANCELLED, "closed");
  CHECK_OK(put_many(q, 9, 0));
  expect_one(q, 0);
  t = same;
  CHECK_CODE(yk_tensor_queue_dequeue_many(q, 5, &t), YK_ERANGE, "'q' is closed and has insufficient elements: dequeue_many requested 5, "
             "available 4");
  assert_ptr_equal(t, same);
  CHECK_INT(yk_tensor_queue_size(q), 4);           /* put back, in order */
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 2, &t));
  EXPECT_MANY(t, 1, 2);
  CHECK_OK(yk_tensor_queue_dequeue_up_to(q, 5, &t));
  EXPECT_MANY(t, 3, 4);
  CHECK_CODE(yk_tensor_queue_dequeue_up_to(q, 5, &t), YK_ERANGE, "requested 5, available 0");
  CHECK_CODE(yk_tensor_queue_dequeue(q, &t), YK_ERANGE, "requested 1, available 0");
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 0, &t));
  yk_tensor_free(t);
  yk_tensor_queue_free(q);
}

static void test_times(void **state) {
  yk_tensor_queue *q = open_fifo(3);
  yk_tensor *t = NULL;
  (void)state;
  CHECK_CODE(yk_tensor_queue_set_timeout(q, 0), YK_EINVAL, "0 ms");
  CHECK_OK(yk_tensor_queue_set_timeout(q, 3));
  CHECK_CODE(yk_tensor_queue_dequeue(q, &t), YK_EBUSY, "FIFOQueue 'q': dequeue waited 3 ms for 1 element; 0 are there");
  CHECK_OK(put_many(q, 0, 2));
  CHECK_CODE(yk_tensor_queue_dequeue_many(q, 7, &t), YK_EBUSY, "dequeue_many waited 3 ms for 7 elements; 2 are there");
  CHECK_CODE(yk_tensor_queue_dequeue_up_to(q, 3, &t), YK_EBUSY, "dequeue_up_to waited 3 ms for 3 elements");
  CHECK_CODE(put_many(q, 2, 4), YK_EBUSY, "enqueue_many waited 3 ms for room: 1 of 4 elements enqueued, 3 are there, capacity 3");
  CHECK_CODE(put(q, 9), YK_EBUSY, "enqueue waited 3 ms for room: 0 of 1 elements");
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 3, &t));
  EXPECT_MANY(t, 0, 1, 2);
  assert_null(yk_tensor_queue_source(NULL));
  yk_tensor_queue_free(q);
}

/* ---- callers in line ---- */

typedef struct call { yk_tensor_queue *q; int32_t first, n; yk_thread thread; yk_code rc; yk_tensor *out; } call;

static void *take_many(void *arg) {
  call *c = arg;
  c->rc = yk_tensor_queue_dequeue_many(c->q, c->n, &c->out);
  return NULL;
}

static void *give_many(void *arg) {
  call *c = arg;
  c->rc = put_many(c->q, c->first, c->n);
  return NULL;
}

static void start(call *c, void *(*fn)(void *)) { CHECK_OK(yk__thread_start(&c->thread, "caller", fn, c)); }
static yk_code end(call *c) {
  yk__thread_join(&c->thread);
  return c->rc;
}

static void test_takers_in_line(void **state) {
  yk_tensor_queue *q = open_fifo(4);
  call first = { .q = q, .n = 6 }, second = { .q = q, .n = 1 };      /* the first wants more than fits at once */
  (void)state;
  CHECK_OK(put_many(q, 0, 2));
  start(&first, take_many);
  until_size(q, 0);                                /* it holds both */
  start(&second, take_many);
  for (int i = 2; i < 7; i++) CHECK_OK(put(q, i));
  CHECK_INT(end(&first), YK_OK);
  CHECK_INT(end(&second), YK_OK);
  EXPECT_MANY(first.out, 0, 1, 2, 3, 4, 5);
  EXPECT_MANY(second.out, 6);
  yk_tensor_queue_free(q);
}

static void test_givers_in_line(void **state) {
  yk_tensor_queue *q = open_fifo(2);
  call first = { .q = q, .n = 5 }, second = { .q = q, .first = 90, .n = 1 };
  (void)state;
  start(&first, give_many);
  until_size(q, 2);
  start(&second, give_many);
  for (int i = 0; i < 5; i++) expect_one(q, i);
  expect_one(q, 90);
  CHECK_INT(end(&first), YK_OK);
  CHECK_INT(end(&second), YK_OK);
  yk_tensor_queue_free(q);
}

static void test_close_lets_pending_finish(void **state) {
  yk_tensor_queue *q = open_fifo(2);
  call giver = { .q = q, .n = 5 };
  yk_tensor *t = NULL;
  (void)state;
  start(&giver, give_many);
  until_size(q, 2);
  CHECK_OK(yk_tensor_queue_close(q, false));
  CHECK_CODE(put(q, 9), YK_ECANCELLED, "closed");
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 5, &t));          /* what was waiting counts */
  EXPECT_MANY(t, 0, 1, 2, 3, 4);
  CHECK_INT(end(&giver), YK_OK);
  CHECK_CODE(yk_tensor_queue_dequeue(q, &t), YK_ERANGE, "closed");
  yk_tensor_queue_free(q);
}

static void test_close_cancels_pending(void **state) {
  yk_tensor_queue *q = open_fifo(2);
  call giver = { .q = q, .n = 5 }, taker = { .q = q, .n = 3 };
  yk_tensor *t = NULL;
  (void)state;
  start(&giver, give_many);
  until_size(q, 2);
  CHECK_OK(yk_tensor_queue_close(q, true));
  CHECK_INT(end(&giver), YK_ECANCELLED);
  CHECK_OK(yk_tensor_queue_dequeue_up_to(q, 5, &t));
  EXPECT_MANY(t, 0, 1);
  yk_tensor_queue_free(q);
  taker.q = q = open_fifo(2);                      /* a taker that waits is told of the end, and gives back what it held */
  CHECK_OK(put_many(q, 0, 2));
  start(&taker, take_many);
  until_size(q, 0);
  CHECK_OK(yk_tensor_queue_close(q, false));
  CHECK_INT(end(&taker), YK_ERANGE);
  expect_one(q, 0);
  expect_one(q, 1);
  taker.q = open_fifo(2);
  CHECK_OK(put(taker.q, 0));
  start(&taker, take_many);
  until_size(taker.q, 0);
  yk_tensor_queue_free(taker.q);                   /* lets it leave first */
  CHECK_INT(end(&taker), YK_ERANGE);
  yk_tensor_queue_free(q);
}

/* ---- at random ---- */

static void shuffled(int order[20]) {
  yk_tensor_queue *q = open_kind(YK_QUEUE_RANDOM_SHUFFLE, 30, 10);
  yk_tensor *t = NULL;
  CHECK_OK(put_many(q, 0, 20));
  CHECK_OK(yk_tensor_queue_set_timeout(q, 3));
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 10, &t));
  for (int i = 0; i < 10; i++) order[i] = (int)yk_tensor_at(t, i);
  yk_tensor_free(t);
  CHECK_CODE(yk_tensor_queue_dequeue(q, &t), YK_EBUSY, "RandomShuffleQueue 'q': dequeue waited 3 ms for 1 element; 10 are there, of which "
             "min_after_dequeue must stay");
  CHECK_OK(yk_tensor_queue_close(q, false));       /* now all of them may go */
  CHECK_CODE(yk_tensor_queue_dequeue_many(q, 11, &t), YK_ERANGE, "requested 11, available 10");
  CHECK_OK(yk_tensor_queue_dequeue_up_to(q, 11, &t));
  CHECK_INT(yk_tensor_count(t), 10);
  for (int i = 0; i < 10; i++) order[10 + i] = (int)yk_tensor_at(t, i);
  yk_tensor_free(t);
  yk_tensor_queue_free(q);
}

static void test_shuffle(void **state) {
  int a[20], b[20], seen[20] = { 0 }, moved = 0;
  (void)state;
  shuffled(a);
  shuffled(b);
  for (int i = 0; i < 20; i++) {
    CHECK_INT(a[i], b[i]);                         /* the seed decides */
    seen[a[i]]++;
    moved += a[i] != i;
  }
  for (int i = 0; i < 20; i++) CHECK_INT(seen[i], 1);
  if (moved < 10) fail_msg("only %d of 20 elements left their place", moved);
}

/* Each of 4 elements comes first about as often as the others: 4000 draws, deviation 27. */
static void test_shuffle_is_even(void **state) {
  int first[4] = { 0 };
  (void)state;
  yk_tensor_queue *q = open_kind(YK_QUEUE_RANDOM_SHUFFLE, 8, 0);
  for (int i = 0; i < 4000; i++) {
    yk_tensor *t = NULL;
    CHECK_OK(put_many(q, 0, 4));
    CHECK_OK(yk_tensor_queue_dequeue_many(q, 4, &t));
    first[(int)yk_tensor_at(t, 0)]++;
    yk_tensor_free(t);
  }
  for (int i = 0; i < 4; i++) CHECK_NEAR(first[i], 1000, 150);
  yk_tensor_queue_free(q);
}

/* ---- shapes ---- */

static yk_tensor *ramp(yk_shape shape) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_new(YK_F32, shape, &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++) ((float *)yk_tensor_data(t))[i] = (float)(i + 1);
  return t;
}

static void test_padding(void **state) {
  yk_tensor_queue_options o = YK_TENSOR_QUEUE_OPTIONS_INIT;
  yk_tensor_queue *q = NULL;
  yk_tensor *x[3] = { ramp(YK_SHAPE(1, 3)), ramp(YK_SHAPE(2, 1)), ramp(YK_SHAPE(0, 2)) }, *out = NULL;
  static const double want[] = { 1, 2, 3, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0 };
  (void)state;
  o.kind = YK_QUEUE_PADDING_FIFO;
  o.ncomponents = 1;
  o.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 2, .dim = { -1, -1 } };
  o.timeout_ms = 3;
  CHECK_OK(yk_tensor_queue_open(&o, &q));
  assert_null(yk_tensor_queue_source(q));
  for (int i = 0; i < 3; i++) CHECK_OK(yk_tensor_queue_enqueue(q, (const yk_tensor *const[]){ x[i] }));
  CHECK_OK(yk_tensor_queue_dequeue_many(q, 3, &out));
  CHECK_INT(yk_tensor_desc(out)->dim[1], 2);
  CHECK_INT(yk_tensor_desc(out)->dim[2], 3);
  for (int i = 0; i < 18; i++) CHECK_NEAR(yk_tensor_at(out, i), want[i], 0);
  yk_tensor_free(out);
  CHECK_OK(yk_tensor_queue_enqueue(q, (const yk_tensor *const[]){ x[1] }));
  CHECK_OK(yk_tensor_queue_dequeue(q, &out));      /* alone it keeps its shape */
  CHECK_INT(yk_tensor_desc(out)->dim[0], 2);
  CHECK_INT(yk_tensor_desc(out)->dim[1], 1);
  yk_tensor_free(out);
  yk_tensor *flat = ramp(YK_SHAPE(4));
  CHECK_CODE(yk_tensor_queue_enqueue(q, (const yk_tensor *const[]){ flat }), YK_EINVAL, "component 0 is f32[4], expected f32[?,?]");
  yk_tensor_free(flat);
  for (int i = 0; i < 3; i++) yk_tensor_free(x[i]);
  yk_tensor_queue_free(q);
}

static void test_any_shape(void **state) {
  yk_tensor_queue_options o = YK_TENSOR_QUEUE_OPTIONS_INIT;
  yk_tensor_queue *q = NULL;
  yk_tensor *x = ramp(YK_SHAPE(5)), *s = ramp(YK_SCALAR), *out[2] = { NULL, NULL };
  (void)state;
  o.ncomponents = 2;
  o.component[0].dtype = o.component[1].dtype = YK_F32;
  o.any_shape = true;
  CHECK_OK(yk_tensor_queue_open(&o, &q));
  CHECK_OK(yk_tensor_queue_enqueue(q, (const yk_tensor *const[]){ x, s }));
  ((float *)yk_tensor_data(x))[4] = 0;             /* it was copied */
  CHECK_CODE(yk_tensor_queue_enqueue_many(q, (const yk_tensor *const[]){ x, x }), YK_EINVAL, "known shapes");
  CHECK_CODE(yk_tensor_queue_dequeue_many(q, 1, out), YK_EINVAL, "known shapes");
  CHECK_OK(yk_tensor_queue_dequeue(q, out));
  CHECK_INT(yk_tensor_count(out[0]), 5);
  CHECK_NEAR(yk_tensor_at(out[0], 4), 5, 0);
  CHECK_INT(yk_tensor_desc(out[1])->rank, 0);
  for (int i = 0; i < 2; i++) yk_tensor_free(out[i]);
  yk_tensor_free(x);
  yk_tensor_free(s);
  yk_tensor_queue_free(q);
}

static void test_refusals(void **state) {
  yk_tensor_queue_options o = YK_TENSOR_QUEUE_OPTIONS_INIT;
  yk_tensor_queue *q = NULL;
  yk_tensor *t = NULL;
  (void)state;
#define REFUSED(text) CHECK_CODE(yk_tensor_queue_open(&o, &q), YK_EINVAL, text)
  REFUSED("1 to 128 components, not 0");
  o.ncomponents = 1;
  REFUSED("component 0");
  o.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 1, .dim = { -1 } };
  REFUSED("component 0");
  o.kind = (yk_tensor_queue_kind)9;
  REFUSED("no such kind of queue: 9");
  o.kind = YK_QUEUE_FIFO;
  o.component[0].dim[0] = 2;
  o.min_after_dequeue = 2;
  REFUSED("random shuffle queues only");
  o.kind = YK_QUEUE_RANDOM_SHUFFLE;
  o.capacity = 2;
  REFUSED("min_after_dequeue is 2, expected 0 or more and less than the capacity 2");
  o.capacity = -1;
  REFUSED("capacity of -1");
  o.capacity = 3;
  o.timeout_ms = -5;
  REFUSED("-5 ms");
  o.timeout_ms = 0;
  CHECK_OK(yk_tensor_queue_open(&o, &q));
  CHECK_CODE(put(q, 1), YK_EINVAL, "component 0 is i32[], expected f32[2]");
  CHECK_CODE(put_many(q, 1, 2), YK_EINVAL, "component 0 is i32[2], expected a batch of f32[2]");
  CHECK_CODE(yk_tensor_queue_dequeue_many(q, -1, &t), YK_EINVAL, "requested -1");
  CHECK_CODE(yk_tensor_queue_enqueue(q, (const yk_tensor *const[]){ NULL }), YK_EINVAL, "component 0 is NULL");
  yk_tensor_queue_free(q);
  yk_tensor_queue_free(NULL);
}

/* ---- read by a graph ---- */

static void test_source(void **state) {
  yk_tensor_queue *q = open_fifo(0);
  rig r;
  yk_graph *g = rig_new(&r);
  yk_value x;
  yk_step *step;
  const yk_tensor *const *out;
  (void)state;
  YK_DEVICE(g, "/cpu:0") { yk_dequeue(g, yk_tensor_queue_source(q), 4, &x); }
  yk_value sum = yk_reduce_sum(g, yk_cast(g, x, YK_F32), NULL);
  rig_open(&r, 0);
  CHECK_OK(put_many(q, 0, 10));
  CHECK_OK(yk_tensor_queue_close(q, false));
  CHECK_OK(yk_step_prepare(r.s, 0, NULL, 1, &sum, 0, NULL, &step));
  CHECK_OK(yk_step_run(step, NULL, &out));
  CHECK_NEAR(yk_tensor_at(out[0], 0), 6, 0);
  CHECK_OK(yk_step_run(step, NULL, &out));
  CHECK_NEAR(yk_tensor_at(out[0], 0), 22, 0);
  CHECK_CODE(yk_step_run(step, NULL, &out), YK_ERANGE, "FIFOQueue 'q' is closed and has insufficient elements");
  yk_step_free(step);
  CHECK_INT(yk_tensor_queue_size(q), 2);
  rig_close(&r);
  yk_tensor_queue_free(q);
}

/* ---- the coordinator ---- */

static yk_code until_stop(yk_coordinator *c, void *arg) {
  (void)arg;
  while (!yk_coordinator_wait_for_stop(c, 60000)) {}
  return YK_OK;
}

static yk_code broken(yk_coordinator *c, void *arg) {
  yk_tensor *t;
  (void)c;
  (void)arg;
  return yk_tensor_new((yk_dtype)77, YK_SCALAR, &t);
}

static yk_code out_of_data(yk_coordinator *c, void *arg) {
  yk_tensor *t;
  (void)c;
  return yk_tensor_queue_dequeue(arg, &t);
}

static void count(void *arg) { ++*(int *)arg; }

static void test_first_failure_counts(void **state) {
  yk_coordinator *c = NULL;
  int alarms = 0;
  char want[256];
  (void)state;
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_OK(yk_coordinator_on_stop(c, count, &alarms));
  for (int i = 0; i < 3; i++) CHECK_OK(yk_coordinator_start(c, "waiter", until_stop, NULL));
  CHECK_INT(yk_coordinator_should_stop(c), 0);
  CHECK_INT(yk_coordinator_wait_for_stop(c, 1), 0);
  CHECK_OK(yk_coordinator_start(c, "broken", broken, NULL));
  while (!yk_coordinator_wait_for_stop(c, 60000)) {}
  CHECK_CODE(broken(c, NULL), YK_EINVAL, "");
  yk_coordinator_request_stop(c, YK_EIO);          /* too late to matter */
  CHECK_INT(alarms, 1);
  CHECK_OK(yk_coordinator_on_stop(c, count, &alarms));
  CHECK_INT(alarms, 2);
  yk_code rc = broken(c, NULL);
  snprintf(want, sizeof want, "%s", yk_error_message());
  CHECK_INT(rc, YK_EINVAL);
  CHECK_CODE(yk_coordinator_join(c, 0), YK_EINVAL, want);
  CHECK_CODE(yk_coordinator_start(c, "late", until_stop, NULL), YK_ECANCELLED, "'late' was not started");
  yk_coordinator_free(c);
  yk_coordinator_free(NULL);
}

static void test_clean_ends(void **state) {
  yk_coordinator *c = NULL;
  yk_tensor_queue *q = open_fifo(2);
  (void)state;
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_OK(yk_coordinator_join(c, 0));             /* nobody to wait for */
  yk_coordinator_free(c);
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_OK(yk_tensor_queue_close(q, false));
  CHECK_OK(yk_coordinator_start(c, "waiter", until_stop, NULL));
  CHECK_OK(yk_coordinator_start(c, "reader", out_of_data, q));
  CHECK_OK(yk_coordinator_join(c, 0));             /* the end of the data is no failure, and stops the others */
  CHECK_INT(yk_coordinator_should_stop(c), 1);
  yk_coordinator_free(c);
  yk_tensor_queue_free(q);
}

static yk_code stubborn(yk_coordinator *c, void *arg) {
  yk_tensor *t = NULL;
  (void)c;
  yk_code rc = yk_tensor_queue_dequeue(arg, &t);   /* heeds no stop, only this */
  yk_tensor_free(t);
  return rc;
}

static void test_grace(void **state) {
  yk_coordinator *c = NULL;
  yk_tensor_queue *q = open_fifo(2);
  (void)state;
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_OK(yk_coordinator_start(c, "stubborn", stubborn, q));
  yk_coordinator_request_stop(c, YK_OK);
  CHECK_CODE(yk_coordinator_join(c, 2), YK_EBUSY, "1 thread of the coordinator still lives 2 ms after the stop: 'stubborn'");
  CHECK_OK(put(q, 1));
  CHECK_OK(yk_coordinator_join(c, 60000));
  yk_coordinator_free(c);
  yk_tensor_queue_free(q);
}

/* ---- queue runners ---- */

typedef struct feed { _Atomic int32_t next; int32_t last; yk_code then; } feed;

static yk_code give(yk_tensor_queue *q, int32_t thread, void *arg) {
  feed *f = arg;
  yk_tensor *t = NULL;
  int32_t x = atomic_fetch_add(&f->next, 1);
  (void)thread;
  if (x >= f->last) return f->then == YK_EIO ? yk_tensor_new((yk_dtype)77, YK_SCALAR, &t) : f->then;
  return put(q, x);
}

static void test_runner_ends_cleanly(void **state) {
  yk_coordinator *c = NULL;
  yk_tensor_queue *q = open_fifo(4);
  yk_tensor *t = NULL;
  feed f = { .last = 50, .then = YK_ERANGE };
  int sum = 0, n = 0;
  (void)state;
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_OK(yk_queue_runner_start(c, q, 3, give, &f));
  while (yk_tensor_queue_dequeue(q, &t) == YK_OK) {
    sum += (int)yk_tensor_at(t, 0);
    n++;
    yk_tensor_free(t);
  }
  assert_non_null(strstr(yk_error_message(), "closed"));
  yk_error_clear();
  CHECK_INT(n, 50);
  CHECK_INT(sum, 49 * 50 / 2);
  CHECK_INT(yk_coordinator_should_stop(c), 0);     /* the end of one queue stops nobody */
  CHECK_OK(yk_coordinator_join(c, 0));
  yk_coordinator_free(c);
  yk_tensor_queue_free(q);
}

static void test_runner_is_stopped(void **state) {
  yk_coordinator *c = NULL;
  yk_tensor_queue *q = open_fifo(4);
  feed f = { .last = INT32_MAX }, g = { .last = 3, .then = YK_EIO };
  (void)state;
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_OK(yk_queue_runner_start(c, q, 3, give, &f));
  until_size(q, 4);                                /* all of them wait, or will */
  yk_coordinator_request_stop(c, YK_OK);
  CHECK_OK(yk_coordinator_join(c, 0));
  CHECK_INT(yk_tensor_queue_closed(q), 1);
  yk_coordinator_free(c);
  yk_tensor_queue_free(q);
  q = open_fifo(0);
  CHECK_OK(yk_coordinator_new(&c));
  CHECK_CODE(yk_queue_runner_start(c, q, 0, give, &g), YK_EINVAL, "0 threads");
  CHECK_OK(yk_queue_runner_start(c, q, 2, give, &g));
  CHECK_CODE(yk_coordinator_join(c, 0), YK_EINVAL, "");
  CHECK_INT(yk_tensor_queue_closed(q), 1);
  yk_coordinator_free(c);
  yk_tensor_queue_free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fifo), cmocka_unit_test(test_closed), cmocka_unit_test(test_times), cmocka_unit_test(test_takers_in_line),
    cmocka_unit_test(test_givers_in_line), cmocka_unit_test(test_close_lets_pending_finish),
    cmocka_unit_test(test_close_cancels_pending), cmocka_unit_test(test_shuffle), cmocka_unit_test(test_shuffle_is_even),
    cmocka_unit_test(test_padding), cmocka_unit_test(test_any_shape), cmocka_unit_test(test_refusals), cmocka_unit_test(test_source),
    cmocka_unit_test(test_first_failure_counts), cmocka_unit_test(test_clean_ends), cmocka_unit_test(test_grace),
    cmocka_unit_test(test_runner_ends_cleanly), cmocka_unit_test(test_runner_is_stopped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
