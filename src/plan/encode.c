/*
 * encode.c - passes 10 and 12: streams, events, instructions.
 *
 * Every device has one stream. A vector clock a stream tells what it already
 * knows to be finished elsewhere, so a wait is written only where it adds
 * something, and an event is recorded only where somebody waits.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"

typedef struct yk_encode {
  yk_ir *ir;
  uint16_t nstream;
  uint16_t *stream_of_dev;     /* [ndevices], 0xFFFF = none yet */
  uint32_t *seq;               /* [nnode] position on its stream, from 1; 0 = does not run */
  uint32_t *dep;               /* [nnode][nstream] what must be finished for the node to be finished */
  uint32_t *snap;              /* [nnode][nstream] clock of its stream after it */
  uint32_t *clock;             /* [nstream][nstream] */
  uint32_t **node_at;          /* [nstream][seq] */
  uint32_t *event;             /* [nnode] 1 + event recorded after it; 0 = none */
  uint32_t *wait;              uint32_t nwait, wait_cap;        /* pairs: waiting node, event; in order */
  uint32_t instr_cap, arg_cap, event_cap;
} yk_encode;

static int runs(const yk_ir_node *n) {
  if (n->kind == YK_IR_FEED || n->kind == YK_IR_COPY) return 1;
  return n->kind == YK_IR_OP && n->action != YK_IR_NOTHING;
}

static yk_code assign_streams(yk_encode *e) {
  yk_ir *ir = e->ir;
  yk_plan *p = ir->plan;
  memset(e->stream_of_dev, 0xFF, ir->req->devices->n * sizeof *e->stream_of_dev);
  for (uint32_t t = 0; t <= ir->norder + ir->req->nfetch; t++) {
    uint16_t dev;
    if (t == ir->norder) continue;
    if (t < ir->norder && !runs(&ir->node[ir->order[t]])) continue;
    dev = t < ir->norder ? ir->node[ir->order[t]].dev : ir->node[ir->value[ir->fetch[t - ir->norder - 1]].node].dev;
    if (e->stream_of_dev[dev] != 0xFFFF) continue;
    if (e->nstream == 255) return YK_FAIL(EUNSUPPORTED, "a step may use at most 255 devices");
    p->stream_dev[e->nstream] = dev;
    e->stream_of_dev[dev] = e->nstream++;
  }
  p->nstream = e->nstream;
  return YK_OK;
}

/* What must be finished before node `id` starts: the union over its inputs and control predecessors. */
static void gather(const yk_encode *e, uint32_t id, uint32_t *need) {
  const yk_ir *ir = e->ir;
  const yk_ir_node *n = &ir->node[id];
  memset(need, 0, e->nstream * sizeof *need);
  for (uint32_t k = 0; k < n->nin + n->nctrl; k++) {
    uint32_t p = yk__ir_pred(ir, n, k);
    for (uint16_t s = 0; s < e->nstream && p != 0; s++)
      if (e->dep[p * e->nstream + s] > need[s]) need[s] = e->dep[p * e->nstream + s];
  }
}

static yk_code wait_for(yk_encode *e, uint32_t id, uint16_t s, uint16_t other, uint32_t seq) {
  uint32_t producer = e->node_at[other][seq];
  if (e->event[producer] == 0) {
    yk_plan *p = e->ir->plan;
    if (!YK_PUSH(p->event_stream, p->nevent, e->event_cap, other)) return YK_ENOMEM;
    e->event[producer] = p->nevent;
  }
  if (!YK_PUSH(e->wait, e->nwait, e->wait_cap, id) || !YK_PUSH(e->wait, e->nwait, e->wait_cap, e->event[producer] - 1)) return YK_ENOMEM;
  for (uint16_t t = 0; t < e->nstream; t++)
    if (e->snap[producer * e->nstream + t] > e->clock[s * e->nstream + t]) e->clock[s * e->nstream + t] = e->snap[producer * e->nstream + t];
  return YK_OK;
}

static yk_code schedule(yk_encode *e, uint32_t *need, uint32_t *length) {
  yk_ir *ir = e->ir;
  for (uint32_t t = 0; t < ir->norder; t++) {
    uint32_t id = ir->order[t], *dep = &e->dep[id * e->nstream];
    uint16_t s;
    gather(e, id, need);
    if (!runs(&ir->node[id])) {
      memcpy(dep, need, e->nstream * sizeof *dep);
      continue;
    }
    s = e->stream_of_dev[ir->node[id].dev];
    for (uint16_t other = 0; other < e->nstream; other++)
      if (other != s && need[other] > e->clock[s * e->nstream + other]) YK_TRY(wait_for(e, id, s, other, need[other]));
    e->seq[id] = ++length[s];
    e->node_at[s][e->seq[id]] = id;
    e->clock[s * e->nstream + s] = e->seq[id];
    memcpy(&e->snap[id * e->nstream], &e->clock[s * e->nstream], e->nstream * sizeof *need);
    memset(dep, 0, e->nstream * sizeof *dep);
    dep[s] = e->seq[id];
  }
  return YK_OK;
}

