/*
 * parts.c - convolution, dense layer and normalisation with their variables.
 *
 * Only what the built-in networks share; shapes of variables come from the
 * input's description, whose channels are always known.
 */
#include "model/parts.h"

static yk_value weights(yk_graph *g, yk_shape shape, const yk_part *part) {
  yk_variable *v = yk_get_variable(g, "weights", YK_F32, shape, part->weights, NULL);
  yk_value w, penalty;
  if (v == NULL) return (yk_value){ 0 };
  w = yk_read(v);
  if (part->decay == 0) return w;
  penalty = yk_mul(g, yk_l2_loss(g, w), yk_scalar_f32(g, (float)part->decay));
  yk_add_to_collection(g, YK_LOSSES, penalty);
  return w;
}

static yk_value biased(yk_graph *g, yk_value y, int64_t n, const yk_part *part) {
  yk_variable *b;
  if (part->no_bias) return y;
  b = yk_get_variable(g, "biases", YK_F32, YK_SHAPE(n), part->biases, NULL);
  return b == NULL ? (yk_value){ 0 } : yk_bias_add(g, y, yk_read(b));
}

static int64_t channels(const yk_graph *g, yk_value x) {
  const yk_desc *d = yk_value_desc(g, x);
  return d == NULL || d->rank == 0 ? 0 : d->dim[d->rank - 1];
}

yk_value yk__conv(yk_graph *g, const char *name, yk_value x, int64_t filters, int64_t window, int32_t stride, const yk_part *part) {
  yk_value y = { 0 };
  YK_VARIABLE_SCOPE(g, name) {
    yk_value w = weights(g, YK_SHAPE(window, window, channels(g, x), filters), part);
    yk_conv2d_attrs a = { .stride = { stride, stride } };
    y = biased(g, yk_conv2d(g, x, w, &a), filters, part);
  }
  return y;
}

yk_value yk__dense(yk_graph *g, const char *name, yk_value x, int64_t units, const yk_part *part) {
  yk_value y = { 0 };
  YK_VARIABLE_SCOPE(g, name) {
    yk_value w = weights(g, YK_SHAPE(channels(g, x), units), part);
    y = biased(g, yk_matmul(g, x, w, NULL), units, part);
  }
  return y;
}

yk_value yk__norm(yk_graph *g, const char *name, yk_value x, bool training) {
  yk_value y = { 0 };
  yk_batch_norm_options o = { .training = training, .momentum = 0.9, .epsilon = 1e-5 };
  YK_VARIABLE_SCOPE(g, name) { y = yk_batch_norm(g, x, &o); }
  return y;
}
