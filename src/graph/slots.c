/*
 * slots.c - root-level variables of the library's own bookkeeping.
 *
 * They are ordinary variables, so sessions and files need no special case; only
 * the open variable scope must not touch their names or settings. A scope that
 * lives on the stack stands in for it meanwhile.
 */
#include "graph/slots.h"

#include "base/error.h"
#include "graph/store.h"
#include "tensor/desc.h"

yk_variable *yk__root_variable(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape, yk_init init,
                               const char *const *collections) {
  yk_variable_scope root = { .g = g, .name = "", .name_scope = "", .reuse = YK_AUTO_REUSE };
  yk_variable_options o = { .not_trainable = true, .collections = collections };
  yk_variable_scope *open;
  yk_variable *v;
  if (g == NULL) return NULL;
  open = g->store->scope;
  g->store->scope = &root;
  v = yk_get_variable_at(where, g, name, dtype, shape, init, &o);
  g->store->scope = open;
  return v;
}

yk_variable *yk__slot_variable(const char *where, yk_graph *g, yk_variable *owner, const char *slot, yk_init init) {
  yk_str name = { 0 };
  char *text;
  yk_variable *v;
  if (owner == NULL) return NULL;
  yk__str_add(&name, "%s/%s", owner->name, slot);
  if (yk__str_take(&name, &text) != YK_OK) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the name of a slot of '%s'", owner->name);
    return NULL;
  }
  yk_colocate_push_at(where, g, owner->ref);
  v = yk__root_variable(where, g, text, (yk_dtype)owner->desc.dtype, yk__desc_shape(&owner->desc), init, NULL);
  yk_colocate_pop_at(where, g);
  yk__free(text);
  return v;
}
