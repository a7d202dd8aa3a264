/*
 * coordinator.c - threads that stop together, and the threads that fill a queue.
 *
 * A stop is a word that is set once, with the code and the message of whoever asked first; what must be woken then is told by
 * functions that were left for it. A thread that ends says so before it is joined, so that a join can be given up in time
 * and can name who still lives.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <yoke/queue.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "train/waits.h"

typedef struct member {
  struct member *next;
  yk_coordinator *c;
  yk_coordinator_fn fn;
  void *arg;
  yk_thread thread;
  bool ended, joined;
  char name[32];
} member;

typedef struct alarm { struct alarm *next; void (*fn)(void *arg); void *arg; } alarm;
typedef struct owned { struct owned *next; void *p; } owned;

struct yk_coordinator {
  yk_mutex lock;
  yk_cond changed;
  member *members;
  alarm *alarms;
  owned *things;
  uint32_t living;                  /* threads that have not ended */
  bool stopping;
  yk_code why;                      /* YK_OK: a clean end */
  char message[1024];
};

yk_code yk_coordinator_new(yk_coordinator **out) {
  if (out == NULL) return YK_FAIL(EINVAL, "yk_coordinator_new: NULL output");
  yk_coordinator *c = yk__calloc(1, sizeof *c);
  if (c == NULL) return YK_ENOMEM;
  yk__mutex_init(&c->lock);
  yk__cond_init(&c->changed);
  *out = c;
  return YK_OK;
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

void yk_coordinator_request_stop(yk_coordinator *c, yk_code why) {
  yk__mutex_lock(&c->lock);
  if (!c->stopping) {
    c->stopping = true;
    c->why = why == YK_ERANGE ? YK_OK : why;
    if (c->why != YK_OK) snprintf(c->message, sizeof c->message, "%s", yk_error_message());
    for (alarm *a = c->alarms; a; a = a->next) a->fn(a->arg);
    yk__cond_broadcast(&c->changed);
  }
  yk__mutex_unlock(&c->lock);
}

bool yk_coordinator_should_stop(const yk_coordinator *c) {
  yk_coordinator *m = (yk_coordinator *)(uintptr_t)c;    /* the lock is not part of what const promises */
  yk__mutex_lock(&m->lock);
  bool stopping = m->stopping;
  yk__mutex_unlock(&m->lock);
  return stopping;
}

bool yk_coordinator_wait_for_stop(yk_coordinator *c, int64_t ms) {
  uint64_t until = yk__until(ms);
  yk__mutex_lock(&c->lock);
  while (!c->stopping && yk__wait_until(&c->changed, &c->lock, until)) {}
  bool stopping = c->stopping;
  yk__mutex_unlock(&c->lock);
  return stopping;
}

yk_code yk_coordinator_on_stop(yk_coordinator *c, void (*fn)(void *arg), void *arg) {
  if (c == NULL || fn == NULL) return YK_FAIL(EINVAL, "yk_coordinator_on_stop needs a coordinator and a function");
  alarm *a = yk__alloc(sizeof *a);
  if (a == NULL) return YK_ENOMEM;
  yk__mutex_lock(&c->lock);
  *a = (alarm){ c->alarms, fn, arg };
  c->alarms = a;
  if (c->stopping) fn(arg);
  yk__mutex_unlock(&c->lock);
  return YK_OK;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *run(void *arg) {
  member *m = arg;
  yk_coordinator *c = m->c;
  yk_code rc = m->fn(c, m->arg);
  if (rc != YK_OK) yk_coordinator_request_stop(c, rc);
  yk__mutex_lock(&c->lock);
  m->ended = true;
  c->living--;
  yk__cond_broadcast(&c->changed);
  yk__mutex_unlock(&c->lock);
  return NULL;
}

yk_code yk_coordinator_start(yk_coordinator *c, const char *name, yk_coordinator_fn fn, void *arg) {
  if (c == NULL || fn == NULL) return YK_FAIL(EINVAL, "yk_coordinator_start needs a coordinator and a function");
  member *m = yk__calloc(1, sizeof *m);
  if (m == NULL) return YK_ENOMEM;
  m->c = c;
  m->fn = fn;
  m->arg = arg;
  snprintf(m->name, sizeof m->name, "%s", name ? name : "thread");
  yk__mutex_lock(&c->lock);
  yk_code rc = c->stopping ? YK_FAIL(ECANCELLED, "thread '%s' was not started: a stop was asked for", m->name)
                           : yk__thread_start(&m->thread, m->name, run, m);
  if (rc == YK_OK) {
    m->next = c->members;
    c->members = m;
    c->living++;
  }
  yk__mutex_unlock(&c->lock);
  if (rc != YK_OK) yk__free(m);
  return rc;
}

/* With the lock held, which is let go of meanwhile: give back the threads that have ended. */
static void reap(yk_coordinator *c) {
  for (member *m = c->members; m; m = m->next) {
    if (!m->ended || m->joined) continue;
    m->joined = true;
    yk__mutex_unlock(&c->lock);
    yk__thread_join(&m->thread);
    yk__mutex_lock(&c->lock);
  }
}

/* With the lock held: EBUSY, naming up to eight. */
static yk_code still_living(const yk_coordinator *c, int64_t grace_ms) {
  char names[320] = "";
  size_t used = 0, shown = 0;
  for (const member *m = c->members; m && shown < 8; m = m->next) {
    if (m->ended) continue;
    used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", shown++ > 0 ? ", " : "", m->name);
  }
  return YK_FAIL(EBUSY, "%u thread%s of the coordinator still live%s %" PRId64 " ms after the stop: %s%s", c->living, c->living == 1 ? "" : "s",
                 c->living == 1 ? "s" : "", grace_ms, names, c->living > shown ? ", ..." : "");
}

yk_code yk_coordinator_join(yk_coordinator *c, int64_t grace_ms) {
  if (c == NULL || grace_ms < 0) return YK_FAIL(EINVAL, "yk_coordinator_join needs a coordinator, and a grace of 0 ms or more");
  if (grace_ms == 0) grace_ms = 120000;
  yk__mutex_lock(&c->lock);
  while (!c->stopping && c->living > 0) yk__cond_wait(&c->changed, &c->lock);
  uint64_t until = yk__until(grace_ms);
  while (c->living > 0 && yk__wait_until(&c->changed, &c->lock, until)) {}
  reap(c);
  yk_code rc = YK_OK;
  if (c->living > 0) rc = still_living(c, grace_ms);
  else if (c->why != YK_OK) rc = yk__fail(c->why, __FILE__, __LINE__, "%s", c->message);
  yk__mutex_unlock(&c->lock);
  return rc;
}

void yk_coordinator_free(yk_coordinator *c) {
  if (c == NULL) return;
  yk_coordinator_request_stop(c, YK_OK);
  yk__mutex_lock(&c->lock);
  while (c->living > 0) yk__cond_wait(&c->changed, &c->lock);
  reap(c);
  yk__mutex_unlock(&c->lock);
  for (member *m = c->members, *next; m; m = next) { next = m->next; yk__free(m); }
  for (alarm *a = c->alarms, *next; a; a = next) { next = a->next; yk__free(a); }
  for (owned *o = c->things, *next; o; o = next) { next = o->next; yk__free(o->p); yk__free(o); }
  yk__mutex_free(&c->lock);
  yk__cond_free(&c->changed);
  yk__free(c);
}

/* ---- queue runners ----------------------------------------------------------------------------------------------- */

typedef struct runner {
  yk_tensor_queue *q;
  yk_enqueue_fn enqueue;
  void *arg;
  _Atomic int32_t left;             /* threads that have not ended */
  struct seat { struct runner *r; int32_t index; } seat[];
} runner;

static void cancel(void *arg) {
  runner *r = arg;
  if (yk_tensor_queue_close(r->q, true) != YK_OK) yk_error_clear();
}

static yk_code fill(yk_coordinator *c, void *arg) {
  struct seat *s = arg;
  runner *r = s->r;
  yk_code rc = YK_OK;
  while (rc == YK_OK && !yk_coordinator_should_stop(c)) rc = r->enqueue(r->q, s->index, r->arg);
  bool last = atomic_fetch_sub(&r->left, 1) == 1;
  if (rc == YK_ERANGE) {
    yk_error_clear();
    rc = YK_OK;
  }
  if (last && rc == YK_OK && !yk_coordinator_should_stop(c) && yk_tensor_queue_close(r->q, false) != YK_OK) yk_error_clear();
  return rc;
}

/* The coordinator frees it. */
static yk_code own(yk_coordinator *c, void *p) {
  owned *o = yk__alloc(sizeof *o);
  if (o == NULL) return YK_ENOMEM;
  yk__mutex_lock(&c->lock);
  *o = (owned){ c->things, p };
  c->things = o;
  yk__mutex_unlock(&c->lock);
  return YK_OK;
}

yk_code yk_queue_runner_start(yk_coordinator *c, yk_tensor_queue *q, int32_t nthreads, yk_enqueue_fn enqueue, void *arg) {
  if (c == NULL || q == NULL || enqueue == NULL)
    return YK_FAIL(EINVAL, "yk_queue_runner_start needs a coordinator, a queue and a function");
  if (nthreads < 1 || nthreads > 1024) return YK_FAIL(EINVAL, "a queue cannot be filled by %d threads", nthreads);
  runner *r = yk__calloc(1, sizeof *r + (size_t)nthreads * sizeof r->seat[0]);
  if (r == NULL) return YK_ENOMEM;
  r->q = q;
  r->enqueue = enqueue;
  r->arg = arg;
  atomic_init(&r->left, nthreads);
  yk_code rc = own(c, r);
  if (rc != YK_OK) {
    yk__free(r);
    return rc;
  }
  YK_TRY(yk_coordinator_on_stop(c, cancel, r));
  for (int32_t i = 0; i < nthreads && rc == YK_OK; i++) {
    char name[16];
    snprintf(name, sizeof name, "fill-%d", i);
    r->seat[i].r = r;
    r->seat[i].index = i;
    rc = yk_coordinator_start(c, name, fill, &r->seat[i]);
    if (rc != YK_OK) yk_coordinator_request_stop(c, rc);       /* those that were started must not fill for ever */
  }
  return rc;
}
