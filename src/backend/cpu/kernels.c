/*
 * kernels.c - from an op's name to a prepared kernel.
 *
 * The table is kernels.def: candidates of one op are asked in its order, and the first that accepts wins. One block
 * holds the kernel, its descriptions and the argument array of inline launches, so that a launch allocates nothing.
 */
#include "cpu.h"

#include <stdio.h>
#include <string.h>

typedef struct yk_cpu_entry { const char *op, *name; yk_cpu_candidate prepare; } yk_cpu_entry;

static const yk_cpu_entry table[] = {
#define KERNEL(op, function) { #op, #function, yk__cpu_##function },
#include "kernels.def"
#undef KERNEL
  { NULL, NULL, NULL }
};

enum { MAX_ARGS = 32768, REASONS_BYTES = 1024 };

int64_t yk__cpu_count(const yk_desc *d) {
  int64_t n = 1;
  for (uint32_t i = 0; i < d->rank; i++) n *= d->dim[i];
  return n;
}

size_t yk__cpu_dtype_bytes(uint8_t dtype) {
  static const uint8_t bytes[YK_NDTYPES] = { [YK_F32] = 4, [YK_F64] = 8, [YK_F16] = 2, [YK_BF16] = 2,
                                             [YK_I32] = 4, [YK_I64] = 8, [YK_U8] = 1,  [YK_BOOL] = 1 };
  return dtype < YK_NDTYPES ? bytes[dtype] : 0;
}

void *yk__cpu_state(yk_cpu_prepare *p, size_t bytes) {
  void *state = yk__cpu_host->alloc(bytes ? bytes : 1, 64);
  if (!state) {
    (void)YK_CPU_FAIL(ENOMEM, "%s: no memory for %zu bytes of kernel state", p->spec->op, bytes);
    return NULL;
  }
  memset(state, 0, bytes);
  yk__cpu_host->free(p->k->state);
  p->k->state = state;
  return state;
}

yk_code yk__cpu_want_plain(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  for (uint32_t i = 0; i < k->nin; i++) {
    if (k->in[i].layout == YK_LAYOUT_PLAIN) continue;
    if (p->spec->flags & YK_SPEC_FIXED)
      return YK_CPU_REFUSE("input %u is in private layout %u, and only the plain one will do", (unsigned)i,
                           (unsigned)k->in[i].layout);
    k->in[i].layout = YK_LAYOUT_PLAIN;
  }
  for (uint32_t i = 0; i < k->nout; i++) k->out[i].layout = YK_LAYOUT_PLAIN;
  return YK_OK;
}

static yk_code kernel_new(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out) {
  uint32_t n = (uint32_t)spec->nin + spec->nout;
  if (n > MAX_ARGS)
    return YK_CPU_FAIL(EUNSUPPORTED, "%s: %u arguments, at most %d are possible", spec->op, (unsigned)n, MAX_ARGS);
  size_t descs = (sizeof(yk_kernel) + 63) & ~(size_t)63, args = descs + n * sizeof(yk_desc);
  size_t bytes = args + n * sizeof(void *);
  yk_kernel *k = yk__cpu_host->alloc(bytes, 64);
  if (!k) return YK_CPU_FAIL(ENOMEM, "%s: no memory for a kernel of %u arguments (%zu bytes)", spec->op, (unsigned)n, bytes);
  memset(k, 0, bytes);
  k->dev = dev;
  k->attrs = spec->attrs;
  k->nin = spec->nin;
  k->nout = spec->nout;
  k->in = (yk_desc *)(void *)((char *)k + descs);
  k->out = k->in + spec->nin;
  k->inline_arg = (void **)(void *)((char *)k + args);
  *out = k;
  return YK_OK;
}

/* Back to what the candidate found: nothing set, layouts as offered. */
static void kernel_reset(yk_kernel *k, const yk_kernel_spec *spec) {
  if (k->destroy) k->destroy(k);
  yk__cpu_host->free(k->state);
  k->run = NULL;
  k->destroy = NULL;
  k->impl = NULL;
  k->state = NULL;
  if (k->nin) memcpy(k->in, spec->in, k->nin * sizeof(yk_desc));
  if (k->nout) memcpy(k->out, spec->out, k->nout * sizeof(yk_desc));
}

void yk__cpu_kernel_free(yk_kernel *k) {
  if (!k) return;
  if (k->destroy) k->destroy(k);
  yk__cpu_host->free(k->state);
  yk__cpu_host->free(k);
}

/* Ask the op's candidates in order, or only candidate number `only` (-1: all). EUNSUPPORTED lists what each said. */
static yk_code choose(yk_cpu_prepare *p, int only) {
  char reasons[REASONS_BYTES];
  size_t used = 0;
  int number = 0;
  reasons[0] = '\0';
  for (const yk_cpu_entry *e = table; e->op; e++) {
    if (strcmp(e->op, p->spec->op) != 0) continue;
    if (only >= 0 && number++ != only) continue;
    kernel_reset(p->k, p->spec);
    p->inplace = 0;
    p->workspace = 0;
    yk_code rc = e->prepare(p);
    if (rc == YK_OK) {
      if (p->k->run && p->k->impl) return YK_OK;
      return YK_CPU_FAIL(EINTERNAL, "%s: candidate %s accepted without a function or a name", p->spec->op, e->name);
    }
    if (rc != YK_EUNSUPPORTED) return rc;
    yk__cpu_host->log(4, __FILE__, __LINE__, "cpu: %s refused by %s: %s", p->spec->op, e->name, yk_error_message());
    int n = snprintf(reasons + used, sizeof reasons - used, "%s%s: %s", used ? "; " : "", e->name, yk_error_message());
    if (n > 0) used = used + (size_t)n < sizeof reasons ? used + (size_t)n : sizeof reasons - 1;
  }
  if (!used) return YK_CPU_FAIL(EUNSUPPORTED, "the cpu driver has no kernel for op '%s'", p->spec->op);
  return YK_CPU_FAIL(EUNSUPPORTED, "no cpu kernel takes this %s (%s)", p->spec->op, reasons);
}

const char *yk__cpu_candidate_name(const char *op, int number) {
  for (const yk_cpu_entry *e = table; e->op; e++)
    if (strcmp(e->op, op) == 0 && number-- == 0) return e->name;
  return NULL;
}

yk_code yk__cpu_kernel_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info) {
  return yk__cpu_kernel_prepare_only(dev, spec, -1, out, info);
}

yk_code yk__cpu_kernel_prepare_only(yk_dev *dev, const yk_kernel_spec *spec, int only, yk_kernel **out, yk_kernel_info *info) {
  yk_kernel *k = NULL;
  YK_TRY(kernel_new(dev, spec, &k));
  yk_cpu_prepare p = { .spec = spec, .k = k };
  yk_code rc = choose(&p, only);
  if (rc != YK_OK) {
    yk__cpu_kernel_free(k);
    return rc;
  }
  yk__cpu_host->log(4, __FILE__, __LINE__, "cpu: %s taken by %s", spec->op, k->impl);
  yk_error_clear();                                    /* reasons of those that refused are no failure any more */
  for (uint32_t i = 0; i < k->nin; i++) spec->in[i].layout = k->in[i].layout;
  for (uint32_t i = 0; i < k->nout; i++) spec->out[i].layout = k->out[i].layout;
  if (info) {
    yk_kernel_info full = { .size = info->size, .inplace = p.inplace, .workspace = p.workspace, .impl = k->impl };
    memcpy(info, &full, info->size < sizeof full ? info->size : sizeof full);
  }
  *out = k;
  return YK_OK;
}
