/*
 * batch_norm.c - the batch normalisation layer: variables, moving averages, and their update for any number of towers.
 *
 * Not an operation: it builds batch_norm_train or batch_norm_infer. Which statistics belong to which variable is kept in
 * collections of the graph, keyed by the variable's name, so that nothing outside the graph has to remember the towers.
 */
#include <stdio.h>
#include <string.h>
#include <yoke/math.h>
#include <yoke/nn.h>
#include "graph/slots.h"
#include "ops/norm.h"

/* Reads of every moving_mean and moving_variance, in pairs; and the ops that yk_batch_norm put into YK_UPDATE_OPS, one a pair. Each of several
 * steps in one graph has lists of its own. */
static const char MOVING[] = "moving", UPDATES[] = "updates";
enum { KEY = 32 };
static const char *list_of(const yk_graph *g, const char *list, char buf[KEY]) {
  snprintf(buf, KEY, "batch_norm/%s/%u", list, (unsigned)g->step);
  return buf;
}
/* The list that ops which run beside the step are in. */
static const char *beside(const yk_graph *g, char buf[KEY]) {
  snprintf(buf, KEY, g->step ? "%s/%u" : "%s", YK_UPDATE_OPS, (unsigned)g->step);
  return buf;
}

/* "batch_norm/<step>/<variable>/<what>", the caller's to free; NULL after a sticky ENOMEM. */
static char *key_of(const char *where, yk_graph *g, const char *variable, const char *what) {
  size_t n = sizeof "batch_norm///" + 10 + strlen(variable) + strlen(what);
  char *key = yk__alloc(n);
  if (key) snprintf(key, n, "batch_norm/%u/%s/%s", (unsigned)g->step, variable, what);
  else yk_graph_fail_at(where, g, YK_ENOMEM, "batch_norm: no memory for a collection's name");
  return key;
}

static void remember(const char *where, yk_graph *g, const char *variable, const char *what, yk_value v) {
  char *key = key_of(where, g, variable, what);
  if (key) yk_add_to_collection_at(where, g, key, v);
  yk__free(key);
}

/* All items of a collection, the caller's to free. NULL with *n 0: none, or a sticky ENOMEM. */
static yk_value *items(const char *where, yk_graph *g, const char *key, size_t *n) {
  size_t count = yk_get_collection(g, key, NULL, NULL, 0);
  yk_value *v = count ? yk__calloc(count, sizeof *v) : NULL;
  *n = 0;
  if (!count) return NULL;
  if (!v) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "batch_norm: no memory for %zu values", count);
    return NULL;
  }
  *n = yk_get_collection(g, key, NULL, v, count);
  return v;
}

/* moving -= (1 - momentum)*(moving - batch) for both. */
static yk_value update_op(const char *where, yk_graph *g, yk_variable *const moving[2], const yk_value batch[2], yk_value momentum) {
  yk_value op = { 0 };
  YK_COLOCATE(g, yk_read(moving[0])) op = yk_ema_update_at(where, g, 2, moving, batch, momentum);
  return op;
}

/* Note this use of the moving pair, be it through copies; the first one also makes the update op. */
static void keep_track(const char *where, yk_graph *g, yk_variable *const used[2], const yk_value batch[2], const yk_batch_norm_options *o) {
  const double momentum = o->momentum != 0 ? o->momentum : 0.99;
  yk_variable *moving[2] = { yk_variable_master(used[0]), yk_variable_master(used[1]) };
  yk_value m, op;
  size_t uses;
  char list[KEY], *key = key_of(where, g, yk_variable_name(moving[0]), "batch");
  if (!key) return;
  uses = yk_get_collection(g, key, NULL, NULL, 0);
  yk__free(key);
  for (int i = 0; i < 2; i++) remember(where, g, yk_variable_name(moving[i]), "batch", batch[i]);
  if (uses > 0) return;
  m = yk__scalar_like(where, g, batch[0], momentum);
  op = update_op(where, g, moving, batch, m);
  for (int i = 0; i < 2; i++) yk_add_to_collection_at(where, g, list_of(g, MOVING, list), yk_read(moving[i]));
  remember(where, g, yk_variable_name(moving[0]), "momentum", m);
  if (o->in_turn) remember(where, g, yk_variable_name(moving[0]), "in turn", m);
  yk_add_to_collection_at(where, g, list_of(g, UPDATES, list), op);
  yk_add_to_collection_at(where, g, beside(g, list), op);
}

