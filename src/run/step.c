/*
 * step.c - prepared steps, and single runs on the same machinery.
 *
 * A prepared step keeps its plan, the addresses of its own fetch tensors and the
 * way from the caller's order to the plan's; a run compares shapes, fills in
 * addresses of the feeds and walks the plan. A single run does the same with
 * things that live for one call.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "run/run.h"
#include "tensor/desc.h"

struct yk_step {
  yk_session *s;
  yk_binding b;
  yk_entry *entry;               /* plan of the last shapes; NULL before the first run */
  yk_desc *desc;                 /* [nfeed] canonical order */
  const void **src;              /* [nfeed] */
  void **dst;                    /* [nfetch] */
  yk_tensor **out;               /* [nfetch] owned */
  yk_tensor **keep;              /* [nfeed + nfetch] what is held on to if time runs out */
  const yk_tensor **fetched;     /* [nuser] */
  yk_bump mem;
};

/* ---- shared by both --------------------------------------------------------------------------------------------- */

static bool same_shapes(const yk_step *t, const yk_tensor *const *feeds) {
  const yk_plan_value *want = t->entry->plan->feed;
  for (uint32_t i = 0; i < t->b.nfeed; i++) {
    const yk_tensor *f = feeds[t->b.feed_of[i]];
    if (f == NULL) return false;
    const yk_desc *d = yk_tensor_desc(f), *w = &want[i].desc;
    if (d->dtype != w->dtype || d->rank != w->rank) return false;
    for (uint32_t k = 0; k < d->rank; k++)
      if (d->dim[k] != w->dim[k]) return false;
  }
  return true;
}

static yk_code take_descs(yk_step *t, const yk_tensor *const *feeds) {
  for (uint32_t i = 0; i < t->b.nfeed; i++) {
    const yk_tensor *f = feeds[t->b.feed_of[i]];
    YK_TRY(yk__feed_check(t->s->g, t->b.feed[i], f));
    t->desc[i] = *yk_tensor_desc(f);
  }
  return YK_OK;
}

static bool needs_plan(const yk_step *t) {
  return t->b.nfetch + t->b.ntarget > 0;
}

/* Tensors for the values that the plan yields; those that still fit are kept. */
static yk_code take_fetched(yk_step *t, const yk_plan *p) {
  for (uint32_t i = 0; i < t->b.nfetch; i++) {
    const yk_desc *d = &p->fetch[i].desc;
    if (t->out[i] && yk_tensor_desc(t->out[i])->dtype == d->dtype && yk__desc_same_shape(yk_tensor_desc(t->out[i]), d)) continue;
    yk_tensor *fresh;
    YK_TRY(yk_tensor_new((yk_dtype)d->dtype, yk__desc_shape(d), &fresh));
    yk_tensor_free(t->out[i]);
    t->out[i] = fresh;
    t->dst[i] = yk_tensor_data(fresh);
    t->keep[t->b.nfeed + i] = fresh;
  }
  for (uint32_t u = 0; u < t->b.nuser; u++)
    if (!(t->b.fetch_of[u] & YK__FED)) t->fetched[u] = t->out[t->b.fetch_of[u]];
  return YK_OK;
}

/* Off the hot path: another shape, a retired plan, or the first run. */
static yk_code resolve(yk_step *t, const yk_tensor *const *feeds) {
  YK_TRY(yk__session_real(t->s, "a step cannot run"));
  YK_TRY(yk__session_start(t->s));
  YK_TRY(take_descs(t, feeds));
  if (!needs_plan(t)) return YK_OK;
  yk_entry *e;
  YK_TRY(yk__entry_get(t->s, &t->b, t->desc, &e));
  yk__entry_unref(t->entry);
  t->entry = e;
  yk_code rc = take_fetched(t, e->plan);
  if (rc != YK_OK) { yk__entry_unref(e); t->entry = NULL; }
  return rc;
}

