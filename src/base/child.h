/*
 * child.h - a function run in a process of its own, so that what it calls may crash or hang.
 *
 * The function answers in memory that both processes see; what it prints is caught. Whatever happens, the waiting side
 * gets on within the time limit: a child that does not end is killed, and one that cannot be killed is left behind.
 */
#ifndef YK_BASE_CHILD_H
#define YK_BASE_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <yoke/status.h>

typedef enum yk_child_end {
  YK__CHILD_RETURNED,              /* the function returned */
  YK__CHILD_EXITED,                /* somebody ended the process behind its back; number: the status */
  YK__CHILD_SIGNALLED,             /* number: the signal */
  YK__CHILD_LATE,                  /* killed when its time was up */
  YK__CHILD_STUCK                  /* killed, but the kernel does not let it end */
} yk_child_end;

typedef struct yk_child {
  void *answer;                    /* `bytes` zeroed bytes that the function fills in; what it had written is there in any case */
  yk_child_end end;
  int number;
  char said[512];                  /* the last it printed, in one line */
  size_t bytes;                    /* from here on: private */
  pid_t pid;
  int pipe;
  uint64_t deadline_ns;
} yk_child;

/*
 * Start `fn(arg, answer)`. The caller should have no other threads, since the child has only the calling one. It has no
 * standard input and leaves no core file. ENOMEM, EIO if the system refuses; then there is nothing to wait for or to free.
 */
yk_code yk__child_start(yk_child *c, void (*fn)(void *arg, void *answer), void *arg, size_t bytes, int timeout_ms) YK_CHECKED;
/* Wait until it has ended or its time, counted from the start, is up; fills in `end`, `number` and `said`. Once. */
void yk__child_wait(yk_child *c);
/* Give back the answer. After the wait; a zeroed child is fine. */
void yk__child_free(yk_child *c);

#endif
