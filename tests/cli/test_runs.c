/*
 * Whole runs on a handful of pictures: what is printed, what is left in the folder, what an evaluation of it says, and how
 * a run ends that is stopped or diverges.
 */
#include "run_yoke.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);                      /* teams of threads on a busy machine mostly wait for each other */
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

static void check_run_folder(const char *folder) {
  static const char *const names[] = { "settings.json", "metrics.jsonl", "trace.json", "report.html", "weights.safetensors" };
  char path[256];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    char *text = read_file(path);
    if (text == NULL) fail_msg("%s is missing", path);
    if (strstr(names[i], ".json") != NULL) check_json(text, strcmp(names[i], "metrics.jsonl") == 0);
    free(text);
  }
}

/* The phases are all there, and no longer than the whole. */
static void check_first_step(const char *line) {
  static const char *const phase[] = { "build_seconds", "initialize_seconds", "evaluator_seconds", "step_seconds" };
  double sum = 0;
  assert_non_null(line);
  for (size_t i = 0; i < sizeof phase / sizeof phase[0]; i++) {
    double s = json_number(line, phase[i]);
    if (!(s >= 0)) fail_msg("%s is %g", phase[i], s);
    sum += s;
  }
  double whole = json_number(line, "seconds");
  if (!(sum <= whole * (1 + 1e-6) && whole > 0)) fail_msg("phases of %g s in a whole of %g s", sum, whole);
}

static void test_json_lines(void **state) {
  (void)state;
  char *out = SUCCEEDS("train", "mlp", "--data", "set", "--batch", "10", "--epochs", "2", "--json", "--interval", "0", "--out",
                       "j");
  check_json(out, true);
  assert_non_null(strstr(out, "\"event\":\"start\""));
  assert_non_null(strstr(out, "\"event\":\"progress\",\"step\":8,"));
  check_first_step(strstr(out, "\"event\":\"first_step\""));
  const char *last = last_line(out);
  static const char *const text[] = { "model", "data", "devices", "out", "interrupted" };
  static const char *const number[] = { "batch", "steps", "epochs", "seconds", "examples_per_second", "train_loss",
                                        "train_accuracy", "test_loss",
                                        "test_accuracy", "peak_rss_bytes" };
  for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
    if (strstr(last, text[i]) == NULL) fail_msg("no %s in %s", text[i], last);
  for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
    if (!(json_number(last, number[i]) >= 0)) fail_msg("%s in %s", number[i], last);
  CHECK_INT(json_number(last, "batch"), 10);
  CHECK_INT(json_number(last, "steps"), 8);                    /* ceil(2 * 37 / 10) */
  assert_true(json_number(last, "peak_rss_bytes") > 1e6);
  check_run_folder("j");
  char *metrics = read_file("j/metrics.jsonl");
  assert_string_equal(last_line(metrics), last);
  free(metrics);
  free(out);
}

/* The file holds what was measured: a second program gets the same numbers, with another batch. */
static void test_evaluate(void **state) {
  static const char *const models[] = { "mlp", "cifar10", "resnet20" };
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    char *out = SUCCEEDS("train", models[i], "--data", "set", "--batch", "6", "--steps", "4", "--lr", "0.01", "--json", "--out",
                         models[i]);
    char *again = SUCCEEDS("evaluate", models[i], "--data", "set", "--out", models[i], "--batch", "5", "--json");
    check_json(again, false);
    const char *last = last_line(out);
    CHECK_INT(json_number(again, "examples"), 17);
    CHECK_NEAR(json_number(again, "test_loss"), json_number(last, "test_loss"), 1e-4);
    CHECK_NEAR(json_number(again, "test_accuracy"), json_number(last, "test_accuracy"), 1e-6);
    free(out);
    free(again);
  }
}

