/*
 * test_nn_build.c - the builders of nn.h, run in a session: layers made of several nodes, towers, fused forms.
 *
 * Runs on the reference driver, so that what is tested is what is built, not how it is computed. Fused operations
 * are compared with what their lower() builds, over all their cases.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include <yoke/session.h>
#include "graph/graph.h"
#include "nn_support.h"
#include "support/check.h"
#include "tensor/desc.h"

static yk_graph *new_graph(void) {
  yk_graph *g = NULL;
  CHECK_OK(yk_graph_new(&g));
  return g;
}

static yk_session *open_with(yk_graph *g, const char *driver) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_session *s = NULL;
  o.drivers = driver;
  o.cores = 1;
  CHECK_OK(yk_graph_verify(g));
  CHECK_OK(yk_session_open(g, &o, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, yk_variable_count(g) > 0, (yk_value[]){ yk_find(g, "init") }, NULL));
  return s;
}

static yk_session *open_session(yk_graph *g) { return open_with(g, "ref"); }

/* Numbers that repeat late and have no pattern. */
static double noise(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (double)(*state >> 8) / 8388608.0 - 1.0;
}

static yk_value data(yk_graph *g, yk_shape shape, uint32_t seed) {
  double v[8192];
  int64_t n = 1;
  for (uint32_t i = 0; i < shape.rank; i++) n *= shape.dim[i];
  assert_true(n <= 8192);
  for (int64_t i = 0; i < n; i++) v[i] = noise(&seed);
  return yk_constant_from(g, YK_F64, shape, v);
}

static yk_tensor *fetch(yk_session *s, yk_value v) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_session_run(s, 0, NULL, 1, &v, 0, NULL, &t));
  return t;
}

static void expect_equal(yk_session *s, yk_value a, yk_value b, const char *what) {
  yk_tensor *ta = fetch(s, a), *tb = fetch(s, b);
  char da[512], db[512];
  if (!yk__desc_same_shape(yk_tensor_desc(ta), yk_tensor_desc(tb)))
    fail_msg("%s: %s, expected %s", what, nn_text(yk_tensor_desc(ta), 1, da), nn_text(yk_tensor_desc(tb), 1, db));
  for (int64_t i = 0; i < yk_tensor_count(ta); i++) {
    double x = yk_tensor_at(ta, i), y = yk_tensor_at(tb, i);
    if (!(fabs(x - y) <= 1e-12 * (1 + fabs(y)))) fail_msg("%s: element %lld is %.17g, expected %.17g", what, (long long)i, x, y);
  }
  yk_tensor_free(ta);
  yk_tensor_free(tb);
}

static void end(yk_session *s, yk_graph *g) {
  yk_session_close(s);
  yk_graph_free(g);
}

/* ---- layers of several nodes ------------------------------------------------------------------------------- */

static void test_depthwise(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = data(g, YK_SHAPE(1, 4, 5, 3), 1), w = data(g, YK_SHAPE(3, 3, 3, 2), 2), piece[3];
  yk_conv2d_attrs a = { .stride = { 2, 1 } };
  yk_value y = yk_depthwise_conv2d(g, x, w, &a);
  for (int c = 0; c < 3; c++) {            /* channel c by itself, with its own two filters */
    yk_slice_attrs sx = { .rank = 4, .begin = { 0, 0, 0, c }, .size = { -1, -1, -1, 1 } };
    yk_slice_attrs sw = { .rank = 4, .begin = { 0, 0, c, 0 }, .size = { -1, -1, 1, -1 } };
    piece[c] = yk_conv2d(g, yk_add_node(g, &yk__op_slice, &sx, &x, 1, 0), yk_add_node(g, &yk__op_slice, &sw, &w, 1, 0), &a);
  }
  yk_value whole = yk_add_node(g, &yk__op_concat, &(yk_axis_attrs){ 3 }, piece, 3, 0);
  yk_session *s = open_session(g);
  expect_equal(s, y, whole, "depthwise_conv2d");
  end(s, g);
}

static void test_depthwise_refusals(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = data(g, YK_SHAPE(1, 4, 5, 3), 1);
  CHECK_INT(yk_depthwise_conv2d(g, x, x, &(yk_conv2d_attrs){ .groups = 3 }).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "groups=3 is given");
  yk_graph_free(g);
  g = new_graph();
  x = data(g, YK_SHAPE(1, 4, 5, 3), 1);
  CHECK_INT(yk_depthwise_conv2d(g, x, (yk_value){ 0 }, NULL).id, 0);
  assert_int_not_equal(yk_graph_status(g), YK_OK);
  yk_graph_free(g);
}

