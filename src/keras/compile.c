/*
 * compile.c - losses, metrics and an optimizer, checked against a network's outputs and kept with it.
 *
 * Nothing is built here: which step is needed shows when examples come.
 */
#include "keras/compile.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/engine.h"
#include "keras/state.h"
#include "tensor/desc.h"

typedef struct maker {
  yk_network *n;
  const yk_compile_options *o;
  yk_compiled *c;
  uint32_t cap;                    /* of terms */
} maker;

/* ---- outputs ------------------------------------------------------------------------------------------------------------- */

static const char *output_name(const yk_network *n, uint32_t i) { return n->out[i].layer->name; }

static yk_code no_such_output(const yk_network *n, const char *name) {
  yk_str have = { 0 };
  char *text = NULL;
  for (uint32_t i = 0; i < n->nout; i++) yk__str_add(&have, "%s'%s'", i ? ", " : "", output_name(n, i));
  YK_TRY(yk__str_take(&have, &text));
  yk_code rc = YK_FAIL(EINVAL, "network '%s' has no output '%.80s'; it has %s", n->self.name, name, text);
  yk__free(text);
  return rc;
}

static yk_code find_output(const yk_network *n, const char *name, uint32_t *out) {
  for (uint32_t i = 0; i < n->nout; i++)
    if (strcmp(output_name(n, i), name) == 0) return *out = i, YK_OK;
  return no_such_output(n, name);
}

/* ---- terms ------------------------------------------------------------------------------------------------------------------ */

/* What an output's target has to be, now that a term wants it. */
static yk_code want_target(const maker *m, const yk_term *t) {
  yk_target *y = &m->c->target[t->output];
  bool sparse = t->measure != NULL && t->measure->sparse;
  const yk_desc *d = yk_sym_desc(m->n->out[t->output]);
  if (d->dtype != YK_F32 || d->rank < 2)
    return YK_FAIL(EINVAL, "output '%s' of network '%s' cannot be compared with targets: it is no f32 [N, ..., C]", output_name(m->n, t->output),
                   m->n->self.name);
  if (y->wanted && y->sparse != sparse)
    return YK_FAIL(EINVAL, "'%s' of output '%s' needs %s, others of its losses and metrics do not", t->name, output_name(m->n, t->output),
                   sparse ? "class numbers as targets" : "targets of the output's shape");
  *y = (yk_target){ .wanted = true, .sparse = sparse, .desc = *d };
  if (!sparse) return YK_OK;
  y->desc.dtype = YK_I32;
  y->desc.rank--;
  return YK_OK;
}

static yk_code add_term(const maker *m, const yk_term *t) {
  uint32_t i = m->c->nterms;
  if (i == m->cap) return YK_FAIL(EINTERNAL, "more losses and metrics than were counted");
  m->c->term[i] = *t;
  m->c->term[i].name = yk__bump_str(&m->c->mem, t->name);
  if (m->c->term[i].name == NULL) return YK_ENOMEM;
  YK_TRY(want_target(m, &m->c->term[i]));
  m->c->nterms++;
  return YK_OK;
}

static yk_code unknown(const char *what, const char *name, yk_measure_use use) {
  yk_str have = { 0 };
  char *text = NULL;
  const yk_measure *x;
  for (size_t i = 0; (x = yk__measure_at(i)) != NULL; i++)
    if (x->use == use) yk__str_add(&have, "%s%.*s", i ? ", " : "", (int)strcspn(x->names, "|"), x->names);
  YK_TRY(yk__str_take(&have, &text));
  const char *besides = use == YK__METRIC ? "all losses, accuracy, crossentropy, " : "";
  yk_code rc = YK_FAIL(EINVAL, "no %s is called '%.80s'; there are %s%s", what, name, besides, text[0] == ',' ? text + 2 : text);
  yk__free(text);
  return rc;
}

