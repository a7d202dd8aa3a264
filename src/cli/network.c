/*
 * network.c - a Keras model as the operand of a command: loaded or made, placed, compiled.
 *
 * What the file says of its training holds where the command line says nothing.
 */
#include "cli/network.h"
#include <string.h>
#include "base/error.h"
#include "keras/compile.h"

bool yk__is_model_file(const char *name) {
  static const char *const endings[] = { ".h5", ".hdf5", ".keras" };
  size_t n = strlen(name);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t e = strlen(endings[i]);
    if (n > e && strcmp(name + n - e, endings[i]) == 0) return true;
  }
  return false;
}

static int place(const yk_cli *c, yk_model_job *m) {
  yk_network_options o = YK_NETWORK_OPTIONS_INIT;
  yk_strategy s = YK_STRATEGY_AUTO;
  int status = yk__choose(c, &m->devices);
  if (status != 0) return status;
  for (; c->strategy != NULL; s++) {
    if (yk_strategy_name(s) == NULL)
      return yk__die(YK__EXIT_USAGE, "--strategy '%s': expected auto, home, sharded or mirrored", yk__shown(c->strategy));
    if (strcmp(yk_strategy_name(s), c->strategy) == 0) break;
  }
  o.ndevices = m->devices.n;
  o.devices = m->devices.at;
  o.session = &m->devices.session;
  o.strategy = s;
  yk_code rc = yk_network_place(m->n, &o);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

bool yk__is_keras(const char *name) { return yk__is_model_file(name) || yk__is_builtin(name); }

static int load(const yk_cli *c, yk_model_job *m) {
  if (yk_model_find(c->model) != NULL)
    return yk__die(YK__EXIT_USAGE, "%s is not made of Keras's layers; train, evaluate, explain, plan, bench and verify take it", c->model);
  yk_code rc = yk_network_load(m->k, c->model, &m->n);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

int yk__model_open(const yk_cli *c, yk_model_use use, yk_model_job *m) {
  yk_code rc = yk_keras_new((uint64_t)yk__job_seed(c), &m->k);
  if (rc != YK_OK) return yk__die_code(rc);
  int status = yk__is_builtin(c->model) ? yk__builtin_open(c, use == YK__MODEL_USE, m->k, &m->n) : load(c, m);
  return status == 0 && use != YK__MODEL_LOOK ? place(c, m) : status;
}

void yk__model_close(yk_model_job *m) { yk_keras_free(m->k); }

/* ---- compile ------------------------------------------------------------------------------------------------------------- */

enum { MOST = 64, TEXT = 4096 };

typedef struct lists {
  char losses[TEXT], metrics[TEXT];
  yk_loss loss[MOST];     size_t nlosses;
  yk_metric metric[MOST]; size_t nmetrics;
} lists;

/* "name" or "output=name", up to the next comma; text is cut up. */
static char *next_item(char **text, char **output) {
  char *item = *text, *end = item + strcspn(item, ",");
  *text = *end != '\0' ? end + 1 : end;
  *end = '\0';
  char *mark = strchr(item, '=');
  *output = mark != NULL ? item : NULL;
  if (mark == NULL) return item;
  *mark = '\0';
  return mark + 1;
}

static int read_lists(const yk_cli *c, lists *l) {
  char *text, *output;
  snprintf(l->losses, sizeof l->losses, "%s", c->loss != NULL ? c->loss : "");
  snprintf(l->metrics, sizeof l->metrics, "%s", c->metrics != NULL ? c->metrics : "");
  for (text = l->losses; *text != '\0';) {
    if (l->nlosses == MOST) return yk__die(YK__EXIT_USAGE, "--loss: more than %d", MOST);
    char *name = next_item(&text, &output);
    l->loss[l->nlosses++] = (yk_loss){ .output = output, .name = name };
  }
  for (text = l->metrics; *text != '\0';) {
    if (l->nmetrics == MOST) return yk__die(YK__EXIT_USAGE, "--metrics: more than %d", MOST);
    char *name = next_item(&text, &output);
    l->metric[l->nmetrics++] = (yk_metric){ .output = output, .name = name };
  }
  return 0;
}

/* What the file has, where nothing else is asked for. */
static void keep_terms(const yk_network *n, lists *l) {
  const yk_compiled *c = n->compiled;
  if (c == NULL) return;
  for (uint32_t i = 0; l->losses[0] == '\0' && i < c->nlosses && l->nlosses < MOST; i++)
    l->loss[l->nlosses++] = (yk_loss){ .output = n->out[c->term[i].output].layer->name, .name = c->term[i].name,
                                       .from_logits = c->term[i].from_logits, .weight = c->term[i].weight != 0 ? c->term[i].weight : YK_EXACTLY_ZERO,
                                       .label_smoothing = c->term[i].label_smoothing, .delta = c->term[i].delta };
  for (uint32_t i = c->nlosses; l->metrics[0] == '\0' && i < c->nterms && l->nmetrics < MOST; i++)
    l->metric[l->nmetrics++] = (yk_metric){ .output = n->out[c->term[i].output].layer->name, .name = c->term[i].label, .k = c->term[i].k,
                                            .weighted = c->term[i].weighted, .threshold = c->term[i].threshold };
}

static int compile(const yk_cli *c, yk_network *n, lists *l) {
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  yk_recipe r = { 0 };
  yk_optimizer usual = n->compiled != NULL ? n->compiled->optimizer : YK_KERAS_ADAM(1e-3);
  int status = yk__recipe_parse(c, &r);
  if (status == 0) status = read_lists(c, l);
  if (status != 0) return status;
  keep_terms(n, l);
  if (l->nlosses == 0)
    return yk__die(YK__EXIT_USAGE, "%s does not say how it is trained; --loss NAME does, as mse or sparse_categorical_crossentropy",
                   yk__shown(c->model));
  usual.scope = NULL;
  o.optimizer = r.has_optimizer ? &r.optimizer : &usual;
  o.losses = l->loss;
  o.nlosses = l->nlosses;
  o.metrics = l->metric;
  o.nmetrics = l->nmetrics;
  yk_code rc = yk_network_compile(n, &o);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_USAGE, "%s", yk_error_message());
}

int yk__model_compile(const yk_cli *c, yk_network *n) {
  int status = 0;
  if (c->loss != NULL || c->metrics != NULL || c->optimizer != NULL || n->compiled == NULL) {
    lists *l = yk__calloc(1, sizeof *l);
    if (l == NULL) return yk__die_code(YK_ENOMEM);
    status = compile(c, n, l);
    yk__free(l);
  }
  if (status != 0 || c->lr < 0) return status;
  yk_code rc = yk_network_set_learning_rate(n, c->lr);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}
