/*
 * sync_replicas.c - synchronous replicas of a graph: what workers fetch, what the chief feeds, and the chief's thread.
 *
 * A worker's step fetches gradients and the chief's step is fed their means: two ordinary steps, with the core between them. So
 * optimizer, schedule, clipping and global step are the graph's as ever, and no step waits for another.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "train/options.h"
#include "train/sync.h"
#include "train/train.h"

typedef struct shared {              /* a variable that is trained */
  yk_variable *v;
  bool sparse;
  yk_value like;                     /* a sparse gradient of it */
  yk_value mean[2];                  /* fed: dense, or values and rows */
} shared;

struct yk_sync_replicas {
  yk_graph *g;
  yk_sync_options o;
  yk_sync_core *core;
  size_t nlosses, nvar, nfetch;      /* nfetch: of gradients, two for a sparse one */
  shared *var;                       /* [nvar] */
  yk_value *fetch;                   /* [nlosses][nfetch] */
  yk_value *fed;                     /* [nfetch] the means */
  yk_tensor **mean;                  /* [nfetch] */
  yk_value train, after, averages;   /* the update; the global step after it */
  yk_value good;                     /* with a guard: did it change anything? */
  yk_session *s;
  yk_step *update, *average;         /* average NULL: none */
  yk_thread chief;
  bool started;
};

struct yk_sync_worker {
  yk_sync_replicas *sync;
  yk_step *step;
  size_t nfetch;                     /* the user's */
  int32_t index;
};

yk_sync_core *yk__sync_core_of(yk_sync_replicas *sync) { return sync->core; }

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static const char *name_of(const yk_sync_replicas *x) { return x->o.name ? x->o.name : "sync_replicas"; }

/* Which variables have gradients: the same of all losses. pair: [nlosses][n]. */
static void choose(const char *where, yk_sync_replicas *x, size_t n, const yk_gradient *pair) {
  for (size_t i = 0; i < n; i++) {
    bool has = pair[i].grad.id != 0, sparse = true;
    for (size_t l = 0; l < x->nlosses; l++) {
      yk_value grad = pair[l * n + i].grad;
      if ((grad.id != 0) != has) {
        yk_graph_fail_at(where, x->g, YK_EINVAL, "%s: loss %zu %s on variable '%s', but loss 0 %s: all must train the same variables",
                         name_of(x), l, has ? "does not depend" : "depends", yk_variable_name(pair[i].variable), has ? "does" : "does not");
        return;
      }
      sparse = sparse && yk_gradient_rows(x->g, grad, NULL, NULL);
    }
    if (has) x->var[x->nvar++] = (shared){ .v = pair[i].variable, .sparse = sparse, .like = pair[i].grad };
  }
}

/* What worker steps of loss `l` fetch: its gradients, or values and rows of them. */
static void collect(const char *where, yk_sync_replicas *x, size_t n, const yk_gradient *pair, size_t l) {
  yk_value *out = x->fetch + l * x->nfetch;
  for (size_t i = 0, k = 0; i < n && x->g->status == YK_OK; i++) {
    if (k == x->nvar || pair[l * n + i].variable != x->var[k].v) continue;
    shared *s = &x->var[k++];
    if (s->sparse && !yk__rows_flat(where, x->g, pair[l * n + i].grad, &out[0], &out[1]))
      yk_graph_fail_at(where, x->g, YK_EUNSUPPORTED, "%s: the rows of '%s' have no known shape", name_of(x), yk_variable_name(s->v));
    if (!s->sparse) out[0] = pair[l * n + i].grad;
    out += s->sparse ? 2 : 1;
  }
}

