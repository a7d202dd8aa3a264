/*
 * `yoke train --precision`: bf16 and f16 over f32 variables learn what f32 does, on one device and on several, across a resume, and what
 * belongs to the loss scale stays out of the weights. Losses are compared within the types' rounding, runs of one type by their bytes.
 */
#include "run_yoke.h"

#include <sys/stat.h>

#define NET "train", "mlp", "--data", "set", "--batch", "12", "--interval", "0", "--json"

static int setup(void **state) {
  char table[2000] = "a,b,label\n";
  int rc = yoke_setup(state);
  for (int i = 0; i < 40; i++) snprintf(table + strlen(table), 40, "%d,%d,%d\n", i % 2 ? 90 : -90, 10 * (i % 7), i % 2);
  if (rc == 0) write_file("t.csv", table, strlen(table));
  setenv("YOKE_VERBOSE", "1", 1);                    /* no notice about a processor without bf16 */
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

#define SMALL "train", "mlp", "--data", "t.csv", "--batch", "12", "--interval", "0", "--json"
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
  (void)state;
  char *out = SUCCEEDS("train", "mlp", "--data", "t.csv", "--batch", "12", "--steps", "8", "--lr", "1e-5", "--precision", "f16", "--json", "--out",
                       "c");
  double skipped = json_number(last_line(out), "steps_skipped");
  if (!(skipped >= 1 && skipped < 8)) fail_msg("%g steps skipped of 8: %s", skipped, out);
  free(out);
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "--precision 'f8': expected f32, bf16 or f16", "train", "mlp", "--precision", "f8");
  FAILS(1, "the step changed nothing", "train", "mlp", "--data", "set", "--precision", "f16", "--lr", "1e6", "--steps", "40", "--quiet",
        "--out", "n");
}

/* ---- processors without instructions for a type ---- */

#define HEAD "{\"format\":\"yoke-machine\",\"version\":1,\"devices\":[{\"name\":\"/cpu:0\",\"driver\":\"cpu\",\"bytes_limit\":64000000000"

static void says(const char *text, const char *notice, int times) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, notice)) != NULL; p++) n++;
  if (n != times) fail_msg("'%s' %d times, expected %d, in: %s", notice, n, times, text);
}

/* One line, once, for people and programs, where it is known that the instructions are missing, and there alone. */
static void test_slow(void **state) {
  static const char notice[] = "/cpu:0 has no instructions for bf16: --precision bf16 is right there, but a step takes longer than in f32\n";
  static const struct { const char *machine, *type; bool slow; } described[] = {
    { HEAD ",\"fast_types\":\"bf16\"}]}", "bf16", false }, { HEAD ",\"fast_types\":\"bf16\"}]}", "f16", true },
    { HEAD ",\"fast_types\":\"bf16,f16\"}]}", "f16", false }, { HEAD ",\"fast_types\":\"none\"}]}", "bf16", true },
    { HEAD "}]}", "bf16", false }, { HEAD ",\"fast_types\":\"none\"}]}", "f32", false },
  };
  yoke_result r;
  (void)state;
  unsetenv("YOKE_VERBOSE");
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);           /* whatever the processor can, oneDNN then does without */
  char *out = SUCCEEDS("devices", "--json");
  says(out, "\"fast_types\":\"none\"", 1);
  free(out);
  YOKE(&r, "bench", "mlp", "--data", "t.csv", "--batch", "12", "--steps", "1", "--devices", "1,2", "--precision", "bf16");
  CHECK_INT(r.status, 0);
  says(r.err, notice, 1);
  yoke_free(&r);
  YOKE(&r, SMALL, "--steps", "1", "--precision", "bf16", "--out", "slow");
  says(r.err, notice, 1);
  says(r.out, "\"slow_precision\":true", 2);          /* at the start and at the end */
  yoke_free(&r);
  out = SUCCEEDS(SMALL, "--steps", "1", "--out", "fast");
  says(out, "\"slow_precision\":false", 2);
  free(out);
  free(SUCCEEDS("train", "mlp", "--data", "t.csv", "--steps", "1", "--precision", "bf16", "--quiet", "--out", "quiet"));
  unsetenv("ONEDNN_MAX_CPU_ISA");
  for (size_t i = 0; i < sizeof described / sizeof *described; i++) {
    write_file("m.json", described[i].machine, strlen(described[i].machine));
    YOKE(&r, "plan", "mlp", "--precision", described[i].type, "--rehearse", "m.json", "--json");
    CHECK_INT(r.status, 0);
    says(r.err, "has no instructions for", described[i].slow);
    says(r.out, described[i].slow ? "\"slow_precision\":true" : "\"slow_precision\":false", 1);
    yoke_free(&r);
    YOKE(&r, "plan", "mlp", "--precision", described[i].type, "--rehearse", "m.json");
    says(r.out, "slower than f32 here\n", described[i].slow);
    yoke_free(&r);
  }
  setenv("YOKE_VERBOSE", "1", 1);
}

/* ---- another precision than the checkpoint's ---- */

/* The variables are the same in all of them; the loss scale of f16 is made anew, or left behind. */
static void test_other_precision(void **state) {
  static const struct { const char *from, *to; } ways[] = { { "f32", "bf16" }, { "bf16", "f32" }, { "f32", "f16" }, { "f16", "bf16" } };
  (void)state;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char folder[16], said[64];
    snprintf(folder, sizeof folder, "way%zu", i);
    free(SUCCEEDS(SMALL, "--lr", "1e-5", "--steps", "2", "--precision", ways[i].from, "--checkpoint-every", "2", "--out", folder));
    char *out = SUCCEEDS("train", "mlp", "--out", folder, "--resume", "--steps", "4", "--precision", ways[i].to);
    snprintf(said, sizeof said, "of step 2, which computed in %s; now in %s\n", ways[i].from, ways[i].to);
    says(out, said, 1);
    free(out);
    out = SUCCEEDS("train", "mlp", "--out", folder, "--resume", "--steps", "6", "--json");      /* that is now the run's own */
    says(out, "\"other_precision\":false", 1);
    snprintf(said, sizeof said, "\"precision\":\"%s\"", ways[i].to);
    if (strstr(out, said) == NULL) fail_msg("no %s in %s", said, out);
    CHECK_INT(json_number(last_line(out), "steps"), 6);
    free(out);
  }
  FAILS(1, "was made with optimizer the network's own, this run has adam", "train", "mlp", "--out", "way0", "--resume", "--steps", "9",
        "--precision", "f32", "--optimizer", "adam");
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_like_f32), cmocka_unit_test(test_resume), cmocka_unit_test(test_skips),
                                      cmocka_unit_test(test_refused), cmocka_unit_test(test_slow), cmocka_unit_test(test_other_precision) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
