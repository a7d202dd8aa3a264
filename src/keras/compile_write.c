/*
 * compile_write.c - losses, metrics and optimizer as Keras writes them.
 *
 * Single outputs have a plain loss and list of metrics, several have them by name.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/compile_json.h"
#include "keras/json.h"

/* ---- losses and metrics ------------------------------------------------------------------------------------------------------ */

static void long_name(const yk_measure *m, char out[80]) {
  const char *last = strrchr(m->names, '|');
  snprintf(out, 80, "%s", last != NULL ? last + 1 : m->names);
}

/* Keras 3 does not find its own short names again. */
static json_t *loss_name(const yk_term *t, int major) {
  static const struct { const char *abbreviation, *name; } names[] = { { "mse", "mean_squared_error" }, { "mae", "mean_absolute_error" },
      { "mape", "mean_absolute_percentage_error" }, { "msle", "mean_squared_logarithmic_error" } };
  for (size_t i = 0; major >= 3 && i < sizeof names / sizeof *names; i++)
    if (t->measure == yk__measure(names[i].abbreviation, YK__LOSS)) return json_string(names[i].name);
  return json_string(t->name);
}

static json_t *loss(const yk_term *t, int major) {
  char class[80];
  if (!t->from_logits && t->label_smoothing == 0 && t->delta == 0) return loss_name(t, major);
  long_name(t->measure, class);
  json_t *config = json_pack("{s:s, s:s}", "reduction", "auto", "name", t->name);
  if (t->from_logits) json_object_set_new(config, "from_logits", json_true());
  if (t->label_smoothing != 0) json_object_set_new(config, "label_smoothing", json_real(t->label_smoothing));
  if (t->delta != 0) json_object_set_new(config, "delta", json_real(t->delta));
  return json_pack("{s:s, s:o}", "class_name", class, "config", config);
}

static json_t *losses(const yk_network *n, const yk_compiled *c) {
  if (n->nout == 1) return loss(&c->term[0], n->major);
  json_t *o = json_object();
  for (uint32_t i = 0; i < c->nlosses; i++) json_object_set_new(o, n->out[c->term[i].output].layer->name, loss(&c->term[i], n->major));
  return o;
}

static json_t *loss_weights(const yk_network *n, const yk_compiled *c) {
  bool usual = true;
  for (uint32_t i = 0; i < c->nlosses; i++) usual = usual && c->term[i].weight == 1;
  if (usual) return json_null();
  if (n->nout == 1) return json_pack("[f]", c->term[0].weight);
  json_t *o = json_object();
  for (uint32_t i = 0; i < c->nlosses; i++) json_object_set_new(o, n->out[c->term[i].output].layer->name, json_real(c->term[i].weight));
  return o;
}

/* By a name alone: the one that it was asked for by, if Keras knows it. */
static json_t *metric(const yk_term *t) {
  const char *name = t->measure->names;
  if (yk__named_in(name, t->label) || yk__named_in("accuracy|acc|crossentropy|ce", t->label)) return json_string(t->label);
  return json_pack("s%", name, strcspn(name, "|"));
}

static json_t *metrics(const yk_network *n, const yk_compiled *c, bool weighted) {
  json_t *all = json_object(), *only = NULL;
  for (uint32_t i = 0; i < n->nout; i++) {
    json_t *list = json_array();
    for (uint32_t k = c->nlosses; k < c->nterms; k++)
      if (c->term[k].output == i && c->term[k].weighted == weighted) json_array_append_new(list, metric(&c->term[k]));
    if (n->nout == 1) only = list;
    else json_object_set_new(all, n->out[i].layer->name, list);
  }
  if (only == NULL) return all;
  json_decref(all);
  if (json_array_size(only) > 0) return only;
  json_decref(only);
  return json_null();
}

/* ---- the optimizer ------------------------------------------------------------------------------------------------------------- */

static const char *class_of(const yk_optimizer *o) {
  switch (o->kind) {
    case YK_OPT_SGD:
    case YK_OPT_MOMENTUM: return "SGD";
    case YK_OPT_ADAM: return o->nesterov ? NULL : "Adam";
    case YK_OPT_ADAMW: return "AdamW";
    case YK_OPT_RMSPROP: return "RMSprop";
    case YK_OPT_ADAGRAD: return "Adagrad";
    case YK_OPT_ADADELTA: return "Adadelta";
    default: return NULL;
  }
}

