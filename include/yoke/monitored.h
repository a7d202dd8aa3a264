/*
 * monitored.h - a session that restores, initialises, runs and ends itself, and hooks around each of its runs.
 *
 * What every training loop needs beside its step, namely checkpoints, summaries, log lines, an end, is a hook: it may ask for fetches and
 * feeds of its own before each run and looks at them after it. The order of events is that of TensorFlow's MonitoredTrainingSession.
 */
#ifndef YK_MONITORED_H
#define YK_MONITORED_H

#include "checkpoint.h"
#include "queue.h"
#include "summary.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yk_monitored yk_monitored;

/* ---- hooks ------------------------------------------------------------------------------------------------------------- */

enum { YK_HOOK_VALUES = 16 };        /* fetches, and feeds, that one hook may ask for */

/* What a hook wants of the next run. Tensors are borrowed until the run is over. */
typedef struct yk_hook_request {
  size_t nfetch; yk_value fetch[YK_HOOK_VALUES];
  size_t nfeed;  yk_feed feed[YK_HOOK_VALUES];
  bool trace;                        /* a timeline is taken of this run: yk_trace_write() in after_run */
} yk_hook_request;

/* What came of it: [nfetch] in the order asked for, borrowed until after_run returns. */
typedef struct yk_hook_result { yk_monitored *monitored; yk_session *session; const yk_tensor *const *fetched; } yk_hook_result;

/*
 * Each function may be NULL. begin: once, the graph may still grow. created: after each creation of the session, the graph being final;
 * steps run here meet no hooks. end: only if nothing failed; running out of data (ERANGE) is no failure. What one returns other than
 * YK_OK fails the call it was made in. A hook serves one monitored session at a time.
 */
typedef struct yk_hook {
  const char *name;                  /* for messages; static */
  yk_code (*begin)(void *self, yk_graph *g);
  yk_code (*created)(void *self, yk_monitored *m);
  yk_code (*before_run)(void *self, yk_hook_request *r);
  yk_code (*after_run)(void *self, const yk_hook_result *r);
  yk_code (*end)(void *self, yk_monitored *m);
  void    (*free)(void *self);
  void    *self;
  bool     first;                    /* its after_run comes before those of the others */
} yk_hook;
void yk_hook_free(yk_hook *h);       /* calls h->free and empties *h; NULL and {0} are fine */

/* When a hook acts: the first time it is asked, then after so many steps, or seconds; never twice for one step. Exactly one is set. */
typedef struct yk_hook_timer { int64_t steps; double seconds; } yk_hook_timer;

/* The hooks that there are. Each fills in *out, for yk_hook_free(); arrays and texts are copied. EINVAL: numbers that make no sense. */
/* Stop once the global step is `last`, or `count` more than when the session was made (one of them is 0). */
yk_code yk_hook_stop_at_step(int64_t count, int64_t last, yk_hook *out) YK_CHECKED;
/*
 * A NaN in `loss`, a scalar: EINVAL that names it and the step; with `stop`, an end without an error. Infinities pass. The last good weights
 * are kept: where the update is under a guard (yk_all_good()) they are still there; otherwise the variables get the values of the newest
 * checkpoint in the session's folder, and without one no checkpoint is written any more. It acts before all other hooks.
 */
yk_code yk_hook_nan(yk_value loss, bool stop, yk_hook *out) YK_CHECKED;
/* The same, and goes over the run once more (yk_step_examine()) to name operation, line, device and row of the batch. What is fed is fed again;
 * `rewind`, unless NULL, is called first and moves a queue back by the batch (yk_queue_seek()). */
typedef yk_code (*yk_rewind_fn)(void *arg);
yk_code yk_hook_nan_examine(yk_value loss, bool stop, yk_rewind_fn rewind, void *arg, yk_hook *out) YK_CHECKED;
/* "tag = value, tag = value (0.123 sec)": the first run, then by the timer, in runs of this process; at_end: once more in the end. tags
 * NULL: the names of the values. Lines go to `print`, or where that is NULL to the log. */
typedef void (*yk_print_fn)(void *arg, const char *line);
yk_code yk_hook_logging(size_t n, const yk_value *values, const char *const *tags, yk_hook_timer timer, bool at_end, yk_print_fn print,
                        void *arg, yk_hook *out) YK_CHECKED;
/* "global_step/sec: 12.3", to print or the log, and as a scalar to `writer` unless that is NULL. Nothing the first time. */
yk_code yk_hook_step_counter(yk_hook_timer timer, yk_summary_writer *writer, yk_print_fn print, void *arg, yk_hook *out) YK_CHECKED;
/* Save when the session is made, by the timer, and in the end if the last step is not saved yet. The saver stays the caller's. `saved`, unless
 * NULL, is told of each. */
typedef yk_code (*yk_saved_fn)(void *arg, int64_t step, const char *path);
yk_code yk_hook_checkpoint(yk_saver *saver, yk_hook_timer timer, yk_saved_fn saved, void *arg, yk_hook *out) YK_CHECKED;
/* n scalars to the writer, which stays the caller's: the first run, then by the timer. tags as above. */
yk_code yk_hook_summary(yk_summary_writer *writer, size_t n, const yk_value *values, const char *const *tags, yk_hook_timer timer,
                        yk_hook *out) YK_CHECKED;
