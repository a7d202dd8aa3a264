/*
 * penalties.h - what layers' configs ask of weights and outputs in training: penalties in the loss, constraints after the update.
 */
#ifndef YK_KERAS_PENALTIES_H
#define YK_KERAS_PENALTIES_H

#include "keras/keras.h"

/* What part number `part`, which was just built, adds to the loss: penalties of outputs, of which `rows` (f32, of the whole batch) is the
 * number of examples; and in part 0 those of weights. {0}: nothing. */
yk_value yk__penalties(const yk_network *n, yk_graph *g, const char *where, uint32_t part, yk_value rows);
/* Brings weights back to what their constraints allow, after the op `update`. {0}: there are none. */
yk_value yk__constrain(const yk_network *n, yk_graph *g, const char *where, yk_value update);

#endif
