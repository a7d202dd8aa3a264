/*
 * node.c - making one node: the only place where a graph grows.
 *
 * Every builder ends in yk_add_node_at(). It checks inputs and attributes, infers
 * shapes, asks names.c and scopes.c for name, device, colocation and control
 * inputs, and only then appends; a failure leaves the graph's sticky error behind.
 */
#include <stdarg.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "op/registry.h"
#include "tensor/desc.h"

/* What is being made, on the way from arguments to a node. */
typedef struct making {
  const char *where;
  yk_graph *g;
  const yk_op *op;
  const void *attrs;
  const yk_value *in;
  uint16_t nin, nout;
  yk_desc *desc;                /* [nin + nout], heap */
  uint32_t *ctrl, nctrl, ctrl_cap;
} making;

/* A value of a variable op is its storage: only reads and ports that write may take it. */
static yk_code check_ref(const making *m, uint16_t i, const yk_port *port) {
  const yk_node *n = yk__value_node(m->g, m->in[i]);
  bool is_ref = n && n->op == &yk__op_variable, writes = port->flags & YK_PORT_WRITE;
  if (is_ref && !writes && !(port->flags & YK_PORT_SHAPE) && m->op != &yk__op_read_variable)
    return YK_FAIL(EINVAL, "%s: input %u (%s) is the storage of variable '%s'; use yk_read() for its value", m->op->label, i,
                   port->name, n->name);
  if (!is_ref && writes)
    return YK_FAIL(EINVAL, "%s: input %u (%s) must be a variable, '%s' is a value", m->op->label, i, port->name,
                   n ? n->name : "?");
  return YK_OK;
}

static yk_code check_inputs(making *m) {
  for (uint16_t i = 0; i < m->nin; i++) {
    const yk_port *port = yk__op_in_port(m->op, m->attrs, m->nin, i);
    const char *name = port ? port->name : "?";
    const yk_desc *d = yk_value_desc(m->g, m->in[i]);
    if (!d && m->in[i].id)
      return YK_FAIL(EINVAL, "%s: input %u (%s) is not a value of this graph", m->op->label, i, name);
    if (!d && !(port && (port->flags & YK_PORT_OPTIONAL)))
      return YK_FAIL(EINVAL, "%s: input %u (%s) is empty ({0})", m->op->label, i, name);
    if (d) m->desc[i] = *d;
    if (d && port) YK_TRY(check_ref(m, i, port));
  }
  return YK_OK;
}

static yk_code infer(making *m) {
  m->desc = yk__calloc((size_t)m->nin + m->nout, sizeof *m->desc);
  if (!m->desc) return YK_ENOMEM;
  YK_TRY(yk__attrs_check(m->op, m->attrs));
  YK_TRY(check_inputs(m));
  return yk__op_infer(m->op, m->attrs, m->desc, m->nin, m->desc + m->nin, m->nout);
}

/* The node's own copy of its attributes: strings copied, a constant's tensor gets one more owner. */
static yk_code copy_attrs(const making *m, const void **out) {
  const yk_op *op = m->op;
  if (op->attr_bytes == 0) return YK_OK;
  char *copy = yk__bump_copy(&m->g->arena, yk__attrs_or_zero(op, m->attrs), op->attr_bytes);
  if (!copy) return YK_ENOMEM;
  for (const yk_attr *a = op->attrs; a && a->name; a++) {
    const char *s;
    if (a->kind != YK_STRING) continue;
    memcpy(&s, copy + a->offset, sizeof s);
    if (!s) continue;
    s = yk__bump_str(&m->g->arena, s);
    if (!s) return YK_ENOMEM;
    memcpy(copy + a->offset, &s, sizeof s);
  }
  *out = copy;
  return YK_OK;
}

/* ---- colocation ---- */

static void unite(yk_graph *g, yk_node *n, uint32_t with) {
  uint32_t a = n->colocate, b = g->node[with]->colocate;
  if (a == b) return;
  uint32_t keep = a < b ? a : b, drop = a < b ? b : a;
  if (drop == n->id) {           /* the usual case: a new node joins a group */
    n->colocate = keep;
    return;
  }
  for (uint32_t i = drop; i < g->nnode; i++)
    if (g->node[i]->colocate == drop) g->node[i]->colocate = keep;
  if (n->colocate == drop) n->colocate = keep;
}

