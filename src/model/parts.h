/*
 * parts.h - what the built-in networks are put together from.
 *
 * Each part opens a variable scope of its name, so its variables are
 * "<name>/weights" and "<name>/biases", and building it again with reuse
 * borrows them.
 */
#ifndef YK_MODEL_PARTS_H
#define YK_MODEL_PARTS_H

#include <yoke/math.h>
#include <yoke/model.h>
#include <yoke/nn.h>

typedef struct yk_part {
  yk_init weights, biases;
  double decay;                /* adds decay * l2_loss(weights) to YK_LOSSES */
  bool no_bias;
} yk_part;

/* x [N,H,W,C] -> [N,H',W',filters], square window, SAME padding. */
yk_value yk__conv(yk_graph *g, const char *name, yk_value x, int64_t filters, int64_t window, int32_t stride, const yk_part *part);
/* x [N,C] -> [N,units]. */
yk_value yk__dense(yk_graph *g, const char *name, yk_value x, int64_t units, const yk_part *part);
/* Batch normalisation in its own scope. */
yk_value yk__norm(yk_graph *g, const char *name, yk_value x, bool training);

extern const yk_model yk__model_cifar10, yk__model_resnet20, yk__model_mlp;

#endif
