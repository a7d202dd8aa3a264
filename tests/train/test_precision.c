/*
 * test_precision.c - mixed precision: what a scope computes in which type, and that a small network learns as in f32.
 */
#include <math.h>
#include "train/rig.h"

static yk_dtype type(const yk_graph *g, yk_value v) { return (yk_dtype)yk_value_desc(g, v)->dtype; }

static void test_types(void **state) {
  static const yk_dtype lows[] = { YK_BF16, YK_F16 };
  (void)state;
  for (int i = 0; i < 2; i++) {
    rig r;
    yk_graph *g = rig_new(&r);
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3, 5), YK_GLOROT_UNIFORM, NULL);
    yk_variable *b = yk_get_variable(g, "b", YK_F32, YK_SHAPE(5), YK_ZEROS, NULL);
    yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4, 3)), y = { 0 }, loss = { 0 }, labels = yk_placeholder(g, "l", YK_I32, YK_SHAPE(4));
    yk_gradient grad[2];
    YK_PRECISION(g, lows[i]) {
      y = yk_matmul(yk_named(g, "product"), x, yk_read(w), NULL);
      CHECK_INT(type(g, y), lows[i]);
      if (strcmp(yk_value_name(g, y), "product") != 0) fail_msg("the product is called %s", yk_value_name(g, y));
      y = yk_relu(g, yk_bias_add(g, y, yk_read(b)));
      CHECK_INT(type(g, y), lows[i]);
      CHECK_INT(type(g, yk_mul(g, y, yk_scalar_f32(g, 2))), lows[i]);
      CHECK_INT(type(g, yk_mul(g, yk_scalar_f32(g, 2), y)), lows[i]);
      CHECK_INT(type(g, yk_softmax(g, y)), YK_F32);
      CHECK_INT(type(g, yk_exp(g, y)), YK_F32);
      CHECK_INT(type(g, yk_mul(g, x, x)), YK_F32);
      yk_value f64 = yk_cast(g, x, YK_F64);
      CHECK_INT(type(g, yk_matmul(g, f64, f64, &(yk_matmul_attrs){ .transpose_b = 1 })), YK_F64);
      YK_PRECISION(g, YK_NONE) { CHECK_INT(type(g, yk_matmul(g, x, yk_read(w), NULL)), YK_F32); }
      loss = yk_reduce_mean(g, yk_sparse_softmax_cross_entropy(g, y, labels), NULL);
      CHECK_INT(type(g, loss), YK_F32);
      CHECK_INT(yk_compute_gradients(g, loss, 0, NULL, grad, 2), 2);
    }
    for (int k = 0; k < 2; k++) CHECK_INT(type(g, grad[k].grad), YK_F32);
    CHECK_OK(yk_graph_status(g));
    rig_close(&r);
  }
}

/* Two layers on fixed data, ten steps of Adam. */
static double learn(yk_dtype low, int gpus) {
  rig r;
  yk_graph *g = rig_new(&r);
  float data[32 * 8];
  int32_t label[32];
  yk_tensor *t[2];
  yk_value loss = { 0 }, train = { 0 };
  for (int i = 0; i < 32; i++) {
    label[i] = i % 4;
    for (int k = 0; k < 8; k++) data[i * 8 + k] = (float)sin(i * 8 + k) + (k % 4 == i % 4 ? 1.0f : 0.0f);
  }
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(32, 8), data, &t[0]));
  CHECK_OK(yk_tensor_from(YK_I32, YK_SHAPE(32), label, &t[1]));
  yk_graph_set_seed(g, 3);
  yk_variable *w1 = yk_get_variable(g, "w1", YK_F32, YK_SHAPE(8, 16), YK_GLOROT_UNIFORM, NULL);
  yk_variable *w2 = yk_get_variable(g, "w2", YK_F32, YK_SHAPE(16, 4), YK_GLOROT_UNIFORM, NULL);
  YK_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0") {
    YK_PRECISION(g, low) {
      yk_value h = yk_relu(g, yk_matmul(g, yk_constant(g, t[0]), yk_read(w1), NULL));
      h = yk_matmul(g, h, yk_read(w2), NULL);
      loss = yk_reduce_mean(g, yk_sparse_softmax_cross_entropy(g, h, yk_constant(g, t[1])), NULL);
    }
  }
  train = yk_minimize(g, &YK_ADAM(0.05), loss, NULL);
  CHECK_OK(yk_graph_status(g));
  rig_open(&r, gpus);
  for (int i = 0; i < 10; i++) rig_run(&r, train);
  double x = rig_fetch(&r, loss, 0);
  yk_tensor_free(t[0]);
  yk_tensor_free(t[1]);
  rig_close(&r);
  return x;
}

/* bf16 has 8 bits: a few parts in a thousand of each product, so a loss of about 0.5 differs in the third digit. */
static void test_learning(void **state) {
  (void)state;
  double full = learn(YK_NONE, 0);
  assert_true(full < 1.0);
  for (int gpus = 0; gpus < 2; gpus++) {
    CHECK_NEAR(learn(YK_F16, gpus), full, 3e-3);
    CHECK_NEAR(learn(YK_BF16, gpus), full, 2e-2);
  }
}

static void test_wrong(void **state) {
  (void)state;
  rig r;
  yk_graph *g = rig_new(&r);
  yk_precision_push(g, YK_F32);
  CHECK_INT(yk_graph_status(g), YK_EINVAL);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_types), cmocka_unit_test(test_learning), cmocka_unit_test(test_wrong) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
