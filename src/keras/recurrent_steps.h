/*
 * recurrent_steps.h - a recurrent layer written out step by step, for what the operations over whole sequences do not do.
 *
 * That is dropout of the states on their way to the gates, in training: each gate has a mask of its own, the same one in all
 * steps.
 */
#ifndef YK_KERAS_RECURRENT_STEPS_H
#define YK_KERAS_RECURRENT_STEPS_H

#include "keras/keras.h"

/* Of an LSTM (4 gates), a GRU (3) or a plain layer (1): what its operation takes, {0} where there is none. */
typedef struct yk_steps {
  uint32_t gates;
  yk_value x, kernel, recurrent, bias, inner_bias, h, c, mask;   /* [N, T, C] with T known; inner_bias: of a GRU's products with h */
} yk_steps;
/* out[0] y [N, T, U] if return_sequences, out[1] h, out[2] c of an LSTM; the layer's config says the rest. Sticky errors. */
void yk__recurrent_steps(yk_layer_call *c, const yk_steps *s, yk_value out[3]);

#endif
