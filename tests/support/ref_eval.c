/*
 * ref_eval.c - a tiny interpreter of graphs over the ops' references. See ref_eval.h.
 *
 * Each value has one slot. A variable's slot is its storage and survives; all others are filled anew in every run.
 */
#include "support/ref_eval.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "device/device.h"
#include "graph/graph.h"
#include "op/registry.h"
#include "tensor/desc.h"

typedef struct slot {
  yk_desc desc;
  double *data;
  int fed;             /* given from outside, or a variable that has contents */
  int done;            /* computed in this run */
} slot;

struct ref_eval {
  const yk_graph *g;
  slot *at;            /* [nslot], by value id */
  uint32_t nslot;
  int64_t counter;
};

ref_eval *ref_eval_new(const yk_graph *g) {
  ref_eval *e = calloc(1, sizeof *e);
  if (e) e->g = g;
  return e;
}

void ref_eval_free(ref_eval *e) {
  for (uint32_t i = 0; e && i < e->nslot; i++) free(e->at[i].data);
  if (e) free(e->at);
  free(e);
}

void ref_eval_counter(ref_eval *e, int64_t run) { e->counter = run; }

static yk_code make_room(ref_eval *e) {
  if (e->nslot >= e->g->nvalue) return YK_OK;
  slot *grown = realloc(e->at, e->g->nvalue * sizeof *grown);
  if (!grown) return YK_FAIL(ENOMEM, "no memory for %u values", e->g->nvalue);
  memset(grown + e->nslot, 0, (e->g->nvalue - e->nslot) * sizeof *grown);
  e->at = grown;
  e->nslot = e->g->nvalue;
  return YK_OK;
}

static const slot *slot_of(const ref_eval *e, yk_value v) { return v.id > 0 && v.id < e->nslot ? &e->at[v.id] : NULL; }

/* Room for the elements of `d`; NaN, so that what a reference forgets to write shows. */
static yk_code hold(slot *s, const yk_desc *d) {
  int64_t n = d->dtype == YK_NONE ? 0 : yk__desc_count(d);
  double *data;
  if (n < 0) return YK_FAIL(EINVAL, "a shape is not known");
  data = malloc(((size_t)n + 1) * sizeof *data);
  if (!data) return YK_FAIL(ENOMEM, "no memory for %lld elements", (long long)n);
  for (int64_t i = 0; i <= n; i++) data[i] = NAN;
  free(s->data);
  s->data = data;
  s->desc = *d;
  return YK_OK;
}

yk_code ref_eval_feed(ref_eval *e, yk_value v, const yk_shape *shape, const double *data) {
  const yk_node *n = yk__value_node(e->g, v);
  if (!n) return YK_FAIL(EINVAL, "value %u is none of the graph's", v.id);
  YK_TRY(make_room(e));
  if (n->op == &yk__op_read_variable) v.id = n->in[0];
  const yk_desc *in_graph = yk_value_desc(e->g, v);
  yk_desc d = shape ? yk__desc((yk_dtype)in_graph->dtype, *shape) : *in_graph, merged;
  YK_TRY(yk__shape_merge(in_graph, &d, &merged));
  slot *s = &e->at[v.id];
  YK_TRY(hold(s, &d));
  memcpy(s->data, data, (size_t)yk__desc_count(&d) * sizeof *data);
  s->fed = 1;
  return YK_OK;
}

static int is_variable(const yk_node *n) { return n->op == &yk__op_variable; }

/* Which nodes are needed: those of the fetches, and what they come after. Fed values need nothing. */
static void mark(const ref_eval *e, size_t n, const yk_value *fetch, uint8_t *need) {
  const yk_graph *g = e->g;
  for (size_t i = 0; i < n; i++)
    if (!e->at[fetch[i].id].fed) need[g->value[fetch[i].id].node] = 1;
  for (uint32_t id = g->nnode - 1; id > 0; id--) {
    const yk_node *node = g->node[id];
    if (!need[id]) continue;
    for (uint16_t i = 0; i < node->nin; i++)
      if (!e->at[node->in[i]].fed) need[g->value[node->in[i]].node] = 1;
    for (uint32_t i = 0; i < node->nctrl; i++) need[node->ctrl[i]] = 1;
  }
}

typedef struct call {
  yk_desc *din, *dout;
  const double **in;
  double **out;
} call;

static void call_free(call *c) {
  free(c->din);
  free(c->dout);
  free(c->in);
  free(c->out);
}

static yk_code call_new(const yk_node *n, call *c) {
  *c = (call){ calloc(n->nin + 1u, sizeof *c->din), calloc(n->nout + 1u, sizeof *c->dout), calloc(n->nin + 1u, sizeof *c->in),
               calloc(n->nout + 1u, sizeof *c->out) };
  if (c->din && c->dout && c->in && c->out) return YK_OK;
  call_free(c);
  return YK_FAIL(ENOMEM, "no memory for a node's arguments");
}

