/*
 * job.c - from options to a training step that is ready to run: network, devices, data, queue, graph, session.
 *
 * The learning-rate schedules of the built-in networks live here, because they
 * depend on the length of the run and the size of the data, which only the command knows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"
#include "cli/network.h"
#include "cli/json.h"

enum { DEFAULT_EPOCHS = 10, BLANK_STEPS = 1000 };

/* --strategy, --replicas, and what goes with them. */
static int spread(const yk_cli *c, yk_job *j) {
  const char *names[8];
  int n = 0;
  bool found = c->strategy == NULL;
  for (; yk_strategy_name((yk_strategy)n) != NULL; n++) {
    names[n] = yk_strategy_name((yk_strategy)n);
    if (c->strategy == NULL || strcmp(c->strategy, names[n]) != 0) continue;
    j->strategy = (yk_strategy)n;
    found = true;
  }
  if (!found)
    return yk__die(YK__EXIT_USAGE, "--strategy: no strategy '%s'%s; there are auto, home, sharded and mirrored", yk__shown(c->strategy),
                   yk__did_you_mean(c->strategy, (size_t)n, names));
  if (c->check_replicas != 0 && j->strategy != YK_STRATEGY_MIRRORED)
    return yk__die(YK__EXIT_USAGE, "--check-replicas needs --strategy mirrored: with the others there are no copies to compare");
  j->replicas = c->replicas != 0 ? (size_t)c->replicas : j->devices.n;
  if (j->replicas < j->devices.n)
    return yk__die(YK__EXIT_USAGE, "--replicas %zu on %zu devices: expected one for each device or more", j->replicas, j->devices.n);
  return 0;
}

/* --precision. */
static int precision(const yk_cli *c, yk_job *j) {
  static const yk_dtype all[] = { YK_F32, YK_BF16, YK_F16 };
  j->precision = YK_F32;
  if (c->precision == NULL) return 0;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (strcmp(c->precision, yk_dtype_name(all[i])) != 0) continue;
    j->precision = all[i];
    return 0;
  }
  return yk__die(YK__EXIT_USAGE, "--precision '%s': expected f32, bf16 or f16", yk__shown(c->precision));
}

/* Is `word` one of a list between commas? */
static bool lists(const char *list, const char *word) {
  for (size_t n; *list != '\0'; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    if (strlen(word) == n && strncmp(list, word, n) == 0) return true;
  }
  return false;
}

size_t yk__job_slow(const yk_job *j) {
  for (size_t i = 0; i < j->devices.n && j->precision != YK_F32; i++)
    if (j->devices.fast[i][0] != '\0' && !lists(j->devices.fast[i], yk_dtype_name(j->precision))) return i;
  return YK__MAX_CHOSEN;
}

/* Once a process: `yoke bench` comes by for each set of devices. */
static void tell_slow(const yk_cli *c, const yk_job *j) {
  static bool told;
  size_t i = yk__job_slow(j);
  if (i >= YK__MAX_CHOSEN || c->quiet || told) return;
  told = true;
  YK_LOG(NOTICE, "%s has no instructions for %s: --precision %s is right there, but a step takes longer than in f32", j->devices.at[i],
         yk_dtype_name(j->precision), yk_dtype_name(j->precision));
}

