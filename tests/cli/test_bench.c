/*
 * `yoke bench`: the sets of devices that counts and lists stand for, the parts of a step, and what is refused. Times are not judged.
 */
#include "run_yoke.h"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

#define NET "bench", "mlp", "--data", "set", "--batch", "6", "--steps", "2"

static int count(const char *text, const char *what) {
  int n = 0;
  for (; (text = strstr(text, what)) != NULL; text++) n++;
  return n;
}

/* The lists of devices in the results, one behind the other. */
static void expect_sets(const char *json, const char *want) {
  char got[400] = "";
  check_json(json, false);
  for (const char *p = json; (p = strstr(p, "{\"devices\":\"")) != NULL; p++)
    snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s ", (int)strcspn(p + 12, "\""), p + 12);
  if (strcmp(got, want) != 0) fail_msg("measured were %s, expected %s", got, want);
}

static void test_sets(void **state) {
  static const struct { const char *devices, *want; } table[] = {
    { "1,2", "gpu:0 gpu:0,gpu:1 " }, { "2", "gpu:0,gpu:1 " }, { "gpu:0,gpu:1", "gpu:0 gpu:0,gpu:1 " }, { "gpu:1", "gpu:1 " },
    { "gpu:1;cpu:0;gpu:0,gpu:1", "gpu:1 cpu:0 gpu:0,gpu:1 " },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    char *json = SUCCEEDS(NET, "--virtual-gpus", "2:128MiB", "--devices", table[i].devices, "--json");
    expect_sets(json, table[i].want);
    free(json);
  }
  char *json = SUCCEEDS(NET, "--virtual-gpus", "2:128MiB", "--json");
  expect_sets(json, "gpu:0 gpu:0,gpu:1 ");
  free(json);
  json = SUCCEEDS(NET, "--devices", "1,2", "--json");
  expect_sets(json, "cpu:0 cpu:0,cpu:1 ");
  free(json);
}

/* Of two GPUs and the variables' home: who does what. */
static void test_split(void **state) {
  (void)state;
  char *json = SUCCEEDS(NET, "--virtual-gpus", "2:128MiB", "--devices", "2", "--json");
  const char *home = strstr(json, "{\"device\":\"/cpu:0\""), *first = strstr(json, "{\"device\":\"/gpu:0\"");
  const char *second = strstr(json, "{\"device\":\"/gpu:1\"");
  if (home == NULL || first == NULL || second == NULL) fail_msg("not all devices: %s", json);
  assert_true(json_number(home, "compute_ms") == 0 && json_number(home, "reduce_ms") > 0 && json_number(home, "input_ms") > 0);
  assert_true(json_number(first, "compute_ms") > 0 && json_number(first, "copies_ms") > 0 && json_number(first, "input_ms") == 0);
  assert_true(json_number(second, "compute_ms") > 0);
  double sum = 0, traced = json_number(json, "traced_ms");
  static const char *const parts[] = { "compute_ms", "reduce_ms", "copies_ms", "input_ms", "idle_ms" };
  for (size_t i = 0; i < 5; i++) sum += json_number(second, parts[i]);
  if (sum < 0.999 * traced) fail_msg("the parts of a step are %g ms, the step has %g", sum, traced);
  CHECK_INT(json_number(json, "steps"), 2);
  assert_non_null(strstr(json, "\"verdict\":\""));
  free(json);
}

static void test_text(void **state) {
  (void)state;
  char *text = SUCCEEDS(NET, "--devices", "cpu:0");
  assert_non_null(strstr(text, "mlp, global batch 6, medians of 2 steps\n"));
  CHECK_INT(count(text, "cpu:0"), 3);
  assert_non_null(strstr(text, "% is compute"));
  free(text);
}

static void test_refused(void **state) {
  (void)state;
  FAILS(3, "3 devices are asked for, there are 2 GPUs", NET, "--virtual-gpus", "2:128MiB", "--devices", "3");
  FAILS(2, "expected numbers of devices", NET, "--devices", "1,0");
  FAILS(2, "expected numbers of devices", NET, "--devices", "1,,2");
  FAILS(2, "less than one example for each of 7 devices", NET, "--devices", "7");
  FAILS(3, "no usable GPU for /gpu:5", NET, "--devices", "gpu:5");
  FAILS(2, "--devices", NET, "--devices", "cpu:0;");
  FAILS(2, "unknown option '--rehearse'", NET, "--rehearse", "x");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sets), cmocka_unit_test(test_split), cmocka_unit_test(test_text), cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
