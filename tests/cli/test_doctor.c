/*
 * `yoke doctor` and `yoke config` as a user runs them, on whatever machine this is. What the doctor finds differs from one
 * to the next, so here only form, exit status and the truth of the two cases are looked at; every finding has its test in
 * tests/doctor.
 */
#include "run_yoke.h"

#include <dlfcn.h>

/* Runs it; the report is *out, the status is returned. */
static int doctor(const char *const *argv, char **out, char **err) {
  yoke_result r;
  yoke_run(&r, argv);
  *out = r.out;
  *err = r.err;
  return r.status;
}

static void contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in %s", part, text);
}

static void test_works_on_the_cpu(void **state) {
  (void)state;
  char *text = SUCCEEDS("doctor"), *json = SUCCEEDS("doctor", "--json");
  check_json(json, false);
  contains(text, "ok    matmul         /cpu:0: matmul gave [[22 28] [49 64]]");
  contains(text, "training works on the CPU");
  contains(json, "\"cpu_works\":true");
  contains(json, "\"matmul\":[22,28,49,64],\"error\":null");
  static const char *const keys[] = { "summary", "gpu_works", "gpu_stack_fits", "checks", "cards", "devices", "check", "state",
                                      "says",
                                      "looked_for", "where", "found", "needed", "next" };
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    char pattern[32];
    snprintf(pattern, sizeof pattern, "\"%s\":", keys[i]);
    contains(json, pattern);
  }
  static const char *const checks[] = { "driver", "card", "device files", "runtime", "cublas", "cudnn", "nccl", "mpi", "toolkit",
                                        "shared memory", "yoke" };
  for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
    char pattern[48];
    snprintf(pattern, sizeof pattern, "\"check\":\"%s\"", checks[i]);
    contains(json, pattern);
  }
  free(text);
  free(json);
}

/* A script asks; the answer is in the status, and why in one line. */
static void test_require(void **state) {
  char *out, *err;
  const char *const argv[] = { "yoke", "doctor", "--require", "gpu", "--json", NULL };
  (void)state;
  int status = doctor(argv, &out, &err);
  check_json(out, false);
  bool works = strstr(out, "\"gpu_works\":true") != NULL;
  CHECK_INT(status, works ? 0 : 3);
  if (!works) {
    static const char begins[] = "yoke doctor: --require gpu: training works on the CPU; no GPU ";
    if (strncmp(err, begins, sizeof begins - 1) != 0) fail_msg("%s", err);
    CHECK_INT(strchr(err, '\n') - err + 1, strlen(err));
  }
  if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL) {
    CHECK_INT(status, 3);
    contains(out, "there is no NVIDIA driver (libcuda.so.1 is nowhere)");
  }
  free(out);
  free(err);
  FAILS(2, "--require 'tpu': expected gpu", "doctor", "--require", "tpu");
}

/* Virtual GPUs compute, but they are no answer to --require gpu. */
static void test_virtual(void **state) {
  char *out, *err;
  const char *const argv[] = { "yoke", "doctor", "--virtual-gpus", "2:1MiB", "--require", "gpu", NULL };
  (void)state;
  int status = doctor(argv, &out, &err);
  contains(out, "/gpu:1: matmul gave [[22 28] [49 64]]");
  if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL) CHECK_INT(status, 3);
  free(out);
  free(err);
  FAILS(2, "--virtual-gpus '0'", "doctor", "--virtual-gpus", "0");
}

static void test_stub_on_the_path(void **state) {
  char *out, *err, folder[4096];
  const char *const argv[] = { "yoke", "doctor", NULL }, *build = getenv("YOKE_BUILD_DIR");
  (void)state;
  if (dlopen("libcuda.so.1", RTLD_LAZY) != NULL) skip();
  assert_non_null(build);
  snprintf(folder, sizeof folder, "%s/tests/doctor/stubs", build);
  setenv("LD_LIBRARY_PATH", folder, 1);
  int status = doctor(argv, &out, &err);
  unsetenv("LD_LIBRARY_PATH");
  CHECK_INT(status, 0);
  contains(out, "LD_LIBRARY_PATH points at a stub of the driver");
  contains(out, "next        unset LD_LIBRARY_PATH");
  free(out);
  free(err);
}

static void test_config(void **state) {
  (void)state;
  setenv("YOKE_CORES", "1", 1);
  char *text = SUCCEEDS("config", "--dump"), *json = SUCCEEDS("config", "--dump", "--json");
  char *params = SUCCEEDS("params", "--json");
  unsetenv("YOKE_CORES");
  check_json(json, false);
  assert_string_equal(json, params);
  contains(text, "cores = 1                     # environment YOKE_CORES: host cores to use at most");
  contains(text, "data.dir = \"\"                 # default: where data sets are looked for first");
  free(text);
  free(json);
  free(params);
  FAILS(2, "yoke config --dump", "config");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_works_on_the_cpu), cmocka_unit_test(test_require), cmocka_unit_test(test_virtual),
    cmocka_unit_test(test_stub_on_the_path), cmocka_unit_test(test_config),
  };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
