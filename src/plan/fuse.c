/*
 * fuse.c - pass 7: groups of nodes become one node, as the table of fusions says.
 *
 * The table (ops/fusions.h) knows the operations; this file only matches how
 * nodes are connected and rewires them. Entries are tried in order, so longer
 * groups come first. Every fused operation has a kernel and a `lower`.
 */
#include "ops/fusions.h"

#include <string.h>
#include "base/error.h"
#include "plan/ir.h"

typedef struct yk_fuse {
  yk_ir *ir;
  uint32_t *uses;              /* [nvalue] data uses, fetches included */
  uint32_t *reader;            /* [nvalue] a node that reads it */
} yk_fuse;

static yk_code count_uses(yk_fuse *f) {
  yk_ir *ir = f->ir;
  yk__free(f->uses);
  yk__free(f->reader);
  f->uses = yk__ir_uses(ir);
  f->reader = yk__calloc(ir->nvalue + 1u, sizeof *f->reader);
  if (f->uses == NULL || f->reader == NULL) return YK_ENOMEM;
  for (uint32_t id = 1; id < ir->nnode; id++) {
    const yk_ir_node *n = &ir->node[id];
    for (uint16_t i = 0; n->kind != YK_IR_DEAD && i < n->nin; i++)
      if (yk__ir_reads(n, i)) f->reader[n->in[i]] = id;
  }
  return YK_OK;
}

static int candidate(const yk_ir *ir, const yk_fusion *e, uint8_t link, uint32_t id) {
  const yk_ir_node *n = &ir->node[id];
  return n->kind == YK_IR_OP && !(n->op->traits & YK_STATEFUL) && yk__fusion_fits(e, link, n->op, n->attrs);
}

static int listed(const yk_fusion *e, uint8_t link, uint16_t port) {
  for (uint8_t k = 0; k < e->nout; k++)
    if (e->out[k].link == link && e->out[k].port == port) return 1;
  return 0;
}

/* Outputs that the fused node does not give may have no readers but the next link. */
static int outputs_free(const yk_fuse *f, const yk_fusion *e, const uint32_t *node) {
  for (uint8_t l = 0; l < e->nlinks; l++) {
    const yk_ir_node *n = &f->ir->node[node[l]];
    for (uint16_t k = 0; k < n->nout; k++) {
      uint32_t allowed = e->kind == YK_FUSE_CHAIN && k == 0 && l + 1 < e->nlinks ? 1 : 0;
      if (!listed(e, l, k) && f->uses[n->out + k] != allowed) return 0;
    }
  }
  return 1;
}

/* Nothing a later link needs may come from an earlier one, except along the chain. */
static int no_detour(const yk_fuse *f, const yk_fusion *e, const uint32_t *node, int *failed) {
  const yk_ir *ir = f->ir;
  for (uint8_t l = 0; l < e->nlinks; l++) {
    const yk_ir_node *n = &ir->node[node[l]];
    for (uint32_t k = 0; k < n->nin + n->nctrl; k++) {
      uint32_t from = yk__ir_pred(ir, n, k);
      if (from == 0 || (e->kind == YK_FUSE_CHAIN && (l == 0 || k == 0))) continue;
      for (uint8_t other = 0; other < e->nlinks; other++)
        if (other != l && (from == node[other] || yk__ir_reaches(ir, node[other], from, failed))) return 0;
    }
  }
  return 1;
}

static int match_chain(const yk_fuse *f, const yk_fusion *e, uint32_t first, uint32_t *node) {
  const yk_ir *ir = f->ir;
  node[0] = first;
  for (uint8_t l = 1; l < e->nlinks; l++) {
    uint32_t v = ir->node[node[l - 1]].out;
    node[l] = f->reader[v];
    if (f->uses[v] != 1 || node[l] == 0 || ir->node[node[l]].in[0] != v || !candidate(ir, e, l, node[l])) return 0;
    if (ir->node[node[l]].dev != ir->node[first].dev) return 0;
  }
  return 1;
}

static int match_siblings(const yk_fuse *f, const yk_fusion *e, uint32_t first, uint32_t *node) {
  const yk_ir *ir = f->ir;
  node[0] = first;
  for (uint32_t id = 1; id < ir->nnode; id++) {
    if (id == first || !candidate(ir, e, 1, id) || ir->node[id].dev != ir->node[first].dev) continue;
    if (ir->node[id].in[e->share[1]] != ir->node[first].in[e->share[0]]) continue;
    node[1] = id;
    return 1;
  }
  return 0;
}

