/*
 * test_math_build.c - the builders of <yoke/math.h> make the nodes they say, with values that the references confirm.
 *
 * Only what a builder does beyond naming an op: constants, stacks, flattening, defaults, updates of several
 * variables, gradients through unknown shapes, and how a mistake is reported.
 */
#include <yoke/math.h>
#include "support/check.h"
#include "support/ref_eval.h"

static yk_graph *g;
static ref_eval *e;

static int setup(void **state) {
  (void)state;
  g = NULL;
  CHECK_OK(yk_graph_new(&g));
  e = ref_eval_new(g);
  return e ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  ref_eval_free(e);
  yk_graph_free(g);
  return 0;
}

static void expect(yk_value v, yk_shape shape, const double *want) {
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(ref_eval_run(e, 1, &v));
  const yk_desc *d = ref_eval_desc(e, v);
  int64_t n = 1;
  CHECK_INT(d->rank, shape.rank);
  for (uint32_t k = 0; k < shape.rank; k++) {
    CHECK_INT(d->dim[k], shape.dim[k]);
    n *= shape.dim[k];
  }
  for (int64_t i = 0; i < n; i++) CHECK_NEAR(ref_eval_data(e, v)[i], want[i], 1e-6);
}

#define EXPECT(v, shape, ...) expect(v, shape, (const double[]){ __VA_ARGS__ })

static void constants(void **state) {
  (void)state;
  const int32_t ids[] = { 3, -1 };
  yk_tensor *t;
  CHECK_OK(yk_tensor_from(YK_F64, YK_SHAPE(2), (const double[]){ 1.5, 2.5 }, &t));
  yk_value kept = yk_constant(g, t);
  yk_tensor_free(t);                                /* the node holds its own reference */
  EXPECT(kept, YK_SHAPE(2), 1.5, 2.5);
  EXPECT(yk_constant_f32(g, YK_SHAPE(2, 1), ((const float[]){ 1, 2 })), YK_SHAPE(2, 1), 1, 2);
  EXPECT(yk_constant_from(g, YK_I32, YK_SHAPE(2), ids), YK_SHAPE(2), 3, -1);
  EXPECT(yk_scalar_f32(g, 0.25f), YK_SCALAR, 0.25);
  EXPECT(yk_scalar(g, YK_I64, 7), YK_SCALAR, 7);
  EXPECT(yk_fill(g, YK_BF16, YK_SHAPE(3), 0.5), YK_SHAPE(3), 0.5, 0.5, 0.5);
  CHECK_INT(yk_value_desc(g, yk_fill(g, YK_BF16, YK_SHAPE(3), 0.5))->dtype, YK_BF16);
}

static void joining(void **state) {
  (void)state;
  yk_value a = yk_constant_f32(g, YK_SHAPE(2), ((const float[]){ 1, 2 }));
  yk_value b = yk_constant_f32(g, YK_SHAPE(2), ((const float[]){ 3, 4 }));
  yk_value both[] = { a, b }, parts[2], pieces[3];
  yk_value rows = yk_stack(g, 2, both, 0), columns = yk_stack(g, 2, both, -1);
  EXPECT(rows, YK_SHAPE(2, 2), 1, 2, 3, 4);
  EXPECT(columns, YK_SHAPE(2, 2), 1, 3, 2, 4);
  yk_unstack(g, columns, -1, 2, parts);
  EXPECT(parts[0], YK_SHAPE(2), 1, 2);
  EXPECT(parts[1], YK_SHAPE(2), 3, 4);
  yk_value four = yk_concat(g, 2, both, 0);
  yk_split(g, four, 0, 3, ((const int64_t[]){ 1, 2, 1 }), pieces);
  EXPECT(pieces[1], YK_SHAPE(2), 2, 3);
  EXPECT(yk_slice(g, rows, ((const int64_t[]){ 0, 1 }), ((const int64_t[]){ -1, 1 })), YK_SHAPE(2, 1), 2, 4);
  EXPECT(yk_pad(g, a, ((const int64_t[]){ 1 }), ((const int64_t[]){ 0 }), 9), YK_SHAPE(3), 9, 1, 2);
  EXPECT(yk_tile(g, a, ((const int64_t[]){ 2 })), YK_SHAPE(4), 1, 2, 1, 2);
  EXPECT(yk_transpose(g, rows, NULL), YK_SHAPE(2, 2), 1, 3, 2, 4);
  EXPECT(yk_transpose(g, rows, ((const int32_t[]){ 0, 1 })), YK_SHAPE(2, 2), 1, 2, 3, 4);
  EXPECT(yk_top_k(g, four, 2, pieces), YK_SHAPE(2), 4, 3);
  EXPECT(pieces[1], YK_SHAPE(2), 3, 2);
}

