/*
 * Synchronous replicas of real graphs: builds, sessions, threads. What is computed is compared with the same training by hand.
 *
 * Where several threads run steps, no worker computes while the chief updates (R = T without first tokens), so that each
 * weight is known; the moves under any other timing are tested without graphs.
 */
#include "base/alloc.h"
#include "rig.h"
#include "train/sync.h"

/* ---- a variable with a given gradient per worker: loss_i = sum(w * c_i) ---- */

typedef struct lab { rig r; yk_variable *w; yk_value c[4], loss[4]; yk_sync_replicas *sync; yk_variable *step; } lab;

static void lab_new(lab *l, int workers, yk_shape shape) {
  yk_graph *g = rig_new(&l->r);
  l->sync = NULL;
  YK_DEVICE(g, "/cpu:0") {
    l->step = yk_global_step(g);
    l->w = yk_get_variable(g, "w", YK_F32, shape, YK_ZEROS, NULL);
    for (int i = 0; i < workers; i++) {
      l->c[i] = yk_placeholder(g, "c", YK_F32, shape);
      l->loss[i] = yk_reduce_sum(g, yk_mul(g, yk_read(l->w), l->c[i]), NULL);
    }
  }
}

static void lab_end(lab *l) {
  yk_sync_replicas_free(l->sync);
  rig_close(&l->r);
}

static yk_sync_options options(double lr, int r, int t, int tokens) {
  yk_sync_options o = YK_SYNC_OPTIONS_INIT;
  o.optimizer = YK_SGD(lr);
  o.replicas_to_aggregate = r;
  o.total_num_replicas = t;
  o.num_tokens = tokens;
  o.timeout_ms = 60000;
  return o;
}

/* Each worker feeds its own constant until the training has ended, or for so many steps. */
typedef struct plan { lab *l; const float (*grad)[2]; int64_t steps[4]; int64_t made[4]; } plan;

static yk_code work(yk_sync_replicas *sync, int32_t i, void *arg) {
  plan *p = arg;
  yk_sync_worker *w = NULL;
  yk_tensor *t = NULL;
  const yk_tensor *const *out;
  yk_shape shape = yk_variable_desc(p->l->w)->rank == 0 ? YK_SCALAR : YK_SHAPE(2);
  YK_TRY(yk_tensor_from(YK_F32, shape, p->grad[i], &t));
  yk_code rc = yk_sync_worker_open(sync, i, 1, &p->l->c[i], 1, &p->l->loss[i], 0, NULL, &w);
  while (rc == YK_OK && p->made[i] < p->steps[i]) {
    rc = yk_sync_worker_run(w, (const yk_tensor *const[]){ t }, &out);
    p->made[i] += rc == YK_OK;
    if (rc == YK_OK && yk_tensor_count(out[0]) != 1) rc = YK_EINTERNAL;
  }
  yk_sync_worker_leave(w);
  yk_tensor_free(t);
  return rc;
}

static const int64_t endless = INT64_MAX;

/* Gradients 0.1 and 0.3, rate 2: w falls by 0.4 an update. */
static void test_two_of_two(void **state) {
  static const float grad[2][2] = { { 0.1f }, { 0.3f } };
  lab l;
  yk_sync_options o = options(2, 2, 2, 0);
  yk_sync_report r = YK_SYNC_REPORT_INIT;
  (void)state;
  lab_new(&l, 2, YK_SCALAR);
  o.last_step = 7;
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  rig_open(&l.r, 0);
  plan p = { .l = &l, .grad = grad, .steps = { endless, endless } };
  CHECK_OK(yk_sync_replicas_train(l.sync, l.r.s, work, &p));
  CHECK_NEAR(rig_value(&l.r, l.w, 0), -2.8, 1e-6);
  CHECK_NEAR(rig_value(&l.r, l.step, 0), 7, 0);
  CHECK_OK(yk_sync_replicas_report(l.sync, &r));
  CHECK_INT(r.updates, 7);
  CHECK_INT(r.global_step, 7);
  CHECK_INT(r.steps, 14);
  CHECK_INT(p.made[0], 7);                         /* the last one was a step like the others */
  CHECK_INT(r.dropped, 0);
  CHECK_INT(r.left, 2);
  CHECK_INT(r.failed, 0);
  CHECK_INT(r.tokens_entered - r.tokens_taken, r.tokens_there);
  lab_end(&l);
}

