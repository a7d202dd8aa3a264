/*
 * gradients.c - the reverse pass: from ys back to xs, each node's gradient once.
 *
 * Nodes are numbered in topological order, so going through them backwards meets
 * every consumer of a value before its producer: no counting of pending gradients
 * is needed. Only values that some x leads to are visited. What arrives at a value
 * several times is added by one add_n; undoing a broadcast happens here, once for all ops.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "op/registry.h"
#include "tensor/desc.h"

enum { REACHED = 1, STOPPED = 2 };      /* some x leads here; nothing flows on from here */

typedef struct term { struct term *next; yk_value v; } term;
typedef struct terms { term *first, *last; uint32_t n; } terms;

typedef struct walk {
  const char *where;
  yk_graph *g;
  uint32_t nvalue, nnode;       /* of the graph before the first new node */
  uint8_t *flag;                /* [nvalue] */
  terms *in;                    /* [nvalue] gradients that arrived */
  yk_value *total;              /* [nvalue] their sum */
  uint32_t *towards;            /* [nnode] the consumer that led here first, 0 = a y */
  yk_bump mem;
} walk;

/* ---- which values are between xs and ys ---- */

static bool is_float(const yk_graph *g, uint32_t value) {
  return value && (YK_T(g->value[value].desc.dtype) & YK_FLOATS);
}

/* Can a gradient flow through input i of node n? */
static bool flows(const yk_graph *g, const yk_node *n, uint16_t i) {
  const yk_port *port = yk__op_in_port(n->op, n->attrs, n->nin, i);
  return port && !(port->flags & (YK_PORT_NODIFF | YK_PORT_SHAPE | YK_PORT_WRITE)) && is_float(g, n->in[i]);
}

static bool any_flows(const walk *w, const yk_node *n) {
  for (uint16_t i = 0; i < n->nin; i++)
    if ((w->flag[n->in[i]] & REACHED) && flows(w->g, n, i)) return true;
  return false;
}

static void reach(walk *w, size_t nx, const yk_value *xs, const yk_gradient_options *o) {
  for (size_t i = 0; o && i < o->nstop; i++) w->flag[o->stop[i].id] |= STOPPED;
  for (size_t i = 0; i < nx; i++)
    if (is_float(w->g, xs[i].id)) w->flag[xs[i].id] |= REACHED;
  /* A stopped value is a constant to whatever uses it. If it is an x as well, its own gradient is still wanted, and so
   * its consumers must be visited: STOPPED only ends the way down from the value, not the way to it. */
  for (uint32_t id = 1; id < w->nnode; id++) {
    const yk_node *n = w->g->node[id];
    if ((n->op->traits & YK_NO_GRAD) || !any_flows(w, n)) continue;
    for (uint16_t k = 0; k < n->nout; k++)
      if (is_float(w->g, n->first + k) && !(w->flag[n->first + k] & STOPPED)) w->flag[n->first + k] |= REACHED;
  }
}

/* ---- gradients that arrive ---- */

static void deliver(walk *w, uint32_t value, yk_value grad) {
  term *t = yk__bump(&w->mem, sizeof *t);
  terms *in = &w->in[value];
  if (!t) {
    yk__graph_fail(w->where, w->g, YK_ENOMEM);
    return;
  }
  t->v = grad;
  if (in->last) in->last->next = t; else in->first = t;
  in->last = t;
  in->n++;
}

/* The device that all the terms ask for; NULL if they differ. */
static const char *common_device(const yk_graph *g, const terms *in) {
  const char *device = yk_value_device(g, in->first->v);
  for (const term *t = in->first; t; t = t->next)
    if (strcmp(yk_value_device(g, t->v), device) != 0) return NULL;
  return device;
}

