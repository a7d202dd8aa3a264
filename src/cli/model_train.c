/*
 * model_train.c - `yoke train model.h5 --data train.npz --out trained.h5`: fit a Keras model on any devices, and evaluate it.
 *
 * The model is saved as soon as training ends, also when it was interrupted; a checkpoint of the best epoch is another file.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "cli/json.h"
#include "cli/network.h"
#include "keras/keras.h"

/* ---- what is done beside ------------------------------------------------------------------------------------------------- */

typedef struct beside { yk_callback self; bool json; } beside;

/* Ctrl-C: the batch is finished. */
static yk_code look_for_stop(yk_callback *c, yk_training *t, int64_t batch, yk_logs *logs) {
  (void)c;
  (void)batch;
  (void)logs;
  if (*yk__stop_flag() != 0) yk_training_stop(t);
  return YK_OK;
}

static yk_code print_epoch(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs) {
  yk_json o = { .flat = true };
  (void)t;
  if (!((beside *)c)->json) return YK_OK;
  yk__json_open(&o, NULL, '{');
  yk__json_int(&o, "epoch", epoch + 1);
  for (size_t i = 0; i < yk_logs_count(logs); i++) yk__json_real(&o, yk_logs_name(logs, i), yk_logs_at(logs, i));
  yk__json_close(&o, '}');
  bool good = yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
  fflush(stdout);
  return good ? YK_OK : YK_FAIL(EIO, "writing to the standard output failed");
}

enum { MOST_CALLBACKS = 5 };
typedef struct callbacks { yk_callback *at[MOST_CALLBACKS]; size_t n; beside own; } callbacks;

static yk_code make_callbacks(const yk_cli *c, bool validates, callbacks *k) {
  const char *watch = validates ? "val_loss" : "loss";
  k->own = (beside){ { .on_batch_end = look_for_stop, .on_epoch_end = print_epoch }, c->json };
  if (c->checkpoint != NULL) {
    yk_checkpoint_config o = { .path = c->checkpoint, .monitor = watch, .save_best_only = strchr(c->checkpoint, '{') == NULL };
    YK_TRY(yk_callback_checkpoint(&o, &k->at[k->n]));
    k->n++;
  }
  if (c->early_stopping > 0) {
    yk_early_stopping_config o = { .monitor = watch, .patience = c->early_stopping, .restore_best_weights = true, .verbose = !c->json && !c->quiet };
    YK_TRY(yk_callback_early_stopping(&o, &k->at[k->n]));
    k->n++;
  }
  if (c->csv != NULL) {
    YK_TRY(yk_callback_csv_logger(c->csv, 0, false, &k->at[k->n]));
    k->n++;
  }
  if (c->tensorboard != NULL) {
    YK_TRY(yk_callback_tensorboard(&(yk_tensorboard_config){ .folder = c->tensorboard }, &k->at[k->n]));
    k->n++;
  }
  k->at[k->n++] = &k->own.self;
  return YK_OK;
}

static void free_callbacks(callbacks *k) {
  for (size_t i = 0; i + 1 < k->n; i++) yk_callback_free(k->at[i]);
}

/* ---- training -------------------------------------------------------------------------------------------------------------- */

static int check_options(const yk_cli *c) {
  const struct { bool given; const char *name; } others[] = {
    { c->steps > 0, "--steps" }, { c->checkpoint_every != NULL, "--checkpoint-every" }, { c->resume, "--resume" }, { c->live, "--live" },
    { c->nan_check != NULL, "--nan-check" }, { c->replicas > 0, "--replicas" }, { c->check_replicas > 0, "--check-replicas" },
    { c->schedule != NULL, "--schedule" }, { c->trace != NULL, "--trace" }, { c->gradient_histograms > 0, "--gradient-histograms" },
    { c->clip_norm > 0, "--clip-norm" }, { c->precision != NULL, "--precision" } };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i].given) return yk__die(YK__EXIT_USAGE, "%s is for networks that are trained in steps, not for a Keras model", others[i].name);
  if (c->epochs != floor(c->epochs)) return yk__die(YK__EXIT_USAGE, "--epochs %g: a Keras model is trained for whole epochs", c->epochs);
  return 0;
}

