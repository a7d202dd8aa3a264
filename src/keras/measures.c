/*
 * measures.c - the losses and metrics of Keras by name.
 *
 * Formulae: docs/keras.md; epsilon is Keras's 1e-7. A crossentropy of what a softmax or sigmoid gave is worked out
 * from the logits that went in, which is both exact and cheap; other probabilities are clipped, as Keras does it.
 */
#include "graph/graph.h"
#include "keras/measures.h"
#include "op/registry.h"

#define M(builder, ...) yk_##builder##_at(c->where, c->g, __VA_ARGS__)
static const double EPSILON = 1e-7;

/* ---- pieces ------------------------------------------------------------------------------------------------------------- */

static const yk_reduce_attrs LAST = { .naxes = 1, .axis = { -1 } }, LAST_KEPT = { .naxes = 1, .axis = { -1 }, .keepdims = 1 };

static yk_value number(const yk_measure_call *c, double x) { return M(scalar, YK_F32, x); }
static yk_value sum(const yk_measure_call *c, yk_value x) { return M(reduce_sum, x, &LAST); }
static yk_value mean(const yk_measure_call *c, yk_value x) { return M(reduce_mean, x, &LAST); }
static yk_value difference(const yk_measure_call *c) { return M(sub, c->prediction, c->target); }
static yk_value is_true(const yk_measure_call *c, yk_value x) { return M(cast, x, YK_F32); }
static int64_t classes(const yk_measure_call *c) {
  const yk_desc *d = yk_value_desc(c->g, c->prediction);
  return d != NULL && d->rank > 0 ? d->dim[d->rank - 1] : -1;
}

/* What went into the softmax or sigmoid that gave the prediction; {0}: it was neither. */
static yk_value logits_of(const yk_measure_call *c, const yk_op *op) {
  const yk_node *node = yk__value_node(c->g, c->prediction);
  if (c->from_logits) return c->prediction;
  return (yk_value){ node != NULL && node->op == op ? node->in[0] : 0 };
}

/* x [N, ..., C] as [rows, C]. */
static yk_value rows_of(const yk_measure_call *c, yk_value x) {
  const yk_desc *d = yk_value_desc(c->g, x);
  return d == NULL || d->rank == 2 ? x : M(reshape, x, YK_SHAPE(-1, d->dim[d->rank - 1]));
}

/* One number a row back in the shape [N, ...] of the prediction without its last axis. */
static yk_value unrow(const yk_measure_call *c, yk_value x) {
  const yk_desc *d = yk_value_desc(c->g, c->prediction);
  yk_shape s = { 0 };
  int unknown = 0;
  if (d == NULL || d->rank == 2) return x;
  s.rank = d->rank - 1u;
  for (uint32_t i = 0; i < s.rank; i++) {
    s.dim[i] = d->dim[i];
    unknown += d->dim[i] < 0;
  }
  return unknown > 1 ? M(reshape_like, x, sum(c, c->prediction)) : M(reshape, x, s);
}

/* ---- distances ------------------------------------------------------------------------------------------------------------ */

static void mse(yk_measure_call *c) { c->value = mean(c, M(squared_difference, c->prediction, c->target)); }
static void mae(yk_measure_call *c) { c->value = mean(c, M(abs, difference(c))); }

static void mape(yk_measure_call *c) {
  yk_value size = M(maximum, M(abs, c->target), number(c, EPSILON));
  c->value = M(mul, mean(c, M(abs, M(div, difference(c), size))), number(c, 100));
}

static yk_value log1_of(const yk_measure_call *c, yk_value x) {
  return M(log, M(add, M(maximum, x, number(c, EPSILON)), number(c, 1)));
}
static void msle(yk_measure_call *c) {
  c->value = mean(c, M(squared_difference, log1_of(c, c->prediction), log1_of(c, c->target)));
}

static void huber(yk_measure_call *c) {
  double delta = c->delta > 0 ? c->delta : 1;
  c->value = mean(c, M(mul, M(smooth_l1, c->prediction, c->target, delta), number(c, delta)));
}

/* x + softplus(-2x) - log 2 */
static void logcosh(yk_measure_call *c) {
  yk_value x = difference(c), soft = M(softplus, M(mul, x, number(c, -2)));
  c->value = mean(c, M(add, x, M(sub, soft, number(c, 0.69314718055994531))));
}

static void poisson(yk_measure_call *c) {
  yk_value log = M(log, M(add, c->prediction, number(c, EPSILON)));
  c->value = mean(c, M(sub, c->prediction, M(mul, c->target, log)));
}

