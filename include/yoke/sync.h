/*
 * sync.h - synchronous replicas: many workers compute gradients, one chief applies their mean.
 *
 * Conditional accumulators collect gradients and drop stale ones; a queue of tokens tells each worker which step it works for.
 * All of it is on the host and outside of steps, so that no step ever waits for another worker. docs/training.md explains it.
 */
#ifndef YK_SYNC_H
#define YK_SYNC_H

#include "queue.h"
#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- conditional accumulators ------------------------------------------------------------------------------------ */

/* What a take returns of the gradients collected: their mean, or their sum. */
typedef enum yk_reduction { YK_REDUCE_MEAN, YK_REDUCE_SUM } yk_reduction;

typedef struct yk_accumulator yk_accumulator;
typedef struct yk_accumulator_options {
  uint32_t size;                    /* YK_ACCUMULATOR_OPTIONS_INIT sets it */
  const char *name;                 /* for messages; NULL = "accumulator" */
  yk_desc  desc;                    /* of a gradient: f32, f64, f16 or bf16 (added up in f32), shape known */
  bool     sparse;                  /* collects rows of the first dimension */
  yk_reduction reduction;           /* sparse and mean: each row is divided by the number of gradients that had this row */
  int64_t  timeout_ms;              /* longest wait of a take; 0 = the setting "timeout_ms" (ten minutes) */
} yk_accumulator_options;
#define YK_ACCUMULATOR_OPTIONS_INIT { .size = sizeof(yk_accumulator_options) }

/* Starts empty, at step 0. *out: yk_accumulator_free(), when nobody uses it any more. EINVAL: options that make no sense. */
yk_code yk_accumulator_open(const yk_accumulator_options *options, yk_accumulator **out) YK_CHECKED;
void    yk_accumulator_free(yk_accumulator *a);

/*
 * Add a gradient that was computed for step `local_step`; of a sparse one the `values` [n, a row's dims] that belong to `rows`
 * i32|i64 [n], those of a row that is named twice being added first. It is accepted if local_step is not below the
 * accumulator's step; else it is stale: dropped, counted, and that is no failure. *accepted (may be NULL). Allocates nothing;
 * any thread. EINVAL: dtype, shape, row.
 */
yk_code yk_accumulator_apply(yk_accumulator *a, const yk_tensor *grad, int64_t local_step, bool *accepted) YK_CHECKED;
yk_code yk_accumulator_apply_rows(yk_accumulator *a, const yk_tensor *values, const yk_tensor *rows, int64_t local_step,
                                  bool *accepted) YK_CHECKED;

/*
 * Wait until at least n gradients are there; write the mean (or sum) of all that are into `into`, a tensor like the gradients;
 * the accumulator is empty then, and its step one higher. Takes that wait are served in order. Of a sparse one: new tensors,
 * the values and the i64 rows they belong to, in rising order. Any thread.
 * Errors: EINVAL n below 1, another shape; EBUSY out of time, and ECANCELLED: it was cancelled; each tells how many were wanted
 * and there.
 */
yk_code yk_accumulator_take(yk_accumulator *a, int64_t n, yk_tensor *into) YK_CHECKED;
yk_code yk_accumulator_take_rows(yk_accumulator *a, int64_t n, yk_tensor **values, yk_tensor **rows) YK_CHECKED;

/* The step below which gradients are stale. A lower one than it has is set with a warning. Any thread. */
void    yk_accumulator_set_global_step(yk_accumulator *a, int64_t step);
int64_t yk_accumulator_global_step(const yk_accumulator *a);
/* Gradients that are there; that were dropped so far. Any thread. */
int64_t yk_accumulator_count(const yk_accumulator *a);
int64_t yk_accumulator_dropped(const yk_accumulator *a);
/* Takes that wait, and all later ones, fail with ECANCELLED. Any thread. */
void    yk_accumulator_cancel(yk_accumulator *a);

/* ---- synchronous replicas --------------------------------------------------------------------------------------- */

/*
 * T workers, each with a loss of its own data. A worker's step computes gradients, adds them to the accumulators and takes a
 * token: the step that it works for next. The chief, a thread, waits for R gradients of each variable, applies their mean,
 * which raises the global step, and puts max(T, R) tokens of the new step into the queue. Gradients of an older step are
 * dropped.
 *   R = T  every gradient counts. R < T: T - R backup workers; an update does not wait for the slowest. R > T: a worker gives several
 *   gradients to an update; at least R - T tokens are needed at the start.
 * A worker that leaves no longer counts: with R <= T an update then waits for as many gradients as there are workers, and as many
 * tokens are handed out; with R > T the others take over its token. When the last one has left the chief ends.
 */
typedef struct yk_sync_replicas yk_sync_replicas;
typedef struct yk_sync_worker yk_sync_worker;

