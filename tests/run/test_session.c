/*
 * test_session.c - feeds, fetches, targets, prepared steps, the plan cache, and what goes wrong.
 *
 * Every message a user may meet is asserted by its telling part: the node's name,
 * both shapes, the line. Runs on the reference driver and on the CPU's.
 */
#include <stdlib.h>
#include <stdatomic.h>
#include <time.h>
#include "base/alloc.h"
#include "base/thread.h"
#include <yoke/nn.h>
#include "run/support.h"

/* y = 2x + 1 over a fed x. */
typedef struct line { yk_graph *g; yk_value x, y; } line;
static line make_line(yk_shape shape) {
  line l = { .g = new_graph() };
  l.x = yk_placeholder(l.g, "x", YK_F32, shape);
  l.y = yk_add(yk_named(l.g, "y"), yk_mul(l.g, l.x, yk_scalar_f32(l.g, 2)), yk_scalar_f32(l.g, 1));
  OK(yk_graph_status(l.g));
  return l;
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

static void test_feed_and_fetch(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(-1, 3));
  yk_session *s = open_session(l.g, 0);
  yk_tensor *x = ramp(YK_SHAPE(2, 3)), *out[3];
  /* a repeated fetch, and a fetch of what is fed */
  OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 3, (yk_value[]){ l.y, l.x, l.y }, 0, NULL, out));
  expect_line(out[0], 6, 2, 1);
  expect_line(out[1], 6, 1, 0);
  expect_line(out[2], 6, 2, 1);
  for (int i = 0; i < 3; i++) yk_tensor_free(out[i]);
  yk_tensor_free(x);
  x = ramp(YK_SHAPE(5, 3));                    /* another shape, another plan */
  OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 0, NULL, out));
  expect_line(out[0], 15, 2, 1);
  yk_tensor_free(out[0]);
  yk_tensor_free(x);
  end(s, l.g);
}

static void test_feed_anything(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4));
  yk_value a = yk_add(g, x, yk_scalar_f32(g, 1)), b = yk_mul(g, a, yk_scalar_f32(g, 3));
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(4), YK_ZEROS, NULL);
  yk_value c = yk_add(g, yk_read(v), b);
  yk_session *s = open_session(g, 0);
  yk_tensor *t = ramp(YK_SHAPE(4)), *out;
  OK(yk_session_run(s, 1, &(yk_feed){ a, t }, 1, &b, 0, NULL, &out));       /* x is not needed then */
  expect_line(out, 4, 3, 0);
  yk_tensor_free(out);
  OK(yk_session_run(s, 2, (yk_feed[]){ { b, t }, { yk_read(v), t } }, 1, &c, 0, NULL, &out));   /* nor is v's value */
  expect_line(out, 4, 2, 0);
  yk_tensor_free(out);
  OK(yk_session_run(s, 1, (yk_feed[]){ { c, t } }, 1, &c, 0, NULL, &out));  /* nothing to compute at all */
  expect_line(out, 4, 1, 0);
  yk_tensor_free(out);
  OK(yk_session_run(s, 2, (yk_feed[]){ { x, t }, { a, t } }, 1, &b, 0, NULL, &out));       /* fed, but not needed */
  expect_line(out, 4, 3, 0);
  yk_tensor_free(out);
  OK(yk_session_run(s, 0, NULL, 0, NULL, 0, NULL, NULL));
  yk_tensor_free(t);
  end(s, g);
}

