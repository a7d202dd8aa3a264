/*
 * executor.c - run a compiled plan: one loop, one switch.
 *
 * It decides nothing: arguments, streams and events were resolved by the
 * activation, so an instruction is one call of the driver. It refuses to
 * allocate, look up or lock. What goes wrong is found out at the end: every
 * stream is drained, the earliest failure is kept, and the plan's origin table
 * turns its instruction into a node and the user's line.
 */
#include <sched.h>
#include <string.h>
#include <time.h>
#include "base/alloc.h"
#include "base/error.h"
#include "device/board.h"
#include "run/run.h"

bool yk__instr_works(const yk_instr *i) {
  return i->code != YK_I_RECORD && i->code != YK_I_WAIT;
}

/* ---- waiting with a limit --------------------------------------------------------------------------------------- */

/* A driver that cannot wait is asked again and again, with sleeps of 1/32 of the time waited so far (at most 200 us): that is at
 * most 3% late and costs no core. */
static yk_code wait_event(const yk_driver *driver, yk_event *e, int64_t timeout_ms) {
  if (YK_HAS(driver, event_sync)) return driver->event_sync(e, timeout_ms);
  uint64_t start = yk__now_ns();
  for (;;) {
    yk_code rc = driver->event_query(e);
    if (rc != YK_EBUSY) return rc;
    uint64_t waited = yk__now_ns() - start;
    if (timeout_ms > 0 && waited / 1000000u >= (uint64_t)timeout_ms) return YK_EBUSY;
    if (waited < 20000) { sched_yield(); continue; }
    uint64_t slice = waited / 32;
    if (slice > 200000) slice = 200000;
    nanosleep(&(struct timespec){ .tv_nsec = (long)slice }, NULL);
  }
}

/* ---- one instruction -------------------------------------------------------------------------------------------- */

/* Lanes of devices that share their cores may have one stream in common. */
static bool together(const yk_run *r, uint32_t k, uint32_t other) {
  return r->lane[k].stream == r->lane[other].stream;
}

/* The instruction whose work was the `failed`-th on the stream of lane `k` since its last sync; YK__NO_INSTR if it was none of the
 * plan's. */
static uint32_t blame(const yk_run *r, uint32_t k, uint64_t failed) {
  uint64_t before = 0;
  for (uint32_t j = 0; j < r->plan->nstream; j++)
    if (together(r, k, j)) before += r->lane[j].before;
  if (failed < before) return YK__NO_INSTR;
  uint64_t left = failed - before;
  for (uint32_t i = r->lane[k].base; i < r->plan->ninstr; i++) {
    const yk_instr *in = &r->plan->instr[i];
    if (!together(r, k, in->stream) || !yk__instr_works(in)) continue;
    if (left-- == 0) return i;
  }
  return YK__NO_INSTR;
}

/* Between devices of different drivers, or of a driver without peer copies: through the host, waiting for the source. */
static yk_code copy_bounce(yk_run *r, uint32_t i, yk_lane *to, yk_lane *from, const yk_mem *a) {
  uint64_t failed = 0;
  YK_TRY(from->driver->copy_out(from->stream, r->bounce[i], a[1]));
  yk_code rc = from->driver->stream_sync(from->stream, &failed);
  if (rc != YK_OK) r->failed_at = blame(r, (uint32_t)(from - r->lane), failed);
  for (uint32_t k = 0; k < r->plan->nstream; k++) {
    if (!together(r, (uint32_t)(from - r->lane), k)) continue;
    r->lane[k].base = i + 1;
    r->lane[k].before = 0;
  }
  if (rc != YK_OK) return rc;
  return to->driver->copy_in(to->stream, a[0], r->bounce[i]);
}

static yk_code copy_peer(yk_run *r, uint32_t i, yk_lane *to, const yk_mem *a) {
  const yk_plan *p = r->plan;
  uint16_t dev = p->arena[p->buf[p->arg[p->instr[i].args + 1]].arena].dev;
  if (r->devices->at[dev].dev == to->device->dev) return to->driver->copy(to->stream, a[0], a[1]);      /* parts of one device */
  if (r->bounce == NULL || r->bounce[i] == NULL) return to->driver->copy_peer(to->stream, a[0], r->devices->at[dev].dev, a[1]);
  for (uint32_t k = 0; k < p->nstream; k++)
    if (p->stream_dev[k] == dev) return copy_bounce(r, i, to, &r->lane[k], a);
  return YK_FAIL(EINTERNAL, "no stream for the source device %s", r->devices->at[dev].name);
}

