/*
 * test_variables.c - variables' storage: homes, borrowing, initialization, limits, layouts.
 *
 * The proof program of shared variables is here: a variable on /cpu:0, computed
 * with on /gpu:0, changed at home, and seen changed by the borrower.
 */
#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/thread.h"
#include "run/run.h"
#include <yoke/nn.h>
#include "run/support.h"

static void test_borrowed(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *ccc = NULL;
  yk_value twice = { 0 }, more = { 0 };
  YK_DEVICE(g, "/cpu:0") { ccc = yk_get_variable(g, "ccc", YK_F32, YK_SHAPE(2, 3, 4), YK_ONES, NULL); }
  YK_DEVICE(g, "/gpu:0") { twice = yk_mul(yk_named(g, "twice"), yk_read(ccc), yk_scalar_f32(g, 2)); }
  more = yk_assign_add(g, ccc, yk_fill(g, YK_F32, YK_SHAPE(2, 3, 4), 1));
  yk_session *s = open_session(g, 1);
  run_target(s, yk_global_variables_initializer(g));
  yk_step *step;
  OK(yk_step_prepare(s, 0, NULL, 1, &twice, 0, NULL, &step));
  const yk_tensor *const *out;
  for (int turn = 1; turn <= 5; turn++) {
    OK(yk_step_run(step, NULL, &out));
    expect_line(out[0], 24, 0, 2.0 * turn);
    uint64_t before = yk__alloc_count();
    OK(yk_step_run(step, NULL, &out));
    if (turn > 2) assert_int_equal(yk__alloc_count(), before);
    run_target(s, more);
  }
  yk_device_info info;
  OK(yk_session_device(s, 0, &info));
  assert_string_equal(info.type, "CPU");
  assert_true(info.bytes_in_use >= 24 * sizeof(float));
  char *text;
  OK(yk_session_placement(s, &text));
  if (!strstr(text, "ccc: (Variable): /job:localhost/replica:0/task:0/device:CPU:0\n")) fail_msg("no home in\n%s", text);
  if (!strstr(text, "twice: (Mul): /job:localhost/replica:0/task:0/device:GPU:0\n")) fail_msg("no borrower in\n%s", text);
  yk_free(text);
  yk_step_free(step);
  end(s, g);
}

static void test_assign(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(3), YK_CONSTANT(4), NULL);
  yk_value one = yk_fill(g, YK_F32, YK_SHAPE(3), 1), set = yk_assign(g, v, one);
  yk_value up = yk_assign_add(g, v, one), down = yk_assign_sub(g, v, one);
  yk_session *s = open_session(g, 0);
  const yk_value order[] = { yk_initializer_op(v), up, up, down, set, up };
  const double want[] = { 4, 5, 6, 5, 1, 2 };
  for (int i = 0; i < 6; i++) {
    yk_tensor *t = run_fetch(s, order[i]);     /* the value after the assignment */
    expect_line(t, 3, 0, want[i]);
    yk_tensor_free(t);
    t = run_fetch(s, yk_read(v));
    expect_line(t, 3, 0, want[i]);
    yk_tensor_free(t);
  }
  end(s, g);
}

static void test_uninitialized(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = yk_get_variable(g, "layer/w", YK_F32, YK_SHAPE(3), YK_ONES, NULL);
  yk_value up = yk_assign_add(g, v, yk_fill(g, YK_F32, YK_SHAPE(3), 1));
  yk_session *s = open_session(g, 0);
  yk_value read = yk_read(v);
  yk_tensor *t = NULL;
  for (int turn = 0; turn < 2; turn++) {
    FAILS(yk_session_run(s, 0, NULL, 1, &read, 0, NULL, &t), YK_EINVAL, "variable layer/w f32[3] (made at ");
    FAILS(yk_session_run(s, 0, NULL, 0, NULL, 1, &up, NULL), YK_EINVAL, "yk_global_variables_initializer()");
    FAILS(yk_variable_fetch(s, v, &t), YK_EINVAL, "layer/w");
  }
  assert_null(t);
  run_target(s, yk_initializer_op(v));
  run_target(s, up);
  t = run_fetch(s, read);
  expect_line(t, 3, 0, 2);
  yk_tensor_free(t);
  end(s, g);
}

