/*
 * Random numbers: the published answers of Philox4x32-10, independence of the
 * coordinates, and the plain statistics of what is made from the words.
 */
#include "support/check.h"
#include "base/rng.h"

static void check_block(uint64_t seed, uint64_t step, uint64_t block, const uint32_t want[4]) {
  uint32_t got[4];
  yk__rng_block(seed, 0, step, block, 0, got);
  for (int i = 0; i < 4; i++) {
    if (got[i] != want[i]) fail_msg("word %d is %08x, expected %08x", i, got[i], want[i]);
  }
}

/* From the paper's known-answer file: counter, key -> output. */
static void test_known_answers(void **state) {
  static const uint32_t zeros[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
  static const uint32_t ones[4] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd };
  static const uint32_t pi[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
  (void)state;
  check_block(0, 0, 0, zeros);
  check_block(UINT64_MAX, UINT64_MAX, UINT64_MAX, ones);
  check_block(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e), UINT64_C(0x85a308d3243f6a88), pi);
}

/* Changing any one coordinate changes the block, and the same coordinates give it again. */
static void test_coordinates(void **state) {
  uint32_t base[4], again[4], other[4];
  static const uint64_t steps[] = { 1, 2, UINT64_C(1) << 32, UINT64_C(1) << 63 };
  (void)state;
  yk__rng_block(11, 3, 5, 7, 1, base);
  yk__rng_block(11, 3, 5, 7, 1, again);
  assert_memory_equal(base, again, sizeof base);
  for (int i = 0; i < 4; i++) {
    yk__rng_block(11 + steps[i], 3, 5, 7, 1, other);
    assert_memory_not_equal(base, other, sizeof base);
    yk__rng_block(11, 3 + steps[i], 5, 7, 1, other);
    assert_memory_not_equal(base, other, sizeof base);
    yk__rng_block(11, 3, 5 + steps[i], 7, 1, other);
    assert_memory_not_equal(base, other, sizeof base);
    yk__rng_block(11, 3, 5, 7 + steps[i], 1, other);
    assert_memory_not_equal(base, other, sizeof base);
  }
  yk__rng_block(11, 3, 5, 7, 2, other);
  assert_memory_not_equal(base, other, sizeof base);
}

static void test_uniform(void **state) {
  enum { N = 100000 };
  double sum = 0, squares = 0;
  uint32_t w[4];
  (void)state;
  for (uint64_t i = 0; i < N; i++) {
    double u = (double)yk__rng_uniform_f32(42, 1, 9, i);
    if (!(u >= 0 && u < 1)) fail_msg("element %d is %g", (int)i, u);
    sum += u;
    squares += u * u;
  }
  CHECK_NEAR(sum / N, 0.5, 5 * 0.2887 / sqrt(N));            /* five standard errors */
  CHECK_NEAR(squares / N, 1.0 / 3, 5 * 0.2981 / sqrt(N));
  yk__rng_block(42, 1, 9, 25, 0, w);
  for (uint64_t i = 0; i < 4; i++) CHECK_NEAR((double)yk__rng_uniform_f32(42, 1, 9, 100 + i), (w[i] >> 8) * 0x1p-24, 0);
}

static void test_below(void **state) {
  enum { N = 70000 };
  int count[7] = { 0 };
  double chi2 = 0;
  const uint64_t large = UINT64_C(3) << 62;                  /* a quarter of all words must be drawn again */
  int upper = 0;
  (void)state;
  for (uint64_t i = 0; i < N; i++) {
    uint64_t v = yk__rng_below(1, 2, 3, i, 7);
    assert_true(v < 7);
    count[v]++;
    v = yk__rng_below(1, 2, 4, i, large);
    assert_true(v < large);
    upper += v >= large / 2;
    CHECK_INT(yk__rng_below(1, 2, 3, i, 1), 0);
  }
  for (int k = 0; k < 7; k++) chi2 += (count[k] - N / 7.0) * (count[k] - N / 7.0) / (N / 7.0);
  if (chi2 > 22.5) fail_msg("chi-square of 6 degrees is %g, expected below 22.5", chi2);   /* 0.1% */
  CHECK_NEAR(upper / (double)N, 0.5, 5 * 0.5 / sqrt(N));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_known_answers), cmocka_unit_test(test_coordinates), cmocka_unit_test(test_uniform),
    cmocka_unit_test(test_below),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