static yk_code wait_for(yk_run *r, uint32_t event, const yk_lane *l, const yk_io *io) {
  const yk_lane *by = &r->lane[r->plan->event_stream[event]];
  if (by->stream == l->stream) return YK_OK;               /* in order anyway */
  if (by->driver == l->driver) return l->driver->event_wait(l->stream, r->event[event]);
  yk_code rc = wait_event(by->driver, r->event[event], io->timeout_ms);    /* another driver's event: the host waits */
  return rc == YK_EBUSY ? YK_FAIL(ECANCELLED, "no end after %lld ms", (long long)io->timeout_ms) : rc;
}

static inline yk_code step(yk_run *r, uint32_t i, const yk_io *io) {
  const yk_instr *in = &r->plan->instr[i];
  yk_lane *l = &r->lane[in->stream];
  const yk_mem *a = r->arg + in->args;
  switch ((yk_opcode)in->code) {
  case YK_I_LAUNCH:
    return l->driver->kernel_launch(r->plan->kernel[in->a].kernel, l->stream, a, in->nargs, r->workspace[in->a]);
  case YK_I_COPY:      return l->driver->copy(l->stream, a[0], a[1]);
  case YK_I_COPY_PEER: return copy_peer(r, i, l, a);
  case YK_I_FEED:      return l->driver->copy_in(l->stream, a[0], io->feed[in->a]);
  case YK_I_FETCH:     return l->driver->copy_out(l->stream, io->fetch[in->a], a[0]);
  case YK_I_FILL:      return l->driver->fill(l->stream, a[0], (uint8_t)in->a);
  case YK_I_RECORD:    return l->driver->event_record(l->stream, r->event[in->a]);
  case YK_I_WAIT:      return wait_for(r, in->a, l, io);
  }
  return YK_FAIL(EINTERNAL, "unknown instruction %u", in->code);
}

yk_code yk__run_instr(yk_run *r, uint32_t i, const yk_io *io) {
  return step(r, i, io);
}

/* ---- the end of a run ------------------------------------------------------------------------------------------- */

static yk_code named(const yk_run *r, uint32_t at, yk_code rc) {
  if (at >= r->plan->ninstr) return yk__fail_prefix(rc, "run counter");
  const yk_origin *o = &r->plan->origin[r->plan->instr[at].origin];
  return yk__fail_prefix(rc, "%s (%s) at %s", o->name, o->label, o->where ? o->where : "?");
}

/* Wait for all threaded lanes; on a time-out *lane is one that is still busy. */
static yk_code wait_lanes(yk_run *r, int64_t timeout_ms, uint32_t *lane) {
  uint64_t start = yk__now_ns();
  for (uint32_t k = 0; k < r->plan->nstream; k++) {
    int64_t left = timeout_ms - (int64_t)((yk__now_ns() - start) / 1000000u);
    if (wait_event(r->lane[k].driver, r->lane[k].done, left < 1 ? 1 : left) != YK_EBUSY) continue;
    *lane = k;
    return YK_EBUSY;
  }
  return YK_OK;          /* failures are the sync's to tell */
}

/* What the stream of lane k is busy with: the first work after the last event of the plan that has fired. */
static uint32_t busy_at(const yk_run *r, uint32_t k) {
  const yk_plan *p = r->plan;
  uint32_t from = 0;
  for (uint32_t i = 0; i < p->ninstr; i++)
    if (together(r, k, p->instr[i].stream) && p->instr[i].code == YK_I_RECORD &&
        r->lane[k].driver->event_query(r->event[p->instr[i].a]) == YK_OK)
      from = i + 1;
  for (uint32_t i = from; i < p->ninstr; i++)
    if (together(r, k, p->instr[i].stream) && yk__instr_works(&p->instr[i])) return i;
  return YK__NO_INSTR;
}

static yk_code out_of_time(yk_run *r, int64_t timeout_ms, uint32_t lane) {
  uint32_t at = busy_at(r, lane), on = at == YK__NO_INSTR ? lane : r->plan->instr[at].stream;
  yk_code rc = YK_FAIL(ECANCELLED, "the step has not ended within %lld ms; %s is at or after this operation (a larger "
                       "yk_session_options.timeout_ms waits longer)", (long long)timeout_ms, r->lane[on].device->name);
  r->busy = true;
  return named(r, at, rc);
}