int yk__job_model(const yk_cli *c, yk_job *j) {
  const char *names[16];
  size_t n = 0, keras = 0;
  *j = (yk_job){ 0 };
  j->model = yk_model_find(c->model);
  if (j->model == NULL && yk__is_keras(c->model))
    return yk__die(YK__EXIT_USAGE, "%s is made of Keras's layers; train, evaluate, predict, summary and convert take it", yk__shown(c->model));
  if (j->model == NULL) {
    while (n < 16 && yk_model_at(n) != NULL) { names[n] = yk_model_at(n)->name; n++; }
    while (n < 16 && yk__builtin_at(keras) != NULL) names[n++] = yk__builtin_at(keras++);
    return yk__die(YK__EXIT_USAGE, "unknown network '%s'%s; 'yoke %s --help' lists them", yk__shown(c->model),
                   yk__did_you_mean(c->model, n, names), c->verb);
  }
  j->batch = c->batch != 0 ? c->batch : j->model->batch;
  int status = yk__sound_parse(c, j);
  if (status == 0) status = precision(c, j);
  if (status == 0) status = yk__recipe_parse(c, &j->recipe);
  if (status != 0) return status;
  j->base_rate = c->lr >= 0 ? c->lr : j->recipe.has_optimizer ? j->recipe.optimizer.rate : j->model->learning_rate;
  if (j->recipe.has_optimizer && j->recipe.optimizer.kind == YK_OPT_FTRL && !(j->base_rate > 0))
    return yk__die(YK__EXIT_USAGE, "--optimizer ftrl divides by the learning rate: expected one above 0, not %g", j->base_rate);
  status = yk__choose(c, &j->devices);
  if (status == 0) status = spread(c, j);
  if (status == 0) tell_slow(c, j);
  return status;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static void measure(const yk_cli *c, yk_job *j, const yk_dataset *d) {
  yk_shape s = yk_dataset_shape(d);
  double n = (double)yk_dataset_size(d);
  j->pictures = s.rank == 3;
  j->size = j->model->image_size != 0 ? j->model->image_size : s.dim[0] < s.dim[1] ? s.dim[0] : s.dim[1];
  j->channels = s.dim[2];
  snprintf(j->data_name, sizeof j->data_name, "%s", yk_dataset_name(d));
  j->steps = c->steps;
  if (c->steps == 0) j->steps = (int64_t)ceil((c->epochs != 0 ? c->epochs : DEFAULT_EPOCHS) * n / (double)j->batch - 1e-9);
  if (j->steps < 1) j->steps = 1;
  j->epochs = (double)j->steps * (double)j->batch / n;
}

int yk__job_data(const yk_cli *c, yk_job *j, bool with_train, bool with_test) {
  int status = yk__job_open_data(c, j, with_train, with_test);
  if (status != 0) return status;
  measure(c, j, with_train ? j->train : j->test);
  return 0;
}

static yk_code nothing(void *self, int64_t rows, void *const *out) {
  (void)self;
  (void)rows;
  (void)out;
  return YK_ECANCELLED;
}

/* No queue behind it: nobody takes a batch, and one may be as large as the machine that is only rehearsed. */
int yk__job_blank(yk_job *j) {
  enum { N = 16, BYTES = 32 * 32 * 3 };
  static const uint8_t pictures[N * BYTES], labels[N];
  yk_code rc = yk_dataset_images(N, 32, 32, 3, pictures, labels, 10, &j->train);
  if (rc != YK_OK) return yk__die_code(rc);
  measure(&(yk_cli){ .steps = BLANK_STEPS }, j, j->train);
  j->blank = (yk_source){ .next = nothing, .ncomponents = 2 };
  j->blank.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { j->size, j->size, j->channels } };
  j->blank.component[1] = (yk_desc){ .dtype = YK_I32, .rank = 0 };
  return 0;
}

/* ---- learning rates ---------------------------------------------------------------------------------------------- */

/* The tutorial's: a tenth after every 350 passes. */
static yk_value tutorial_rate(yk_graph *g, const yk_job *j, double rate) {
  int64_t every = (int64_t)((double)yk_dataset_size(j->train) / (double)j->batch * 350.0);
  return yk_exponential_decay(g, rate, yk_global_step(g), every > 0 ? every : 1, 0.1, true);
}

/* A linear warm-up over a twentieth of the run, then the usual steps: a tenth, a hundredth. They come later than in long runs, at 0.6 and
 * 0.85, since a short one still gains from the full rate. */
static yk_value residual_rate(yk_graph *g, const yk_job *j, double rate) {
  int64_t at[2] = { j->steps * 3 / 5, j->steps * 17 / 20 }, warm = j->steps / 20;
  double values[3] = { rate, 0.1 * rate, 0.01 * rate };
  yk_value full;
  if (at[0] < 1 || at[1] <= at[0]) return yk_scalar_f32(g, (float)rate);
  full = yk_piecewise_constant(g, yk_global_step(g), 2, at, values);
  if (warm < 2) return full;
  yk_value done = yk_div(g, yk_add(g, yk_cast(g, yk_read(yk_global_step(g)), YK_F32), yk_scalar_f32(g, 1)),
                         yk_scalar_f32(g, (float)warm));
  return yk_mul(g, full, yk_minimum(g, done, yk_scalar_f32(g, 1)));
}