/* ---- statistics over replicas ------------------------------------------------------------------------------------ */

/* Elements a channel of x, as f64. */
static yk_value elements(const char *where, yk_graph *g, yk_value x) {
  const yk_desc *d = yk_value_desc(g, x);
  yk_slice_attrs front = { .rank = 1, .size = { d->rank - 1 } };
  double known = 1;
  for (int i = 0; i < d->rank - 1; i++) known = d->dim[i] < 0 ? -1 : known < 0 ? known : known * (double)d->dim[i];
  if (known >= 0) return yk_scalar_at(where, g, YK_F64, known);
  yk_value dims = yk__build(where, g, &yk__op_slice, &front, 1, yk_shape_at(where, g, x));
  return yk_cast_at(where, g, yk_reduce_prod_at(where, g, dims, NULL), YK_F64);
}

/* A variance of n elements (f64) as one of the population they were drawn from. */
static yk_value unbiased(const char *where, yk_graph *g, yk_value variance, yk_value n) {
  yk_value one = yk_scalar_at(where, g, YK_F64, 1), others = yk_maximum_at(where, g, yk_sub_at(where, g, n, one), one);
  const yk_desc *d = yk_value_desc(g, variance);
  if (!d) return (yk_value){ 0 };
  return yk_mul_at(where, g, variance, yk_cast_at(where, g, yk_div_at(where, g, n, others), (yk_dtype)d->dtype));
}

/* As yk_moments(), but of no elements 0 and not NaN: a replica may have no rows. */
static void own_moments(const char *where, yk_graph *g, yk_value x, uint32_t naxes, const int32_t *axes, yk_value n, yk_value out[2]) {
  const yk_desc *d = yk_value_desc(g, x);
  yk_reduce_attrs over = { .naxes = naxes };
  if (d->dim[0] >= 0) {
    yk_moments_at(where, g, x, naxes, axes, false, &out[0], &out[1]);
    return;
  }
  for (uint32_t i = 0; i < naxes; i++) over.axis[i] = axes[i];
  yk_value many = yk_cast_at(where, g, yk_maximum_at(where, g, n, yk_scalar_at(where, g, YK_F64, 1)), (yk_dtype)d->dtype);
  out[0] = yk_div_at(where, g, yk_reduce_sum_at(where, g, x, &over), many);
  out[1] = yk_div_at(where, g, yk_reduce_sum_at(where, g, yk_squared_difference_at(where, g, x, out[0]), &over), many);
}

/* Mean and variance of x [..., C] of the statistics' type over all replicas: sum of w*mean and of w*(var + (mean - all)^2), with w the
 * part of all elements that this replica has; *count of them. `group`: one for each use of a pair in a step. */
static void moments_of_all(const char *where, yk_graph *g, yk_value x, uint64_t group, uint32_t replica, yk_value out[2], yk_value *count) {
  const yk_desc *d = yk_value_desc(g, x);
  int32_t axes[YK_MAX_RANK];
  yk_value own[2], n, w, off;
  if (!d) return;
  for (int i = 0; i < d->rank - 1; i++) axes[i] = i;
  yk_dtype t = (yk_dtype)d->dtype;
  n = elements(where, g, x);
  own_moments(where, g, x, (uint32_t)d->rank - 1, axes, n, own);
  *count = yk__replica_sum(where, g, n, group, replica);
  w = yk_cast_at(where, g, yk_div_at(where, g, n, *count), t);
  out[0] = yk__replica_sum(where, g, yk_mul_at(where, g, own[0], w), group + 1, replica);
  off = yk_squared_difference_at(where, g, own[0], out[0]);
  out[1] = yk__replica_sum(where, g, yk_mul_at(where, g, yk_add_at(where, g, own[1], off), w), group + 2, replica);
}

/* How often this replica has used the pair before: a layer that is called twice has statistics for each call. Uses are counted by what
 * they leave in a collection. */
