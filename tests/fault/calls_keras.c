/*
 * calls_keras.c - layers, networks and their files while memory runs out.
 *
 * A builder that fails leaves its error in its yk_keras, so each call makes one of its own and all that it needs.
 */
#include "fault.h"

#include <unistd.h>

static char folder[64], file[128], weights[128];

/* ---- layers ------------------------------------------------------------------------------------------------------------- */

typedef yk_layer *(*maker)(yk_keras *k);

/* A layer, called on n inputs of that shape. */
static yk_code apply(maker make, yk_shape shape, size_t n) {
  yk_keras *k;
  YK_TRY(yk_keras_new(1, &k));
  yk_sym x = yk_input(k, &(yk_input_config){ .shape = shape }), both[2] = { x, x };
  yk_layer *l = make(k);
  if (n == 1) yk_apply(l, x);
  else yk_apply_n(l, n, both);
  yk_code rc = yk_keras_status(k);
  yk_keras_free(k);
  return rc;
}

#define LAYER(id, n, shape, ...)                                                          \
  static yk_layer *new_##id(yk_keras *k) { return yk_layer_##id(k, __VA_ARGS__); }         \
  static yk_code call_##id(void) { return apply(new_##id, shape, n); }
#define VECTOR   YK_SHAPE(6)
#define SEQUENCE YK_SHAPE(5, 4)
#define PICTURE  YK_SHAPE(6, 6, 2)
LAYER(dense, 1, VECTOR, &(yk_dense_config){ .units = 3, .activation = "relu" })
LAYER(activation, 1, VECTOR, &(yk_activation_config){ .activation = "hard_sigmoid" })
LAYER(dropout, 1, VECTOR, &(yk_dropout_config){ .rate = 0.5 })
LAYER(flatten, 1, PICTURE, NULL)
LAYER(reshape, 1, VECTOR, &(yk_reshape_config){ .target_shape = YK_SHAPE(2, -1) })
LAYER(permute, 1, SEQUENCE, &(yk_permute_config){ .dims = { 2, { 2, 1 } } })
LAYER(repeat_vector, 1, VECTOR, &(yk_repeat_config){ .n = 3 })
LAYER(concatenate, 2, VECTOR, NULL)
LAYER(add, 2, VECTOR, NULL)
LAYER(subtract, 2, VECTOR, NULL)
LAYER(multiply, 2, VECTOR, NULL)
LAYER(average, 2, VECTOR, NULL)
LAYER(maximum, 2, VECTOR, NULL)
LAYER(minimum, 2, VECTOR, NULL)
#define CONV &(yk_conv_config){ .filters = 4, .kernel_size = { 3, 3 } }
LAYER(conv2d, 1, PICTURE, CONV)
LAYER(conv2d_transpose, 1, PICTURE, CONV)
LAYER(depthwise_conv2d, 1, PICTURE, CONV)
LAYER(separable_conv2d, 1, PICTURE, CONV)
LAYER(conv1d, 1, SEQUENCE, CONV)
LAYER(max_pooling2d, 1, PICTURE, NULL)
LAYER(average_pooling2d, 1, PICTURE, NULL)
LAYER(max_pooling1d, 1, SEQUENCE, NULL)
LAYER(average_pooling1d, 1, SEQUENCE, NULL)
LAYER(global_max_pooling2d, 1, PICTURE, NULL)
LAYER(global_average_pooling2d, 1, PICTURE, NULL)
LAYER(global_max_pooling1d, 1, SEQUENCE, NULL)
LAYER(global_average_pooling1d, 1, SEQUENCE, NULL)
LAYER(zero_padding2d, 1, PICTURE, &(yk_edges_config){ .edges = { { 1, 1 }, { 0, 2 } } })
LAYER(cropping2d, 1, PICTURE, &(yk_edges_config){ .edges = { { 1, 1 }, { 0, 2 } } })
LAYER(batch_normalization, 1, PICTURE, NULL)
LAYER(layer_normalization, 1, SEQUENCE, NULL)
LAYER(embedding, 1, VECTOR, &(yk_embedding_config){ .input_dim = 7, .output_dim = 3, .mask_zero = true })
LAYER(masking, 1, SEQUENCE, NULL)
#define RECURRENT &(yk_recurrent_config){ .units = 3, .return_sequences = true }
LAYER(lstm, 1, SEQUENCE, RECURRENT)
LAYER(gru, 1, SEQUENCE, RECURRENT)
LAYER(simple_rnn, 1, SEQUENCE, RECURRENT)

