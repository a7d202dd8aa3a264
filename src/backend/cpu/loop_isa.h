/*
 * loop_isa.h - the tables of vector code other than the element-wise one.
 *
 * One table a subject, filled in by a *_isa.c file for each instruction set and handed out for this machine by loop_choose.c.
 */
#ifndef YK_CPU_LOOP_ISA_H
#define YK_CPU_LOOP_ISA_H

#include "loop.h"
#include "winograd.h"

/* Reductions keep double for floating point and int64_t for integers, so that long sums lose nothing. */
typedef enum yk_fold { FOLD_SUM, FOLD_SQUARES, FOLD_PROD, FOLD_MIN, FOLD_MAX, FOLD_COUNT } yk_fold;
typedef union yk_accum { double f; int64_t i; } yk_accum;

typedef struct yk_reduce_table {
  /* Fold n elements into acc[0]; fold rows of n elements, `stride` apart, into acc[0..n). */
  void (*run[FOLD_COUNT][L_NTYPES])(int64_t n, const void *x, yk_accum *acc);
  void (*rows[FOLD_COUNT][L_NTYPES])(int64_t rows, int64_t stride, int64_t n, const void *x, yk_accum *acc);
} yk_reduce_table;
const yk_reduce_table *yk__loop_reduce(void);

/* Formulae of optimizers and moving averages; U_ftrl has the usual power of 1/2, U_ftrl_power any other. */
typedef enum yk_update_id {
  U_sgd, U_momentum, U_nesterov, U_keras_momentum, U_keras_nesterov, U_ema, U_adam, U_adam_nesterov, U_rmsprop, U_keras_rmsprop,
  U_centered, U_adagrad, U_keras_adagrad, U_adadelta, U_ftrl, U_ftrl_power, U_lamb, U_COUNT
} yk_update_id;
enum { U_OPERANDS = 5, U_NUMBERS = 8 };                 /* most tensors of one variable; room for a formula's numbers */

/* n elements of the tensors t, which never overlap, in place; the gradient, which is the last, is only read. p: the numbers
 * named with each formula in loop_update_tmpl.h, rounded to the type there. */
typedef void (*yk_update_fn)(int64_t n, void *const *t, const double *p);
typedef struct yk_update_table {                         /* [2]: f32, f64 */
  yk_update_fn fn[U_COUNT][2];
  void (*lamb_norms[2])(int64_t n, void *const *t, const double *p, double *sums);  /* new m, v; adds |w|^2, |r|^2 to sums[2] */
} yk_update_table;
const yk_update_table *yk__loop_update(void);

const yk_wino_table *yk__loop_winograd(void);

enum { SUM_WAYS = 4 };
typedef struct yk_sum_table {
  /* out = x[0] + ... + x[k-1], from left to right, k from 1 to SUM_WAYS; out may be any of them. */
  void (*few)(int64_t n, uint32_t k, const float *const *x, float *out);
  /* n bytes past the caches. settle: after the last of them, before an event tells that they are there; it waits, so not more often. */
  void (*past)(size_t n, const char *from, char *to);
  void (*settle)(void);
} yk_sum_table;
const yk_sum_table *yk__loop_sum(void);

#endif