static void test_order_is_irrelevant(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value a = yk_placeholder(g, "a", YK_F32, YK_SHAPE(3)), b = yk_placeholder(g, "b", YK_F32, YK_SHAPE(3));
  yk_value sum = yk_add(g, a, b), diff = yk_sub(g, a, b);
  yk_session *s = open_session(g, 0);
  yk_tensor *one = ramp(YK_SHAPE(3)), *ten = ramp(YK_SHAPE(3)), *out[2];
  for (int i = 0; i < 3; i++) ((float *)yk_tensor_data(ten))[i] *= 10;
  OK(yk_session_run(s, 2, (yk_feed[]){ { a, one }, { b, ten } }, 2, (yk_value[]){ sum, diff }, 0, NULL, out));
  expect_line(out[0], 3, 11, 0);
  expect_line(out[1], 3, -9, 0);
  yk_tensor_free(out[0]);
  yk_tensor_free(out[1]);
  OK(yk_session_run(s, 2, (yk_feed[]){ { b, ten }, { a, one } }, 2, (yk_value[]){ diff, sum }, 0, NULL, out));
  expect_line(out[0], 3, -9, 0);
  expect_line(out[1], 3, 11, 0);
  yk_tensor_free(out[0]);
  yk_tensor_free(out[1]);
  yk_tensor_free(one);
  yk_tensor_free(ten);
  end(s, g);
}

static void test_control_dependencies(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL);
  yk_value init = yk_global_variables_initializer(g), up = yk_assign_add(g, v, yk_fill(g, YK_F32, YK_SHAPE(2), 1)), after = { 0 };
  YK_CONTROL(g, 1, &up) { after = yk_identity(g, yk_fill(g, YK_F32, YK_SHAPE(2), 5)); }
  yk_session *s = open_session(g, 0);
  run_target(s, init);
  yk_tensor *t = run_fetch(s, after);
  expect_line(t, 2, 0, 5);
  yk_tensor_free(t);
  OK(yk_variable_fetch(s, v, &t));
  expect_line(t, 2, 0, 1);
  yk_tensor_free(t);
  end(s, g);
}

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

static void test_mistakes(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(-1, 3));
  yk_value op = yk_no_op(yk_named(l.g, "nothing"));
  yk_session *s = open_session(l.g, 0);
  yk_tensor *x = ramp(YK_SHAPE(2, 3)), *flat = ramp(YK_SHAPE(6)), *ints, *out = NULL;
  OK(yk_tensor_new(YK_I32, YK_SHAPE(2, 3), &ints));
  FAILS(yk_session_run(s, 0, NULL, 1, &l.y, 0, NULL, &out), YK_EINVAL, "placeholder x f32[?,3] (made at ");
  FAILS(yk_session_run(s, 1, &(yk_feed){ l.x, flat }, 1, &l.y, 0, NULL, &out), YK_EINVAL, "is fed f32[6]; expected f32[?,3]");
  FAILS(yk_session_run(s, 1, &(yk_feed){ l.x, ints }, 1, &l.y, 0, NULL, &out), YK_EINVAL, "is fed i32[2,3]; expected f32[?,3]");
  FAILS(yk_session_run(s, 1, &(yk_feed){ l.x, NULL }, 1, &l.y, 0, NULL, &out), YK_EINVAL, "x (made at ");
  FAILS(yk_session_run(s, 2, (yk_feed[]){ { l.x, x }, { l.x, x } }, 1, &l.y, 0, NULL, &out), YK_EINVAL,
        "is fed twice: feeds 0 and 1");
  FAILS(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &op, 0, NULL, &out), YK_EINVAL, "pass it as a target");
  FAILS(yk_session_run(s, 1, &(yk_feed){ op, x }, 1, &l.y, 0, NULL, &out), YK_EINVAL, "cannot be fed");
  FAILS(yk_session_run(s, 0, NULL, 1, &(yk_value){ 12345 }, 0, NULL, &out), YK_ENOTFOUND, "fetch 0: value 12345");
  FAILS(yk_session_run(s, 0, NULL, 0, NULL, 1, &(yk_value){ 0 }, NULL), YK_ENOTFOUND, "target 0");
  assert_null(out);
  OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 1, &op, &out));     /* usable after all that */
  expect_line(out, 6, 2, 1);
  yk_tensor_free(out);
  yk_tensor_free(x);
  yk_tensor_free(flat);
  yk_tensor_free(ints);
  end(s, l.g);
}

