/*
 * config_json.c - the config of a layer as Keras writes it in JSON, by the table of its class.
 *
 * Keys that no table has are passed over where their value asks for nothing (null, false, "", empty) or is what we do anyway;
 * anything else is refused by name, since a setting that is not heeded would be silently wrong.
 */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "keras/json.h"

typedef struct reading { yk_keras *k; int major, depth; const char *layer, *key; } reading;

static yk_code wrong(const reading *r, const json_t *v, const char *expected) {
  char text[96] = "";
  size_t n = json_dumpb(v, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_COMPACT);
  text[n < sizeof text ? n : sizeof text - 1] = '\0';
  return YK_FAIL(ECORRUPT, "layer '%s': %s is %s%s; expected %s", r->layer, r->key, text, n < sizeof text ? "" : "...", expected);
}

static yk_code read_int(const reading *r, const json_t *v, int64_t *out) {
  double x = json_number_value(v);
  if (json_is_null(v)) return *out = 0, YK_OK;
  if (!json_is_number(v) || x != floor(x) || fabs(x) > 9e15) return wrong(r, v, "a whole number");
  *out = (int64_t)x;
  return YK_OK;
}

/* A number, or a list of n. */
static yk_code read_ints(const reading *r, const json_t *v, size_t n, int64_t *out) {
  if (!json_is_array(v)) {
    YK_TRY(read_int(r, v, out));
    for (size_t i = 1; i < n; i++) out[i] = out[0];
    return YK_OK;
  }
  if (json_array_size(v) != n) return wrong(r, v, n == 1 ? "a number" : "two numbers");
  for (size_t i = 0; i < n; i++) YK_TRY(read_int(r, json_array_get(v, i), &out[i]));
  return YK_OK;
}

/* ((top, bottom), (left, right)), or (height, width), or one number. */
static yk_code read_edges(const reading *r, const json_t *v, int64_t out[2][2]) {
  if (json_is_array(v) && json_array_size(v) != 2) return wrong(r, v, "two pairs");
  for (size_t i = 0; i < 2; i++) YK_TRY(read_ints(r, json_is_array(v) ? json_array_get(v, i) : v, 2, out[i]));
  return YK_OK;
}

static yk_code read_list(const reading *r, const json_t *v, size_t first, uint32_t *n, int64_t *out) {
  if (json_is_null(v)) return *n = 0, YK_OK;
  size_t count = json_array_size(v);
  if (!json_is_array(v) || count < first || count - first >= YK_MAX_RANK) return wrong(r, v, "a list of a few numbers");
  *n = (uint32_t)(count - first);
  for (size_t i = first; i < count; i++) {
    const json_t *x = json_array_get(v, i);
    out[i - first] = -1;
    if (!json_is_null(x)) YK_TRY(read_int(r, x, &out[i - first]));
  }
  return YK_OK;
}

static yk_code read_real(const reading *r, const json_t *v, double *out) {
  if (json_is_null(v)) return *out = 0, YK_OK;
  if (!json_is_number(v)) return wrong(r, v, "a number");
  *out = json_number_value(v);
  if (*out == 0) *out = YK_EXACTLY_ZERO;
  return YK_OK;
}

static yk_code read_text(const reading *r, const json_t *v, const char **out) {
  if (json_is_null(v)) return *out = NULL, YK_OK;
  if (!json_is_string(v)) return wrong(r, v, "a text");
  *out = yk__bump_str(&r->k->mem, json_string_value(v));
  return *out != NULL ? YK_OK : YK_ENOMEM;
}

/* ---- objects: {"class_name": ..., "config": {...}}, or a name -------------------------------------------------------------- */

static const char *class_of(const json_t *v) {
  return json_is_string(v) ? json_string_value(v) : json_string_value(json_object_get(v, "class_name"));
}

