/*
 * copies.c - copies of a variable that other devices keep for themselves.
 *
 * A copy is an ordinary variable that knows its master, so plans and memory need no special case; whoever stores or loads
 * values leaves it out, and a value that is put into the master goes into its copies too.
 */
#include <stdio.h>
#include "graph/slots.h"

#include "graph/store.h"
#include "tensor/desc.h"

static yk_variable *find(const yk_graph *g, const yk_variable *v, uint32_t k) {
  for (uint32_t i = v->index + 1; i < g->nvariable; i++)
    if (g->variable[i]->master == v && g->variable[i]->copy == k) return g->variable[i];
  return NULL;
}

static yk_variable *make(const char *where, yk_graph *g, yk_variable *v, const char *name, const char *device) {
  static const char *const local[] = { YK_LOCAL_VARIABLES, NULL };
  yk_init start = { .kind = YK_INIT_VALUE, .value = v->initial };
  uint32_t before = g->nvariable;
  yk_colocate_push_at(where, g, (yk_value){ 0 });          /* forgets the devices of where we are as well */
  yk_device_push_at(where, g, device);
  yk_variable *copy = yk__root_variable(where, g, name, (yk_dtype)v->desc.dtype, yk__desc_shape(&v->desc), start, local);
  yk_device_pop_at(where, g);
  yk_colocate_pop_at(where, g);
  if (copy && g->nvariable == before) {
    yk_graph_fail_at(where, g, YK_EINVAL, "variable '%s' (made at %s) has the name of a copy of '%s'", name, copy->where, v->name);
    return NULL;
  }
  return copy;
}

yk_variable *yk__variable_copy(const char *where, yk_graph *g, yk_variable *v, uint32_t k, const char *device) {
  yk_str text = { 0 };
  char *name = NULL;
  if (!v || g->status != YK_OK) return NULL;
  yk_variable *copy = find(g, v, k);
  if (copy) return copy;
  yk__str_add(&text, "%s/copy_%u", v->name, k);
  if (yk__str_take(&text, &name) != YK_OK) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the name of a copy of '%s'", v->name);
    return NULL;
  }
  copy = make(where, g, v, name, device);
  yk__free(name);
  if (!copy) return NULL;
  copy->master = v;
  copy->copy = k;
  return copy;
}

void yk__scope_lend(yk_graph *g, yk_lend_fn lend, void *arg) {
  g->store->scope->lend = lend;
  g->store->scope->lend_arg = arg;
}
