/*
 * run.h - the inside of sessions: activations, cached plans, variables' storage. Public half: <yoke/session.h>.
 *
 * The one idea: everything a step needs is resolved once, in the activation
 * (yk_run) of a compiled plan, so that a step is a walk over instructions whose
 * arguments are ready. A cached plan (yk_entry) has exactly one activation and is
 * run by one thread at a time, because kernels belong to the plan.
 *
 * Locks, always taken in this order, each released before a call returns:
 *   compile  one compilation, placement, layout change or change of activations at a time
 *   entry    held while a plan runs
 *   stream   held by what uses the devices' own threaded streams
 *   write    held by runs that write variables
 *   cache, var, trace: leaves, held for a few instructions
 * An entry's lock may be tried, never waited for, by who has later ones.
 */
#ifndef YK_RUN_RUN_H
#define YK_RUN_RUN_H

#include <stdatomic.h>
#include <yoke/session.h>
#include "base/thread.h"
#include "plan/plan.h"

enum { YK__NO_INSTR = 0x7FFFFFFF, YK__NO_DEVICE = 0xFFFF };

/* ---- activation and executor: activation.c, executor.c ---------------------------------------------------------- */

typedef struct yk_lane {             /* one stream of a plan */
  yk_stream *stream;
  const yk_driver *driver;
  yk_device *device;
  yk_event *done;                    /* threaded lanes: recorded after the last instruction, to wait with a time limit */
  uint32_t base;                     /* first instruction not covered by a sync yet */
  bool counts;                       /* the first lane of its device: runs are counted once */
  uint32_t before;                   /* run counters enqueued since that sync, before instruction `base` */
} yk_lane;

typedef struct yk_run {              /* arenas, streams, events and resolved arguments of one plan */
  const yk_plan *plan;
  yk_devices *devices;
  yk_mem *arena;                     /* [narena] */
  yk_mem *arg;                       /* [narg] plan->arg, resolved: a launch passes a pointer into it */
  yk_mem *workspace;                 /* [nkernel] */
  yk_lane *lane;                     /* [nstream] */
  yk_event **event;                  /* [nevent] */
  uint32_t *counter, ncounter;       /* buffers that hold the run counter */
  void **bounce;                     /* [ninstr] host memory of copies between drivers; NULL if there are none */
  yk_event **mark;                   /* [2*ninstr] begin and end of each piece of work; made by the first traced run */
  int64_t counter_value;
  uint64_t began;                    /* coarse clock */
  uint32_t failed_at;                /* instruction that a mid-run sync blamed */
  bool is_inline;                    /* one lane, which works on the calling thread */
  bool marked;                       /* `mark` is complete */
  _Atomic bool busy;                 /* out of time: lanes may still be working */
  yk_bump mem;
} yk_run;

typedef struct yk_io {               /* what differs from run to run */
  const void *const *feed;           /* [nfeed] */
  void *const *fetch;                /* [nfetch] */
  int64_t counter;
  int64_t timeout_ms;                /* <= 0: none */
  yk_finding *finding;               /* not NULL: examine instead of running */
} yk_io;

/* Allocates from the devices; variables must have storage already. Errors: ENOMEM. */
yk_code yk__run_new(const yk_plan *p, yk_devices *d, const yk_var_slot *var, yk_run **out) YK_CHECKED;
void    yk__run_free(yk_run *r);
/* Where buffer `b` is. */
yk_mem  yk__run_mem(const yk_run *r, const yk_var_slot *var, uint32_t b);

/* One step, waited for. A failure names node, op and the user's line. If it ran out of time (ECANCELLED, r->busy) work may still
 * be going on, and what `io` points to must stay alive until yk__run_drain() succeeds. */
yk_code yk__run_go(yk_run *r, const yk_io *io) YK_CHECKED;
/* Wait again for a run that was out of time; its own failure is forgotten. */
yk_code yk__run_drain(yk_run *r, int64_t timeout_ms) YK_CHECKED;
/* For tracing: the pieces of yk__run_go(). */
yk_code yk__run_begin(yk_run *r, int64_t counter) YK_CHECKED;
yk_code yk__run_instr(yk_run *r, uint32_t i, const yk_io *io) YK_CHECKED;
yk_code yk__run_finish(yk_run *r, const yk_io *io, yk_code rc, uint32_t at) YK_CHECKED;
bool    yk__instr_works(const yk_instr *i);       /* moves or computes data: not an event */