static yk_code add_loss(const maker *m, const yk_loss *l, uint32_t output) {
  yk_term t = { .name = l->name != NULL ? l->name : "loss", .output = output, .fn = l->fn, .arg = l->arg, .from_logits = l->from_logits,
                .label_smoothing = l->label_smoothing, .delta = l->delta, .weighted = true };
  t.weight = l->weight != 0 || signbit(l->weight) ? l->weight : 1;
  if (l->name == NULL && l->fn == NULL) return YK_OK;
  if (l->name != NULL && (t.measure = yk__measure(l->name, YK__LOSS)) == NULL) return unknown("loss", l->name, YK__LOSS);
  if (!(l->label_smoothing >= 0 && l->label_smoothing < 1) || !(l->delta >= 0))
    return YK_FAIL(EINVAL, "loss '%s': label_smoothing %g, delta %g; expected 0 to 1, and 0 or more", t.name, l->label_smoothing, l->delta);
  return add_term(m, &t);
}

/* Which loss is each output's, in the order of outputs whatever that of the list. */
static yk_code add_losses(const maker *m) {
  const yk_compile_options *o = m->o;
  const yk_loss *own[YK__MAX_PORTS] = { NULL };
  bool for_all = o->nlosses == 1 && o->losses[0].output == NULL;
  for (size_t i = 0; i < o->nlosses; i++) {
    uint32_t output = (uint32_t)i;
    if (o->losses[i].output != NULL) YK_TRY(find_output(m->n, o->losses[i].output, &output));
    else if (i >= m->n->nout)
      return YK_FAIL(EINVAL, "%zu losses for the %u outputs of network '%s'", o->nlosses, (unsigned)m->n->nout, m->n->self.name);
    if (own[output] != NULL) return YK_FAIL(EINVAL, "output '%s' has two losses", output_name(m->n, output));
    own[output] = &o->losses[i];
  }
  for (uint32_t i = 0; i < m->n->nout; i++)
    if (for_all || own[i] != NULL) YK_TRY(add_loss(m, for_all ? &o->losses[0] : own[i], i));
  m->c->nlosses = m->c->nterms;
  if (m->c->nlosses > 0) return YK_OK;
  return YK_FAIL(EINVAL, "network '%s' is compiled without a loss, so there is nothing to train", m->n->self.name);
}

/* ---- metrics ------------------------------------------------------------------------------------------------------------------ */

static const yk_term *loss_of(const maker *m, uint32_t output) {
  for (uint32_t i = 0; i < m->c->nlosses; i++)
    if (m->c->term[i].output == output) return &m->c->term[i];
  return NULL;
}

/* "accuracy" and "crossentropy" are what fits the output and its loss. */
static const char *fitting(const maker *m, const char *name, uint32_t output) {
  bool accuracy = yk__named_in("accuracy|acc", name);
  if (!accuracy && !yk__named_in("crossentropy|ce", name)) return name;
  const yk_term *loss = loss_of(m, output);
  const yk_desc *d = yk_sym_desc(m->n->out[output]);
  if (d->dim[d->rank - 1] == 1 || (loss != NULL && loss->measure == yk__measure("binary_crossentropy", YK__LOSS)))
    return accuracy ? "binary_accuracy" : "binary_crossentropy";
  if (loss != NULL && loss->measure != NULL && loss->measure->sparse)
    return accuracy ? "sparse_categorical_accuracy" : "sparse_categorical_crossentropy";
  return accuracy ? "categorical_accuracy" : "categorical_crossentropy";
}

/* A name that no other term of the output's has yet: "weighted_", the output's, a number behind. */
static const char *name_in_logs(const maker *m, const yk_metric *x, uint32_t output) {
  const char *own = x->label != NULL ? x->label : x->name != NULL ? x->name : "metric", *weighted = x->weighted ? "weighted_" : "";
  const char *of = m->n->nout > 1 ? output_name(m->n, output) : "", *join = m->n->nout > 1 ? "_" : "";
  size_t room = strlen(own) + strlen(of) + 32;
  char *name = yk__bump(&m->c->mem, room);
  if (name == NULL) return NULL;
  snprintf(name, room, "%s%s%s%s", of, join, weighted, own);
  size_t n = strlen(name);
  for (int again = 1; ; again++) {
    bool free = true;
    for (uint32_t i = m->c->nlosses; i < m->c->nterms; i++) free = free && strcmp(m->c->term[i].name, name) != 0;
    if (free) return name;
    snprintf(name + n, room - n, "_%d", again);
  }
}

