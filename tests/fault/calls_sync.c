/*
 * calls_sync.c - queues of tensors, coordinators and what synchronous replicas are made of, while memory runs out.
 *
 * The call that failed must leave the queue as it was: what it had gathered is put back, what it had not is not there.
 */
#include "fault.h"

static yk_tensor_queue *queue;
static yk_coordinator *coordinator;
static yk_tensor *element, *batch, *got[1];
static int woken;

/* ---- queues ---- */

static yk_code queue_make(void) {
  yk_tensor_queue_options o = YK_TENSOR_QUEUE_OPTIONS_INIT;
  o.name = "q";
  o.ncomponents = 1;
  o.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 1, .dim = { 3 } };
  return yk_tensor_queue_open(&o, &queue);
}
static void queue_none(void) { queue = NULL; element = batch = got[0] = NULL; }
static void queue_not_made(void) { assert_null(queue); }
static void queue_open(void) {
  queue_none();
  CHECK_OK(queue_make());
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3), &element));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2, 3), &batch));
}
static void queue_filled(void) {
  queue_open();
  for (int i = 0; i < 3; i++) {
    ((float *)yk_tensor_data(element))[0] = (float)i;
    CHECK_OK(yk_tensor_queue_enqueue(queue, (const yk_tensor *const *)&element));
  }
}
static void queue_close(void) {
  yk_tensor_queue_free(queue);
  yk_tensor_free(element);
  yk_tensor_free(batch);
  yk_tensor_free(got[0]);
}

static yk_code put(void) { return yk_tensor_queue_enqueue(queue, (const yk_tensor *const *)&element); }
static void queue_empty(void) { CHECK_INT(yk_tensor_queue_size(queue), 0); }
static yk_code put_many(void) {
  for (int64_t there = yk_tensor_queue_size(queue); there > 0; there--) {       /* of a call that failed half-way */
    yk_tensor *t = NULL;
    CHECK_OK(yk_tensor_queue_dequeue(queue, &t));
    yk_tensor_free(t);
  }
  return yk_tensor_queue_enqueue_many(queue, (const yk_tensor *const *)&batch);
}
static void two_there(void) { CHECK_INT(yk_tensor_queue_size(queue), 2); }
static yk_code get(void) { return yk_tensor_queue_dequeue(queue, got); }
static yk_code get_many(void) { return yk_tensor_queue_dequeue_many(queue, 2, got); }
static yk_code get_up_to(void) { return yk_tensor_queue_dequeue_up_to(queue, 2, got); }
static void untouched(void) {
  assert_null(got[0]);
  CHECK_INT(yk_tensor_queue_size(queue), 3);
}
static void first_got(void) {
  CHECK_NEAR(yk_tensor_at(got[0], 0), 0, 0);
  if (yk_tensor_count(got[0]) == 6) CHECK_NEAR(yk_tensor_at(got[0], 3), 1, 0);
}

/* ---- coordinators ---- */

static yk_code coordinator_make(void) { return yk_coordinator_new(&coordinator); }
static void coordinator_none(void) { coordinator = NULL; }
static void coordinator_not_made(void) { assert_null(coordinator); }
static void coordinator_open(void) {
  coordinator_none();
  woken = 0;
  CHECK_OK(coordinator_make());
}
static void coordinator_close(void) { yk_coordinator_free(coordinator); }
static yk_code until_stop(yk_coordinator *c, void *arg) {
  (void)arg;
  while (!yk_coordinator_wait_for_stop(c, 60000)) {}
  return YK_OK;
}
static yk_code start(void) { return yk_coordinator_start(coordinator, "waiter", until_stop, NULL); }
static void wake(void *arg) { ++*(int *)arg; }
static yk_code on_stop(void) { return yk_coordinator_on_stop(coordinator, wake, &woken); }
static void woken_once(void) {
  yk_coordinator_request_stop(coordinator, YK_OK);
  CHECK_INT(woken, 1);
}

/* A stop that a failure asked for closes the queue: the second try has new ones. */
static yk_code no_data(yk_tensor_queue *q, int32_t thread, void *arg) {
  (void)q;
  (void)thread;
  (void)arg;
  return YK_ERANGE;
}
static void runner_open(void) { coordinator_none(); queue_none(); }
static void runner_close(void) {
  yk_coordinator_free(coordinator);
  queue_close();
}
static yk_code run(void) {
  runner_close();
  runner_open();
  YK_TRY(queue_make());
  YK_TRY(coordinator_make());
  return yk_queue_runner_start(coordinator, queue, 2, no_data, NULL);
}

const fault_case fault_sync[] = {
  { .names = "yk_tensor_queue_open", .open = queue_none, .call = queue_make, .intact = queue_not_made, .close = queue_close, .least = 2 },
  { .names = "yk_tensor_queue_enqueue", .open = queue_open, .call = put, .intact = queue_empty, .close = queue_close, .least = 4 },
  { .names = "yk_tensor_queue_enqueue_many", .open = queue_open, .call = put_many, .good = two_there, .close = queue_close, .least = 5 },
  { .names = "yk_tensor_queue_dequeue", .open = queue_filled, .call = get, .intact = untouched, .good = first_got, .close = queue_close,
    .least = 1 },
  { .names = "yk_tensor_queue_dequeue_many", .open = queue_filled, .call = get_many, .intact = untouched, .good = first_got,
    .close = queue_close, .least = 1 },
  { .names = "yk_tensor_queue_dequeue_up_to", .open = queue_filled, .call = get_up_to, .intact = untouched, .good = first_got,
    .close = queue_close, .least = 1 },
  { .names = "yk_coordinator_new", .open = coordinator_none, .call = coordinator_make, .intact = coordinator_not_made,
    .close = coordinator_close, .least = 1 },
  { .names = "yk_coordinator_start", .open = coordinator_open, .call = start, .close = coordinator_close, .least = 2 },
  { .names = "yk_coordinator_on_stop", .open = coordinator_open, .call = on_stop, .good = woken_once, .close = coordinator_close, .least = 1 },
  { .names = "yk_queue_runner_start", .open = runner_open, .call = run, .close = runner_close, .least = 9 },
  { 0 },
};