/* ---- feeds and fetches: feeds.c --------------------------------------------------------------------------------- */

#define YK__FED 0x80000000u          /* flag in fetch_of: the value is fed; the rest is the caller's feed number */

typedef struct yk_binding {          /* a request in canonical form: sorted, without repeats, without fetches that are fed */
  uint32_t nfeed, nfetch, ntarget, nuser;
  yk_value *feed, *fetch, *target;   /* slices of one array */
  uint32_t *feed_of;                 /* [nfeed] the caller's feed number */
  uint32_t *fetch_of;                /* [nuser] for each fetch of the caller: number in `fetch`, or YK__FED | feed number */
  uint64_t hash;                     /* of the value ids */
  void *key;                         /* the allocation behind it */
} yk_binding;

/* `stride`: bytes from one fed yk_value to the next. Allocates once; yk__binding_free(). Errors name the value and its line. */
yk_code yk__bind(const yk_graph *g, size_t nfeed, const yk_value *feeds, size_t stride, size_t nfetch, const yk_value *fetches,
                 size_t ntarget, const yk_value *targets, yk_binding *out) YK_CHECKED;
void    yk__binding_free(yk_binding *b);
/* Does `t` fit fed value `v`? */
yk_code yk__feed_check(const yk_graph *g, yk_value v, const yk_tensor *t) YK_CHECKED;
/* Is every placeholder that the request needs fed? */
yk_code yk__placeholders_check(const yk_graph *g, const yk_binding *b) YK_CHECKED;

/* ---- cached plans: plan_cache.c --------------------------------------------------------------------------------- */

typedef struct yk_entry {
  _Atomic uint32_t refs;
  yk_session *s;
  yk_plan *plan;
  _Atomic(yk_run *) run;             /* under lock. NULL: given up for memory, until the next run */
  yk_value *id;                      /* the canonical request: feeds, fetches, targets */
  uint32_t nfeed, nfetch, ntarget;
  uint64_t hash;
  yk_mutex lock;
  bool stale;                        /* under lock: a variable of it was laid out anew */
  uint64_t used;                     /* under lock: the session's ticks at its last run */
  bool reads_ok, writes_ok;          /* under lock: known initialized; marked initialized */
  bool has_run;                      /* under lock */
  int64_t counter;                   /* under lock: run counter of its last run */
  yk_tensor **held; uint32_t nheld;  /* under the stream lock: what a run out of time still uses */
  bool cached;                       /* under the cache lock, as the links are */
  struct yk_entry *newer, *older;    /* cached ones by last use */
  struct yk_entry *next, *prev;      /* all that exist */
  uint32_t trace_of;                 /* number of the trace that holds a reference */
} yk_entry;

typedef struct yk_cache { yk_entry *newest, *oldest, *all; uint32_t n, nall; } yk_cache;

/* The plan for this request and these shapes, compiled if need be; one reference for the caller. */
yk_code yk__entry_get(yk_session *s, const yk_binding *b, const yk_desc *feed_desc, yk_entry **out) YK_CHECKED;
/* Run it. *stale = true, nothing run: drop it and get another. `keep` are tensors to hold on to if time runs out. finding, unless
 * NULL: examine its last run instead. */
yk_code yk__entry_run(yk_entry *e, const void *const *feed, void *const *fetch, uint32_t nkeep, yk_tensor *const *keep,
                      yk_finding *finding, bool *stale) YK_CHECKED;
void    yk__entry_ref(yk_entry *e);
bool    yk__entry_ref_live(yk_entry *e);          /* with the cache lock held; false: it is on its way out */
void    yk__entry_unref(yk_entry *e);
bool    yk__cache_clear(yk_session *s);           /* false: it was empty */
/* No plan that uses variable `v` runs once this returns; those that exist will be compiled anew. */
void    yk__cache_retire(yk_session *s, uint32_t v);
/* The stream lock, with the streams idle: waits for a run that was out of time. On failure the lock is not held. */
yk_code yk__streams_acquire(yk_session *s) YK_CHECKED;
void    yk__streams_release(yk_session *s);

