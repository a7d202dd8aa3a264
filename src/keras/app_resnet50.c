/*
 * app_resnet50.c - the residual network of 50 layers, layer for layer as keras.applications.ResNet50 makes it.
 *
 * He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015; strides are in the first convolution of a block. Names and the order
 * of making are Keras's, since files of weights go by them.
 */
#include <yoke/applications.h>
#include <stdio.h>
#include <string.h>
#include "keras/keras.h"

enum { SIDE = 224, LEAST_SIDE = 32, CLASSES = 1000 };
#define EPSILON 1.001e-5

typedef struct making { const char *where; yk_keras *k; } making;
typedef char name[64];

static yk_sym conv(const making *m, yk_sym x, const char *prefix, int64_t filters, int64_t side, int64_t stride, const char *padding) {
  name n;
  snprintf(n, sizeof n, "%.48s_conv", prefix);
  return yk_apply_at(m->where, yk_layer_conv2d_at(m->where, m->k, &(yk_conv_config){ .name = n, .filters = filters, .kernel_size = { side, side },
                                                                                     .strides = { stride, stride }, .padding = padding }), x);
}

static yk_sym norm(const making *m, yk_sym x, const char *prefix) {
  name n;
  snprintf(n, sizeof n, "%.48s_bn", prefix);
  return yk_apply_at(m->where, yk_layer_batch_normalization_at(m->where, m->k, &(yk_norm_config){ .name = n, .epsilon = EPSILON }), x);
}

static yk_sym relu(const making *m, yk_sym x, const char *prefix, const char *end) {
  name n;
  snprintf(n, sizeof n, "%.48s_%.8s", prefix, end);
  return yk_apply_at(m->where, yk_layer_activation_at(m->where, m->k, &(yk_activation_config){ .name = n, .activation = "relu" }), x);
}

static yk_sym pad(const making *m, yk_sym x, const char *n, int64_t by) {
  return yk_apply_at(m->where, yk_layer_zero_padding2d_at(m->where, m->k, &(yk_edges_config){ .name = n, .edges = { { by, by }, { by, by } } }), x);
}

static yk_sym block(const making *m, yk_sym x, const char *prefix, int64_t filters, int64_t stride, bool projects) {
  name part[4], n;
  yk_sym both[2] = { x };
  for (int i = 0; i < 4; i++) snprintf(part[i], sizeof part[i], "%.40s_%d", prefix, i);
  if (projects) both[0] = norm(m, conv(m, x, part[0], 4 * filters, 1, stride, "valid"), part[0]);
  x = relu(m, norm(m, conv(m, x, part[1], filters, 1, stride, "valid"), part[1]), part[1], "relu");
  x = relu(m, norm(m, conv(m, x, part[2], filters, 3, 1, "same"), part[2]), part[2], "relu");
  both[1] = norm(m, conv(m, x, part[3], 4 * filters, 1, 1, "valid"), part[3]);
  snprintf(n, sizeof n, "%.48s_add", prefix);
  return relu(m, yk_apply_n_at(m->where, yk_layer_add_at(m->where, m->k, &(yk_plain_config){ .name = n }), 2, both), prefix, "out");
}

static yk_sym features(const making *m, yk_sym x) {
  static const struct { int64_t filters; int blocks; } stage[4] = { { 64, 3 }, { 128, 4 }, { 256, 6 }, { 512, 3 } };
  x = conv(m, pad(m, x, "conv1_pad", 3), "conv1", 64, 7, 2, "valid");
  x = relu(m, norm(m, x, "conv1"), "conv1", "relu");
  x = yk_apply_at(m->where, yk_layer_max_pooling2d_at(m->where, m->k, &(yk_pooling_config){ .name = "pool1_pool", .pool_size = { 3, 3 },
                                                                                            .strides = { 2, 2 } }), pad(m, x, "pool1_pad", 1));
  for (int s = 0; s < 4; s++)
    for (int b = 0; b < stage[s].blocks; b++) {
      name prefix;
      snprintf(prefix, sizeof prefix, "conv%d_block%d", s + 2, b + 1);
      x = block(m, x, prefix, stage[s].filters, s > 0 && b == 0 ? 2 : 1, b == 0);
    }
  return x;
}

static yk_sym top(const making *m, yk_sym x, const yk_resnet50_config *c) {
  yk_global_pooling_config avg = { .name = "avg_pool" }, max = { .name = "max_pool" };
  if (c->no_top && c->pooling == NULL) return x;
  if (c->no_top && strcmp(c->pooling, "max") == 0) return yk_apply_at(m->where, yk_layer_global_max_pooling2d_at(m->where, m->k, &max), x);
  x = yk_apply_at(m->where, yk_layer_global_average_pooling2d_at(m->where, m->k, &avg), x);
  if (c->no_top) return x;
  return yk_apply_at(m->where, yk_layer_dense_at(m->where, m->k, &(yk_dense_config){ .name = "predictions", .units = c->classes,
                                                                                     .activation = c->classifier_activation }), x);
}

static bool check(const making *m, const yk_resnet50_config *c) {
  const yk_shape *s = &c->input_shape;
  bool fits = s->rank == 3 && s->dim[2] >= 1;
  for (int i = 0; i < 2 && fits; i++) fits = s->dim[i] >= LEAST_SIDE || (c->no_top && s->dim[i] < 0);
  if (!fits)
    yk_graph_fail_at(m->where, m->k->sketch, YK_EINVAL, "ResNet50 takes pictures [height, width, channels] of sides of at least %d", LEAST_SIDE);
  else if (c->pooling != NULL && !yk__named_in("avg|max", c->pooling))
    yk_graph_fail_at(m->where, m->k->sketch, YK_EINVAL, "ResNet50: no pooling is called '%.80s'; expected avg or max", c->pooling);
  return yk_keras_status(m->k) == YK_OK;
}

yk_network *yk_resnet50_at(const char *where, yk_keras *k, const yk_resnet50_config *config) {
  yk_resnet50_config c = config != NULL ? *config : (yk_resnet50_config){ 0 };
  making m = { where, k };
  if (yk_keras_status(k) != YK_OK) return NULL;
  if (c.input_shape.rank == 0) c.input_shape = YK_SHAPE(SIDE, SIDE, 3);
  if (c.classes == 0) c.classes = CLASSES;
  if (c.classifier_activation == NULL) c.classifier_activation = "softmax";
  if (!check(&m, &c)) return NULL;
  yk_sym in = yk_input_at(where, k, &(yk_input_config){ .shape = c.input_shape }), out = top(&m, features(&m, in), &c);
  return yk_network_new_at(where, k, c.name != NULL ? c.name : "resnet50", 1, &in, 1, &out);
}