static void test_sticky_error(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = NULL;
  yk_add(g, yk_fill(g, YK_F32, YK_SHAPE(2), 1), yk_fill(g, YK_F32, YK_SHAPE(3), 1));
  FAILS(yk_session_open(g, NULL, &s), YK_EINVAL, "test_session.c:");
  assert_null(s);
  yk_graph_free(g);
}

static void test_bad_options(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = NULL;
  yk_session_options o = options(0);
  o.drivers = "warp";
  FAILS(yk_session_open(g, &o, &s), YK_ENOTFOUND, "warp");
  o = options(-1);
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "virtual_gpus is -1");
  o = options(0);
  o.timeout_ms = -5;
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "timeout_ms is -5");
  o = options(0);
  o.size = 0;
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "YK_SESSION_OPTIONS_INIT");
  assert_null(s);
  s = open_with(g, options(0));
  const yk_session_options *in_force = yk_session_options_of(s);
  assert_int_equal(in_force->cpu_devices, 1);
  assert_int_equal(in_force->max_plans, 64);
  assert_int_equal(in_force->timeout_ms, 600000);
  end(s, g);
}

static void test_failing_kernel(void **state) {
  (void)state;
  for (int gpus = 0; gpus < 2; gpus++) {
    yk_graph *g = new_graph();
    yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(3)), y = { 0 };
    YK_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0") { y = yk_check_numerics(yk_named(g, "watch"), yk_log(g, x), "log of the data"); }
    yk_value z = { 0 };
    YK_DEVICE(g, "/cpu:0") { z = yk_mul(g, y, yk_scalar_f32(g, 0)); }
    yk_session *s = open_session(g, gpus);
    const float bad[3] = { 1, -1, 1 }, good[3] = { 1, 1, 1 };
    yk_tensor *b, *t, *out = NULL;
    OK(yk_tensor_from(YK_F32, YK_SHAPE(3), bad, &b));
    OK(yk_tensor_from(YK_F32, YK_SHAPE(3), good, &t));
    for (int turn = 0; turn < 3; turn++) {
      FAILS(yk_session_run(s, 1, &(yk_feed){ x, b }, 1, &z, 0, NULL, &out), YK_EINVAL, "log of the data");
      if (strncmp(yk_error_message(), "watch (CheckNumerics) at ", 25) != 0) fail_msg("message \"%s\"", yk_error_message());
      assert_null(out);
      OK(yk_session_run(s, 1, &(yk_feed){ x, t }, 1, &z, 0, NULL, &out));
      expect_line(out, 3, 0, 0);
      yk_tensor_free(out);
      out = NULL;
    }
    yk_tensor_free(b);
    yk_tensor_free(t);
    end(s, g);
  }
}

static void test_bad_label(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value labels = yk_placeholder(g, "labels", YK_I32, YK_SHAPE(2)), loss = { 0 };
  yk_value logits = yk_fill(g, YK_F32, YK_SHAPE(2, 10), 0);
  YK_NAME_SCOPE(g, "xent") { loss = yk_sparse_softmax_cross_entropy(g, logits, labels); }
  yk_session *s = open_session(g, 0);
  yk_tensor *bad, *good, *out = NULL;
  OK(yk_tensor_from(YK_I32, YK_SHAPE(2), (int32_t[]){ 3, 10 }, &bad));
  OK(yk_tensor_from(YK_I32, YK_SHAPE(2), (int32_t[]){ 3, 9 }, &good));
  FAILS(yk_session_run(s, 1, &(yk_feed){ labels, bad }, 1, &loss, 0, NULL, &out), YK_EINVAL, "10");
  if (strncmp(yk_error_message(), "xent/", 5) != 0 || !strstr(yk_error_message(), "test_session.c:"))
    fail_msg("%s", yk_error_message());
  assert_null(out);
  OK(yk_session_run(s, 1, &(yk_feed){ labels, good }, 1, &loss, 0, NULL, &out));
  assert_true(yk_tensor_at(out, 0) > 2.30 && yk_tensor_at(out, 0) < 2.31);
  yk_tensor_free(out);
  yk_tensor_free(bad);
  yk_tensor_free(good);
  end(s, g);
}

