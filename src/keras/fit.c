/*
 * fit.c - epochs of batches, with validation and callbacks around them, as Keras runs them.
 *
 * The loop knows no devices: a step does (step.c), and callbacks see one network whatever the devices are.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "keras/training.h"

/* ---- callbacks ----------------------------------------------------------------------------------------------------------- */

yk_network *yk_training_network(const yk_training *t) { return t->n; }
int64_t yk_training_epochs(const yk_training *t) { return t->o->epochs; }
void yk_training_stop(yk_training *t) { t->stop = true; }
void yk_callback_free(yk_callback *c) {
  if (c != NULL && c->free != NULL) c->free(c);
}

void yk_training_print(yk_training *t, const char *fmt, ...) {
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  yk__bar_print(&t->bar, text);
  yk__bar_print(&t->bar, "\n");
}

/* Each callback that has the function, in order, until one fails. args: (each, t, ...). */
#define TELL(t, function, args)                                                                 \
  do {                                                                                          \
    for (size_t i_ = 0; i_ < (t)->o->ncallbacks; i_++) {                                        \
      yk_callback *each = (t)->o->callbacks[i_];                                                \
      if (each != NULL && each->function != NULL) YK_TRY(each->function args);                  \
    }                                                                                           \
  } while (0)

/* ---- numbers --------------------------------------------------------------------------------------------------------------- */

yk_code yk__tally_new(const yk_compiled *c, yk_tally *t) {
  *t = (yk_tally){ .nterms = c->nterms };
  t->sum = yk__calloc(2u * c->nterms + 1, sizeof *t->sum);
  if (t->sum == NULL) return YK_ENOMEM;
  t->of = t->sum + c->nterms;
  return YK_OK;
}
void yk__tally_free(yk_tally *t) { yk__free(t->sum); }
void yk__tally_clear(yk_tally *t) {
  memset(t->sum, 0, 2 * t->nterms * sizeof *t->sum);
  t->loss = t->rows = 0;
}

/* The means of a tally under their names, with "val_" or nothing before them. */
static yk_code log_means(yk_training *t, const yk_tally *tally, const char *before) {
  const yk_compiled *c = t->n->compiled;
  char name[YK__LOG_NAME];
  yk__tally_means(c, tally, t->mean);
  for (uint32_t i = 0; i < c->nnames; i++) {
    snprintf(name, sizeof name, "%s%s", before, c->name[i]);
    YK_TRY(yk_logs_set(&t->logs, name, t->mean[i]));
  }
  return YK_OK;
}

/* ---- evaluate ------------------------------------------------------------------------------------------------------------------ */

static int64_t steps_of(const yk_feeder *f, int64_t batch) {
  int64_t rows = yk__feeder_rows(f);
  return batch >= rows ? 1 : (rows + batch - 1) / batch;
}

yk_code yk__evaluate(yk_network *n, yk_feeder *f, int64_t steps, yk_tally *t) {
  yk_fit_step *step;
  int64_t done = 0, rows = 0;
  double loss;
  YK_TRY(yk__fit_step(n, false, yk__feeder_weighted(f), &step));
  YK_TRY(yk__feeder_seek(f, 0));
  for (int64_t i = 0; steps > 0 ? i < steps : done < yk__feeder_rows(f); i++, done += rows) {
    const yk_tensor *const *feeds, *const *got;
    YK_TRY(yk__feeder_next(f, steps > 0, &feeds, &rows));
    YK_TRY(yk_step_run(step->step, feeds, &got));
    yk__tally_add(n->compiled, t, yk_tensor_data(got[0]), rows, &loss);
  }
  return YK_OK;
}

static yk_code check_compiled(const yk_network *n, const yk_examples *e) {
  if (n == NULL || e == NULL) return YK_FAIL(EINVAL, "no network, or no examples");
  YK_TRY(yk_keras_status(n->self.k));
  if (n->compiled != NULL) return YK_OK;
  return YK_FAIL(EINVAL, "network '%s' is not compiled: yk_network_compile() gives it losses and an optimizer", n->self.name);
}

