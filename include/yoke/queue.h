/*
 * queue.h - queues of tensors between threads, and the coordinator that starts, stops and joins those threads.
 *
 * The rules are TensorFlow's. Everything here is a host object that knows tensors only, no graphs: a step never blocks on
 * another worker; what may block is called beside the steps, or read by a dequeue op as any other source of examples.
 * (yk_queue in data.h is another thing: a pipeline that prepares the examples of a data set.)
 */
#ifndef YK_QUEUE_H
#define YK_QUEUE_H

#include <stdbool.h>
#include "op_attrs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- queues of tensors ------------------------------------------------------------------------------------------- */

/* In order; at random, with always some left to choose from; in order, elements of one batch padded with zeros to one shape. */
typedef enum yk_tensor_queue_kind { YK_QUEUE_FIFO, YK_QUEUE_RANDOM_SHUFFLE, YK_QUEUE_PADDING_FIFO } yk_tensor_queue_kind;

/* An element is a tuple of components, each a dense tensor. */
typedef struct yk_tensor_queue yk_tensor_queue;
typedef struct yk_tensor_queue_options {
  uint32_t size;                    /* YK_TENSOR_QUEUE_OPTIONS_INIT sets it */
  yk_tensor_queue_kind kind;
  const char *name;                 /* for messages; NULL = "queue" */
  int64_t  capacity;                /* elements that an enqueue does not wait for; 0 = without limit */
  int64_t  min_after_dequeue;       /* random shuffle: elements that stay to choose from while the queue is open; below capacity */
  uint64_t seed;                    /* random shuffle: same seed and same calls, same elements */
  uint32_t ncomponents;             /* 1 to YK_MAX_COMPONENTS */
  yk_desc  component[YK_MAX_COMPONENTS];   /* of one element; a dim of -1 in a padding queue only */
  bool     any_shape;               /* only dtypes are fixed: one element at a time in and out. Not of a padding queue */
  int64_t  timeout_ms;              /* longest wait of a call; 0 = the setting "timeout_ms" (ten minutes) */
} yk_tensor_queue_options;
#define YK_TENSOR_QUEUE_OPTIONS_INIT { .size = sizeof(yk_tensor_queue_options) }

/* *out: yk_tensor_queue_free(). EINVAL: options that make no sense. */
yk_code yk_tensor_queue_open(const yk_tensor_queue_options *options, yk_tensor_queue **out) YK_CHECKED;
/* Closes it and cancels who waits to enqueue, lets callers leave, then frees; NULL is fine. */
void    yk_tensor_queue_free(yk_tensor_queue *q);

/*
 * Enqueue one element, or the rows of a batch one by one: in[ncomponents], copied. Both wait while the queue is full; calls
 * that wait are served in order of arrival. Any thread.
 * Errors: EINVAL dtype or shape, ECANCELLED the queue is closed, or was while waiting; EBUSY out of time, the message tells
 * queue, operation, how many were wanted and are there. Rows of a batch that were enqueued before a failure stay.
 */
yk_code yk_tensor_queue_enqueue(yk_tensor_queue *q, const yk_tensor *const *in) YK_CHECKED;
yk_code yk_tensor_queue_enqueue_many(yk_tensor_queue *q, const yk_tensor *const *in) YK_CHECKED;

/*
 * Dequeue one element, a batch of n, or a batch of what is left up to n: out[ncomponents] new tensors, the caller's; untouched
 * on failure, and then nothing was taken. They wait until there are enough, in order of arrival: one that waits for 100 holds
 * up a later one that wants 1. Any thread.
 * Errors: ERANGE the queue is closed and has too few left (up_to: none), the clean end of the data; EINVAL: n below 0, or a
 * batch of elements whose shapes are not fixed; EBUSY out of time, as above.
 */