static void test_set_and_fetch(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  YK_DEVICE(g, "/gpu:0") { v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(2, 2), YK_ONES, NULL); }
  yk_value read = yk_identity(g, yk_read(v));
  yk_session *s = open_session(g, 1);
  yk_tensor *x = ramp(YK_SHAPE(2, 2)), *flat = ramp(YK_SHAPE(4)), *t;
  FAILS(yk_variable_set(s, v, flat), YK_EINVAL, "is set to f32[4]; expected f32[2,2]");
  FAILS(yk_variable_set(s, NULL, x), YK_EINVAL, "not of the session's graph");
  OK(yk_variable_set(s, v, x));                /* before any plan: placed now, and initialized */
  OK(yk_variable_fetch(s, v, &t));
  expect_line(t, 4, 1, 0);
  yk_tensor_free(t);
  t = run_fetch(s, read);
  expect_line(t, 4, 1, 0);
  yk_tensor_free(t);
  for (int i = 0; i < 4; i++) ((float *)yk_tensor_data(x))[i] *= 3;
  OK(yk_variable_set(s, v, x));
  t = run_fetch(s, read);
  expect_line(t, 4, 3, 0);
  yk_tensor_free(t);
  yk_tensor_free(x);
  yk_tensor_free(flat);
  end(s, g);
}

static void test_does_not_fit(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *big = NULL, *small = NULL;
  YK_DEVICE(g, "/gpu:0") {
    big = yk_get_variable(g, "big", YK_F32, YK_SHAPE(1000, 1000), YK_ZEROS, NULL);
    small = yk_get_variable(g, "small", YK_F32, YK_SHAPE(10), YK_ONES, NULL);
  }
  yk_session_options o = options(1);
  o.virtual_gpu_bytes = 1 << 20;
  yk_session *s = open_with(g, o);
  yk_tensor *x = ramp(YK_SHAPE(1000, 1000)), *t;
  FAILS(yk_variable_set(s, big, x), YK_ENOMEM, "variable big f32[1000,1000] (4000000 bytes, made at ");
  if (!strstr(yk_error_message(), "device:GPU:0") || !strstr(yk_error_message(), "1048576"))
    fail_msg("message \"%s\"", yk_error_message());
  run_target(s, yk_initializer_op(small));     /* the session stays usable */
  OK(yk_variable_fetch(s, small, &t));
  expect_line(t, 10, 0, 1);
  yk_tensor_free(t);
  yk_tensor_free(x);
  end(s, g);
}

static void test_idle_plans_give_way(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1)), y = yk_add(g, yk_mul(g, x, x), x);
  yk_session_options o = options(0);
  o.cpu_bytes = 1 << 20;
  yk_session *s = open_with(g, o);
  for (int64_t n = 20000; n < 25000; n += 250) {       /* each plan fits alone, all of them do not */
    yk_tensor *t = ramp(YK_SHAPE(n)), *out;
    OK(yk_session_run(s, 1, &(yk_feed){ x, t }, 1, &y, 0, NULL, &out));
    if (yk_tensor_at(out, 3) != 12) fail_msg("%g, expected 12", yk_tensor_at(out, 3));
    yk_tensor_free(out);
    yk_tensor_free(t);
  }
  yk_tensor *huge = ramp(YK_SHAPE(1 << 20)), *out = NULL;
  FAILS(yk_session_run(s, 1, &(yk_feed){ x, huge }, 1, &y, 0, NULL, &out), YK_ENOMEM, "value Mul f32[1048576] 4.00MiB");
  assert_null(out);
  yk_tensor_free(huge);
  end(s, g);
}

