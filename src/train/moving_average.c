/*
 * moving_average.c - shadows that follow variables.
 *
 * Each shadow sits beside its variable and starts at its initial value; the
 * planner joins all updates of one device into one kernel.
 */
#include <string.h>
#include <yoke/math.h>
#include <yoke/train.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/slots.h"
#include "tensor/desc.h"

#define SLOT "ExponentialMovingAverage"

/* min(decay, (1+step)/(10+step)): early averages forget the random start faster. */
static yk_value effective_decay(const char *where, yk_graph *g, double decay, yk_variable *step) {
  yk_value s, ramp, limit = yk_scalar_f32_at(where, g, (float)decay);
  if (step == NULL) return limit;
  s = yk_cast_at(where, g, yk_read(step), YK_F32);
  ramp = yk_div_at(where, g, yk_add_at(where, g, s, yk_scalar_f32_at(where, g, 1.0f)), yk_add_at(where, g, s, yk_scalar_f32_at(where, g, 10.0f)));
  return yk_minimum_at(where, g, limit, ramp);
}

static yk_value follow(const char *where, yk_graph *g, yk_variable *v, yk_value decay) {
  yk_init start = { .kind = YK_INIT_VALUE, .value = yk_initial_value(v) };
  yk_variable *shadow = yk__slot_variable(where, g, v, SLOT, start);
  yk_value now = yk_read(v);
  yk_dtype t = (yk_dtype)yk_variable_desc(v)->dtype;
  if (shadow == NULL) return (yk_value){ 0 };
  yk_add_to_collection_at(where, g, YK_MOVING_AVERAGE_VARIABLES, now);
  return yk_ema_update_at(where, g, 1, &shadow, &now, t == YK_F32 ? decay : yk_cast_at(where, g, decay, t));
}

yk_value yk_moving_average_at(const char *where, yk_graph *g, double decay, yk_variable *step, size_t n, yk_variable *const *vars) {
  size_t total = vars != NULL ? n : yk_variable_count(g), found = 0;
  yk_value *updates, d, all;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  if (decay < 0 || decay > 1) return yk_graph_fail_at(where, g, YK_EINVAL, "the decay of a moving average lies in [0, 1], not %g", decay);
  updates = yk__calloc(total + 1, sizeof *updates);
  if (updates == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for %zu moving averages", total);
  yk_name_scope_push_at(where, g, SLOT);
  d = effective_decay(where, g, decay, step);
  for (size_t i = 0; i < total; i++) {
    yk_variable *v = vars != NULL ? vars[i] : yk_variable_get(g, i);
    if (vars != NULL || yk_variable_trainable(v)) updates[found++] = follow(where, g, v, d);
  }
  all = yk_group_at(where, g, found, updates);
  yk_name_scope_pop_at(where, g);
  yk__free(updates);
  return all;
}

yk_variable *yk_moving_average_of(yk_graph *g, yk_variable *v) {
  size_t n = yk_variable_count(g);
  size_t length = v != NULL ? strlen(yk_variable_name(v)) : 0;
  for (size_t i = 0; v != NULL && i < n; i++) {
    const char *name = yk_variable_name(yk_variable_get(g, i));
    if (strncmp(name, yk_variable_name(v), length) == 0 && strcmp(name + length, "/" SLOT) == 0) return yk_variable_get(g, i);
  }
  return v;
}
