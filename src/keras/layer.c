/*
 * layer.c - the life of layers: made, named, called, and what they own.
 *
 * The keras owns them all; nothing is freed one by one. A call is built in the sketch at once, so that a shape that does not fit is
 * told where the program makes it.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/json.h"
#include "tensor/desc.h"

/* ---- the keras -------------------------------------------------------------------------------------------------------- */

yk_code yk_keras_new(uint64_t seed, yk_keras **out) {
  yk_keras *k = yk__calloc(1, sizeof *k);
  if (k == NULL) return YK_ENOMEM;
  k->seed = seed ? seed : 1;
  yk_code rc = yk_graph_new(&k->sketch);
  if (rc == YK_OK) *out = k;
  else yk__free(k);
  return rc;
}

static void free_layer(yk_layer *l) {
  for (uint32_t i = 0; i < l->nweight; i++) yk_tensor_free(l->weight[i].value);
  yk__free(l->weight);
  yk__free(l->call);
}

void yk_keras_free(yk_keras *k) {
  if (k == NULL) return;
  yk__keras_stop(k);
  for (yk_layer *l = k->layers; l != NULL; l = l->next) free_layer(l);
  for (yk_network *n = k->networks; n != NULL; n = n->next) {
    yk__free(n->call);
    yk__free(n->layer);
  }
  yk__free(k->carried);
  yk__map_free(&k->names);
  yk__map_free(&k->scopes);
  yk_graph_free(k->sketch);
  yk__bump_free(&k->mem);
  yk__free(k);
}

yk_code yk_keras_status(const yk_keras *k) {
  return yk_graph_status(k->sketch);
}

void yk__layer_fail(const yk_layer *l, const char *where, const char *fmt, ...) {
  char text[600];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  yk_graph_fail_at(where, l->k->sketch, YK_EINVAL, "%s '%s': %s", l->class->name, l->name, text);
}

/* ---- names ------------------------------------------------------------------------------------------------------------ */

/* A capital after a small letter, or before a small letter or a digit, begins a word. */
void yk__snake_case(const char *class, char *out, size_t n) {
  size_t at = 0;
  for (size_t i = 0; class[i] != '\0' && at + 2 < n; i++) {
    unsigned char c = (unsigned char)class[i], next = (unsigned char)class[i + 1];
    if (i > 0 && isupper(c) && (islower((unsigned char)class[i - 1]) || islower(next) || isdigit(next))) out[at++] = '_';
    out[at++] = (char)tolower(c);
  }
  out[at] = '\0';
}

const char *yk__auto_name(yk_keras *k, const char *class) {
  char prefix[96], name[112];
  uint32_t n = 0;
  yk__snake_case(class, prefix, sizeof prefix);
  yk__map_get(&k->names, prefix, &n);
  snprintf(name, sizeof name, "%s_%u", prefix, (unsigned)n + 1);
  const char *kept = yk__map_set(&k->names, prefix, n + 1) ? yk__bump_str(&k->mem, name) : NULL;
  if (kept == NULL) yk_graph_fail_at(YK_HERE, k->sketch, YK_ENOMEM, "no memory for the name of a layer of class %s", class);
  return kept;
}

/* Where its variables are: the name, or with a number behind it where that is another layer's. */
static char *scope_of(yk_keras *k, const char *name) {
  char text[300];
  uint32_t n;
  snprintf(text, sizeof text, "%.280s", name);
  for (unsigned i = 1; yk__map_get(&k->scopes, text, &n); i++) snprintf(text, sizeof text, "%.280s__%u", name, i);
  return yk__map_set(&k->scopes, text, 1) ? yk__bump_str(&k->mem, text) : NULL;
}

/* ---- layers ------------------------------------------------------------------------------------------------------------ */

static bool enlist(yk_layer *l, const char *where, yk_keras *k, const char *name) {
  if (yk_keras_status(k) != YK_OK) return false;
  l->k = k;
  l->where = where;
  l->name = name != NULL ? yk__bump_str(&k->mem, name) : yk__auto_name(k, l->class->name);
  l->scope = l->name != NULL ? scope_of(k, l->name) : NULL;
  if (l->scope == NULL) {
    yk_graph_fail_at(where, k->sketch, YK_ENOMEM, "no memory for a layer of class %s", l->class->name);
    return false;
  }
  l->next = k->layers;
  k->layers = l;
  return true;
}

