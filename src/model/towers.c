/*
 * towers.c - one training step of a network on several devices.
 *
 * Variables live at home; each device builds a tower that borrows them and
 * dequeues its share of the batch; gradients come back, are summed and applied
 * at home. A tower's loss is its sum over examples divided by the global batch,
 * and the penalties are counted in the first tower only, so the sum is the exact
 * gradient of the global mean whatever the shares.
 */
#include <stdio.h>
#include "base/alloc.h"
#include "base/error.h"
#include "model/parts.h"
#include "op/registry.h"

typedef struct yk_build {
  const char *where;
  yk_graph *g;
  const yk_tower_options *o;
  size_t n;                    /* towers made */
  yk_value *loss, *correct;    /* [ndevices] */
  yk_gradient **grads;         /* [ndevices][nvars] */
  size_t nvars;
} yk_build;

static const char *variables_at(const yk_op *op, const char *name, const char *so_far, void *arg) {
  (void)name;
  (void)so_far;
  return op == &yk__op_variable ? arg : NULL;
}

static const char *home_of(const yk_tower_options *o) {
  return o->home != NULL ? o->home : "/cpu:0";
}

static int64_t share(const yk_tower_options *o, size_t i) {
  return o->batch / (int64_t)o->ndevices + ((int64_t)i < o->batch % (int64_t)o->ndevices ? 1 : 0);
}

static yk_value penalties(yk_graph *g, const char *scope) {
  yk_value few[128];
  size_t n = yk_get_collection(g, YK_LOSSES, scope, few, 128);
  if (n == 0) return (yk_value){ 0 };
  if (n > 128) return yk_graph_fail_at(YK_HERE, g, YK_EUNSUPPORTED, "a network may add at most 128 penalties, not %zu", n);
  return n == 1 ? few[0] : yk_add_n(g, n, few);
}

static void tower_body(yk_build *b, size_t i, yk_value images, yk_value labels) {
  yk_graph *g = b->g;
  yk_value logits, sum, share_of_one = yk_scalar_f32(g, 1.0f / (float)b->o->batch);
  yk_device_push_fn(g, variables_at, (void *)(uintptr_t)home_of(b->o));
  logits = b->o->model->build(g, images, b->o->classes, true);
  yk_device_pop(g);
  sum = yk_reduce_sum(g, yk_sparse_softmax_cross_entropy(g, logits, labels), NULL);
  b->loss[b->n] = yk_mul(g, sum, share_of_one);
  if (b->n == 0) {
    yk_value extra = penalties(g, yk_name_scope(g));
    if (extra.id != 0) b->loss[0] = yk_add(g, b->loss[0], extra);
  }
  b->correct[b->n] = yk_mul(g, yk_reduce_sum(g, yk_cast(g, yk_in_top_k(g, logits, labels, 1), YK_F32), NULL), share_of_one);
  b->nvars = yk_compute_gradients(g, b->loss[b->n], 0, NULL, NULL, 0);
  b->grads[b->n] = yk__calloc(b->nvars + 1, sizeof **b->grads);
  if (b->grads[b->n] == NULL) yk_graph_fail_at(b->where, g, YK_ENOMEM, "no memory for the gradients of tower %zu", i);
  else yk_compute_gradients(g, b->loss[b->n], 0, NULL, b->grads[b->n], b->nvars);
}

static void tower(yk_build *b, size_t i) {
  yk_graph *g = b->g;
  yk_value batch[YK_MAX_COMPONENTS];
  char name[32];
  yk_scope_options reuse = { .reuse = b->n > 0 ? YK_REUSE : YK_REUSE_INHERIT, .no_name_scope = true };
  snprintf(name, sizeof name, "tower_%zu", i);
  yk_name_scope_push(g, name);
  YK_DEVICE(g, "/cpu:0") { yk_dequeue(g, b->o->source, share(b->o, i), batch); }
  yk_device_push(g, b->o->devices[i]);
  yk_variable_scope_enter(g, yk_get_variable_scope(g), &reuse);
  if (b->o->source->component[0].dtype != YK_F32) batch[0] = yk_cast(g, batch[0], YK_F32);
  tower_body(b, i, batch[0], batch[1]);
  yk_variable_scope_pop(g);
  yk_device_pop(g);
  yk_name_scope_pop(g);
  b->n++;
}

