/*
 * topology.c - how fast bytes go from one device to another.
 *
 * A copy is made as the executor makes it: by the receiver's stream through the driver's copy_peer, behind an event of the
 * sender's stream; where the drivers differ or have none, out to host memory and in again. Each device gets two pieces of its
 * own memory, within its limit, so a small one is measured with small copies.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "measure/measure.h"
#include "run/run.h"

/* Bytes of a copy: beyond a core's caches, but little enough to be quick; less where there are many devices or little memory. */
enum { BLOCK = 32 << 20, SMALL_BLOCK = 4 << 20, LEAST_BLOCK = 4096, MANY = 8, WORD = 4 };
enum { LEAST_COPIES = 3, MOST_COPIES = 9, LEAST_WORDS = 10, MOST_WORDS = 200, WARM_WORDS = 3 };

typedef struct side {              /* one device and its two pieces of memory */
  yk_device *d;
  yk_stream *stream;
  yk_event *done;
  yk_mem source, target;
  size_t bytes;                    /* of each; 0: see why */
  char why[YK__WHY_BYTES];
} side;

typedef struct route {             /* NULL: host memory */
  side *from, *to;
  void *host;
  size_t bytes;
  yk_link_kind kind;
} route;

static yk_mem part(yk_mem m, size_t bytes) {
  m.bytes = bytes;
  return m;
}

static yk_code sync_side(const side *s) {
  uint64_t failed = 0;
  return s->d->driver->stream_sync(s->stream, &failed);
}

/* Once what the sender does is done: the receiver's stream waits for it, as in a plan. */
static yk_code hand_over(const side *from, const side *to) {
  if (from->stream == to->stream || from->d->driver != to->d->driver) return YK_OK;
  YK_TRY(from->d->driver->event_record(from->stream, from->done));
  return to->d->driver->event_wait(to->stream, from->done);
}

static yk_code through_host(const route *r) {
  YK_TRY(r->from->d->driver->copy_out(r->from->stream, r->host, part(r->from->source, r->bytes)));
  YK_TRY(sync_side(r->from));
  YK_TRY(r->to->d->driver->copy_in(r->to->stream, part(r->to->target, r->bytes), r->host));
  return sync_side(r->to);
}

static yk_code copy_once(void *arg) {
  const route *r = arg;
  if (r->from == NULL) {
    YK_TRY(r->to->d->driver->copy_in(r->to->stream, part(r->to->target, r->bytes), r->host));
    return sync_side(r->to);
  }
  if (r->to == NULL) {
    YK_TRY(r->from->d->driver->copy_out(r->from->stream, r->host, part(r->from->source, r->bytes)));
    return sync_side(r->from);
  }
  if (r->kind == YK__LINK_HOST) return through_host(r);
  const yk_driver *driver = r->to->d->driver;
  yk_mem to = part(r->to->target, r->bytes), from = part(r->from->source, r->bytes);
  YK_TRY(hand_over(r->from, r->to));
  if (r->from == r->to || !YK_HAS(driver, copy_peer)) YK_TRY(driver->copy(r->to->stream, to, from));
  else YK_TRY(driver->copy_peer(r->to->stream, to, r->from->d->dev, from));
  return sync_side(r->to);
}

/* ---- one device ---------------------------------------------------------------------------------------------------- */

static void give_back(side *s) {
  yk__device_free(s->d, s->source);
  yk__device_free(s->d, s->target);
  if (s->done != NULL) s->d->driver->event_close(s->done);
  s->source = s->target = (yk_mem){ 0 };
  s->done = NULL;
}

/* Two pieces of `bytes`, written once, so that their pages exist. */
static yk_code take_memory(side *s, size_t bytes) {
  YK_TRY(yk__device_alloc(s->d, bytes, &s->source));
  YK_TRY(yk__device_alloc(s->d, bytes, &s->target));
  YK_TRY(s->d->driver->fill(s->stream, s->source, 1));
  YK_TRY(s->d->driver->fill(s->stream, s->target, 0));
  return sync_side(s);
}

static yk_code open_side(side *s, const yk_device_info *info, size_t bytes) {
  YK_TRY(yk__device_stream(s->d, &s->stream));
  YK_TRY(s->d->driver->event_open(s->d->dev, &s->done));
  uint64_t rest = info->bytes_limit > info->bytes_in_use ? info->bytes_limit - info->bytes_in_use : 0;
  while (bytes > LEAST_BLOCK && bytes > rest / 4) bytes /= 2;
  yk_code rc = take_memory(s, bytes);
  while (rc == YK_ENOMEM && bytes > LEAST_BLOCK) {
    yk_error_clear();
    yk__device_free(s->d, s->source);
    yk__device_free(s->d, s->target);
    s->source = s->target = (yk_mem){ 0 };
    bytes /= 2;
    rc = take_memory(s, bytes);
  }
  if (rc == YK_OK) s->bytes = bytes;
  return rc;
}

