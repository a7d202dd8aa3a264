/*
 * `yoke plan`: numbers that a run confirms, a step that does not fit, and machines that are not here.
 */
#include "run_yoke.h"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

/* Number behind `key` in the object of `device`. */
static double of_device(const char *text, const char *device, const char *key) {
  const char *at = strstr(text, "\"memory\":[");
  at = at != NULL ? strstr(at, device) : NULL;
  if (at == NULL) fail_msg("no %s in %s", device, text);
  return json_number(at, key);
}

/* The second GPU tests no pictures: what the run tells of it is what was planned. */
static void test_memory(void **state) {
  (void)state;
  char *plan = SUCCEEDS("plan", "cifar10", "--batch", "6", "--virtual-gpus", "2:64MiB", "--memory-growth", "--no-time", "--json");
  char *run = SUCCEEDS("train", "cifar10", "--data", "set", "--batch", "6", "--virtual-gpus", "2:64MiB", "--memory-growth", "--steps", "2",
                       "--out", "m", "--json");
  const char *end = last_line(run);
  check_json(plan, false);
  CHECK_INT(of_device(plan, "GPU:1", "peak_held"), of_device(end, "GPU:1", "peak_held"));
  CHECK_INT(of_device(plan, "GPU:1", "peak_in_use"), of_device(end, "GPU:1", "peak_in_use"));
  CHECK_INT(json_number(plan, "parameters"), 1068298);
  assert_true(json_number(plan, "backward") > json_number(plan, "forward") && json_number(plan, "forward") > 1e8);
  assert_true(json_number(plan, "copied_bytes") > 2 * 1068298 * 4.0);
  assert_non_null(strstr(plan, "\"step_ms\":null"));
  assert_non_null(strstr(plan, "\"why_not\":\"--no-time\""));
  free(plan);
  free(run);
}

static void test_time(void **state) {
  (void)state;
  char *json = SUCCEEDS("plan", "mlp", "--batch", "4", "--virtual-gpus", "2:128MiB", "--json");
  check_json(json, false);
  assert_true(json_number(json, "step_ms") > 0);
  assert_true(json_number(json, "examples_per_second") > 0);
  assert_non_null(strstr(json, "\"how\":\"kernels timed\""));
  free(json);
  char *text = SUCCEEDS("plan", "mlp", "--batch", "4");
  assert_non_null(strstr(text, "step time to expect: "));
  assert_non_null(strstr(text, "mlp on /cpu:0: global batch 4; strategy home\n"));
  free(text);
}

/* Does the step fit in so much of each GPU? What the status, the verdict and `fits` say must be the same. */
static bool fits_in(const char *gpus) {
  yoke_result r;
  YOKE(&r, "plan", "mlp", "--batch", "64", "--virtual-gpus", gpus, "--no-time", "--json");
  bool yes = r.status == 0, none = strstr(r.out, "\"fits\":false") == NULL;
  bool says = strstr(r.out, "\"verdict\":\"the step fits\"") != NULL, complains = strstr(r.err, "the step does not fit on") != NULL;
  if (yes != none || yes != says || yes == complains)
    fail_msg("with %s: status %d\n%s\n%s", gpus, r.status, r.out, r.err);
  yoke_free(&r);
  return yes;
}

/* Where memory hardly suffices, some of it may lie in pieces that are too small: the plan is refused as the run is. */
static void test_tight(void **state) {
  yoke_result r;
  char gpus[32] = "", less[32];
  int mib = 32;
  (void)state;
  do {
    memcpy(less, gpus, sizeof less);
    snprintf(gpus, sizeof gpus, "2:%dMiB", mib);
  } while (!fits_in(gpus) && ++mib < 128);
  if (mib == 32 || mib == 128) fail_msg("at %d MiB the plan says the same as before", mib);
  YOKE(&r, "train", "mlp", "--batch", "64", "--virtual-gpus", less, "--steps", "1", "--out", "less", "--quiet");
  CHECK_INT(r.status, 1);
  if (strstr(r.err, "the step does not fit") == NULL && strstr(r.err, "bytes asked for") == NULL)
    fail_msg("with %s it says: %s", less, r.err);
  yoke_free(&r);
  char *json = SUCCEEDS("plan", "mlp", "--batch", "64", "--virtual-gpus", gpus, "--json");
  assert_non_null(strstr(json, "\"how\":\"kernels timed\""));
  free(json);
}

static void test_does_not_fit(void **state) {
  yoke_result r;
  (void)state;
  YOKE(&r, "plan", "mlp", "--virtual-gpus", "2:2MiB");
  CHECK_INT(r.status, 1);
  if (strstr(r.err, "yoke plan: the step does not fit on 2 of 3 devices: /gpu:0 needs ") == NULL) fail_msg("it says: %s", r.err);
  assert_non_null(strstr(r.out, "DOES NOT FIT"));
  assert_non_null(strstr(r.out, "step time to expect: not known; the step does not fit"));
  yoke_free(&r);
}

#define HEAD "{\"format\":\"yoke-machine\",\"version\":1,\"devices\":["
#define SPEED ",\"gflops_f32\":1000,\"gbytes_per_s\":100}"

static void test_elsewhere(void **state) {
  static const char fast[] = HEAD "{\"name\":\"/cpu:0\",\"bytes_limit\":64000000000" SPEED
    ",{\"name\":\"/gpu:0\",\"driver\":\"cuda\",\"model\":\"a card\",\"bytes_limit\":8000000000" SPEED "]}";
  static const char unknown[] = HEAD "{\"name\":\"/cpu:0\",\"bytes_limit\":64000000000},"
    "{\"name\":\"/gpu:0\",\"driver\":\"cuda\",\"model\":\"a card\",\"bytes_limit\":8000000000}]}";
  (void)state;
  write_file("fast.json", fast, strlen(fast));
  write_file("unknown.json", unknown, strlen(unknown));
  char *plan = SUCCEEDS("plan", "resnet20", "--rehearse", "fast.json", "--json");
  double flops = json_number(plan, "forward") + json_number(plan, "backward");
  assert_non_null(strstr(plan, "\"how\":\"speeds of the file\""));
  if (!(json_number(plan, "step_ms") > flops / 1000e9 * 1e3)) fail_msg("faster than its arithmetic: %s", plan);
  CHECK_INT(of_device(plan, "GPU:0", "peak_held"), 8000000000);        /* a pool takes all of its limit at once */
  free(plan);
  plan = SUCCEEDS("plan", "resnet20", "--rehearse", "unknown.json");
  assert_non_null(strstr(plan, "rehearsed: the machine of unknown.json"));
  assert_non_null(strstr(plan, "step time to expect: not known; unknown.json has no speed of /"));
  free(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory), cmocka_unit_test(test_time), cmocka_unit_test(test_tight),
    cmocka_unit_test(test_does_not_fit), cmocka_unit_test(test_elsewhere),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