static yk_code emit(yk_encode *e, yk_opcode code, uint16_t stream, uint32_t a, uint32_t origin, uint32_t nargs, const uint32_t *args) {
  yk_plan *p = e->ir->plan;
  yk_instr i = { .code = (uint8_t)code, .stream = (uint8_t)stream, .nargs = (uint16_t)nargs, .args = p->narg, .a = a, .origin = origin };
  for (uint32_t k = 0; k < nargs; k++)
    if (!YK_PUSH(p->arg, p->narg, e->arg_cap, args[k])) return YK_ENOMEM;
  return YK_PUSH(p->instr, p->ninstr, e->instr_cap, i) ? YK_OK : YK_ENOMEM;
}

static yk_code emit_launch(yk_encode *e, uint32_t id, uint16_t s) {
  yk_ir *ir = e->ir;
  yk_plan *p = ir->plan;
  const yk_ir_node *n = &ir->node[id];
  uint16_t nwritten = 0;
  uint32_t *args = yk__bump(ir->mem, (n->nin + n->nout + 1u) * sizeof *args);
  yk_desc *desc = yk__bump(ir->mem, (n->nin + n->nout + 1u) * sizeof *desc);
  if (args == NULL || desc == NULL) return YK_ENOMEM;
  if (n->nin + n->nout > UINT16_MAX) return YK_FAIL(EUNSUPPORTED, "one operation may have at most 65535 inputs and outputs");
  for (uint16_t i = 0; i < n->nin; i++) {
    args[i] = yk__ir_reads(n, i) ? ir->value[n->in[i]].buf : YK_NO_BUF;
    if (yk__ir_writes(n, i)) nwritten = (uint16_t)(i + 1);
    if (n->in[i] != 0) desc[i] = ir->value[n->in[i]].desc;
  }
  for (uint16_t k = 0; k < n->nout; k++) desc[n->nin + k] = ir->value[n->out + k].desc;
  for (uint16_t k = 0; k < n->nout; k++) args[n->nin + k] = ir->value[n->out + k].desc.dtype == YK_NONE ? YK_NO_BUF : ir->value[n->out + k].buf;
  p->kernel[p->nkernel] = (yk_plan_kernel){ .kernel = n->kernel, .impl = n->info.impl, .workspace = n->workspace,
                                               .nin = n->nin, .nwritten = nwritten, .is_reorder = n->op == &yk__op_reorder,
                                               .op = n->op, .attrs = n->attrs, .desc = desc };
  return emit(e, YK_I_LAUNCH, s, p->nkernel++, id, (uint32_t)n->nin + n->nout, args);
}

static yk_code emit_node(yk_encode *e, uint32_t id) {
  yk_ir *ir = e->ir;
  const yk_ir_node *n = &ir->node[id];
  uint16_t s = e->stream_of_dev[n->dev];
  if (n->kind == YK_IR_FEED) return emit(e, YK_I_FEED, s, n->index, id, 1, &ir->value[n->out].buf);
  if (n->kind == YK_IR_COPY) {
    uint32_t args[2] = { ir->value[n->out].buf, ir->value[n->in[0]].buf };
    return emit(e, YK_I_COPY_PEER, s, 0, id, 2, args);
  }
  if (n->action == YK_IR_ZERO) {
    for (uint16_t k = 0; k < n->nout; k++) YK_TRY(emit(e, YK_I_FILL, s, 0, id, 1, &ir->value[n->out + k].buf));
    return YK_OK;
  }
  return emit_launch(e, id, s);
}

static yk_code emit_all(yk_encode *e) {
  yk_ir *ir = e->ir;
  uint32_t w = 0;
  for (uint32_t t = 0; t < ir->norder; t++) {
    uint32_t id = ir->order[t];
    uint16_t s;
    if (!runs(&ir->node[id])) continue;
    s = e->stream_of_dev[ir->node[id].dev];
    for (; w < e->nwait && e->wait[w] == id; w += 2) YK_TRY(emit(e, YK_I_WAIT, s, e->wait[w + 1], id, 0, NULL));
    YK_TRY(emit_node(e, id));
    if (e->event[id] != 0) YK_TRY(emit(e, YK_I_RECORD, s, e->event[id] - 1, id, 0, NULL));
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++) {
    uint32_t node = ir->value[ir->fetch[i]].node;
    YK_TRY(emit(e, YK_I_FETCH, e->stream_of_dev[ir->node[node].dev], i, node, 1, &ir->value[ir->fetch[i]].buf));
  }
  return YK_OK;
}

