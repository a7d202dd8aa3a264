/*
 * ir.c - containers of the compiler's intermediate form, and its verifier.
 *
 * Edges are value ids in the nodes' input arrays; there are no back pointers to
 * keep in step: a pass that needs users builds the reversed edges, and drops them
 * when it has changed the graph.
 */
#include "plan/ir.h"

#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "op/registry.h"

/* What the passes ask of an input's port, looked up once. */
static const uint8_t *port_flags(const yk_ir *ir, const yk_ir_node *n) {
  uint8_t *flags = yk__bump(ir->mem, n->nin);
  for (uint16_t i = 0; flags != NULL && i < n->nin; i++) {
    const yk_port *p = n->kind == YK_IR_OP ? yk__op_in_port(n->op, n->attrs, n->nin, i) : NULL;
    flags[i] = p != NULL ? (uint8_t)p->flags : 0;
  }
  return flags;
}

uint32_t yk__ir_node(yk_ir *ir, yk_ir_kind kind, const yk_op *op, const void *attrs, uint16_t nin, const uint32_t *in,
                     uint16_t nout, uint32_t origin, uint16_t dev) {
  yk_ir_node n = { .kind = (uint8_t)kind, .dev = dev, .nin = nin, .nout = nout, .op = op, .attrs = attrs, .origin = origin };
  if (ir->nnode == 0 && !YK_PUSH(ir->node, ir->nnode, ir->node_cap, (yk_ir_node){ 0 })) return 0;
  if (ir->nvalue == 0 && !YK_PUSH(ir->value, ir->nvalue, ir->value_cap, (yk_ir_value){ 0 })) return 0;
  if (nin > 0) {
    n.in = yk__bump_copy(ir->mem, in, nin * sizeof *in);
    n.port = port_flags(ir, &n);
    if (n.in == NULL || n.port == NULL) return 0;
  }
  n.out = ir->nvalue;
  for (uint16_t k = 0; k < nout; k++) {
    yk_ir_value v = { .node = ir->nnode, .out = k, .root = ir->nvalue };
    if (!YK_PUSH(ir->value, ir->nvalue, ir->value_cap, v)) return 0;
  }
  if (!YK_PUSH(ir->node, ir->nnode, ir->node_cap, n)) return 0;
  return ir->nnode - 1;
}

int yk__ir_ctrl(yk_ir *ir, uint32_t node, uint32_t after) {
  yk_ir_node *n = &ir->node[node];
  for (uint32_t i = 0; i < n->nctrl; i++)
    if (n->ctrl[i] == after) return 1;
  if (n->nctrl == n->ctrl_cap) {
    uint32_t cap = n->ctrl_cap ? 2 * n->ctrl_cap : 4;
    uint32_t *grown = yk__bump(ir->mem, cap * sizeof *grown);
    if (grown == NULL) return 0;
    if (n->nctrl > 0) memcpy(grown, n->ctrl, n->nctrl * sizeof *grown);
    n->ctrl = grown;
    n->ctrl_cap = cap;
  }
  n->ctrl[n->nctrl++] = after;
  return 1;
}

uint32_t yk__ir_constant(yk_ir *ir, const yk_tensor *t, uint32_t origin, uint16_t dev) {
  uint32_t id;
  if (!YK_PUSH(ir->constant, ir->nconstant, ir->constant_cap, t)) return 0;
  id = yk__ir_node(ir, YK_IR_CONSTANT, NULL, NULL, 0, NULL, 1, origin, dev);
  if (id == 0) return 0;
  ir->node[id].index = ir->nconstant - 1;
  ir->value[ir->node[id].out].desc = *yk_tensor_desc(t);
  return id;
}

void yk__ir_replace(yk_ir *ir, uint32_t from, uint32_t to) {
  for (uint32_t id = 1; id < ir->nnode; id++) {
    yk_ir_node *n = &ir->node[id];
    if (n->kind == YK_IR_DEAD) continue;
    for (uint16_t i = 0; i < n->nin; i++)
      if (n->in[i] == from) n->in[i] = to;
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++)
    if (ir->fetch[i] == from) ir->fetch[i] = to;
}

void yk__ir_kill(yk_ir *ir, uint32_t node) {
  ir->node[node].kind = YK_IR_DEAD;
}

void yk__ir_succeed(yk_ir *ir, uint32_t node, uint32_t heir) {
  for (uint32_t id = 1; id < ir->nnode; id++)
    for (uint32_t i = 0; i < ir->node[id].nctrl; i++)
      if (ir->node[id].ctrl[i] == node) ir->node[id].ctrl[i] = heir;
  for (uint32_t id = 1; id < ir->req->graph->nnode; id++)
    if (ir->node_of_graph[id] == node) ir->node_of_graph[id] = heir;
  yk__ir_kill(ir, node);
}