/* ---- memory that is short: memory.c, memory_report.c ------------------------------------------------------------ */

/* All with the compile lock held, except give_way. */
/* Does it fit beside what stays in any case? Else ENOMEM with a report. Before anything of the plan is made. */
yk_code yk__memory_admit(yk_session *s, const yk_plan *p) YK_CHECKED;
/* From a device's pool, for which idle plans give their memory up. wait: running ones are waited for; only with no lock but
 * compile. ENOMEM with a report. */
yk_code yk__session_alloc(yk_session *s, uint16_t dev, size_t bytes, bool wait, yk_mem *out) YK_CHECKED;
/* The first device that has refused memory since the mark, or YK__NO_DEVICE. */
void     yk__memory_mark(yk_session *s);
uint16_t yk__memory_lacking(const yk_session *s);

/* One request that a device could not serve: try, ask for more room, try again, until end. */
typedef struct yk_shortage { uint64_t deadline, ended; bool waits; } yk_shortage;
yk_shortage yk__shortage_begin(bool wait);         /* wait: for plans at work, as long as the setting tells; only with no lock but compile */
void yk__shortage_try(yk_shortage *x);             /* before each try */
/* Take an idle plan's memory on `dev`, or wait a little for one at work. False: no hope. own_moves: moves of the last try. */
bool yk__shortage_more(yk_shortage *x, yk_session *s, uint16_t dev, uint64_t own_moves);
void yk__shortage_end(yk_shortage *x);
/* Around what takes arenas until the plan is listed with them, and what gives them back after it is not. */
void yk__memory_move_begin(void);
void yk__memory_move_end(bool gave);
/* Bytes of `pool` that the plan's activation has. */
uint64_t yk__memory_lent(const yk_entry *e, const struct yk_pool *pool);
/* The report for a plan, or for bytes, that a pool has refused; the pool's message is part of it. Return the code of the failure. */
yk_code yk__memory_refuse_step(yk_session *s, const yk_plan *p, uint16_t dev) YK_CHECKED;
yk_code yk__memory_refuse(yk_session *s, uint16_t dev, uint64_t bytes, yk_code rc) YK_CHECKED;
/* After a run, if somebody is waiting. No lock held. */
extern _Atomic uint32_t yk__memory_waiting;
void     yk__memory_give_way(void);
/* The session is one of the process's whose idle plans may give way; no more. */
void     yk__memory_join(yk_session *s);
void     yk__memory_leave(yk_session *s);

/* ---- variables' storage: variables.c ---------------------------------------------------------------------------- */

/* All with the compile lock held, except those marked. */
yk_code yk__vars_grow(yk_session *s) YK_CHECKED;                        /* slots for variables made since */
yk_code yk__vars_settle(yk_session *s, const yk_var_slot *now) YK_CHECKED;  /* take over what a compilation chose */
yk_code yk__var_allocate(yk_session *s, uint32_t v) YK_CHECKED;           /* no other lock: it may wait */
void    yk__var_release(yk_session *s, uint32_t v);                     /* of one that nothing uses yet */
yk_code yk__vars_check(yk_session *s, const yk_plan *p) YK_CHECKED;     /* [any lock] everything read is initialized */
void    yk__vars_mark(yk_session *s, const yk_plan *p);                 /* [any lock] everything written is initialized */
void    yk__vars_copy(yk_session *s, yk_var_slot *out);                 /* [any lock] out: [s->nvar] */
void    yk__vars_free(yk_session *s);
/* [no lock held] The values of the first n variables, plain, as of one moment between two steps, and the number of the next run
 * that draws random numbers. out[v] NULL: not v. A variable without a value is EINVAL. */
yk_code yk__vars_read(yk_session *s, uint32_t n, void *const *out, int64_t *counter) YK_CHECKED;
/* [no lock held] The reverse, of n variables by number and their copies; counter NULL: as it is. Nothing has changed after a failure other than one
 * of the device's copying. */
yk_code yk__vars_write(yk_session *s, uint32_t n, const uint32_t *index, const void *const *in, const int64_t *counter) YK_CHECKED;