/* A source that gives nothing until the gate opens: the step runs out of time, and the session recovers afterwards. */
static _Atomic int gate;
static yk_code next_when_open(void *self, int64_t rows, void *const *out) {
  (void)self;
  while (!atomic_load(&gate)) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  for (int64_t i = 0; i < rows; i++) ((float *)out[0])[i] = (float)i;
  return YK_OK;
}

static void test_time_out(void **state) {
  (void)state;
  if (driver) skip();                          /* the reference driver works on the calling thread: it cannot be left waiting */
  const yk_source source = { .next = next_when_open, .ncomponents = 1, .component = { { .dtype = YK_F32 } } };
  yk_graph *g = new_graph();
  yk_value batch = { 0 }, y = { 0 };
  YK_DEVICE(g, "/cpu:0") { yk_dequeue(yk_named(g, "input"), &source, 4, &batch); }
  YK_DEVICE(g, "/gpu:0") { y = yk_add(g, batch, batch); }
  yk_session_options o = options(1);
  o.timeout_ms = 50;
  yk_session *s = open_with(g, o);
  yk_step *step;
  const yk_tensor *const *fetched;
  OK(yk_step_prepare(s, 0, NULL, 1, &y, 0, NULL, &step));
  atomic_store(&gate, 0);
  FAILS(yk_step_run(step, NULL, NULL), YK_ECANCELLED, "input (");
  if (!strstr(yk_error_message(), "50 ms")) fail_msg("%s", yk_error_message());
  FAILS(yk_step_run(step, NULL, NULL), YK_ECANCELLED, "an earlier step");
  yk_step_free(step);                          /* its tensors are still to be written: the session holds them */
  atomic_store(&gate, 1);
  OK(yk_step_prepare(s, 0, NULL, 1, &y, 0, NULL, &step));
  yk_code rc = YK_ECANCELLED;
  for (int i = 0; i < 100 && rc == YK_ECANCELLED; i++) rc = yk_step_run(step, NULL, &fetched);
  OK(rc);
  expect_line(fetched[0], 4, 2, 0);
  yk_step_free(step);
  end(s, g);
}

static void test_frozen(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(2));
  yk_session *s = open_session(l.g, 0);
  yk_tensor *x = ramp(YK_SHAPE(2)), *out;
  assert_false(yk_graph_frozen(l.g));
  OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 0, NULL, &out));
  yk_tensor_free(out);
  assert_true(yk_graph_frozen(l.g));
  yk_graph_unfreeze(l.g);
  yk_value z = yk_add(l.g, l.y, l.y);
  yk_variable *v = yk_get_variable(l.g, "late", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
  yk_value w = yk_add(l.g, z, yk_read(v));
  run_target(s, yk_initializer_op(v));
  OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &w, 0, NULL, &out));
  expect_line(out, 2, 4, 3);
  yk_tensor_free(out);
  yk_tensor_free(x);
  end(s, l.g);
}

/* ---- prepared steps --------------------------------------------------------------------------------------------- */

static void test_step(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(-1, 3, 4));
  yk_session *s = open_session(l.g, 0);
  yk_step *step;
  OK(yk_step_prepare(s, 1, &l.x, 3, (yk_value[]){ l.y, l.x, l.y }, 0, NULL, &step));
  yk_tensor *x = ramp(YK_SHAPE(2, 3, 4)), *longer = ramp(YK_SHAPE(3, 3, 4));
  const yk_tensor *const *out;
  FAILS(yk_step_run(step, NULL, &out), YK_EINVAL, "1 feeds");
  for (int i = 0; i < 2; i++) OK(yk_step_run(step, (const yk_tensor *[]){ x }, &out));
  uint64_t before = yk__alloc_count();
  for (int i = 0; i < 100; i++) OK(yk_step_run(step, (const yk_tensor *[]){ x }, &out));
  if (yk__alloc_count() != before) fail_msg("%llu allocations in 100 runs", (unsigned long long)(yk__alloc_count() - before));
  expect_line(out[0], 24, 2, 1);
  assert_ptr_equal(out[1], x);
  assert_ptr_equal(out[0], out[2]);
  OK(yk_step_run(step, (const yk_tensor *[]){ longer }, &out));
  expect_line(out[0], 36, 2, 1);
  OK(yk_step_run(step, (const yk_tensor *[]){ x }, &out));
  expect_line(out[0], 24, 2, 1);
  yk_session_close(s);                         /* before the step: it is told, and then freed in peace */
  FAILS(yk_step_run(step, (const yk_tensor *[]){ x }, &out), YK_EINVAL, "closed");
  yk_step_free(step);
  yk_tensor_free(x);
  yk_tensor_free(longer);
  yk_graph_free(l.g);
}

