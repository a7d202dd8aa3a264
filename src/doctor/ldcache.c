/*
 * ldcache.c - reads the loader's cache: a header, a table of entries, the strings that they point to.
 *
 * Form "glibc-ld.so.cache1.1", alone or behind the older table, as every glibc since 2.2 writes it. Offsets are checked,
 * because the file may be anything. Entries for special processors are left out: the libraries sought have none.
 */
#include "doctor/ldcache.h"
#include "base/alloc.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct old_header { char magic[12]; uint32_t nlibs; } old_header;     /* "ld.so-1.7.0", entries of 12 bytes */
typedef struct header { char magic[20]; uint32_t nlibs, len_strings, unused[5]; } header;
typedef struct entry { int32_t flags; uint32_t key, value, osversion; uint64_t hwcap; } entry;

enum { MAX_BYTES = 64 << 20 };

static char *slurp(const char *file, size_t *n) {
  struct stat st;
  char *data = NULL;
  size_t have = 0;
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size < MAX_BYTES)
    data = yk__alloc((size_t)st.st_size + 1);
  while (data && have < (size_t)st.st_size) {
    ssize_t got = read(fd, data + have, (size_t)st.st_size - have);
    if (got <= 0) break;
    have += (size_t)got;
  }
  close(fd);
  if (data) data[have] = '\0';                     /* ends the last string */
  *n = have;
  return data;
}

void yk__ldcache_each(const char *file, const char *prefix, void (*fn)(const char *, const char *, void *), void *arg) {
  size_t n = 0, at = 0, len = strlen(prefix);
  char *data = slurp(file, &n);
  old_header old;
  header h;
  if (data && n >= sizeof old && memcmp(data, "ld.so-1.7.0", 11) == 0) {
    memcpy(&old, data, sizeof old);
    at = (sizeof old + (size_t)old.nlibs * 12 + 7) & ~(size_t)7;
  }
  if (data && at < n && n - at >= sizeof h && memcmp(data + at, "glibc-ld.so.cache1.1", 20) == 0) {
    const char *base = data + at;
    size_t room = n - at;
    memcpy(&h, base, sizeof h);
    for (uint32_t i = 0; i < h.nlibs && sizeof h + ((size_t)i + 1) * sizeof(entry) <= room; i++) {
      entry e;
      memcpy(&e, base + sizeof h + (size_t)i * sizeof e, sizeof e);
      if (e.key >= room || e.value >= room || e.hwcap != 0) continue;
      if (strncmp(base + e.key, prefix, len) == 0) fn(base + e.key, base + e.value, arg);
    }
  }
  yk__free(data);
}