static int say_end(const yk_cli *c, yk_network *n, const yk_table *test, const char *out) {
  double value[256];
  yk_examples e = yk__table_examples(test);
  if (test->rows > 0) {
    yk_code rc = yk_network_evaluate(n, &e, c->batch, value);
    if (rc != YK_OK) return yk__die_code(rc);
  }
  if (c->json) {
    yk_json o = { .flat = true };
    yk__json_open(&o, NULL, '{');
    yk__json_text(&o, "out", out);
    yk__json_bool(&o, "interrupted", *yk__stop_flag() != 0);
    for (size_t i = 0; test->rows > 0 && i < 256 && yk_network_metric_name(n, i) != NULL; i++) {
      char name[160];
      snprintf(name, sizeof name, "test_%s", yk_network_metric_name(n, i));
      yk__json_real(&o, name, value[i]);
    }
    yk__json_close(&o, '}');
    yk__json_flush(&o, stdout, NULL);
    yk__str_free(&o.text);
  } else if (!c->quiet) {
    printf("%ssaved %s", *yk__stop_flag() != 0 ? "interrupted; " : "", out);
    for (size_t i = 0; test->rows > 0 && i < 256 && yk_network_metric_name(n, i) != NULL; i++)
      printf("%s %s %.4f", i > 0 ? "," : "; test", yk_network_metric_name(n, i), value[i]);
    printf("\n");
  }
  return *yk__stop_flag() != 0 ? YK__EXIT_SIGNAL + *yk__stop_flag() : 0;
}

static int fit(const yk_cli *c, yk_network *n, const yk_table *train, const yk_table *test) {
  yk_fit_options o = YK_FIT_OPTIONS_INIT;
  yk_examples learn = yk__table_examples(train), check = yk__table_examples(test);
  callbacks k = { .n = 0 };
  if (c->batch > 0) o.batch_size = c->batch;
  o.epochs = c->epochs > 0 ? (int64_t)c->epochs : 10;
  o.verbose = c->quiet || c->json ? 0 : isatty(STDOUT_FILENO) ? 1 : 2;
  if (test->rows > 0) o.validation = &check;
  yk_code rc = make_callbacks(c, test->rows > 0, &k);
  o.callbacks = k.at;
  o.ncallbacks = k.n;
  yk__stop_catch();
  if (rc == YK_OK) rc = yk_network_fit(n, &learn, &o, NULL);
  if (k.n > 0) free_callbacks(&k);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

static int train(const yk_cli *c, yk_model_job *m, yk_table *learn, yk_table *test) {
  const char *out = c->out != NULL ? c->out : "trained.h5";
  int status = check_options(c);
  if (status == 0 && !yk__is_model_file(out))
    status = yk__die(YK__EXIT_USAGE, "--out '%s': the trained model is a file; expected a name that ends with .h5 or .keras", yk__shown(out));
  if (status == 0) status = yk__model_open(c, YK__MODEL_TRAIN, m);
  if (status == 0) status = yk__model_compile(c, m->n);
  if (status == 0) status = yk__table_open(c, m->n, YK_TRAIN, false, learn);
  if (status == 0 && (c->test_data != NULL || c->holdout > 0)) status = yk__table_open(c, m->n, YK_TEST, false, test);
  if (status == 0) status = fit(c, m->n, learn, test);
  if (status != 0) return status;
  yk_code rc = yk_network_save(m->n, out);
  return rc == YK_OK ? say_end(c, m->n, test, out) : yk__die_code(rc);
}

int yk__model_train(const yk_cli *c) {
  yk_model_job m = { 0 };
  yk_table learn = { 0 }, test = { 0 };
  int status = train(c, &m, &learn, &test);
  yk__table_free(&learn);
  yk__table_free(&test);
  yk__model_close(&m);
  return status;
}

/* ---- evaluating -------------------------------------------------------------------------------------------------------------- */

static int evaluate(const yk_cli *c, yk_model_job *m, yk_table *test) {
  double value[256];
  int status = yk__model_open(c, YK__MODEL_USE, m);
  if (status == 0) status = yk__model_compile(c, m->n);
  if (status == 0) status = yk__table_open(c, m->n, YK_TEST, false, test);
  if (status != 0) return status;
  yk_examples e = yk__table_examples(test);
  yk_code rc = yk_network_evaluate(m->n, &e, c->batch, value);
  if (rc != YK_OK) return yk__die_code(rc);
  yk_json o = { .flat = true };
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "model", c->model);
  yk__json_int(&o, "examples", test->rows);
  if (!c->json) printf("%s on %lld examples:", c->model, (long long)test->rows);
  for (size_t i = 0; i < 256 && yk_network_metric_name(m->n, i) != NULL; i++) {
    yk__json_real(&o, yk_network_metric_name(m->n, i), value[i]);
    if (!c->json) printf("%s %s %.4f", i > 0 ? "," : "", yk_network_metric_name(m->n, i), value[i]);
  }
  yk__json_close(&o, '}');
  if (c->json) yk__json_flush(&o, stdout, NULL);
  else printf("\n");
  yk__str_free(&o.text);
  return 0;
}

int yk__model_evaluate(const yk_cli *c) {
  yk_model_job m = { 0 };
  yk_table test = { 0 };
  int status = evaluate(c, &m, &test);
  yk__table_free(&test);
  yk__model_close(&m);
  return status;
}
