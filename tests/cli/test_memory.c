/*
 * test_memory.c - memory limits at the command line: options, settings, what is reported, and what does not fit.
 *
 * A virtual GPU has its size whatever runs beside it, so what a process holds must not depend on others, nor on who came first.
 */
#include "run_yoke.h"

enum { MIB = 1 << 20 };

/* The object of a device in a line of JSON. */
static const char *of_device(const char *json, const char *name) {
  char pattern[96];
  snprintf(pattern, sizeof pattern, "\"name\":\"/job:localhost/replica:0/task:0/device:%s\"", name);
  const char *at = strstr(json, pattern);
  if (at == NULL) fail_msg("no %s in %s", name, json);
  return at;
}

static void test_devices(void **state) {
  (void)state;
  char *json = SUCCEEDS("devices", "--json", "--virtual-gpus", "2:256MiB", "--memory-fraction", "0.4");
  check_json(json, false);
  const char *gpu = of_device(json, "GPU:1");
  CHECK_INT(json_number(gpu, "bytes_total"), 256 * MIB);
  CHECK_INT(json_number(gpu, "bytes_limit"), 107374182);
  CHECK_INT(json_number(gpu, "bytes_held"), 0);
  CHECK_INT(json_number(gpu, "fragmentation"), 0);
  free(json);
  setenv("YOKE_MEMORY_FRACTION", "0.25", 1);
  json = SUCCEEDS("devices", "--json", "--virtual-gpus", "2:256MiB");
  CHECK_INT(json_number(of_device(json, "GPU:0"), "bytes_limit"), 64 * MIB);
  free(json);
  json = SUCCEEDS("devices", "--json", "--virtual-gpus", "2:256MiB", "--memory-limit", "10MiB");      /* the option wins */
  CHECK_INT(json_number(of_device(json, "GPU:0"), "bytes_limit"), 10 * MIB);
  CHECK_INT(json_number(of_device(json, "CPU:0"), "bytes_limit"), 10 * MIB);
  free(json);
  setenv("YOKE_MEMORY_LIMIT", "10MiB", 1);
  FAILS(1, "the settings memory.fraction and memory.limit are both given", "devices");
  unsetenv("YOKE_MEMORY_LIMIT");
  setenv("YOKE_MEMORY_FRACTION", "much", 1);
  FAILS(1, "YOKE_MEMORY_FRACTION", "devices");
  unsetenv("YOKE_MEMORY_FRACTION");
}

static void test_usage(void **state) {
  (void)state;
  static const char *const verb[] = { "devices", "doctor" };
  for (size_t i = 0; i < sizeof verb / sizeof verb[0]; i++) {
    FAILS(2, "--memory-limit 'lots': expected bytes", verb[i], "--memory-limit", "lots");
    FAILS(2, "--memory-limit '0'", verb[i], "--memory-limit", "0");
    FAILS(2, "--memory-fraction '1.5'", verb[i], "--memory-fraction", "1.5");
    FAILS(2, "--memory-fraction '0'", verb[i], "--memory-fraction", "0");
    FAILS(2, "--memory-limit and --memory-fraction exclude each other", verb[i], "--memory-fraction", "0.5",
          "--memory-limit", "1GiB");
  }
  FAILS(2, "--memory-growth takes no value", "devices", "--memory-growth=1");
}

/* Limits hold for CPUs, and for each command that opens a session. */
static void test_limits_hold(void **state) {
  (void)state;
  free(SUCCEEDS("train", "mlp", "--data", "set", "--steps", "1", "--batch", "4", "--quiet", "--out", "w"));
  FAILS(1, "device:CPU:0", "train", "mlp", "--data", "set", "--steps", "1", "--batch", "4", "--quiet", "--out", "x",
        "--memory-limit", "1MiB");
  FAILS(1, "What helps: ", "evaluate", "mlp", "--data", "set", "--out", "w", "--memory-limit", "1MiB");
  FAILS(1, "device:GPU:0", "evaluate", "mlp", "--data", "set", "--out", "w", "--virtual-gpus", "1:64MiB", "--memory-fraction",
        "0.01");
  char *plan = SUCCEEDS("explain", "mlp", "--batch", "4", "--memory-limit", "1MiB");
  if (strstr(plan, "of at most 1.00MiB: does not fit") == NULL) fail_msg("%s", plan);
  free(plan);
  char *report = SUCCEEDS("doctor", "--memory-limit", "64MiB", "--memory-growth", "--virtual-gpus", "1");
  if (strstr(report, "matmul gave [[22 28] [49 64]]") == NULL) fail_msg("%s", report);
  free(report);
}

/* ---- what a run held -------------------------------------------------------------------------------------------- */

