/*
 * The strict JSON reader: what it takes, where it says that something is wrong, and that nothing is left in memory.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/jread.h"

static yk_jread over(const char *text) {
  return (yk_jread){ .what = "t", .s = text, .n = strlen(text), .lines = 1 };
}

static void test_members(void **state) {
  yk_jread r = over(" { \"a\" : 12 ,\"b\":[1,2.5,-3e2 ], \"c\":{}, \"d\":[], \"e\":true,\"f\" : false , \"g\":\"x\" } \n");
  char *key = NULL;
  uint64_t whole = 0;
  double real[3] = { 0 };
  int more = 0, yes = -1;
  (void)state;
  CHECK_OK(yk__jread_enter(&r, '{'));
  for (const char *want = "abcdefg"; *want; want++) {
    CHECK_OK(yk__jread_key(&r, &key));
    assert_non_null(key);
    if (key[0] != *want) fail_msg("key %s, expected %c", key, *want);
    yk__free(key);
    char *text = NULL;
    switch (*want) {
    case 'a': CHECK_OK(yk__jread_whole(&r, 0, 12, &whole)); break;
    case 'b':
      CHECK_OK(yk__jread_enter(&r, '['));
      for (int i = 0; i < 3; i++) {
        CHECK_OK(yk__jread_more(&r, &more));
        CHECK_INT(more, 1);
        CHECK_OK(yk__jread_real(&r, -1000, 1000, &real[i]));
      }
      CHECK_OK(yk__jread_more(&r, &more));
      CHECK_INT(more, 0);
      break;
    case 'e':
    case 'f':
      CHECK_OK(yk__jread_bool(&r, &yes));
      CHECK_INT(yes, *want == 'e');
      break;
    case 'g':
      CHECK_OK(yk__jread_text(&r, &text));
      assert_string_equal(text, "x");
      yk__free(text);
      break;
    default: CHECK_OK(yk__jread_skip(&r));
    }
  }
  CHECK_OK(yk__jread_key(&r, &key));
  assert_null(key);
  CHECK_OK(yk__jread_end(&r));
  CHECK_INT(whole, 12);
  CHECK_NEAR(real[0], 1, 0);
  CHECK_NEAR(real[1], 2.5, 0);
  CHECK_NEAR(real[2], -300, 0);
}

static void test_texts(void **state) {
  static const struct { const char *json, *want; } good[] = {
    { "\"\"", "" }, { "  \"a b\"", "a b" }, { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" }, { "\"\\u0041\"", "A" },
    { "\"\\u00e9\\u20AC\"", "\xC3\xA9\xE2\x82\xAC" }, { "\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80" },
    { "\"\xC3\xA9\"", "\xC3\xA9" },
  };
  static const struct { const char *json, *says; } bad[] = {
    { "", "t:1:1: expected a string" }, { "1", "t:1:1: expected a string" }, { "\"abc", "t:1:5: expected the end of a string" },
    { "\"a\nb\"", "t:1:3: expected the end of a string" }, { "\"\\q\"", "JSON escape" },
    { "\"a\xFF\"", "t:1:3: expected UTF-8" }, { "\"\xC3", "t:1:2: expected UTF-8" }, { "\"\xE2\x82\"", "expected UTF-8" },
    { "\"\xC0\x80\"", "expected UTF-8" }, { "\"\xED\xA0\x80\"", "expected UTF-8" }, { "\"\\", "JSON escape" },
    { "\"\\u00g0\"", "t:1:6: expected four hexadecimal digits" }, { "\"\\u0000\"", "U+0000" }, { "\"\\ud800\"", "U+0000" },
    { "\"\\ud800\\u0041\"", "second half" }, { "\"\\ude00\"", "U+0000" }, { "\n\n \"\\u12", "t:3:7: expected four" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    yk_jread r = over(good[i].json);
    char *text = NULL;
    CHECK_OK(yk__jread_text(&r, &text));
    if (strcmp(text, good[i].want) != 0) fail_msg("%s is \"%s\", expected \"%s\"", good[i].json, text, good[i].want);
    yk__free(text);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    yk_jread r = over(bad[i].json);
    char *text = NULL;
    CHECK_CODE(yk__jread_text(&r, &text), YK_ECORRUPT, bad[i].says);
    assert_null(text);
  }
}

static void test_numbers(void **state) {
  static const char *const no_whole[] = { "", "-1", "01", "a", "\"1\"", "11", "99999999999999999999", "+1", ".5", "null" };
  static const char *const no_real[] = { "", "01", "-", "1.", ".5", "1e", "1e+", "+1", "nan", "inf", "1e400", "101", "-101",
    "\"1\"",
                                         "1111111111111111111111111111111111111111111111111111111111111111111111" };
  static const struct { const char *json; double want; } reals[] = { { "0", 0 }, { "-0.5", -0.5 }, { "1E1", 10 }, { "5e-1", 0.5 },
    { "1e+2", 100 } };
  (void)state;
  for (size_t i = 0; i < sizeof no_whole / sizeof *no_whole; i++) {
    yk_jread r = over(no_whole[i]);
    uint64_t x = 77;
    CHECK_CODE(yk__jread_whole(&r, 0, 10, &x), YK_ECORRUPT, "t:1:1: expected a whole number from 0 to 10");
    CHECK_INT(x, 77);
  }
  for (size_t i = 0; i < sizeof no_real / sizeof *no_real; i++) {
    yk_jread r = over(no_real[i]);
    double x = 77;
    CHECK_CODE(yk__jread_real(&r, -100, 100, &x), YK_ECORRUPT, "t:1:1: expected a number from -100 to 100");
    CHECK_NEAR(x, 77, 0);
  }
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
    yk_jread r = over(reals[i].json);
    double x = 77;
    CHECK_OK(yk__jread_real(&r, -100, 100, &x));
    CHECK_NEAR(x, reals[i].want, 0);
    CHECK_OK(yk__jread_end(&r));
  }
  yk_jread r = over("9223372036854775807"), one = over("9223372036854775808");
  uint64_t x = 0;
  CHECK_OK(yk__jread_whole(&r, 0, INT64_MAX, &x));
  assert_true(x == (uint64_t)INT64_MAX);
  CHECK_CODE(yk__jread_whole(&one, 0, INT64_MAX, &x), YK_ECORRUPT, "below 2^63");
  one = over("2");
  CHECK_CODE(yk__jread_whole(&one, 1, 1, &x), YK_ECORRUPT, "the number 1");
}

/* Anything that is JSON can be passed over, nothing else can; nesting ends where it should. */
static void test_skip(void **state) {
  static const char *const good[] = { "1", "-1.5e3", "\"a\\\"b\"", "true", "false", "null", "[]", "{}", "[1,[2,[3]],{}]",
                                      "{\"a\":{\"b\":[{\"c\":1},2]},\"d\":\"}\"}", " [ \"]\" , { } ] " };
  static const struct { const char *json, *says; } bad[] = {
    { "", "a value" }, { "tru", "a value" }, { "[1", "',' or ']'" }, { "[1 2]", "',' or ']'" }, { "[1,]", "a value" },
    { "[,1]", "a value" },
    { "{\"a\"}", "':'" }, { "{\"a\":}", "a value" }, { "{\"a\":1,}", "a string" }, { "{a:1}", "a string" },
    { "{\"a\":1", "',' or '}'" },
    { "{\"a\":1]", "',' or '}'" }, { "[1}", "',' or ']'" }, { "01", "a value" }, { "-", "a value" }, { "nul", "a value" },
    { "]", "a value" },
  };
  char deep[200];
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    yk_jread r = over(good[i]);
    CHECK_OK(yk__jread_skip(&r));
    CHECK_OK(yk__jread_end(&r));
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    yk_jread r = over(bad[i].json);
    yk_code rc = yk__jread_skip(&r);
    if (rc == YK_OK) rc = yk__jread_end(&r);
    if (rc != YK_ECORRUPT || !strstr(yk_error_message(), bad[i].says))
      fail_msg("%s: %s \"%s\", expected \"%s\"", bad[i].json, yk_code_name(rc), yk_error_message(), bad[i].says);
    yk_error_clear();
  }
  for (int depth = 64; depth <= 65; depth++) {
    memset(deep, '[', (size_t)depth);
    memset(deep + depth, ']', (size_t)depth);
    deep[2 * depth] = '\0';
    yk_jread r = over(deep);
    if (depth == 64) CHECK_OK(yk__jread_skip(&r));
    else CHECK_CODE(yk__jread_skip(&r), YK_ECORRUPT, "at most 64 levels");
  }
}

static void test_places(void **state) {
  yk_jread r = over("{\n  \"a\" 1}");
  char *key = NULL;
  (void)state;
  CHECK_OK(yk__jread_enter(&r, '{'));
  CHECK_CODE(yk__jread_key(&r, &key), YK_ECORRUPT, "t:2:7: expected ':'");
  assert_null(key);
  r = over("x");
  r.lines = 0;
  CHECK_CODE(yk__jread_enter(&r, '['), YK_ECORRUPT, "t, offset 0: expected '['");
  r = over("{} ,");
  CHECK_OK(yk__jread_skip(&r));
  CHECK_CODE(yk__jread_end(&r), YK_ECORRUPT, "t:1:4: expected nothing behind the end");
}

static uint64_t live;
static int remember(void **state) { (void)state; live = yk__alloc_live(); return 0; }
static int nothing_left(void **state) { (void)state; CHECK_INT(yk__alloc_live(), live); return 0; }

int main(void) {
  const struct CMUnitTest tests[] = {
#define CLEAN(test) cmocka_unit_test_setup_teardown(test, remember, nothing_left)
    CLEAN(test_members), CLEAN(test_texts), CLEAN(test_numbers), CLEAN(test_skip), CLEAN(test_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
