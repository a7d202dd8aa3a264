/*
 * layers.h - Keras's layers: objects that own weights and are called on symbols.
 *
 * A layer is made once and called as often as wanted; every call shares its weights. What a call returns is a symbol,
 * which remembers the call, so that a network (network.h) can be cut out between some symbols and others. Names, defaults,
 * shapes and formulae are those of Keras 2; data is channels-last: pictures [N, H, W, C], sequences [N, T, C].
 *
 * All of it lives in a yk_keras, which has a sticky error like a graph: the first mistake is kept with file and line of the
 * call, later calls do nothing and return NULL or {0}, and yk_keras_status() or making a network reports it. One thread at a
 * time for each yk_keras. Strings and structs passed in are copied. A config may be NULL: all defaults.
 */
#ifndef YK_LAYERS_H
#define YK_LAYERS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yk_keras yk_keras;
typedef struct yk_layer yk_layer;
/* Output `index` of the layer's call number `node`, as Keras's files name it; {0} after an error. */
typedef struct yk_sym { yk_layer *layer; uint32_t node, index; } yk_sym;

/* *out: yk_keras_free(), with all layers and networks made in it. seed: of initial weights and of dropout; 0 = 1. */
yk_code yk_keras_new(uint64_t seed, yk_keras **out) YK_CHECKED;
void    yk_keras_free(yk_keras *k);
yk_code yk_keras_status(const yk_keras *k);

/* ---- what configs are made of ------------------------------------------------------------------------------------- */

/* A number that is left at 0 has its default; this is a zero that is meant. */
#define YK_EXACTLY_ZERO (-0.0)

/* Initial weights. Uniform: from a to b; normal, truncated: mean a, deviation b; variance scaling: scale a over fan in, fan out or
 * their mean, normal or uniform; orthogonal, identity: gain a. */
typedef enum yk_initializer_kind { YK_INITIALIZER_DEFAULT, YK_INITIALIZER_ZEROS, YK_INITIALIZER_ONES, YK_INITIALIZER_CONSTANT,
                                   YK_INITIALIZER_UNIFORM, YK_INITIALIZER_NORMAL, YK_INITIALIZER_TRUNCATED, YK_INITIALIZER_SCALED,
                                   YK_INITIALIZER_ORTHOGONAL, YK_INITIALIZER_IDENTITY } yk_initializer_kind;
typedef enum yk_fan { YK_FAN_IN, YK_FAN_OUT, YK_FAN_AVG } yk_fan;
typedef struct yk_initializer {
  yk_initializer_kind kind;
  double a, b;
  yk_fan fan;
  bool normal;                     /* scaled: truncated normal, its deviation made up for the cut; else uniform */
  uint64_t seed;                   /* 0 = derived from the keras's and the weight's name */
} yk_initializer;

/* Numbers of axes or dimensions. */
typedef struct yk_dims { uint32_t n; int64_t at[YK_MAX_RANK]; } yk_dims;

/* Penalty l1*sum|w| + l2*sum(w^2). */
typedef struct yk_penalty { double l1, l2; } yk_penalty;

/* What weights are brought back to after each update: norms over all axes but the last one. */
typedef enum yk_constraint_kind { YK_CONSTRAINT_NONE, YK_CONSTRAINT_MAX_NORM, YK_CONSTRAINT_NON_NEG, YK_CONSTRAINT_UNIT_NORM,
                                  YK_CONSTRAINT_MIN_MAX_NORM } yk_constraint_kind;
typedef struct yk_constraint { yk_constraint_kind kind; double min, max, rate; yk_dims axes; } yk_constraint;

/* In each config, first: the layer's name (NULL: made from its class, "dense_1"), and whether training leaves its weights alone. */
#define YK_LAYER_COMMON const char *name; bool frozen

