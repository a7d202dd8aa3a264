/*
 * pictures.c - see pictures.h. The hash multiplies and shifts 32-bit words, nothing else, so every language agrees on it.
 *
 * Several towers may ask at once: the place in the stream is one atomic counter.
 */
#include <stdlib.h>
#include <string.h>
#include "support/check.h"
#include "support/pictures.h"

uint32_t pictures_word(uint32_t seed, uint64_t i) {
  uint32_t h = (uint32_t)(i * 2654435761u + seed * UINT64_C(40503) + 12345u);
  h = (h ^ h >> 15) * 2246822519u;
  h = (h ^ h >> 13) * 3266489917u;
  return h ^ h >> 16;
}

double pictures_uniform(uint32_t seed, uint64_t i) {
  return (double)(pictures_word(seed, i) >> 16) / 32768.0 - 1.0;
}

static yk_code next(void *self, int64_t rows, void *const *out) {
  pictures *p = self;
  int64_t first = atomic_fetch_add(&p->next, rows);
  for (int64_t r = 0; r < rows; r++) {
    int64_t i = (first + r) % p->n;
    memcpy((float *)out[0] + r * p->values, p->image + i * p->values, (size_t)p->values * sizeof(float));
    ((int32_t *)out[1])[r] = p->label[i];
  }
  return YK_OK;
}

void pictures_open(pictures *p, uint32_t seed, int64_t n, int64_t height, int64_t width, int64_t channels, int32_t classes) {
  memset(p, 0, sizeof *p);
  p->n = n;
  p->values = height * width * channels;
  p->image = malloc((size_t)(n * p->values) * sizeof *p->image);
  p->label = malloc((size_t)n * sizeof *p->label);
  if (!p->image || !p->label) fail_msg("no memory for %lld pictures", (long long)n);
  for (int64_t i = 0; i < n * p->values; i++) p->image[i] = (float)(2 * pictures_uniform(seed, (uint64_t)i));
  for (int64_t i = 0; i < n; i++) p->label[i] = (int32_t)(pictures_word(seed + 1, (uint64_t)i) >> 8) % classes;
  p->source = (yk_source){ .self = p, .next = next, .ncomponents = 2 };
  p->source.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { height, width, channels } };
  p->source.component[1] = (yk_desc){ .dtype = YK_I32 };
}

void pictures_close(pictures *p) {
  free(p->image);
  free(p->label);
}
