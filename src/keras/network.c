/*
 * network.c - what lies between symbols: the calls in an order in which they can be built, the layers in Keras's.
 *
 * A layer's depth is how many calls lie between it and an output at most; Keras lists the deepest ones first, and those of one depth as a walk
 * from the outputs meets them.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/engine.h"

/* ---- finding the calls -------------------------------------------------------------------------------------------------- */

typedef struct seen { yk_call_ref ref; uint32_t depth; bool done; } seen;
typedef struct walk {
  yk_network *n;
  const char *where;
  seen *call; uint32_t ncall, cap;   /* in the order in which they were met */
} walk;

static bool is_input(const yk_network *n, yk_sym s) {
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i].layer == s.layer && n->in[i].node == s.node && n->in[i].index == s.index) return true;
  return false;
}

static seen *find(const walk *w, yk_sym s) {
  for (uint32_t i = 0; i < w->ncall; i++)
    if (w->call[i].ref.layer == s.layer && w->call[i].ref.node == s.node) return &w->call[i];
  return NULL;
}

static bool out_of_memory(const walk *w) {
  yk_graph_fail_at(w->where, w->n->self.k->sketch, YK_ENOMEM, "no memory for a network's calls");
  return false;
}

/* Meet a call and all that it needs; a network's calls were made one after the other, so there is no cycle. */
static bool meet(walk *w, yk_sym s) {
  const yk_call_record *r = &s.layer->call[s.node];
  if (find(w, s) != NULL) return true;
  seen x = { .ref = { s.layer, s.node } };
  if (s.layer->class == &yk__class_input && !is_input(w->n, s)) {
    yk_graph_fail_at(w->where, w->n->self.k->sketch, YK_EINVAL,
                     "network '%s': its outputs depend on '%s', which is none of its %u inputs", w->n->self.name, s.layer->name,
                     (unsigned)w->n->nin);
    return false;
  }
  if (!YK_PUSH(w->call, w->ncall, w->cap, x)) return out_of_memory(w);
  for (uint32_t i = 0; i < r->nin && !is_input(w->n, s); i++)
    if (!meet(w, r->in[i])) return false;
  find(w, s)->done = true;
  yk_network *n = w->n;
  return YK_PUSH(n->call, n->ncall, n->call_cap, x.ref) || out_of_memory(w);
}

/* Calls are listed after what they need, so from the last to the first each depth is final when it is handed on. */
static void find_depths(walk *w) {
  yk_network *n = w->n;
  for (uint32_t i = n->ncall; i-- > 0;) {
    yk_sym s = { n->call[i].layer, n->call[i].node, 0 };
    const yk_call_record *r = &s.layer->call[s.node];
    uint32_t depth = find(w, s)->depth;
    for (uint32_t k = 0; k < r->nin && !is_input(n, s); k++) {
      seen *from = find(w, r->in[k]);
      if (from->depth < depth + 1) from->depth = depth + 1;
    }
  }
}

static uint32_t depth_of(const walk *w, const yk_layer *l) {
  uint32_t depth = 0;
  for (uint32_t i = 0; i < w->ncall; i++)
    if (w->call[i].ref.layer == l && w->call[i].depth > depth) depth = w->call[i].depth;
  return depth;
}

static bool listed(const yk_network *n, const yk_layer *l) {
  for (uint32_t i = 0; i < n->nlayer; i++)
    if (n->layer[i] == l) return true;
  return false;
}

static bool list_layers(walk *w) {
  yk_network *n = w->n;
  uint32_t deepest = 0;
  for (uint32_t i = 0; i < w->ncall; i++)
    if (w->call[i].depth > deepest) deepest = w->call[i].depth;
  for (uint32_t depth = deepest + 1; depth-- > 0;)
    for (uint32_t i = 0; i < w->ncall; i++) {
      yk_layer *l = w->call[i].ref.layer;
      if (depth_of(w, l) == depth && !listed(n, l) && !YK_PUSH(n->layer, n->nlayer, n->layer_cap, l)) return out_of_memory(w);
    }
  for (uint32_t i = 0; i < n->nlayer; i++)
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(n->layer[i]->name, n->layer[k]->name) == 0) {
        yk_graph_fail_at(w->where, n->self.k->sketch, YK_EINVAL,
                         "network '%s': two of its layers are called '%s' (made at %s and %s)", n->self.name, n->layer[i]->name,
                         n->layer[k]->where, n->layer[i]->where);
        return false;
      }
  return true;
}

