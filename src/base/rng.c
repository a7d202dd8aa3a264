/*
 * rng.c - random numbers as a function of where they are used.
 *
 * The Philox counter is (block, step); the key is the seed with stream and
 * round folded in by odd multipliers. With stream and round 0 the result is
 * plain Philox4x32-10 of that counter and key, which the known answers test.
 */
#include "base/rng.h"

#include <Random123/philox.h>

void yk__rng_block(uint64_t seed, uint64_t stream, uint64_t step, uint64_t block, uint32_t round, uint32_t out[4]) {
  uint64_t k = seed ^ (stream * 0x9e3779b97f4a7c15u) ^ (round * 0xd6e8feb86659fd93u);
  philox4x32_ctr_t c = { { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)step, (uint32_t)(step >> 32) } };
  philox4x32_key_t key = { { (uint32_t)k, (uint32_t)(k >> 32) } };
  c = philox4x32(c, key);
  for (int i = 0; i < 4; i++) out[i] = c.v[i];
}

float yk__rng_uniform_f32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index) {
  uint32_t w[4];
  yk__rng_block(seed, stream, step, index / 4, 0, w);
  return (float)(w[index % 4] >> 8) * 5.9604644775390625e-8f;      /* 2^-24 */
}

uint64_t yk__rng_below(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index, uint64_t n) {
  uint64_t excess;
  if (n <= 1) return 0;
  excess = (0 - n) % n;                  /* 2^64 mod n: so many values at the bottom would favour small results */
  for (uint32_t round = 0;; round++) {
    uint32_t w[4];
    yk__rng_block(seed, stream, step, index, round, w);
    for (int i = 0; i < 4; i += 2) {
      uint64_t x = (uint64_t)w[i] << 32 | w[i + 1];
      if (x >= excess) return x % n;
    }
  }
}