static void test_memory_stays_flat(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(2, 3, 4));
  yk_session *s = open_session(l.g, 0);
  yk_step *step;
  yk_tensor *x = ramp(YK_SHAPE(2, 3, 4)), *out;
  OK(yk_step_prepare(s, 1, &l.x, 1, &l.y, 0, NULL, &step));
  for (int i = 0; i < 3; i++) OK(yk_step_run(step, (const yk_tensor *[]){ x }, NULL));
  uint64_t live = yk__alloc_live(), count = yk__alloc_count();
  for (int i = 0; i < 100000; i++) OK(yk_step_run(step, (const yk_tensor *[]){ x }, NULL));
  assert_int_equal(yk__alloc_count(), count);
  for (int i = 0; i < 1000; i++) {
    OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 0, NULL, &out));
    yk_tensor_free(out);
  }
  if (yk__alloc_live() != live)
    fail_msg("%llu live allocations, %llu before", (unsigned long long)yk__alloc_live(), (unsigned long long)live);
  yk_step_free(step);
  yk_tensor_free(x);
  end(s, l.g);
}

static void test_cache_is_bounded(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(-1));
  yk_session_options o = options(0);
  o.max_plans = 4;
  yk_session *s = open_with(l.g, o);
  yk_device_info info;
  uint64_t peak = 0;
  for (int round = 0; round < 3; round++) {
    for (int64_t n = 1; n <= 20; n++) {
      yk_tensor *x = ramp(YK_SHAPE(n)), *out;
      OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 0, NULL, &out));
      expect_line(out, n, 2, 1);
      yk_tensor_free(out);
      yk_tensor_free(x);
      OK(yk_session_device(s, 0, &info));
      if (round == 0 && n <= 5) peak = info.bytes_in_use;
      else if (info.bytes_in_use > 4 * peak) fail_msg("%llu bytes in use", (unsigned long long)info.bytes_in_use);
    }
  }
  end(s, l.g);
}

/* The n-th allocation fails, for every n: a clean ENOMEM, nothing leaks, and the same session then succeeds. */
static void test_out_of_memory(void **state) {
  (void)state;
  line l = make_line(YK_SHAPE(-1));
  yk_tensor *x = ramp(YK_SHAPE(4));
  uint64_t live = yk__alloc_live();
  uint64_t n = 1;
  for (int done = 0; !done; n++) {
    yk_tensor *out = NULL;
    yk_session *s = NULL;
    yk_session_options o = options(1);
    yk__alloc_fail_at(n);
    yk_code rc = yk_session_open(l.g, &o, &s);
    if (rc == YK_OK) rc = yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 0, NULL, &out);
    yk__alloc_fail_at(0);
    done = rc == YK_OK;
    if (!done && rc != YK_ENOMEM)
      fail_msg("allocation %llu: %s: %s", (unsigned long long)n, yk_code_name(rc), yk_error_message());
    if (s && !out) OK(yk_session_run(s, 1, &(yk_feed){ l.x, x }, 1, &l.y, 0, NULL, &out));
    if (out) expect_line(out, 4, 2, 1);
    yk_tensor_free(out);
    yk_session_close(s);
    if (yk__alloc_live() != live)
      fail_msg("allocation %llu: %lld leaked", (unsigned long long)n, (long long)(yk__alloc_live() - live));
  }
  assert_true(n > 20);
  yk_tensor_free(x);
  yk_graph_free(l.g);
}