/* ---- making ----------------------------------------------------------------------------------------------------------------- */

static bool check_ports(const yk_network *n, const char *where) {
  yk_graph *g = n->self.k->sketch;
  if (n->nin == 0 || n->nout == 0 || n->nin > YK__MAX_PORTS || n->nout > YK__MAX_PORTS)
    yk_graph_fail_at(where, g, YK_EINVAL, "a network of %u inputs and %u outputs; expected 1 to %d of each", (unsigned)n->nin,
                     (unsigned)n->nout, YK__MAX_PORTS);
  for (uint32_t i = 0; i < n->nin && yk_graph_status(g) == YK_OK; i++)
    if (yk_sym_desc(n->in[i]) == NULL || n->in[i].layer->k != n->self.k || n->in[i].layer->class != &yk__class_input)
      yk_graph_fail_at(where, g, YK_EINVAL, "input %u of the network is no symbol of yk_input()", (unsigned)i);
  for (uint32_t i = 0; i < n->nout && yk_graph_status(g) == YK_OK; i++)
    if (yk_sym_desc(n->out[i]) == NULL || n->out[i].layer->k != n->self.k)
      yk_graph_fail_at(where, g, YK_EINVAL, "output %u of the network is no symbol of its yk_keras", (unsigned)i);
  return yk_graph_status(g) == YK_OK;
}

static bool gather(yk_network *n, const char *where) {
  walk w = { .n = n, .where = where };
  bool ok = true;
  for (uint32_t i = 0; i < n->nout && ok; i++) ok = meet(&w, n->out[i]);
  for (uint32_t i = 0; i < n->nin && ok; i++) ok = meet(&w, n->in[i]); /* one that no output needs is an input all the same */
  if (ok) find_depths(&w);
  ok = ok && list_layers(&w);
  yk__free(w.call);
  return ok;
}

yk_network *yk_network_new_at(const char *where, yk_keras *k, const char *name, size_t nin, const yk_sym *in, size_t nout,
                              const yk_sym *out) {
  static const char *const usual[] = { YK__HOME };
  if (yk_keras_status(k) != YK_OK) return NULL;
  yk_plain_config common = { .name = name != NULL ? name : yk__auto_name(k, "Model") };
  yk_network *n = yk__bump(&k->mem, sizeof *n);
  if (n == NULL) return yk_graph_fail_at(where, k->sketch, YK_ENOMEM, "no memory for a network"), NULL;
  if (!yk__layer_init(&n->self, where, k, &yk__class_network, &common)) return NULL;
  n->self.network = n;
  n->self.built = true;
  n->major = 2;
  n->device = usual;
  n->ndevice = 1;
  n->nin = (uint32_t)nin;
  n->nout = (uint32_t)nout;
  n->in = nin ? yk__bump_copy(&k->mem, in, nin * sizeof *in) : NULL;
  n->out = nout ? yk__bump_copy(&k->mem, out, nout * sizeof *out) : NULL;
  n->next = k->networks;
  k->networks = n;
  if ((nin > 0 && n->in == NULL) || (nout > 0 && n->out == NULL))
    return yk_graph_fail_at(where, k->sketch, YK_ENOMEM, "no memory"), NULL;
  return check_ports(n, where) && gather(n, where) ? n : NULL;
}

yk_layer *yk_network_layer(yk_network *n) { return n != NULL ? &n->self : NULL; }
yk_layer *yk_network_layer_at(const yk_network *n, size_t i) { return n != NULL && i < n->nlayer ? n->layer[i] : NULL; }

static const yk_sym *listed_symbols(const yk_sym *list, uint32_t n, size_t *count) {
  if (count != NULL) *count = n;
  return n > 0 ? list : NULL;
}

const yk_sym *yk_network_inputs(const yk_network *n, size_t *count) {
  return listed_symbols(n != NULL ? n->in : NULL, n != NULL ? n->nin : 0, count);
}

const yk_sym *yk_network_outputs(const yk_network *n, size_t *count) {
  return listed_symbols(n != NULL ? n->out : NULL, n != NULL ? n->nout : 0, count);
}

bool yk__network_calls(const yk_network *n, const yk_layer *l, uint32_t node) {
  for (uint32_t i = 0; i < n->ncall; i++)
    if (n->call[i].layer == l && n->call[i].node == node) return true;
  return false;
}