/* A worker whose gradient is not finite fails with what made it, and gives nothing; what is applied is looked at too. */
static void to_infinity(yk_graph *g, size_t n, yk_gradient *mean, void *arg) {
  (void)arg;
  for (size_t i = 0; i < n; i++) mean[i].grad = yk_div(g, mean[i].grad, yk_scalar_f32(g, 0));
}

static void test_guard(void **state) {
  static const float grads[3][2] = { { 0.25f }, { INFINITY }, { NAN } };
  static const struct { int grad; bool nan_only, edit; const char *says; } cases[] = {
    { 1, false, false, "worker 0: the gradients of 'w' hold a NaN or an infinity: " },
    { 2, true, false, "worker 0: the gradients of 'w' hold a NaN: NaN, in what was fed to 'c'" },
    { 0, false, true, "the chief's update after global step 0: the learning rate, or what was built on the gradients, holds a NaN or an infinity" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lab l;
    yk_sync_options o = options(1, 1, 1, 0);
    yk_sync_report r = YK_SYNC_REPORT_INIT;
    lab_new(&l, 1, YK_SCALAR);
    o.last_step = 3;
    o.guard = true;
    o.nan_only = cases[i].nan_only;
    if (cases[i].edit) o.edit = to_infinity;
    CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 1, l.loss, &l.sync));
    rig_open(&l.r, 0);
    plan p = { .l = &l, .grad = &grads[cases[i].grad], .steps = { endless } };
    CHECK_CODE(yk_sync_replicas_train(l.sync, l.r.s, work, &p), YK_EINVAL, cases[i].says);
    CHECK_NEAR(rig_value(&l.r, l.w, 0), 0, 0);
    CHECK_NEAR(rig_value(&l.r, l.step, 0), 0, 0);
    CHECK_OK(yk_sync_replicas_report(l.sync, &r));
    CHECK_INT(r.updates, 0);
    lab_end(&l);
  }
  lab l;                                             /* and what is fine is not in its way */
  yk_sync_options o = options(1, 1, 1, 0);
  lab_new(&l, 1, YK_SCALAR);
  o.last_step = 3;
  o.guard = true;
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 1, l.loss, &l.sync));
  rig_open(&l.r, 0);
  plan p = { .l = &l, .grad = grads, .steps = { endless } };
  CHECK_OK(yk_sync_replicas_train(l.sync, l.r.s, work, &p));
  CHECK_NEAR(rig_value(&l.r, l.w, 0), -0.75, 0);
  lab_end(&l);
}

/* The same by Adam and a schedule, and by hand: one loss that is the mean of both. */
static void train_alone(double w[2], int steps, double *shadow) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *v = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL), *step = yk_global_step(g);
  yk_optimizer adam = YK_ADAM(0.1);
  yk_value loss = yk_reduce_sum(g, yk_mul(g, yk_read(v), yk_constant_f32(g, YK_SHAPE(2), (const float[]){ 0.2f, -0.5f })), NULL);
  adam.learning_rate = yk_scheduled_rate(g, &YK_EXPONENTIAL(0.1, 2, 0.5), step);
  yk_value train = yk_minimize(g, &adam, loss, step), average = yk_moving_average(g, 0.9, step, 0, NULL);
  rig_open(&r, 0);
  for (int i = 0; i < steps; i++) {
    rig_run(&r, train);
    rig_run(&r, average);
  }
  for (int i = 0; i < 2; i++) w[i] = rig_value(&r, v, i);
  *shadow = rig_value(&r, yk_moving_average_of(g, v), 0);
  rig_close(&r);
}