/* The schedule that was asked for, else the network's own, from whatever rate. */
static yk_value learning_rate(yk_graph *g, const yk_job *j) {
  yk_schedule asked = yk__recipe_schedule(&j->recipe, j->base_rate, j->steps);
  double rate = j->base_rate;
  yk_value v = { 0 };
  YK_DEVICE(g, "/cpu:0") {
    YK_NAME_SCOPE(g, "learning_rate") {
      if (j->recipe.has_schedule) v = yk_scheduled_rate(g, &asked, yk_global_step(g));
      else if (strcmp(j->model->name, "cifar10") == 0) v = tutorial_rate(g, j, rate);
      else if (strcmp(j->model->name, "resnet20") == 0) v = residual_rate(g, j, rate);
      else v = yk_scalar_f32(g, (float)rate);
    }
  }
  return v;
}

/* ---- graph and session ------------------------------------------------------------------------------------------- */

int64_t yk__job_seed(const yk_cli *c) {
  return c->seed >= 0 ? c->seed : 1;
}

void yk__job_devices(const yk_job *j, char *out, size_t bytes) {
  size_t at = 0;
  out[0] = '\0';
  for (size_t i = 0; i < j->devices.n && at < bytes; i++)
    at += (size_t)snprintf(out + at, bytes - at, "%s%s", i > 0 ? " " : "", j->devices.at[i]);
}

void yk__json_job(yk_json *o, const yk_job *j) {
  yk__json_text(o, "model", j->model->name);
  yk__json_open(o, "devices", '[');
  for (size_t i = 0; i < j->devices.n; i++) yk__json_text(o, NULL, j->devices.at[i]);
  yk__json_close(o, ']');
  yk__json_int(o, "batch", j->batch);
  yk__json_text(o, "precision", yk_dtype_name(j->precision));
  yk__json_bool(o, "slow_precision", yk__job_slow(j) < YK__MAX_CHOSEN);
}

yk_queue_options yk__job_queue(const yk_cli *c, const yk_job *j) {
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  int64_t threads = yk__param_int("data.threads"), ahead = yk__param_int("data.prefetch");
  o.augment = j->model->train_augment;
  o.image_size = j->size;
  o.shuffle = true;
  o.seed = (uint64_t)yk__job_seed(c);
  o.threads = (int32_t)(threads > 0 && threads < 256 ? threads : yk__ncores() >= 8 ? yk__ncores() / 4 : 1);
  o.capacity = (ahead > 1 ? ahead < 1024 ? ahead : 1024 : 2) * j->batch;
  return o;
}

static yk_code open_queue(const yk_cli *c, yk_job *j) {
  yk_queue_options o = yk__job_queue(c, j);
  return yk_queue_open(j->train, &o, &j->queue);
}

yk_tower_options yk__job_towers(const yk_cli *c, const yk_job *j) {
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  o.model = j->model;
  o.classes = yk_dataset_classes(j->train);
  o.batch = j->batch;
  o.ndevices = j->devices.n;
  o.devices = j->devices.at;
  o.optimizer = j->recipe.has_optimizer ? &j->recipe.optimizer : NULL;
  o.clip_norm = c->clip_norm;
  o.guard = j->guard;
  o.nan_only = j->nan_only;
  o.precision = j->precision;
  o.strategy = j->strategy;
  o.sync_batch_norm = c->sync_batch_norm;
  o.replicas = (size_t)c->replicas;                  /* 0: one for each of the devices, be they fewer */
  return o;
}

static void build(const yk_cli *c, yk_job *j) {
  yk_tower_options o = yk__job_towers(c, j);
  yk_graph *g = j->graph;
  yk_graph_set_seed(g, (uint64_t)yk__job_seed(c));
  o.source = j->blank.next != NULL ? &j->blank : yk_queue_source(j->queue);
  o.learning_rate = learning_rate(g, j);
  j->gradients_every = c->gradient_histograms;
  if (c->tensorboard != NULL) j->rate = o.learning_rate;
  yk_build_towers(g, &o, &j->towers);
  if (j->guard && yk_graph_status(g) == YK_OK) j->sound = yk__sound_build(g, j->nan_only);
}

