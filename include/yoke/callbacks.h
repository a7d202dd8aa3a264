/*
 * callbacks.h - what is done beside fitting: saving the best, stopping early, turning the rate down, logs; Keras's and one's own.
 */
#ifndef YK_CALLBACKS_H
#define YK_CALLBACKS_H

#include "fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of a batch or an epoch by name. A callback may set more of them, which later ones and the history see. */
typedef struct yk_logs yk_logs;
size_t      yk_logs_count(const yk_logs *logs);
const char *yk_logs_name(const yk_logs *logs, size_t i);                    /* NULL past the end */
double      yk_logs_at(const yk_logs *logs, size_t i);
bool        yk_logs_get(const yk_logs *logs, const char *name, double *out);    /* false: there is none; *out is untouched */
yk_code     yk_logs_set(yk_logs *logs, const char *name, double value) YK_CHECKED;

/* A fit under way. */
typedef struct yk_training yk_training;
yk_network *yk_training_network(const yk_training *t);
int64_t     yk_training_epochs(const yk_training *t);
/* End after this batch. */
void        yk_training_stop(yk_training *t);
/* A line where verbose output goes, between bars, also if verbose is 0. */
void        yk_training_print(yk_training *t, const char *fmt, ...) YK_PRINTF(2, 3);

/*
 * One's own: a struct that begins with a yk_callback, whose functions get it back. Each may be NULL. Epochs and batches count from 0. An
 * error ends the fit with that error. on_train_end is called in any case but an error.
 */
struct yk_callback {
  yk_code (*on_train_begin)(yk_callback *c, yk_training *t);
  yk_code (*on_epoch_begin)(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs);
  yk_code (*on_batch_begin)(yk_callback *c, yk_training *t, int64_t batch);
  yk_code (*on_batch_end)(yk_callback *c, yk_training *t, int64_t batch, yk_logs *logs); /* loss, metrics, "size" of this batch */
  yk_code (*on_epoch_end)(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs); /* those of the epoch, and val_ ones */
  yk_code (*on_train_end)(yk_callback *c, yk_training *t);
  void (*free)(yk_callback *c);
};
void yk_callback_free(yk_callback *c);     /* NULL is fine */

/* What is watched, and which way is better. auto: max where `monitor` has "acc" in it or begins with "fmeasure", else min. */
typedef enum yk_monitor_mode { YK_MONITOR_AUTO, YK_MONITOR_MIN, YK_MONITOR_MAX } yk_monitor_mode;

/*
 * Save the network after epochs. path: with {epoch} (from 1), {epoch:02d}, {val_loss:.2f} and any other name of the logs. A folder that
 * is not there is an error when fit begins.
 */
typedef struct yk_checkpoint_config {
  const char *path;
  const char *monitor;             /* NULL = "val_loss" */
  yk_monitor_mode mode;
  bool save_best_only, save_weights_only, verbose;
  int64_t period;                  /* epochs; 0 = 1 */
} yk_checkpoint_config;
yk_code yk_callback_checkpoint(const yk_checkpoint_config *config, yk_callback **out) YK_CHECKED;

/* Stop when nothing gets better for `patience` epochs. */
typedef struct yk_early_stopping_config {
  const char *monitor;             /* NULL = "val_loss" */
  yk_monitor_mode mode;
  double min_delta;                /* less than this is no improvement */
  int64_t patience;
  bool has_baseline; double baseline;      /* to be beaten */
  bool restore_best_weights, verbose;
} yk_early_stopping_config;
yk_code yk_callback_early_stopping(const yk_early_stopping_config *config, yk_callback **out) YK_CHECKED;

/* rate = max(rate * factor, min_lr) when nothing gets better for `patience` epochs, then wait `cooldown` epochs. Logs "lr". */
typedef struct yk_reduce_lr_config {
  const char *monitor;             /* NULL = "val_loss" */
  yk_monitor_mode mode;
  double factor;                   /* below 1; 0 = 0.1 */
  int64_t patience;                /* 0 = 10 */
  double min_delta;                /* 0 = 1e-4 */
  int64_t cooldown;
  double min_lr;
  bool verbose;
} yk_reduce_lr_config;
yk_code yk_callback_reduce_lr_on_plateau(const yk_reduce_lr_config *config, yk_callback **out) YK_CHECKED;

/* rate = schedule(epoch, rate) before each epoch. Logs "lr". */
typedef double (*yk_schedule_fn)(int64_t epoch, double rate, void *arg);
yk_code yk_callback_learning_rate_scheduler(yk_schedule_fn schedule, void *arg, bool verbose, yk_callback **out) YK_CHECKED;

/* A line for each epoch, columns "epoch" and the names of the first epoch's logs in order of the alphabet; a number that is missing
 * later is NA. separator 0 = ','. append: go on with a file that is there. */
yk_code yk_callback_csv_logger(const char *path, char separator, bool append, yk_callback **out) YK_CHECKED;

/* Events for TensorBoard in `folder`: every number of the logs after each epoch. */
typedef struct yk_tensorboard_config {
  const char *folder;              /* NULL = "./logs" */
  int64_t update_freq;             /* > 0: also every so many examples */
  int64_t histogram_freq;          /* > 0: distributions of the weights every so many epochs */
  bool no_graph;
} yk_tensorboard_config;
yk_code yk_callback_tensorboard(const yk_tensorboard_config *config, yk_callback **out) YK_CHECKED;

/* Stop as soon as a batch's loss is NaN or infinite. */
yk_code yk_callback_terminate_on_nan(yk_callback **out) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
