/*
 * test_guard.c - steps that must not change anything: guards of every writer, all_finite, and where a NaN came from.
 *
 * A run under a false guard is compared bit by bit with the state before it; the next good run must go on from there.
 */
#include <math.h>
#include <stdlib.h>
#include "train/rig.h"

enum { MOST = 32 };

typedef struct state { size_t n; yk_tensor *v[MOST]; } state_of;

static state_of take(rig *r) {
  state_of s = { yk_variable_count(r->g), { NULL } };
  assert_true(s.n <= MOST);
  for (size_t i = 0; i < s.n; i++) CHECK_OK(yk_variable_fetch(r->s, yk_variable_get(r->g, i), &s.v[i]));
  return s;
}

static void drop(state_of *s) {
  for (size_t i = 0; i < s->n; i++) yk_tensor_free(s->v[i]);
}

/* How many variables differ; the name of the first one. */
static size_t differ(rig *r, const state_of *a, const state_of *b, const char **first) {
  size_t n = 0;
  for (size_t i = 0; i < a->n; i++) {
    if (memcmp(yk_tensor_data(a->v[i]), yk_tensor_data(b->v[i]), yk_tensor_bytes(a->v[i])) == 0) continue;
    if (n++ == 0) *first = yk_variable_name(yk_variable_get(r->g, i));
  }
  return n;
}

static void run_with(rig *r, yk_value ok, double good, yk_value op) {
  yk_tensor *t = NULL;
  uint8_t bit = good != 0;
  CHECK_OK(yk_tensor_from(YK_BOOL, YK_SCALAR, &bit, &t));
  CHECK_OK(yk_session_run(r->s, 1, &(yk_feed){ ok, t }, 0, NULL, 1, &op, NULL));
  yk_tensor_free(t);
}

/* ---- every writer ---------------------------------------------------------------------------------------------------- */

static void test_optimizers(void **state) {
  yk_optimizer o[] = { YK_SGD(1), YK_MOMENTUM(1, 0.9), YK_NESTEROV(1, 0.9), YK_KERAS_SGD(1, 0.9), YK_ADAM(1), YK_ADAMW(1, 0.1), YK_LAMB(1, 0),
                       YK_RMSPROP(1), YK_KERAS_RMSPROP(1), YK_ADAGRAD(1), YK_ADADELTA(1), YK_FTRL(1), YK_RMSPROP(1) };
  static const yk_dtype types[] = { YK_F32, YK_F64, YK_F16, YK_BF16 };
  (void)state;
  o[12].centered = true;
  for (size_t i = 0; i < sizeof o / sizeof *o; i++)
    for (size_t k = 0; k < 8; k++) {                       /* dense and of rows, in four types */
      bool sparse = k >= 4;
      const char *name = "";
      rig r;
      yk_graph *g = rig_new(&r);
      yk_value ok = yk_placeholder(yk_named(g, "ok"), "ok", YK_BOOL, YK_SCALAR), train = { 0 }, step_read;
      yk_variable *w = yk_get_variable(g, "w", types[k % 4], YK_SHAPE(4, 3), YK_CONSTANT(0.5), NULL), *step = yk_global_step(g);
      int32_t rows[2] = { 1, 3 };
      yk_tensor *at = NULL;
      CHECK_OK(yk_tensor_from(YK_I32, YK_SHAPE(2), rows, &at));
      yk_value x = sparse ? yk_gather(g, yk_read(w), yk_constant(g, at), 0) : yk_read(w);
      yk_gradient grad[1];
      CHECK_INT(yk_compute_gradients(g, yk_cast(g, yk_l2_loss(g, x), YK_F32), 1, &w, grad, 1), 1);
      YK_GUARD(g, ok) { train = yk_apply_gradients(g, &o[i], 1, grad, step); }
      step_read = yk_read(step);
      assert_int_equal(yk_guard(g).id, 0);
      rig_open(&r, 0);
      state_of a = take(&r);
      run_with(&r, ok, 0, train);
      state_of b = take(&r);
      if (differ(&r, &a, &b, &name) != 0) fail_msg("optimizer %zu, case %zu: %s changed under a false guard", i, k, name);
      CHECK_NEAR(rig_fetch(&r, step_read, 0), 0, 0);
      run_with(&r, ok, 1, train);
      state_of c = take(&r);
      if (differ(&r, &b, &c, &name) < 2) fail_msg("optimizer %zu, case %zu: a true guard changes %s only", i, k, name);
      CHECK_NEAR(rig_fetch(&r, step_read, 0), 1, 0);
      drop(&a);
      drop(&b);
      drop(&c);
      yk_tensor_free(at);
      rig_close(&r);
    }
}

