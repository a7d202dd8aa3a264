/*
 * rates.c - ReduceLROnPlateau and LearningRateScheduler: the learning rate, set between epochs.
 *
 * Both put the rate of the epoch into the logs as "lr".
 */
#include <math.h>
#include "base/error.h"
#include "keras/monitor.h"

typedef struct plateau {
  yk_callback self;
  yk_monitor monitor;
  yk_reduce_lr_config config;
  int64_t wait, cooldown;
} plateau;

static yk_code begin(yk_callback *self, yk_training *t) {
  plateau *p = (plateau *)self;
  double rate;
  p->wait = p->cooldown = 0;
  yk__monitor_begin(&p->monitor);
  return yk_network_learning_rate(yk_training_network(t), &rate);       /* one that cannot be set is told before training */
}

static yk_code reduce(plateau *p, yk_training *t, int64_t epoch, double rate) {
  double lower = fmax(rate * p->config.factor, p->config.min_lr);
  YK_TRY(yk_network_set_learning_rate(yk_training_network(t), lower));
  if (p->config.verbose)
    yk_training_print(t, "\nEpoch %05lld: ReduceLROnPlateau reducing learning rate to %g.", (long long)epoch + 1, lower);
  p->cooldown = p->config.cooldown;
  p->wait = 0;
  return YK_OK;
}

static yk_code epoch_end(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  plateau *p = (plateau *)self;
  double rate, now;
  YK_TRY(yk_network_learning_rate(yk_training_network(t), &rate));
  YK_TRY(yk_logs_set(logs, "lr", rate));
  if (!yk__monitor_read(&p->monitor, t, "plateau", logs, &now)) return YK_OK;
  if (p->cooldown > 0) {
    p->cooldown--;
    p->wait = 0;
  }
  if (yk__monitor_better(&p->monitor, now)) {
    p->monitor.best = now;
    p->wait = 0;
  } else if (p->cooldown == 0 && ++p->wait >= p->config.patience && rate > p->config.min_lr) {
    return reduce(p, t, epoch, rate);
  }
  return YK_OK;
}

static void drop(yk_callback *self) {
  plateau *p = (plateau *)self;
  yk__monitor_free(&p->monitor);
  yk__free(p);
}

yk_code yk_callback_reduce_lr_on_plateau(const yk_reduce_lr_config *config, yk_callback **out) {
  yk_reduce_lr_config c = config != NULL ? *config : (yk_reduce_lr_config){ 0 };
  if (out == NULL) return YK_FAIL(EINVAL, "yk_callback_reduce_lr_on_plateau: no place for the callback");
  if (c.factor == 0) c.factor = 0.1;
  if (c.patience == 0) c.patience = 10;
  if (c.min_delta == 0) c.min_delta = signbit(c.min_delta) ? 0 : 1e-4;
  if (!(c.factor > 0 && c.factor < 1))
    return YK_FAIL(EINVAL, "a factor of %g; expected 0 to 1, so that the rate goes down", c.factor);
  if (c.patience < 0 || c.cooldown < 0 || !(c.min_lr >= 0))
    return YK_FAIL(EINVAL, "patience %lld, cooldown %lld, min_lr %g; expected 0 or more", (long long)c.patience,
                   (long long)c.cooldown, c.min_lr);
  plateau *p = yk__calloc(1, sizeof *p);
  if (p == NULL) return YK_ENOMEM;
  p->self = (yk_callback){ .on_train_begin = begin, .on_epoch_end = epoch_end, .free = drop };
  p->config = c;
  yk_code rc = yk__monitor_new(c.monitor, c.mode, c.min_delta, &p->monitor);
  if (rc == YK_OK) *out = &p->self;
  else drop(&p->self);
  return rc;
}

/* ---- a schedule ----------------------------------------------------------------------------------------------------------- */

typedef struct scheduler {
  yk_callback self;
  yk_schedule_fn schedule;
  void *arg;
  bool verbose;
} scheduler;

static yk_code set_rate(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  scheduler *s = (scheduler *)self;
  yk_network *n = yk_training_network(t);
  double rate;
  (void)logs;
  YK_TRY(yk_network_learning_rate(n, &rate));
  rate = s->schedule(epoch, rate, s->arg);
  if (!(rate >= 0 && rate < HUGE_VAL))
    return YK_FAIL(EINVAL, "the schedule gives a learning rate of %g for epoch %lld", rate, (long long)epoch);
  if (s->verbose)
    yk_training_print(t, "\nEpoch %05lld: LearningRateScheduler setting learning rate to %g.", (long long)epoch + 1, rate);
  return yk_network_set_learning_rate(n, rate);
}

static yk_code log_rate(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  double rate;
  (void)self;
  (void)epoch;
  YK_TRY(yk_network_learning_rate(yk_training_network(t), &rate));
  return yk_logs_set(logs, "lr", rate);
}

static void drop_scheduler(yk_callback *self) { yk__free(self); }

yk_code yk_callback_learning_rate_scheduler(yk_schedule_fn schedule, void *arg, bool verbose, yk_callback **out) {
  if (schedule == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_callback_learning_rate_scheduler: NULL argument");
  scheduler *s = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  *s = (scheduler){ { .on_epoch_begin = set_rate, .on_epoch_end = log_rate, .free = drop_scheduler }, schedule, arg, verbose };
  *out = &s->self;
  return YK_OK;
}
