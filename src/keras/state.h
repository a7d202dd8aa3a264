/*
 * state.h - what an optimizer knows: how many updates it made, and its slots, by weight and number.
 *
 * Its variables come into being with the training step; values that a file had before that are kept until then.
 */
#ifndef YK_KERAS_STATE_H
#define YK_KERAS_STATE_H

#include "keras/compile.h"
#include "keras/weights.h"

typedef struct yk_kept_state { yk_layer *layer; const yk_weight *weight; int slot; yk_tensor *value; } yk_kept_state;

/* Slots a weight that Keras's optimizer of this kind has; 0 to 3. */
int yk__state_slots(const yk_optimizer *o);
/* Updates so far. */
yk_code yk__state_iterations(const yk_network *n, int64_t *out) YK_CHECKED;
/* Slot `slot` of a weight: a copy, the caller's; NULL if the optimizer has none yet. */
yk_code yk__state_get(const yk_network *n, yk_layer *l, const yk_weight *w, int slot, yk_tensor **out) YK_CHECKED;
/* Before the training step is built. `value` is taken over. */
yk_code yk__state_put(yk_network *n, yk_layer *l, const yk_weight *w, int slot, yk_tensor *value) YK_CHECKED;
/* What was put goes into the variables, now that they are there. */
yk_code yk__state_settle(yk_network *n) YK_CHECKED;
void    yk__state_free(yk_compiled *c);

#endif