static void gradients(const char *where, yk_sync_replicas *x, const yk_value *losses) {
  size_t n = yk_compute_gradients_at(where, x->g, losses[0], 0, NULL, NULL, 0);
  yk_gradient *pair = yk__calloc(n * x->nlosses + 1, sizeof *pair);
  x->var = pair ? yk__calloc(n + 1, sizeof *x->var) : NULL;
  if (x->var == NULL) yk_graph_fail_at(where, x->g, YK_ENOMEM, "no memory for the gradients of %zu workers", x->nlosses);
  for (size_t l = 0; l < x->nlosses && x->g->status == YK_OK; l++) yk_compute_gradients_at(where, x->g, losses[l], 0, NULL, pair + l * n, n);
  if (x->g->status == YK_OK) choose(where, x, n, pair);
  for (size_t i = 0; i < x->nvar; i++) x->nfetch += x->var[i].sparse ? 2 : 1;
  if (x->g->status == YK_OK) {
    x->fetch = yk__calloc(x->nlosses * x->nfetch + 1, sizeof *x->fetch);
    x->fed = x->fetch ? yk__calloc(x->nfetch + 1, sizeof *x->fed) : NULL;
    if (x->fed == NULL) yk_graph_fail_at(where, x->g, YK_ENOMEM, "no memory for the gradients of %zu workers", x->nlosses);
  }
  for (size_t l = 0; l < x->nlosses && x->g->status == YK_OK; l++) collect(where, x, n, pair, l);
  yk__free(pair);
}

/* A value that the chief feeds, beside the variable. */
static yk_value place_for(const char *where, yk_graph *g, const shared *s, yk_dtype dtype, yk_shape shape) {
  yk_value v;
  yk_colocate_push_at(where, g, yk_read(s->v));
  v = yk_placeholder_at(where, g, "mean", dtype, shape);
  yk_colocate_pop_at(where, g);
  return v;
}

static yk_value mean_of(const char *where, yk_graph *g, shared *s) {
  const yk_desc *d = yk_variable_desc(s->v);
  yk_shape shape = yk__desc_shape(d);
  yk_value rows;
  if (s->sparse) shape.dim[0] = -1;
  s->mean[0] = place_for(where, g, s, (yk_dtype)d->dtype, shape);
  if (!s->sparse || g->status != YK_OK) return s->mean[0];
  s->mean[1] = place_for(where, g, s, YK_I64, YK_SHAPE(-1));
  yk_colocate_push_at(where, g, yk_read(s->v));
  rows = yk__rows_like(where, g, s->mean[0], s->mean[1], s->like);
  yk_colocate_pop_at(where, g);
  return rows;
}

/* The chief's nodes, on the device of the global step unless they belong to a variable. */
static void update(const char *where, yk_sync_replicas *x) {
  yk_graph *g = x->g;
  yk_gradient *mean = yk__calloc(x->nvar + 1, sizeof *mean);
  yk_value *fed = x->fed;
  if (mean == NULL) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the means of %zu variables", x->nvar);
    return;
  }
  for (size_t i = 0; i < x->nvar && g->status == YK_OK; i++) {
    shared *s = &x->var[i];
    mean[i] = (yk_gradient){ mean_of(where, g, s), s->v };
    *fed++ = s->mean[0];
    if (s->sparse) *fed++ = s->mean[1];
  }
  if (g->status == YK_OK && x->o.edit) x->o.edit(g, x->nvar, mean, x->o.arg);
  if (x->o.guard && g->status == YK_OK) {
    yk_value rate = x->o.optimizer.learning_rate;
    x->good = yk_all_good_at(where, g, rate.id != 0, &rate, x->nvar, mean, x->o.nan_only);
  }
  if (x->good.id != 0) yk_guard_push_at(where, g, x->good);
  x->train = yk_apply_gradients_at(where, g, &x->o.optimizer, x->nvar, mean, x->o.global_step);
  if (x->good.id != 0) yk_guard_pop_at(where, g);
  if (g->status == YK_OK) {
    yk_control_push_at(where, g, 1, &x->train);
    x->after = yk_identity_at(where, g, yk_read(x->o.global_step));
    yk_control_pop_at(where, g);
  }
  if (x->o.average_decay > 0 && g->status == YK_OK)
    x->averages = yk_moving_average_at(where, g, x->o.average_decay, x->o.global_step, x->o.naverages, x->o.averages);
  yk__free(mean);
}