/* Activations by name: linear (or NULL), relu, relu6, elu, selu, gelu, swish (silu), softplus, softsign, tanh, sigmoid, hard_sigmoid
 * (clip(0.2*x + 0.5, 0, 1)), hard_sigmoid_6 (relu6(x + 3)/6, Keras 3's), exponential, softmax, log_softmax, leaky_relu. Windows, strides,
 * dilations: {h, w}, of which a 0 means the default. */

/* ---- making and calling -------------------------------------------------------------------------------------------- */

/* A layer of a class, by Keras's name, with the config struct of that class below; the k-> layers are freed with k. NULL after a sticky
 * error: ENOTFOUND (class), EINVAL (a number out of its range, an unknown word; both tell what was expected). */
yk_layer *yk_layer_new_at(const char *where, yk_keras *k, const char *class_name, const void *config);
#define yk_layer_new(...) yk_layer_new_at(YK_HERE, __VA_ARGS__)
const char *yk_layer_name(const yk_layer *l);
const char *yk_layer_class_name(const yk_layer *l);

/* Call the layer on one symbol, or on n. The first call makes its weights, of shapes that the input gives. EINVAL: shapes that do not
 * fit, a symbol of another yk_keras, too few or too many inputs. */
yk_sym yk_apply_at(const char *where, yk_layer *l, yk_sym in);
yk_sym yk_apply_n_at(const char *where, yk_layer *l, size_t n, const yk_sym *in);
#define yk_apply(...)   yk_apply_at(YK_HERE, __VA_ARGS__)
#define yk_apply_n(...) yk_apply_n_at(YK_HERE, __VA_ARGS__)
/* Another output of the same call; {0} if there is none. */
yk_sym yk_sym_output(yk_sym s, uint32_t index);
/* dtype and shape, [-1, ...]; borrowed. NULL for {0}. */
const yk_desc *yk_sym_desc(yk_sym s);

/* Where a network begins: a symbol of `shape` (without the batch; -1: differs from batch to batch). */
typedef struct yk_input_config {
  YK_LAYER_COMMON;
  yk_shape shape;
  yk_dtype dtype;                  /* 0 = f32 */
  int64_t batch;                   /* 0 = any; recurrent layers that are stateful need to know */
} yk_input_config;
yk_sym yk_input_at(const char *where, yk_keras *k, const yk_input_config *config);
#define yk_input(...) yk_input_at(YK_HERE, __VA_ARGS__)

/* ---- core ------------------------------------------------------------------------------------------------------------ */

/* y = activation(x . kernel + bias) over the last axis: [..., C] -> [..., units]. Weights kernel [C, units], bias [units]. */
typedef struct yk_dense_config {
  YK_LAYER_COMMON;
  int64_t units;
  const char *activation;
  bool no_bias;
  yk_initializer kernel_initializer, bias_initializer;       /* glorot uniform, zeros */
  yk_penalty kernel_regularizer, bias_regularizer, activity_regularizer;
  yk_constraint kernel_constraint, bias_constraint;
} yk_dense_config;
yk_layer *yk_layer_dense_at(const char *where, yk_keras *k, const yk_dense_config *config);
#define yk_layer_dense(...) yk_layer_dense_at(YK_HERE, __VA_ARGS__)
typedef struct yk_activation_config { YK_LAYER_COMMON; const char *activation; } yk_activation_config;
yk_layer *yk_layer_activation_at(const char *where, yk_keras *k, const yk_activation_config *config);
#define yk_layer_activation(...) yk_layer_activation_at(YK_HERE, __VA_ARGS__)
/* In training zeroes elements with probability `rate` and scales the others by 1/(1-rate). */
typedef struct yk_dropout_config { YK_LAYER_COMMON; double rate; uint64_t seed; } yk_dropout_config;
yk_layer *yk_layer_dropout_at(const char *where, yk_keras *k, const yk_dropout_config *config);
#define yk_layer_dropout(...) yk_layer_dropout_at(YK_HERE, __VA_ARGS__)
typedef struct yk_plain_config { YK_LAYER_COMMON; } yk_plain_config;                 /* layers without numbers of their own */
yk_layer *yk_layer_flatten_at(const char *where, yk_keras *k, const yk_plain_config *config);          /* [N, ...] -> [N, C] */
#define yk_layer_flatten(...) yk_layer_flatten_at(YK_HERE, __VA_ARGS__)
typedef struct yk_reshape_config { YK_LAYER_COMMON; yk_shape target_shape; } yk_reshape_config;   /* without the batch; one -1 */
yk_layer *yk_layer_reshape_at(const char *where, yk_keras *k, const yk_reshape_config *config);
#define yk_layer_reshape(...) yk_layer_reshape_at(YK_HERE, __VA_ARGS__)
typedef struct yk_permute_config { YK_LAYER_COMMON; yk_dims dims; } yk_permute_config;   /* from 1 */
yk_layer *yk_layer_permute_at(const char *where, yk_keras *k, const yk_permute_config *config);
#define yk_layer_permute(...) yk_layer_permute_at(YK_HERE, __VA_ARGS__)
typedef struct yk_repeat_config { YK_LAYER_COMMON; int64_t n; } yk_repeat_config;    /* [N, C] -> [N, n, C] */
yk_layer *yk_layer_repeat_vector_at(const char *where, yk_keras *k, const yk_repeat_config *config);
#define yk_layer_repeat_vector(...) yk_layer_repeat_vector_at(YK_HERE, __VA_ARGS__)

