/*
 * A function in a child process: its answer comes back however it ends, what it prints is caught, and a child that does not
 * end is not waited for longer than agreed.
 */
#include "support/check.h"
#include "base/child.h"

#include <signal.h>
#include <unistd.h>

typedef struct answer { int before, after; } answer;
enum { RETURN, SAY, EXIT, KILL, SLEEP, TALK, CLOSE };

static void work(void *arg, void *out) {
  answer *a = out;
  a->before = 1;
  switch (*(int *)arg) {
    case SAY: printf("one\n\ttwo\n"); fflush(stdout); break;
    case EXIT: exit(3);
    case KILL: raise(SIGKILL); break;
    case SLEEP: for (;;) pause();
    case TALK: for (int i = 0; i < 30000; i++) fprintf(stderr, "word %d ", i); break;
    case CLOSE: close(1); close(2); usleep(50000); break;
    default: break;
  }
  a->after = getchar() == EOF;                     /* there is no input to wait for */
}

static void run(int what, int timeout_ms, yk_child *c) {
  CHECK_OK(yk__child_start(c, work, &what, sizeof(answer), timeout_ms));
  yk__child_wait(c);
}

static void expect(int what, yk_child_end end, int number, int after, const char *said) {
  yk_child c;
  run(what, end == YK__CHILD_LATE ? 300 : 60000, &c);
  const answer *a = c.answer;
  if (c.end != end || c.number != number || a->before != 1 || a->after != after || strstr(c.said, said) == NULL)
    fail_msg("case %d: end %d number %d before %d after %d said \"%s\"", what, (int)c.end, c.number, a->before, a->after, c.said);
  yk__child_free(&c);
}

static void test_ends(void **state) {
  (void)state;
  expect(RETURN, YK__CHILD_RETURNED, 0, 1, "");
  expect(SAY, YK__CHILD_RETURNED, 0, 1, "one two");
  expect(EXIT, YK__CHILD_EXITED, 3, 0, "");
  expect(KILL, YK__CHILD_SIGNALLED, SIGKILL, 0, "");
  expect(SLEEP, YK__CHILD_LATE, 0, 0, "");
  expect(CLOSE, YK__CHILD_RETURNED, 0, 1, "");
}

/* More than a pipe holds: nobody blocks, and the end is kept. */
static void test_much_talk(void **state) {
  (void)state;
  expect(TALK, YK__CHILD_RETURNED, 0, 1, "word 29998 word 29999");
}

static void test_side_by_side(void **state) {
  enum { N = 8 };
  yk_child c[N];
  int what[N];
  (void)state;
  for (int i = 0; i < N; i++) {
    what[i] = i % 2 ? TALK : EXIT;
    CHECK_OK(yk__child_start(&c[i], work, &what[i], sizeof(answer), 60000));
  }
  for (int i = 0; i < N; i++) {
    yk__child_wait(&c[i]);
    CHECK_INT(c[i].end, i % 2 ? YK__CHILD_RETURNED : YK__CHILD_EXITED);
    yk__child_free(&c[i]);
  }
  yk__child_free(&c[0]);                           /* a zeroed one is fine */
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_ends), cmocka_unit_test(test_much_talk),
                                      cmocka_unit_test(test_side_by_side) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
