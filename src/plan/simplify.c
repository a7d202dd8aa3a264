/*
 * simplify.c - constants folded, equal constants and equal pure nodes merged.
 *
 * Folding runs the op's own reference, so a folded value is as exact as the
 * reference; only small results are folded. Afterwards no two live pure nodes
 * compute the same, and dead nodes are gone.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"
#include "tensor/desc.h"

enum { FOLD_ELEMENTS = 4096 };

/* All data inputs are small constants, and the op is a pure function with a reference. */
static int can_fold(const yk_ir *ir, const yk_ir_node *n) {
  if (n->kind != YK_IR_OP || !(n->op->traits & YK_PURE) || n->op->ref == NULL || n->nctrl > 0 || n->nout != 1) return 0;
  if (ir->value[n->out].desc.dtype == YK_NONE || yk__desc_count(&ir->value[n->out].desc) > FOLD_ELEMENTS) return 0;
  for (uint16_t i = 0; i < n->nin; i++) {
    const yk_ir_value *v = &ir->value[n->in[i]];
    if (!yk__ir_reads(n, i)) continue;
    if (ir->node[v->node].kind != YK_IR_CONSTANT || yk__desc_count(&v->desc) > FOLD_ELEMENTS) return 0;
    if (yk__ir_writes(n, i)) return 0;
  }
  return 1;
}

static yk_code fold_buffers(yk_ir *ir, const yk_ir_node *n, double *room, size_t at, const double **in, yk_desc *din) {
  for (uint16_t i = 0; i < n->nin; i++) {
    din[i] = ir->value[n->in[i]].desc;
    in[i] = NULL;
    if (!yk__ir_reads(n, i)) continue;
    const yk_tensor *t = ir->constant[ir->node[ir->value[n->in[i]].node].index];
    yk__to_double((yk_dtype)din[i].dtype, yk_tensor_data(t), room + at, yk_tensor_count(t));
    in[i] = room + at;
    at += (size_t)yk_tensor_count(t) + 1;
  }
  return YK_OK;
}

static yk_code fold_value(yk_ir *ir, const yk_ir_node *n, yk_tensor **out) {
  yk_desc dout = ir->value[n->out].desc, *din;
  size_t total = (size_t)yk__desc_count(&dout) + 1;
  const double **in = yk__bump(ir->mem, (n->nin + 1u) * sizeof *in);
  double *room, *result[1];
  yk_tensor *t = NULL;
  yk_code rc;
  din = yk__bump(ir->mem, (n->nin + 1u) * sizeof *din);
  for (uint16_t i = 0; i < n->nin; i++)
    if (yk__ir_reads(n, i)) total += (size_t)yk__desc_count(&ir->value[n->in[i]].desc) + 1;
  room = yk__calloc(total, sizeof *room);
  if (in == NULL || din == NULL || room == NULL) {
    yk__free(room);
    return YK_ENOMEM;
  }
  result[0] = room;
  rc = fold_buffers(ir, n, room, (size_t)yk__desc_count(&dout) + 1, in, din);
  if (rc == YK_OK) {
    yk_ref ref = { .in = in, .out = result, .din = din, .dout = &dout, .nin = n->nin, .nout = 1, .attrs = n->attrs, .host = &yk__host };
    rc = n->op->ref(&ref);
  }
  if (rc == YK_OK) rc = yk_tensor_new((yk_dtype)dout.dtype, yk__desc_shape(&dout), &t);
  if (rc == YK_OK) {
    yk__from_double((yk_dtype)dout.dtype, room, yk_tensor_data(t), yk__desc_count(&dout));
    *out = t;
  }
  yk__free(room);
  return rc;
}

static yk_code fold(yk_ir *ir) {
  uint32_t end = ir->nnode;
  for (uint32_t id = 1; id < end; id++) {
    yk_tensor *t;
    uint32_t c;
    if (!can_fold(ir, &ir->node[id])) continue;
    YK_TRY(fold_value(ir, &ir->node[id], &t));
    if (!YK_PUSH(ir->owned, ir->nowned, ir->owned_cap, t)) {
      yk_tensor_free(t);
      return YK_ENOMEM;
    }
    c = yk__ir_constant(ir, t, ir->node[id].origin, ir->node[id].dev);
    if (c == 0) return YK_ENOMEM;
    yk__ir_replace(ir, ir->node[id].out, ir->node[c].out);
    yk__ir_succeed(ir, id, c);
  }
  return YK_OK;
}

static int is_constant(const yk_ir *ir, const yk_ir_node *n) {
  return n->kind == YK_IR_CONSTANT && yk__desc_count(&ir->value[n->out].desc) <= FOLD_ELEMENTS;
}