static uint32_t uses_so_far(const char *where, yk_graph *g, const yk_variable *moving, yk_value use) {
  char replica[KEY], *key;
  snprintf(replica, sizeof replica, "replica %u", (unsigned)g->replica);
  key = key_of(where, g, yk_variable_name(moving), replica);
  size_t n = key ? yk_get_collection(g, key, NULL, NULL, 0) : 0;
  if (key) yk_add_to_collection_at(where, g, key, use);
  yk__free(key);
  return (uint32_t)n;
}

/* (x - mean)/sqrt(var + epsilon)*gamma + beta; the moving pair follows the statistics of all, which the first use knows. */
static yk_value synchronised(const char *where, yk_graph *g, yk_value x, yk_value gamma, yk_value beta, yk_variable *const moving[2],
                             const yk_batch_norm_options *o) {
  const yk_desc *d = yk_value_desc(g, x);
  yk_variable *pair[2] = { yk_variable_master(moving[0]), yk_variable_master(moving[1]) };
  yk_dtype given = (yk_dtype)d->dtype, t = (yk_dtype)yk__stat_type(d->dtype);
  yk_value all[2] = { { 0 }, { 0 } }, count = { 0 }, scale, y;
  yk_norm_attrs a = { .epsilon = o->epsilon };
  uint32_t uses = uses_so_far(where, g, pair[0], x), replica = g->sync_norm ? g->replica : uses;   /* asked for one by one: each use is one */
  const uint32_t use[2] = { g->sync_norm ? uses : 0, g->step };
  uint64_t group = yk__hash(use, sizeof use, yk__hash(yk_variable_name(pair[0]), strlen(yk_variable_name(pair[0])), 7));
  if (given != t) x = yk_cast_at(where, g, x, t);
  moments_of_all(where, g, x, group, replica, all, &count);
  scale = yk_mul_at(where, g, gamma, yk_rsqrt_at(where, g, yk_add_at(where, g, all[1], yk_scalar_at(where, g, t, yk__norm_epsilon(&a)))));
  y = yk_add_at(where, g, yk_mul_at(where, g, yk_sub_at(where, g, x, all[0]), scale), beta);
  if (given != t) y = yk_cast_at(where, g, y, given);
  if (replica > 0 || !y.id) return yk__outputs(g, 1, &y);
  if (o->unbiased) all[1] = unbiased(where, g, all[1], count);
  keep_track(where, g, pair, all, o);
  return yk__outputs(g, 1, &y);
}

/* gamma or beta: the variable, or its constant stand-in of the same shape. */
static yk_value parameter(const char *where, yk_graph *g, const char *name, bool leave_out, bool ones, yk_dtype t, yk_shape shape,
                          yk_value like) {
  yk_init init = ones ? YK_ONES : YK_ZEROS;
  yk_variable *v;
  if (leave_out) return yk__build(where, g, ones ? &yk__op_ones_like : &yk__op_zeros_like, NULL, 1, like);
  v = yk_get_variable_at(where, g, name, t, shape, init, NULL);
  return v ? yk_read(v) : (yk_value){ 0 };
}

