/*
 * Conditional accumulators: what is accepted, what is dropped, what a take returns and who waits for what.
 */
#include <sched.h>
#include <yoke/half.h>
#include "base/log.h"
#include "base/thread.h"
#include "rig.h"
#include "train/accumulator.h"

static yk_accumulator *open_it(yk_dtype t, yk_shape shape, bool sparse, yk_reduction how) {
  yk_accumulator_options o = YK_ACCUMULATOR_OPTIONS_INIT;
  yk_accumulator *a = NULL;
  o.name = "w:0/grad_accum";
  o.desc = (yk_desc){ .dtype = (uint8_t)t, .rank = (uint8_t)shape.rank };
  memcpy(o.desc.dim, shape.dim, sizeof shape.dim);
  o.sparse = sparse;
  o.reduction = how;
  o.timeout_ms = 60000;
  CHECK_OK(yk_accumulator_open(&o, &a));
  return a;
}

static yk_tensor *floats(yk_shape shape, const float *x) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_F32, shape, x, &t));
  return t;
}

/* Both elements of the gradient are x. */
static bool give(yk_accumulator *a, float x, int64_t step) {
  yk_tensor *t = floats(YK_SHAPE(2), (const float[]){ x, x });
  bool accepted = false;
  CHECK_OK(yk_accumulator_apply(a, t, step, &accepted));
  yk_tensor_free(t);
  return accepted;
}

static void expect_take(yk_accumulator *a, int64_t n, double want) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2), &t));
  CHECK_OK(yk_accumulator_take(a, n, t));
  for (int i = 0; i < 2; i++) CHECK_NEAR(yk_tensor_at(t, i), want, 1e-7);
  yk_tensor_free(t);
}

static void expect_state(const yk_accumulator *a, int64_t count, int64_t step, int64_t dropped) {
  CHECK_INT(yk_accumulator_count(a), count);
  CHECK_INT(yk_accumulator_global_step(a), step);
  CHECK_INT(yk_accumulator_dropped(a), dropped);
}

static void test_dense(void **state) {
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_MEAN);
  (void)state;
  expect_state(a, 0, 0, 0);
  assert_true(give(a, 1, 0));
  assert_true(give(a, 2, 7));                      /* a later step than its own is fine */
  assert_true(give(a, 6, 0));
  expect_state(a, 3, 0, 0);
  expect_take(a, 2, 3);                            /* all that are there, by how many they are */
  expect_state(a, 0, 1, 0);
  assert_false(give(a, 5, 0));                     /* stale: dropped, and no failure */
  expect_state(a, 0, 1, 1);
  assert_true(give(a, 5, 1));
  expect_take(a, 1, 5);                            /* nothing is left of the ones before */
  expect_state(a, 0, 2, 1);
  yk_accumulator_set_global_step(a, 10);
  assert_false(give(a, 1, 9));
  assert_true(give(a, 1, 10));
  expect_state(a, 1, 10, 2);
  yk_accumulator_free(a);
  a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_SUM);
  assert_true(give(a, 1, 0));
  assert_true(give(a, 2, 0));
  expect_take(a, 2, 3);
  yk_accumulator_free(a);
  yk_accumulator_free(NULL);
}

static void keep(int level, const char *line, void *arg) {
  (void)level;
  snprintf(arg, 256, "%s", line);
}

static void test_going_back_warns(void **state) {
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_MEAN);
  char line[256] = "";
  (void)state;
  yk_accumulator_set_global_step(a, 5);
  yk__log_sink(keep, line);
  yk_accumulator_set_global_step(a, 3);
  yk__log_sink(NULL, NULL);
  CHECK_INT(yk_accumulator_global_step(a), 3);
  if (!strstr(line, "'w:0/grad_accum': its step goes back from 5 to 3")) fail_msg("the log says \"%s\"", line);
  yk_accumulator_free(a);
}

