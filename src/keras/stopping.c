/*
 * stopping.c - EarlyStopping and TerminateOnNaN: ends of a fit before its last epoch.
 *
 * The weights of the best epoch are kept on the host, and put back only if stopping was triggered.
 */
#include <math.h>
#include "base/error.h"
#include "keras/monitor.h"
#include "keras/weights.h"

typedef struct stopping {
  yk_callback self;
  yk_monitor monitor;
  yk_early_stopping_config config;
  int64_t wait, stopped_epoch;
  yk_weights best;                 /* with their values */
} stopping;

static void forget(stopping *s) {
  for (uint32_t i = 0; i < s->best.n; i++) yk_tensor_free(s->best.at[i].value);
  yk__free(s->best.at);
  s->best = (yk_weights){ 0 };
}

static yk_code keep(stopping *s, yk_network *n) {
  forget(s);
  for (uint32_t i = 0; i < n->nlayer; i++) YK_TRY(yk__weights_of(n->layer[i], n->self.frozen, &s->best));
  for (uint32_t i = 0; i < s->best.n; i++)
    YK_TRY(yk_layer_weight(s->best.at[i].layer, s->best.at[i].weight->name, &s->best.at[i].value));
  return YK_OK;
}

static yk_code restore(stopping *s, yk_training *t) {
  if (s->config.verbose) yk_training_print(t, "Restoring model weights from the end of the best epoch");
  for (uint32_t i = 0; i < s->best.n; i++)
    YK_TRY(yk_layer_set_weight(s->best.at[i].layer, s->best.at[i].weight->name, s->best.at[i].value));
  return YK_OK;
}

static yk_code begin(yk_callback *self, yk_training *t) {
  stopping *s = (stopping *)self;
  (void)t;
  s->wait = s->stopped_epoch = 0;
  yk__monitor_begin(&s->monitor);
  if (s->config.has_baseline) s->monitor.best = s->config.baseline;
  return YK_OK;
}

static yk_code epoch_end(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  stopping *s = (stopping *)self;
  double now;
  if (!yk__monitor_read(&s->monitor, t, "early stopping", logs, &now)) return YK_OK;
  if (yk__monitor_better(&s->monitor, now)) {
    s->monitor.best = now;
    s->wait = 0;
    return s->config.restore_best_weights ? keep(s, yk_training_network(t)) : YK_OK;
  }
  if (++s->wait < s->config.patience) return YK_OK;
  s->stopped_epoch = epoch;
  yk_training_stop(t);
  return s->config.restore_best_weights ? restore(s, t) : YK_OK;
}

static yk_code end(yk_callback *self, yk_training *t) {
  stopping *s = (stopping *)self;
  if (s->config.verbose && s->stopped_epoch > 0)
    yk_training_print(t, "Epoch %05lld: early stopping", (long long)s->stopped_epoch + 1);
  forget(s);
  return YK_OK;
}

static void drop(yk_callback *self) {
  stopping *s = (stopping *)self;
  forget(s);
  yk__monitor_free(&s->monitor);
  yk__free(s);
}

yk_code yk_callback_early_stopping(const yk_early_stopping_config *config, yk_callback **out) {
  static const yk_early_stopping_config usual = { 0 };
  if (out == NULL) return YK_FAIL(EINVAL, "yk_callback_early_stopping: no place for the callback");
  if (config == NULL) config = &usual;
  if (config->patience < 0) return YK_FAIL(EINVAL, "a patience of %lld epochs", (long long)config->patience);
  stopping *s = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  s->self = (yk_callback){ .on_train_begin = begin, .on_epoch_end = epoch_end, .on_train_end = end, .free = drop };
  s->config = *config;
  yk_code rc = yk__monitor_new(config->monitor, config->mode, config->min_delta, &s->monitor);
  if (rc == YK_OK) *out = &s->self;
  else drop(&s->self);
  return rc;
}

/* ---- not a number --------------------------------------------------------------------------------------------------------- */

static yk_code batch_end(yk_callback *self, yk_training *t, int64_t batch, yk_logs *logs) {
  double loss;
  (void)self;
  if (!yk_logs_get(logs, "loss", &loss) || isfinite(loss)) return YK_OK;
  yk_training_print(t, "Batch %lld: Invalid loss, terminating training", (long long)batch);
  yk_training_stop(t);
  return YK_OK;
}

static void drop_plain(yk_callback *self) { yk__free(self); }

yk_code yk_callback_terminate_on_nan(yk_callback **out) {
  if (out == NULL) return YK_FAIL(EINVAL, "yk_callback_terminate_on_nan: no place for the callback");
  yk_callback *c = yk__calloc(1, sizeof *c);
  if (c == NULL) return YK_ENOMEM;
  *c = (yk_callback){ .on_batch_end = batch_end, .free = drop_plain };
  *out = c;
  return YK_OK;
}
