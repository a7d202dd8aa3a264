/*
 * classes.c - all classes of layers, by Keras's name.
 *
 * A constant table: a new class is a line here and a file of its family.
 */
#include <string.h>
#include "keras/keras.h"

static const yk_layer_class *const CLASSES[] = {
  &yk__class_input,
  &yk__class_dense,
  &yk__class_activation,
  &yk__class_dropout,
  &yk__class_flatten,
  &yk__class_reshape,
  &yk__class_permute,
  &yk__class_repeat_vector,
  &yk__class_concatenate,
  &yk__class_add,
  &yk__class_subtract,
  &yk__class_multiply,
  &yk__class_average,
  &yk__class_maximum,
  &yk__class_minimum,
  &yk__class_conv2d,
  &yk__class_conv2d_transpose,
  &yk__class_depthwise_conv2d,
  &yk__class_separable_conv2d,
  &yk__class_conv1d,
  &yk__class_max_pooling2d,
  &yk__class_average_pooling2d,
  &yk__class_max_pooling1d,
  &yk__class_average_pooling1d,
  &yk__class_global_max_pooling2d,
  &yk__class_global_average_pooling2d,
  &yk__class_global_max_pooling1d,
  &yk__class_global_average_pooling1d,
  &yk__class_zero_padding2d,
  &yk__class_cropping2d,
  &yk__class_batch_normalization,
  &yk__class_layer_normalization,
  &yk__class_embedding,
  &yk__class_lstm,
  &yk__class_gru,
  &yk__class_simple_rnn,
  &yk__class_masking,
  &yk__class_relu,
  &yk__class_leaky_relu,
  &yk__class_prelu,
  &yk__class_elu,
  &yk__class_thresholded_relu,
  &yk__class_softmax,
  &yk__class_upsampling1d,
  &yk__class_upsampling2d,
  &yk__class_spatial_dropout1d,
  &yk__class_spatial_dropout2d,
  &yk__class_zero_padding1d,
  &yk__class_cropping1d,
  &yk__class_dot,
  &yk__class_time_distributed,
  &yk__class_bidirectional,
  &yk__class_multi_head_attention,
  &yk__class_gaussian_noise,
  &yk__class_gaussian_dropout,
  &yk__class_alpha_dropout,
  &yk__class_activity_regularization,
  &yk__class_unit_normalization,
  &yk__class_separable_conv1d,
};

const yk_layer_class *yk__layer_class(const char *name) {
  for (size_t i = 0; i < sizeof CLASSES / sizeof CLASSES[0]; i++)
    if (strcmp(CLASSES[i]->name, name) == 0) return CLASSES[i];
  return NULL;
}
