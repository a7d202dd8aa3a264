/*
 * load.h - what the readers of Keras's files share: a weight out of a file, and all of them into their layers.
 */
#ifndef YK_KERAS_LOAD_H
#define YK_KERAS_LOAD_H

#include "keras/h5.h"
#include "keras/weights.h"

/* The data set at `path` into m->value, the caller's, also after a failure. ECORRUPT: it is not there, or does not fit the weight. */
yk_code yk__weight_read(const yk_h5 *f, const char *what, const char *path, yk_weight_ref *m) YK_CHECKED;
/* All values into their layers, which they then belong to. */
yk_code yk__weights_put(yk_weights *m) YK_CHECKED;
/* How the network is trained, as the text of a file says; and what the optimizer knows, by `state`. What cannot be taken over is told, and does
 * not keep the network from being used. text NULL: nothing is said. */
yk_code yk__training_load(const yk_h5 *f, const char *what, const char *text, yk_network *n,
                          yk_code (*state)(const yk_h5 *f, const char *what, yk_network *n)) YK_CHECKED;

/* archive.c: .keras archives, of Keras 2 (to be read) and 3. */
bool    yk__archive_is(const char *path);
yk_code yk__archive_load(yk_keras *k, const char *path, yk_network **out) YK_CHECKED;
yk_code yk__archive_load_weights(yk_network *n, const char *path) YK_CHECKED;
yk_code yk__archive_save(yk_network *n, const char *path) YK_CHECKED;

#endif
