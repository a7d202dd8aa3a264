/*
 * session.h - devices opened, variables' storage, and steps that run.
 *
 * A session compiles a plan for each set of feeds, fetches, targets and shapes,
 * keeps a bounded number of them, and runs them. A prepared step (yk_step) skips
 * all look-ups: from its third run on nothing is allocated.
 */
#ifndef YK_SESSION_H
#define YK_SESSION_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yk_session yk_session;
typedef struct yk_step yk_step;

typedef struct yk_session_options {
  uint32_t size;                   /* YK_SESSION_OPTIONS_INIT sets it */
  int32_t  cpu_devices;            /* 0 = 1 */
  int32_t  virtual_gpus;           /* emulated GPUs on the CPU; 0 = none */
  uint64_t virtual_gpu_bytes;      /* memory limit of each; 0 = a quarter of the host's memory */
  uint64_t cpu_bytes;              /* memory limit of each CPU device; 0 = all of the host's memory */
  int32_t  cores;                  /* host cores shared out over the devices; 0 = all this process may use */
  const char *drivers;             /* comma-separated extra drivers that come first for their type: "ref", "null"; NULL = none */
  bool     allow_soft_placement, log_device_placement, strict;   /* strict: a fallback is an error */
  bool     deterministic;
  uint32_t max_plans;              /* kept compiled; 0 = 64 */
  int32_t  timeout_ms;             /* of a step over several devices; 0 = 600000; -1 = none. A step on one host device works on
                                      the calling thread: it ends when its kernels do */
  const char *visible_devices;     /* "2,0": of the GPUs that CUDA_VISIBLE_DEVICES left, these, as gpu:0 and gpu:1; "none";
                                      NULL or "" = what yk_select_gpu() or YOKE_VISIBLE_DEVICES says, else all. ENOTFOUND: no such
                                      GPU; EINVAL: twice, no number */
  const char *virtual_gpu_groups;  /* instead of virtual_gpus: groups N[:LIMIT[:CORES]], as "2:1GiB:2,1:256MiB" or "2::1". An empty
                                      or absent LIMIT is virtual_gpu_bytes. GPUs that name their cores get them first, disjoint while
                                      they last, then from core 0 again; the others share the rest evenly. EINVAL: more cores for one
                                      GPU than `cores` (with soft placement it gets all of them, and a notice tells). NULL or "" =
                                      none */
  const char *split_gpus;          /* "gpu:0=256MiB,256MiB,gpu:1=1GiB,1GiB": visible GPUs, each to become several logical ones with
                                      these memory limits, all GPUs numbered consecutively. EINVAL: no such GPU, twice, more than
                                      it has, or a memory fraction besides. NULL or "" = what YOKE_SPLIT_GPUS says */
  const char *rehearse;            /* a file that `yoke devices --save` wrote: the session has exactly the devices of that machine,
                                      and nothing of theirs is allocated. It places, compiles and explains; running a step or moving
                                      a variable's value is EUNSUPPORTED. Not together with virtual GPUs, a split or other limits.
                                      ENOTFOUND, EIO, ECORRUPT, EUNSUPPORTED: the file, with line, column and what was expected */
  double   per_process_gpu_memory_fraction;   /* over 0 to 1: what a GPU's pool may take of its whole memory; 0 = all that can be had */
  bool     allow_growth;           /* a GPU's pool starts small and grows on demand; else it takes its limit at the first allocation */
  uint64_t memory_limit;           /* bytes that each device may use at most, CPU devices too; 0 = not limited so. Excludes a fraction */
} yk_session_options;
#define YK_SESSION_OPTIONS_INIT { .size = sizeof(yk_session_options) }

/* From now on the sessions of this process that do not choose themselves see GPU `id` alone, as gpu:0; -1: no GPU at all. `id`
 * counts what CUDA_VISIBLE_DEVICES left, from 0. A number that is not there is refused by yk_session_open(). Any thread. EINVAL:
 * below -1. */
yk_code yk_select_gpu(int32_t id) YK_CHECKED;

/* The tensor (borrowed during the call) that takes the place of a value in one run. */
typedef struct yk_feed { yk_value value; const yk_tensor *tensor; } yk_feed;

/*
 * Open the devices, check the graph and place it. Reports the graph's sticky error. options NULL = defaults. *out:
 * yk_session_close(). A node that no device can take is refused here: ENOTFOUND no such device, EUNSUPPORTED the device cannot do
 * it, EINVAL its colocation group asks for several; each names op, device asked for, devices there are, reason and a way out. With
 * soft placement it goes to the best device that can, and one line of log tells what moved and why. Nodes added later are placed
 * before they first run.
 * The session holds a reference to the graph. Prepared steps keep the memory of a closed session until they are freed, but no
 * longer run.
 */