static void test_assignments(void **state) {
  (void)state;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_value ok = yk_placeholder(g, "ok", YK_BOOL, YK_SCALAR), out[3] = { { 0 } };
  yk_variable *v[3];
  char name[8];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "v%d", i);
    v[i] = yk_get_variable(g, name, i == 1 ? YK_I64 : YK_F32, YK_SHAPE(2), YK_CONSTANT(i + 1), NULL);
  }
  YK_GUARD(g, ok) {
    out[0] = yk_assign(g, v[0], yk_fill(g, YK_F32, YK_SHAPE(2), 9));
    out[1] = yk_assign_add(g, v[1], yk_fill(g, YK_I64, YK_SHAPE(2), 9));
    YK_GUARD(g, (yk_value){ 0 }) { out[2] = yk_assign_sub(g, v[2], yk_fill(g, YK_F32, YK_SHAPE(2), 9)); }
  }
  rig_open(&r, 0);
  static const double want[2][3] = { { 1, 2, -6 }, { 9, 11, -15 } };     /* the third has no guard */
  for (int good = 0; good < 2; good++) {
    yk_tensor *t = NULL, *got[3] = { NULL };
    uint8_t bit = (uint8_t)good;
    CHECK_OK(yk_tensor_from(YK_BOOL, YK_SCALAR, &bit, &t));
    CHECK_OK(yk_session_run(r.s, 1, &(yk_feed){ ok, t }, 3, out, 0, NULL, got));
    for (int i = 0; i < 3; i++) {
      CHECK_NEAR(yk_tensor_at(got[i], 1), want[good][i], 0);
      CHECK_NEAR(rig_value(&r, v[i], 0), want[good][i], 0);
      yk_tensor_free(got[i]);
    }
    yk_tensor_free(t);
  }
  rig_close(&r);
}

/* Statistics and averages keep still too, even for a batch that is all NaN. */
static void test_statistics(void **state) {
  (void)state;
  for (int gpus = 0; gpus < 2; gpus++) {
    rig r;
    yk_graph *g = rig_new(&r);
    const char *name = "";
    yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4, 3)), y = { 0 }, ok = { 0 }, moved = { 0 }, averaged = { 0 };
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3), YK_ONES, NULL);
    YK_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0") {
      y = yk_batch_norm(g, yk_mul(g, x, yk_read(w)), &(yk_batch_norm_options){ .training = true });
    }
    ok = yk_all_good(g, 1, &y, 0, NULL, false);
    YK_GUARD(g, ok) {
      moved = yk_update_ops(g);
      YK_CONTROL(g, 1, &moved) { averaged = yk_moving_average(g, 0.5, NULL, 0, NULL); }
      yk_value both[2] = { averaged, yk_assign_add(g, w, yk_ones_like(g, yk_read(w))) };
      averaged = yk_group(g, 2, both);
    }
    rig_open(&r, gpus);
    float data[12];
    for (int turn = 0; turn < 4; turn++) {
      yk_tensor *t = NULL;
      for (int i = 0; i < 12; i++) data[i] = turn % 2 ? (float)i : NAN;
      CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(4, 3), data, &t));
      state_of a = take(&r);
      CHECK_OK(yk_session_run(r.s, 1, &(yk_feed){ x, t }, 0, NULL, 1, &averaged, NULL));
      state_of b = take(&r);
      size_t n = differ(&r, &a, &b, &name);
      if (turn % 2 == 0 && n != 0) fail_msg("%s changed", name);
      if (turn % 2 == 1 && n < 3) fail_msg("only %zu variables changed", n);
      drop(&a);
      drop(&b);
      yk_tensor_free(t);
    }
    rig_close(&r);
  }
}

