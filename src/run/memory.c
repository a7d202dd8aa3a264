/*
 * memory.c - who gets a device's memory when it is short: idle plans give theirs up, running ones are waited for.
 *
 * A cached plan keeps its arenas, so that its next step allocates nothing. They are only lent: when a device cannot give what is
 * asked for, the plan used least recently that is not at work loses its activation, and gets a new one when it runs again; plans
 * of other sessions too, if they share the device's pool. Whoever asks holds his session's compile lock.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/param.h"
#include "run/run.h"

/* ---- did a device refuse? --------------------------------------------------------------------------------------- */

void yk__memory_mark(yk_session *s) {
  for (uint16_t i = 0; i < s->devices->n; i++) s->refused[i] = yk__device_refusals(&s->devices->at[i]);
}

uint16_t yk__memory_lacking(const yk_session *s) {
  for (uint16_t i = 0; i < s->devices->n; i++)
    if (yk__device_refusals(&s->devices->at[i]) != s->refused[i]) return i;
  return YK__NO_DEVICE;
}

/* ---- sessions of the process ------------------------------------------------------------------------------------ */

static _Atomic uint32_t lock;        /* of the list; behind it come only cache locks, and entries' that are tried */
static yk_session *first;

void yk__memory_join(yk_session *s) {
  yk__lock(&lock);
  s->next = first;
  first = s;
  s->joined = true;
  yk__unlock(&lock);
}

void yk__memory_leave(yk_session *s) {
  if (!s->joined) return;
  yk__lock(&lock);
  yk_session **at = &first;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  s->joined = false;
  yk__unlock(&lock);
}

/* ---- idle plans give way ---------------------------------------------------------------------------------------- */

uint64_t yk__memory_lent(const yk_entry *e, const struct yk_pool *pool) {
  uint64_t bytes = 0;
  for (uint32_t a = 0; atomic_load(&e->run) && a < e->plan->narena; a++) {
    const yk_device *d = &e->s->devices->at[e->plan->arena[a].dev];
    if (d->pool == pool) bytes += yk__device_rounded(d, e->plan->arena[a].bytes ? e->plan->arena[a].bytes : 1);
  }
  return bytes;
}

/* The idle plan that was used least recently among the session's with memory of `pool`: locked, and with a reference. *running:
 * others are at work. Nothing that is listed can be freed while the cache lock is held. */
static yk_entry *idle(yk_session *s, const struct yk_pool *pool, bool *running) {
  yk_entry *best = NULL;
  yk__mutex_lock(&s->cache_lock);
  for (yk_entry *e = s->cache.all; e; e = e->next) {
    if (yk__memory_lent(e, pool) == 0) continue;
    if (!yk__mutex_try(&e->lock)) { *running = true; continue; }
    yk_run *run = atomic_load(&e->run);
    bool hung = run && atomic_load(&run->busy);            /* out of time: its streams still use the memory */
    if (run == NULL || hung || (best && e->used >= best->used)) {
      *running |= hung;
      yk__mutex_unlock(&e->lock);
      continue;
    }
    if (best) yk__mutex_unlock(&best->lock);
    best = e;
  }
  if (best && !yk__entry_ref_live(best)) {                 /* on its way out */
    *running = true;
    yk__mutex_unlock(&best->lock);
    best = NULL;
  }
  yk__mutex_unlock(&s->cache_lock);
  return best;
}

/* It comes back with the next run of the plan. */
static void evict(yk_entry *e) {
  yk__memory_move_begin();
  yk_run *run = atomic_exchange(&e->run, NULL);
  yk__mutex_unlock(&e->lock);
  yk__run_free(run);
  yk__memory_move_end(true);
  yk__entry_unref(e);
}

/* Take the memory of one idle plan, of the asking session if there is one, else of others that share the pool. */
static bool reclaim(yk_session *s, const struct yk_pool *pool, bool *running) {
  yk_entry *e = idle(s, pool, running);
  if (e) { evict(e); return true; }
  yk__lock(&lock);
  for (yk_session *t = first; t && e == NULL; t = t->next)
    if (t != s) e = idle(t, pool, running);
  if (e) evict(e);                                         /* with the lock: its session must not go meanwhile */
  yk__unlock(&lock);
  return e != NULL;
}

/* ---- running plans are waited for ------------------------------------------------------------------------------- */

enum { SLICE_MS = 50, WAY_MS = 100 };

_Atomic uint32_t yk__memory_waiting;
static _Atomic uint32_t freed, looked;                     /* change when memory may be had, and when who waits has looked */
static _Atomic uint64_t begun, ended;                      /* moves: memory on its way to or from a plan, which no list shows */

static void tell(_Atomic uint32_t *word) {
  atomic_fetch_add(word, 1);
  yk__word_wake(word);
}

void yk__memory_move_begin(void) { atomic_fetch_add(&begun, 1); }

void yk__memory_move_end(bool gave) {
  atomic_fetch_add(&ended, 1);
  if (gave && atomic_load(&yk__memory_waiting)) tell(&freed);
}

/* Whoever waits looks before the next step takes the plan again. */
void yk__memory_give_way(void) {
  uint32_t seen = atomic_load(&looked);
  tell(&freed);
  if (atomic_load(&yk__memory_waiting)) (void)yk__word_wait_ms(&looked, seen, WAY_MS);
}

yk_shortage yk__shortage_begin(bool wait) {
  int64_t ms = yk__param_int("memory.wait_ms");
  return (yk_shortage){ .deadline = wait ? yk__now_ns() + (uint64_t)(ms < INT32_MAX ? ms : INT32_MAX) * 1000000u : 0 };
}

void yk__shortage_try(yk_shortage *x) { x->ended = atomic_load(&ended); }

void yk__shortage_end(yk_shortage *x) {
  if (!x->waits) return;
  atomic_fetch_sub(&yk__memory_waiting, 1);
  tell(&looked);
}

/* A wake-up may be missed, since those who run look without a lock whether somebody waits: hence the slices. */
bool yk__shortage_more(yk_shortage *x, yk_session *s, uint16_t dev, uint64_t own_moves) {
  uint32_t seen = atomic_load(&freed);
  bool running = false, got = reclaim(s, s->devices->at[dev].pool, &running);
  if (x->waits) tell(&looked);
  if (got) return true;
  running |= atomic_load(&begun) - own_moves != x->ended;
  uint64_t now = yk__now_ns();
  if (!running || now >= x->deadline) return false;
  if (!x->waits) atomic_fetch_add(&yk__memory_waiting, 1);
  x->waits = true;
  int64_t ms = (int64_t)((x->deadline - now) / 1000000) + 1;
  (void)yk__word_wait_ms(&freed, seen, ms < SLICE_MS ? ms : SLICE_MS);
  return true;
}

yk_code yk__session_alloc(yk_session *s, uint16_t dev, size_t bytes, bool wait, yk_mem *out) {
  yk_device *d = &s->devices->at[dev];
  yk_code rc;
  yk_shortage x = yk__shortage_begin(wait);
  for (;;) {
    uint64_t before = yk__device_refusals(d);
    yk__shortage_try(&x);
    rc = yk__device_alloc(d, bytes, out);
    if (rc != YK_ENOMEM || yk__device_refusals(d) == before) break;    /* the host's own memory is not helped so */
    if (!yk__shortage_more(&x, s, dev, 0)) { rc = yk__memory_refuse(s, dev, bytes, rc); break; }
    yk_error_clear();
  }
  yk__shortage_end(&x);
  return rc;
}
