/*
 * test_virtual.c - the texts that make virtual GPUs and split devices, as tables: what each means, or how it is refused.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "device/virtual.h"

#define MIB (1024ull * 1024)

/* "512:0 512:0": MiB and cores of each. */
static void test_groups(void **state) {
  static const struct { const char *text, *want; } table[] = {
    { "1", "0:0" }, { "3", "0:0 0:0 0:0" }, { "2:512MiB", "512:0 512:0" }, { "1:1.5GiB", "1536:0" }, { "1:1048576", "1:0" },
    { "1,1", "0:0 0:0" }, { "2:1GiB:2,1:256MiB", "1024:2 1024:2 256:0" }, { "2::1", "0:1 0:1" }, { "1::3,2:1MiB", "0:3 1:0 1:0" },
    { "1:1MiB:65536", "1:65536" }, { "01", "0:0" }, { "1:1 MiB", "1:0" }, { "8:1MiB", "1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yk_gpu_size *gpu = NULL;
    uint16_t n = 0;
    char got[200] = "";
    CHECK_OK(yk__virtual_parse("--virtual-gpus", table[i].text, 8, &gpu, &n));
    for (uint16_t k = 0; k < n; k++)
      snprintf(got + strlen(got), sizeof got - strlen(got), "%s%llu:%u", k ? " " : "", (unsigned long long)(gpu[k].bytes / MIB),
               (unsigned)gpu[k].cores);
    if (strcmp(got, table[i].want) != 0) fail_msg("%s: %s, expected %s", table[i].text, got, table[i].want);
    yk__free(gpu);
  }
}

static void test_bad_groups(void **state) {
  static const struct { const char *text, *says; } table[] = {
    { "", "'' is no number of GPUs from 1 to 8" }, { "0", "'0' is no number" }, { "-1", "'-1' is no number" },
    { "+1", "'+1' is no number" },
    { "9", "'9' is no number of GPUs from 1 to 8" }, { "x", "'x' is no number" }, { " 2", "' 2' is no number" },
    { "2 ", "'2 ' is no number" },
    { "1e1", "'1e1' is no number" }, { "99999999999999999999", "is no number" }, { ",", "'' is no number" },
    { "2,", "'' is no number" },
    { ",2", "'' is no number" }, { ":512MiB", "'' is no number" }, { "2:", "'' is no amount" }, { "2:x", "'x' is no amount" },
    { "2:0", "'0' is no amount" }, { "2:-1", "'-1' is no amount" }, { "2:512QiB", "'512QiB' is no amount" },
    { "1:10000000TiB", "more memory than" }, { "2:1MiB:", "'' is no number of cores" },
    { "2:1MiB:0", "'0' is no number of cores" },
    { "2:1MiB:x", "'x' is no number of cores" }, { "2:1MiB:1:1", "'1:1' is no number of cores" },
    { "2::", "'' is no number of cores" },
    { "2::65537", "'65537' is no number of cores" }, { "2:::1", "':1' is no number of cores" },
    { "4,5", "'5' makes it 9 GPUs; at most 8" }, { "8,1:1MiB:2", "'1:1MiB:2' makes it 9" }, { "2;3", "'2;3' is no number" },
    { "2:1MiB\n", "'1MiB?' is no amount" },
    { "1,111111111111111111111111111111111111111111111111111111111111111111111111111111",
      "'111111111111111111111111111111111111111111111111111111111111...' is no" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yk_gpu_size *gpu = NULL;
    uint16_t n = 77;
    CHECK_CODE(yk__virtual_parse("--virtual-gpus", table[i].text, 8, &gpu, &n), YK_EINVAL, table[i].says);
    assert_null(gpu);
    CHECK_INT(n, 77);
  }
  yk_gpu_size *gpu = NULL;
  uint16_t n = 0;
  CHECK_CODE(yk__virtual_parse("here", "2,x", 8, &gpu, &n), YK_EINVAL,
             "here '2,x': 'x' is no number of GPUs from 1 to 8; expected groups N[:LIMIT[:CORES]]");
}

/* "0=512,256 2=1": the GPU and MiB of each part. */
static void test_splits(void **state) {
  static const struct { const char *text, *want; } table[] = {
    { "gpu:0=512MiB", "0=512" }, { "gpu:0=512MiB,256MiB", "0=512,256" }, { "/gpu:1=1MiB,1MiB", "1=1,1" }, { "GPU:1=1MiB", "1=1" },
    { "/device:GPU:3=1MiB", "3=1" }, { "gpu:0=2MiB,1MiB,gpu:2=3MiB", "0=2,1 2=3" }, { "gpu:2=1MiB,gpu:0=4MiB,4MiB", "2=1 0=4,4" },
    { "gpu:4095=1MiB", "4095=1" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yk_gpu_split *split = NULL;
    uint16_t n = 0;
    char got[200] = "";
    CHECK_OK(yk__split_parse("--split", table[i].text, &split, &n));
    for (uint16_t k = 0; k < n; k++) {
      snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u=", k ? " " : "", (unsigned)split[k].gpu);
      for (uint16_t p = 0; p < split[k].nparts; p++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%llu", p ? "," : "",
                 (unsigned long long)(split[k].part[p] / MIB));
    }
    if (strcmp(got, table[i].want) != 0) fail_msg("%s: %s, expected %s", table[i].text, got, table[i].want);
    yk__free(split);
  }
}

static void test_bad_splits(void **state) {
  static const struct { const char *text, *says; } table[] = {
    { "", "'' does not say which GPU" }, { "512MiB", "'512MiB' does not say which GPU" },
    { "gpu:0", "'gpu:0' does not say which GPU" },
    { "gpu:0=", "'' is no amount" }, { "gpu:0=x", "'x' is no amount" }, { "gpu:0=0", "'0' is no amount" },
    { "gpu:0=1MiB,", "'' is no amount" },
    { "gpu:0=1MiB,,1MiB", "'' is no amount" }, { "=1MiB", "'' is no GPU" }, { "cpu:0=1MiB", "'cpu:0' is no GPU with its number" },
    { "gpu=1MiB", "'gpu' is no GPU" }, { "gpu:*=1MiB", "'gpu:*' is no GPU with its number" },
    { "gpu:-1=1MiB", "'gpu:-1' is no GPU" },
    { "gpu:0=1MiB,gpu:0=1MiB", "'gpu:0' is split twice" }, { "/job:w/gpu:0=1MiB", "is no GPU with its number" },
    { "gpu:4096=1MiB", "'gpu:4096' is beyond" }, { "gpu:99999999999=1MiB", "is no GPU" }, { "gpu:0=1MiB=2MiB", "is no amount" },
    { "gpu:0=1MiB;gpu:1=1MiB", "is no amount" },
    { "gpuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu:0=1MiB", "is no GPU" },
    { "gpu:0=9999999TiB", "more memory than" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yk_gpu_split *split = NULL;
    uint16_t n = 77;
    yk_code rc = yk__split_parse("--split", table[i].text, &split, &n);
    const char *says = yk_error_message();
    if (rc != YK_EINVAL || !strstr(says, table[i].says) || !strstr(says, "expected GPUs with the memory"))
      fail_msg("%s: %s \"%s\", expected \"%s\"", table[i].text, yk_code_name(rc), yk_error_message(), table[i].says);
    yk_error_clear();
    assert_null(split);
  }
  char many[3 * YK__MAX_GPUS];
  memset(many, ',', sizeof many - 1);
  many[sizeof many - 1] = '\0';
  yk_gpu_split *split = NULL;
  uint16_t n;
  CHECK_CODE(yk__split_parse("--split", many, &split, &n), YK_EINVAL, "has too many parts");
}

static void test_out_of_memory(void **state) {
  yk_gpu_size *gpu = NULL;
  yk_gpu_split *split = NULL;
  uint16_t n = 77;
  (void)state;
  yk__alloc_fail_at(1);
  CHECK_CODE(yk__virtual_parse("x", "2", 8, &gpu, &n), YK_ENOMEM, "");
  yk__alloc_fail_at(1);
  CHECK_CODE(yk__split_parse("x", "gpu:0=1", &split, &n), YK_ENOMEM, "");
  yk__alloc_fail_at(0);
  CHECK_INT(n, 77);
  assert_true(gpu == NULL && split == NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_groups), cmocka_unit_test(test_bad_groups), cmocka_unit_test(test_splits),
    cmocka_unit_test(test_bad_splits),
    cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
