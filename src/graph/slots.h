/*
 * slots.h - variables that belong to the library's own bookkeeping.
 *
 * Optimizer slots, shadows of moving averages, the global step, copies of variables on
 * other devices: named from the root whatever scope is open, made once and shared afterwards.
 */
#ifndef YK_GRAPH_SLOTS_H
#define YK_GRAPH_SLOTS_H

#include "graph/graph.h"

/* The variable `name` of the root scope, made if it is not there yet; never trainable, no penalty. NULL after a sticky error. */
yk_variable *yk__root_variable(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape, yk_init init,
                               const char *const *collections);
/* "<owner>/<slot>", on the owner's device, of its shape and dtype. */
yk_variable *yk__slot_variable(const char *where, yk_graph *g, yk_variable *owner, const char *slot, yk_init init);

/*
 * copies.c: copy number k (1 or more) of v, "<v>/copy_<k>", on `device`; made if it is not there yet. It starts at v's initial value,
 * is local (in YK_LOCAL_VARIABLES, in no file) and not trainable, and has v as its master. NULL after a sticky error.
 */
yk_variable *yk__variable_copy(const char *where, yk_graph *g, yk_variable *v, uint32_t k, const char *device);
/* In the open variable scope and those inside it, yk_get_variable gives lend(g, v, arg) for each v that it finds or makes; NULL after a
 * sticky error. lend NULL: v itself. */
typedef yk_variable *(*yk_lend_fn)(yk_graph *g, yk_variable *v, void *arg);
void yk__scope_lend(yk_graph *g, yk_lend_fn lend, void *arg);

#endif
