/*
 * file.c - files from outside, and the folders they are in.
 *
 * A pipe or a device of the right name would block for ever or never end, so whatever is not a regular file is refused; opening
 * does not block. Sizes are those at the time of opening.
 */
#include "data/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"

static yk_code open_fd(const char *path, int *out, int64_t *bytes) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return YK_FAIL(ENOTFOUND, "there is no file '%s'", path);
  if (fd < 0) return YK_FAIL(EIO, "cannot open '%s': %s", path, strerror(errno));
  int known = fstat(fd, &st) == 0;
  if (known && S_ISREG(st.st_mode)) {
    *out = fd;
    *bytes = st.st_size;
    return YK_OK;
  }
  int why = errno;
  close(fd);
  if (known) return YK_FAIL(EIO, "'%s' is not a regular file", path);
  return YK_FAIL(EIO, "cannot tell the size of '%s': %s", path, strerror(why));
}

yk_code yk__file_open(const char *path, yk_file *out) {
  yk_file f = { .fd = -1 };
  YK_TRY(open_fd(path, &f.fd, &f.bytes));
  f.path = yk__strdup(path);
  if (f.path == NULL) {
    close(f.fd);
    return YK_ENOMEM;
  }
  *out = f;
  return YK_OK;
}

static yk_code read_fd(const yk_file *f, int fd, int64_t at, void *out, int64_t n) {
  uint8_t *to = out;
  while (n > 0) {
    ssize_t got = pread(fd, to, (size_t)n, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return YK_FAIL(EIO, "reading '%s' at offset %" PRId64 " failed: %s", f->path, at, strerror(errno));
    if (got == 0)
      return YK_FAIL(EIO, "'%s' ends at offset %" PRId64 "; it had %" PRId64 " bytes when it was opened", f->path, at, f->bytes);
    to += got;
    at += got;
    n -= got;
  }
  return YK_OK;
}

yk_code yk__file_read(const yk_file *f, int64_t at, void *out, int64_t n) {
  int fd = -1;
  int64_t bytes = 0;
  yk_code rc;
  if (f->fd >= 0) return read_fd(f, f->fd, at, out, n);
  YK_TRY(open_fd(f->path, &fd, &bytes));
  rc = read_fd(f, fd, at, out, n);
  close(fd);
  return rc;
}

void yk__file_rest(yk_file *f) {
  if (f->fd >= 0) close(f->fd);
  f->fd = -1;
}

void yk__file_close(yk_file *f) {
  if (f->path == NULL) return;
  yk__file_rest(f);
  yk__free(f->path);
  f->path = NULL;
}

/* ---- paths and folders ---- */

yk_code yk__path_join(const char *folder, const char *name, char out[YK__PATH_BYTES]) {
  size_t n = strlen(folder);
  if (snprintf(out, YK__PATH_BYTES, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name) < YK__PATH_BYTES)
    return YK_OK;
  return YK_FAIL(EINVAL, "a path of more than %d characters: '%.60s...' with '%.60s'", YK__PATH_BYTES - 1, folder, name);
}

int yk__path_kind(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0) return 0;
  return S_ISREG(st.st_mode) ? 'f' : S_ISDIR(st.st_mode) ? 'd' : 0;
}

int yk__ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcasecmp(text + n - m, end) == 0;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static yk_code add_name(yk_name_list *l, const char *name) {
  char *copy = yk__strdup(name);
  if (copy == NULL) return YK_ENOMEM;
  if (YK_PUSH(l->name, l->n, l->cap, copy)) return YK_OK;
  yk__free(copy);
  return YK_ENOMEM;
}

yk_code yk__folder_names(const char *path, yk_name_list *out) {
  yk_name_list l = { 0 };
  yk_code rc = YK_OK;
  DIR *d = opendir(path);
  if (d == NULL) return YK_FAIL(EIO, "cannot read the folder '%s': %s", path, strerror(errno));
  while (rc == YK_OK) {
    errno = 0;
    struct dirent *e = readdir(d);
    if (e == NULL && errno != 0) rc = YK_FAIL(EIO, "cannot read the folder '%s': %s", path, strerror(errno));
    if (e == NULL) break;
    if (e->d_name[0] != '.') rc = add_name(&l, e->d_name);
  }
  closedir(d);
  if (rc != YK_OK) {
    yk__name_list_free(&l);
    return rc;
  }
  if (l.n > 1) qsort(l.name, l.n, sizeof *l.name, by_bytes);
  *out = l;
  return YK_OK;
}

void yk__name_list_free(yk_name_list *l) {
  for (uint32_t i = 0; i < l->n; i++) yk__free(l->name[i]);
  yk__free(l->name);
  *l = (yk_name_list){ 0 };
}