static void test_moments_and_global_pools(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = data(g, YK_SHAPE(2, 3, 4, 5), 3), mean, var, kept, spread;
  yk_value avg = yk_global_avg_pool(g, x), max = yk_global_max_pool(g, x);
  yk_moments(g, x, 3, (const int32_t[]){ 0, 1, -2 }, false, &mean, &var);
  yk_moments(g, x, 2, (const int32_t[]){ 1, 2 }, true, &kept, &spread);
  yk_session *s = open_session(g);
  yk_tensor *tx = fetch(s, x), *ta = fetch(s, avg), *tm = fetch(s, max), *t1 = fetch(s, mean), *t2 = fetch(s, var), *t3 = fetch(s, kept);
  CHECK_INT(yk_tensor_desc(ta)->rank, 2);
  CHECK_INT(yk_tensor_desc(t1)->rank, 1);
  CHECK_INT(yk_tensor_desc(t3)->rank, 4);
  for (int c = 0; c < 5; c++) {
    double sum = 0, square = 0, n0 = 0, top = -2;
    for (int i = 0; i < 24; i++) {
      double v = yk_tensor_at(tx, i * 5 + c);
      sum += v;
      square += v * v;
      if (i < 12) n0 += v;
      if (i < 12 && v > top) top = v;
    }
    CHECK_NEAR(yk_tensor_at(t1, c), sum / 24, 1e-12);
    CHECK_NEAR(yk_tensor_at(t2, c), square / 24 - sum / 24 * sum / 24, 1e-12);
    CHECK_NEAR(yk_tensor_at(ta, c), n0 / 12, 1e-12);
    CHECK_NEAR(yk_tensor_at(t3, c), n0 / 12, 1e-12);
    CHECK_NEAR(yk_tensor_at(tm, c), top, 0);
  }
  yk_tensor *all[] = { tx, ta, tm, t1, t2, t3 };
  for (int i = 0; i < 6; i++) yk_tensor_free(all[i]);
  end(s, g);
}

static void test_dropout(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value ones = yk_add_node(g, &yk__op_ones_like, NULL, (yk_value[]){ data(g, YK_SHAPE(400), 1) }, 1, 0);
  yk_value a = yk_dropout(g, ones, 0.5, 0), b = yk_dropout(g, ones, 0.5, 0), same1 = yk_dropout(g, ones, 0.5, 9), same2 = yk_dropout(g, ones, 0.5, 9);
  yk_value none = yk_dropout(g, ones, 0, 0), out[5] = { a, b, same1, same2, none };
  yk_session *s = open_session(g);
  yk_tensor *t[2][5];
  int differ_ab = 0, differ_runs = 0, differ_same = 0;
  for (int run = 0; run < 2; run++) CHECK_OK(yk_session_run(s, 0, NULL, 5, out, 0, NULL, t[run]));
  for (int i = 0; i < 400; i++) {
    differ_ab += yk_tensor_at(t[0][0], i) != yk_tensor_at(t[0][1], i);
    differ_same += yk_tensor_at(t[0][2], i) != yk_tensor_at(t[0][3], i);
    differ_runs += yk_tensor_at(t[0][0], i) != yk_tensor_at(t[1][0], i);
    CHECK_NEAR(yk_tensor_at(t[0][4], i), 1, 0);
  }
  if (differ_ab < 120 || differ_runs < 120) fail_msg("masks of two nodes differ in %d of 400 places, of two runs in %d", differ_ab, differ_runs);
  CHECK_INT(differ_same, 0);
  for (int i = 0; i < 10; i++) yk_tensor_free(t[i / 5][i % 5]);
  end(s, g);
}

/* ---- losses --------------------------------------------------------------------------------------------------- */

/* The cases of softmax_xent must have labels that sum to one, and so are all alike; here are varied rows, against the formula. */
static void test_cross_entropy(void **state) {
  (void)state;
  static const char *const drivers[] = { "ref", NULL };
  for (int d = 0; d < 2; d++) {
    yk_graph *g = new_graph();
    yk_value x = yk_mul(g, data(g, YK_SHAPE(7, 10), 4), yk_scalar(g, YK_F64, 6)), p = yk_softmax(g, data(g, YK_SHAPE(7, 10), 5));
    yk_value loss = yk_softmax_cross_entropy(g, x, p), dy = data(g, YK_SHAPE(7), 6), dx[2], want[2];
    yk_value formula = yk_neg(g, yk_reduce_sum(g, yk_mul(g, p, yk_log_softmax(g, x)), &(yk_reduce_attrs){ .naxes = 1, .axis = { 1 } }));
    yk_gradients(g, 1, &loss, &dy, 2, (yk_value[]){ x, p }, NULL, dx);
    yk_gradients(g, 1, &formula, &dy, 2, (yk_value[]){ x, p }, NULL, want);
    yk_session *s = open_with(g, drivers[d]);
    expect_equal(s, loss, formula, "softmax_cross_entropy");
    for (int i = 0; i < 2; i++) expect_equal(s, dx[i], want[i], "its gradient");
    end(s, g);
  }
}

