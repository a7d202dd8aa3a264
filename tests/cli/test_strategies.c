/*
 * `yoke train --strategy, --replicas, --deterministic, --check-replicas`: the same weights, byte for byte, wherever the replicas and
 * the variables are, and from wherever a run is resumed.
 */
#include "run_yoke.h"

#define NET "train", "mlp", "--data", "set", "--batch", "9", "--interval", "0", "--replicas", "4", "--deterministic"

static int setup(void **state) {
  int rc = yoke_setup(state);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

static void test_same_weights(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "3", "--devices", "cpu:0", "--out", "one"));
  char *out = SUCCEEDS(NET, "--steps", "3", "--virtual-gpus", "2", "--strategy", "mirrored", "--check-replicas", "1", "--out", "two");
  if (!strstr(out, "variables mirrored on each (asked for): global batch 9 = 3 + 2 + 2 + 2; ")) fail_msg("it says: %s", out);
  free(out);
  same_files("one/weights.safetensors", "two/weights.safetensors");
  char *json = SUCCEEDS(NET, "--steps", "3", "--virtual-gpus", "4", "--strategy", "sharded", "--out", "four", "--json");
  assert_non_null(strstr(json, "\"strategy\":\"sharded\",\"replicas\":4"));
  free(json);
  same_files("one/weights.safetensors", "four/weights.safetensors");
}

static void test_resume(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "4", "--devices", "cpu:0", "--out", "whole"));
  free(SUCCEEDS(NET, "--steps", "2", "--virtual-gpus", "2", "--strategy", "home", "--checkpoint-every", "2", "--out", "part"));
  free(SUCCEEDS("train", "mlp", "--out", "part", "--resume", "--steps", "4", "--virtual-gpus", "4", "--strategy", "mirrored"));
  same_files("whole/weights.safetensors", "part/weights.safetensors");
}

static void test_synchronised(void **state) {
  (void)state;
  free(SUCCEEDS("train", "resnet20", "--data", "set", "--batch", "4", "--steps", "1", "--virtual-gpus", "2", "--sync-batch-norm", "--out", "s"));
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "no strategy 'mirored', did you mean 'mirrored'?; there are auto, home, sharded and mirrored", "train", "mlp", "--strategy", "mirored");
  FAILS(2, "--check-replicas needs --strategy mirrored", "train", "mlp", "--check-replicas", "5");
  FAILS(2, "--replicas 1 on 2 devices: expected one for each device or more", "train", "mlp", "--virtual-gpus", "2", "--replicas", "1");
  FAILS(2, "--replicas '0'", "train", "mlp", "--replicas", "0");
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_weights), cmocka_unit_test(test_resume),
                                      cmocka_unit_test(test_synchronised), cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
