/*
 * place.c - pass 3: every node gets one device.
 *
 * Groups that must sit together (colocation, an update and its variable) are
 * placed as one: the requests are merged, the first device that satisfies them
 * and can run all members wins, accelerators before the CPU. Sources without a
 * request follow their users and are made on each device that needs them, so they cost no copy.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "plan/place.h"

static uint32_t root_of(yk_placer *p, uint32_t id) {
  while (p->parent[id] != id) {
    p->parent[id] = p->parent[p->parent[id]];
    id = p->parent[id];
  }
  return id;
}

static void unite(yk_placer *p, uint32_t a, uint32_t b) {
  uint32_t ra = root_of(p, a), rb = root_of(p, b);
  if (ra != rb) p->parent[ra > rb ? ra : rb] = ra > rb ? rb : ra;
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
  for (uint32_t id = 0; id < p->g->nnode; id++) {
    p->parent[id] = id;
    p->group[id] = (yk_place_group){ .request = YK__ANY_DEVICE, .fixed = YK__NO_DEV };
  }
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

/* What the members need, and where a variable's memory already is. */
static yk_code collect_needs(yk_placer *p) {
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    yk_place_group *t = &p->group[root_of(p, id)];
    uint32_t lacks = 0;
    t->members++;
    if (n->op == &yk__op_variable) t->has_variable = 1;
    if (t->host == 0 && op_needs_host(n->op)) t->host = id;
    YK_TRY(yk__place_lacks(p->g, p->r->devices, n, &lacks));
    if (t->kernel == 0 && lacks) t->kernel = id;
    t->lacks |= lacks;
  }
  for (uint32_t i = 0; i < p->r->nvar; i++) {
    const yk_var_slot *slot = &p->r->var[i];
    if (slot->mem.base != NULL && slot->dev < p->d->n)
      p->group[root_of(p, p->g->value[p->g->variable[i]->ref.id].node)].fixed = slot->dev;
  }
  return YK_OK;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

typedef struct yk_conflict { int place, type, number; } yk_conflict;

static yk_conflict compare(const yk_device_spec *a, const yk_device_spec *b) {
  return (yk_conflict){
    .place = (a->job[0] && b->job[0] && strcmp(a->job, b->job) != 0) ||
             (a->replica >= 0 && b->replica >= 0 && a->replica != b->replica) || (a->task >= 0 && b->task >= 0 && a->task != b->task),
    .type = a->type[0] && b->type[0] && strcmp(a->type, b->type) != 0,
    .number = a->id >= 0 && b->id >= 0 && a->id != b->id };
}

/* What members disagree on stays open, whatever the next one asks for. */
static void set_request(yk_place_group *t, yk_device_spec d) {
  if (t->any_type) memset(d.type, 0, sizeof d.type);
  if (t->any_number) d.id = -1;
  t->request = d;
}

static yk_code merge_request(yk_placer *p, const yk_node *n) {
  uint32_t r = root_of(p, n->id);
  yk_place_group *t = &p->group[r];
  yk_device_spec merged;
  if (yk__device_empty(&n->device)) return YK_OK;
  if (t->asker == 0) t->asker = n->id;
  yk_conflict c = compare(&t->request, &n->device);
  merged = yk__device_merge(&t->request, &n->device);
  if (!c.place && !c.type && !c.number) {
    set_request(t, merged);
    return YK_OK;
  }
  if (t->has_variable && !c.place) {                 /* the variable asked first: its users follow it */
    p->note[n->id] = "moved to its variable's device";
    return YK_OK;
  }
  if (c.place || !p->soft) return yk__place_conflict(p, r, n);
  if (t->reason == YK__AS_ASKED) {
    t->other = n->device;
    t->other_node = n->id;
    t->reason = YK__CONFLICT;
  }
  t->any_type |= c.type != 0;
  t->any_number = 1;
  set_request(t, merged);
  return YK_OK;
}

/* Variables first, so that whoever uses them follows; those with memory before them all. */
static yk_code merge_requests(yk_placer *p) {
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    yk_place_group *t = &p->group[id];
    if (t->fixed != YK__NO_DEV) t->request = p->d->at[t->fixed].spec;
  }
  for (uint32_t i = 0; i < p->g->nvariable; i++)
    YK_TRY(merge_request(p, p->g->node[p->g->value[p->g->variable[i]->ref.id].node]));
  for (uint32_t id = 1; id < p->g->nnode; id++)
    if (p->g->node[id]->op != &yk__op_variable) YK_TRY(merge_request(p, p->g->node[id]));
  return YK_OK;
}

/* ---- choice ----------------------------------------------------------------------------------------------------- */

/* Accelerators first, then CPUs; the lowest number of a kind. */
static uint16_t best_device(const yk_placer *p, const yk_device_spec *want, int host, uint32_t lacks) {
  uint16_t best = YK__NO_DEV;
  for (uint16_t i = 0; i < p->d->n; i++) {
    const yk_device *d = &p->d->at[i];
    int cpu = strcmp(d->spec.type, "CPU") == 0;
    if ((host && !cpu) || !yk__device_matches(want, &d->spec)) continue;
    if (lacks && (lacks >> yk__place_driver(p->d, i) & 1u)) continue;
    if (best == YK__NO_DEV) best = i;
    else if (strcmp(p->d->at[best].spec.type, "CPU") == 0 && !cpu) best = i;
  }
  return best;
}

