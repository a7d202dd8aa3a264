/*
 * The wire format and the framing of records against published bytes, and every bit of a record that changes being noticed. Messages
 * nest around the sizes where a length takes one more byte.
 */
#include "support/check.h"

#include <float.h>
#include "base/alloc.h"
#include "base/frame.h"
#include "base/proto.h"

static void expect(yk_str *s, const char *want, size_t n) {
  CHECK_INT(s->failed, 0);
  bool same = s->n == n && memcmp(s->s, want, n) == 0;
  for (size_t i = 0; !same && i < s->n; i++) print_error("%02x ", (uint8_t)s->s[i]);
  if (!same) fail_msg("are %zu bytes, expected %zu others", s->n, n);
  yk__str_free(s);
}
#define EXPECT(s, want) expect(s, want, sizeof want - 1)

static void test_fields(void **state) {
  yk_str s = { 0 };
  (void)state;
  yk__proto_int(&s, 1, 150);
  EXPECT(&s, "\x08\x96\x01");
  yk__proto_int(&s, 2, -1);
  EXPECT(&s, "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  yk__proto_int(&s, 16, 127);
  yk__proto_int(&s, 16, 128);
  EXPECT(&s, "\x80\x01\x7f\x80\x01\x80\x01");
  yk__proto_text(&s, 2, "testing");
  EXPECT(&s, "\x12\x07testing");
  yk__proto_double(&s, 1, 1);
  yk__proto_float(&s, 2, -2);
  EXPECT(&s, "\x09\0\0\0\0\0\0\xf0\x3f\x15\0\0\0\xc0");
  yk__proto_doubles(&s, 6, NULL, 0);
  yk__proto_doubles(&s, 6, (const double[]){ 0, DBL_MAX }, 2);
  EXPECT(&s, "\x32\x10\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xef\x7f");
}

static void test_nested(void **state) {
  static const size_t sizes[] = { 0, 1, 126, 127, 128, 129, 16383, 16384, 70000 };
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    yk_str whole = { 0 }, inner = { 0 }, outer = { 0 }, s = { 0 };
    char *fill = calloc(1, sizes[i] + 1);
    memset(fill, 'x', sizes[i]);
    yk__proto_bytes(&inner, 3, fill, sizes[i]);
    yk__proto_bytes(&outer, 1, inner.s, inner.n);
    yk__proto_bytes(&outer, 2, "", 0);
    yk__proto_bytes(&whole, 7, outer.s, outer.n);
    size_t a = yk__proto_begin(&s, 7), b = yk__proto_begin(&s, 1);
    yk__proto_bytes(&s, 3, fill, sizes[i]);
    yk__proto_end(&s, b);
    b = yk__proto_begin(&s, 2);
    yk__proto_end(&s, b);
    yk__proto_end(&s, a);
    CHECK_INT(s.n, whole.n);
    if (memcmp(s.s, whole.s, s.n) != 0) fail_msg("a message of %zu bytes differs", sizes[i]);
    yk__str_free(&whole);
    yk__str_free(&inner);
    yk__str_free(&outer);
    yk__str_free(&s);
    free(fill);
  }
}

static void test_no_memory(void **state) {
  (void)state;
  for (uint64_t n = 1; n < 100; n++) {
    yk_str s = { 0 };
    yk__alloc_fail_from(n);
    size_t a = yk__proto_begin(&s, 1);
    for (int i = 0; i < 200; i++) yk__proto_text(&s, 2, "some text");
    yk__proto_end(&s, a);
    bool refused = yk__alloc_fail_at(0) > 0;
    CHECK_INT(s.failed, refused);
    yk__str_free(&s);
    if (!refused) return;
  }
  fail_msg("it never worked");
}

static void test_record(void **state) {
  yk_str s = { 0 };
  uint64_t n;
  uint32_t is, want;
  (void)state;
  yk__frame_put(&s, "hello", 5);
  CHECK_INT(s.n, 21);
  CHECK_INT(memcmp(s.s, "\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19", 21), 0);
  uint8_t *b = (uint8_t *)s.s;
  for (size_t bit = 0; bit <= 8 * s.n; bit++) {                     /* the last one: none */
    if (bit < 8 * s.n) b[bit / 8] = (uint8_t)(b[bit / 8] ^ 1u << bit % 8);
    bool good = yk__frame_length(b, &n, &is, &want) && yk__frame_whole(b + 12, 5, b + 17, &is, &want);
    if (good != (bit == 8 * s.n)) fail_msg("bit %zu of %zu: the record is said to be %s", bit, 8 * s.n, good ? "good" : "bad");
    if (!good && is == want) fail_msg("bit %zu: both sums are %08x", bit, is);
    if (bit < 8 * s.n) b[bit / 8] = (uint8_t)(b[bit / 8] ^ 1u << bit % 8);
  }
  CHECK_INT(n, 5);
  yk__str_free(&s);
  yk__frame_put(&s, NULL, 0);
  assert_true(yk__frame_length((uint8_t *)s.s, &n, &is, &want));
  CHECK_INT(n, 0);
  assert_true(yk__frame_whole(NULL, 0, (uint8_t *)s.s + 12, &is, &want));
  CHECK_INT(is, 0xa282ead8u);
  yk__str_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fields), cmocka_unit_test(test_nested), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_record),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
