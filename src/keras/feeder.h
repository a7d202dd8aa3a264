/*
 * feeder.h - examples as the feeds of a fit step: in an order, in batches, cast, and weighted.
 *
 * Tensors are read where they are; a data set comes through a queue (data.h), with threads that read ahead.
 */
#ifndef YK_KERAS_FEEDER_H
#define YK_KERAS_FEEDER_H

#include "keras/compile.h"

typedef struct yk_feeder yk_feeder;
typedef struct yk_feeder_options {
  int64_t from, to;                /* rows of tensors; to 0: all */
  int64_t batch;
  bool shuffle;
  size_t nclass_weights; const double *class_weight;
  const char *what;                /* for messages: "" or "validation: " */
} yk_feeder_options;

/* The rows of examples, once what they are is checked against the network. EINVAL tells what does not fit. */
yk_code yk__examples_rows(const yk_network *n, const yk_examples *e, int64_t *rows) YK_CHECKED;
/* The examples outlive it. *out: yk__feeder_close(). */
yk_code yk__feeder_open(yk_network *n, const yk_examples *e, const yk_feeder_options *o, yk_feeder **out) YK_CHECKED;
void    yk__feeder_close(yk_feeder *f);
int64_t yk__feeder_rows(const yk_feeder *f);       /* of an epoch */
bool    yk__feeder_weighted(const yk_feeder *f);
/* Go to the beginning of an epoch. */
yk_code yk__feeder_seek(yk_feeder *f, int64_t epoch) YK_CHECKED;
/* The next batch, in the order of a step's feeds; borrowed until the next call. across: batches are full, epochs run into each other;
 * else the last one of an epoch may be smaller. */
yk_code yk__feeder_next(yk_feeder *f, bool across, const yk_tensor *const **feeds, int64_t *rows) YK_CHECKED;

#endif