static void check_end(const char *file, uint64_t held) {
  char *text = read_file(file);
  if (text == NULL) fail_msg("there is no %s", file);
  check_json(text, true);
  const char *end = last_line(text), *memory = strstr(end, "\"memory\":[");
  if (memory == NULL) fail_msg("no memory in %s", end);
  const char *gpu = of_device(memory, "GPU:0"), *cpu = of_device(memory, "CPU:0");
  CHECK_INT(json_number(gpu, "peak_held"), held);
  CHECK_INT(json_number(gpu, "bytes_limit"), held);
  if (!(json_number(gpu, "peak_in_use") > 1e6 && json_number(gpu, "peak_in_use") <= (double)held)) fail_msg("%s", end);
  CHECK_INT(json_number(cpu, "peak_held"), json_number(cpu, "peak_in_use"));
  free(text);
}

/* Two programs at a half of one card: each gets its half, whoever starts first. */
static void test_two_processes(void **state) {
  static const char *const order[] = { "a b", "b a" };
  (void)state;
  for (int i = 0; i < 2; i++) {
    char script[1024];
    snprintf(script, sizeof script,
             "for i in %s; do '%s/yoke' train mlp --data set --steps 3 --batch 8 --virtual-gpus 1:128MiB --memory-fraction 0.5 --json "
             "--out ${i}%d >$i 2>$i.err & sleep 0.1; done; wait; cat a.err b.err", order[i], getenv("YOKE_BUILD_DIR"), i);
    char *out = NULL;
    CHECK_INT(run_program((const char *const[]){ "sh", "-c", script, NULL }, NULL, &out), 0);
    assert_string_equal(out, "");
    free(out);
    check_end("a", 64 * MIB);
    check_end("b", 64 * MIB);
  }
}

static void test_growth(void **state) {
  (void)state;
  char *json = SUCCEEDS("train", "mlp", "--data", "set", "--steps", "2", "--batch", "8", "--json", "--out", "g", "--virtual-gpus",
                        "1:256MiB", "--memory-growth");
  const char *gpu = of_device(strstr(last_line(json), "\"memory\":["), "GPU:0");
  CHECK_INT(json_number(gpu, "bytes_limit"), 256 * MIB);
  double held = json_number(gpu, "peak_held");
  if (!(held >= json_number(gpu, "peak_in_use") && held < 200.0 * MIB)) fail_msg("%s", gpu);
  free(json);
  char *text = SUCCEEDS("train", "mlp", "--data", "set", "--steps", "2", "--batch", "8", "--out", "t");
  if (strstr(text, "memory at most: /cpu:0 held ") == NULL || strstr(text, "/gpu") != NULL) fail_msg("%s", text);
  free(text);
}

/* Room for training but not for the weights that are tested beside it: told at once, not after an epoch. */
static void test_tests_too(void **state) {
  yoke_result r;
  char gpus[32];
  int mib = 20, status;
  (void)state;
  do {                                                     /* the least that the step itself fits into */
    snprintf(gpus, sizeof gpus, "2:%dMiB", ++mib);
    YOKE(&r, "plan", "mlp", "--batch", "8", "--virtual-gpus", gpus, "--no-time");
    status = r.status;
    yoke_free(&r);
  } while (status != 0 && mib < 128);
  YOKE(&r, "train", "mlp", "--data", "set", "--batch", "8", "--virtual-gpus", gpus, "--epochs", "3", "--out", "tests", "--quiet");
  CHECK_INT(r.status, 1);
  bool second = strstr(r.err, "yoke train: step 2: /job") != NULL, variable = strstr(r.err, "yoke train: variable ") != NULL;
  if (!second && !variable) fail_msg("with %s: %s", gpus, r.err);
  yoke_free(&r);
}

/* A GPU that a variable names and that is not there: as one that an option names. */
static void test_visible(void **state) {
  (void)state;
  setenv("YOKE_VISIBLE_DEVICES", "5", 1);
  FAILS(3, "\"5\" is no GPU; there are 2 GPUs", "train", "mlp", "--virtual-gpus", "2");
  FAILS(3, "\"5\" is no GPU", "devices", "--virtual-gpus", "2");
  setenv("YOKE_VISIBLE_DEVICES", "0,0", 1);
  FAILS(1, "\"0\" is there twice", "devices", "--virtual-gpus", "2");
  unsetenv("YOKE_VISIBLE_DEVICES");
}

static int setup(void **state) {
  if (yoke_setup(state) != 0) return -1;
  write_cifar("set", 64, 32);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_devices), cmocka_unit_test(test_usage), cmocka_unit_test(test_limits_hold),
    cmocka_unit_test(test_two_processes), cmocka_unit_test(test_growth), cmocka_unit_test(test_visible),
    cmocka_unit_test(test_tests_too),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