/* ---- batch normalisation -------------------------------------------------------------------------------------- */

/* n towers of one batch_norm layer, on data of seeds 1.. */
static void towers(yk_graph *g, int n, yk_value *x, yk_value *y, const yk_batch_norm_options *o) {
  for (int i = 0; i < n; i++) {
    x[i] = data(g, YK_SHAPE(6, 3), (uint32_t)i + 1);
    YK_VARIABLE_SCOPE_REUSE(g, "bn", YK_AUTO_REUSE) y[i] = yk_batch_norm(g, x[i], o);
  }
}

/* After running `target` once: moving = old*momentum + (1 - momentum)*mean over towers, old being 0 for means and 1 for variances. */
static void expect_moving(yk_session *s, yk_graph *g, int n, const yk_value *y, yk_value target, double momentum) {
  static const char *const name[2] = { "bn/moving_mean", "bn/moving_variance" };
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &target, NULL));
  for (uint16_t k = 0; k < 2; k++) {
    yk_tensor *moving = NULL, *batch[4];
    for (size_t v = 0; v < yk_variable_count(g); v++)
      if (!strcmp(yk_variable_name(yk_variable_get(g, v)), name[k])) CHECK_OK(yk_variable_fetch(s, yk_variable_get(g, v), &moving));
    assert_non_null(moving);
    for (int i = 0; i < n; i++) batch[i] = fetch(s, yk_output(g, y[i], (uint16_t)(k + 1)));
    for (int c = 0; c < 3; c++) {
      double mean = 0;
      for (int i = 0; i < n; i++) mean += yk_tensor_at(batch[i], c) / n;
      CHECK_NEAR(yk_tensor_at(moving, c), k * momentum + (1 - momentum) * mean, 1e-12);
    }
    for (int i = 0; i < n; i++) yk_tensor_free(batch[i]);
    yk_tensor_free(moving);
  }
}

static void test_batch_norm_alone(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x, y, update;
  towers(g, 1, &x, &y, &(yk_batch_norm_options){ .training = true });
  CHECK_INT(yk_variable_count(g), 4);
  CHECK_INT(yk_get_collection(g, YK_TRAINABLE_VARIABLES, NULL, NULL, 0), 2);
  CHECK_INT(yk_get_collection(g, YK_UPDATE_OPS, NULL, &update, 1), 1);
  CHECK_INT(yk_batch_norm_updates(g).id != 0, 1);
  yk_global_variables_initializer(g);
  yk_session *s = open_session(g);
  expect_moving(s, g, 1, &y, update, 0.99);
  yk_tensor *t = fetch(s, y);
  for (int c = 0; c < 3; c++) {
    double sum = 0;
    for (int i = 0; i < 6; i++) sum += yk_tensor_at(t, i * 3 + c);
    CHECK_NEAR(sum, 0, 1e-9);
  }
  yk_tensor_free(t);
  end(s, g);
}

static void test_batch_norm_towers(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x[3], y[3], other;
  towers(g, 3, x, y, &(yk_batch_norm_options){ .training = true, .momentum = 0.9 });
  CHECK_OK(yk_graph_status(g));
  CHECK_INT(yk_variable_count(g), 4);
  CHECK_INT(yk_get_collection(g, YK_UPDATE_OPS, NULL, NULL, 0), 1);
  other = yk_assign_add(g, yk_get_variable(g, "count", YK_F64, YK_SCALAR, YK_ZEROS, NULL), yk_scalar(g, YK_F64, 1));
  yk_add_to_collection(g, YK_UPDATE_OPS, other);
  yk_value all = yk_update_ops(g);
  yk_global_variables_initializer(g);
  yk_session *s = open_session(g);
  expect_moving(s, g, 3, y, all, 0.9);
  yk_tensor *count = NULL;
  CHECK_OK(yk_variable_fetch(s, yk_variable_get(g, 4), &count));
  CHECK_NEAR(yk_tensor_at(count, 0), 1, 0);
  yk_tensor_free(count);
  end(s, g);
}

static void test_batch_norm_inference(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x, y;
  towers(g, 1, &x, &y, NULL);
  CHECK_INT(yk_get_collection(g, YK_UPDATE_OPS, NULL, NULL, 0), 0);
  yk_value nothing = yk_update_ops(g), scaled = yk_mul(g, x, yk_scalar(g, YK_F64, 1 / sqrt(1.001)));
  yk_global_variables_initializer(g);
  yk_session *s = open_session(g);
  expect_equal(s, y, scaled, "batch_norm in inference, fresh moving averages");
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &nothing, NULL));
  end(s, g);
}