static void test_adam_and_schedule(void **state) {
  static const float grad[2][2] = { { 0.1f, -1 }, { 0.3f, 0 } };
  double want[2], shadow;
  lab l;
  yk_sync_options o = options(0, 2, 2, 0);
  (void)state;
  train_alone(want, 6, &shadow);
  lab_new(&l, 2, YK_SHAPE(2));
  o.optimizer = YK_ADAM(0.1);
  o.optimizer.learning_rate = yk_scheduled_rate(l.r.g, &YK_EXPONENTIAL(0.1, 2, 0.5), l.step);
  o.last_step = 6;
  o.average_decay = 0.9;
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  rig_open(&l.r, 0);
  plan p = { .l = &l, .grad = grad, .steps = { endless, endless } };
  CHECK_OK(yk_sync_replicas_train(l.sync, l.r.s, work, &p));
  for (int i = 0; i < 2; i++) CHECK_NEAR(rig_value(&l.r, l.w, i), want[i], 1e-6);
  CHECK_NEAR(rig_value(&l.r, yk_moving_average_of(l.r.g, l.w), 0), shadow, 1e-6);
  lab_end(&l);
}

/* (3,0) and (0,4): the sum (3,4) and the mean (1.5,2) both clip to (0.6,0.8). */
static void clip(yk_graph *g, size_t n, yk_gradient *mean, void *arg) { yk_clip_by_global_norm(g, *(double *)arg, n, mean); }

static void test_clipped(void **state) {
  static const float grad[2][2] = { { 3, 0 }, { 0, 4 } };
  double norm = 1;
  (void)state;
  for (int sum = 0; sum < 4; sum++) {              /* the last two without clipping */
    lab l;
    yk_sync_options o = options(1, 2, 2, 0);
    double scale = sum < 2 ? 0.2 : sum == 2 ? 0.5 : 1;
    lab_new(&l, 2, YK_SHAPE(2));
    o.reduction = sum % 2 == 1 ? YK_REDUCE_SUM : YK_REDUCE_MEAN;
    o.last_step = 1;
    if (sum < 2) { o.edit = clip; o.arg = &norm; }
    CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
    rig_open(&l.r, 0);
    plan p = { .l = &l, .grad = grad, .steps = { endless, endless } };
    CHECK_OK(yk_sync_replicas_train(l.sync, l.r.s, work, &p));
    CHECK_NEAR(rig_value(&l.r, l.w, 0), -3 * scale, 1e-6);
    CHECK_NEAR(rig_value(&l.r, l.w, 1), -4 * scale, 1e-6);
    lab_end(&l);
  }
}

/* One worker stops after three steps: the other goes on alone, at 0.2 an update. */
static void test_one_finishes(void **state) {
  static const float grad[2][2] = { { 0.1f }, { 0.3f } };
  lab l;
  yk_sync_options o = options(2, 2, 2, 0);
  yk_sync_worker_report r = YK_SYNC_WORKER_REPORT_INIT;
  (void)state;
  lab_new(&l, 2, YK_SCALAR);
  o.last_step = 8;
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  rig_open(&l.r, 0);
  plan p = { .l = &l, .grad = grad, .steps = { endless, 3 } };
  CHECK_OK(yk_sync_replicas_train(l.sync, l.r.s, work, &p));
  CHECK_NEAR(rig_value(&l.r, l.w, 0), -3 * 0.4 - 5 * 0.2, 1e-6);
  CHECK_NEAR(rig_value(&l.r, l.step, 0), 8, 0);
  CHECK_OK(yk_sync_replicas_worker(l.sync, 1, &r));
  CHECK_INT(r.steps, 3);
  CHECK_INT(r.left, 1);
  CHECK_INT(r.failed, 0);
  CHECK_CODE(yk_sync_replicas_worker(l.sync, 2, &r), YK_EINVAL, "no worker 2 of 2");
  lab_end(&l);
}

/* ---- one worker, by hand ---- */