/* ---- one link ------------------------------------------------------------------------------------------------------ */

static yk_link_kind kind_of(const side *from, const side *to) {
  if (from == NULL || to == NULL) return YK__LINK_HOST;
  if (from == to) return YK__LINK_SELF;
  if (yk__device_same_memory(from->d, to->d)) return YK__LINK_MEMORY;
  return from->d->driver == to->d->driver && YK_HAS(to->d->driver, copy_peer) ? YK__LINK_PEER : YK__LINK_HOST;
}

static yk_code measure_route(route *r, double seconds, yk_link *out) {
  double block, word;
  uint32_t runs;
  size_t bytes = r->bytes;
  YK_TRY(copy_once(r));
  YK_TRY(yk__repeat(copy_once, r, LEAST_COPIES, MOST_COPIES, 0.8 * seconds, &block, &out->copies));
  r->bytes = WORD;
  for (int i = 0; i < WARM_WORDS; i++) YK_TRY(copy_once(r));
  YK_TRY(yk__repeat(copy_once, r, LEAST_WORDS, MOST_WORDS, 0.2 * seconds, &word, &runs));
  out->bytes = bytes;
  out->bytes_per_second = (double)bytes / block;
  out->latency = word;
  out->measured = true;
  return YK_OK;
}

static void measure_link(side *from, side *to, void *host, double seconds, yk_link *out) {
  const side *bad = from != NULL && from->bytes == 0 ? from : to != NULL && to->bytes == 0 ? to : NULL;
  size_t bytes = from == NULL ? to->bytes : to == NULL || from->bytes < to->bytes ? from->bytes : to->bytes;
  route r = { .from = from, .to = to, .host = host, .bytes = bytes, .kind = kind_of(from, to) };
  out->kind = r.kind;
  if (bad != NULL) {
    snprintf(out->why, sizeof out->why, "%s", bad->why);
    return;
  }
  if (measure_route(&r, seconds, out) == YK_OK) return;
  snprintf(out->why, sizeof out->why, "%.390s", yk_error_message());
  yk_error_clear();
  out->measured = false;
}

const char *yk__link_text(yk_link_kind kind) {
  static const char *const text[] = { "self", "memory", "peer", "host" };
  return text[kind];
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static void measure_all(side *at, size_t n, void *host, double seconds, yk_topology *t) {
  double each = seconds / (double)(n * (n + 2));
  yk__team_rest();
  for (size_t i = 0; i < n; i++) {
    measure_link(NULL, &at[i], host, each, &t->in[i]);
    measure_link(&at[i], NULL, host, each, &t->out[i]);
    for (size_t k = 0; k < n; k++) measure_link(&at[i], &at[k], host, each, &t->between[i * n + k]);
  }
}

static yk_code measure(yk_session *s, double seconds, side *at, yk_topology *t) {
  size_t n = t->n, block = n > MANY ? SMALL_BLOCK : BLOCK;
  void *host = yk__alloc_aligned(block, 64);
  if (host == NULL) return YK_ENOMEM;
  memset(host, 1, block);
  for (size_t i = 0; i < n; i++) {
    at[i].d = &s->devices->at[i];
    if (open_side(&at[i], &t->device[i], block) == YK_OK) continue;
    snprintf(at[i].why, sizeof at[i].why, "%.390s", yk_error_message());
    yk_error_clear();
  }
  measure_all(at, n, host, seconds, t);
  for (size_t i = 0; i < n; i++) give_back(&at[i]);
  yk__free(host);
  return YK_OK;
}

yk_code yk__topology_measure(yk_session *s, double seconds, yk_topology *out) {
  size_t n = yk_session_device_count(s);
  if (n == 0) return YK_FAIL(EINVAL, "yk__topology_measure: no session, or one without devices");
  yk_topology t = { .n = n, .device = yk__calloc(n, sizeof *t.device), .between = yk__calloc(n * n, sizeof *t.between),
                    .in = yk__calloc(n, sizeof *t.in), .out = yk__calloc(n, sizeof *t.out) };
  side *at = yk__calloc(n, sizeof *at);
  yk_code rc = t.device && t.between && t.in && t.out && at ? YK_OK : YK_ENOMEM;
  for (size_t i = 0; i < n && rc == YK_OK; i++) rc = yk_session_device(s, i, &t.device[i]);
  if (rc == YK_OK) rc = measure(s, seconds, at, &t);
  yk__free(at);
  if (rc == YK_OK) *out = t;
  else yk__topology_free(&t);
  return rc;
}

void yk__topology_free(yk_topology *t) {
  yk__free(t->device);
  yk__free(t->between);
  yk__free(t->in);
  yk__free(t->out);
  *t = (yk_topology){ 0 };
}