static yk_value unit(const yk_measure_call *c, yk_value x) {
  yk_value square = M(reduce_sum, M(square, x), &LAST_KEPT);
  return M(mul, x, M(rsqrt, M(maximum, square, number(c, 1e-12))));
}
static void cosine(yk_measure_call *c) { c->value = sum(c, M(mul, unit(c, c->target), unit(c, c->prediction))); }
static void cosine_loss(yk_measure_call *c) {
  cosine(c);
  c->value = M(neg, c->value);
}

/* ---- margins ---------------------------------------------------------------------------------------------------------------- */

/* Labels 0 and 1 as -1 and 1, others as they are; told apart example by example. */
static yk_value signs(const yk_measure_call *c) {
  yk_value is_zero = M(equal, c->target, number(c, 0)), is_one = M(equal, c->target, number(c, 1));
  yk_value neither = M(logical_not, M(logical_or, is_zero, is_one));
  yk_value others = M(reduce_sum, is_true(c, neither), NULL), moved = M(sub, M(mul, c->target, number(c, 2)), number(c, 1));
  return M(where, M(greater, others, number(c, 0)), c->target, moved);
}
static yk_value margin(const yk_measure_call *c) {
  return M(relu, M(sub, number(c, 1), M(mul, signs(c), c->prediction)));
}
static void hinge(yk_measure_call *c) { c->value = mean(c, margin(c)); }
static void squared_hinge(yk_measure_call *c) { c->value = mean(c, M(square, margin(c))); }

static void categorical_hinge(yk_measure_call *c) {
  yk_value right = sum(c, M(mul, c->target, c->prediction));
  yk_value others = M(mul, M(sub, number(c, 1), c->target), c->prediction);
  c->value = M(relu, M(add, M(sub, M(reduce_max, others, &LAST), right), number(c, 1)));
}

/* ---- crossentropies --------------------------------------------------------------------------------------------------------- */

static yk_value clipped(const yk_measure_call *c, yk_value p, double hi) { return M(clip, p, EPSILON, hi); }

static void categorical(yk_measure_call *c) {
  yk_value logits = logits_of(c, &yk__op_softmax), y = c->target, s = number(c, c->label_smoothing);
  if (c->label_smoothing > 0)
    y = M(add, M(mul, y, M(sub, number(c, 1), s)), number(c, c->label_smoothing / (double)classes(c)));
  if (logits.id != 0) {
    c->value = unrow(c, M(softmax_cross_entropy, rows_of(c, logits), rows_of(c, y)));
    return;
  }
  yk_value p = M(div, c->prediction, M(reduce_sum, c->prediction, &LAST_KEPT));
  c->value = M(neg, sum(c, M(mul, y, M(log, clipped(c, p, 1 - EPSILON)))));
}

static void sparse_categorical(yk_measure_call *c) {
  yk_value logits = logits_of(c, &yk__op_softmax);
  if (logits.id == 0) logits = M(log, clipped(c, c->prediction, 1 - EPSILON));
  const yk_desc *d = yk_value_desc(c->g, c->target);
  yk_value y = d == NULL || d->rank == 1 ? c->target : M(reshape, c->target, YK_SHAPE(-1));
  c->value = unrow(c, M(sparse_softmax_cross_entropy, rows_of(c, logits), y));
}

static void binary(yk_measure_call *c) {
  yk_value logits = logits_of(c, &yk__op_sigmoid), y = c->target;
  if (c->label_smoothing > 0)
    y = M(add, M(mul, y, number(c, 1 - c->label_smoothing)), number(c, c->label_smoothing / 2));
  if (logits.id != 0) {
    c->value = mean(c, M(sigmoid_cross_entropy, logits, y));
    return;
  }
  yk_value p = clipped(c, c->prediction, 1 - EPSILON), e = number(c, EPSILON), one = number(c, 1);
  yk_value yes = M(mul, y, M(log, M(add, p, e)));
  yk_value no = M(mul, M(sub, one, y), M(log, M(add, M(sub, one, p), e)));
  c->value = M(neg, mean(c, M(add, yes, no)));
}

static void kld(yk_measure_call *c) {
  yk_value y = clipped(c, c->target, 1), p = clipped(c, c->prediction, 1);
  c->value = sum(c, M(mul, y, M(log, M(div, y, p))));
}

/* ---- accuracies ---------------------------------------------------------------------------------------------------------------- */

/* An exact half is no: Keras 2 rounds it to even. */
static yk_value yes(const yk_measure_call *c) {
  return is_true(c, M(greater, c->prediction, number(c, c->threshold > 0 ? c->threshold : 0.5)));
}
static void binary_accuracy(yk_measure_call *c) { c->value = mean(c, is_true(c, M(equal, c->target, yes(c)))); }

