/*
 * config_write.c - the config of a layer as Keras 2 writes it, by the table of its class.
 *
 * What was left at its default is written out, so that a reader with other defaults makes the same layer.
 */
#include <math.h>
#include <string.h>
#include "keras/json.h"

static json_t *named(const char *class, json_t *config) { return json_pack("{s:s, s:o}", "class_name", class, "config", config); }

static json_t *numbers(size_t n, const int64_t *x) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(x[i]));
  return list;
}

static json_t *shape(const yk_shape *s, bool batch, int64_t rows) {
  json_t *list = json_array();
  if (batch) json_array_append_new(list, rows > 0 ? json_integer(rows) : json_null());
  for (uint32_t i = 0; i < s->rank; i++)
    json_array_append_new(list, s->dim[i] > 0 || !batch ? json_integer(s->dim[i]) : json_null());
  return list;
}

static json_t *initializer(const yk_initializer *v) {
  static const char *const fan[] = { "fan_in", "fan_out", "fan_avg" };
  json_t *seed = v->seed ? json_integer((json_int_t)v->seed) : json_null();
  switch (v->kind) {
    case YK_INITIALIZER_ONES: return json_decref(seed), named("Ones", json_object());
    case YK_INITIALIZER_CONSTANT: return json_decref(seed), named("Constant", json_pack("{s:f}", "value", v->a));
    case YK_INITIALIZER_UNIFORM:
      return named("RandomUniform", json_pack("{s:f, s:f, s:o}", "minval", v->a, "maxval", v->b, "seed", seed));
    case YK_INITIALIZER_NORMAL:
      return named("RandomNormal", json_pack("{s:f, s:f, s:o}", "mean", v->a, "stddev", v->b, "seed", seed));
    case YK_INITIALIZER_TRUNCATED:
      return named("TruncatedNormal", json_pack("{s:f, s:f, s:o}", "mean", v->a, "stddev", v->b, "seed", seed));
    case YK_INITIALIZER_SCALED:
      return named("VarianceScaling", json_pack("{s:f, s:s, s:s, s:o}", "scale", v->a, "mode", fan[v->fan], "distribution",
                                                v->normal ? "truncated_normal" : "uniform", "seed", seed));
    case YK_INITIALIZER_ORTHOGONAL: return named("Orthogonal", json_pack("{s:f, s:o}", "gain", v->a, "seed", seed));
    case YK_INITIALIZER_IDENTITY: return json_decref(seed), named("Identity", json_pack("{s:f}", "gain", v->a));
    default: return json_decref(seed), named("Zeros", json_object());
  }
}

static json_t *penalty(const yk_penalty *v) {
  return v->l1 == 0 && v->l2 == 0 ? json_null() : named("L1L2", json_pack("{s:f, s:f}", "l1", v->l1, "l2", v->l2));
}

static json_t *constraint(const yk_constraint *v) {
  json_t *axis = v->axes.n == 1 ? json_integer(v->axes.at[0]) : numbers(v->axes.n, v->axes.at);
  switch (v->kind) {
    case YK_CONSTRAINT_MAX_NORM: return named("MaxNorm", json_pack("{s:f, s:o}", "max_value", v->max, "axis", axis));
    case YK_CONSTRAINT_UNIT_NORM: return named("UnitNorm", json_pack("{s:o}", "axis", axis));
    case YK_CONSTRAINT_MIN_MAX_NORM:
      return named("MinMaxNorm",
                   json_pack("{s:f, s:f, s:f, s:o}", "min_value", v->min, "max_value", v->max, "rate", v->rate, "axis", axis));
    case YK_CONSTRAINT_NON_NEG: return json_decref(axis), named("NonNeg", json_object());
    default: return json_decref(axis), json_null();
  }
}

static json_t *edges(int64_t v[2][2]) {
  return json_pack("[[I, I], [I, I]]", (json_int_t)v[0][0], (json_int_t)v[0][1], (json_int_t)v[1][0], (json_int_t)v[1][1]);
}

