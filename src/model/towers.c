/*
 * towers.c - one training step of a network on several devices.
 *
 * Each replica of the batch gets a tower on its device, which reads the variables that the strategy lends it and
 * dequeues its share of the batch; gradients are summed and applied where the strategy says. A tower's loss is its sum
 * over examples divided by the global batch, and the penalties are counted in the first tower only, so the sum is the
 * exact gradient of the global mean whatever the shares.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/graph.h"
#include "model/parts.h"
#include "model/strategy.h"
#include "op/registry.h"

typedef struct yk_build {
  const char *where;
  yk_graph *g;
  yk_tower_options o;          /* what is not given is filled in */
  yk_spread spread;
  size_t n;                    /* towers made */
  yk_value *loss, *correct;    /* [replicas] */
  yk_gradient **grads;         /* [replicas][nvars] */
  size_t nvars;
  yk_loss_scale scale;         /* of f16; else all zero */
} yk_build;

int64_t yk_replica_share(int64_t batch, size_t n, size_t i) {
  return n == 0 || i >= n ? 0 : batch / (int64_t)n + ((int64_t)i < batch % (int64_t)n ? 1 : 0);
}

static size_t device_of(const yk_tower_options *o, size_t replica) {
  return replica * o->ndevices / o->replicas;
}

static yk_value penalties(yk_graph *g, const char *scope) {
  yk_value few[128];
  size_t n = yk_get_collection(g, YK_LOSSES, scope, few, 128);
  if (n == 0) return (yk_value){ 0 };
  if (n > 128) return yk_graph_fail_at(YK_HERE, g, YK_EUNSUPPORTED, "a network may add at most 128 penalties, not %zu", n);
  return n == 1 ? few[0] : yk_add_n(g, n, few);
}

/* The gradients of tower b->n, as pairs with the variables' masters. */
static void gradients(yk_build *b, size_t device) {
  yk_graph *g = b->g;
  yk_variable **vars;
  b->nvars = yk__spread_variables(&b->spread, 0, NULL, 0);
  b->grads[b->n] = yk__calloc(b->nvars + 1, sizeof **b->grads);
  vars = yk__calloc(b->nvars + 1, sizeof(yk_variable *));
  if (b->grads[b->n] == NULL || vars == NULL) {
    yk_graph_fail_at(b->where, g, YK_ENOMEM, "no memory for the gradients of tower %zu", b->n);
  } else {
    yk__spread_variables(&b->spread, device, vars, b->nvars);
    yk_value loss = b->scale.scale != NULL ? yk_scale_loss(g, &b->scale, b->loss[b->n]) : b->loss[b->n];
    yk_compute_gradients(g, loss, b->nvars, vars, b->grads[b->n], b->nvars);
    for (size_t v = 0; v < b->nvars; v++) b->grads[b->n][v].variable = yk_variable_master(b->grads[b->n][v].variable);
  }
  yk__free(vars);
}

/* The network in the precision asked for; the loss is worked out in f32. */
static yk_value network(yk_build *b, size_t device, yk_value images) {
  yk_graph *g = b->g;
  yk_value logits;
  yk__spread_push(&b->spread, device);
  yk_precision_push(g, b->o.precision);
  logits = b->o.model->build(g, images, b->o.classes, true);
  yk_precision_pop(g);
  yk__spread_pop(&b->spread);
  return b->o.precision != YK_NONE ? yk_cast(g, logits, YK_F32) : logits;
}

static void tower_body(yk_build *b, size_t device, yk_value images, yk_value labels) {
  yk_graph *g = b->g;
  yk_value logits = network(b, device, images), share_of_one = yk_scalar_f32(g, 1.0f / (float)b->o.batch);
  yk_value sum = yk_reduce_sum(g, yk_sparse_softmax_cross_entropy(g, logits, labels), NULL);
  b->loss[b->n] = yk_mul(g, sum, share_of_one);
  if (b->n == 0) {
    yk_value extra = penalties(g, yk_name_scope(g));
    if (extra.id != 0) b->loss[0] = yk_add(g, b->loss[0], extra);
  }
  b->correct[b->n] = yk_mul(g, yk_reduce_sum(g, yk_cast(g, yk_in_top_k(g, logits, labels, 1), YK_F32), NULL), share_of_one);
  gradients(b, device);
}

