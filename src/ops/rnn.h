/*
 * rnn.h - what the recurrent operations share: attributes, shape rules, the formulae of their activations.
 *
 * An operation goes over a whole sequence. The product of the input with its kernel is not part of it: the builder makes one
 * matmul of all steps, which is as fast as products get, is differentiated as usual, and may be computed in a narrow type.
 */
#ifndef YK_OPS_RNN_H
#define YK_OPS_RNN_H

#include "ops/common.h"

extern const yk_attr yk__rnn_attrs[], yk__gru_attrs[], yk__simple_rnn_attrs[];

/* Attribute sets that the cases of all of them use. */
extern const yk_rnn_attrs yk__rnn_back, yk__rnn_hard, yk__rnn_relu, yk__rnn_zero;

/* Dims of a sequence as far as they are known: -1 where not. */
typedef struct yk_rnn { int64_t n, t, u; } yk_rnn;

/* Input i, if it is there, must have rank `rank` and dims like "NTU" with the last one times `times`; what it knows is added to *r. */
yk_code yk__rnn_meet(const yk_infer *c, uint16_t i, const char *name, const char *dims, int times, yk_rnn *r) YK_CHECKED;
/* [N, T, times*U], or [N, U] if times is 0, in the dtype of input 0. */
yk_desc yk__rnn_desc(const yk_infer *c, const yk_rnn *r, int times);

/* Value of optional input i of a reference, NULL if absent. */
static inline const double *yk__rnn_input(const yk_ref *c, uint16_t i) { return i < c->nin ? c->in[i] : NULL; }
/* Optional input i of a node, {0} if absent. */
static inline yk_value yk__rnn_value(const yk_grad *c, uint16_t i) { return i < c->nin ? c->in[i] : (yk_value){ 0 }; }

double yk__rnn_act(const yk_rnn_attrs *a, double x);
double yk__rnn_gate(const yk_rnn_attrs *a, double x);
/* Derivatives, from the results. */
double yk__rnn_act_slope(const yk_rnn_attrs *a, double y);
double yk__rnn_gate_slope(const yk_rnn_attrs *a, double y);

/* sum over k of h[k] * r[k][column], and of r[row][k] * d[k] over `columns`. */
double yk__rnn_forward(const double *h, const double *r, int64_t units, int64_t columns, int64_t column);
double yk__rnn_backward(const double *d, const double *r, int64_t columns, int64_t from, int64_t to, int64_t row);

/* Step number s of the order in which they are taken. */
static inline int64_t yk__rnn_step(const yk_rnn_attrs *a, int64_t steps, int64_t s) { return a->go_backwards ? steps - 1 - s : s; }

/* First step of sequence i that is not masked, in the order taken; T if all are. */
int64_t yk__rnn_first(const yk_rnn_attrs *a, const double *mask, int64_t i, int64_t steps);

/* left [N,T,P], right [N,T,Q] -> the sum over all steps of left'*right, [P,Q]. */
yk_value yk__rnn_outer(yk_grad *c, yk_value left, yk_value right);
/* x [N,T,C] * kernel [C,g*U] + bias [g*U] (or {0}) -> [N,T,g*U]. */
yk_value yk__rnn_project(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value bias);

#endif