/* A sum is made where its terms are, so that only the result travels; at the value's home if they come from several devices. */
static yk_value add_up(walk *w, const terms *in) {
  if (in->n <= 1) return in->n ? in->first->v : (yk_value){ 0 };
  if (in->n > UINT16_MAX) return yk_graph_fail_at(w->where, w->g, YK_EUNSUPPORTED, "%u gradients arrive at one value", in->n);
  yk_value *all = yk__bump(&w->mem, in->n * sizeof *all);
  uint16_t n = 0;
  if (!all) return yk__graph_fail(w->where, w->g, YK_ENOMEM);
  for (const term *t = in->first; t; t = t->next) all[n++] = t->v;
  const char *device = common_device(w->g, in);
  if (!device) return yk_add_node_at(w->where, w->g, &yk__op_add_n, NULL, all, n, 0);
  yk_device_push_at(w->where, w->g, NULL);
  yk_device_push_at(w->where, w->g, device);
  yk_value sum = yk_add_node_at(w->where, w->g, &yk__op_add_n, NULL, all, n, 0);
  yk_device_pop_at(w->where, w->g);
  yk_device_pop_at(w->where, w->g);
  return sum;
}

/* ---- undoing a broadcast ---- */

typedef enum fit { SAME, SUM, CLASH } fit;

/* How a gradient's shape fits the input's. Two unknown dims at one place count as the same; an unknown one beside a known one may
 * have been spread. */
static fit fit_of(const yk_desc *grad, const yk_desc *input, bool may_broadcast) {
  yk_desc merged;
  bool same = grad->rank == input->rank;
  for (int i = 0; same && i < grad->rank; i++) same = grad->dim[i] == input->dim[i];
  if (same) return SAME;
  if (!may_broadcast) return yk__shape_merge(grad, input, &merged) == YK_OK ? SAME : CLASH;
  if (grad->rank < input->rank) return CLASH;
  for (int i = 0, skip = grad->rank - input->rank; i < input->rank; i++) {
    int64_t a = grad->dim[skip + i], b = input->dim[i];
    if (a >= 0 && b >= 0 && a != b && b != 1) return CLASH;
  }
  return SUM;
}

/* Only an op with two differentiable inputs can have spread one over the other. */
static bool may_broadcast(const yk_graph *g, const yk_node *n) {
  int count = 0;
  for (uint16_t i = 0; i < n->nin; i++) count += flows(g, n, i);
  return count > 1;
}

static yk_value shaped(walk *w, const yk_node *n, uint16_t i, yk_value grad) {
  yk_graph *g = w->g;
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_value input = { n->in[i] };
  const yk_desc *have = yk_value_desc(g, grad), *want = yk_value_desc(g, input);
  if (!have)
    return yk_graph_fail_at(w->where, g, YK_EINTERNAL, "gradient of %s '%s' for input %u is no value", n->op->label, n->name, i);
  fit f = have->dtype == want->dtype ? fit_of(have, want, may_broadcast(g, n)) : CLASH;
  if (f == SAME) return grad;
  if (f == SUM) return yk__build(n->where, g, &yk__op_sum_to, NULL, 2, grad, input);
  return yk_graph_fail_at(w->where, g, YK_EINTERNAL, "gradient of %s '%s' for input %u is %s, but the input is %s", n->op->label,
                          n->name, i, yk__desc_text(have, a, sizeof a), yk__desc_text(want, b, sizeof b));
}

/* ---- one node ---- */

/* "loss -> mean -> floor": from the y down to node n; the middle of a long way is left out. */
static char *path(const walk *w, const yk_node *n, char *buf, size_t bytes) {
  enum { ENDS = 6 };
  uint32_t length = 0;
  size_t at = 0;
  for (uint32_t id = n->id; id; id = w->towards[id]) length++;
  buf[0] = 0;
  for (uint32_t k = length; k > 0; k--) {
    if (length > 2 * ENDS + 1 && k == length - ENDS) k = ENDS;
    uint32_t id = n->id;
    for (uint32_t j = 1; j < k; j++) id = w->towards[id];
    const char *arrow = k == length ? "" : k == ENDS && length > 2 * ENDS + 1 ? " -> ... -> " : " -> ";
    int wrote = snprintf(buf + at, bytes - at, "%s%s", arrow, w->g->node[id]->name);
    if (wrote < 0 || (size_t)wrote >= bytes - at) break;
    at += (size_t)wrote;
  }
  return buf;
}

static void no_gradient(walk *w, const yk_node *n, const char *reason) {
  char way[1024];
  yk_graph_fail_at(w->where, w->g, YK_EUNSUPPORTED, "%s '%s' (made at %s) has no gradient%s%s; the way to it: %s", n->op->label,
                   n->name, n->where, reason[0] ? ": " : "", reason, path(w, n, way, sizeof way));
}

