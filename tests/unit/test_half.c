/*
 * The 16-bit formats, exhaustively: all 65536 patterns of each are compared with
 * their value by definition, and rounding is checked at every tie between two.
 */
#include "support/check.h"
#include "tensor/desc.h"

#include <yoke/half.h>

/* Value of a pattern by the definition of the formats. */
static double value_of(uint16_t h, int mantissa_bits, int bias) {
  int exponent_bits = 15 - mantissa_bits, e = (h & 0x7fff) >> mantissa_bits, m = h & ((1 << mantissa_bits) - 1);
  double v;
  if (e == (1 << exponent_bits) - 1) v = m ? (double)NAN : (double)INFINITY;
  else if (e == 0) v = ldexp(m, 1 - bias - mantissa_bits);
  else v = ldexp((1 << mantissa_bits) + m, e - bias - mantissa_bits);
  return h & 0x8000 ? -v : v;
}

typedef struct format { yk_dtype t; int mantissa, bias; float (*up)(uint16_t); uint16_t (*down)(float); } format;
static const format formats[] = {
  { YK_F16, 10, 15, yk_f16_to_f32, yk_f32_to_f16 }, { YK_BF16, 7, 127, yk_bf16_to_f32, yk_f32_to_bf16 },
};

static void test_every_pattern(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    const format *f = &formats[k];
    for (uint32_t i = 0; i < 65536; i++) {
      uint16_t h = (uint16_t)i, back;
      double want = value_of(h, f->mantissa, f->bias), got = (double)f->up(h), bulk;
      if (isnan(want)) {
        assert_true(isnan(got));
        assert_true(isnan((double)f->up(f->down(f->up(h)))));
        continue;
      }
      if (got != want || signbit(got) != signbit(want)) fail_msg("%s %04x is %g, expected %g", yk_dtype_name(f->t), i, got, want);
      back = f->down((float)want);
      if (back != h) fail_msg("%s %04x comes back as %04x", yk_dtype_name(f->t), i, back);
      yk__to_double(f->t, &h, &bulk, 1);
      CHECK_NEAR(isinf(want) ? 0 : bulk, isinf(want) ? 0 : want, 0);
    }
  }
}

static void check_tie(const format *f, const char *from, double middle, const uint16_t got[3], const uint16_t want[3]) {
  if (memcmp(got, want, 3 * sizeof *got) == 0) return;
  fail_msg("%s from %s around %.17g: %04x %04x %04x, expected %04x %04x %04x", yk_dtype_name(f->t), from, middle, got[0], got[1],
           got[2], want[0], want[1], want[2]);
}

/* Between neighbours a < b: below the middle gives a, above gives b, the middle the even one. From float and from double. */
static void test_rounding(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    const format *f = &formats[k];
    for (uint32_t i = 0; i < 0x7fff; i++) {
      uint16_t a = (uint16_t)i, b = (uint16_t)(i + 1), got[3], want[3] = { a, i % 2 ? b : a, b };
      double x = value_of(a, f->mantissa, f->bias), y = value_of(b, f->mantissa, f->bias), middle, points[3];
      if (isnan(x) || isinf(x)) break;
      if (isinf(y)) y = x + (x - value_of((uint16_t)(i - 1), f->mantissa, f->bias));
      middle = (x + y) / 2;
      points[0] = nextafter(middle, 0);
      points[1] = middle;
      points[2] = nextafter(middle, HUGE_VAL);
      if (points[0] > x) {
        yk__from_double(f->t, points, got, 3);
        check_tie(f, "double", middle, got, want);
      }
      if ((double)(float)middle == middle) {
        got[0] = f->down(nextafterf((float)middle, 0));
        got[1] = f->down((float)middle);
        got[2] = f->down(nextafterf((float)middle, HUGE_VALF));
        check_tie(f, "float", middle, got, want);
      }
    }
  }
}

static void test_limits(void **state) {
  static const double in[] = { 65504, 65519.99, 65520, -65520, 1e300, 1e-300, 2.98e-8, 2.99e-8, -0.0 };
  static const uint16_t want[] = { 0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x7c00, 0, 0, 1, 0x8000 };
  uint16_t got[9], n;
  double nan_in = (double)NAN;
  (void)state;
  yk__from_double(YK_F16, in, got, 9);
  for (int i = 0; i < 9; i++) {
    if (got[i] != want[i]) fail_msg("f16 of %g is %04x, expected %04x", in[i], got[i], want[i]);
  }
  yk__from_double(YK_F16, &nan_in, &n, 1);
  assert_true(isnan((double)yk_f16_to_f32(n)));
  yk__from_double(YK_BF16, &nan_in, &n, 1);
  assert_true(isnan((double)yk_bf16_to_f32(n)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_pattern), cmocka_unit_test(test_rounding), cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