/* A layout of the CPU driver's own, as a convolution asks it for its filter; 0 if it wants the plain one. */
static uint16_t filter_layout(const yk_device *d, const yk_desc *filter) {
  yk_desc in[2] = { { .dtype = YK_F32, .rank = 4, .dim = { 2, 12, 12, filter->dim[2] } }, *filter };
  yk_desc out = { .dtype = YK_F32, .rank = 4, .layout = YK_LAYOUT_ANY, .dim = { 2, 6, 6, filter->dim[3] } };
  yk_conv2d_attrs attrs = { .stride = { 2, 2 } };                 /* at stride 1 the filter would stay plain */
  yk_kernel_spec spec = { .size = sizeof spec, .op = "conv2d", .op_version = 1, .nin = 2, .nout = 1, .attrs = &attrs, .in = in,
                          .out = &out };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k;
  OK(d->driver->kernel_prepare(d->dev, &spec, &k, &info));
  d->driver->kernel_free(k);
  return in[1].layout;
}

/* A step keeps working, and values keep their meaning, when a compilation lays a variable out anew. */
static void test_new_layout(void **state) {
  (void)state;
  if (driver) skip();                          /* the reference driver has one layout */
  yk_graph *g = new_graph();
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3, 3, 32, 32), YK_ZEROS, NULL);
  yk_value read = yk_read(w);
  yk_session *s = open_session(g, 0);
  yk_tensor *x = ramp(YK_SHAPE(3, 3, 32, 32)), *t;
  const int64_t n = 3 * 3 * 32 * 32;
  OK(yk_variable_set(s, w, x));
  yk_var_slot now = s->var[0];
  now.desc.layout = filter_layout(&s->devices->at[0], &now.desc);
  now.layout_settled = 1;
  if (now.desc.layout == YK_LAYOUT_PLAIN) fail_msg("oneDNN leaves the filter plain: another convolution must be found for this test");
  yk_step *step;
  const yk_tensor *const *out;
  OK(yk_step_prepare(s, 0, NULL, 1, &read, 0, NULL, &step));
  OK(yk_step_run(step, NULL, &out));
  expect_line(out[0], n, 1, 0);
  yk__mutex_lock(&s->compile_lock);
  OK(yk__vars_settle(s, &now));
  yk__mutex_unlock(&s->compile_lock);
  assert_int_equal(s->var[0].desc.layout, now.desc.layout);
  OK(yk_variable_fetch(s, w, &t));             /* out of the new layout */
  expect_line(t, n, 1, 0);
  yk_tensor_free(t);
  OK(yk_step_run(step, NULL, &out));           /* its plan is compiled anew, with a reorder */
  expect_line(out[0], n, 1, 0);
  for (int64_t i = 0; i < n; i++) ((float *)yk_tensor_data(x))[i] *= 2;
  OK(yk_variable_set(s, w, x));                /* into the new layout */
  OK(yk_step_run(step, NULL, &out));
  expect_line(out[0], n, 2, 0);
  yk_step_free(step);
  yk_tensor_free(x);
  end(s, g);
}

