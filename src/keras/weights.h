/*
 * weights.h - the weights of a layer or network in Keras's order: those that train, layer by layer, then the others.
 *
 * A nested network counts as one layer whose weights are those of all layers inside.
 */
#ifndef YK_KERAS_WEIGHTS_H
#define YK_KERAS_WEIGHTS_H

#include "keras/keras.h"

typedef struct yk_weight_ref { yk_layer *layer; yk_weight *weight; yk_tensor *value; } yk_weight_ref;   /* value: the caller's business */
typedef struct yk_weights { yk_weight_ref *at; uint32_t n, cap; } yk_weights;

/* Adds those of l; frozen: a network around it is. at: yk__free(). */
yk_code yk__weights_of(yk_layer *l, bool frozen, yk_weights *out) YK_CHECKED;
/* Those that training changes, of the whole network: the order in which Keras's optimizers keep what they know of them. */
yk_code yk__trained_weights(const yk_network *n, yk_weights *out) YK_CHECKED;

#endif
