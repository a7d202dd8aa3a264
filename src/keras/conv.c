/*
 * conv.c - Conv1D, Conv2D, Conv2DTranspose, DepthwiseConv2D, SeparableConv1D, SeparableConv2D.
 *
 * A sequence is a picture of one row. Fields of the table are Keras's for each class; what a class does not have stays at its default.
 */
#include <string.h>
#include "keras/keras.h"

#define CONV(member) YK__AT(yk_conv_config, member)
#define FILTERS { .key = "filters", .kind = YK__F_INT, CONV(filters), .lo = 1, .hi = 1e9 }
#define WINDOW(k)                                                                                             \
  { .key = "kernel_size", .kind = (k), CONV(kernel_size), .lo = 1, .hi = 1e6 },                               \
  { .key = "strides", .kind = (k), CONV(strides), .number = 1, .lo = 1, .hi = 1e6 },                          \
  { .key = "dilation_rate", .kind = (k), CONV(dilation_rate), .number = 1, .lo = 1, .hi = 1e6 }
#define USUAL                                                                                                 \
  YK__CHANNELS_LAST,                                                                                          \
  { .key = "activation", .kind = YK__F_ACTIVATION, CONV(activation), .words = "linear" },                     \
  { .key = "use_bias", .kind = YK__F_NOT, CONV(no_bias) },                                                    \
  { .key = "bias_initializer", .kind = YK__F_INITIALIZER, CONV(bias_initializer), .words = "zeros" },         \
  { .key = "bias_regularizer", .kind = YK__F_PENALTY, CONV(bias_regularizer) },                               \
  { .key = "bias_constraint", .kind = YK__F_CONSTRAINT, CONV(bias_constraint) },                              \
  { .key = "activity_regularizer", .kind = YK__F_PENALTY, CONV(activity_regularizer) }