static void test_life_of_a_worker(void **state) {
  lab l;
  yk_sync_options o = options(1, 1, 1, 0);
  yk_sync_worker *w = NULL, *other = NULL;
  const yk_tensor *const *out = NULL;
  yk_tensor *t = NULL, *wrong = NULL;
  yk_value extra;
  (void)state;
  lab_new(&l, 1, YK_SHAPE(2));
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2), (const float[]){ 1, 2 }, &t));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3), &wrong));
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 1, l.loss, &l.sync));
  extra = yk_identity(l.r.g, l.c[0]);
  rig_open(&l.r, 0);
  CHECK_CODE(yk_sync_worker_open(l.sync, 0, 1, l.c, 0, NULL, 0, NULL, &w), YK_EINVAL, "before yk_sync_replicas_start()");
  CHECK_OK(yk_sync_replicas_start(l.sync, l.r.s));
  CHECK_CODE(yk_sync_replicas_start(l.sync, l.r.s), YK_EINVAL, "started before");
  CHECK_CODE(yk_sync_worker_open(l.sync, 1, 1, l.c, 0, NULL, 0, NULL, &w), YK_EINVAL, "no worker 1 of 1");
  CHECK_OK(yk_sync_worker_open(l.sync, 0, 1, l.c, 1, &extra, 0, NULL, &w));
  CHECK_CODE(yk_sync_worker_open(l.sync, 0, 1, l.c, 0, NULL, 0, NULL, &other), YK_EINVAL, "opened before");
  for (int i = 0; i < 3; i++) {
    CHECK_OK(yk_sync_worker_run(w, (const yk_tensor *const[]){ t }, &out));
    CHECK_NEAR(yk_tensor_at(out[0], 1), 2, 0);
  }
  out = NULL;
  CHECK_CODE(yk_sync_worker_run(w, (const yk_tensor *const[]){ wrong }, &out), YK_EINVAL, "sync_replicas: worker 0: c (made at ");
  assert_null(out);
  CHECK_OK(yk_sync_worker_run(w, (const yk_tensor *const[]){ t }, NULL));       /* it may try again */
  CHECK_NEAR(rig_value(&l.r, l.w, 1), -8, 0);
  yk_sync_replicas_stop(l.sync);
  CHECK_CODE(yk_sync_worker_run(w, (const yk_tensor *const[]){ t }, &out), YK_ERANGE, "the training has ended, at global step 4");
  yk_sync_worker_leave(w);
  yk_sync_worker_leave(NULL);
  CHECK_OK(yk_sync_replicas_end(l.sync));
  CHECK_OK(yk_sync_replicas_end(l.sync));
  yk_tensor_free(t);
  yk_tensor_free(wrong);
  lab_end(&l);
  yk_sync_replicas_free(NULL);
}

/* No token in time: the gradient was given once, and the next call first waits for what is due. */
static void test_late_tokens(void **state) {
  static const float one[2] = { 1, 1 };
  lab l;
  yk_sync_options o = options(1, 2, 2, 0);
  yk_sync_worker *w[2] = { NULL, NULL };
  yk_tensor *t = NULL;
  (void)state;
  lab_new(&l, 2, YK_SHAPE(2));
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2), one, &t));
  const yk_tensor *const feed[] = { t };
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  rig_open(&l.r, 0);
  CHECK_OK(yk_sync_replicas_start(l.sync, l.r.s));
  for (int i = 0; i < 2; i++) CHECK_OK(yk_sync_worker_open(l.sync, i, 1, &l.c[i], 0, NULL, 0, NULL, &w[i]));
  CHECK_OK(yk_tensor_queue_set_timeout(yk__sync_core_of(l.sync)->tokens, 3));
  CHECK_CODE(yk_sync_worker_run(w[0], feed, NULL), YK_EBUSY, "worker 1 computes since");
  CHECK_CODE(yk_sync_worker_run(w[0], feed, NULL), YK_EBUSY, "Missing: worker 1");
  CHECK_OK(yk_tensor_queue_set_timeout(yk__sync_core_of(l.sync)->tokens, 60000));
  CHECK_OK(yk_sync_worker_run(w[1], feed, NULL));
  yk_sync_worker_leave(w[1]);
  CHECK_OK(yk_sync_worker_run(w[0], feed, NULL));
  CHECK_NEAR(rig_value(&l.r, l.w, 0), -2, 0);      /* one update of both, one of worker 0 alone */
  yk_sync_worker_leave(w[0]);
  CHECK_OK(yk_sync_replicas_end(l.sync));
  yk_tensor_free(t);
  lab_end(&l);
}

