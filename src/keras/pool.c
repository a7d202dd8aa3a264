/*
 * pool.c - pooling over windows and over everything, and rows and columns put around or cut off.
 *
 * A sequence is a picture of one row.
 */
#include <string.h>
#include "keras/keras.h"

#define POOL(member) YK__AT(yk_pooling_config, member)
#define WINDOW(k)                                                                               \
  { .key = "pool_size", .kind = (k), POOL(pool_size), .number = 2, .lo = 1, .hi = 1e6 },        \
  { .key = "strides", .kind = (k), POOL(strides), .number = 0, .lo = 0, .hi = 1e6 },            \
  { .key = "padding", .kind = YK__F_WORD, POOL(padding), .words = "valid|same" }, YK__CHANNELS_LAST, { 0 }
static const yk_config_field PICTURE_FIELDS[] = { WINDOW(YK__F_PAIR) }, LINE_FIELDS[] = { WINDOW(YK__F_FIRST) };
static const yk_config_field GLOBAL_FIELDS[] = {
  { .key = "keepdims", .kind = YK__F_TRUE, YK__AT(yk_global_pooling_config, keepdims) }, YK__CHANNELS_LAST, { 0 }
};

static void settle(yk_layer *l) {
  yk_pooling_config *a = l->config;
  for (int i = 0; i < 2; i++)
    if (a->strides[i] == 0) a->strides[i] = a->pool_size[i];
}

static bool has_rank(yk_layer_call *c, uint32_t rank) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (d != NULL && d->rank == rank) return true;
  yk__layer_fail(c->layer, c->where, "its input has %u dimensions; expected %u", d != NULL ? (unsigned)d->rank : 0u,
                 (unsigned)rank);
  return false;
}

static yk_pool_attrs attrs_of(const yk_pooling_config *a) {
  yk_pool_attrs x = { .padding = strcmp(a->padding, "same") == 0 ? YK_SAME : YK_VALID };
  for (int i = 0; i < 2; i++) {
    x.window[i] = (int32_t)a->pool_size[i];
    x.stride[i] = (int32_t)a->strides[i];
  }
  return x;
}

static void over_picture(yk_layer_call *c, bool max) {
  yk_pool_attrs x = attrs_of(c->layer->config);
  if (has_rank(c, 4)) c->out[0] = max ? Y(max_pool, c->in[0], &x) : Y(avg_pool, c->in[0], &x);
}

static void over_line(yk_layer_call *c, bool max) {
  yk_pool_attrs x = attrs_of(c->layer->config);
  yk_axes_attrs row = { .naxes = 1, .axis = { 1 } };
  if (!has_rank(c, 3)) return;
  x.window[1] = x.window[0];
  x.stride[1] = x.stride[0];
  x.window[0] = x.stride[0] = 1;
  yk_value p = Y(expand_dims, c->in[0], 1);
  c->out[0] = Y(squeeze, max ? Y(max_pool, p, &x) : Y(avg_pool, p, &x), &row);
}

static void over_all(yk_layer_call *c, uint32_t rank, bool max) {
  yk_reduce_attrs x = { .naxes = rank - 2,
                        .axis = { 1, 2 },
                        .keepdims = ((const yk_global_pooling_config *)c->layer->config)->keepdims };
  if (has_rank(c, rank)) c->out[0] = max ? Y(reduce_max, c->in[0], &x) : Y(reduce_mean, c->in[0], &x);
}

static void call_max_pooling2d(yk_layer_call *c) { over_picture(c, true); }
static void call_average_pooling2d(yk_layer_call *c) { over_picture(c, false); }
static void call_max_pooling1d(yk_layer_call *c) { over_line(c, true); }
static void call_average_pooling1d(yk_layer_call *c) { over_line(c, false); }
static void call_global_max_pooling2d(yk_layer_call *c) { over_all(c, 4, true); }
static void call_global_average_pooling2d(yk_layer_call *c) { over_all(c, 4, false); }
static void call_global_max_pooling1d(yk_layer_call *c) { over_all(c, 3, true); }
static void call_global_average_pooling1d(yk_layer_call *c) { over_all(c, 3, false); }

#define POOLING(id, title, table)                                                                                  \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_pooling_config), .fields = table, .min_in = 1, \
                                          .max_in = 1, .settle = settle, .call = call_##id };                      \
  YK__CONSTRUCTOR(id, yk_pooling_config)
#define GLOBAL(id, title)                                                                                          \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_global_pooling_config), .fields = GLOBAL_FIELDS, \
                                          .min_in = 1, .max_in = 1, .call = call_##id };                           \
  YK__CONSTRUCTOR(id, yk_global_pooling_config)
