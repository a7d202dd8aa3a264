/*
 * loss_scale.c - dynamic loss scaling: gradients worked out in f16 are kept away from zero and from overflow.
 *
 * The loss is multiplied by a scale before gradients are taken and the gradients divided by it afterwards. The scale is a
 * variable that halves when a step overflowed and doubles after a row of good ones; the step that overflowed is the guard's to undo.
 */
#include <math.h>
#include "train/train.h"

static yk_value as(const char *where, yk_graph *g, yk_value x, yk_dtype t) {
  const yk_desc *d = yk_value_desc(g, x);
  return d == NULL || d->dtype == t ? x : yk_cast_at(where, g, x, t);
}

/* They are the optimizer's, as its slots are: no part of what was learnt. */
static void list(const char *where, yk_graph *g, const yk_loss_scale *s) {
  yk_add_to_collection_at(where, g, YK_OPTIMIZER_VARIABLES, yk_read(s->scale));
  yk_add_to_collection_at(where, g, YK_OPTIMIZER_VARIABLES, yk_read(s->good_steps));
  yk_add_to_collection_at(where, g, YK_OPTIMIZER_VARIABLES, yk_read(s->skipped));
}

void yk_loss_scale_new_at(const char *where, yk_graph *g, double start, int64_t every, yk_loss_scale *out) {
  *out = (yk_loss_scale){ 0 };
  if (yk_graph_status(g) != YK_OK) return;
  if (start < 0 || !isfinite(start) || every < 0) {
    yk_graph_fail_at(where, g, YK_EINVAL, "a loss scale that starts at %g and grows every %lld steps: expected numbers above 0", start,
                     (long long)every);
    return;
  }
  yk_loss_scale s = { .every = every > 0 ? every : 2000 };
  s.scale = yk__root_variable(where, g, "loss_scale", YK_F32, YK_SCALAR, YK_CONSTANT(start > 0 ? start : 32768), NULL);
  if (s.scale != NULL) s.good_steps = yk__root_variable(where, g, "loss_scale/good_steps", YK_I64, YK_SCALAR, YK_ZEROS, NULL);
  if (s.good_steps != NULL) s.skipped = yk__root_variable(where, g, "loss_scale/skipped", YK_I64, YK_SCALAR, YK_ZEROS, NULL);
  if (g->status == YK_OK) list(where, g, &s);
  if (g->status == YK_OK) *out = s;
}

/* Is it one of this graph? Else a sticky error. */
static bool valid(const char *where, yk_graph *g, const yk_loss_scale *s) {
  if (yk_graph_status(g) != YK_OK) return false;
  if (s->scale != NULL && s->scale->g == g && s->good_steps != NULL && s->skipped != NULL) return true;
  yk_graph_fail_at(where, g, YK_EINVAL, "this loss scale was not made by yk_loss_scale_new() for this graph");
  return false;
}

yk_value yk_scale_loss_at(const char *where, yk_graph *g, const yk_loss_scale *s, yk_value loss) {
  const yk_desc *d;
  if (!valid(where, g, s)) return (yk_value){ 0 };
  d = yk_value_desc(g, loss);
  if (d == NULL) return yk_graph_fail_at(where, g, YK_EINVAL, "there is no loss to scale");
  return yk_mul_at(where, g, loss, as(where, g, yk_read(s->scale), (yk_dtype)d->dtype));
}

void yk_unscale_gradients_at(const char *where, yk_graph *g, const yk_loss_scale *s, size_t n, yk_gradient *grads) {
  yk_value rows, values, factor = { 0 };
  if (valid(where, g, s)) factor = yk_reciprocal_at(where, g, yk_read(s->scale));
  for (size_t i = 0; i < n && g->status == YK_OK; i++) {
    yk_value grad = grads[i].grad;
    if (grad.id == 0) continue;
    const yk_desc *d = yk_value_desc(g, grad);
    yk_device_push_at(where, g, NULL);
    yk_device_push_at(where, g, yk_value_device(g, grad));
    if (yk_gradient_rows(g, grad, &values, &rows))
      grads[i].grad = yk__rows_like(where, g, yk_mul_at(where, g, values, as(where, g, factor, (yk_dtype)d->dtype)), rows, grad);
    else grads[i].grad = yk_mul_at(where, g, grad, as(where, g, factor, (yk_dtype)d->dtype));
    yk_device_pop_at(where, g);
    yk_device_pop_at(where, g);
  }
  for (size_t i = 0; i < n && g->status != YK_OK; i++) grads[i].grad = (yk_value){ 0 };
}

/* All that is written is worked out before anything is. */
yk_value yk_loss_scale_update_at(const char *where, yk_graph *g, const yk_loss_scale *s, yk_value ok) {
  yk_value one, good, full, scale, next[3], set[3], all = { 0 };
  if (!valid(where, g, s)) return all;
  yk_name_scope_push_at(where, g, "loss_scale_update");
  one = yk_scalar_at(where, g, YK_I64, 1);
  good = yk_add_at(where, g, yk_read(s->good_steps), one);
  full = yk_greater_equal_at(where, g, good, yk_scalar_at(where, g, YK_I64, (double)s->every));
  scale = yk_read(s->scale);
  next[0] = yk_minimum_at(where, g, yk_mul_at(where, g, scale, yk_scalar_f32_at(where, g, 2)), yk_scalar_f32_at(where, g, 0x1p126f));
  next[0] = yk_where_at(where, g, full, next[0], scale);
  next[0] = yk_where_at(where, g, ok, next[0], yk_mul_at(where, g, scale, yk_scalar_f32_at(where, g, 0.5f)));
  next[1] = yk_where_at(where, g, yk_logical_and_at(where, g, ok, yk_logical_not_at(where, g, full)), good, yk_scalar_at(where, g, YK_I64, 0));
  next[2] = yk_add_at(where, g, yk_read(s->skipped), yk_where_at(where, g, ok, yk_scalar_at(where, g, YK_I64, 0), one));
  yk_control_push_at(where, g, 3, next);
  set[0] = yk_assign_at(where, g, s->scale, next[0]);
  set[1] = yk_assign_at(where, g, s->good_steps, next[1]);
  set[2] = yk_assign_at(where, g, s->skipped, next[2]);
  yk_control_pop_at(where, g);
  all = yk_group_at(where, g, 3, set);
  yk_name_scope_pop_at(where, g);
  return g->status == YK_OK ? all : (yk_value){ 0 };
}
