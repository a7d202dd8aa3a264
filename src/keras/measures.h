/*
 * measures.h - losses and metrics: numbers for each example, worked out from what was wanted and what was predicted.
 *
 * A loss is a measure that training may follow down; every loss is a metric too. What becomes of the numbers - weights, sums over devices
 * and batches - is the step's business (step.c).
 */
#ifndef YK_KERAS_MEASURES_H
#define YK_KERAS_MEASURES_H

#include <yoke/fit.h>
#include "keras/keras.h"

typedef struct yk_measure_call {
  const char *where;
  yk_graph *g;
  yk_value target, prediction;     /* f32 [N, ..., C] both, the target i32 [N, ...] if the measure is sparse */
  double label_smoothing, delta, threshold;
  int32_t k;
  bool from_logits;
  yk_value value;                  /* result: f32 [N, ...] */
  yk_value of;                     /* result of ratios: the metric is the sum of `value` over the sum of this; else {0} */
} yk_measure_call;

typedef enum yk_measure_use { YK__LOSS, YK__METRIC } yk_measure_use;
typedef struct yk_measure {
  const char *names;               /* "mean_squared_error|mse|...": Keras's names, the first one is that of logs */
  yk_measure_use use;
  bool sparse;                     /* targets are class numbers */
  bool root;                       /* the metric is the square root of the mean */
  void (*build)(yk_measure_call *c);
} yk_measure;

/* A loss by its name, or what a metric of that name is: one of its own, else the loss. NULL: unknown. */
const yk_measure *yk__measure(const char *name, yk_measure_use use);
/* The measure's number `i`, from 0; NULL past the end. */
const yk_measure *yk__measure_at(size_t i);

#endif
