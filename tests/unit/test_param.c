/*
 * The settings: defaults are valid, the environment is read, a call wins over
 * both, and whatever is refused changes nothing. The environment is set in main(),
 * before the library reads it for the only time.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/param.h"

static char last_line[512];
static int nlines;

static void sink(int level, const char *line, void *arg) {
  (void)level;
  (void)arg;
  nlines++;
  snprintf(last_line, sizeof last_line, "%s", line);
}

/* First: the bad variable is told of once, at the first use of any setting. */
static void test_bad_environment_warns_once(void **state) {
  (void)state;
  yk__log_sink(sink, NULL);
  CHECK_INT(yk__param_int("data.prefetch"), 4);
  CHECK_INT(yk__param_int("data.prefetch"), 4);
  yk__log_sink(NULL, NULL);
  CHECK_INT(nlines, 1);
  assert_non_null(strstr(last_line, "YOKE_DATA_PREFETCH=many"));
  CHECK_INT(yk__param_origin_of("data.prefetch"), YK_FROM_DEFAULT);
  CHECK_CODE(yk__param_check_env(), YK_EINVAL, "YOKE_DATA_PREFETCH=many: expected a whole number");
}

static void test_environment(void **state) {
  (void)state;
  assert_string_equal(yk__param("virtual_gpus"), "2:512MiB");
  CHECK_INT(yk__param_origin_of("virtual_gpus"), YK_FROM_ENV);
  assert_true(yk__param_bool("strict"));
  CHECK_INT(yk__param_origin_of("verbose"), YK_FROM_DEFAULT);
  CHECK_INT(yk__param_int("verbose"), 2);
  assert_string_equal(yk__env("YOKE_STRICT"), "Yes");
  assert_null(yk__env("YOKE_NO_SUCH_VARIABLE"));
}

static void test_table(void **state) {
  static const char *const kinds[] = { "int", "bytes", "bool", "text", "list" };
  size_t n;
  const yk_param_info *all = yk__param_all(&n);
  (void)state;
  assert_true(n >= 7);
  for (size_t i = 0; i < n; i++) {
    int found = 0;
    for (int k = 0; k < 5; k++) found |= strcmp(all[i].kind, kinds[k]) == 0;
    if (!found) fail_msg("%s has the kind \"%s\"", all[i].name, all[i].kind);
    if (strncmp(all[i].env, "YOKE_", 5) != 0) fail_msg("%s is set by %s", all[i].name, all[i].env);
    if (strlen(all[i].doc) < 20) fail_msg("%s is not described: \"%s\"", all[i].name, all[i].doc);
    for (size_t k = 0; k < i; k++) {
      assert_string_not_equal(all[i].name, all[k].name);
      assert_string_not_equal(all[i].env, all[k].env);
    }
    const char *before = yk__param(all[i].name);
    CHECK_OK(yk__param_set(all[i].name, all[i].dflt));       /* every default is a value it takes */
    assert_string_equal(yk__param(all[i].name), all[i].dflt);
    CHECK_OK(yk__param_set(all[i].name, before));
  }
}

static void test_set(void **state) {
  const char *old = yk__param("trace.steps");
  (void)state;
  assert_string_equal(old, "10");
  CHECK_OK(yk__param_set("trace.steps", "25"));
  CHECK_INT(yk__param_int("trace.steps"), 25);
  CHECK_INT(yk__param_origin_of("trace.steps"), YK_FROM_CALL);
  assert_string_equal(old, "10");
  CHECK_CODE(yk__param_set("trace.steps", "-1"), YK_EINVAL, "trace.steps = \"-1\": expected a whole number");
  CHECK_CODE(yk__param_set("trace.steps", ""), YK_EINVAL, "trace.steps");
  CHECK_CODE(yk__param_set("trace.steps", NULL), YK_EINVAL, "NULL");
  CHECK_INT(yk__param_int("trace.steps"), 25);
  CHECK_CODE(yk__param_set("strict", "maybe"), YK_EINVAL, "expected 0 or 1");
  CHECK_OK(yk__param_set("strict", "off"));
  assert_false(yk__param_bool("strict"));
  CHECK_OK(yk__param_set("memory.limit", "1.5GiB"));
  CHECK_INT(yk__param_int("memory.limit"), 1610612736);
  CHECK_CODE(yk__param_set("memory.limit", "lots"), YK_EINVAL, "1.5GiB");
  CHECK_OK(yk__param_set("devices", "gpu:0,gpu:1"));
  CHECK_CODE(yk__param_set("devices", "gpu:0,,gpu:1"), YK_EINVAL, "list");
  CHECK_CODE(yk__param_set("devices", ","), YK_EINVAL, "list");
  assert_string_equal(yk__param("devices"), "gpu:0,gpu:1");
}

static void test_unknown(void **state) {
  (void)state;
  assert_null(yk__param("no.such"));
  CHECK_INT(yk__param_int("no.such"), 0);
  CHECK_CODE(yk__param_set("data.prefech", "1"), YK_ENOTFOUND, "no setting \"data.prefech\"; the nearest are data.prefetch");
}

static void test_no_growth_and_no_memory(void **state) {
  uint64_t live;
  const char *kept;
  (void)state;
  CHECK_OK(yk__param_set("data.dir", "/a"));
  CHECK_OK(yk__param_set("data.dir", "/b"));
  kept = yk__param("data.dir");
  live = yk__alloc_live();
  for (int i = 0; i < 10; i++) {
    CHECK_OK(yk__param_set("data.dir", "/a"));
    CHECK_OK(yk__param_set("data.dir", "/b"));
  }
  CHECK_INT(yk__alloc_live(), live);
  assert_ptr_equal(yk__param("data.dir"), kept);
  yk__alloc_fail_at(1);
  CHECK_CODE(yk__param_set("data.dir", "/c"), YK_ENOMEM, "memory");
  yk__alloc_fail_at(0);
  assert_string_equal(yk__param("data.dir"), "/b");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bad_environment_warns_once), cmocka_unit_test(test_environment), cmocka_unit_test(test_table),
    cmocka_unit_test(test_set), cmocka_unit_test(test_unknown), cmocka_unit_test(test_no_growth_and_no_memory),
  };
  unsetenv("YOKE_VERBOSE");
  setenv("YOKE_VIRTUAL_GPUS", "2:512MiB", 1);
  setenv("YOKE_STRICT", "Yes", 1);
  setenv("YOKE_DATA_PREFETCH", "many", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
