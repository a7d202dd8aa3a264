/*
 * json.h - Keras's JSON: configs of layers and of networks, both of Keras 2 and of Keras 3.
 *
 * Only this part of the library knows jansson. What is wrong in a file is ECORRUPT, with the layer, the key and what was expected.
 */
#ifndef YK_KERAS_JSON_H
#define YK_KERAS_JSON_H

#include <jansson.h>
#include "keras/keras.h"

/* "Conv2DTranspose" -> "conv2d_transpose", as Keras turns a class's name into a layer's. */
void yk__snake_case(const char *class_name, char *out, size_t n);
/* The fields of `class` out of its JSON, into its config struct, zeroed; texts live as long as k. major: Keras's version; depth: of
 * networks and wrappers around it. */
yk_code yk__config_read(yk_keras *k, int major, int depth, const yk_layer_class *class, const char *name, json_t *config, void *out) YK_CHECKED;
/* A layer from its JSON, of one that wraps it. */
yk_code yk__layer_read(yk_keras *k, int major, int depth, const json_t *o, yk_layer **out) YK_CHECKED;
/* A network from the text of a model config, of n bytes. `what` names the file in messages; major: Keras's version, 2 or 3. */
yk_code yk__network_read(yk_keras *k, const char *what, const char *text, size_t n, int major, yk_network **out) YK_CHECKED;

/* The other way: the JSON object of a layer's config for Keras 2 or 3 (NULL: no memory, or an activation that this
 * Keras does not have); the text of a network's model config, the caller's to free. */
json_t *yk__config_write(const yk_layer *l, int major);
/* Class and config, of a layer that another one wraps. */
json_t *yk__layer_write(const yk_layer *l, int major);
yk_code yk__network_write(const yk_network *n, char **out) YK_CHECKED;
/* The same for an archive, with a training config (compile_json.h) or NULL. */
yk_code yk__network_write_archive(const yk_network *n, const char *training, char **out) YK_CHECKED;

#endif
