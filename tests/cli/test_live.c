/*
 * `yoke train --live` on a terminal of its own: what is drawn, that it keeps to its lines, and what is left when the run is over.
 */
#include "run_yoke.h"
#include <errno.h>
#include <unistd.h>

enum { MOST = 1 << 20 };

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

/* All that the program writes to a terminal of that size; the caller's. */
static char *on_terminal(unsigned short rows, unsigned short columns, const char *const *argv, int *status) {
  char *text = calloc(1, MOST + 1);
  size_t n = 0;
  int slave, master = open_terminal(rows, columns, &slave);
  assert_non_null(text);
  pid_t pid = yoke_start_on(slave, argv);
  close(slave);
  for (ssize_t got; n < MOST && ((got = read(master, text + n, MOST - n)) > 0 || (got < 0 && errno == EINTR));) n += got > 0 ? (size_t)got : 0;
  close(master);
  yoke_result r;
  yoke_wait(pid, &r);
  *status = r.status;
  if (r.err[0] != '\0') fail_msg("it says: %s", r.err);
  yoke_free(&r);
  return text;
}

/* The most lines that one drawing has: a drawing goes from its bar to the erasing of what is below. */
static int most_lines(const char *text) {
  int most = 0;
  for (const char *at = text; (at = strstr(at, "\r[")) != NULL; at++) {
    const char *end = strstr(at, "\033[J");
    int n = 1;
    for (const char *c = at; end != NULL && c < end; c++) n += *c == '\n';
    if (n > most) most = n;
  }
  return most;
}

static void has(const char *text, const char *what) {
  if (strstr(text, what) == NULL) fail_msg("no '%s' in: %s", what, text);
}

#define LIVE "train", "mlp", "--data", "set", "--batch", "8", "--virtual-gpus", "2:128MiB", "--steps", "40", "--interval", "0", "--live", "--out"

static void test_drawn(void **state) {
  int status;
  (void)state;
  setenv("LC_ALL", "C.UTF-8", 1);
  char *text = on_terminal(24, 100, (const char *const[]){ "yoke", LIVE, "wide", NULL }, &status);
  CHECK_INT(status, 0);
  has(text, "loss ");
  has(text, "accuracy ");
  has(text, "step, ms");
  has(text, "/gpu:1    busy ");
  has(text, " of 128.00MiB in use");
  has(text, "\xE2\x96\x88");                       /* the highest cell of a curve */
  has(text, "epoch 1.08: test loss ");             /* a line that stays */
  has(text, "40 steps in ");
  int lines = most_lines(text);
  if (lines < 5 || lines > 8) fail_msg("%d lines were drawn", lines);
  free(text);
}

static void test_small(void **state) {
  int status;
  (void)state;
  setenv("LC_ALL", "C", 1);
  char *text = on_terminal(4, 40, (const char *const[]){ "yoke", LIVE, "small", NULL }, &status);
  CHECK_INT(status, 0);
  CHECK_INT(most_lines(text), 3);
  if (strchr(text, '\xE2') != NULL) fail_msg("no plain text in the C locale: %s", text);
  free(text);
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "--live draws on a terminal, and the standard output is none", "train", "mlp", "--live");
  FAILS(2, "--live and --json exclude each other", "train", "mlp", "--live", "--json");
  FAILS(2, "--live and --quiet exclude each other", "train", "mlp", "--quiet", "--live");
  assert_false(exists("runs"));
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_drawn), cmocka_unit_test(test_small), cmocka_unit_test(test_refused) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