/* A worker that never comes: everybody is told who, in time. */
static void test_absent_worker(void **state) {
  static const float one[2] = { 1, 1 };
  lab l;
  yk_sync_options o = options(1, 2, 2, 0);
  yk_sync_worker *w = NULL;
  yk_tensor *t = NULL;
  (void)state;
  lab_new(&l, 2, YK_SHAPE(2));
  o.timeout_ms = 20;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2), one, &t));
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  rig_open(&l.r, 0);
  CHECK_OK(yk_sync_replicas_start(l.sync, l.r.s));
  CHECK_OK(yk_sync_worker_open(l.sync, 0, 1, l.c, 0, NULL, 0, NULL, &w));
  CHECK_CODE(yk_sync_worker_run(w, (const yk_tensor *const[]){ t }, NULL), YK_EBUSY, "worker 1 has not started since");
  yk_sync_worker_leave(w);
  yk_tensor_free(t);
  lab_end(&l);
}

/* Steps in use allocate nothing, neither the worker's half nor the chief's. */
static void test_no_allocations(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_sync_replicas *sync = NULL;
  yk_sync_worker *w = NULL;
  yk_sync_options o = options(0, 1, 1, 0);
  (void)state;
  yk_device_push(g, "/cpu:0");
  yk_variable *table = yk_get_variable(g, "table", YK_F32, YK_SHAPE(5, 2), YK_ZEROS, NULL);
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
  yk_value index = yk_constant_from(g, YK_I32, YK_SHAPE(3), (const int32_t[]){ 1, 3, 4 });
  yk_value loss = yk_reduce_sum(g, yk_mul(g, yk_gather(g, yk_read(table), index, 0), yk_read(v)), NULL);
  yk_device_pop(g);
  o.optimizer = YK_MOMENTUM(0.1, 0.9);
  CHECK_OK(yk_sync_replicas_build(g, &o, 1, &loss, &sync));
  rig_open(&r, 0);
  CHECK_OK(yk_sync_replicas_start(sync, r.s));
  CHECK_OK(yk_sync_worker_open(sync, 0, 0, NULL, 1, &loss, 0, NULL, &w));
  for (int i = 0; i < 5; i++) CHECK_OK(yk_sync_worker_run(w, NULL, NULL));
  uint64_t before = yk__alloc_count();
  for (int i = 0; i < 20; i++) CHECK_OK(yk_sync_worker_run(w, NULL, NULL));
  CHECK_INT(yk__alloc_count() - before, 0);
  yk_sync_worker_leave(w);
  yk_sync_replicas_free(sync);
  rig_close(&r);
}

/* From where a checkpoint left: the accumulators start with the global step. */
static void test_goes_on(void **state) {
  static const float grad[1][2] = { { 1 } };
  lab l;
  yk_sync_options o = options(1, 1, 1, 0);
  yk_tensor *at = NULL;
  (void)state;
  lab_new(&l, 1, YK_SCALAR);
  o.last_step = 105;
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 1, l.loss, &l.sync));
  rig_open(&l.r, 0);
  CHECK_OK(yk_tensor_from(YK_I64, YK_SCALAR, (const int64_t[]){ 100 }, &at));
  CHECK_OK(yk_variable_set(l.r.s, l.step, at));
  plan p = { .l = &l, .grad = grad, .steps = { endless } };
  CHECK_OK(yk_sync_replicas_train(l.sync, l.r.s, work, &p));
  CHECK_NEAR(rig_value(&l.r, l.w, 0), -5, 0);
  CHECK_NEAR(rig_value(&l.r, l.step, 0), 105, 0);
  yk_tensor_free(at);
  lab_end(&l);
}

