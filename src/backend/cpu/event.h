/*
 * event.h - what streams and events share.
 *
 * An event counts generations: enqueuing a record asks for the next one, and the stream fires it when it gets there.
 * A wait enqueued later waits for the generation asked for by then, so one event serves every step of a plan.
 */
#ifndef YK_BACKEND_CPU_EVENT_H
#define YK_BACKEND_CPU_EVENT_H

#include "cpu.h"

struct yk_event {
  _Atomic uint32_t asked;                            /* generation of the latest record enqueued; 0 = never recorded */
  _Atomic uint32_t fired;                            /* latest generation reached: the word waiters sleep on */
  _Atomic uint32_t waiters;
  _Atomic uint32_t firing;                           /* threads inside yk__cpu_event_fire: closing waits for them */
  _Atomic uint32_t code;                             /* of the recording stream when it fired */
  _Atomic uint64_t time_ns;
};

uint32_t yk__cpu_event_ask(yk_event *e);             /* enqueue side of a record: the generation to fire */
void     yk__cpu_event_fire(yk_event *e, uint32_t generation, yk_code code);
int      yk__cpu_event_reached(yk_event *e, uint32_t generation);
void     yk__cpu_event_await(yk_event *e, uint32_t generation);

#endif