static uint64_t node_hash(const yk_ir *ir, const yk_ir_node *n) {
  const yk_tensor *t = n->kind == YK_IR_CONSTANT ? ir->constant[n->index] : NULL;
  if (t != NULL) return yk__hash(yk_tensor_data(t), yk_tensor_bytes(t), 1);
  uint64_t h = yk__attrs_hash(n->op, n->attrs, (uint64_t)(uintptr_t)n->op);
  h = yk__hash(n->in, n->nin * sizeof *n->in, h);
  return yk__hash(&n->dev, sizeof n->dev, h);
}

/* Constants have no device yet: partition makes them where they are used. */
static int constant_equal(const yk_ir *ir, const yk_ir_node *a, const yk_ir_node *b) {
  const yk_tensor *x = ir->constant[a->index], *y = ir->constant[b->index];
  return memcmp(yk_tensor_desc(x), yk_tensor_desc(y), sizeof(yk_desc)) == 0 && memcmp(yk_tensor_data(x), yk_tensor_data(y), yk_tensor_bytes(x)) == 0;
}

static int node_equal(const yk_ir *ir, const yk_ir_node *a, const yk_ir_node *b) {
  if (a->kind != b->kind) return 0;
  if (a->nctrl != b->nctrl || (a->nctrl > 0 && memcmp(a->ctrl, b->ctrl, a->nctrl * sizeof *a->ctrl) != 0)) return 0;
  if (a->kind == YK_IR_CONSTANT) return constant_equal(ir, a, b);
  if (a->op != b->op || a->dev != b->dev || a->nin != b->nin || a->nout != b->nout) return 0;
  if (memcmp(a->in, b->in, a->nin * sizeof *a->in) != 0) return 0;
  for (uint16_t k = 0; k < a->nout; k++)
    if (memcmp(&ir->value[a->out + k].desc, &ir->value[b->out + k].desc, sizeof(yk_desc)) != 0) return 0;
  return yk__attrs_equal(a->op, a->attrs, b->attrs);
}

/* Open-addressing table of node ids; size is a power of two above twice the node count. */
static yk_code merge_equal(yk_ir *ir) {
  uint32_t size = 64, *table;
  while (size < 2 * ir->nnode) size *= 2;
  table = yk__calloc(size, sizeof *table);
  if (table == NULL) return YK_ENOMEM;
  for (uint32_t id = 1; id < ir->nnode; id++) {
    yk_ir_node *n = &ir->node[id];
    uint32_t slot;
    if (!is_constant(ir, n) && (n->kind != YK_IR_OP || !(n->op->traits & YK_PURE))) continue;
    for (slot = (uint32_t)node_hash(ir, n) & (size - 1); table[slot] != 0; slot = (slot + 1) & (size - 1))
      if (node_equal(ir, &ir->node[table[slot]], n)) break;
    if (table[slot] == 0) {
      table[slot] = id;
      continue;
    }
    for (uint16_t k = 0; k < n->nout; k++) yk__ir_replace(ir, n->out + k, ir->node[table[slot]].out + k);
    yk__ir_succeed(ir, id, table[slot]);
  }
  yk__free(table);
  return YK_OK;
}

/* Nodes that fed only what was folded or merged away. Targets and what they wait for stay. */
static yk_code drop_dead(yk_ir *ir) {
  uint8_t *live = yk__calloc(ir->nnode, 1);
  if (live == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < ir->req->nfetch; i++) live[ir->value[ir->fetch[i]].node] = 1;
  for (uint32_t i = 0; i < ir->req->ntarget; i++) {
    const yk_node *n = yk__value_node(ir->req->graph, ir->req->target[i]);
    uint32_t id = ir->node_of_graph[n->id];
    if (id != 0) live[id] = 1;
  }
  for (uint32_t id = 1; id < ir->nnode; id++)
    if (ir->node[id].kind == YK_IR_OP && (ir->node[id].op->traits & YK_STATEFUL)) live[id] = 1;
  for (int changed = 1; changed;) {                    /* folding may have put a constant after its user: repeat until stable */
    changed = 0;
    for (uint32_t id = ir->nnode - 1; id > 0; id--) {
      const yk_ir_node *n = &ir->node[id];
      if (!live[id] || n->kind == YK_IR_DEAD) continue;
      for (uint32_t i = 0; i < n->nin + n->nctrl; i++) {
        uint32_t p = yk__ir_pred(ir, n, i);
        if (p != 0 && !live[p]) changed = live[p] = 1;
      }
    }
  }
  for (uint32_t id = 1; id < ir->nnode; id++)
    if (!live[id]) yk__ir_kill(ir, id);
  yk__free(live);
  return YK_OK;
}

yk_code yk__pass_simplify(yk_ir *ir) {
  YK_TRY(merge_equal(ir));
  YK_TRY(fold(ir));
  YK_TRY(merge_equal(ir));
  return drop_dead(ir);
}