bool yk__layer_init(yk_layer *l, const char *where, yk_keras *k, const yk_layer_class *class, const void *config) {
  const yk_plain_config *common = config;
  void *own = yk__bump(&k->mem, class->config_bytes);
  if (own == NULL) {
    yk_graph_fail_at(where, k->sketch, YK_ENOMEM, "no memory for a layer of class %s", class->name);
    return false;
  }
  if (config != NULL) memcpy(own, config, class->config_bytes);
  l->class = class;
  l->config = own;
  l->frozen = common != NULL && common->frozen;
  if (!enlist(l, where, k, common != NULL ? common->name : NULL) || !yk__config_settle(l)) return false;
  if (class->settle != NULL) class->settle(l);
  return yk_keras_status(k) == YK_OK;
}

yk_layer *yk__layer_new(const char *where, yk_keras *k, const yk_layer_class *class, const void *config) {
  if (yk_keras_status(k) != YK_OK) return NULL;
  yk_layer *l = yk__bump(&k->mem, sizeof *l);
  if (l == NULL) yk_graph_fail_at(where, k->sketch, YK_ENOMEM, "no memory for a layer of class %s", class->name);
  return l != NULL && yk__layer_init(l, where, k, class, config) ? l : NULL;
}

yk_layer *yk_layer_new_at(const char *where, yk_keras *k, const char *class, const void *config) {
  const yk_layer_class *c = yk__layer_class(class);
  if (c != NULL) return yk__layer_new(where, k, c, config);
  yk_graph_fail_at(where, k->sketch, YK_ENOTFOUND, "no layer class is called '%.80s'", class);
  return NULL;
}

const char *yk_layer_name(const yk_layer *l) { return l != NULL ? l->name : ""; }
const char *yk_layer_class_name(const yk_layer *l) { return l != NULL ? l->class->name : ""; }

/* ---- weights ------------------------------------------------------------------------------------------------------------ */

void yk__weight_add(yk_layer *l, const yk_weight *weight) {
  if (!YK_PUSH(l->weight, l->nweight, l->weight_cap, *weight))
    yk_graph_fail_at(l->where, l->k->sketch, YK_ENOMEM, "no memory for weights");
}

yk_weight *yk__weight_find(const yk_layer *l, const char *name) {
  for (uint32_t i = 0; i < l->nweight; i++)
    if (strcmp(l->weight[i].name, name) == 0) return &l->weight[i];
  return NULL;
}

/* Values are set by the engine, so the variable's own initializer never runs. */
yk_value yk__weight(const yk_layer_call *c, const char *name) {
  const yk_weight *w = yk__weight_find(c->layer, name);
  yk_variable_options o = { .not_trainable = w->not_trainable || c->layer->frozen, .regularizer = { .none = true } };
  yk_variable *v = yk_get_variable_at(c->where, c->g, name, (yk_dtype)w->desc.dtype, yk__desc_shape(&w->desc), YK_ZEROS, &o);
  return v != NULL ? yk_read(v) : (yk_value){ 0 };
}

