/*
 * engine.c - the graph and the session that all networks of a keras run in, and how weights move there.
 *
 * A network adds its part to the graph when it first runs. Weights then move into the session and are fetched from it; the host keeps
 * no second copy.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "keras/compile.h"
#include "keras/engine.h"
#include "tensor/desc.h"

/* ---- graph and session ---------------------------------------------------------------------------------------------------- */

void yk__keras_stop(yk_keras *k) {
  for (yk_network *n = k->networks; n != NULL; n = n->next) {
    if (n->predict != NULL) yk_step_free(n->predict->step);
    yk__free(n->predict);
    n->predict = NULL;
    yk__compiled_free(n->compiled);
    n->compiled = NULL;
  }
  yk_session_close(k->session);
  yk_graph_free(k->graph);
  k->session = NULL;
  k->graph = NULL;
}

static void open_spread(yk_keras *k, const yk_network *n) {
  static const char *const usual[] = { YK__HOME };
  yk_tower_options o = { .ndevices = n != NULL ? n->ndevice : 1, .devices = n != NULL ? n->device : usual, .home = YK__HOME,
                         .strategy = n != NULL ? n->strategy : YK_STRATEGY_HOME };
  yk__spread_open(n != NULL ? n->self.where : YK_HERE, k->graph, &o, o.ndevices, &k->spread);
  k->spread_devices = (uint32_t)o.ndevices;
}

/* Mirrored variables are where the first network wanted them, so all others have to run there. */
static yk_code check_spread(const yk_keras *k, const yk_network *n) {
  bool mirrored = k->spread.strategy == YK_STRATEGY_MIRRORED, same = n->ndevice <= k->spread_devices;
  for (uint32_t i = 0; same && i < n->ndevice; i++) same = strcmp(n->device[i], k->spread.devices[i]) == 0;
  if ((mirrored || n->strategy == YK_STRATEGY_MIRRORED) && !(mirrored && same))
    return YK_FAIL(EINVAL, "network '%s': mirrored variables need one list of devices for all networks that run in a yk_keras",
                   n->self.name);
  return YK_OK;
}

yk_code yk__keras_start(yk_keras *k, const yk_network *n) {
  YK_TRY(yk_keras_status(k));
  if (k->graph == NULL) {
    YK_TRY(yk_graph_new(&k->graph));
    yk_graph_set_seed(k->graph, k->seed);
    open_spread(k, n);
  }
  if (n != NULL) YK_TRY(check_spread(k, n));
  yk_graph_unfreeze(k->graph);
  return yk_graph_status(k->graph);
}

/* First values of the variables that are new since the last time. */
static yk_code initialize(yk_keras *k) {
  uint32_t n = k->graph->nvariable, from = k->nready;
  if (n == from) return YK_OK;
  yk_value *op = yk__calloc(n - from, sizeof *op);
  if (op == NULL) return YK_ENOMEM;
  for (uint32_t i = from; i < n; i++) op[i - from] = yk_initializer_op(k->graph->variable[i]);
  yk_code rc = yk_session_run(k->session, 0, NULL, 0, NULL, n - from, op, NULL);
  yk__free(op);
  if (rc == YK_OK) k->nready = n;
  return rc;
}

/* ---- weights -------------------------------------------------------------------------------------------------------------- */

yk_variable *yk__weight_variable(const yk_layer *l, const yk_weight *w) {
  char name[400];
  uint32_t at;
  if (w->variable != NULL || l->k->graph == NULL) return w->variable;
  snprintf(name, sizeof name, "%s/%s", l->scope, w->name);
  return yk__map_get(&l->k->graph->store->by_name, name, &at) ? l->k->graph->variable[at] : NULL;
}

static yk_code move_in(yk_layer *l) {
  for (uint32_t i = 0; i < l->nweight; i++) {
    yk_weight *w = &l->weight[i];
    yk_variable *v = w->variable == NULL ? yk__weight_variable(l, w) : NULL;
    if (v == NULL) continue;                               /* it is there, or no network that runs uses it */
    YK_TRY(yk__weight_make(l, w));
    YK_TRY(yk_variable_set(l->k->session, v, w->value));
    yk_tensor_free(w->value);
    w->value = NULL;
    w->variable = v;
  }
  return YK_OK;
}