static double number_in(const json_t *config, const char *key, double otherwise) {
  const json_t *v = json_object_get(config, key);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

/* A function by name, or an object of a class that is one: ReLU is "relu". */
static yk_code read_activation(const reading *r, const json_t *v, const char **out) {
  const char *class = json_is_object(v) ? class_of(v) : NULL;
  char name[64];
  if (class == NULL || strcmp(class, "function") == 0) {
    YK_TRY(read_text(r, class == NULL ? v : json_object_get(v, "config"), out));
    if (*out != NULL && r->major >= 3 && strcmp(*out, "hard_sigmoid") == 0) *out = "hard_sigmoid_6";
    return YK_OK;
  }
  yk__snake_case(class, name, sizeof name);
  *out = yk__bump_str(&r->k->mem, strcmp(class, "ReLU") == 0 ? "relu" : name);
  return *out != NULL ? YK_OK : YK_ENOMEM;
}

static yk_code read_scaled(const reading *r, const json_t *v, yk_initializer *out) {
  const json_t *c = json_object_get(v, "config"), *mode = json_object_get(c, "mode"),
               *distribution = json_object_get(c, "distribution");
  const char *m = json_is_string(mode) ? json_string_value(mode) : "fan_in",
             *d = json_is_string(distribution) ? json_string_value(distribution) : "normal";
  if (strcmp(m, "fan_in") != 0 && strcmp(m, "fan_out") != 0 && strcmp(m, "fan_avg") != 0)
    return wrong(r, v, "a mode fan_in, fan_out or fan_avg");
  if (strcmp(d, "uniform") != 0 && strcmp(d, "normal") != 0 && strcmp(d, "truncated_normal") != 0)
    return wrong(r, v, "a distribution normal or uniform");
  *out = (yk_initializer){ .kind = YK_INITIALIZER_SCALED, .a = number_in(c, "scale", 1), .normal = strcmp(d, "uniform") != 0,
                           .fan = strcmp(m, "fan_in") == 0 ? YK_FAN_IN : strcmp(m, "fan_out") == 0 ? YK_FAN_OUT : YK_FAN_AVG };
  return YK_OK;
}

static void read_numbers(const json_t *c, yk_initializer *out) {
  switch (out->kind) {
    case YK_INITIALIZER_CONSTANT: out->a = number_in(c, "value", 0); break;
    case YK_INITIALIZER_UNIFORM:
      out->a = number_in(c, "minval", out->a);
      out->b = number_in(c, "maxval", out->b);
      break;
    case YK_INITIALIZER_NORMAL:
    case YK_INITIALIZER_TRUNCATED:
      out->a = number_in(c, "mean", out->a);
      out->b = number_in(c, "stddev", out->b);
      break;
    case YK_INITIALIZER_ORTHOGONAL:
    case YK_INITIALIZER_IDENTITY: out->a = number_in(c, "gain", out->a); break;
    default: break;
  }
}

static yk_code read_initializer(const reading *r, const json_t *v, yk_initializer *out) {
  const char *class = class_of(v);
  char name[64];
  if (json_is_null(v)) return YK_OK;
  if (class == NULL) return wrong(r, v, "an initializer");
  if (strcmp(class, "VarianceScaling") == 0) return read_scaled(r, v, out);
  yk__snake_case(class, name, sizeof name);
  if (!yk__initializer_named(name, out)) return wrong(r, v, "an initializer of layers.h");
  const json_t *seed = json_object_get(json_object_get(v, "config"), "seed");
  if (json_is_integer(seed)) out->seed = (uint64_t)json_integer_value(seed);
  read_numbers(json_object_get(v, "config"), out);
  return YK_OK;
}

static yk_code read_penalty(const reading *r, const json_t *v, yk_penalty *out) {
  const char *class = class_of(v);
  const json_t *c = json_object_get(v, "config");
  if (json_is_null(v)) return YK_OK;
  if (class == NULL || (strcmp(class, "L1L2") != 0 && strcmp(class, "L1") != 0 && strcmp(class, "L2") != 0 &&
                        strcmp(class, "l1") != 0 && strcmp(class, "l2") != 0 && strcmp(class, "l1_l2") != 0))
    return wrong(r, v, "a regularizer L1, L2 or L1L2");
  bool l1 = strchr(class, '1') != NULL, l2 = strchr(class, '2') != NULL;
  *out = (yk_penalty){ number_in(c, "l1", l1 && !l2 ? .01 : 0), number_in(c, "l2", l2 && !l1 ? .01 : 0) };
  return YK_OK;
}

static yk_code read_constraint(const reading *r, const json_t *v, yk_constraint *out) {
  static const struct { const char *name; yk_constraint_kind kind; } kinds[] = {
    { "max_norm", YK_CONSTRAINT_MAX_NORM }, { "non_neg", YK_CONSTRAINT_NON_NEG }, { "unit_norm", YK_CONSTRAINT_UNIT_NORM },
    { "min_max_norm", YK_CONSTRAINT_MIN_MAX_NORM } };
  const char *class = class_of(v);
  const json_t *c = json_object_get(v, "config"), *axis = json_object_get(c, "axis");
  char name[64] = "";
  if (json_is_null(v)) return YK_OK;
  if (class != NULL) yk__snake_case(class, name, sizeof name);
  *out = (yk_constraint){ .min = number_in(c, "min_value", 0), .max = number_in(c, "max_value", strcmp(name, "max_norm") == 0 ? 2 : 1),
                          .rate = number_in(c, "rate", 1) };
  for (size_t i = 0; i < 4; i++)
    if (strcmp(kinds[i].name, name) == 0) out->kind = kinds[i].kind;
  if (out->kind == YK_CONSTRAINT_NONE) return wrong(r, v, "a constraint MaxNorm, NonNeg, UnitNorm or MinMaxNorm");
  if (json_is_array(axis)) return read_list(r, axis, 0, &out->axes.n, out->axes.at);
  out->axes.n = 1;
  return json_is_integer(axis) ? read_int(r, axis, &out->axes.at[0]) : YK_OK;
}

/* ---- fields ------------------------------------------------------------------------------------------------------------------ */

static yk_code read_bool(const reading *r, const json_t *v, bool not, bool *out) {
  if (!json_is_boolean(v)) return wrong(r, v, "true or false");
  *out = json_is_true(v) != not;
  return YK_OK;
}

static yk_code read_axis(const reading *r, const json_t *v, int32_t *out) {
  int64_t n = 0;
  YK_TRY(read_ints(r, v, 1, &n));
  *out = (int32_t)n;
  return YK_OK;
}

static yk_code read_fixed(const reading *r, const yk_config_field *f, const json_t *v) {
  json_t *only = json_loads(f->words, JSON_DECODE_ANY, NULL);
  bool same = json_is_null(v) || json_equal(only, v);
  json_decref(only);
  return same ? YK_OK : wrong(r, v, f->words);
}

static yk_code read_field(const reading *r, const yk_config_field *f, const json_t *v, void *at) {
  switch (f->kind) {
    case YK__F_INT: return read_int(r, v, at);
    case YK__F_FIRST: return read_ints(r, v, 1, at);
    case YK__F_PAIR: return json_is_null(v) ? YK_OK : read_ints(r, v, 2, at);
    case YK__F_REAL: return read_real(r, v, at);
    case YK__F_TRUE: return read_bool(r, v, false, at);
    case YK__F_NOT: return read_bool(r, v, true, at);
    case YK__F_WORD:
      if (json_is_null(v) && yk__named_in(f->words, "none")) return *(const char **)at = "none", YK_OK;
      return read_text(r, v, at);
    case YK__F_ACTIVATION: return read_activation(r, v, at);
    case YK__F_INITIALIZER: return read_initializer(r, v, at);
    case YK__F_PENALTY: return read_penalty(r, v, at);
    case YK__F_CONSTRAINT: return read_constraint(r, v, at);
    case YK__F_AXIS: return read_axis(r, v, at);
    case YK__F_EDGES: return read_edges(r, v, at);
    case YK__F_SIDES: return read_ints(r, v, 2, at);
    case YK__F_LAYER: return json_is_null(v) ? YK_OK : yk__layer_read(r->k, r->major, r->depth + 1, v, at);
    case YK__F_SHAPE:
      return read_list(r, v, strcmp(f->key, "batch_input_shape") == 0, &((yk_shape *)at)->rank, ((yk_shape *)at)->dim);
    case YK__F_FIXED: return read_fixed(r, f, v);
    case YK__F_DIMS: return read_list(r, v, 0, &((yk_dims *)at)->n, ((yk_dims *)at)->at);
  }
  return YK_FAIL(EINTERNAL, "field %s has no kind", f->key);
}

static const yk_config_field *field_of(const yk_layer_class *class, int major, const char *key) {
  for (const yk_config_field *f = class->fields; f->key != NULL; f++)
    if (strcmp(f->key, key) == 0 && (f->major == 0 || f->major == major)) return f;
  return NULL;
}

/* Are weights float32, by name or by a policy? With Keras's mixed policies they are too; here all is worked out in float32. */
static bool is_float32(const json_t *v) {
  if (json_is_object(v)) v = json_object_get(json_object_get(v, "config"), "name");
  const char *name = json_string_value(v);
  return json_is_null(v) || (name != NULL && (strcmp(name, "float32") == 0 || strncmp(name, "mixed_", 6) == 0));
}

/* Of no consequence: how Keras itself goes about it, or what is true of all layers here. */
static bool passes(const char *key, const json_t *v) {
  static const char *const any[] = { "name",
                                     "trainable",
                                     "batch_input_shape",
                                     "batch_shape",
                                     "build_config",
                                     "implementation",
                                     "unroll",
                                     "input_length",
                                     "fused",
                                     "input_dtype",
                                     "zero_output_for_mask",
                                     "use_cudnn",
                                     "seed",
                                     "query_shape",
                                     "key_shape",
                                     "value_shape",
                                     "renorm_momentum" };
  for (size_t i = 0; i < sizeof any / sizeof any[0]; i++)
    if (strcmp(key, any[i]) == 0) return true;
  if (json_is_null(v) || json_is_false(v)) return true;
  if (strcmp(key, "dtype") == 0) return is_float32(v);
  if (json_is_string(v) && json_string_length(v) == 0) return true;
  if (strcmp(key, "data_format") == 0) return json_is_string(v) && strcmp(json_string_value(v), "channels_last") == 0;
  if ((json_is_array(v) && json_array_size(v) == 0) || (json_is_object(v) && json_object_size(v) == 0)) return true;
  if (strcmp(key, "groups") == 0 || strcmp(key, "dilation_rate") == 0) return json_is_integer(v) && json_integer_value(v) == 1;
  return false;
}

/* Depthwise layers inherit settings of a kernel that they do not have. */
static bool of_no_kernel(const yk_layer_class *class, const char *key) {
  return strncmp(key, "kernel_", 7) == 0 && field_of(class, 0, "depthwise_initializer") != NULL;
}

yk_code yk__config_read(yk_keras *k, int major, int depth, const yk_layer_class *class, const char *name, json_t *config, void *out) {
  yk_plain_config *common = out;
  const char *key;
  json_t *v;
  common->name = name;
  common->frozen = json_is_false(json_object_get(config, "trainable"));
  json_object_foreach(config, key, v) {
    const yk_config_field *f = field_of(class, major, key);
    reading r = { k, major, depth, name, key };
    if (f != NULL) YK_TRY(read_field(&r, f, v, (char *)out + f->offset));
    else if (!passes(key, v) && !of_no_kernel(class, key))
      return wrong(&r, v, "a setting that this layer has here");
  }
  return YK_OK;
}