/* Join the groups of the colocation scopes and, for writers, of the variables written; those also say where it is. */
static yk_code colocate(const making *m, yk_node *n) {
  yk_graph *g = m->g;
  const yk_node *home = NULL;
  n->colocate = n->id;
  for (uint32_t i = 0; yk__scope_colocate(g, i); i++) unite(g, n, yk__scope_colocate(g, i));
  for (uint16_t i = 0; i < m->nin; i++) {
    const yk_port *port = yk__op_in_port(m->op, m->attrs, m->nin, i);
    const yk_node *var = yk__value_node(g, m->in[i]);
    if (!port || !(port->flags & YK_PORT_WRITE) || !var) continue;
    if (home && strcmp(home->device_text, var->device_text))
      return YK_FAIL(EINVAL, "%s '%s' would write variables of two homes: '%s' on '%s' and '%s' on '%s'", n->op->label, n->name,
                     home->name, home->device_text, var->name, var->device_text);
    home = var;
    unite(g, n, var->id);
    if (!yk__device_empty(&var->device)) n->device = var->device;
  }
  return YK_OK;
}

/* ---- appending ---- */

/* Room for n more values. Old arrays stay in the arena: descriptions that were handed out keep their address. */
static yk_code reserve_values(yk_graph *g, uint32_t n) {
  if (g->nvalue + n <= g->value_cap) return YK_OK;
  uint32_t cap = g->value_cap * 2 > g->nvalue + n ? g->value_cap * 2 : g->nvalue + n;
  yk_graph_value *grown = yk__bump(&g->arena, cap * sizeof *grown);
  if (!grown) return YK_ENOMEM;
  memcpy(grown, g->value, g->nvalue * sizeof *grown);
  g->value = grown;
  g->value_cap = cap;
  return YK_OK;
}

static yk_code fill(making *m, yk_node *n) {
  yk_graph *g = m->g;
  uint32_t *in = yk__bump(&g->arena, m->nin * sizeof *in);
  char text[YK__DEVICE_TEXT];
  if (!in) return YK_ENOMEM;
  for (uint16_t i = 0; i < m->nin; i++) in[i] = m->in[i].id;
  n->in = in;
  YK_TRY(yk__names_node(g, m->op->label, &n->name));
  YK_TRY(copy_attrs(m, &n->attrs));
  YK_TRY(yk__scope_device(g, m->op, n->name, m->desc + m->nin, &n->device));
  YK_TRY(yk__scope_control(g, &m->ctrl, &m->nctrl, &m->ctrl_cap));
  n->id = g->nnode;
  n->op = m->op;
  n->where = m->where;
  n->first = g->nvalue;
  n->nin = m->nin;
  n->nout = m->nout;
  n->nctrl = m->nctrl;
  n->ctrl = yk__bump_copy(&g->arena, m->ctrl ? m->ctrl : &n->nctrl, m->nctrl * sizeof *n->ctrl);
  if (!n->ctrl) return YK_ENOMEM;
  YK_TRY(reserve_values(g, m->nout));
  YK_TRY(yk__names_bind(g, n->name, n->id));
  YK_TRY(colocate(m, n));
  n->device_text = yk__bump_str(&g->arena, yk__device_text(&n->device, text));
  return n->device_text ? YK_OK : YK_ENOMEM;
}

static yk_code append(making *m, yk_value *out) {
  yk_graph *g = m->g;
  yk_node *n = yk__bump(&g->arena, sizeof *n);
  if (!n) return YK_ENOMEM;
  YK_TRY(fill(m, n));
  if (!YK_PUSH(g->node, g->nnode, g->node_cap, n)) return YK_ENOMEM;
  for (uint16_t k = 0; k < m->nout; k++)
    g->value[g->nvalue++] = (yk_graph_value){ .node = n->id, .out = k, .desc = m->desc[m->nin + k] };
  if (m->op == &yk__op_constant) yk_tensor_ref((yk_tensor *)((const yk_constant_attrs *)n->attrs)->value);
  g->version++;
  *out = (yk_value){ n->first };
  return YK_OK;
}

/* The type that a scope of mixed precision gives to input i, which is of type t; t itself if it leaves it alone. */
static yk_dtype wanted(const making *m, uint16_t i, yk_dtype t) {
  yk_dtype low = m->g->scopes->low;
  if (m->op->traits & YK_WIDE) return t == low ? YK_F32 : t;
  if (t != YK_F32 || (m->op->traits & (YK_STATEFUL | YK_SOURCE | YK_MERGE))) return t;
  if (m->op->traits & YK_NARROW) return low;
  const yk_port *port = yk__op_in_port(m->op, m->attrs, m->nin, i);
  for (uint16_t k = 0; port && k < m->nin; k++) {          /* with one that must have the same type and is of the lower one */
    const yk_port *other = yk__op_in_port(m->op, m->attrs, m->nin, k);
    const yk_desc *d = yk_value_desc(m->g, m->in[k]);
    if (!other || !d || d->dtype != low) continue;
    if (port->same_as == 1 + (other - m->op->in) || other->same_as == 1 + (port - m->op->in) || (other == port && k != i) ||
        (port->same_as && port->same_as == other->same_as))
      return low;
  }
  return t;
}

