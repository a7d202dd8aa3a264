/*
 * Wrong usage: every kind of mistake on the command line gives one line that names it, and status 2; an absent GPU gives 3.
 * Nothing may be left behind by a command that was refused.
 */
#include "run_yoke.h"

static void test_commands(void **state) {
  (void)state;
  yoke_result r;
  yoke_run(&r, (const char *const[]){ "yoke", NULL });
  CHECK_INT(r.status, 2);
  assert_non_null(strstr(r.err, "which command?"));
  yoke_free(&r);
  FAILS(2, "unknown command 'tran', did you mean 'train'?", "tran");
  FAILS(2, "unknown command 'x'", "x");
  FAILS(2, "unknown option '--bogus'", "--bogus");
  FAILS(2, "unknown command ''", "");
}

static void test_options(void **state) {
  (void)state;
  FAILS(2, "unknown option '--bach', did you mean '--batch'?", "train", "mlp", "--bach", "8");
  FAILS(2, "unknown option '-x'", "train", "mlp", "-x");
  FAILS(2, "unknown option '--epochs'", "evaluate", "mlp", "--epochs", "1");
  FAILS(2, "unknown option '--quietly'", "train", "mlp", "--quietly");
  FAILS(2, "unknown option '--bogus=1'", "train", "mlp", "--bogus=1");
  FAILS(2, "--batch needs a value", "train", "mlp", "--batch");
  FAILS(2, "--batch needs a value", "train", "mlp", "--batch", "--steps", "3");
  FAILS(2, "--batch needs a value", "train", "mlp", "--batch=");
  FAILS(2, "--data needs a value", "train", "mlp", "--data", "");
  FAILS(2, "--quiet takes no value", "train", "mlp", "--quiet=yes");
  FAILS(2, "--steps and --epochs exclude each other", "train", "mlp", "--steps", "2", "--epochs", "1");
  FAILS(2, "--quiet and --json exclude each other", "train", "mlp", "--quiet", "--json");
}

static void test_operands(void **state) {
  (void)state;
  FAILS(2, "which network?", "train");
  FAILS(2, "which network?", "explain", "--batch", "8");
  FAILS(2, "unknown network 'cifar', did you mean 'cifar10'?", "train", "cifar");
  FAILS(2, "unknown network '%s%n'", "train", "%s%n");
  FAILS(2, "unexpected argument 'mlp' after MODEL 'cifar10'", "train", "cifar10", "mlp");
  FAILS(2, "unexpected argument 'mlp'", "devices", "mlp");
  FAILS(2, "unexpected argument '--json' after MODEL 'mlp'", "train", "mlp", "--", "--json");
  FAILS(2, "which weights? --out DIR", "evaluate", "mlp");
}

static void test_numbers(void **state) {
  static const char *const whole[] = { "0", "-1", "1.5", "x", "8x", "99999999999999999999", " 8", "0x10", "nan" };
  static const char *const real[] = { "-1", "x", "nan", "inf", "1e400", "1e9", "0.1.2", "1,5" };
  (void)state;
  for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
    FAILS(2, "--batch '", "train", "mlp", "--batch", whole[i]);
    FAILS(2, "--steps '", "train", "mlp", "--steps", whole[i]);
  }
  for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) FAILS(2, "--lr '", "train", "mlp", "--lr", real[i]);
  FAILS(2, "--epochs '0': expected a number from", "train", "mlp", "--epochs", "0");
  FAILS(2, "--seed '-1': expected a whole number from 0", "train", "mlp", "--seed", "-1");
  FAILS(2, "--interval '-1'", "train", "mlp", "--interval", "-1");
}

static void test_device_strings(void **state) {
  static const char *const bad[] = { "/cpu:", "/gpu:-1", "/job:/replica:0/task:0/cpu:0", "cpu", "gpu:x", "gpu:*", "", ",",
                                     "cpu:0,", "cpu:0,,cpu:1",
                                     "/job:worker/replica:0/task:1/cpu:0", "/task:0", "tpu:0", "cpu:99999999999", "cpu:64",
                                         "cpu:0 ", "//cpu:0",
                                     "cpu:0;cpu:1", "auto,cpu:0", "\n" };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) FAILS(2, "--devices", "train", "mlp", "--devices", bad[i]);
  FAILS(2, "--devices names /cpu:0 twice", "train", "mlp", "--devices", "cpu:0,/cpu:0");
  FAILS(2, "--devices names /gpu:0 twice", "train", "mlp", "--devices", "gpu:0,/device:GPU:0");
}

/* As long as an argument can be; the message stays short. */
static void test_long_device_string(void **state) {
  enum { N = 120000 };
  char *text = malloc(N + 1);
  (void)state;
  assert_non_null(text);
  memset(text, 'g', N);
  text[N] = '\0';
  FAILS(2, "--devices", "train", "mlp", "--devices", text);
  FAILS(2, "unknown network 'ggg", "train", text);
  FAILS(2, "unknown command 'ggg", text);
  FAILS(2, "--batch 'ggg", "train", "mlp", "--batch", text);
  FAILS(2, "--out 'ggg", "train", "mlp", "--data", "set", "--out", text);
  for (int i = 1; i < N; i += 2) text[i] = ',';
  FAILS(2, "--devices", "train", "mlp", "--devices", text);
  free(text);
}

static void test_virtual_gpus(void **state) {
  static const char *const bad[] = { "0", "-1", "x", "2:", "2:x", "2:0", "65", ":512MiB", "2:512QiB", "1e1",
                                     "99999999999999999999", "2,", ",2", "60,5", "2:1MiB:", "2:1MiB:0", "2::", "2:1MiB:1:1" };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    FAILS(2, "--virtual-gpus '", "train", "mlp", "--virtual-gpus", bad[i]);
    FAILS(2, "--virtual-gpus '", "devices", "--virtual-gpus", bad[i]);
  }
}

/* A named GPU that is not there is never replaced silently. */
static void test_absent_gpu(void **state) {
  (void)state;
  FAILS(3, "no usable GPU for /gpu:63", "train", "mlp", "--devices", "gpu:63");
  FAILS(3, "no usable GPU for /gpu:63", "train", "mlp", "--devices", "cpu:0,gpu:63", "--virtual-gpus", "2");
  FAILS(3, "no usable GPU for /gpu:63", "explain", "mlp", "--devices", "gpu:63");
}

static void test_environment(void **state) {
  (void)state;
  setenv("YOKE_CORES", "many", 1);
  FAILS(2, "YOKE_CORES", "devices");
  unsetenv("YOKE_CORES");
  setenv("YOKE_DEVICES", "/gpu:-1", 1);
  FAILS(2, "--devices", "train", "mlp");
  unsetenv("YOKE_DEVICES");
}

/* Last: none of the commands above has left anything but what the tests themselves write. */
static void test_nothing_left(void **state) {
  (void)state;
  assert_false(exists("runs"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_commands), cmocka_unit_test(test_options), cmocka_unit_test(test_operands),
        cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_device_strings), cmocka_unit_test(test_long_device_string), cmocka_unit_test(test_virtual_gpus),
    cmocka_unit_test(test_absent_gpu), cmocka_unit_test(test_environment), cmocka_unit_test(test_nothing_left),
  };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
