/*
 * test_loss_scale.c - f32 masters trained with gradients in f16: overflow is skipped entirely, the scale halves and doubles.
 *
 * Every number is a power of two or a small multiple of one, so that results are exact.
 */
#include "train/rig.h"

static void step(rig *r, yk_value x, double value, yk_value op) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2), (const float[]){ (float)value, (float)value }, &t));
  CHECK_OK(yk_session_run(r->s, 1, &(yk_feed){ x, t }, 0, NULL, 1, &op, NULL));
  yk_tensor_free(t);
}

static void test_overflow(void **state) {
  /* x; then w, momentum, scale, good steps, skipped, step: the gradient is x, in f16 x times the scale, which overflows from 65520 on */
  static const double rows[][7] = {
    { 1, 0.5, 1, 32768, 1, 0, 1 },  { 4, 0.5, 1, 16384, 0, 1, 1 },  { 4, 0.5, 1, 8192, 0, 2, 1 }, { 4, -1.75, 4.5, 8192, 1, 2, 2 },
    { 0, -2.875, 2.25, 8192, 2, 2, 3 }, { 0, -3.4375, 1.125, 16384, 0, 2, 4 },
  };
  (void)state;
  for (int gpus = 0; gpus < 2; gpus++) {
    rig r;
    yk_loss_scale s;
    yk_gradient grad[1];
    yk_optimizer o = YK_MOMENTUM(0.5, 0.5);
    yk_graph *g = rig_new(&r);
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_ONES, NULL), *count = yk_global_step(g);
    yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(2)), loss = { 0 }, ok, both[2] = { { 0 } };
    YK_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0") {
      yk_value low = yk_mul(g, yk_cast(g, yk_read(w), YK_F16), yk_cast(g, x, YK_F16));
      loss = yk_reduce_sum(g, yk_cast(g, low, YK_F32), NULL);
    }
    yk_loss_scale_new(g, 0, 3, &s);
    CHECK_INT(yk_compute_gradients(g, yk_scale_loss(g, &s, loss), 1, &w, grad, 1), 1);
    yk_unscale_gradients(g, &s, 1, grad);
    ok = yk_all_good(g, 0, NULL, 1, grad, false);
    YK_GUARD(g, ok) { both[0] = yk_apply_gradients(g, &o, 1, grad, count); }
    both[1] = yk_loss_scale_update(g, &s, ok);
    yk_value train = yk_group(g, 2, both);
    rig_open(&r, gpus);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      step(&r, x, rows[i][0], train);
      CHECK_NEAR(rig_value(&r, w, 1), rows[i][1], 0);
      CHECK_NEAR(rig_value(&r, rig_find(g, "w/Momentum"), 1), rows[i][2], 0);
      CHECK_NEAR(rig_value(&r, s.scale, 0), rows[i][3], 0);
      CHECK_NEAR(rig_value(&r, s.good_steps, 0), rows[i][4], 0);
      CHECK_NEAR(rig_value(&r, s.skipped, 0), rows[i][5], 0);
      CHECK_NEAR(rig_value(&r, count, 0), rows[i][6], 0);
    }
    rig_close(&r);
  }
}

/* 1e-9 is nothing in f16, and 3e-5 after scaling. */
static void test_small(void **state) {
  (void)state;
  for (int scaled = 0; scaled < 2; scaled++) {
    rig r;
    yk_loss_scale s;
    yk_gradient grad[1];
    yk_graph *g = rig_new(&r);
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
    yk_value low = yk_cast(g, yk_cast(g, yk_read(w), YK_F16), YK_F32), loss = yk_mul(g, yk_reduce_sum(g, low, NULL), yk_scalar_f32(g, 1e-9f));
    yk_loss_scale_new(g, 0, 0, &s);
    yk_compute_gradients(g, scaled ? yk_scale_loss(g, &s, loss) : loss, 1, &w, grad, 1);
    if (scaled) yk_unscale_gradients(g, &s, 1, grad);
    rig_open(&r, 0);
    CHECK_NEAR(rig_fetch(&r, grad[0].grad, 0), scaled ? 1e-9 : 0, scaled ? 1e-12 : 0);
    rig_close(&r);
  }
}

static void test_wrong(void **state) {
  (void)state;
  rig r;
  yk_loss_scale s;
  yk_graph *g = rig_new(&r);
  yk_loss_scale_new(g, -1, 0, &s);
  CHECK_INT(yk_graph_status(g), YK_EINVAL);
  assert_null(s.scale);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_overflow), cmocka_unit_test(test_small), cmocka_unit_test(test_wrong) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