yk_code yk_network_evaluate(yk_network *n, const yk_examples *examples, int64_t batch_size, double *out) {
  yk_feeder_options o = { .batch = batch_size > 0 ? batch_size : 32, .what = "" };
  yk_feeder *f = NULL;
  yk_tally t;
  YK_TRY(check_compiled(n, examples));
  if (out == NULL || batch_size < 0) return YK_FAIL(EINVAL, "yk_network_evaluate: no place for the numbers, or a negative batch");
  YK_TRY(yk__tally_new(n->compiled, &t));
  yk_code rc = yk__feeder_open(n, examples, &o, &f);
  if (rc == YK_OK) rc = yk__evaluate(n, f, 0, &t);
  if (rc == YK_OK) yk__tally_means(n->compiled, &t, out);
  yk__feeder_close(f);
  yk__tally_free(&t);
  return rc;
}

/* ---- one batch ------------------------------------------------------------------------------------------------------------------- */

static yk_code on_batch(yk_network *n, const yk_examples *examples, bool training, double *out) {
  yk_feeder_options o = { .what = "" };
  const yk_tensor *const *feeds, *const *got;
  yk_feeder *f = NULL;
  yk_fit_step *step;
  yk_tally t;
  double loss;
  YK_TRY(check_compiled(n, examples));
  YK_TRY(yk__examples_rows(n, examples, &o.batch));
  YK_TRY(yk__tally_new(n->compiled, &t));
  yk_code rc = yk__feeder_open(n, examples, &o, &f);
  if (rc == YK_OK) rc = yk__fit_step(n, training, yk__feeder_weighted(f), &step);
  if (rc == YK_OK) rc = yk__feeder_next(f, false, &feeds, &o.batch);
  if (rc == YK_OK) rc = yk_step_run(step->step, feeds, &got);
  if (rc == YK_OK) {
    yk__tally_add(n->compiled, &t, yk_tensor_data(got[0]), o.batch, &loss);
    if (out != NULL) yk__tally_means(n->compiled, &t, out);
  }
  yk__feeder_close(f);
  yk__tally_free(&t);
  return rc;
}

yk_code yk_network_train_on_batch(yk_network *n, const yk_examples *examples, double *out) { return on_batch(n, examples, true, out); }
yk_code yk_network_test_on_batch(yk_network *n, const yk_examples *examples, double *out) { return on_batch(n, examples, false, out); }

/* ---- epochs ---------------------------------------------------------------------------------------------------------------------- */

/* The numbers of the batch alone, for callbacks. */
static yk_code log_batch(yk_training *t, yk_tally *one, const float *sums, int64_t rows) {
  double loss;
  yk__tally_clear(one);
  yk__tally_add(t->n->compiled, one, sums, rows, &loss);
  yk__logs_clear(&t->logs);
  YK_TRY(log_means(t, one, ""));
  return yk_logs_set(&t->logs, "size", (double)rows);
}

static yk_code run_batch(yk_training *t, yk_fit_step *step, yk_tally *one, int64_t batch, int64_t *done) {
  const yk_tensor *const *feeds, *const *got;
  int64_t rows = 0;
  double loss;
  TELL(t, on_batch_begin, (each, t, batch));
  YK_TRY(yk__feeder_next(t->feeder, t->o->steps_per_epoch > 0, &feeds, &rows));
  YK_TRY(yk_step_run(step->step, feeds, &got));
  yk__tally_add(t->n->compiled, &t->tally, yk_tensor_data(got[0]), rows, &loss);
  if (t->o->ncallbacks > 0) {
    YK_TRY(log_batch(t, one, yk_tensor_data(got[0]), rows));
    TELL(t, on_batch_end, (each, t, batch, &t->logs));
  }
  *done += rows;
  if (t->o->verbose != 1 || !t->bar.terminal) return YK_OK;
  yk__logs_clear(&t->logs);
  YK_TRY(log_means(t, &t->tally, ""));
  yk__bar_update(&t->bar, t->o->steps_per_epoch > 0 ? batch + 1 : *done, &t->logs);
  return YK_OK;
}

