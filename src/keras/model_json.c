/*
 * model_json.c - networks as Keras describes them in JSON: Sequential and functional, Keras 2's lists of nodes and Keras 3's.
 *
 * Layers are made first. A layer's calls are made in their order, as soon as what they take is there; going over the list until nothing
 * is left brings all of them, whatever the order of the file.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/cudnn_weights.h"
#include "keras/json.h"

enum { MAX_LAYERS = 100000, MAX_DEPTH = 16 };

typedef struct entry {
  const char *name;
  yk_layer *layer;
  json_t *calls;                   /* inbound_nodes */
  uint32_t ncall, made;
} entry;
typedef struct reader {
  yk_keras *k;
  const char *what;                /* the file */
  int major, depth;
  entry *entry; uint32_t n;
  yk_map names;
} reader;

static yk_code read_network(yk_keras *k, const char *what, const json_t *root, int major, int depth, yk_network **out);

static yk_code need(const reader *r, const char *expected) {
  return YK_FAIL(ECORRUPT, "%s: model_config: expected %s", r->what, expected);
}

/* ---- layers ---------------------------------------------------------------------------------------------------------------- */

static const char *text_in(const json_t *o, const char *key) {
  const json_t *v = json_object_get(o, key);
  return json_is_string(v) ? json_string_value(v) : NULL;
}

static yk_code read_dtype(const reader *r, const char *name, const json_t *config, yk_dtype *out) {
  static const struct {
    const char *name;
    yk_dtype dtype;
  } types[] = { { "float32", YK_F32 }, { "int32", YK_I32 }, { "int64", YK_I64 } };
  const char *text = text_in(config, "dtype");
  *out = YK_F32;
  for (size_t i = 0; text != NULL && i < 3; i++)
    if (strcmp(types[i].name, text) == 0) return *out = types[i].dtype, YK_OK;
  return text == NULL
             ? YK_OK
             : YK_FAIL(EUNSUPPORTED, "%s: input '%s' is of type %.40s; expected float32, int32 or int64", r->what, name, text);
}

static yk_code read_input(const reader *r, const char *name, json_t *config, yk_layer **out) {
  yk_input_config c = { .name = name };
  const json_t *shape = json_object_get(config, "batch_input_shape");
  if (shape == NULL) shape = json_object_get(config, "batch_shape");
  size_t n = json_array_size(shape);
  if (n < 1 || n > YK_MAX_RANK)
    return YK_FAIL(ECORRUPT, "%s: input '%s' has no batch_input_shape of 1 to %d dimensions", r->what, name, YK_MAX_RANK);
  YK_TRY(read_dtype(r, name, config, &c.dtype));
  c.batch = json_integer_value(json_array_get(shape, 0));
  c.shape.rank = (uint32_t)n - 1;
  for (size_t i = 1; i < n; i++)
    c.shape.dim[i - 1] = json_is_integer(json_array_get(shape, i)) ? json_integer_value(json_array_get(shape, i)) : -1;
  *out = yk_input_at(r->what, r->k, &c).layer;
  return yk_keras_status(r->k);
}

static bool is_network(const char *class) {
  return strcmp(class, "Functional") == 0 || strcmp(class, "Model") == 0 || strcmp(class, "Sequential") == 0;
}

static yk_code read_layer(const reader *r, const json_t *o, yk_layer **out) {
  const char *class = text_in(o, "class_name");
  json_t *config = json_object_get(o, "config");
  const char *name = text_in(config, "name");
  if (class == NULL || !(json_is_object(config) || (json_is_array(config) && is_network(class))))
    return need(r, "a layer with class_name and config");
  if (name == NULL) name = text_in(o, "name");
  if (strcmp(class, "InputLayer") == 0) return read_input(r, name != NULL ? name : "input", config, out);
  if (is_network(class)) {
    yk_network *n = NULL;
    YK_TRY(read_network(r->k, r->what, o, r->major, r->depth + 1, &n));
    *out = yk_network_layer(n);
    return YK_OK;
  }
  if (name == NULL) return need(r, "a name of each layer");
  const yk_layer_class *c = yk__layer_class(yk__cudnn_plain_class(class));
  if (c == NULL) return YK_FAIL(EUNSUPPORTED, "%s: layer '%s' is of class %.80s, which is not known here", r->what, name, class);
  void *own = yk__calloc(1, c->config_bytes);
  if (own == NULL) return YK_ENOMEM;
  yk_code rc = yk__config_read(r->k, r->major, r->depth, c, name, config, own);
  if (rc == YK_OK) {
    *out = yk__layer_new(r->what, r->k, c, own);
    rc = yk_keras_status(r->k);
  } else {
    rc = yk__fail_prefix(rc, "%s", r->what);
  }
  yk__free(own);
  return rc;
}

