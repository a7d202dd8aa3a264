/*
 * loop_sum_isa.c - inner loops of sums of several tensors, and stores that leave the caches alone.
 *
 * Compiled once for each instruction set. A sum reads all its inputs in one pass: one after the other, each would wait for memory alone.
 */
#include "loop_isa.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define SIMD _Pragma("omp simd")

static void few(int64_t n, uint32_t k, const float *const *x, float *out) {
  const float *a = x[0], *b = k > 1 ? x[1] : a, *c = k > 2 ? x[2] : a, *d = k > 3 ? x[3] : a;
  if (k == 4) {
    SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i] + c[i] + d[i];
  } else if (k == 3) {
    SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i] + c[i];
  } else if (k == 2) {
    SIMD for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
  } else if (a != out) {
    memcpy(out, a, (size_t)n * sizeof *out);
  }
}

#if defined(__AVX__)
enum { STORE = 32 };
static inline void store(char *to, const char *from) {
  _mm256_stream_si256((__m256i *)(void *)to, _mm256_loadu_si256((const __m256i *)(const void *)from));
}
#elif defined(__SSE2__)
enum { STORE = 16 };
static inline void store(char *to, const char *from) {
  _mm_stream_si128((__m128i *)(void *)to, _mm_loadu_si128((const __m128i *)(const void *)from));
}
#else
enum { STORE = 16 };
static inline void store(char *to, const char *from) { memcpy(to, from, STORE); }
#endif

static void past(size_t n, const char *from, char *to) {
  size_t head = (size_t)(-(uintptr_t)to % STORE);
  if (head > n) head = n;
  memcpy(to, from, head);
  for (from += head, to += head, n -= head; n >= STORE; from += STORE, to += STORE, n -= STORE) store(to, from);
  memcpy(to, from, n);
}

static void settle(void) {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

extern const yk_sum_table YK_ISA_NAME(yk__sum_table);
const yk_sum_table YK_ISA_NAME(yk__sum_table) = { .few = few, .past = past, .settle = settle };
