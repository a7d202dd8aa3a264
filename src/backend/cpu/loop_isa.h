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

/* In place on whole buffers; scalars arrive as double and are rounded to the type. */
typedef struct yk_update_fns {
  void (*sgd)(int64_t n, void *w, const void *g, double lr);
  void (*momentum)(int64_t n, void *w, void *a, const void *g, double lr, double m, uint32_t nesterov);
  void (*ema)(int64_t n, void *s, const void *v, double decay);
} yk_update_fns;
typedef struct yk_update_table { yk_update_fns fn[2]; } yk_update_table;   /* f32, f64 */
const yk_update_table *yk__loop_update(void);

const yk_wino_table *yk__loop_winograd(void);

#endif
