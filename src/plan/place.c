/*
 * place.c - pass 3: every node gets one device.
 *
 * Groups that must sit together (colocation, an update and its variable) are
 * placed as one: the requests are merged, the first device that satisfies them
 * wins, accelerators before the CPU. Sources without a request follow their
 * users and are made on each device that needs them, so they cost no copy.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"

typedef struct yk_placer {
  const yk_graph *g;
  const yk_devices *d;
  int soft;
  uint32_t *group;             /* [nnode] union-find parent */
  yk_device_spec *request;     /* [nnode] merged request of a group's root */
  uint8_t *host;               /* [nnode] group has an op that needs host objects */
  const char **note;
} yk_placer;

static uint32_t root_of(yk_placer *p, uint32_t id) {
  while (p->group[id] != id) {
    p->group[id] = p->group[p->group[id]];
    id = p->group[id];
  }
  return id;
}

static void unite(yk_placer *p, uint32_t a, uint32_t b) {
  uint32_t ra = root_of(p, a), rb = root_of(p, b);
  if (ra != rb) p->group[ra > rb ? ra : rb] = ra > rb ? rb : ra;
}

static int op_needs_host(const yk_op *op) {
  for (const yk_port *port = op->in; port != NULL && port->name != NULL; port++)
    if (port->flags & YK_PORT_HOST) return 1;
  for (const yk_port *port = op->out; port != NULL && port->name != NULL; port++)
    if (port->flags & YK_PORT_HOST) return 1;
  return 0;
}

/* An op that writes a variable, and the reading of one, sit with the variable. */
static void form_groups(yk_placer *p) {
  for (uint32_t id = 1; id < p->g->nnode; id++) p->group[id] = id;
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    if (n->colocate != 0 && n->colocate != id) unite(p, id, n->colocate);
    for (uint16_t i = 0; i < n->nin; i++) {
      const yk_node *from;
      if (n->in[i] == 0) continue;
      from = p->g->node[p->g->value[n->in[i]].node];
      if (from->op == &yk__op_variable) unite(p, id, from->id);
    }
  }
}

static int field_conflict(const yk_device_spec *a, const yk_device_spec *b, int *place, int *type, int *number) {
  *place = (a->job[0] && b->job[0] && strcmp(a->job, b->job) != 0) || (a->replica >= 0 && b->replica >= 0 && a->replica != b->replica) ||
           (a->task >= 0 && b->task >= 0 && a->task != b->task);
  *type = a->type[0] && b->type[0] && strcmp(a->type, b->type) != 0;
  *number = a->id >= 0 && b->id >= 0 && a->id != b->id;
  return *place || *type || *number;
}

static yk_code merge_request(yk_placer *p, const yk_node *n) {
  uint32_t r = root_of(p, n->id);
  yk_device_spec *have = &p->request[r];
  int place, type, number;
  char a[YK__DEVICE_TEXT], b[YK__DEVICE_TEXT];
  if (op_needs_host(n->op)) p->host[r] = 1;
  if (yk__device_empty(&n->device)) return YK_OK;
  if (!field_conflict(have, &n->device, &place, &type, &number)) {
    *have = yk__device_merge(have, &n->device);
    return YK_OK;
  }
  /* The variable (or colocation head) has the smallest id, so its request is already in `have`: users follow it. */
  if (p->g->node[r]->op == &yk__op_variable && !place) {
    p->note[n->id] = "moved to its variable's device";
    return YK_OK;
  }
  if (place || !p->soft)
    return YK_FAIL(EINVAL, "no device can be assigned for '%s' (%s, %s): it asks for %s, but it must sit with '%s' (%s), which asks for %s",
                   n->name, n->op->label, n->where, yk__device_text(&n->device, a), p->g->node[r]->name, p->g->node[r]->op->label,
                   yk__device_text(have, b));
  if (type) have->type[0] = '\0';
  have->id = -1;
  p->note[n->id] = "conflicting requests in its colocation group were dropped (soft placement)";
  return YK_OK;
}

/* Accelerators first, then CPUs; the lowest number of a kind. */
static uint16_t best_device(const yk_placer *p, const yk_device_spec *want, int host) {
  uint16_t best = YK__NO_DEV;
  for (uint16_t i = 0; i < p->d->n; i++) {
    const yk_device *d = &p->d->at[i];
    int cpu = strcmp(d->spec.type, "CPU") == 0;
    if ((host && !cpu) || !yk__device_matches(want, &d->spec)) continue;
    if (best == YK__NO_DEV) best = i;
    else if (strcmp(p->d->at[best].spec.type, "CPU") == 0 && !cpu) best = i;
  }
  return best;
}