yk_code yk_session_open(yk_graph *g, const yk_session_options *options, yk_session **out) YK_CHECKED;
void    yk_session_close(yk_session *s);
/* The options in force, defaults filled in. Borrowed. */
const yk_session_options *yk_session_options_of(const yk_session *s);

/*
 * Run one step: feed, compute what fetches and targets need, fetch. Several threads may call it at once.
 * out: [nfetch] new tensors, the caller's (of a fed value: the fed tensor, one more reference); untouched on failure. A fetch must
 * be a value, a target may be any node's value; any value may be fed, and what it was computed from is then not needed.
 * Variables are shared by all runs: those that write take turns, those that only read do not wait and may see half of a write.
 * Errors: EINVAL (unfed placeholder, shape, dtype, fed twice, a variable without a value), ENOTFOUND, what kernels report; each names
 * the node and its file:line. ECANCELLED: out of time; tensors fed must live until the devices are idle, which later steps wait for.
 * The session stays usable.
 */
yk_code yk_session_run(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                       size_t ntarget, const yk_value *targets, yk_tensor **out) YK_CHECKED;

/*
 * A prepared step: the same feeds, fetches and targets each time. Run it with tensors in the order of `feeds`; fetched values are
 * written into step-owned tensors (borrowed, valid until the next run or free of this step). One thread at a time per step;
 * different steps of one session may run at once. Feed shapes may change: the plan for the new shape is compiled then.
 */
yk_code yk_step_prepare(yk_session *s, size_t nfeed, const yk_value *feeds, size_t nfetch, const yk_value *fetches,
                        size_t ntarget, const yk_value *targets, yk_step **out) YK_CHECKED;
yk_code yk_step_run(yk_step *step, const yk_tensor *const *feeds, const yk_tensor *const **fetched) YK_CHECKED; /* either may be NULL if none */
void    yk_step_free(yk_step *step);

/* Where a NaN or an infinity came from. */
typedef enum yk_found_kind { YK_FOUND_NOTHING, YK_FOUND_COMPUTED, YK_FOUND_DEQUEUED, YK_FOUND_FED, YK_FOUND_VARIABLE,
                             YK_FOUND_CONSTANT } yk_found_kind;
typedef struct yk_finding {
  uint32_t size;                   /* YK_FINDING_INIT sets it */
  yk_found_kind kind;
  bool     is_nan;                 /* else an infinity */
  char     name[160], op[48], where[160], device[32];   /* node (of a variable: its name), operation, the user's line, device */
  char     infinity[160];          /* the node that made the first infinity before a NaN; "" = none, or not a NaN. Long texts are cut */
  int64_t  bad, elements;          /* elements that are not finite, of so many */
  int64_t  row, bad_rows, rows;    /* the first row of the batch that has one, and how many do; row -1: it cannot be told */
} yk_finding;
#define YK_FINDING_INIT { .size = sizeof(yk_finding), .row = -1 }

/*
 * Run the step once more, with the random numbers of its last run, one operation at a time, and look at everything it computes, until
 * a NaN turns up: *out tells what made the first one, or, if there is none, what made the first infinity out of finite numbers.
 * Operations that write variables are passed over, so nothing changes; for what a guard has kept from changing anything this is the
 * same step again. Give the same feeds, and move a queue back first (yk_queue_seek()). Fetched tensors are overwritten. Slow: every
 * value is copied to the host. Errors: EINVAL (the step has not run), ENOMEM, what kernels report.
 */
yk_code yk_step_examine(yk_step *step, const yk_tensor *const *feeds, yk_finding *out) YK_CHECKED;
/* The finding as a part of a sentence: "NaN, first in 'tower_0/Log' (Log) on /cpu:0 at net.c:12, in row 3 of 128". *out: yk_free(). */
yk_code yk_finding_text(const yk_finding *f, char **out) YK_CHECKED;

/* The plan of such a step as text: one line an instruction, then memory. *out: yk_free(). */
yk_code yk_session_explain(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                           size_t ntarget, const yk_value *targets, char **out) YK_CHECKED;

