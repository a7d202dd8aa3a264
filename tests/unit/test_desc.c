/*
 * Shape arithmetic and conversions of elements. Broadcasting is tried on a table
 * and, for all small shapes, against its definition.
 */
#include "support/check.h"
#include "tensor/desc.h"

static yk_desc f32(yk_shape s) { return yk__desc(YK_F32, s); }

static void test_text(void **state) {
  char buf[YK__DESC_TEXT], tiny[6];
  yk_desc a = yk__desc(YK_F32, YK_SHAPE(128, 24, 24, 3)), b = yk__desc(YK_BF16, YK_SHAPE(-1, 10));
  yk_desc c = yk__desc(YK_I64, YK_SCALAR);
  (void)state;
  assert_string_equal(yk__desc_text(&a, buf, sizeof buf), "f32[128,24,24,3]");
  assert_string_equal(yk__desc_text(&b, buf, sizeof buf), "bf16[?,10]");
  assert_string_equal(yk__desc_text(&c, buf, sizeof buf), "i64[]");
  assert_string_equal(yk__desc_text(&a, tiny, sizeof tiny), "f32[1");
  assert_ptr_equal(yk__desc_text(&a, NULL, 0), NULL);
}

static void test_counts(void **state) {
  yk_desc a = f32(YK_SHAPE(2, 3, 4)), b = f32(YK_SHAPE(2, -1)), c = f32(YK_SCALAR), e = f32(YK_SHAPE(3, 0));
  yk_shape s = yk__desc_shape(&a);
  (void)state;
  CHECK_INT(yk__desc_count(&a), 24);
  CHECK_INT(yk__desc_count(&b), -1);
  CHECK_INT(yk__desc_count(&c), 1);
  CHECK_INT(yk__desc_count(&e), 0);
  CHECK_INT(yk__desc_known(&a), 1);
  CHECK_INT(yk__desc_known(&b), 0);
  CHECK_INT(s.rank, 3);
  CHECK_INT(s.dim[2], 4);
  CHECK_INT(s.dim[3], 0);
  CHECK_INT(yk__desc_same_shape(&a, &a), 1);
  CHECK_INT(yk__desc_same_shape(&a, &b), 0);
  CHECK_INT(yk__desc_same_shape(&b, &b), 1);
  a.layout = 7;
  yk_desc plain = yk__desc(YK_F64, s);
  CHECK_INT(yk__desc_same_shape(&a, &plain), 1);
  CHECK_INT(plain.layout, 0);
}

static void test_check(void **state) {
  yk_shape unknown = YK_SHAPE(4, -1), worse = YK_SHAPE(4, -2), nine = { 9, { 0 } };
  yk_shape huge = YK_SHAPE(INT64_C(1) << 40, -1, INT64_C(1) << 40);
  (void)state;
  CHECK_OK(yk__shape_check(YK_F32, &unknown, 1));
  CHECK_CODE(yk__shape_check(YK_F32, &unknown, 0), YK_EINVAL, "dimension 1 of f32[4,?] is -1; expected a size of 0 or more");
  CHECK_CODE(yk__shape_check(YK_F32, &worse, 1), YK_EINVAL, "is -2");
  CHECK_CODE(yk__shape_check(YK_F32, &nine, 1), YK_EINVAL, "not 9");
  CHECK_CODE(yk__shape_check(YK_F32, &huge, 1), YK_EINVAL, "too large");
  CHECK_CODE(yk__shape_check(YK_NONE, &unknown, 1), YK_EINVAL, "none");
}

/* dtype-less text of a broadcast result, "no" if refused */
static const char *broadcast(yk_shape a, yk_shape b, char *buf) {
  yk_desc x = f32(a), y = f32(b), r = f32(YK_SHAPE(99));
  if (yk__shape_broadcast(&x, &y, &r) != YK_OK) {
    CHECK_INT(r.dim[0], 99);                                 /* untouched */
    yk_error_clear();
    return "no";
  }
  return yk__desc_text(&r, buf, YK__DESC_TEXT) + 3;
}