static json_t *or_null(double x) { return x > 0 ? json_real(x) : json_null(); }

static void put_numbers(json_t *o, const yk_optimizer *x) {
  static const struct { uint32_t kinds; const char *key; size_t offset; } numbers[] = {
#define NUMBER(kinds, key, member) { kinds, key, offsetof(yk_optimizer, member) }
    NUMBER(1u << YK_OPT_SGD | 1u << YK_OPT_MOMENTUM | 1u << YK_OPT_RMSPROP, "momentum", momentum),
    NUMBER(1u << YK_OPT_ADAM | 1u << YK_OPT_ADAMW, "beta_1", beta1), NUMBER(1u << YK_OPT_ADAM | 1u << YK_OPT_ADAMW, "beta_2", beta2),
    NUMBER(1u << YK_OPT_RMSPROP | 1u << YK_OPT_ADADELTA, "rho", rho), NUMBER(1u << YK_OPT_ADAMW, "weight_decay", weight_decay),
    NUMBER(1u << YK_OPT_ADAGRAD, "initial_accumulator_value", initial_accumulator),
    NUMBER(1u << YK_OPT_ADAM | 1u << YK_OPT_ADAMW | 1u << YK_OPT_RMSPROP | 1u << YK_OPT_ADAGRAD | 1u << YK_OPT_ADADELTA, "epsilon", epsilon),
#undef NUMBER
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].kinds >> x->kind & 1u)
      json_object_set_new(o, numbers[i].key, json_real(*(const double *)(const void *)((const char *)x + numbers[i].offset)));
  if (x->kind <= YK_OPT_MOMENTUM) json_object_set_new(o, "nesterov", json_boolean(x->nesterov));
  if (x->kind == YK_OPT_RMSPROP) json_object_set_new(o, "centered", json_boolean(x->centered));
  if (x->kind == YK_OPT_ADAM || x->kind == YK_OPT_ADAMW) json_object_set_new(o, "amsgrad", json_false());
}

static json_t *optimizer(const yk_network *n, const yk_compiled *c) {
  const char *class = class_of(&c->optimizer);
  char name[40];
  if (class == NULL) return NULL;
  snprintf(name, sizeof name, "%s", class);
  if (n->major >= 3) yk__snake_case(class, name, sizeof name);
  json_t *o = json_pack("{s:s, s:f}", "name", name, "learning_rate", c->rate);
  put_numbers(o, &c->optimizer);
  if (n->major < 3) json_object_set_new(o, "decay", json_real(c->decay));
  if (n->major >= 3 || c->clip_norm > 0) json_object_set_new(o, "clipnorm", or_null(c->clip_norm));
  if (n->major >= 3 || c->clip_value > 0) json_object_set_new(o, "clipvalue", or_null(c->clip_value));
  if (n->major >= 3 || c->global_clip_norm > 0) json_object_set_new(o, "global_clipnorm", or_null(c->global_clip_norm));
  if (c->optimizer.kind == YK_OPT_ADAMW && n->major < 3) {   /* one of its newer ones, of another kind than the others */
    json_object_set_new(o, "is_legacy_optimizer", json_false());
    json_object_del(o, "decay");
    class = "Custom>AdamW";
  }
  return json_pack("{s:s, s:o}", "class_name", class, "config", o);
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------------- */

static bool can_be_written(const yk_compiled *c) {
  if (c == NULL || c->optimizer.learning_rate.id != 0 || class_of(&c->optimizer) == NULL) return false;
  for (uint32_t i = 0; i < c->nterms; i++)
    if (c->term[i].measure == NULL) return false;
  return true;
}

yk_code yk__compile_write(const yk_network *n, char **out) {
  const yk_compiled *c = n->compiled;
  *out = NULL;
  if (!can_be_written(c)) return YK_OK;
  json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:n, s:o}", "loss", losses(n, c), "metrics", metrics(n, c, false), "weighted_metrics",
                        metrics(n, c, true), "loss_weights", loss_weights(n, c), "sample_weight_mode", "optimizer_config", optimizer(n, c));
  size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(17), bytes = o != NULL ? json_dumpb(o, NULL, 0, flags) : 0;
  char *text = bytes > 0 ? yk__calloc(bytes + 1, 1) : NULL;
  if (text != NULL) json_dumpb(o, text, bytes, flags);
  json_decref(o);
  if (text == NULL) return YK_ENOMEM;
  *out = text;
  return YK_OK;
}