static void categorical_accuracy(yk_measure_call *c) {
  c->value = is_true(c, M(equal, M(argmax, c->target, -1), M(argmax, c->prediction, -1)));
}
static void sparse_accuracy(yk_measure_call *c) {
  c->value = is_true(c, M(equal, M(cast, c->target, YK_I64), M(argmax, c->prediction, -1)));
}
static void sparse_top_k(yk_measure_call *c) {
  int32_t k = c->k > 0 ? c->k : 5;
  c->value = unrow(c, is_true(c, M(in_top_k, rows_of(c, c->prediction), M(reshape, c->target, YK_SHAPE(-1)), k)));
}
static void top_k(yk_measure_call *c) {
  c->target = M(argmax, c->target, -1);
  sparse_top_k(c);
}

static void precision(yk_measure_call *c) {
  yk_value positive = yes(c);
  c->value = sum(c, M(mul, c->target, positive));
  c->of = sum(c, positive);
}
static void recall(yk_measure_call *c) {
  c->value = sum(c, M(mul, c->target, yes(c)));
  c->of = sum(c, c->target);
}

/* ---- the table ---------------------------------------------------------------------------------------------------------------------- */

static const yk_measure MEASURES[] = {
  { "mse|mean_squared_error|MSE|MeanSquaredError", YK__LOSS, false, false, mse },
  { "mae|mean_absolute_error|MAE|MeanAbsoluteError", YK__LOSS, false, false, mae },
  { "mape|mean_absolute_percentage_error|MAPE|MeanAbsolutePercentageError", YK__LOSS, false, false, mape },
  { "msle|mean_squared_logarithmic_error|MSLE|MeanSquaredLogarithmicError", YK__LOSS, false, false, msle },
  { "huber|huber_loss|Huber", YK__LOSS, false, false, huber },
  { "logcosh|log_cosh|LogCosh", YK__LOSS, false, false, logcosh },
  { "poisson|Poisson", YK__LOSS, false, false, poisson },
  { "cosine_similarity|cosine_proximity|CosineSimilarity", YK__LOSS, false, false, cosine_loss },
  { "hinge|Hinge", YK__LOSS, false, false, hinge },
  { "squared_hinge|SquaredHinge", YK__LOSS, false, false, squared_hinge },
  { "categorical_hinge|CategoricalHinge", YK__LOSS, false, false, categorical_hinge },
  { "categorical_crossentropy|CategoricalCrossentropy", YK__LOSS, false, false, categorical },
  { "sparse_categorical_crossentropy|SparseCategoricalCrossentropy", YK__LOSS, true, false, sparse_categorical },
  { "binary_crossentropy|BinaryCrossentropy", YK__LOSS, false, false, binary },
  { "kullback_leibler_divergence|kl_divergence|kld|KLD|KLDivergence", YK__LOSS, false, false, kld },
  { "binary_accuracy|BinaryAccuracy", YK__METRIC, false, false, binary_accuracy },
  { "categorical_accuracy|CategoricalAccuracy", YK__METRIC, false, false, categorical_accuracy },
  { "sparse_categorical_accuracy|SparseCategoricalAccuracy", YK__METRIC, true, false, sparse_accuracy },
  { "top_k_categorical_accuracy|TopKCategoricalAccuracy", YK__METRIC, false, false, top_k },
  { "sparse_top_k_categorical_accuracy|SparseTopKCategoricalAccuracy", YK__METRIC, true, false, sparse_top_k },
  { "cosine_similarity|cosine_proximity|CosineSimilarity", YK__METRIC, false, false, cosine },
  { "precision|Precision", YK__METRIC, false, false, precision },
  { "recall|Recall", YK__METRIC, false, false, recall },
  { "root_mean_squared_error|rmse|RootMeanSquaredError", YK__METRIC, false, true, mse },
};

const yk_measure *yk__measure_at(size_t i) { return i < sizeof MEASURES / sizeof *MEASURES ? &MEASURES[i] : NULL; }

const yk_measure *yk__measure(const char *name, yk_measure_use use) {
  const yk_measure *loss = NULL;
  for (size_t i = 0; i < sizeof MEASURES / sizeof *MEASURES; i++) {
    if (!yk__named_in(MEASURES[i].names, name)) continue;
    if (MEASURES[i].use == use) return &MEASURES[i];
    loss = &MEASURES[i];
  }
  return use == YK__METRIC ? loss : NULL;
}