/* ---- lookups: rows ---- */

static yk_code look_up(yk_sync_replicas *sync, int32_t i, void *arg) {
  yk_sync_worker *w = NULL;
  yk_code rc = yk_sync_worker_open(sync, i, 0, NULL, 0, NULL, 0, NULL, &w);
  (void)arg;
  while (rc == YK_OK) rc = yk_sync_worker_run(w, NULL, NULL);
  yk_sync_worker_leave(w);
  return rc;
}

/* Worker 0 looks up rows 1 and 3, worker 1 rows 3 and 3 again: row 1 was had by one of them, row 3 by both. */
static void test_rows(void **state) {
  static const double want[] = { 0, -2, 0, -2 * (1 + 2) / 2.0, 0 };
  rig r;
  yk_graph *g = rig_new(&r);
  yk_sync_replicas *sync = NULL;
  yk_sync_options o = options(2, 2, 2, 0);
  yk_value loss[2];
  (void)state;
  yk_device_push(g, "/cpu:0");
  yk_variable *table = yk_get_variable(g, "table", YK_F32, YK_SHAPE(5, 2), YK_ZEROS, NULL);
  for (int i = 0; i < 2; i++) {
    yk_value index = yk_constant_from(g, YK_I32, YK_SHAPE(2), i == 0 ? (const int32_t[]){ 1, 3 } : (const int32_t[]){ 3, 3 });
    loss[i] = yk_reduce_sum(g, yk_gather(g, yk_read(table), index, 0), NULL);
  }
  yk_device_pop(g);
  o.last_step = 3;
  CHECK_OK(yk_sync_replicas_build(g, &o, 2, loss, &sync));
  rig_open(&r, 0);
  CHECK_OK(yk_sync_replicas_train(sync, r.s, look_up, NULL));
  for (int64_t i = 0; i < 10; i++) CHECK_NEAR(rig_value(&r, table, i), 3 * want[i / 2], 1e-6);
  yk_sync_replicas_free(sync);
  rig_close(&r);
}

/* ---- towers on devices, batches of a queue ---- */

static void test_on_devices(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_sync_replicas *sync = NULL;
  yk_sync_options o = options(0.5, 2, 2, 0);
  yk_value loss[2];
  (void)state;
  yk_variable *w = NULL;
  YK_DEVICE(g, "/cpu:0") { w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL); }
  for (int i = 0; i < 2; i++) {
    char device[16];
    snprintf(device, sizeof device, "/gpu:%d", i);
    YK_DEVICE(g, device) {
      yk_value c = yk_constant_f32(g, YK_SHAPE(2), i == 0 ? (const float[]){ 1, 0 } : (const float[]){ 1, 2 });
      loss[i] = yk_reduce_sum(g, yk_squared_difference(g, yk_read(w), c), NULL);
    }
  }
  o.last_step = 20;                                /* 2*(w - mean of c), rate 0.5: there at once */
  CHECK_OK(yk_sync_replicas_build(g, &o, 2, loss, &sync));
  rig_open(&r, 2);
  CHECK_OK(yk_sync_replicas_train(sync, r.s, look_up, NULL));
  CHECK_NEAR(rig_value(&r, w, 0), 1, 1e-6);
  CHECK_NEAR(rig_value(&r, w, 1), 1, 1e-6);
  yk_sync_replicas_free(sync);
  rig_close(&r);
}

/* ---- any R and T, as the threads happen to run ---- */

/* All losses are |w - 1|^2: a gradient that was computed with the weights of now is 2*(w - 1), whoever gives it, so that w halves its
 * distance in each update. One that was not, or that saw half of an update, must have been dropped. */
