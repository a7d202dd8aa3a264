/*
 * plan_cache.c - compiled plans, found by request and shapes; at most max_plans are kept.
 *
 * An entry outlives its place in the cache while a step holds it, and its memory
 * may be taken for another plan while it does not run (memory.c). Compilation is
 * done by one thread at a time; looking up is a short lock. An entry becomes
 * stale when a later plan chose another layout for a variable that it uses:
 * who meets a stale entry drops it and asks again.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "run/run.h"
#include "tensor/desc.h"

/* ---- links: with the cache lock held ---------------------------------------------------------------------------- */

static void unlink_use(yk_cache *c, yk_entry *e) {
  if (e->newer) e->newer->older = e->older; else c->newest = e->older;
  if (e->older) e->older->newer = e->newer; else c->oldest = e->newer;
  e->newer = e->older = NULL;
}

static void link_use(yk_cache *c, yk_entry *e) {
  e->older = c->newest;
  e->newer = NULL;
  if (c->newest) c->newest->newer = e; else c->oldest = e;
  c->newest = e;
}

/* Take out of the cache; the cache's reference goes to the caller. */
static void forget(yk_cache *c, yk_entry *e) {
  unlink_use(c, e);
  e->cached = false;
  c->n--;
}

static bool same_shape(const yk_desc *a, const yk_desc *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

static bool matches(const yk_entry *e, const yk_binding *b, const yk_desc *desc) {
  if (e->hash != b->hash || e->nfeed != b->nfeed || e->nfetch != b->nfetch || e->ntarget != b->ntarget) return false;
  if (memcmp(e->id, b->feed, b->nfeed * sizeof *e->id) != 0) return false;
  if (memcmp(e->id + b->nfeed, b->fetch, b->nfetch * sizeof *e->id) != 0) return false;
  if (memcmp(e->id + b->nfeed + b->nfetch, b->target, b->ntarget * sizeof *e->id) != 0) return false;
  for (uint32_t i = 0; i < b->nfeed; i++)
    if (!same_shape(&e->plan->feed[i].desc, &desc[i])) return false;
  return true;
}

static yk_entry *look_up(yk_session *s, const yk_binding *b, const yk_desc *desc) {
  yk_cache *c = &s->cache;
  yk__mutex_lock(&s->cache_lock);
  yk_entry *e = c->newest;
  while (e && !matches(e, b, desc)) e = e->older;
  if (e) {
    if (e != c->newest) { unlink_use(c, e); link_use(c, e); }
    yk__entry_ref(e);
  }
  yk__mutex_unlock(&s->cache_lock);
  return e;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

void yk__entry_ref(yk_entry *e) {
  atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
}

bool yk__entry_ref_live(yk_entry *e) {
  uint32_t refs = atomic_load(&e->refs);
  while (refs > 0 && !atomic_compare_exchange_weak(&e->refs, &refs, refs + 1)) continue;
  return refs > 0;
}

static void drop_held(yk_entry *e) {
  for (uint32_t i = 0; i < e->nheld; i++) yk_tensor_free(e->held[i]);
  yk__free(e->held);
  e->held = NULL;
  e->nheld = 0;
}

void yk__entry_unref(yk_entry *e) {
  if (e == NULL || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  yk_session *s = e->s;
  bool gives = e->run != NULL;
  if (gives) yk__memory_move_begin();
  yk__mutex_lock(&s->cache_lock);
  if (e->prev) e->prev->next = e->next; else if (s->cache.all == e) s->cache.all = e->next;
  if (e->next) e->next->prev = e->prev;
  yk__mutex_unlock(&s->cache_lock);
  drop_held(e);
  yk__run_free(e->run);
  if (gives) yk__memory_move_end(true);
  yk__plan_free(e->plan);
  yk__mutex_free(&e->lock);
  yk__free(e->id);
  yk__free(e);
}

bool yk__cache_clear(yk_session *s) {
  for (bool any = false;; any = true) {
    yk__mutex_lock(&s->cache_lock);
    yk_entry *e = s->cache.oldest;
    if (e) forget(&s->cache, e);
    yk__mutex_unlock(&s->cache_lock);
    if (e == NULL) return any;
    yk__entry_unref(e);
  }
}

static void insert(yk_session *s, yk_entry *e) {
  yk_cache *c = &s->cache;
  yk_entry *out = NULL;
  yk__mutex_lock(&s->cache_lock);
  e->next = c->all;
  if (c->all) c->all->prev = e;
  c->all = e;
  if (c->n >= s->options.max_plans) forget(c, out = c->oldest);
  yk__entry_ref(e);
  e->cached = true;
  link_use(c, e);
  c->n++;
  yk__mutex_unlock(&s->cache_lock);
  yk__entry_unref(out);
}

static bool uses(const yk_plan *p, uint32_t v) {
  for (uint32_t b = 0; b < p->nbuf; b++)
    if (p->buf[b].kind == YK_BUF_VARIABLE && p->buf[b].index == v) return true;
  return false;
}

/* One entry that uses `v` and is not yet stale, with a reference; NULL if there is none. Only a compilation sets `stale`
 * (under the entry's lock) and only one runs at a time, so reading it here is safe. */
static yk_entry *next_user(yk_session *s, uint32_t v) {
  yk__mutex_lock(&s->cache_lock);
  yk_entry *e = s->cache.all;
  for (; e; e = e->next) {
    if (!e->stale && uses(e->plan, v) && yk__entry_ref_live(e)) break;
  }
  yk__mutex_unlock(&s->cache_lock);
  return e;
}

void yk__cache_retire(yk_session *s, uint32_t v) {
  for (yk_entry *e; (e = next_user(s, v)) != NULL;) {
    yk__mutex_lock(&e->lock);                              /* a run that goes on ends first */
    e->stale = true;
    yk__mutex_unlock(&e->lock);
    yk__mutex_lock(&s->cache_lock);
    bool cached = e->cached;
    if (cached) forget(&s->cache, e);
    yk__mutex_unlock(&s->cache_lock);
    if (cached) yk__entry_unref(e);
    yk__entry_unref(e);
  }
}

/* ---- compile: with the compile lock held ------------------------------------------------------------------------ */

/* fresh: [nbuf] those that got memory now, for the case that the plan cannot have all it needs. */
static yk_code allocate_variables(yk_session *s, const yk_plan *p, uint32_t *fresh, uint32_t *nfresh) {
  for (uint32_t b = 0; b < p->nbuf; b++) {
    uint32_t v = p->buf[b].index;
    if (p->buf[b].kind != YK_BUF_VARIABLE || s->var[v].mem.base) continue;
    YK_TRY(yk__var_allocate(s, v));
    fresh[(*nfresh)++] = v;
  }
  return YK_OK;
}

/* The devices' own streams may be needed for constants: one user at a time. */
static yk_code new_run(yk_session *s, const yk_plan *p, yk_run **out) {
  YK_TRY(yk__streams_acquire(s));
  yk_code rc = yk__run_new(p, s->devices, s->var, out);
  yk__streams_release(s);
  return rc;
}

/* Arenas, for which other plans may have to give theirs up. On success a move goes on, until the plan is listed with them. */
static yk_code take_run(yk_session *s, const yk_plan *p, yk_run **out) {
  yk_shortage x = yk__shortage_begin(true);
  yk_code rc;
  for (;;) {
    yk__memory_mark(s);
    yk__shortage_try(&x);
    yk__memory_move_begin();
    rc = new_run(s, p, out);
    if (rc == YK_OK) break;
    yk__memory_move_end(false);
    uint16_t dev = rc == YK_ENOMEM ? yk__memory_lacking(s) : YK__NO_DEVICE;
    if (dev == YK__NO_DEVICE) break;
    if (!yk__shortage_more(&x, s, dev, 1)) { rc = yk__memory_refuse_step(s, p, dev); break; }
    yk_error_clear();
  }
  yk__shortage_end(&x);
  return rc;
}

/* Storage and activation, all or nothing; as take_run(). e->lock is held, or nobody else knows of it yet. */
static yk_code activate(yk_session *s, yk_entry *e) {
  uint32_t n = 0, *fresh = yk__alloc((e->plan->nbuf + 1u) * sizeof *fresh);
  if (fresh == NULL) return YK_ENOMEM;
  yk_code rc = allocate_variables(s, e->plan, fresh, &n);
  yk_run *run = NULL;
  if (rc == YK_OK) rc = take_run(s, e->plan, &run);
  if (rc == YK_OK) atomic_store(&e->run, run);
  while (rc != YK_OK && n > 0) yk__var_release(s, fresh[--n]);
  yk__free(fresh);
  return rc;
}

static yk_code compile(yk_session *s, const yk_binding *b, const yk_desc *desc, yk_entry *e) {
  YK_TRY(yk__placeholders_check(s->g, b));
  YK_TRY(yk__vars_grow(s));
  yk_var_slot *now = yk__alloc((s->nvar + 1u) * sizeof *now);      /* a failed compilation leaves no trace */
  if (now == NULL) return YK_ENOMEM;
  yk__vars_copy(s, now);
  yk_plan_request q = yk__session_request(s, b, desc, now);
  uint64_t begin = yk__now_ns(), compiled;
  yk_code rc = yk__plan_compile(&q, &e->plan);
  compiled = yk__now_ns();
  if (rc == YK_OK) rc = yk__memory_admit(s, e->plan);
  if (rc == YK_OK) rc = yk__vars_settle(s, now);
  yk__free(now);
  YK_TRY(rc);
  yk__memory_mark(s);
  rc = activate(s, e);
  if (rc == YK_ENOMEM && yk__memory_lacking(s) == YK__NO_DEVICE && yk__cache_clear(s)) {    /* the host's: whole plans go */
    yk_error_clear();
    rc = activate(s, e);
  }
  if (rc == YK_OK)
    YK_LOG(INFO, "a plan of %u instructions was compiled in %.1f ms and activated in %.1f ms", e->plan->ninstr,
           (double)(compiled - begin) * 1e-6, (double)(yk__now_ns() - compiled) * 1e-6);
  return rc;
}

static yk_code make(yk_session *s, const yk_binding *b, const yk_desc *desc, yk_entry **out) {
  uint32_t n = b->nfeed + b->nfetch + b->ntarget;
  yk_entry *e = yk__calloc(1, sizeof *e);
  yk_value *id = yk__alloc((n + 1u) * sizeof *id);
  if (e == NULL || id == NULL) { yk__free(e); yk__free(id); return YK_ENOMEM; }
  memcpy(id, b->feed, b->nfeed * sizeof *id);
  memcpy(id + b->nfeed, b->fetch, b->nfetch * sizeof *id);
  memcpy(id + b->nfeed + b->nfetch, b->target, b->ntarget * sizeof *id);
  *e = (yk_entry){ .s = s, .id = id, .nfeed = b->nfeed, .nfetch = b->nfetch, .ntarget = b->ntarget, .hash = b->hash };
  atomic_init(&e->refs, 1);
  yk__mutex_init(&e->lock);
  yk_code rc = compile(s, b, desc, e);
  if (rc != YK_OK) { yk__entry_unref(e); return rc; }
  insert(s, e);
  yk__memory_move_end(false);
  *out = e;
  return YK_OK;
}

yk_code yk__entry_get(yk_session *s, const yk_binding *b, const yk_desc *feed_desc, yk_entry **out) {
  yk_entry *e = look_up(s, b, feed_desc);
  if (e) { *out = e; return YK_OK; }
  yk__mutex_lock(&s->compile_lock);
  yk_code rc = YK_OK;
  e = look_up(s, b, feed_desc);                            /* another thread may have been faster */
  if (e == NULL) rc = make(s, b, feed_desc, &e);
  yk__mutex_unlock(&s->compile_lock);
  if (rc != YK_OK) return rc;
  *out = e;
  return YK_OK;
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

/* What a run out of time still reads and writes. Without memory for the list they leak on purpose: a leak beats a wild write. */
static void hold(yk_entry *e, uint32_t n, yk_tensor *const *keep) {
  e->s->hung = e;
  yk__entry_ref(e);
  e->held = yk__alloc((n + 1u) * sizeof(yk_tensor *));
  for (uint32_t i = 0; i < n; i++) {
    yk_tensor *t = yk_tensor_ref(keep[i]);
    if (e->held) e->held[e->nheld++] = t;
  }
}

yk_code yk__streams_acquire(yk_session *s) {
  yk__mutex_lock(&s->stream_lock);
  yk_entry *e = s->hung;
  if (e == NULL) return YK_OK;
  yk_code rc = yk__run_drain(e->run, s->options.timeout_ms);
  if (rc == YK_OK) { s->hung = NULL; drop_held(e); }
  yk__mutex_unlock(&s->stream_lock);
  if (rc != YK_OK) return yk__fail_prefix(rc, "an earlier step that ran out of time still uses the devices");
  yk__entry_unref(e);
  return yk__streams_acquire(s);
}

void yk__streams_release(yk_session *s) {
  yk__mutex_unlock(&s->stream_lock);
}

static yk_code run_now(yk_entry *e, const yk_io *io) {
  yk_session *s = e->s;
  bool writes = e->plan->nwrites > 0;
  if (writes) yk__mutex_lock(&s->write_lock);
  yk_code rc = io->finding ? yk__run_examined(e, io)
             : atomic_load_explicit(&s->trace.on, memory_order_relaxed) ? yk__run_traced(e, io) : yk__run_go(e->run, io);
  if (writes) yk__mutex_unlock(&s->write_lock);
  return rc;
}

static yk_code run_on_streams(yk_entry *e, const yk_io *io, uint32_t nkeep, yk_tensor *const *keep) {
  YK_TRY(yk__streams_acquire(e->s));
  yk_code rc = run_now(e, io);
  if (e->run->busy) hold(e, nkeep, keep);
  yk__streams_release(e->s);
  return rc;
}

/* Off the hot path: the activation was given up for memory. On success e->lock stays held, so that the run gets its turn. */
static yk_code revive(yk_entry *e) {
  yk_session *s = e->s;
  yk__mutex_unlock(&e->lock);
  yk__mutex_lock(&s->compile_lock);
  yk__mutex_lock(&e->lock);
  bool active = e->stale || e->run;
  yk_code rc = active ? YK_OK : activate(s, e);
  if (!active && rc == YK_OK) yk__memory_move_end(false);
  yk__mutex_unlock(&s->compile_lock);
  if (rc != YK_OK) yk__mutex_unlock(&e->lock);
  return rc;
}

/* The number that its random operations draw from: a new one, or that of its last run again. */
static int64_t next_counter(yk_entry *e, bool again) {
  if (!again && e->plan->uses_counter) e->counter = atomic_fetch_add_explicit(&e->s->counter, 1, memory_order_relaxed);
  return e->counter;
}

yk_code yk__entry_run(yk_entry *e, const void *const *feed, void *const *fetch, uint32_t nkeep, yk_tensor *const *keep,
                      yk_finding *finding, bool *stale) {
  yk_session *s = e->s;
  yk_io io = { .feed = feed, .fetch = fetch, .timeout_ms = s->options.timeout_ms, .finding = finding };
  yk__mutex_lock(&e->lock);
  if (e->run == NULL && !e->stale) YK_TRY(revive(e));
  *stale = e->stale;
  uint64_t tick = atomic_load_explicit(&s->ticks, memory_order_relaxed) + 1;      /* threads may share one: an order all the same */
  atomic_store_explicit(&s->ticks, tick, memory_order_relaxed);
  e->used = tick;
  yk_code rc = YK_OK;
  if (!e->stale) {
    if (!e->reads_ok) rc = yk__vars_check(s, e->plan);
    e->reads_ok = rc == YK_OK;
    if (finding && !e->has_run) rc = YK_FAIL(EINVAL, "the step has not run with these shapes; there is nothing to examine");
    io.counter = next_counter(e, finding != NULL);
    if (rc == YK_OK) rc = e->run->is_inline ? run_now(e, &io) : run_on_streams(e, &io, nkeep, keep);
    if (rc == YK_OK && !finding && !e->writes_ok) { yk__vars_mark(s, e->plan); e->writes_ok = true; }
    e->has_run = true;
  }
  yk__mutex_unlock(&e->lock);
  if (atomic_load_explicit(&yk__memory_waiting, memory_order_relaxed)) yk__memory_give_way();
  return rc;
}
