/*
 * board.c - the writing side of the board: one file a process, from its first session to its last.
 *
 * A file is made under a hidden name, locked, filled and renamed, so that whoever sees it sees a locked and whole one. Its room is
 * taken before it is mapped: on a full memory file system the process must not die of a later write. A forked child shares the
 * mapping of its parent but not the page: it makes one of its own.
 */
#include "device/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"

const char yk__board_magic[8] = "yokebrd";

static struct {
  _Atomic uint32_t lock;           /* pid of the process whose thread is in here; 0: nobody */
  yk_board_page *page;
  int64_t pid;                     /* whose page it is */
  int file;
  uint32_t users;                  /* sessions that have slots */
  char path[YK__BOARD_PATH + 64];
  char command[YK__BOARD_COMMAND];
  bool told;
} mine;

/* ---- lock ---------------------------------------------------------------------------------------------------------- */

/* A lock that a fork caught in another thread of the parent has no owner here: it carries the parent's pid. */
static void lock(void) {
  uint32_t me = (uint32_t)getpid(), seen = 0;
  while (!atomic_compare_exchange_strong(&mine.lock, &seen, me)) {
    if (seen != me && atomic_compare_exchange_strong(&mine.lock, &seen, me)) return;
    if (seen == me) yk__word_wait(&mine.lock, me);
    seen = 0;
  }
}

static void unlock(void) {
  atomic_store(&mine.lock, 0);
  yk__word_wake(&mine.lock);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static void tell(const char *what) {
  if (!mine.told) YK_LOG(INFO, "other programs cannot see what this one holds: %s", what);
  mine.told = true;
}

/* A locked file with room for the page; -1 with the reason told. */
static int make_file(const char *path) {
  char text[2 * YK__BOARD_PATH];
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  int error = file < 0 ? errno : flock(file, LOCK_EX | LOCK_NB) != 0 ? errno : posix_fallocate(file, 0, sizeof(yk_board_page));
  if (error == 0) return file;
  snprintf(text, sizeof text, "%.500s: %s", path, strerror(error));
  tell(text);
  if (file >= 0) {
    unlink(path);
    close(file);
  }
  return -1;
}

static void program_name(char *buf, size_t n) {
  FILE *f = fopen("/proc/self/comm", "re");
  if (f == NULL || fgets(buf, (int)n, f) == NULL) snprintf(buf, n, "?");
  if (f != NULL) fclose(f);
  buf[strcspn(buf, "\n")] = '\0';
}

static void fill(yk_board_page *p) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  memcpy(p->magic, yk__board_magic, sizeof p->magic);
  p->version = YK__BOARD_VERSION;
  p->bytes = sizeof *p;
  p->pid = getpid();
  p->start = yk__process_start(p->pid);
  p->since = now.tv_sec;
  if (mine.command[0] != '\0') memcpy(p->command, mine.command, sizeof p->command);
  else program_name(p->command, sizeof p->command);
}

/* Nothing of a parent is given back: its sessions, which this process inherited, still count there. */
static void forget(void) {
  if (mine.page != NULL && mine.pid == getpid()) {
    unlink(mine.path);
    munmap(mine.page, sizeof *mine.page);
    close(mine.file);
  }
  mine.page = NULL;
  mine.users = 0;
}

static void make_page(void) {
  char folder[YK__BOARD_PATH], hidden[YK__BOARD_PATH + 64], why[YK__BOARD_PATH + 128];
  long long pid = getpid(), start = (long long)yk__process_start(pid);
  yk__board_folder(folder);
  if (!yk__board_folder_good(folder, true, why, sizeof why)) {
    tell(why);
    return;
  }
  yk__board_sweep(folder);
  snprintf(hidden, sizeof hidden, "%s/.%lld-%lld", folder, pid, start);
  snprintf(mine.path, sizeof mine.path, "%s/%lld-%lld.board", folder, pid, start);
  unlink(hidden);                                    /* of this very process, which died of nothing: cut short by a full disk */
  int file = make_file(hidden);
  if (file < 0) return;
  yk_board_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) {
    fill(page);
    if (rename(hidden, mine.path) == 0) {
      mine.page = page;
      mine.pid = pid;
      mine.file = file;
      return;
    }
    munmap(page, sizeof *page);
  }
  tell(strerror(errno));
  unlink(hidden);
  close(file);
}

void yk__board_memory(const yk_device *d) {
  yk_board_slot *s = d->slot;
  if (s == NULL) return;
  const yk_memory_counters *n = yk__device_counters(d);
#define COPY(field) atomic_store_explicit(&s->memory.field, atomic_load_explicit(&n->field, memory_order_relaxed), memory_order_relaxed)
  COPY(total); COPY(limit); COPY(held); COPY(peak_held); COPY(in_use); COPY(peak_in_use);
#undef COPY
}

/* ---- slots --------------------------------------------------------------------------------------------------------- */

static yk_board_slot *free_slot(yk_board_page *p) {
  for (uint32_t i = 0; i < YK__BOARD_SLOTS; i++)
    if (atomic_load(&p->slot[i].session) == 0) return &p->slot[i];
  return NULL;
}

/* The number comes last: with it the slot counts. */
static void fill_slot(yk_board_slot *s, yk_device *d, const yk_board_about *about, uint64_t session) {
  memset((char *)s + sizeof s->session, 0, sizeof *s - sizeof s->session);
  s->fraction = about->fraction;
  s->growth = about->growth;
  s->is_virtual = d->is_virtual;
  s->first_core = d->config.first_core;
  s->ncores = d->config.ncores;
  snprintf(s->name, sizeof s->name, "%s", d->name);
  snprintf(s->type, sizeof s->type, "%s", d->spec.type);
  snprintf(s->driver, sizeof s->driver, "%s", d->driver->name);
  snprintf(s->bus, sizeof s->bus, "%s", about->bus);
  snprintf(s->uuid, sizeof s->uuid, "%s", about->uuid);
  snprintf(s->model, sizeof s->model, "%s", d->info.name);
  d->work = &s->work;
  d->slot = s;
  yk__board_memory(d);
  atomic_store_explicit(&s->session, session, memory_order_release);
}

void yk__board_publish(yk_devices *d, const yk_board_about *about) {
  if (!yk__param_bool("board")) return;
  lock();
  if (mine.page == NULL || mine.pid != getpid()) {
    forget();
    make_page();
  }
  yk_board_page *p = mine.page;
  if (p != NULL) {
    uint64_t session = atomic_fetch_add(&p->sessions, 1) + 1;
    mine.users++;
    for (uint16_t i = 0; i < d->n; i++) {
      yk_board_slot *s = free_slot(p);
      if (s != NULL) fill_slot(s, &d->at[i], &about[i], session);
      else atomic_fetch_add(&p->hidden, 1);
    }
    d->board = p;
  }
  unlock();
}

void yk__board_withdraw(yk_devices *d) {
  yk_board_page *p = d->board;
  if (p == NULL || p->pid != getpid()) return;       /* in a forked child it is the parent's */
  lock();
  for (uint16_t i = 0; i < d->n; i++) {
    yk_board_slot *s = d->at[i].slot;
    if (s != NULL) atomic_store_explicit(&s->session, 0, memory_order_release);
    else atomic_fetch_sub(&p->hidden, 1);
  }
  if (p == mine.page && --mine.users == 0) forget();
  unlock();
}

void yk__board_command(const char *text) {
  lock();
  snprintf(mine.command, sizeof mine.command, "%s", text);
  if (mine.page != NULL && mine.pid == getpid()) snprintf(mine.page->command, sizeof mine.page->command, "%s", text);
  unlock();
}