yk_value yk_batch_norm_at(const char *where, yk_graph *g, yk_value x, const yk_batch_norm_options *options) {
  static const yk_variable_options hidden = { .not_trainable = true, .regularizer = { .none = true } };
  char text[YK__DESC_TEXT];
  yk_batch_norm_options o = options ? *options : (yk_batch_norm_options){ 0 };
  yk_norm_attrs a = { .epsilon = o.epsilon };
  const yk_desc *d = yk_value_desc(g, x);
  yk_variable *moving[2] = { NULL, NULL };
  yk_value gamma, beta, y, batch[2];
  yk_shape shape = { .rank = 1 };
  yk_dtype t;
  if (!d) return yk__build(where, g, &yk__op_identity, NULL, 1, x);   /* a missing value: reported as by any other builder */
  if (d->rank < 2 || d->dim[d->rank - 1] < 0)
    return yk_graph_fail_at(where, g, YK_EINVAL, "batch_norm: x is %s, expected [..., C] with C known", yk__desc_text(d, text, sizeof text));
  if (!(YK_T(d->dtype) & YK_FLOATS))
    return yk_graph_fail_at(where, g, YK_EINVAL, "batch_norm: x is %s, expected floats", yk__desc_text(d, text, sizeof text));
  if (o.momentum < 0 || o.momentum > 1)
    return yk_graph_fail_at(where, g, YK_EINVAL, "batch_norm: momentum is %g, expected 0 to 1", o.momentum);
  t = (yk_dtype)yk__stat_type(d->dtype);
  shape.dim[0] = d->dim[d->rank - 1];
  moving[0] = yk_get_variable_at(where, g, "moving_mean", t, shape, YK_ZEROS, &hidden);
  YK_COLOCATE(g, yk_read(moving[0]))           /* one operation updates both, wherever variables are spread to */
    moving[1] = yk_get_variable_at(where, g, "moving_variance", t, shape, YK_ONES, &hidden);
  if (!moving[0] || !moving[1]) return (yk_value){ 0 };
  gamma = parameter(where, g, "gamma", o.no_scale, true, t, shape, yk_read(moving[0]));
  beta = parameter(where, g, "beta", o.no_center, false, t, shape, yk_read(moving[0]));
  if (!o.training)
    return yk__build(where, g, &yk__op_batch_norm_infer, &a, 5, x, gamma, beta, yk_read(moving[0]), yk_read(moving[1]));
  if (o.sync || g->sync_norm) return synchronised(where, g, x, gamma, beta, moving, &o);
  y = yk__build(where, g, &yk__op_batch_norm_train, &a, 3, x, gamma, beta);
  if (!y.id) return y;
  batch[0] = yk_output(g, y, 1);
  batch[1] = yk_output(g, y, 2);
  if (o.unbiased) batch[1] = unbiased(where, g, batch[1], elements(where, g, x));
  keep_track(where, g, moving, batch, &o);
  return yk__outputs(g, 1, &y);
}

/* ---- towers ------------------------------------------------------------------------------------------------ */

/* What was remembered first; {0} without any, and after a sticky ENOMEM. */
static yk_value first_of(const char *where, yk_graph *g, const yk_variable *moving, const char *what) {
  char *key = key_of(where, g, yk_variable_name(moving), what);
  yk_value v = { 0 };
  if (key) yk_get_collection(g, key, NULL, &v, 1);
  yk__free(key);
  return v;
}

static yk_value times(const char *where, yk_graph *g, yk_value a, yk_value b) { return yk__build(where, g, &yk__op_mul, NULL, 2, a, b); }

/*
 * n updates in turn, moving = m*moving + (1 - m)*v[i], are one of momentum m^n by the mean of v weighted by m^(n-1-i). `m` becomes that
 * momentum.
 */
static yk_value mean_in_turn(const char *where, yk_graph *g, size_t n, const yk_value *v, yk_value *m) {
  const yk_value each = *m, one = yk__scalar_like(where, g, each, 1);
  yk_value sum = v[0], weights = one;
  for (size_t i = 1; i < n; i++) {
    sum = yk__build(where, g, &yk__op_add, NULL, 2, times(where, g, sum, each), v[i]);
    weights = yk__build(where, g, &yk__op_add, NULL, 2, times(where, g, weights, each), one);
    *m = times(where, g, *m, each);
  }
  return yk__build(where, g, &yk__op_div, NULL, 2, sum, weights);
}

/* Mean over the uses of one moving variable, and the momentum to follow it with; {0} without any. *uses tells how many there were. */
static yk_value mean_over_uses(const char *where, yk_graph *g, const yk_variable *moving, bool in_turn, size_t *uses, yk_value *momentum) {
  char *key = key_of(where, g, yk_variable_name(moving), "batch");
  yk_value *v, sum = { 0 };
  if (!key) return sum;
  v = items(where, g, key, uses);
  if (*uses == 1) sum = v[0];
  if (*uses > 1) {
    YK_COLOCATE(g, yk_read(moving)) {
      if (in_turn) {
        sum = mean_in_turn(where, g, *uses, v, momentum);
      } else {
        sum = yk__build_n(where, g, &yk__op_add_n, NULL, *uses, v, 0);
        sum = times(where, g, sum, yk__scalar_like(where, g, sum, 1.0 / (double)*uses));
      }
    }
  }
  yk__free(v);
  yk__free(key);
  return sum;
}