static void differentiate(walk *w, const yk_node *n, const yk_value *dout) {
  yk_graph *g = w->g;
  yk_value *in = yk__bump(&w->mem, (n->nin + 1u) * sizeof *in), *out = yk__bump(&w->mem, (n->nout + 1u) * sizeof *out);
  yk_value *din = yk__bump(&w->mem, (n->nin + 1u) * sizeof *din);
  if (!in || !out || !din) {
    yk__graph_fail(w->where, g, YK_ENOMEM);
    return;
  }
  for (uint16_t i = 0; i < n->nin; i++) in[i].id = n->in[i];
  for (uint16_t k = 0; k < n->nout; k++) out[k].id = n->first + k;
  yk_grad c = { .g = g, .where = n->where, .in = in, .out = out, .dout = dout, .din = din, .nin = n->nin, .nout = n->nout,
                .attrs = n->attrs };
  yk_code code = n->op->grad ? n->op->grad(&c) : YK_EUNSUPPORTED;
  if (!yk__graph_ok(g)) return;
  if (code == YK_EUNSUPPORTED) {
    char reason[512];
    snprintf(reason, sizeof reason, "%s", n->op->grad ? yk_error_message() : "");
    no_gradient(w, n, reason);
  } else if (code != YK_OK) {
    yk__graph_fail(w->where, g, yk__fail_prefix(code, "gradient of %s '%s' (made at %s)", n->op->label, n->name, n->where));
  }
  for (uint16_t i = 0; i < n->nin && yk__graph_ok(g); i++) {
    if (!din[i].id || !flows(g, n, i) || !(w->flag[n->in[i]] & REACHED)) continue;
    yk_value grad = shaped(w, n, i, din[i]);
    if (!grad.id) return;
    deliver(w, n->in[i], grad);
    uint32_t producer = g->value[n->in[i]].node;
    if (!w->towards[producer] && w->in[n->in[i]].n == 1) w->towards[producer] = n->id;
  }
}

/* Where gradients of node n are computed: on its device, whatever scopes are open. */
static void open_place(walk *w, const yk_node *n) {
  yk_colocate_push_at(w->where, w->g, (yk_value){ 0 });
  yk_device_push_at(w->where, w->g, n->device_text);
}

static void close_place(walk *w) {
  yk_device_pop_at(w->where, w->g);
  yk_colocate_pop_at(w->where, w->g);
}

static void visit(walk *w, const yk_node *n) {
  yk_graph *g = w->g;
  bool arrived = false, go_on = false;
  for (uint16_t k = 0; k < n->nout; k++) arrived |= w->in[n->first + k].n > 0;
  if (!arrived) return;
  yk_value *dout = yk__bump(&w->mem, n->nout * sizeof *dout);
  char scope[512];
  if (!dout) {
    yk__graph_fail(w->where, g, YK_ENOMEM);
    return;
  }
  open_place(w, n);
  for (uint16_t k = 0; k < n->nout; k++) {
    uint32_t v = n->first + k;
    w->total[v] = add_up(w, &w->in[v]);
    if (!(w->flag[v] & STOPPED)) dout[k] = w->total[v];
    go_on |= dout[k].id != 0;
  }
  if (go_on && !(n->op->traits & YK_NO_GRAD) && any_flows(w, n)) {
    snprintf(scope, sizeof scope, "%s_grad", n->name);
    yk_name_scope_push_at(w->where, g, scope);
    differentiate(w, n, dout);
    yk_name_scope_pop_at(w->where, g);
  }
  close_place(w);
}

/* ---- the whole ---- */

static yk_code check_value(const yk_graph *g, yk_value v, const char *what, size_t i) {
  if (yk__value_node(g, v)) return YK_OK;
  return YK_FAIL(EINVAL, "yk_gradients: %s[%zu] is %s", what, i, v.id ? "not a value of this graph" : "empty ({0})");
}

static yk_code check_seed(const yk_graph *g, yk_value y, yk_value dy, size_t i) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_desc merged;
  YK_TRY(check_value(g, dy, "dys", i));
  const yk_desc *want = yk_value_desc(g, y), *have = yk_value_desc(g, dy);
  if (want->dtype == have->dtype && yk__shape_merge(want, have, &merged) == YK_OK) return YK_OK;
  return YK_FAIL(EINVAL, "yk_gradients: dys[%zu] is %s, but ys[%zu] is %s", i, yk__desc_text(have, a, sizeof a), i,
                 yk__desc_text(want, b, sizeof b));
}