/* folder/timeline-STEP.json by the timer, not of the first run. */
yk_code yk_hook_profiler(const char *folder, yk_hook_timer timer, yk_hook *out) YK_CHECKED;
/* Run `op` in the end. */
yk_code yk_hook_final_op(yk_value op, yk_hook *out) YK_CHECKED;
/* `fn` fills in the feeds of each run. */
typedef yk_code (*yk_feed_fn)(void *arg, yk_hook_request *r);
yk_code yk_hook_feed(yk_feed_fn fn, void *arg, yk_hook *out) YK_CHECKED;
/* Before the first run, wait until the global step has reached `step`, looking twice a second. */
yk_code yk_hook_wait_for_step(int64_t step, yk_hook *out) YK_CHECKED;

/* ---- a chief and workers --------------------------------------------------------------------------------------------------- */

/*
 * Threads of one process that train one graph: a chief, which restores or initialises and saves, and workers, which wait for that and then run
 * steps of their own in the chief's session. Each opens a monitored session with the same team and graph. A worker's hooks find the graph final
 * in begin(): what they need must be there. The training ends when the chief stops, closes or fails; a worker that ends leaves the others alone.
 */
typedef struct yk_monitored_team yk_monitored_team;
/* For workers 1 to `workers`, not all of which have to come. EINVAL: fewer than 1. *out: yk_monitored_team_free(), when all have closed. */
yk_code yk_monitored_team_new(int32_t workers, yk_monitored_team **out) YK_CHECKED;
void    yk_monitored_team_free(yk_monitored_team *t);

/* ---- the session --------------------------------------------------------------------------------------------------------- */

typedef struct yk_monitored_options {
  uint32_t size;                     /* YK_MONITORED_OPTIONS_INIT sets it */
  const yk_session_options *session; /* NULL = defaults */
  const char *folder;                /* of checkpoints: the newest whole one is restored, and more are saved. NULL: neither */
  yk_hook_timer save;                /* both 0 = every 600 seconds; below 0 = never */
  const char *summary_folder;        /* NULL = folder; with neither there are no summaries */
  int64_t log_steps;                 /* of the step counter; 0 = 100, below 0 = none. Without a summary folder there is none */
  size_t nsummaries; const yk_value *summaries; const char *const *summary_tags;   /* scalars, by summary_timer; both 0 = 100 steps */
  yk_hook_timer summary_timer;
  yk_value init;                     /* run where there is no checkpoint; {0} = all initializers */
  yk_value local_init;               /* run after either; {0} = nothing */
  yk_coordinator *coordinator;       /* stopped and joined in the end; stays the caller's. NULL = none */
  int64_t grace_ms;                  /* for that; 0 = 120000 */
  size_t nhooks; const yk_hook *hooks;   /* called after the built-in ones, which are: step counter, summaries, checkpoints. Must outlive it */
  yk_monitored_team *team;           /* NULL = alone */
  int32_t worker;                    /* of the team; 0 = the chief. A worker has nothing of its own but hooks: no session options, folders,
                                        summaries, initializers */
  int64_t wait_ms;                   /* longest wait of a worker for the chief's variables, and of the chief, in the end, for its workers; 0 = the
                                        setting "timeout_ms" (ten minutes) */
} yk_monitored_options;
#define YK_MONITORED_OPTIONS_INIT { .size = sizeof(yk_monitored_options) }

/*
 * begin() of every hook; then the graph is final; a session is opened; variables are restored, or initialised; all must have values then
 * (EINVAL with the names of those that do not); created() of every hook. *out: yk_monitored_close(). Errors: EINVAL, what sessions,
 * checkpoints and hooks report. A worker waits until the chief has come that far (EBUSY: out of time, the message names who is missing), and
 * gets the chief's failure, or ERANGE if the training has ended; then begin() and created() of its hooks.
 */
yk_code yk_monitored_open(yk_graph *g, const yk_monitored_options *options, yk_monitored **out) YK_CHECKED;
/*
 * One step, with what the hooks add to it: before_run of all, the run, after_run of all. Steps are prepared once for each set of feeds
 * and fetches and kept, so a run allocates nothing but what hooks do. out: [nfetch], borrowed until the next run; NULL if there are none.
 * Errors: EINVAL after yk_monitored_should_stop(), or where two feed the same value, naming both; ERANGE at the end of the data, which is
 * a good end; what the run and the hooks report, after which no end() is called. EPEER makes the session anew from its newest checkpoint
 * and tries again, three times, but not in a team. A worker gets ERANGE once the chief has stopped, or the chief's failure.
 */
yk_code yk_monitored_run(yk_monitored *m, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches, size_t ntarget,
                         const yk_value *targets, const yk_tensor *const **out) YK_CHECKED;
bool yk_monitored_should_stop(const yk_monitored *m);
void yk_monitored_request_stop(yk_monitored *m);
yk_session *yk_monitored_session(yk_monitored *m);      /* borrowed; may be another one after a run */
/* The global step as it is now; 0 if the graph has none. */
yk_code yk_monitored_step(yk_monitored *m, int64_t *out) YK_CHECKED;
/* The chief of a team first asks all to stop and waits for its workers to close: EBUSY names those that have not, and *m is as before, to be
 * closed again. Then: end() of every hook unless something failed, then stop and join the coordinator, close the session, free. NULL is fine. The
 * code is that of the first end() or join that failed. */
yk_code yk_monitored_close(yk_monitored *m) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