static void test_batch_norm_without_parameters(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x, y, plain[3];
  towers(g, 1, &x, &y, &(yk_batch_norm_options){ .training = true, .no_scale = true, .no_center = true, .epsilon = 0.5 });
  CHECK_INT(yk_variable_count(g), 2);
  yk_moments(g, x, 1, (const int32_t[]){ 0 }, true, &plain[0], &plain[1]);
  plain[2] = yk_div(g, yk_sub(g, x, plain[0]), yk_sqrt(g, yk_add(g, plain[1], yk_scalar(g, YK_F64, 0.5))));
  yk_global_variables_initializer(g);
  yk_session *s = open_session(g);
  expect_equal(s, y, plain[2], "batch_norm without gamma and beta");
  end(s, g);
}

static void test_batch_norm_refusals(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_batch_norm(g, yk_placeholder(g, "x", YK_F32, YK_SHAPE(4, -1)), NULL);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "x is f32[4,?], expected [..., C] with C known");
  yk_graph_free(g);
  g = new_graph();
  yk_batch_norm(g, yk_placeholder(g, "x", YK_I32, YK_SHAPE(4, 3)), NULL);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "expected floats");
  yk_graph_free(g);
  g = new_graph();
  yk_batch_norm(g, yk_placeholder(g, "x", YK_F32, YK_SHAPE(4, 3)), &(yk_batch_norm_options){ .momentum = 1.5 });
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "momentum is 1.5");
  yk_graph_free(g);
}

/* ---- gradients that are not there ----------------------------------------------------------------------------- */

static void test_no_second_order(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = data(g, YK_SHAPE(1, 4, 4, 2), 1), y = yk_square(g, yk_max_pool(g, x, &(yk_pool_attrs){ .window = { 2, 2 } })), dx, ddx;
  yk_gradients(g, 1, &y, NULL, 1, &x, NULL, &dx);
  CHECK_OK(yk_graph_status(g));
  yk_gradients(g, 1, &dx, NULL, 1, &x, NULL, &ddx);
  CHECK_CODE(yk_graph_status(g), YK_EUNSUPPORTED, "second derivatives through max_pool are not available");
  yk_graph_free(g);
}

/* ---- fused forms ------------------------------------------------------------------------------------------------ */

static void fused_case(const yk_op *op, const yk_case *c) {
  char text[256];
  size_t k = 0;
  yk_desc d[NN_PORTS];
  yk_value in[NN_PORTS], fused, lowered[4] = { { 0 } };
  for (const char *s = c->shapes; *s && k < sizeof text - 4; s++) {
    if (*s == 'T' && s[1] == '[') k += (size_t)snprintf(text + k, 4, "f64");
    else text[k++] = *s;
  }
  text[k] = 0;
  if (strstr(text, "f32") || strstr(text, "f16")) return;            /* the f64 twin of this case is compared */
  yk_graph *g = new_graph();
  uint16_t nin = nn_parse(text, d, NN_PORTS), nout = yk__op_nout(op, c->attrs);
  for (uint16_t i = 0; i < nin; i++) in[i] = data(g, yk__desc_shape(&d[i]), i + 5u);
  fused = yk_add_node(g, op, c->attrs, in, nin, 0);
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(op->lower(&(yk_grad){ .g = g, .where = YK_HERE, .in = in, .din = lowered, .nin = nin, .nout = nout,
                                 .attrs = yk__value_node(g, fused)->attrs }));
  yk_session *s = open_session(g);
  for (uint16_t i = 0; i < nout; i++) expect_equal(s, yk_output(g, fused, i), lowered[i], op->name);
  end(s, g);
}

static void test_lower(void **state) {
  (void)state;
  size_t n;
  int fused = 0;
  const yk_op *const *all = yk_op_all(&n);
  for (size_t i = 0; i < n; i++) {
    if (!all[i]->lower) continue;
    fused++;
    for (const yk_case *c = all[i]->cases; c->shapes; c++) fused_case(all[i], c);
  }
  assert_true(fused >= 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_depthwise), cmocka_unit_test(test_depthwise_refusals), cmocka_unit_test(test_moments_and_global_pools),
    cmocka_unit_test(test_dropout), cmocka_unit_test(test_cross_entropy),
    cmocka_unit_test(test_batch_norm_alone), cmocka_unit_test(test_batch_norm_towers),
    cmocka_unit_test(test_batch_norm_inference), cmocka_unit_test(test_batch_norm_without_parameters),
    cmocka_unit_test(test_batch_norm_refusals), cmocka_unit_test(test_no_second_order), cmocka_unit_test(test_lower),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
