/*
 * cpu.h - the inside of the CPU driver: devices, kernels, streams, events.
 *
 * The driver sees nothing of the core but <yoke/...> headers and the host table. A kernel is one
 * function prepared once (candidates are listed in kernels.def, in order of preference) and run many
 * times on whichever thread executes its stream, with that thread's team set to the device's cores.
 */
#ifndef YK_BACKEND_CPU_H
#define YK_BACKEND_CPU_H

#include <stdatomic.h>
#include <yoke/device.h>
#include <yoke/op_attrs.h>

extern const yk_host *yk__cpu_host;                  /* set once by yk__cpu_plugin, before anything else runs */

/* `return YK_CPU_FAIL(EINVAL, "...")` inside the driver. */
#define YK_CPU_FAIL(code, ...) yk__cpu_host->fail(YK_##code, __FILE__, __LINE__, __VA_ARGS__)
/* `return YK_CPU_REFUSE("only f32")`: a candidate that cannot take this spec; the next one is asked. */
#define YK_CPU_REFUSE(...) YK_CPU_FAIL(EUNSUPPORTED, __VA_ARGS__)

struct yk_dev {
  uint32_t first_core, ncores;                       /* ncores >= 1: the team of everything that runs here, */
  uint32_t stream_cores;                             /* but of what runs on a stream's own thread: 1 to ncores */
  uint32_t pin;
};

/* ---- kernels ------------------------------------------------------------------------------------- */

/*
 * A prepared kernel. The driver makes it, with copies of the descriptions; a candidate fills in run, impl and what else
 * it needs. One stream at a time launches it, so `state` may hold scratch that a run overwrites.
 */
struct yk_kernel {
  /* Do the work. arg: every input in port order, then every output: addresses, NULL where there is no data (shape-only
   * port, absent optional input, output of dtype YK_NONE). A value of zero elements has an address, of nothing. An output
   * may be the address of an input only if `inplace` allowed it. workspace: at least the bytes asked for, 64-byte aligned; NULL if 0 were asked.
   * Parallel loops go through yk__cpu_host->parallel_for; never allocates. Failures: YK_CPU_FAIL. */
  yk_code (*run)(const yk_kernel *k, void *const *arg, void *workspace);
  void (*destroy)(yk_kernel *k);                     /* gives back what `state` points to; NULL if nothing */
  const char *impl;                                  /* static string, "dnnl:conv2d", "plain:add" */
  yk_dev *dev;
  const void *attrs;                                 /* the op's attribute struct, or NULL = all defaults */
  uint32_t nin, nout;
  yk_desc *in, *out;                                 /* [nin], [nout]; layouts as negotiated */
  void *state;                                       /* from yk__cpu_state, freed by the driver after destroy */
  void **inline_arg;                                 /* [nin+nout] driver's: arguments of a launch on an inline stream */
};

/*
 * One attempt at preparing. On entry k->in and k->out are fresh copies of the spec's (layouts as offered, outputs
 * YK_LAYOUT_ANY). An accepting candidate
 *   - may overwrite k->in[i].layout with the one it wants, unless spec->flags has YK_SPEC_FIXED; sets every k->out[i].layout;
 *   - sets k->run and k->impl, and if needed k->destroy, k->state, p->inplace, p->workspace;
 *   - returns YK_OK.
 * A refusing one returns YK_CPU_REFUSE("why"); whatever it had set is undone by the driver (destroy if set, then state freed,
 * layouts restored). Any other code ends the preparation with that failure.
 */
typedef struct yk_cpu_prepare {
  const yk_kernel_spec *spec;                        /* op, flags, attrs; use k->in, k->out for descriptions */
  yk_kernel *k;
  uint32_t inplace;                                  /* bit i: out[0] may overlay in[i]; 0 on entry */
  uint64_t workspace;                                /* bytes; 0 on entry */
} yk_cpu_prepare;

typedef yk_code (*yk_cpu_candidate)(yk_cpu_prepare *p);

/* Every line KERNEL(op, function) of kernels.def declares `yk_code yk__cpu_<function>(yk_cpu_prepare *p)`; one function
 * may stand on many lines. */
