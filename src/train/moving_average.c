/*
 * moving_average.c - shadows that follow variables.
 *
 * Each shadow sits beside its variable and starts at its initial value; the
 * planner joins all updates of one device into one kernel.
 */
#include <string.h>
#include "train/train.h"

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
  if (shadow == NULL) return (yk_value){ 0 };
  yk_add_to_collection_at(where, g, YK_MOVING_AVERAGE_VARIABLES, now);
  return yk_ema_update_at(where, g, 1, &shadow, &now, yk__in_dtype_of(where, g, decay, v));
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

/* A helper of v: not trained, beside it. */
static yk_variable *helper(const char *where, yk_graph *g, yk_variable *v, const char *name, bool scalar) {
  yk_str text = { 0 };
  char *full = NULL;
  yk_variable *made;
  if (!scalar) return yk__slot_variable(where, g, v, name, YK_ZEROS);
  yk__str_add(&text, "%s/%s", yk_variable_name(v), name);
  if (yk__str_take(&text, &full) != YK_OK) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "%s", yk_error_message());
    return NULL;
  }
  yk_colocate_push_at(where, g, v->ref);
  made = yk__root_variable(where, g, full, YK_F32, YK_SCALAR, YK_ZEROS, NULL);
  yk_colocate_pop_at(where, g);
  yk__free(full);
  return made;
}

/* b -= (1-decay)*(b - x); k += 1; v = b/(1 - decay^k). */
static yk_value debiased(const char *where, yk_graph *g, yk_variable *v, yk_value x, double decay) {
  yk_variable *b = helper(where, g, v, "biased", false), *k = b != NULL ? helper(where, g, v, "local_step", true) : NULL;
  yk_value moved, count, share;
  if (k == NULL) return (yk_value){ 0 };
  moved = yk_ema_update_at(where, g, 1, &b, &x, yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(v)->dtype, decay));
  count = yk_assign_add_at(where, g, k, yk_scalar_f32_at(where, g, 1));
  share = yk_pow_at(where, g, yk_scalar_at(where, g, YK_F64, decay), yk_cast_at(where, g, count, YK_F64));
  share = yk__in_dtype_of(where, g, yk_sub_at(where, g, yk_scalar_at(where, g, YK_F64, 1), share), v);
  yk_control_push_at(where, g, 1, &moved);
  x = yk_assign_at(where, g, v, yk_div_at(where, g, yk_read(b), share));
  yk_control_pop_at(where, g);
  return yk_group_at(where, g, 1, &x);
}

yk_value yk_assign_moving_average_at(const char *where, yk_graph *g, yk_variable *v, yk_value x, double decay, bool zero_debias) {
  yk_value op;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  if (v == NULL) return yk_graph_fail_at(where, g, YK_EINVAL, "a moving average needs a variable to keep it in");
  if (!(decay >= 0 && decay <= 1) || (zero_debias && decay == 1))
    return yk_graph_fail_at(where, g, YK_EINVAL, "the decay of a moving average lies in [0, 1%s, not %g", zero_debias ? ")" : "]", decay);
  yk_name_scope_push_at(where, g, "AssignMovingAvg");
  yk_colocate_push_at(where, g, yk_read(v));
  op = zero_debias ? debiased(where, g, v, x, decay)
                   : yk_ema_update_at(where, g, 1, &v, &x, yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(v)->dtype, decay));
  yk_colocate_pop_at(where, g);
  yk_name_scope_pop_at(where, g);
  return g->status == YK_OK ? op : (yk_value){ 0 };
}
