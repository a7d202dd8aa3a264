/*
 * engine.c - networks that run: one graph and one session for all networks of a keras, so that shared layers share variables.
 *
 * A network adds its part to the graph when it first runs. Weights then move into the session and are fetched from it; the host keeps
 * no second copy.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/keras.h"
#include "tensor/desc.h"

typedef struct yk_engine {
  yk_value in[YK__MAX_PORTS], out[YK__MAX_PORTS];
  yk_step *predict;
} yk_engine;

static const char HOME[] = "/cpu:0";

/* ---- the session -------------------------------------------------------------------------------------------------------- */

void yk__keras_stop(yk_keras *k) {
  for (yk_network *n = k->networks; n != NULL; n = n->next) {
    if (n->engine != NULL) yk_step_free(n->engine->predict);
    yk__free(n->engine);
    n->engine = NULL;
  }
  yk_session_close(k->session);
  yk_graph_free(k->graph);
  k->session = NULL;
  k->graph = NULL;
}

static yk_code start(yk_keras *k) {
  YK_TRY(yk_keras_status(k));
  if (k->graph == NULL) {
    YK_TRY(yk_graph_new(&k->graph));
    yk_graph_set_seed(k->graph, k->seed);
  }
  yk_graph_unfreeze(k->graph);
  return YK_OK;
}

/* ---- weights -------------------------------------------------------------------------------------------------------------- */

static yk_variable *variable_of(const yk_keras *k, const yk_layer *l, const yk_weight *w) {
  char name[400];
  snprintf(name, sizeof name, "%s/%s", l->scope, w->name);
  for (size_t i = 0; i < yk_variable_count(k->graph); i++) {
    yk_variable *v = yk_variable_get(k->graph, i);
    if (strcmp(yk_variable_name(v), name) == 0) return v;
  }
  return NULL;
}

static yk_code move_in(yk_layer *l) {
  for (uint32_t i = 0; i < l->nweight; i++) {
    yk_weight *w = &l->weight[i];
    yk_variable *v = w->variable == NULL ? variable_of(l->k, l, w) : NULL;
    if (v == NULL) continue;                               /* it is there, or no network that runs uses it */
    YK_TRY(yk__weight_make(l, w));
    YK_TRY(yk_variable_set(l->k->session, v, w->value));
    yk_tensor_free(w->value);
    w->value = NULL;
    w->variable = v;
  }
  return YK_OK;
}

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

yk_code yk_layer_set_weight(yk_layer *l, const char *name, const yk_tensor *value) {
  char want[YK__DESC_TEXT], have[YK__DESC_TEXT];
  yk_tensor *copy = NULL;
  if (l == NULL || name == NULL || value == NULL) return YK_FAIL(EINVAL, "yk_layer_set_weight: NULL argument");
  yk_weight *w = yk__weight_find(l, name);
  if (w == NULL) return no_such_weight(l, name);
  if (yk_tensor_desc(value)->dtype != w->desc.dtype || !yk__desc_same_shape(yk_tensor_desc(value), &w->desc))
    return YK_FAIL(EINVAL, "weight '%s' of layer '%s' is %s; the value is %s", name, l->name,
                   yk__desc_text(&w->desc, want, sizeof want), yk__desc_text(yk_tensor_desc(value), have, sizeof have));
  if (w->variable != NULL) return yk_variable_set(l->k->session, w->variable, value);
  YK_TRY(yk_tensor_from((yk_dtype)w->desc.dtype, yk__desc_shape(&w->desc), yk_tensor_data(value), &copy));
  yk_tensor_free(w->value);
  w->value = copy;
  return YK_OK;
}

/* ---- a network's part --------------------------------------------------------------------------------------------------------- */

static yk_value placeholder(yk_graph *g, const yk_network *n, uint32_t i) {
  const yk_layer *l = n->in[i].layer;
  const yk_desc *d = yk_sym_desc(n->in[i]);
  return yk_placeholder_at(l->where, g, l->name, (yk_dtype)d->dtype, yk__desc_shape(d));
}

