/*
 * applications.h - networks that are built in, made of Keras's layers: run, trained and saved like any other network (network.h, fit.h).
 *
 * Each function makes layers in k and cuts the network out of them; both belong to k. NULL after a sticky error, which names the layer:
 * EINVAL, a number out of its range or a shape that does not fit. `name` may be NULL. A number that is left at 0 has its default. One thread at
 * a time for each yk_keras.
 */
#ifndef YK_APPLICATIONS_H
#define YK_APPLICATIONS_H

#include "network.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * keras.applications.ResNet50 with its names of layers, so that weights saved by one are loaded by the other: pictures [N, H, W, C] -> [N, classes],
 * or with no_top the last features [N, H/32, W/32, 2048], or their pool [N, 2048]. 25636712 numbers with 1000 classes.
 */
typedef struct yk_resnet50_config {
  const char *name;                /* "resnet50" */
  yk_shape input_shape;            /* [224, 224, 3]; sides of at least 32, with no_top also -1 */
  int64_t classes;                 /* 1000 */
  const char *classifier_activation;       /* "softmax" */
  bool no_top;                     /* without pool and classes */
  const char *pooling;             /* then: "avg", "max", or NULL: none */
} yk_resnet50_config;
yk_network *yk_resnet50_at(const char *where, yk_keras *k, const yk_resnet50_config *config);
#define yk_resnet50(...) yk_resnet50_at(YK_HERE, __VA_ARGS__)

/* Sequences [N, T, C] -> [N, classes]: LSTMs one over the other, the last one's last output, a Dense softmax. With `words` the input is numbers of
 * words [N, T] from 0, which is padding, to words - 1, and an Embedding comes first. */
typedef struct yk_lstm_network_config {
  const char *name;                /* "lstm" */
  yk_shape input_shape;            /* [T, C], or with words [T]; T may be -1 */
  int64_t classes;
  int64_t units, layers;           /* 64, 1 */
  int64_t words;                   /* 0: none */
  double dropout;                  /* of what each LSTM gives; 0: none */
} yk_lstm_network_config;
yk_network *yk_lstm_network_at(const char *where, yk_keras *k, const yk_lstm_network_config *config);
#define yk_lstm_network(...) yk_lstm_network_at(YK_HERE, __VA_ARGS__)

/*
 * The encoder of a transformer: sequences [N, T, C], or with `words` [N, T] as above (without padding), -> [N, classes]. A convolution over three
 * steps makes vectors of `units`, and tells them their neighbours; each layer adds attention of `heads` to them, and two Dense layers with a gelu
 * between, each after a LayerNormalization; the mean over the steps goes to a Dense softmax.
 */
typedef struct yk_transformer_config {
  const char *name;                /* "transformer" */
  yk_shape input_shape;            /* [T, C], or with words [T]; T is known */
  int64_t classes;
  int64_t units, heads, layers;    /* 64, 4, 2; units is a multiple of heads */
  int64_t feed_forward;            /* width between the two Dense layers; 4 * units */
  int64_t words;                   /* 0: none */
  double dropout;                  /* of what is added; 0.1, YK_EXACTLY_ZERO: none */
} yk_transformer_config;
yk_network *yk_transformer_at(const char *where, yk_keras *k, const yk_transformer_config *config);
#define yk_transformer(...) yk_transformer_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
