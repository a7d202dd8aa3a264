/*
 * crc32c.c - CRC-32C by the processor's instruction where there is one, else by tables, eight bytes at a time.
 *
 * The polynomial is 0x1EDC6F41, reflected 0x82F63B78; the register starts and ends inverted. The tables are made on
 * first use: table[k][b] is the effect of byte b with k zero bytes behind it.
 */
#include "base/crc32c.h"
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u

static uint32_t table[8][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make(void) {
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t x = b;
    for (int i = 0; i < 8; i++) x = x & 1 ? x >> 1 ^ POLYNOMIAL : x >> 1;
    table[0][b] = x;
  }
  for (uint32_t b = 0; b < 256; b++)
    for (int k = 1; k < 8; k++) table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xFF];
}

uint32_t yk__crc32c_table(uint32_t crc, const void *p, size_t n) {
  const uint8_t *b = p;
  pthread_once(&made, make);
  crc = ~crc;
  for (; n >= 8; n -= 8, b += 8) {
    uint32_t lo = crc ^ ((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
    crc = table[7][lo & 0xFF] ^ table[6][lo >> 8 & 0xFF] ^ table[5][lo >> 16 & 0xFF] ^ table[4][lo >> 24] ^
          table[3][b[4]] ^ table[2][b[5]] ^ table[1][b[6]] ^ table[0][b[7]];
  }
  for (; n > 0; n--, b++) crc = crc >> 8 ^ table[0][(crc ^ *b) & 0xFF];
  return ~crc;
}

uint32_t yk__crc32c_masked(const void *p, size_t n) {
  uint32_t crc = yk__crc32c(0, p, n);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *b, size_t n) {
  uint64_t x = ~crc, word;
  for (; n >= 8; n -= 8, b += 8) {
    memcpy(&word, b, 8);
    x = __builtin_ia32_crc32di(x, word);
  }
  for (; n > 0; n--, b++) x = __builtin_ia32_crc32qi((uint32_t)x, *b);
  return ~(uint32_t)x;
}

uint32_t yk__crc32c(uint32_t crc, const void *p, size_t n) {
  return __builtin_cpu_supports("sse4.2") ? by_instruction(crc, p, n) : yk__crc32c_table(crc, p, n);
}

#else

uint32_t yk__crc32c(uint32_t crc, const void *p, size_t n) {
  return yk__crc32c_table(crc, p, n);
}

#endif
