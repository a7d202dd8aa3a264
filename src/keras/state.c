/*
 * state.c - see state.h.
 *
 * Slots are found by name: "<weight>/<scope>/Adam" (train.h).
 */
#include "keras/state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "keras/engine.h"
#include "tensor/desc.h"
#include "train/train.h"

int yk__state_slots(const yk_optimizer *o) {
  switch (o->kind) {
    case YK_OPT_SGD: return 0;
    case YK_OPT_MOMENTUM:
    case YK_OPT_ADAGRAD: return 1;
    case YK_OPT_RMSPROP: return 1 + (o->momentum > 0) + o->centered;
    case YK_OPT_ADAM:
    case YK_OPT_ADAMW:
    case YK_OPT_ADADELTA: return 2;
    default: return 0;
  }
}

/* Keras keeps a centered RMSprop as rms, momentum (if there is any), mg; here they are rms, mg, momentum. */
static int own_slot(const yk_optimizer *o, int slot) {
  if (o->kind != YK_OPT_RMSPROP || !o->centered || o->momentum == 0) return slot;
  return slot == 1 ? 2 : slot == 2 ? 1 : 0;
}

static yk_variable *find(const yk_keras *k, const char *name) {
  uint32_t at;
  return k->graph != NULL && yk__map_get(&k->graph->store->by_name, name, &at) ? k->graph->variable[at] : NULL;
}

static yk_variable *slot_variable(const yk_network *n, const yk_layer *l, const yk_weight *w, int slot) {
  const yk_compiled *c = n->compiled;
  const char *of = yk__optimizer_slot_name(&c->optimizer, own_slot(&c->optimizer, slot));
  char name[800];
  if (of == NULL) return NULL;
  snprintf(name, sizeof name, "%s/%s/%s/%s", l->scope, w->name, c->scope, of);
  return find(n->self.k, name);
}

yk_code yk__state_iterations(const yk_network *n, int64_t *out) {
  const yk_compiled *c = n->compiled;
  yk_tensor *t = NULL;
  *out = c->kept_iterations;
  if (c->iterations == NULL || n->self.k->session == NULL) return YK_OK;
  YK_TRY(yk_variable_fetch(n->self.k->session, c->iterations, &t));
  *out = (int64_t)yk_tensor_at(t, 0);
  yk_tensor_free(t);
  return YK_OK;
}

yk_code yk__state_get(const yk_network *n, yk_layer *l, const yk_weight *w, int slot, yk_tensor **out) {
  const yk_compiled *c = n->compiled;
  yk_variable *v = slot_variable(n, l, w, slot);
  if (v != NULL) return yk_variable_fetch(n->self.k->session, v, out);
  for (uint32_t i = 0; i < c->nkept; i++)
    if (c->kept[i].layer == l && c->kept[i].weight == w && c->kept[i].slot == slot)
      return yk_tensor_from((yk_dtype)w->desc.dtype, yk__desc_shape(&w->desc), yk_tensor_data(c->kept[i].value), out);
  *out = NULL;
  return YK_OK;
}

yk_code yk__state_put(yk_network *n, yk_layer *l, const yk_weight *w, int slot, yk_tensor *value) {
  yk_compiled *c = n->compiled;
  yk_kept_state x = { l, w, slot, value };
  if (YK_PUSH(c->kept, c->nkept, c->kept_cap, x)) return YK_OK;
  yk_tensor_free(value);
  return YK_ENOMEM;
}

static yk_code set_number(yk_session *s, const yk_variable *v, double x) {
  yk_tensor *t = NULL;
  YK_TRY(yk_tensor_new((yk_dtype)v->desc.dtype, YK_SCALAR, &t));
  yk__from_double((yk_dtype)v->desc.dtype, &x, yk_tensor_data(t), 1);
  yk_code rc = yk_variable_set(s, v, t);
  yk_tensor_free(t);
  return rc;
}

/* beta^(t+1): what the next update corrects its means by. */
static yk_code settle_powers(const yk_network *n) {
  const yk_compiled *c = n->compiled;
  const struct { const char *name; double beta; } power[2] = { { "beta1_power", c->optimizer.beta1 }, { "beta2_power", c->optimizer.beta2 } };
  for (int i = 0; i < 2; i++) {
    char name[256];
    snprintf(name, sizeof name, "%s/%s", c->scope, power[i].name);
    const yk_variable *v = find(n->self.k, name);
    if (v != NULL) YK_TRY(set_number(n->self.k->session, v, pow(power[i].beta, (double)c->kept_iterations + 1)));
  }
  return YK_OK;
}

yk_code yk__state_settle(yk_network *n) {
  yk_compiled *c = n->compiled;
  yk_session *s = n->self.k->session;
  if (c->nkept == 0 && c->kept_iterations == 0) return YK_OK;
  for (uint32_t i = 0; i < c->nkept; i++) {
    const yk_variable *v = slot_variable(n, c->kept[i].layer, c->kept[i].weight, c->kept[i].slot);
    if (v != NULL) YK_TRY(yk_variable_set(s, v, c->kept[i].value));
  }
  YK_TRY(set_number(s, c->iterations, (double)c->kept_iterations));
  YK_TRY(settle_powers(n));
  yk__state_free(c);
  return YK_OK;
}

void yk__state_free(yk_compiled *c) {
  for (uint32_t i = 0; i < c->nkept; i++) yk_tensor_free(c->kept[i].value);
  yk__free(c->kept);
  c->kept = NULL;
  c->nkept = c->kept_cap = 0;
  c->kept_iterations = 0;
}
