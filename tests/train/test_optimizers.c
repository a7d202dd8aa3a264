/*
 * test_optimizers.c - what optimizers make beside the numbers: slots, powers, one kernel, sparse updates, errors.
 *
 * The numbers themselves are compared with TensorFlow's in tests/golden/test_train.c.
 */
#include "train/rig.h"

static yk_variable *variable(yk_graph *g, const char *name, yk_dtype t, yk_shape shape, double x) {
  return yk_get_variable(g, name, t, shape, YK_CONSTANT(x), NULL);
}

/* sum of squares / 2 of all of them: each is its own gradient. */
static yk_value squares(yk_graph *g, size_t n, yk_variable *const *v) {
  yk_value sum[8];
  for (size_t i = 0; i < n; i++) sum[i] = yk_cast(g, yk_l2_loss(g, yk_read(v[i])), YK_F32);
  return yk_add_n(g, n, sum);
}

/* ---- slots and powers ---------------------------------------------------------------------------------------------- */

static void test_slots(void **state) {
  static const char *const want[] = { "w/Momentum", "w/SGD", "w/Adam", "w/Adam_1", "beta1_power", "beta2_power", "w/AdamW", "w/AdamW_1",
    "beta1_power_1", "beta2_power_1", "w/Lamb", "w/Lamb_1", "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2", "w/RMSprop", "w/RMSprop_1",
    "w/Adagrad", "w/Adadelta", "w/Adadelta_1", "w/Ftrl", "w/Ftrl_1" };
  yk_optimizer o[] = { YK_SGD(1), YK_MOMENTUM(1, 0.9), YK_KERAS_SGD(1, 0.9), YK_ADAM(1), YK_ADAMW(1, 0.1), YK_LAMB(1, 0), YK_RMSPROP(1),
                       YK_KERAS_RMSPROP(1), YK_ADAGRAD(1), YK_ADADELTA(1), YK_FTRL(1), YK_RMSPROP(1) };
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *w = variable(g, "w", YK_F32, YK_SHAPE(3), 1);
  (void)state;
  o[11].centered = true;
  for (int twice = 0; twice < 2; twice++)
    for (size_t i = 0; i < sizeof o / sizeof *o; i++) yk_minimize(g, &o[i], squares(g, 1, &w), NULL);
  rig_open(&r, 0);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    yk_variable *v = rig_find(g, want[i]);
    assert_false(yk_variable_trainable(v));
    double start = strcmp(want[i], "w/RMSProp") == 0 ? 1 : strcmp(want[i], "w/Adagrad") == 0 || strcmp(want[i], "w/Ftrl") == 0 ? 0.1
      : strstr(want[i], "beta1") ? 0.9 : strstr(want[i], "beta2") ? 0.999 : 0;
    CHECK_NEAR(rig_value(&r, v, 0), start, 1e-7);
  }
  /* And LAMB's powers; everything but w and nothing twice. */
  CHECK_INT(yk_variable_count(g), sizeof want / sizeof *want + 3);
  CHECK_INT(yk_get_collection(g, YK_OPTIMIZER_VARIABLES, NULL, NULL, 0), sizeof want / sizeof *want + 2);
  rig_close(&r);
}

/* Powers belong to the first variable by name: two sets of variables do not disturb each other. */
static void test_powers(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *b = variable(g, "b", YK_F32, YK_SHAPE(3), 1), *a = variable(g, "a", YK_F32, YK_SHAPE(2), 1),
    *c = variable(g, "c", YK_F32, YK_SHAPE(3), 1);
  yk_gradient both[2] = { { yk_read(b), b }, { yk_read(a), a } }, other[1] = { { yk_read(c), c } };
  yk_optimizer o = YK_ADAM(0.1);
  (void)state;
  yk_value first = yk_apply_gradients(g, &o, 2, both, NULL), second = yk_apply_gradients(g, &o, 1, other, NULL);
  rig_open(&r, 0);
  rig_run(&r, first);
  rig_run(&r, first);
  rig_run(&r, second);
  CHECK_NEAR(rig_value(&r, rig_find(g, "beta1_power"), 0), 0.9 * 0.9 * 0.9, 1e-6);
  CHECK_NEAR(rig_value(&r, rig_find(g, "beta2_power"), 0), 0.999 * 0.999 * 0.999, 1e-6);
  CHECK_NEAR(rig_value(&r, rig_find(g, "beta1_power_1"), 0), 0.9 * 0.9, 1e-6);
  CHECK_NEAR(rig_value(&r, a, 1), 0.8, 1e-3);
  CHECK_NEAR(rig_value(&r, b, 2), 0.8, 1e-3);
  CHECK_NEAR(rig_value(&r, c, 0), 0.9, 1e-3);
  rig_close(&r);
}

