/*
 * test_reference.c - the reference driver runs any op of the registry through its double reference.
 *
 * What is checked is the driver's part: conversions, ports without data, variables written in place, failures. That
 * the references themselves are right is the sweep's business.
 */
#include <math.h>
#include <stdlib.h>
#include "backend/ref/ref.h"
#include "rig.h"
#include "tensor/desc.h"

static const rig_variant variant = { "ref", YK_STREAM_INLINE, 1, 0 };
enum { MOST = 8 };

/* Prepare and launch `op` on host arrays: data[i] NULL = no data. Every array is copied in, and back out. */
static yk_code run_op(const char *op, const void *attrs, uint16_t nin, uint16_t nout, yk_desc *desc, void *const *data) {
  rig r;
  rig_open(&r, &variant);
  yk_mem arg[MOST] = { { 0 } }, workspace = { 0 };
  yk_kernel *k = NULL;
  yk_kernel_info info = { .size = sizeof info };
  for (int i = nin; i < nin + nout; i++) desc[i].layout = YK_LAYOUT_ANY;
  yk_kernel_spec spec = { .size = sizeof spec, .op = op, .op_version = 1, .nin = nin, .nout = nout, .attrs = attrs,
                          .in = desc, .out = desc + nin };
  OK(r.d->kernel_prepare(r.dev, &spec, &k, &info));
  OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, info.workspace, &workspace));
  for (int i = 0; i < nin + nout; i++) {
    uint64_t bytes;
    assert_int_equal(desc[i].layout, YK_LAYOUT_PLAIN);
    if (!data[i]) continue;
    OK(r.d->desc_bytes(r.dev, &desc[i], &bytes));
    OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, bytes, &arg[i]));
    OK(r.d->copy_in(r.s, arg[i], data[i]));
  }
  yk_code rc = r.d->kernel_launch(k, r.s, arg, (uint32_t)nin + nout, workspace);
  for (int i = 0; i < nin + nout; i++)
    if (data[i]) OK(r.d->copy_out(r.s, data[i], arg[i]));
  yk_code last = r.d->stream_sync(r.s, NULL);
  assert_int_equal(rc, last);
  for (int i = 0; i < nin + nout; i++) r.d->mem_free(r.dev, arg[i]);
  r.d->mem_free(r.dev, workspace);
  r.d->kernel_free(k);
  rig_close(&r);
  return rc;
}

static void test_add(void **state) {
  (void)state;
  float a[6] = { 1, 2, 3, 4, 5, 6 }, b[3] = { 10, 20, 30 }, y[6] = { 0 };
  yk_desc d[] = { { YK_F32, 2, 0, { 2, 3 } }, { YK_F32, 1, 0, { 3 } }, { YK_F32, 2, 0, { 2, 3 } } };
  OK(run_op("add", NULL, 2, 1, d, (void *const[]){ a, b, y }));
  for (int i = 0; i < 6; i++) assert_float_equal(y[i], a[i] + b[i % 3], 0);
}

static void test_variables(void **state) {
  (void)state;
  float w[2] = { 1, 2 }, v[2] = { 10, 20 }, y[2] = { 0 };
  yk_desc d[] = { { YK_F32, 1, 0, { 2 } }, { YK_F32, 1, 0, { 2 } }, { YK_F32, 1, 0, { 2 } } };
  OK(run_op("assign_add", NULL, 2, 1, d, (void *const[]){ w, v, y }));
  assert_true(w[0] == 11 && w[1] == 22 && v[0] == 10 && y[1] == 22);

  /* Two variables of different sizes in one update, and an output without data. */
  double w0[1] = { 5 }, w1[3] = { 1, 2, 3 }, g0[1] = { 2 }, g1[3] = { 1, 1, 4 }, lr[1] = { 0.5 };
  yk_desc u[] = { { YK_F64, 1, 0, { 1 } }, { YK_F64, 1, 0, { 3 } }, { YK_F64, 1, 0, { 1 } }, { YK_F64, 1, 0, { 3 } }, { YK_F64,
                                                                                                                        0, 0,
      { 0 } },
                  { YK_NONE, 0, 0, { 0 } } };
  OK(run_op("sgd_update", &(yk_update_attrs){ .n = 2 }, 5, 1, u, (void *const[]){ w0, w1, g0, g1, lr, NULL }));
  assert_true(w0[0] == 4 && w1[0] == 0.5 && w1[1] == 1.5 && w1[2] == 1);
  assert_true(g0[0] == 2 && g1[2] == 4 && lr[0] == 0.5);
}

static void test_no_data(void **state) {
  (void)state;
  int64_t y[4] = { 9, 9, 9, 9 };
  yk_desc d[] = { { YK_I64, 1, 0, { 4 } }, { YK_I64, 1, 0, { 4 } } };
  OK(run_op("zeros_like", NULL, 1, 1, d, (void *const[]){ NULL, y }));       /* only the shape of its input counts */
  for (int i = 0; i < 4; i++) assert_int_equal(y[i], 0);
  float none[1] = { 7 };
  yk_desc e[] = { { YK_F32, 2, 0, { 0, 3 } }, { YK_F32, 2, 0, { 0, 3 } } };
  OK(run_op("neg", NULL, 1, 1, e, (void *const[]){ none, none }));
  assert_true(none[0] == 7);
}

static void test_failure(void **state) {
  (void)state;
  float x[3] = { 1, NAN, 2 }, y[3] = { 5, 5, 5 };
  yk_desc d[] = { { YK_F32, 1, 0, { 3 } }, { YK_F32, 1, 0, { 3 } } };
  FAILS(EINVAL, run_op("check_numerics", &(yk_check_attrs){ "after layer 3" }, 1, 1, d, (void *const[]){ x, y }));
  SAYS("after layer 3");
}

/* The driver's conversions and the core's are two pieces of code with one meaning. */
static void test_conversions(void **state) {
  (void)state;
  static const double values[] = { 0, -0.0, 1, -1, 0.5, 2.5, -2.5, 65504, 65520, 1e-8, 3e38, 1e300, -1e300, 255, 256, -7,
                                   2147483647.0,
                                   2147483648.0, 9.3e18, -9.3e18, 4503599627370497.0,
                                   1.003906250001, 1.00048828125001, INFINITY, -INFINITY, NAN };
  enum { N = sizeof values / sizeof values[0] };
  for (int t = YK_F32; t < YK_NDTYPES; t++) {
    uint64_t mine[N] = { 0 }, core[N] = { 0 };
    double back_mine[N], back_core[N];
    yk__ref_round((uint8_t)t, values, mine, N);
    yk__from_double((yk_dtype)t, values, core, N);
    yk__ref_widen((uint8_t)t, mine, back_mine, N);
    yk__to_double((yk_dtype)t, core, back_core, N);
    for (int i = 0; i < N; i++)
      if (!(back_mine[i] == back_core[i] || (isnan(back_mine[i]) && isnan(back_core[i]))))
        fail_msg("%s of %g: the driver has %.17g, the core %.17g", yk_dtype_name((yk_dtype)t), values[i], back_mine[i],
                 back_core[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_add), cmocka_unit_test(test_variables), cmocka_unit_test(test_no_data), cmocka_unit_test(test_failure),
    cmocka_unit_test(test_conversions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
