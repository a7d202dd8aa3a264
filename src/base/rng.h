/*
 * rng.h - counter-based random numbers: a draw is a function of (seed, stream, step, index).
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) through random123.
 * No state: the same coordinates give the same number on any thread and any device.
 */
#ifndef YK_BASE_RNG_H
#define YK_BASE_RNG_H

#include <stdint.h>

/* Four 32-bit words of block `block`. `stream` separates users of one seed (an op, a data set);
 * `step` the runs; `round` the redraws of one element. Key = (lo(seed)^lo(stream)*odd, ...) is rng.c's business. */
void yk__rng_block(uint64_t seed, uint64_t stream, uint64_t step, uint64_t block, uint32_t round, uint32_t out[4]);

/* Element `index` (word index%4 of block index/4) as a uniform double in [0,1) with 24 random bits for f32 use, 53 for f64 use. */
float  yk__rng_uniform_f32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index);
/* Uniform integer in [0, n), n >= 1; unbiased. */
uint64_t yk__rng_below(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index, uint64_t n);

#endif
