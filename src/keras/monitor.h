/*
 * monitor.h - a number of the logs that is watched, and whether it got better: what checkpoints, early stopping and plateaus share.
 */
#ifndef YK_KERAS_MONITOR_H
#define YK_KERAS_MONITOR_H

#include "keras/logs.h"

typedef struct yk_monitor {
  char *name;                      /* owned */
  bool up, warned;
  double delta, best;
} yk_monitor;

/* name NULL: "val_loss". EINVAL: a mode or delta that makes no sense. */
yk_code yk__monitor_new(const char *name, yk_monitor_mode mode, double delta, yk_monitor *out) YK_CHECKED;
void    yk__monitor_free(yk_monitor *m);
/* A fit begins: nothing was seen yet. */
void    yk__monitor_begin(yk_monitor *m);
/* False: the logs do not have it, which is told once; `who` misses it. */
bool    yk__monitor_read(yk_monitor *m, yk_training *t, const char *who, const yk_logs *logs, double *out);
/* Is it better than the best so far? */
bool    yk__monitor_better(const yk_monitor *m, double x);

#endif
