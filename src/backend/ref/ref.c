/*
 * ref.c - a device that runs each op's double-precision reference.
 *
 * It takes every op of the registry that has a reference: inputs are widened to double, the reference runs, and the
 * results are rounded back. Slow by intent, and the truth that other drivers are compared with. Streams are
 * synchronous (see sync.h). Integers beyond 2^53 lose their low bits on the way.
 */
#include <sys/mman.h>
#include "../sync.h"
#include "ref.h"

struct yk_dev { uint32_t unused; };

struct yk_kernel {
  const yk_op *op;
  const yk_source *source;                           /* dequeue only: its values never become double */
  int64_t rows;
  yk_ref ref;                                        /* pointers into this block; in[], out[] are set by each launch */
  double **in, **out;                                /* [nin], [nout] */
  uint64_t *offset;                                  /* [nin+nout] of the widened values in the workspace */
  uint8_t *written;                                  /* [nin] a variable: its new value goes back */
  void **raw;                                        /* [nout] addresses for a source */
};

static void sync_move(void *dst, const void *src, size_t bytes) {
  if (bytes) memmove(dst, src, bytes);
}

static void sync_fill(void *dst, uint8_t byte, size_t bytes) {
  if (bytes) memset(dst, byte, bytes);
}

static yk_code run_source(yk_kernel *k, const yk_mem *arg) {
  for (uint32_t i = 0; i < k->ref.nout; i++) k->raw[i] = sync_address(arg[k->ref.nin + i]);
  return k->source->next(k->source->self, k->rows, k->raw);
}

static yk_code sync_run(yk_kernel *k, const yk_mem *arg, uint32_t nargs, yk_mem workspace) {
  uint32_t nin = k->ref.nin, nout = k->ref.nout;
  if (nargs != nin + nout)
    return HOST_FAIL(EINVAL, "%s launched with %u arguments, it has %u", k->op->name, (unsigned)nargs, (unsigned)(nin + nout));
  if (k->source) return run_source(k, arg);
  char *work = sync_address(workspace);
  for (uint32_t i = 0; i < nin; i++) {
    const yk_desc *d = &k->ref.din[i];
    k->in[i] = NULL;
    if (!arg[i].base || d->dtype == YK_NONE) continue;
    k->in[i] = (double *)(void *)(work + k->offset[i]);
    yk__ref_widen(d->dtype, sync_address(arg[i]), k->in[i], yk__ref_count(d));
  }
  for (uint32_t i = 0; i < nout; i++) {
    int has_data = arg[nin + i].base && k->ref.dout[i].dtype != YK_NONE;
    k->out[i] = has_data ? (double *)(void *)(work + k->offset[nin + i]) : NULL;
  }
  YK_TRY(k->op->ref(&k->ref));
  for (uint32_t i = 0; i < nout; i++)
    if (k->out[i]) yk__ref_round(k->ref.dout[i].dtype, k->out[i], sync_address(arg[nin + i]), yk__ref_count(&k->ref.dout[i]));
  /* Variables last: an output may be a view of one, and the variable's own value is the one that counts. */
  for (uint32_t i = 0; i < nin; i++)
    if (k->written[i] && k->in[i])
      yk__ref_round(k->ref.din[i].dtype, k->in[i], sync_address(arg[i]), yk__ref_count(&k->ref.din[i]));
  return YK_OK;
}

static yk_code ref_info(uint32_t ordinal, yk_dev_info *out) {
  if (ordinal != 0) return HOST_FAIL(ENOTFOUND, "ref ordinal %u; there is only 0", (unsigned)ordinal);
  uint64_t bytes = yk__ref_memory();
  yk_dev_info info = { .size = out->size, .name = "reference", .bytes_total = bytes, .bytes_free = bytes,
                       .alignment = 64, .numa_node = UINT32_MAX };
  memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
  return YK_OK;
}

static yk_code ref_open(uint32_t ordinal, const yk_dev_config *config, yk_dev **out) {
  (void)config;
  if (ordinal != 0) return HOST_FAIL(ENOTFOUND, "ref ordinal %u; there is only 0", (unsigned)ordinal);
  yk_dev *dev = host->alloc(sizeof *dev, 64);
  if (!dev) return HOST_FAIL(ENOMEM, "no memory for a device (%zu bytes)", sizeof *dev);
  *dev = (yk_dev){ 0 };
  *out = dev;
  return YK_OK;
}

static void ref_close(yk_dev *dev) { host->free(dev); }

static const size_t LARGE = (size_t)16 << 20;          /* from here on straight from the kernel: what nobody touches costs nothing */