static yk_code compute(ref_eval *e, const yk_node *n, call *c) {
  for (uint16_t i = 0; i < n->nin; i++) {
    const slot *s = &e->at[n->in[i]];
    const yk_port *port = yk__op_in_port(n->op, n->attrs, n->nin, i);
    int writes = port && (port->flags & YK_PORT_WRITE), storage = n->in[i] && is_variable(e->g->node[e->g->value[n->in[i]].node]);
    c->din[i] = s->desc;
    if (storage && !s->data) {                       /* the first assign gives it room */
      YK_TRY(hold(&e->at[n->in[i]], &e->g->value[n->in[i]].desc));
      c->din[i] = s->desc;
    }
    if (storage && !s->fed && !(writes && n->op == &yk__op_assign) && !(port && (port->flags & YK_PORT_SHAPE)))
      return YK_FAIL(EINVAL, "variable '%s' is used before it has contents", e->g->node[e->g->value[n->in[i]].node]->name);
    c->in[i] = port && (port->flags & YK_PORT_SHAPE) ? NULL : s->data;
  }
  YK_TRY(yk__op_infer(n->op, n->attrs, c->din, n->nin, c->dout, n->nout));
  for (uint16_t k = 0; k < n->nout; k++) {
    YK_TRY(hold(&e->at[n->first + k], &c->dout[k]));
    c->out[k] = e->at[n->first + k].data;
  }
  if (n->op == &yk__op_run_counter) {
    c->out[0][0] = (double)e->counter;
    return YK_OK;
  }
  yk_ref r = { .in = c->in, .out = c->out, .din = c->din, .dout = c->dout, .nin = n->nin, .nout = n->nout, .attrs = n->attrs,
               .host = &yk__host };
  YK_TRY(n->op->ref(&r));
  for (uint16_t i = 0; i < n->nin; i++) {
    const yk_port *port = yk__op_in_port(n->op, n->attrs, n->nin, i);
    if (port && (port->flags & YK_PORT_WRITE)) e->at[n->in[i]].fed = 1;
  }
  return YK_OK;
}

/* A fed output of a node that runs for another one keeps what was fed. */
static yk_code run_node(ref_eval *e, const yk_node *n) {
  call c;
  double *kept[8] = { NULL };
  yk_desc kept_desc[8];
  yk_code code;
  YK_TRY(call_new(n, &c));
  for (uint16_t k = 0; k < n->nout && k < 8; k++)
    if (e->at[n->first + k].fed) {
      kept[k] = e->at[n->first + k].data;
      kept_desc[k] = e->at[n->first + k].desc;
      e->at[n->first + k].data = NULL;
    }
  code = compute(e, n, &c);
  for (uint16_t k = 0; k < n->nout; k++) {
    slot *s = &e->at[n->first + k];
    s->done = code == YK_OK;
    if (k >= 8 || !kept[k]) continue;
    free(s->data);
    s->data = kept[k];
    s->desc = kept_desc[k];
  }
  call_free(&c);
  return code == YK_OK ? code : yk__fail_prefix(code, "%s '%s' (%s)", n->op->label, n->name, n->where);
}

yk_code ref_eval_run(ref_eval *e, size_t n, const yk_value *fetch) {
  yk_code code = YK_OK;
  uint8_t *need;
  YK_TRY(make_room(e));
  for (size_t i = 0; i < n; i++)
    if (!yk__value_node(e->g, fetch[i])) return YK_FAIL(EINVAL, "fetch %zu is no value of the graph", i);
  need = calloc(e->g->nnode, 1);
  if (!need) return YK_FAIL(ENOMEM, "no memory for %u nodes", e->g->nnode);
  mark(e, n, fetch, need);
  for (uint32_t i = 0; i < e->nslot; i++) e->at[i].done = e->at[i].fed;
  for (uint32_t id = 1; id < e->g->nnode && code == YK_OK; id++) {
    const yk_node *node = e->g->node[id];
    if (!need[id] || is_variable(node)) continue;
    code = run_node(e, node);
  }
  free(need);
  if (code == YK_OK) e->counter++;
  return code;
}

const double *ref_eval_data(const ref_eval *e, yk_value v) {
  const slot *s = slot_of(e, v);
  return s && s->done ? s->data : NULL;
}

const yk_desc *ref_eval_desc(const ref_eval *e, yk_value v) {
  const slot *s = slot_of(e, v);
  return s && s->done ? &s->desc : NULL;
}

const double *ref_eval_variable(const ref_eval *e, const yk_variable *v) {
  const slot *s = slot_of(e, v->ref);
  return s && s->fed ? s->data : NULL;
}