static yk_place_reason reason_of(const yk_placer *p, const yk_place_group *t) {
  if (best_device(p, &t->request, 0, 0) == YK__NO_DEV) return YK__ABSENT;
  return t->host && best_device(p, &t->request, 1, 0) == YK__NO_DEV ? YK__HOST_ONLY : YK__NO_KERNEL;
}

static const char *note_of(yk_place_reason reason) {
  static const char *const text[] = {
    [YK__AS_ASKED] = NULL,
    [YK__ABSENT] = "the device asked for is not there (soft placement)",
    [YK__HOST_ONLY] = "its group works on host objects, the device asked for is no CPU (soft placement)",
    [YK__NO_KERNEL] = "the device asked for has no kernel for its group (soft placement)",
    [YK__CONFLICT] = "conflicting requests in its colocation group were dropped (soft placement)" };
  return text[reason];
}

static yk_code choose_group(yk_placer *p, uint32_t r) {
  yk_place_group *t = &p->group[r];
  yk_device_spec want = t->request;
  uint16_t dev = t->fixed != YK__NO_DEV ? t->fixed : best_device(p, &want, t->host != 0, t->lacks);
  if (dev == YK__NO_DEV) {
    yk_place_reason why = reason_of(p, t);
    want.type[0] = '\0';
    want.id = -1;
    if (p->soft) dev = best_device(p, &want, t->host != 0, t->lacks);
    if (dev == YK__NO_DEV) return yk__place_refuse(p, r, why);
    t->reason = (uint8_t)why;
  }
  p->dev[r] = dev;
  return YK_OK;
}

static yk_code choose(yk_placer *p) {
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    uint32_t r = root_of(p, id);
    if (r == id) YK_TRY(choose_group(p, r));
    else p->dev[id] = p->dev[r];
    if (p->note[id] == NULL) p->note[id] = note_of(p->group[r].reason);
  }
  return YK_OK;
}

/* A node without inputs that nobody placed goes where its users are, if they agree and it can run there. */
static yk_code follow_users(const yk_placer *p) {
  uint16_t *users = yk__alloc(p->g->nnode * sizeof *users);
  if (users == NULL) return YK_ENOMEM;                /* a plan must not depend on how much memory there was when it was made */
  memset(users, 0xFF, p->g->nnode * sizeof *users);
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    for (uint16_t i = 0; i < n->nin; i++) {
      uint32_t from = n->in[i] ? p->g->value[n->in[i]].node : 0;
      if (from == 0) continue;
      if (users[from] == YK__NO_DEV) users[from] = p->dev[id];
      else if (users[from] != p->dev[id]) users[from] = YK__NO_DEV - 1;
    }
  }
  for (uint32_t id = 1; id < p->g->nnode; id++) {
    const yk_node *n = p->g->node[id];
    const yk_place_group *t = &p->group[id];
    if (n->nin != 0 || n->nout != 1 || t->members != 1 || n->op == &yk__op_variable) continue;
    if (!yk__device_empty(&t->request) || t->host) continue;
    if (users[id] < p->d->n && !(t->lacks && (t->lacks >> yk__place_driver(p->d, users[id]) & 1u))) p->dev[id] = users[id];
  }
  yk__free(users);
  return YK_OK;
}

/* ---- entry ------------------------------------------------------------------------------------------------------ */

static yk_code place(yk_placer *p, yk_str *moves) {
  if (p->d->n == 0) return YK_FAIL(EINVAL, "there are no devices to place the graph on");
  form_groups(p);
  YK_TRY(collect_needs(p));
  YK_TRY(merge_requests(p));
  YK_TRY(choose(p));
  YK_TRY(follow_users(p));
  return moves ? yk__place_report(p, p->r->first, moves) : YK_OK;
}

static yk_code place_graph(const yk_place_request *r, uint16_t *dev_of_node, const char **note, yk_str *moves) {
  const yk_graph *g = r->graph;
  yk_placer p = { .r = r, .g = g, .d = r->devices, .soft = r->soft, .dev = dev_of_node, .note = note };
  yk_code rc = YK_ENOMEM;
  p.parent = yk__alloc(g->nnode * sizeof *p.parent);
  p.group = yk__alloc(g->nnode * sizeof *p.group);
  if (p.parent != NULL && p.group != NULL) rc = place(&p, moves);
  yk__free(p.parent);
  yk__free(p.group);
  return rc;
}

yk_code yk__place_graph(const yk_place_request *r, uint16_t *dev_of_node, yk_str *moves) {
  const char **note = yk__calloc(r->graph->nnode, sizeof *note);
  yk_code rc;
  if (note == NULL) return YK_ENOMEM;
  rc = place_graph(r, dev_of_node, note, moves);
  yk__free(note);
  return rc;
}

yk_code yk__pass_place(yk_ir *ir) {
  const yk_graph *g = ir->req->graph;
  yk_place_request r = { .graph = g, .devices = ir->req->devices, .var = ir->req->var, .nvar = g->nvariable,
                         .soft = ir->req->soft_placement };
  const char **note = yk__bump(ir->mem, g->nnode * sizeof *note);
  ir->dev_of_graph = yk__bump(ir->mem, g->nnode * sizeof *ir->dev_of_graph);
  if (note == NULL || ir->dev_of_graph == NULL) return YK_ENOMEM;
  YK_TRY(place_graph(&r, ir->dev_of_graph, note, NULL));
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