yk_code yk__weight_make(yk_layer *l, yk_weight *w) {
  uint64_t seed = w->initializer.seed;
  if (seed == 0) seed = yk__hash(w->name, strlen(w->name), yk__hash(l->scope, strlen(l->scope), l->k->seed));
  if (w->value != NULL) return YK_OK;
  YK_TRY(yk__first_value(&w->initializer, &w->desc, seed, &w->value));
  const double one = 1;
  size_t bytes = yk_dtype_bytes((yk_dtype)w->desc.dtype);
  for (int64_t i = w->ones_from; i < w->ones_to; i++)
    yk__from_double((yk_dtype)w->desc.dtype, &one, (char *)yk_tensor_data(w->value) + (size_t)i * bytes, 1);
  return YK_OK;
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

/* What the config's activity regularizer, if it has one, gives for the outputs; who builds the loss divides by the batch. */
static void penalise_outputs(const yk_layer_call *c) {
  const yk_penalty *p = NULL;
  for (const yk_config_field *f = c->layer->class->fields; f->key != NULL; f++)
    if (f->kind == YK__F_PENALTY && strcmp(f->key, "activity_regularizer") == 0)
      p = (const yk_penalty *)(const void *)((const char *)c->layer->config + f->offset);
  if (p == NULL || c->g == c->layer->k->sketch) return;
  for (uint32_t i = 0; i < c->nout; i++) {
    yk_value sums[2] = { { 0 }, { 0 } };
    if (p->l1 != 0) sums[0] = Y(mul, Y(reduce_sum, Y(abs, c->out[i]), NULL), Y(scalar, YK_F32, p->l1));
    if (p->l2 != 0) sums[1] = Y(mul, Y(l2_loss, c->out[i]), Y(scalar, YK_F32, 2 * p->l2));
    for (int k = 0; k < 2; k++)
      if (sums[k].id != 0) yk_add_to_collection_at(c->where, c->g, YK__ACTIVITY_LOSSES, sums[k]);
  }
}

void yk__layer_call(yk_layer_call *c) {
  yk_scope_options share = { .reuse = YK_AUTO_REUSE, .no_name_scope = true };
  c->nout = 1;
  if (c->layer->class->keeps_mask && c->in_mask != NULL) c->out_mask[0] = c->in_mask[0];
  yk_name_scope_push_at(c->where, c->g, c->layer->name);
  if (c->layer->class == &yk__class_network || c->layer->ninner > 0) {     /* the layers inside have scopes of their own */
    c->layer->class->call(c);
  } else {
    yk_variable_scope_push_at(c->where, c->g, c->layer->scope, &share);
    c->layer->class->call(c);
    yk_variable_scope_pop_at(c->where, c->g);
    penalise_outputs(c);
  }
  yk_name_scope_pop_at(c->where, c->g);
}

static const yk_call_record *record_of(yk_sym s) {
  return s.layer != NULL && s.node < s.layer->ncall && s.index < s.layer->call[s.node].nout ? &s.layer->call[s.node] : NULL;
}

const yk_desc *yk_sym_desc(yk_sym s) {
  const yk_call_record *r = record_of(s);
  return r != NULL ? yk_value_desc(s.layer->k->sketch, r->out[s.index]) : NULL;
}

/* Inputs as values of the sketch; false after a sticky error. */
static bool take_inputs(yk_layer *l, const char *where, size_t n, const yk_sym *in, yk_value *value, yk_value *mask,
                        const yk_desc **desc) {
  const yk_layer_class *class = l->class;
  if (n < class->min_in || n > class->max_in || n > YK__MAX_PORTS) {
    yk__layer_fail(l, where, "called on %zu inputs; expected %s%u", n, class->min_in == class->max_in ? "" : "at least ",
                   (unsigned)class->min_in);
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    const yk_call_record *r = record_of(in[i]);
    if (r == NULL || in[i].layer->k != l->k) {
      yk__layer_fail(l, where, "input %zu is no symbol of this yk_keras", i);
      return false;
    }
    value[i] = r->out[in[i].index];
    mask[i] = r->mask[in[i].index];
    desc[i] = yk_value_desc(l->k->sketch, value[i]);
  }
  return true;
}

static bool keep(yk_layer *l, const yk_layer_call *c, const yk_sym *in) {
  yk_call_record r = { .where = c->where,
                       .nin = c->nin,
                       .nout = c->nout,
                       .in = c->nin > 0 ? yk__bump_copy(&l->k->mem, in, c->nin * sizeof *in) : NULL,
                       .out = yk__bump_copy(&l->k->mem, c->out, c->nout * sizeof *c->out),
                       .mask = yk__bump_copy(&l->k->mem, c->out_mask, c->nout * sizeof *c->out) };
  bool ok = (r.in != NULL || c->nin == 0) && r.out != NULL && r.mask != NULL && YK_PUSH(l->call, l->ncall, l->call_cap, r);
  if (!ok) yk_graph_fail_at(c->where, l->k->sketch, YK_ENOMEM, "no memory for a call of '%s'", l->name);
  return ok;
}

yk_sym yk_apply_n_at(const char *where, yk_layer *l, size_t n, const yk_sym *in) {
  yk_value value[YK__MAX_PORTS], mask[YK__MAX_PORTS];
  const yk_desc *desc[YK__MAX_PORTS];
  if (l == NULL || yk_keras_status(l->k) != YK_OK || !take_inputs(l, where, n, in, value, mask, desc)) return (yk_sym){ 0 };
  if (!l->built && l->class->build != NULL) l->class->build(l, where, (uint32_t)n, desc);
  l->built = true;
  if (yk_keras_status(l->k) != YK_OK) return (yk_sym){ 0 };
  yk_layer_call c = { .layer = l, .g = l->k->sketch, .where = where, .nin = (uint32_t)n, .in = value, .in_mask = mask };
  yk__layer_call(&c);
  if (yk_keras_status(l->k) != YK_OK || !keep(l, &c, in)) return (yk_sym){ 0 };
  return (yk_sym){ .layer = l, .node = l->ncall - 1 };
}

yk_sym yk_apply_at(const char *where, yk_layer *l, yk_sym in) { return yk_apply_n_at(where, l, 1, &in); }

yk_sym yk_sym_output(yk_sym s, uint32_t index) {
  s.index = index;
  return record_of(s) != NULL ? s : (yk_sym){ 0 };
}