/* The same through the planner: a filter first used plain, then by a convolution. The reference driver tells the truth. */
static void test_convolution(void **state) {
  (void)state;
  if (driver) skip();
  yk_tensor *truth = NULL, *w0 = ramp(YK_SHAPE(3, 3, 32, 32)), *x0 = ramp(YK_SHAPE(2, 12, 12, 32));
  for (int64_t i = 0; i < yk_tensor_count(w0); i++) ((float *)yk_tensor_data(w0))[i] = (float)(i % 7) - 3;
  for (int64_t i = 0; i < yk_tensor_count(x0); i++) ((float *)yk_tensor_data(x0))[i] = (float)(i % 5) - 2;
  for (int turn = 0; turn < 2; turn++) {
    driver = turn == 0 ? "ref" : NULL;
    yk_graph *g = new_graph();
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3, 3, 32, 32), YK_ZEROS, NULL);
    yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(2, 12, 12, 32));
    yk_conv2d_attrs half = { .stride = { 2, 2 } };                 /* at stride 1 the filter would stay plain */
    yk_value y = yk_conv2d(g, x, yk_read(w), &half), read = yk_read(w);
    yk_value up = yk_assign_add(g, w, yk_read(w));
    yk_session *s = open_session(g, 0);
    OK(yk_variable_set(s, w, w0));
    yk_tensor *before = run_fetch(s, read), *out, *after;
    run_target(s, up);
    run_target(s, up);
    OK(yk_session_run(s, 1, &(yk_feed){ x, x0 }, 1, &y, 0, NULL, &out));
    run_target(s, up);
    after = run_fetch(s, read);
    for (int64_t i = 0; i < yk_tensor_count(w0); i++)
      if (yk_tensor_at(before, i) != yk_tensor_at(w0, i) || yk_tensor_at(after, i) != 8 * yk_tensor_at(w0, i))
        fail_msg("element %lld: %g, then %g", (long long)i, yk_tensor_at(before, i), yk_tensor_at(after, i));
    for (int64_t i = 0; turn == 1 && i < yk_tensor_count(out); i++)
      if (!(fabs(yk_tensor_at(out, i) - yk_tensor_at(truth, i)) < 0.01))   /* integers: a value in a wrong place is off by one */
        fail_msg("y[%lld]: %g, expected %g", (long long)i, yk_tensor_at(out, i), yk_tensor_at(truth, i));
    yk_tensor_free(before);
    yk_tensor_free(after);
    if (turn == 0) truth = out;
    else yk_tensor_free(out);
    end(s, g);
  }
  yk_tensor_free(truth);
  yk_tensor_free(w0);
  yk_tensor_free(x0);
}

/* Threads that change one variable through different plans: nothing is lost, since writers take turns. */
typedef struct writer { yk_session *s; yk_value up; yk_thread thread; int failed; } writer;
static void *write_often(void *arg) {
  writer *w = arg;
  for (int i = 0; i < 200 && !w->failed; i++) w->failed = yk_session_run(w->s, 0, NULL, 0, NULL, 1, &w->up, NULL) != YK_OK;
  return NULL;
}

static void test_writers_take_turns(void **state) {
  (void)state;
  enum { THREADS = 3 };
  yk_graph *g = new_graph();
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(100), YK_ZEROS, NULL);
  writer w[THREADS];
  for (int i = 0; i < THREADS; i++) w[i] = (writer){ .up = yk_assign_add(g, v, yk_fill(g, YK_F32, YK_SHAPE(100), 1 << i)) };
  yk_session *s = open_session(g, 0);
  run_target(s, yk_initializer_op(v));
  for (int i = 0; i < THREADS; i++) {
    w[i].s = s;
    OK(yk__thread_start(&w[i].thread, "writer", write_often, &w[i]));
  }
  for (int i = 0; i < THREADS; i++) {
    yk__thread_join(&w[i].thread);
    assert_int_equal(w[i].failed, 0);
  }
  yk_tensor *t;
  OK(yk_variable_fetch(s, v, &t));
  expect_line(t, 100, 0, 200 * 7);
  yk_tensor_free(t);
  end(s, g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_borrowed), cmocka_unit_test(test_assign), cmocka_unit_test(test_uninitialized),
    cmocka_unit_test(test_set_and_fetch), cmocka_unit_test(test_does_not_fit), cmocka_unit_test(test_idle_plans_give_way),
    cmocka_unit_test(test_writers_take_turns),
    cmocka_unit_test(test_new_layout), cmocka_unit_test(test_convolution),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  driver = "ref";
  int failed = cmocka_run_group_tests_name("variables, ref", tests, NULL, NULL);
  driver = NULL;
  return failed + cmocka_run_group_tests_name("variables, cpu", tests, NULL, NULL);
}
