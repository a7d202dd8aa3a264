/*
 * carried.h - states that go on from one run to the next: of recurrent layers that are stateful.
 *
 * Each is a variable [batch, units]; a part of the batch reads its rows, and what they become is assigned when all parts are built.
 */
#ifndef YK_KERAS_CARRIED_H
#define YK_KERAS_CARRIED_H

#include "keras/keras.h"

typedef struct yk_carried { yk_variable *variable; yk_value value; } yk_carried;

/* The rows of state `name` [batch, units] that the part being built begins with. {0} after a sticky error. */
yk_value yk__state_read(const yk_layer_call *c, const char *name, int64_t batch, int64_t units);
/* What they become. */
void     yk__state_write(const yk_layer_call *c, const char *name, yk_value value);
/* One op that carries on what all parts wrote since the last time; {0}: nothing. */
yk_value yk__carry_on(yk_keras *k, const char *where);

#endif
