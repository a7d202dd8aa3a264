/*
 * trace.c - a timeline of the steps of a session, in Chrome's trace format.
 *
 * While a trace is on, the executor's pieces are called from here with a clock
 * around them (inline streams) or an event before and after each (threaded ones).
 * While it is off nothing of this costs anything. Plans named in the trace are
 * kept until it is written, so names are borrowed, not copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include "base/alloc.h"
#include "base/error.h"
#include "run/run.h"

enum { MAX_EVENTS = 1 << 22 };

/* ---- collect ---------------------------------------------------------------------------------------------------- */

/* With the trace lock held. A trace that runs out of room or memory counts what it drops; the step does not fail for it. */
static void add(yk_trace *t, yk_entry *e, uint32_t instr, uint64_t start, uint64_t end) {
  if (e->trace_of != t->number) {
    if (!YK_PUSH(t->entry, t->nentry, t->entry_cap, e)) { yk_error_clear(); t->dropped++; return; }
    yk__entry_ref(e);
    e->trace_of = t->number;
  }
  yk_trace_event event = { .entry = e, .instr = instr, .start = start, .end = end };
  if (t->n >= MAX_EVENTS) t->dropped++;
  else if (!YK_PUSH(t->event, t->n, t->cap, event)) { yk_error_clear(); t->dropped++; }
}

static void add_locked(yk_session *s, yk_entry *e, uint32_t instr, uint64_t start, uint64_t end) {
  yk__mutex_lock(&s->trace.lock);
  if (atomic_load(&s->trace.on)) add(&s->trace, e, instr, start, end);
  yk__mutex_unlock(&s->trace.lock);
}

static yk_code traced_inline(yk_entry *e, const yk_io *io) {
  yk_run *r = e->run;
  yk_code rc = yk__run_begin(r, io->counter);
  uint32_t i = 0;
  for (; rc == YK_OK && i < r->plan->ninstr; i++) {
    uint64_t start = yk__now_ns();
    rc = yk__run_instr(r, i, io);
    if (rc != YK_OK) break;
    if (yk__instr_works(&r->plan->instr[i])) add_locked(e->s, e, i, start, yk__now_ns());
  }
  return yk__run_finish(r, io, rc, i);
}

/* Those that a run before failed to make are made by the next one. */
static yk_code make_marks(yk_run *r) {
  if (r->marked) return YK_OK;
  if (r->mark == NULL) r->mark = yk__bump(&r->mem, (2u * r->plan->ninstr + 1u) * sizeof(yk_event *));
  if (r->mark == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < 2 * r->plan->ninstr; i++) {
    const yk_instr *instr = &r->plan->instr[i / 2];
    const yk_lane *l = &r->lane[instr->stream];
    if (r->mark[i] == NULL && yk__instr_works(instr) && YK_HAS(l->driver, event_time))
      YK_TRY(l->driver->event_open(l->device->dev, &r->mark[i]));
  }
  r->marked = true;
  return YK_OK;
}

static yk_code marked_instr(yk_run *r, uint32_t i, const yk_io *io) {
  const yk_lane *l = &r->lane[r->plan->instr[i].stream];
  if (r->mark[2 * i + 1] == NULL) return yk__run_instr(r, i, io);
  YK_TRY(l->driver->event_record(l->stream, r->mark[2 * i]));
  YK_TRY(yk__run_instr(r, i, io));
  return l->driver->event_record(l->stream, r->mark[2 * i + 1]);
}

static yk_code traced_streams(yk_entry *e, const yk_io *io) {
  yk_run *r = e->run;
  YK_TRY(make_marks(r));
  yk_code rc = yk__run_begin(r, io->counter);
  uint32_t i = 0;
  for (; rc == YK_OK && i < r->plan->ninstr; i++)
    if ((rc = marked_instr(r, i, io)) != YK_OK) break;
  rc = yk__run_finish(r, io, rc, i);
  for (i = 0; rc == YK_OK && i < r->plan->ninstr; i++) {
    const yk_driver *d = r->lane[r->plan->instr[i].stream].driver;
    uint64_t start = 0, end = 0;
    if (r->mark[2 * i + 1] == NULL) continue;
    if (d->event_time(r->mark[2 * i], &start) == YK_OK && d->event_time(r->mark[2 * i + 1], &end) == YK_OK)
      add_locked(e->s, e, i, start, end);
    else yk_error_clear();
  }
  return rc;
}

