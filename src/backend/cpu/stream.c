/*
 * stream.c - in-order streams: on the calling thread, or on a thread of their own.
 *
 * A threaded stream is a byte ring of variable-size entries between one producer at a time and one consumer thread;
 * enqueuing copies a few words, allocates nothing and makes no system call while the consumer is awake. After the
 * first failure work is skipped until the sync, while events still fire, so that nobody waits for ever.
 */
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include "event.h"
#include "wait.h"

enum { RING_BYTES = 1 << 20, UNIT = 32, STAGED_BYTES = 1024, TEXT_BYTES = 2048 };

typedef enum yk_entry_kind { LAUNCH, COPY, STAGED, FILL, RECORD, WAIT, PAD, STOP } yk_entry_kind;

typedef struct yk_entry {            /* in the ring: this header, then arguments or staged bytes; a multiple of UNIT */
  uint32_t bytes;
  uint16_t kind;
  uint8_t  byte;                     /* FILL */
  void *a, *b;                       /* LAUNCH: kernel, workspace; COPY: dst, src; STAGED, FILL: dst; RECORD, WAIT: event */
  uint64_t n;                        /* bytes to move; generation of an event */
} yk_entry;
_Static_assert(sizeof(yk_entry) <= UNIT, "an entry's header is one unit, so a PAD always fits before the end of the ring");

struct yk_stream {
  yk_dev *dev;
  uint32_t is_inline;
  /* Owned by the executing side; the producer reads and resets them while the stream is idle. */
  uint64_t done;                     /* work entries executed since the last sync */
  uint64_t failed;                   /* ordinal of the first failure */
  yk_code code;                      /* of the first failure, or OK */
  char text[TEXT_BYTES];
  /* Threaded streams only. Positions count bytes and wrap; the ring's size is a power of two. */
  pthread_t thread;
  unsigned char *ring;
  struct yk_event idle;
  uint64_t woke;                     /* when the thread last began to work */
  _Atomic uint64_t busy;             /* nanoseconds of work before that */
  alignas(64) _Atomic uint32_t head; /* written by the producer */
  _Atomic uint32_t sleeping;         /* the consumer sleeps on head */
  alignas(64) _Atomic uint32_t tail; /* written by the consumer */
  _Atomic uint32_t full;             /* the producer sleeps on tail */
};

/* ---- busy time: the clock is read only where the thread has to wait anyway ------------------------- */

static void rest(yk_stream *s) {
  uint64_t now = yk__cpu_host->now_ns();
  atomic_store_explicit(&s->busy, atomic_load_explicit(&s->busy, memory_order_relaxed) + (now - s->woke), memory_order_relaxed);
}

static void wake(yk_stream *s) { s->woke = yk__cpu_host->now_ns(); }

yk_code yk__cpu_stream_busy(yk_stream *s, uint64_t *ns) {
  if (s->is_inline) return YK_CPU_FAIL(EUNSUPPORTED, "a stream on the calling thread has no time of its own");
  *ns = atomic_load_explicit(&s->busy, memory_order_relaxed);
  return YK_OK;
}

static void await_event(yk_stream *s, yk_event *e, uint32_t generation) {
  if (yk__cpu_event_reached(e, generation)) return;
  if (!s->is_inline) rest(s);
  yk__cpu_event_await(e, generation);
  if (!s->is_inline) wake(s);
}

/* ---- executing ------------------------------------------------------------------------------------ */

/* Keep the first failure with the text that this thread has just reported. */
static void keep_failure(yk_stream *s, yk_code code) {
  s->code = code;
  s->failed = s->done;
  const char *text = yk_error_message();
  snprintf(s->text, sizeof s->text, "%s", text[0] ? text : "a kernel failed without a message");
}

