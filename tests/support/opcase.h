/*
 * opcase.h - a yk_case as data: the inputs it describes, and values for them.
 *
 * A case is text ("T[4,7]; i32[4]") and a range. Every test that goes over the cases of the registry reads them
 * through here, so that one seed gives all of them the same numbers.
 */
#ifndef YK_TEST_OPCASE_H
#define YK_TEST_OPCASE_H

#include <yoke/op.h>

enum { OPCASE_MOST = 16 };

typedef struct opcase {
  uint16_t n;
  yk_desc  in[OPCASE_MOST];
  int      is_t[OPCASE_MOST];       /* the dtype was given as T */
} opcase;

/* EINVAL with the text and the place if it cannot be read. T stands for `t`. */
yk_code opcase_parse(const char *shapes, yk_dtype t, opcase *out) YK_CHECKED;
int     opcase_has_t(const opcase *c);

/* A uniform number in [0, 1) that depends on seed and index only. */
double  opcase_uniform(uint64_t seed, uint64_t index);
/* Fill n values of input number `input`: floats in [lo, hi] (both 0: [-1, 1]), whole numbers in the same range, booleans. */
void    opcase_fill(const yk_case *c, yk_dtype t, uint64_t seed, unsigned input, double *out, int64_t n);

#endif
