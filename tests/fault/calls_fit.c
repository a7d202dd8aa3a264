/*
 * calls_fit.c - compile, fit, evaluate while memory runs out.
 *
 * Steps are built anew in each call, in a yk_keras of its own, so a call makes thousands of allocations: after the first hundred only some fail.
 */
#include "fault.h"

#include <unistd.h>

typedef struct rig {
  yk_keras *k;
  yk_network *n;
  yk_tensor *x, *y;
  yk_examples e;
} rig;

static yk_code open_rig(rig *r, bool compiled) {
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  yk_loss loss = { .name = "mse" };
  yk_metric metric = { .name = "mae" };
  *r = (rig){ 0 };
  o.losses = &loss;
  o.metrics = &metric;
  o.nlosses = o.nmetrics = 1;
  YK_TRY(yk_keras_new(1, &r->k));
  yk_sym in = yk_input(r->k, &(yk_input_config){ .shape = YK_SHAPE(3) });
  yk_sym out = yk_apply(yk_layer_dense(r->k, &(yk_dense_config){ .units = 2 }), in);
  r->n = yk_network_new(r->k, NULL, 1, &in, 1, &out);
  YK_TRY(yk_keras_status(r->k));
  if (compiled) YK_TRY(yk_network_compile(r->n, &o));
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(5, 3), &r->x));
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(5, 2), &r->y));
  r->e.x = (const yk_tensor *const *)&r->x;
  r->e.y = (const yk_tensor *const *)&r->y;
  return YK_OK;
}

static yk_code with_rig(bool compiled, yk_code (*use)(rig *r)) {
  rig r;
  yk_code rc = open_rig(&r, compiled);
  if (rc == YK_OK) rc = use(&r);
  char text[512];                                          /* freeing may not lose what went wrong */
  snprintf(text, sizeof text, "%s", yk_error_message());
  yk_tensor_free(r.x);
  yk_tensor_free(r.y);
  yk_keras_free(r.k);
  return rc;
}

/* ---- what is called -------------------------------------------------------------------------------------------------------- */

static yk_code compile(rig *r) {
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  o.nlosses = 1;
  o.losses = &(yk_loss){ .name = "mae" };
  YK_TRY(yk_network_compile(r->n, &o));
  CHECK_INT(strcmp(yk_network_metric_name(r->n, 0), "loss"), 0);
  return YK_OK;
}
static yk_code rate(rig *r) {
  double x;
  YK_TRY(yk_network_train_on_batch(r->n, &r->e, NULL));
  YK_TRY(yk_network_set_learning_rate(r->n, 0.5));
  YK_TRY(yk_network_learning_rate(r->n, &x));
  CHECK_NEAR(x, 0.5, 0);
  return YK_OK;
}

static int64_t epochs_seen;
static yk_code look(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs) {
  double x;
  (void)c;
  epochs_seen = yk_training_epochs(t) + epoch;
  yk_training_print(t, "%s %g", yk_logs_name(logs, 0), yk_logs_at(logs, 0));
  if (yk_training_network(t) == NULL || yk_logs_count(logs) == 0 || !yk_logs_get(logs, "loss", &x)) return YK_EINTERNAL;
  yk_training_stop(t);
  return yk_logs_set(logs, "more", 1);
}
static void no_print(const char *text, void *arg) { (void)text; (void)arg; }
static yk_code fit(rig *r) {
  yk_callback own = { .on_epoch_end = look }, *list = &own;
  yk_fit_options o = YK_FIT_OPTIONS_INIT;
  yk_history *h;
  o.batch_size = 2;
  o.epochs = 2;
  o.verbose = 2;
  o.print = no_print;
  o.validation_split = 0.4;
  o.ncallbacks = 1;
  o.callbacks = &list;
  YK_TRY(yk_network_fit(r->n, &r->e, &o, &h));
  bool whole = yk_history_epochs(h) == 1 && yk_history_name(h, 0) != NULL && yk_history_values(h, "val_loss") != NULL;
  yk_history_free(h);
  yk_callback_free(&own);
  assert_true(whole && epochs_seen > 0);
  return YK_OK;
}
static yk_code evaluate(rig *r) {
  double out[2];
  return yk_network_evaluate(r->n, &r->e, 2, out);
}
static yk_code train(rig *r) { return yk_network_train_on_batch(r->n, &r->e, NULL); }
static yk_code test(rig *r) { return yk_network_test_on_batch(r->n, &r->e, NULL); }

