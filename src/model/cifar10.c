/*
 * cifar10.c - the network of TensorFlow's CIFAR-10 tutorial, to the constant.
 *
 * Two convolutions with pooling and local response normalisation (in that order
 * after the first, in the other after the second), two dense layers with weight
 * decay, a linear output. 1,068,298 parameters on 24x24 pictures.
 */
#include "model/parts.h"

static yk_value pool(yk_graph *g, yk_value x) {
  yk_pool_attrs a = { .window = { 3, 3 }, .stride = { 2, 2 }, .padding = YK_SAME };
  return yk_max_pool(g, x, &a);
}

static yk_value norm(yk_graph *g, yk_value x) {
  yk_lrn_attrs a = { .radius = 4, .bias = 1.0, .alpha = 0.001 / 9.0, .beta = 0.75 };
  return yk_lrn(g, x, &a);
}

static yk_part part(double deviation, double bias, double decay) {
  return (yk_part){ .weights = YK_TRUNCATED_NORMAL(deviation), .biases = YK_CONSTANT(bias), .decay = decay };
}

static yk_value build(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_part conv1 = part(0.05, 0.0, 0.0), conv2 = part(0.05, 0.1, 0.0), local3 = part(0.04, 0.1, 0.004), local4 = part(0.04, 0.1, 0.004);
  yk_part linear = part(1.0 / 192.0, 0.0, 0.0);
  yk_value x;
  (void)training;                                    /* the same in training and evaluation */
  x = yk_relu(g, yk__conv(g, "conv1", images, 64, 5, 1, &conv1));
  x = norm(g, pool(g, x));
  x = yk_relu(g, yk__conv(g, "conv2", x, 64, 5, 1, &conv2));
  x = pool(g, norm(g, x));
  x = yk_relu(g, yk__dense(g, "local3", yk_flatten(g, x), 384, &local3));
  x = yk_relu(g, yk__dense(g, "local4", x, 192, &local4));
  return yk__dense(g, "softmax_linear", x, classes, &linear);
}

const yk_model yk__model_cifar10 = {
  .name = "cifar10", .doc = "the CIFAR-10 tutorial's convolutional network (24x24, local response normalisation)", .build = build,
  .image_size = 24, .train_augment = YK_AUGMENT_CIFAR_TRAIN, .eval_augment = YK_AUGMENT_CIFAR_EVAL,
  .batch = 128, .learning_rate = 0.1, .moving_average = 0.9999,
};
