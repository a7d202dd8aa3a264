/*
 * import.c - pass 1 and 2: bring in what the fetches and targets need.
 *
 * Afterwards every shape is concrete, every node reaches a fetch or a target,
 * and feeds cut the graph. A value that is used only for its shape has a
 * description but no node that computes it, unless something else needs it.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"
#include "tensor/desc.h"

enum { WANT_SHAPE = 1, WANT_DATA = 2, IS_FED = 4 };

typedef struct yk_import {
  yk_ir *ir;
  const yk_graph *g;
  uint8_t *want;               /* [nvalue] of the graph */
  uint8_t *node_want;          /* [nnode] WANT_* of any output or control user */
  yk_desc *desc;               /* [nvalue] concrete */
} yk_import;

static yk_code mark_roots(yk_import *im) {
  const yk_plan_request *r = im->ir->req;
  for (uint32_t i = 0; i < r->nfeed; i++) {
    const yk_node *n = yk__value_node(im->g, r->feed[i]);
    if (n == NULL) return YK_FAIL(ENOTFOUND, "feed %u is not a value of this graph", i);
    if (im->want[r->feed[i].id] & IS_FED) return YK_FAIL(EINVAL, "'%s' is fed twice", n->name);
    im->want[r->feed[i].id] |= IS_FED;
    im->desc[r->feed[i].id] = r->feed_desc[i];
  }
  for (uint32_t i = 0; i < r->nfetch + r->ntarget; i++) {
    yk_value v = i < r->nfetch ? r->fetch[i] : r->target[i - r->nfetch];
    const yk_node *n = yk__value_node(im->g, v);
    if (n == NULL) return YK_FAIL(ENOTFOUND, "%s %u is not a value of this graph", i < r->nfetch ? "fetch" : "target",
                                  i < r->nfetch ? i : i - r->nfetch);
    if (i < r->nfetch) {
      if (im->g->value[v.id].desc.dtype == YK_NONE)
        return YK_FAIL(EINVAL, "fetch %u, '%s' (%s, %s), is an operation without a value: pass it as a target", i, n->name,
                       n->op->label, n->where);
      im->want[v.id] |= WANT_DATA;
    }
    if (!(i < r->nfetch && (im->want[v.id] & IS_FED))) im->node_want[n->id] |= WANT_DATA;
  }
  return YK_OK;
}

/* Nodes are in topological order, so one backward sweep marks all ancestors. */
static void mark_ancestors(yk_import *im) {
  for (uint32_t id = im->g->nnode - 1; id > 0; id--) {
    const yk_node *n = im->g->node[id];
    uint8_t want = im->node_want[id];
    for (uint16_t k = 0; k < n->nout; k++) {
      uint8_t w = im->want[n->first + k];
      if (!(w & IS_FED)) want |= w;
    }
    want &= WANT_SHAPE | WANT_DATA;
    im->node_want[id] = want;
    if (want == 0) continue;
    for (uint16_t i = 0; i < n->nin; i++) {
      const yk_port *p = yk__op_in_port(n->op, n->attrs, n->nin, i);
      if (n->in[i] == 0) continue;
      im->want[n->in[i]] |= (want & WANT_DATA) && !(p != NULL && (p->flags & YK_PORT_SHAPE)) ? WANT_DATA | WANT_SHAPE : WANT_SHAPE;
    }
    if (want & WANT_DATA)
      for (uint32_t i = 0; i < n->nctrl; i++) im->node_want[n->ctrl[i]] |= WANT_DATA;
  }
}

static yk_ir_kind kind_of(const yk_op *op) {
  if (op == &yk__op_constant) return YK_IR_CONSTANT;
  if (op == &yk__op_variable) return YK_IR_VARIABLE;
  if (op == &yk__op_run_counter) return YK_IR_COUNTER;
  return (op->traits & YK_SOURCE) ? YK_IR_FEED : YK_IR_OP;
}

static yk_code unfed(const yk_import *im, const yk_node *n) {
  char text[YK__DESC_TEXT];
  return YK_FAIL(EINVAL, "placeholder '%s' (%s) needs a value: feed a tensor of %s", n->name, n->where,
                 yk__desc_text(&im->g->value[n->first].desc, text, sizeof text));
}

static yk_code infer_node(yk_import *im, const yk_node *n) {
  yk_desc in_few[16], out_few[16], *in = in_few, *out = out_few;
  yk_code rc;
  if (n->nin > 16) in = yk__bump(im->ir->mem, n->nin * sizeof *in);
  if (n->nout > 16) out = yk__bump(im->ir->mem, n->nout * sizeof *out);
  if (in == NULL || out == NULL) return YK_ENOMEM;
  for (uint16_t i = 0; i < n->nin; i++) in[i] = n->in[i] != 0 ? im->desc[n->in[i]] : (yk_desc){ 0 };
  memset(out, 0, n->nout * sizeof *out);
  rc = yk__op_infer(n->op, n->attrs, in, n->nin, out, n->nout);
  if (rc != YK_OK) return yk__fail_prefix(rc, "'%s' (%s, %s): ", n->name, n->op->label, n->where);
  for (uint16_t k = 0; k < n->nout; k++) {
    char text[YK__DESC_TEXT];
    if (im->want[n->first + k] & IS_FED) continue;
    if (!yk__desc_known(&out[k]) && kind_of(n->op) == YK_IR_FEED) return unfed(im, n);
    if (!yk__desc_known(&out[k]))
      return YK_FAIL(EINVAL, "'%s' (%s, %s) has the shape %s, which this step's feeds do not settle", n->name, n->op->label,
                     n->where, yk__desc_text(&out[k], text, sizeof text));
    im->desc[n->first + k] = out[k];
  }
  return YK_OK;
}

