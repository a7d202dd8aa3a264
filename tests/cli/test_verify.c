/*
 * `yoke verify` at the command line: the verdict is in the last line, in JSON and in the exit status.
 */
#include "run_yoke.h"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

#define NET "verify", "mlp", "--data", "set", "--batch", "7"

static void test_verified(void **state) {
  (void)state;
  char *text = SUCCEEDS(NET, "--virtual-gpus", "3:256MiB");
  assert_non_null(strstr(text, "mlp on /gpu:0 /gpu:1 /gpu:2: global batch 7 = 3 + 2 + 2; 3 steps, tolerance 1e-05"));
  assert_non_null(strstr(text, "against equal replicas on one device: the same\n"));
  assert_non_null(strstr(text, "against one replica with the whole batch: the same\n"));
  assert_string_equal(last_line(text), "verified: losses, gradients and values agree to 1e-05");
  free(text);
  char *json = SUCCEEDS(NET, "--devices", "cpu:0,cpu:1", "--steps", "1", "--optimizer", "adam", "--json");
  check_json(json, false);
  assert_non_null(strstr(json, "\"verified\":true"));
  assert_non_null(strstr(json, "{\"name\":\"hidden1/weights\",\"absolute\":"));
  CHECK_INT(json_number(json, "steps"), 1);
  free(json);
}

/* Nothing rounds alike to the last bit when sums are cut in three. */
static void test_not_verified(void **state) {
  yoke_result r;
  (void)state;
  YOKE(&r, NET, "--virtual-gpus", "3:256MiB", "--tolerance", "0");
  CHECK_INT(r.status, 1);
  if (strstr(r.err, "yoke verify: NOT the same as one replica with the whole batch: the gradient of ") == NULL) fail_msg("it says: %s", r.err);
  assert_non_null(strstr(r.out, "  DIFFERS\n"));
  yoke_free(&r);
}

/* By the rounding of the type: right in its own, and wrong by that of f32. */
static void test_precision(void **state) {
  static const struct { const char *type, *tolerance; } types[] = { { "bf16", "0.015625" }, { "f16", "0.00195312" } };
  yoke_result r;
  char said[100];
  (void)state;
  setenv("YOKE_VERBOSE", "1", 1);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char *out = SUCCEEDS(NET, "--virtual-gpus", "3:256MiB", "--precision", types[i].type);
    snprintf(said, sizeof said, "; in %s; 3 steps, tolerance %s of", types[i].type, types[i].tolerance);
    if (strstr(out, said) == NULL) fail_msg("no '%s' in %s", said, out);
    snprintf(said, sizeof said, "verified: losses, gradients and values agree to %s", types[i].tolerance);
    assert_string_equal(last_line(out), said);
    free(out);
    YOKE(&r, NET, "--virtual-gpus", "3:256MiB", "--precision", types[i].type, "--tolerance", "1e-5");
    CHECK_INT(r.status, 1);
    if (strstr(r.err, "NOT the same as one replica with the whole batch") == NULL) fail_msg("%s: %s", types[i].type, r.err);
    yoke_free(&r);
  }
  /* Gradients that overflow under the first scales, sooner for the whole batch than for its parts. */
  char *out = SUCCEEDS("verify", "resnet20", "--data", "set", "--batch", "8", "--devices", "cpu:0,cpu:1", "--replicas", "8", "--precision", "f16",
                       "--steps", "1", "--json");
  assert_non_null(strstr(out, "\"precision\":\"f16\""));
  free(out);
  unsetenv("YOKE_VERBOSE");
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "less than one example for each of 8 replicas", NET, "--virtual-gpus", "8:64MiB");
  FAILS(2, "expected at most 32 to verify", NET, "--steps", "33");
  FAILS(2, "--tolerance '2': expected a number from 0 to 1", NET, "--tolerance", "2");
  FAILS(3, "no usable GPU for /gpu:1", NET, "--devices", "gpu:1");
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_verified), cmocka_unit_test(test_not_verified), cmocka_unit_test(test_refused),
                                      cmocka_unit_test(test_precision) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