/* ReLU: max_value from there on, x from `threshold` on, negative_slope*(x - threshold) below it. */
typedef struct yk_relu_config { YK_LAYER_COMMON; double max_value, negative_slope, threshold; } yk_relu_config;     /* none, 0, 0 */
yk_layer *yk_layer_relu_at(const char *where, yk_keras *k, const yk_relu_config *config);
#define yk_layer_relu(...) yk_layer_relu_at(YK_HERE, __VA_ARGS__)
/* alpha: LeakyReLU alpha*x below 0 (0.3); ELU alpha*(exp(x) - 1) below 0 (1); ThresholdedReLU x above alpha, else 0 (1; Keras: theta). */
typedef struct yk_slope_config { YK_LAYER_COMMON; double alpha; } yk_slope_config;
yk_layer *yk_layer_leaky_relu_at(const char *where, yk_keras *k, const yk_slope_config *config);
yk_layer *yk_layer_elu_at(const char *where, yk_keras *k, const yk_slope_config *config);
yk_layer *yk_layer_thresholded_relu_at(const char *where, yk_keras *k, const yk_slope_config *config);
#define yk_layer_leaky_relu(...)       yk_layer_leaky_relu_at(YK_HERE, __VA_ARGS__)
#define yk_layer_elu(...)              yk_layer_elu_at(YK_HERE, __VA_ARGS__)
#define yk_layer_thresholded_relu(...) yk_layer_thresholded_relu_at(YK_HERE, __VA_ARGS__)
/* alpha*x below 0 with a weight alpha of an example's shape, 1 along shared_axes (from 1). */
typedef struct yk_prelu_config {
  YK_LAYER_COMMON;
  yk_initializer alpha_initializer;           /* zeros */
  yk_penalty alpha_regularizer;
  yk_constraint alpha_constraint;
  yk_dims shared_axes;
} yk_prelu_config;
yk_layer *yk_layer_prelu_at(const char *where, yk_keras *k, const yk_prelu_config *config);
#define yk_layer_prelu(...) yk_layer_prelu_at(YK_HERE, __VA_ARGS__)
typedef struct yk_axis_config { YK_LAYER_COMMON; int32_t axis; } yk_axis_config;          /* 0 = the last one */
yk_layer *yk_layer_softmax_at(const char *where, yk_keras *k, const yk_axis_config *config);
#define yk_layer_softmax(...) yk_layer_softmax_at(YK_HERE, __VA_ARGS__)
/* In training drops whole channels of [N, T, C] or [N, H, W, C]. */
yk_layer *yk_layer_spatial_dropout1d_at(const char *where, yk_keras *k, const yk_dropout_config *config);
yk_layer *yk_layer_spatial_dropout2d_at(const char *where, yk_keras *k, const yk_dropout_config *config);
#define yk_layer_spatial_dropout1d(...) yk_layer_spatial_dropout1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_spatial_dropout2d(...) yk_layer_spatial_dropout2d_at(YK_HERE, __VA_ARGS__)
/* In training adds normal noise of mean 0. */
typedef struct yk_noise_config { YK_LAYER_COMMON; double stddev; uint64_t seed; } yk_noise_config;
yk_layer *yk_layer_gaussian_noise_at(const char *where, yk_keras *k, const yk_noise_config *config);
#define yk_layer_gaussian_noise(...) yk_layer_gaussian_noise_at(YK_HERE, __VA_ARGS__)
/* In training multiplies by normal noise of mean 1, deviation sqrt(rate/(1-rate)). Alpha: elements become selu's lowest value with
 * probability `rate`, then all are scaled and moved so that mean 0 and variance 1 stay. */
