/*
 * schedule.c - the global step, and learning rates as functions of it.
 *
 * A schedule is part of the graph: it reads the step when the update runs, so a
 * resumed run continues where it was.
 */
#include <math.h>
#include <yoke/math.h>
#include <yoke/train.h>
#include "base/error.h"
#include "graph/slots.h"

yk_variable *yk_global_step_at(const char *where, yk_graph *g) {
  static const char *const collections[] = { YK_GLOBAL_VARIABLES, YK_GLOBAL_STEP, NULL };
  yk_variable *v;
  yk_device_push_at(where, g, "/cpu:0");
  v = yk__root_variable(where, g, "global_step", YK_I64, YK_SCALAR, YK_ZEROS, collections);
  yk_device_pop_at(where, g);
  return v;
}

/* The step as f32; exact up to 2^24, which a schedule does not need beyond. */
static yk_value step_f32(const char *where, yk_graph *g, yk_variable *step) {
  return step == NULL ? yk_graph_fail_at(where, g, YK_EINVAL, "a schedule needs a step variable") : yk_cast_at(where, g, yk_read(step), YK_F32);
}

yk_value yk_exponential_decay_at(const char *where, yk_graph *g, double rate, yk_variable *step, int64_t decay_steps, double factor,
                                 bool staircase) {
  yk_value exponent, s;
  if (decay_steps <= 0 || factor <= 0)
    return yk_graph_fail_at(where, g, YK_EINVAL, "exponential decay needs decay_steps > 0 and a factor > 0, got %lld and %g",
                            (long long)decay_steps, factor);
  s = step_f32(where, g, step);
  exponent = yk_div_at(where, g, s, yk_scalar_f32_at(where, g, (float)decay_steps));
  if (staircase) exponent = yk_floor_at(where, g, exponent);
  return yk_mul_at(where, g, yk_scalar_f32_at(where, g, (float)rate),
                   yk_exp_at(where, g, yk_mul_at(where, g, exponent, yk_scalar_f32_at(where, g, (float)log(factor)))));
}

yk_value yk_piecewise_constant_at(const char *where, yk_graph *g, yk_variable *step, size_t nboundaries, const int64_t *boundaries,
                                  const double *values) {
  yk_value result = yk_scalar_f32_at(where, g, (float)values[nboundaries]);
  for (size_t i = nboundaries; i-- > 0;) {
    yk_value before = yk_less_equal_at(where, g, yk_read(step), yk_scalar_at(where, g, YK_I64, (double)boundaries[i]));
    if (i > 0 && boundaries[i] <= boundaries[i - 1])
      return yk_graph_fail_at(where, g, YK_EINVAL, "boundaries of a piecewise constant must rise: %lld comes after %lld", (long long)boundaries[i],
                              (long long)boundaries[i - 1]);
    result = yk_where_at(where, g, before, yk_scalar_f32_at(where, g, (float)values[i]), result);
  }
  return result;
}
