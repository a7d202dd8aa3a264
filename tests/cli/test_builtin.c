/*
 * Built-in networks of Keras's layers on the command line: resnet50, lstm and transformer do all that a model file does, with sizes
 * from the data, the options or neither, and tell what does not fit.
 */
#include "run_yoke.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 60, STEPS = 6, FEATURES = 3, CLASSES = 3 };

/* seq/: the class is the feature that rises; words/: the number in the third step; hot/: a number for each class. */
static int setup(void **state) {
  static float x[ROWS][STEPS][FEATURES], hot[ROWS][CLASSES];
  static int32_t words[ROWS][STEPS];
  static int64_t y[ROWS];
  if (yoke_setup(state) != 0) return -1;
  for (int r = 0; r < ROWS; r++) {
    y[r] = r % CLASSES;
    hot[r][y[r]] = 1;
    for (int t = 0; t < STEPS; t++) {
      words[r][t] = t == 2 ? (int32_t)y[r] + 1 : 4 + (r * 5 + t * 3) % 6;
      for (int c = 0; c < FEATURES; c++) x[r][t][c] = (c == y[r] ? (float)t * 0.4f : 0) + (float)((r * 7 + t * 3 + c) % 5) * 0.1f;
    }
  }
  const char *const folder[] = { "seq", "words", "hot", "values", "pictures" };
  for (int i = 0; i < 5; i++) CHECK_INT(mkdir(folder[i], 0777), 0);
  write_npy("seq/x.npy", "<f4", "60, 6, 3", x, sizeof x);
  write_npy("seq/y.npy", "<i8", "60,", y, sizeof y);
  write_npy("hot/x.npy", "<f4", "60, 6, 3", x, sizeof x);
  write_npy("hot/y.npy", "<f4", "60, 3", hot, sizeof hot);
  write_npy("words/x.npy", "<i4", "60, 6", words, sizeof words);
  write_npy("words/y.npy", "<i8", "60,", y, sizeof y);
  write_npy("values/x.npy", "<f4", "60, 6, 3", x, sizeof x);
  write_npy("values/y.npy", "<f4", "60,", x, ROWS * sizeof(float));
  write_npy("x.npy", "<f4", "60, 6, 3", x, sizeof x);
  static uint8_t picture[4][32][34][3];
  for (size_t i = 0; i < sizeof picture; i++) ((uint8_t *)picture)[i] = (uint8_t)(i * 37 % 251);
  write_npy("pictures/x.npy", "|u1", "4, 32, 34, 3", picture, sizeof picture);
  write_npy("pictures/y.npy", "<i8", "4,", y, 4 * sizeof y[0]);
  return 0;
}

static void has(const char *text, const char *what) {
  if (strstr(text, what) == NULL) fail_msg("no '%s' in\n%s", what, text);
}

static double number_after(const char *text, const char *name) {
  has(text, name);
  return strtod(strstr(text, name) + strlen(name), NULL);
}

static void test_summary(void **state) {
  static const struct { const char *model, *want; } all[] = {
    { "resnet50", "parameters: 25636712; trainable: 25583592, not trainable: 53120" },
    { "resnet50:size=64,channels=1,classes=5", "(None, 64, 64, 1)" },
    { "lstm", "(None, 28, 28)" },
    { "lstm:steps=5,features=7,units=3,layers=2,classes=2,dropout=0.5", "lstm_2 (LSTM)                            (None, 3)" },
    { "lstm:words=100,units=8", "(None, 28, 8)                     800" },
    { "transformer", "layer2_dense_add (Add)" },
    { "transformer:dropout=0,layers=1,heads=2,units=8", "layer1_attention (MultiHeadAttention)" } };
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char *text = SUCCEEDS("summary", all[i].model);
    has(text, all[i].want);
    free(text);
  }
  char *help = SUCCEEDS("summary", "--help");
  has(help, "  lstm                      LSTM(64) on sequences; steps, features, words, units, layers, dropout, classes, weights\n");
  assert_null(strstr(help, "cifar10 "));
  free(help);
  free(SUCCEEDS("summary", "lstm", "--plot", "lstm.svg"));
  assert_true(exists("lstm.svg"));
}

/* What `train` tells of the trained model. */
static double train(const char *model, const char *data, const char *out, const char *devices) {
#define TRAIN "train", model, "--data", data, "--epochs", "12", "--lr", "0.02", "--batch", "18", "--out", out
  char *text = devices != NULL ? SUCCEEDS(TRAIN, "--virtual-gpus", "2", "--devices", devices) : SUCCEEDS(TRAIN);
  has(text, "Train on 54 samples, validate on 6 samples\n");
  double loss = number_after(strstr(text, "saved "), "test loss ");
  free(text);
  return loss;
}

static void test_train(void **state) {
  (void)state;
  double one = train("lstm:units=16", "seq", "a.keras", NULL), two = train("lstm:units=16", "seq", "b.h5", "gpu:0,gpu:1");
  assert_true(one < 0.4);
  CHECK_NEAR(one, two, 2e-3);
  CHECK_NEAR(train("lstm:units=16", "hot", "c.h5", NULL), one, 2e-3);
  assert_true(train("transformer:units=8,heads=2,layers=1,dropout=0", "seq", "d.keras", NULL) < 0.4);
  assert_true(train("transformer:words=10,units=8,heads=2,layers=1,dropout=0", "words", "e.keras", "gpu:0,gpu:1") < 0.4);
  assert_true(train("lstm:words=10,units=8", "words", "f.keras", NULL) < 0.9);
}