yk_layer *yk_layer_gaussian_dropout_at(const char *where, yk_keras *k, const yk_dropout_config *config);
yk_layer *yk_layer_alpha_dropout_at(const char *where, yk_keras *k, const yk_dropout_config *config);
#define yk_layer_gaussian_dropout(...) yk_layer_gaussian_dropout_at(YK_HERE, __VA_ARGS__)
#define yk_layer_alpha_dropout(...)    yk_layer_alpha_dropout_at(YK_HERE, __VA_ARGS__)
/* Hands on its input, and in training adds its penalty to the loss. */
typedef struct yk_activity_config { YK_LAYER_COMMON; yk_penalty activity_regularizer; } yk_activity_config;
yk_layer *yk_layer_activity_regularization_at(const char *where, yk_keras *k, const yk_activity_config *config);
#define yk_layer_activity_regularization(...) yk_layer_activity_regularization_at(YK_HERE, __VA_ARGS__)

/* ---- convolution, [N, H, W, C] or [N, T, C] --------------------------------------------------------------------------- */

/*
 * activation(convolution(x, kernel) + bias): Conv2D kernel [h, w, C, filters], stride 1. Conv2DTranspose: kernel [h, w, filters, C], the
 * gradient of Conv2D run forwards. DepthwiseConv2D: depthwise_kernel [h, w, C, depth_multiplier], bias [C * depth_multiplier], filters not
 * used. SeparableConv2D: depthwise_kernel, then pointwise_kernel [1, 1, C * depth_multiplier, filters]. Conv1D: the same along T with
 * kernel [k, C, filters]; only [0] of the pairs counts, and padding may be "causal": nothing of the future. SeparableConv1D: so too,
 * kernels [k, C, depth_multiplier] and [1, C * depth_multiplier, filters].
 */