#define KERNEL(op, function) yk_code yk__cpu_##function(yk_cpu_prepare *p) YK_CHECKED;
#include "kernels.def"
#undef KERNEL

/* Zeroed, 64-byte aligned memory for k->state (at most one a kernel); NULL after reporting ENOMEM. Only while preparing. */
void *yk__cpu_state(yk_cpu_prepare *p, size_t bytes);

/* Elements of a fully known description; bytes of one element. */
int64_t yk__cpu_count(const yk_desc *d);
size_t  yk__cpu_dtype_bytes(uint8_t dtype);

/* All inputs and outputs plain? For candidates that know no other layout: takes what is plain or asks for it. Refuses if the
 * layouts are fixed and not plain. Sets every output's layout to plain. */
yk_code yk__cpu_want_plain(yk_cpu_prepare *p) YK_CHECKED;

/* Bytes of a value in a private layout (d->layout neither plain nor ANY). EUNSUPPORTED for an unknown number. (layout.c) */
yk_code yk__cpu_layout_bytes(const yk_desc *d, uint64_t *out) YK_CHECKED;

const yk_driver *yk__cpu_plugin(const yk_host *host);   /* the driver's one entry point; called once */

/* ---- entries of the driver's table, by file ------------------------------------------------------- */

yk_code yk__cpu_kernel_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info);
/* For tests: name of an op's candidate number n, NULL past the last; prepare with that candidate alone (-1 = all in order). */
const char *yk__cpu_candidate_name(const char *op, int number);
yk_code yk__cpu_kernel_prepare_only(yk_dev *dev, const yk_kernel_spec *spec, int only, yk_kernel **out, yk_kernel_info *info);
yk_code yk__cpu_kernel_launch(yk_kernel *k, yk_stream *s, const yk_mem *arg, uint32_t nargs, yk_mem workspace);
void    yk__cpu_kernel_free(yk_kernel *k);

yk_code yk__cpu_mem_alloc(yk_dev *dev, yk_space space, size_t bytes, yk_mem *out);
void    yk__cpu_mem_free(yk_dev *dev, yk_mem mem);
yk_code yk__cpu_mem_map(yk_dev *dev, yk_mem mem, void **out);
yk_code yk__cpu_desc_bytes(yk_dev *dev, const yk_desc *d, uint64_t *out);
void    yk__cpu_copy_bytes(void *dst, const void *src, size_t bytes);     /* on the calling thread's team if big */
void    yk__cpu_fill_bytes(void *dst, uint8_t byte, size_t bytes);
uint64_t yk__cpu_cache_bytes(void);                                       /* of the last level that a core reaches */
uint64_t yk__cpu_memory_total(void);                                      /* of this machine or control group */
uint64_t yk__cpu_memory_free(void);
static inline void *yk__cpu_address(yk_mem m) { return m.base ? (char *)m.base + m.offset : NULL; }

yk_code yk__cpu_stream_open(yk_dev *dev, uint32_t flags, yk_stream **out);
void    yk__cpu_stream_close(yk_stream *s);
yk_code yk__cpu_stream_sync(yk_stream *s, uint64_t *failed);
yk_code yk__cpu_event_record(yk_stream *s, yk_event *e);
yk_code yk__cpu_event_wait(yk_stream *s, yk_event *e);
yk_code yk__cpu_copy_in(yk_stream *s, yk_mem dst, const void *src);
yk_code yk__cpu_copy_out(yk_stream *s, void *dst, yk_mem src);
yk_code yk__cpu_copy(yk_stream *s, yk_mem dst, yk_mem src);
yk_code yk__cpu_fill(yk_stream *s, yk_mem dst, uint8_t byte);
yk_code yk__cpu_stream_busy(yk_stream *s, uint64_t *ns);
yk_code yk__cpu_copy_peer(yk_stream *s, yk_mem dst, yk_dev *src_dev, yk_mem src);

yk_code yk__cpu_event_open(yk_dev *dev, yk_event **out);
void    yk__cpu_event_close(yk_event *e);
yk_code yk__cpu_event_query(yk_event *e);
yk_code yk__cpu_event_time(yk_event *e, uint64_t *ns);
yk_code yk__cpu_event_sync(yk_event *e, int64_t timeout_ms);

#endif
