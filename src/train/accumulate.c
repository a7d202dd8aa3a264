/*
 * accumulate.c - one update from the gradients of several runs.
 *
 * There is no branch in a step: one op adds to the accumulators, another updates from their sum with the run's own
 * gradients and empties them. Which of the two runs is the caller's count, so nothing has to be decided on a device.
 */
#include "train/train.h"

#define SLOT "Accumulated"

static yk_value add(const char *where, yk_graph *g, double share, const yk_gradient *in, yk_gradient *mean) {
  yk_variable *slot;
  yk_value sum, part, added;
  if (in->variable == NULL || in->variable->g != g)
    return yk_graph_fail_at(where, g, YK_EINVAL, "a gradient to accumulate has no variable of this graph");
  slot = yk__optimizer_slot(where, g, in->variable, SLOT, 0);
  if (slot == NULL) return (yk_value){ 0 };
  yk_colocate_push_at(where, g, yk_read(slot));
  added = yk_assign_add_at(where, g, slot, in->grad);
  sum = yk_add_at(where, g, yk_read(slot), in->grad);
  part = yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(slot)->dtype, share);
  mean->grad = yk_mul_at(where, g, sum, part);
  yk_colocate_pop_at(where, g);
  return added;
}

yk_value yk_accumulate_gradients_at(const char *where, yk_graph *g, int64_t every, size_t n, const yk_gradient *grads, yk_gradient *mean) {
  yk_value *added, all = { 0 };
  size_t found = 0;
  for (size_t i = 0; i < n; i++) mean[i] = (yk_gradient){ grads[i].grad, grads[i].variable };
  if (yk_graph_status(g) == YK_OK && every < 1)
    yk_graph_fail_at(where, g, YK_EINVAL, "gradients are accumulated over 1 run or more, not %lld", (long long)every);
  added = g->status == YK_OK ? yk__calloc(n + 1, sizeof *added) : NULL;
  if (added == NULL && g->status == YK_OK) yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to accumulate %zu gradients", n);
  if (added != NULL) {
    yk_name_scope_push_at(where, g, SLOT);
    for (size_t i = 0; i < n && g->status == YK_OK; i++)
      if (mean[i].grad.id != 0) added[found++] = add(where, g, 1.0 / (double)every, &(yk_gradient){ mean[i].grad, mean[i].variable }, &mean[i]);
    if (found == 0) yk_graph_fail_at(where, g, YK_EINVAL, "none of the %zu variables has a gradient to accumulate", n);
    all = yk_group_at(where, g, found, added);
    yk_name_scope_pop_at(where, g);
  }
  yk__free(added);
  for (size_t i = 0; i < n && g->status != YK_OK; i++) mean[i].grad = (yk_value){ 0 };
  return g->status == YK_OK ? all : (yk_value){ 0 };
}

yk_value yk_apply_accumulated_at(const char *where, yk_graph *g, const yk_optimizer *opt, size_t n, const yk_gradient *mean,
                                 yk_variable *global_step) {
  yk_value train = yk_apply_gradients_at(where, g, opt, n, mean, global_step), *cleared, all;
  size_t found = 0;
  if (g->status != YK_OK) return (yk_value){ 0 };
  cleared = yk__calloc(n + 1, sizeof *cleared);
  if (cleared == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to empty %zu accumulators", n);
  yk_control_push_at(where, g, 1, &train);
  for (size_t i = 0; i < n && g->status == YK_OK; i++) {
    yk_variable *slot = mean[i].grad.id != 0 ? yk__optimizer_slot(where, g, mean[i].variable, SLOT, 0) : NULL;
    if (slot == NULL) continue;
    yk_colocate_push_at(where, g, yk_read(slot));
    cleared[found++] = yk_assign_at(where, g, slot, yk_zeros_like_at(where, g, yk_read(slot)));
    yk_colocate_pop_at(where, g);
  }
  all = yk_group_at(where, g, found, cleared);
  yk_control_pop_at(where, g);
  yk__free(cleared);
  return g->status == YK_OK ? all : (yk_value){ 0 };
}

yk_code yk_round_run(yk_round *round, const yk_tensor *const *feeds, const yk_tensor *const **out) {
  bool last;
  if (round->every < 1 || round->done < 0)
    return YK_FAIL(EINVAL, "a round of %lld runs, %lld of them done: expected 1 or more, 0 or more", (long long)round->every,
                   (long long)round->done);
  last = round->done + 1 >= round->every;
  YK_TRY(yk_step_run(last ? round->apply : round->accumulate, feeds, out));
  round->done = last ? 0 : round->done + 1;
  return YK_OK;
}
