/*
 * stop.c - Ctrl-C: finish the step, write the files, leave.
 *
 * The handler only notes the signal; the loops look at it between steps. It is
 * gone after the first one, so a second Ctrl-C ends the process at once. It has a
 * stack of its own: oneDNN's matrix kernels let the stack pointer point into a buffer
 * on the heap while they work, and a signal's frame would be written there.
 */
#include "cli/cli.h"

static volatile sig_atomic_t caught;

static void note(int number) {
  caught = number;
}

void yk__stop_catch(void) {
  static char stack[1 << 16];
  struct sigaction a = { .sa_handler = note, .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK) };
  sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL);
  sigaction(SIGTERM, &a, NULL);
}

const volatile sig_atomic_t *yk__stop_flag(void) {
  return &caught;
}