#define KERNEL(prefix, member)                                                                                \
  { .key = prefix "_initializer", .kind = YK__F_INITIALIZER, CONV(member##_initializer), .words = "glorot_uniform" }, \
  { .key = prefix "_regularizer", .kind = YK__F_PENALTY, CONV(member##_regularizer) },                        \
  { .key = prefix "_constraint", .kind = YK__F_CONSTRAINT, CONV(member##_constraint) }
#define PADDING(list) { .key = "padding", .kind = YK__F_WORD, CONV(padding), .words = (list) }
#define GROUPS { .key = "groups", .kind = YK__F_INT, CONV(groups), .number = 1, .lo = 1, .hi = 1e6 }
#define MULTIPLIER { .key = "depth_multiplier", .kind = YK__F_INT, CONV(depth_multiplier), .number = 1, .lo = 1, .hi = 1e6 }

static const yk_config_field PLAIN_FIELDS[] = { FILTERS, WINDOW(YK__F_PAIR),       PADDING("valid|same"),
                                                GROUPS,  KERNEL("kernel", kernel), USUAL,
                                                { 0 } };
static const yk_config_field LINE_FIELDS[] = { FILTERS, WINDOW(YK__F_FIRST),      PADDING("valid|same|causal"),
                                               GROUPS,  KERNEL("kernel", kernel), USUAL,
                                               { 0 } };
static const yk_config_field TRANSPOSE_FIELDS[] = {
  FILTERS, WINDOW(YK__F_PAIR), PADDING("valid|same"), KERNEL("kernel", kernel), USUAL, { 0 }
};
static const yk_config_field DEPTHWISE_FIELDS[] = {
  WINDOW(YK__F_PAIR), PADDING("valid|same"), MULTIPLIER, KERNEL("depthwise", kernel), USUAL, { 0 }
};
static const yk_config_field SEPARABLE_FIELDS[] = { FILTERS,
                                                    WINDOW(YK__F_PAIR),
                                                    PADDING("valid|same"),
                                                    MULTIPLIER,
                                                    KERNEL("depthwise", kernel),
                                                    KERNEL("pointwise", pointwise),
                                                    USUAL,
                                                    { 0 } };
#define SEPARABLE_LINE FILTERS, WINDOW(YK__F_FIRST), PADDING("valid|same|causal"), MULTIPLIER, KERNEL("depthwise", kernel), \
                       KERNEL("pointwise", pointwise), USUAL
static const yk_config_field SEPARABLE_LINE_FIELDS[] = { SEPARABLE_LINE, { 0 } };

/* ---- weights ------------------------------------------------------------------------------------------------------------- */

/* Channels of the input; 0 after a sticky error. */
static int64_t channels_of(yk_layer *l, const char *where, const yk_desc *in, uint32_t rank) {
  if (in->rank == rank && in->dim[rank - 1] > 0) return in->dim[rank - 1];
  yk__layer_fail(l, where, "its input has %u dimensions; expected %u, the last of which is known", (unsigned)in->rank,
                 (unsigned)rank);
  return 0;
}

static void add_kernel(yk_layer *l, const char *name, const yk_desc *in, yk_shape s, bool pointwise) {
  const yk_conv_config *a = l->config;
  yk_weight w = { .name = name, .desc = { .dtype = in->dtype, .rank = (uint8_t)s.rank } };
  for (uint32_t i = 0; i < s.rank; i++) w.desc.dim[i] = s.dim[i];
  w.initializer = pointwise ? a->pointwise_initializer : a->kernel_initializer;
  w.penalty = pointwise ? a->pointwise_regularizer : a->kernel_regularizer;
  w.constraint = pointwise ? a->pointwise_constraint : a->kernel_constraint;
  yk__weight_add(l, &w);
}

static void add_bias(yk_layer *l, const yk_desc *in, int64_t n) {
  const yk_conv_config *a = l->config;
  if (!a->no_bias)
    yk__weight_add(l, &(yk_weight){ .name = "bias",
                                    .desc = { .dtype = in->dtype, .rank = 1, .dim = { n } },
                                    .initializer = a->bias_initializer,
                                    .penalty = a->bias_regularizer,
                                    .constraint = a->bias_constraint });
}

static void build_plain(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_conv_config *a = l->config;
  int64_t c = channels_of(l, where, in[0], 4);
  (void)nin;
  if (c % a->groups != 0 || a->filters % a->groups != 0)
    yk__layer_fail(l, where, "%lld groups do not divide %lld channels and %lld filters", (long long)a->groups, (long long)c,
                   (long long)a->filters);
  add_kernel(l, "kernel", in[0], YK_SHAPE(a->kernel_size[0], a->kernel_size[1], c / a->groups, a->filters), false);
  add_bias(l, in[0], a->filters);
}

static void build_line(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_conv_config *a = l->config;
  int64_t c = channels_of(l, where, in[0], 3);
  (void)nin;
  if (c % a->groups != 0 || a->filters % a->groups != 0)
    yk__layer_fail(l, where, "%lld groups do not divide %lld channels and %lld filters", (long long)a->groups, (long long)c,
                   (long long)a->filters);
  add_kernel(l, "kernel", in[0], YK_SHAPE(a->kernel_size[0], c / a->groups, a->filters), false);
  add_bias(l, in[0], a->filters);
}

static void build_transpose(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_conv_config *a = l->config;
  int64_t c = channels_of(l, where, in[0], 4);
  (void)nin;
  add_kernel(l, "kernel", in[0], YK_SHAPE(a->kernel_size[0], a->kernel_size[1], a->filters, c), false);
  add_bias(l, in[0], a->filters);
}

static void build_depthwise(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_conv_config *a = l->config;
  int64_t c = channels_of(l, where, in[0], 4);
  (void)nin;
  add_kernel(l, "depthwise_kernel", in[0], YK_SHAPE(a->kernel_size[0], a->kernel_size[1], c, a->depth_multiplier), false);
  add_bias(l, in[0], c * a->depth_multiplier);
}

static void build_separable(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_conv_config *a = l->config;
  int64_t c = channels_of(l, where, in[0], 4);
  (void)nin;
  add_kernel(l, "depthwise_kernel", in[0], YK_SHAPE(a->kernel_size[0], a->kernel_size[1], c, a->depth_multiplier), false);
  add_kernel(l, "pointwise_kernel", in[0], YK_SHAPE(1, 1, c * a->depth_multiplier, a->filters), true);
  add_bias(l, in[0], a->filters);
}

static void build_separable_line(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  const yk_conv_config *a = l->config;
  int64_t c = channels_of(l, where, in[0], 3);
  (void)nin;
  add_kernel(l, "depthwise_kernel", in[0], YK_SHAPE(a->kernel_size[0], c, a->depth_multiplier), false);
  add_kernel(l, "pointwise_kernel", in[0], YK_SHAPE(1, c * a->depth_multiplier, a->filters), true);
  add_bias(l, in[0], a->filters);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------- */

static yk_conv2d_attrs attrs_of(const yk_conv_config *a) {
  yk_conv2d_attrs x = { .padding = strcmp(a->padding, "same") == 0 ? YK_SAME : YK_VALID };
  for (int i = 0; i < 2; i++) {
    x.stride[i] = (int32_t)a->strides[i];
    x.dilation[i] = (int32_t)a->dilation_rate[i];
  }
  if (a->groups > 1) x.groups = (int32_t)a->groups;
  return x;
}

static void finish(yk_layer_call *c, yk_value y) {
  const yk_conv_config *a = c->layer->config;
  if (!a->no_bias) y = Y(bias_add, y, yk__weight(c, "bias"));
  c->out[0] = yk__activation(c->where, c->g, a->activation, y);
}

static void call_plain(yk_layer_call *c) {
  yk_conv2d_attrs x = attrs_of(c->layer->config);
  finish(c, Y(conv2d, c->in[0], yk__weight(c, "kernel"), &x));
}

/* Along a picture of one row. Causal: all of the padding lies before. */
static yk_conv2d_attrs row_of(const yk_conv_config *a) {
  yk_conv2d_attrs x = attrs_of(a);
  x.stride[1] = x.stride[0];
  x.dilation[1] = x.dilation[0];
  x.stride[0] = x.dilation[0] = 1;
  if (strcmp(a->padding, "causal") == 0) {
    x.padding = YK_EXPLICIT;
    x.pad[2] = (int32_t)((a->kernel_size[0] - 1) * a->dilation_rate[0]);
  }
  return x;
}

static const yk_axes_attrs ROW = { .naxes = 1, .axis = { 1 } };

static void call_line(yk_layer_call *c) {
  yk_conv2d_attrs x = row_of(c->layer->config);
  yk_value y = Y(conv2d, Y(expand_dims, c->in[0], 1), Y(expand_dims, yk__weight(c, "kernel"), 0), &x);
  finish(c, Y(squeeze, y, &ROW));
}

/* VALID of Keras: H' = (H-1)*stride + max(window, stride), that of the operation for the window. */
static void call_transpose(yk_layer_call *c) {
  const yk_conv_config *a = c->layer->config;
  yk_conv2d_attrs x = attrs_of(a);
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  for (int i = 0; i < 2 && d != NULL; i++)
    if (x.padding == YK_VALID && a->strides[i] > a->kernel_size[i] && d->dim[1 + i] > 0)
      x.out[i] = (int32_t)((d->dim[1 + i] - 1) * a->strides[i] + a->strides[i]);
  finish(c, Y(conv2d_transpose, c->in[0], yk__weight(c, "kernel"), &x));
}

static void call_depthwise(yk_layer_call *c) {
  yk_conv2d_attrs x = attrs_of(c->layer->config);
  finish(c, Y(depthwise_conv2d, c->in[0], yk__weight(c, "depthwise_kernel"), &x));
}

static void call_separable(yk_layer_call *c) {
  yk_conv2d_attrs x = attrs_of(c->layer->config);
  yk_value y = Y(depthwise_conv2d, c->in[0], yk__weight(c, "depthwise_kernel"), &x);
  finish(c, Y(conv2d, y, yk__weight(c, "pointwise_kernel"), NULL));
}

static void call_separable_line(yk_layer_call *c) {
  yk_conv2d_attrs x = row_of(c->layer->config);
  yk_value y = Y(depthwise_conv2d, Y(expand_dims, c->in[0], 1), Y(expand_dims, yk__weight(c, "depthwise_kernel"), 0), &x);
  y = Y(conv2d, y, Y(expand_dims, yk__weight(c, "pointwise_kernel"), 0), NULL);
  finish(c, Y(squeeze, y, &ROW));
}

#define CLASS(id, title, table, how)                                                                               \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_conv_config), .fields = table, .min_in = 1, .max_in = 1, \
                                          .build = build_##how, .call = call_##how };                              \
  YK__CONSTRUCTOR(id, yk_conv_config)
CLASS(conv2d, "Conv2D", PLAIN_FIELDS, plain)
CLASS(conv1d, "Conv1D", LINE_FIELDS, line)
CLASS(conv2d_transpose, "Conv2DTranspose", TRANSPOSE_FIELDS, transpose)
CLASS(depthwise_conv2d, "DepthwiseConv2D", DEPTHWISE_FIELDS, depthwise)
CLASS(separable_conv2d, "SeparableConv2D", SEPARABLE_FIELDS, separable)
CLASS(separable_conv1d, "SeparableConv1D", SEPARABLE_LINE_FIELDS, separable_line)