static yk_code describe(yk_encode *e) {
  yk_ir *ir = e->ir;
  yk_plan *p = ir->plan;
  p->norigin = ir->nnode;
  p->origin = yk__bump(ir->mem, ir->nnode * sizeof *p->origin);
  if (p->origin == NULL) return YK_ENOMEM;
  for (uint32_t id = 1; id < ir->nnode; id++) {
    const yk_ir_node *n = &ir->node[id];
    const yk_node *g = yk__node(ir->req->graph, n->origin);
    const char *label = n->kind == YK_IR_COPY ? "Copy" : n->op != NULL ? n->op->label : "Const";
    p->origin[id] = (yk_origin){ .name = g->name, .label = label, .where = g->where, .note = n->note };
  }
  p->feed = yk__bump(ir->mem, (ir->req->nfeed + 1u) * sizeof *p->feed);
  p->fetch = yk__bump(ir->mem, (ir->req->nfetch + 1u) * sizeof *p->fetch);
  if (p->feed == NULL || p->fetch == NULL) return YK_ENOMEM;
  p->nfeed = ir->req->nfeed;
  p->nfetch = ir->req->nfetch;
  for (uint32_t i = 0; i < p->nfeed; i++)
    p->feed[i] = (yk_plan_value){ ir->req->feed[i].id, ir->value[ir->of_graph[ir->req->feed[i].id]].buf, ir->req->feed_desc[i] };
  for (uint32_t i = 0; i < p->nfetch; i++) {
    p->fetch[i] = (yk_plan_value){ ir->req->fetch[i].id, ir->value[ir->fetch[i]].buf, ir->value[ir->fetch[i]].desc };
    p->fetch[i].desc.layout = YK_LAYOUT_PLAIN;
  }
  return YK_OK;
}

static yk_code encode(yk_encode *e) {
  yk_ir *ir = e->ir;
  uint32_t *need, *length, nkernel = 1;
  YK_TRY(assign_streams(e));
  for (uint32_t id = 1; id < ir->nnode; id++) nkernel += ir->node[id].kernel != NULL;
  ir->plan->kernel = yk__bump(ir->mem, nkernel * sizeof *ir->plan->kernel);
  e->dep = yk__bump(ir->mem, (size_t)ir->nnode * (e->nstream + 1u) * sizeof *e->dep);
  e->snap = yk__bump(ir->mem, (size_t)ir->nnode * (e->nstream + 1u) * sizeof *e->snap);
  e->clock = yk__bump(ir->mem, (size_t)(e->nstream + 1u) * (e->nstream + 1u) * sizeof *e->clock);
  e->node_at = yk__bump(ir->mem, (e->nstream + 1u) * sizeof *e->node_at);
  need = yk__bump(ir->mem, (e->nstream + 1u) * sizeof *need);
  length = yk__bump(ir->mem, (e->nstream + 1u) * sizeof *length);
  if (ir->plan->kernel == NULL || e->dep == NULL || e->snap == NULL || e->clock == NULL || e->node_at == NULL || need == NULL || length == NULL)
    return YK_ENOMEM;
  for (uint16_t s = 0; s < e->nstream; s++)
    if ((e->node_at[s] = yk__bump(ir->mem, (ir->norder + 2u) * sizeof **e->node_at)) == NULL) return YK_ENOMEM;
  YK_TRY(schedule(e, need, length));
  YK_TRY(emit_all(e));
  return describe(e);
}

yk_code yk__pass_encode(yk_ir *ir) {
  yk_encode e = { .ir = ir };
  yk_code rc = YK_ENOMEM;
  uint16_t ndev = ir->req->devices->n;
  e.stream_of_dev = yk__bump(ir->mem, (ndev + 1u) * sizeof *e.stream_of_dev);
  ir->plan->stream_dev = yk__bump(ir->mem, (ndev + 1u) * sizeof *ir->plan->stream_dev);
  e.seq = yk__bump(ir->mem, (ir->nnode + 1u) * sizeof *e.seq);
  e.event = yk__bump(ir->mem, (ir->nnode + 1u) * sizeof *e.event);
  if (e.stream_of_dev != NULL && ir->plan->stream_dev != NULL && e.seq != NULL && e.event != NULL) rc = encode(&e);
  yk__free(e.wait);
  return rc;
}
