/*
 * test_layout.c - how often kernels are prepared while layouts are negotiated.
 *
 * A driver that is the CPU's but for counting shows that the two rounds prepare a kernel once where the first round's
 * still fits, and that every kernel is given back.
 */
#include <yoke/nn.h>
#include "support.h"

static uint32_t prepared, freed;
static const yk_driver *real;

static yk_code counted_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info) {
  yk_code rc = real->kernel_prepare(dev, spec, out, info);
  if (rc == YK_OK) prepared++;
  return rc;
}

static void counted_free(yk_kernel *k) {
  if (k != NULL) freed++;
  real->kernel_free(k);
}

static void open_counted(yk_fixture *f, yk_driver *copy) {
  fixture_open(f, "cpu", 0);
  real = f->devices->at[0].driver;
  memcpy(copy, real, sizeof *copy);
  copy->kernel_prepare = counted_prepare;
  copy->kernel_free = counted_free;
  f->devices->at[0].driver = copy;
  prepared = freed = 0;
}

static void close_counted(yk_fixture *f) {
  yk__plan_free(f->plan);
  f->plan = NULL;
  CHECK_INT(freed, prepared);
  f->devices->at[0].driver = real;
  fixture_close(f);
}

/* The filter's layout is open: the convolution's wish settles it, and its kernel of the dry round serves. */
static void keeps_kernels_of_the_dry_round(void **state) {
  yk_fixture f;
  yk_driver copy;
  yk_desc d = { .dtype = YK_F32, .rank = 4, .dim = { 2, 8, 8, 16 } };
  (void)state;
  open_counted(&f, &copy);
  yk_value x = yk_placeholder(f.g, "x", YK_F32, YK_SHAPE(2, 8, 8, 16)), y = x;
  for (int i = 0; i < 3; i++) {
    char name[8];
    snprintf(name, sizeof name, "w%d", i);
    yk_variable *w = yk_get_variable(f.g, name, YK_F32, YK_SHAPE(3, 3, 16, 16), YK_ONES, NULL);
    y = yk_relu(f.g, yk_conv2d(f.g, y, yk_read(w), &(yk_conv2d_attrs){ .padding = YK_SAME }));
  }
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL));
  assert_true(count_code(f.plan, YK_I_LAUNCH) >= 3);
  CHECK_INT(prepared, count_code(f.plan, YK_I_LAUNCH));
  CHECK_INT(freed, 0);
  close_counted(&f);
}

/* Two readers, of which the second may want another layout than the first: each launch has a kernel, no kernel is lost. */
static void frees_what_does_not_fit(void **state) {
  yk_fixture f;
  yk_driver copy;
  yk_desc d = { .dtype = YK_F32, .rank = 4, .dim = { 2, 8, 8, 16 } };
  (void)state;
  open_counted(&f, &copy);
  yk_value x = yk_placeholder(f.g, "x", YK_F32, YK_SHAPE(2, 8, 8, 16));
  yk_variable *w = yk_get_variable(f.g, "w", YK_F32, YK_SHAPE(3, 3, 16, 16), YK_ONES, NULL);
  yk_value out[2] = { yk_exp(f.g, yk_read(w)), yk_conv2d(f.g, x, yk_read(w), &(yk_conv2d_attrs){ .padding = YK_SAME }) };
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 2, out, 0, NULL));
  CHECK_INT(prepared - freed, count_code(f.plan, YK_I_LAUNCH));
  close_counted(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(keeps_kernels_of_the_dry_round),
    cmocka_unit_test(frees_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
