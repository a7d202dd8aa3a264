/*
 * slots.h - variables that belong to the library's own bookkeeping.
 *
 * Optimizer slots, shadows of moving averages, the global step: named from the
 * root whatever scope is open, made once and shared afterwards.
 */
#ifndef YK_GRAPH_SLOTS_H
#define YK_GRAPH_SLOTS_H

#include "graph/graph.h"

/* The variable `name` of the root scope, made if it is not there yet; never trainable, no penalty. NULL after a sticky error. */
yk_variable *yk__root_variable(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape, yk_init init,
                               const char *const *collections);
/* "<owner>/<slot>", on the owner's device, of its shape and dtype. */
yk_variable *yk__slot_variable(const char *where, yk_graph *g, yk_variable *owner, const char *slot, yk_init init);

#endif