static void test_broadcast(void **state) {
  static const struct { yk_shape a, b; const char *want; } table[] = {
    { { 2, { 4, 3 } }, { 1, { 3 } }, "[4,3]" },          { { 2, { 4, 1 } }, { 1, { 3 } }, "[4,3]" },
    { { 0, { 0 } }, { 2, { 5, 6 } }, "[5,6]" },          { { 0, { 0 } }, { 0, { 0 } }, "[]" },
    { { 3, { 8, 1, 6 } }, { 3, { 1, 7, 1 } }, "[8,7,6]" }, { { 2, { 4, 3 } }, { 2, { 3, 4 } }, "no" },
    { { 1, { 3 } }, { 1, { 4 } }, "no" },                { { 1, { 0 } }, { 1, { 1 } }, "[0]" },
    { { 1, { 0 } }, { 1, { 3 } }, "no" },                { { 1, { -1 } }, { 1, { 3 } }, "[3]" },
    { { 1, { -1 } }, { 1, { 1 } }, "[?]" },              { { 1, { -1 } }, { 1, { -1 } }, "[?]" },
    { { 2, { -1, 10 } }, { 1, { 10 } }, "[?,10]" },      { { 2, { -1, 10 } }, { 2, { 32, 1 } }, "[32,10]" },
    { { 1, { -1 } }, { 1, { 0 } }, "[0]" },
  };
  char one[YK__DESC_TEXT], two[YK__DESC_TEXT];
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    assert_string_equal(broadcast(table[i].a, table[i].b, one), table[i].want);
    assert_string_equal(broadcast(table[i].b, table[i].a, two), table[i].want);
  }
  yk_desc a = f32(YK_SHAPE(4, 3)), b = f32(YK_SHAPE(3, 4)), r;
  CHECK_CODE(yk__shape_broadcast(&a, &b, &r), YK_EINVAL, "f32[4,3] and f32[3,4]");
  b = f32(YK_SHAPE(7, 4, 3));
  CHECK_OK(yk__shape_broadcast(&a, &b, &a));                 /* the result may replace an argument */
  CHECK_INT(a.rank, 3);
  CHECK_INT(a.dim[0], 7);
}

static void test_merge(void **state) {
  yk_desc a = f32(YK_SHAPE(-1, 3, -1)), b = f32(YK_SHAPE(5, -1, -1)), c = f32(YK_SHAPE(5, 4, 2)), r;
  yk_desc d = yk__desc(YK_F64, YK_SHAPE(5, 3, 2));
  char buf[YK__DESC_TEXT];
  (void)state;
  CHECK_OK(yk__shape_merge(&a, &b, &r));
  assert_string_equal(yk__desc_text(&r, buf, sizeof buf), "f32[5,3,?]");
  CHECK_CODE(yk__shape_merge(&a, &c, &r), YK_EINVAL, "f32[?,3,?] and f32[5,4,2]");
  CHECK_CODE(yk__shape_merge(&a, &d, &r), YK_EINVAL, "f64[5,3,2]");
  d = f32(YK_SHAPE(5));
  CHECK_CODE(yk__shape_merge(&a, &d, &r), YK_EINVAL, "f32[5]");
  assert_string_equal(yk__desc_text(&r, buf, sizeof buf), "f32[5,3,?]");
}

static void test_convert(void **state) {
  static const double in[] = { 0, -1.5, 2.9, 300, -300, 1e20, -1e20, (double)NAN, 2147483647.5, (double)INFINITY };
  enum { N = 10 };
  static const double want_i32[N] = { 0, -1, 2, 300, -300, 2147483647, -2147483648.0, 0, 2147483647, 2147483647 };
  static const double want_u8[N] = { 0, 0, 2, 255, 0, 255, 0, 0, 255, 255 };
  static const double want_bool[N] = { 0, 1, 1, 1, 1, 1, 1, 0, 1, 1 };
  int32_t i32[N];
  int64_t i64[N];
  uint8_t u8[N], flag[N];
  float f[N];
  double out[N];
  (void)state;
  yk__from_double(YK_I32, in, i32, N);
  yk__from_double(YK_I64, in, i64, N);
  yk__from_double(YK_U8, in, u8, N);
  yk__from_double(YK_BOOL, in, flag, N);
  yk__from_double(YK_F32, in, f, N);
  for (int i = 0; i < N; i++) {
    CHECK_NEAR(i32[i], want_i32[i], 0);
    CHECK_NEAR(u8[i], want_u8[i], 0);
    CHECK_NEAR(flag[i], want_bool[i], 0);
    if (!isnan(in[i])) assert_true(f[i] == (float)in[i]);
  }
  assert_true(i64[5] == INT64_MAX && i64[6] == INT64_MIN && i64[7] == 0 && i64[8] == 2147483647 && i64[9] == INT64_MAX);
  yk__to_double(YK_I32, i32, out, N);
  for (int i = 0; i < N; i++) CHECK_NEAR(out[i], want_i32[i], 0);
  flag[0] = 2;                                               /* any byte but 0 is true */
  yk__to_double(YK_BOOL, flag, out, 1);
  CHECK_NEAR(out[0], 1, 0);
  yk__from_double(YK_F64, in, out, 3);
  CHECK_NEAR(out[1], -1.5, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_text), cmocka_unit_test(test_counts), cmocka_unit_test(test_check), cmocka_unit_test(test_broadcast),
    cmocka_unit_test(test_merge), cmocka_unit_test(test_convert),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