/* The planner still joins updates; those of another guard stay apart. */
static void test_one_kernel(void **state) {
  (void)state;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_gradient grad[4], other[1];
  yk_variable *v[5];
  yk_value ok[2], both[2];
  yk_optimizer o = YK_ADAM(0.1);
  char name[8];
  for (int i = 0; i < 5; i++) {
    snprintf(name, sizeof name, "v%d", i);
    v[i] = yk_get_variable(g, name, YK_F32, YK_SHAPE(2), YK_ONES, NULL);
    *(i < 4 ? &grad[i] : other) = (yk_gradient){ yk_read(v[i]), v[i] };
  }
  ok[0] = yk_all_good(g, 0, NULL, 4, grad, false);
  ok[1] = yk_all_good(g, 0, NULL, 1, other, true);
  YK_GUARD(g, ok[0]) { both[0] = yk_apply_gradients(g, &o, 4, grad, NULL); }
  YK_GUARD(g, ok[1]) { both[1] = yk_apply_gradients(g, &o, 1, other, NULL); }
  yk_value all = yk_group(g, 2, both);
  rig_open(&r, 0);
  CHECK_INT(rig_count(&r, all, "plain:adam_update"), 2);
  rig_run(&r, all);
  for (int i = 0; i < 5; i++) CHECK_NEAR(rig_value(&r, v[i], 0), 0.9, 1e-5);
  rig_close(&r);
}

static void test_wrong_guard(void **state) {
  (void)state;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_guard_push(g, yk_scalar_f32(g, 1));
  CHECK_INT(yk_graph_status(g), YK_EINVAL);
  if (strstr(yk_error_message(), "expected a bool scalar") == NULL) fail_msg("message \"%s\"", yk_error_message());
  rig_close(&r);
  g = rig_new(&r);
  CHECK_INT(yk_all_good(g, 0, NULL, 0, NULL, false).id, 0);
  CHECK_INT(yk_graph_status(g), YK_EINVAL);
  rig_close(&r);
}

/* ---- all_finite ------------------------------------------------------------------------------------------------------ */

static void test_all_finite(void **state) {
  static const yk_dtype types[] = { YK_F32, YK_F64, YK_F16, YK_BF16 };
  static const double values[] = { 1, -0.0, INFINITY, -INFINITY, NAN };
  (void)state;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_value in[4], ok[4][2];
  for (int k = 0; k < 4; k++) {
    in[k] = yk_placeholder(g, NULL, YK_F32, YK_SHAPE(3, 5000));
    yk_value x[2] = { yk_scalar_f32(g, 3), yk_cast(g, in[k], types[k]) };
    for (int only = 0; only < 2; only++) ok[k][only] = yk_all_finite(g, 2, x, only);
  }
  rig_open(&r, 0);
  float *data = calloc(15000, sizeof *data);
  assert_non_null(data);
  for (int k = 0; k < 4; k++)
    for (int v = 0; v < 5; v++)
      for (int64_t at = 0; at < 15000; at += 7499) {
        yk_tensor *t = NULL, *got[2] = { NULL };
        data[at] = (float)values[v];
        CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(3, 5000), data, &t));
        CHECK_OK(yk_session_run(r.s, 1, &(yk_feed){ in[k], t }, 2, ok[k], 0, NULL, got));
        CHECK_NEAR(yk_tensor_at(got[0], 0), isfinite(values[v]) ? 1 : 0, 0);
        CHECK_NEAR(yk_tensor_at(got[1], 0), isnan(values[v]) ? 0 : 1, 0);
        data[at] = 0;
        for (int i = 0; i < 2; i++) yk_tensor_free(got[i]);
        yk_tensor_free(t);
      }
  free(data);
  rig_close(&r);
}

