/*
 * folder.c - see folder.h. Killing is by SIGKILL, which no handler and no exit function softens.
 */
#include "folder.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "store/disk.h"

char folder[64];
static int seen, fatal, reason;
static const char *kind;

int folder_setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-store-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : 0;
}

int folder_empty(void **state) {
  (void)state;
  yk__disk_watch(NULL);
  chmod(folder, 0755);
  DIR *d = opendir(folder);
  if (d == NULL) return -1;
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) remove(in_folder(e->d_name));
  closedir(d);
  return 0;
}

int folder_teardown(void **state) {
  return folder_empty(state) != 0 || rmdir(folder) != 0;
}

const char *in_folder(const char *name) {
  static char path[4][512];
  static int turn;
  char *p = path[turn++ % 4];
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  return p;
}

uint8_t *take_file(const char *name, size_t *n) {
  struct stat s;
  FILE *f = fopen(in_folder(name), "rb");
  if (f == NULL) return NULL;
  CHECK_INT(fstat(fileno(f), &s), 0);
  uint8_t *b = calloc(1, (size_t)s.st_size + 1);
  assert_non_null(b);
  *n = fread(b, 1, (size_t)s.st_size, f);
  CHECK_INT(*n, s.st_size);
  fclose(f);
  return b;
}

void put_file(const char *name, const void *bytes, size_t n) {
  FILE *f = fopen(in_folder(name), "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

bool has_file(const char *name) {
  return access(in_folder(name), F_OK) == 0;
}

int count_files(const char *end) {
  int n = 0;
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    size_t k = strlen(e->d_name), m = strlen(end);
    n += k >= m && strcmp(e->d_name + k - m, end) == 0;
  }
  closedir(d);
  return n;
}

static int hook(const char *call, const char *path) {
  (void)path;
  if (kind != NULL && strcmp(call, kind) != 0) return 0;
  if (++seen != fatal) return 0;
  if (reason == 0) raise(SIGKILL);
  return reason;
}

void watch_call(int n, int why, const char *call) {
  seen = 0;
  fatal = n;
  reason = why;
  kind = call;
  yk__disk_watch(hook);
}

int calls_seen(void) {
  return seen;
}
