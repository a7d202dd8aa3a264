/*
 * keras.h - layers from the inside: classes, their configs as tables, weights, calls.
 *
 * A class is a constant: a name of Keras's, a table of its config's fields, a function that declares weights once the input
 * is known, and one that builds a call in any graph. There is no shape function: a call is first built in a sketch, a graph
 * that never runs, and what comes out there has the shape.
 */
#ifndef YK_KERAS_KERAS_H
#define YK_KERAS_KERAS_H

#include <yoke/layers.h>
#include <yoke/math.h>
#include <yoke/network.h>
#include <yoke/nn.h>
#include "base/alloc.h"
#include "base/str.h"
#include "model/strategy.h"

enum { YK__MAX_PORTS = 64 };       /* inputs or outputs of a call */

/* ---- configs ---------------------------------------------------------------------------------------------------------- */

typedef enum yk_field_kind {
  YK__F_INT,                       /* int64_t; 0 = `number` */
  YK__F_PAIR,                      /* int64_t[2]; each 0 = `number` */
  YK__F_FIRST,                     /* the same of which only [0] counts: Keras's has one number */
  YK__F_REAL,                      /* double; 0 = `number`, -0.0 = 0 */
  YK__F_TRUE,                      /* bool, false by default */
  YK__F_NOT,                       /* bool that says the opposite of Keras's key, so that false is the default of both */
  YK__F_WORD,                      /* const char *, one of `words`, "valid|same"; NULL = the first */
  YK__F_ACTIVATION,                /* const char *; NULL = the first of `words` */
  YK__F_INITIALIZER,               /* yk_initializer; default = the name in `words` */
  YK__F_PENALTY, YK__F_CONSTRAINT,
  YK__F_AXIS,                      /* int32_t; 0 = `number`, since axis 0 is the batch */
  YK__F_SHAPE,                     /* yk_shape of one example */
  YK__F_DIMS,                      /* yk_dims */
  YK__F_EDGES,                     /* int64_t[2][2]: before and after, of height and width */
  YK__F_SIDES,                     /* int64_t[2]: before and after */
  YK__F_LAYER,                     /* yk_layer *, which is inside of this one */
  YK__F_FIXED                      /* nothing of ours: Keras's value has to be that of `words`, in JSON, or null */
} yk_field_kind;
typedef struct yk_config_field {
  const char *key;                 /* Keras's; NULL ends the table */
  yk_field_kind kind;
  size_t offset;
  double number, lo, hi;           /* default; where lo < hi also the range */
  const char *words;
  int major;                       /* only the files of this Keras have it; 0: all; -1: none */
} yk_config_field;

/* ---- layers ----------------------------------------------------------------------------------------------------------- */

typedef struct yk_weight {
  const char *name;                /* "kernel" */
  yk_desc desc;
  yk_initializer initializer;
  yk_penalty penalty;
  yk_constraint constraint;
  bool not_trainable;              /* statistics */
  int64_t ones_from, ones_to;      /* of a vector: elements whose first value is 1, whatever the initializer */
  yk_tensor *value;                /* owned; NULL: its initializer has not made it yet, or the session has it */
  yk_variable *variable;           /* in the keras's session; NULL: not yet */
} yk_weight;

typedef struct yk_layer_call {     /* one call being built */
  yk_layer *layer;
  yk_graph *g;
  const char *where;               /* of the call in the user's program */
  bool training;
  uint32_t nin, nout;              /* nout: 1 unless the class sets it */
  const yk_value *in, *in_mask;    /* [nin]; a mask is bool [N, T], {0}: there is none */
  yk_value out[YK__MAX_PORTS], out_mask[YK__MAX_PORTS];
} yk_layer_call;
/* A builder in the call's graph, blamed on the user's line: Y(add, x, y). */
#define Y(builder, ...) yk_##builder##_at(c->where, c->g, __VA_ARGS__)

typedef struct yk_layer_class {
  const char *name;                /* "Conv2D" */
  size_t config_bytes;
  const yk_config_field *fields;
  uint32_t min_in, max_in;         /* inputs of a call */
  bool keeps_mask;                 /* output 0 has the mask of input 0, unless the class sets another one */
  void (*settle)(yk_layer *l);     /* completes and checks the config beyond its table; NULL: nothing to do */
  void (*build)(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in);    /* yk__weight_add(); NULL: no weights */
  void (*call)(yk_layer_call *c);
} yk_layer_class;

