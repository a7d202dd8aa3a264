/*
 * norm.h - what batch and layer normalisation share.
 *
 * Statistics and parameters are kept in f32 when the data are narrower, so that a mean over a large batch
 * does not round away.
 */
#ifndef YK_OPS_NORM_H
#define YK_OPS_NORM_H

#include "ops/common.h"

/* Dtypes of gamma, beta and of every statistic. */
#define YK__STATS (YK_T(YK_F32) | YK_T(YK_F64))

/* Dtype of the statistics of data of dtype t. */
int yk__stat_type(int t);
/* epsilon of the attributes, 0 meaning 1e-3. */
double yk__norm_epsilon(const yk_norm_attrs *a);
/* Inputs [from, to) must be [C] of the statistics' dtype, C being the last axis of input x, which has at least rank 2.
 * `names` are theirs, for the message. *channels gets C, -1 if unknown everywhere. */
yk_code yk__norm_check(const yk_infer *c, uint16_t x, uint16_t from, uint16_t to, const char *const *names, int64_t *channels) YK_CHECKED;
/* [C] of the statistics' dtype of x. */
yk_desc yk__per_channel(const yk_desc *x, int64_t channels);
/* Four cases, one for each pair of data and statistics dtypes; `make(T, S)` gives the shapes. */
#define YK__STAT_CASES(make, attrs, lo, hi)                                                  \
  { make("f32", "f32"), attrs, lo, hi, 0 }, { make("f64", "f64"), attrs, lo, hi, 0 },          \
  { make("f16", "f32"), attrs, lo, hi, 0 }, { make("bf16", "f32"), attrs, lo, hi, 0 }

/* x as replica number `replica` has it, added up over all members of the group. */
yk_value yk__replica_sum(const char *where, yk_graph *g, yk_value x, uint64_t group, uint32_t replica);

/* Inputs i and j must have one shape. */
yk_code yk__norm_same_shape(const yk_infer *c, uint16_t i, uint16_t j, const char *name_i, const char *name_j) YK_CHECKED;

#endif