static yk_code check(const yk_graph *g, size_t ny, const yk_value *ys, const yk_value *dys, size_t nx, const yk_value *xs,
                     const yk_gradient_options *o) {
  for (size_t i = 0; i < ny; i++) YK_TRY(check_value(g, ys[i], "ys", i));
  for (size_t i = 0; i < nx; i++) YK_TRY(check_value(g, xs[i], "xs", i));
  for (size_t i = 0; o && i < o->nstop; i++) YK_TRY(check_value(g, o->stop[i], "stop", i));
  for (size_t i = 0; dys && i < ny; i++)
    if (dys[i].id) YK_TRY(check_seed(g, ys[i], dys[i], i));
  return YK_OK;
}

static yk_code prepare(walk *w) {
  yk_graph *g = w->g;
  w->nvalue = g->nvalue;
  w->nnode = g->nnode;
  w->flag = yk__bump(&w->mem, w->nvalue);
  w->in = yk__bump(&w->mem, w->nvalue * sizeof *w->in);
  w->total = yk__bump(&w->mem, w->nvalue * sizeof *w->total);
  w->towards = yk__bump(&w->mem, w->nnode * sizeof *w->towards);
  return w->flag && w->in && w->total && w->towards ? YK_OK : YK_ENOMEM;
}

/* Ones, or what was given, arrive at each y that some x leads to. */
static void start(walk *w, size_t ny, const yk_value *ys, const yk_value *dys) {
  for (size_t i = 0; i < ny && yk__graph_ok(w->g); i++) {
    char name[32];
    yk_value dy = dys ? dys[i] : (yk_value){ 0 };
    if (!(w->flag[ys[i].id] & REACHED)) continue;
    if (!dy.id) {
      snprintf(name, sizeof name, "grad_ys_%zu", i);
      open_place(w, yk__value_node(w->g, ys[i]));
      dy = yk__build(w->where, yk_named(w->g, name), &yk__op_ones_like, NULL, 1, ys[i]);
      close_place(w);
    }
    if (dy.id) deliver(w, ys[i].id, dy);
  }
}

static void finish(walk *w, size_t nx, const yk_value *xs, bool zeros, yk_value *dx) {
  for (size_t i = 0; i < nx && yk__graph_ok(w->g); i++) {
    dx[i] = w->total[xs[i].id];
    if (dx[i].id || !zeros || !is_float(w->g, xs[i].id)) continue;
    open_place(w, yk__value_node(w->g, xs[i]));
    dx[i] = w->total[xs[i].id] = yk__build(w->where, w->g, &yk__op_zeros_like, NULL, 1, xs[i]);
    close_place(w);
  }
  for (size_t i = 0; i < nx && !yk__graph_ok(w->g); i++) dx[i].id = 0;
}

void yk_gradients_at(const char *where, yk_graph *g, size_t ny, const yk_value *ys, const yk_value *dys, size_t nx,
                     const yk_value *xs, const yk_gradient_options *options, yk_value *dx) {
  walk w = { .where = where, .g = g };
  for (size_t i = 0; i < nx; i++) dx[i].id = 0;
  if (!yk__graph_ok(g)) return;
  (void)yk__names_take(g);
  yk_code code = check(g, ny, ys, dys, nx, xs, options);
  if (code == YK_OK) code = prepare(&w);
  if (code != YK_OK) {
    yk__graph_fail(where, g, code);
  } else {
    yk_name_scope_push_at(where, g, options && options->name && options->name[0] ? options->name : "gradients");
    yk_precision_push_at(where, g, YK_NONE);           /* gradients have the types of what they are gradients of */
    reach(&w, nx, xs, options);
    start(&w, ny, ys, dys);
    for (uint32_t id = w.nnode - 1; id > 0 && yk__graph_ok(g); id--) visit(&w, g->node[id]);
    finish(&w, nx, xs, options && options->zeros_if_unconnected, dx);
    yk_precision_pop_at(where, g);
    yk_name_scope_pop_at(where, g);
  }
  yk__bump_free(&w.mem);
}