int yk__job_build(const yk_cli *c, yk_job *j) {
  yk_shape s = yk_dataset_shape(j->train);
  yk_code rc;
  if (j->pictures && (j->size > s.dim[0] || j->size > s.dim[1]))
    return yk__die(YK__EXIT_RUN, "%s takes pictures of at least %lldx%lld; those of %s are %lldx%lld", j->model->name,
                   (long long)j->size,
                   (long long)j->size, j->data_name, (long long)s.dim[0], (long long)s.dim[1]);
  rc = j->blank.next != NULL ? YK_OK : open_queue(c, j);
  if (rc == YK_OK) rc = yk_graph_new(&j->graph);
  if (rc == YK_OK) {
    build(c, j);
    rc = yk_graph_status(j->graph);
  }
  for (size_t i = 0; rc == YK_OK && i < yk_variable_count(j->graph); i++) {
    const yk_variable *v = yk_variable_get(j->graph, i);
    const yk_desc *d = yk_variable_desc(v);
    int64_t count = 1;
    for (uint8_t k = 0; k < d->rank; k++) count *= d->dim[k];
    if (yk_variable_trainable(v)) j->parameters += count;
  }
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

size_t yk__job_fetches(yk_job *j, yk_value fetch[YK__MOST_FETCHES]) {
  int n = 0;
  fetch[n++] = j->towers.loss;
  fetch[n++] = j->towers.accuracy;
  if (j->rate.id != 0) fetch[j->rate_at = n++] = j->rate;
  if (j->guard) fetch[j->good_at = n++] = j->towers.good;
  return (size_t)n;
}

/* The step once more, with gradients behind the rest: another plan, whose weights are the same. */
static yk_code prepare_gradients(yk_job *j, size_t n, const yk_value *fetch) {
  size_t ngradients = yk_get_collection(j->graph, YK_TOWER_GRADIENTS, NULL, NULL, 0);
  yk_value *all = yk__alloc((n + ngradients + 1) * sizeof *all);
  if (all == NULL) return YK_ENOMEM;
  memcpy(all, fetch, n * sizeof *all);
  yk_get_collection(j->graph, YK_TOWER_GRADIENTS, NULL, all + n, ngradients);
  yk_code rc = yk_step_prepare(j->session, 0, NULL, n + ngradients, all, 1, &j->towers.train, &j->with_gradients);
  yk__free(all);
  j->ngradients = ngradients;
  return rc;
}

yk_code yk__job_run(yk_job *j, int64_t step, const yk_tensor *const **got, const yk_tensor *const **gradients) {
  yk_value fetch[YK__MOST_FETCHES];
  bool turn = j->gradients_every > 0 && (step + 1) % j->gradients_every == 0;
  *gradients = NULL;
  j->last = turn ? j->with_gradients : j->step;
  YK_TRY(yk_step_run(j->last, NULL, got));
  if (turn) *gradients = *got + yk__job_fetches(j, fetch);
  return YK_OK;
}

int yk__job_start(yk_job *j) {
  yk_value init = yk_global_variables_initializer(j->graph), fetch[YK__MOST_FETCHES];
  size_t n = yk__job_fetches(j, fetch);
  yk_code rc = yk_session_open(j->graph, &j->devices.session, &j->session);
  if (rc == YK_OK) rc = yk_session_run(j->session, 0, NULL, 0, NULL, 1, &init, NULL);
  if (rc == YK_OK) rc = yk_step_prepare(j->session, 0, NULL, n, fetch, 1, &j->towers.train, &j->step);
  if (rc == YK_OK && j->gradients_every > 0) rc = prepare_gradients(j, n, fetch);
  if (rc == YK_OK && j->guard) rc = yk_step_prepare(j->session, 0, NULL, 1, &j->sound, 0, NULL, &j->check);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

void yk__job_free(yk_job *j) {
  yk_step_free(j->check);
  yk_step_free(j->with_gradients);
  yk_step_free(j->step);
  yk_session_close(j->session);
  yk_graph_free(j->graph);
  yk_queue_close(j->queue);
  yk_dataset_free(j->train);
  yk_dataset_free(j->test);
}
