/*
 * noise.c - layers that do something in training alone: GaussianNoise, GaussianDropout, AlphaDropout, and ActivityRegularization.
 *
 * Everywhere else they hand on what they get. Noise has the shape of the input, whatever the batch.
 */
#include <math.h>
#include "keras/keras.h"

static const yk_config_field NOISE_FIELDS[] = {
  { .key = "stddev", .kind = YK__F_REAL, YK__AT(yk_noise_config, stddev), .lo = 0, .hi = 1e9 }, { 0 } };
static const yk_config_field RATE_FIELDS[] = {
  { .key = "rate", .kind = YK__F_REAL, YK__AT(yk_dropout_config, rate), .lo = 0, .hi = 1 }, { 0 } };

static void call_gaussian_noise(yk_layer_call *c) {
  const yk_noise_config *a = c->layer->config;
  c->out[0] = c->in[0];
  if (c->training && a->stddev > 0) c->out[0] = Y(add, c->in[0], Y(random_normal_like, c->in[0], 0, a->stddev, a->seed));
}

/* The rate where something is dropped, else 0. */
static double rate_of(const yk_layer_call *c) {
  const yk_dropout_config *a = c->layer->config;
  return c->training && a->rate < 1 ? a->rate : 0;
}

/* Multiplied by noise of mean 1 that has the deviation of a dropout's. */
static void call_gaussian_dropout(yk_layer_call *c) {
  double rate = rate_of(c), deviation = sqrt(rate / (1 - rate));
  uint64_t seed = ((const yk_dropout_config *)c->layer->config)->seed;
  c->out[0] = c->in[0];
  if (rate > 0) c->out[0] = Y(mul, c->in[0], Y(random_normal_like, c->in[0], 1, deviation, seed));
}

/* What is dropped is where selu saturates; a line then brings mean and variance back: y = slope*(kept ? x : low) + lift. */
static void call_alpha_dropout(yk_layer_call *c) {
  const double low = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  double rate = rate_of(c), slope = 1 / sqrt((1 - rate) * (1 + rate * low * low)), lift = -slope * low * rate;
  c->out[0] = c->in[0];
  if (rate <= 0 || d == NULL) return;
  yk_dtype t = (yk_dtype)d->dtype;
  yk_value kept = Y(dropout, Y(ones_like, c->in[0]), rate, ((const yk_dropout_config *)c->layer->config)->seed);
  yk_value above = Y(mul, Y(sub, c->in[0], Y(scalar, t, low)), Y(mul, kept, Y(scalar, t, slope * (1 - rate))));
  c->out[0] = Y(add, above, Y(scalar, t, slope * low + lift));
}

/* yk__layer_call() puts the penalty on, as for every layer; the last field, which no file has, tells it where it is. */
#define ACTIVITY(number) YK__AT(yk_activity_config, activity_regularizer) + offsetof(yk_penalty, number)
static const yk_config_field ACTIVITY_FIELDS[] = {
  { .key = "l1", .kind = YK__F_REAL, ACTIVITY(l1), .lo = 0, .hi = 1e9 },
  { .key = "l2", .kind = YK__F_REAL, ACTIVITY(l2), .lo = 0, .hi = 1e9 },
  { .key = "activity_regularizer", .kind = YK__F_PENALTY, YK__AT(yk_activity_config, activity_regularizer), .major = -1 },
  { 0 } };

static void call_activity_regularization(yk_layer_call *c) { c->out[0] = c->in[0]; }

#define CLASS(id, title, type, table)                                                                                      \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(type), .fields = table, .min_in = 1, .max_in = 1, \
                                          .keeps_mask = true, .call = call_##id };                                         \
  YK__CONSTRUCTOR(id, type)
CLASS(gaussian_noise, "GaussianNoise", yk_noise_config, NOISE_FIELDS)
CLASS(gaussian_dropout, "GaussianDropout", yk_dropout_config, RATE_FIELDS)
CLASS(alpha_dropout, "AlphaDropout", yk_dropout_config, RATE_FIELDS)
CLASS(activity_regularization, "ActivityRegularization", yk_activity_config, ACTIVITY_FIELDS)
