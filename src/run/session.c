/*
 * session.c - open and close; what happens once: placing the graph and telling it, freezing the graph.
 *
 * A session owns its devices, the storage of variables and the compiled plans. It
 * lives until it is closed and the last prepared step is freed, in either order.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/machine.h"
#include "run/run.h"

static void init_locks(yk_session *s) {
  yk_mutex *lock[] = { &s->compile_lock, &s->stream_lock, &s->write_lock, &s->cache_lock, &s->var_lock, &s->trace.lock };
  for (size_t i = 0; i < sizeof lock / sizeof *lock; i++) yk__mutex_init(lock[i]);
}

static void free_locks(yk_session *s) {
  yk_mutex *lock[] = { &s->compile_lock, &s->stream_lock, &s->write_lock, &s->cache_lock, &s->var_lock, &s->trace.lock };
  for (size_t i = 0; i < sizeof lock / sizeof *lock; i++) yk__mutex_free(lock[i]);
}

/* What a session holds beyond its own memory; steps must be gone. */
static void release(yk_session *s) {
  yk__memory_leave(s);
  yk__trace_free(s);
  if (s->hung) {                                           /* its streams must end before its memory goes */
    if (yk__run_drain(s->hung->run, -1) != YK_OK) yk_error_clear();
    yk__entry_unref(s->hung);
  }
  yk__cache_clear(s);
  if (s->devices) yk__vars_free(s);
  yk__devices_close(s->devices);
  yk_graph_free(s->g);
  yk__free(s->refused);
  yk__free(s->physical);
  yk__free(s->platform);
  yk__machine_free(s->machine);
  yk__free(s->visible);
  yk__free(s->groups);
  yk__free(s->split);
  yk__free(s->rehearse);
  yk__free(s->drivers);
  free_locks(s);
  yk__free(s);
}

void yk__session_ref(yk_session *s) {
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void yk__session_unref(yk_session *s) {
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) release(s);
}

/* ---- placement -------------------------------------------------------------------------------------------------- */

yk_place_request yk__session_placing(const yk_session *s) {
  return (yk_place_request){ .graph = s->g, .devices = s->devices, .var = s->var, .nvar = s->nvar,
                             .soft = s->options.allow_soft_placement };
}

/* Device of each node, and what moved from node `first` on. *dev: [nnode], the caller's. */
static yk_code place(const yk_session *s, uint32_t first, yk_str *moves, uint16_t **dev) {
  yk_place_request r = yk__session_placing(s);
  uint16_t *to = yk__alloc((s->g->nnode + 1u) * sizeof *to);
  if (to == NULL) return YK_ENOMEM;
  memset(to, 0xFF, (s->g->nnode + 1u) * sizeof *to);
  r.first = first;
  yk_code rc = yk__place_graph(&r, to, moves);
  if (rc == YK_OK) *dev = to;
  else yk__free(to);
  return rc;
}

/* A notice a line; a strict session refuses instead. */
static yk_code tell_moves(const yk_session *s, char *text) {
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    if (s->options.strict) return YK_FAIL(EUNSUPPORTED, "%s; refused because the session is strict", line);
    YK_LOG(NOTICE, "%s", line);
  }
  return YK_OK;
}

/* Place the graph as it is now: whatever cannot be placed is refused here, whatever moved is told here, once. */
static yk_code place_new(yk_session *s) {
  yk_str moves = { 0 };
  uint16_t *dev = NULL;
  char *text = NULL;
  if (atomic_load(&s->nplaced) + 1 >= s->g->nnode) return YK_OK;
  yk_code rc = place(s, atomic_load(&s->nplaced) + 1, &moves, &dev);
  if (rc != YK_OK) { yk__str_free(&moves); return rc; }
  yk__free(dev);
  YK_TRY(yk__str_take(&moves, &text));
  rc = tell_moves(s, text);
  yk__free(text);
  if (rc == YK_OK) atomic_store(&s->nplaced, s->g->nnode - 1);
  return rc;
}