yk_code yk_tensor_queue_dequeue(yk_tensor_queue *q, yk_tensor **out) YK_CHECKED;
yk_code yk_tensor_queue_dequeue_many(yk_tensor_queue *q, int64_t n, yk_tensor **out) YK_CHECKED;
yk_code yk_tensor_queue_dequeue_up_to(yk_tensor_queue *q, int64_t n, yk_tensor **out) YK_CHECKED;

/*
 * No enqueue begins from now on. Those that wait finish first, or, with `cancel_pending`, fail with ECANCELLED; what is there
 * can still be dequeued. ECANCELLED: it was closed before; with `cancel_pending` that is YK_OK. Never waits. Any thread.
 */
yk_code yk_tensor_queue_close(yk_tensor_queue *q, bool cancel_pending) YK_CHECKED;
/* Elements that are there now; has it been closed? Any thread. */
int64_t yk_tensor_queue_size(const yk_tensor_queue *q);
bool    yk_tensor_queue_closed(const yk_tensor_queue *q);
/* Longest wait of later calls; above 0. EINVAL. Any thread. */
yk_code yk_tensor_queue_set_timeout(yk_tensor_queue *q, int64_t timeout_ms) YK_CHECKED;

/* For dequeue ops, which take batches; borrowed, valid until the queue is freed. NULL if a shape is not fixed. An ended queue
 * ends the step with ERANGE. Who fills the queue must not wait for the step that reads it. */
const yk_source *yk_tensor_queue_source(const yk_tensor_queue *q);

/* ---- coordinator ------------------------------------------------------------------------------------------------- */

/* Threads that stop together: the first that asks for it stops all. */
typedef struct yk_coordinator yk_coordinator;
/* *out: yk_coordinator_free(), which asks for a stop and waits for the threads to end; NULL is fine. */
yk_code yk_coordinator_new(yk_coordinator **out) YK_CHECKED;
void    yk_coordinator_free(yk_coordinator *c);

/* A thread of it. A failure of `fn` asks for a stop with that code and the thread's message. ECANCELLED: a stop was asked for. */
typedef yk_code (*yk_coordinator_fn)(yk_coordinator *c, void *arg);
yk_code yk_coordinator_start(yk_coordinator *c, const char *name, yk_coordinator_fn fn, void *arg) YK_CHECKED;

/* Ask for a stop because of `why`, with the calling thread's message. Only the first counts; YK_OK and YK_ERANGE, the end of
 * the data, are a clean end. Any thread. */
void yk_coordinator_request_stop(yk_coordinator *c, yk_code why);
bool yk_coordinator_should_stop(const yk_coordinator *c);
/* Wait for a stop, `ms` at most; was it asked for? */
bool yk_coordinator_wait_for_stop(yk_coordinator *c, int64_t ms);
/* `fn` is called once when a stop is asked for, by who asks, or at once if it was. It must not block, nor call the coordinator;
 * `arg` must live until the threads are joined. */
yk_code yk_coordinator_on_stop(yk_coordinator *c, void (*fn)(void *arg), void *arg) YK_CHECKED;

/*
 * Wait until all threads have ended or a stop was asked for; then `grace_ms` at most for those that still live (0 = 120000).
 * Returns the failure that was kept, with its message; EBUSY naming the threads that still live if there are some: ask again,
 * or stay. Not from a thread of it.
 */
yk_code yk_coordinator_join(yk_coordinator *c, int64_t grace_ms) YK_CHECKED;

/*
 * `nthreads` threads that call enqueue(q, thread, arg) again and again until a stop; a stop closes the queue and cancels who
 * waits. A thread whose enqueue returns ERANGE, the end of its data, ends quietly; the last one to end closes the queue, so
 * that what is in it is still used. Any other failure asks for a stop. `q` must live until the threads are joined.
 */
typedef yk_code (*yk_enqueue_fn)(yk_tensor_queue *q, int32_t thread, void *arg);
yk_code yk_queue_runner_start(yk_coordinator *c, yk_tensor_queue *q, int32_t nthreads, yk_enqueue_fn enqueue, void *arg) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
