/*
 * thread.c - threads, locks, waiting on a word, and the clock.
 *
 * Waiting spins for a while, because a hand-over between two running threads
 * takes well under a microsecond and a sleep costs ten to a hundred. How many
 * threads sleep is counted by address, so that waking nobody is free.
 */
#include "base/thread.h"
#include "base/alloc.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/param.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

static_assert(sizeof(pthread_mutex_t) <= sizeof(yk_mutex), "a mutex fits");
static_assert(sizeof(pthread_cond_t) <= sizeof(yk_cond), "a condition variable fits");

typedef struct started {
  pthread_t id;
  char name[16];
  void *(*fn)(void *);
  void *arg;
} started;

static void *trampoline(void *arg) {
  started *s = arg;
  yk__unpin();
#if defined(__linux__)
  pthread_setname_np(pthread_self(), s->name);
#endif
  return s->fn(s->arg);
}

yk_code yk__thread_start(yk_thread *t, const char *name, void *(*fn)(void *), void *arg) {
  int rc;
  started *s = yk__calloc(1, sizeof *s);
  if (!s) return YK_ENOMEM;
  snprintf(s->name, sizeof s->name, "%.15s", name);
  s->fn = fn;
  s->arg = arg;
  yk__ncores();                          /* take the process's mask before anybody is pinned */
  rc = pthread_create(&s->id, NULL, trampoline, s);
  if (rc) {
    yk__free(s);
    return YK_FAIL(ENOMEM, "cannot start thread \"%.15s\": %s", name, strerror(rc));
  }
  t->impl = s;
  return YK_OK;
}

void yk__thread_join(yk_thread *t) {
  started *s = t->impl;
  if (!s) return;
  pthread_join(s->id, NULL);
  yk__free(s);
  t->impl = NULL;
}

static pthread_mutex_t *mutex_of(yk_mutex *m) { return (pthread_mutex_t *)(void *)m->space; }
static pthread_cond_t *cond_of(yk_cond *c) { return (pthread_cond_t *)(void *)c->space; }

void yk__mutex_init(yk_mutex *m)   { pthread_mutex_init(mutex_of(m), NULL); }
void yk__mutex_free(yk_mutex *m)   { pthread_mutex_destroy(mutex_of(m)); }
void yk__mutex_lock(yk_mutex *m)   { pthread_mutex_lock(mutex_of(m)); }
int  yk__mutex_try(yk_mutex *m)    { return pthread_mutex_trylock(mutex_of(m)) == 0; }
void yk__mutex_unlock(yk_mutex *m) { pthread_mutex_unlock(mutex_of(m)); }

void yk__cond_init(yk_cond *c) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(cond_of(c), &attr);
  pthread_condattr_destroy(&attr);
}

void yk__cond_free(yk_cond *c)               { pthread_cond_destroy(cond_of(c)); }
void yk__cond_wait(yk_cond *c, yk_mutex *m)  { pthread_cond_wait(cond_of(c), mutex_of(m)); }
void yk__cond_signal(yk_cond *c)             { pthread_cond_signal(cond_of(c)); }
void yk__cond_broadcast(yk_cond *c)          { pthread_cond_broadcast(cond_of(c)); }

int yk__cond_wait_ms(yk_cond *c, yk_mutex *m, int64_t ms) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  if (ms < 0) ms = 0;
  if (ms > INT64_C(1000000000000)) ms = INT64_C(1000000000000);
  t.tv_sec += (time_t)(ms / 1000);
  t.tv_nsec += (long)(ms % 1000) * 1000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    t.tv_sec++;
  }
  return pthread_cond_timedwait(cond_of(c), mutex_of(m), &t) != ETIMEDOUT;
}

/* Sleepers by address of their word. Two words may share a counter: then a wake makes a needless system call. */
static _Atomic uint32_t sleepers[64];

static _Atomic uint32_t *sleepers_of(const _Atomic uint32_t *word) {
  uintptr_t a = (uintptr_t)word;
  return &sleepers[(a >> 2 ^ a >> 8 ^ a >> 14) % 64];
}

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* Look again and again for at most `spin_us`. True once the word has changed. */
static int spin(_Atomic uint32_t *word, uint32_t while_equal) {
  uint64_t limit, start;
  if (atomic_load_explicit(word, memory_order_acquire) != while_equal) return 1;
  if (yk__ncores() < 2) return 0;        /* on one core the other side runs only when we sleep */
  limit = (uint64_t)yk__param_int("spin_us") * 1000;
  start = yk__now_ns();
  do {
    for (int i = 0; i < 32; i++) {
      if (atomic_load_explicit(word, memory_order_acquire) != while_equal) return 1;
      pause_briefly();
    }
  } while (yk__now_ns() - start < limit);
  return 0;
}

/* limit NULL: without one. */
static void sleep_on(_Atomic uint32_t *word, uint32_t while_equal, const struct timespec *limit) {
#if defined(__linux__)
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_equal, limit, NULL, 0);
#else
  (void)word;
  (void)while_equal;
  (void)limit;
  sched_yield();
#endif
}

void yk__word_wait(_Atomic uint32_t *word, uint32_t while_equal) {
  _Atomic uint32_t *count = sleepers_of(word);
  if (spin(word, while_equal)) return;
  atomic_fetch_add(count, 1);
  while (atomic_load(word) == while_equal) sleep_on(word, while_equal, NULL);
  atomic_fetch_sub(count, 1);
}

void yk__word_wake(_Atomic uint32_t *word) {
  /* A read-modify-write, not a load: it is ordered against the sleeper's increment, so that either the sleeper sees the
   * new word, or it is seen here. */
  if (atomic_fetch_add(sleepers_of(word), 0) == 0) return;
#if defined(__linux__)
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#endif
}

int yk__word_wait_ms(_Atomic uint32_t *word, uint32_t while_equal, int64_t ms) {
  _Atomic uint32_t *count = sleepers_of(word);
  uint64_t end = yk__now_ns() + (uint64_t)(ms > 0 ? ms : 0) * 1000000u, now;
  atomic_fetch_add(count, 1);
  while (atomic_load(word) == while_equal && (now = yk__now_ns()) < end) {
    struct timespec left = { .tv_sec = (time_t)((end - now) / 1000000000u), .tv_nsec = (long)((end - now) % 1000000000u) };
    sleep_on(word, while_equal, &left);
  }
  atomic_fetch_sub(count, 1);
  return atomic_load(word) != while_equal;
}

void yk__lock(_Atomic uint32_t *lock) {
  while (atomic_exchange(lock, 1) != 0) yk__word_wait(lock, 1);
}

void yk__unlock(_Atomic uint32_t *lock) {
  atomic_store(lock, 0);
  yk__word_wake(lock);
}

uint64_t yk__now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t yk__coarse_ns(void) {
#if defined(CLOCK_MONOTONIC_COARSE)
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#else
  return yk__now_ns();
#endif
}

uint64_t yk__rss_peak_bytes(void) {
  struct rusage u;
  if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
#if defined(__APPLE__)
  return (uint64_t)u.ru_maxrss;
#else
  return (uint64_t)u.ru_maxrss * 1024;
#endif
}