typedef struct yk_call_record {    /* one call that was made: a node of Keras's graph of layers */
  const char *where;
  uint32_t nin, nout;
  yk_sym *in;
  yk_value *out, *mask;            /* in the sketch */
} yk_call_record;

struct yk_layer {
  yk_keras *k;
  const yk_layer_class *class;
  const char *name, *where;
  char *scope;                     /* of its variables in any graph; unique in k */
  void *config;
  bool frozen, built;
  uint64_t counted;                /* number of the last count that it was part of */
  yk_weight *weight;    uint32_t nweight, weight_cap;
  yk_call_record *call; uint32_t ncall, call_cap;
  struct yk_network *network;      /* of a layer that is one */
  yk_layer *inner[2]; uint32_t ninner;             /* layers that it wraps, with weights of their own */
  int64_t batch;                   /* of a stateful layer: rows that it keeps states for */
  yk_layer *next;                  /* of k */
};

struct yk_keras {
  yk_graph *sketch;
  uint64_t seed, counts;
  int major;                       /* of the Keras that layers behave like, where versions differ: 3 once one of its files was read; else 2 */
  yk_bump mem;
  yk_map names, scopes;            /* how often a prefix was numbered; scopes in use */
  yk_layer *layers;                /* the newest first */
  yk_graph *graph;                 /* what runs: the steps of all networks, over the same variables; NULL until the first one */
  yk_session *session;
  yk_session_options options;
  yk_spread spread;                /* where variables live; of the first network that ran */
  uint32_t spread_devices;
  uint32_t steps;                  /* training steps built */
  uint32_t nready;                 /* variables of the graph that have their first values */
  uint32_t part, nparts;           /* of the step being built: which part of the batch; nparts 0: the whole */
  struct yk_carried *carried; uint32_t ncarried, carried_cap;      /* carried.h */
  struct yk_network *networks;
};

/* Collection: what activity regularizers give for the outputs of each call. */
#define YK__ACTIVITY_LOSSES "activity_losses"

/* Sticky failure in the layer's keras, with the layer's name in front. */
void yk__layer_fail(const yk_layer *l, const char *where, const char *fmt, ...) YK_PRINTF(3, 4);
/* In the order in which Keras's files have them. */
void yk__weight_add(yk_layer *l, const yk_weight *weight);
/* Its value in the graph of a call. */
yk_value yk__weight(const yk_layer_call *c, const char *name);
/* Build call in any graph: opens the layer's scopes around its class's function. */
void yk__layer_call(yk_layer_call *c);
/* NULL: the layer has none of that name. */
yk_weight *yk__weight_find(const yk_layer *l, const char *name);
/* Give the weight its first value, unless it has one. */
yk_code yk__weight_make(yk_layer *l, yk_weight *w) YK_CHECKED;
/* A layer of a class, its config checked; a copy of `config` (NULL: zeros) is kept. Init: in memory that lives as long as k, zeroed. */
bool      yk__layer_init(yk_layer *l, const char *where, yk_keras *k, const yk_layer_class *class, const void *config);
yk_layer *yk__layer_new(const char *where, yk_keras *k, const yk_layer_class *class, const void *config);

/* "dense_1": the next name of a class. NULL after a sticky error. */
const char *yk__auto_name(yk_keras *k, const char *class);
/* fields.c: defaults and checks of the layer's config; texts are copied. False after a sticky error. */
bool yk__config_settle(yk_layer *l);
/* Is `word` one of "valid|same"? */
bool yk__named_in(const char *words, const char *word);
/* activations.c */
bool     yk__activation_known(const char *name);
yk_value yk__activation(const char *where, yk_graph *g, const char *name, yk_value x);
/* initial.c: Keras's name of an initializer, "glorot_uniform"; a first value, the caller's. */
bool    yk__initializer_named(const char *name, yk_initializer *out);
yk_code yk__first_value(const yk_initializer *init, const yk_desc *desc, uint64_t seed, yk_tensor **out) YK_CHECKED;

/* ---- networks --------------------------------------------------------------------------------------------------------- */

typedef struct yk_predict { yk_value in[YK__MAX_PORTS], out[YK__MAX_PORTS], carry; yk_step *step; } yk_predict;
typedef struct yk_call_ref { yk_layer *layer; uint32_t node; } yk_call_ref;

