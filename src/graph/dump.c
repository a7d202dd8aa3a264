/*
 * dump.c - a graph as text, one line a node.
 *
 *   logits = matmul(conv1/relu, w/read) transpose_b=1 ^init -> f32[?,10] @/device:GPU:0
 *
 * Lines come in order of creation and hold nothing that changes between runs, so
 * tests compare them.
 */
#include "base/error.h"
#include "graph/scopes.h"
#include "op/registry.h"
#include "tensor/desc.h"

static void add_input(const yk_graph *g, yk_str *s, uint32_t id) {
  if (id == 0) {
    yk__str_add(s, "-");
    return;
  }
  const yk_graph_value *v = &g->value[id];
  yk__str_add(s, "%s", g->node[v->node]->name);
  if (v->out) yk__str_add(s, ":%u", v->out);
}

static void add_node(const yk_graph *g, yk_str *s, const yk_node *n) {
  char text[1024];
  yk__str_add(s, "%s = %s(", n->name, n->op->name);
  for (uint16_t i = 0; i < n->nin; i++) {
    if (i) yk__str_add(s, ", ");
    add_input(g, s, n->in[i]);
  }
  yk__str_add(s, ")");
  yk__attrs_text(n->op, n->attrs, text, sizeof text);
  if (text[0]) yk__str_add(s, " %s", text);
  for (uint32_t i = 0; i < n->nctrl; i++) yk__str_add(s, " ^%s", g->node[n->ctrl[i]]->name);
  for (uint16_t k = 0; k < n->nout; k++) {
    const yk_desc *d = &g->value[n->first + k].desc;
    yk__str_add(s, "%s%s", k ? ", " : " -> ", d->dtype == YK_NONE ? "op" : yk__desc_text(d, text, sizeof text));
  }
  if (n->device_text[0]) yk__str_add(s, " @%s", n->device_text);
  if (n->colocate != n->id) yk__str_add(s, " with %s", g->node[n->colocate]->name);
  yk__str_add(s, "\n");
}

yk_code yk_graph_dump(const yk_graph *g, char **out) {
  yk_str s = { 0 };
  if (!g || !out) return YK_FAIL(EINVAL, "yk_graph_dump: no graph, or nowhere to put the text");
  for (uint32_t i = 1; i < g->nnode; i++) add_node(g, &s, g->node[i]);
  return yk__str_take(&s, out);
}