typedef struct yk_conv_config {
  YK_LAYER_COMMON;
  int64_t filters;
  int64_t kernel_size[2];
  int64_t strides[2], dilation_rate[2];       /* 1 */
  const char *padding;                        /* "valid" or "same" */
  int64_t depth_multiplier, groups;           /* 1 */
  const char *activation;
  bool no_bias;
  yk_initializer kernel_initializer, pointwise_initializer, bias_initializer;      /* glorot uniform, glorot uniform, zeros */
  yk_penalty kernel_regularizer, pointwise_regularizer, bias_regularizer, activity_regularizer;
  yk_constraint kernel_constraint, pointwise_constraint, bias_constraint;
} yk_conv_config;
yk_layer *yk_layer_conv2d_at(const char *where, yk_keras *k, const yk_conv_config *config);
yk_layer *yk_layer_conv2d_transpose_at(const char *where, yk_keras *k, const yk_conv_config *config);
yk_layer *yk_layer_depthwise_conv2d_at(const char *where, yk_keras *k, const yk_conv_config *config);
yk_layer *yk_layer_separable_conv2d_at(const char *where, yk_keras *k, const yk_conv_config *config);
yk_layer *yk_layer_conv1d_at(const char *where, yk_keras *k, const yk_conv_config *config);
yk_layer *yk_layer_separable_conv1d_at(const char *where, yk_keras *k, const yk_conv_config *config);
#define yk_layer_conv2d(...)           yk_layer_conv2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_conv2d_transpose(...) yk_layer_conv2d_transpose_at(YK_HERE, __VA_ARGS__)
#define yk_layer_depthwise_conv2d(...) yk_layer_depthwise_conv2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_separable_conv2d(...) yk_layer_separable_conv2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_conv1d(...)           yk_layer_conv1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_separable_conv1d(...) yk_layer_separable_conv1d_at(YK_HERE, __VA_ARGS__)

/* ---- pooling ------------------------------------------------------------------------------------------------------------ */

/* Largest cell, or mean of the cells that are not padding, under each window. 1D: along T of [N, T, C]; [0] counts. */
typedef struct yk_pooling_config {
  YK_LAYER_COMMON;
  int64_t pool_size[2];                       /* 2 */
  int64_t strides[2];                         /* as pool_size */
  const char *padding;                        /* "valid" or "same" */
} yk_pooling_config;
yk_layer *yk_layer_max_pooling2d_at(const char *where, yk_keras *k, const yk_pooling_config *config);
yk_layer *yk_layer_average_pooling2d_at(const char *where, yk_keras *k, const yk_pooling_config *config);
yk_layer *yk_layer_max_pooling1d_at(const char *where, yk_keras *k, const yk_pooling_config *config);
yk_layer *yk_layer_average_pooling1d_at(const char *where, yk_keras *k, const yk_pooling_config *config);
/* Over the whole picture or sequence: [N, C], or with keepdims [N, 1, 1, C]. */
typedef struct yk_global_pooling_config { YK_LAYER_COMMON; bool keepdims; } yk_global_pooling_config;
yk_layer *yk_layer_global_max_pooling2d_at(const char *where, yk_keras *k, const yk_global_pooling_config *config);
yk_layer *yk_layer_global_average_pooling2d_at(const char *where, yk_keras *k, const yk_global_pooling_config *config);
yk_layer *yk_layer_global_max_pooling1d_at(const char *where, yk_keras *k, const yk_global_pooling_config *config);
yk_layer *yk_layer_global_average_pooling1d_at(const char *where, yk_keras *k, const yk_global_pooling_config *config);
#define yk_layer_max_pooling2d(...)            yk_layer_max_pooling2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_average_pooling2d(...)        yk_layer_average_pooling2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_max_pooling1d(...)            yk_layer_max_pooling1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_average_pooling1d(...)        yk_layer_average_pooling1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_global_max_pooling2d(...)     yk_layer_global_max_pooling2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_global_average_pooling2d(...) yk_layer_global_average_pooling2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_global_max_pooling1d(...)     yk_layer_global_max_pooling1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_global_average_pooling1d(...) yk_layer_global_average_pooling1d_at(YK_HERE, __VA_ARGS__)

/* Rows and columns of zeros put around, or cells cut off: {{top, bottom}, {left, right}}. */
typedef struct yk_edges_config { YK_LAYER_COMMON; int64_t edges[2][2]; } yk_edges_config;
yk_layer *yk_layer_zero_padding2d_at(const char *where, yk_keras *k, const yk_edges_config *config);
yk_layer *yk_layer_cropping2d_at(const char *where, yk_keras *k, const yk_edges_config *config);
#define yk_layer_zero_padding2d(...) yk_layer_zero_padding2d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_cropping2d(...)     yk_layer_cropping2d_at(YK_HERE, __VA_ARGS__)