/* w = 1, g = 0.5, three steps: the page of formulae has these. */
static void test_three_steps(void **state) {
  const struct { yk_optimizer o; double want[3]; } rows[] = {
    { YK_ADAM(0.001), { .9990000006, .9980000011, .9970000014 } }, { YK_MOMENTUM(0.1, 0.9), { .95, .855, .7195 } },
    { YK_NESTEROV(0.1, 0.9), { .905, .7695, .59755 } }, { YK_RMSPROP(0.001), { .9994801, .9989402, .9983800 } },
    { YK_KERAS_RMSPROP(0.001), { .9968377, .9945436, .9926226 } }, { YK_ADAGRAD(0.1), { .9154846, .8509349, .7967022 } },
    { YK_ADADELTA(0.001), { .99999955, .99999910, .99999864 } }, { YK_FTRL(0.1), { .3809621, .3164124, .2621798 } } };
  static const yk_dtype types[] = { YK_F32, YK_F64, YK_BF16, YK_F16 };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t t = 0; t < 4; t++) {
      rig r;
      yk_graph *g = rig_new(&r);
      yk_variable *w = variable(g, "w", types[t], YK_SHAPE(5), 1);
      yk_gradient pair = { yk_fill(g, types[t], YK_SHAPE(5), 0.5), w };
      yk_value train = yk_apply_gradients(g, &rows[i].o, 1, &pair, NULL);
      rig_open(&r, 0);
      for (int step = 0; step < 3; step++) {
        rig_run(&r, train);
        /* Halves round w each step: by up to a unit in the last place. */
        CHECK_NEAR(rig_value(&r, w, 4), rows[i].want[step], types[t] == YK_BF16 ? 1.2e-2 : types[t] == YK_F16 ? 3e-3 : 1e-7);
      }
      rig_close(&r);
    }
}

/* ---- one kernel -------------------------------------------------------------------------------------------------------- */

static void test_one_kernel(void **state) {
  yk_optimizer o[] = { YK_SGD(0.1), YK_MOMENTUM(0.1, 0.9), YK_KERAS_SGD(0.1, 0.9), YK_ADAM(0.1), YK_ADAMW(0.1, 0.1), YK_LAMB(0.1, 0.1),
                       YK_RMSPROP(0.1), YK_ADAGRAD(0.1), YK_ADADELTA(0.1), YK_FTRL(0.1) };
  (void)state;
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) {
    rig r;
    yk_graph *g = rig_new(&r);
    yk_variable *v[5];
    char name[8];
    for (int k = 0; k < 5; k++) {
      snprintf(name, sizeof name, "v%d", k);
      v[k] = variable(g, name, YK_F32, k % 2 ? YK_SHAPE(3, 4) : YK_SHAPE(7), 1);
    }
    o[i].learning_rate = yk_scheduled_rate(g, &YK_COSINE(0.1, 10), yk_global_step(g));
    yk_value train = yk_minimize(g, &o[i], squares(g, 5, v), yk_global_step(g));
    rig_open(&r, 0);
    int n = rig_count(&r, train, "_update");
    if (n != 1) fail_msg("optimizer %zu takes %d kernels for 5 variables", i, n);
    rig_close(&r);
  }
}

/* ---- sparse gradients ---------------------------------------------------------------------------------------------------- */

static yk_value looked_up(yk_graph *g, yk_variable *table, size_t n, const int32_t *rows) {
  yk_value at = yk_constant_from(g, YK_I32, YK_SHAPE((int64_t)n), rows);
  return yk_reduce_sum(g, yk_gather(g, yk_read(table), at, 0), NULL);
}

