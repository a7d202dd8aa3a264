/*
 * carried.c - see carried.h.
 *
 * The sketch, which never runs, has the variables too; only in the graph that runs are there values to carry.
 */
#include "keras/carried.h"
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"
#include "keras/engine.h"

static const char STATES[] = "layer_states";               /* collection of their reads */

static yk_variable *variable_of(const yk_layer_call *c, const char *name, yk_shape shape) {
  yk_variable_options o = { .not_trainable = true, .regularizer = { .none = true } };
  size_t before = yk_variable_count(c->g);
  yk_variable *v = yk_get_variable_at(c->where, c->g, name, YK_F32, shape, YK_ZEROS, &o);
  if (v != NULL && yk_variable_count(c->g) > before) yk_add_to_collection_at(c->where, c->g, STATES, yk_read(v));
  return v != NULL ? yk_variable_master(v) : NULL;
}

yk_value yk__state_read(const yk_layer_call *c, const char *name, int64_t batch, int64_t units) {
  const yk_keras *k = c->layer->k;
  yk_variable *v = variable_of(c, name, YK_SHAPE(batch, units));
  if (v == NULL) return (yk_value){ 0 };
  return k->nparts > 1 && c->g != k->sketch ? Y(batch_shard, yk_read(v), k->part, k->nparts) : yk_read(v);
}

void yk__state_write(const yk_layer_call *c, const char *name, yk_value value) {
  yk_keras *k = c->layer->k;
  const yk_desc *d = yk_value_desc(c->g, value);
  if (c->g == k->sketch || d == NULL) return;
  for (uint32_t i = 0; i < c->g->nvariable; i++) {         /* by name: the read has told the shape */
    yk_variable *v = c->g->variable[i];
    size_t scope = strlen(c->layer->scope);
    if (v->master != NULL || strncmp(v->name, c->layer->scope, scope) != 0 || v->name[scope] != '/' || strcmp(v->name + scope + 1, name) != 0)
      continue;
    yk_carried x = { v, value };
    if (!YK_PUSH(k->carried, k->ncarried, k->carried_cap, x)) yk_graph_fail_at(c->where, c->g, YK_ENOMEM, "no memory for a state");
    return;
  }
}

/* The rows of all parts, in order. */
static yk_value join(const yk_keras *k, const char *where, yk_variable *v) {
  yk_value part[YK__MAX_PORTS];
  size_t n = 0;
  for (uint32_t i = 0; i < k->ncarried && n < YK__MAX_PORTS; i++)
    if (k->carried[i].variable == v) part[n++] = k->carried[i].value;
  return n == 1 ? part[0] : yk_concat_at(where, k->graph, n, part, 0);
}

yk_value yk__carry_on(yk_keras *k, const char *where) {
  yk_value *op = NULL, all = { 0 };
  uint32_t n = 0, cap = 0;
  for (uint32_t i = 0; i < k->ncarried && yk_graph_status(k->graph) == YK_OK; i++) {
    yk_variable *v = k->carried[i].variable;
    bool first = true;
    for (uint32_t j = 0; j < i; j++) first = first && k->carried[j].variable != v;
    if (!first) continue;
    yk_value made = { 0 };
    YK_COLOCATE(k->graph, yk_read(v)) made = yk_assign_at(where, k->graph, v, join(k, where, v));
    if (!YK_PUSH(op, n, cap, made)) yk_graph_fail_at(where, k->graph, YK_ENOMEM, "no memory for states");
  }
  if (n > 0) all = yk_group_at(where, k->graph, n, op);
  yk__free(op);
  k->ncarried = 0;
  return all;
}

yk_code yk_network_reset_states(yk_network *n) {
  if (n == NULL) return YK_FAIL(EINVAL, "yk_network_reset_states: no network");
  yk_keras *k = n->self.k;
  size_t count = k->session != NULL ? yk_get_collection(k->graph, STATES, NULL, NULL, 0) : 0;
  if (count == 0) return YK_OK;
  yk_value *v = yk__calloc(count, sizeof *v);
  if (v == NULL) return YK_ENOMEM;
  yk_get_collection(k->graph, STATES, NULL, v, count);
  for (size_t i = 0; i < count; i++) v[i] = yk_initializer_op(yk_variable_of(k->graph, v[i]));
  yk_code rc = yk_session_run(k->session, 0, NULL, 0, NULL, count, v, NULL);
  yk__free(v);
  return rc;
}
