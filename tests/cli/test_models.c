/*
 * Model files on the command line: summary, train, evaluate, predict, convert, with data by name and by number, and what is refused.
 */
#include "run_yoke.h"
#include <sys/stat.h>
#include <unistd.h>
#include <yoke/yoke.h>

static const char *model(const char *name) {
  static char path[4][512];
  static int turn;
  char *p = path[turn++ % 4];
  const char *tests = getenv("YOKE_SOURCE_DIR");
  snprintf(p, 512, "%s/tests/golden/keras_fits/%s.h5", tests, name);
  return p;
}

/* 60 lines of 8 numbers and one of four classes, which the numbers tell. */
static void write_flowers(const char *path, int classes) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "a,b,c,d,e,f,g,h,label\n");
  for (int i = 0; i < 60; i++) {
    for (int k = 0; k < 8; k++) fprintf(f, "%.3f,", (k == i % classes ? 1.5 : 0) + (i * 7 + k * 3) % 10 / 20.0);
    fprintf(f, "%d\n", i % classes);
  }
  fclose(f);
}

#define MLP(...) "train", model("mlp"), "--data", "flowers.csv", "--loss", "sparse_categorical_crossentropy", "--metrics", "accuracy", \
                 "--lr", "0.05", __VA_ARGS__

static double number_after(const char *text, const char *name) {
  const char *at = strstr(text, name);
  if (at == NULL) fail_msg("no %s in %s", name, text);
  return strtod(at + strlen(name), NULL);
}

static void test_train(void **state) {
  (void)state;
  write_flowers("flowers.csv", 4);
  char *one = SUCCEEDS(MLP("--epochs", "8", "--out", "one.h5"));
  char *two = SUCCEEDS(MLP("--epochs", "8", "--out", "two.h5", "--virtual-gpus", "2", "--devices", "gpu:0,gpu:1"));
  assert_non_null(strstr(one, "Train on 54 samples, validate on 6 samples\nEpoch 1/8\n"));
  assert_non_null(strstr(one, "saved one.h5; test loss "));
  double a = number_after(strstr(one, "saved"), "loss "), b = number_after(strstr(two, "saved"), "loss ");
  CHECK_NEAR(a, b, 2e-4);
  assert_true(a < 1.2);
  char *measured = SUCCEEDS("evaluate", "two.h5", "--data", "flowers.csv");
  assert_non_null(strstr(measured, "two.h5 on 6 examples: loss "));
  CHECK_NEAR(number_after(measured, "loss "), b, 2e-4);
  free(one), free(two), free(measured);
  char *json = SUCCEEDS("train", "one.h5", "--data", "flowers.csv", "--epochs", "2", "--json", "--out", "three.h5", "--csv", "log.csv",
                        "--checkpoint", "best.h5", "--early-stopping", "3");
  check_json(json, true);
  CHECK_NEAR(number_after(json, "\"epoch\":"), 1, 0);
  assert_non_null(strstr(json, "\"val_accuracy\":"));
  assert_non_null(strstr(json, "\"out\":\"three.h5\",\"interrupted\":false,\"test_loss\":"));
  assert_true(exists("best.h5") && exists("log.csv"));
  free(json);
}

static void test_two_outputs(void **state) {
  (void)state;
  char *text = SUCCEEDS("summary", model("two_outputs"));
  assert_non_null(strstr(text, "main_output (Dense)"));
  assert_non_null(strstr(text, "join[0][0]"));
  free(text);
  text = SUCCEEDS("summary", model("two_outputs"), "--json");
  check_json(text, false);
  assert_non_null(strstr(text, "\"class\":\"Concatenate\""));
  free(text);
  write_flowers("flowers.csv", 4);
  FAILS(1, "the data have nothing for input 'b'", "train", model("two_outputs"), "--data", "flowers.csv", "--loss", "mse");
}

