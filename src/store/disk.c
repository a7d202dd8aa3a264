/*
 * disk.c - writes files whole or not at all, and tells why not.
 *
 * Every step that can fail passes one gate, where a test may let it fail or kill the process, so the claim "at any moment"
 * is tested moment by moment.
 */
#include "store/disk.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

typedef int (*watcher)(const char *call, const char *path);
static _Atomic(watcher) watch;

void yk__disk_watch(int (*hook)(const char *call, const char *path)) {
  atomic_store(&watch, hook);
}

/* May this call be made? False: errno is set. */
static bool gate(const char *call, const char *path) {
  watcher hook = atomic_load_explicit(&watch, memory_order_relaxed);
  int why = hook != NULL ? hook(call, path) : 0;
  if (why == 0) return true;
  errno = why;
  return false;
}

static const char *reason(int why) {
  return why == EFBIG ? "File too large (ulimit -f, or the file system's own limit)" : strerror(why);
}

/* ---- a limit on file sizes: EFBIG, not a signal ------------------------------------------------------------------ */

typedef struct guard { sigset_t before; bool pending; } guard;

static void guard_begin(guard *g) {
  sigset_t one, now;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  g->pending = sigpending(&now) == 0 && sigismember(&now, SIGXFSZ) == 1;
  pthread_sigmask(SIG_BLOCK, &one, &g->before);
}

/* Takes back the signal that our own write has raised, and only that. */
static void guard_end(const guard *g) {
  static const struct timespec at_once;
  sigset_t one, now;
  int kept = errno;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  if (!g->pending && sigpending(&now) == 0 && sigismember(&now, SIGXFSZ) == 1) sigtimedwait(&one, NULL, &at_once);
  pthread_sigmask(SIG_SETMASK, &g->before, NULL);
  errno = kept;
}

/* ---- writing: these tell by errno -------------------------------------------------------------------------------- */

