/*
 * pictures.h - numbers from an integer hash, and a source that serves the same few pictures for ever.
 *
 * tests/golden/make_model_values.py computes the same numbers in Python, so that whole training runs can be compared
 * without a file of inputs.
 */
#ifndef YK_TEST_PICTURES_H
#define YK_TEST_PICTURES_H

#include <stdatomic.h>
#include <yoke/op_attrs.h>

/* Word i of a seed; and as a multiple of 2^-15 in [-1, 1). */
uint32_t pictures_word(uint32_t seed, uint64_t i);
double   pictures_uniform(uint32_t seed, uint64_t i);

/* n pictures in [-2, 2), from `seed`, labels from seed + 1; served in order, again and again. */
typedef struct pictures {
  yk_source source;
  int64_t n, values;              /* values of one picture */
  float *image;
  int32_t *label;
  _Atomic int64_t next;
} pictures;

void pictures_open(pictures *p, uint32_t seed, int64_t n, int64_t height, int64_t width, int64_t channels, int32_t classes);
void pictures_close(pictures *p);

#endif
