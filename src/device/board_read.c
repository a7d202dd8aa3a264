/*
 * board_read.c - the reading side of the board: who runs, and what they hold.
 *
 * Files are read, not mapped, so that one that is cut short meanwhile costs its own entry and nothing else. Only files of this user,
 * of the right size and layout count, and only while their process holds the lock and still is the one that made them.
 */
#include "device/board.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/param.h"

/* ---- where --------------------------------------------------------------------------------------------------------- */

char *yk__board_folder(char buf[YK__BOARD_PATH]) {
  const char *run = yk__env("XDG_RUNTIME_DIR");
  int n = run != NULL && run[0] == '/' ? snprintf(buf, YK__BOARD_PATH, "%s/yoke", run)
                                       : snprintf(buf, YK__BOARD_PATH, "/dev/shm/yoke-%lu", (unsigned long)geteuid());
  if (n < 0 || n >= YK__BOARD_PATH) buf[0] = '\0';
  return buf;
}

bool yk__board_folder_good(const char *folder, bool make, char *why, size_t n) {
  struct stat s;
  if (make && mkdir(folder, 0700) != 0 && errno != EEXIST) {
    snprintf(why, n, "'%.400s' cannot be made: %s", folder, strerror(errno));
    return false;
  }
  if (lstat(folder, &s) != 0) snprintf(why, n, "'%.400s': %s", folder, strerror(errno));
  else if (!S_ISDIR(s.st_mode)) snprintf(why, n, "'%.400s' is no folder", folder);
  else if (s.st_uid != geteuid() || (s.st_mode & 077) != 0)
    snprintf(why, n, "'%.400s' is not this user's alone: owner %lu, mode %o", folder, (unsigned long)s.st_uid,
             (unsigned)s.st_mode & 0777u);
  else return true;
  return false;
}

/* Field 22 of /proc/PID/stat; the second one, the name, may hold anything but ends with the last parenthesis. */
uint64_t yk__process_start(int64_t pid) {
  char path[64], text[1024];
  unsigned long long start = 0;
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  FILE *f = fopen(path, "re");
  if (f == NULL) return 0;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  const char *p = strrchr(text, ')');
  for (int field = 2; p != NULL && field < 22; field++) p = strchr(p + 1, ' ');
  if (p == NULL || sscanf(p, " %llu", &start) != 1) return 0;
  return start;
}

/* ---- one file ------------------------------------------------------------------------------------------------------ */

static bool ends(const char *text, size_t n) {
  return memchr(text, '\0', n) != NULL;
}

/* No count of bytes comes near the sign bit. */
static bool good_counts(const yk_board_memory *m) {
  uint64_t all = atomic_load(&m->total) | atomic_load(&m->limit) | atomic_load(&m->held) | atomic_load(&m->peak_held) |
                 atomic_load(&m->in_use) | atomic_load(&m->peak_in_use);
  return all >> 63 == 0;
}

static bool good_slot(const yk_board_slot *s) {
  return good_counts(&s->memory) && ends(s->name, sizeof s->name) && ends(s->type, sizeof s->type) &&
         ends(s->driver, sizeof s->driver) && ends(s->bus, sizeof s->bus) && ends(s->uuid, sizeof s->uuid) &&
         ends(s->model, sizeof s->model) && s->fraction >= 0 && s->fraction <= 1 && s->growth <= 1 && s->is_virtual <= 1;
}

/* What cannot be is not shown: the page, or its slot. */
static bool good_page(yk_board_page *p) {
  if (memcmp(p->magic, yk__board_magic, sizeof p->magic) != 0 || p->version != YK__BOARD_VERSION || p->bytes != sizeof *p ||
      p->pid <= 0 || !ends(p->command, sizeof p->command))
    return false;
  for (uint32_t i = 0; i < YK__BOARD_SLOTS; i++)
    if (!good_slot(&p->slot[i])) atomic_store(&p->slot[i].session, 0);
  return true;
}