/* f16, bf16 and f64; more elements than are converted at once. */
static void test_dtypes(void **state) {
  static const yk_dtype types[] = { YK_F64, YK_F16, YK_BF16 };
  (void)state;
  for (int k = 0; k < 3; k++) {
    yk_accumulator *a = open_it(types[k], YK_SHAPE(1000), false, YK_REDUCE_MEAN);
    yk_tensor *t = NULL;
    CHECK_OK(yk_tensor_new(types[k], YK_SHAPE(1000), &t));
    for (int i = 0; i < 4; i++) {
      for (int64_t j = 0; j < 1000; j++) {
        float x = (float)(i * 8 + j % 4);
        if (types[k] == YK_F64) ((double *)yk_tensor_data(t))[j] = x;
        else if (types[k] == YK_F16) ((uint16_t *)yk_tensor_data(t))[j] = yk_f32_to_f16(x);
        else ((uint16_t *)yk_tensor_data(t))[j] = yk_f32_to_bf16(x);
      }
      CHECK_OK(yk_accumulator_apply(a, t, 0, NULL));
    }
    CHECK_OK(yk_accumulator_take(a, 4, t));
    for (int64_t j = 0; j < 1000; j++) CHECK_NEAR(yk_tensor_at(t, j), 12 + (double)(j % 4), 0);
    yk_tensor_free(t);
    yk_accumulator_free(a);
  }
}

/* ---- rows ---- */

static bool give_rows(yk_accumulator *a, int n, const float *x, const int32_t *row, int64_t step) {
  yk_tensor *values = floats(YK_SHAPE(n, 2), x), *rows = NULL;
  bool accepted = false;
  CHECK_OK(yk_tensor_from(YK_I32, YK_SHAPE(n), row, &rows));
  CHECK_OK(yk_accumulator_apply_rows(a, values, rows, step, &accepted));
  yk_tensor_free(values);
  yk_tensor_free(rows);
  return accepted;
}

static void expect_rows(yk_accumulator *a, int64_t take, int n, const int *row, const double *x) {
  yk_tensor *values = NULL, *rows = NULL;
  CHECK_OK(yk_accumulator_take_rows(a, take, &values, &rows));
  CHECK_INT(yk_tensor_count(rows), n);
  CHECK_INT(yk_tensor_count(values), 2 * n);
  for (int i = 0; i < n; i++) CHECK_INT(yk_tensor_at(rows, i), row[i]);
  for (int i = 0; i < 2 * n; i++) CHECK_NEAR(yk_tensor_at(values, i), x[i], 1e-7);
  yk_tensor_free(values);
  yk_tensor_free(rows);
}

static void test_sparse(void **state) {
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(5, 2), true, YK_REDUCE_MEAN);
  (void)state;
  assert_true(give_rows(a, 2, (const float[]){ 1, 2, 3, 4 }, (const int32_t[]){ 4, 1 }, 0));
  assert_true(give_rows(a, 1, (const float[]){ 5, 6 }, (const int32_t[]){ 1 }, 0));
  assert_true(give_rows(a, 3, (const float[]){ 1, 1, 2, 2, 3, 3 }, (const int32_t[]){ 0, 4, 0 }, 0));     /* row 0 twice: one gradient */
  CHECK_INT(yk_accumulator_count(a), 3);
  expect_rows(a, 3, 3, (const int[]){ 0, 1, 4 }, (const double[]){ 4, 4, 4, 5, 1.5, 2 });
  assert_false(give_rows(a, 1, (const float[]){ 5, 6 }, (const int32_t[]){ 1 }, 0));
  assert_true(give_rows(a, 1, (const float[]){ 5, 6 }, (const int32_t[]){ 2 }, 1));
  expect_rows(a, 1, 1, (const int[]){ 2 }, (const double[]){ 5, 6 });
  expect_state(a, 0, 2, 1);
  yk_accumulator_free(a);
  a = open_it(YK_F32, YK_SHAPE(5, 2), true, YK_REDUCE_SUM);
  assert_true(give_rows(a, 1, (const float[]){ 1, 2 }, (const int32_t[]){ 3 }, 0));
  assert_true(give_rows(a, 1, (const float[]){ 3, 4 }, (const int32_t[]){ 3 }, 0));
  expect_rows(a, 2, 1, (const int[]){ 3 }, (const double[]){ 4, 6 });
  yk_accumulator_free(a);
}