static yk_value cast_to(const making *m, yk_value x, yk_dtype t) {
  const char *pending = yk__names_take(m->g);              /* the name is for the op that asked */
  yk_value v = yk_add_node_at(m->where, m->g, &yk__op_cast, &(yk_cast_attrs){ .dtype = (int32_t)t }, &x, 1, 0);
  yk__names_give(m->g, pending);
  return v;
}

/* Inputs as scopes want them: casts of mixed precision, the guard as one more. In a heap array for the caller to free, NULL if
 * nothing differs. */
static yk_code add_scopes(making *m, yk_value **with) {
  yk_value guard = yk__scope_guard(m->g, m->op, m->attrs, m->nin);
  bool mixed = m->g->scopes->low != YK_NONE && m->op != &yk__op_cast;
  *with = NULL;
  if (!guard.id && !mixed) return YK_OK;
  yk_value *all = yk__alloc((m->nin + 1u) * sizeof *all);
  if (!all) return YK_ENOMEM;
  *with = all;
  for (uint16_t i = 0; i < m->nin; i++) {
    const yk_desc *d = yk_value_desc(m->g, m->in[i]);
    yk_dtype t = d ? (yk_dtype)d->dtype : YK_NONE, want = mixed && d ? wanted(m, i, t) : t;
    all[i] = want != t ? cast_to(m, m->in[i], want) : m->in[i];
    if (m->g->status != YK_OK) return m->g->status;
  }
  m->in = all;
  if (guard.id) all[m->nin++] = guard;
  return YK_OK;
}

yk_value yk_add_node_at(const char *where, yk_graph *g, const yk_op *op, const void *attrs, const yk_value *in, uint16_t nin,
                        uint16_t nout) {
  yk_value out = { 0 };
  if (!yk__graph_ok(g)) return out;
  if (!op) return yk_graph_fail_at(where, g, YK_EINVAL, "no operation given");
  if (g->frozen)
    return yk_graph_fail_at(where, g, YK_EINVAL, "%s cannot be added: the graph is frozen since its first run, so that a loop "
                            "cannot grow it; build before running, or call yk_graph_unfreeze()", op->label);
  making m = { .where = where, .g = g, .op = op, .attrs = yk__attrs_or_zero(op, attrs), .in = in, .nin = nin,
               .nout = nout ? nout : yk__op_nout(op, attrs) };
  yk_value *with;
  yk_code code = add_scopes(&m, &with);
  if (code == YK_OK) code = infer(&m);
  if (code == YK_OK) code = append(&m, &out);
  yk__free(with);
  yk__free(m.desc);
  yk__free(m.ctrl);
  return code == YK_OK ? out : yk__graph_fail(where, g, code);
}

yk_value yk__build(const char *where, yk_graph *g, const yk_op *op, const void *attrs, int nin, ...) {
  enum { MOST = 16 };
  yk_value in[MOST];
  if (nin < 0 || nin > MOST) return yk_graph_fail_at(where, g, YK_EINTERNAL, "%s: %d inputs given as arguments", op->label, nin);
  va_list ap;
  va_start(ap, nin);
  for (int i = 0; i < nin; i++) in[i] = va_arg(ap, yk_value);
  va_end(ap);
  return yk_add_node_at(where, g, op, attrs, in, (uint16_t)nin, 0);
}

yk_value yk__run_counter(yk_graph *g) {
  if (!yk__graph_ok(g) || g->run_counter.id) return yk__graph_ok(g) ? g->run_counter : (yk_value){ 0 };
  const char *where = YK_HERE;
  const char *pending = yk__names_take(g);             /* the name is for the op that asked */
  yk_name_scope_push_at(where, g, NULL);
  yk_colocate_push_at(where, g, (yk_value){ 0 });      /* forgets devices and colocation of where we are */
  yk_control_push_at(where, g, 0, NULL);
  yk_value v = yk_add_node_at(where, yk_named(g, "run_counter"), &yk__op_run_counter, NULL, NULL, 0, 0);
  yk_control_pop_at(where, g);
  yk_colocate_pop_at(where, g);
  yk_name_scope_pop_at(where, g);
  yk__names_give(g, pending);
  return g->run_counter = v;
}