static void execute(yk_stream *s, yk_entry *e) {
  if (e->kind == RECORD) {
    yk__cpu_event_fire(e->a, (uint32_t)e->n, s->code);
    return;
  }
  if (e->kind == WAIT) {
    await_event(s, e->a, (uint32_t)e->n);
    return;
  }
  if (s->code != YK_OK) return;
  if (e->kind == LAUNCH) {
    const yk_kernel *k = e->a;
    yk_code rc = k->run(k, (void *const *)(void *)(e + 1), e->b);
    if (rc != YK_OK) {
      keep_failure(s, rc);
      yk_error_clear();
      return;
    }
  } else if (e->kind == COPY) {
    yk__cpu_copy_bytes(e->a, e->b, e->n);
  } else if (e->kind == STAGED) {
    memcpy(e->a, e + 1, e->n);
  } else if (e->kind == FILL) {
    yk__cpu_fill_bytes(e->a, e->byte, e->n);
  }
  s->done++;
}

static void wait_for_entry(yk_stream *s, uint32_t tail) {
  for (uint32_t turn = 0; atomic_load(&s->head) == tail && yk__cpu_spin(turn);) turn++;
  while (atomic_load(&s->head) == tail) {
    atomic_store(&s->sleeping, 1);
    if (atomic_load(&s->head) == tail) yk__cpu_sleep(&s->head, tail);
    atomic_store(&s->sleeping, 0);
  }
}

/* The next entry, waiting for one if there is none. */
static yk_entry *next_entry(yk_stream *s, uint32_t tail) {
  if (atomic_load(&s->head) == tail) {
    rest(s);
    wait_for_entry(s, tail);
    wake(s);
  }
  return (yk_entry *)(void *)(s->ring + (tail & (RING_BYTES - 1)));
}

static void *stream_main(void *arg) {
  yk_stream *s = arg;
  if (s->dev->pin) yk__cpu_host->pin((int)s->dev->first_core, (int)s->dev->ncores);
  yk__cpu_host->team_set((int)s->dev->stream_cores);
  wake(s);
  uint32_t tail = 0;
  for (;;) {
    yk_entry *e = next_entry(s, tail);
    if (e->kind == STOP) return NULL;
    if (e->kind != PAD) execute(s, e);
    tail += e->bytes;
    atomic_store(&s->tail, tail);
    /* A producer that found the ring full is woken when half of it is free, not at every entry. */
    if (atomic_load(&s->full) && atomic_load(&s->head) - tail <= RING_BYTES / 2) yk__cpu_wake(&s->tail);
  }
}

/* ---- enqueuing ------------------------------------------------------------------------------------ */

static void wait_for_space(yk_stream *s, uint32_t head, uint32_t need) {
  for (uint32_t turn = 0; yk__cpu_spin(turn); turn++)
    if (RING_BYTES - (head - atomic_load(&s->tail)) >= need) return;
  atomic_store(&s->full, 1);
  for (;;) {
    uint32_t tail = atomic_load(&s->tail);
    if (head - tail <= RING_BYTES / 2) break;
    yk__cpu_sleep(&s->tail, tail);
  }
  atomic_store(&s->full, 0);
}

/* Room for an entry with `payload` bytes behind its header, at most half the ring. Contiguous: an entry never wraps. */
static yk_entry *reserve(yk_stream *s, yk_entry_kind kind, size_t payload) {
  uint32_t bytes = (uint32_t)((UNIT + payload + UNIT - 1) & ~(size_t)(UNIT - 1));
  uint32_t head = atomic_load_explicit(&s->head, memory_order_relaxed), at = head & (RING_BYTES - 1);
  if (RING_BYTES - at < bytes) {
    if (RING_BYTES - (head - atomic_load(&s->tail)) < RING_BYTES - at) wait_for_space(s, head, RING_BYTES - at);
    yk_entry *pad = (yk_entry *)(void *)(s->ring + at);
    pad->bytes = RING_BYTES - at;
    pad->kind = PAD;
    head += pad->bytes;
    at = 0;
    atomic_store(&s->head, head);
    if (atomic_load(&s->sleeping)) yk__cpu_wake(&s->head);
  }
  if (RING_BYTES - (head - atomic_load(&s->tail)) < bytes) wait_for_space(s, head, bytes);
  yk_entry *e = (yk_entry *)(void *)(s->ring + at);
  e->bytes = bytes;
  e->kind = (uint16_t)kind;
  return e;
}

