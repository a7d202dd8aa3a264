/*
 * Device strings. One table says what each string means, as its canonical text,
 * or which words its error must contain; every good one must survive printing
 * and parsing again.
 */
#include "support/check.h"
#include "tensor/device_spec.h"

static const struct { const char *in, *want; } good[] = {
  { "", "" }, { "/", "" },
  { "/cpu:0", "/device:CPU:0" }, { "/CPU:0", "/device:CPU:0" }, { "/gpu:1", "/device:GPU:1" }, { "/GPU:1", "/device:GPU:1" },
  { "/Gpu:12", "/device:GPU:12" }, { "gpu:0", "/device:GPU:0" }, { "cpu", "/device:CPU:*" }, { "/gpu", "/device:GPU:*" },
  { "/gpu:*", "/device:GPU:*" }, { "/cpu:*", "/device:CPU:*" }, { "/gpu:007", "/device:GPU:7" },
  { "/gpu:2147483647", "/device:GPU:2147483647" },
  { "/device:GPU:0", "/device:GPU:0" }, { "/device:gpu:0", "/device:GPU:0" }, { "/device:GPU", "/device:GPU:*" },
  { "/device:GPU:*", "/device:GPU:*" }, { "/device:TPU:3", "/device:TPU:3" }, { "/device:XLA_GPU:0", "/device:XLA_GPU:0" },
  { "/device:*", "" }, { "/device:*:*", "" }, { "/device:*:1", "/device:*:1" },
  { "/device:ABCDEFGHIJKLMNO:1", "/device:ABCDEFGHIJKLMNO:1" },
  { "/job:w", "/job:w" }, { "/job:worker_2", "/job:worker_2" }, { "/job:*", "" }, { "/job:W", "/job:W" },
  { "/job:a123456789b123456789c1234567890", "/job:a123456789b123456789c1234567890" },
  { "/replica:0", "/replica:0" }, { "/replica:*", "" }, { "/task:5", "/task:5" }, { "/task:*", "" },
  { "/job:w/replica:0/task:1/device:GPU:0", "/job:w/replica:0/task:1/device:GPU:0" },
  { "/job:w/replica:0/task:1/gpu:0", "/job:w/replica:0/task:1/device:GPU:0" },
  { "/device:GPU:0/task:1/replica:0/job:w", "/job:w/replica:0/task:1/device:GPU:0" },
  { "/gpu:0/job:w", "/job:w/device:GPU:0" }, { "/job:w/task:*/gpu:*", "/job:w/device:GPU:*" },
  { "/job:ps/task:3", "/job:ps/task:3" }, { "/task:3/cpu:0", "/task:3/device:CPU:0" },
  { "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0" },
  { "/job:localhost/replica:0/task:0/cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0" },
};

static const struct { const char *in, *words; } bad[] = {
  { "/cpu:", "\"cpu:\" has no device number" }, { "/gpu:", "\"gpu:\" has no device number" },
  { "/gpu:-1", "\"gpu:-1\" has no device number" },
  { "/gpu:x", "\"gpu:x\" has no device number" }, { "/gpu:1x", "\"gpu:1x\"" }, { "/gpu:+1", "\"gpu:+1\"" },
  { "/gpu: 1", "\"gpu: 1\"" },
  { "/gpu:1:2", "\"gpu:1:2\"" }, { "/gpu:2147483648", "\"gpu:2147483648\"" },
  { "/gpu:99999999999999999999", "no device number" },
  { "/gpu:0x1", "\"gpu:0x1\"" }, { "/gpu:1.0", "\"gpu:1.0\"" },
  { "/job:/replica:0/task:0/cpu:0", "\"job:\" has no job name" }, { "/job:1w", "\"job:1w\" has no job name" },
  { "/job:a-b", "no job name" },
  { "/job:a b", "no job name" }, { "/job:_a", "no job name" }, { "/job:a:b", "no job name" },
  { "/job:a123456789b123456789c12345678901", "at most 31" },
  { "/replica:", "\"replica:\" has no number" }, { "/replica:-1", "\"replica:-1\"" },
  { "/task:abc", "\"task:abc\" has no number" }, { "/task:", "task:" },
  { "/device:", "has no device type" }, { "/device::0", "has no device type" }, { "/device:GPU:", "has no device number" },
  { "/device:GPU:-1", "has no device number" }, { "/device:0", "has no device type" },
  { "/device:G U:0", "has no device type" },
  { "/device:ABCDEFGHIJKLMNOP:1", "at most 15" }, { "/device:GPU:0:0", "has no device number" },
  { "/cpu:0/gpu:0", "\"gpu:0\" comes after another" }, { "/cpu:0/cpu:0", "expected one device type" },
  { "/device:CPU:0/gpu:0", "one device type" },
  { "/job:a/job:b", "expected one job" }, { "/task:1/task:1", "expected one task" },
  { "/replica:0/gpu:0/replica:1", "expected one replica" },
  { "/job:*/job:a", "expected one job" },
  { "/foo:1", "\"foo:1\" is not understood; expected /job:NAME" }, { "/JOB:w", "\"JOB:w\"" }, { "/tpu:0", "\"tpu:0\"" },
  { "/job", "\"job\" is not understood" },
  { "/device", "\"device\"" }, { "/cpu:0/", "\"\" is not understood" }, { "//", "\"\" is not understood" },
  { "//cpu:0", "\"\" is not understood" },
  { "/cpu:0//job:w", "\"\" is not understood" }, { " /cpu:0", "\" \" is not understood" }, { "/cpu:0 ", "\"cpu:0 \"" },
  { "*", "\"*\"" },
  { "/cpu0", "\"cpu0\"" }, { "/cpus:0", "\"cpus:0\"" }, { "/gpu:1\n", "\"gpu:1?\"" },
};