/* Saved with its optimizer, and loaded as it was. */
static yk_code pass_through(rig *r) {
  char path[] = "/tmp/yoke-fault-fit-XXXXXX";
  yk_keras *k = NULL;
  yk_network *n;
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  yk_code rc = yk_network_train_on_batch(r->n, &r->e, NULL);
  if (rc == YK_OK) rc = yk_network_save(r->n, path);
  if (rc == YK_OK) rc = yk_keras_new(1, &k);
  if (rc == YK_OK) rc = yk_network_load(k, path, &n);
  if (rc == YK_OK && yk_network_metric_name(n, 1) == NULL) rc = YK_EINTERNAL;
  yk_keras_free(k);
  unlink(path);
  return rc;
}

static yk_code call_pass_through(void) { return with_rig(true, pass_through); }
static yk_code call_compile(void) { return with_rig(false, compile); }
static yk_code call_rate(void) { return with_rig(true, rate); }
static yk_code call_fit(void) { return with_rig(true, fit); }
static yk_code call_evaluate(void) { return with_rig(true, evaluate); }
static yk_code call_train(void) { return with_rig(true, train); }
static yk_code call_test(void) { return with_rig(true, test); }

/* ---- callbacks --------------------------------------------------------------------------------------------------------------- */

static double same(int64_t epoch, double rate, void *arg) { (void)epoch; (void)arg; return rate; }
static yk_code made(yk_code rc, yk_callback *c) {
  if (rc == YK_OK) yk_callback_free(c);
  return rc;
}
static yk_code call_checkpoint(void) {
  yk_callback *c = NULL;
  yk_code rc = yk_callback_checkpoint(&(yk_checkpoint_config){ .path = "/tmp/{epoch}.h5" }, &c);
  return made(rc, c);
}
static yk_code call_early_stopping(void) {
  yk_callback *c = NULL;
  yk_code rc = yk_callback_early_stopping(NULL, &c);
  return made(rc, c);
}
static yk_code call_plateau(void) {
  yk_callback *c = NULL;
  yk_code rc = yk_callback_reduce_lr_on_plateau(NULL, &c);
  return made(rc, c);
}
static yk_code call_scheduler(void) {
  yk_callback *c = NULL;
  yk_code rc = yk_callback_learning_rate_scheduler(same, NULL, false, &c);
  return made(rc, c);
}
static yk_code call_csv(void) {
  yk_callback *c = NULL;
  yk_code rc = yk_callback_csv_logger("/tmp/x.csv", 0, false, &c);
  return made(rc, c);
}
static yk_code call_board(void) { yk_callback *c = NULL; yk_code rc = yk_callback_tensorboard(NULL, &c); return made(rc, c); }
static yk_code call_nan(void) { yk_callback *c = NULL; yk_code rc = yk_callback_terminate_on_nan(&c); return made(rc, c); }

#define DEAR .survives = true, .stride = 97, .least = 100  /* idle plans give way */
const fault_case fault_fit[] = {
  { .names = "yk_network_compile", .call = call_compile, .stride = 3, .least = 10 },
  { .names = "yk_network_learning_rate", .call = call_rate, DEAR },
  { .names = "yk_network_set_learning_rate", .call = call_rate, DEAR },
  { .names = "yk_network_save", .call = call_pass_through, DEAR },
  { .names = "yk_network_fit", .call = call_fit, DEAR },
  { .names = "yk_logs_set", .call = call_fit, DEAR },
  { .names = "yk_network_evaluate", .call = call_evaluate, DEAR },
  { .names = "yk_network_train_on_batch", .call = call_train, DEAR },
  { .names = "yk_network_test_on_batch", .call = call_test, DEAR },
  { .names = "yk_callback_checkpoint", .call = call_checkpoint, .least = 3 },
  { .names = "yk_callback_early_stopping", .call = call_early_stopping, .least = 2 },
  { .names = "yk_callback_reduce_lr_on_plateau", .call = call_plateau, .least = 2 },
  { .names = "yk_callback_learning_rate_scheduler", .call = call_scheduler, .least = 1 },
  { .names = "yk_callback_csv_logger", .call = call_csv, .least = 2 },
  { .names = "yk_callback_tensorboard", .call = call_board, .least = 2 },
  { .names = "yk_callback_terminate_on_nan", .call = call_nan, .least = 1 },
  { 0 }
};
