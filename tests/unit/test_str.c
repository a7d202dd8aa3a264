/*
 * Strings, numbers, the map and the hash. Parsers are given what they must
 * refuse as well as what they must take; the hash has fixed answers.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/str.h"

#include <locale.h>

static void test_append(void **state) {
  yk_str b = { 0 };
  char *s;
  (void)state;
  for (int i = 0; i < 100; i++) yk__str_add(&b, "%d,", i);
  yk__str_put(&b, "end!!", 3);
  CHECK_OK(yk__str_take(&b, &s));
  CHECK_INT(strlen(s), 10 * 2 + 90 * 3 + 3);
  assert_memory_equal(s, "0,1,2,3,", 8);
  assert_string_equal(s + strlen(s) - 6, "99,end");
  assert_null(b.s);
  yk__free(s);
  CHECK_OK(yk__str_take(&b, &s));
  assert_string_equal(s, "");
  yk__free(s);
}

static void test_append_fails_once_at_the_end(void **state) {
  uint64_t live = yk__alloc_live();
  (void)state;
  for (uint64_t n = 1;; n++) {
    yk_str b = { 0 };
    char *s = NULL;
    yk__alloc_fail_at(n);
    for (int i = 0; i < 100; i++) yk__str_add(&b, "%d,", i);
    yk_code rc = yk__str_take(&b, &s);
    yk__alloc_fail_at(0);
    if (rc == YK_OK) {
      yk__free(s);
      assert_true(n > 3);
      break;
    }
    CHECK_INT(rc, YK_ENOMEM);
    assert_null(s);
    CHECK_INT(yk__alloc_live() - live, 0);
  }
  CHECK_INT(yk__alloc_live() - live, 0);
}

static void test_parse_i64(void **state) {
  static const char *const bad[] = { "", "-", "+", " 1", "1 ", "1x", "0x10", "1.0", "9223372036854775808", "-9223372036854775809",
                                     "99999999999999999999", "--1", "1-" };
  int64_t v;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    v = 42;
    if (yk__parse_i64(bad[i], INT64_MIN, INT64_MAX, &v)) fail_msg("\"%s\" was taken as %lld", bad[i], (long long)v);
    CHECK_INT(v, 42);
  }
  assert_true(yk__parse_i64("0", INT64_MIN, INT64_MAX, &v));
  CHECK_INT(v, 0);
  assert_true(yk__parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
  CHECK_INT(v, INT64_MIN);
  assert_true(yk__parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v));
  CHECK_INT(v, INT64_MAX);
  assert_true(yk__parse_i64("+007", 0, 7, &v));
  CHECK_INT(v, 7);
  assert_false(yk__parse_i64("8", 0, 7, &v));
  assert_false(yk__parse_i64("-1", 0, 7, &v));
}

static void test_parse_f64(void **state) {
  static const char *const bad[] = { "", " 1", "1 ", "nan", "inf", "0x1p3", "1e", "1,5", "1e999", "-", ".", "1.5f" };
  double v;
  (void)state;
  setlocale(LC_ALL, "de_DE.UTF-8");                          /* if it is there, its comma must not matter */
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    if (yk__parse_f64(bad[i], &v)) fail_msg("\"%s\" was taken as %g", bad[i], v);
  }
  assert_true(yk__parse_f64("1.5", &v));
  CHECK_NEAR(v, 1.5, 0);
  assert_true(yk__parse_f64("-.25e1", &v));
  CHECK_NEAR(v, -2.5, 0);
  assert_true(yk__parse_f64("0.1", &v));
  CHECK_NEAR(v, 0.1, 0);
  setlocale(LC_ALL, "C");
}

static void test_parse_bytes(void **state) {
  static const struct { const char *s; uint64_t want; } good[] = {
    { "0", 0 }, { "1000", 1000 }, { "64k", 65536 }, { "64K", 65536 }, { "1KiB", 1024 }, { "1kB", 1000 }, { "512MiB", 512u << 20 },
    { "1.5GiB", 1610612736u }, { "1 GiB", 1u << 30 }, { "2T", UINT64_C(2) << 40 }, { "7B", 7 }, { ".5k", 512 },
    { "18446744073709549568", UINT64_C(18446744073709549568) }, { "0.1k", 102 }, { "3mb", 3000000 }, { "3mib", 3u << 20 },
  };
  static const char *const bad[] = { "", "k", ".", "-1", "1x", "1KiBx", "1e3", "1.5.5", "99999999999999999999",
                                     "20000000T", "1kiBB", " 1" };
  uint64_t v;
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    v = 1;
    if (!yk__parse_bytes(good[i].s, &v) || v != good[i].want) {
      fail_msg("\"%s\": got %llu, expected %llu", good[i].s, (unsigned long long)v, (unsigned long long)good[i].want);
    }
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    if (yk__parse_bytes(bad[i], &v)) fail_msg("\"%s\" was taken as %llu", bad[i], (unsigned long long)v);
  }
}

static void test_xml(void **state) {
  yk_str b = { 0 };
  char *s;
  (void)state;
  yk__str_put_xml(&b, "a<b>&\"c\"\n\xC3\xA4\x01\xFF\xC3|\xEF\xBF\xBF\xF0\x9F\x98\x80");
  CHECK_OK(yk__str_take(&b, &s));
  assert_string_equal(s, "a&lt;b&gt;&amp;&quot;c&quot;\n\xC3\xA4\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xF0\x9F\x98\x80");
  yk__free(s);
}