LAYER(relu, 1, VECTOR, &(yk_relu_config){ .max_value = 2, .negative_slope = 0.1, .threshold = 0.5 })
LAYER(leaky_relu, 1, VECTOR, NULL)
LAYER(elu, 1, VECTOR, NULL)
LAYER(thresholded_relu, 1, VECTOR, NULL)
LAYER(prelu, 1, VECTOR, NULL)
LAYER(softmax, 1, SEQUENCE, &(yk_axis_config){ .axis = 1 })
LAYER(spatial_dropout1d, 1, SEQUENCE, &(yk_dropout_config){ .rate = 0.5 })
LAYER(spatial_dropout2d, 1, PICTURE, &(yk_dropout_config){ .rate = 0.5 })
LAYER(zero_padding1d, 1, SEQUENCE, &(yk_sides_config){ .sides = { 1, 2 } })
LAYER(cropping1d, 1, SEQUENCE, &(yk_sides_config){ .sides = { 1, 2 } })
LAYER(upsampling1d, 1, SEQUENCE, NULL)
LAYER(upsampling2d, 1, PICTURE, &(yk_upsampling_config){ .interpolation = "bilinear" })
LAYER(dot, 2, SEQUENCE, &(yk_dot_config){ .axes = { 1, 1 }, .normalize = true })
LAYER(gaussian_noise, 1, VECTOR, &(yk_noise_config){ .stddev = 0.5 })
LAYER(gaussian_dropout, 1, VECTOR, &(yk_dropout_config){ .rate = 0.5 })
LAYER(alpha_dropout, 1, VECTOR, &(yk_dropout_config){ .rate = 0.5 })
LAYER(activity_regularization, 1, VECTOR, &(yk_activity_config){ .activity_regularizer = { 0.1, 0.2 } })
LAYER(unit_normalization, 1, SEQUENCE, NULL)
LAYER(separable_conv1d, 1, SEQUENCE, CONV)
LAYER(time_distributed, 1, SEQUENCE, &(yk_wrapper_config){ .layer = yk_layer_dense(k, &(yk_dense_config){ .units = 3 }) })
LAYER(bidirectional, 1, SEQUENCE, &(yk_bidirectional_config){ .layer = yk_layer_gru(k, RECURRENT) })
LAYER(multi_head_attention, 2, SEQUENCE, &(yk_attention_config){ .num_heads = 2, .key_dim = 3, .use_causal_mask = true })

static yk_layer *by_name(yk_keras *k) { return yk_layer_new(k, "Flatten", NULL); }
static yk_code call_by_name(void) { return apply(by_name, PICTURE, 1); }

/* ---- applications ------------------------------------------------------------------------------------------------------- */

static yk_network *resnet50(yk_keras *k) { return yk_resnet50(k, NULL); }
static yk_network *lstm_network(yk_keras *k) {
  return yk_lstm_network(k, &(yk_lstm_network_config){ .input_shape = YK_SHAPE(5), .words = 9, .classes = 2, .dropout = 0.1 });
}
static yk_network *transformer(yk_keras *k) {
  return yk_transformer(k, &(yk_transformer_config){ .input_shape = YK_SHAPE(5, 4), .classes = 2 });
}
static yk_code application(yk_network *(*make)(yk_keras *k)) {
  yk_keras *k;
  YK_TRY(yk_keras_new(1, &k));
  yk_network *n = make(k);
  yk_code rc = yk_keras_status(k);
  assert_true((n != NULL) == (rc == YK_OK));
  yk_keras_free(k);
  return rc;
}
static yk_code call_resnet50(void) { return application(resnet50); }
static yk_code call_lstm_network(void) { return application(lstm_network); }
static yk_code call_transformer(void) { return application(transformer); }

/* ---- networks ------------------------------------------------------------------------------------------------------------ */