static void halve(int r, int t, int tokens) {
  enum { N = 3000, UPDATES = 12 };
  rig g;
  yk_sync_replicas *sync = NULL;
  yk_sync_options o = options(0.25, r, t, tokens);
  yk_sync_report report = YK_SYNC_REPORT_INIT;
  yk_value loss[4];
  yk_variable *w = NULL;
  (void)rig_new(&g);
  YK_DEVICE(g.g, "/cpu:0") { w = yk_get_variable(g.g, "w", YK_F32, YK_SHAPE(N), YK_ZEROS, NULL); }
  for (int i = 0; i < t; i++) {
    YK_DEVICE(g.g, "/cpu:0") {
      loss[i] = yk_reduce_sum(g.g, yk_squared_difference(g.g, yk_read(w), yk_fill(g.g, YK_F32, YK_SHAPE(N), 1)), NULL);
    }
  }
  o.last_step = UPDATES;
  CHECK_OK(yk_sync_replicas_build(g.g, &o, (size_t)t, loss, &sync));
  rig_open(&g, 0);
  CHECK_OK(yk_sync_replicas_train(sync, g.s, look_up, NULL));
  for (int64_t i = 0; i < N; i += 997) CHECK_NEAR(rig_value(&g, w, i), 1 - ldexp(1, -UPDATES), 0);
  CHECK_OK(yk_sync_replicas_report(sync, &report));
  CHECK_INT(report.updates, UPDATES);
  CHECK_INT(report.tokens_entered, (tokens < 0 ? r : tokens) + UPDATES * (r > t ? r : t));
  CHECK_INT(report.tokens_entered - report.tokens_taken, report.tokens_there);
  yk_sync_replicas_free(sync);
  rig_close(&g);
}

/* Stragglers read what the chief writes: that is what this is about, and what the thread sanitizer is there to report. */
#if defined(__SANITIZE_THREAD__)
enum { REPORTS_RACES = 1 };
#else
enum { REPORTS_RACES = 0 };
#endif

static void test_fresh_gradients_only(void **state) {
  (void)state;
  if (REPORTS_RACES) skip();
  halve(2, 3, -1);
  halve(1, 4, -1);
  halve(2, 4, 0);
  halve(4, 2, 2);
  halve(3, 2, -1);
  halve(3, 3, -1);
}

/* ---- failures ---- */

static yk_code fail_at_once(yk_sync_replicas *sync, int32_t i, void *arg) {
  yk_tensor *t;
  if (i == 0) return look_up(sync, i, arg);
  return yk_tensor_new((yk_dtype)77, YK_SCALAR, &t);
}

static yk_code all_fail(yk_sync_replicas *sync, int32_t i, void *arg) { return fail_at_once(sync, i + 1, arg); }

static void test_failures(void **state) {
  (void)state;
  for (int all = 0; all < 2; all++) {
    rig r;
    yk_graph *g = rig_new(&r);
    yk_sync_replicas *sync = NULL;
    yk_sync_options o = options(1, 2, 2, 0);
    yk_sync_report report = YK_SYNC_REPORT_INIT;
    yk_variable *w = NULL;
    yk_value loss = { 0 };
    YK_DEVICE(g, "/cpu:0") {
      w = yk_get_variable(g, "w", YK_F32, YK_SCALAR, YK_ZEROS, NULL);
      loss = yk_identity(g, yk_read(w));
    }
    o.last_step = 4;
    CHECK_OK(yk_sync_replicas_build(g, &o, 1, &loss, &sync));          /* one loss for both */
    rig_open(&r, 0);
    CHECK_CODE(yk_sync_replicas_train(sync, r.s, all ? all_fail : fail_at_once, NULL), YK_EINVAL,
               all ? "sync_replicas: all 2 workers failed" : "sync_replicas: worker 1 failed: ");
    CHECK_NEAR(rig_value(&r, w, 0), all ? 0 : -4, 0);                  /* the other one went on */
    CHECK_OK(yk_sync_replicas_report(sync, &report));
    CHECK_INT(report.failed, all + 1);
    yk_sync_replicas_free(sync);
    rig_close(&r);
  }
}