/* Steps of zeros put before and behind a sequence, or steps cut off there: as many as are said. */
typedef struct yk_sides_config { YK_LAYER_COMMON; int64_t sides[2]; } yk_sides_config;
yk_layer *yk_layer_zero_padding1d_at(const char *where, yk_keras *k, const yk_sides_config *config);
yk_layer *yk_layer_cropping1d_at(const char *where, yk_keras *k, const yk_sides_config *config);
#define yk_layer_zero_padding1d(...) yk_layer_zero_padding1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_cropping1d(...)     yk_layer_cropping1d_at(YK_HERE, __VA_ARGS__)
/* Larger by whole factors; sequences repeat each step (size[0] counts). */
typedef struct yk_upsampling_config {
  YK_LAYER_COMMON;
  int64_t size[2];                            /* 2 */
  const char *interpolation;                  /* "nearest" or "bilinear" */
} yk_upsampling_config;
yk_layer *yk_layer_upsampling1d_at(const char *where, yk_keras *k, const yk_upsampling_config *config);
yk_layer *yk_layer_upsampling2d_at(const char *where, yk_keras *k, const yk_upsampling_config *config);
#define yk_layer_upsampling1d(...) yk_layer_upsampling1d_at(YK_HERE, __VA_ARGS__)
#define yk_layer_upsampling2d(...) yk_layer_upsampling2d_at(YK_HERE, __VA_ARGS__)

/* ---- normalisation ----------------------------------------------------------------------------------------------------- */

/* Over the last axis. Weights gamma, beta [C], for batches also moving_mean, moving_variance [C], which training does not touch but the
 * step's statistics do: moving = momentum*moving + (1-momentum)*batch. A frozen layer uses the moving ones in training too. */
typedef struct yk_norm_config {
  YK_LAYER_COMMON;
  int32_t axis;                               /* 0 = -1, the last one; no other can be normalised over */
  double momentum, epsilon;                   /* 0.99, 1e-3 */
  bool no_center, no_scale;
  yk_initializer beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer;
  yk_penalty beta_regularizer, gamma_regularizer;
  yk_constraint beta_constraint, gamma_constraint;
} yk_norm_config;
yk_layer *yk_layer_batch_normalization_at(const char *where, yk_keras *k, const yk_norm_config *config);
yk_layer *yk_layer_layer_normalization_at(const char *where, yk_keras *k, const yk_norm_config *config);
#define yk_layer_batch_normalization(...) yk_layer_batch_normalization_at(YK_HERE, __VA_ARGS__)
#define yk_layer_layer_normalization(...) yk_layer_layer_normalization_at(YK_HERE, __VA_ARGS__)
/* x / sqrt(sum of x^2 along the axis), each sum at least 1e-12. */
yk_layer *yk_layer_unit_normalization_at(const char *where, yk_keras *k, const yk_axis_config *config);
#define yk_layer_unit_normalization(...) yk_layer_unit_normalization_at(YK_HERE, __VA_ARGS__)

/* ---- embedding -------------------------------------------------------------------------------------------------------------- */

/* Rows of `embeddings` [input_dim, output_dim]: indices i32, i64 or f32 [N, ...] -> [N, ..., output_dim]. */
typedef struct yk_embedding_config {
  YK_LAYER_COMMON;
  int64_t input_dim, output_dim;
  bool mask_zero;                             /* index 0 is padding: recurrent layers pass it over */
  yk_initializer embeddings_initializer;      /* uniform, -0.05 to 0.05 */
  yk_penalty embeddings_regularizer, activity_regularizer;
  yk_constraint embeddings_constraint;
} yk_embedding_config;
yk_layer *yk_layer_embedding_at(const char *where, yk_keras *k, const yk_embedding_config *config);
#define yk_layer_embedding(...) yk_layer_embedding_at(YK_HERE, __VA_ARGS__)

