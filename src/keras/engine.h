/*
 * engine.h - what runs: one graph and one session for all networks of a yk_keras, and a network's parts on its devices.
 *
 * A step over several devices builds the network once for each of them, on its share of the batch's rows. Where variables live is one
 * answer for all networks of a yk_keras, since they may share layers: that of the first one that runs.
 */
#ifndef YK_KERAS_ENGINE_H
#define YK_KERAS_ENGINE_H

#include "keras/keras.h"

#define YK__HOME "/cpu:0"

/* The graph is there and can be added to; variables of networks go where `n` wants them, unless an earlier one has said so. n NULL:
 * no network asks, they go home. */
yk_code yk__keras_start(yk_keras *k, const yk_network *n) YK_CHECKED;
/* The session is there; variables that are new in the graph have their first values, those of layers the layers' ones. */
yk_code yk__keras_ready(yk_keras *k) YK_CHECKED;
/* A value that the weight takes over, also if it does not fit: EINVAL. */
yk_code yk__weight_take(yk_layer *l, yk_weight *w, yk_tensor *value) YK_CHECKED;
/* The variable of a weight in the graph; NULL: nothing that was built uses it. */
yk_variable *yk__weight_variable(const yk_layer *l, const yk_weight *w);

/* Around the building of part i of the network: its device, its name scope, variables lent to it. */
void yk__part_open(const yk_network *n, uint32_t i);
void yk__part_close(const yk_network *n);
/* The rows of x that are part i's; x itself if there is one part. Inside of the part. */
yk_value yk__part_rows(const yk_network *n, uint32_t i, yk_value x);
/* What a run must be fed for input i of the network. */
yk_value yk__input_placeholder(const yk_network *n, uint32_t i);

/* Does t fit input i, with `rows` rows? EINVAL tells what the input needs. */
yk_code yk__check_input(const yk_network *n, uint32_t i, const yk_tensor *t, int64_t rows) YK_CHECKED;

#endif
