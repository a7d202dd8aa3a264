/*
 * compile_json.h - how a network is trained, in Keras's files: losses, metrics, optimizer, and what the optimizer knows.
 */
#ifndef YK_KERAS_COMPILE_JSON_H
#define YK_KERAS_COMPILE_JSON_H

#include "keras/compile.h"

/* The training config as JSON text, the caller's; NULL: the network is not compiled, or with functions of one's own, which no file has. */
yk_code yk__compile_write(const yk_network *n, char **out) YK_CHECKED;
/* Compile the network as the text says. EUNSUPPORTED, ECORRUPT: it stays as it was. */
yk_code yk__compile_read(yk_network *n, const char *what, const char *text) YK_CHECKED;

#endif