static void test_learns(void **state) {
  (void)state;
  char *out = SUCCEEDS("train", "mlp", "--data", "set", "--batch", "37", "--steps", "12", "--json", "--out", "l");
  const char *last = last_line(out);
  assert_true(json_number(last, "test_accuracy") > 0.8);
  free(out);
}

static void test_global_batch(void **state) {
  (void)state;
  char *out = SUCCEEDS("train", "mlp", "--data", "set", "--batch", "10", "--steps", "2", "--virtual-gpus", "3", "--out", "g");
  static const char first[] = "mlp on /gpu:0 /gpu:1 /gpu:2 (virtual), variables sharded over them (chosen by auto: sums and "
                              "updates run on all devices): global batch 10 = 4 + 3 + 3; cifar10, 37 train, "
                              "17 test pictures; 2 steps\n";
  if (strncmp(out, first, sizeof first - 1) != 0) fail_msg("got %s\nexpected %s", out, first);
  free(out);
  out = SUCCEEDS("train", "mlp", "--data", "set", "--batch", "10", "--steps", "2", "--devices", "auto", "--virtual-gpus", "1",
                 "--out", "g");
  assert_non_null(strstr(out, "mlp on /gpu:0 (virtual) (chosen by auto)"));
  free(out);
}

/* The same seed and batch: the same losses, on one device and on two. */
static void test_devices_agree(void **state) {
  (void)state;
  char *one = SUCCEEDS("train", "mlp", "--data", "set", "--batch", "8", "--steps", "3", "--json", "--out", "a", "--devices",
                       "cpu:0");
  char *two = SUCCEEDS("train", "mlp", "--data", "set", "--batch", "8", "--steps", "3", "--json", "--out", "b", "--virtual-gpus",
                       "2");
  CHECK_NEAR(json_number(last_line(two), "train_loss"), json_number(last_line(one), "train_loss"), 1e-4);
  free(one);
  free(two);
}

/* A bare name is looked for in the folder of the setting first. */
static void test_data_dir(void **state) {
  (void)state;
  mkdir("sets", 0777);
  write_cifar("sets/inner", 12, 5);
  setenv("YOKE_DATA_DIR", "sets", 1);
  char *out = SUCCEEDS("train", "mlp", "--data", "inner", "--steps", "1", "--batch", "4", "--out", "i");
  unsetenv("YOKE_DATA_DIR");
  assert_non_null(strstr(out, "12 train, 5 test pictures"));
  free(out);
}

/* Nothing but the model named: built-in pictures, a new folder. */
static void test_quiet_and_defaults(void **state) {
  (void)state;
  char *out = SUCCEEDS("train", "mlp", "--steps", "1", "--batch", "4", "--quiet");
  assert_string_equal(out, "");
  free(out);
  const char *list[] = { "sh", "-c", "ls runs/mlp-*/weights.safetensors && grep shapes10 runs/mlp-*/settings.json", NULL };
  CHECK_INT(run_program(list, NULL, NULL), 0);
}

/* Placement lines are for people: with --json they keep off the standard output. */
static void test_trace_and_placement(void **state) {
  yoke_result r;
  (void)state;
  YOKE(&r, "train", "mlp", "--data", "set", "--steps", "3", "--batch", "4", "--trace", "t.json", "--log-device-placement",
       "--json", "--out", "p",
       "--seed", "7", "--soft-placement", "--devices=cpu:0");
  CHECK_INT(r.status, 0);
  check_json(r.out, true);
  if (strstr(r.err, "hidden1/MatMul: (MatMul): /job:localhost") == NULL) fail_msg("stderr: %.600s", r.err);
  yoke_free(&r);
  char *trace = read_file("t.json");
  assert_non_null(trace);
  check_json(trace, false);
  assert_non_null(strstr(trace, "MatMul"));
  free(trace);
  assert_false(exists("p/trace.json"));
}

