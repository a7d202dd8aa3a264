/*
 * compile_json.c - losses, metrics and optimizer out of Keras's training config.
 *
 * What Keras has and Yoke does not is refused by name; the network can then still predict, and be compiled by hand.
 */
#include "keras/compile_json.h"
#include <string.h>
#include "base/error.h"
#include "keras/engine.h"
#include "keras/json.h"

enum { MOST = 256 };

typedef struct reader {
  yk_network *n;
  const char *what;
  yk_compile_options o;
  yk_optimizer optimizer;
  yk_loss loss[YK__MAX_PORTS]; size_t nlosses;
  yk_metric metric[MOST]; size_t nmetrics;
} reader;

static yk_code refuse(const reader *r, const char *key, const json_t *v) {
  char text[96] = "";
  size_t n = json_dumpb(v, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_COMPACT);
  text[n < sizeof text ? n : sizeof text - 1] = '\0';
  return YK_FAIL(EUNSUPPORTED, "%s: training_config: %s is %s, which is not known here", r->what, key, text);
}

static const char *text_in(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
/* A function by name: a text, or as an archive has it. */
static const char *function_in(const json_t *v) {
  const char *class = text_in(v, "class_name");
  if (json_is_string(v)) return json_string_value(v);
  return class != NULL && strcmp(class, "function") == 0 ? text_in(v, "config") : NULL;
}
static double number_in(const json_t *o, const char *key, double otherwise) {
  const json_t *v = json_object_get(o, key);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

/* "Custom>Adam" is Adam. */
static const char *class_of(const json_t *o) {
  const char *class = text_in(o, "class_name"), *mark = class != NULL ? strchr(class, '>') : NULL;
  return mark != NULL ? mark + 1 : class;
}

/* ---- losses ------------------------------------------------------------------------------------------------------------------ */

/* A name, or an object of a class; NULL out: this output is not trained. */
static yk_code read_loss(reader *r, uint32_t output, const json_t *v) {
  yk_loss *l = &r->loss[r->nlosses];
  const json_t *c = json_object_get(v, "config");
  if (v == NULL || json_is_null(v)) return YK_OK;
  const char *name = function_in(v) != NULL ? function_in(v) : class_of(v);
  if (name != NULL && strcmp(name, "LossFunctionWrapper") == 0) name = function_in(json_object_get(c, "fn"));
  if (name == NULL || yk__measure(name, YK__LOSS) == NULL || r->nlosses == YK__MAX_PORTS) return refuse(r, "loss", v);
  *l = (yk_loss){ .output = r->n->out[output].layer->name, .name = name, .from_logits = json_is_true(json_object_get(c, "from_logits")),
                  .label_smoothing = number_in(c, "label_smoothing", 0), .delta = number_in(c, "delta", 0) };
  const char *own = text_in(c, "name");                    /* what logs and files call it, if we know that name too */
  if (own != NULL && yk__measure(own, YK__LOSS) == yk__measure(name, YK__LOSS)) l->name = own;
  r->nlosses++;
  return YK_OK;
}

static yk_code read_losses(reader *r, const json_t *v) {
  for (uint32_t i = 0; i < r->n->nout; i++) {
    const json_t *own = v;
    if (json_is_array(v)) own = json_array_get(v, json_array_size(v) == 1 ? 0 : i);
    else if (json_is_object(v) && class_of(v) == NULL) own = json_object_get(v, r->n->out[i].layer->name);
    YK_TRY(read_loss(r, i, own));
  }
  return YK_OK;
}

static yk_code read_weights(reader *r, const json_t *v) {
  for (size_t i = 0; i < r->nlosses; i++) {
    const json_t *own = json_is_array(v) ? json_array_get(v, i) : json_object_get(v, r->loss[i].output);
    if (json_is_number(own)) r->loss[i].weight = json_number_value(own) == 0 ? YK_EXACTLY_ZERO : json_number_value(own);
  }
  return YK_OK;
}

/* ---- metrics ------------------------------------------------------------------------------------------------------------------- */

static yk_code read_metric(reader *r, uint32_t output, const json_t *v, bool weighted) {
  const json_t *c = json_object_get(v, "config");
  const char *out = r->n->out[output].layer->name, *name = function_in(v) != NULL ? function_in(v) : class_of(v), *label = text_in(c, "name");
  if (json_is_null(v)) return YK_OK;
  if (name != NULL && (strcmp(name, "MeanMetricWrapper") == 0 || strcmp(name, "SumOverBatchSizeMetricWrapper") == 0))
    name = function_in(json_object_get(c, "fn"));
  bool plain = name != NULL && yk__named_in("accuracy|acc|crossentropy|ce", name);
  if (name == NULL || (!plain && yk__measure(name, YK__METRIC) == NULL) || r->nmetrics == MOST) return refuse(r, "a metric", v);
  size_t n = strlen(out);
  if (label != NULL && strncmp(label, out, n) == 0 && label[n] == '_' && r->n->nout > 1) label += n + 1;
  if (label != NULL && weighted && strncmp(label, "weighted_", 9) == 0) label += 9;
  r->metric[r->nmetrics++] = (yk_metric){ .output = out, .name = name, .label = label, .weighted = weighted, .k = (int32_t)number_in(c, "k", 0),
                                          .threshold = number_in(c, "threshold", 0) };
  return YK_OK;
}

static yk_code read_list(reader *r, uint32_t output, const json_t *v, bool weighted) {
  if (!json_is_array(v)) return v == NULL ? YK_OK : read_metric(r, output, v, weighted);
  for (size_t i = 0; i < json_array_size(v); i++) {
    const json_t *own = json_array_get(v, i);
    YK_TRY(json_is_array(own) ? read_list(r, output, own, weighted) : read_metric(r, output, own, weighted));
  }
  return YK_OK;
}

/* By output, or a list: of lists, one for each output, or of metrics that all of them have. */
static yk_code read_metrics(reader *r, const json_t *v, bool weighted) {
  bool lists = json_array_size(v) == r->n->nout && json_array_size(v) > 0;
  for (size_t i = 0; i < json_array_size(v); i++) lists = lists && json_is_array(json_array_get(v, i));
  for (uint32_t i = 0; i < r->n->nout; i++) {
    if (json_is_object(v)) YK_TRY(read_list(r, i, json_object_get(v, r->n->out[i].layer->name), weighted));
    else if (v != NULL && !json_is_null(v)) YK_TRY(read_list(r, i, lists ? json_array_get(v, i) : v, weighted));
  }
  return YK_OK;
}

/* ---- the optimizer ----------------------------------------------------------------------------------------------------------------- */

/* Settings whose other values mean something that is not done here. */
static yk_code check_settings(const reader *r, const json_t *c) {
  static const char *const off[] = { "amsgrad", "use_ema", "loss_scale_factor", "gradient_accumulation_steps" };
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
    const json_t *v = json_object_get(c, off[i]);
    if (v != NULL && !json_is_null(v) && !json_is_false(v)) return refuse(r, off[i], v);
  }
  return json_is_object(json_object_get(c, "learning_rate")) ? refuse(r, "learning_rate", json_object_get(c, "learning_rate")) : YK_OK;
}

static yk_code read_optimizer(reader *r, const json_t *v) {
  const json_t *c = json_object_get(v, "config");
  const char *class = class_of(v);
  yk_optimizer *o = &r->optimizer;
  if (class == NULL || !json_is_object(c)) return refuse(r, "optimizer_config", v);
  YK_TRY(check_settings(r, c));
  double rate = number_in(c, "learning_rate", number_in(c, "lr", 0.01)), momentum = number_in(c, "momentum", 0);
  double decay = number_in(c, "weight_decay", 0);
  bool legacy = json_object_get(c, "is_legacy_optimizer") == NULL && r->n->major < 3;
  if (strcmp(class, "SGD") == 0) *o = momentum > 0 ? YK_KERAS_SGD(rate, momentum) : YK_SGD(rate);
  else if (strcmp(class, "Adam") == 0) *o = YK_KERAS_ADAM(rate);
  else if (strcmp(class, "AdamW") == 0) *o = YK_ADAMW(rate, decay);
  else if (strcmp(class, "RMSprop") == 0) *o = YK_KERAS_RMSPROP(rate);
  else if (strcmp(class, "Adagrad") == 0) *o = YK_KERAS_ADAGRAD(rate);
  else if (strcmp(class, "Adadelta") == 0) *o = YK_KERAS_ADADELTA(rate);
  else return refuse(r, "optimizer_config", v);
  if (decay > 0 && o->kind != YK_OPT_ADAMW) return refuse(r, "weight_decay", json_object_get(c, "weight_decay"));
  o->momentum = momentum;
  o->nesterov = json_is_true(json_object_get(c, "nesterov"));
  o->centered = json_is_true(json_object_get(c, "centered"));
  if (o->kind == YK_OPT_RMSPROP) o->keras = legacy && momentum == 0 && !o->centered;   /* else epsilon is under the root */
  o->beta1 = number_in(c, "beta_1", o->beta1);
  o->beta2 = number_in(c, "beta_2", o->beta2);
  o->rho = number_in(c, "rho", o->rho);
  o->epsilon = number_in(c, "epsilon", 1e-7);
  if (o->kind == YK_OPT_ADAGRAD) o->initial_accumulator = number_in(c, "initial_accumulator_value", 0);
  r->o.decay = number_in(c, "decay", 0);
  r->o.clip_norm = number_in(c, "clipnorm", 0);
  r->o.clip_value = number_in(c, "clipvalue", 0);
  r->o.global_clip_norm = number_in(c, "global_clipnorm", 0);
  r->o.optimizer = o;
  return YK_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------------ */

static yk_code read(reader *r, const json_t *root) {
  const json_t *optimizer = json_object_get(root, "optimizer_config");
  YK_TRY(read_optimizer(r, optimizer != NULL ? optimizer : json_object_get(root, "optimizer")));
  YK_TRY(read_losses(r, json_object_get(root, "loss")));
  YK_TRY(read_weights(r, json_object_get(root, "loss_weights")));
  YK_TRY(read_metrics(r, json_object_get(root, "metrics"), false));
  YK_TRY(read_metrics(r, json_object_get(root, "weighted_metrics"), true));
  r->o.losses = r->loss;
  r->o.nlosses = r->nlosses;
  r->o.metrics = r->metric;
  r->o.nmetrics = r->nmetrics;
  return yk_network_compile(r->n, &r->o);
}

yk_code yk__compile_read(yk_network *n, const char *what, const char *text) {
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) return YK_FAIL(ECORRUPT, "%s: training_config, line %d, column %d: %s", what, error.line, error.column, error.text);
  reader *r = yk__calloc(1, sizeof *r);
  yk_code rc = YK_ENOMEM;
  if (r != NULL) {
    *r = (reader){ .n = n, .what = what, .o = YK_COMPILE_OPTIONS_INIT };
    rc = read(r, root);
  }
  yk__free(r);
  json_decref(root);
  return rc;
}
