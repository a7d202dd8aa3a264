/*
 * fit.h - networks that learn: compile, fit, evaluate, as Keras has them, on any number of devices.
 *
 * A network is compiled with an optimizer, losses and metrics, and then fitted to examples. Where it was placed on several devices
 * (yk_network_place()), each batch is split over them, also one that is smaller than their number; losses and metrics are those of the
 * whole batch, and gradients are those of one device, batch normalisation included. Whoever looks at the network, its callbacks and its files,
 * sees one network whatever the devices.
 */
#ifndef YK_FIT_H
#define YK_FIT_H

#include "data.h"
#include "network.h"
#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- compile ---------------------------------------------------------------------------------------------------------- */

/* A loss or metric of one's own: from target and prediction f32 [N, ..., C] to f32 [N, ...], a number for each example. It is called
 * whenever a step is built, so `arg` lives as long as the network. */
typedef yk_value (*yk_measure_fn)(yk_graph *g, yk_value target, yk_value prediction, void *arg);

/*
 * Losses, by Keras's names: mse, mae, mape, msle, huber, logcosh, poisson, cosine_similarity, hinge, squared_hinge, categorical_hinge,
 * categorical_crossentropy, sparse_categorical_crossentropy, binary_crossentropy, kullback_leibler_divergence; also by their long names and
 * those of their classes. Formulae: docs/keras.md. A loss is the sum over all numbers of the batch, times the weights of their examples,
 * over how many numbers there are; the total is the sum of the losses times their weights, and of the layers' penalties.
 */
typedef struct yk_loss {
  const char *output;              /* whose: the name of a layer that gives an output. NULL: entry i is output i's; an only entry is everyone's */
  const char *name;                /* NULL: `fn`, or, without one, this output is not trained */
  double weight;                   /* 0 = 1; YK_EXACTLY_ZERO */
  bool from_logits;                /* crossentropies: the prediction is no probability yet */
  double label_smoothing, delta;   /* crossentropies; huber, 0 = 1 */
  yk_measure_fn fn; void *arg;
} yk_loss;

/*
 * Metrics: every loss, and accuracy (acc: the one that fits the loss), binary_accuracy, categorical_accuracy,
 * sparse_categorical_accuracy, top_k_categorical_accuracy, sparse_top_k_categorical_accuracy, crossentropy (ce), precision, recall,
 * root_mean_squared_error.
 */
typedef struct yk_metric {
  const char *output;              /* NULL: of every output */
  const char *name;                /* NULL: `fn` */
  const char *label;               /* in logs; NULL = name. Other outputs' names stand before it if there are several: "main_output_acc" */
  bool weighted;                   /* by the weights of examples */
  int32_t k;                       /* top_k; 0 = 5 */
  double threshold;                /* what counts as yes: above it; 0 = 0.5 */
  yk_measure_fn fn; void *arg;
} yk_metric;

typedef struct yk_compile_options {
  uint32_t size;                   /* YK_COMPILE_OPTIONS_INIT sets it */
  const yk_optimizer *optimizer;   /* NULL = YK_KERAS_RMSPROP(1e-3). Its learning_rate is {0}, or a value of yk_keras_graph() */
  double decay;                    /* of the rate: rate / (1 + decay * updates so far) */
  double clip_norm, clip_value, global_clip_norm;    /* of the summed gradients: each by its norm, by value, all by one norm; 0 = not */
  size_t nlosses; const yk_loss *losses;
  size_t nmetrics; const yk_metric *metrics;
  yk_dtype precision;              /* YK_BF16: products and convolutions of training in bf16, as yk_precision_push(); 0 = f32 */
} yk_compile_options;
#define YK_COMPILE_OPTIONS_INIT { .size = sizeof(yk_compile_options) }

/* All is copied. Compiling again starts with a new optimizer. EINVAL: names what is not there and what there is. */
yk_code yk_network_compile(yk_network *n, const yk_compile_options *options) YK_CHECKED;
/* "loss", then "<output>_loss" of each trained output if there are several, then metrics. NULL past the end, or not compiled. Borrowed. */
const char *yk_network_metric_name(const yk_network *n, size_t i);
/* Now, before decay. EINVAL: not compiled, or the optimizer's rate is a value of the graph. */
yk_code yk_network_learning_rate(yk_network *n, double *out) YK_CHECKED;
yk_code yk_network_set_learning_rate(yk_network *n, double rate) YK_CHECKED;