/* It stops at the step that went wrong and leaves what a run of one step less would have left. */
static void test_diverges(void **state) {
  yoke_result r;
  char steps[24];
  (void)state;
  YOKE(&r, "train", "cifar10", "--data", "set", "--steps", "50", "--batch", "8", "--lr", "1e6", "--quiet", "--out", "d",
       "--checkpoint-every", "1000");
  CHECK_INT(r.status, 1);
  const char *at = strstr(r.err, "yoke train: step ");
  if (at == NULL || strstr(r.err, "(a smaller --lr or --clip-norm may help") == NULL) fail_msg("stderr: %s", r.err);
  if (strstr(r.err, " made by '") == NULL || strstr(r.err, "on /cpu:0 at ") == NULL) fail_msg("stderr: %s", r.err);
  assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
  long bad = strtol(at + strlen("yoke train: step "), NULL, 10);
  if (bad < 2 || bad > 49) fail_msg("stopped at step %ld; the test needs one in the middle", bad);
  assert_false(exists("d/report.html"));
  char *log = read_file("d/metrics.jsonl");
  if (log == NULL || strstr(log, "\"event\":\"nan\"") == NULL || strstr(log, "\"op\":") == NULL) fail_msg("%s", log);
  check_json(log, true);
  free(log);
  yoke_free(&r);
  snprintf(steps, sizeof steps, "%ld", bad - 1);
  free(SUCCEEDS("train", "cifar10", "--data", "set", "--steps", steps, "--batch", "8", "--lr", "1e6", "--quiet", "--out", "d2"));
  same_files("d/weights.safetensors", "d2/weights.safetensors");
  YOKE(&r, "train", "--resume", "--out", "d", "cifar10");             /* the input is where it was: the same step again */
  CHECK_INT(r.status, 1);
  snprintf(steps, sizeof steps, "step %ld: ", bad);
  if (strstr(r.err, steps) == NULL) fail_msg("resumed: %s", r.err);
  yoke_free(&r);
}

static void test_nan_check(void **state) {
  yoke_result r;
  (void)state;
  FAILS(2, "--nan-check 'maybe': expected finite, nan or off", "train", "mlp", "--nan-check", "maybe");
  YOKE(&r, "train", "cifar10", "--data", "set", "--steps", "6", "--batch", "8", "--lr", "1e6", "--quiet", "--nan-check", "off", "--out", "f");
  CHECK_INT(r.status, 0);
  yoke_free(&r);
}

/* Long enough for the traced steps to be over. */
static void wait_for_steps(void) {
  for (int i = 0; i < 6000; i++) {
    char *text = read_file("s/metrics.jsonl");
    bool there = text != NULL && strstr(text, "\"step\":12,") != NULL;
    free(text);
    if (there) return;
    nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
  }
  fail_msg("step 12 was not reported");
}

static void test_interrupt(void **state) {
  const char *const argv[] = { "yoke", "train", "mlp", "--data", "set", "--steps", "1000000000", "--batch", "4", "--interval",
                               "0", "--out", "s", NULL };
  yoke_result r;
  (void)state;
  pid_t pid = yoke_start(argv);
  wait_for_steps();
  kill(pid, SIGINT);
  yoke_wait(pid, &r);
  assert_string_equal(r.err, "");
  CHECK_INT(r.status, 130);
  assert_non_null(strstr(r.out, "interrupted after "));
  check_run_folder("s");
  char *metrics = read_file("s/metrics.jsonl");
  const char *last = last_line(metrics);
  assert_non_null(strstr(last, "\"interrupted\":true"));
  free(metrics);
  yoke_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json_lines), cmocka_unit_test(test_evaluate), cmocka_unit_test(test_learns),
        cmocka_unit_test(test_global_batch),
    cmocka_unit_test(test_devices_agree), cmocka_unit_test(test_quiet_and_defaults), cmocka_unit_test(test_data_dir),
        cmocka_unit_test(test_trace_and_placement),
    cmocka_unit_test(test_diverges), cmocka_unit_test(test_nan_check), cmocka_unit_test(test_interrupt),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