static yk_code validate(yk_training *t) {
  yk_tally v;
  YK_TRY(yk__tally_new(t->n->compiled, &v));
  yk_code rc = yk__evaluate(t->n, t->validation, t->o->validation_steps, &v);
  if (rc == YK_OK) rc = log_means(t, &v, "val_");
  yk__tally_free(&v);
  return rc;
}

static yk_code run_epoch(yk_training *t, yk_tally *one, int64_t epoch, yk_history *h) {
  yk_fit_step *step;
  int64_t steps = t->o->steps_per_epoch > 0 ? t->o->steps_per_epoch : steps_of(t->feeder, t->o->batch_size), batch = 0, done = 0;
  yk__logs_clear(&t->logs);
  TELL(t, on_epoch_begin, (each, t, epoch, &t->logs));
  if (t->stop) return YK_OK;
  yk__bar_epoch(&t->bar, epoch, t->o->epochs);
  yk__tally_clear(&t->tally);
  YK_TRY(yk__fit_step(t->n, true, yk__feeder_weighted(t->feeder), &step));
  while (batch < steps && !t->stop) YK_TRY(run_batch(t, step, one, batch++, &done));
  yk__logs_clear(&t->logs);
  YK_TRY(log_means(t, &t->tally, ""));
  if (t->validation != NULL && batch == steps && (epoch + 1) % t->o->validation_freq == 0) YK_TRY(validate(t));
  yk__bar_end(&t->bar, t->o->steps_per_epoch > 0 ? batch : done, &t->logs);
  TELL(t, on_epoch_end, (each, t, epoch, &t->logs));
  return h != NULL ? yk__history_add(h, &t->logs) : YK_OK;
}

static yk_code run_epochs(yk_training *t, yk_history *h) {
  yk_tally one;
  YK_TRY(yk__tally_new(t->n->compiled, &one));
  yk_code rc = YK_OK;
  for (int64_t e = t->o->initial_epoch; e < t->o->epochs && !t->stop && rc == YK_OK; e++) {
    if (t->o->steps_per_epoch == 0 || e == t->o->initial_epoch) rc = yk__feeder_seek(t->feeder, e);
    if (rc == YK_OK) rc = run_epoch(t, &one, e, h);
  }
  yk__tally_free(&one);
  return rc;
}

static void say_counts(const yk_training *t) {
  char text[200];
  int n = snprintf(text, sizeof text, "Train on %lld samples", (long long)yk__feeder_rows(t->feeder));
  if (t->validation != NULL)
    n += snprintf(text + n, sizeof text - (size_t)n, ", validate on %lld samples", (long long)yk__feeder_rows(t->validation));
  snprintf(text + n, sizeof text - (size_t)n, "\n");
  if (t->o->verbose > 0) yk__bar_print(&t->bar, text);
}

static yk_code run(yk_training *t, yk_history *h) {
  say_counts(t);
  TELL(t, on_train_begin, (each, t));
  YK_TRY(run_epochs(t, h));
  TELL(t, on_train_end, (each, t));
  return YK_OK;
}

/* ---- fit ------------------------------------------------------------------------------------------------------------------------- */