static void tower(yk_build *b, size_t i) {
  yk_graph *g = b->g;
  yk_value batch[YK_MAX_COMPONENTS];
  char name[32];
  yk_scope_options reuse = { .reuse = b->n > 0 ? YK_REUSE : YK_REUSE_INHERIT, .no_name_scope = true };
  snprintf(name, sizeof name, "tower_%zu", i);
  yk_name_scope_push(g, name);
  YK_DEVICE(g, "/cpu:0") { yk_dequeue(g, b->o.source, yk_replica_share(b->o.batch, b->o.replicas, i), batch); }
  yk_device_push(g, b->o.devices[device_of(&b->o, i)]);
  yk_variable_scope_enter(g, yk_get_variable_scope(g), &reuse);
  if (b->o.source->component[0].dtype != YK_F32) batch[0] = yk_cast(g, batch[0], YK_F32);
  tower_body(b, device_of(&b->o, i), batch[0], batch[1]);
  yk_variable_scope_pop(g);
  yk_device_pop(g);
  yk_name_scope_pop(g);
  g->replica = (uint32_t)++b->n;
}

static yk_optimizer optimizer_of(const yk_tower_options *o) {
  const yk_model *m = o->model;
  yk_optimizer opt = m->momentum > 0 ? YK_MOMENTUM(m->learning_rate, m->momentum) : YK_SGD(m->learning_rate);
  if (o->optimizer != NULL) opt = *o->optimizer;
  if (o->learning_rate.id != 0) opt.learning_rate = o->learning_rate;
  return opt;
}

/* The sum of a number over the towers. */
static yk_value total(yk_graph *g, const char *name, size_t n, const yk_value *part) {
  return n == 1 ? yk_identity(yk_named(g, name), part[0]) : yk_add_n(yk_named(g, name), n, part);
}

/* May the step change the variables? {0}: nobody asks. Gradients that overflow under a loss scale cost a step, after which the scale
 * is lower; that they do so under a scale of 1 is a fault. */
static yk_value judge(yk_build *b, const yk_optimizer *opt, const yk_gradient *sum, yk_towers *out) {
  yk_graph *g = b->g;
  yk_value look[2] = { out->loss, opt->learning_rate }, fine, finite, can_fall;
  size_t nlook = opt->learning_rate.id != 0 ? 2 : 1;
  if (b->scale.scale == NULL) {
    if (b->o.guard) out->good = yk_all_good(g, nlook, look, b->nvars, sum, b->o.nan_only);
    return out->good;
  }
  finite = yk_all_good(g, 0, NULL, b->nvars, sum, false);
  if (!b->o.guard) return finite;
  fine = yk_all_good(g, nlook, look, 0, NULL, b->o.nan_only);
  can_fall = yk_greater(g, yk_read(b->scale.scale), yk_scalar_f32(g, 1));
  out->good = yk_logical_and(g, fine, yk_logical_or(g, finite, can_fall));
  return yk_logical_and(g, fine, finite);
}

/* All that a step changes but the loss scale; under a guard, if one is wanted. `scaled` is what changes that. */
static void change(yk_build *b, const yk_optimizer *opt, size_t n, const yk_gradient *sum, yk_value scaled, yk_towers *out) {
  yk_graph *g = b->g;
  double average = b->o.model->moving_average;
  yk_value steps[4];
  steps[0] = yk_apply_gradients(g, opt, n, sum, out->global_step);
  steps[1] = yk_update_ops(g);
  steps[2] = steps[0];
  if (average > 0)
    YK_CONTROL(g, 1, steps) { steps[2] = yk_moving_average(g, average, out->global_step, 0, NULL); }
  steps[3] = scaled;
  out->train = yk_group(yk_named(g, "train"), scaled.id != 0 ? 4 : 3, steps);
}

/* Whoever wants to look at them finds them; what nobody fetches costs nothing. */
static void list_gradients(yk_build *b, const yk_gradient *sum) {
  for (size_t i = 0; i < b->nvars; i++) {            /* the first copies' sums are those of all */
    if (sum[i].grad.id == 0) continue;
    yk_add_to_collection(b->g, YK_TOWER_GRADIENTS, sum[i].grad);
    yk_add_to_collection(b->g, YK_TOWER_TRAINED, yk_read(sum[i].variable));
  }
}