/* ---- recurrent, [N, T, C] ------------------------------------------------------------------------------------------------ */

/*
 * LSTM: kernel [C, 4U], recurrent_kernel [U, 4U], bias [4U], gates i, f, c, o. GRU: kernel [C, 3U], recurrent_kernel [U, 3U], gates z, r, h,
 * bias [2, 3U] (of the input, of the recurrent product), or, with reset_before, [3U]. SimpleRNN: kernel [C, U], recurrent_kernel [U, U],
 * bias [U]. Output [N, U], or with return_sequences [N, T, U]; with return_state the last states [N, U] are outputs 1 (and 2). States before
 * the first step may be given as inputs 1 (and 2). Steps that a mask passes over change nothing.
 */
typedef struct yk_recurrent_config {
  YK_LAYER_COMMON;
  int64_t units;
  const char *activation;                     /* "tanh"; also relu, linear */
  const char *recurrent_activation;           /* "sigmoid"; also hard_sigmoid, hard_sigmoid_6 */
  bool no_bias, no_unit_forget_bias;          /* the bias of an LSTM's forget gate begins at 1 */
  bool return_sequences, return_state, go_backwards;
  bool stateful;                              /* a batch begins with the states that the one before ended with; its size is fixed */
  bool reset_before;                          /* GRU: Keras's reset_after=False */
  double dropout, recurrent_dropout;          /* in training: of the inputs, one mask for all steps; of what each gate sees of the state, a mask
                                                 for each gate. The latter takes a known number of steps, and longer: docs/keras.md */
  yk_initializer kernel_initializer, recurrent_initializer, bias_initializer;     /* glorot uniform, orthogonal, zeros */
  yk_penalty kernel_regularizer, recurrent_regularizer, bias_regularizer, activity_regularizer;
  yk_constraint kernel_constraint, recurrent_constraint, bias_constraint;
} yk_recurrent_config;
yk_layer *yk_layer_lstm_at(const char *where, yk_keras *k, const yk_recurrent_config *config);
yk_layer *yk_layer_gru_at(const char *where, yk_keras *k, const yk_recurrent_config *config);
yk_layer *yk_layer_simple_rnn_at(const char *where, yk_keras *k, const yk_recurrent_config *config);
#define yk_layer_lstm(...)       yk_layer_lstm_at(YK_HERE, __VA_ARGS__)
#define yk_layer_gru(...)        yk_layer_gru_at(YK_HERE, __VA_ARGS__)
#define yk_layer_simple_rnn(...) yk_layer_simple_rnn_at(YK_HERE, __VA_ARGS__)
/* Steps all of whose numbers are mask_value are passed over by what follows. */
typedef struct yk_masking_config { YK_LAYER_COMMON; double mask_value; } yk_masking_config;
yk_layer *yk_layer_masking_at(const char *where, yk_keras *k, const yk_masking_config *config);
#define yk_layer_masking(...) yk_layer_masking_at(YK_HERE, __VA_ARGS__)

/* ---- joining --------------------------------------------------------------------------------------------------------- */

