/*
 * loop_conv.h - what preparing and running share in the convolutions.
 *
 * The window's `c` is the number of channels of the picture side, `o` of the other side; filters are [kh, kw, c/groups, o].
 */
#ifndef YK_CPU_LOOP_CONV_H
#define YK_CPU_LOOP_CONV_H

#include "loop_pool.h"

enum { CONV_FORWARD, CONV_GRAD_INPUT, CONV_GRAD_FILTER };

typedef struct yk_conv_state {
  yk_loop_body body;
  yk_window g;
  int64_t o, groups;
  yk_elem_fn add, act;                   /* of the fused form; act NULL = none */
  double p[2];
  uint32_t a, b, out, bias;              /* argument numbers: the two factors, the result, a bias or bias gradient (0 = none) */
} yk_conv_state;

/* An op seen as the convolution x * w -> y. plain: its name in plain loops. a, b: factors, out: result, bias: bias or its gradient
 * (0 = none); picture, filter, other: the arguments whose shapes are those of x, w and y. All are argument numbers of the launch. */
typedef struct yk_conv_kind {
  const char *op, *plain;
  int kind;
  uint32_t a, b, out, bias, picture, filter, other;
} yk_conv_kind;
const yk_conv_kind *yk__conv_kind(const char *op);       /* NULL if `op` is no convolution */

/* Description of argument n of the launch. */
static inline yk_desc *yk__conv_arg(yk_kernel *k, uint32_t n) { return n < k->nin ? &k->in[n] : &k->out[n - k->nin]; }

/* Geometry of kernel k, an op of this kind. */
void yk__conv_window(yk_kernel *k, const yk_conv_kind *kind, yk_window *window, int64_t *groups);

/* The function of a fused activation, NULL for none, and its parameter into p[0]. */
yk_elem_fn yk__loop_act(int32_t act, double alpha, int f64, double *p);

#endif
