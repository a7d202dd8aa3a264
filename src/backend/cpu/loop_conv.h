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

/* The function of a fused activation, NULL for none, and its parameter into p[0]. */
yk_elem_fn yk__loop_act(int32_t act, double alpha, int f64, double *p);

#endif
