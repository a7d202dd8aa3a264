/*
 * devices_watch.c - `yoke devices --watch`: the list and the running jobs, again and again.
 *
 * A terminal gets a second screen that is redrawn in place and leaves nothing behind; anything else gets one block, or with --json
 * one line, an interval. Ctrl-C is the usual end and therefore a success.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/thread.h"
#include "cli/devices.h"
#include "measure/measure.h"

enum { SLICE_MS = 100 };                             /* how late a signal may be noticed */
#define USUAL_SECONDS 2.0

/* False: it is time to end. */
static bool sleep_until(uint64_t ns) {
  for (uint64_t now; *yk__stop_flag() == 0 && (now = yk__now_ns()) < ns;) {
    uint64_t left = ns - now, slice = SLICE_MS * UINT64_C(1000000);
    nanosleep(&(struct timespec){ .tv_nsec = (long)(left < slice ? left : slice) }, NULL);
  }
  return *yk__stop_flag() == 0;
}

/* ---- one device ---------------------------------------------------------------------------------------------------- */

/* What jobs hold and use of it, together. The sessions of a process share the device's pool: each slot tells of all of it. */
static void add_jobs(const yk_glance *now, const yk_device_info *d, double *held, double *in_use, int *processes) {
  *held = *in_use = 0;
  *processes = 0;
  for (uint32_t i = 0; i < now->board.n; i++) {
    bool here = false;
    double most_held = 0, most_in_use = 0;
    for (uint32_t k = 0; k < YK__BOARD_SLOTS; k++) {
      const yk_board_slot *s = &now->board.at[i].slot[k];
      if (atomic_load(&s->session) == 0 || !yk__same_device(d, s)) continue;
      most_held = fmax(most_held, (double)atomic_load(&s->memory.held));
      most_in_use = fmax(most_in_use, (double)atomic_load(&s->memory.in_use));
      here = true;
    }
    *held += most_held;
    *in_use += most_in_use;
    *processes += here;
  }
}

static void put_device(const yk_glance *now, const yk_device_info *d) {
  char name[YK__SHORT_BYTES], busy[16] = "-", warm[16] = "-";
  double share = yk__busy_cores(now, d), held, in_use;
  int processes;
  if (share > YK__UNKNOWN) snprintf(busy, sizeof busy, "%.0f%%", share * 100);
  if (now->temperature > YK__UNKNOWN && d->ncores > 0) snprintf(warm, sizeof warm, "%.0f C", now->temperature);
  add_jobs(now, d, &held, &in_use, &processes);
  printf("%-8s  %5s  %5s  %10.1f  %10.1f  %10.1f  %9d  %s\n", yk__short_name(d->name, name), busy, warm, held / 1048576.0,
         in_use / 1048576.0, (double)d->bytes_limit / 1048576.0, processes, d->model);
}

static int put_block(yk_session *s, const yk_glance *now, bool terminal) {
  char clock[32] = "";
  time_t t = time(NULL);
  struct tm local;
  if (localtime_r(&t, &local) != NULL) strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", &local);
  if (terminal) fputs("\033[H\033[J", stdout);
  printf("%s\n%-8s  %5s  %5s  %10s  %10s  %10s  %9s  %s\n", clock, "device", "busy", "warm", "held MiB", "used MiB", "limit MiB",
         "processes", "model");
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_code rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) return yk__die_code(rc);
    put_device(now, &d);
  }
  yk__devices_jobs(now);
  if (!terminal) putchar('\n');
  return 0;
}

static int put_line(yk_session *s, const yk_glance *now) {
  yk_json o = { .flat = true };
  int status = yk__devices_object(&o, s, now);
  yk__json_close(&o, '}');
  if (status == 0 && !yk__json_flush(&o, stdout, NULL)) status = yk__die(YK__EXIT_RUN, "writing to the standard output failed");
  yk__str_free(&o.text);
  return status;
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

static int show(const yk_cli *c, yk_session *s, const yk_glance *now, bool terminal) {
  int status = c->json ? put_line(s, now) : put_block(s, now, terminal);
  if (status == 0 && fflush(stdout) != 0) status = yk__die(YK__EXIT_RUN, "writing to the standard output failed");
  return status;
}

/* Two glances take turns: shares are of the time between them. */
static int loop(const yk_cli *c, yk_session *s, bool terminal, yk_glance *two) {
  double seconds = c->watch > 0 ? c->watch : USUAL_SECONDS;
  uint64_t interval = (uint64_t)(seconds * 1e9), start = yk__now_ns();
  int status = yk__glance(NULL, &two[0]);
  for (int64_t n = 1; status == 0 && (c->count == 0 || n <= c->count); n++) {
    if (n > 1 && !sleep_until(start + (uint64_t)(n - 1) * interval)) break;
    if (n == 1 && !sleep_until(start + (interval < 100000000 ? interval : 100000000))) break;   /* a first share, soon */
    yk_glance *now = &two[n % 2], *before = &two[(n + 1) % 2];
    yk__glance_free(now);
    status = yk__glance(before, now);
    if (status == 0) status = show(c, s, now, terminal);
  }
  return status;
}

int yk__devices_watch(const yk_cli *c, yk_session *s) {
  bool terminal = !c->json && isatty(STDOUT_FILENO) == 1;
  yk_glance *two = yk__calloc(2, sizeof *two);
  if (two == NULL) return yk__die_code(YK_ENOMEM);
  yk__stop_catch();
  if (terminal) fputs("\033[?1049h\033[?25l", stdout);         /* second screen, no cursor */
  int status = loop(c, s, terminal, two);
  if (terminal) {
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
  }
  yk__glance_free(&two[0]);
  yk__glance_free(&two[1]);
  yk__free(two);
  return status;
}