/* Sync every lane; the failure of the smallest instruction wins over `rc` at `at`. */
static yk_code sync_lanes(yk_run *r, yk_code rc, uint32_t at) {
  char kept[YK__ERROR_BYTES] = "";
  if (rc != YK_OK) memcpy(kept, yk_error_message(), strnlen(yk_error_message(), sizeof kept - 1) + 1);
  for (uint32_t k = 0; k < r->plan->nstream; k++) {
    uint64_t failed = 0;
    yk_code now = r->lane[k].driver->stream_sync(r->lane[k].stream, &failed);
    if (now == YK_OK) continue;
    uint32_t i = blame(r, k, failed);
    if (rc != YK_OK && i >= at) continue;
    rc = now;
    at = i;
    memcpy(kept, yk_error_message(), strnlen(yk_error_message(), sizeof kept - 1) + 1);
  }
  if (rc == YK_OK) return YK_OK;
  return named(r, at, yk__fail(rc, __FILE__, __LINE__, "%s", kept));
}

yk_code yk__run_begin(yk_run *r, int64_t counter) {
  const yk_plan *p = r->plan;
  r->failed_at = YK__NO_INSTR;
  r->began = yk__coarse_ns();
  r->counter_value = counter;
  for (uint32_t k = 0; k < p->nstream; k++) r->lane[k].base = r->lane[k].before = 0;
  for (uint32_t c = 0; c < r->ncounter; c++) {
    yk_mem mem = yk__run_mem(r, NULL, r->counter[c]);
    uint16_t dev = p->arena[p->buf[r->counter[c]].arena].dev;
    for (uint32_t k = 0; k < p->nstream; k++) {
      if (p->stream_dev[k] != dev) continue;
      YK_TRY(r->lane[k].driver->copy_in(r->lane[k].stream, mem, &r->counter_value));
      r->lane[k].before++;
    }
  }
  return YK_OK;
}

/* For whoever watches: one relaxed addition a device. */
static void count_run(yk_run *r) {
  uint64_t took = yk__coarse_ns() - r->began, busy;
  for (uint32_t k = 0; k < r->plan->nstream; k++) {
    yk_lane *l = &r->lane[k];
    if (!l->counts) continue;
    yk_work_counters *w = l->device->work;
    yk__board_memory(l->device);
    atomic_fetch_add_explicit(&w->runs, 1, memory_order_relaxed);
    if (r->is_inline || !YK_HAS(l->driver, stream_busy)) {
      if (took > 0) atomic_fetch_add_explicit(&w->run_ns, took, memory_order_relaxed);
    } else if (l->driver->stream_busy(l->stream, &busy) == YK_OK) {
      atomic_store_explicit(&w->stream_ns, busy, memory_order_relaxed);
    }
  }
}

static yk_code finish(yk_run *r, const yk_io *io, yk_code rc, uint32_t at) {
  if (r->is_inline && rc == YK_OK) {
    uint64_t failed = 0;
    rc = r->lane[0].driver->stream_sync(r->lane[0].stream, &failed);
    return rc == YK_OK ? YK_OK : named(r, blame(r, 0, failed), rc);
  }
  if (r->failed_at < at) at = r->failed_at;
  if (!r->is_inline && io->timeout_ms > 0) {
    uint32_t lane = 0;
    for (uint32_t k = 0; k < r->plan->nstream; k++) {
      yk_code now = r->lane[k].driver->event_record(r->lane[k].stream, r->lane[k].done);
      if (now != YK_OK && rc == YK_OK) rc = now;
    }
    if (rc == YK_OK && wait_lanes(r, io->timeout_ms, &lane) != YK_OK) return out_of_time(r, io->timeout_ms, lane);
  }
  return sync_lanes(r, rc, at);
}

yk_code yk__run_finish(yk_run *r, const yk_io *io, yk_code rc, uint32_t at) {
  rc = finish(r, io, rc, at);
  if (rc == YK_OK) count_run(r);
  return rc;
}

yk_code yk__run_drain(yk_run *r, int64_t timeout_ms) {
  uint32_t lane = 0;
  uint64_t failed = 0;
  if (timeout_ms > 0 && wait_lanes(r, timeout_ms, &lane) != YK_OK) return out_of_time(r, timeout_ms, lane);
  for (uint32_t k = 0; k < r->plan->nstream; k++)
    if (r->lane[k].driver->stream_sync(r->lane[k].stream, &failed) != YK_OK) yk_error_clear();
  r->busy = false;
  return YK_OK;
}

yk_code yk__run_go(yk_run *r, const yk_io *io) {
  if (!r->is_inline) yk__team_rest();
  yk_code rc = yk__run_begin(r, io->counter);
  if (rc != YK_OK) return yk__run_finish(r, io, rc, YK__NO_INSTR);
  uint32_t n = r->plan->ninstr, i = 0;
  for (; i < n; i++) {
    rc = step(r, i, io);
    if (rc != YK_OK) break;
  }
  return yk__run_finish(r, io, rc, i);
}
