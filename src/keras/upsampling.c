/*
 * upsampling.c - UpSampling1D and UpSampling2D, and whole channels dropped: SpatialDropout1D, SpatialDropout2D.
 *
 * A sequence is a picture of one column.
 */
#include <string.h>
#include "keras/keras.h"

#define UP(member) YK__AT(yk_upsampling_config, member)
static const yk_config_field PICTURE_FIELDS[] = {
  { .key = "size", .kind = YK__F_PAIR, UP(size), .number = 2, .lo = 1, .hi = 1e4 },
  { .key = "interpolation", .kind = YK__F_WORD, UP(interpolation), .words = "nearest|bilinear" }, YK__CHANNELS_LAST, { 0 } };
static const yk_config_field LINE_FIELDS[] = { { .key = "size", .kind = YK__F_INT, UP(size), .number = 2, .lo = 1, .hi = 1e6 }, { 0 } };

static bool has_rank(const yk_layer_call *c, uint32_t rank) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (d != NULL && d->rank == rank) return true;
  yk__layer_fail(c->layer, c->where, "its input has %u dimensions; expected %u", d != NULL ? (unsigned)d->rank : 0u, (unsigned)rank);
  return false;
}

static void call_upsampling2d(yk_layer_call *c) {
  const yk_upsampling_config *a = c->layer->config;
  int rows = (int)a->size[0], columns = (int)a->size[1];
  if (!has_rank(c, 4)) return;
  c->out[0] = strcmp(a->interpolation, "bilinear") == 0 ? Y(resize_bilinear, c->in[0], rows, columns) : Y(resize_nearest, c->in[0], rows, columns);
}

static void call_upsampling1d(yk_layer_call *c) {
  const yk_upsampling_config *a = c->layer->config;
  yk_axes_attrs column = { .naxes = 1, .axis = { 2 } };
  if (has_rank(c, 3)) c->out[0] = Y(squeeze, Y(resize_nearest, Y(expand_dims, c->in[0], 2), (int)a->size[0], 1), &column);
}

#define UPSAMPLING(id, title, table)                                                                                             \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_upsampling_config), .fields = table, .min_in = 1, \
                                          .max_in = 1, .call = call_##id };                                                      \
  YK__CONSTRUCTOR(id, yk_upsampling_config)
UPSAMPLING(upsampling2d, "UpSampling2D", PICTURE_FIELDS)
UPSAMPLING(upsampling1d, "UpSampling1D", LINE_FIELDS)

/* ---- whole channels ------------------------------------------------------------------------------------------------------------ */

static const yk_config_field DROPOUT_FIELDS[] = {
  { .key = "rate", .kind = YK__F_REAL, YK__AT(yk_dropout_config, rate), .lo = 0, .hi = 1 }, { 0 } };

/* One cell of each channel stands for all: kept and scaled, or zero. */
static void drop_channels(yk_layer_call *c, uint32_t rank) {
  const yk_dropout_config *a = c->layer->config;
  int64_t begin[4] = { 0 }, size[4] = { -1, 1, 1, -1 };
  c->out[0] = c->in[0];
  if (!has_rank(c, rank) || !c->training || a->rate <= 0 || a->rate >= 1) return;
  size[rank - 1] = -1;
  yk_value one = Y(ones_like, Y(slice, c->in[0], begin, size));
  c->out[0] = Y(mul, c->in[0], Y(dropout, one, a->rate, a->seed));
}
static void call_spatial_dropout1d(yk_layer_call *c) { drop_channels(c, 3); }
static void call_spatial_dropout2d(yk_layer_call *c) { drop_channels(c, 4); }

#define SPATIAL(id, title)                                                                                                       \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_dropout_config), .fields = DROPOUT_FIELDS, .min_in = 1, \
                                          .max_in = 1, .keeps_mask = true, .call = call_##id };                                  \
  YK__CONSTRUCTOR(id, yk_dropout_config)
SPATIAL(spatial_dropout1d, "SpatialDropout1D")
SPATIAL(spatial_dropout2d, "SpatialDropout2D")