/* ---- random numbers --------------------------------------------------------------------------------------------- */

static void test_random(void **state) {
  (void)state;
  double first[2][3];
  for (int turn = 0; turn < 2; turn++) {
    yk_graph *g = new_graph();
    yk_graph_set_seed(g, 7);
    yk_value r = yk_random_uniform(g, &(yk_random_attrs){ .rank = 1, .dim = { 8 } });
    yk_session *s = open_session(g, 0);
    for (int run = 0; run < 3; run++) {
      yk_tensor *t = run_fetch(s, r);
      first[turn][run] = yk_tensor_at(t, 0);
      yk_tensor_free(t);
    }
    end(s, g);
  }
  for (int run = 0; run < 3; run++) {
    if (first[0][run] != first[1][run]) fail_msg("run %d: %g and %g with one seed", run, first[0][run], first[1][run]);
    if (run > 0 && first[0][run] == first[0][run - 1]) fail_msg("runs %d and %d both give %g", run - 1, run, first[0][run]);
  }
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

typedef struct worker { yk_session *s; line l; yk_value more; yk_thread thread; int failed; } worker;
static void *work(void *arg) {
  worker *w = arg;
  yk_tensor *x = ramp(YK_SHAPE(6)), *out;
  for (int i = 0; i < 200; i++) {
    yk_feed feed = { w->l.x, x };
    if (yk_session_run(w->s, 1, &feed, 1, &w->l.y, i % 4 == 0, &w->more, &out) != YK_OK) { w->failed = 1; break; }
    for (int64_t k = 0; k < 6; k++) w->failed |= yk_tensor_at(out, k) != 2.0 * (double)k + 1;
    yk_tensor_free(out);
  }
  yk_tensor_free(x);
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  enum { THREADS = 4 };
  line l = make_line(YK_SHAPE(-1));
  yk_variable *v = yk_get_variable(l.g, "v", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL);
  yk_value init = yk_initializer_op(v), more = yk_assign_add(l.g, v, yk_fill(l.g, YK_F32, YK_SHAPE(3), 1));
  yk_session *s = open_session(l.g, 0);
  run_target(s, init);
  worker w[THREADS];
  for (int i = 0; i < THREADS; i++) {
    w[i] = (worker){ .s = s, .l = l, .more = more };
    OK(yk__thread_start(&w[i].thread, "worker", work, &w[i]));
  }
  for (int i = 0; i < THREADS; i++) {
    yk__thread_join(&w[i].thread);
    assert_int_equal(w[i].failed, 0);
  }
  yk_tensor *t;
  OK(yk_variable_fetch(s, v, &t));
  expect_line(t, 3, 0, THREADS * 50);
  yk_tensor_free(t);
  end(s, l.g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_feed_and_fetch), cmocka_unit_test(test_feed_anything), cmocka_unit_test(test_order_is_irrelevant),
    cmocka_unit_test(test_control_dependencies), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_sticky_error),
    cmocka_unit_test(test_bad_options), cmocka_unit_test(test_failing_kernel), cmocka_unit_test(test_frozen),
    cmocka_unit_test(test_bad_label), cmocka_unit_test(test_time_out),
    cmocka_unit_test(test_step), cmocka_unit_test(test_memory_stays_flat), cmocka_unit_test(test_cache_is_bounded),
    cmocka_unit_test(test_out_of_memory),
    cmocka_unit_test(test_random),
    cmocka_unit_test(test_threads),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  driver = "ref";
  int failed = cmocka_run_group_tests_name("session, ref", tests, NULL, NULL);
  driver = NULL;
  return failed + cmocka_run_group_tests_name("session, cpu", tests, NULL, NULL);
}