static yk_code add_metric(const maker *m, const yk_metric *x, uint32_t output) {
  yk_term t = { .output = output, .fn = x->fn, .arg = x->arg, .k = x->k, .threshold = x->threshold, .weighted = x->weighted };
  const yk_term *loss = loss_of(m, output);
  if (x->name != NULL && (t.measure = yk__measure(fitting(m, x->name, output), YK__METRIC)) == NULL)
    return unknown("metric", x->name, YK__METRIC);
  if (x->name == NULL && x->fn == NULL) return YK_FAIL(EINVAL, "a metric without name and function");
  if (x->k < 0 || x->threshold < 0)
    return YK_FAIL(EINVAL, "metric '%s': k %d, threshold %g; expected 0 or more", x->name ? x->name : "", x->k, x->threshold);
  if (t.measure != NULL && loss != NULL && loss->measure == t.measure) {
    t.from_logits = loss->from_logits;
    t.label_smoothing = loss->label_smoothing;
    t.delta = loss->delta;
  }
  t.name = name_in_logs(m, x, output);
  t.label = yk__bump_str(&m->c->mem, x->label != NULL ? x->label : x->name != NULL ? x->name : "metric");
  return t.name == NULL || t.label == NULL ? YK_ENOMEM : add_term(m, &t);
}

/* Metrics of all outputs stand behind each other output by output. */
static yk_code add_metrics(const maker *m) {
  for (size_t k = 0; k < m->o->nmetrics; k++) {
    uint32_t output;
    if (m->o->metrics[k].output != NULL) YK_TRY(find_output(m->n, m->o->metrics[k].output, &output));
  }
  for (uint32_t i = 0; i < m->n->nout; i++)
    for (size_t k = 0; k < m->o->nmetrics; k++) {
      const yk_metric *x = &m->o->metrics[k];
      if (x->output == NULL || strcmp(x->output, output_name(m->n, i)) == 0) YK_TRY(add_metric(m, x, i));
    }
  return YK_OK;
}

/* ---- names ------------------------------------------------------------------------------------------------------------------------ */

static yk_code add_names(const maker *m) {
  yk_compiled *c = m->c;
  c->name = yk__bump(&c->mem, (c->nterms + 1u) * sizeof *c->name);
  if (c->name == NULL) return YK_ENOMEM;
  c->name[c->nnames++] = "loss";
  for (uint32_t i = 0; i < c->nterms; i++) {
    const char *name = c->term[i].name;
    if (i < c->nlosses) {
      if (m->n->nout == 1) continue;
      const char *of = output_name(m->n, c->term[i].output);
      char *both = yk__bump(&c->mem, strlen(of) + sizeof "_loss");
      if (both == NULL) return YK_ENOMEM;
      snprintf(both, strlen(of) + sizeof "_loss", "%s_loss", of);
      name = both;
    }
    c->name[c->nnames++] = name;
  }
  return YK_OK;
}

/* ---- compile ------------------------------------------------------------------------------------------------------------------------ */

static yk_code check(const yk_compile_options *o) {
  if (!(o->decay >= 0) || !(o->clip_norm >= 0) || !(o->clip_value >= 0) || !(o->global_clip_norm >= 0))
    return YK_FAIL(EINVAL, "decay and clipping are 0 or more; got %g, %g, %g, %g", o->decay, o->clip_norm, o->clip_value, o->global_clip_norm);
  if (o->precision != YK_NONE && o->precision != YK_F32 && o->precision != YK_BF16)
    return YK_FAIL(EUNSUPPORTED, "networks are trained in f32 or bf16, not in %s", yk_dtype_name(o->precision));
  if ((o->nlosses > 0 && o->losses == NULL) || (o->nmetrics > 0 && o->metrics == NULL))
    return YK_FAIL(EINVAL, "%zu losses and %zu metrics, but a NULL list", o->nlosses, o->nmetrics);
  return YK_OK;
}

