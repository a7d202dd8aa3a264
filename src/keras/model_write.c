/*
 * model_write.c - a network as Keras 2 describes it in JSON.
 *
 * Calls are numbered within the network, as Keras renumbers those that it keeps; a nested network's begin at 1, since its making is
 * its call 0, for Keras 3 only where they are ends of the network around it. Keras 3 writes what a call takes as it was written in
 * Python. A network that is a plain chain is written as any other.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/json.h"

/* ["name", call, output]; a nested network's calls begin at `first`. */
static json_t *port(const yk_network *n, int first, yk_sym s) {
  json_int_t number = s.layer->network != NULL ? first : 0;
  for (uint32_t node = 0; node < s.node; node++) number += yk__network_calls(n, s.layer, node);
  return json_pack("[s, I, i]", s.layer->name, number, (int)s.index);
}

/* Keras 2: ["name", call, output, {}] for each. */
static json_t *inputs(const yk_network *n, uint32_t count, const yk_sym *s) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) {
    json_t *p = port(n, 1, s[i]);
    json_array_append_new(p, json_object());
    json_array_append_new(list, p);
  }
  return list;
}

/* ---- calls of Keras 3 ------------------------------------------------------------------------------------------------------- */

static json_t *tensor(const yk_network *n, yk_sym s) {
  const yk_desc *d = yk_sym_desc(s);
  json_t *shape = json_array();
  for (uint32_t i = 0; i < d->rank; i++) json_array_append_new(shape, d->dim[i] < 0 ? json_null() : json_integer(d->dim[i]));
  return json_pack("{s:s, s:{s:o, s:s, s:o}}", "class_name", "__keras_tensor__", "config", "shape", shape, "dtype",
                   d->dtype == YK_I32   ? "int32"
                   : d->dtype == YK_I64 ? "int64"
                                        : "float32",
                   "keras_history", port(n, 0, s));
}

static json_t *tensors(const yk_network *n, uint32_t from, const yk_call_record *r) {
  json_t *list = json_array();
  for (uint32_t i = from; i < r->nin; i++) json_array_append_new(list, tensor(n, r->in[i]));
  return list;
}

/* One tensor, or a list of them; first states go by name. */
static json_t *arguments(const yk_network *n, const yk_layer *l, const yk_call_record *r) {
  bool states = l->class == &yk__class_lstm || l->class == &yk__class_gru || l->class == &yk__class_simple_rnn ||
                l->class == &yk__class_bidirectional;
  if (l->class == &yk__class_multi_head_attention)
    return json_pack("{s:o, s:{s:b}}", "args", tensors(n, 0, r), "kwargs", "use_causal_mask",
                     ((const yk_attention_config *)l->config)->use_causal_mask);
  if (r->nin > 1 && states)
    return json_pack("{s:[o], s:{s:o}}", "args", tensor(n, r->in[0]), "kwargs", "initial_state", tensors(n, 1, r));
  return json_pack("{s:[o], s:{}}", "args", r->nin == 1 ? tensor(n, r->in[0]) : tensors(n, 0, r), "kwargs");
}

/* Keras 2: attention takes its query as it is and the others by name. */
static json_t *attention_call(const yk_network *n, const yk_layer *l, const yk_call_record *r) {
  json_t *named = json_pack("{s:o, s:b}", "value", port(n, 1, r->in[1]), "use_causal_mask",
                            ((const yk_attention_config *)l->config)->use_causal_mask);
  if (r->nin > 2) json_object_set_new(named, "key", port(n, 1, r->in[2]));
  json_t *p = port(n, 1, r->in[0]);
  json_array_append_new(p, named);
  return json_pack("[o]", p);
}

/* ---- layers and networks -------------------------------------------------------------------------------------------------------- */

static json_t *network(const yk_network *n, int major, bool modules);

static const char *module_of(const yk_layer *l) { return l->network != NULL ? "keras.src.models.functional" : "keras.layers"; }

