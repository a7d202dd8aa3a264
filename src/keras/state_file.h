/*
 * state_file.h - what an optimizer knows, in an .h5 file of Keras: the group optimizer_weights.
 *
 * Keras 2's optimizers have a slot of all weights, then the next slot; its newer ones and Keras 3's have all slots of a weight, then the next weight,
 * but for RMSprop's.
 */
#ifndef YK_KERAS_STATE_FILE_H
#define YK_KERAS_STATE_FILE_H

#include "keras/h5.h"
#include "keras/keras.h"

/* Of a compiled network, if there is anything to know yet. */
yk_code yk__state_save(yk_h5_out *f, yk_network *n) YK_CHECKED;
/* Of a network that was just compiled. ECORRUPT: counts or shapes do not fit; the optimizer then knows nothing. */
yk_code yk__state_load(const yk_h5 *f, const char *what, yk_network *n) YK_CHECKED;

/* The same in weight files and archives of Keras 3, and of Keras 2 from 2.14 on, which are only read: the group optimizer/vars. */
yk_code yk__state_save3(yk_h5_out *f, yk_network *n) YK_CHECKED;
yk_code yk__state_load3(const yk_h5 *f, const char *what, yk_network *n) YK_CHECKED;

#endif
