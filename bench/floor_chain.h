/*
 * floor_chain.h - a training step as one flat list of primitives, built layer by layer.
 *
 * Layers append their forward operations when they are made and their backward ones in floor_chain_finish(), last layer
 * first. Each primitive chooses its layouts; where two neighbours disagree a reorder stands between them, marked, so that a
 * run can leave all of them out. Whatever fails ends the program: there is nothing to measure then.
 */
#ifndef YK_BENCH_FLOOR_CHAIN_H
#define YK_BENCH_FLOOR_CHAIN_H

#include "floor_plain.h"

typedef struct floor_chain floor_chain;
typedef struct floor_value floor_value;      /* what a layer gives; owned by the chain */

floor_chain *floor_chain_new(float rate, float momentum, float decay);
void floor_chain_free(floor_chain *c);

/* Pictures [n, channels, side, side], or rows [n, channels] if side is 0; plain order. */
floor_value *floor_input(floor_chain *c, int64_t n, int64_t channels, int64_t side);

typedef struct floor_conv { int64_t filters, window, stride; bool bias, relu, first; } floor_conv;   /* first: no gradient of its input */
floor_value *floor_add_conv(floor_chain *c, floor_value *x, const floor_conv *a);
floor_value *floor_add_norm(floor_chain *c, floor_value *x, bool relu);
/* relu(x + side), in the memory of x. */
floor_value *floor_add_join(floor_chain *c, floor_value *x, floor_value *side);
/* Maximum over windows of 3 by steps of 2, padded as TensorFlow's SAME; mean over whole pictures. */
floor_value *floor_add_max_pool(floor_chain *c, floor_value *x);
floor_value *floor_add_mean_pool(floor_chain *c, floor_value *x);
floor_value *floor_add_lrn(floor_chain *c, floor_value *x, const floor_lrn *a);
floor_value *floor_add_dense(floor_chain *c, floor_value *x, int64_t units, bool relu, bool first);
/* The loss; the last layer. */
void floor_add_loss(floor_chain *c, floor_value *logits);

/* Append what goes backward and the update. Then the chain can run. */
void floor_chain_finish(floor_chain *c);
/* One step. Without reorders, what they would have written stays as it was: run once with them first. */
void floor_chain_run(floor_chain *c, bool reorders);

/* Loss of the last step; operations that are not reorders; reorders; "plain" or oneDNN's name of the response normalisation used. */
double floor_chain_loss(const floor_chain *c);
int floor_chain_operations(const floor_chain *c);
int floor_chain_reorders(const floor_chain *c);
const char *floor_chain_lrn(const floor_chain *c);

#endif
