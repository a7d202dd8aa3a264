/*
 * Files are whole or absent: each call of the system that writing makes is let fail in turn, and the process is killed before each.
 * A file size limit is an ordinary failure, whether or not its signal would kill.
 */
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/alloc.h"
#include "store/disk.h"

static const char old[] = "the old text", fresh[] = "a new text, longer than the old one";

static yk_code write_text(const char *text) {
  return yk__disk_write(in_folder("file"), 2, (yk_piece[]){ { text, 3 }, { text + 3, strlen(text) - 3 } });
}

static void expect_text(const char *want, const char *why) {
  size_t n = 0;
  uint8_t *b = take_file("file", &n);
  if (b == NULL || strcmp((char *)b, want) != 0) fail_msg("%s: the file has \"%s\", expected \"%s\"", why, b != NULL ? (char *)b : "(none)", want);
  free(b);
}

static void test_write(void **state) {
  uint8_t *b;
  size_t n;
  (void)state;
  CHECK_OK(write_text(old));
  expect_text(old, "new");
  CHECK_OK(write_text(fresh));
  expect_text(fresh, "replaced");
  CHECK_INT(count_files(".tmp"), 0);
  CHECK_OK(yk__disk_read(in_folder("file"), &b, &n));
  CHECK_INT(n, sizeof fresh - 1);
  assert_string_equal((char *)b, fresh);
  yk__free(b);
  CHECK_OK(yk__disk_remove(in_folder("file")));
  CHECK_OK(yk__disk_remove(in_folder("file")));
  CHECK_CODE(yk__disk_read(in_folder("file"), &b, &n), YK_ENOTFOUND, "file'");
  CHECK_CODE(yk__disk_read(folder, &b, &n), YK_EIO, "no regular file");
  CHECK_CODE(yk__disk_write("/proc/none/x", 0, NULL), YK_EIO, "'/proc/none/x' cannot be created");
}

/* After every failure the old text is there and nothing else; but once the new name stands, only the folder's sync can fail. */
static void test_each_call_fails(void **state) {
  static const int errors[] = { ENOSPC, EIO, EROFS, EDQUOT, EFBIG };
  (void)state;
  for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
    for (int i = 1;; i++) {
      CHECK_OK(write_text(old));
      watch_call(i, errors[e], NULL);
      yk_code rc = write_text(fresh);
      int seen = calls_seen();
      yk__disk_watch(NULL);
      CHECK_INT(count_files(".tmp"), 0);
      if (rc == YK_OK) {
        CHECK_INT(i, seen + 1);
        assert_true(seen >= 7);                    /* open, two writes, fsync, close, rename, sync folder */
        break;
      }
      CHECK_INT(rc, YK_EIO);
      if (strstr(yk_error_message(), "file' cannot be") == NULL) fail_msg("call %d: \"%s\"", i, yk_error_message());
      yk_error_clear();
      expect_text(i < seen || i < 7 ? old : fresh, "after a failure");
    }
}

/* Killed before any of them: the old text or the new one. */
static void test_killed_at_each_call(void **state) {
  (void)state;
  for (int i = 1;; i++) {
    CHECK_OK(write_text(old));
    pid_t pid = fork();
    if (pid == 0) {
      watch_call(i, 0, NULL);
      _exit(write_text(fresh) == YK_OK ? 0 : 1);
    }
    int status = 0;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
      CHECK_INT(WEXITSTATUS(status), 0);
      expect_text(fresh, "not killed");
      assert_true(i >= 8);
      break;
    }
    CHECK_INT(WTERMSIG(status), SIGKILL);
    expect_text(i <= 6 ? old : fresh, "killed");
    folder_empty(NULL);
  }
}

/* Both where the signal is ignored and where it would end the process; a signal of our own making does not come later either. */
static void test_file_size_limit(void **state) {
  struct rlimit before, tight;
  (void)state;
  CHECK_OK(write_text(old));
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = 20;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
  yk_code rc = write_text(fresh);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK_CODE(rc, YK_EIO, "ulimit -f");
  expect_text(old, "limited");
  CHECK_INT(count_files(".tmp"), 0);
  sigset_t now;
  CHECK_INT(sigpending(&now), 0);
  CHECK_INT(sigismember(&now, SIGXFSZ), 0);
  CHECK_OK(write_text(fresh));
}

static void test_room(void **state) {
  struct rlimit before, tight;
  (void)state;
  CHECK_OK(yk__disk_room(folder, 1, 1, "a thing"));
  CHECK_CODE(yk__disk_room(folder, UINT64_MAX, 1, "a thing"), YK_EIO, "a thing needs 18446744073709551615 bytes");
  CHECK_CODE(yk__disk_room("/none/such", 1, 1, "a thing"), YK_EIO, "'/none/such'");
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = 99;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
  yk_code rc = yk__disk_room(folder, 1, 100, "a thing");
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK_CODE(rc, YK_EIO, "100 bytes, but none may be larger than 99 (ulimit -f)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_write, folder_empty), cmocka_unit_test_setup(test_each_call_fails, folder_empty),
    cmocka_unit_test_setup(test_killed_at_each_call, folder_empty), cmocka_unit_test_setup(test_file_size_limit, folder_empty),
    cmocka_unit_test_setup(test_room, folder_empty),
  };
  return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
