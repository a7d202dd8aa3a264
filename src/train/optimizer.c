/*
 * optimizer.c - one update node a variable, on the variable's home.
 *
 * The planner joins the updates of one device into one kernel, so nothing is
 * gained by joining them here, and a variable may live anywhere.
 */
#include <yoke/math.h>
#include <yoke/train.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/slots.h"

static yk_value rate_for(const char *where, yk_graph *g, yk_value rate, const yk_variable *v) {
  yk_dtype t = (yk_dtype)yk_variable_desc(v)->dtype;
  return t == YK_F32 ? rate : yk_cast_at(where, g, rate, t);
}

static yk_value update(const char *where, yk_graph *g, const yk_optimizer *opt, yk_value rate, const yk_gradient *p) {
  yk_variable *v = p->variable, *slot;
  yk_value lr = rate_for(where, g, rate, v), m;
  if (opt->kind == YK_OPT_SGD) return yk_sgd_update_at(where, g, 1, &v, &p->grad, lr);
  slot = yk__slot_variable(where, g, v, "Momentum", YK_ZEROS);
  m = yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(v)->dtype, opt->momentum);
  return yk_momentum_update_at(where, g, 1, &v, &slot, &p->grad, lr, m, opt->nesterov);
}

static yk_value finish(const char *where, yk_graph *g, size_t n, const yk_value *updates, yk_variable *global_step) {
  yk_value all = yk_group_at(where, g, n, updates), step;
  if (global_step == NULL) return all;
  yk_control_push_at(where, g, 1, &all);
  yk_colocate_push_at(where, g, yk_read(global_step));
  step = yk_assign_add_at(where, g, global_step, yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(global_step)->dtype, 1.0));
  yk_colocate_pop_at(where, g);
  yk_control_pop_at(where, g);
  return yk_group_at(where, g, 1, &step);
}

yk_value yk_apply_gradients_at(const char *where, yk_graph *g, const yk_optimizer *opt, size_t n, const yk_gradient *grads,
                               yk_variable *global_step) {
  yk_value *updates, rate, train = { 0 };
  size_t found = 0;
  if (yk_graph_status(g) != YK_OK) return train;
  updates = yk__calloc(n + 1, sizeof *updates);
  if (updates == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for %zu updates", n);
  yk_name_scope_push_at(where, g, opt->kind == YK_OPT_SGD ? "GradientDescent" : "Momentum");
  rate = opt->learning_rate.id != 0 ? opt->learning_rate : yk_scalar_f32_at(where, g, (float)opt->rate);
  for (size_t i = 0; i < n; i++) {
    if (grads[i].grad.id == 0) continue;
    updates[found++] = update(where, g, opt, rate, &grads[i]);
  }
  if (found > 0) train = finish(where, g, found, updates, global_step);
  else yk_graph_fail_at(where, g, YK_EINVAL, "none of the %zu variables has a gradient to apply", n);
  yk_name_scope_pop_at(where, g);
  yk__free(updates);
  if (train.id != 0) yk_add_to_collection_at(where, g, YK_TRAIN_OP, train);
  return g->status == YK_OK ? train : (yk_value){ 0 };
}

yk_value yk_minimize_at(const char *where, yk_graph *g, const yk_optimizer *opt, yk_value loss, yk_variable *global_step) {
  size_t n = yk_compute_gradients_at(where, g, loss, 0, NULL, NULL, 0);
  yk_gradient *grads;
  yk_value train;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  grads = yk__calloc(n + 1, sizeof *grads);
  if (grads == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the gradients of %zu variables", n);
  yk_compute_gradients_at(where, g, loss, 0, NULL, grads, n);
  train = yk_apply_gradients_at(where, g, opt, n, grads, global_step);
  yk__free(grads);
  return train;
}