/* The fused node's attributes; NULL if the entry does not take these shapes (*failed: no memory). */
static void *attrs_for(yk_fuse *f, const yk_fusion *e, const uint32_t *node, int *failed) {
  yk_ir *ir = f->ir;
  yk_fusion_node shown[YK_FUSE_LINKS];
  void *attrs = yk__bump(ir->mem, e->fused->attr_bytes + 1u);
  for (uint8_t l = 0; l < e->nlinks; l++) {
    const yk_ir_node *n = &ir->node[node[l]];
    yk_desc *d = yk__bump(ir->mem, (n->nin + n->nout + 1u) * sizeof *d);
    if (d == NULL || attrs == NULL) {
      *failed = 1;
      return NULL;
    }
    for (uint16_t i = 0; i < n->nin; i++) d[i] = ir->value[n->in[i]].desc;
    for (uint16_t k = 0; k < n->nout; k++) d[n->nin + k] = ir->value[n->out + k].desc;
    shown[l] = (yk_fusion_node){ .op = n->op, .attrs = n->attrs, .in = d, .out = d + n->nin };
  }
  return e->attrs(shown, attrs) ? attrs : NULL;
}

static yk_code rewire(yk_fuse *f, const yk_fusion *e, const uint32_t *node, const void *attrs) {
  yk_ir *ir = f->ir;
  uint32_t in[YK_FUSE_IN], id, last = node[0];
  for (uint8_t i = 0; i < e->nin; i++) in[i] = ir->node[node[e->in[i].link]].in[e->in[i].port];
  for (uint8_t l = 1; l < e->nlinks; l++)
    if (ir->node[node[l]].origin > ir->node[last].origin) last = node[l];
  id = yk__ir_node(ir, YK_IR_OP, e->fused, attrs, e->nin, in, e->nout, ir->node[last].origin, ir->node[last].dev);
  if (id == 0) return YK_ENOMEM;
  for (uint8_t k = 0; k < e->nout; k++) {
    uint32_t old = ir->node[node[e->out[k].link]].out + e->out[k].port;
    ir->value[ir->node[id].out + k].desc = ir->value[old].desc;
    yk__ir_replace(ir, old, ir->node[id].out + k);
  }
  for (uint8_t l = 0; l < e->nlinks; l++) {
    for (uint32_t i = 0; i < ir->node[node[l]].nctrl; i++)
      if (!yk__ir_ctrl(ir, id, ir->node[node[l]].ctrl[i])) return YK_ENOMEM;
    if (e->kind == YK_FUSE_CHAIN && l + 1 < e->nlinks) yk__ir_replace(ir, ir->node[node[l]].out, ir->node[id].out);   /* readers of the shape */
  }
  for (uint8_t l = 0; l < e->nlinks; l++) yk__ir_succeed(ir, node[l], id);
  return count_uses(f);
}

static yk_code try_node(yk_fuse *f, const yk_fusion *e, uint32_t first) {
  uint32_t node[YK_FUSE_LINKS];
  int failed = 0;
  void *attrs;
  if (!candidate(f->ir, e, 0, first)) return YK_OK;
  if (!(e->kind == YK_FUSE_CHAIN ? match_chain(f, e, first, node) : match_siblings(f, e, first, node))) return YK_OK;
  if (!outputs_free(f, e, node)) return YK_OK;
  bool fits = no_detour(f, e, node, &failed);
  if (failed || !fits) return failed ? YK_ENOMEM : YK_OK;
  attrs = attrs_for(f, e, node, &failed);
  if (attrs == NULL) return failed ? YK_ENOMEM : YK_OK;
  return rewire(f, e, node, attrs);
}

yk_code yk__pass_fuse(yk_ir *ir) {
  yk_fuse f = { .ir = ir };
  size_t n;
  const yk_fusion *table = yk__fusions(&n);
  yk_code rc = count_uses(&f);
  for (size_t e = 0; e < n && rc == YK_OK; e++)
    for (uint32_t id = 1; id < ir->nnode && rc == YK_OK; id++) rc = try_node(&f, &table[e], id);
  yk__free(f.uses);
  yk__free(f.reader);
  return rc;
}
