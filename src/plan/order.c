/*
 * order.c - one total order, with reads and writes of variables in their place.
 *
 * A consumer of a variable reads its storage when it runs. It runs after a
 * write only if it depends on that write; every other consumer runs before it.
 * Writers that do not depend on one another keep program order. Then the
 * schedule is made, from which streams take their work.
 */
#include <string.h>
#include "base/error.h"
#include "plan/ir.h"

typedef struct yk_use { uint32_t node, next; int writes; } yk_use;

typedef struct yk_order {
  yk_ir *ir;
  yk_ir_edges users;           /* of nodes; control edges are added here as well */
  uint32_t *first;             /* [nnode] of a variable node: its uses, nodes in order, an index into use; 0 = none */
  yk_use *use;                 uint32_t nuse, use_cap;          /* [0] unused */
  uint8_t *after;              /* [nnode] depends on the writer at hand, or is it */
  uint32_t *stack;             /* [nnode] */
  int known;                   /* `after` holds for the writer at hand */
} yk_order;

static int is_view(const yk_ir_node *n) {
  return n->kind == YK_IR_OP && (n->op->traits & YK_VIEW) != 0;
}

/* Note which variables node `id` uses, each once. Nodes come last one first, so the newest use of a list is the first node. */
static yk_code note_uses(yk_order *o, uint32_t id) {
  const yk_ir_node *n = &o->ir->node[id];
  for (uint16_t i = 0; i < n->nin; i++) {
    uint32_t variable = yk__ir_reads(n, i) ? yk__ir_variable_behind(o->ir, n->in[i]) : 0;
    if (variable == 0) continue;
    if (o->first[variable] == 0 || o->use[o->first[variable]].node != id) {
      if (!YK_PUSH(o->use, o->nuse, o->use_cap, ((yk_use){ id, o->first[variable], 0 }))) return YK_ENOMEM;
      o->first[variable] = o->nuse - 1;
    }
    o->use[o->first[variable]].writes |= yk__ir_writes(n, i);
  }
  return YK_OK;
}

static void mark_dependents(yk_order *o, uint32_t writer) {
  uint32_t n = 0;
  memset(o->after, 0, o->ir->nnode);
  o->stack[n++] = writer;
  o->after[writer] = 1;
  while (n > 0) {
    uint32_t id = o->stack[--n];
    for (uint32_t e = o->users.first[id]; e != 0; e = o->users.edge[e].next) {
      uint32_t user = o->users.edge[e].to;
      if (o->after[user]) continue;
      o->after[user] = 1;
      o->stack[n++] = user;
    }
  }
  o->known = 1;
}

/* `writer` overwrites `variable`: put it after everybody who uses the old value. That changes nothing about who depends on it. */
static yk_code order_users(yk_order *o, uint32_t writer, uint32_t variable) {
  yk_ir *ir = o->ir;
  for (uint32_t u = o->first[variable]; u != 0; u = o->use[u].next) {
    uint32_t id = o->use[u].node;
    if (id == writer || (o->use[u].writes && ir->node[id].origin > ir->node[writer].origin)) continue;   /* the later writer orders the pair */
    if (!o->known) mark_dependents(o, writer);
    if (o->after[id]) continue;
    if (!yk__ir_ctrl(ir, writer, id) || !yk__ir_edge(&o->users, id, writer)) return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code order(yk_order *o) {
  yk_ir *ir = o->ir;
  if (!YK_PUSH(o->use, o->nuse, o->use_cap, (yk_use){ 0 })) return YK_ENOMEM;
  for (uint32_t id = ir->nnode; id-- > 1;)
    if (ir->node[id].kind != YK_IR_DEAD && !is_view(&ir->node[id])) YK_TRY(note_uses(o, id));
  for (uint32_t id = 1; id < ir->nnode; id++) {
    o->known = 0;
    for (uint16_t i = 0; ir->node[id].kind == YK_IR_OP && i < ir->node[id].nin; i++)
      if (yk__ir_writes(&ir->node[id], i)) YK_TRY(order_users(o, id, yk__ir_variable_behind(ir, ir->node[id].in[i])));
  }
  return YK_OK;
}

yk_code yk__pass_order(yk_ir *ir) {
  yk_order o = { .ir = ir };
  yk_code rc = YK_ENOMEM;
  o.first = yk__calloc(ir->nnode + 1u, sizeof *o.first);
  o.after = yk__alloc(ir->nnode + 1u);
  o.stack = yk__alloc((ir->nnode + 1u) * sizeof *o.stack);
  if (o.first != NULL && o.after != NULL && o.stack != NULL && yk__ir_edges(ir, &o.users)) rc = order(&o);
  yk__ir_edges_free(&o.users);
  yk__free(o.first);
  yk__free(o.use);
  yk__free(o.after);
  yk__free(o.stack);
  return rc == YK_OK ? yk__ir_schedule(ir) : rc;
}