/* ---- examples ------------------------------------------------------------------------------------------------------------- */

/*
 * What to learn: tensors whose first dimension is the same, or a data set. Numbers are cast to what the network needs. Targets of sparse losses are
 * class numbers [rows, ...] or [rows, ..., 1]; others have the output's shape, of which a last dimension of 1 may be left out.
 */
typedef struct yk_examples {
  const yk_tensor *const *x;               /* [inputs] */
  const yk_tensor *const *y;               /* [outputs]; NULL for those that have neither loss nor metric */
  const yk_tensor *const *sample_weight;   /* [outputs] or NULL; each [rows], or [rows, T] for each step of time, or NULL: all 1 */
  const yk_dataset *dataset;       /* instead: components with the names of inputs and outputs, else the first ones are the inputs and those
                                      after them the targets. A picture becomes x/255 - 0.5, or what `augment` says. No weights */
  yk_augment augment;
} yk_examples;

/* ---- fit -------------------------------------------------------------------------------------------------------------------- */

typedef struct yk_callback yk_callback;    /* callbacks.h */
typedef struct yk_history yk_history;

typedef struct yk_fit_options {
  uint32_t size;                   /* YK_FIT_OPTIONS_INIT sets the values of Keras */
  int64_t batch_size, epochs, initial_epoch;   /* epochs: where to end, counted from 0, not how many */
  bool no_shuffle;                 /* take the examples in their order; else each epoch has its own */
  int32_t verbose;                 /* 0 nothing, 1 a bar that moves, 2 a line for each epoch */
  double validation_split;         /* the last part of the tensors, 0 to 1, is for validation */
  const yk_examples *validation;   /* instead */
  int64_t validation_batch_size;   /* 0 = batch_size */
  int64_t validation_freq;         /* every so many epochs */
  int64_t steps_per_epoch, validation_steps;   /* batches; 0 = all examples once */
  size_t nclass_weights; const double *class_weight;    /* [classes]: weight of an example, by the class of its target; one output */
  size_t ncallbacks; yk_callback *const *callbacks;     /* borrowed */
  void (*print)(const char *text, void *arg); void *print_arg;       /* where verbose goes; NULL = standard output */
} yk_fit_options;
#define YK_FIT_OPTIONS_INIT { .size = sizeof(yk_fit_options), .batch_size = 32, .epochs = 1, .verbose = 1, .validation_freq = 1 }

/*
 * Fit a compiled network. history: NULL, or *history: yk_history_free(), also if training was stopped by a callback. The last batch of an
 * epoch may be smaller. EINVAL: not compiled, a tensor or an option that does not fit; what callbacks report. After an error the
 * network keeps what it has learned so far.
 */
yk_code yk_network_fit(yk_network *n, const yk_examples *examples, const yk_fit_options *options, yk_history **history) YK_CHECKED;
/* out: as many numbers as there are yk_network_metric_name()s, over all examples. batch_size 0 = 32. */
yk_code yk_network_evaluate(yk_network *n, const yk_examples *examples, int64_t batch_size, double *out) YK_CHECKED;
/* One update with all of the examples as one batch; and the same numbers without one. out may be NULL. */
yk_code yk_network_train_on_batch(yk_network *n, const yk_examples *examples, double *out) YK_CHECKED;
yk_code yk_network_test_on_batch(yk_network *n, const yk_examples *examples, double *out) YK_CHECKED;

/* What fit found: a list for each name ("loss", "val_loss", "lr"), with a number for each epoch; NaN where it had none. Borrowed from h. */
void          yk_history_free(yk_history *h);
size_t        yk_history_epochs(const yk_history *h);
const char   *yk_history_name(const yk_history *h, size_t i);              /* NULL past the end */
const double *yk_history_values(const yk_history *h, const char *name);    /* [epochs]; NULL: no such name */

#ifdef __cplusplus
}
#endif
#endif