static yk_code add_node(yk_import *im, const yk_node *n) {
  yk_ir *ir = im->ir;
  yk_ir_kind kind = kind_of(n->op);
  uint32_t few[32], *in = few, id;
  if (kind == YK_IR_FEED) return unfed(im, n);
  if (n->nin > 32 && (in = yk__bump(ir->mem, n->nin * sizeof *in)) == NULL) return YK_ENOMEM;
  for (uint16_t i = 0; i < n->nin; i++) in[i] = n->in[i] != 0 ? ir->of_graph[n->in[i]] : 0;
  id = yk__ir_node(ir, kind, n->op, n->attrs, n->nin, in, n->nout, n->id, YK__NO_DEV);
  if (id == 0) return YK_ENOMEM;
  for (uint16_t k = 0; k < n->nout; k++) {
    ir->value[ir->node[id].out + k].desc = im->desc[n->first + k];
    if (!(im->want[n->first + k] & IS_FED)) ir->of_graph[n->first + k] = ir->node[id].out + k;
  }
  if (kind == YK_IR_VARIABLE) ir->node[id].index = ((const yk_variable_attrs *)n->attrs)->index;
  if (kind == YK_IR_CONSTANT) {
    ir->node[id].index = ir->nconstant;
    if (!YK_PUSH(ir->constant, ir->nconstant, ir->constant_cap, ((const yk_constant_attrs *)n->attrs)->value)) return YK_ENOMEM;
  }
  for (uint32_t i = 0; i < n->nctrl; i++)
    if (ir->node_of_graph[n->ctrl[i]] != 0 && !yk__ir_ctrl(ir, id, ir->node_of_graph[n->ctrl[i]])) return YK_ENOMEM;
  ir->node_of_graph[n->id] = id;
  return YK_OK;
}

/* A value that only its shape is wanted of still needs an id to hang the description on: a dead node's output. */
static yk_code add_shape_only(yk_import *im, const yk_node *n) {
  yk_ir *ir = im->ir;
  uint32_t id = yk__ir_node(ir, YK_IR_DEAD, n->op, n->attrs, 0, NULL, n->nout, n->id, YK__NO_DEV);
  if (id == 0) return YK_ENOMEM;
  for (uint16_t k = 0; k < n->nout; k++) {
    ir->value[ir->node[id].out + k].desc = im->desc[n->first + k];
    if (!(im->want[n->first + k] & IS_FED)) ir->of_graph[n->first + k] = ir->node[id].out + k;
  }
  return YK_OK;
}

static yk_code add_feeds(yk_import *im) {
  yk_ir *ir = im->ir;
  for (uint32_t i = 0; i < ir->req->nfeed; i++) {
    const yk_node *n = yk__value_node(im->g, ir->req->feed[i]);
    uint32_t id = yk__ir_node(ir, YK_IR_FEED, n->op, n->attrs, 0, NULL, 1, n->id, YK__NO_DEV);
    if (id == 0) return YK_ENOMEM;
    ir->node[id].index = i;
    ir->value[ir->node[id].out].desc = ir->req->feed_desc[i];
    ir->of_graph[ir->req->feed[i].id] = ir->node[id].out;
  }
  return YK_OK;
}

static yk_code import_nodes(yk_import *im) {
  yk_ir *ir = im->ir;
  YK_TRY(mark_roots(im));
  mark_ancestors(im);
  YK_TRY(add_feeds(im));
  for (uint32_t id = 1; id < im->g->nnode; id++) {
    const yk_node *n = im->g->node[id];
    if (im->node_want[id] == 0) continue;
    YK_TRY(infer_node(im, n));
    if (im->node_want[id] & WANT_DATA) YK_TRY(add_node(im, n));
    else YK_TRY(add_shape_only(im, n));
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++) ir->fetch[i] = ir->of_graph[ir->req->fetch[i].id];
  return YK_OK;
}

yk_code yk__pass_import(yk_ir *ir) {
  const yk_graph *g = ir->req->graph;
  yk_import im = { .ir = ir, .g = g };
  yk_code rc = YK_ENOMEM;
  im.want = yk__calloc(g->nvalue + 1u, 1);
  im.node_want = yk__calloc(g->nnode + 1u, 1);
  im.desc = yk__calloc(g->nvalue + 1u, sizeof *im.desc);
  ir->of_graph = yk__bump(ir->mem, (g->nvalue + 1u) * sizeof *ir->of_graph);
  ir->node_of_graph = yk__bump(ir->mem, (g->nnode + 1u) * sizeof *ir->node_of_graph);
  ir->fetch = yk__bump(ir->mem, (ir->req->nfetch + 1u) * sizeof *ir->fetch);
  if (im.want != NULL && im.node_want != NULL && im.desc != NULL && ir->of_graph != NULL && ir->node_of_graph != NULL &&
      ir->fetch != NULL)
    rc = import_nodes(&im);
  yk__free(im.want);
  yk__free(im.node_want);
  yk__free(im.desc);
  return rc;
}