/* Its share of the inputs, and what comes of them, on device number i; variables are at home. */
static void build_share(yk_network *n, yk_graph *g, uint32_t i, yk_replica_setter *setter, const yk_value *in, yk_value *out) {
  const char *where = n->self.where;
  yk_value share[YK__MAX_PORTS];
  char name[64];
  snprintf(name, sizeof name, "replica_%u", (unsigned)i);
  yk_name_scope_push_at(where, g, name);
  yk_replica_push_at(where, g, setter);
  yk_device_push_at(where, g, n->device[i]);
  for (uint32_t k = 0; k < n->nin; k++) share[k] = n->ndevice > 1 ? yk_batch_shard_at(where, g, in[k], i, n->ndevice) : in[k];
  yk__network_build(n, g, where, false, share, NULL, out, NULL);
  yk_device_pop_at(where, g);
  yk_device_pop_at(where, g);
  yk_name_scope_pop_at(where, g);
}

static yk_code build_predict(yk_network *n, yk_graph *g, yk_engine *e) {
  const char *where = n->self.where;
  yk_replica_options home = { .ndevices = 1, .devices = (const char *const[]){ HOME }, .worker_device = "" };
  yk_replica_setter *setter = yk_replica_setter_new_at(where, g, &home);
  yk_value *part = yk__calloc((size_t)n->ndevice * YK__MAX_PORTS + 1, sizeof *part), column[YK__MAX_PORTS];
  if (part == NULL) return YK_ENOMEM;
  yk_name_scope_push_at(where, g, n->self.name);
  YK_DEVICE(g, HOME) {
    for (uint32_t k = 0; k < n->nin; k++) e->in[k] = placeholder(g, n, k);
    for (uint32_t i = 0; i < n->ndevice; i++) build_share(n, g, i, setter, e->in, part + (size_t)i * YK__MAX_PORTS);
    for (uint32_t k = 0; k < n->nout; k++) {
      for (uint32_t i = 0; i < n->ndevice; i++) column[i] = part[(size_t)i * YK__MAX_PORTS + k];
      e->out[k] = n->ndevice > 1 ? yk_concat_at(where, g, n->ndevice, column, 0) : yk_identity_at(where, g, column[0]);
    }
  }
  yk_name_scope_pop_at(where, g);
  yk__free(part);
  return yk_graph_status(g);
}

static yk_code move_network_in(yk_network *n) {
  for (uint32_t i = 0; i < n->nlayer; i++) {
    yk_layer *l = n->layer[i];
    YK_TRY(l->network != NULL ? move_network_in(l->network) : move_in(l));
  }
  return YK_OK;
}

static yk_code open_engine(yk_network *n, yk_engine *e) {
  static const char *const usual[] = { "/cpu:0" };
  yk_keras *k = n->self.k;
  if (n->ndevice == 0) {
    n->device = usual;
    n->ndevice = 1;
  }
  YK_TRY(start(k));
  YK_TRY(build_predict(n, k->graph, e));
  if (k->session == NULL) YK_TRY(yk_session_open(k->graph, k->options.size ? &k->options : NULL, &k->session));
  YK_TRY(move_network_in(n));
  return yk_step_prepare(k->session, n->nin, e->in, n->nout, e->out, 0, NULL, &e->predict);
}

static yk_code engine(yk_network *n) {
  if (n->engine != NULL) return YK_OK;
  yk_engine *e = yk__calloc(1, sizeof *e);
  if (e == NULL) return YK_ENOMEM;
  yk_code rc = open_engine(n, e);
  if (rc == YK_OK) n->engine = e;
  else yk__free(e);
  return rc;
}

/* ---- predict ------------------------------------------------------------------------------------------------------------------- */

/* Rows [at, at + rows) of t, lent. */
static yk_code rows_of(const yk_tensor *t, int64_t at, int64_t rows, yk_tensor **out) {
  yk_shape s = yk__desc_shape(yk_tensor_desc(t));
  size_t bytes = s.dim[0] > 0 ? yk_tensor_bytes(t) / (size_t)s.dim[0] : 0;
  s.dim[0] = rows;
  return yk_tensor_wrap((yk_dtype)yk_tensor_desc(t)->dtype, s, (char *)yk_tensor_data(t) + (size_t)at * bytes, NULL, NULL, out);
}

