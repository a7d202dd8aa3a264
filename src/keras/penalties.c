/*
 * penalties.c - see penalties.h.
 *
 * Both are walks over the weights of a network, nested ones included; a weight that layers share counts once.
 */
#include "keras/penalties.h"
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/slots.h"
#include "keras/engine.h"
#include "keras/weights.h"
#include "op/registry.h"

typedef struct walk {
  const yk_network *n;
  yk_graph *g;
  const char *where;
} walk;
#define W(builder, ...) yk_##builder##_at(w->where, w->g, __VA_ARGS__)

static yk_value plus(const walk *w, yk_value a, yk_value b) { return a.id == 0 ? b : b.id == 0 ? a : W(add, a, b); }
static yk_value times(const walk *w, yk_value x, double by) { return W(mul, x, W(scalar, YK_F32, by)); }

/* ---- penalties -------------------------------------------------------------------------------------------------------------- */

static yk_value penalty_of(const walk *w, const yk_penalty *p, yk_value x) {
  yk_value l1 = { 0 }, l2 = { 0 };
  if (p->l1 != 0) l1 = times(w, W(reduce_sum, W(abs, x), NULL), p->l1);
  if (p->l2 != 0) l2 = times(w, W(l2_loss, x), 2 * p->l2);
  return plus(w, l1, l2);
}

static yk_value of_weights(const walk *w, const yk_weights *all) {
  yk_value sum = { 0 };
  for (uint32_t i = 0; i < all->n; i++) {
    const yk_weight *x = all->at[i].weight;
    yk_variable *v = x->penalty.l1 != 0 || x->penalty.l2 != 0 ? yk__weight_variable(all->at[i].layer, x) : NULL;
    if (v != NULL) sum = plus(w, sum, penalty_of(w, &x->penalty, yk_read(v)));
  }
  return sum;
}

static yk_value of_outputs(const walk *w, yk_value rows) {
  const char *scope = yk_name_scope(w->g);
  size_t n = yk_get_collection(w->g, YK__ACTIVITY_LOSSES, scope, NULL, 0);
  yk_value *v = n > 0 ? yk__calloc(n, sizeof *v) : NULL, sum = { 0 };
  if (n > 0 && v == NULL) return yk_graph_fail_at(w->where, w->g, YK_ENOMEM, "no memory for %zu penalties", n);
  if (n > 0) yk_get_collection(w->g, YK__ACTIVITY_LOSSES, scope, v, n);
  for (size_t i = 0; i < n; i++) sum = plus(w, sum, v[i]);
  yk__free(v);
  return sum.id != 0 ? W(div, sum, rows) : sum;
}

/* The weights of the network; false after a sticky error. */
static bool list(const walk *w, yk_weights *all) {
  for (uint32_t i = 0; i < w->n->nlayer; i++)
    if (yk__weights_of(w->n->layer[i], false, all) != YK_OK) {
      yk_graph_fail_at(w->where, w->g, YK_ENOMEM, "no memory for a list of weights");
      return false;
    }
  return true;
}

yk_value yk__penalties(const yk_network *n, yk_graph *g, const char *where, uint32_t part, yk_value rows) {
  walk w = { n, g, where };
  yk_weights all = { 0 };
  yk_value sum = of_outputs(&w, rows);
  if (part == 0 && list(&w, &all)) sum = plus(&w, sum, of_weights(&w, &all));
  yk__free(all.at);
  return sum;
}

/* ---- constraints -------------------------------------------------------------------------------------------------------------- */

static yk_value norms(const walk *w, const yk_constraint *c, yk_value x) {
  const yk_desc *d = yk_value_desc(w->g, x);
  yk_reduce_attrs a = { .naxes = c->axes.n, .keepdims = 1 };
  for (uint32_t i = 0; i < c->axes.n; i++) a.axis[i] = (int32_t)c->axes.at[i];
  if (c->axes.n == 0) {
    a.naxes = d != NULL && d->rank > 1 ? d->rank - 1u : 1;
    for (uint32_t i = 0; i < a.naxes; i++) a.axis[i] = (int32_t)i;
  }
  return W(sqrt, W(reduce_sum, W(square, x), &a));
}

static yk_value allowed(const walk *w, const yk_constraint *c, yk_value x) {
  yk_value zero = W(scalar, YK_F32, 0), norm, want;
  if (c->kind == YK_CONSTRAINT_NON_NEG) return W(maximum, x, zero);
  norm = norms(w, c, x);
  want = norm;
  if (c->kind == YK_CONSTRAINT_UNIT_NORM) want = W(scalar, YK_F32, 1);
  if (c->kind == YK_CONSTRAINT_MAX_NORM) want = W(clip, norm, 0, c->max);
  if (c->kind == YK_CONSTRAINT_MIN_MAX_NORM)
    want = W(add, times(w, W(clip, norm, c->min, c->max), c->rate), times(w, norm, 1 - c->rate));
  return W(mul, x, W(div, want, W(add, norm, W(scalar, YK_F32, 1e-7))));
}

/* A variable and its copies: each as its own value after the update allows, so that all stay the same. */
static void constrain(const walk *w, const yk_constraint *c, yk_variable *v, yk_value **op, uint32_t *n, uint32_t *cap) {
  for (uint32_t i = 0; i < w->g->nvariable && yk_graph_status(w->g) == YK_OK; i++) {
    yk_variable *own = w->g->variable[i];
    if (own != v && own->master != v) continue;
    yk_value made = { 0 };
    YK_COLOCATE(w->g, yk_read(own)) {
      yk_value now = yk__build(w->where, w->g, &yk__op_read_variable, NULL, 1, own->ref);
      made = yk_assign_at(w->where, w->g, own, allowed(w, c, now));
    }
    if (!YK_PUSH(*op, *n, *cap, made)) yk_graph_fail_at(w->where, w->g, YK_ENOMEM, "no memory for constraints");
  }
}

yk_value yk__constrain(const yk_network *n, yk_graph *g, const char *where, yk_value update) {
  walk w = { n, g, where };
  yk_weights all = { 0 };
  yk_value *op = NULL, group = { 0 };
  uint32_t nop = 0, cap = 0;
  if (update.id == 0 || !list(&w, &all)) return group;
  YK_CONTROL(g, 1, &update) {
    for (uint32_t i = 0; i < all.n; i++) {
      const yk_constraint *c = &all.at[i].weight->constraint;
      yk_variable *v = c->kind != YK_CONSTRAINT_NONE && !all.at[i].layer->frozen ? yk__weight_variable(all.at[i].layer, all.at[i].weight) : NULL;
      if (v != NULL) constrain(&w, c, v, &op, &nop, &cap);
    }
  }
  if (nop > 0) group = yk_group_at(where, g, nop, op);
  yk__free(op);
  yk__free(all.at);
  return group;
}