static yk_optimizer optimizer_of(const yk_tower_options *o) {
  const yk_model *m = o->model;
  yk_optimizer opt = m->momentum > 0 ? YK_MOMENTUM(m->learning_rate, m->momentum) : YK_SGD(m->learning_rate);
  if (o->optimizer != NULL) opt = *o->optimizer;
  if (o->learning_rate.id != 0) opt.learning_rate = o->learning_rate;
  return opt;
}

static void update(yk_build *b, yk_towers *out) {
  yk_graph *g = b->g;
  const yk_model *m = b->o->model;
  yk_optimizer opt = optimizer_of(b->o);
  yk_gradient *sum = yk__calloc(b->nvars + 1, sizeof *sum);
  yk_value steps[3];
  if (sum == NULL) {
    yk_graph_fail_at(b->where, g, YK_ENOMEM, "no memory for the gradients of %zu variables", b->nvars);
    return;
  }
  yk_sum_gradients(g, b->n, (const yk_gradient *const *)b->grads, b->nvars, sum);
  if (b->o->clip_norm > 0) yk_clip_by_global_norm(g, b->o->clip_norm, b->nvars, sum);
  steps[0] = yk_apply_gradients(g, &opt, b->nvars, sum, out->global_step);
  yk__free(sum);
  steps[1] = yk_update_ops(g);
  steps[2] = steps[0];
  if (m->moving_average > 0)
    YK_CONTROL(g, 1, steps) { steps[2] = yk_moving_average(g, m->moving_average, out->global_step, 0, NULL); }
  out->train = yk_group(yk_named(g, "train"), 3, steps);
  out->loss = b->n == 1 ? yk_identity(yk_named(g, "loss"), b->loss[0]) : yk_add_n(yk_named(g, "loss"), b->n, b->loss);
  out->accuracy = b->n == 1 ? yk_identity(yk_named(g, "accuracy"), b->correct[0]) : yk_add_n(yk_named(g, "accuracy"), b->n, b->correct);
}

static int valid(const char *where, yk_graph *g, const yk_tower_options *o) {
  if (o->model == NULL || o->source == NULL || o->ndevices == 0 || o->batch < 1 || o->classes < 1) {
    yk_graph_fail_at(where, g, YK_EINVAL, "towers need a model, a source, at least one device, a batch and classes of at least 1");
    return 0;
  }
  return yk_graph_status(g) == YK_OK;
}

void yk_build_towers_at(const char *where, yk_graph *g, const yk_tower_options *o, yk_towers *out) {
  yk_build b = { .where = where, .g = g, .o = o };
  *out = (yk_towers){ 0 };
  if (!valid(where, g, o)) return;
  b.loss = yk__calloc(o->ndevices, sizeof *b.loss);
  b.correct = yk__calloc(o->ndevices, sizeof *b.correct);
  b.grads = yk__calloc(o->ndevices, sizeof *b.grads);
  if (b.loss == NULL || b.correct == NULL || b.grads == NULL) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to build %zu towers", o->ndevices);
  } else {
    out->global_step = yk_global_step(g);
    for (size_t i = 0; i < o->ndevices; i++)
      if (share(o, i) > 0) tower(&b, i);
    if (yk_graph_status(g) == YK_OK)                  /* else a tower may lack its gradients */
      YK_DEVICE(g, home_of(o)) { update(&b, out); }
    if (yk_graph_status(g) != YK_OK) *out = (yk_towers){ 0 };
  }
  for (size_t i = 0; i < b.n; i++) yk__free(b.grads[i]);
  yk__free(b.loss);
  yk__free(b.correct);
  yk__free(b.grads);
}
