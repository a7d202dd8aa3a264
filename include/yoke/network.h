/*
 * network.h - functional models: what lies between some symbols and others, as one thing that is run, called, counted.
 *
 * A network is cut out of the calls made so far (layers.h). It has weights, since its layers do, and can be called like a layer inside
 * a larger network, which then shares them. It belongs to its yk_keras.
 */
#ifndef YK_NETWORK_H
#define YK_NETWORK_H

#include "layers.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yk_network yk_network;

/* From `in`, symbols of yk_input(), to `out`. name NULL: "model_1". NULL after a sticky error: EINVAL (an output that does not
 * depend on inputs alone: the layer in between is named; two layers of one name; no inputs or outputs). */
yk_network *yk_network_new_at(const char *where, yk_keras *k, const char *name, size_t nin, const yk_sym *in, size_t nout, const yk_sym *out);
#define yk_network_new(...) yk_network_new_at(YK_HERE, __VA_ARGS__)
/* To call it like a layer. */
yk_layer *yk_network_layer(yk_network *n);

/* Its layers in Keras's order: those farthest from the outputs first. NULL past the end. */
yk_layer *yk_network_layer_at(const yk_network *n, size_t i);
/* The symbols that it lies between, from which other networks can be cut: Keras's model.inputs, model.outputs. Borrowed; *count, which may be
 * NULL: how many. */
const yk_sym *yk_network_inputs(const yk_network *n, size_t *count);
const yk_sym *yk_network_outputs(const yk_network *n, size_t *count);
/* Numbers in all weights, and in those that training changes (either may be NULL). Weights that layers share count once. */
void yk_network_parameters(const yk_network *n, int64_t *all, int64_t *trainable);
/* A table: each layer with its class, output shape, parameters and where its inputs come from; sums below. *out: yk_free(). */
yk_code yk_network_summary(const yk_network *n, char **out) YK_CHECKED;

/* A picture of it, as Keras's plot_model draws it: boxes with name, class, parameters and shapes of each layer, arrows from top to bottom. */
typedef struct yk_plot_options {
  uint32_t size;                   /* YK_PLOT_OPTIONS_INIT sets it */
  bool expand_nested;              /* networks inside are frames around their layers; else one box each */
  bool show_dtype;                 /* beside each shape */
} yk_plot_options;
#define YK_PLOT_OPTIONS_INIT { .size = sizeof(yk_plot_options) }
/* An SVG file, which browsers show; an older one is replaced when the new one is whole. options NULL: defaults. EIO names file and reason. */
yk_code yk_network_plot(const yk_network *n, const char *path, const yk_plot_options *options) YK_CHECKED;

/*
 * Weights, by layer and name ("kernel"), in plain layout. Get: a copy, the caller's. Set: dtype and shape must fit; while the network has a
 * session, the value goes there too. ENOTFOUND names what there is.
 */
yk_code yk_layer_weight(yk_layer *l, const char *name, yk_tensor **out) YK_CHECKED;
yk_code yk_layer_set_weight(yk_layer *l, const char *name, const yk_tensor *value) YK_CHECKED;

/* Where a network runs, to be told before its first run. The session is one for all networks of a yk_keras: its options come with the first. */
typedef struct yk_network_options {
  uint32_t size;                   /* YK_NETWORK_OPTIONS_INIT sets it */
  size_t ndevices;                 /* 0 = /cpu:0; each batch is split over them, the first ones take the remainder */
  const char *const *devices;      /* "/gpu:0", ... */
  const yk_session_options *session;   /* NULL = defaults */
  yk_strategy strategy;            /* where variables live; that of the first network of a yk_keras that runs holds for all */
} yk_network_options;
#define YK_NETWORK_OPTIONS_INIT { .size = sizeof(yk_network_options) }
yk_code yk_network_place(yk_network *n, const yk_network_options *options) YK_CHECKED;

/*
 * Outputs for `rows` examples, batch_size (0 = 32) at a time, the last batch smaller. in: [inputs] tensors [rows, ...]; out: [outputs] new
 * tensors, the caller's. EINVAL: a tensor that does not fit, with the input's name, what it needs and what it got.
 */
yk_code yk_network_predict(yk_network *n, const yk_tensor *const *in, int64_t batch_size, yk_tensor **out) YK_CHECKED;

/* Stateful layers of all networks of its yk_keras begin anew, with zeros. */
yk_code yk_network_reset_states(yk_network *n) YK_CHECKED;

/*
 * Steps of one's own: the graph in which all networks of k run, and the session. In the graph, which one may add to at any time, a network is
 * built like any part of it, from values [N, ...] to values, on the current device; its variables are shared with all that runs in k, and live
 * where the first network that runs wants them, else on /cpu:0. yk_keras_session() opens the session when it is first called, and
 * gives variables that are new since the last time their first values, so call it after building, and do not run
 * yk_global_variables_initializer(), which would make layers' weights zero. Both are borrowed. training: with dropout, and statistics of the
 * batch, whose updates yk_update_ops() runs.
 */
yk_code yk_keras_graph(yk_keras *k, yk_graph **out) YK_CHECKED;
yk_code yk_keras_session(yk_keras *k, yk_session **out) YK_CHECKED;
/* in [inputs] -> out [outputs], {0} after a sticky error of the graph. NULL arguments, or no graph yet: nothing happens. */
void yk_network_build_at(const char *where, yk_network *n, bool training, const yk_value *in, yk_value *out);
#define yk_network_build(...) yk_network_build_at(YK_HERE, __VA_ARGS__)
/* The variables of the network that training changes, as far as they are in the graph, in the order of layers; at most `max`. Returns how many. */
size_t yk_network_variables(const yk_network *n, yk_variable **out, size_t max);

/*
 * A model that Keras saved as .h5 (Keras 2, tf-keras 2, or Keras 3's legacy form) or as a .keras archive (Keras 3; Keras 2 and
 * tf-keras from 2.14 on), with its weights. *out belongs to k. ENOTFOUND, EIO; ECORRUPT tells file, layer, key or group, and what
 * was expected; EUNSUPPORTED names a class or setting that is not known here, or the version that wrote an archive. After a failure
 * k may hold layers that were made before it, so give each file a yk_keras of its own.
 */
yk_code yk_network_load(yk_keras *k, const char *path, yk_network **out) YK_CHECKED;
/* Weights alone, of a weights file or a whole model, into a network of the same layers: matched by order. Nothing changes unless all fit. */
yk_code yk_network_load_weights(yk_network *n, const char *path) YK_CHECKED;

/* Weights by name: groups of the file that are called like a layer of the network go into it, other layers stay as they are. What does not fit is
 * ECORRUPT, as above, or with skip_mismatch passed over. *loaded: how many layers got theirs; may be NULL. */
yk_code yk_network_load_weights_by_name(yk_network *n, const char *path, bool skip_mismatch, size_t *loaded) YK_CHECKED;

/*
 * The other way: a whole model, as an archive if the name ends with ".keras", else as .h5; or weights alone. An older file is
 * replaced when the new one is whole, and only then. EIO names file and reason. Archives are for Keras 3, other files for the Keras
 * that the network was read from, else Keras 2, unless set otherwise; Keras 3 reads most of those of Keras 2 too: docs/keras.md says which not.
 * EUNSUPPORTED: an activation that this Keras does not have.
 */
yk_code yk_network_set_keras(yk_network *n, int major) YK_CHECKED;
yk_code yk_network_save(yk_network *n, const char *path) YK_CHECKED;
yk_code yk_network_save_weights(yk_network *n, const char *path) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