/* The copies of a pair follow the same values, so that all agree. `op`: of the pair itself; the result stands for all. */
static yk_value update_copies(const char *where, yk_graph *g, yk_variable *const moving[2], const yk_value mean[2], yk_value momentum,
                              yk_value op) {
  yk_value both[2] = { op };
  for (uint32_t i = 0; i < g->nvariable; i++) {
    yk_variable *copy[2] = { g->variable[i], NULL };
    if (copy[0]->master != moving[0]) continue;
    copy[1] = yk__variable_copy(where, g, moving[1], copy[0]->copy, yk_variable_device(copy[0]));
    if (!copy[1]) return (yk_value){ 0 };
    both[1] = update_op(where, g, copy, mean, momentum);
    both[0] = yk_group_at(where, g, 2, both);
  }
  return both[0];
}

/* The update of one pair: `single`, its first op, unless there were more uses, or a guard that did not stand then. */
static yk_value update_pair(const char *where, yk_graph *g, yk_variable *const moving[2], yk_value single) {
  const yk_value each = first_of(where, g, moving[0], "momentum");
  const bool in_turn = first_of(where, g, moving[0], "in turn").id != 0;
  size_t uses = 0;
  yk_value mean[2], momentum = each;
  for (int i = 0; i < 2; i++) {
    momentum = each;
    mean[i] = mean_over_uses(where, g, moving[i], in_turn, &uses, &momentum);
  }
  if (uses == 0) return single;
  if (uses > 1 || yk_guard(g).id != 0) single = update_op(where, g, moving, mean, momentum);
  return update_copies(where, g, moving, mean, momentum, single);
}

yk_value yk_batch_norm_updates_at(const char *where, yk_graph *g) {
  size_t nmoving, nops;
  char list[KEY];
  yk_value *moving = items(where, g, list_of(g, MOVING, list), &nmoving);
  yk_value *op = items(where, g, list_of(g, UPDATES, list), &nops), all = { 0 };
  for (size_t i = 0; i < nops && 2 * i + 1 < nmoving; i++) {
    yk_variable *pair[2] = { yk_variable_of(g, moving[2 * i]), yk_variable_of(g, moving[2 * i + 1]) };
    op[i] = update_pair(where, g, pair, op[i]);
  }
  all = yk_group_at(where, g, nops, op);
  yk__free(moving);
  yk__free(op);
  return all;
}

yk_value yk_update_ops_at(const char *where, yk_graph *g) {
  size_t nall, nown, kept = 0;
  yk_value averages = yk_batch_norm_updates_at(where, g), group = { 0 };
  char list[KEY];
  yk_value *all = items(where, g, beside(g, list), &nall);
  yk_value *own = items(where, g, list_of(g, UPDATES, list), &nown);
  for (size_t i = 0; i < nall; i++) {
    bool mine = false;
    for (size_t k = 0; k < nown; k++) mine |= own[k].id == all[i].id;
    if (!mine) all[kept++] = all[i];
  }
  if (kept > 0) {
    yk_value rest = yk_group_at(where, g, kept, all);
    group = yk_group_at(where, g, 2, (yk_value[]){ averages, rest });
  }
  yk__free(all);
  yk__free(own);
  return yk__outputs(g, 1, kept > 0 ? &group : &averages);
}

/* ---- moments ------------------------------------------------------------------------------------------------- */

void yk_moments_at(const char *where, yk_graph *g, yk_value x, uint32_t naxes, const int32_t *axes, bool keepdims, yk_value *mean,
                   yk_value *variance) {
  yk_reduce_attrs wide = { .naxes = naxes, .keepdims = 1 }, a;
  yk_value centre, m = { 0 }, v = { 0 };
  if (naxes > YK_MAX_RANK) {
    yk_graph_fail_at(where, g, YK_EINVAL, "moments: %u axes, at most %d are possible", naxes, YK_MAX_RANK);
  } else {
    for (uint32_t i = 0; i < naxes; i++) wide.axis[i] = axes[i];
    a = wide;
    a.keepdims = keepdims;
    centre = yk__build(where, g, &yk__op_reduce_mean, &wide, 1, x);
    m = keepdims ? centre : yk__build(where, g, &yk__op_reduce_mean, &a, 1, x);
    v = yk__build(where, g, &yk__op_reduce_mean, &a, 1, yk__build(where, g, &yk__op_squared_difference, NULL, 2, x, centre));
  }
  *mean = m;
  *variance = v;
  yk__outputs(g, 1, mean);
  yk__outputs(g, 1, variance);
}