static bool is_full(int why) {
  return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

static bool put(int fd, const char *path, const char *data, size_t n) {
  enum { MOST = 1 << 26 };
  while (n > 0) {
    size_t part = n < MOST ? n : MOST;
    if (!gate("write", path)) {
      int why = errno;
      if (is_full(why) && write(fd, data, part / 2) < 0) why = errno;
      errno = why;
      return false;
    }
    ssize_t got = write(fd, data, part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    data += got;
    n -= (size_t)got;
  }
  return true;
}

static bool fill(int fd, const char *path, size_t n, const yk_piece *pieces) {
  for (size_t i = 0; i < n; i++)
    if (!put(fd, path, pieces[i].data, pieces[i].bytes)) return false;
  return gate("fsync", path) && fsync(fd) == 0;
}

static bool sync_folder(const char *path, char *scratch) {
  memcpy(scratch, path, strlen(path) + 1);
  if (!gate("sync folder", path)) return false;
  int fd = open(dirname(scratch), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  bool good = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;     /* some file systems have nothing to sync there */
  int why = errno;
  close(fd);
  errno = why;
  return good;
}

/* `temporary` has room for the path and is overwritten. */
static bool write_all(const char *path, char *temporary, size_t n, const yk_piece *pieces, bool *made) {
  if (!gate("open", temporary)) return false;
  int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  *made = true;
  bool good = fill(fd, temporary, n, pieces);
  int why = errno;
  if (good && !gate("close", temporary)) { good = false; why = errno; }
  if (close(fd) != 0 && good) { good = false; why = errno; }
  if (good && !(gate("rename", path) && rename(temporary, path) == 0)) { good = false; why = errno; }
  if (!good) unlink(temporary);
  errno = why;
  return good && sync_folder(path, temporary);
}

yk_code yk__disk_write(const char *path, size_t n, const yk_piece *pieces) {
  yk_str name = { 0 };
  char *temporary = NULL;
  guard g;
  bool made = false;
  yk__str_add(&name, "%s.%ld.tmp", path, (long)getpid());
  YK_TRY(yk__str_take(&name, &temporary));
  guard_begin(&g);
  bool good = write_all(path, temporary, n, pieces, &made);
  guard_end(&g);
  int why = errno;
  yk__free(temporary);
  if (good) return YK_OK;
  return YK_FAIL(EIO, "'%s' cannot be %s: %s", path, made ? "written" : "created", reason(why));
}

yk_code yk__disk_folder(const char *path) {
  struct stat info;
  char *scratch = yk__strdup(path);
  if (scratch == NULL) return YK_ENOMEM;
  bool made = mkdir(path, 0777) == 0;
  int why = errno == EEXIST ? ENOTDIR : errno;
  bool good = made ? sync_folder(path, scratch) : stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  if (made) why = errno;
  yk__free(scratch);
  return good ? YK_OK : YK_FAIL(EIO, "the folder '%s' cannot be made: %s", path, reason(why));
}

/* ---- a file that grows ------------------------------------------------------------------------------------------- */

yk_code yk__disk_create(const char *path, int *fd) {
  int got = gate("open", path) ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666) : -1;
  if (got >= 0) return *fd = got, YK_OK;
  if (errno == EEXIST) return YK_FAIL(EBUSY, "there is a file '%s' already", path);
  return YK_FAIL(EIO, "'%s' cannot be created: %s", path, reason(errno));
}

yk_code yk__disk_append(int fd, const char *path, const void *data, size_t n) {
  guard g;
  off_t end = lseek(fd, 0, SEEK_END);
  guard_begin(&g);
  bool good = end >= 0 && put(fd, path, data, n);
  guard_end(&g);
  if (good) return YK_OK;
  int why = errno;
  if (end >= 0 && ftruncate(fd, end) != 0) why = errno;
  return YK_FAIL(EIO, "'%s' cannot be written: %s", path, reason(why));
}

yk_code yk__disk_finish(int fd, const char *path) {
  bool good = gate("fsync", path) && (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP);
  int why = errno;
  if (good && !gate("close", path)) { good = false; why = errno; }
  if (close(fd) != 0 && good) { good = false; why = errno; }
  return good ? YK_OK : YK_FAIL(EIO, "'%s' cannot be written: %s", path, reason(why));
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static yk_code read_bytes(FILE *f, const char *path, uint8_t **out, size_t *bytes) {
  struct stat info = { 0 };
  if (fstat(fileno(f), &info) != 0 || !S_ISREG(info.st_mode)) return YK_FAIL(EIO, "'%s' is no regular file", path);
  size_t n = (size_t)info.st_size;
  uint8_t *b = yk__alloc(n + 1);
  if (b == NULL) return YK_ENOMEM;
  b[n] = 0;
  if (fread(b, 1, n, f) != n) {
    yk__free(b);
    return YK_FAIL(EIO, "'%s' cannot be read: %s", path, ferror(f) ? strerror(errno) : "it became shorter");
  }
  *out = b;
  *bytes = n;
  return YK_OK;
}

yk_code yk__disk_read(const char *path, uint8_t **out, size_t *bytes) {
  FILE *f = fopen(path, "rb");
  if (f == NULL && (errno == ENOENT || errno == ENOTDIR)) return YK_FAIL(ENOTFOUND, "there is no file '%s'", path);
  if (f == NULL) return YK_FAIL(EIO, "'%s' cannot be opened: %s", path, strerror(errno));
  yk_code rc = read_bytes(f, path, out, bytes);
  fclose(f);
  return rc;
}

yk_code yk__disk_remove(const char *path) {
  if ((gate("unlink", path) && unlink(path) == 0) || errno == ENOENT) return YK_OK;
  return YK_FAIL(EIO, "'%s' cannot be removed: %s", path, reason(errno));
}

static bool is_folder(const char *path) {
  struct stat s;
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* `path` is changed on the way and is itself again at the end. errno tells a failure. */
static bool make_all(char *path) {
  for (char *p = path + 1; *path != '\0' && *p != '\0'; p++) {
    if (*p != '/') continue;
    *p = '\0';
    bool good = mkdir(path, 0777) == 0 || errno == EEXIST || is_folder(path);
    *p = '/';
    if (!good) return false;
  }
  if (mkdir(path, 0777) == 0 || is_folder(path)) return true;
  if (errno == EEXIST) errno = ENOTDIR;
  return false;
}

yk_code yk__disk_folders(const char *path) {
  char *copy = yk__strdup(path);
  if (copy == NULL) return YK_ENOMEM;
  bool good = make_all(copy);
  int why = errno;
  yk__free(copy);
  return good ? YK_OK : YK_FAIL(EIO, "the folder '%s' cannot be made: %s", path, strerror(why));
}

yk_code yk__disk_room(const char *folder, uint64_t bytes, uint64_t largest, const char *what) {
  struct statvfs v;
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < largest)
    return YK_FAIL(EIO, "'%s': %s takes a file of %llu bytes, but none may be larger than %llu (ulimit -f)", folder, what,
                   (unsigned long long)largest, (unsigned long long)limit.rlim_cur);
  if (!gate("statvfs", folder) || statvfs(folder, &v) != 0)
    return YK_FAIL(EIO, "'%s': the free space is not known: %s", folder, reason(errno));
  uint64_t block = v.f_frsize != 0 ? v.f_frsize : v.f_bsize, room = (uint64_t)v.f_bavail * block;
  if (v.f_bavail != 0 && room / v.f_bavail != block) room = UINT64_MAX;
  if (bytes <= room) return YK_OK;
  return YK_FAIL(EIO, "'%s': no space left: %s needs %llu bytes, %llu are free", folder, what, (unsigned long long)bytes,
                 (unsigned long long)room);
}
