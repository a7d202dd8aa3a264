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
  yk_code (*on_batch_end)(yk_callback *c, yk_training *t, int64_t batch, yk_logs *logs);     /* loss, metrics, "size" of this batch */
  yk_code (*on_epoch_end)(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs);     /* those of the epoch, and val_ ones */
  yk_code (*on_train_end)(yk_callback *c, yk_training *t);
  void (*free)(yk_callback *c);
};
void yk_callback_free(yk_callback *c);     /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
