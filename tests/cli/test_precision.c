/*
 * `yoke train --precision`: bf16 and f16 over f32 variables learn what f32 does, on one device and on several, across a resume, and what
 * belongs to the loss scale stays out of the weights. Losses are compared within the types' rounding, runs of one type by their bytes.
 */
#include "run_yoke.h"

#include <sys/stat.h>

#define NET "train", "mlp", "--data", "set", "--batch", "12", "--interval", "0", "--json"

static int setup(void **state) {
  int rc = yoke_setup(state);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

#define TWO "--steps", "6", "--virtual-gpus", "2", "--strategy", "mirrored", "--check-replicas", "1", "--clip-norm", "5"

static void lacks(const char *path, const char *word) {
  struct stat about;
  char *bytes = read_file(path);
  assert_non_null(bytes);
  CHECK_INT(stat(path, &about), 0);
  if (memmem(bytes, (size_t)about.st_size, word, strlen(word)) != NULL) fail_msg("%s holds '%s'", path, word);
  free(bytes);
}

static double number_of(char *out, const char *key) {
  double x = json_number(last_line(out), key);
  free(out);
  return x;
}

static void test_like_f32(void **state) {
  static const struct { const char *type; double within; } types[] = { { "bf16", 0.02 }, { "f16", 0.004 } };
  (void)state;
  double want = number_of(SUCCEEDS(NET, "--steps", "6", "--out", "f32"), "train_loss");
  double want_two = number_of(SUCCEEDS(NET, TWO, "--out", "two"), "train_loss");
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    const char *type = types[i].type;
    char *out = SUCCEEDS(NET, "--steps", "6", "--precision", type, "--out", type);
    char said[32];
    snprintf(said, sizeof said, "\"precision\":\"%s\"", type);
    if (!strstr(out, said)) fail_msg("no %s in %s", said, out);
    double got = number_of(out, "train_loss"), got_two = number_of(SUCCEEDS(NET, TWO, "--precision", type, "--out", "two"), "train_loss");
    double off = fabs(got - want), off_two = fabs(got_two - want_two);
    if (!(off <= types[i].within * want && off > 0)) fail_msg("%s: loss %.9g, in f32 %.9g", type, got, want);
    if (!(off_two <= types[i].within * want_two)) fail_msg("%s on two: loss %.9g, in f32 %.9g", type, got_two, want_two);
    lacks("two/weights.safetensors", "loss_scale");
  }
  free(SUCCEEDS(NET, "--steps", "6", "--precision", "f32", "--out", "again"));
  same_files("f32/weights.safetensors", "again/weights.safetensors");
}

/* 2 steps, and 2 more in another process, are 4: the loss scale goes on from the checkpoint. */
static void test_resume(void **state) {
  (void)state;
  CHECK_INT(number_of(SUCCEEDS(NET, "--steps", "4", "--precision", "f16", "--out", "whole"), "steps_skipped"), 0);
  free(SUCCEEDS(NET, "--steps", "2", "--precision", "f16", "--checkpoint-every", "2", "--out", "part"));
  char *out = SUCCEEDS("train", "mlp", "--out", "part", "--resume", "--steps", "4", "--json");
  assert_non_null(strstr(out, "\"precision\":\"f16\""));
  free(out);
  same_files("whole/weights.safetensors", "part/weights.safetensors");
  free(SUCCEEDS("evaluate", "mlp", "--data", "set", "--out", "whole"));
}

/* Inputs so large that gradients overflow under the first scales: those steps are skipped and counted, and none ends the run. */
static void test_skips(void **state) {
  char table[2000] = "a,b,label\n";
  (void)state;
  for (int i = 0; i < 40; i++) snprintf(table + strlen(table), 40, "%d,%d,%d\n", i % 2 ? 90 : -90, 10 * (i % 7), i % 2);
  write_file("t.csv", table, strlen(table));
  char *out = SUCCEEDS("train", "mlp", "--data", "t.csv", "--batch", "12", "--steps", "8", "--lr", "1e-5", "--precision", "f16", "--json", "--out",
                       "c");
  double skipped = json_number(last_line(out), "steps_skipped");
  if (!(skipped >= 1 && skipped < 8)) fail_msg("%g steps skipped of 8: %s", skipped, out);
  free(out);
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "--precision 'f8': expected f32, bf16 or f16", "train", "mlp", "--precision", "f8");
  FAILS(2, "unknown option '--precision'", "verify", "mlp", "--precision", "bf16");
  FAILS(1, "the step changed nothing", "train", "mlp", "--data", "set", "--precision", "f16", "--lr", "1e6", "--steps", "40", "--quiet",
        "--out", "n");
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_like_f32), cmocka_unit_test(test_resume), cmocka_unit_test(test_skips),
                                      cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