static yk_code publish(yk_stream *s, const yk_entry *e) {
  atomic_store(&s->head, atomic_load_explicit(&s->head, memory_order_relaxed) + e->bytes);
  if (atomic_load(&s->sleeping)) yk__cpu_wake(&s->head);
  return YK_OK;
}

/* Hand over an entry without payload, or do it now. */
static yk_code submit(yk_stream *s, yk_entry entry) {
  if (s->is_inline) {
    execute(s, &entry);
    return YK_OK;
  }
  yk_entry *e = reserve(s, (yk_entry_kind)entry.kind, 0);
  e->byte = entry.byte;
  e->a = entry.a;
  e->b = entry.b;
  e->n = entry.n;
  return publish(s, e);
}

static void use_team(yk_stream *s) {
  if (yk__cpu_host->team() != (int)s->dev->ncores) yk__cpu_host->team_set((int)s->dev->ncores);
}

/* On the calling thread; the failure goes both to the caller and, for the sync, into the stream. */
static yk_code launch_inline(yk_kernel *k, yk_stream *s, const yk_mem *arg, uint32_t nargs, yk_mem workspace) {
  if (s->code != YK_OK) return YK_OK;
  for (uint32_t i = 0; i < nargs; i++) k->inline_arg[i] = yk__cpu_address(arg[i]);
  use_team(s);
  yk_code rc = k->run(k, k->inline_arg, yk__cpu_address(workspace));
  if (rc != YK_OK) keep_failure(s, rc);
  else s->done++;
  return rc;
}

yk_code yk__cpu_kernel_launch(yk_kernel *k, yk_stream *s, const yk_mem *arg, uint32_t nargs, yk_mem workspace) {
  if (nargs != k->nin + k->nout)
    return YK_CPU_FAIL(EINVAL, "%s launched with %u arguments, it has %u", k->impl, (unsigned)nargs,
                       (unsigned)(k->nin + k->nout));
  if (s->is_inline) return launch_inline(k, s, arg, nargs, workspace);
  yk_entry *e = reserve(s, LAUNCH, nargs * sizeof(void *));
  e->a = k;
  e->b = yk__cpu_address(workspace);
  void **address = (void **)(void *)(e + 1);
  for (uint32_t i = 0; i < nargs; i++) address[i] = yk__cpu_address(arg[i]);
  return publish(s, e);
}

static yk_code copy_bytes(yk_stream *s, void *dst, const void *src, size_t bytes) {
  if (s->is_inline) use_team(s);
  return submit(s, (yk_entry){ .kind = COPY, .a = dst, .b = (void *)(uintptr_t)src, .n = bytes });
}

/* Small sources (a learning rate, a counter) travel inside the entry, so the caller's copy may go at once. */
yk_code yk__cpu_copy_in(yk_stream *s, yk_mem dst, const void *src) {
  if (s->is_inline || dst.bytes > STAGED_BYTES) return copy_bytes(s, yk__cpu_address(dst), src, dst.bytes);
  yk_entry *e = reserve(s, STAGED, dst.bytes);
  e->a = yk__cpu_address(dst);
  e->n = dst.bytes;
  if (dst.bytes) memcpy(e + 1, src, dst.bytes);
  return publish(s, e);
}

yk_code yk__cpu_copy_out(yk_stream *s, void *dst, yk_mem src) { return copy_bytes(s, dst, yk__cpu_address(src), src.bytes); }