/* finding, unless NULL: examine the last run instead. */
static yk_code run(yk_step *t, const yk_tensor *const *feeds, yk_finding *finding) {
  bool stale = true;
  if (atomic_load_explicit(&t->s->closed, memory_order_relaxed)) return YK_FAIL(EINVAL, "the session is closed");
  if (feeds == NULL && t->b.nfeed > 0) return YK_FAIL(EINVAL, "the step has %u feeds; none were given", t->b.nfeed);
  while (stale) {
    if (t->entry == NULL || !same_shapes(t, feeds)) YK_TRY(resolve(t, feeds));
    if (t->entry == NULL) break;                           /* nothing to compute: all fetches are fed */
    for (uint32_t i = 0; i < t->b.nfeed; i++) {
      const yk_tensor *f = feeds[t->b.feed_of[i]];
      t->keep[i] = (yk_tensor *)f;
      t->src[i] = yk_tensor_data(f);
    }
    YK_TRY(yk__entry_run(t->entry, t->src, t->dst, t->b.nfeed + t->b.nfetch, t->keep, finding, &stale));
    if (stale) { yk__entry_unref(t->entry); t->entry = NULL; }
  }
  for (uint32_t u = 0; u < t->b.nuser; u++)
    if (t->b.fetch_of[u] & YK__FED) t->fetched[u] = feeds[t->b.fetch_of[u] & ~YK__FED];
  return YK_OK;
}

static void clear(yk_step *t) {
  for (uint32_t i = 0; t->out && i < t->b.nfetch; i++) yk_tensor_free(t->out[i]);
  yk__entry_unref(t->entry);
  yk__binding_free(&t->b);
  yk__bump_free(&t->mem);
}

