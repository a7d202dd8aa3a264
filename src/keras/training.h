/*
 * training.h - a fit under way: what callbacks are handed, and the bar.
 */
#ifndef YK_KERAS_TRAINING_H
#define YK_KERAS_TRAINING_H

#include "keras/compile.h"
#include "keras/feeder.h"
#include "keras/logs.h"

/* What verbose prints: progbar.c. */
typedef struct yk_progbar {
  int verbose;
  void (*print)(const char *text, void *arg); void *arg;
  bool terminal;                   /* bars are written over themselves */
  int64_t target;                  /* steps or examples of an epoch */
  const char *unit;                /* "step" or "sample" */
  uint64_t start_ns, drawn_ns;
  size_t width;                    /* of what is on the line */
} yk_progbar;

struct yk_training {
  yk_network *n;
  const yk_fit_options *o;
  yk_feeder *feeder, *validation;
  yk_tally tally;
  double *mean;                    /* [names] */
  yk_logs logs;
  yk_progbar bar;
  bool stop;
};

void yk__bar_print(const yk_progbar *b, const char *text);
void yk__bar_epoch(yk_progbar *b, int64_t epoch, int64_t epochs);
void yk__bar_update(yk_progbar *b, int64_t done, const yk_logs *logs);
/* The epoch's last line, with everything the logs have. */
void yk__bar_end(yk_progbar *b, int64_t done, const yk_logs *logs);

/* Every batch of an epoch through a step; the tally's means are what comes of it. steps 0: all once. */
yk_code yk__evaluate(yk_network *n, yk_feeder *f, int64_t steps, yk_tally *t) YK_CHECKED;
yk_code yk__tally_new(const yk_compiled *c, yk_tally *t) YK_CHECKED;
void    yk__tally_clear(yk_tally *t);
void    yk__tally_free(yk_tally *t);

#endif