/* Ten inputs and three outputs: more arrays than any other example has. */
static void test_many_arrays(void **state) {
  enum { INPUTS = 10, OUTPUTS = 3, ROWS = 20, MOST = 128 };
  yk_sym in[INPUTS], out[OUTPUTS];
  yk_network *n;
  yk_keras *k;
  float x[ROWS][2];
  char path[64];
  (void)state;
  CHECK_OK(yk_keras_new(1, &k));
  for (int i = 0; i < INPUTS; i++) in[i] = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(2) });
  yk_sym all = yk_apply_n(yk_layer_concatenate(k, NULL), INPUTS, in);
  for (int i = 0; i < OUTPUTS; i++) out[i] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 2 }), all);
  n = yk_network_new(k, "many", INPUTS, in, OUTPUTS, out);
  CHECK_OK(yk_keras_status(k));
  CHECK_OK(yk_network_save(n, "many.h5"));
  yk_keras_free(k);
  CHECK_INT(mkdir("arrays", 0777), 0);
  for (int i = 0; i < INPUTS + OUTPUTS; i++) {
    for (int r = 0; r < ROWS; r++) x[r][0] = (float)(i % 3), x[r][1] = 1;
    snprintf(path, sizeof path, "arrays/%c%d.npy", i < INPUTS ? 'x' : 'y', i < INPUTS ? i : i - INPUTS);
    write_npy(path, "<f4", "20, 2", x, sizeof x);
  }
  char *text = SUCCEEDS("train", "many.h5", "--data", "arrays", "--loss", "mse", "--epochs", "150", "--lr", "0.02", "--out", "many2.h5");
  assert_true(number_after(strstr(text, "saved"), "loss ") < 0.05);       /* which it is not unless each array went to its place */
  free(text);
  text = SUCCEEDS("predict", "many2.h5", "--data", "arrays", "--json");
  check_json(text, true);
  CHECK_NEAR(number_after(text, "\"dense_2\":["), 2, 0.3);           /* y1 has 11 % 3 */
  free(text);
  for (int i = INPUTS; i < MOST; i++) {
    snprintf(path, sizeof path, "arrays/z%d.npy", i);
    write_npy(path, "<f4", "20, 2", x, sizeof x);
  }
  FAILS(1, "data: 'arrays' has 131 .npy files of one part; an example has at most 128 components", "predict", "many2.h5", "--data", "arrays");
}

static void test_plot(void **state) {
  (void)state;
  char *text = SUCCEEDS("summary", model("two_outputs"), "--plot", "net.svg"), *plain = SUCCEEDS("summary", model("two_outputs"));
  assert_string_equal(text, plain);
  free(text), free(plain);
  char *svg = read_file("net.svg");
  assert_memory_equal(svg, "<?xml version", 13);
  assert_non_null(strstr(svg, "<title>main_output</title>"));
  assert_non_null(strstr(svg, " &#8594; main_output</title>"));
  free(svg);
  text = SUCCEEDS("summary", model("two_outputs"), "--plot=net.svg", "--expand-nested", "--json");
  check_json(text, false);
  free(text);
  FAILS(2, "--plot 'net.png': expected a name that ends with .svg", "summary", model("two_outputs"), "--plot", "net.png");
  FAILS(2, "--expand-nested is for the picture that --plot FILE.svg draws", "summary", model("two_outputs"), "--expand-nested");
  FAILS(1, "--plot: 'nowhere/net.svg' cannot be created", "summary", model("two_outputs"), "--plot", "nowhere/net.svg");
}