static void check_same(const char *text, const yk_device_spec *a, const yk_device_spec *b) {
  int same = strcmp(a->job, b->job) == 0 && a->replica == b->replica && a->task == b->task;
  if (!same || strcmp(a->type, b->type) != 0 || a->id != b->id) {
    fail_msg("\"%s\": printed and parsed again, it is another device", text);
  }
}

static void test_good(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    yk_device_spec d, again;
    char buf[YK__DEVICE_TEXT];
    CHECK_OK(yk__device_parse(good[i].in, &d));
    assert_ptr_equal(yk__device_text(&d, buf), buf);
    if (strcmp(buf, good[i].want) != 0) fail_msg("\"%s\" is \"%s\", expected \"%s\"", good[i].in, buf, good[i].want);
    CHECK_OK(yk__device_parse(buf, &again));
    check_same(good[i].in, &d, &again);
    CHECK_INT(yk__device_empty(&d), good[i].want[0] == '\0');
  }
}

static void test_bad(void **state) {
  (void)state;
  assert_true(sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0] >= 60);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    yk_device_spec d = YK__ANY_DEVICE;
    d.id = 77;
    if (yk__device_parse(bad[i].in, &d) == YK_OK) fail_msg("\"%s\" was taken", bad[i].in);
    CHECK_CODE(yk__device_parse(bad[i].in, &d), YK_EINVAL, bad[i].words);
    CHECK_INT(d.id, 77);
    CHECK_INT(d.task, -1);
  }
  yk_device_spec d;
  CHECK_CODE(yk__device_parse(NULL, &d), YK_EINVAL, "NULL");
}

/* Whatever is thrown at it, the message stays short and printable. */
static void test_long_strings(void **state) {
  static const char *const starts[] = { "", "/", "/job:", "/device:", "/gpu:", "/cpu:0/task:1/xyz" };
  static const char fill[] = { 'x', '/', ':', '1', '\n', '\x80', '*' };
  size_t n = (size_t)1 << 20;
  char *text = malloc(n + 1);
  (void)state;
  assert_non_null(text);
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    for (size_t k = 0; k < sizeof fill; k++) {
      yk_device_spec d;
      memset(text, fill[k], n);
      text[n] = '\0';
      memcpy(text, starts[i], strlen(starts[i]));
      CHECK_INT(yk__device_parse(text, &d), YK_EINVAL);
      assert_true(strlen(yk_error_message()) < 300);
      for (const char *p = yk_error_message(); *p; p++) assert_true(*p >= ' ' && *p <= '~');
      yk_error_clear();
    }
  }
  free(text);
}

static void check_merge(const char *inner, const char *outer, const char *want) {
  yk_device_spec a, b, r;
  char buf[YK__DEVICE_TEXT];
  CHECK_OK(yk__device_parse(inner, &a));
  CHECK_OK(yk__device_parse(outer, &b));
  r = yk__device_merge(&a, &b);
  yk__device_text(&r, buf);
  if (strcmp(buf, want) != 0) fail_msg("\"%s\" in \"%s\" is \"%s\", expected \"%s\"", inner, outer, buf, want);
}

static void test_merge(void **state) {
  (void)state;
  check_merge("/cpu:0", "/job:w/gpu:1", "/job:w/device:CPU:0");
  check_merge("/task:3", "/gpu:1", "/task:3/device:GPU:1");
  check_merge("/gpu", "/cpu:1", "/device:GPU:1");            /* type and number are two fields */
  check_merge("", "/job:a/replica:1/task:2/gpu:3", "/job:a/replica:1/task:2/device:GPU:3");
  check_merge("/job:a/replica:1/task:2/gpu:3", "/job:b/replica:4/task:5/cpu:6", "/job:a/replica:1/task:2/device:GPU:3");
  check_merge("/job:*/gpu:*", "/job:b/cpu:6", "/job:b/device:GPU:6");
  check_merge("", "", "");
}

static void check_match(const char *request, const char *device, int want) {
  yk_device_spec r, d;
  CHECK_OK(yk__device_parse(request, &r));
  CHECK_OK(yk__device_parse(device, &d));
  if (yk__device_matches(&r, &d) != want) fail_msg("\"%s\" %s \"%s\"", request, want ? "should match" : "should not match", device);
}

static void test_matches(void **state) {
  static const char gpu1[] = "/job:localhost/replica:0/task:0/device:GPU:1";
  (void)state;
  check_match("", gpu1, 1);
  check_match("/gpu:1", gpu1, 1);
  check_match("/gpu:*", gpu1, 1);
  check_match("/device:*:1", gpu1, 1);
  check_match(gpu1, gpu1, 1);
  check_match("/job:localhost", gpu1, 1);
  check_match("/gpu:0", gpu1, 0);
  check_match("/cpu:1", gpu1, 0);
  check_match("/job:w", gpu1, 0);
  check_match("/replica:1", gpu1, 0);
  check_match("/task:1/gpu:1", gpu1, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_good), cmocka_unit_test(test_bad), cmocka_unit_test(test_long_strings), cmocka_unit_test(test_merge),
    cmocka_unit_test(test_matches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
