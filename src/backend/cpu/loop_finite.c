/*
 * loop_finite.c - all_finite: one pass over many buffers, for exponents of all ones.
 *
 * A float without its sign, read as an integer, is above that of infinity exactly if it is a NaN, so one comparison tells
 * whatever is asked. Buffers are read as they lie, padding included, which is zero.
 */
#include "loop.h"

#include <stdatomic.h>
#include <string.h>
#include "layout.h"

typedef struct finite {
  uint32_t n;
  uint32_t nan_only;
  int64_t start[];                       /* [n+1] first element of each input, laid end to end */
} finite;

typedef struct finite_call { const yk_kernel *k; void *const *arg; _Atomic int bad; } finite_call;

enum { BLOCK = 4096 };                   /* elements between two looks at what others found */

#define ABOVE(name, type, sign, infinity)                                                     \
  static int name(const char *x, int64_t n, int nan_only) {                                   \
    const type most = (type)(infinity - (nan_only ? 0 : 1));                                  \
    type bad = 0;                                                                             \
    _Pragma("omp simd reduction(| : bad)") for (int64_t i = 0; i < n; i++) {                  \
      type v;                                                                                 \
      memcpy(&v, x + i * (int64_t)sizeof v, sizeof v);                                        \
      bad = (type)(bad | ((type)(v & sign) > most));                                          \
    }                                                                                         \
    return bad != 0;                                                                          \
  }
ABOVE(above_f32, int32_t, 0x7fffffff, 0x7f800000)
ABOVE(above_f64, int64_t, 0x7fffffffffffffff, 0x7ff0000000000000)
ABOVE(above_f16, int16_t, 0x7fff, 0x7c00)
ABOVE(above_bf16, int16_t, 0x7fff, 0x7f80)

static int above(uint8_t dtype, const char *x, int64_t n, int nan_only) {
  switch (dtype) {
    case YK_F64: return above_f64(x, n, nan_only);
    case YK_F16: return above_f16(x, n, nan_only);
    case YK_BF16: return above_bf16(x, n, nan_only);
    default: return above_f32(x, n, nan_only);
  }
}

static void finite_piece(int64_t begin, int64_t end, void *argv) {
  finite_call *c = argv;
  const finite *f = c->k->state;
  for (uint32_t i = 0; i < f->n && begin < end; i++) {
    uint8_t dtype = c->k->in[i].dtype;
    int64_t bytes = (int64_t)yk__cpu_dtype_bytes(dtype), stop = f->start[i + 1] < end ? f->start[i + 1] : end;
    while (begin < stop) {
      int64_t m = stop - begin < BLOCK ? stop - begin : BLOCK;
      if (atomic_load_explicit(&c->bad, memory_order_relaxed)) return;
      if (above(dtype, (const char *)c->arg[i] + (begin - f->start[i]) * bytes, m, (int)f->nan_only))
        atomic_store_explicit(&c->bad, 1, memory_order_relaxed);
      begin += m;
    }
  }
}

static yk_code finite_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const finite *f = k->state;
  finite_call c = { .k = k, .arg = arg };
  (void)workspace;
  if (f->start[f->n]) yk__cpu_host->parallel_for(f->start[f->n], L_GRAIN, finite_piece, &c);
  *(uint8_t *)arg[k->nin] = !atomic_load(&c.bad);
  return YK_OK;
}

yk_code yk__cpu_loop_all_finite(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_finite_attrs *a = k->attrs;
  finite *f = yk__cpu_state(p, sizeof *f + (k->nin + 1u) * sizeof f->start[0]);
  if (!f) return YK_ENOMEM;
  f->n = k->nin;
  f->nan_only = a && a->nan_only;
  for (uint32_t i = 0; i < k->nin; i++) {
    int64_t count = k->in[i].layout == YK_LAYOUT_ANY ? -1 : yk__cpu_layout_count(&k->in[i]);
    if (count < 0 && p->spec->flags & YK_SPEC_FIXED) return YK_CPU_REFUSE("input %u is in layout %u", (unsigned)i, (unsigned)k->in[i].layout);
    if (count < 0) k->in[i].layout = YK_LAYOUT_PLAIN;
    f->start[i + 1] = f->start[i] + (count < 0 ? yk__cpu_count(&k->in[i]) : count);
  }
  k->out[0].layout = YK_LAYOUT_PLAIN;
  k->run = finite_run;
  k->impl = "plain:all_finite";
  return YK_OK;
}
