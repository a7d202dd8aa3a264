/*
 * floor_plain.h - what the floor does in plain C: the loss, response normalisation, the update.
 *
 * oneDNN has no kernel for the first and the last, and for a window of 9 often only a slow reference. The loops are
 * simple; the compiler vectorises them for this processor.
 */
#ifndef YK_BENCH_FLOOR_PLAIN_H
#define YK_BENCH_FLOOR_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include "floor_dnnl.h"

enum { FLOOR_LRN_CHANNELS = 64, FLOOR_LRN_WINDOW = 9 };

/* Pictures of 64 channels in blocks: element (n, c, p) at ((n*64/block + c/block)*cells + p)*block + c%block. */
typedef struct floor_pictures { int64_t n, cells, block; } floor_pictures;

void floor_lrn_forward(const floor_pictures *s, const floor_lrn *a, const float *x, float *y);
void floor_lrn_backward(const floor_pictures *s, const floor_lrn *a, const float *x, const float *dy, float *dx);

/* Mean cross-entropy of softmax(logits [rows, classes]), labels i % classes; its gradient into d. Returns the loss. */
float floor_loss(int64_t rows, int64_t classes, const float *logits, float *d);

typedef struct floor_param { float *w, *g, *a; size_t n; } floor_param;
/* a = momentum*a + g + decay*w; w -= rate*a. Without momentum `a` is not touched. */
void floor_update(size_t n, const floor_param *p, float rate, float momentum, float decay);

#endif