yk_code yk__run_traced(yk_entry *e, const yk_io *io) {
  return e->run->is_inline ? traced_inline(e, io) : traced_streams(e, io);
}

/* ---- write ------------------------------------------------------------------------------------------------------ */

static uint16_t device_of(const yk_trace_event *e) {
  const yk_plan *p = e->entry->plan;
  return p->stream_dev[p->instr[e->instr].stream];
}

static int by_start(const void *a, const void *b) {
  const yk_trace_event *x = a, *y = b;
  uint16_t dx = device_of(x), dy = device_of(y);
  if (dx != dy) return dx < dy ? -1 : 1;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return x->instr < y->instr ? -1 : x->instr > y->instr;
}

/* Threads that run on one device at once get lanes of their own: the first that is free. */
static yk_code assign_lanes(yk_trace *t) {
  uint64_t *busy = NULL;
  uint32_t n = 0, cap = 0;
  if (t->n) qsort(t->event, t->n, sizeof *t->event, by_start);
  for (uint32_t i = 0; i < t->n; i++) {
    yk_trace_event *e = &t->event[i];
    if (i == 0 || device_of(e) != device_of(e - 1)) n = 0;
    uint32_t k = 0;
    while (k < n && busy[k] > e->start) k++;
    if (k == n && !YK_PUSH(busy, n, cap, 0)) { yk__free(busy); return YK_ENOMEM; }
    busy[k] = e->end;
    e->lane = k;
  }
  yk__free(busy);
  return YK_OK;
}

static void put_text(FILE *f, const char *s) {
  fputc('"', f);
  while (s && *s) {
    unsigned char c = (unsigned char)*s;
    size_t n = yk__utf8(s);
    if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
    else if (c < 0x20 || c == 0x7F || n == 0) fprintf(f, "\\u%04x", c);
    else fwrite(s, 1, n, f);
    s += n ? n : 1;
  }
  fputc('"', f);
}

static void put_event(FILE *f, const yk_trace *t, const yk_trace_event *e) {
  static const char *const copy[] = { [YK_I_COPY] = "Copy", [YK_I_COPY_PEER] = "CopyPeer", [YK_I_FEED] = "Feed",
                                      [YK_I_FETCH] = "Fetch", [YK_I_FILL] = "Fill" };
  const yk_plan *p = e->entry->plan;
  const yk_instr *in = &p->instr[e->instr];
  const yk_origin *o = &p->origin[in->origin];
  bool launch = in->code == YK_I_LAUNCH;
  fputs(",\n{\"ph\":\"X\",\"name\":", f);
  put_text(f, launch ? o->label : copy[in->code]);
  fprintf(f, ",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"name\":",
          launch ? "kernel" : "copy", device_of(e), e->lane, (double)(e->start - t->begin) / 1e3,
          (double)(e->end - e->start) / 1e3);
  put_text(f, o->name);
  fputs(",\"origin\":", f);
  put_text(f, o->where);
  if (launch) {
    fputs(",\"impl\":", f);
    put_text(f, p->kernel[in->a].impl);
  }
  fputs("}}", f);
}