/* ---- where it came from ------------------------------------------------------------------------------------------------ */

typedef struct net { rig r; yk_value x, loss, ok, train; yk_variable *w; yk_step *step; } net;

/* log of x*w, row by row; row `bad` of the input makes it NaN. Noise makes the step draw random numbers. */
static void open_net(net *n, int gpus) {
  yk_graph *g = rig_new(&n->r);
  yk_gradient grad[1];
  yk_optimizer sgd = YK_SGD(0.01);
  yk_value fetch[2];
  n->x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4, 3));
  n->w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3, 2), YK_CONSTANT(1), NULL);
  YK_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0") {
    yk_value y = yk_matmul(yk_named(g, "product"), n->x, yk_read(n->w), NULL);
    y = yk_mul(g, y, yk_random_uniform(g, &(yk_random_attrs){ .dtype = YK_F32, .rank = 2, .dim = { 4, 2 }, .a = 0.5, .b = 1, .seed = 7 }));
    n->loss = yk_reduce_sum(g, yk_log(yk_named(g, "logarithm"), y), NULL);
  }
  yk_compute_gradients(g, n->loss, 1, &n->w, grad, 1);
  n->ok = yk_all_good(g, 1, &n->loss, 1, grad, false);
  YK_GUARD(g, n->ok) { n->train = yk_apply_gradients(g, &sgd, 1, grad, NULL); }
  rig_open(&n->r, gpus);
  fetch[0] = n->loss;
  fetch[1] = n->ok;
  CHECK_OK(yk_step_prepare(n->r.s, 1, &n->x, 2, fetch, 1, &n->train, &n->step));
}

static void feed(net *n, double row2, bool examine, yk_finding *f, double *loss, double *ok) {
  float data[12];
  yk_tensor *t = NULL;
  const yk_tensor *const *got = NULL, *in[1];
  for (int i = 0; i < 12; i++) data[i] = i / 3 == 2 ? (float)row2 : 1;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(4, 3), data, &t));
  in[0] = t;
  if (examine) CHECK_OK(yk_step_examine(n->step, in, f));
  else {
    CHECK_OK(yk_step_run(n->step, in, &got));
    *loss = yk_tensor_at(got[0], 0);
    *ok = yk_tensor_at(got[1], 0);
  }
  yk_tensor_free(t);
}