static yk_keras *k;
static yk_network *network(yk_layer **dense) {
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(4) });
  *dense = yk_layer_dense(k, &(yk_dense_config){ .units = 2 });
  yk_sym out = yk_apply(*dense, in);
  return yk_network_new(k, NULL, 1, &in, 1, &out);
}

/* `use` on a network; both may fail. */
static yk_code with_network(yk_code (*use)(yk_network *n, yk_layer *dense)) {
  yk_layer *dense;
  YK_TRY(yk_keras_new(1, &k));
  yk_network *n = network(&dense);
  yk_code rc = yk_keras_status(k);
  if (rc == YK_OK) rc = use(n, dense);
  char text[512];                                          /* freeing may not lose what went wrong */
  snprintf(text, sizeof text, "%s", yk_error_message());
  yk_keras_free(k);
  return rc;
}

static yk_code summary(yk_network *n, yk_layer *dense) {
  char *text;
  (void)dense;
  YK_TRY(yk_network_summary(n, &text));
  yk_free(text);
  return YK_OK;
}
static yk_code weight(yk_network *n, yk_layer *dense) {
  yk_tensor *t;
  (void)n;
  YK_TRY(yk_layer_weight(dense, "kernel", &t));
  yk_code rc = yk_layer_set_weight(dense, "kernel", t);
  yk_tensor_free(t);
  return rc;
}
static yk_code place(yk_network *n, yk_layer *dense) {
  yk_network_options o = YK_NETWORK_OPTIONS_INIT;
  (void)dense;
  o.ndevices = 1;
  o.devices = (const char *const[]){ "/cpu:0" };
  return yk_network_place(n, &o);
}
static yk_code predict(yk_network *n, yk_layer *dense) {
  yk_tensor *x, *y;
  (void)dense;
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(3, 4), &x));
  yk_code rc = yk_network_predict(n, (const yk_tensor *const *)&x, 2, &y);
  if (rc == YK_OK) yk_tensor_free(y);
  yk_tensor_free(x);
  return rc;
}
static yk_code own_graph(yk_network *n, yk_layer *dense) {
  yk_graph *g;
  (void)n;
  (void)dense;
  return yk_keras_graph(k, &g);
}
static yk_code own_session(yk_network *n, yk_layer *dense) {
  yk_session *s;
  (void)n;
  (void)dense;
  return yk_keras_session(k, &s);
}
/* A step of one's own: the mean of what the network gives, and its gradients applied. */
static yk_code own_step(yk_network *n, yk_layer *dense) {
  yk_graph *g;
  yk_session *s;
  yk_value out;
  (void)dense;
  YK_TRY(yk_keras_graph(k, &g));
  yk_value in = yk_fill(g, YK_F32, YK_SHAPE(3, 4), 1);
  yk_network_build(n, true, &in, &out);
  yk_minimize(g, &YK_KERAS_SGD(0.1, 0.9), yk_reduce_mean(g, out, NULL), NULL);
  return yk_keras_session(k, &s);
}
static yk_code reset_states(yk_network *n, yk_layer *dense) {
  yk_layer *l = yk_layer_lstm(k, &(yk_recurrent_config){ .units = 2, .stateful = true });
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(3, 2), .batch = 2 }), out = yk_apply(l, in);
  yk_network *kept = yk_network_new(k, NULL, 1, &in, 1, &out);
  yk_tensor *x, *y;
  (void)n;
  (void)dense;
  YK_TRY(yk_keras_status(k));
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(2, 3, 2), &x));
  yk_code rc = yk_network_predict(kept, (const yk_tensor *const *)&x, 2, &y);
  if (rc == YK_OK) yk_tensor_free(y);
  yk_tensor_free(x);
  return rc == YK_OK ? yk_network_reset_states(kept) : rc;
}
static yk_code save(yk_network *n, yk_layer *dense) { (void)dense; return yk_network_save(n, file); }
static yk_code save_weights(yk_network *n, yk_layer *dense) { (void)dense; return yk_network_save_weights(n, weights); }
static yk_code save_archive(yk_network *n, yk_layer *dense) {
  char path[160];
  yk_keras *other;
  yk_network *loaded;
  (void)dense;
  snprintf(path, sizeof path, "%s/m.keras", folder);
  yk_code rc = yk_network_save(n, path);
  if (rc == YK_OK) rc = yk_keras_new(1, &other);
  if (rc == YK_OK) {
    rc = yk_network_load(other, path, &loaded);
    yk_keras_free(other);
  }
  unlink(path);
  return rc;
}
/* With a network inside, a circle and a loop. */
static yk_code plot(yk_network *n, yk_layer *dense) {
  yk_plot_options o = YK_PLOT_OPTIONS_INIT;
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(2) });
  yk_layer *square = yk_layer_dense(k, &(yk_dense_config){ .units = 2 }), *other = yk_layer_dense(k, &(yk_dense_config){ .units = 4 });
  yk_sym wide = yk_apply(yk_network_layer(n), yk_apply(other, yk_apply(square, yk_apply(square, in)))), out = yk_apply(square, wide);
  yk_network *outer = yk_network_new(k, NULL, 1, &in, 1, &out);
  char path[160];
  (void)dense;
  YK_TRY(yk_keras_status(k));
  o.expand_nested = true;
  snprintf(path, sizeof path, "%s/m.svg", folder);
  yk_code rc = yk_network_plot(outer, path, &o);
  unlink(path);
  return rc;
}
/* One of Keras 2, with an optimizer. */
static yk_code load_archive2(void) {
  char path[600];
  yk_keras *other;
  yk_network *loaded;
  snprintf(path, sizeof path, "%s/golden/keras_resumes/keras2-adam.keras", getenv("YOKE_TEST_DATA"));
  YK_TRY(yk_keras_new(1, &other));
  yk_code rc = yk_network_load(other, path, &loaded);
  yk_keras_free(other);
  return rc;
}
static yk_code load_weights(yk_network *n, yk_layer *dense) { (void)dense; return yk_network_load_weights(n, weights); }
static yk_code load_by_name(yk_network *n, yk_layer *dense) {
  size_t loaded = 0;
  (void)dense;
  return yk_network_load_weights_by_name(n, weights, false, &loaded);
}
static yk_code load(yk_network *n, yk_layer *dense) {
  yk_keras *other;
  (void)n;
  (void)dense;
  YK_TRY(yk_keras_new(1, &other));
  yk_network *loaded;
  yk_code rc = yk_network_load(other, file, &loaded);
  yk_keras_free(other);
  return rc;
}