/* What a device would hold of a job: all variables of the graph that live there, and the arena of one step. */
typedef struct yk_device_use {
  uint64_t operations;             /* nodes of the graph that are placed there */
  uint64_t variables, variable_bytes, arena_bytes, bytes_limit;
  bool     fits;                   /* variable_bytes + arena_bytes <= bytes_limit */
} yk_device_use;

/*
 * Would such a step fit? Places the whole graph and compiles the step; nothing is allocated on a device and nothing runs. In a
 * session with options.rehearse it answers for that machine. *fits: on every device. use: [yk_session_device_count(s)], or NULL.
 * *out, yk_free(): a table of the devices, the copies of one step between them, and as its last line the verdict, which names the
 * largest tensors where they do not fit. Errors as for yk_session_explain().
 */
yk_code yk_session_rehearse(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                            size_t ntarget, const yk_value *targets, bool *fits, yk_device_use *use, char **out) YK_CHECKED;

/* Current value of a variable in plain layout, and its replacement, which also goes into its copies on other devices. */
yk_code yk_variable_fetch(yk_session *s, const yk_variable *v, yk_tensor **out) YK_CHECKED;
yk_code yk_variable_set(yk_session *s, const yk_variable *v, const yk_tensor *value) YK_CHECKED;

/* Timeline of the steps run between start and write: every stream and copy, Chrome trace format (chrome://tracing, Perfetto).
 * Written to a temporary name and renamed. */
yk_code yk_trace_start(yk_session *s) YK_CHECKED;
yk_code yk_trace_write(yk_session *s, const char *path) YK_CHECKED;

/* Devices of the session. */
typedef struct yk_device_info {
  char name[64];                   /* "/job:localhost/replica:0/task:0/device:GPU:0" */
  char type[16];                   /* "CPU", "GPU" */
  char model[64], bus[32], driver[16];
  bool is_virtual;
  uint32_t first_core, ncores;     /* 0 cores: not a host device */
  uint64_t bytes_limit, bytes_in_use, bytes_peak;
  char uuid[48];                   /* of a GPU: "GPU-..."; what CUDA_VISIBLE_DEVICES takes */
  int32_t physical, platform;      /* number of a GPU before CUDA_VISIBLE_DEVICES, and after it; -1: no GPU */
  uint64_t bytes_total;            /* of the device itself; the limit may be less */
  uint32_t part, parts;            /* a logical GPU is number `part` of the `parts` of one device; 0 parts: a whole one */
  char stand_in[16];               /* rehearsed: the driver whose kernels are planned with, since its own is not here; else "" */
  char capability[8];              /* compute capability, "8.0"; "" if there is none or it is not known */
  char fast_types[12];             /* types below f32 that products have instructions for: "bf16,f16", "none"; "" if that is not known */
} yk_device_info;
size_t  yk_session_device_count(const yk_session *s);
yk_code yk_session_device(const yk_session *s, size_t i, yk_device_info *out) YK_CHECKED;

/*
 * Memory of a device, in bytes, as its pool counts it. A GPU's pool takes large regions from the driver and hands out pieces of
 * them, rounded up to 256 bytes; a CPU device takes and gives back each piece by itself, so that it holds what is in use. The
 * sessions of a process that open the same device under the same limit share its pool, which counts from the first one's opening.
 */
typedef struct yk_device_memory {
  uint32_t size;                   /* YK_DEVICE_MEMORY_INIT sets it */
  uint32_t regions;                /* pieces got from the driver and still held */
  uint64_t bytes_total;            /* what the device has */
  uint64_t bytes_limit;            /* what the session may take of it */
  uint64_t bytes_held, peak_held;  /* got from the driver: what other programs cannot have */
  uint64_t bytes_in_use, peak_in_use;   /* handed out to variables and steps */
  uint64_t bytes_requested;        /* of those in use, before rounding */
  uint64_t largest_free;           /* the largest piece held and not in use */
  double   fragmentation;          /* 1 - largest_free / (bytes_held - bytes_in_use); 0 if nothing is free */
  uint64_t allocations, refusals;  /* numbers of requests served and not served */
  uint64_t largest_allocation;
} yk_device_memory;
#define YK_DEVICE_MEMORY_INIT { .size = sizeof(yk_device_memory) }
/* out->size must be set; that much is written. Any thread. EINVAL: no such device, size. */
yk_code yk_session_device_memory(const yk_session *s, size_t i, yk_device_memory *out) YK_CHECKED;

/* Where each node of the graph was placed: "name: (Label): device" lines, as log_device_placement prints. *out: yk_free(). */
yk_code yk_session_placement(yk_session *s, char **out) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