/* Momentum moves the rows that were looked up, the others' velocity stays; a row that was named twice counts twice. */
static void test_rows(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *table = variable(g, "table", YK_F32, YK_SHAPE(6, 2), 1), *plain = variable(g, "plain", YK_F32, YK_SHAPE(6, 2), 1);
  yk_value loss = yk_add(g, looked_up(g, table, 3, (const int32_t[]){ 4, 1, 4 }), squares(g, 1, &plain));
  yk_gradient pair[2];
  yk_value values, rows;
  (void)state;
  CHECK_INT(yk_compute_gradients(g, loss, 0, NULL, pair, 2), 2);
  assert_true(yk_gradient_rows(g, pair[0].grad, &values, &rows));
  assert_false(yk_gradient_rows(g, pair[1].grad, NULL, NULL));
  yk_value train = yk_apply_gradients(g, &YK_MOMENTUM(0.1, 0.5), 2, pair, NULL);
  rig_open(&r, 0);
  CHECK_INT(rig_count(&r, train, "gather_grad"), 0);
  CHECK_INT(rig_count(&r, train, "sparse_momentum_update"), 1);
  CHECK_NEAR(rig_fetch(&r, pair[0].grad, 8), 2, 0);           /* the dense value, for whoever asks */
  rig_run(&r, train);
  rig_run(&r, train);
  CHECK_NEAR(rig_value(&r, table, 1), 1, 0);
  CHECK_NEAR(rig_value(&r, table, 2), 1 - 0.1 - 0.15, 1e-6);
  CHECK_NEAR(rig_value(&r, table, 9), 1 - 0.2 - 0.3, 1e-6);
  rig_close(&r);
}

/* Two lookups of one table, and two towers, stay sparse; with anything else the sum is dense. */
static void test_joined_rows(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *table = variable(g, "table", YK_F32, YK_SHAPE(6, 2), 1);
  yk_value at = yk_constant_from(g, YK_I64, YK_SHAPE(2, 1), (const int64_t[]){ 0, 5 });
  yk_value other = yk_reduce_sum(g, yk_gather(g, yk_read(table), at, 0), NULL);
  yk_value twice = yk_add(g, looked_up(g, table, 2, (const int32_t[]){ 5, 3 }), other), mixed = yk_add(g, twice, squares(g, 1, &table));
  yk_gradient tower[2], dense, sum;
  (void)state;
  yk_compute_gradients(g, twice, 0, NULL, &tower[0], 1);
  yk_compute_gradients(g, other, 0, NULL, &tower[1], 1);
  yk_compute_gradients(g, mixed, 0, NULL, &dense, 1);
  yk_sum_gradients(g, 2, (const yk_gradient *const[]){ &tower[0], &tower[1] }, 1, &sum);
  assert_true(yk_gradient_rows(g, tower[0].grad, NULL, NULL));
  assert_true(yk_gradient_rows(g, sum.grad, NULL, NULL));
  assert_false(yk_gradient_rows(g, dense.grad, NULL, NULL));
  yk_value norm = yk_clip_by_global_norm(g, 1e6, 1, &sum);
  assert_true(yk_gradient_rows(g, sum.grad, NULL, NULL));
  yk_value train = yk_apply_gradients(g, &YK_SGD(0.1), 1, &sum, NULL);
  rig_open(&r, 0);
  CHECK_INT(rig_count(&r, train, "gather_grad"), 0);
  CHECK_NEAR(rig_fetch(&r, norm, 0), sqrt(12), 1e-6);         /* six values of two elements, each 1 */
  rig_run(&r, train);
  static const double want[6] = { 0.8, 1, 1, 0.9, 1, 0.7 };
  for (int i = 0; i < 6; i++) CHECK_NEAR(rig_value(&r, table, 2 * i + 1), want[i], 1e-6);
  rig_close(&r);
}

