/*
 * network.h - what the commands on Keras models share: a network out of a file or a built-in one, where it runs, and data as its inputs and targets.
 *
 * `yoke train model.h5` goes another way than `yoke train cifar10`: the network, its losses and its optimizer are those of the file. So does
 * `yoke train lstm`, whose network is made of the same layers.
 */
#ifndef YK_CLI_NETWORK_H
#define YK_CLI_NETWORK_H

#include <yoke/yoke.h>
#include "cli/cli.h"

/* Does it name a model file; a built-in network of Keras's layers; either? */
bool yk__is_model_file(const char *name);
bool yk__is_builtin(const char *name);
bool yk__is_keras(const char *name);
/* Names of the built-in ones, NULL past the end; their lines of --help. */
const char *yk__builtin_at(size_t i);
void yk__help_builtin(void);

typedef struct yk_model_job {
  yk_keras *k;
  yk_network *n;
  yk_chosen devices;
} yk_model_job;
/* What a command does with a model: look at it, train it, or use what it has learnt. */
typedef enum yk_model_use { YK__MODEL_LOOK, YK__MODEL_TRAIN, YK__MODEL_USE } yk_model_use;
/* Load or make c->model; place it as the options say, unless it is only looked at. 0, or an exit status with the error printed. */
int  yk__model_open(const yk_cli *c, yk_model_use use, yk_model_job *out);
/* The built-in one, compiled; needs_weights: c->model has to name a file of them. */
int  yk__builtin_open(const yk_cli *c, bool needs_weights, yk_keras *k, yk_network **out);
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

/* What the data have for a network of one input and one output. */
typedef struct yk_look {
  bool there;                        /* false: no data are named, all is 0 */
  yk_shape input;                    /* of an example */
  bool encoded;                      /* pictures of any size, here as large as the first one */
  int64_t classes;                   /* 0: no target */
  bool one_hot;                      /* the target is a number for each class */
} yk_look;
/* side: that encoded pictures are to have, 0: as they are. 0, or an exit status with the error printed. */
int yk__table_look(const yk_cli *c, int64_t side, yk_look *out);

/* --loss, --metrics, --optimizer, --lr: compile the network again where the file says otherwise, or nothing. */
int  yk__model_compile(const yk_cli *c, yk_network *n);

int  yk__model_train(const yk_cli *c);
int  yk__model_evaluate(const yk_cli *c);

#endif