static void build(const char *where, yk_sync_replicas *x, const yk_value *losses) {
  yk_graph *g = x->g;
  const char *device;
  gradients(where, x, losses);
  if (g->status == YK_OK && x->o.global_step == NULL) x->o.global_step = yk_global_step_at(where, g);
  if (g->status != YK_OK) return;
  device = yk_variable_device(x->o.global_step);
  yk_name_scope_push_at(where, g, name_of(x));
  yk_device_push_at(where, g, NULL);
  yk_device_push_at(where, g, device[0] ? device : "/cpu:0");
  update(where, x);
  yk_device_pop_at(where, g);
  yk_device_pop_at(where, g);
  yk_name_scope_pop_at(where, g);
}

/* The host's half: core and tensors. */
static yk_code equip(yk_sync_replicas *x) {
  yk_sync_slot *slots = yk__calloc(x->nvar + 1, sizeof *slots);
  if (slots == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < x->nvar; i++)
    slots[i] = (yk_sync_slot){ yk_variable_name(x->var[i].v), *yk_variable_desc(x->var[i].v), x->var[i].sparse };
  yk_code rc = yk__sync_new(&x->o, (uint32_t)x->nvar, slots, &x->core);
  yk__free(slots);
  if (rc != YK_OK) return rc;
  x->mean = yk__calloc(x->nfetch + 1, sizeof(yk_tensor *));
  if (x->mean == NULL) return YK_ENOMEM;
  for (size_t i = 0, k = 0; i < x->nvar; k += x->var[i++].sparse ? 2 : 1) {
    const yk_desc *d = yk_variable_desc(x->var[i].v);
    if (!x->var[i].sparse) YK_TRY(yk_tensor_new((yk_dtype)d->dtype, yk__desc_shape(d), &x->mean[k]));
  }
  return YK_OK;
}

static yk_code check(const char *where, yk_graph *g, const yk_sync_options *o, size_t nlosses, const yk_value *losses) {
  if (nlosses == 0 || losses == NULL) {
    yk_graph_fail_at(where, g, YK_EINVAL, "synchronous replicas need a loss");
    return yk_graph_status(g);
  }
  int32_t total = o->total_num_replicas > 0 ? o->total_num_replicas : o->replicas_to_aggregate;
  if (total >= 1 && nlosses > (size_t)total)
    yk_graph_fail_at(where, g, YK_EINVAL, "%s: %zu losses for %d replicas", o->name ? o->name : "sync_replicas", nlosses, total);
  if (o->global_step && o->global_step->g != g) yk_graph_fail_at(where, g, YK_EINVAL, "the global step is a variable of another graph");
  if (!(o->average_decay >= 0 && o->average_decay <= 1))
    yk_graph_fail_at(where, g, YK_EINVAL, "the decay of a moving average lies in [0, 1], not %g", o->average_decay);
  return yk_graph_status(g);
}

