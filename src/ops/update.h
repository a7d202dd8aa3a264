/*
 * update.h - what the merged update ops share: k groups of n tensors, then scalars. Group k, entry i is input k*n + i;
 * entries of one i have one shape, and the scalars have the dtype of the variables.
 */
#ifndef YK_OPS_UPDATE_H
#define YK_OPS_UPDATE_H

#include "common.h"

/* Number of tensors a group: the attribute, 0 meaning 1. */
uint32_t yk__update_n(const void *attrs);
/* Shapes of an update with `groups` groups and `scalars` scalars. */
yk_code yk__update_infer(const yk_infer *c, uint32_t groups, uint32_t scalars) YK_CHECKED;
/* A node over groups of n values, then scalars. */
yk_value yk__update_build(const char *where, yk_graph *g, const yk_op *op, yk_update_attrs a, uint32_t groups,
                          const yk_value *const *group, uint32_t nscalars, const yk_value *scalar);
/* The storage values of n variables, in memory for the caller to yk__free(); NULL after a sticky error. */
yk_value *yk__update_refs(const char *where, yk_graph *g, size_t n, yk_variable *const *v);

extern const yk_attr yk__update_attrs[];

#endif