static int put_all(FILE *f, const yk_session *s) {
  const yk_trace *t = &s->trace;
  fprintf(f, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_events\":%llu},\"traceEvents\":[\n",
          (unsigned long long)t->dropped);
  for (uint16_t i = 0; i < s->devices->n; i++) {
    fprintf(f, "%s{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":", i ? ",\n" : "", i);
    put_text(f, s->devices->at[i].name);
    fputs("}}", f);
  }
  for (uint32_t i = 0; i < t->n; i++) put_event(f, t, &t->event[i]);
  fputs("\n]}\n", f);
  return ferror(f) || fflush(f) != 0 || fsync(fileno(f)) != 0;
}

/* Whole or not at all: a reader never sees half a file. */
static yk_code write_file(const yk_session *s, const char *path) {
  yk_str name = { 0 };
  char *temporary = NULL;
  yk__str_add(&name, "%s.%ld.tmp", path, (long)getpid());
  YK_TRY(yk__str_take(&name, &temporary));
  yk_code rc = YK_OK;
  FILE *f = fopen(temporary, "w");
  if (f == NULL) rc = YK_FAIL(EIO, "%s: cannot be created: %s", temporary, strerror(errno));
  if (f) {
    int bad = put_all(f, s);
    if (fclose(f) != 0 || bad) rc = YK_FAIL(EIO, "%s: cannot be written: %s", temporary, strerror(errno));
    if (rc == YK_OK && rename(temporary, path) != 0)
      rc = YK_FAIL(EIO, "%s: cannot be renamed to %s: %s", temporary, path, strerror(errno));
    if (rc != YK_OK) remove(temporary);
  }
  yk__free(temporary);
  return rc;
}

/* Forget what was collected. With the trace lock held; the entries are for the caller to drop once it is released. */
static void empty(yk_trace *t, yk_entry ***entry, uint32_t *n) {
  *entry = t->entry;
  *n = t->nentry;
  yk__free(t->event);
  t->event = NULL;
  t->entry = NULL;
  t->n = t->cap = t->nentry = t->entry_cap = 0;
  t->dropped = 0;
}

static void drop(yk_entry **entry, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) yk__entry_unref(entry[i]);
  yk__free(entry);
}

yk_code yk_trace_start(yk_session *s) {
  yk_entry **entry;
  uint32_t n;
  if (s == NULL) return YK_FAIL(EINVAL, "yk_trace_start: NULL session");
  yk__mutex_lock(&s->trace.lock);
  empty(&s->trace, &entry, &n);
  s->trace.number++;
  s->trace.begin = yk__now_ns();
  atomic_store(&s->trace.on, true);
  yk__mutex_unlock(&s->trace.lock);
  drop(entry, n);
  return YK_OK;
}

yk_code yk_trace_write(yk_session *s, const char *path) {
  yk_entry **entry = NULL;
  uint32_t n = 0;
  if (s == NULL || path == NULL) return YK_FAIL(EINVAL, "yk_trace_write: NULL session or path");
  yk__mutex_lock(&s->trace.lock);
  yk_code rc = atomic_load(&s->trace.on) ? YK_OK : YK_FAIL(EINVAL, "no trace was started: call yk_trace_start() first");
  if (rc == YK_OK) rc = assign_lanes(&s->trace);
  if (rc == YK_OK) rc = write_file(s, path);
  if (rc == YK_OK) {                                       /* on failure the trace goes on, to be written elsewhere */
    atomic_store(&s->trace.on, false);
    empty(&s->trace, &entry, &n);
  }
  yk__mutex_unlock(&s->trace.lock);
  drop(entry, n);
  return rc;
}

yk_code yk__trace_take(yk_session *s, void (*each)(const yk_plan *p, uint32_t instr, uint64_t ns, void *arg), void *arg) {
  yk_entry **entry = NULL;
  uint32_t n = 0;
  yk__mutex_lock(&s->trace.lock);
  yk_code rc = atomic_load(&s->trace.on) ? YK_OK : YK_FAIL(EINVAL, "no trace was started: call yk_trace_start() first");
  for (uint32_t i = 0; rc == YK_OK && i < s->trace.n; i++) {
    const yk_trace_event *e = &s->trace.event[i];
    each(e->entry->plan, e->instr, e->end - e->start, arg);
  }
  if (rc == YK_OK) {
    atomic_store(&s->trace.on, false);
    empty(&s->trace, &entry, &n);
  }
  yk__mutex_unlock(&s->trace.lock);
  drop(entry, n);
  return rc;
}

void yk__trace_free(yk_session *s) {
  yk_entry **entry;
  uint32_t n;
  empty(&s->trace, &entry, &n);
  drop(entry, n);
}