static yk_code new_keras(void) {
  yk_keras *made;
  YK_TRY(yk_keras_new(1, &made));
  yk_keras_free(made);
  return YK_OK;
}
static yk_code nothing(yk_network *n, yk_layer *dense) { (void)n; (void)dense; return YK_OK; }
static yk_code call_network(void) { return with_network(nothing); }
static yk_code call_summary(void) { return with_network(summary); }
static yk_code call_weight(void) { return with_network(weight); }
static yk_code call_place(void) { return with_network(place); }
static yk_code call_own_graph(void) { return with_network(own_graph); }
static yk_code call_own_session(void) { return with_network(own_session); }
static yk_code call_own_step(void) { return with_network(own_step); }
static yk_code call_reset_states(void) { return with_network(reset_states); }
static yk_code call_predict(void) { return with_network(predict); }
static yk_code call_save(void) { return with_network(save); }
static yk_code call_save_weights(void) { return with_network(save_weights); }
static yk_code call_save_archive(void) { return with_network(save_archive); }
static yk_code call_plot(void) { return with_network(plot); }
static yk_code call_load(void) { return with_network(load); }
static yk_code call_load_by_name(void) { return with_network(load_by_name); }
static yk_code call_load_weights(void) { return with_network(load_weights); }

static void files(void) {
  snprintf(folder, sizeof folder, "/tmp/yoke-fault-XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/m.h5", folder);
  snprintf(weights, sizeof weights, "%s/w.h5", folder);
  CHECK_OK(call_save());
  CHECK_OK(call_save_weights());
}
static void no_files(void) {
  CHECK_INT(unlink(file), 0);
  CHECK_INT(unlink(weights), 0);
  CHECK_INT(rmdir(folder), 0);
}