static void update(yk_build *b, yk_towers *out) {
  yk_graph *g = b->g;
  yk_optimizer opt = optimizer_of(&b->o);
  yk_value ok, scaled = { 0 };
  size_t npairs = b->spread.ncopies * b->nvars;
  yk_gradient *sum = yk__calloc(npairs + 1, sizeof *sum);
  if (sum == NULL) {
    yk_graph_fail_at(b->where, g, YK_ENOMEM, "no memory for the gradients of %zu variables", b->nvars);
    return;
  }
  yk__spread_sum(&b->spread, b->n, (const yk_gradient *const *)b->grads, b->nvars, sum);
  if (b->scale.scale != NULL) yk_unscale_gradients(g, &b->scale, npairs, sum);
  if (b->o.clip_norm > 0) yk__spread_clip(&b->spread, b->o.clip_norm, b->nvars, sum);
  list_gradients(b, sum);
  out->loss = total(g, "loss", b->n, b->loss);
  out->accuracy = total(g, "accuracy", b->n, b->correct);
  ok = judge(b, &opt, sum, out);                      /* the first copies' sums are those of all */
  if (b->scale.scale != NULL)
    YK_GUARD(g, out->good) { scaled = yk_loss_scale_update(g, &b->scale, ok); }
  YK_GUARD(g, ok) { change(b, &opt, npairs, sum, scaled, out); }
  yk__free(sum);
}

/* A caller compiled against an older header passes a shorter struct: what it lacks stays zero. False after a sticky error. */
static bool take_options(const char *where, yk_graph *g, const yk_tower_options *given, yk_tower_options *o) {
  *o = (yk_tower_options)YK_TOWER_OPTIONS_INIT;
  if (given->size < sizeof given->size || given->size > 4096) {
    yk_graph_fail_at(where, g, YK_EINVAL, "yk_tower_options.size is %u; start from YK_TOWER_OPTIONS_INIT", given->size);
    return false;
  }
  memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  if (o->model == NULL || o->source == NULL || o->ndevices == 0 || o->batch < 1 || o->classes < 1) {
    yk_graph_fail_at(where, g, YK_EINVAL, "towers need a model, a source, at least one device, a batch and classes of at least 1");
    return false;
  }
  if (o->replicas == 0) o->replicas = o->ndevices;
  if (o->replicas < o->ndevices || o->replicas > 65536)
    yk_graph_fail_at(where, g, YK_EINVAL, "%zu replicas on %zu devices: expected a replica for each device or more, at most 65536", o->replicas,
                     o->ndevices);
  if (o->precision == YK_F32) o->precision = YK_NONE;
  if (o->precision != YK_NONE && o->precision != YK_BF16 && o->precision != YK_F16)
    yk_graph_fail_at(where, g, YK_EINVAL, "the precision of towers is %s; expected f32, bf16 or f16", yk_dtype_name(o->precision));
  if (yk_strategy_name(o->strategy) == NULL) yk_graph_fail_at(where, g, YK_EINVAL, "no strategy has the number %d", (int)o->strategy);
  return yk_graph_status(g) == YK_OK;
}

/* Devices whose towers have rows. */
static size_t devices_used(const yk_tower_options *o) {
  size_t last = o->batch < (int64_t)o->replicas ? (size_t)o->batch - 1 : o->replicas - 1;
  return device_of(o, last) + 1;
}

static void build(yk_build *b, yk_towers *out) {
  yk_graph *g = b->g;
  out->global_step = yk_global_step(g);
  out->strategy = yk__strategy_choose(&b->o, &out->why);
  out->replicas = b->o.replicas;
  yk__spread_open(b->where, g, &b->o, devices_used(&b->o), &b->spread);
  if (b->o.precision == YK_F16)
    YK_DEVICE(g, b->spread.home) { yk_loss_scale_new(g, 0, 0, &b->scale); }
  out->scale = b->scale;
  g->sync_norm = b->o.sync_batch_norm;
  for (size_t i = 0; i < b->o.replicas; i++)
    if (yk_replica_share(b->o.batch, b->o.replicas, i) > 0) tower(b, i);
  g->sync_norm = false;
  g->replica = 0;
  if (yk_graph_status(g) == YK_OK)                  /* else a tower may lack its gradients */
    YK_DEVICE(g, b->spread.home) { update(b, out); }
}

void yk_build_towers_at(const char *where, yk_graph *g, const yk_tower_options *options, yk_towers *out) {
  yk_build b = { .where = where, .g = g };
  *out = (yk_towers){ 0 };
  if (!take_options(where, g, options, &b.o)) return;
  b.loss = yk__calloc(b.o.replicas, sizeof *b.loss);
  b.correct = yk__calloc(b.o.replicas, sizeof *b.correct);
  b.grads = yk__calloc(b.o.replicas, sizeof *b.grads);
  if (b.loss == NULL || b.correct == NULL || b.grads == NULL)
    yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to build %zu towers", b.o.replicas);
  else build(&b, out);
  if (yk_graph_status(g) != YK_OK) *out = (yk_towers){ 0 };
  for (size_t i = 0; i < b.n; i++) yk__free(b.grads[i]);
  yk__free(b.loss);
  yk__free(b.correct);
  yk__free(b.grads);
}