typedef struct yk_concatenate_config { YK_LAYER_COMMON; int32_t axis; } yk_concatenate_config;    /* 0 = the last one */
yk_layer *yk_layer_concatenate_at(const char *where, yk_keras *k, const yk_concatenate_config *config);
#define yk_layer_concatenate(...) yk_layer_concatenate_at(YK_HERE, __VA_ARGS__)
/* Element by element, broadcasting; those of fewer dimensions get them behind the batch. */
yk_layer *yk_layer_add_at(const char *where, yk_keras *k, const yk_plain_config *config);
#define yk_layer_add(...) yk_layer_add_at(YK_HERE, __VA_ARGS__)
yk_layer *yk_layer_subtract_at(const char *where, yk_keras *k, const yk_plain_config *config);      /* of two */
#define yk_layer_subtract(...) yk_layer_subtract_at(YK_HERE, __VA_ARGS__)
yk_layer *yk_layer_multiply_at(const char *where, yk_keras *k, const yk_plain_config *config);
#define yk_layer_multiply(...) yk_layer_multiply_at(YK_HERE, __VA_ARGS__)
yk_layer *yk_layer_average_at(const char *where, yk_keras *k, const yk_plain_config *config);
#define yk_layer_average(...) yk_layer_average_at(YK_HERE, __VA_ARGS__)
yk_layer *yk_layer_maximum_at(const char *where, yk_keras *k, const yk_plain_config *config);
#define yk_layer_maximum(...) yk_layer_maximum_at(YK_HERE, __VA_ARGS__)
yk_layer *yk_layer_minimum_at(const char *where, yk_keras *k, const yk_plain_config *config);
#define yk_layer_minimum(...) yk_layer_minimum_at(YK_HERE, __VA_ARGS__)
/* Products of two inputs [N, K] or [N, T, K], summed over one axis of each; normalize: of vectors of length 1 along them. */
typedef struct yk_dot_config { YK_LAYER_COMMON; int64_t axes[2]; bool normalize; } yk_dot_config;
yk_layer *yk_layer_dot_at(const char *where, yk_keras *k, const yk_dot_config *config);
#define yk_layer_dot(...) yk_layer_dot_at(YK_HERE, __VA_ARGS__)

/* ---- layers around layers --------------------------------------------------------------------------------------------- */

/* The layer (or network) for each step of [N, T, ...] by itself, T known. The layer inside is made for this and called by nobody else. */
typedef struct yk_wrapper_config { YK_LAYER_COMMON; yk_layer *layer; } yk_wrapper_config;
yk_layer *yk_layer_time_distributed_at(const char *where, yk_keras *k, const yk_wrapper_config *config);
#define yk_layer_time_distributed(...) yk_layer_time_distributed_at(YK_HERE, __VA_ARGS__)
/* A recurrent layer forwards and one backwards. Outputs are joined ("none": two outputs), last states of both follow. First states: inputs
 * 1 on, half of them for each. backward_layer NULL: one like `layer`, "backward_<name>". */
typedef struct yk_bidirectional_config {
  YK_LAYER_COMMON;
  yk_layer *layer, *backward_layer;
  const char *merge_mode;                     /* "concat", "sum", "mul", "ave", "none" */
} yk_bidirectional_config;
yk_layer *yk_layer_bidirectional_at(const char *where, yk_keras *k, const yk_bidirectional_config *config);
#define yk_layer_bidirectional(...) yk_layer_bidirectional_at(YK_HERE, __VA_ARGS__)

/* ---- attention ---------------------------------------------------------------------------------------------------------- */

/*
 * Called on query [N, T, D], value [N, S, E] and, if it is another one, key [N, S, F] -> [N, T, D]: softmax(q.k/sqrt(key_dim)).v in each
 * head, the heads joined. Weights query/kernel [D, heads, key_dim], query/bias [heads, key_dim], key/..., value/... [.., heads, value_dim],
 * attention_output/kernel [heads, value_dim, D], attention_output/bias [D]. Masks of the inputs are heeded. T and S, or N, must be known.
 */
typedef struct yk_attention_config {
  YK_LAYER_COMMON;
  int64_t num_heads, key_dim, value_dim;      /* value_dim 0 = key_dim */
  double dropout;                             /* of what the softmax gives */
  bool no_bias, use_causal_mask;              /* a step sees none after it */
  yk_initializer kernel_initializer, bias_initializer;       /* glorot uniform, zeros */
  yk_penalty kernel_regularizer, bias_regularizer, activity_regularizer;
  yk_constraint kernel_constraint, bias_constraint;
} yk_attention_config;
yk_layer *yk_layer_multi_head_attention_at(const char *where, yk_keras *k, const yk_attention_config *config);
#define yk_layer_multi_head_attention(...) yk_layer_multi_head_attention_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
