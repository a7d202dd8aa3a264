/*
 * compile.c - the pass driver: a request goes in, a plan comes out.
 *
 * The verifier runs after every pass and the plan checker at the end; both are
 * cheap beside preparing the kernels. On failure nothing of the session's state has changed; variables'
 * layouts are committed only by a plan that was compiled whole.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"

typedef struct yk_pass { const char *name; yk_code (*run)(yk_ir *ir); } yk_pass;

static const yk_pass passes[] = {
  { "import", yk__pass_import },       { "place", yk__pass_place }, { "collect", yk__pass_collect }, { "simplify", yk__pass_simplify },
  { "fuse", yk__pass_fuse },           { "allreduce", yk__pass_allreduce }, { "merge", yk__pass_merge }, { "partition", yk__pass_partition },
  { "order", yk__pass_order },         { "layout", yk__pass_layout }, { "memory", yk__pass_memory }, { "encode", yk__pass_encode },
};

static yk_code run_passes(yk_ir *ir) {
  for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
    YK_TRY(passes[i].run(ir));
    YK_TRY(yk__ir_verify(ir, passes[i].name));
  }
  return YK_OK;
}

static int mentions(const uint32_t *list, uint32_t n, uint32_t x) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] == x) return 1;
  return 0;
}

/* Input i is overwritten without being looked at. */
static int only_written(const yk_ir_node *x, uint16_t i) {
  return x->op == &yk__op_assign || (x->op == &yk__op_assign_sum && yk__ir_writes(x, i));
}

/* Which variables the plan reads and writes. What it wrote itself before reading it need not have had a value. */
static yk_code list_variables(yk_ir *ir) {
  yk_plan *p = ir->plan;
  uint32_t n = ir->req->graph->nvariable + 1u;
  p->reads = yk__bump(ir->mem, n * sizeof *p->reads);
  p->writes = yk__bump(ir->mem, n * sizeof *p->writes);
  if (p->reads == NULL || p->writes == NULL) return YK_ENOMEM;
  for (uint32_t t = 0; t < ir->norder; t++) {
    const yk_ir_node *x = &ir->node[ir->order[t]];
    if (x->kind == YK_IR_COUNTER) p->uses_counter = 1;
    if (x->kind == YK_IR_OP && x->action == YK_IR_NOTHING) continue;
    for (uint16_t i = 0; i < x->nin; i++) {
      const yk_ir_node *from;
      if (!yk__ir_reads(x, i)) continue;
      from = &ir->node[ir->value[ir->value[x->in[i]].root].node];
      if (from->kind != YK_IR_VARIABLE) continue;
      if (!only_written(x, i) && !mentions(p->writes, p->nwrites, from->index) && !mentions(p->reads, p->nreads, from->index))
        p->reads[p->nreads++] = from->index;
      if (yk__ir_writes(x, i) && !mentions(p->writes, p->nwrites, from->index)) p->writes[p->nwrites++] = from->index;
    }
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++) {
    const yk_ir_node *from = &ir->node[ir->value[ir->value[ir->fetch[i]].root].node];
    if (from->kind == YK_IR_VARIABLE && !mentions(p->writes, p->nwrites, from->index) && !mentions(p->reads, p->nreads, from->index))
      p->reads[p->nreads++] = from->index;
  }
  return YK_OK;
}

/* The layouts this plan was compiled for become the session's; from a private layout there is no way back. */
static yk_code commit_variables(yk_ir *ir) {
  for (uint32_t t = 0; t < ir->norder; t++) {
    const yk_ir_node *n = &ir->node[ir->order[t]];
    yk_var_slot *slot;
    yk_device *d;
    yk_desc desc;
    if (n->kind != YK_IR_VARIABLE) continue;
    slot = &ir->req->var[n->index];
    d = &ir->req->devices->at[n->dev];
    desc = ir->value[n->out].desc;
    desc.layout = ir->var_layout[n->index];
    YK_TRY(d->driver->desc_bytes(d->dev, &desc, &slot->bytes));
    slot->dev = n->dev;
    if (desc.layout != YK_LAYOUT_PLAIN) slot->layout_settled = 1;
    slot->desc = desc;
  }
  return YK_OK;
}

static uint64_t fingerprint(const yk_plan_request *r) {
  uint64_t h = yk__hash(&r->graph->version, sizeof r->graph->version, 0);
  h = yk__hash(r->feed, r->nfeed * sizeof *r->feed, h);
  h = yk__hash(r->feed_desc, r->nfeed * sizeof *r->feed_desc, h);
  h = yk__hash(r->fetch, r->nfetch * sizeof *r->fetch, h);
  h = yk__hash(r->target, r->ntarget * sizeof *r->target, h);
  for (uint16_t i = 0; i < r->devices->n; i++) h = yk__hash(r->devices->at[i].name, strlen(r->devices->at[i].name), h);
  return h;
}

static void free_ir(yk_ir *ir, int failed) {
  for (uint32_t id = 1; id < ir->nnode && failed; id++)
    if (ir->node[id].kernel != NULL) ir->req->devices->at[ir->node[id].dev].driver->kernel_free(ir->node[id].kernel);
  yk__free(ir->node);
  yk__free(ir->value);
  yk__free(ir->order);
}

static yk_code compile(yk_ir *ir) {
  yk_plan *p = ir->plan;
  YK_TRY(run_passes(ir));
  YK_TRY(list_variables(ir));
  YK_TRY(yk__plan_check(p));
  YK_TRY(commit_variables(ir));
  p->fingerprint = fingerprint(ir->req);
  return YK_OK;
}

yk_code yk__plan_compile(const yk_plan_request *r, yk_plan **out) {
  yk_plan *p = yk__calloc(1, sizeof *p);
  yk_ir ir = { .req = r, .plan = p };
  yk_code rc;
  if (p == NULL) return YK_ENOMEM;
  p->devices = r->devices;
  p->graph = yk__graph_ref(r->graph);
  ir.mem = &p->mem;
  rc = compile(&ir);
  p->constant = ir.constant;
  p->nconstant = ir.nconstant;
  p->owned = ir.owned;
  p->nowned = ir.nowned;
  if (rc != YK_OK) p->nkernel = 0;                     /* the IR still owns them */
  free_ir(&ir, rc != YK_OK);
  if (rc != YK_OK) {
    yk__plan_free(p);
    return rc;
  }
  *out = p;
  return YK_OK;
}

void yk__plan_free(yk_plan *p) {
  if (p == NULL) return;
  for (uint32_t i = 0; i < p->ninstr && p->nkernel > 0; i++)
    if (p->instr[i].code == YK_I_LAUNCH)
      p->devices->at[p->stream_dev[p->instr[i].stream]].driver->kernel_free(p->kernel[p->instr[i].a].kernel);
  for (uint32_t i = 0; i < p->nowned; i++) yk_tensor_free(p->owned[i]);
  yk__free(p->constant);
  yk__free(p->owned);
  yk__free(p->instr);
  yk__free(p->arg);
  yk__free(p->buf);
  yk__free(p->event_stream);
  yk_graph_free(p->graph);
  yk__bump_free(&p->mem);
  yk__free(p);
}
