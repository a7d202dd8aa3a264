/*
 * test_sweep.c - the sweep must catch every fault it is there for.
 *
 * An invented operation "twice" (y = 2x) is run by an invented driver whose kernel is right or has one planted fault. The right
 * one must pass and each faulty one must fail; otherwise a green sweep means nothing.
 */
#include "support/sweep.h"

#include "device/device.h"
#include "op/registry.h"
#include "support/check.h"

typedef enum fault {
  NONE, SCALED, SIGN, STALE_INPUT, UNWRITTEN, PAST_END, BEFORE_START, NAN_ELEMENT, OTHER_SECOND_RUN, SPOILS_INPUT, IN_PLACE,
  WORKSPACE_END
} fault;

/* ---- the op ------------------------------------------------------------------------------------------------ */

static yk_code infer(const yk_infer *c) {
  c->out[0] = c->in[0];
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t n = 1;
  for (int i = 0; i < c->din[0].rank; i++) n *= c->din[0].dim[i];
  for (int64_t i = 0; i < n; i++) c->out[0][i] = 2 * c->in[0][i];
  return YK_OK;
}

static const yk_port in[] = { { "x", YK_T(YK_F32), 0, 0 }, { 0 } };
static const yk_port out[] = { { "y", YK_T(YK_F32), 0, 0 }, { 0 } };
static const yk_case cases[] = { { "T[4,7,5]", NULL, 0.5, 1, 0 }, { 0 } };
static const yk_op twice = { .name = "twice", .label = "Twice", .doc = "2x", .version = 1, .in = in, .out = out, .infer = infer,
                             .ref = ref, .cases = cases };

/* ---- the driver: the CPU's, with one kernel --------------------------------------------------------------------- */

enum { N = 4 * 7 * 5 };
static fault planted;
static int launches;
static float old_input[N];

static yk_code fake_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **k, yk_kernel_info *info) {
  (void)dev;
  spec->out[0].layout = YK_LAYOUT_PLAIN;
  info->inplace = 1;
  info->workspace = 64;
  info->impl = "fake:twice";
  launches = 0;
  *k = (yk_kernel *)(void *)old_input;
  return YK_OK;
}

static void compute(float *x, float *y, char *workspace) {
  float first = x[0];
  if (launches++ == 0) memcpy(old_input, x, sizeof old_input);
  for (int i = 0; i < N; i++) {
    float v = planted == STALE_INPUT ? old_input[i] : x[i];
    if (planted == UNWRITTEN && i == N - 1) continue;
    if (planted == IN_PLACE && y == x && i == 1) v = first + 0 * v;
    y[i] = 2 * v;
  }
  if (planted == SCALED) for (int i = 0; i < N; i++) y[i] *= 1.0001f;
  if (planted == SIGN) y[N / 2] = -y[N / 2];
  if (planted == NAN_ELEMENT) y[N / 2] = NAN;
  if (planted == PAST_END) y[N] = 0;
  if (planted == BEFORE_START) ((char *)y)[-1] = 0;
  if (planted == OTHER_SECOND_RUN && launches % 2 == 0) y[3] = nextafterf(y[3], 100);
  if (planted == SPOILS_INPUT && y != x) x[5] = 0;
  if (planted == WORKSPACE_END) workspace[64] = 0;
}

static yk_code fake_launch(yk_kernel *k, yk_stream *s, const yk_mem *arg, uint32_t nargs, yk_mem workspace) {
  (void)k; (void)s;
  CHECK_INT(nargs, 2);
  compute((float *)(void *)((char *)arg[0].base + arg[0].offset), (float *)(void *)((char *)arg[1].base + arg[1].offset),
          (char *)workspace.base + workspace.offset);
  return YK_OK;
}

static void fake_free(yk_kernel *k) { (void)k; }

static sweep_verdict run(fault f, char *why, size_t bytes, uint64_t *values) {
  yk_driver driver = *yk__driver_find("cpu");
  sweep_device d;
  planted = f;
  driver.kernel_prepare = fake_prepare;
  driver.kernel_launch = fake_launch;
  driver.kernel_free = fake_free;
  sweep_open(&driver, 1, &d);
  sweep_verdict verdict = sweep_case(&d, &twice, &cases[0], YK_F32, why, bytes, values);
  sweep_close(&d);
  return verdict;
}

static void the_right_kernel_passes(void **state) {
  char why[512];
  uint64_t values = 0;
  (void)state;
  if (run(NONE, why, sizeof why, &values) != SWEEP_OK) fail_msg("a right kernel was rejected: %s", why);
  CHECK_INT(values, 2 * N);
}

static void every_fault_is_caught(void **state) {
  static const struct { fault f; const char *name, *told; } faults[] = {
    { SCALED, "a result scaled by 1.0001", "expected" }, { SIGN, "one sign flipped", "expected" },
    { STALE_INPUT, "input of an earlier launch", "expected" }, { UNWRITTEN, "an element not written", "output 0, element 139" },
    { PAST_END, "a write past the end", "wrote outside output 0: byte 560" },
    { BEFORE_START, "a write before the start", "wrote outside output 0: byte -1" },
    { NAN_ELEMENT, "a NaN", "got nan" },
    { OTHER_SECOND_RUN, "a second run that differs in one bit", "other bits in a second run" },
    { SPOILS_INPUT, "an input overwritten", "input 0 was overwritten" }, { IN_PLACE, "wrong in place", "in place of input 0" },
    { WORKSPACE_END, "a write past the workspace", "wrote outside the workspace" } };
  (void)state;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    char why[512];
    uint64_t values = 0;
    if (run(faults[i].f, why, sizeof why, &values) != SWEEP_FAIL) fail_msg("not caught: %s", faults[i].name);
    if (!strstr(why, faults[i].told)) fail_msg("%s: told \"%s\", expected \"%s\" in it", faults[i].name, why, faults[i].told);
  }
}

/* A case that cannot be run is a failure as well, not something to pass over. */
static void bad_cases_fail(void **state) {
  static const yk_case bad[] = { { "T[4", NULL, 0, 0, 0 }, { "f33[4]", NULL, 0, 0, 0 }, { "T[4]; T[4]", NULL, 0, 0, 0 } };
  sweep_device d;
  (void)state;
  sweep_open(yk__driver_find("cpu"), 1, &d);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char why[512];
    uint64_t values = 0;
    if (sweep_case(&d, &twice, &bad[i], YK_F32, why, sizeof why, &values) != SWEEP_FAIL)
      fail_msg("case \"%s\" passed", bad[i].shapes);
  }
  yk_error_clear();
  sweep_close(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(the_right_kernel_passes), cmocka_unit_test(every_fault_is_caught),
                                      cmocka_unit_test(bad_cases_fail) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
