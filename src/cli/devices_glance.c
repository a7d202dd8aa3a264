/*
 * devices_glance.c - what is going on at this moment: the board of running jobs, the host's load, its temperature.
 *
 * A share needs two moments: each glance knows the one before it, and what was not there then has no share yet.
 */
#include <string.h>
#include <unistd.h>
#include "base/thread.h"
#include "cli/devices.h"

int yk__glance(const yk_glance *before, yk_glance *out) {
  char folder[YK__BOARD_PATH];
  *out = (yk_glance){ .ns = yk__now_ns(), .temperature = yk__temperature("/sys"), .before = before };
  yk__load_read("/proc/stat", &out->load);
  yk_code rc = yk__board_read(yk__board_folder(folder), &out->board);
  if (rc != YK_OK) return yk__die_code(rc);
  yk_board *b = &out->board;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < b->n; i++) {              /* this process is only looking */
    if (b->at[i].pid == getpid()) continue;
    if (kept != i) memcpy(&b->at[kept], &b->at[i], sizeof *b->at);
    kept++;
  }
  b->n = kept;
  return 0;
}

void yk__glance_free(yk_glance *g) {
  yk__board_free(&g->board);
}

double yk__busy_cores(const yk_glance *now, const yk_device_info *d) {
  if (now->before == NULL || d->ncores == 0) return YK__UNKNOWN;
  return yk__load_between(&now->before->load, &now->load, d->first_core, d->ncores);
}

static uint64_t busy_ns(const yk_board_slot *s) {
  return atomic_load(&s->work.run_ns) + atomic_load(&s->work.stream_ns);
}

double yk__busy_slot(const yk_glance *now, const yk_board_page *job, const yk_board_slot *slot) {
  const yk_glance *before = now->before;
  uint64_t session = atomic_load(&slot->session);
  for (uint32_t i = 0; before != NULL && i < before->board.n; i++) {
    const yk_board_page *p = &before->board.at[i];
    const yk_board_slot *s = &p->slot[slot - job->slot];
    if (p->pid != job->pid || p->start != job->start || atomic_load(&s->session) != session || now->ns <= before->ns) continue;
    if (busy_ns(slot) < busy_ns(s)) return YK__UNKNOWN;
    double share = (double)(busy_ns(slot) - busy_ns(s)) / (double)(now->ns - before->ns);
    return share > 1 ? 1 : share;
  }
  return YK__UNKNOWN;
}

bool yk__same_device(const yk_device_info *d, const yk_board_slot *slot) {
  if (strcmp(d->type, slot->type) != 0 || strcmp(d->driver, slot->driver) != 0) return false;
  if (d->uuid[0] != '\0' || slot->uuid[0] != '\0') return strcmp(d->uuid, slot->uuid) == 0;
  if (d->bus[0] != '\0' || slot->bus[0] != '\0') return strcmp(d->bus, slot->bus) == 0;
  return strcmp(d->name, slot->name) == 0;
}
