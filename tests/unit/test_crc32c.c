/*
 * CRC-32C against published values, the instruction against the tables at every length and alignment, and pieces against the
 * whole. A single changed bit changes it.
 */
#include "support/check.h"

#include "base/crc32c.h"

static void test_known(void **state) {
  uint8_t zeros[32] = { 0 }, ones[32], up[32];
  (void)state;
  memset(ones, 0xFF, sizeof ones);
  for (int i = 0; i < 32; i++) up[i] = (uint8_t)i;
  CHECK_INT(yk__crc32c(0, "123456789", 9), 0xE3069283u);
  CHECK_INT(yk__crc32c(0, zeros, 32), 0x8A9136AAu);
  CHECK_INT(yk__crc32c(0, ones, 32), 0x62A8AB43u);
  CHECK_INT(yk__crc32c(0, up, 32), 0x46DD794Eu);
  CHECK_INT(yk__crc32c(0, up, 0), 0);
  CHECK_INT(yk__crc32c_masked("123456789", 9), (uint32_t)((0xE3069283u >> 15 | 0xE3069283u << 17) + 0xA282EAD8u));
}

static void test_both_ways(void **state) {
  uint8_t b[80];
  (void)state;
  for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)(i * 151 + 7);
  for (size_t from = 0; from < 9; from++)
    for (size_t n = 0; n <= 64; n++) {
      uint32_t whole = yk__crc32c(0, b + from, n);
      CHECK_INT(yk__crc32c_table(0, b + from, n), whole);
      CHECK_INT(yk__crc32c(yk__crc32c(0, b + from, n / 3), b + from + n / 3, n - n / 3), whole);
      CHECK_INT(yk__crc32c_table(yk__crc32c_table(0, b + from, n / 2), b + from + n / 2, n - n / 2), whole);
    }
}

static void test_every_bit(void **state) {
  uint8_t b[40] = { 1, 2, 3 };
  uint32_t before = yk__crc32c(0, b, sizeof b);
  (void)state;
  for (size_t i = 0; i < 8 * sizeof b; i++) {
    b[i / 8] = (uint8_t)(b[i / 8] ^ 1u << i % 8);
    if (yk__crc32c(0, b, sizeof b) == before) fail_msg("bit %zu does not matter", i);
    b[i / 8] = (uint8_t)(b[i / 8] ^ 1u << i % 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_known), cmocka_unit_test(test_both_ways), cmocka_unit_test(test_every_bit) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
