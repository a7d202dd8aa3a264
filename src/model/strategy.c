/*
 * strategy.c - home, sharded and mirrored variables as places of nodes.
 *
 * Mirrored gradients are all-reduced as a reduce-scatter and an all-gather: each bucket has an owner, which sums what the
 * towers send, and every device takes the sum from there. Owners are chosen by bytes, so each link carries its share, and a
 * bucket is summed as soon as its gradients are there, while the backward pass goes on.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/slots.h"
#include "model/strategy.h"
#include "op/registry.h"
#include "tensor/desc.h"
#include "train/train.h"

enum { BUCKET_BYTES = 256 * 1024, BUCKET_MEMBERS = 16 };   /* small gradients travel together; 16 is what one split gives back */

const char *yk_strategy_name(yk_strategy strategy) {
  static const char *const name[] = { "auto", "home", "sharded", "mirrored" };
  return (unsigned)strategy < sizeof name / sizeof *name ? name[strategy] : NULL;
}

yk_strategy yk__strategy_choose(const yk_tower_options *o, const char **why) {
  *why = "asked for";
  if (o->strategy != YK_STRATEGY_AUTO) return o->strategy;
  *why = o->ndevices > 1 ? "chosen by auto: sums and updates run on all devices" : "chosen by auto: one device";
  return o->ndevices > 1 ? YK_STRATEGY_SHARDED : YK_STRATEGY_HOME;
}

void yk__spread_open(const char *where, yk_graph *g, const yk_tower_options *o, size_t used, yk_spread *out) {
  const char *why;
  *out = (yk_spread){ .where = where, .g = g, .strategy = yk__strategy_choose(o, &why), .devices = o->devices, .ncopies = 1,
                      .home = o->home != NULL ? o->home : "/cpu:0" };
  if (out->strategy == YK_STRATEGY_MIRRORED) out->ncopies = used;
  if (out->strategy == YK_STRATEGY_SHARDED)
    out->setter = yk_replica_setter_new_at(where, g, &(yk_replica_options){ .worker_device = "", .ndevices = used,
                                                                              .devices = o->devices, .by_size = true });
}

/* ---- variables ------------------------------------------------------------------------------------------------------ */

static const char *variables_at(const yk_op *op, const char *name, const char *so_far, void *arg) {
  (void)name;
  (void)so_far;
  return op == &yk__op_variable ? arg : NULL;
}

/* Lives as long as the graph: scopes that were open inside may be entered again. */
typedef struct lender { const char *where, *device; uint32_t k; } lender;

/* Inside a tower of device k: its own copy. */
static yk_variable *lend(yk_graph *g, yk_variable *v, void *arg) {
  const lender *l = arg;
  return v->master != NULL ? v : yk__variable_copy(l->where, g, v, l->k, l->device);
}

void yk__spread_push(const yk_spread *s, size_t k) {
  lender *l;
  if (s->g->status != YK_OK) return;
  if (s->strategy == YK_STRATEGY_SHARDED) yk_replica_push_at(s->where, s->g, s->setter);
  else yk_device_push_fn_at(s->where, s->g, variables_at, (void *)(uintptr_t)(s->strategy == YK_STRATEGY_HOME ? s->home : s->devices[0]));
  if (s->strategy != YK_STRATEGY_MIRRORED || k == 0 || s->g->status != YK_OK) return;
  l = yk__bump(&s->g->arena, sizeof *l);
  if (l != NULL) *l = (lender){ s->where, yk__bump_str(&s->g->arena, s->devices[k]), (uint32_t)k };
  if (l == NULL || l->device == NULL) {
    yk_graph_fail_at(s->where, s->g, YK_ENOMEM, "no memory to lend variables to '%s'", s->devices[k]);
    return;
  }
  yk__scope_lend(s->g, lend, l);
}

void yk__spread_pop(const yk_spread *s) {
  if (s->g->status == YK_OK) yk__scope_lend(s->g, NULL, NULL);
  yk_device_pop_at(s->where, s->g);
}

size_t yk__spread_variables(const yk_spread *s, size_t k, yk_variable **out, size_t max) {
  size_t n = 0, total = yk_variable_count(s->g);
  for (size_t i = 0; i < total; i++) {
    yk_variable *v = yk_variable_get(s->g, i);
    if (!yk_variable_trainable(v)) continue;
    if (out != NULL && n < max)
      out[n] = s->strategy == YK_STRATEGY_MIRRORED && k > 0 ? yk__variable_copy(s->where, s->g, v, (uint32_t)k, s->devices[k]) : v;
    n++;
  }
  return n;
}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