yk_code yk__layer_read(yk_keras *k, int major, int depth, const json_t *o, yk_layer **out) {
  reader r = { .k = k, .what = "model_config", .major = major, .depth = depth };
  return depth > MAX_DEPTH ? need(&r, "layers wrapped and nested at most 16 deep") : read_layer(&r, o, out);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

/* Keras 2 counts the making of a nested network as its call 0; Keras 3 only where it tells a network's ends, and not that of a Sequential. */
static bool is_made_first(const reader *r, const yk_layer *l, bool is_end) {
  return l->network != NULL && (r->major < 3 || (is_end && !l->network->sequential));
}

static yk_code find_sym(const reader *r, const json_t *name, const json_t *node, const json_t *index, bool is_end, yk_sym *out,
                        bool *there) {
  uint32_t at;
  if (!json_is_string(name) || !json_is_integer(node) || !json_is_integer(index) || json_integer_value(node) < 0 ||
      json_integer_value(index) < 0)
    return need(r, "[layer, node, tensor]");
  if (!yk__map_get(&r->names, json_string_value(name), &at))
    return YK_FAIL(ECORRUPT, "%s: no layer is called '%.80s'", r->what, json_string_value(name));
  const entry *e = &r->entry[at];
  json_int_t call = json_integer_value(node);
  if (is_made_first(r, e->layer, is_end) && call > 0) call--;
  uint32_t ncall = e->ncall > 0 ? e->ncall : 1;            /* an input is called once when it is made */
  if (call >= ncall)
    return YK_FAIL(ECORRUPT, "%s: layer '%s' has %u calls; number %lld is asked for", r->what, e->name, (unsigned)ncall,
                   (long long)call);
  *there = (uint32_t)call < e->layer->ncall;
  *out = (yk_sym){ e->layer, (uint32_t)call, (uint32_t)json_integer_value(index) };
  if (*there && out->index >= e->layer->call[call].nout)
    return YK_FAIL(ECORRUPT, "%s: layer '%s' has no output %u", r->what, e->name, (unsigned)out->index);
  return YK_OK;
}

typedef struct inputs {
  yk_sym at[YK__MAX_PORTS];
  uint32_t n;
  bool there, causal, ends;
} inputs; /* ends: of a network, not of a call */

static yk_code take(const reader *r, const json_t *name, const json_t *node, const json_t *index, inputs *in) {
  bool there = false;
  if (in->n == YK__MAX_PORTS) return need(r, "fewer inputs of a call");
  YK_TRY(find_sym(r, name, node, index, in->ends, &in->at[in->n++], &there));
  in->there = in->there && there;
  return YK_OK;
}

/* Keras 3: any value in args, lists among them; tensors are objects. */
static yk_code take_args(const reader *r, const json_t *v, int depth, inputs *in) {
  const char *class = text_in(v, "class_name");
  if (json_is_array(v) && depth < MAX_DEPTH) {
    for (size_t i = 0; i < json_array_size(v); i++) YK_TRY(take_args(r, json_array_get(v, i), depth + 1, in));
    return YK_OK;
  }
  if (json_is_null(v) || json_is_boolean(v)) return YK_OK;
  if (class == NULL || strcmp(class, "__keras_tensor__") != 0) return need(r, "tensors as arguments of a call");
  const json_t *h = json_object_get(json_object_get(v, "config"), "keras_history");
  return take(r, json_array_get(h, 0), json_array_get(h, 1), json_array_get(h, 2), in);
}

/* Tensors that an argument names: those of Keras 3 are objects, those of Keras 2 ["layer", node, tensor], or lists of either. */
static yk_code take_value(const reader *r, const json_t *v, int depth, inputs *in) {
  if (!json_is_array(v) || depth >= MAX_DEPTH) return take_args(r, v, depth, in);
  if (json_is_string(json_array_get(v, 0))) return take(r, json_array_get(v, 0), json_array_get(v, 1), json_array_get(v, 2), in);
  for (size_t i = 0; i < json_array_size(v); i++) YK_TRY(take_value(r, json_array_get(v, i), depth + 1, in));
  return YK_OK;
}

/* Nothing, or a list of nothing: the masks of a call of several inputs none of which has one. */
static bool asks_nothing(const json_t *v) {
  bool nothing = json_is_null(v) || json_is_false(v) || json_is_array(v);
  for (size_t i = 0; i < json_array_size(v); i++) nothing = nothing && json_is_null(json_array_get(v, i));
  return nothing;
}

/* Arguments by name: inputs like others, in this order; what asks for nothing is passed over. */
static yk_code take_named(const reader *r, json_t *named, inputs *in) {
  static const char *const inputs_by_name[] = { "inputs", "query", "value", "key", "initial_state" };
  enum { N = sizeof inputs_by_name / sizeof *inputs_by_name };
  const char *key;
  json_t *v;
  for (size_t i = 0; i < N; i++) {
    v = json_object_get(named, inputs_by_name[i]);
    if (v != NULL && !json_is_null(v)) YK_TRY(take_value(r, v, 0, in));
  }
  json_object_foreach(named, key, v) {
    bool known = asks_nothing(v);
    for (size_t i = 0; i < N; i++) known = known || strcmp(key, inputs_by_name[i]) == 0;
    if (known) continue;
    if (strcmp(key, "use_causal_mask") != 0) return YK_FAIL(EUNSUPPORTED, "%s: a call has a value for '%.80s'", r->what, key);
    in->causal = true;
  }
  return YK_OK;
}

static yk_code take_node(const reader *r, json_t *node, inputs *in) {
  *in = (inputs){ .there = true };
  if (json_is_object(node)) {
    YK_TRY(take_args(r, json_object_get(node, "args"), 0, in));
    return take_named(r, json_object_get(node, "kwargs"), in);
  }
  if (!json_is_array(node)) return need(r, "a list of inputs for each call");
  for (size_t i = 0; i < json_array_size(node); i++) {
    const json_t *x = json_array_get(node, i);
    YK_TRY(take(r, json_array_get(x, 0), json_array_get(x, 1), json_array_get(x, 2), in));
    YK_TRY(take_named(r, json_array_get(x, 3), in));
  }
  return YK_OK;
}

/* An argument of the call in Keras, a setting of the layer here. */
static yk_code set_causal(const reader *r, yk_layer *l) {
  if (l->class != &yk__class_multi_head_attention)
    return YK_FAIL(EUNSUPPORTED, "%s: layer '%s' is called with a causal mask, which a %s does not have here", r->what, l->name,
                   l->class->name);
  ((yk_attention_config *)l->config)->use_causal_mask = true;
  return YK_OK;
}

/* *again: something could not be made yet. *any: something was. */
static yk_code make_calls(const reader *r, entry *e, bool *again, bool *any) {
  for (; e->made < e->ncall; e->made++, *any = true) {
    inputs in;
    YK_TRY(take_node(r, json_array_get(e->calls, e->made), &in));
    if (!in.there) return *again = true, YK_OK;
    if (in.causal) YK_TRY(set_causal(r, e->layer));
    yk_apply_n_at(r->what, e->layer, in.n, in.at);
    YK_TRY(yk_keras_status(r->k));
  }
  return YK_OK;
}

static yk_code make_all_calls(const reader *r) {
  bool again = true, any = true;
  while (again && any) {
    again = any = false;
    for (uint32_t i = 0; i < r->n; i++) YK_TRY(make_calls(r, &r->entry[i], &again, &any));
  }
  return again ? need(r, "calls that do not wait for each other") : YK_OK;
}

/* [["a", 0, 0], ...], or ["a", 0, 0]. */
static yk_code read_ports(const reader *r, const json_t *v, inputs *out) {
  *out = (inputs){ .there = true, .ends = true };
  if (json_is_string(json_array_get(v, 0)))
    YK_TRY(take(r, json_array_get(v, 0), json_array_get(v, 1), json_array_get(v, 2), out));
  else
    for (size_t i = 0; i < json_array_size(v); i++) {
      const json_t *x = json_array_get(v, i);
      YK_TRY(take(r, json_array_get(x, 0), json_array_get(x, 1), json_array_get(x, 2), out));
    }
  return out->n > 0 && out->there ? YK_OK : need(r, "input_layers and output_layers");
}

/* ---- networks ------------------------------------------------------------------------------------------------------------------- */

static yk_code read_layers(reader *r, const json_t *layers) {
  size_t n = json_array_size(layers);
  if (n == 0 || n > MAX_LAYERS) return need(r, "a list of layers");
  r->entry = yk__calloc(n, sizeof *r->entry);
  if (r->entry == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < n; i++, r->n++) {
    json_t *o = json_array_get(layers, i);
    entry *e = &r->entry[i];
    uint32_t there;
    YK_TRY(read_layer(r, o, &e->layer));
    e->name = e->layer->name;
    e->calls = json_object_get(o, "inbound_nodes");
    e->ncall = (uint32_t)json_array_size(e->calls);
    if (yk__map_get(&r->names, e->name, &there)) return YK_FAIL(ECORRUPT, "%s: two layers are called '%s'", r->what, e->name);
    if (!yk__map_set(&r->names, e->name, (uint32_t)i)) return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code read_functional(reader *r, const json_t *config, const char *name, yk_network **out) {
  inputs in, outs;
  YK_TRY(read_layers(r, json_object_get(config, "layers")));
  YK_TRY(make_all_calls(r));
  YK_TRY(read_ports(r, json_object_get(config, "input_layers"), &in));
  YK_TRY(read_ports(r, json_object_get(config, "output_layers"), &outs));
  *out = yk_network_new_at(r->what, r->k, name, in.n, in.at, outs.n, outs.at);
  return yk_keras_status(r->k);
}

/* Where there is no InputLayer, the first layer tells the shape. */
static yk_code first_input(const reader *r, const json_t *layers, yk_sym *out) {
  json_t *first = json_array_get(layers, 0), *config = json_object_get(first, "config");
  yk_layer *l = NULL;
  char name[200];
  if (r->entry[0].layer->class == &yk__class_input) return *out = (yk_sym){ r->entry[0].layer, 0, 0 }, YK_OK;
  snprintf(name, sizeof name, "%.180s_input", r->entry[0].name);
  if (json_object_get(config, "batch_input_shape") == NULL) return need(r, "an input shape of the first layer");
  YK_TRY(read_input(r, name, config, &l));
  *out = (yk_sym){ l, 0, 0 };
  return YK_OK;
}

static yk_code read_sequential(reader *r, const json_t *layers, const char *name, yk_network **out) {
  yk_sym in, x;
  YK_TRY(read_layers(r, layers));
  YK_TRY(first_input(r, layers, &in));
  x = in;
  for (uint32_t i = r->entry[0].layer == in.layer; i < r->n; i++) x = yk_apply_at(r->what, r->entry[i].layer, x);
  YK_TRY(yk_keras_status(r->k));
  *out = yk_network_new_at(r->what, r->k, name, 1, &in, 1, &x);
  return yk_keras_status(r->k);
}

static yk_code read_network(yk_keras *k, const char *what, const json_t *root, int major, int depth, yk_network **out) {
  reader r = { .k = k, .what = what, .major = major, .depth = depth };
  const char *class = text_in(root, "class_name"), *name;
  json_t *config = json_object_get(root, "config");
  yk_code rc;
  if (class == NULL || !is_network(class)) return need(&r, "a network of class Sequential, Model or Functional");
  if (depth > MAX_DEPTH) return need(&r, "networks nested at most 16 deep");
  name = text_in(config, "name");
  if (strcmp(class, "Sequential") != 0) rc = read_functional(&r, config, name, out);
  else rc = read_sequential(&r, json_is_array(config) ? config : json_object_get(config, "layers"), name, out);
  if (rc == YK_OK && *out != NULL) (*out)->sequential = strcmp(class, "Sequential") == 0;
  yk__map_free(&r.names);
  yk__free(r.entry);
  return rc;
}

yk_code yk__network_read(yk_keras *k, const char *what, const char *text, size_t n, int major, yk_network **out) {
  json_error_t error;
  const char *kept = yk__bump_str(&k->mem, what);          /* layers name it as the place of their making */
  if (kept == NULL) return YK_ENOMEM;
  json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL)
    return YK_FAIL(ECORRUPT, "%s: model_config, line %d, column %d: %s", what, error.line, error.column, error.text);
  yk_code rc = read_network(k, kept, root, major, 0, out);
  json_decref(root);
  return rc;
}