static void test_use(void **state) {
  (void)state;
  double loss = train("lstm:units=16", "seq", "a.keras", NULL);
  char *file = SUCCEEDS("evaluate", "a.keras", "--data", "seq"), *name = SUCCEEDS("evaluate", "lstm:units=16,weights=a.keras", "--data", "seq");
  CHECK_NEAR(number_after(file, "loss "), loss, 1e-4);
  CHECK_NEAR(number_after(name, "loss "), loss, 1e-4);
  has(name, "accuracy 1.0000");
  free(file), free(name);
  file = SUCCEEDS("predict", "a.keras", "--data", "x.npy");
  name = SUCCEEDS("predict", "lstm:units=16,classes=3,weights=a.keras", "--data", "x.npy");
  assert_string_equal(file, name);
  free(file), free(name);
  train("lstm:words=10,units=8", "words", "f.keras", NULL);                  /* whole numbers, for an input of f32 */
  free(SUCCEEDS("predict", "f.keras", "--data", "words"));
  free(SUCCEEDS("convert", "lstm:units=16,steps=6,features=3,classes=3,weights=a.keras", "--out", "g.h5", "--keras", "3"));
  free(SUCCEEDS("convert", "transformer", "--weights", "--out", "w.h5"));
  file = SUCCEEDS("evaluate", "g.h5", "--data", "seq");                 /* it is saved with its loss and metric */
  CHECK_NEAR(number_after(file, "loss "), loss, 1e-4);
  free(file);
  name = SUCCEEDS("train", "lstm:units=16,weights=a.keras", "--data", "seq", "--epochs", "1", "--lr", "0", "--json", "--out", "h.h5");
  check_json(name, true);
  CHECK_NEAR(number_after(name, "\"test_loss\":"), loss, 1e-4);
  free(name);
  name = SUCCEEDS("train", "lstm", "--data", "seq", "--classes", "7", "--epochs", "1", "--quiet", "--out", "i.h5");
  free(name);
  name = SUCCEEDS("summary", "i.h5");
  has(name, "predictions (Dense)                      (None, 7)");
  free(name);
}

static void test_resnet50(void **state) {
  (void)state;
  char *text = SUCCEEDS("train", "resnet50", "--data", "pictures", "--holdout", "0", "--epochs", "1", "--batch", "2", "--divide", "255",
                        "--out", "r.h5");
  has(text, "Train on 4 samples\n");
  free(text);
  text = SUCCEEDS("evaluate", "resnet50:weights=r.h5", "--data", "pictures", "--test-data", "pictures", "--divide", "255");
  has(text, "resnet50:weights=r.h5 on 4 examples: loss ");
  free(text);
  text = SUCCEEDS("summary", "r.h5");
  has(text, "(None, 32, 34, 3)");
  has(text, "predictions (Dense)                      (None, 3)");
  free(text);
  CHECK_INT(unlink("r.h5"), 0);
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "MODEL: lstm has no 'unit', did you mean 'units'?; it takes steps, features, words, units, layers, dropout, classes, weights", "summary",
        "lstm:unit=3");
  FAILS(2, "MODEL: units 'x': expected a whole number", "train", "lstm:units=x", "--data", "seq");
  FAILS(2, "transformer: a transformer of 64 units and 3 heads", "summary", "transformer:heads=3");
  FAILS(2, "resnet50: ResNet50 takes pictures [height, width, channels] of sides of at least 32", "summary", "resnet50:size=16");
  FAILS(2, "Dropout 'dropout_1': rate is -1", "summary", "lstm:dropout=-1");
  FAILS(2, "unknown network 'lst', did you mean 'lstm'?", "train", "lst");
  FAILS(2, "lstm is made of Keras's layers; train, evaluate, predict, summary and convert take it", "plan", "lstm");
  FAILS(2, "mlp is not made of Keras's layers", "convert", "mlp", "--out", "x.h5");
  FAILS(2, "which weights? lstm:weights=FILE, or the file that 'yoke train lstm' wrote", "evaluate", "lstm", "--data", "seq");
  FAILS(2, "which weights? resnet50:weights=FILE", "predict", "resnet50", "--data", "pictures");
  FAILS(2, "which data? --data PATH", "train", "lstm");
  FAILS(1, "there is no file 'none.h5'", "predict", "lstm:weights=none.h5", "--data", "seq");
  FAILS(1, "data: resnet50 takes pictures [height, width, channels]; an example here has 2 dimensions", "train", "resnet50",
        "--data", "seq");
  FAILS(1, "data: lstm takes sequences [steps, features], or with words=N numbers of words [steps]; an example here has 3 dimensions",
        "train", "lstm", "--data", "pictures");
  FAILS(1, "data: lstm takes numbers of words [steps]; an example here has 2 dimensions", "train", "lstm:words=9", "--data", "seq");
  FAILS(1, "data: the target 'y' has type f32 and 0 dimensions; expected the number of a class, or a number for each class",
        "train", "lstm", "--data", "values");
  FAILS(1, "input 'sequence' needs f32[?,9,3]", "train", "lstm:steps=9", "--data", "seq");
  FAILS(2, "--out 'run': the trained model is a file; expected a name that ends with .h5 or .keras", "train", "lstm", "--data", "seq",
        "--out", "run");
  FAILS(2, "--steps is for networks that are trained in steps, not for a Keras model", "train", "lstm", "--data", "seq",
        "--steps", "3");
  assert_false(exists("trained.h5"));
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_summary), cmocka_unit_test(test_train), cmocka_unit_test(test_use),
                                      cmocka_unit_test(test_resnet50), cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