/* For the chief: few sizes, the first row again with zeros behind the others, and tensors that are used again. */
static void test_rounded_rows(void **state) {
  static const int32_t row[] = { 6, 2, 4, 0, 1, 3 };
  static const int sizes[] = { 0, 1, 2, 4, 4, 7, 7 };        /* of 7 rows */
  static const float ones[12] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
  const _Atomic int64_t once = 1;
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(7, 2), true, YK_REDUCE_MEAN);
  yk_tensor *values = NULL, *rows = NULL;
  (void)state;
  for (int n = 0; n <= 6; n++) {
    yk_tensor *before = rows;
    double sum = 0;
    assert_true(give_rows(a, n, ones, row, 100));
    CHECK_OK(yk__accumulator_take_rows(a, &once, &values, &rows));
    CHECK_INT(yk_tensor_count(rows), sizes[n]);
    CHECK_INT(yk_tensor_count(values), 2 * sizes[n]);
    for (int64_t i = 0; i < yk_tensor_count(values); i++) sum += yk_tensor_at(values, i);
    CHECK_NEAR(sum, 2 * n, 0);
    for (int64_t i = n; i < sizes[n]; i++) CHECK_INT(yk_tensor_at(rows, i), yk_tensor_at(rows, 0));
    if (n > 0 && sizes[n] == sizes[n - 1]) assert_ptr_equal(rows, before);
  }
  yk_tensor_free(values);
  yk_tensor_free(rows);
  yk_accumulator_free(a);
}

/* ---- who waits ---- */

typedef struct waiter { yk_accumulator *a; int64_t n; yk_thread thread; yk_code rc; float got[2]; char why[512]; } waiter;

static void *take(void *arg) {
  waiter *w = arg;
  yk_tensor *t = NULL;
  if (yk_tensor_new(YK_F32, YK_SHAPE(2), &t) != YK_OK) return NULL;
  w->rc = yk_accumulator_take(w->a, w->n, t);
  snprintf(w->why, sizeof w->why, "%s", yk_error_message());
  memcpy(w->got, yk_tensor_data(t), sizeof w->got);
  yk_tensor_free(t);
  return NULL;
}

static void start(waiter *w, yk_accumulator *a, int64_t n) {
  *w = (waiter){ .a = a, .n = n, .rc = YK_EINTERNAL };
  CHECK_OK(yk__thread_start(&w->thread, "taker", take, w));
}

static void test_takes_wait(void **state) {
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_MEAN);
  waiter w;
  (void)state;
  assert_true(give(a, 1, 0));
  start(&w, a, 2);
  assert_true(give(a, 3, 0));
  yk__thread_join(&w.thread);
  CHECK_INT(w.rc, YK_OK);
  CHECK_NEAR(w.got[0], 2, 0);
  expect_state(a, 0, 1, 0);
  yk_accumulator_free(a);
}

/* Several takes: each is served once, and no gradient is taken twice. */
static void test_takes_in_turn(void **state) {
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_SUM);
  waiter w[3];
  double sum = 0;
  (void)state;
  for (int i = 0; i < 3; i++) start(&w[i], a, 1);
  for (int i = 0; i < 3; i++) {
    assert_true(give(a, (float)(1 << i), 10));
    while (yk_accumulator_global_step(a) != i + 1) sched_yield();
  }
  for (int i = 0; i < 3; i++) {
    yk__thread_join(&w[i].thread);
    CHECK_INT(w[i].rc, YK_OK);
    sum += w[i].got[0];
  }
  CHECK_NEAR(sum, 7, 0);
  yk_accumulator_free(a);
}

static void test_ends_of_waits(void **state) {
  yk_accumulator_options o = { .size = sizeof o, .name = "slow", .desc = { .dtype = YK_F32, .rank = 1, .dim = { 2 } }, .timeout_ms = 3 };
  yk_accumulator *a = NULL;
  yk_tensor *t = floats(YK_SHAPE(2), (const float[]){ 7, 7 });
  waiter w;
  (void)state;
  CHECK_OK(yk_accumulator_open(&o, &a));
  assert_true(give(a, 1, 0));
  CHECK_CODE(yk_accumulator_take(a, 2, t), YK_EBUSY, "accumulator 'slow': take waited 3 ms for 2 gradients of step 0; 1 are there");
  CHECK_NEAR(yk_tensor_at(t, 0), 7, 0);
  expect_state(a, 1, 0, 0);
  yk_accumulator_free(a);
  a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_MEAN);
  start(&w, a, 2);
  yk_accumulator_cancel(a);
  yk__thread_join(&w.thread);
  CHECK_INT(w.rc, YK_ECANCELLED);
  if (!strstr(w.why, "the take of 2 gradients for step 0 was cancelled, 0 were there")) fail_msg("%s", w.why);
  assert_true(give(a, 1, 0));
  CHECK_CODE(yk_accumulator_take(a, 1, t), YK_ECANCELLED, "cancelled");
  yk_accumulator_free(a);
  yk_tensor_free(t);
}

