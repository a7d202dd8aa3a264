/*
 * reduce.h - what all reductions share: the shape rule, and a loop that feeds every input element into the output
 * element it belongs to. "Reduced" axes are gone from the result, or 1 with keepdims.
 */
#ifndef YK_OPS_REDUCE_H
#define YK_OPS_REDUCE_H

#include "common.h"

extern const yk_attr yk__reduce_attrs[];

/* Shape of x reduced over the axes of a. */
yk_code yk__reduce_shape(const yk_desc *x, const yk_reduce_attrs *a, yk_desc *out) YK_CHECKED;
yk_code yk__reduce_infer(const yk_infer *c) YK_CHECKED;
/* Element of the reduced tensor to which element `index` of x belongs. */
int64_t yk__reduce_place(const yk_desc *x, const yk_reduce_attrs *a, const int64_t *index);
/* How many elements of x go into one of the result. */
int64_t yk__reduce_count(const yk_desc *x, const yk_reduce_attrs *a);
/* out[0] = start, then out = f(out, element) for each element of in[0], in order. */
yk_code yk__reduce_ref(const yk_ref *c, double start, double (*f)(double so_far, double x)) YK_CHECKED;
/* Gradient of min and max: dy shared equally among the elements that equal the result. */
yk_code yk__reduce_extreme_grad(yk_grad *c) YK_CHECKED;
/* A node over one input with attributes that may be NULL. */
yk_value yk__reduce_build(const char *where, yk_graph *g, const yk_op *op, yk_value x, const yk_reduce_attrs *a);

/* Shapes and axes that every reduction must meet. */
extern const yk_reduce_attrs yk__reduce_first, yk__reduce_last, yk__reduce_mid_keep, yk__reduce_two, yk__reduce_keep;
#define YK__CASES_REDUCE(lo, hi)                                                                                        \
  { "T[]", NULL, lo, hi, 0 }, { "T[33]", NULL, lo, hi, 0 }, { "T[4,7,5]", NULL, lo, hi, 0 },                            \
  { "T[7,33]", &yk__reduce_first, lo, hi, 0 }, { "T[7,33]", &yk__reduce_last, lo, hi, 0 },                              \
  { "T[4,7,5]", &yk__reduce_mid_keep, lo, hi, 0 }, { "T[2,3,4,5]", &yk__reduce_two, lo, hi, 0 },                        \
  { "T[4,7]", &yk__reduce_keep, lo, hi, 0 }, { "T[0,7]", &yk__reduce_last, lo, hi, 0 }

#endif
