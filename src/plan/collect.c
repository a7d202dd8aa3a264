/*
 * collect.c - what several replicas give to one sum becomes that sum.
 *
 * Nodes with the trait YK_COLLECTIVE that name one group are its members, one a replica; where a replica has several,
 * its first belongs with the others' first. A group of several becomes one addition in the order of replicas, on the
 * first one's device, so the sum's bits do not depend on devices; copies to the others are the next passes' business.
 */
#include <stdlib.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"

typedef struct yk_member { uint64_t group; uint32_t round, replica, origin, node; } yk_member;   /* node 0: not part of this step */

static int by_group(const void *a, const void *b) {
  const yk_member *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  if (x->round != y->round) return x->round < y->round ? -1 : 1;
  if (x->replica != y->replica) return x->replica < y->replica ? -1 : 1;
  return x->origin < y->origin ? -1 : 1;
}

static uint32_t count_collective(const yk_graph *g) {
  uint32_t n = 0;
  for (uint32_t id = 1; id < g->nnode; id++) n += (g->node[id]->op->traits & YK_COLLECTIVE) != 0;
  return n;
}

/* All of the graph, sorted by group and replica, and each replica's second, third, ... member of a group in a round of its own. */
static void list_members(const yk_ir *ir, yk_member *m, uint32_t n) {
  const yk_graph *g = ir->req->graph;
  uint32_t at = 0;
  for (uint32_t id = 1; id < g->nnode; id++) {
    const yk_node *x = g->node[id];
    const yk_replica_attrs *a = x->attrs;
    uint32_t node = ir->node_of_graph[id];
    if (!(x->op->traits & YK_COLLECTIVE)) continue;
    if (node != 0 && ir->node[node].kind != YK_IR_OP) node = 0;
    m[at++] = (yk_member){ a->group, 0, a->replica, id, node };
  }
  qsort(m, n, sizeof *m, by_group);
  for (uint32_t i = 1; i < n; i++)
    if (m[i].group == m[i - 1].group && m[i].replica == m[i - 1].replica) m[i].round = m[i - 1].round + 1;
  qsort(m, n, sizeof *m, by_group);
}

/* m[0..n) are one group. */
static yk_code collect_group(yk_ir *ir, const yk_member *m, uint32_t n) {
  const yk_graph *g = ir->req->graph;
  uint32_t *in, id, missing = n, used = 0, last = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (m[i].node == 0) missing = i;
    else used++;
    if (m[i].node != 0 && m[i].origin > last) last = m[i].origin;
  }
  if (n == 1 || used == 0) return YK_OK;
  if (missing < n) {
    const yk_node *x = g->node[m[missing].origin];
    return YK_FAIL(EINVAL, "'%s' (%s, %s) is part of a sum over %u replicas, and this step leaves it out: run all replicas in one step",
                   x->name, x->op->label, x->where, n);
  }
  in = yk__bump(ir->mem, n * sizeof *in);
  if (in == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < n; i++) in[i] = ir->node[m[i].node].in[0];
  id = yk__ir_node(ir, YK_IR_OP, &yk__op_add_n, NULL, (uint16_t)n, in, 1, last, ir->node[m[0].node].dev);
  if (id == 0) return YK_ENOMEM;
  ir->value[ir->node[id].out].desc = ir->value[ir->node[m[0].node].out].desc;
  for (uint32_t i = 0; i < n; i++) {
    yk__ir_replace(ir, ir->node[m[i].node].out, ir->node[id].out);
    for (uint32_t k = 0; k < ir->node[m[i].node].nctrl; k++)
      if (!yk__ir_ctrl(ir, id, ir->node[m[i].node].ctrl[k])) return YK_ENOMEM;
    yk__ir_succeed(ir, m[i].node, id);
  }
  return YK_OK;
}

yk_code yk__pass_collect(yk_ir *ir) {
  uint32_t n = count_collective(ir->req->graph), end;
  yk_code rc = YK_OK;
  if (n == 0) return YK_OK;
  yk_member *m = yk__alloc(n * sizeof *m);
  if (m == NULL) return YK_ENOMEM;
  list_members(ir, m, n);
  for (uint32_t i = 0; i < n && rc == YK_OK; i = end) {
    for (end = i + 1; end < n && m[end].group == m[i].group && m[end].round == m[i].round; end++) continue;
    rc = collect_group(ir, m + i, end - i);
  }
  yk__free(m);
  return rc;
}
