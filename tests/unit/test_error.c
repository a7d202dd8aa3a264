/*
 * Codes and messages. What matters: a message survives being quoted by the next
 * one, is cut without harm when too long, and belongs to one thread.
 */
#include "support/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"

static void test_names(void **state) {
  (void)state;
  for (int i = 0; i < (int)YK_NCODES; i++) {
    assert_true(strlen(yk_code_name((yk_code)i)) > 0);
    assert_true(strlen(yk_code_text((yk_code)i)) > 5);
    for (int j = 0; j < i; j++) assert_string_not_equal(yk_code_name((yk_code)i), yk_code_name((yk_code)j));
  }
  assert_string_equal(yk_code_name(YK_OK), "OK");
  assert_string_equal(yk_code_name(YK_EINVAL), "EINVAL");
  assert_string_equal(yk_code_name((yk_code)99), "E?");
  assert_string_equal(yk_code_text((yk_code)99), "unknown code");
  assert_string_equal(yk_version(), YOKE_VERSION);
}

static void test_message(void **state) {
  (void)state;
  yk_error_clear();
  assert_string_equal(yk_error_message(), "");
  CHECK_INT(YK_FAIL(EIO, "file %s, line %d", "a.txt", 7), YK_EIO);
  assert_string_equal(yk_error_message(), "file a.txt, line 7");
  CHECK_INT(YK_FAIL(EINVAL, "while loading: %s", yk_error_message()), YK_EINVAL);
  assert_string_equal(yk_error_message(), "while loading: file a.txt, line 7");
  CHECK_INT(yk__fail_prefix(YK_EINVAL, "node \"%s\"", "conv1"), YK_EINVAL);
  assert_string_equal(yk_error_message(), "node \"conv1\": while loading: file a.txt, line 7");
  CHECK_INT(yk__fail_prefix(YK_EINVAL, "%s", yk_error_message()), YK_EINVAL);
  assert_non_null(strstr(yk_error_message(), "7: node \"conv1\""));
  yk_error_clear();
  assert_string_equal(yk_error_message(), "");
}

static void test_long_messages_are_cut(void **state) {
  static char text[3 * YK__ERROR_BYTES];
  (void)state;
  memset(text, 'x', sizeof text - 1);
  (void)YK_FAIL(EINVAL, "%s", text);
  CHECK_INT(strlen(yk_error_message()), YK__ERROR_BYTES - 1);
  yk__fail_prefix(YK_EINVAL, "prefix");
  CHECK_INT(strlen(yk_error_message()), YK__ERROR_BYTES - 1);
  assert_memory_equal(yk_error_message(), "prefix: xxx", 11);
  yk__fail_prefix(YK_EINVAL, "%s", text);                    /* leaves the message alone */
  assert_memory_equal(yk_error_message(), "prefix: xxx", 11);
  yk_error_clear();
}

static void *other_thread(void *arg) {
  char *seen = arg;
  snprintf(seen, 64, "[%s]", yk_error_message());
  (void)YK_FAIL(EIO, "theirs");
  return NULL;
}

static void test_a_message_belongs_to_its_thread(void **state) {
  char seen[64];
  yk_thread t;
  (void)state;
  (void)YK_FAIL(EIO, "ours");
  CHECK_OK(yk__thread_start(&t, "other", other_thread, seen));
  yk__thread_join(&t);
  assert_string_equal(seen, "[]");
  assert_string_equal(yk_error_message(), "ours");
  yk_error_clear();
}

typedef struct lines { int n, level; char last[256]; } lines;

static void sink(int level, const char *line, void *arg) {
  lines *l = arg;
  l->n++;
  l->level = level;
  snprintf(l->last, sizeof l->last, "%s", line);
}

static void test_log(void **state) {
  lines l = { 0 };
  (void)state;
  yk__log_sink(sink, &l);
  CHECK_OK(yk__param_set("verbose", "1"));
  YK_LOG(NOTICE, "hidden");
  CHECK_INT(l.n, 0);
  YK_LOG(WARNING, "%d devices", 3);
  CHECK_INT(l.n, 1);
  CHECK_INT(l.level, YK_LOG_WARNING);
  assert_string_equal(l.last, "yoke: warning: 3 devices");
  (void)YK_FAIL(EINVAL, "not shown at this level");
  CHECK_INT(l.n, 1);
  CHECK_OK(yk__param_set("verbose", "4"));
  (void)YK_FAIL(EINVAL, "bad rank");
  CHECK_INT(l.n, 2);
  assert_non_null(strstr(l.last, "test_error.c:"));
  assert_non_null(strstr(l.last, "EINVAL: bad rank"));
  CHECK_OK(yk__param_set("verbose", "2"));
  yk__log_sink(NULL, NULL);
  yk_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names), cmocka_unit_test(test_message), cmocka_unit_test(test_long_messages_are_cut),
    cmocka_unit_test(test_a_message_belongs_to_its_thread), cmocka_unit_test(test_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
