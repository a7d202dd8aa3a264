/*
 * waits.h - how long the objects of this folder wait for each other. No wait is without an end.
 *
 * A limit of 0 stands for the setting "timeout_ms", and that one's 0 for ten minutes, as for a session.
 */
#ifndef YK_TRAIN_WAITS_H
#define YK_TRAIN_WAITS_H

#include "base/param.h"
#include "base/thread.h"

/* The limit in force. */
static inline int64_t yk__limit_ms(int64_t ms) {
  if (ms == 0) ms = yk__param_int("timeout_ms");
  if (ms == 0) ms = 600000;
  return ms < INT64_C(1000000000000) ? ms : INT64_C(1000000000000);
}

/* When a wait of so long that begins now is over. */
static inline uint64_t yk__until(int64_t ms) { return yk__now_ns() + (uint64_t)(ms > 0 ? ms : 0) * 1000000; }

/* Wait for a change, but not beyond `until`; 0 = the time is up. */
static inline int yk__wait_until(yk_cond *c, yk_mutex *m, uint64_t until) {
  uint64_t now = yk__now_ns();
  if (now >= until) return 0;
  yk__cond_wait_ms(c, m, (int64_t)((until - now) / 1000000) + 1);
  return 1;
}

#endif