static void test_distance(void **state) {
  char a[400], b[400];
  (void)state;
  CHECK_INT(yk__str_distance("", ""), 0);
  CHECK_INT(yk__str_distance("abc", ""), 3);
  CHECK_INT(yk__str_distance("", "abc"), 3);
  CHECK_INT(yk__str_distance("kitten", "sitting"), 3);
  CHECK_INT(yk__str_distance("flaw", "lawn"), 2);
  memset(a, 'a', sizeof a);
  memset(b, 'b', sizeof b);
  a[399] = b[399] = '\0';
  CHECK_INT(yk__str_distance(a, b), 128);
}

static void test_map(void **state) {
  yk_map m = { 0 };
  char key[32];
  uint32_t v = 77;
  uint64_t live = yk__alloc_live();
  (void)state;
  assert_false(yk__map_get(&m, "a", &v));
  CHECK_INT(v, 77);
  for (uint32_t i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "conv%u/weights", i);
    assert_true(yk__map_set(&m, key, i));
  }
  CHECK_INT(m.n, 2000);
  assert_true(yk__map_set(&m, "conv7/weights", 70));
  CHECK_INT(m.n, 2000);
  for (uint32_t i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "conv%u/weights", i);
    assert_true(yk__map_get(&m, key, &v));
    CHECK_INT(v, i == 7 ? 70 : i);
  }
  assert_false(yk__map_get(&m, "conv2000/weights", &v));
  assert_false(yk__map_get(&m, "", &v));
  yk__map_free(&m);
  CHECK_INT(yk__alloc_live() - live, 0);
}

static void test_map_survives_failures(void **state) {
  yk_map m = { 0 };
  char key[32];
  uint32_t v;
  uint64_t live = yk__alloc_live();
  (void)state;
  for (uint32_t i = 0; i < 100; i++) {
    snprintf(key, sizeof key, "k%u", i);
    for (uint64_t n = 1;; n++) {
      yk__alloc_fail_at(n);
      int ok = yk__map_set(&m, key, i);
      yk__alloc_fail_at(0);
      if (ok) break;
      assert_true(n < 4);
      assert_false(yk__map_get(&m, key, &v));
      for (uint32_t k = 0; k < i; k++) {
        char old[32];
        snprintf(old, sizeof old, "k%u", k);
        assert_true(yk__map_get(&m, old, &v));
        CHECK_INT(v, k);
      }
    }
  }
  yk__map_free(&m);
  CHECK_INT(yk__alloc_live() - live, 0);
}

/* Stored in files: these answers may never change. */
static void test_hash(void **state) {
  uint64_t empty = yk__hash("", 0, 0), abc = yk__hash("abc", 3, 0), chained = yk__hash("yoke trains networks", 20, abc);
  (void)state;
  if (empty != UINT64_C(0x3da4588b8c08334f) || abc != UINT64_C(0x585a015df4772685) || chained != UINT64_C(0x6faac13f5364b7c8)) {
    fail_msg("got %016llx %016llx %016llx", (unsigned long long)empty, (unsigned long long)abc, (unsigned long long)chained);
  }
  assert_true(yk__hash("abc", 3, 1) != abc);
  assert_true(yk__hash("abc\0", 4, 0) != abc);
  assert_true(yk__hash("abd", 3, 0) != abc);
}

/* Flipping any bit of the input flips about half of the output bits. */
static void test_hash_spreads(void **state) {
  unsigned char in[24] = { 0 };
  (void)state;
  for (int bit = 0; bit < 24 * 8; bit++) {
    uint64_t before = yk__hash(in, sizeof in, 5), after;
    in[bit / 8] ^= (unsigned char)(1u << bit % 8);
    after = yk__hash(in, sizeof in, 5);
    int flipped = __builtin_popcountll(before ^ after);
    if (flipped < 12 || flipped > 52) fail_msg("bit %d flips %d bits, expected about 32", bit, flipped);
  }
}

static void test_utf8(void **state) {
  static const struct { const char *s; size_t n; } cases[] = {
    { "", 1 }, { "a", 1 }, { "\x7F", 1 }, { "\xC2\x80", 2 }, { "\xE0\xA0\x80", 3 }, { "\xED\x9F\xBF", 3 },
    { "\xF0\x90\x80\x80", 4 }, { "\xF4\x8F\xBF\xBF", 4 }, { "\x80", 0 }, { "\xC0\x80", 0 }, { "\xC1\xBF", 0 }, { "\xC2", 0 },
    { "\xC2z", 0 }, { "\xE0\x9F\xBF", 0 }, { "\xED\xA0\x80", 0 }, { "\xE2\x82", 0 }, { "\xF0\x8F\xBF\xBF", 0 },
    { "\xF4\x90\x80\x80", 0 }, { "\xF5\x80\x80\x80", 0 }, { "\xFF", 0 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (yk__utf8(cases[i].s) != cases[i].n) fail_msg("case %zu: got %zu, expected %zu", i, yk__utf8(cases[i].s), cases[i].n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_append), cmocka_unit_test(test_append_fails_once_at_the_end), cmocka_unit_test(test_parse_i64),
    cmocka_unit_test(test_parse_f64), cmocka_unit_test(test_parse_bytes), cmocka_unit_test(test_distance),
    cmocka_unit_test(test_map), cmocka_unit_test(test_map_survives_failures), cmocka_unit_test(test_hash),
      cmocka_unit_test(test_hash_spreads), cmocka_unit_test(test_utf8), cmocka_unit_test(test_xml),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