/* What Keras 2 and 3 call hard_sigmoid are two functions. */
static json_t *activation(const char *name, int major) {
  if (strcmp(name, "hard_sigmoid") == 0 && major >= 3) return NULL;
  if (strcmp(name, "hard_sigmoid_6") == 0) return major >= 3 ? json_string("hard_sigmoid") : NULL;
  return json_string(name);
}

static json_t *value_of(const yk_layer *l, int major, const yk_config_field *f) {
  void *at = (char *)l->config + f->offset;
  switch (f->kind) {
    case YK__F_INT: return json_integer(*(int64_t *)at);
    case YK__F_FIRST: return numbers(1, at);
    case YK__F_PAIR: return numbers(2, at);
    case YK__F_REAL: return isinf(*(double *)at) ? json_null() : json_real(*(double *)at);
    case YK__F_TRUE: return json_boolean(*(bool *)at);
    case YK__F_NOT: return json_boolean(!*(bool *)at);
    case YK__F_WORD: return strcmp(*(const char **)at, "none") == 0 ? json_null() : json_string(*(const char **)at);
    case YK__F_ACTIVATION: return activation(*(const char **)at, major);
    case YK__F_INITIALIZER: return initializer(at);
    case YK__F_PENALTY: return penalty(at);
    case YK__F_CONSTRAINT: return constraint(at);
    case YK__F_AXIS: return json_integer(*(int32_t *)at);
    case YK__F_EDGES: return edges(at);
    case YK__F_SIDES: return numbers(2, at);
    case YK__F_LAYER: return *(yk_layer **)at != NULL ? yk__layer_write(*(yk_layer **)at, major) : json_null();
    case YK__F_DIMS: return numbers(((yk_dims *)at)->n, ((yk_dims *)at)->at);
    case YK__F_FIXED: return json_loads(f->words, JSON_DECODE_ANY, NULL);
    case YK__F_SHAPE: {
      bool batch = l->class == &yk__class_input;
      return shape(at, batch, batch ? ((const yk_input_config *)l->config)->batch : 0);
    }
  }
  return NULL;
}

/* Keras 2 makes the weights of attention from these. */
static void attention_shapes(const yk_layer *l, json_t *o) {
  static const char *const key[3] = { "query_shape", "value_shape", "key_shape" };
  for (uint32_t i = 0; l->ncall > 0 && i < 3; i++) {
    const yk_desc *d = yk_sym_desc(l->call[0].in[i < l->call[0].nin ? i : 1]);
    yk_shape s = { .rank = d->rank - 1u };
    for (uint32_t k = 0; k < s.rank; k++) s.dim[k] = d->dim[k + 1];
    json_object_set_new(o, key[i], shape(&s, true, 0));
  }
}

json_t *yk__config_write(const yk_layer *l, int major) {
  const yk_input_config *in = l->config;
  const char *dtype = l->class == &yk__class_input && in->dtype != YK_NONE && in->dtype != YK_F32
                          ? (in->dtype == YK_I64 ? "int64" : "int32")
                          : "float32";
  json_t *o = json_pack("{s:s, s:b, s:s}", "name", l->name, "trainable", !l->frozen, "dtype", dtype);
  bool spatial = l->class == &yk__class_spatial_dropout1d || l->class == &yk__class_spatial_dropout2d;
  if (l->class == &yk__class_input || (spatial && major >= 3)) json_object_del(o, "trainable");
  if (l->class == &yk__class_multi_head_attention && major < 3) attention_shapes(l, o);
  for (const yk_config_field *f = l->class->fields; f->key != NULL; f++)
    if ((f->major == 0 || f->major == major) && json_object_set_new(o, f->key, value_of(l, major, f)) != 0) {
      json_decref(o);
      return NULL;
    }
  return o;
}
