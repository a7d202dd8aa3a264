/*
 * wait.h - waiting for a 32-bit word to change: spin, yield, then sleep in the kernel.
 *
 * The spin covers a hand-over between two running threads; yielding keeps it harmless when there are more device
 * threads than cores. Whoever changes the word wakes sleepers only if a flag says that there are any, so the common
 * case makes no system call. Words and flags use sequentially consistent accesses, which this protocol needs.
 */
#ifndef YK_BACKEND_CPU_WAIT_H
#define YK_BACKEND_CPU_WAIT_H

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YK_CPU_SPINS = 200, YK_CPU_YIELDS = 20 };

/* One turn of the spinning phase; false when it is time to sleep. */
static inline int yk__cpu_spin(uint32_t turn) {
  if (turn >= YK_CPU_SPINS + YK_CPU_YIELDS) return 0;
  if (turn >= YK_CPU_SPINS) {
    sched_yield();
    return 1;
  }
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
  return 1;
}

/* Sleep while *word still is `seen`; may return early. */
static inline void yk__cpu_sleep(_Atomic uint32_t *word, uint32_t seen) {
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

/* The same, for at most `ns` nanoseconds. */
static inline void yk__cpu_sleep_for(_Atomic uint32_t *word, uint32_t seen, uint64_t ns) {
  struct timespec limit = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
}

static inline void yk__cpu_wake(_Atomic uint32_t *word) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