yk_code yk__keras_ready(yk_keras *k) {
  YK_TRY(yk_graph_status(k->graph));
  if (k->session == NULL) YK_TRY(yk_session_open(k->graph, k->options.size ? &k->options : NULL, &k->session));
  YK_TRY(initialize(k));
  for (yk_layer *l = k->layers; l != NULL; l = l->next) YK_TRY(move_in(l));
  return YK_OK;
}

yk_code yk_keras_graph(yk_keras *k, yk_graph **out) {
  if (k == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_keras_graph: NULL argument");
  YK_TRY(yk__keras_start(k, NULL));
  *out = k->graph;
  return YK_OK;
}

yk_code yk_keras_session(yk_keras *k, yk_session **out) {
  yk_graph *g;
  if (out == NULL) return YK_FAIL(EINVAL, "yk_keras_session: NULL argument");
  YK_TRY(yk_keras_graph(k, &g));
  YK_TRY(yk__keras_ready(k));
  *out = k->session;
  return YK_OK;
}

/* ---- one weight ----------------------------------------------------------------------------------------------------- */

static yk_code no_such_weight(const yk_layer *l, const char *name) {
  yk_str have = { 0 };
  char *text = NULL;
  for (uint32_t i = 0; i < l->nweight; i++) yk__str_add(&have, "%s%s", i ? ", " : "", l->weight[i].name);
  YK_TRY(yk__str_take(&have, &text));
  yk_code rc = YK_FAIL(ENOTFOUND, "layer '%s' has no weight '%.80s'; it has %s", l->name, name,
                       text[0] ? text : "none (it was not called yet)");
  yk__free(text);
  return rc;
}

yk_code yk_layer_weight(yk_layer *l, const char *name, yk_tensor **out) {
  if (l == NULL || name == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_layer_weight: NULL argument");
  yk_weight *w = yk__weight_find(l, name);
  if (w == NULL) return no_such_weight(l, name);
  if (w->variable != NULL) return yk_variable_fetch(l->k->session, w->variable, out);
  YK_TRY(yk__weight_make(l, w));
  return yk_tensor_from((yk_dtype)w->desc.dtype, yk__desc_shape(&w->desc), yk_tensor_data(w->value), out);
}

yk_code yk__weight_take(yk_layer *l, yk_weight *w, yk_tensor *value) {
  char want[YK__DESC_TEXT], have[YK__DESC_TEXT];
  yk_code rc = YK_OK;
  if (yk_tensor_desc(value)->dtype != w->desc.dtype || !yk__desc_same_shape(yk_tensor_desc(value), &w->desc))
    rc = YK_FAIL(EINVAL, "weight '%s' of layer '%s' is %s; the value is %s", w->name, l->name,
                 yk__desc_text(&w->desc, want, sizeof want), yk__desc_text(yk_tensor_desc(value), have, sizeof have));
  else if (w->variable != NULL) rc = yk_variable_set(l->k->session, w->variable, value);
  else {
    yk_tensor *before = w->value;
    w->value = value;
    value = before;
  }
  yk_tensor_free(value);
  return rc;
}

yk_code yk_layer_set_weight(yk_layer *l, const char *name, const yk_tensor *value) {
  yk_tensor *copy = NULL;
  if (l == NULL || name == NULL || value == NULL) return YK_FAIL(EINVAL, "yk_layer_set_weight: NULL argument");
  yk_weight *w = yk__weight_find(l, name);
  if (w == NULL) return no_such_weight(l, name);
  const yk_desc *d = yk_tensor_desc(value);
  YK_TRY(yk_tensor_from((yk_dtype)d->dtype, yk__desc_shape(d), yk_tensor_data(value), &copy));
  return yk__weight_take(l, w, copy);
}
