/*
 * resnet20.c - the 20-layer residual network for 32x32 pictures.
 *
 * He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015,
 * section 4.2, with projection shortcuts where the shape changes. Weight decay
 * 1e-4 on all convolution and dense weights.
 */
#include <stdio.h>
#include "model/parts.h"

#define DECAY 1e-4

static yk_value block(yk_graph *g, const char *name, yk_value x, int64_t filters, int32_t stride, bool training) {
  yk_part conv = { .weights = YK_HE_NORMAL, .decay = DECAY, .no_bias = true };
  yk_value y = { 0 };
  YK_VARIABLE_SCOPE(g, name) {
    yk_value shortcut = x;
    if (stride != 1) shortcut = yk__norm(g, "projection_norm", yk__conv(g, "projection", x, filters, 1, stride, &conv), training);
    y = yk_relu(g, yk__norm(g, "norm1", yk__conv(g, "conv1", x, filters, 3, stride, &conv), training));
    y = yk__norm(g, "norm2", yk__conv(g, "conv2", y, filters, 3, 1, &conv), training);
    y = yk_relu(g, yk_add(g, y, shortcut));
  }
  return y;
}

static yk_value build(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_part conv = { .weights = YK_HE_NORMAL, .decay = DECAY, .no_bias = true };
  yk_part linear = { .weights = YK_GLOROT_UNIFORM, .biases = YK_ZEROS, .decay = DECAY };
  static const int64_t filters[3] = { 16, 32, 64 };
  yk_value x = yk_relu(g, yk__norm(g, "norm0", yk__conv(g, "conv0", images, 16, 3, 1, &conv), training));
  for (int stage = 0; stage < 3; stage++)
    for (int b = 0; b < 3; b++) {
      char name[32];
      snprintf(name, sizeof name, "stage%d_block%d", stage + 1, b + 1);
      x = block(g, name, x, filters[stage], stage > 0 && b == 0 ? 2 : 1, training);
    }
  return yk__dense(g, "linear", yk_global_avg_pool(g, x), classes, &linear);
}

const yk_model yk__model_resnet20 = {
  .name = "resnet20", .doc = "residual network of 20 layers (32x32, batch normalisation)", .build = build,
  .image_size = 32, .train_augment = YK_AUGMENT_PAD_CROP_FLIP, .eval_augment = YK_AUGMENT_STANDARDISE,
  .batch = 128, .learning_rate = 0.1, .momentum = 0.9,
};
