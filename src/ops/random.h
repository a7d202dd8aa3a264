/*
 * random.h - what the random ops share: attributes, shape rule, and how element i gets its words. A draw is a function
 * of seed, stream, step and position, never of threads or of the order in which elements are filled.
 */
#ifndef YK_OPS_RANDOM_H
#define YK_OPS_RANDOM_H

#include "common.h"

enum { YK__STREAM_UNIFORM = 1, YK__STREAM_NORMAL = 2, YK__STREAM_TRUNCATED = 3 };   /* 0 is dropout */

extern const yk_attr yk__random_attrs[];
extern const yk_port yk__random_in[];

yk_code  yk__random_infer(const yk_infer *c) YK_CHECKED;
/* One normal number for element i: Box-Muller on the words of its pair. */
double   yk__random_z(const yk_ref *c, uint64_t seed, uint64_t stream, uint64_t i, uint32_t round);
/* A node with the run counter as its step and a seed of its own if the attributes give none. */
yk_value yk__random_build(const char *where, yk_graph *g, const yk_op *op, const yk_random_attrs *attrs);

#endif
