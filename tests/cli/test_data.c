/*
 * `yoke train` and `yoke evaluate` on data of every format: they learn, say what they read, and fail in one line where they cannot.
 */
#include "run_yoke.h"

static char root[256];              /* kept from before the environment of the command is cleared */

static int setup(void **state) {
  const char *tests = getenv("YOKE_TEST_DATA");
  if (tests == NULL) return -1;
  snprintf(root, sizeof root, "%s", tests);
  return yoke_setup(state);
}

static const char *golden(const char *name) {
  static char path[4][512];
  static int turn;
  char *p = path[turn++ % 4];
  snprintf(p, 512, "%s/golden/data/%s", root, name);
  return p;
}

/* Two classes that a line parts: x > y, or not. */
static void write_table(const char *path, int rows, bool bad) {
  char text[16384];
  size_t n = (size_t)snprintf(text, sizeof text, "x,y,side\n");
  for (int i = 0; i < rows; i++) {
    int x = i * 37 % 21 - 10, y = i * 53 % 23 - 11;
    n += (size_t)snprintf(text + n, sizeof text - n, "%g,%g,%s\n", x / 10.0, y / 10.0, x > y ? "above" : "below");
    if (bad && i % 100 == 50) n += (size_t)snprintf(text + n, sizeof text - n, "0.5,oops,above\n");
  }
  write_file(path, text, n);
}

static void test_csv(void **state) {
  (void)state;
  write_table("t.csv", 400, false);
  char *text = SUCCEEDS("train", "mlp", "--data", "t.csv", "--epochs", "20", "--batch", "20", "--lr", "0.05", "--json", "--out",
                        "csv");
  double accuracy = json_number(last_line(text), "test_accuracy");
  if (!(accuracy > 0.9)) fail_msg("test accuracy %g", accuracy);
  CHECK_INT(json_number(last_line(text), "corrupt_records"), 0);
  free(text);
  text = SUCCEEDS("evaluate", "mlp", "--data", "t.csv", "--json", "--out", "csv");
  CHECK_NEAR(json_number(text, "test_accuracy"), accuracy, 1e-6);
  CHECK_INT(json_number(text, "examples"), 40);
  free(text);
  text = SUCCEEDS("train", "mlp", "--data", "t.csv", "--test-data", "t.csv", "--steps", "3", "--out", "csv2");
  assert_non_null(strstr(text, "csv, 400 train, 400 test examples"));
  free(text);
}

static void test_corrupt(void **state) {
  (void)state;
  write_table("bad.csv", 400, true);
  FAILS(1, "bad.csv':53:5: field 2 ('y') is 'oops'", "train", "mlp", "--data", "bad.csv", "--out", "never");
  FAILS(1, "more than 3 corrupt records", "train", "mlp", "--data", "bad.csv", "--skip-corrupt", "3", "--out", "never");
  char *text = SUCCEEDS("train", "mlp", "--data", "bad.csv", "--skip-corrupt", "4", "--steps", "2", "--out", "skipped");
  assert_non_null(strstr(text, "8 corrupt records were passed over; the first: "));      /* four for each part */
  assert_non_null(strstr(text, "field 2 ('y') is 'oops'"));
  free(text);
}

static void test_formats(void **state) {
  static const struct { const char *path, *says; } set[] = {
    { "mnist", "idx, 6 train, 2 test pictures" }, { "npz/deflated.npz", "npz, 5 train, 2 test pictures" },
    { "npy_folder", "npy, 5 train, 2 test pictures" }, { "tfrecord/pictures.tfrecord", "tfrecord, 3 train, 1 test pictures" },
  };
  char out[32];
  (void)state;
  for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
    snprintf(out, sizeof out, "f%zu", i);
    char *text = SUCCEEDS("train", "mlp", "--data", golden(set[i].path), "--steps", "3", "--batch", "4", "--holdout", "0.3",
                          "--out", out);
    if (strstr(text, set[i].says) == NULL) fail_msg("\"%s\" lacks \"%s\"", text, set[i].says);
    free(text);
    free(SUCCEEDS("evaluate", "mlp", "--data", golden(set[i].path), "--holdout", "0.3", "--out", out));
  }
}

static void test_refusals(void **state) {
  (void)state;
  write_table("t.csv", 40, false);
  FAILS(1, "cifar10 takes pictures; an example here has x f32[2]", "train", "cifar10", "--data", "t.csv", "--out", "never");
  FAILS(1, "one input and one label; an example here has x f64[3], y f32[]", "train", "mlp", "--data", golden("npz/targets.npz"),
        "--out", "never");
  FAILS(1, "no data format 'xml'", "train", "mlp", "--data", "t.csv", "--data-format", "xml", "--out", "never");
  FAILS(1, "no column 'z'", "train", "mlp", "--data", "t.csv", "--label", "z", "--out", "never");
  FAILS(1, "has no test part", "train", "mlp", "--data", "t.csv", "--holdout", "0", "--out", "never");
  FAILS(1, "a holdout of 1", "train", "mlp", "--data", "t.csv", "--holdout", "1", "--out", "never");
  FAILS(1, "2 classes; 5 were asked for", "train", "mlp", "--data", "t.csv", "--classes", "5", "--out", "never");
  write_file("u.csv", "x,y,side\n1,2,left\n2,1,right\n", 28);
  FAILS(1, "class 0 is 'above' in the training data and 'left' in the test data", "train", "mlp", "--data", "t.csv",
        "--test-data", "u.csv", "--out",
        "never");
  FAILS(1, "resnet20 takes pictures of at least 32x32", "train", "resnet20", "--data", golden("mnist"), "--out", "never");
  FAILS(2, "--skip-corrupt", "train", "mlp", "--skip-corrupt", "-1");
}

/* A record that turns out to be damaged in the middle of a run stops it, in one line that tells where. */
static void test_midway(void **state) {
  yoke_result r;
  (void)state;
  write_table("t.csv", 40, false);
  run_program((const char *const[]){ "cp", golden("tfrecord/pictures.tfrecord"), "p.tfrecord", NULL }, "", NULL);
  FILE *f = fopen("p.tfrecord", "r+b");
  assert_non_null(f);
  fseek(f, 60, SEEK_SET);
  fputc('#', f);
  fclose(f);
  YOKE(&r, "train", "mlp", "--data", "p.tfrecord", "--classes", "4", "--steps", "9", "--batch", "2", "--quiet", "--out",
       "midway");
  CHECK_INT(r.status, 1);
  if (strstr(r.err, "p.tfrecord': record 0 (offset 0): the checksum of its data") == NULL) fail_msg("it says \"%s\"", r.err);
  yoke_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_csv), cmocka_unit_test(test_corrupt), cmocka_unit_test(test_formats), cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_midway),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
