/*
 * store.h - variables by name, and variable scopes.
 *
 * Names of variables come from variable scopes only, never from name scopes. One
 * store a graph; scope objects live in the arena and are never changed, except that
 * reuse may be switched on.
 */
#ifndef YK_GRAPH_STORE_H
#define YK_GRAPH_STORE_H

#include "graph/slots.h"

struct yk_variable_scope {
  yk_graph *g;
  const char *name;               /* "" or "a/b" */
  const char *name_scope;         /* of its first opening, with '/' */
  yk_reuse reuse;
  yk_init init;                   /* tensor: borrowed from the graph */
  yk_regularizer regularizer;
  yk_lend_fn lend;                /* NULL, or what yk_get_variable gives in place of a variable; inner scopes inherit it */
  void *lend_arg;
};

typedef struct yk_scope_count { const char *name; uint32_t n; } yk_scope_count;    /* openings of one variable scope */

struct yk_variable_store {
  yk_map by_name;                 /* full name -> index */
  yk_variable_scope *scope;       /* the current one */
  yk_scope_count *count;          uint32_t ncount, count_cap;
  yk_tensor **kept;               uint32_t nkept, kept_cap;     /* initial tensors of scopes, owned */
};

/* initializers.c: nodes that compute the initial value, under the present name scope. {0} after a failure. Checks dtype and shape
 * of given tensors and values against `desc`. `name`: of the variable, for its seed. */
yk_value yk__initial_value(const char *where, yk_graph *g, const char *name, const yk_desc *desc, const yk_init *init);
/* A constant of `desc` filled with x. */
yk_value yk__fill_value(const char *where, yk_graph *g, const yk_desc *desc, double x);
/* regularizers: the penalty of `w`, {0} if there is none. */
yk_value yk__penalty(const char *where, yk_graph *g, const yk_regularizer *r, yk_value w);
static inline bool yk__regularizer_set(const yk_regularizer *r) { return r->fn || r->l1 != 0 || r->l2 != 0 || r->none; }

#endif