static void flattening(void **state) {
  (void)state;
  const double data[12] = { 0 };
  yk_value batch = yk_placeholder(g, "batch", YK_F32, YK_SHAPE(-1, 2, 3));
  yk_value flat = yk_flatten(g, batch), one = yk_flatten(g, yk_placeholder(g, NULL, YK_F32, YK_SHAPE(4)));
  CHECK_OK(yk_graph_status(g));
  assert_string_equal(yk_value_name(g, batch), "batch");
  CHECK_INT(yk_value_desc(g, flat)->dim[0], -1);
  CHECK_INT(yk_value_desc(g, flat)->dim[1], 6);
  CHECK_INT(yk_value_desc(g, one)->rank, 2);
  CHECK_INT(yk_value_desc(g, one)->dim[1], 1);
  CHECK_OK(ref_eval_feed(e, batch, &YK_SHAPE(2, 2, 3), data));
  CHECK_OK(ref_eval_run(e, 1, &flat));
  CHECK_INT(ref_eval_desc(e, flat)->dim[0], 2);
  yk_flatten(g, yk_placeholder(g, NULL, YK_F32, YK_SHAPE(-1, -1)));
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "flatten: the batch and another dimension are unknown");
}

/* Two variables of different shapes in one node; then the run counter's worth of momentum. */
static void updating(void **state) {
  (void)state;
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_CONSTANT(1), NULL);
  yk_variable *b = yk_get_variable(g, "b", YK_F32, YK_SCALAR, YK_CONSTANT(2), NULL);
  yk_variable *a = yk_get_variable(g, "a", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL);
  yk_value grads[] = { yk_constant_f32(g, YK_SHAPE(2), ((const float[]){ 10, 20 })), yk_scalar_f32(g, 4) };
  yk_value init = yk_global_variables_initializer(g), lr = yk_scalar_f32(g, 0.1f), m = yk_scalar_f32(g, 0.5f);
  yk_value sgd = yk_sgd_update(g, 2, ((yk_variable *[]){ w, b }), grads, lr);
  yk_value momentum = yk_momentum_update(g, 1, &w, &a, grads, lr, m, false);
  yk_value average = yk_ema_update(g, 1, &a, &grads[0], m);
  CHECK_OK(yk_graph_status(g));
  CHECK_CODE(ref_eval_run(e, 1, &sgd), YK_EINVAL, "contents");
  CHECK_OK(ref_eval_run(e, 1, &init));
  CHECK_OK(ref_eval_run(e, 1, &sgd));
  CHECK_NEAR(ref_eval_variable(e, w)[0], 0, 1e-6);
  CHECK_NEAR(ref_eval_variable(e, w)[1], -1, 1e-6);
  CHECK_NEAR(ref_eval_variable(e, b)[0], 1.6, 1e-6);
  CHECK_OK(ref_eval_run(e, 1, &momentum));
  CHECK_OK(ref_eval_run(e, 1, &momentum));
  CHECK_NEAR(ref_eval_variable(e, a)[0], 15, 1e-6);
  CHECK_NEAR(ref_eval_variable(e, w)[0], -2.5, 1e-6);
  CHECK_OK(ref_eval_run(e, 1, &average));
  CHECK_NEAR(ref_eval_variable(e, a)[0], 12.5, 1e-6);
}