int yk__ir_edge(yk_ir_edges *e, uint32_t from, uint32_t to) {
  if (e->n == 0 && !YK_PUSH(e->edge, e->n, e->cap, (yk_ir_edge){ 0 })) return 0;
  if (!YK_PUSH(e->edge, e->n, e->cap, ((yk_ir_edge){ to, e->first[from] }))) return 0;
  e->first[from] = e->n - 1;
  return 1;
}

int yk__ir_edges(const yk_ir *ir, yk_ir_edges *e) {
  e->first = yk__calloc(ir->nnode + 1u, sizeof *e->first);
  if (e->first == NULL) return 0;
  for (uint32_t id = 1; id < ir->nnode; id++) {
    const yk_ir_node *n = &ir->node[id];
    if (n->kind == YK_IR_DEAD) continue;
    for (uint32_t k = 0; k < n->nin + n->nctrl; k++) {
      uint32_t p = yk__ir_pred(ir, n, k);
      if (p != 0 && !yk__ir_edge(e, p, id)) return 0;
    }
  }
  return 1;
}

void yk__ir_edges_free(yk_ir_edges *e) {
  yk__free(e->first);
  yk__free(e->edge);
  *e = (yk_ir_edges){ 0 };
}

uint32_t yk__ir_variable_behind(const yk_ir *ir, uint32_t v) {
  for (;;) {
    const yk_ir_node *n = &ir->node[ir->value[v].node];
    if (n->kind == YK_IR_VARIABLE) return ir->value[v].node;
    if (n->kind != YK_IR_OP || n->nin == 0) return 0;
    if (!(n->op->traits & YK_VIEW) && !(yk__ir_writes(n, 0) && v == n->out)) return 0;
    v = n->in[0];
  }
}

uint32_t *yk__ir_uses(const yk_ir *ir) {
  uint32_t *uses = yk__calloc(ir->nvalue + 1u, sizeof *uses);
  if (uses == NULL) return NULL;
  for (uint32_t id = 1; id < ir->nnode; id++) {
    const yk_ir_node *n = &ir->node[id];
    if (n->kind == YK_IR_DEAD) continue;
    for (uint16_t i = 0; i < n->nin; i++)
      if (yk__ir_reads(n, i)) uses[n->in[i]]++;
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++) uses[ir->fetch[i]]++;
  return uses;
}

/* Walk backwards from `to`: every node has few inputs, while users would need a scan. */
int yk__ir_reaches(const yk_ir *ir, uint32_t from, uint32_t to, int *failed) {
  uint8_t *seen = yk__calloc(ir->nnode, 1);
  uint32_t *stack = yk__alloc(ir->nnode * sizeof *stack), n = 0;
  int found = 0;
  if (seen == NULL || stack == NULL) *failed = 1;
  else {
    stack[n++] = to;
    seen[to] = 1;
  }
  while (n > 0 && !found) {
    const yk_ir_node *x = &ir->node[stack[--n]];
    for (uint32_t i = 0; i < x->nin + x->nctrl; i++) {
      uint32_t p = yk__ir_pred(ir, x, i);
      if (p == from) found = 1;
      if (p == 0 || seen[p]) continue;
      seen[p] = 1;
      stack[n++] = p;
    }
  }
  yk__free(seen);
  yk__free(stack);
  return found;
}

const char *yk__ir_where(const yk_ir *ir, uint32_t node, char buf[256]) {
  const yk_node *n = yk__node(ir->req->graph, ir->node[node].origin);
  if (n == NULL) snprintf(buf, 256, "node %u", node);
  else snprintf(buf, 256, "%s (%s), %s", n->name, n->op->label, n->where);
  return buf;
}

yk_code yk__ir_verify(const yk_ir *ir, const char *pass) {
  for (uint32_t id = 1; id < ir->nnode; id++) {
    const yk_ir_node *n = &ir->node[id];
    char w[256];
    if (n->kind == YK_IR_DEAD) continue;
    for (uint16_t i = 0; i < n->nin; i++) {
      if (n->in[i] >= ir->nvalue)
        return YK_FAIL(EINTERNAL, "after %s: input %u of %s is not a value", pass, i, yk__ir_where(ir, id, w));
      if (n->in[i] != 0 && ir->node[ir->value[n->in[i]].node].kind == YK_IR_DEAD && yk__ir_reads(n, i))
        return YK_FAIL(EINTERNAL, "after %s: input %u of %s comes from a removed node", pass, i, yk__ir_where(ir, id, w));
    }
    for (uint32_t i = 0; i < n->nctrl; i++)
      if (ir->node[n->ctrl[i]].kind == YK_IR_DEAD)
        return YK_FAIL(EINTERNAL, "after %s: %s waits for a removed node", pass, yk__ir_where(ir, id, w));
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++)
    if (ir->fetch[i] == 0 || ir->node[ir->value[ir->fetch[i]].node].kind == YK_IR_DEAD)
      return YK_FAIL(EINTERNAL, "after %s: fetch %u comes from a removed node", pass, i);
  return YK_OK;
}