/* examine.c: one operation at a time, outputs looked at, variables left alone. */
yk_code yk__run_examined(yk_entry *e, const yk_io *io) YK_CHECKED;

/* ---- trace: trace.c --------------------------------------------------------------------------------------------- */

typedef struct yk_trace_event { const yk_entry *entry; uint32_t instr, lane; uint64_t start, end; } yk_trace_event;
typedef struct yk_trace {
  _Atomic bool on;
  yk_mutex lock;
  uint32_t number;                   /* of yk_trace_start() calls */
  uint64_t dropped, begin;
  yk_trace_event *event; uint32_t n, cap;
  yk_entry **entry; uint32_t nentry, entry_cap;
} yk_trace;

yk_code yk__run_traced(yk_entry *e, const yk_io *io) YK_CHECKED;
/* End the trace and hand out each of its pieces of work: instruction of a plan, and how long it took. EINVAL: none was started. */
yk_code yk__trace_take(yk_session *s, void (*each)(const yk_plan *p, uint32_t instr, uint64_t ns, void *arg), void *arg) YK_CHECKED;
void    yk__trace_free(yk_session *s);

/* ---- session: session.c, open.c --------------------------------------------------------------------------------- */

struct yk_session {
  _Atomic uint32_t refs;             /* the caller's, and one a step */
  _Atomic bool closed, started;
  _Atomic uint32_t nlogged;          /* nodes whose placement was logged */
  _Atomic uint32_t nplaced;          /* nodes that were placed, and what moved told */
  yk_graph *g;
  yk_session_options options;
  char *drivers;                     /* owns options.drivers */
  yk_devices *devices;
  char *visible, *groups, *split, *rehearse;   /* own options.visible_devices, .virtual_gpu_groups, .split_gpus, .rehearse */
  struct yk_machine *machine;        /* rehearsed; NULL: the devices are real */
  uint16_t *physical, *platform;     /* [devices->n] number of a GPU before CUDA_VISIBLE_DEVICES renumbered, and after it */
  yk_var_slot *var; uint32_t nvar, var_cap;
  yk_mutex compile_lock, stream_lock, write_lock, cache_lock, var_lock;
  yk_cache cache;
  _Atomic int64_t counter;
  uint64_t *refused;                 /* [devices->n] under the compile lock: see yk__memory_mark() */
  _Atomic uint64_t ticks;            /* runs so far, roughly */
  bool joined;
  yk_session *next;                  /* of the process's: memory.c */
  yk_trace trace;
  yk_entry *hung;                    /* under the stream lock: the one whose run is out of time, with a reference */
};

void    yk__session_ref(yk_session *s);
void    yk__session_unref(yk_session *s);
yk_plan_request yk__session_request(const yk_session *s, const yk_binding *b, const yk_desc *feed_desc, yk_var_slot *var);
yk_place_request yk__session_placing(const yk_session *s);
/* Before a run whose plan is not at hand: place and log nodes that came since, freeze the graph if this is the first run. */
yk_code yk__session_start(yk_session *s) YK_CHECKED;
/* Fill in s->options (defaults, settings), s->devices, s->physical. */
yk_code yk__session_open_devices(yk_session *s, const yk_session_options *options) YK_CHECKED;
void    yk__session_log_devices(const yk_session *s);
/* rehearse.c: the devices of the file options.rehearse; what else the options say of devices is refused. */
yk_code yk__session_open_rehearsed(yk_session *s, const char *stand_in) YK_CHECKED;
void    yk__session_describe_rehearsed(const yk_session *s, size_t i, yk_device_info *info);   /* what the file says of device i */
/* Fails if the session rehearses: `what` cannot be done then. */
yk_code yk__session_real(const yk_session *s, const char *what) YK_CHECKED;

/* step.c: compile a step beside the cache and look at the plan; `var` are the variables as that plan has them. It begins with the
 * variables as they are in `from` [s->nvar], or, if that is NULL, in the session. The compile lock is held meanwhile. */
typedef yk_code yk_look(yk_session *s, const yk_plan *p, const yk_var_slot *var, void *arg);
yk_code yk__step_look(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches, size_t ntarget,
                      const yk_value *targets, const yk_var_slot *from, yk_look *look, void *arg) YK_CHECKED;

#endif