/* ---- many at once ---- */

typedef struct giver { yk_accumulator *a; yk_thread thread; } giver;

static void *give_hundred(void *arg) {
  giver *p = arg;
  for (int i = 0; i < 100; i++) give(p->a, 1, 1000);
  return NULL;
}

static void test_threads(void **state) {
  yk_accumulator *a = open_it(YK_F32, YK_SHAPE(2), false, YK_REDUCE_SUM);
  giver g[4];
  (void)state;
  for (int i = 0; i < 4; i++) {
    g[i].a = a;
    CHECK_OK(yk__thread_start(&g[i].thread, "giver", give_hundred, &g[i]));
  }
  expect_take(a, 400, 400);
  for (int i = 0; i < 4; i++) yk__thread_join(&g[i].thread);
  yk_accumulator_free(a);
}

static void test_refusals(void **state) {
  yk_accumulator_options o = YK_ACCUMULATOR_OPTIONS_INIT;
  yk_accumulator *a = NULL, *s = open_it(YK_F32, YK_SHAPE(5, 2), true, YK_REDUCE_MEAN);
  yk_tensor *two = floats(YK_SHAPE(2), (const float[]){ 1, 2 }), *row = floats(YK_SHAPE(1, 2), (const float[]){ 1, 2 }), *rows = NULL, *v, *r;
  (void)state;
#define REFUSED(text) CHECK_CODE(yk_accumulator_open(&o, &a), YK_EINVAL, text)
  REFUSED("expected f32, f64, f16 or bf16");
  o.desc = (yk_desc){ .dtype = YK_F32, .rank = 1, .dim = { -1 } };
  REFUSED("accumulator 'accumulator'");
  o.desc.rank = 0;
  o.desc.dim[0] = 0;
  o.sparse = true;
  REFUSED("has no rows");
  o.sparse = false;
  o.timeout_ms = -1;
  REFUSED("-1 ms");
  o.timeout_ms = 0;
  o.reduction = (yk_reduction)5;
  REFUSED("no such reduction: 5");
  o.reduction = YK_REDUCE_MEAN;
  CHECK_OK(yk_accumulator_open(&o, &a));
  CHECK_CODE(yk_accumulator_apply(a, two, 0, NULL), YK_EINVAL, "the gradient is f32[2], expected f32[]");
  CHECK_CODE(yk_accumulator_apply(a, NULL, 0, NULL), YK_EINVAL, "the gradient is NULL");
  CHECK_CODE(yk_accumulator_apply(s, two, 0, NULL), YK_EINVAL, "is sparse: apply is of dense ones");
  CHECK_CODE(yk_accumulator_take(a, 0, two), YK_EINVAL, "a take of 0 gradients");
  CHECK_CODE(yk_accumulator_take(a, 1, two), YK_EINVAL, "the tensor to take into is f32[2], expected f32[]");
  CHECK_CODE(yk_accumulator_take_rows(a, 1, &v, &r), YK_EINVAL, "is dense");
  CHECK_CODE(yk_accumulator_apply_rows(s, two, two, 0, NULL), YK_EINVAL, "the tensor of values is f32[2], expected f32[?,2]");
  CHECK_CODE(yk_accumulator_apply_rows(s, row, two, 0, NULL), YK_EINVAL, "the rows are f32[2], expected i32[1] or i64[1]");
  CHECK_OK(yk_tensor_from(YK_I64, YK_SHAPE(1), (const int64_t[]){ 5 }, &rows));
  CHECK_CODE(yk_accumulator_apply_rows(s, row, rows, 0, NULL), YK_EINVAL, "row 0 of the gradient is row 5, expected 0 to 4");
  CHECK_INT(yk_accumulator_count(s), 0);
  yk_tensor_free(two);
  yk_tensor_free(row);
  yk_tensor_free(rows);
  yk_accumulator_free(a);
  yk_accumulator_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dense), cmocka_unit_test(test_going_back_warns), cmocka_unit_test(test_dtypes), cmocka_unit_test(test_sparse),
    cmocka_unit_test(test_rounded_rows),
    cmocka_unit_test(test_takes_wait), cmocka_unit_test(test_takes_in_turn), cmocka_unit_test(test_ends_of_waits),
    cmocka_unit_test(test_threads), cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
