/*
 * cudnn_weights.h - weights of CuDNNLSTM and CuDNNGRU in Keras's files, turned into those of LSTM and GRU.
 *
 * A bias tells them: it has two halves, of the input's and of the recurrent product, in one row.
 */
#ifndef YK_KERAS_CUDNN_WEIGHTS_H
#define YK_KERAS_CUDNN_WEIGHTS_H

#include "keras/weights.h"

/* The class that computes the same, "LSTM" for "CuDNNLSTM"; else the name itself. */
const char *yk__cudnn_plain_class(const char *class_name);
/* Is a bias of that shape what such a layer would have instead of this weight? */
bool yk__cudnn_has_bias(const yk_weight_ref *m, const yk_desc *bias);
/* Values as they were read, of a group of n weights, to those of our layers. */
yk_code yk__cudnn_convert(yk_weight_ref *m, uint32_t n) YK_CHECKED;

#endif
