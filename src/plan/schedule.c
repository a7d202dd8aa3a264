/*
 * schedule.c - the order in which devices get their work.
 *
 * A simulation: each device does one thing at a time, a node may start when its
 * predecessors have ended, and the node that can start first goes next. Costs are
 * the bytes a node touches, which is crude and enough: what matters is that a
 * stream does not wait for far results while it has near ones to work on, so far
 * ones are expected late. Of nodes that could start at once, that one goes first
 * after which another device has something to do soonest; other ties, and thus
 * everything on a single device, keep program order.
 */
#include <float.h>
#include "base/error.h"
#include "plan/ir.h"
#include "tensor/desc.h"

typedef struct yk_schedule {
  yk_ir *ir;
  uint32_t *topo, *rank;       /* program order, and a node's place in it */
  yk_ir_edges users;
  uint32_t *waiting;           /* [nnode] predecessors not scheduled */
  double *ready, *free_at;     /* [nnode] earliest start; [ndevices] */
  double *near;                /* [nnode] least work of this device after it until another one can use what came of it; NEVER */
  uint32_t *open, nopen;       /* nodes that may go next */
} yk_schedule;

#define NEVER DBL_MAX
#define LATE 2.0              /* as many times as late as foreseen is what another device can be */

static double cost(const yk_ir *ir, const yk_ir_node *n) {
  double bytes = 64;
  if (n->kind != YK_IR_OP && n->kind != YK_IR_COPY) return 0;
  if (n->kind == YK_IR_OP && (n->op->traits & YK_VIEW)) return 0;
  for (uint16_t i = 0; i < n->nin; i++)
    if (yk__ir_reads(n, i)) bytes += (double)yk__desc_count(&ir->value[n->in[i]].desc);
  for (uint16_t k = 0; k < n->nout; k++) bytes += (double)yk__desc_count(&ir->value[n->out + k].desc);
  return bytes;
}

static double start_of(const yk_schedule *s, uint32_t id) {
  uint16_t dev = s->ir->node[id].dev;
  double ready = s->ready[id];
  return dev != YK__NO_DEV && s->free_at[dev] > ready ? s->free_at[dev] : ready;
}

/* Fill in s->near. What takes from outside, such as the next examples of a queue, stays in program order: those before one
 * that another device waits for are waited for too. */
static void find_near(yk_schedule *s) {
  yk_ir *ir = s->ir;
  double taken = NEVER;
  for (uint32_t id = 0; id < ir->nnode; id++) s->near[id] = NEVER;
  for (uint32_t t = ir->norder; t-- > 0;) {
    uint32_t id = s->topo[t];
    const yk_ir_node *n = &ir->node[id];
    if (n->kind == YK_IR_OP && n->nin == 0 && (n->op->traits & YK_STATEFUL) != 0) {
      if (taken < s->near[id]) s->near[id] = taken;
      taken = s->near[id];
    }
    for (uint32_t k = 0; k < n->nin + n->nctrl; k++) {
      uint32_t before = yk__ir_pred(ir, n, k);
      double after = before != 0 && ir->node[before].dev != n->dev ? 0 : s->near[id] < NEVER ? s->near[id] + cost(ir, n) : NEVER;
      if (before != 0 && after < s->near[before]) s->near[before] = after;
    }
  }
}

static int goes_before(const yk_schedule *s, uint32_t a, uint32_t b) {
  double start_a = start_of(s, a), start_b = start_of(s, b);
  if (start_a < start_b || start_a > start_b) return start_a < start_b;
  if (s->near[a] < s->near[b] || s->near[a] > s->near[b]) return s->near[a] < s->near[b];
  return s->rank[a] < s->rank[b];
}

static uint32_t take_next(yk_schedule *s) {
  uint32_t best = 0, id;
  for (uint32_t i = 1; i < s->nopen; i++)
    if (goes_before(s, s->open[i], s->open[best])) best = i;
  id = s->open[best];
  s->open[best] = s->open[--s->nopen];
  return id;
}

/* `id` was scheduled, ending at `end`: its users come closer. Those on other devices should not count on it to the moment: whoever
 * waits in the middle of its own work for a device that is a little behind loses that time for good. */
static void release(yk_schedule *s, uint32_t id, double end) {
  for (uint32_t e = s->users.first[id]; e != 0; e = s->users.edge[e].next) {
    uint32_t user = s->users.edge[e].to;
    double known = s->ir->node[user].dev != s->ir->node[id].dev ? end * LATE : end;
    if (s->ready[user] < known) s->ready[user] = known;
    if (--s->waiting[user] == 0) s->open[s->nopen++] = user;
  }
}

static void simulate(yk_schedule *s) {
  yk_ir *ir = s->ir;
  for (uint32_t e = 1; e < s->users.n; e++) s->waiting[s->users.edge[e].to]++;
  for (uint32_t t = 0; t < ir->norder; t++) {
    s->rank[s->topo[t]] = t;
    if (s->waiting[s->topo[t]] == 0) s->open[s->nopen++] = s->topo[t];
  }
  find_near(s);
  for (uint32_t t = 0; t < ir->norder; t++) {
    uint32_t id = take_next(s);
    double end = start_of(s, id) + cost(ir, &ir->node[id]);
    if (ir->node[id].dev != YK__NO_DEV && cost(ir, &ir->node[id]) > 0) s->free_at[ir->node[id].dev] = end;
    ir->order[t] = id;
    release(s, id, end);
  }
}

yk_code yk__ir_schedule(yk_ir *ir) {
  yk_schedule s = { .ir = ir };
  yk_code rc = YK_ENOMEM;
  YK_TRY(yk__ir_topo(ir, &s.topo, &ir->norder));
  ir->order = yk__alloc((ir->norder + 1u) * sizeof *ir->order);
  ir->order_cap = ir->norder + 1u;
  s.rank = yk__calloc(ir->nnode, sizeof *s.rank);
  s.waiting = yk__calloc(ir->nnode, sizeof *s.waiting);
  s.ready = yk__calloc(ir->nnode, sizeof *s.ready);
  s.free_at = yk__calloc(ir->req->devices->n, sizeof *s.free_at);
  s.open = yk__calloc(ir->nnode, sizeof *s.open);
  s.near = yk__alloc(ir->nnode * sizeof *s.near);
  if (ir->order != NULL && s.rank != NULL && s.waiting != NULL && s.ready != NULL && s.free_at != NULL && s.open != NULL &&
      s.near != NULL && yk__ir_edges(ir, &s.users)) {
    simulate(&s);
    rc = YK_OK;
  }
  yk__ir_edges_free(&s.users);
  yk__free(s.topo);
  yk__free(s.rank);
  yk__free(s.waiting);
  yk__free(s.ready);
  yk__free(s.free_at);
  yk__free(s.open);
  yk__free(s.near);
  return rc;
}