/* The batch is unknown while the gradient is built: sums over the broadcast must still come out. */
static void gradients_of_unknown_shapes(void **state) {
  (void)state;
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1, 2)), b = yk_placeholder(g, "b", YK_F32, YK_SHAPE(2));
  yk_value y = yk_pow(g, yk_add(g, x, b), yk_scalar_f32(g, 2)), mean = yk_reduce_mean(g, y, NULL);
  yk_value xs[] = { x, b }, dx[2];
  yk_gradients(g, 1, &mean, NULL, 2, xs, NULL, dx);
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(ref_eval_feed(e, x, &YK_SHAPE(3, 2), (const double[]){ 1, 2, 3, 4, 5, 6 }));
  CHECK_OK(ref_eval_feed(e, b, NULL, (const double[]){ 1, 1 }));
  EXPECT(dx[0], YK_SHAPE(3, 2), 4.0 / 6, 1, 8.0 / 6, 10.0 / 6, 2, 14.0 / 6);
  EXPECT(dx[1], YK_SHAPE(2), 4, 5);
}

/* where() must keep the NaN of the branch not taken out of the gradient: d/dx of x > 0 ? sqrt(x) : 0 at 0. */
static void no_nan_from_the_other_branch(void **state) {
  (void)state;
  yk_value x = yk_placeholder(g, "x", YK_F64, YK_SHAPE(2)), zero = yk_scalar(g, YK_F64, 0), dx;
  yk_value y = yk_where(g, yk_greater(g, x, zero), yk_div(g, yk_sqrt(g, x), x), yk_zeros_like(g, x));
  yk_gradients(g, 1, &y, NULL, 1, &x, NULL, &dx);
  CHECK_OK(ref_eval_feed(e, x, NULL, (const double[]){ 4, 0 }));
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(ref_eval_run(e, 1, &dx));
  CHECK_NEAR(ref_eval_data(e, dx)[0], -1.0 / 16, 1e-9);
  CHECK_NEAR(ref_eval_data(e, dx)[1], 0, 0);
}

static void mistakes_name_the_line(void **state) {
  (void)state;
  yk_value a = yk_fill(g, YK_F32, YK_SHAPE(2), 1), b = yk_fill(g, YK_F32, YK_SHAPE(3), 1);
  assert_int_equal(yk_relu(g, yk_add(g, a, b)).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "test_math_build.c:");
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "f32[3]");
}

static void nothing_given(void **state) {
  (void)state;
  yk_value out[2] = { { 5 }, { 5 } };
  assert_int_equal(yk_dequeue(g, NULL, 3, out).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "no source");
}

/* After a mistake everything is a no-op that returns {0}. */
static void quiet_after_a_mistake(void **state) {
  (void)state;
  yk_value none = { 0 }, out[3], pair[] = { none, none };
  yk_exp(g, none);
  assert_int_not_equal(yk_graph_status(g), YK_OK);
  yk_error_clear();
  assert_int_equal(yk_stack(g, 2, pair, 0).id, 0);
  assert_int_equal(yk_split(g, none, 0, 3, NULL, out).id, 0);
  assert_int_equal(yk_unstack(g, none, -1, 3, out).id, 0);
  assert_int_equal(yk_flatten(g, none).id, 0);
  assert_int_equal(yk_transpose(g, none, (const int32_t[]){ 0 }).id, 0);
  assert_int_equal(yk_slice(g, none, (const int64_t[]){ 0 }, (const int64_t[]){ 0 }).id, 0);
  assert_int_equal(yk_top_k(g, none, 2, out).id, 0);
  assert_int_equal(yk_random_uniform(g, NULL).id, 0);
  assert_int_equal(yk_scalar_f32(g, 1).id, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(constants), TEST(joining), TEST(flattening), TEST(updating), TEST(gradients_of_unknown_shapes),
    TEST(no_nan_from_the_other_branch), TEST(mistakes_name_the_line), TEST(nothing_given), TEST(quiet_after_a_mistake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
