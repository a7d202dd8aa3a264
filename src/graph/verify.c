/*
 * verify.c - what is always true of a graph, checked.
 *
 * Run after a graph was built and in tests after whatever rewrites one. A failure
 * is a bug in this library, not in the program that built the graph.
 */
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "op/registry.h"
#include "tensor/desc.h"

static yk_code check_edges(const yk_graph *g, const yk_node *n) {
  for (uint16_t i = 0; i < n->nin; i++) {
    const yk_port *port = yk__op_in_port(n->op, n->attrs, n->nin, i);
    if (n->in[i] >= n->first) return YK_FAIL(EINTERNAL, "%s: input %u is value %u, not made before", n->name, i, n->in[i]);
    if (n->in[i] == 0 && !(port && (port->flags & YK_PORT_OPTIONAL)))
      return YK_FAIL(EINTERNAL, "%s: input %u is missing", n->name, i);
  }
  for (uint32_t i = 0; i < n->nctrl; i++)
    if (n->ctrl[i] == 0 || n->ctrl[i] >= n->id)
      return YK_FAIL(EINTERNAL, "%s: runs after node %u, which was not made before", n->name, n->ctrl[i]);
  for (uint16_t k = 0; k < n->nout; k++) {
    const yk_graph_value *v = &g->value[n->first + k];
    if (n->first + k >= g->nvalue || v->node != n->id || v->out != k)
      return YK_FAIL(EINTERNAL, "%s: output %u is not value %u", n->name, k, n->first + k);
  }
  return YK_OK;
}

static yk_code check_shapes(const yk_graph *g, const yk_node *n, yk_desc *scratch) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_desc *out = scratch + n->nin;
  for (uint16_t i = 0; i < n->nin; i++) scratch[i] = n->in[i] ? g->value[n->in[i]].desc : (yk_desc){ 0 };
  YK_TRY(yk__attrs_check(n->op, n->attrs));
  YK_TRY(yk__op_infer(n->op, n->attrs, scratch, n->nin, out, n->nout));
  for (uint16_t k = 0; k < n->nout; k++) {
    const yk_desc *d = &g->value[n->first + k].desc;
    if (d->dtype != out[k].dtype || !yk__desc_same_shape(d, &out[k]))
      return YK_FAIL(EINTERNAL, "%s: output %u is %s, but its op infers %s", n->name, k, yk__desc_text(d, a, sizeof a),
                     yk__desc_text(&out[k], b, sizeof b));
  }
  return YK_OK;
}

static yk_code check_place(const yk_graph *g, const yk_node *n) {
  yk_device_spec spec;
  char text[YK__DEVICE_TEXT];
  const yk_node *with = yk__node(g, n->colocate);
  if (yk__names_find(g, n->name) != n->id) return YK_FAIL(EINTERNAL, "the name %s is not unique", n->name);
  if (!with || with->id > n->id || with->colocate != with->id)
    return YK_FAIL(EINTERNAL, "%s: sits with node %u, which does not stand for a group", n->name, n->colocate);
  YK_TRY(yk__device_parse(n->device_text, &spec));
  if (strcmp(n->device_text, yk__device_text(&n->device, text)))
    return YK_FAIL(EINTERNAL, "%s: its device is %s, but shown as %s", n->name, text, n->device_text);
  return YK_OK;
}

static yk_code check_variable(const yk_graph *g, const yk_variable *v) {
  if (v->index >= g->nvariable || g->variable[v->index] != v || yk_variable_of(g, v->read) != v)
    return YK_FAIL(EINTERNAL, "variable '%s': its read does not lead back to it", v->name);
  const yk_node *assign = yk__value_node(g, v->assign);
  if (!assign || assign->nin != 2 || assign->in[0] != v->ref.id || assign->in[1] != v->initial.id)
    return YK_FAIL(EINTERNAL, "variable '%s': its initializer does not assign its initial value", v->name);
  return YK_OK;
}

yk_code yk_graph_verify(const yk_graph *g) {
  YK_TRY(yk_graph_status(g));
  size_t most = 1;
  for (uint32_t i = 1; i < g->nnode; i++) {
    size_t ports = (size_t)g->node[i]->nin + g->node[i]->nout;
    if (ports > most) most = ports;
  }
  yk_desc *scratch = yk__alloc(most * sizeof *scratch);
  if (!scratch) return YK_ENOMEM;
  yk_code code = YK_OK;
  for (uint32_t i = 1; i < g->nnode && code == YK_OK; i++) {
    const yk_node *n = g->node[i];
    if (n->id != i) code = YK_FAIL(EINTERNAL, "node %u says it is number %u", i, n->id);
    if (code == YK_OK) code = check_edges(g, n);
    if (code == YK_OK) code = check_shapes(g, n, scratch);
    if (code == YK_OK) code = check_place(g, n);
  }
  for (uint32_t i = 0; i < g->nvariable && code == YK_OK; i++) code = check_variable(g, g->variable[i]);
  yk__free(scratch);
  return code == YK_OK || code == YK_ENOMEM || code == YK_EINTERNAL ? code : yk__fail_prefix(YK_EINTERNAL, "graph");
}
