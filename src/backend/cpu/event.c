/*
 * event.c - marks in streams that others can wait for.
 *
 * Firing is one store and, only if somebody sleeps, one system call. An event is recorded by one stream at a
 * time; it may be waited for by any number of streams and asked from any thread.
 */
#include "event.h"

#include <string.h>
#include "wait.h"

int yk__cpu_event_reached(yk_event *e, uint32_t generation) {
  return (int32_t)(atomic_load(&e->fired) - generation) >= 0;      /* generations wrap */
}

uint32_t yk__cpu_event_ask(yk_event *e) { return atomic_fetch_add(&e->asked, 1) + 1; }

void yk__cpu_event_fire(yk_event *e, uint32_t generation, yk_code code) {
  atomic_fetch_add(&e->firing, 1);
  atomic_store_explicit(&e->code, (uint32_t)code, memory_order_relaxed);
  atomic_store_explicit(&e->time_ns, yk__cpu_host->now_ns(), memory_order_relaxed);
  atomic_store(&e->fired, generation);
  if (atomic_load(&e->waiters)) yk__cpu_wake(&e->fired);
  atomic_fetch_sub(&e->firing, 1);
}

void yk__cpu_event_await(yk_event *e, uint32_t generation) {
  for (uint32_t turn = 0; yk__cpu_spin(turn); turn++)
    if (yk__cpu_event_reached(e, generation)) return;
  atomic_fetch_add(&e->waiters, 1);
  for (;;) {
    uint32_t seen = atomic_load(&e->fired);
    if ((int32_t)(seen - generation) >= 0) break;
    yk__cpu_sleep(&e->fired, seen);
  }
  atomic_fetch_sub(&e->waiters, 1);
}

/* The program's thread has nothing else to do, but the devices may need its core: it sleeps, and only the event wakes it. */
yk_code yk__cpu_event_sync(yk_event *e, int64_t timeout_ms) {
  uint32_t generation = atomic_load(&e->asked);
  uint64_t limit = timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000u : 0, start = limit ? yk__cpu_host->now_ns() : 0;
  for (uint32_t turn = 0; !yk__cpu_event_reached(e, generation) && yk__cpu_spin(turn);) turn++;
  atomic_fetch_add(&e->waiters, 1);
  for (;;) {
    uint32_t seen = atomic_load(&e->fired);
    if ((int32_t)(seen - generation) >= 0) break;
    uint64_t waited = limit ? yk__cpu_host->now_ns() - start : 0;
    if (limit == 0) yk__cpu_sleep(&e->fired, seen);
    else if (waited < limit) yk__cpu_sleep_for(&e->fired, seen, limit - waited);
    else break;
  }
  atomic_fetch_sub(&e->waiters, 1);
  return yk__cpu_event_query(e);
}

yk_code yk__cpu_event_open(yk_dev *dev, yk_event **out) {
  (void)dev;
  yk_event *e = yk__cpu_host->alloc(sizeof *e, 64);
  if (!e) return YK_CPU_FAIL(ENOMEM, "no memory for an event (%zu bytes)", sizeof *e);
  memset(e, 0, sizeof *e);
  *out = e;
  return YK_OK;
}

void yk__cpu_event_close(yk_event *e) {
  if (!e) return;
  for (uint32_t turn = 0; atomic_load(&e->firing); turn++)
    if (!yk__cpu_spin(turn)) turn = YK_CPU_SPINS;                  /* keep yielding: the other is about to leave */
  yk__cpu_host->free(e);
}

/* EBUSY is an answer, not a failure: it leaves the thread's message alone. */
yk_code yk__cpu_event_query(yk_event *e) {
  if (!yk__cpu_event_reached(e, atomic_load(&e->asked))) return YK_EBUSY;
  yk_code code = (yk_code)atomic_load_explicit(&e->code, memory_order_relaxed);
  if (code == YK_OK) return YK_OK;
  return yk__cpu_host->fail(code, __FILE__, __LINE__, "work before this event failed; synchronising its stream tells what");
}

yk_code yk__cpu_event_time(yk_event *e, uint64_t *ns) {
  uint32_t asked = atomic_load(&e->asked);
  if (asked == 0) return YK_CPU_FAIL(EINVAL, "the time of an event that was never recorded");
  if (!yk__cpu_event_reached(e, asked)) return YK_CPU_FAIL(EBUSY, "the time of an event that has not fired yet");
  *ns = atomic_load_explicit(&e->time_ns, memory_order_relaxed);
  return YK_OK;
}
