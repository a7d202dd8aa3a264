/*
 * network.h - what the commands on model files share: a network out of a file, where it runs, and data as its inputs and targets.
 *
 * `yoke train model.h5` goes another way than `yoke train cifar10`: the network, its losses and its optimizer are those of the file.
 */
#ifndef YK_CLI_NETWORK_H
#define YK_CLI_NETWORK_H

#include <yoke/yoke.h>
#include "cli/cli.h"

/* Does the operand name a model file? */
bool yk__is_model_file(const char *name);

typedef struct yk_model_job {
  yk_keras *k;
  yk_network *n;
  yk_chosen devices;
} yk_model_job;
/* Load c->model; place it as the options say, unless `look` (the file is only looked at). 0, or an exit status with the error printed. */
int  yk__model_open(const yk_cli *c, bool look, yk_model_job *out);
void yk__model_close(yk_model_job *m);

/* Examples in memory: a tensor for each input, and for each output that the data set has a target for. */
typedef struct yk_table {
  int64_t rows;
  yk_tensor *x[64], *y[64];
  uint32_t nx, ny;
} yk_table;
/* The part of --data (or of --test-data) for training or tests; with `all`, whichever there is, without targets. */
int  yk__table_open(const yk_cli *c, const yk_network *n, yk_split split, bool all, yk_table *out);
void yk__table_free(yk_table *t);
yk_examples yk__table_examples(const yk_table *t);

/* --loss, --metrics, --optimizer, --lr: compile the network again where the file says otherwise, or nothing. */
int  yk__model_compile(const yk_cli *c, yk_network *n);

int  yk__model_train(const yk_cli *c);
int  yk__model_evaluate(const yk_cli *c);

#endif