static bool read_page(int file, yk_board_page *out) {
  size_t n = 0;
  while (n < sizeof *out) {
    ssize_t got = pread(file, (char *)out + n, sizeof *out - n, (off_t)n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    n += (size_t)got;
  }
  return true;
}

/* Slots that changed hands while they were read do not count. */
static void drop_changed(int file, yk_board_page *p) {
  for (uint32_t i = 0; i < YK__BOARD_SLOTS; i++) {
    uint64_t session = atomic_load(&p->slot[i].session), now = 0;
    off_t at = (off_t)((const char *)&p->slot[i].session - (const char *)p);
    if (session != 0 && (pread(file, &now, sizeof now, at) != (ssize_t)sizeof now || now != session))
      atomic_store(&p->slot[i].session, 0);
  }
}

/* "4711-8812345.board", or ".4711-8812345": a file that was never finished. */
static bool is_ours(const char *name) {
  const char *p = name + (name[0] == '.');
  size_t pid = strspn(p, "0123456789");
  if (pid == 0 || p[pid] != '-') return false;
  p += pid + 1;
  size_t start = strspn(p, "0123456789");
  return start > 0 && strcmp(p + start, name[0] == '.' ? "" : ".board") == 0;
}

/* A hidden file is locked right after it was made: not to be taken for a stale one in between, it must be a minute old. */
static bool is_stale(const char *name, const struct stat *s) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return name[0] != '.' || now.tv_sec - s->st_ctime > 60;
}

/* A file of this user that somebody holds; one that nobody holds is removed. -1: neither. */
static int open_living(int folder, const char *name, struct stat *s) {
  if (!is_ours(name)) return -1;
  int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return -1;
  bool mine = fstat(file, s) == 0 && S_ISREG(s->st_mode) && s->st_uid == geteuid(), may_go = mine && is_stale(name, s);
  if (mine && name[0] != '.' && flock(file, LOCK_SH | LOCK_NB) != 0) return file;
  if (may_go && flock(file, LOCK_SH | LOCK_NB) == 0) unlinkat(folder, name, 0);
  close(file);
  return -1;
}

/* True: *out is a process that lives. */
static bool look(int folder, const char *name, yk_board_page *out) {
  struct stat s;
  int file = open_living(folder, name, &s);
  if (file < 0) return false;
  bool good = s.st_size == (off_t)sizeof *out && read_page(file, out) && good_page(out);
  if (good) drop_changed(file, out);
  close(file);
  return good && (out->start == 0 || yk__process_start(out->pid) == out->start);
}

void yk__board_sweep(const char *folder) {
  DIR *d = opendir(folder);
  struct stat s;
  if (d == NULL) return;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    int file = open_living(dirfd(d), e->d_name, &s);
    if (file >= 0) close(file);
  }
  closedir(d);
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static int by_pid(const void *a, const void *b) {
  int64_t x = ((const yk_board_page *)a)->pid, y = ((const yk_board_page *)b)->pid;
  return (x > y) - (x < y);
}

static yk_code read_all(DIR *d, yk_board_page *page, yk_board *out) {
  uint32_t cap = 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (!look(dirfd(d), e->d_name, page)) continue;
    if (!yk__grow((void **)&out->at, &cap, out->n + 1, sizeof *out->at)) return YK_ENOMEM;
    memcpy(&out->at[out->n++], page, sizeof *page);
  }
  if (out->n > 1) qsort(out->at, out->n, sizeof *out->at, by_pid);
  return YK_OK;
}

yk_code yk__board_read(const char *folder, yk_board *out) {
  char why[YK__BOARD_PATH + 128];
  yk_board b = { 0 };
  yk_code rc = YK_OK;
  if (!yk__board_folder_good(folder, 0, why, sizeof why)) {
    *out = b;
    return YK_OK;
  }
  yk_board_page *page = yk__alloc(sizeof *page);
  if (page == NULL) return YK_ENOMEM;
  DIR *d = opendir(folder);
  if (d != NULL) {
    rc = read_all(d, page, &b);
    closedir(d);
  }
  yk__free(page);
  if (rc == YK_OK) *out = b;
  else yk__board_free(&b);
  return rc;
}

void yk__board_free(yk_board *b) {
  yk__free(b->at);
  *b = (yk_board){ 0 };
}
