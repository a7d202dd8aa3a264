/*
 * loop_update.h - what the kernels of optimizers share: an operation's formula, bound to a dtype and its attributes.
 *
 * A formula runs over pieces of a variable, its slots and its gradient that have the same elements. f16 and bf16 go through
 * f32, a block at a time.
 */
#ifndef YK_CPU_LOOP_UPDATE_H
#define YK_CPU_LOOP_UPDATE_H

#include "loop_isa.h"

typedef struct yk_loop_rule {
  yk_update_fn fn;
  yk_elem_fn load, store;                /* f16, bf16; else NULL */
  const char *impl;                      /* "plain:adam_update" */
  const yk_rule_attrs *attrs;            /* never NULL */
  yk_update_id id;
  uint32_t operands, scalars;            /* tensors of a variable, gradient included; scalars at the end of the inputs */
  uint32_t bytes;                        /* of an element */
} yk_loop_rule;

/* The formula of p's operation; a leading "sparse_" is left out of account, except in impl. */
yk_code yk__loop_rule(yk_cpu_prepare *p, yk_loop_rule *out) YK_CHECKED;
/* The numbers of this run: from the attributes and the scalars, which start at input `first`. */
void yk__loop_rule_numbers(const yk_loop_rule *r, const yk_kernel *k, void *const *arg, uint32_t first, double p[U_NUMBERS]);
/* Is there a guard behind `first` other inputs, and does it forbid the update? */
static inline int yk__loop_off(const yk_kernel *k, void *const *arg, uint32_t first) {
  return k->nin > first && arg[first] && *(const uint8_t *)arg[first] == 0;
}
/* n elements at t[operands]. ready: the gradient in f32 already, at most L_BLOCK of it, for half types; else NULL. */
void yk__loop_rule_apply(const yk_loop_rule *r, int64_t n, char *const *t, const double *p, const float *ready);

/* All of `count` inputs, from `i` in steps of `step`, take the layout of input i. *elements: of the whole buffer. */
yk_code yk__loop_follow(yk_cpu_prepare *p, uint32_t i, uint32_t step, uint32_t count, int64_t *elements) YK_CHECKED;

#endif