static void test_predict(void **state) {
  (void)state;
  write_flowers("flowers.csv", 4);
  char *lines = SUCCEEDS("predict", model("mlp"), "--data", "flowers.csv"), *json;
  int n = 0;
  for (char *p = lines; *p != '\0'; p++) n += *p == '\n';
  CHECK_INT(n, 60);
  json = SUCCEEDS("predict", model("mlp"), "--data", "flowers.csv", "--json", "--virtual-gpus", "3", "--devices", "gpu:0,gpu:1,gpu:2");
  check_json(json, true);
  CHECK_NEAR(number_after(json, "\"dense_2\":["), strtod(lines, NULL), 1e-5);
  free(SUCCEEDS("predict", model("mlp"), "--data", "flowers.csv", "--out", "p.npy"));
  yk_dataset *d;
  float row[4];
  void *to[1] = { row };
  CHECK_OK(yk_dataset_open("p.npy", NULL, YK_TRAIN, &d));
  CHECK_INT(yk_dataset_size(d), 60);
  CHECK_OK(yk_dataset_read(d, 0, to));
  CHECK_NEAR(row[0], strtod(lines, NULL), 1e-5);
  yk_dataset_free(d);
  free(lines), free(json);
  /* numbers of words of another type; one that no i32 has is out of the table, not another word */
  const int64_t words[2][7] = { { 1, 2, 3, 4, 5, 6, 7 }, { 1, 2, 3, 4, 5, 6, ((int64_t)1 << 40) + 3 } };
  write_npy("near.npy", "<i8", "1, 7", words[0], sizeof words[0]);
  write_npy("far.npy", "<i8", "1, 7", words[1], sizeof words[1]);
  free(SUCCEEDS("predict", model("../keras/keras2-embedding"), "--data", "near.npy"));
  FAILS(1, "index 2147483647 at position 6 is outside [0, 11)", "predict", model("../keras/keras2-embedding"), "--data", "far.npy");
}

static void test_convert(void **state) {
  (void)state;
  free(SUCCEEDS("convert", model("mlp"), "--keras", "3", "--out", "k3.h5"));
  char *a = SUCCEEDS("summary", "k3.h5"), *b = SUCCEEDS("summary", model("mlp"));
  assert_string_equal(strchr(a, '\n'), strchr(b, '\n'));
  free(a), free(b);
  free(SUCCEEDS("convert", model("mlp"), "--weights", "--out", "w.h5"));
  FAILS(1, "w.h5: no attribute model_config", "summary", "w.h5");
}

static void test_refused(void **state) {
  (void)state;
  write_flowers("flowers.csv", 4);
  write_flowers("seven.csv", 7);
  FAILS(2, "which network? yoke predict MODEL", "predict");
  FAILS(2, "which data? --data PATH", "predict", model("mlp"));
  FAILS(2, "mlp is not made of Keras's layers", "predict", "mlp", "--data", "flowers.csv");
  FAILS(2, "does not say how it is trained; --loss NAME does", "train", model("mlp"), "--data", "flowers.csv");
  FAILS(2, "no loss is called 'ms'; there are", "train", model("mlp"), "--data", "flowers.csv", "--loss", "ms");
  FAILS(2, "has no output 'main'; it has 'dense_2'", "train", model("mlp"), "--data", "flowers.csv", "--loss", "main=mse");
  FAILS(2, "--steps is for networks that are trained in steps", MLP("--steps", "3"));
  FAILS(2, "a Keras model is trained for whole epochs", MLP("--epochs", "0.5"));
  FAILS(2, "expected a name that ends with .h5 or .keras", MLP("--out", "runs/a"));
  FAILS(1, "the data have 7 classes, output 'dense_2' of the network has 4", "train", model("mlp"), "--data", "seven.csv", "--loss",
        "sparse_categorical_crossentropy");
  FAILS(1, "none.h5", "summary", "none.h5");
  FAILS(1, "input 'conv2d_input' needs f32[?,8,8,3]", "predict", model("convnet"), "--data", "flowers.csv");
  FAILS(2, "into what? --out FILE.h5 or FILE.keras", "convert", model("mlp"));
  FAILS(1, "a network's files are for Keras 2 or 3, not 4", "convert", model("mlp"), "--keras", "4", "--out", "x.h5");
  assert_false(exists("trained.h5"));
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_train), cmocka_unit_test(test_two_outputs), cmocka_unit_test(test_plot),
                                      cmocka_unit_test(test_many_arrays),
                                      cmocka_unit_test(test_predict),
                                      cmocka_unit_test(test_convert), cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
