/*
 * loop_update_isa.c - inner loops of the optimizer steps and moving averages.
 *
 * Compiled once for each instruction set, and within it once for f32 and once for f64. Variables, slots and gradients never
 * overlap, and each is run over once.
 */
#include "loop_isa.h"

#include <math.h>

#define T float
#define NAME(f) f##_f32
#define ROOT(x) sqrtf(x)
#define POWER(x, y) powf(x, y)
#include "loop_update_tmpl.h"
#undef T
#undef NAME
#undef ROOT
#undef POWER

#define T double
#define NAME(f) f##_f64
#define ROOT(x) sqrt(x)
#define POWER(x, y) pow(x, y)
#include "loop_update_tmpl.h"

#define BOTH(f) [U_##f] = { f##_f32, f##_f64 }
extern const yk_update_table YK_ISA_NAME(yk__update_table);
const yk_update_table YK_ISA_NAME(yk__update_table) = {
  .fn = { BOTH(sgd), BOTH(momentum), BOTH(nesterov), BOTH(keras_momentum), BOTH(keras_nesterov), BOTH(ema), BOTH(adam),
          BOTH(adam_nesterov), BOTH(rmsprop), BOTH(keras_rmsprop), BOTH(centered), BOTH(adagrad), BOTH(keras_adagrad),
          BOTH(adadelta), BOTH(ftrl), BOTH(ftrl_power), BOTH(lamb) },
  .lamb_norms = { lamb_norms_f32, lamb_norms_f64 } };