static yk_code refuse(const yk_placer *p, const yk_node *n, const yk_device_spec *want, int host) {
  char asked[YK__DEVICE_TEXT], have[1024];
  yk__devices_text(p->d, have, sizeof have);
  yk__device_text(want, asked);
  if (host && best_device(p, want, 0) != YK__NO_DEV)
    return YK_FAIL(EUNSUPPORTED, "no device can be assigned for '%s' (%s, %s): %s exists, but %s works on host objects and runs on CPU devices only; "
                   "put it on /cpu:0 or allow soft placement. Devices: %s", n->name, n->op->label, n->where, asked, n->op->label, have);
  return YK_FAIL(ENOTFOUND, "no device can be assigned for '%s' (%s, %s): it asks for %s, and there is no such device. Devices: %s. "
                 "Check the device string, open more devices, or allow soft placement", n->name, n->op->label, n->where, asked, have);
}

static yk_code choose(yk_placer *p, uint16_t *dev_of_node) {
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    uint32_t r = root_of(p, id);
    yk_device_spec want = p->request[r];
    uint16_t dev;
    if (r != id) {
      dev_of_node[id] = dev_of_node[r];
      continue;
    }
    dev = best_device(p, &want, p->host[r]);
    if (dev == YK__NO_DEV && p->soft) {
      want.type[0] = '\0';
      want.id = -1;
      dev = best_device(p, &want, p->host[r]);
      p->note[id] = "the device asked for is not there (soft placement)";
    }
    if (dev == YK__NO_DEV) return refuse(p, n, &p->request[r], p->host[r]);
    dev_of_node[id] = dev;
  }
  return YK_OK;
}

/* A source or a node without inputs that nobody placed goes where its first user is, if all its users agree. */
static void follow_users(const yk_placer *p, uint16_t *dev_of_node) {
  uint16_t *users = yk__alloc(p->g->nnode * sizeof *users);
  if (users == NULL) return;                          /* only a preference: the node stays where it is */
  memset(users, 0xFF, p->g->nnode * sizeof *users);
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    for (uint16_t i = 0; i < n->nin; i++) {
      uint32_t from = n->in[i] ? p->g->value[n->in[i]].node : 0;
      if (from == 0) continue;
      if (users[from] == YK__NO_DEV) users[from] = dev_of_node[id];
      else if (users[from] != dev_of_node[id]) users[from] = YK__NO_DEV - 1;
    }
  }
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    uint32_t r = p->group[id];
    if (n->nin == 0 && n->nout == 1 && r == id && n->op != &yk__op_variable && yk__device_empty(&p->request[id]) && !p->host[id] &&
        users[id] < p->d->n)
      dev_of_node[id] = users[id];
  }
  yk__free(users);
}

static yk_code place(yk_placer *p, uint16_t *dev_of_node) {
  if (p->d->n == 0) return YK_FAIL(EINVAL, "there are no devices to place the graph on");
  form_groups(p);
  for (uint32_t id = 0; id < p->g->nnode; id++) p->request[id] = YK__ANY_DEVICE;
  for (uint32_t id = 1; id < p->g->nnode; id++) YK_TRY(merge_request(p, p->g->node[id]));
  YK_TRY(choose(p, dev_of_node));
  follow_users(p, dev_of_node);
  return YK_OK;
}

static yk_code place_graph(const yk_graph *g, const yk_devices *d, int soft, uint16_t *dev_of_node, const char **note) {
  yk_placer p = { .g = g, .d = d, .soft = soft, .note = note };
  yk_code rc = YK_ENOMEM;
  p.group = yk__alloc(g->nnode * sizeof *p.group);
  p.request = yk__alloc(g->nnode * sizeof *p.request);
  p.host = yk__calloc(g->nnode, 1);
  if (p.group != NULL && p.request != NULL && p.host != NULL) {
    p.group[0] = 0;
    rc = place(&p, dev_of_node);
  }
  yk__free(p.group);
  yk__free(p.request);
  yk__free(p.host);
  return rc;
}

yk_code yk__place_graph(const yk_graph *g, const yk_devices *d, int soft, uint16_t *dev_of_node) {
  const char **note = yk__calloc(g->nnode, sizeof *note);
  yk_code rc;
  if (note == NULL) return YK_ENOMEM;
  rc = place_graph(g, d, soft, dev_of_node, note);
  yk__free(note);
  return rc;
}

yk_code yk__pass_place(yk_ir *ir) {
  const yk_graph *g = ir->req->graph;
  const char **note = yk__bump(ir->mem, g->nnode * sizeof *note);
  ir->dev_of_graph = yk__bump(ir->mem, g->nnode * sizeof *ir->dev_of_graph);
  if (note == NULL || ir->dev_of_graph == NULL) return YK_ENOMEM;
  YK_TRY(place_graph(g, ir->req->devices, ir->req->soft_placement, ir->dev_of_graph, note));
  for (uint32_t id = 1; id < ir->nnode; id++) {
    yk_ir_node *n = &ir->node[id];
    n->dev = ir->dev_of_graph[n->origin];
    n->note = note[n->origin];
    if (n->note != NULL && ir->req->strict) {
      char w[256];
      return YK_FAIL(EUNSUPPORTED, "%s: %s; refused because the session is strict", yk__ir_where(ir, id, w), n->note);
    }
    if (n->kind == YK_IR_VARIABLE) ir->req->var[n->index].dev = n->dev;
  }
  return YK_OK;
}