/* modules: where its class is to be found, which archives tell of all layers and older files of those inside of others. */
static json_t *layer(const yk_network *n, int major, bool modules, const yk_layer *l) {
  json_t *nodes = json_array();
  for (uint32_t i = 0; i < l->ncall; i++)
    if (yk__network_calls(n, l, i) && l->call[i].nin > 0)
      json_array_append_new(nodes, major >= 3                                       ? arguments(n, l, &l->call[i])
                                   : l->class == &yk__class_multi_head_attention ? attention_call(n, l, &l->call[i])
                                                                                 : inputs(n, l->call[i].nin, l->call[i].in));
  json_t *o = json_pack("{s:s, s:s, s:o, s:o}", "class_name", l->network != NULL ? "Functional" : l->class->name, "name", l->name,
                        "config", l->network != NULL ? network(l->network, major, modules) : yk__config_write(l, major),
                        "inbound_nodes", nodes);
  if (!modules || o == NULL) return o;
  json_object_set_new(o, "module", json_string(module_of(l)));
  json_object_set_new(o, "registered_name", l->network != NULL ? json_string("Functional") : json_null());
  return o;
}

json_t *yk__layer_write(const yk_layer *l, int major) {
  json_t *config = l->network != NULL ? network(l->network, major, major >= 3) : yk__config_write(l, major);
  json_t *o = json_pack("{s:s, s:o, s:n}", "class_name", l->network != NULL ? "Functional" : l->class->name, "config", config,
                        "registered_name");
  if (l->network == NULL || major >= 3)
    json_object_set_new(o, "module", json_string(module_of(l)));
  return o;
}

/* Inputs or outputs of a network; Keras 3 has a single one without a list around it. */
static json_t *ends(const yk_network *n, int major, uint32_t count, const yk_sym *s) {
  if (major >= 3 && count == 1) return port(n, 1, s[0]);
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) json_array_append_new(list, port(n, 1, s[i]));
  return list;
}

/* The config of a network: NULL if there was no memory. */
static json_t *network(const yk_network *n, int major, bool modules) {
  json_t *layers = json_array();
  for (uint32_t i = 0; i < n->nlayer; i++)
    if (json_array_append_new(layers, layer(n, major, modules, n->layer[i])) != 0) {
      json_decref(layers);
      return NULL;
    }
  return json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", n->self.name, "trainable", !n->self.frozen, "layers", layers,
                   "input_layers", ends(n, major, n->nin, n->in), "output_layers", ends(n, major, n->nout, n->out));
}

/* root is taken over. */
static yk_code dump(const yk_network *n, json_t *root, char **out) {
  size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(17), bytes = root != NULL ? json_dumpb(root, NULL, 0, flags) : 0;
  char *text = bytes > 0 ? yk__calloc(bytes + 1, 1) : NULL;
  if (text != NULL) json_dumpb(root, text, bytes, flags);
  json_decref(root);
  if (bytes == 0)
    return YK_FAIL(EUNSUPPORTED,
                   "network '%s' cannot be described for Keras %d: an activation that it does not have, or no memory",
                   n->self.name, n->major);
  if (text == NULL) return YK_ENOMEM;
  *out = text;
  return YK_OK;
}

yk_code yk__network_write(const yk_network *n, char **out) {
  json_t *config = network(n, n->major, false);
  return dump(n, config != NULL ? json_pack("{s:s, s:o}", "class_name", "Functional", "config", config) : NULL, out);
}

/* A training config as an archive has it: the optimizer under another name, and classes with their modules. */
static json_t *compile_config(const char *training) {
  json_t *c = json_loads(training, 0, NULL), *o = json_object_get(c, "optimizer_config"), *loss = json_object_get(c, "loss"),
         *each;
  const char *key;
  json_object_set_new(o, "module", json_string("keras.optimizers"));
  json_object_set_new(o, "registered_name", json_null());
  json_object_set(c, "optimizer", o);
  json_object_del(c, "optimizer_config");
  json_object_del(c, "sample_weight_mode");
  if (json_object_get(loss, "class_name") != NULL) json_object_set_new(loss, "module", json_string("keras.losses"));
  else json_object_foreach(loss, key, each)
    if (json_is_object(each)) json_object_set_new(each, "module", json_string("keras.losses"));
  return c;
}

yk_code yk__network_write_archive(const yk_network *n, const char *training, char **out) {
  json_t *config = network(n, 3, true), *root = NULL;
  if (config != NULL)
    root = json_pack("{s:s, s:s, s:o, s:s}", "module", "keras.src.models.functional", "class_name", "Functional", "config",
                     config, "registered_name", "Functional");
  if (root != NULL && training != NULL) json_object_set_new(root, "compile_config", compile_config(training));
  return dump(n, root, out);
}