/* Arrays for a bound request. On failure everything, the binding too, is given back. */
static yk_code prepare(yk_step *t) {
  yk_bump *m = &t->mem;
  t->desc    = yk__bump(m, (t->b.nfeed + 1u) * sizeof *t->desc);
  t->src     = yk__bump(m, (t->b.nfeed + 1u) * sizeof(void *));
  t->dst     = yk__bump(m, (t->b.nfetch + 1u) * sizeof(void *));
  t->out     = yk__bump(m, (t->b.nfetch + 1u) * sizeof(yk_tensor *));
  t->keep    = yk__bump(m, (t->b.nfeed + t->b.nfetch + 1u) * sizeof(yk_tensor *));
  t->fetched = yk__bump(m, (t->b.nuser + 1u) * sizeof(yk_tensor *));
  if (t->desc && t->src && t->dst && t->out && t->keep && t->fetched) return YK_OK;
  clear(t);
  return YK_ENOMEM;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

yk_code yk_step_prepare(yk_session *s, size_t nfeed, const yk_value *feeds, size_t nfetch, const yk_value *fetches,
                        size_t ntarget, const yk_value *targets, yk_step **out) {
  if (s == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_step_prepare: NULL session or output");
  if (atomic_load(&s->closed)) return YK_FAIL(EINVAL, "the session is closed");
  yk_step *t = yk__calloc(1, sizeof *t);
  if (t == NULL) return YK_ENOMEM;
  t->s = s;
  yk_code rc = yk__bind(s->g, nfeed, feeds, sizeof *feeds, nfetch, fetches, ntarget, targets, &t->b);
  if (rc == YK_OK) rc = prepare(t);
  if (rc != YK_OK) { yk__free(t); return rc; }
  yk__session_ref(s);
  *out = t;
  return YK_OK;
}

yk_code yk_step_run(yk_step *step, const yk_tensor *const *feeds, const yk_tensor *const **fetched) {
  if (step == NULL) return YK_FAIL(EINVAL, "yk_step_run: NULL step");
  YK_TRY(run(step, feeds, NULL));
  if (fetched) *fetched = step->fetched;
  return YK_OK;
}

yk_code yk_step_examine(yk_step *step, const yk_tensor *const *feeds, yk_finding *out) {
  if (step == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_step_examine: NULL step or output");
  if (out->size != sizeof *out) return YK_FAIL(EINVAL, "yk_step_examine: the finding was not set with YK_FINDING_INIT");
  yk_finding found = YK_FINDING_INIT;
  YK_TRY(run(step, feeds, &found));
  *out = found;
  return YK_OK;
}

void yk_step_free(yk_step *step) {
  if (step == NULL) return;
  yk_session *s = step->s;
  clear(step);
  yk__free(step);
  yk__session_unref(s);
}

/* A step for one call; the fed tensors in the caller's order. */
static yk_code single(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                      size_t ntarget, const yk_value *targets, yk_step *t, const yk_tensor ***tensors) {
  if (s == NULL) return YK_FAIL(EINVAL, "NULL session");
  *t = (yk_step){ .s = s };
  YK_TRY(yk__bind(s->g, nfeed, feeds ? &feeds->value : NULL, sizeof *feeds, nfetch, fetches, ntarget, targets, &t->b));
  YK_TRY(prepare(t));
  const yk_tensor **all = yk__bump(&t->mem, (nfeed + 1) * sizeof(yk_tensor *));
  if (all == NULL) { clear(t); return YK_ENOMEM; }
  for (size_t i = 0; i < nfeed; i++) all[i] = feeds[i].tensor;
  *tensors = all;
  return YK_OK;
}

yk_code yk_session_run(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                       size_t ntarget, const yk_value *targets, yk_tensor **out) {
  yk_step t;
  const yk_tensor **tensors = NULL;
  if (nfetch > 0 && out == NULL) return YK_FAIL(EINVAL, "yk_session_run: %zu fetches but out is NULL", nfetch);
  YK_TRY(single(s, nfeed, feeds, nfetch, fetches, ntarget, targets, &t, &tensors));
  yk_code rc = run(&t, tensors, NULL);
  for (size_t u = 0; rc == YK_OK && u < nfetch; u++) out[u] = yk_tensor_ref((yk_tensor *)t.fetched[u]);
  clear(&t);
  return rc;
}

/* Shapes for explain: of the fed tensors, or of the graph where no tensor is given and the graph knows. */
static yk_code explain_descs(yk_step *t, const yk_tensor *const *tensors) {
  for (uint32_t i = 0; i < t->b.nfeed; i++) {
    const yk_tensor *f = tensors[t->b.feed_of[i]];
    const yk_desc *known = &t->s->g->value[t->b.feed[i].id].desc;
    if (f || !yk__desc_known(known)) YK_TRY(yk__feed_check(t->s->g, t->b.feed[i], f));
    t->desc[i] = f ? *yk_tensor_desc(f) : *known;
  }
  return YK_OK;
}

/* Compiled beside the cache, so that looking at a plan changes nothing: neither homes nor layouts nor the bounded cache. */
static yk_code look_at(yk_session *s, const yk_step *t, const yk_var_slot *from, yk_look *look, void *arg) {
  YK_TRY(yk__placeholders_check(s->g, &t->b));
  YK_TRY(yk__vars_grow(s));
  yk_var_slot *now = yk__alloc((s->nvar + 1u) * sizeof *now);
  if (now == NULL) return YK_ENOMEM;
  if (from) memcpy(now, from, s->nvar * sizeof *now);
  else yk__vars_copy(s, now);
  yk_plan_request q = yk__session_request(s, &t->b, t->desc, now);
  yk_plan *p = NULL;
  yk_code rc = yk__plan_compile(&q, &p);
  if (rc == YK_OK) rc = look(s, p, now, arg);
  yk__plan_free(p);
  yk__free(now);
  return rc;
}

yk_code yk__step_look(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches, size_t ntarget,
                      const yk_value *targets, const yk_var_slot *from, yk_look *look, void *arg) {
  yk_step t;
  const yk_tensor **tensors = NULL;
  YK_TRY(single(s, nfeed, feeds, nfetch, fetches, ntarget, targets, &t, &tensors));
  yk_code rc = explain_descs(&t, tensors);
  if (rc == YK_OK) {
    yk__mutex_lock(&s->compile_lock);
    rc = look_at(s, &t, from, look, arg);
    yk__mutex_unlock(&s->compile_lock);
  }
  clear(&t);
  return rc;
}

static yk_code explain(yk_session *s, const yk_plan *p, const yk_var_slot *var, void *arg) {
  (void)s;
  (void)var;
  return yk__plan_explain(p, arg);
}

yk_code yk_session_explain(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                           size_t ntarget, const yk_value *targets, char **out) {
  if (out == NULL) return YK_FAIL(EINVAL, "yk_session_explain: NULL output");
  return yk__step_look(s, nfeed, feeds, nfetch, fetches, ntarget, targets, NULL, explain, out);
}