static void test_examine(void **state) {
  (void)state;
  for (int gpus = 0; gpus < 2; gpus++) {
    net n;
    double loss = 0, ok = 0;
    yk_finding f = YK_FINDING_INIT;
    char *text = NULL;
    open_net(&n, gpus);
    float one[12] = { 0 };
    yk_tensor *t = NULL;
    const yk_tensor *in[1];
    CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(4, 3), one, &t));
    in[0] = t;
    CHECK_INT(yk_step_examine(n.step, in, &f), YK_EINVAL);             /* nothing has run */
    yk_tensor_free(t);
    feed(&n, 1, false, NULL, &loss, &ok);
    CHECK_NEAR(ok, 1, 0);
    double w = rig_value(&n.r, n.w, 0);
    feed(&n, 1, true, &f, NULL, NULL);                                 /* a good step: nothing is found, nothing changes */
    CHECK_INT(f.kind, YK_FOUND_NOTHING);
    CHECK_NEAR(rig_value(&n.r, n.w, 0), w, 0);
    feed(&n, -1, false, NULL, &loss, &ok);
    CHECK_NEAR(ok, 0, 0);
    assert_true(isnan(loss));
    CHECK_NEAR(rig_value(&n.r, n.w, 0), w, 0);
    feed(&n, -1, true, &f, NULL, NULL);
    CHECK_INT(f.kind, YK_FOUND_COMPUTED);
    if (strcmp(f.name, "logarithm") != 0 || strcmp(f.op, "Log") != 0 || strstr(f.where, "test_guard.c:") == NULL ||
        strcmp(f.device, gpus ? "/gpu:0" : "/cpu:0") != 0)
      fail_msg("found %s (%s) at %s on %s", f.name, f.op, f.where, f.device);
    CHECK_INT(f.is_nan, 1);
    CHECK_INT(f.row, 2);
    CHECK_INT(f.rows, 4);
    CHECK_INT(f.bad_rows, 1);
    CHECK_NEAR(rig_value(&n.r, n.w, 0), w, 0);
    CHECK_OK(yk_finding_text(&f, &text));
    if (strstr(text, "NaN, first made by 'logarithm' (Log) on ") == NULL || strstr(text, "in row 2 of 4") == NULL) fail_msg("%s", text);
    yk_free(text);
    feed(&n, NAN, false, NULL, &loss, &ok);
    feed(&n, NAN, true, &f, NULL, NULL);
    CHECK_INT(f.kind, YK_FOUND_FED);
    CHECK_INT(f.row, 2);
    feed(&n, 0, false, NULL, &loss, &ok);                              /* log(0): no NaN in the loss, but an infinity */
    CHECK_NEAR(ok, 0, 0);
    feed(&n, 0, true, &f, NULL, NULL);
    if (f.kind == YK_FOUND_COMPUTED && f.is_nan) {                     /* 0 * inf of the gradient; its infinity is told */
      if (strcmp(f.infinity, "logarithm") != 0) fail_msg("infinity of '%s'", f.infinity);
    } else {
      if (strcmp(f.name, "logarithm") != 0) fail_msg("found %s", f.name);
    }
    feed(&n, 1, false, NULL, &loss, &ok);                              /* and training goes on */
    CHECK_NEAR(ok, 1, 0);
    float bad[6] = { 1, 1, NAN, 1, 1, 1 };
    CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(3, 2), bad, &t));
    CHECK_OK(yk_variable_set(n.r.s, n.w, t));
    yk_tensor_free(t);
    feed(&n, 1, false, NULL, &loss, &ok);
    CHECK_NEAR(ok, 0, 0);
    feed(&n, 1, true, &f, NULL, NULL);
    CHECK_INT(f.kind, YK_FOUND_VARIABLE);
    if (strcmp(f.name, "w") != 0) fail_msg("found %s", f.name);
    yk_step_free(n.step);
    rig_close(&n.r);
  }
}

/* The same random numbers again: dropout that makes an infinity must make it twice. */
static void test_same_numbers(void **state) {
  (void)state;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_value u = yk_random_uniform(g, &(yk_random_attrs){ .dtype = YK_F32, .rank = 1, .dim = { 1000 }, .b = 1, .seed = 3 }), y, ok;
  y = yk_log(yk_named(g, "rare"), yk_sub(g, u, yk_scalar_f32(g, 0.0005f)));     /* now and then below 0 */
  ok = yk_all_finite(g, 1, &y, true);
  rig_open(&r, 0);
  yk_step *step = NULL;
  CHECK_OK(yk_step_prepare(r.s, 0, NULL, 1, &ok, 0, NULL, &step));
  int bad = 0, good = 0;
  for (int i = 0; i < 60; i++) {
    const yk_tensor *const *got = NULL;
    yk_finding f = YK_FINDING_INIT;
    CHECK_OK(yk_step_run(step, NULL, &got));
    bool fine = yk_tensor_at(got[0], 0) != 0;
    for (int again = 0; again < 2; again++) {
      CHECK_OK(yk_step_examine(step, NULL, &f));
      if ((f.kind == YK_FOUND_NOTHING) != fine) fail_msg("run %d: fine %d, but found kind %d", i, fine, (int)f.kind);
    }
    good += fine;
    bad += !fine;
  }
  if (bad < 5 || good < 5) fail_msg("%d bad and %d good runs: the test tests nothing", bad, good);
  yk_step_free(step);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_optimizers), cmocka_unit_test(test_assignments), cmocka_unit_test(test_statistics),
    cmocka_unit_test(test_one_kernel), cmocka_unit_test(test_wrong_guard), cmocka_unit_test(test_all_finite),
    cmocka_unit_test(test_examine), cmocka_unit_test(test_same_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
