/*
 * memory.c - host memory as device memory, and how it is moved.
 *
 * Big blocks come straight from the kernel on huge-page boundaries, since parameter and activation arenas are
 * swept from end to end every step; small ones come from the host's allocator. The handle in yk_mem is the address.
 */
#include "cpu.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, PARALLEL_BYTES = 256 << 10, GRAIN_BYTES = 128 << 10 };
static const size_t HUGE_BYTES = (size_t)2 << 20, PAGE_BYTES = (size_t)64 << 10;   /* 64 KiB: the largest page size in use */

static size_t round_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

static void *huge_alloc(size_t bytes) {
  size_t want = round_up(bytes, PAGE_BYTES), span = want + HUGE_BYTES;
  char *p = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  char *base = (char *)round_up((uintptr_t)p, HUGE_BYTES);
  size_t before = (size_t)(base - p), after = span - before - want;
  if (before) munmap(p, before);
  if (after) munmap(base + want, after);
  (void)madvise(base, want, MADV_HUGEPAGE);            /* a hint: without huge pages it is only slower */
  return base;
}

yk_code yk__cpu_mem_alloc(yk_dev *dev, yk_space space, size_t bytes, yk_mem *out) {
  (void)dev;
  (void)space;                                         /* device, pinned and managed memory are all host memory */
  void *p = NULL;
  if (bytes <= SIZE_MAX / 2) p = bytes >= HUGE_BYTES ? huge_alloc(bytes) : yk__cpu_host->alloc(bytes ? bytes : 1, ALIGNMENT);
  if (!p) return YK_CPU_FAIL(ENOMEM, "the host has no %zu bytes left", bytes);
  *out = (yk_mem){ .base = p, .offset = 0, .bytes = bytes };
  return YK_OK;
}

void yk__cpu_mem_free(yk_dev *dev, yk_mem mem) {
  (void)dev;
  if (!mem.base) return;
  if (mem.bytes >= HUGE_BYTES) munmap(mem.base, round_up(mem.bytes, PAGE_BYTES));
  else yk__cpu_host->free(mem.base);
}

yk_code yk__cpu_mem_map(yk_dev *dev, yk_mem mem, void **out) {
  (void)dev;
  *out = yk__cpu_address(mem);
  return YK_OK;
}

yk_code yk__cpu_desc_bytes(yk_dev *dev, const yk_desc *d, uint64_t *out) {
  (void)dev;
  if (d->layout == YK_LAYOUT_ANY) return YK_CPU_FAIL(EINVAL, "the size of a value whose layout is not chosen yet");
  if (d->layout != YK_LAYOUT_PLAIN) return yk__cpu_layout_bytes(d, out);
  uint64_t bytes = yk__cpu_dtype_bytes(d->dtype);
  for (uint32_t i = 0; i < d->rank; i++) {
    if (d->dim[i] < 0) return YK_CPU_FAIL(EINVAL, "the size of a value whose dimension %u is unknown", (unsigned)i);
    if (__builtin_mul_overflow(bytes, (uint64_t)d->dim[i], &bytes)) return YK_CPU_FAIL(EINVAL, "a value too big for memory");
  }
  *out = bytes;
  return YK_OK;
}

typedef struct yk_cpu_move { char *dst; const char *src; int byte; } yk_cpu_move;

static void move_piece(int64_t begin, int64_t end, void *arg) {
  const yk_cpu_move *m = arg;
  memcpy(m->dst + begin, m->src + begin, (size_t)(end - begin));
}

static void fill_piece(int64_t begin, int64_t end, void *arg) {
  const yk_cpu_move *m = arg;
  memset(m->dst + begin, m->byte, (size_t)(end - begin));
}

void yk__cpu_copy_bytes(void *dst, const void *src, size_t bytes) {
  if (bytes == 0 || dst == src) return;
  uintptr_t a = (uintptr_t)dst, b = (uintptr_t)src, gap = a > b ? a - b : b - a;
  if (bytes < PARALLEL_BYTES || gap < bytes) {
    memmove(dst, src, bytes);
    return;
  }
  yk_cpu_move m = { .dst = dst, .src = src };
  yk__cpu_host->parallel_for((int64_t)bytes, GRAIN_BYTES, move_piece, &m);
}

void yk__cpu_fill_bytes(void *dst, uint8_t byte, size_t bytes) {
  if (bytes == 0) return;
  if (bytes < PARALLEL_BYTES) {
    memset(dst, byte, bytes);
    return;
  }
  yk_cpu_move m = { .dst = dst, .byte = byte };
  yk__cpu_host->parallel_for((int64_t)bytes, GRAIN_BYTES, fill_piece, &m);
}

/* First number after `key` in a file ("" = the first line is the number); UINT64_MAX if there is none, "max" included. */
static uint64_t read_number(const char *path, const char *key) {
  FILE *f = fopen(path, "r");
  if (!f) return UINT64_MAX;
  char line[256];
  uint64_t value = UINT64_MAX;
  size_t n = strlen(key);
  while (fgets(line, sizeof line, f)) {
    unsigned long long v;
    if (strncmp(line, key, n) != 0) continue;
    if (sscanf(line + n, " %llu", &v) == 1) value = v;
    break;
  }
  fclose(f);
  return value;
}

/* The C library may tell the sum over all cores of the package, most of which a virtual machine does not have. */
uint64_t yk__cpu_cache_bytes(void) {
  uint64_t kib = read_number("/sys/devices/system/cpu/cpu0/cache/index3/size", "");     /* "32768K" */
  return kib == UINT64_MAX ? (uint64_t)32 << 20 : kib * 1024;
}

/* The tightest `file` of this process's control group and those above it (unified hierarchy), minus what is used there
 * if `used` is named; UINT64_MAX if nothing limits. */
static uint64_t cgroup_number(const char *file, const char *used) {
  char line[512], path[1024];
  line[0] = '\0';
  FILE *f = fopen("/proc/self/cgroup", "r");
  while (f && fgets(line, sizeof line, f) && strncmp(line, "0::", 3) != 0) line[0] = '\0';
  if (f) fclose(f);
  if (strncmp(line, "0::/", 4) != 0) return UINT64_MAX;
  line[strcspn(line, "\n")] = '\0';
  uint64_t best = UINT64_MAX;
  for (char *end = line + strlen(line); end && end > line + 3; end = strrchr(line + 3, '/')) {
    *end = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", line + 3, file);
    uint64_t v = read_number(path, "");
    if (v != UINT64_MAX && used) {
      snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", line + 3, used);
      uint64_t in_use = read_number(path, "");
      if (in_use != UINT64_MAX) v = v > in_use ? v - in_use : 0;
    }
    if (v < best) best = v;
  }
  return best;
}

uint64_t yk__cpu_memory_total(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  uint64_t limit = cgroup_number("memory.max", NULL);
  uint64_t old = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");    /* the first hierarchy */
  if (limit < total) total = limit;
  return old < total ? old : total;
}

uint64_t yk__cpu_memory_free(void) {
  uint64_t kib = read_number("/proc/meminfo", "MemAvailable:"), limit = cgroup_number("memory.max", "memory.current");
  uint64_t available = kib == UINT64_MAX ? yk__cpu_memory_total() : kib * 1024;
  return limit < available ? limit : available;
}