static yk_code check_input(const yk_network *n, uint32_t i, const yk_tensor *t, int64_t rows) {
  char want[YK__DESC_TEXT], have[YK__DESC_TEXT];
  const yk_desc *d = yk_sym_desc(n->in[i]), *x = t != NULL ? yk_tensor_desc(t) : NULL;
  bool fits = x != NULL && x->dtype == d->dtype && x->rank == d->rank && x->dim[0] == rows;
  for (uint32_t k = 1; fits && k < d->rank; k++) fits = d->dim[k] < 0 || d->dim[k] == x->dim[k];
  if (fits) return YK_OK;
  return YK_FAIL(EINVAL, "network '%s': input '%s' needs %s with %lld rows, it got %s", n->self.name, n->in[i].layer->name,
                 yk__desc_text(d, want, sizeof want), (long long)rows, x != NULL ? yk__desc_text(x, have, sizeof have) : "NULL");
}

static yk_code put_rows(const yk_network *n, const yk_tensor *const *got, int64_t at, int64_t rows, yk_tensor **out) {
  for (uint32_t k = 0; k < n->nout; k++) {
    yk_shape s = yk__desc_shape(yk_tensor_desc(got[k]));
    s.dim[0] = rows;
    if (out[k] == NULL) YK_TRY(yk_tensor_new((yk_dtype)yk_tensor_desc(got[k])->dtype, s, &out[k]));
    size_t bytes = rows > 0 ? yk_tensor_bytes(out[k]) / (size_t)rows : 0;
    memcpy((char *)yk_tensor_data(out[k]) + (size_t)at * bytes, yk_tensor_data(got[k]), yk_tensor_bytes(got[k]));
  }
  return YK_OK;
}

static yk_code predict_some(yk_network *n, const yk_tensor *const *in, int64_t at, int64_t batch, int64_t rows, yk_tensor **out) {
  yk_tensor *part[YK__MAX_PORTS] = { NULL };
  const yk_tensor *const *got;
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < n->nin && rc == YK_OK; i++) rc = rows_of(in[i], at, batch, &part[i]);
  if (rc == YK_OK) rc = yk_step_run(n->engine->predict, (const yk_tensor *const *)part, &got);
  if (rc == YK_OK) rc = put_rows(n, got, at, rows, out);
  for (uint32_t i = 0; i < n->nin; i++) yk_tensor_free(part[i]);
  return rc;
}

yk_code yk_network_predict(yk_network *n, const yk_tensor *const *in, int64_t batch_size, yk_tensor **out) {
  yk_tensor *made[YK__MAX_PORTS] = { NULL };
  if (n == NULL || in == NULL || out == NULL || in[0] == NULL || batch_size < 0)
    return YK_FAIL(EINVAL, "yk_network_predict: NULL argument or a negative batch");
  YK_TRY(yk_keras_status(n->self.k));
  int64_t rows = yk_tensor_desc(in[0])->rank > 0 ? yk_tensor_desc(in[0])->dim[0] : 0, batch = batch_size ? batch_size : 32;
  for (uint32_t i = 0; i < n->nin; i++) YK_TRY(check_input(n, i, in[i], rows));
  yk_code rc = engine(n);
  for (int64_t at = 0; rc == YK_OK && (at < rows || (at == 0 && rows == 0)); at += batch)
    rc = predict_some(n, in, at, rows - at < batch ? rows - at : batch, rows, made);
  for (uint32_t k = 0; k < n->nout; k++) {
    if (rc == YK_OK) out[k] = made[k];
    else yk_tensor_free(made[k]);
  }
  return rc;
}

/* ---- place ----------------------------------------------------------------------------------------------------------------------- */

yk_code yk_network_place(yk_network *n, const yk_network_options *options) {
  if (n == NULL || options == NULL || options->size != sizeof *options)
    return YK_FAIL(EINVAL, "yk_network_place: NULL argument, or options that do not start from YK_NETWORK_OPTIONS_INIT");
  yk_keras *k = n->self.k;
  if (n->engine != NULL) return YK_FAIL(EINVAL, "network '%s' runs already; place it before its first run", n->self.name);
  if (options->session != NULL && k->session != NULL)
    return YK_FAIL(EINVAL, "the session is open; its options come with the first network that runs");
  if (options->ndevices > YK__MAX_PORTS) return YK_FAIL(EINVAL, "%zu devices; at most %d", options->ndevices, YK__MAX_PORTS);
  const char **device = yk__bump(&k->mem, (options->ndevices + 1) * sizeof *device);
  if (device == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < options->ndevices; i++)
    if ((device[i] = yk__bump_str(&k->mem, options->devices[i])) == NULL) return YK_ENOMEM;
  n->device = device;
  n->ndevice = (uint32_t)options->ndevices;
  if (options->session != NULL) k->options = *options->session;
  return YK_OK;
}