static yk_code check_options(const yk_fit_options *o, const yk_examples *e) {
  if (o->batch_size < 1 || o->epochs < 0 || o->initial_epoch < 0 || o->steps_per_epoch < 0 || o->validation_steps < 0 ||
      o->validation_batch_size < 0 || o->validation_freq < 1)
    return YK_FAIL(EINVAL, "a batch, and every how many epochs to validate, are 1 or more; epochs and steps 0 or more");
  if (!(o->validation_split >= 0 && o->validation_split < 1))
    return YK_FAIL(EINVAL, "a validation split of %g; expected 0 to 1", o->validation_split);
  if (o->validation_split > 0 && o->validation == NULL && e->dataset != NULL)
    return YK_FAIL(EINVAL, "a validation split is for tensors; of a data set a part is held out when it is opened");
  if (o->nclass_weights > 0 && o->class_weight == NULL) return YK_FAIL(EINVAL, "%zu class weights, but a NULL list", o->nclass_weights);
  if (o->ncallbacks > 0 && o->callbacks == NULL) return YK_FAIL(EINVAL, "%zu callbacks, but a NULL list", o->ncallbacks);
  return YK_OK;
}

static yk_code open_feeders(yk_training *t, const yk_examples *e) {
  const yk_fit_options *o = t->o;
  yk_feeder_options train = { .batch = o->batch_size, .shuffle = !o->no_shuffle, .nclass_weights = o->nclass_weights,
                              .class_weight = o->class_weight, .what = "" };
  yk_feeder_options check = { .batch = o->validation_batch_size > 0 ? o->validation_batch_size : o->batch_size, .what = "validation: " };
  const yk_examples *validation = o->validation;
  if (validation == NULL && o->validation_split > 0) {
    int64_t rows = 0;
    YK_TRY(yk__examples_rows(t->n, e, &rows));
    train.to = check.from = (int64_t)((double)rows * (1 - o->validation_split));
    check.to = rows;
    validation = e;
    if (train.to == 0 || train.to == rows)
      return YK_FAIL(EINVAL, "a validation split of %g leaves %lld of %lld examples to train with", o->validation_split, (long long)train.to,
                     (long long)rows);
  }
  YK_TRY(yk__feeder_open(t->n, e, &train, &t->feeder));
  return validation != NULL ? yk__feeder_open(t->n, validation, &check, &t->validation) : YK_OK;
}

static yk_code fit(yk_training *t, const yk_examples *e, yk_history *h) {
  const yk_fit_options *o = t->o;
  YK_TRY(yk__tally_new(t->n->compiled, &t->tally));
  t->mean = yk__calloc(t->n->compiled->nnames, sizeof *t->mean);
  if (t->mean == NULL) return YK_ENOMEM;
  YK_TRY(open_feeders(t, e));
  bool steps = o->steps_per_epoch > 0;
  t->bar = (yk_progbar){ .verbose = o->verbose, .print = o->print, .arg = o->print_arg, .terminal = o->print == NULL && isatty(STDOUT_FILENO) == 1,
                         .target = steps ? o->steps_per_epoch : yk__feeder_rows(t->feeder), .unit = steps ? "step" : "sample" };
  return run(t, h);
}

yk_code yk_network_fit(yk_network *n, const yk_examples *examples, const yk_fit_options *options, yk_history **history) {
  yk_fit_options o = YK_FIT_OPTIONS_INIT;
  yk_training t = { .n = n, .o = &o };
  yk_history *h = NULL;
  YK_TRY(check_compiled(n, examples));
  if (options != NULL && (options->size < sizeof options->size || options->size > 4096))
    return YK_FAIL(EINVAL, "yk_fit_options.size is %u; start from YK_FIT_OPTIONS_INIT", options->size);
  if (options != NULL) memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  YK_TRY(check_options(&o, examples));
  if (history != NULL && (h = yk__calloc(1, sizeof *h)) == NULL) return YK_ENOMEM;
  yk_code rc = fit(&t, examples, h);
  yk__feeder_close(t.feeder);
  yk__feeder_close(t.validation);
  yk__tally_free(&t.tally);
  yk__free(t.mean);
  yk__logs_free(&t.logs);
  if (rc == YK_OK && history != NULL) *history = h;
  else yk_history_free(h);
  return rc;
}