yk_code yk_sync_replicas_build_at(const char *where, yk_graph *g, const yk_sync_options *options, size_t nlosses, const yk_value *losses,
                                  yk_sync_replicas **out) {
  if (g == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_sync_replicas_build: NULL graph or output");
  yk_sync_options o = { 0 };
  YK_TRY(yk_graph_status(g));
  if (yk__options_take(&o, sizeof o, options, "yk_sync_options") != YK_OK)
    yk_graph_fail_at(where, g, YK_EINVAL, "%s", yk_error_message());
  YK_TRY(yk_graph_status(g));
  YK_TRY(check(where, g, &o, nlosses, losses));
  yk_sync_replicas *x = yk__calloc(1, sizeof *x);
  if (x == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for synchronous replicas"), yk_graph_status(g);
  x->g = yk__graph_ref(g);
  x->o = o;
  x->nlosses = nlosses;
  build(where, x, losses);
  yk_code rc = g->status == YK_OK ? equip(x) : g->status;
  if (rc != YK_OK && g->status == YK_OK) yk_graph_fail_at(where, g, rc, "%s", yk_error_message());
  x->o.name = NULL;                              /* the caller's; the core has a copy */
  if (rc == YK_OK) *out = x;
  else yk_sync_replicas_free(x);
  return rc == YK_OK ? rc : yk_graph_status(g);
}

/* ---- the chief --------------------------------------------------------------------------------------------------- */

static int64_t as_int(const yk_tensor *t) { return (int64_t)yk_tensor_at(t, 0); }

static double element(const yk_tensor *t, int64_t i) {
  return yk_tensor_desc(t)->dtype == YK_F32 ? (double)((const float *)yk_tensor_data(t))[i] : yk_tensor_at(t, i);
}

/* Does one of these tensors, gradients as workers fetch and the chief feeds them, hold what the guard looks for? The variable, or NULL. */
static const char *not_finite(const yk_sync_replicas *x, const yk_tensor *const *grad) {
  for (size_t i = 0, k = 0; i < x->nvar; k += x->var[i++].sparse ? 2 : 1)
    for (int64_t e = 0, n = yk_tensor_count(grad[k]); e < n; e++) {
      double v = element(grad[k], e);
      if (x->o.nan_only ? isnan(v) : !isfinite(v)) return yk_variable_name(x->var[i].v);
    }
  return NULL;
}

/* The update changed nothing: of what, as far as can be seen? */
static yk_code refused(yk_sync_replicas *x, int64_t global_step) {
  const char *name = not_finite(x, (const yk_tensor *const *)x->mean);
  const char *what = x->o.nan_only ? "a NaN" : "a NaN or an infinity";
  if (name != NULL)
    return YK_FAIL(EINVAL, "%s: the chief's update after global step %" PRId64 ": the gradients of '%s' hold %s; it changed nothing", x->core->name,
                   global_step, name, what);
  return YK_FAIL(EINVAL, "%s: the chief's update after global step %" PRId64 ": the learning rate, or what was built on the gradients, holds %s; it "
                 "changed nothing", x->core->name, global_step, what);
}

/* The means are there: one update. */
static yk_code apply(yk_sync_replicas *x, int64_t *global_step) {
  const yk_tensor *const *out;
  yk_code rc = yk_step_run(x->update, (const yk_tensor *const *)x->mean, &out);
  if (rc != YK_OK) return yk__fail_prefix(rc, "%s: the chief's update after global step %" PRId64, x->core->name, *global_step);
  if (x->good.id != 0 && yk_tensor_at(out[1], 0) == 0) return refused(x, *global_step);
  *global_step = as_int(out[0]);
  YK_TRY(yk__sync_publish(x->core, *global_step, x->o.last_step > 0 && *global_step >= x->o.last_step));
  rc = x->average ? yk_step_run(x->average, NULL, NULL) : YK_OK;
  return rc == YK_OK ? rc : yk__fail_prefix(rc, "%s: the moving averages of global step %" PRId64, x->core->name, *global_step);
}

static void *chief(void *arg) {
  yk_sync_replicas *x = arg;
  int64_t now = x->core->global_step, last = x->o.last_step;
  yk_code rc = YK_OK;
  bool over = false;
  while (rc == YK_OK && (last == 0 || now < last)) {
    rc = yk__sync_take(x->core, x->mean);
    over = rc == YK_ERANGE;
    if (rc == YK_OK) rc = apply(x, &now);
  }
  yk__sync_stop(x->core, over ? YK_OK : rc);
  return NULL;
}

/* The global step; every variable that is trained must have a value. */
static yk_code ready(yk_sync_replicas *x, yk_session *s, int64_t *global_step) {
  yk_tensor *t = NULL;
  for (size_t i = 0; i < x->nvar; i++) {
    yk_code rc = yk_variable_fetch(s, x->var[i].v, &t);
    if (rc != YK_OK) return yk__fail_prefix(rc, "%s is not ready to start", x->core->name);
    yk_tensor_free(t);
  }
  yk_code rc = yk_variable_fetch(s, x->o.global_step, &t);
  if (rc != YK_OK) return yk__fail_prefix(rc, "%s is not ready to start", x->core->name);
  *global_step = as_int(t);
  yk_tensor_free(t);
  return YK_OK;
}

static yk_code begin(yk_sync_replicas *x, yk_session *s) {
  int64_t global_step = 0;
  YK_TRY(ready(x, s, &global_step));
  yk_value fetch[2] = { x->after, x->good };
  YK_TRY(yk_step_prepare(s, x->nfetch, x->fed, x->good.id != 0 ? 2 : 1, fetch, 1, &x->train, &x->update));
  if (x->averages.id != 0) YK_TRY(yk_step_prepare(s, 0, NULL, 0, NULL, 1, &x->averages, &x->average));
  YK_TRY(yk__sync_begin(x->core, global_step, x->o.num_tokens));
  return yk__thread_start(&x->chief, "sync-chief", chief, x);
}

yk_code yk_sync_replicas_start(yk_sync_replicas *sync, yk_session *s) {
  if (sync == NULL || s == NULL) return YK_FAIL(EINVAL, "yk_sync_replicas_start: NULL replicas or session");
  if (sync->started) return YK_FAIL(EINVAL, "%s was started before", sync->core->name);
  sync->s = s;
  yk_code rc = begin(sync, s);
  sync->started = rc == YK_OK;
  if (rc == YK_OK) return rc;
  yk_step_free(sync->update);
  yk_step_free(sync->average);
  sync->update = sync->average = NULL;
  return rc;
}

void yk_sync_replicas_stop(yk_sync_replicas *sync) {
  if (sync) yk__sync_stop(sync->core, YK_OK);
}

yk_code yk_sync_replicas_end(yk_sync_replicas *sync) {
  if (sync == NULL) return YK_FAIL(EINVAL, "yk_sync_replicas_end: NULL replicas");
  yk_sync_core *c = sync->core;
  yk__sync_stop(c, YK_OK);
  if (sync->started) yk__thread_join(&sync->chief);
  yk_code rc = yk__sync_ended(c);
  if (rc != YK_ERANGE) return rc;
  yk_error_clear();
  yk__mutex_lock(&c->lock);
  const yk_sync_member *m = c->failed == c->total ? &c->member[c->first_failed] : NULL;
  rc = m ? yk__fail(m->why, __FILE__, __LINE__, "%s: all %d workers failed, the first, worker %d, with: %s", c->name, c->total,
                    c->first_failed, m->message) : YK_OK;
  yk__mutex_unlock(&c->lock);
  return rc;
}

void yk_sync_replicas_free(yk_sync_replicas *sync) {
  if (sync == NULL) return;
  if (sync->started && yk_sync_replicas_end(sync) != YK_OK) yk_error_clear();
  yk_step_free(sync->update);
  yk_step_free(sync->average);
  for (size_t i = 0; sync->mean && i < sync->nfetch; i++) yk_tensor_free(sync->mean[i]);
  yk__sync_free(sync->core);
  yk__free(sync->mean);
  yk__free(sync->fed);
  yk__free(sync->fetch);
  yk__free(sync->var);
  yk_graph_free(sync->g);
  yk__free(sync);
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* The user's fetches, and behind them the gradients. */
static yk_code prepare(yk_sync_worker *w, size_t nfeed, const yk_value *feeds, const yk_value *fetches, size_t ntarget, const yk_value *targets) {
  const yk_sync_replicas *x = w->sync;
  yk_value *all = yk__alloc((w->nfetch + x->nfetch + 1) * sizeof *all);
  if (all == NULL) return YK_ENOMEM;
  if (w->nfetch > 0) memcpy(all, fetches, w->nfetch * sizeof *all);
  memcpy(all + w->nfetch, x->fetch + (size_t)w->index % x->nlosses * x->nfetch, x->nfetch * sizeof *all);
  yk_code rc = yk_step_prepare(x->s, nfeed, feeds, w->nfetch + x->nfetch, all, ntarget, targets, &w->step);
  yk__free(all);
  return rc;
}

yk_code yk_sync_worker_open(yk_sync_replicas *sync, int32_t index, size_t nfeed, const yk_value *feeds, size_t nfetch, const yk_value *fetches,
                            size_t ntarget, const yk_value *targets, yk_sync_worker **out) {
  if (sync == NULL || out == NULL || (nfetch > 0 && fetches == NULL))
    return YK_FAIL(EINVAL, "yk_sync_worker_open: NULL replicas, fetches or output");
  if (!sync->started) return YK_FAIL(EINVAL, "%s: worker %d was opened before yk_sync_replicas_start()", sync->core->name, index);
  if (index < 0 || index >= sync->core->total)
    return YK_FAIL(EINVAL, "%s: there is no worker %d of %d", sync->core->name, index, sync->core->total);
  yk_sync_worker *w = yk__calloc(1, sizeof *w);
  if (w == NULL) return YK_ENOMEM;
  *w = (yk_sync_worker){ .sync = sync, .nfetch = nfetch, .index = index };
  yk_code rc = prepare(w, nfeed, feeds, fetches, ntarget, targets);
  if (rc == YK_OK) rc = yk__sync_enter(sync->core, index);
  if (rc == YK_OK) {
    *out = w;
    return rc;
  }
  yk_step_free(w->step);
  yk__free(w);
  return rc;
}

/* The worker's step made gradients that must not be given: go over it again. */
static yk_code examined(const yk_sync_worker *w, const yk_tensor *const *feeds, const char *variable) {
  yk_finding f = YK_FINDING_INIT;
  char *text = NULL;
  yk_code rc = yk_step_examine(w->step, feeds, &f);
  if (rc == YK_OK && f.kind != YK_FOUND_NOTHING) rc = yk_finding_text(&f, &text);
  if (rc != YK_OK) yk_error_clear();                 /* the failure is the gradient, not that its origin cannot be told */
  rc = YK_FAIL(EINVAL, "the gradients of '%s' hold %s%s%s; they were not given", variable, w->sync->o.nan_only ? "a NaN" : "a NaN or an infinity",
               text != NULL ? ": " : "", text != NULL ? text : "");
  yk_free(text);
  return rc;
}

static yk_code look_at(const yk_sync_worker *w, const yk_tensor *const *feeds, const yk_tensor *const *grads) {
  const char *variable = w->sync->o.guard ? not_finite(w->sync, grads) : NULL;
  return variable != NULL ? examined(w, feeds, variable) : YK_OK;
}

yk_code yk_sync_worker_run(yk_sync_worker *worker, const yk_tensor *const *feeds, const yk_tensor *const **fetched) {
  const yk_tensor *const *out;
  if (worker == NULL) return YK_FAIL(EINVAL, "yk_sync_worker_run: NULL worker");
  yk_sync_core *c = worker->sync->core;
  YK_TRY(yk__sync_ended(c));
  if (!yk__sync_holds(c, worker->index)) YK_TRY(yk__sync_token(c, worker->index));
  yk_code rc = yk_step_run(worker->step, feeds, &out);
  if (rc == YK_OK) rc = look_at(worker, feeds, out + worker->nfetch);
  if (rc == YK_OK) rc = yk__sync_apply(c, worker->index, out + worker->nfetch);
  if (rc != YK_OK) {
    yk__sync_failed(c, worker->index, rc);
    return yk__fail_prefix(rc, "%s: worker %d", c->name, worker->index);
  }
  YK_TRY(yk__sync_token(c, worker->index));
  if (fetched) *fetched = out;
  return YK_OK;
}

void yk_sync_worker_leave(yk_sync_worker *worker) {
  if (worker == NULL) return;
  yk__sync_leave(worker->sync->core, worker->index);
  yk_step_free(worker->step);
  yk__free(worker);
}

/* ---- a whole training -------------------------------------------------------------------------------------------- */

typedef struct crew { yk_sync_replicas *sync; yk_sync_work_fn work; void *arg; struct hand { struct crew *crew; int32_t index; } hand[]; } crew;

static yk_code labour(yk_coordinator *coordinator, void *arg) {
  const struct hand *h = arg;
  yk_sync_core *c = h->crew->sync->core;
  (void)coordinator;
  yk_code rc = h->crew->work(h->crew->sync, h->index, h->crew->arg);
  if (rc != YK_OK && rc != YK_ERANGE) yk__sync_failed(c, h->index, rc);
  yk__sync_leave(c, h->index);
  return YK_OK;                                  /* a failure of one must not stop the others */
}

static yk_code run_crew(yk_coordinator *c, crew *all) {
  yk_code rc = YK_OK;
  for (int32_t i = 0; i < all->sync->core->total && rc == YK_OK; i++) {
    all->hand[i] = (struct hand){ all, i };
    rc = yk_coordinator_start(c, "sync-worker", labour, &all->hand[i]);
  }
  if (rc != YK_OK) yk__sync_stop(all->sync->core, rc);
  return rc;
}

/* The failure of the first worker that had one. */
static yk_code first_failure(yk_sync_core *c) {
  yk__mutex_lock(&c->lock);
  const yk_sync_member *m = c->failed > 0 ? &c->member[c->first_failed] : NULL;
  yk_code rc = m ? yk__fail(m->why, __FILE__, __LINE__, "%s: worker %d failed: %s", c->name, c->first_failed, m->message) : YK_OK;
  yk__mutex_unlock(&c->lock);
  return rc;
}

yk_code yk_sync_replicas_train(yk_sync_replicas *sync, yk_session *s, yk_sync_work_fn work, void *arg) {
  yk_coordinator *c = NULL;
  if (sync == NULL || s == NULL || work == NULL)
    return YK_FAIL(EINVAL, "yk_sync_replicas_train: NULL replicas, session or function");
  crew *all = yk__alloc(sizeof *all + (size_t)sync->core->total * sizeof all->hand[0]);
  if (all == NULL) return YK_ENOMEM;
  *all = (crew){ .sync = sync, .work = work, .arg = arg };
  yk_code rc = yk_coordinator_new(&c);
  if (rc == YK_OK) rc = yk_sync_replicas_start(sync, s);
  if (rc == YK_OK) {
    rc = run_crew(c, all);
    yk_coordinator_free(c);                      /* waits for the workers */
    c = NULL;
    if (rc == YK_OK) rc = yk_sync_replicas_end(sync);
    if (rc == YK_OK) rc = first_failure(sync->core);
  }
  yk_coordinator_free(c);
  yk__free(all);
  return rc;
}

/* ---- what happened ----------------------------------------------------------------------------------------------- */

yk_code yk_sync_replicas_report(const yk_sync_replicas *sync, yk_sync_report *out) {
  if (sync == NULL || out == NULL || out->size == 0)
    return YK_FAIL(EINVAL, "a report needs replicas and a struct with its size: YK_SYNC_REPORT_INIT");
  yk_sync_core *c = sync->core;
  yk__mutex_lock(&c->lock);
  yk_sync_report r = { .size = out->size, .workers = c->total, .left = c->total - c->live, .failed = c->failed, .global_step = c->global_step,
                       .updates = c->updates, .steps = c->steps, .dropped = c->dropped, .tokens_entered = c->entered, .tokens_taken = c->taken,
                       .tokens_there = c->entered - c->taken };
  yk__mutex_unlock(&c->lock);
  memcpy(out, &r, out->size < sizeof r ? out->size : sizeof r);
  return YK_OK;
}

yk_code yk_sync_replicas_worker(const yk_sync_replicas *sync, int32_t index, yk_sync_worker_report *out) {
  if (sync == NULL || out == NULL || out->size == 0)
    return YK_FAIL(EINVAL, "a report needs replicas and a struct with its size: YK_SYNC_WORKER_REPORT_INIT");
  yk_sync_core *c = sync->core;
  if (index < 0 || index >= c->total) return YK_FAIL(EINVAL, "%s: there is no worker %d of %d", c->name, index, c->total);
  yk__mutex_lock(&c->lock);
  const yk_sync_member *m = &c->member[index];
  yk_sync_worker_report r = { .size = out->size, .opened = m->state != YK__SYNC_ABSENT, .left = m->state == YK__SYNC_LEFT, .failed = m->failed,
                              .local_step = m->local_step, .steps = m->steps, .dropped = m->dropped };
  yk__mutex_unlock(&c->lock);
  memcpy(out, &r, out->size < sizeof r ? out->size : sizeof r);
  return YK_OK;
}