uint32_t yk__network_first_call(const yk_network *n, const yk_layer *l) {
  uint32_t node = 0;
  while (node < l->ncall && !yk__network_calls(n, l, node)) node++;
  return node;
}

/* ---- building in a graph -------------------------------------------------------------------------------------------------------- */

/* Outputs of the calls built so far, one after the other; at[i]: where those of call i begin. */
typedef struct built { const yk_network *n; yk_value *value, *mask; uint32_t *at; } built;

static void take(const built *b, yk_sym s, yk_value *value, yk_value *mask) {
  *value = *mask = (yk_value){ 0 };
  for (uint32_t i = 0; i < b->n->ncall; i++) {
    if (b->n->call[i].layer != s.layer || b->n->call[i].node != s.node) continue;
    *value = b->value[b->at[i] + s.index];
    *mask = b->mask[b->at[i] + s.index];
  }
}

static void build_call(built *b, uint32_t i, yk_graph *g, bool training) {
  yk_layer *l = b->n->call[i].layer;
  const yk_call_record *r = &l->call[b->n->call[i].node];
  yk_value in[YK__MAX_PORTS], mask[YK__MAX_PORTS];
  for (uint32_t k = 0; k < r->nin; k++) take(b, r->in[k], &in[k], &mask[k]);
  yk_layer_call c = { .layer = l, .g = g, .where = r->where, .training = training, .nin = r->nin, .in = in, .in_mask = mask };
  yk__layer_call(&c);
  memcpy(b->value + b->at[i], c.out, r->nout * sizeof *c.out);
  memcpy(b->mask + b->at[i], c.out_mask, r->nout * sizeof *c.out);
}

static void build_all(built *b, yk_graph *g, bool training, const yk_value *in, const yk_value *in_mask, yk_value *out,
                      yk_value *out_mask) {
  const yk_network *n = b->n;
  uint32_t total = 0;
  for (uint32_t i = 0; i < n->ncall; i++) {
    b->at[i] = total;
    total += n->call[i].layer->call[n->call[i].node].nout;
  }
  for (uint32_t i = 0; i < n->ncall && yk_graph_status(g) == YK_OK; i++) {
    bool given = false;
    for (uint32_t k = 0; k < n->nin; k++) {
      if (n->in[k].layer != n->call[i].layer || n->in[k].node != n->call[i].node) continue;
      b->value[b->at[i]] = in[k];
      if (in_mask != NULL) b->mask[b->at[i]] = in_mask[k];
      given = true;
    }
    if (!given) build_call(b, i, g, training);
  }
  for (uint32_t i = 0; i < n->nout; i++) {
    yk_value mask;
    take(b, n->out[i], &out[i], &mask);
    if (out_mask != NULL) out_mask[i] = mask;
  }
}

void yk__network_build(yk_network *n, yk_graph *g, const char *where, bool training, const yk_value *in, const yk_value *in_mask,
                       yk_value *out, yk_value *out_mask) {
  size_t most = (size_t)n->ncall * YK__MAX_PORTS + 1;
  built b = { .n = n, .value = yk__calloc(most, sizeof(yk_value)), .mask = yk__calloc(most, sizeof(yk_value)),
              .at = yk__calloc(n->ncall + 1u, sizeof(uint32_t)) };
  memset(out, 0, n->nout * sizeof *out);
  if (b.value != NULL && b.mask != NULL && b.at != NULL) build_all(&b, g, training, in, in_mask, out, out_mask);
  else yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to build network '%s'", n->self.name);
  yk__free(b.value);
  yk__free(b.mask);
  yk__free(b.at);
}

static void call_network(yk_layer_call *c) {
  yk_network *n = c->layer->network;
  if (c->nin != n->nin) {
    yk__layer_fail(c->layer, c->where, "called on %u inputs, it has %u", (unsigned)c->nin, (unsigned)n->nin);
    return;
  }
  c->nout = n->nout;
  yk__network_build(n, c->g, c->where, c->training, c->in, c->in_mask, c->out, c->out_mask);
}

static const yk_config_field NO_FIELDS[] = { { 0 } };
const yk_layer_class yk__class_network = { .name = "Model",
                                           .config_bytes = sizeof(yk_plain_config),
                                           .fields = NO_FIELDS,
                                           .min_in = 1,
                                           .max_in = YK__MAX_PORTS,
                                           .call = call_network };