struct yk_network {
  yk_layer self;                   /* what is called to use it inside another network */
  uint32_t nin, nout;
  int major;                       /* of the Keras whose files it was read from or is saved for, 2 or 3 */
  bool sequential;                 /* it was read as Keras's class Sequential; it is written as a functional one */
  yk_sym *in, *out;
  yk_call_ref *call; uint32_t ncall, call_cap;     /* in an order in which they can be built */
  yk_layer **layer;  uint32_t nlayer, layer_cap;   /* in Keras's order */
  const char *const *device; uint32_t ndevice;     /* where it runs */
  yk_strategy strategy;
  yk_predict *predict;             /* NULL until it first predicts */
  struct yk_compiled *compiled;    /* NULL: it is not */
  uint32_t compilations;
  struct yk_network *next;
};

/* Is call number `node` of the layer a part of the network? The first one that is; l->ncall: none. */
bool     yk__network_calls(const yk_network *n, const yk_layer *l, uint32_t node);
uint32_t yk__network_first_call(const yk_network *n, const yk_layer *l);
/* Build the network in a graph: in [nin] -> out [nout], with their masks (in_mask NULL: none; out_mask may be NULL). Sticky errors. */
void yk__network_build(yk_network *n, yk_graph *g, const char *where, bool training, const yk_value *in, const yk_value *in_mask, yk_value *out,
                       yk_value *out_mask);
/* summary.c: numbers in the weights of a layer, or of a network that is one; a shape as "(None, 8)" or "[None, 8]". NULL: no shape. */
int64_t yk__layer_parameters(const yk_layer *l);
void    yk__shape_put(yk_str *s, const yk_desc *d, const char brackets[2]);
/* engine.c: end the session; weights that it has go with it. */
void yk__keras_stop(yk_keras *k);

/* Entries of a config's table. */
#define YK__CHANNELS_LAST { .key = "data_format", .kind = YK__F_FIXED, .words = "\"channels_last\"" }
#define YK__AT(type, member) .offset = offsetof(type, member)

/* The public function that makes a layer of a class. */
#define YK__CONSTRUCTOR(id, type)                                                                    \
  yk_layer *yk_layer_##id##_at(const char *where, yk_keras *k, const type *config) {                  \
    return yk__layer_new(where, k, &yk__class_##id, config);                                          \
  }

/* ---- classes ---------------------------------------------------------------------------------------------------------- */

const yk_layer_class *yk__layer_class(const char *name);      /* NULL: unknown */
extern const yk_layer_class yk__class_input, yk__class_network;
extern const yk_layer_class yk__class_dense, yk__class_activation, yk__class_dropout, yk__class_flatten, yk__class_reshape,
    yk__class_permute, yk__class_repeat_vector;
extern const yk_layer_class yk__class_concatenate, yk__class_add, yk__class_subtract, yk__class_multiply, yk__class_average,
    yk__class_maximum, yk__class_minimum;
extern const yk_layer_class yk__class_conv2d, yk__class_conv2d_transpose, yk__class_depthwise_conv2d, yk__class_separable_conv2d, yk__class_conv1d;
extern const yk_layer_class yk__class_max_pooling2d, yk__class_average_pooling2d, yk__class_max_pooling1d, yk__class_average_pooling1d,
    yk__class_global_max_pooling2d, yk__class_global_average_pooling2d, yk__class_global_max_pooling1d, yk__class_global_average_pooling1d,
    yk__class_zero_padding2d, yk__class_cropping2d;
extern const yk_layer_class yk__class_batch_normalization, yk__class_layer_normalization, yk__class_embedding;
extern const yk_layer_class yk__class_lstm, yk__class_gru, yk__class_simple_rnn, yk__class_masking;
extern const yk_layer_class yk__class_relu, yk__class_leaky_relu, yk__class_prelu, yk__class_elu, yk__class_thresholded_relu, yk__class_softmax;
extern const yk_layer_class yk__class_upsampling1d, yk__class_upsampling2d, yk__class_spatial_dropout1d, yk__class_spatial_dropout2d,
    yk__class_zero_padding1d, yk__class_cropping1d, yk__class_dot;
extern const yk_layer_class yk__class_time_distributed, yk__class_bidirectional, yk__class_multi_head_attention;
extern const yk_layer_class yk__class_gaussian_noise, yk__class_gaussian_dropout, yk__class_alpha_dropout, yk__class_activity_regularization,
    yk__class_unit_normalization, yk__class_separable_conv1d;

#endif