/* Nodes made between these two sit on `device`, whatever scopes are open. */
static void open_place(const yk_spread *s, const char *device) {
  yk_device_push_at(s->where, s->g, NULL);
  yk_device_push_at(s->where, s->g, device);
}

static void close_place(const yk_spread *s) {
  yk_device_pop_at(s->where, s->g);
  yk_device_pop_at(s->where, s->g);
}

/* What a sum is made of. */
typedef struct sums {
  const yk_spread *s;
  size_t ntowers, nvars;
  const yk_gradient *const *tower;
  yk_gradient *out;                  /* [ncopies][nvars] */
  const yk_gradient **row;           /* [ntowers] */
  yk_value *flat;                    /* [max(ntowers, BUCKET_MEMBERS)] */
  uint64_t *load;                    /* [ncopies] bytes that each device has summed so far */
} sums;

/* Where variable i is at home. */
static const char *home_of(const sums *x, size_t i) {
  const char *device = x->tower[0][i].variable != NULL ? yk_variable_device(x->tower[0][i].variable) : "";
  return device[0] != '\0' ? device : x->s->home;
}

/* The towers' gradients of variable i, summed on `device`. */
static yk_value sum_one(const sums *x, size_t i, const char *device) {
  yk_gradient out = { 0 };
  for (size_t t = 0; t < x->ntowers; t++) x->row[t] = &x->tower[t][i];
  open_place(x->s, device);
  yk_sum_gradients_at(x->s->where, x->s->g, x->ntowers, x->row, 1, &out);
  close_place(x->s);
  return out.grad;
}

/* Variable i of device k, and what it is updated with. */
static void give(const sums *x, size_t k, size_t i, yk_value grad) {
  yk_variable *v = x->tower[0][i].variable;
  if (k > 0 && v != NULL) v = yk__variable_copy(x->s->where, x->s->g, v, (uint32_t)k, x->s->devices[k]);
  x->out[k * x->nvars + i] = (yk_gradient){ grad, v };
}

static uint64_t bytes_of(const yk_variable *v) {
  return (uint64_t)yk__desc_count(&v->desc) * yk_dtype_bytes((yk_dtype)v->desc.dtype);
}

static size_t next_owner(const sums *x, uint64_t bytes) {
  size_t k = 0;
  for (size_t i = 1; i < x->s->ncopies; i++)
    if (x->load[i] < x->load[k]) k = i;
  x->load[k] += bytes;
  return k;
}

static void reduce_alone(const sums *x, size_t i) {
  const yk_spread *s = x->s;
  yk_variable *v = x->tower[0][i].variable;
  yk_value sum = sum_one(x, i, s->devices[next_owner(x, v != NULL ? bytes_of(v) : 0)]);
  for (size_t k = 0; k < s->ncopies && s->g->status == YK_OK; k++) {
    yk_value here = sum;
    open_place(s, s->devices[k]);
    if (sum.id != 0 && !yk_gradient_rows(s->g, sum, NULL, NULL)) here = yk_identity_at(s->where, s->g, sum);
    close_place(s);
    give(x, k, i, here);
  }
}

/* The towers' gradients of the bucket, each tower's as one vector, summed on the owner. */
static yk_value reduce_flat(const sums *x, const size_t *member, size_t n, size_t owner) {
  const yk_spread *s = x->s;
  yk_value part[BUCKET_MEMBERS], sum;
  for (size_t t = 0; t < x->ntowers && s->g->status == YK_OK; t++) {
    open_place(s, yk_value_device(s->g, x->tower[t][member[0]].grad));
    for (size_t j = 0; j < n; j++) part[j] = yk_reshape_at(s->where, s->g, x->tower[t][member[j]].grad, YK_SHAPE(-1));
    x->flat[t] = yk_concat_at(s->where, yk_named(s->g, "bucket"), n, part, 0);
    close_place(s);
  }
  open_place(s, s->devices[owner]);
  sum = x->ntowers == 1 ? x->flat[0] : yk_add_n_at(s->where, yk_named(s->g, "sum"), x->ntowers, x->flat);
  close_place(s);
  return sum;
}

