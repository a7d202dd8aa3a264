/*
 * sync.h - who has given what, and who waits for whom: synchronous replicas without graphs.
 *
 * The core holds accumulators, tokens and the register of workers, and knows tensors only, so that workers may as well be
 * elsewhere. Its calls are the single moves of the protocol: a worker applies and takes a token, a chief takes and
 * publishes. Public half: <yoke/sync.h>.
 */
#ifndef YK_TRAIN_SYNC_H
#define YK_TRAIN_SYNC_H

#include "train/accumulator.h"
#include "train/tensor_queue.h"
#include "train/waits.h"

typedef enum yk_sync_state { YK__SYNC_ABSENT, YK__SYNC_COMPUTING, YK__SYNC_WAITING, YK__SYNC_LEFT } yk_sync_state;

typedef struct yk_sync_member {      /* a worker; under the core's lock */
  yk_sync_state state;
  bool holds;                        /* a token, or its start, for which no gradient was applied yet */
  bool failed;                       /* its last step did */
  yk_code why;
  char message[480];
  int64_t local_step, given;         /* given: step of its last gradient that was accepted; -1 = none */
  int64_t steps, dropped;
  uint64_t since;                    /* that it computes, or waits */
  bool stands;                       /* in the line for tokens; of the worker's thread, as `place` */
  yk_caller place;
} yk_sync_member;

typedef struct yk_sync_core {
  char *name;
  int32_t aggregate, total;          /* R, T */
  int64_t timeout_ms;
  uint32_t naccumulators;
  yk_accumulator **accumulator;      /* [naccumulators] */
  bool *sparse;                      /* [naccumulators] */
  yk_tensor_queue *tokens;           /* i64 scalars */
  yk_tensor *token;                  /* the one that is being enqueued */
  _Atomic int64_t quorum;            /* gradients that an update waits for now */
  yk_mutex lock;                     /* what follows; before the locks of queue and accumulators */
  yk_sync_member *member;            /* [total] */
  int32_t live, failed;              /* not left; left with a failure */
  int32_t first_failed;
  int64_t global_step, updates, steps, dropped, entered, taken;
  bool stopped;
  yk_code why;                       /* of the stop; YK_OK: a clean end */
  char message[1024];
} yk_sync_core;

/* Of replicas that were built: what a server exports, and tests look at. */
yk_sync_core *yk__sync_core_of(yk_sync_replicas *sync);

/* One variable's gradients. */
typedef struct yk_sync_slot { const char *name; yk_desc desc; bool sparse; } yk_sync_slot;

/* options: of the public struct, those about numbers and waits, checked here. *out: yk__sync_free(). */
yk_code yk__sync_new(const yk_sync_options *options, uint32_t n, const yk_sync_slot *slots, yk_sync_core **out) YK_CHECKED;
void yk__sync_free(yk_sync_core *c);

/* Everybody is at this step; the first tokens enter. */
yk_code yk__sync_begin(yk_sync_core *c, int64_t global_step, int32_t num_tokens) YK_CHECKED;

/* Worker: it computes from now on; what went wrong, by this thread's message; it is gone. */
yk_code yk__sync_enter(yk_sync_core *c, int32_t w) YK_CHECKED;
void yk__sync_failed(yk_sync_core *c, int32_t w, yk_code why);
void yk__sync_leave(yk_sync_core *c, int32_t w);
/* Worker: its gradients, one tensor a dense slot, values and rows of a sparse one. It stands in line for a token then; take it,
 * or leave. */
yk_code yk__sync_apply(yk_sync_core *c, int32_t w, const yk_tensor *const *grads) YK_CHECKED;
/* Worker: does it hold a token, or its start? Not if a wait for one took too long. */
bool yk__sync_holds(yk_sync_core *c, int32_t w);
/* Worker: wait for a token, which becomes its local step. ERANGE: the training has ended. */
yk_code yk__sync_token(yk_sync_core *c, int32_t w) YK_CHECKED;
/* ERANGE or the failure that ended the training; YK_OK: it goes on. */
yk_code yk__sync_ended(yk_sync_core *c) YK_CHECKED;

/* Chief: wait for a quorum of each slot: means like `grads` above. ERANGE: stopped, or nobody is left. */
yk_code yk__sync_take(yk_sync_core *c, yk_tensor **means) YK_CHECKED;
/* Chief: the means were applied, and this is the new step; tokens of it enter. last: and it all ends, in the same moment. */
yk_code yk__sync_publish(yk_sync_core *c, int64_t global_step, bool last) YK_CHECKED;

/* End for everybody; the first reason counts, with this thread's message unless it is YK_OK. */
void yk__sync_stop(yk_sync_core *c, yk_code why);

#endif
