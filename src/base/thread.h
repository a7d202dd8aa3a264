/*
 * thread.h - threads, core pinning, spin-then-sleep waiting, teams, clock.
 *
 * The team is the set of cores that the calling thread's loops use: one OpenMP
 * team per thread, shared by oneDNN and by yk__parallel_for, so that n devices
 * on n cores never fight. A team of one never enters the OpenMP runtime.
 */
#ifndef YK_BASE_THREAD_H
#define YK_BASE_THREAD_H

#include <stdatomic.h>
#include <stdint.h>
#include <yoke/status.h>

/* Cores this process may use, at least 1: affinity mask, cgroup quota and the setting "cores" respected. */
int yk__ncores(void);
/* Cores that the cgroups named in the file `membership` (/proc/self/cgroup) allow, looked up under `mount`; 0 = no limit. */
int yk__cgroup_cores(const char *membership, const char *mount);

/* The system's number of the k-th core that the process may use; -1: there are not so many. */
int yk__core_number(int k);
/* Pin the calling thread to `n` cores starting with the first-th of those the process may use. 0 = not possible (harmless). */
int yk__pin(int first, int n);

/* Size of the calling thread's team from now on (>= 1); a thread that never set it has yk__ncores(). */
void yk__team_set(int n);
int  yk__team(void);
/* The calling thread will only wait for a while: the threads of its team end, so that they neither spin nor count as busy when
 * the runtime decides how long others may spin. They come back with the next loop. Costs next to nothing without a team. */
void yk__team_rest(void);

/* Split [0, n) over the team in pieces of at least `grain` (>= 1) and call fn once a piece; returns when all are
 * done. Pieces depend on n, grain and team size only. Runs inline when one piece is enough. fn must not fail. */
void yk__parallel_for(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *arg), void *arg);

typedef struct yk_thread { void *impl; } yk_thread;
/* Starts on all cores of the process, whatever the caller is pinned to. ENOMEM if the system refuses. Join once. */
yk_code yk__thread_start(yk_thread *t, const char *name, void *(*fn)(void *), void *arg) YK_CHECKED;
void    yk__thread_join(yk_thread *t);

/* Mutex and condition variable (zero-cost wrappers; never fail). Initialise before use. */
typedef struct yk_mutex { uint64_t space[8]; } yk_mutex;
typedef struct yk_cond  { uint64_t space[8]; } yk_cond;
void yk__mutex_init(yk_mutex *m);   void yk__mutex_free(yk_mutex *m);
void yk__mutex_lock(yk_mutex *m);   void yk__mutex_unlock(yk_mutex *m);
int  yk__mutex_try(yk_mutex *m);    /* 1 = locked; 0 = somebody has it, the caller included */
void yk__cond_init(yk_cond *c);     void yk__cond_free(yk_cond *c);
void yk__cond_wait(yk_cond *c, yk_mutex *m);
int  yk__cond_wait_ms(yk_cond *c, yk_mutex *m, int64_t ms);   /* 0 = timed out */
void yk__cond_signal(yk_cond *c);   void yk__cond_broadcast(yk_cond *c);

/* A 32-bit word to wait on: spins briefly, then sleeps in the kernel (futex). Change the word, then wake: all waiters wake up.
 * Waking costs no system call while nobody sleeps. */
void yk__word_wait(_Atomic uint32_t *word, uint32_t while_equal);
void yk__word_wake(_Atomic uint32_t *word);
/* The same for `ms` at most, without spinning; 0 = the word is still equal. */
int  yk__word_wait_ms(_Atomic uint32_t *word, uint32_t while_equal, int64_t ms);
/* A mutex that needs no initialisation, for statics; zero is unlocked. Held briefly. */
void yk__lock(_Atomic uint32_t *lock);
void yk__unlock(_Atomic uint32_t *lock);

uint64_t yk__now_ns(void);          /* monotonic */
uint64_t yk__coarse_ns(void);       /* the same clock as of its last tick, a few milliseconds ago at most: cheap, and right on average */
uint64_t yk__rss_peak_bytes(void);

#endif
