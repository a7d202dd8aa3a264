/*
 * device.h - the table a device backend fills in.
 *
 * A backend (built in, or a shared object) exports ONE symbol:
 *
 *     const yk_driver *yk_plugin(const yk_host *host);
 *
 * Conventions, valid for every entry unless its comment says otherwise:
 *   - Returns YK_OK or a code; on failure it has called host->fail() and
 *     written none of its out parameters.
 *   - Out parameters come last.  What is written to `T **out` belongs to the
 *     caller, who gives it back through the matching close/free entry.
 *   - close/free entries accept NULL and cannot fail.
 *   - [stream] entries only enqueue: they return before the work is done, and
 *     every argument except `yk_mem` contents may be reused on return.
 *   - [any thread] unless marked [owner], which means one thread at a time
 *     per object. A stream is fed and synchronised by one thread at a time.
 */
#ifndef YK_DEVICE_H
#define YK_DEVICE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include "tensor.h"

#ifdef __cplusplus              /* nvcc compiles backends as C++ */
extern "C" {
#endif

/* Raise MAJOR when a field changes meaning, type or order; raise MINOR when a
 * field is added at the end.  Nothing is ever removed within a MAJOR. */
enum { YK_DEVICE_MAJOR = 1, YK_DEVICE_MINOR = 3 };

/* yk_desc.layout: 0 = dense row-major, in the order of dim; YK_LAYOUT_ANY = the driver
 * chooses; anything else is a number private to one driver (cpu: a oneDNN blocked layout). */
enum { YK_LAYOUT_PLAIN = 0, YK_LAYOUT_ANY = 0xFFFF };

/* True if `table`, as the other side compiled it, has the field and it is set. */
#define YK_HAS(table, field)                                                 \
  ((table)->size >= offsetof(yk_driver, field) + sizeof((table)->field) &&   \
   (table)->field != NULL)

enum { YK_UID_BYTES = 128 };      /* of a communicator's identity, see yk_coll */

typedef struct yk_mem {            /* a piece of an allocation */
  void  *base;                     /* driver handle; core never does arithmetic on it */
  size_t offset, bytes;
} yk_mem;

typedef struct yk_dev    yk_dev;     /* all five are defined by the driver */
typedef struct yk_stream yk_stream;
typedef struct yk_event  yk_event;
typedef struct yk_kernel yk_kernel;
typedef struct yk_comm   yk_comm;

/* Where memory lies: on the device; on the host, where the device can reach it; moving between the two by itself. */
typedef enum yk_space { YK_DEVICE_MEM, YK_PINNED_MEM, YK_MANAGED_MEM } yk_space;

typedef struct yk_dev_info {
  uint32_t size;                   /* set by the caller; driver fills that much */
  char     name[64];
  char     bus[32];                /* "0000:c1:00.0", or "" */
  uint64_t bytes_total, bytes_free;
  uint32_t alignment;              /* every yk_mem offset is a multiple of this */
  uint32_t numa_node;              /* UINT32_MAX if unknown */
  uint32_t fast_types;             /* bits 1 << YK_BF16, 1 << YK_F16: products have instructions for it; bit 0: this is known. Since minor 3 */
} yk_dev_info;

enum { YK_SPEC_DETERMINISTIC = 1,  /* same bits on every run, or refuse */
       YK_SPEC_FIXED = 2 };        /* layouts of `in` are final: take them or refuse */

/*
 * One fully shaped operation, and the negotiation of its layouts.
 *
 * On entry in[i].layout is the layout the value has (what is offered) and
 * out[i].layout is YK_LAYOUT_ANY. The driver may overwrite in[i].layout with the
 * one it wants (the core then puts a "reorder" kernel in between), unless
 * YK_SPEC_FIXED is set; it fills in every out[i].layout. A kernel that does not
 * care follows its first input. dtype, rank and dim are never changed; for a
 * private layout `dim` still is the logical shape [N, H, W, C], filter [H, W, I, O].
 * The special op "reorder" (one input, one output) has both layouts given.
 * Shape-only inputs (YK_PORT_SHAPE) and outputs without data (dtype YK_NONE)
 * have a desc but no memory: their launch argument has base NULL.
 */
typedef struct yk_kernel_spec {
  uint32_t    size;
  const char *op;                  /* registered name, e.g. "softmax" */
  uint16_t    op_version;
  uint16_t    nin, nout;
  uint16_t    flags;               /* YK_SPEC_* */
  const void *attrs;               /* the op's attribute struct, see op_attrs.h; lives as long as the kernel */
  yk_desc    *in, *out;
} yk_kernel_spec;

typedef struct yk_kernel_info {
  uint32_t    size;
  uint32_t    inplace;             /* bit i: out[0] may overlay in[i] */
  uint64_t    workspace;           /* bytes to pass to kernel_launch */
  const char *impl;                /* "cudnn:softmax", lives as long as the kernel */
} yk_kernel_info;

/* How to open a device. A driver ignores what does not apply to it. */
typedef struct yk_dev_config {
  uint32_t size;
  uint32_t first_core, ncores;     /* host cores this device owns (cpu, ref, null); 0 cores = the driver decides */
  uint32_t pin;                    /* 1: bind stream threads to those cores */
  uint32_t stream_cores;           /* of those, how many a stream with a thread of its own may keep busy; 0 = all. Since minor 1 */
} yk_dev_config;

enum { YK_STREAM_INLINE = 1 };     /* work runs on the calling thread before the [stream] entry returns */

/* What the core lends to a backend.  Valid until the process ends. */
typedef struct yk_host {
  uint32_t size;
  uint16_t major, minor;
  yk_code (*fail)(yk_code code, const char *file, int line, const char *fmt, ...) YK_PRINTF(4, 5);
  void    (*log)(int level, const char *file, int line, const char *fmt, ...) YK_PRINTF(4, 5);
  void   *(*alloc)(size_t bytes, size_t align);   /* NULL on failure */
  void    (*free)(void *p);
  const char *(*param)(const char *name);         /* "cuda.tf32"; NULL if unset */
  /* Host cores. The team of a thread is shared by oneDNN and parallel_for. */
  void    (*pin)(int first_core, int ncores);     /* bind the calling thread */
  void    (*team_set)(int n);                     /* size of the calling thread's team */
  int     (*team)(void);
  void    (*parallel_for)(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *arg), void *arg);
  /* Four random words, a pure function of its arguments (Philox4x32-10); see random_uniform in op_attrs.h. */
  void    (*random_block)(uint64_t seed, uint64_t stream, uint64_t step, uint64_t block, uint32_t round, uint32_t out[4]);
  uint64_t (*now_ns)(void);                       /* monotonic clock */
} yk_host;