/* One line a node, from number `first` on. */
static yk_code placement(yk_session *s, uint32_t first, char **out) {
  const yk_graph *g = s->g;
  yk_str text = { 0 };
  uint16_t *dev = NULL;
  YK_TRY(place(s, 1, NULL, &dev));
  for (uint32_t i = first; i < g->nnode; i++) {
    const yk_node *n = yk__node(g, i);
    if (n && dev[i] < s->devices->n) yk__str_add(&text, "%s: (%s): %s\n", n->name, n->op->label, s->devices->at[dev[i]].name);
  }
  yk__free(dev);
  return yk__str_take(&text, out);
}

yk_code yk_session_open(yk_graph *g, const yk_session_options *options, yk_session **out) {
  if (g == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_session_open: NULL graph or output");
  YK_TRY(yk_graph_status(g));
  yk_session *s = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  atomic_init(&s->refs, 1);
  init_locks(s);
  s->g = yk__graph_ref(g);
  yk_code rc = yk__session_open_devices(s, options);
  if (rc == YK_OK && (s->refused = yk__calloc(s->devices->n, sizeof *s->refused)) == NULL) rc = YK_ENOMEM;
  if (rc == YK_OK) rc = yk__vars_grow(s);
  if (rc == YK_OK) rc = place_new(s);
  if (rc != YK_OK) { release(s); return rc; }
  yk__memory_join(s);
  if (s->options.log_device_placement) yk__session_log_devices(s);
  *out = s;
  return YK_OK;
}

void yk_session_close(yk_session *s) {
  if (s == NULL) return;
  atomic_store(&s->closed, true);
  yk__session_unref(s);
}

const yk_session_options *yk_session_options_of(const yk_session *s) {
  return &s->options;
}

yk_plan_request yk__session_request(const yk_session *s, const yk_binding *b, const yk_desc *feed_desc, yk_var_slot *var) {
  return (yk_plan_request){
    .graph = s->g, .devices = s->devices, .var = var, .nfeed = b->nfeed, .feed = b->feed, .feed_desc = feed_desc,
    .nfetch = b->nfetch, .fetch = b->fetch, .ntarget = b->ntarget, .target = b->target,
    .soft_placement = s->options.allow_soft_placement, .strict = s->options.strict, .deterministic = s->options.deterministic };
}

yk_code yk_session_placement(yk_session *s, char **out) {
  if (s == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_session_placement: NULL session or output");
  yk__mutex_lock(&s->compile_lock);
  yk_code rc = placement(s, 1, out);
  yk__mutex_unlock(&s->compile_lock);
  return rc;
}

static yk_code start(yk_session *s) {
  uint32_t nlogged = atomic_load(&s->nlogged);
  if (!atomic_load(&s->started)) YK_TRY(yk_graph_status(s->g));
  YK_TRY(place_new(s));
  if (s->options.log_device_placement && nlogged + 1 < s->g->nnode) {
    char *text = NULL;
    YK_TRY(placement(s, nlogged + 1, &text));
    fputs(text, stdout);
    fflush(stdout);
    yk_free(text);
    atomic_store(&s->nlogged, s->g->nnode - 1);
  }
  if (!atomic_load(&s->started)) yk__graph_freeze(s->g);
  atomic_store_explicit(&s->started, true, memory_order_release);
  return YK_OK;
}

yk_code yk__session_start(yk_session *s) {
  bool logged = !s->options.log_device_placement || atomic_load(&s->nlogged) + 1 >= s->g->nnode;
  bool placed = atomic_load(&s->nplaced) + 1 >= s->g->nnode;
  if (logged && placed && atomic_load_explicit(&s->started, memory_order_acquire)) return YK_OK;
  yk__mutex_lock(&s->compile_lock);
  yk_code rc = start(s);
  yk__mutex_unlock(&s->compile_lock);
  return rc;
}
