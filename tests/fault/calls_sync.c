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

/* ---- accumulators ---- */

static yk_accumulator *accumulator;
static yk_tensor *values, *rows;

static yk_code accumulator_make(void) {
  yk_accumulator_options o = YK_ACCUMULATOR_OPTIONS_INIT;
  o.desc = (yk_desc){ .dtype = YK_F32, .rank = 2, .dim = { 4, 3 } };
  o.sparse = true;
  return yk_accumulator_open(&o, &accumulator);
}
static void accumulator_none(void) { accumulator = NULL; values = rows = NULL; }
static void accumulator_not_made(void) { assert_null(accumulator); }
static void accumulator_filled(void) {
  yk_tensor *v = NULL, *r = NULL;
  accumulator_none();
  CHECK_OK(accumulator_make());
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2, 3), &v));
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(2), &r));
  CHECK_OK(yk_accumulator_apply_rows(accumulator, v, r, 0, NULL));
  yk_tensor_free(v);
  yk_tensor_free(r);
}
static yk_code take_rows(void) { return yk_accumulator_take_rows(accumulator, 1, &values, &rows); }
static void still_there(void) {
  assert_null(values);
  CHECK_INT(yk_accumulator_count(accumulator), 1);
  CHECK_INT(yk_accumulator_global_step(accumulator), 0);
}
static void one_row(void) { CHECK_INT(yk_tensor_count(rows), 1); }
static void accumulator_close(void) {
  yk_accumulator_free(accumulator);
  yk_tensor_free(values);
  yk_tensor_free(rows);
}

/* ---- synchronous replicas ---- */

static yk_graph *g;
static yk_session *s;
static yk_sync_replicas *replicas;
static yk_sync_worker *worker;
static yk_value loss;
static const yk_tensor *const *fetched;

static void sync_none(void) {
  g = NULL;
  s = NULL;
  replicas = NULL;
  worker = NULL;
  fetched = NULL;
}
static void sync_close(void) {
  yk_sync_worker_leave(worker);
  yk_sync_replicas_free(replicas);
  yk_session_close(s);
  yk_graph_free(g);
  sync_none();
}
/* One worker, two variables, one of them with a sparse gradient. */
static yk_code sync_build(void) {
  yk_sync_options o = YK_SYNC_OPTIONS_INIT;
  sync_close();
  YK_TRY(yk_graph_new(&g));
  yk_device_push(g, "/cpu:0");
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3), YK_ONES, NULL);
  yk_variable *table = yk_get_variable(g, "table", YK_F32, YK_SHAPE(4, 3), YK_ONES, NULL);
  yk_value index = yk_constant_from(g, YK_I32, YK_SHAPE(1), (const int32_t[]){ 2 });
  loss = yk_reduce_sum(g, yk_mul(g, yk_gather(g, yk_read(table), index, 0), yk_read(w)), NULL);
  yk_device_pop(g);
  o.optimizer = YK_MOMENTUM(0.1, 0.9);
  o.replicas_to_aggregate = 1;
  o.num_tokens = 0;
  o.last_step = 2;
  return yk_sync_replicas_build(g, &o, 1, &loss, &replicas);
}
static void not_built(void) { assert_null(replicas); }
static yk_code sync_session(void) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_value init = yk_global_variables_initializer(g);
  o.cores = 1;
  YK_TRY(yk_session_open(g, &o, &s));
  return yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL);
}
static void sync_ready(void) {
  sync_none();
  CHECK_OK(sync_build());
  CHECK_OK(sync_session());
}
static yk_code sync_start(void) { return yk_sync_replicas_start(replicas, s); }
static void sync_started(void) {
  sync_ready();
  CHECK_OK(sync_start());
}
static yk_code worker_open(void) { return yk_sync_worker_open(replicas, 0, 0, NULL, 1, &loss, 0, NULL, &worker); }
static void no_worker(void) { assert_null(worker); }
static void sync_running(void) {
  sync_started();
  CHECK_OK(worker_open());
}
static yk_code worker_run(void) { return yk_sync_worker_run(worker, NULL, &fetched); }
static void nothing_fetched(void) { assert_null(fetched); }
static void loss_fetched(void) { CHECK_NEAR(yk_tensor_at(fetched[0], 0), 3, 0); }

static yk_code labour(yk_sync_replicas *sync, int32_t i, void *arg) {
  yk_sync_worker *w = NULL;
  (void)arg;
  yk_code rc = yk_sync_worker_open(sync, i, 0, NULL, 0, NULL, 0, NULL, &w);
  while (rc == YK_OK) rc = yk_sync_worker_run(w, NULL, NULL);
  yk_sync_worker_leave(w);
  return rc;
}
static yk_code train(void) {
  YK_TRY(sync_build());
  YK_TRY(sync_session());
  return yk_sync_replicas_train(replicas, s, labour, NULL);
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
  { .names = "yk_accumulator_open", .open = accumulator_none, .call = accumulator_make, .intact = accumulator_not_made,
    .close = accumulator_close, .least = 5 },
  { .names = "yk_accumulator_take_rows", .open = accumulator_filled, .call = take_rows, .intact = still_there, .good = one_row,
    .close = accumulator_close, .least = 2 },
  { .names = "yk_sync_replicas_build_at", .open = sync_none, .call = sync_build, .intact = not_built, .close = sync_close, .stride = 3,
    .least = 100 },
  { .names = "yk_sync_replicas_start", .open = sync_ready, .call = sync_start, .close = sync_close, .least = 10 },
  { .names = "yk_sync_worker_open", .open = sync_started, .call = worker_open, .intact = no_worker, .close = sync_close, .least = 3 },
  { .names = "yk_sync_worker_run", .open = sync_running, .call = worker_run, .intact = nothing_fetched, .good = loss_fetched,
    .close = sync_close, .survives = true, .stride = 5, .least = 50 },      /* idle plans give way */
  { .names = "yk_sync_replicas_train", .open = sync_none, .call = train, .close = sync_close, .survives = true, .stride = 19,
    .least = 200 },
  { 0 },
};
