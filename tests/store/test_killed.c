/*
 * Training 2k steps is training some, being killed at any moment, and training the rest from what is on the disk: bit for bit, for each
 * optimizer, with dropout and augmentation, on one device and on four. What is killed is another process of this program that saves
 * after every step. By default each number of devices is tried with some optimizers; YOKE_TEST_NIGHTLY=1 tries all, several times.
 */
#include "folder.h"
#include "trainer.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 8 };

static bool nightly;
static uint32_t draw = 4711;

static int setup(void **state) {
  nightly = getenv("YOKE_TEST_NIGHTLY") != NULL;
  trainer_setup();
  return folder_setup(state);
}

static int teardown(void **state) {
  trainer_teardown();
  return folder_teardown(state);
}

/* The other process: trains and saves into `where`, all but the last step, then waits for its end. */
static _Noreturn void victim(const char *where, int which, int devices) {
  run r;
  yk_saver *s;
  float loss;
  alarm(120);                                        /* should nobody come to kill it */
  snprintf(folder, sizeof folder, "%s", where);
  trainer_setup();
  start(&r, &kinds[which], devices, true);
  CHECK_OK(yk_saver_open(folder, NULL, &s));
  for (int i = 1; i < STEPS; i++) {
    train(&r, 1, &loss);
    save_as(&r, s, i, i % 2 == 0);
  }
  for (;;) pause();
}

static void wait_ms(uint32_t ms) {
  nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 }, NULL);
}

static int64_t newest(void) {
  yk_checkpoint *c;
  if (yk_checkpoint_latest(folder, &c) != YK_OK) {
    yk_error_clear();
    return 0;
  }
  int64_t step = yk_checkpoint_step(c);
  yk_checkpoint_close(c);
  return step;
}

/* Start it, and kill it some time after a step that is drawn has come. */
static void kill_one(int which, int devices) {
  char kind_text[16], devices_text[16], self[64];
  int status;
  snprintf(kind_text, sizeof kind_text, "%d", which);
  snprintf(devices_text, sizeof devices_text, "%d", devices);
  snprintf(self, sizeof self, "/proc/self/exe");
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    execl(self, self, "victim", folder, kind_text, devices_text, (char *)NULL);
    _exit(127);
  }
  draw = draw * 1664525u + 1013904223u;
  int64_t least = 1 + (draw >> 24) % (STEPS - 2);
  for (int i = 0; i < 20000 && newest() < least && waitpid(pid, &status, WNOHANG) == 0; i++) wait_ms(2);
  draw = draw * 1664525u + 1013904223u;
  wait_ms((draw >> 16) % 8);
  kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
    fail_msg("%s on %d devices ended by itself: %x", kinds[which].name, devices, (unsigned)status);
}

static void check(int which, int devices) {
  run whole, again;
  float loss[STEPS];
  folder_empty(NULL);
  start(&whole, &kinds[which], devices, true);
  train(&whole, STEPS, loss);
  kill_one(which, devices);
  start(&again, &kinds[which], devices, which % 2 == 0);
  int64_t done = restore_newest(&again);
  if (done < 1 || done >= STEPS) fail_msg("%s on %d devices: the newest checkpoint is of step %lld", kinds[which].name, devices, (long long)done);
  float late[STEPS];
  train(&again, (int)(STEPS - done), late);
  for (int64_t i = done; i < STEPS; i++)
    if (memcmp(&loss[i], &late[i - done], sizeof loss[i]) != 0)
      fail_msg("%s on %d devices, killed after step %lld: the loss of step %lld is %.9g, without a stop it was %.9g", kinds[which].name, devices,
               (long long)done, (long long)i + 1, (double)late[i - done], (double)loss[i]);
  same_variables(&whole, &again);
  stop(&again);
  stop(&whole);
}

/* By default those that differ most in what they keep. */
static bool wanted(int which) {
  static const char *const some[] = { "momentum", "adam", "rmsprop", "ftrl" };
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    if (strcmp(kinds[which].name, some[i]) == 0) return true;
  return nightly;
}

static void test_on_one(void **state) {
  (void)state;
  for (int times = 0; times < (nightly ? 4 : 1); times++)
    for (int i = 0; i < nkinds; i++)
      if (wanted(i)) check(i, 1);
}

static void test_on_four(void **state) {
  (void)state;
  for (int times = 0; times < (nightly ? 4 : 1); times++)
    for (int i = 0; i < nkinds; i++)
      if (wanted(i)) check(i, 4);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_on_one), cmocka_unit_test(test_on_four) };
  if (argc == 5 && strcmp(argv[1], "victim") == 0) victim(argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10));
  return cmocka_run_group_tests(tests, setup, teardown);
}