typedef struct yk_sync_options {
  uint32_t size;                    /* YK_SYNC_OPTIONS_INIT sets it */
  const char *name;                 /* for messages and name scopes; NULL = "sync_replicas" */
  yk_optimizer optimizer;           /* with its learning rate, fed or scheduled by the global step */
  int32_t  replicas_to_aggregate;   /* R */
  int32_t  total_num_replicas;      /* T; 0 = R */
  int32_t  num_tokens;              /* put into the queue at the start; -1 = R, which lets a first round of gradients be stale; 0 does not */
  yk_reduction reduction;           /* of the gradients: mean, or sum */
  yk_variable *global_step;         /* NULL = yk_global_step() */
  void   (*edit)(yk_graph *g, size_t n, yk_gradient *mean, void *arg);   /* build on what is applied, as yk_clip_by_global_norm(); may be NULL */
  void    *arg;
  double   average_decay;           /* moving averages after each update; 0 = none */
  size_t   naverages; yk_variable *const *averages;    /* NULL = all trainable ones */
  int64_t  last_step;               /* the chief ends when the global step is there; 0 = it does not */
  int64_t  timeout_ms;              /* longest wait of chief and workers; 0 = the setting "timeout_ms" (ten minutes) */
  bool     guard, nan_only;         /* a NaN or, unless nan_only, an infinity in a worker's gradients fails its step with what made it, and they
                                       are not given; one in what is applied, after `edit`, or in the rate ends the training and changes nothing */
} yk_sync_options;
#define YK_SYNC_OPTIONS_INIT { .size = sizeof(yk_sync_options), .num_tokens = -1 }

/*
 * The graph's half: gradients of each loss on the devices of its operations, and the update. nlosses = T, a tower a worker, or
 * fewer: worker i then has losses[i % nlosses]. Before the initializer is made and a session opened. *out:
 * yk_sync_replicas_free(). Errors, kept in the graph too: EINVAL (numbers that make no sense, losses that depend on different
 * variables), ENOMEM.
 */
yk_code yk_sync_replicas_build_at(const char *where, yk_graph *g, const yk_sync_options *options, size_t nlosses, const yk_value *losses,
                                  yk_sync_replicas **out) YK_CHECKED;
#define yk_sync_replicas_build(...) yk_sync_replicas_build_at(YK_HERE, __VA_ARGS__)
/* Ends it if it runs; before the session is closed, after the workers have left. NULL is fine. */
void yk_sync_replicas_free(yk_sync_replicas *sync);

/* The chief's hook: checks that the variables have values, takes over the global step, puts the first tokens into the queue,
 * and starts the chief. Once. EINVAL: variables without a value, started before. */
yk_code yk_sync_replicas_start(yk_sync_replicas *sync, yk_session *s) YK_CHECKED;
/* Ask all to end: workers get ERANGE from their next call. Any thread. */
void    yk_sync_replicas_stop(yk_sync_replicas *sync);
/* Stop, and wait for the chief. Returns what it failed with; or, if every worker failed, the failure of the first. */
yk_code yk_sync_replicas_end(yk_sync_replicas *sync) YK_CHECKED;

/*
 * The worker's hook: worker `index`, 0 to T - 1, starts with the global step. Feeds, fetches and targets are those of
 * yk_step_prepare(). *out: yk_sync_worker_leave(). EINVAL: not started, no such worker, opened before.
 */
yk_code yk_sync_worker_open(yk_sync_replicas *sync, int32_t index, size_t nfeed, const yk_value *feeds, size_t nfetch, const yk_value *fetches,
                            size_t ntarget, const yk_value *targets, yk_sync_worker **out) YK_CHECKED;
/*
 * One step: gradients, accumulators, a token; as yk_step_run(). A worker is used by one thread at a time, each worker by its
 * own.
 * Errors: ERANGE the training has ended, cleanly; EBUSY no token came in time, the message tells step and who is missing (the
 * gradient was given: another call waits for the token first); what its own step failed with, after which it may try again, or
 * leave; or what the chief failed with.
 */
yk_code yk_sync_worker_run(yk_sync_worker *worker, const yk_tensor *const *feeds, const yk_tensor *const **fetched) YK_CHECKED;
/* The worker has finished, or failed: it frees it, and the others go on without it. NULL is fine. */
void yk_sync_worker_leave(yk_sync_worker *worker);

/* A whole training: starts the chief, calls work(sync, index, arg) in a thread for each worker, and ends when all have
 * returned. `work` opens the worker, runs it, and leaves. One that fails (ERANGE is no failure) leaves the others alone; its
 * failure is returned at last. */
typedef yk_code (*yk_sync_work_fn)(yk_sync_replicas *sync, int32_t index, void *arg);
yk_code yk_sync_replicas_train(yk_sync_replicas *sync, yk_session *s, yk_sync_work_fn work, void *arg) YK_CHECKED;

/* What happened so far. Every token that entered was taken by a worker's step, or is still there. */
typedef struct yk_sync_report {
  uint32_t size;                    /* YK_SYNC_REPORT_INIT sets it */
  int32_t  workers, left, failed;   /* T; those that left; those of them whose last step had failed */
  int64_t  global_step, updates;
  int64_t  steps, dropped;          /* of workers; of those, with a gradient that was dropped as stale */
  int64_t  tokens_entered, tokens_taken, tokens_there;
} yk_sync_report;
#define YK_SYNC_REPORT_INIT { .size = sizeof(yk_sync_report) }
/* Of one worker. */
typedef struct yk_sync_worker_report {
  uint32_t size;                    /* YK_SYNC_WORKER_REPORT_INIT sets it */
  bool     opened, left, failed;
  int64_t  local_step, steps, dropped;
} yk_sync_worker_report;
#define YK_SYNC_WORKER_REPORT_INIT { .size = sizeof(yk_sync_worker_report) }
/* out->size must be set; that much is written. Any thread. EINVAL: no such worker, size. */
yk_code yk_sync_replicas_report(const yk_sync_replicas *sync, yk_sync_report *out) YK_CHECKED;
yk_code yk_sync_replicas_worker(const yk_sync_replicas *sync, int32_t index, yk_sync_worker_report *out) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
