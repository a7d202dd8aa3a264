/*
 * Bad files: data that is missing, cut off or wrong, folders that cannot be written, weights that do not fit. Each is one
 * line and status 1, told before training, with nothing half-written behind it.
 */
#include "run_yoke.h"

#include <sys/stat.h>
#include <unistd.h>

enum { RECORD = 3073 };

static void test_data_folder(void **state) {
  (void)state;
  FAILS(1, "'absent'", "train", "mlp", "--data", "absent", "--out", "never");
  mkdir("empty", 0777);
  FAILS(1, "'empty'", "train", "mlp", "--data", "empty", "--out", "never");
  write_file("plain", "x", 1);
  FAILS(1, "plain", "train", "mlp", "--data", "plain", "--out", "never");
  FAILS(1, "'absent'", "evaluate", "mlp", "--data", "absent", "--out", "never");
  assert_false(exists("never"));
}

static void test_data_files(void **state) {
  char *bytes;
  (void)state;
  write_cifar("bad", 20, 10);
  bytes = read_file("bad/data_batch_1.bin");
  assert_non_null(bytes);
  write_file("bad/data_batch_1.bin", bytes, 20 * RECORD - 5);
  FAILS(1, "cut off", "train", "mlp", "--data", "bad", "--out", "never");
  write_file("bad/data_batch_1.bin", bytes, 0);
  FAILS(1, "empty", "train", "mlp", "--data", "bad", "--out", "never");
  bytes[3 * RECORD] = 10;
  write_file("bad/data_batch_1.bin", bytes, 20 * RECORD);
  FAILS(1, "label 10 of record 3", "train", "mlp", "--data", "bad", "--out", "never");
  bytes[3 * RECORD] = 1;
  write_file("bad/data_batch_1.bin", bytes, 20 * RECORD);
  unlink("bad/test_batch.bin");
  FAILS(1, "test_batch.bin", "train", "mlp", "--data", "bad", "--out", "never");
  free(bytes);
  assert_false(exists("never"));
}

static void test_out_folder(void **state) {
  (void)state;
  write_cifar("set", 20, 10);
  write_file("file", "x", 1);
  FAILS(1, "--out: the folder 'file' cannot be made", "train", "mlp", "--data", "set", "--out", "file");
  FAILS(1, "--out: the folder 'file/run' cannot be made", "train", "mlp", "--data", "set", "--out", "file/run");
  FAILS(1, "--out: the folder '/proc/yoke/run' cannot be made", "train", "mlp", "--data", "set", "--out", "/proc/yoke/run");
  char *text = read_file("file");
  assert_string_equal(text, "x");
  free(text);
}

/* The superuser may write anywhere, so there it is a folder in place of the file. */
static void test_read_only_folder(void **state) {
  (void)state;
  mkdir("locked", 0555);
  if (access("locked", W_OK) == 0) mkdir("locked/settings.json", 0777);
  FAILS(1, "--out: 'locked/settings.json' cannot be", "train", "mlp", "--data", "set", "--out", "locked");
  assert_false(exists("locked/metrics.jsonl"));
  assert_false(exists("locked/weights.safetensors"));
  chmod("locked", 0755);
}

static void test_trace_file(void **state) {
  (void)state;
  FAILS(1, "--trace: 'absent/t.json' cannot be created", "train", "mlp", "--data", "set", "--out", "t", "--trace",
        "absent/t.json");
  assert_false(exists("t/weights.safetensors"));
}

static void test_weights(void **state) {
  (void)state;
  FAILS(1, "there is no file 'absent/weights.safetensors'", "evaluate", "mlp", "--data", "set", "--out", "absent");
  mkdir("w", 0777);
  write_file("w/weights.safetensors", "x", 1);
  FAILS(1, "too few", "evaluate", "mlp", "--data", "set", "--out", "w");
  write_file("w/weights.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
  FAILS(1, "'w/weights.safetensors' has no tensor 'hidden1/weights'", "evaluate", "mlp", "--data", "set", "--out", "w");
  static const char wrong[] = "\110\0\0\0\0\0\0\0"
                              "{\"hidden1/weights\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}     12345678";
  write_file("w/weights.safetensors", wrong, 8 + 72 + 8);
  FAILS(1, "tensor 'hidden1/weights' is f32[1,2]; mlp needs f32[3072,1024]", "evaluate", "mlp", "--data", "set", "--out", "w");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_folder), cmocka_unit_test(test_data_files), cmocka_unit_test(test_out_folder),
    cmocka_unit_test(test_read_only_folder), cmocka_unit_test(test_trace_file), cmocka_unit_test(test_weights),
  };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
