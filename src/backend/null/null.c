/*
 * null.c - a device that accepts everything and does nothing, instantly.
 *
 * Planning, scheduling and memory limits can be tested with it at any size: its memory is address space that nobody
 * touches (it reads as zeros), and every kernel of every op is prepared and launched without effect.
 */
#include <sys/mman.h>
#include "../sync.h"

struct yk_dev { uint32_t unused; };
struct yk_kernel { uint32_t nargs; };

static void sync_move(void *dst, const void *src, size_t bytes) {
  (void)dst;
  (void)src;
  (void)bytes;
}

static void sync_fill(void *dst, uint8_t byte, size_t bytes) {
  (void)dst;
  (void)byte;
  (void)bytes;
}

static yk_code sync_run(yk_kernel *k, const yk_mem *arg, uint32_t nargs, yk_mem workspace) {
  (void)arg;
  (void)workspace;
  if (nargs != k->nargs)
    return HOST_FAIL(EINVAL, "a kernel of %u arguments launched with %u", (unsigned)k->nargs, (unsigned)nargs);
  return YK_OK;
}

/* As much memory as addresses allow: 64 TiB. */
static yk_code null_info(uint32_t ordinal, yk_dev_info *out) {
  if (ordinal != 0) return HOST_FAIL(ENOTFOUND, "null ordinal %u; there is only 0", (unsigned)ordinal);
  yk_dev_info info = { .size = out->size, .name = "null", .bytes_total = (uint64_t)1 << 46, .bytes_free = (uint64_t)1 << 46,
                       .alignment = 64, .numa_node = UINT32_MAX };
  memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
  return YK_OK;
}

static yk_code null_open(uint32_t ordinal, const yk_dev_config *config, yk_dev **out) {
  (void)config;
  if (ordinal != 0) return HOST_FAIL(ENOTFOUND, "null ordinal %u; there is only 0", (unsigned)ordinal);
  yk_dev *dev = host->alloc(sizeof *dev, 64);
  if (!dev) return HOST_FAIL(ENOMEM, "no memory for a device (%zu bytes)", sizeof *dev);
  *dev = (yk_dev){ 0 };
  *out = dev;
  return YK_OK;
}

static void null_close(yk_dev *dev) { host->free(dev); }

static yk_code null_mem_alloc(yk_dev *dev, yk_space space, size_t bytes, yk_mem *out) {
  (void)dev;
  (void)space;
  void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return HOST_FAIL(ENOMEM, "no address space for %zu bytes", bytes);
  *out = (yk_mem){ .base = p, .offset = 0, .bytes = bytes };
  return YK_OK;
}

static void null_mem_free(yk_dev *dev, yk_mem mem) {
  (void)dev;
  if (mem.base) munmap(mem.base, mem.bytes ? mem.bytes : 1);
}

static yk_code null_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info) {
  (void)dev;
  yk_kernel *k = host->alloc(sizeof *k, 64);
  if (!k) return HOST_FAIL(ENOMEM, "%s: no memory for a kernel", spec->op);
  k->nargs = (uint32_t)spec->nin + spec->nout;
  for (uint32_t i = 0; i < spec->nout; i++) spec->out[i].layout = YK_LAYOUT_PLAIN;
  if (info) {
    yk_kernel_info full = { .size = info->size, .impl = "null" };
    memcpy(info, &full, info->size < sizeof full ? info->size : sizeof full);
  }
  *out = k;
  return YK_OK;
}

static void null_kernel_free(yk_kernel *k) { host->free(k); }

static const yk_driver driver = {
  SYNC_ENTRIES, .name = "null", .version = "1", .info = null_info, .open = null_open, .close = null_close,
  .mem_alloc = null_mem_alloc, .mem_free = null_mem_free, .kernel_prepare = null_prepare, .kernel_free = null_kernel_free,
};

const yk_driver *yk__null_plugin(const yk_host *h);
const yk_driver *yk__null_plugin(const yk_host *h) {
  host = h;
  return &driver;
}
