/*
 * group.c - operations on variables and groups of operations.
 *
 * An update sits where its variable is (node.c sees to that). A group computes
 * nothing: it is a no_op that runs after its members.
 */
#include "graph/scopes.h"
#include "op/registry.h"

static yk_value update(const char *where, yk_graph *g, const yk_op *op, yk_variable *v, yk_value x) {
  if (!yk__graph_ok(g)) return (yk_value){ 0 };
  if (!v) return yk_graph_fail_at(where, g, YK_EINVAL, "%s: the variable is NULL", op->label);
  if (v->g != g) return yk_graph_fail_at(where, g, YK_EINVAL, "%s: variable '%s' belongs to another graph", op->label, v->name);
  return yk__build(where, g, op, NULL, 2, v->ref, x);
}

yk_value yk_assign_at(const char *where, yk_graph *g, yk_variable *v, yk_value x) {
  return update(where, g, &yk__op_assign, v, x);
}

yk_value yk_assign_add_at(const char *where, yk_graph *g, yk_variable *v, yk_value x) {
  return update(where, g, &yk__op_assign_add, v, x);
}

yk_value yk_assign_sub_at(const char *where, yk_graph *g, yk_variable *v, yk_value x) {
  return update(where, g, &yk__op_assign_sub, v, x);
}

static yk_value group(const char *where, yk_graph *g, const char *name, size_t n, const yk_value *ops) {
  if (!yk__graph_ok(g)) return (yk_value){ 0 };
  const char *given = yk__names_take(g);
  if (n == 0) return yk_add_node_at(where, yk_named(g, given ? given : name), &yk__op_no_op, NULL, NULL, 0, 0);
  yk_control_push_at(where, g, n, ops);
  yk_value v = yk_add_node_at(where, yk_named(g, given ? given : name), &yk__op_no_op, NULL, NULL, 0, 0);
  yk_control_pop_at(where, g);
  return v;
}

yk_value yk_group_at(const char *where, yk_graph *g, size_t n, const yk_value *ops) {
  return group(where, g, "group_deps", n, ops);
}

yk_value yk_global_variables_initializer_at(const char *where, yk_graph *g) {
  if (!yk__graph_ok(g)) return (yk_value){ 0 };
  yk_value *ops = yk__alloc((g->nvariable + 1) * sizeof *ops);
  if (!ops) return yk__graph_fail(where, g, YK_ENOMEM);
  for (uint32_t i = 0; i < g->nvariable; i++) ops[i] = g->variable[i]->assign;
  yk_value v = group(where, g, "init", g->nvariable, ops);
  yk__free(ops);
  return v;
}
