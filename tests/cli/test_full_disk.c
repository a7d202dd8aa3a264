/*
 * Checkpoints on a disk that is too small, and on one that fills up while a run is going: the first is told before the first step, the
 * second costs warnings and then ends the run, and once there is room again it goes on to the weights of a run that nobody disturbed.
 * The disk is a tmpfs, mounted by root or in a user namespace of our own; where neither may be had, tests/store lets each call
 * fail as a full disk does.
 */
#include "run_yoke.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <yoke/yoke.h>

#define NET "train", "cifar10", "--data", "set", "--batch", "6", "--interval", "0"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

static bool put_line(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return good;
}

/* Root of a namespace of our own. */
static bool become_root(void) {
  char users[64], groups[64];
  snprintf(users, sizeof users, "0 %ld 1", (long)geteuid());
  snprintf(groups, sizeof groups, "0 %ld 1", (long)getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put_line("/proc/self/setgroups", "deny") &&
         put_line("/proc/self/uid_map", users) && put_line("/proc/self/gid_map", groups);
}

static bool disk(const char *options) {
  mkdir("disk", 0777);
  if (mount("tmpfs", "disk", "tmpfs", 0, options) == 0) return true;
  if (become_root() && mount("tmpfs", "disk", "tmpfs", 0, options) == 0) return true;
  print_message("no disk may be mounted here (%s): tests/store lets the calls fail instead\n", strerror(errno));
  return false;
}

static void test_too_small(void **state) {
  (void)state;
  if (!disk("size=24m")) return;
  FAILS(1, "no space left: room for 6 checkpoints needs 5", NET, "--steps", "20", "--out", "disk/a", "--checkpoint-every", "1", "--quiet");
  assert_false(exists("disk/a/weights.safetensors"));
  free(SUCCEEDS(NET, "--steps", "2", "--out", "disk/b", "--checkpoint-every", "1", "--keep", "1"));   /* with fewer it fits */
  CHECK_INT(umount("disk"), 0);
}

/* Take what is free, but `keep_free`. */
static void fill(const char *path, int64_t keep_free) {
  static char zeros[1 << 16];
  struct statvfs room;
  CHECK_INT(statvfs("disk", &room), 0);
  int64_t bytes = (int64_t)room.f_bavail * (int64_t)room.f_frsize - keep_free;
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  for (; bytes >= (int64_t)sizeof zeros; bytes -= (int64_t)sizeof zeros) CHECK_INT(fwrite(zeros, sizeof zeros, 1, f), 1);
  CHECK_INT(fclose(f), 0);
}

/* Is the folder between two saves, with two checkpoints and nothing that will make room when it goes? */
static bool at_rest(const char *folder) {
  int checkpoints = 0, unfinished = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
    checkpoints += strstr(e->d_name, ".safetensors") != NULL;
    unfinished += strstr(e->d_name, ".tmp") != NULL;
  }
  if (d) closedir(d);
  return checkpoints == 2 && unfinished == 0;
}

/* Stop the run where its folder is at rest. */
static void stop_at_rest(pid_t pid, const char *folder) {
  for (int i = 0; i < 20000; i++) {
    int status = 0;
    if (at_rest(folder)) {
      CHECK_INT(kill(pid, SIGSTOP), 0);
      CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
      if (!WIFSTOPPED(status)) fail_msg("the run ended before the disk was full");
      if (at_rest(folder)) return;
      kill(pid, SIGCONT);
    }
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  fail_msg("no two checkpoints in %s", folder);
}

static void test_fills_up(void **state) {
  yoke_result r;
  yk_checkpoint *c;
  (void)state;
  if (!disk("size=48m")) return;
  pid_t pid = yoke_start((const char *const[]){ "yoke", NET, "--steps", "100000", "--out", "disk/a", "--checkpoint-every", "3",
                                               "--keep", "2", NULL });
  stop_at_rest(pid, "disk/a/checkpoints");
  fill("disk/filler", 4 << 20);                      /* half a checkpoint is left: room for metrics */
  CHECK_INT(kill(pid, SIGCONT), 0);
  yoke_wait(pid, &r);
  CHECK_INT(r.status, 1);
  if (strstr(r.err, "no space left") == NULL && strstr(r.err, "No space left") == NULL) fail_msg("%s", r.err);
  assert_non_null(strstr(r.err, "the last 3 checkpoints could not be written"));
  yoke_free(&r);
  CHECK_OK(yk_checkpoint_latest("disk/a/checkpoints", &c));
  int64_t step = yk_checkpoint_step(c);
  assert_true(step >= 6 && step % 3 == 0);
  yk_checkpoint_close(c);
  CHECK_INT(unlink("disk/filler"), 0);
  char steps[32];
  snprintf(steps, sizeof steps, "%lld", (long long)step + 4);
  free(SUCCEEDS(NET, "--steps", steps, "--out", "disk/a", "--resume"));
  free(SUCCEEDS(NET, "--steps", steps, "--out", "whole"));
  const char *const same[] = { "cmp", "whole/weights.safetensors", "disk/a/weights.safetensors", NULL };
  CHECK_INT(run_program(same, NULL, NULL), 0);
  CHECK_INT(umount("disk"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_too_small), cmocka_unit_test(test_fills_up) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