/* The chief's own step fails: everybody is told. */
static void divide_by_nan(yk_graph *g, size_t n, yk_gradient *mean, void *arg) {
  (void)n;
  (void)arg;
  yk_value zero = yk_sub(g, mean[0].grad, mean[0].grad);
  mean[0].grad = yk_check_numerics(g, yk_div(g, zero, zero), "the mean is broken");
}

static void test_chief_fails(void **state) {
  static const float grad[2][2] = { { 1 }, { 1 } };
  lab l;
  yk_sync_options o = options(1, 2, 2, 0);
  (void)state;
  lab_new(&l, 2, YK_SCALAR);
  o.edit = divide_by_nan;
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  rig_open(&l.r, 0);
  plan p = { .l = &l, .grad = grad, .steps = { endless, endless } };
  CHECK_CODE(yk_sync_replicas_train(l.sync, l.r.s, work, &p), YK_EINVAL, "the mean is broken");
  lab_end(&l);
}

static void test_refusals(void **state) {
  lab l;
  yk_sync_options o = options(1, 2, 2, 0);
  (void)state;
#define REFUSED(n, losses, text)                                                        \
  CHECK_CODE(yk_sync_replicas_build(l.r.g, &o, n, losses, &l.sync), YK_EINVAL, text);   \
  CHECK_CODE(yk_graph_status(l.r.g), YK_EINVAL, text);                                  \
  assert_null(l.sync);                                                                  \
  lab_end(&l);                                                                          \
  lab_new(&l, 3, YK_SCALAR)
  lab_new(&l, 3, YK_SCALAR);
  REFUSED(3, l.loss, "3 losses for 2 replicas");
  REFUSED(0, l.loss, "need a loss");
  o.size = 0;
  REFUSED(1, l.loss, "yk_sync_options are damaged or have a size of 0; start from their _INIT");
  o = options(1, 2, 2, 0);
  o.replicas_to_aggregate = -1;
  REFUSED(1, l.loss, "replicas_to_aggregate is -1");
  o = options(1, 3, 2, 0);
  REFUSED(1, l.loss, "num_tokens is 0, but at least replicas_to_aggregate - total_num_replicas = 1 are needed");
  o = options(-1, 2, 2, 0);
  REFUSED(1, l.loss, "rate is -1");
  o = options(1, 2, 2, 0);
  o.average_decay = 2;
  REFUSED(1, l.loss, "[0, 1], not 2");
  o.average_decay = 0;
  yk_variable *v = yk_get_variable(l.r.g, "v", YK_F32, YK_SCALAR, YK_ZEROS, NULL);
  yk_value two[2] = { l.loss[0], yk_add(l.r.g, l.loss[1], yk_read(v)) };
  REFUSED(2, two, "loss 1 depends on variable 'v', but loss 0 does not");
  CHECK_OK(yk_sync_replicas_build(l.r.g, &o, 2, l.loss, &l.sync));
  CHECK_OK(yk_session_open(l.r.g, NULL, &l.r.s));                      /* nothing was initialized */
  CHECK_CODE(yk_sync_replicas_start(l.sync, l.r.s), YK_EINVAL, "sync_replicas is not ready to start: ");
  CHECK_OK(yk_sync_replicas_end(l.sync));
  lab_end(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_two_of_two), cmocka_unit_test(test_guard), cmocka_unit_test(test_adam_and_schedule), cmocka_unit_test(test_clipped),
    cmocka_unit_test(test_one_finishes), cmocka_unit_test(test_life_of_a_worker), cmocka_unit_test(test_late_tokens),
    cmocka_unit_test(test_absent_worker), cmocka_unit_test(test_no_allocations), cmocka_unit_test(test_goes_on),
    cmocka_unit_test(test_rows), cmocka_unit_test(test_on_devices), cmocka_unit_test(test_fresh_gradients_only), cmocka_unit_test(test_failures),
    cmocka_unit_test(test_chief_fails), cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