typedef struct yk_driver yk_driver;
struct yk_driver {
  uint32_t size;                   /* sizeof(yk_driver) as the backend saw it */
  uint16_t major, minor;
  const char *name;                /* "cpu", "cuda": lower case, unique */
  const char *version;             /* of the backend, for logs and bug reports */

  /* enumeration */
  yk_code (*count)(uint32_t *out);
  yk_code (*info)(uint32_t ordinal, yk_dev_info *out);
  yk_code (*open)(uint32_t ordinal, const yk_dev_config *config, yk_dev **out);
  void    (*close)(yk_dev *dev);

  /* memory */
  yk_code (*mem_alloc)(yk_dev *dev, yk_space space, size_t bytes, yk_mem *out);
  void    (*mem_free)(yk_dev *dev, yk_mem mem);
  yk_code (*mem_map)(yk_dev *dev, yk_mem mem, void **out);  /* host address, or EUNSUPPORTED */
  yk_code (*desc_bytes)(yk_dev *dev, const yk_desc *d, uint64_t *out); /* bytes a value takes in its layout, padding included */

  /* streams and events */
  yk_code (*stream_open)(yk_dev *dev, uint32_t flags, yk_stream **out); /* YK_STREAM_*; EUNSUPPORTED if it cannot */
  void    (*stream_close)(yk_stream *s);
  /* Blocks until the stream is idle. Returns the first failure since the last sync, its message on the
   * calling thread, and in *failed how many kernel_launch/copy/fill entries were enqueued since that sync
   * before the one that failed; what follows a failure is skipped until the sync, events still fire. */
  yk_code (*stream_sync)(yk_stream *s, uint64_t *failed);
  yk_code (*event_open)(yk_dev *dev, yk_event **out);
  void    (*event_close)(yk_event *e);
  yk_code (*event_record)(yk_stream *s, yk_event *e);       /* [stream] */
  yk_code (*event_wait)(yk_stream *s, yk_event *e);         /* [stream] */
  yk_code (*event_query)(yk_event *e);                      /* OK, EBUSY, or the async failure */

  /* copies: [stream] of dst.bytes (copy_out: src.bytes). Host memory of copy_in and copy_out must stay valid until the stream
   * has got there: a sync, or an event recorded behind. */
  yk_code (*copy_in)(yk_stream *s, yk_mem dst, const void *src);
  yk_code (*copy_out)(yk_stream *s, void *dst, yk_mem src);
  yk_code (*copy)(yk_stream *s, yk_mem dst, yk_mem src);    /* both on this device */
  yk_code (*fill)(yk_stream *s, yk_mem dst, uint8_t byte);

