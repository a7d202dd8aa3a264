/*
 * layout3.h - weight files of Keras 3, and of Keras 2 from 2.14 on: where each weight of a network is, "layers/lstm_1/cell/vars/0".
 *
 * Groups are called after classes and counted from one network to the next, whatever the layers' names are; weights have numbers.
 */
#ifndef YK_KERAS_LAYOUT3_H
#define YK_KERAS_LAYOUT3_H

#include "keras/h5.h"
#include "keras/weights.h"

/* For each weight of the network, in order. f: the file, where there is one already, or NULL. */
typedef yk_code (*yk_layout3_fn)(void *arg, const char *path, yk_layer *l, yk_weight *w);
yk_code yk__layout3_walk(const yk_network *n, const yk_h5 *f, yk_layout3_fn each, void *arg) YK_CHECKED;
/* *out: is the file laid out so? */
yk_code yk__layout3_is(const yk_h5 *f, bool *out) YK_CHECKED;
/* All weights of the network out of such a file; nothing changes unless all fit. */
yk_code yk__layout3_load(const yk_h5 *f, yk_network *n) YK_CHECKED;
yk_code yk__layout3_save(yk_h5_out *f, yk_network *n) YK_CHECKED;

#endif
