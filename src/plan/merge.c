/*
 * merge.c - many small updates become one kernel over many tensors.
 *
 * Nodes with the trait YK_MERGE have inputs in k groups of n, then shared ones.
 * Nodes of one op on one device whose attributes (beside n) and shared inputs
 * agree are joined, unless one depends on another. A step then updates all
 * parameters with one launch.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"

enum { MOST_INPUTS = 32000 };    /* of a joined node: kernels take no more; what is left over is joined in the next round */

static uint32_t count_of(const yk_ir_node *n) {
  return *(const uint32_t *)n->attrs;
}

/* Number of shared inputs at the end: what the groups leave. */
static uint16_t shared_of(const yk_ir_node *n) {
  uint32_t groups = 0;
  for (const yk_port *p = n->op->in; p->name != NULL; p++) groups += (p->flags & YK_PORT_VARIADIC) != 0;
  return (uint16_t)(n->nin - groups * count_of(n));
}

static int mergeable(const yk_ir_node *n) {
  return n->kind == YK_IR_OP && (n->op->traits & YK_MERGE) != 0;
}

static int alike(const yk_ir_node *a, const yk_ir_node *b, uint16_t shared) {
  if (a->op != b->op || a->dev != b->dev || shared_of(b) != shared) return 0;
  if (memcmp((const char *)a->attrs + sizeof(uint32_t), (const char *)b->attrs + sizeof(uint32_t), a->op->attr_bytes - sizeof(uint32_t)) != 0)
    return 0;
  return memcmp(a->in + a->nin - shared, b->in + b->nin - shared, shared * sizeof *a->in) == 0;
}

static yk_code join(yk_ir *ir, const uint32_t *set, uint32_t nset, uint16_t shared) {
  const yk_ir_node *first = &ir->node[set[0]];
  const yk_op *op = first->op;
  uint32_t total = 0, at = 0, nin, id;
  uint16_t groups = (uint16_t)((first->nin - shared) / count_of(first));
  uint32_t *in;
  void *attrs = yk__bump_copy(ir->mem, first->attrs, op->attr_bytes);
  for (uint32_t m = 0; m < nset; m++) total += count_of(&ir->node[set[m]]);
  nin = total * groups + shared;
  in = yk__bump(ir->mem, nin * sizeof *in);
  if (attrs == NULL || in == NULL) return YK_ENOMEM;
  *(uint32_t *)attrs = total;
  for (uint16_t k = 0; k < groups; k++)
    for (uint32_t m = 0; m < nset; m++) {
      const yk_ir_node *n = &ir->node[set[m]];
      for (uint32_t i = 0; i < count_of(n); i++) in[at++] = n->in[k * count_of(n) + i];
    }
  memcpy(in + at, first->in + first->nin - shared, shared * sizeof *in);
  id = yk__ir_node(ir, YK_IR_OP, op, attrs, (uint16_t)nin, in, first->nout, ir->node[set[nset - 1]].origin, first->dev);
  if (id == 0) return YK_ENOMEM;
  for (uint32_t m = 0; m < nset; m++) {
    for (uint32_t i = 0; i < ir->node[set[m]].nctrl; i++)
      if (!yk__ir_ctrl(ir, id, ir->node[set[m]].ctrl[i])) return YK_ENOMEM;
    yk__ir_succeed(ir, set[m], id);
  }
  return YK_OK;
}

/* Mark what depends on `from`: nodes after it in topological order. */
static void mark_dependents(const yk_ir *ir, uint32_t from, const uint32_t *topo, uint32_t n, uint8_t *after) {
  after[from] = 1;
  for (uint32_t t = 0; t < n; t++) {
    const yk_ir_node *x = &ir->node[topo[t]];
    for (uint32_t i = 0; i < x->nin + x->nctrl && !after[topo[t]]; i++) after[topo[t]] = after[yk__ir_pred(ir, x, i)];   /* after[0] = 0 */
  }
}

/* Gather, in topological order, the nodes like topo[t] that do not depend on one another. The joined node stands where the
 * last of them stood: all gradients exist there. */
static yk_code merge_from(yk_ir *ir, const uint32_t *topo, uint32_t n, uint32_t t, uint8_t *after, uint32_t *set) {
  const yk_ir_node *first = &ir->node[topo[t]];
  uint16_t shared = shared_of(first);
  uint32_t nset = 0, nin = shared;
  memset(after, 0, ir->nnode);
  for (; t < n; t++) {
    const yk_ir_node *x = &ir->node[topo[t]];
    if (after[topo[t]] || !mergeable(x) || !alike(first, x, shared)) continue;
    if (nin + x->nin - shared > MOST_INPUTS) break;
    nin += x->nin - shared;
    mark_dependents(ir, topo[t], topo, n, after);
    set[nset++] = topo[t];
  }
  return nset > 1 ? join(ir, set, nset, shared) : YK_OK;
}

/* One round: find a group that is larger than one and join it. */
static yk_code merge_round(yk_ir *ir, int *joined) {
  uint32_t n = 0, before = ir->nnode, *topo = NULL, *set = yk__alloc((ir->nnode + 1u) * sizeof *set);
  uint8_t *after = yk__calloc(ir->nnode + 1u, 1);
  yk_code rc = set == NULL || after == NULL ? YK_ENOMEM : yk__ir_topo(ir, &topo, &n);
  for (uint32_t t = 0; t < n && rc == YK_OK && ir->nnode == before; t++)
    if (mergeable(&ir->node[topo[t]])) rc = merge_from(ir, topo, n, t, after, set);
  *joined = ir->nnode != before;
  yk__free(topo);
  yk__free(set);
  yk__free(after);
  return rc;
}

yk_code yk__pass_merge(yk_ir *ir) {
  int joined = 1;
  while (joined) YK_TRY(merge_round(ir, &joined));
  return YK_OK;
}