  /* kernels: prepare once while compiling a plan, launch on every step. A kernel object may be launched by one
   * stream at a time. Arguments: every input in port order, then every output. Pointers are aligned to info.alignment. */
  yk_code (*kernel_prepare)(yk_dev *dev, const yk_kernel_spec *spec,
                            yk_kernel **out, yk_kernel_info *info);
  yk_code (*kernel_launch)(yk_kernel *k, yk_stream *s, const yk_mem *arg,
                           uint32_t nargs, yk_mem workspace);  /* [stream] no allocation, no lookup */
  void    (*kernel_free)(yk_kernel *k);

  /* ---- optional from here: NULL, or absent in an older `size`, means the
   * core uses the fallback named in the comment ---- */
  yk_code (*copy_peer)(yk_stream *s, yk_mem dst, yk_dev *src_dev, yk_mem src); /* else: bounce through pinned memory */
  yk_code (*mem_trim)(yk_dev *dev);                                            /* else: nothing is cached */
  const void *(*extension)(const char *name, uint16_t major);                  /* else: none; see yk_coll */
  /* Host-clock time (now_ns) at which a recorded, finished event fired; else: no trace of this device. */
  yk_code (*event_time)(yk_event *e, uint64_t *ns);
  /* Sleep until the event has fired, at most timeout_ms (<= 0: without limit): what event_query returns then; else: the core
   * asks again and again. Since minor 1. */
  yk_code (*event_sync)(yk_event *e, int64_t timeout_ms);
  /* Host time that the stream has spent with work since it was opened, up to when it last ran out of it; waiting for events is no
   * work. EUNSUPPORTED for a stream that works on the calling thread; else: each run counts as a whole. [any thread] Since minor 2. */
  yk_code (*stream_busy)(yk_stream *s, uint64_t *ns);
};

/* The one list of what must be set; the loader and the header agree by the
 * assertion below. */
#define YK_DRIVER_REQUIRED(X)                                                  \
  X(count) X(info) X(open) X(close) X(mem_alloc) X(mem_free) X(mem_map) X(desc_bytes) \
  X(stream_open) X(stream_close) X(stream_sync) X(event_open) X(event_close)   \
  X(event_record) X(event_wait) X(event_query) X(copy_in) X(copy_out) X(copy)  \
  X(fill) X(kernel_prepare) X(kernel_launch) X(kernel_free)
#define YK_DRIVER_OPTIONAL(X) X(copy_peer) X(mem_trim) X(extension) X(event_time) X(event_sync) X(stream_busy)
#define YK__ONE(f) +1
static_assert(sizeof(struct yk_driver) ==
                   offsetof(struct yk_driver, count) +
                       (0 YK_DRIVER_REQUIRED(YK__ONE) YK_DRIVER_OPTIONAL(YK__ONE)) *
                           sizeof(void (*)(void)),
               "every entry of yk_driver is listed as required or optional");
#undef YK__ONE

/* Extension "collective": NCCL inside the CUDA backend, MPI for host memory. */
typedef enum yk_redop { YK_SUM, YK_PROD, YK_MIN, YK_MAX, YK_AVG } yk_redop;
typedef struct yk_coll {
  uint32_t size;
  uint16_t major, minor;
  yk_code (*uid)(uint8_t out[YK_UID_BYTES]);     /* rank 0 makes it; the core carries it to the others */
  yk_code (*join)(yk_dev *dev, const uint8_t uid[YK_UID_BYTES], int rank, int nranks, yk_comm **out);
  void    (*leave)(yk_comm *c);
  yk_code (*group_begin)(yk_comm *c);
  yk_code (*group_end)(yk_comm *c, yk_stream *s);                               /* [stream] */
  yk_code (*all_reduce)(yk_comm *c, yk_stream *s, yk_mem dst, yk_mem src, size_t n, yk_dtype t, yk_redop op);
  yk_code (*all_gather)(yk_comm *c, yk_stream *s, yk_mem dst, yk_mem src, size_t n, yk_dtype t);
  yk_code (*reduce_scatter)(yk_comm *c, yk_stream *s, yk_mem dst, yk_mem src, size_t n, yk_dtype t, yk_redop op);
  yk_code (*broadcast)(yk_comm *c, yk_stream *s, yk_mem mem, size_t n, yk_dtype t, int root);
  yk_code (*poll)(yk_comm *c);                   /* OK, EBUSY or EPEER: never blocks */
  void    (*abort)(yk_comm *c);                  /* releases every rank stuck in this comm */
} yk_coll;

/* Extension "rendezvous": MPI, or a TCP store.  How processes first meet. */
typedef struct yk_rendezvous {
  uint32_t size;
  uint16_t major, minor;
  yk_code (*self)(int *rank, int *nranks, int *local_rank);
  yk_code (*put)(const char *key, const void *value, size_t bytes);
  yk_code (*get)(const char *key, void *value, size_t bytes, int timeout_ms);
  yk_code (*barrier)(int timeout_ms);
} yk_rendezvous;

#ifdef __cplusplus
}
#endif
#endif
