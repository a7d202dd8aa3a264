/*
 * mlp.c - a plain multi-layer perceptron.
 *
 * Two hidden layers of 1024 rectified units on the flattened picture: the
 * smallest network that is worth a benchmark.
 */
#include "model/parts.h"

static yk_value build(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_part hidden = { .weights = YK_HE_NORMAL, .biases = YK_ZEROS }, linear = { .weights = YK_GLOROT_UNIFORM, .biases = YK_ZEROS };
  yk_value x = yk_flatten(g, images);
  (void)training;
  x = yk_relu(g, yk__dense(g, "hidden1", x, 1024, &hidden));
  x = yk_relu(g, yk__dense(g, "hidden2", x, 1024, &hidden));
  return yk__dense(g, "linear", x, classes, &linear);
}

const yk_model yk__model_mlp = {
  .name = "mlp", .doc = "two hidden layers of 1024 units", .build = build,
  .image_size = 0, .train_augment = YK_AUGMENT_STANDARDISE, .eval_augment = YK_AUGMENT_STANDARDISE,
  .batch = 256, .learning_rate = 0.01, .momentum = 0.9,
};
