/*
 * A run that saves after every step is killed again and again, at moments that a generator draws: each time the newest checkpoint is
 * whole and not older than any that was seen before, and in the end the weights are those of a run that nobody touched.
 * YOKE_TEST_NIGHTLY=1 kills 200 times instead of 20.
 */
#include "run_yoke.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <yoke/yoke.h>

#define RUN "train", "cifar10", "--data", "set", "--batch", "4", "--interval", "0", "--steps"       /* its schedule does not know them */

static bool nightly;

static int setup(void **state) {
  nightly = getenv("YOKE_TEST_NIGHTLY") != NULL;     /* the rest of the environment is cleared */
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

/* Step of the newest whole checkpoint; -1: there is none yet. */
static int64_t newest(void) {
  yk_checkpoint *c;
  yk_code rc = yk_checkpoint_latest("b/checkpoints", &c);
  if (rc == YK_ENOTFOUND) { yk_error_clear(); return -1; }
  if (rc != YK_OK) fail_msg("%s: %s", yk_code_name(rc), yk_error_message());
  int64_t step = yk_checkpoint_step(c);
  yk_checkpoint_close(c);
  return step;
}

/* A number that changes with the list of checkpoints. */
static int64_t list_stamp(void) {
  struct stat s;
  if (stat("b/checkpoints/checkpoint.json", &s) != 0) return 0;
  return (int64_t)s.st_ino ^ (int64_t)s.st_mtim.tv_sec * 1000000000 ^ (int64_t)s.st_mtim.tv_nsec;
}

static void wait_ms(uint32_t ms) {
  nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 }, NULL);
}

static void test_kills(void **state) {
  const char *steps = nightly ? "1500" : "150";
  int kills = nightly ? 200 : 20, killed = 0;
  uint32_t draw = 12345;
  int64_t seen = -1;
  (void)state;
  while (killed < kills) {
    yoke_result r;
    int64_t stamp = list_stamp();
    pid_t pid = yoke_start((const char *const[]){ "yoke", RUN, steps, "--out", "b", "--checkpoint-every", "1", "--keep", "2", "--resume", NULL });
    for (int i = 0; i < 5000 && list_stamp() == stamp; i++) wait_ms(3);          /* so that it gets on at all */
    draw = draw * 1664525u + 1013904223u;
    wait_ms((draw >> 16) % 40);
    kill(pid, SIGKILL);
    yoke_wait(pid, &r);
    int64_t now = newest();
    if (now < seen) fail_msg("kill %d: the newest checkpoint is of step %lld, there was one of step %lld", killed, (long long)now, (long long)seen);
    seen = now;
    bool ended = r.status == 0;
    if (!ended && r.status != 1000 + SIGKILL) fail_msg("kill %d: status %d: %s", killed, r.status, r.err);
    yoke_free(&r);
    if (ended) break;
    killed++;
  }
  print_message("killed %d times, the last time at step %lld of %s\n", killed, (long long)seen, steps);
  assert_true(killed >= kills / 4);
  char last[32];
  snprintf(last, sizeof last, "%lld", (long long)seen + 10);
  free(SUCCEEDS(RUN, last, "--out", "b", "--checkpoint-every", "20", "--resume"));
  free(SUCCEEDS(RUN, last, "--out", "a"));
  const char *const same[] = { "cmp", "a/weights.safetensors", "b/weights.safetensors", NULL };
  CHECK_INT(run_program(same, NULL, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_kills) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