static void *large_alloc(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static yk_code ref_mem_alloc(yk_dev *dev, yk_space space, size_t bytes, yk_mem *out) {
  (void)dev;
  (void)space;
  void *p = NULL;
  if (bytes >= LARGE) p = large_alloc(bytes);
  else p = host->alloc(bytes ? bytes : 1, 64);
  if (!p) return HOST_FAIL(ENOMEM, "the host has no %zu bytes left", bytes);
  *out = (yk_mem){ .base = p, .offset = 0, .bytes = bytes };
  return YK_OK;
}

static void ref_mem_free(yk_dev *dev, yk_mem mem) {
  (void)dev;
  if (mem.base && mem.bytes >= LARGE) munmap(mem.base, mem.bytes);
  else host->free(mem.base);
}

static size_t take(size_t *at, size_t bytes) {
  size_t here = *at;
  *at += (bytes + 63) & ~(size_t)63;
  return here;
}

/* The kernel with all its arrays in one block; offsets of the widened values, and the workspace they add up to. */
static yk_kernel *kernel_new(const yk_op *op, const yk_kernel_spec *spec, uint64_t *workspace) {
  size_t n = (size_t)spec->nin + spec->nout, at = 0;
  size_t self = take(&at, sizeof(yk_kernel)), descs = take(&at, n * sizeof(yk_desc)), data = take(&at, n * sizeof(double *));
  size_t offsets = take(&at, n * sizeof(uint64_t)), written = take(&at, n), raw = take(&at, n * sizeof(void *));
  char *p = host->alloc(at, 64);
  if (!p) return NULL;
  memset(p, 0, at);
  yk_kernel *k = (yk_kernel *)(void *)(p + self);
  yk_desc *din = (yk_desc *)(void *)(p + descs), *dout = din + spec->nin;
  if (spec->nin) memcpy(din, spec->in, spec->nin * sizeof *din);
  if (spec->nout) memcpy(dout, spec->out, spec->nout * sizeof *dout);
  k->op = op;
  k->in = (double **)(void *)(p + data);
  k->out = k->in + spec->nin;
  k->offset = (uint64_t *)(void *)(p + offsets);
  k->written = (uint8_t *)(p + written);
  k->raw = (void **)(void *)(p + raw);
  k->ref = (yk_ref){ .in = (const double *const *)k->in, .out = k->out, .din = din, .dout = dout, .nin = spec->nin,
                     .nout = spec->nout, .attrs = spec->attrs, .host = host };
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++) {                   /* a value of no elements has an address too: NULL means "no data" */
    int64_t count = din[i].dtype == YK_NONE ? 0 : yk__ref_count(&din[i]);
    k->offset[i] = take(&bytes, (count ? (size_t)count : 1) * sizeof(double));
  }
  *workspace = bytes;
  for (uint32_t i = 0; i < spec->nin; i++) k->written[i] = (uint8_t)yk__ref_is_written(op, spec, i);
  return k;
}

static yk_code check_spec(const yk_op *op, const yk_kernel_spec *spec, int is_source) {
  if (!op) return HOST_FAIL(EUNSUPPORTED, "the registry has no op '%s'", spec->op);
  if (!op->ref && !is_source) return HOST_FAIL(EUNSUPPORTED, "op '%s' has no reference", spec->op);
  for (uint32_t i = 0; i < spec->nin; i++)
    if (spec->in[i].layout != YK_LAYOUT_PLAIN && (spec->flags & YK_SPEC_FIXED))
      return HOST_FAIL(EUNSUPPORTED, "%s: input %u is in layout %u; the reference has the plain one only", spec->op, (unsigned)i,
                       (unsigned)spec->in[i].layout);
  return YK_OK;
}

static yk_code ref_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info) {
  (void)dev;
  const yk_op *op = yk_op_find(spec->op);
  const yk_dequeue_attrs *dequeue = strcmp(spec->op, "dequeue") == 0 ? spec->attrs : NULL;
  YK_TRY(check_spec(op, spec, dequeue != NULL));
  uint64_t workspace;
  yk_kernel *k = kernel_new(op, spec, &workspace);
  if (!k) return HOST_FAIL(ENOMEM, "%s: no memory for a kernel", spec->op);
  if (dequeue) {
    k->source = dequeue->source;
    k->rows = dequeue->rows;
    workspace = 0;
  }
  for (uint32_t i = 0; i < spec->nin; i++) spec->in[i].layout = YK_LAYOUT_PLAIN;
  for (uint32_t i = 0; i < spec->nout; i++) spec->out[i].layout = YK_LAYOUT_PLAIN;
  if (info) {
    yk_kernel_info full = { .size = info->size, .workspace = workspace, .impl = "ref" };
    memcpy(info, &full, info->size < sizeof full ? info->size : sizeof full);
  }
  *out = k;
  return YK_OK;
}

static void ref_kernel_free(yk_kernel *k) { host->free(k); }

static const yk_driver driver = {
  SYNC_ENTRIES, .name = "ref", .version = "1", .info = ref_info, .open = ref_open, .close = ref_close,
  .mem_alloc = ref_mem_alloc, .mem_free = ref_mem_free, .kernel_prepare = ref_prepare, .kernel_free = ref_kernel_free,
};

const yk_driver *yk__ref_plugin(const yk_host *h);
const yk_driver *yk__ref_plugin(const yk_host *h) {
  host = h;
  return &driver;
}