#define MADE(id) { .names = "yk_layer_" #id "_at", .call = call_##id, .stride = 5, .least = 10 }
#define FILES(names_, call_) { .names = names_, .open = files, .call = call_, .close = no_files, .stride = 7, .least = 10 }
const fault_case fault_keras[] = {
  { .names = "yk_keras_new", .call = new_keras, .least = 2 },
  { .names = "yk_layer_new_at", .call = call_by_name, .stride = 5, .least = 10 },
  { .names = "yk_input_at", .call = call_flatten, .least = 10 },
  { .names = "yk_apply_at", .call = call_dense, .least = 10 },
  { .names = "yk_apply_n_at", .call = call_add, .least = 10 },
  MADE(relu),
  MADE(leaky_relu),
  MADE(elu),
  MADE(thresholded_relu),
  MADE(prelu),
  MADE(softmax),
  MADE(spatial_dropout1d),
  MADE(spatial_dropout2d),
  MADE(zero_padding1d),
  MADE(cropping1d),
  MADE(upsampling1d),
  MADE(upsampling2d),
  MADE(dot),
  MADE(gaussian_noise),
  MADE(gaussian_dropout),
  MADE(alpha_dropout),
  MADE(activity_regularization),
  MADE(unit_normalization),
  MADE(separable_conv1d),
  MADE(time_distributed),
  MADE(bidirectional),
  MADE(multi_head_attention),
  MADE(dense),
  MADE(activation),
  MADE(dropout),
  MADE(flatten),
  MADE(reshape),
  MADE(permute),
  MADE(repeat_vector),
  MADE(concatenate),
  MADE(add),
  MADE(subtract),
  MADE(multiply),
  MADE(average),
  MADE(maximum),
  MADE(minimum),
  MADE(conv2d),
  MADE(conv2d_transpose),
  MADE(depthwise_conv2d),
  MADE(separable_conv2d),
  MADE(conv1d),
  MADE(max_pooling2d),
  MADE(average_pooling2d),
  MADE(max_pooling1d),
  MADE(average_pooling1d),
  MADE(global_max_pooling2d),
  MADE(global_average_pooling2d),
  MADE(global_max_pooling1d),
  MADE(global_average_pooling1d),
  MADE(zero_padding2d),
  MADE(cropping2d),
  MADE(batch_normalization),
  MADE(layer_normalization),
  MADE(embedding),
  MADE(masking),
  MADE(lstm),
  MADE(gru),
  MADE(simple_rnn),
  { .names = "yk_resnet50_at", .call = call_resnet50, .stride = 997, .least = 1000 },
  { .names = "yk_lstm_network_at", .call = call_lstm_network, .stride = 7, .least = 50 },
  { .names = "yk_transformer_at", .call = call_transformer, .stride = 61, .least = 100 },
  { .names = "yk_network_new_at", .call = call_network, .stride = 3, .least = 10 },
  { .names = "yk_network_summary", .call = call_summary, .stride = 3, .least = 10 },
  { .names = "yk_layer_weight", .call = call_weight, .stride = 3, .least = 10 },
  { .names = "yk_layer_set_weight", .call = call_weight, .stride = 11, .least = 10 },
  { .names = "yk_keras_graph", .call = call_own_graph, .least = 3 },
  { .names = "yk_network_build_at", .call = call_own_step, .stride = 23, .least = 10 },
  { .names = "yk_keras_session", .call = call_own_session, .stride = 7, .survives = true, .least = 10 },
  { .names = "yk_network_reset_states", .call = call_reset_states, .survives = true, .stride = 31, .least = 20 },
  { .names = "yk_network_place", .call = call_place, .stride = 3, .least = 10 },
  { .names = "yk_network_predict", .call = call_predict, .survives = true, .stride = 13, .least = 20 }, /* idle plans give way */
  FILES("yk_network_save", call_save),
  FILES("yk_network_save_weights", call_save_weights),
  FILES("yk_network_plot", call_plot),
  FILES("yk_network_load", call_load),
  FILES("yk_network_save", call_save_archive),
  { .names = "yk_network_load", .call = load_archive2, .stride = 7, .least = 10 },
  FILES("yk_network_load_weights", call_load_weights),
  FILES("yk_network_load_weights_by_name", call_load_by_name),
  { 0 },
};