static void reduce_bucket(const sums *x, const size_t *member, size_t n) {
  const yk_spread *s = x->s;
  int64_t sizes[BUCKET_MEMBERS];
  uint64_t bytes = 0;
  yk_value sum, part[BUCKET_MEMBERS];
  if (n == 1) {
    reduce_alone(x, member[0]);
    return;
  }
  for (size_t j = 0; j < n; j++) {
    sizes[j] = yk__desc_count(&x->tower[0][member[j]].variable->desc);
    bytes += bytes_of(x->tower[0][member[j]].variable);
  }
  sum = reduce_flat(x, member, n, next_owner(x, bytes));
  for (size_t k = 0; k < s->ncopies && s->g->status == YK_OK; k++) {
    open_place(s, s->devices[k]);
    yk_split_at(s->where, s->g, sum, 0, n, sizes, part);
    for (size_t j = 0; j < n && s->g->status == YK_OK; j++)
      give(x, k, member[j], yk_reshape_at(s->where, s->g, part[j], yk__desc_shape(&x->tower[0][member[j]].variable->desc)));
    close_place(s);
  }
}

/* Every tower has a dense gradient of variable i that is small enough to travel with others. */
static bool is_small(const sums *x, size_t i) {
  const yk_variable *v = x->tower[0][i].variable;
  if (v == NULL || v->desc.dtype != YK_F32 || bytes_of(v) * 2 > BUCKET_BYTES || bytes_of(v) == 0) return false;
  for (size_t t = 0; t < x->ntowers; t++) {
    yk_value grad = x->tower[t][i].grad;
    if (x->tower[t][i].variable != v || grad.id == 0 || yk_gradient_rows(x->s->g, grad, NULL, NULL)) return false;
  }
  return true;
}

/* The backward pass ends with the first variables: buckets are filled from the last one on. */
static void all_reduce(const sums *x) {
  size_t member[BUCKET_MEMBERS], n = 0;
  uint64_t bytes = 0;
  yk_name_scope_push_at(x->s->where, x->s->g, "all_reduce");
  for (size_t i = x->nvars; i-- > 0 && x->s->g->status == YK_OK;) {
    if (!is_small(x, i)) {
      reduce_alone(x, i);
      continue;
    }
    uint64_t own = bytes_of(x->tower[0][i].variable);
    if (n == BUCKET_MEMBERS || (n > 0 && bytes + own > BUCKET_BYTES)) {
      reduce_bucket(x, member, n);
      n = 0;
      bytes = 0;
    }
    member[n++] = i;
    bytes += own;
  }
  if (n > 0 && x->s->g->status == YK_OK) reduce_bucket(x, member, n);
  yk_name_scope_pop_at(x->s->where, x->s->g);
}

void yk__spread_sum(const yk_spread *s, size_t ntowers, const yk_gradient *const *tower, size_t nvars, yk_gradient *sum) {
  size_t most = ntowers > BUCKET_MEMBERS ? ntowers : BUCKET_MEMBERS;
  sums x = { .s = s, .ntowers = ntowers, .nvars = nvars, .tower = tower, .out = sum };
  x.row = yk__calloc(ntowers + 1, sizeof *x.row);
  x.flat = yk__calloc(most, sizeof *x.flat);
  x.load = yk__calloc(s->ncopies, sizeof *x.load);
  if (x.row == NULL || x.flat == NULL || x.load == NULL) {
    yk_graph_fail_at(s->where, s->g, YK_ENOMEM, "no memory to sum the gradients of %zu variables", nvars);
  } else if (s->ncopies > 1) {
    all_reduce(&x);
  } else {
    for (size_t i = 0; i < nvars && s->g->status == YK_OK; i++)
      give(&x, 0, i, sum_one(&x, i, home_of(&x, i)));
  }
  yk__free(x.row);
  yk__free(x.flat);
  yk__free(x.load);
}

void yk__spread_clip(const yk_spread *s, double norm, size_t nvars, yk_gradient *sum) {
  yk_value have = yk_clip_by_global_norm_at(s->where, s->g, norm, nvars, sum);
  for (size_t k = 1; k < s->ncopies; k++) yk__clip_from(s->where, s->g, have, norm, nvars, sum + k * nvars);
}