static yk_code make(const maker *m) {
  yk_compiled *c = m->c;
  char scope[200];
  snprintf(scope, sizeof scope, "%.150s/training_%u", m->n->self.scope, (unsigned)++m->n->compilations);
  c->scope = yk__bump_str(&c->mem, scope);
  c->term = yk__bump(&c->mem, (m->cap + 1u) * sizeof *c->term);
  if (c->term == NULL || c->scope == NULL) return YK_ENOMEM;
  c->optimizer = m->o->optimizer != NULL ? *m->o->optimizer : YK_KERAS_RMSPROP(1e-3);
  c->optimizer.scope = c->scope;
  c->rate = c->optimizer.rate;
  c->decay = m->o->decay;
  c->clip_norm = m->o->clip_norm;
  c->clip_value = m->o->clip_value;
  c->global_clip_norm = m->o->global_clip_norm;
  c->precision = m->o->precision == YK_BF16 ? YK_BF16 : YK_NONE;
  YK_TRY(add_losses(m));
  YK_TRY(add_metrics(m));
  return add_names(m);
}

void yk__compiled_free(yk_compiled *c) {
  if (c == NULL) return;
  yk__steps_free(c);
  yk__state_free(c);
  yk__bump_free(&c->mem);
  yk__free(c);
}

yk_code yk_network_compile(yk_network *n, const yk_compile_options *options) {
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  if (n == NULL || options == NULL || options->size < sizeof options->size || options->size > 4096)
    return YK_FAIL(EINVAL, "yk_network_compile: NULL argument, or options that do not start from YK_COMPILE_OPTIONS_INIT");
  memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  YK_TRY(yk_keras_status(n->self.k));
  YK_TRY(check(&o));
  size_t cap = (o.nlosses + o.nmetrics + 1) * n->nout;
  if (cap > 10000) return YK_FAIL(EINVAL, "%zu losses and %zu metrics for %u outputs", o.nlosses, o.nmetrics, (unsigned)n->nout);
  maker m = { .n = n, .o = &o, .c = yk__calloc(1, sizeof *m.c), .cap = (uint32_t)cap };
  if (m.c == NULL) return YK_ENOMEM;
  yk_code rc = make(&m);
  if (rc != YK_OK) {
    yk__compiled_free(m.c);
    return rc;
  }
  yk__compiled_free(n->compiled);
  n->compiled = m.c;
  return YK_OK;
}

const char *yk_network_metric_name(const yk_network *n, size_t i) {
  return n != NULL && n->compiled != NULL && i < n->compiled->nnames ? n->compiled->name[i] : NULL;
}

/* ---- the rate ------------------------------------------------------------------------------------------------------------------------ */

static yk_code check_rate(const yk_network *n) {
  if (n == NULL) return YK_FAIL(EINVAL, "no network");
  if (n->compiled == NULL) return YK_FAIL(EINVAL, "network '%s' has no learning rate: it is not compiled", n->self.name);
  if (n->compiled->optimizer.learning_rate.id != 0)
    return YK_FAIL(EINVAL, "the learning rate of network '%s' is a value of the graph, and is what that says", n->self.name);
  return YK_OK;
}

yk_code yk_network_learning_rate(yk_network *n, double *out) {
  YK_TRY(check_rate(n));
  if (out == NULL) return YK_FAIL(EINVAL, "yk_network_learning_rate: NULL argument");
  *out = n->compiled->rate;
  return YK_OK;
}

yk_code yk_network_set_learning_rate(yk_network *n, double rate) {
  YK_TRY(check_rate(n));
  if (!(rate >= 0 && rate < 1e30)) return YK_FAIL(EINVAL, "a learning rate of %g; expected 0 or more", rate);
  yk_compiled *c = n->compiled;
  if (c->rate_variable != NULL) {
    const float x = (float)rate;
    yk_tensor *t = NULL;
    YK_TRY(yk_tensor_from(YK_F32, YK_SCALAR, &x, &t));
    yk_code rc = yk_variable_set(n->self.k->session, c->rate_variable, t);
    yk_tensor_free(t);
    YK_TRY(rc);
  }
  c->rate = rate;
  return YK_OK;
}