yk_code yk__cpu_copy(yk_stream *s, yk_mem dst, yk_mem src) {
  if (src.bytes < dst.bytes) return YK_CPU_FAIL(EINVAL, "a copy of %zu bytes from a source of %zu", dst.bytes, src.bytes);
  return copy_bytes(s, yk__cpu_address(dst), yk__cpu_address(src), dst.bytes);
}

/* All devices of this driver share one address space, so the stream of the destination simply reads the other's memory. */
yk_code yk__cpu_copy_peer(yk_stream *s, yk_mem dst, yk_dev *src_dev, yk_mem src) {
  (void)src_dev;
  return yk__cpu_copy(s, dst, src);
}

yk_code yk__cpu_fill(yk_stream *s, yk_mem dst, uint8_t byte) {
  if (s->is_inline) use_team(s);
  return submit(s, (yk_entry){ .kind = FILL, .byte = byte, .a = yk__cpu_address(dst), .n = dst.bytes });
}

yk_code yk__cpu_event_record(yk_stream *s, yk_event *e) {
  return submit(s, (yk_entry){ .kind = RECORD, .a = e, .n = yk__cpu_event_ask(e) });
}

yk_code yk__cpu_event_wait(yk_stream *s, yk_event *e) {
  return submit(s, (yk_entry){ .kind = WAIT, .a = e, .n = atomic_load(&e->asked) });
}

/* ---- life ------------------------------------------------------------------------------------------ */

yk_code yk__cpu_stream_sync(yk_stream *s, uint64_t *failed) {
  if (!s->is_inline && atomic_load(&s->tail) != atomic_load(&s->head)) {
    uint32_t generation = yk__cpu_event_ask(&s->idle);
    YK_TRY(submit(s, (yk_entry){ .kind = RECORD, .a = &s->idle, .n = generation }));
    yk__cpu_event_await(&s->idle, generation);
  }
  yk_code code = s->code;
  s->done = 0;
  s->code = YK_OK;
  if (code == YK_OK) return YK_OK;
  if (failed) *failed = s->failed;
  return yk__cpu_host->fail(code, __FILE__, __LINE__, "%s", s->text);
}

static yk_code start_thread(yk_stream *s) {
  s->ring = yk__cpu_host->alloc(RING_BYTES, 64);
  if (!s->ring) return YK_CPU_FAIL(ENOMEM, "no memory for a stream's queue (%d bytes)", RING_BYTES);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);          /* the program's signals belong to its own threads */
  int err = pthread_create(&s->thread, NULL, stream_main, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (err) return YK_CPU_FAIL(EDEVICE, "a stream's thread cannot be started: %s", strerror(err));
  (void)pthread_setname_np(s->thread, "yk-stream");
  return YK_OK;
}

yk_code yk__cpu_stream_open(yk_dev *dev, uint32_t flags, yk_stream **out) {
  if (flags & ~(uint32_t)YK_STREAM_INLINE) return YK_CPU_FAIL(EUNSUPPORTED, "stream flags 0x%x, known is 0x1", (unsigned)flags);
  yk_stream *s = yk__cpu_host->alloc(sizeof *s, 64);
  if (!s) return YK_CPU_FAIL(ENOMEM, "no memory for a stream (%zu bytes)", sizeof *s);
  memset(s, 0, sizeof *s);
  s->dev = dev;
  s->is_inline = flags & YK_STREAM_INLINE;
  yk_code rc = s->is_inline ? YK_OK : start_thread(s);
  if (rc != YK_OK) {
    yk__cpu_host->free(s->ring);
    yk__cpu_host->free(s);
    return rc;
  }
  *out = s;
  return YK_OK;
}

/* What is enqueued is still done. */
void yk__cpu_stream_close(yk_stream *s) {
  if (!s) return;
  if (!s->is_inline) {
    (void)publish(s, reserve(s, STOP, 0));
    pthread_join(s->thread, NULL);
    yk__cpu_host->free(s->ring);
  }
  yk__cpu_host->free(s);
}