static void test_row_out_of_range(void **state) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *table = variable(g, "table", YK_F32, YK_SHAPE(6, 2), 1);
  yk_value values = yk_fill(g, YK_F32, YK_SHAPE(2, 2), 1), rows = yk_constant_from(g, YK_I32, YK_SHAPE(2), (const int32_t[]){ 3, 6 });
  (void)state;
  yk_gradient pair = { yk_add_node(g, yk_op_find("gather_grad"), NULL, (yk_value[]){ values, rows, yk_read(table) }, 3, 0), table };
  yk_value train = yk_apply_gradients(g, &YK_ADAGRAD(0.1), 1, &pair, NULL);
  rig_open(&r, 0);
  CHECK_CODE(yk_session_run(r.s, 0, NULL, 0, NULL, 1, &train, NULL), YK_EINVAL, "row 6 at position 1 is outside [0, 6)");
  for (int i = 0; i < 12; i++) CHECK_NEAR(rig_value(&r, table, i), 1, 0);
  rig_close(&r);
}

/* ---- errors -------------------------------------------------------------------------------------------------------------- */

static void refused(yk_optimizer o, const char *text) {
  rig r;
  yk_graph *g = rig_new(&r);
  yk_variable *w = variable(g, "w", YK_F32, YK_SHAPE(3), 1);
  CHECK_INT(yk_minimize(g, &o, squares(g, 1, &w), NULL).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, text);
  rig_close(&r);
}

static void test_errors(void **state) {
  yk_optimizer o = YK_ADAM(0.1);
  (void)state;
  o.beta1 = 1;
  refused(o, "Adam: beta1 is 1, expected 0 or more and less than 1");
  o = YK_ADAM(NAN);
  refused(o, "Adam: rate is nan");
  o = YK_RMSPROP(0.1);
  o.epsilon = 0;
  refused(o, "RMSProp: epsilon is 0, expected a number above 0");
  o = YK_FTRL(0.1);
  o.lr_power = 0.5;
  refused(o, "Ftrl: lr_power is 0.5, expected 0 or less");
  o = YK_KERAS_RMSPROP(0.1);
  o.centered = true;
  refused(o, "centered");
  refused(YK_SGD(-1), "GradientDescent: rate is -1, expected a number not below 0");
  refused((yk_optimizer){ .kind = YK_NOPTIMIZERS }, "no such optimizer");
}

/* Ftrl divides by the rate: what begins at 0 is refused, before anything is NaN; what begins above it trains. */
static void test_ftrl_from_0(void **state) {
  static const int64_t at[] = { 3 };
  static const double rates[] = { 0, 0.1 };
  yk_schedule warm = YK_CONSTANT_RATE(0.1), cosine = YK_COSINE(0.1, 10), steps = YK_PIECEWISE(1, at, rates);
  warm.warm_up = cosine.warm_up = 5;
  cosine.warm_from = 0.01;
  struct { const yk_schedule *schedule; double rate; yk_optimizer o; bool good; } cases[] = {
    { NULL, 0, YK_FTRL(0), false }, { &warm, 0, YK_FTRL(0.1), false }, { &steps, 0, YK_FTRL(0.1), false }, { &cosine, 0, YK_FTRL(0.1), true },
    { NULL, 0, YK_FTRL(0.1), true }, { &warm, 0, YK_ADAGRAD(0.1), true }, { NULL, 0, YK_SGD(0), true },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    yk_graph *g = rig_new(&r);
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
    yk_optimizer o = cases[i].o;
    if (cases[i].schedule != NULL) o.learning_rate = yk_scheduled_rate(g, cases[i].schedule, yk_global_step(g));
    yk_value train = yk_minimize(g, &o, yk_reduce_sum(g, yk_square(g, yk_read(w)), NULL), yk_global_step(g));
    if (!cases[i].good) {
      CHECK_CODE(yk_graph_status(g), YK_EINVAL, "Ftrl divides by the learning rate, which is 0 in the first step");
    } else {
      rig_open(&r, 0);
      for (int k = 0; k < 8; k++) rig_run(&r, train);
      double x = rig_value(&r, w, 0);
      if (!isfinite(x)) fail_msg("case %zu: w is %g", i, x);
    }
    rig_close(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_slots), cmocka_unit_test(test_powers), cmocka_unit_test(test_three_steps), cmocka_unit_test(test_one_kernel),
    cmocka_unit_test(test_rows), cmocka_unit_test(test_joined_rows), cmocka_unit_test(test_row_out_of_range), cmocka_unit_test(test_errors),
    cmocka_unit_test(test_ftrl_from_0),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