POOLING(max_pooling2d, "MaxPooling2D", PICTURE_FIELDS)
POOLING(average_pooling2d, "AveragePooling2D", PICTURE_FIELDS)
POOLING(max_pooling1d, "MaxPooling1D", LINE_FIELDS)
POOLING(average_pooling1d, "AveragePooling1D", LINE_FIELDS)
GLOBAL(global_max_pooling2d, "GlobalMaxPooling2D")
GLOBAL(global_average_pooling2d, "GlobalAveragePooling2D")
GLOBAL(global_max_pooling1d, "GlobalMaxPooling1D")
GLOBAL(global_average_pooling1d, "GlobalAveragePooling1D")

/* ---- edges ------------------------------------------------------------------------------------------------------------------ */

static const yk_config_field PADDING_FIELDS[] = { { .key = "padding", .kind = YK__F_EDGES, YK__AT(yk_edges_config, edges) },
                                                YK__CHANNELS_LAST, { 0 } };
static const yk_config_field CROPPING_FIELDS[] = { { .key = "cropping", .kind = YK__F_EDGES, YK__AT(yk_edges_config, edges) },
                                                YK__CHANNELS_LAST, { 0 } };

static void call_zero_padding2d(yk_layer_call *c) {
  const yk_edges_config *a = c->layer->config;
  int64_t before[4] = { 0, a->edges[0][0], a->edges[1][0], 0 }, after[4] = { 0, a->edges[0][1], a->edges[1][1], 0 };
  if (has_rank(c, 4)) c->out[0] = Y(pad, c->in[0], before, after, 0);
}

static void call_cropping2d(yk_layer_call *c) {
  const yk_edges_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  int64_t begin[4] = { 0, a->edges[0][0], a->edges[1][0], 0 }, size[4] = { -1, 0, 0, -1 };
  if (!has_rank(c, 4)) return;
  for (int i = 0; i < 2; i++) {
    size[1 + i] = d->dim[1 + i] - a->edges[i][0] - a->edges[i][1];
    if (d->dim[1 + i] >= 0 && size[1 + i] > 0) continue;
    yk__layer_fail(c->layer, c->where, "%lld and %lld are cut off a side of %lld", (long long)a->edges[i][0],
                   (long long)a->edges[i][1], (long long)d->dim[1 + i]);
    return;
  }
  c->out[0] = Y(slice, c->in[0], begin, size);
}

#define EDGES(id, title, table)                                                                                    \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_edges_config), .fields = table, .min_in = 1, .max_in = 1, \
                                          .call = call_##id };                                                     \
  YK__CONSTRUCTOR(id, yk_edges_config)
EDGES(zero_padding2d, "ZeroPadding2D", PADDING_FIELDS)
EDGES(cropping2d, "Cropping2D", CROPPING_FIELDS)

/* ---- of sequences --------------------------------------------------------------------------------------------------------------- */

static const yk_config_field PADDING1_FIELDS[] = {
  { .key = "padding", .kind = YK__F_SIDES, YK__AT(yk_sides_config, sides), .number = 0, .lo = 0, .hi = 1e9 }, { 0 } };
static const yk_config_field CROPPING1_FIELDS[] = {
  { .key = "cropping", .kind = YK__F_SIDES, YK__AT(yk_sides_config, sides), .number = 0, .lo = 0, .hi = 1e9 }, { 0 } };

static void call_zero_padding1d(yk_layer_call *c) {
  const yk_sides_config *a = c->layer->config;
  int64_t before[3] = { 0, a->sides[0], 0 }, after[3] = { 0, a->sides[1], 0 };
  if (has_rank(c, 3)) c->out[0] = Y(pad, c->in[0], before, after, 0);
}

static void call_cropping1d(yk_layer_call *c) {
  const yk_sides_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (!has_rank(c, 3)) return;
  int64_t begin[3] = { 0, a->sides[0], 0 }, size[3] = { -1, d->dim[1] - a->sides[0] - a->sides[1], -1 };
  if (d->dim[1] >= 0 && size[1] > 0) c->out[0] = Y(slice, c->in[0], begin, size);
  else yk__layer_fail(c->layer, c->where, "%lld and %lld are cut off a length of %lld", (long long)a->sides[0], (long long)a->sides[1],
                      (long long)d->dim[1]);
}

#define SIDES(id, title, table)                                                                                    \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_sides_config), .fields = table, .min_in = 1, .max_in = 1, \
                                          .call = call_##id };                                                     \
  YK__CONSTRUCTOR(id, yk_sides_config)
SIDES(zero_padding1d, "ZeroPadding1D", PADDING1_FIELDS)
SIDES(cropping1d, "Cropping1D", CROPPING1_FIELDS)
