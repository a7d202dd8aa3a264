/*
 * devices_jobs.c - the Yoke processes that run: what each holds on which device, and how far it is.
 *
 * Everything here was told by those processes. A virtual GPU belongs to the process that emulates it: two processes with a
 * virtual GPU 0 have two of them, each with memory of its own, so they are shown under the job.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "cli/devices.h"
#include "measure/measure.h"

#define MIB 1048576.0

static int64_t seconds_of(const yk_board_page *p) {
  int64_t now = (int64_t)time(NULL);
  return now > p->since ? now - p->since : 0;
}

static int64_t count(const _Atomic uint64_t *x) {
  uint64_t n = atomic_load(x);
  return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static double bytes(const _Atomic uint64_t *x) {
  return (double)atomic_load(x);
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void put_slot(const yk_glance *now, const yk_board_page *p, const yk_board_slot *s) {
  char name[YK__SHORT_BYTES];
  double busy = yk__busy_slot(now, p, s);
  printf("  %-8s  holds %.1f of %.1f MiB", yk__shown(yk__short_name(s->name, name)), bytes(&s->memory.held) / MIB,
         bytes(&s->memory.limit) / MIB);
  if (s->fraction > 0) printf(", fraction %g of %.1f MiB", s->fraction, bytes(&s->memory.total) / MIB);
  if (s->growth) printf(", growing");
  printf("; %.1f MiB in use, at most %.1f; %lld steps", bytes(&s->memory.in_use) / MIB, bytes(&s->memory.peak_in_use) / MIB,
         (long long)count(&s->work.runs));
  if (busy > YK__UNKNOWN) printf("; busy %.0f%%", busy * 100);
  putchar('\n');
}

/* A device that did nothing yet and holds nothing is not worth a line: sessions have devices that they do not use. */
static bool idle(const yk_board_slot *s) {
  return atomic_load(&s->memory.held) == 0 && atomic_load(&s->work.runs) == 0;
}

void yk__devices_jobs(const yk_glance *now) {
  for (uint32_t i = 0; i < now->board.n; i++) {
    const yk_board_page *p = &now->board.at[i];
    int64_t s = seconds_of(p);
    printf("process %lld: %s, for %lld:%02lld:%02lld\n", (long long)p->pid, yk__shown(p->command), (long long)(s / 3600),
           (long long)(s / 60 % 60), (long long)(s % 60));
    for (uint32_t k = 0; k < YK__BOARD_SLOTS; k++)
      if (atomic_load(&p->slot[k].session) != 0 && !idle(&p->slot[k])) put_slot(now, p, &p->slot[k]);
    if (atomic_load(&p->hidden) > 0) printf("  %lld more devices\n", (long long)count(&p->hidden));
  }
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void put_busy(yk_json *o, double busy) {
  yk__json_real(o, "utilisation", busy > YK__UNKNOWN ? busy : (double)NAN);
}

static void put_memory(yk_json *o, const yk_board_memory *m) {
  yk__json_int(o, "bytes_total", count(&m->total));
  yk__json_int(o, "bytes_limit", count(&m->limit));
  yk__json_int(o, "bytes_held", count(&m->held));
  yk__json_int(o, "peak_held", count(&m->peak_held));
  yk__json_int(o, "bytes_in_use", count(&m->in_use));
  yk__json_int(o, "peak_in_use", count(&m->peak_in_use));
}

static void put_slot_json(yk_json *o, const yk_glance *now, const yk_board_page *p, const yk_board_slot *s) {
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_int(o, "session", count(&s->session));
  yk__json_text(o, "name", s->name);
  yk__json_text(o, "type", s->type);
  yk__json_text(o, "model", s->model);
  yk__json_text(o, "driver", s->driver);
  yk__json_text(o, "bus", s->bus);
  yk__json_text(o, "uuid", s->uuid);
  yk__json_bool(o, "virtual", s->is_virtual != 0);
  yk__json_int(o, "first_core", s->first_core);
  yk__json_int(o, "cores", s->ncores);
  yk__json_real(o, "fraction", s->fraction > 0 ? s->fraction : (double)NAN);
  yk__json_bool(o, "growth", s->growth != 0);
  put_memory(o, &s->memory);
  yk__json_int(o, "steps", count(&s->work.runs));
  put_busy(o, yk__busy_slot(now, p, s));
  yk__json_close(o, '}');
}

void yk__devices_jobs_json(yk_json *o, const yk_glance *now) {
  yk__json_open(o, "jobs", '[');
  for (uint32_t i = 0; i < now->board.n; i++) {
    const yk_board_page *p = &now->board.at[i];
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_int(o, "pid", p->pid);
    yk__json_text(o, "command", p->command);
    yk__json_int(o, "seconds", seconds_of(p));
    yk__json_int(o, "hidden_devices", count(&p->hidden));
    yk__json_open(o, "devices", '[');
    for (uint32_t k = 0; k < YK__BOARD_SLOTS; k++)
      if (atomic_load(&p->slot[k].session) != 0) put_slot_json(o, now, p, &p->slot[k]);
    yk__json_close(o, ']');
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

void yk__devices_processes_json(yk_json *o, const yk_device_info *d, const yk_glance *now) {
  yk__json_open(o, "processes", '[');
  for (uint32_t i = 0; i < now->board.n; i++) {
    const yk_board_page *p = &now->board.at[i];
    for (uint32_t k = 0; k < YK__BOARD_SLOTS; k++) {
      const yk_board_slot *s = &p->slot[k];
      if (atomic_load(&s->session) == 0 || !yk__same_device(d, s)) continue;
      yk__json_open(o, NULL, '{');
      yk__json_int(o, "pid", p->pid);
      yk__json_text(o, "command", p->command);
      yk__json_int(o, "session", count(&s->session));
      yk__json_text(o, "name", s->name);
      yk__json_int(o, "bytes_held", count(&s->memory.held));
      yk__json_int(o, "bytes_in_use", count(&s->memory.in_use));
      yk__json_int(o, "steps", count(&s->work.runs));
      put_busy(o, yk__busy_slot(now, p, s));
      yk__json_close(o, '}');
    }
  }
  yk__json_close(o, ']');
}
