/*
 * Savers: what they keep, what they let go, and that whatever call of the system fails, or is the last before the process is
 * killed, the newest checkpoint or the one before it is whole. The killing is exhaustive: before each single call.
 */
#include "folder.h"
#include "net.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "store/disk.h"
#include "store/manifest.h"

static net n;

static int setup(void **state) {
  int rc = folder_setup(state);
  if (rc == 0) net_open(&n);
  return rc;
}

static int teardown(void **state) {
  net_close(&n);
  return folder_teardown(state);
}

static yk_saver *open_saver(int keep) {
  yk_saver_options o = YK_SAVER_OPTIONS_INIT;
  yk_saver *s = NULL;
  o.keep = keep;
  CHECK_OK(yk_saver_open(folder, &o, &s));
  return s;
}

static yk_code save(yk_saver *s, int step) {
  net_set(&n, step);
  return yk_saver_save(s, n.s, step, 0, NULL);
}

/* The newest whole one is of step `want`, and its values are those of that step. */
static void expect_latest(int64_t want, const char *why) {
  yk_checkpoint *c = NULL;
  yk_code rc = yk_checkpoint_latest(folder, &c);
  if (want < 0) {
    if (rc != YK_ENOTFOUND) fail_msg("%s: %s, expected ENOTFOUND", why, yk_code_name(rc));
    yk_error_clear();
    return;
  }
  if (rc != YK_OK) fail_msg("%s: %s (%s), expected step %lld", why, yk_code_name(rc), yk_error_message(), (long long)want);
  int64_t step = yk_checkpoint_step(c);
  if (step != want) fail_msg("%s: the newest is of step %lld, expected %lld", why, (long long)step, (long long)want);
  net_set(&n, 999);
  CHECK_OK(yk_checkpoint_restore(c, n.s, NULL));
  net_expect(&n, (int)want, why);
  yk_checkpoint_close(c);
}

static void test_round_trip(void **state) {
  yk_saver *s = open_saver(0);
  yk_saver_report r;
  yk_checkpoint *c;
  struct stat info;
  (void)state;
  assert_null(yk_saver_latest(s));
  expect_latest(-1, "nothing saved");
  net_set(&n, 5);
  const yk_note notes[] = { { "place", "epoch 3, \"quoted\", 100 %" }, { "empty", "" } };
  CHECK_OK(yk_saver_save(s, n.s, 5, 2, notes));
  CHECK_OK(yk_saver_wait(s, &r));
  CHECK_INT(r.step, 5);
  assert_string_equal(r.path, in_folder("ckpt-5.safetensors"));
  CHECK_INT(stat(r.path, &info), 0);
  CHECK_INT(r.bytes, info.st_size);
  CHECK_OK(yk_saver_wait(s, &r));
  CHECK_INT(r.step, -1);                             /* told once */
  assert_string_equal(yk_saver_latest(s), in_folder("ckpt-5.safetensors"));
  CHECK_OK(yk_checkpoint_open(in_folder("ckpt-5.safetensors"), &c));
  CHECK_INT(yk_checkpoint_step(c), 5);
  CHECK_INT(yk_checkpoint_count(c), 4);
  assert_string_equal(yk_checkpoint_name(c, 0), "a/w");
  assert_null(yk_checkpoint_name(c, 4));
  CHECK_INT(yk_checkpoint_desc(c, "a/b")->dtype, YK_F64);
  assert_null(yk_checkpoint_desc(c, "a/c"));
  assert_string_equal(yk_checkpoint_note(c, "place"), notes[0].value);
  assert_string_equal(yk_checkpoint_note(c, "empty"), "");
  assert_null(yk_checkpoint_note(c, "other"));
  assert_string_equal(yk_checkpoint_path(c), in_folder("ckpt-5.safetensors"));
  yk_tensor *t;
  CHECK_OK(yk_checkpoint_get(c, "step", &t));
  CHECK_INT(yk_tensor_at(t, 0), 5000);
  yk_tensor_free(t);
  CHECK_CODE(yk_checkpoint_get(c, "stop", &t), YK_ENOTFOUND, "ckpt-5.safetensors': there is no tensor 'stop'");
  yk_checkpoint_close(c);
  yk_checkpoint_close(NULL);
  CHECK_OK(yk_saver_close(s));
  CHECK_OK(yk_saver_close(NULL));
  expect_latest(5, "saved");
}

static void test_refuses(void **state) {
  yk_saver_options o = YK_SAVER_OPTIONS_INIT;
  yk_saver *s = NULL, *other = NULL;
  yk_graph *g;
  yk_session *empty;
  (void)state;
  o.keep = -2;
  CHECK_CODE(yk_saver_open(folder, &o, &s), YK_EINVAL, "-2");
  o = (yk_saver_options){ .size = sizeof o, .keep_every_hours = -1 };
  CHECK_CODE(yk_saver_open(folder, &o, &s), YK_EINVAL, "keep_every_hours");
  o.size = 0;
  CHECK_CODE(yk_saver_open(folder, &o, &s), YK_EINVAL, "YK_SAVER_OPTIONS_INIT");
  CHECK_CODE(yk_saver_open("", NULL, &s), YK_EINVAL, "folder");
  CHECK_CODE(yk_saver_open("/none/such", NULL, &s), YK_EIO, "'/none/such'");
  put_file("plain", "x", 1);
  CHECK_CODE(yk_saver_open(in_folder("plain"), NULL, &s), YK_EIO, "Not a directory");
  assert_null(s);
  CHECK_OK(yk_saver_open(folder, NULL, &s));
  CHECK_CODE(yk_saver_open(folder, NULL, &other), YK_EBUSY, "another process");
  net_set(&n, 1);
  CHECK_CODE(yk_saver_save(s, n.s, -1, 0, NULL), YK_EINVAL, "-1");
  CHECK_CODE(yk_saver_save(s, n.s, 1, 1, &(yk_note){ "yoke.step", "7" }), YK_EINVAL, "'yoke.step'");
  CHECK_CODE(yk_saver_save(s, n.s, 1, 1, &(yk_note){ "", "7" }), YK_EINVAL, "key");
  CHECK_CODE(yk_saver_save(s, n.s, 1, 2, (yk_note[]){ { "a", "7" }, { "a", "8" } }), YK_EINVAL, "two texts 'a'");
  CHECK_CODE(yk_saver_save(s, NULL, 1, 0, NULL), YK_EINVAL, "session");
  CHECK_OK(yk_graph_new(&g));
  yk_get_variable(g, "v", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL);
  CHECK_OK(yk_session_open(g, NULL, &empty));
  CHECK_CODE(yk_saver_save(s, empty, 1, 0, NULL), YK_EINVAL, "variable v");
  yk_session_close(empty);
  yk_graph_free(g);
  CHECK_INT(count_files(".safetensors"), 0);
  CHECK_OK(save(s, 1));
  CHECK_OK(yk_saver_close(s));
  CHECK_OK(yk_saver_open(folder, NULL, &s));         /* the lock went with it */
  CHECK_OK(yk_saver_close(s));
}

static void test_keeps(void **state) {
  yk_saver *s = open_saver(2);
  (void)state;
  for (int i = 1; i <= 4; i++) CHECK_OK(save(s, i * 10));
  CHECK_INT(count_files(".safetensors"), 2);
  assert_true(has_file("ckpt-30.safetensors") && has_file("ckpt-40.safetensors"));
  CHECK_OK(yk_saver_close(s));
  s = open_saver(1);                                 /* fewer from now on */
  CHECK_OK(save(s, 50));
  CHECK_INT(count_files(".safetensors"), 1);
  CHECK_OK(save(s, 50));                             /* once more the same step: the old file is not touched before */
  assert_true(has_file("ckpt-50-2.safetensors"));
  CHECK_INT(count_files(".safetensors"), 1);
  CHECK_OK(yk_saver_close(s));
  s = open_saver(-1);
  for (int i = 6; i <= 9; i++) CHECK_OK(save(s, i * 10));
  CHECK_INT(count_files(".safetensors"), 5);
  CHECK_OK(yk_saver_close(s));
  expect_latest(90, "kept");
}

static yk_ckpt_entry entry(int64_t step, int64_t saved) {
  yk_ckpt_entry e = { .step = step, .saved = saved };
  snprintf(e.file, sizeof e.file, "ckpt-%lld.safetensors", (long long)step);
  return e;
}

/* One an hour for ten hours, two kept, one in three hours for good: 0 goes, then 3, 6 and 9 would go and stay. */
static void test_keeps_some_for_good(void **state) {
  yk_manifest m = { 0 };
  int64_t gone_at[16] = { 0 };
  uint32_t gone = 0;
  (void)state;
  for (int64_t h = 0; h <= 10; h++) {
    yk_ckpt_entry e = entry(h + 1, 1700000000 + h * 3600);
    CHECK_OK(yk__manifest_append(&m, &e));
    uint32_t k = yk__manifest_retire(&m, 2, 3);
    for (uint32_t i = 0; i < k; i++) gone_at[gone++] = m.entry[m.n + i].step - 1;
  }
  static const int64_t want[] = { 0, 1, 2, 4, 5, 7, 8 };
  CHECK_INT(gone, 7);
  for (uint32_t i = 0; i < gone; i++) CHECK_INT(gone_at[i], want[i]);
  CHECK_INT(m.entry[0].step - 1, 3);
  assert_true(m.entry[0].kept && m.entry[1].kept);
  CHECK_INT(m.entry[1].step - 1, 6);
  yk__manifest_free(&m);
}

/* ---- in the background ---- */

static void test_in_background(void **state) {
  yk_saver *s = open_saver(3);
  yk_saver_report r;
  (void)state;
  for (int i = 1; i <= 8; i++) {
    net_set(&n, i);
    CHECK_OK(yk_saver_begin(s, n.s, i, 0, NULL));
    net_set(&n, 500);                                /* training goes on */
    yk_code rc = yk_saver_poll(s, &r);
    assert_true(rc == YK_EBUSY || rc == YK_OK);
  }
  CHECK_OK(yk_saver_wait(s, &r));
  assert_true(r.step == 8 || r.step == -1);
  CHECK_OK(yk_saver_close(s));
  CHECK_INT(count_files(".safetensors"), 3);
  expect_latest(8, "in the background");
}

/* A failure is told by wait, by the next begin, or by close; the save after it works. */
static void test_failure_in_background(void **state) {
  yk_saver *s = open_saver(3);
  yk_saver_report r;
  (void)state;
  CHECK_OK(save(s, 1));
  net_set(&n, 2);
  watch_call(1, ENOSPC, "write");
  CHECK_OK(yk_saver_begin(s, n.s, 2, 0, NULL));
  CHECK_CODE(yk_saver_wait(s, &r), YK_EIO, "ckpt-2.safetensors' cannot be written: No space left");
  CHECK_INT(r.step, 2);
  CHECK_OK(yk_saver_wait(s, &r));
  watch_call(1, EIO, "fsync");
  CHECK_OK(yk_saver_begin(s, n.s, 2, 0, NULL));
  CHECK_CODE(yk_saver_begin(s, n.s, 3, 0, NULL), YK_EIO, "ckpt-2.safetensors");
  CHECK_OK(yk_saver_begin(s, n.s, 2, 0, NULL));
  CHECK_OK(yk_saver_wait(s, &r));
  expect_latest(2, "after failures");
  watch_call(1, EROFS, "open");
  CHECK_OK(yk_saver_begin(s, n.s, 4, 0, NULL));
  CHECK_CODE(yk_saver_close(s), YK_EIO, "Read-only file system");
  yk__disk_watch(NULL);
  CHECK_INT(count_files(".safetensors"), 2);
  CHECK_INT(count_files(".tmp"), 0);
  expect_latest(2, "after the last failure");
}

/* ---- every call fails, every call is the last ---- */

static void test_each_call_fails(void **state) {
  (void)state;
  int calls = 1;
  for (int i = 1; i <= calls; i++) {
    folder_empty(NULL);
    yk_saver *s = open_saver(2);
    for (int k = 1; k <= 3; k++) CHECK_OK(save(s, k));
    watch_call(i, ENOSPC, NULL);
    yk_code rc = save(s, 4);
    if (calls_seen() > calls) calls = calls_seen();
    yk__disk_watch(NULL);
    if (rc != YK_OK) yk_error_clear();
    CHECK_INT(count_files(".tmp"), 0);
    expect_latest(rc == YK_OK ? 4 : 3, "after a failed call");
    if (count_files(".safetensors") > 3) fail_msg("call %d: %d checkpoints", i, count_files(".safetensors"));
    CHECK_OK(save(s, 5));
    expect_latest(5, "after the next save");
    CHECK_OK(yk_saver_close(s));
  }
  assert_true(calls >= 14);                          /* room, 3 writes and 5 more for the file, 1 and 5 for the list, one removal */
}

/* A child is killed before its i-th call; the folder then has step 3 or 4, and the next saver finds its way. */
static bool killed_at(int i) {
  int status = 0;
  folder_empty(NULL);
  yk_saver *s = open_saver(2);
  for (int k = 1; k <= 3; k++) CHECK_OK(save(s, k));
  CHECK_OK(yk_saver_close(s));
  net_set(&n, 4);
  pid_t pid = fork();
  if (pid == 0) {
    watch_call(i, 0, NULL);
    s = open_saver(2);
    if (yk_saver_save(s, n.s, 4, 0, NULL) != YK_OK || yk_saver_close(s) != YK_OK) _exit(1);
    _exit(0);
  }
  CHECK_INT(waitpid(pid, &status, 0), pid);
  bool killed = WIFSIGNALED(status);
  if (killed) CHECK_INT(WTERMSIG(status), SIGKILL);
  else CHECK_INT(WEXITSTATUS(status), 0);
  return killed;
}

static void test_killed_at_each_call(void **state) {
  int old = 0, fresh = 0;
  (void)state;
  for (int i = 1;; i++) {
    bool killed = killed_at(i);
    yk_checkpoint *c;
    CHECK_OK(yk_checkpoint_latest(folder, &c));
    int64_t step = yk_checkpoint_step(c);
    yk_checkpoint_close(c);
    if (step != 4 && (!killed || step != 3)) fail_msg("killed before call %d: the newest is of step %lld", i, (long long)step);
    expect_latest(step, "killed");
    old += step == 3;
    fresh += step == 4;
    yk_saver *s = open_saver(2);                     /* whatever was left unfinished goes */
    CHECK_INT(count_files(".tmp"), 0);
    CHECK_OK(save(s, 5));
    CHECK_INT(count_files(".safetensors"), 2);
    CHECK_OK(yk_saver_close(s));
    expect_latest(5, "gone on");
    if (!killed) break;
  }
  assert_true(old >= 5 && fresh >= 5);
}

/* ---- room ---- */

static void test_room(void **state) {
  yk_saver *s = open_saver(3);
  struct rlimit before, tight;
  (void)state;
  CHECK_OK(yk_saver_check(s, n.s, 0));
  CHECK_OK(yk_saver_check(s, n.s, 1));
  watch_call(1, EIO, "statvfs");
  CHECK_CODE(yk_saver_check(s, n.s, 2), YK_EIO, "the free space is not known");
  yk__disk_watch(NULL);
  CHECK_OK(save(s, 1));
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = 450;                              /* room for the list, not for a checkpoint */
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
  yk_code rc = yk_saver_check(s, n.s, 1), rc2 = save(s, 2);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK_INT(rc, YK_EIO);
  CHECK_CODE(rc2, YK_EIO, "(ulimit -f)");
  CHECK_INT(count_files(".tmp"), 0);
  expect_latest(1, "limited");
  CHECK_OK(save(s, 2));
  CHECK_OK(yk_saver_close(s));
}

/* A folder that nobody may write to; for root, who may anyway, one that cannot be written to at all. */
static void test_read_only(void **state) {
  yk_saver *s = open_saver(3);
  (void)state;
  CHECK_OK(save(s, 1));
  CHECK_OK(yk_saver_close(s));
  CHECK_INT(chmod(folder, 0555), 0);
  expect_latest(1, "reading needs no right to write");
  if (geteuid() != 0) {
    CHECK_CODE(yk_saver_open(in_folder("deeper"), NULL, &s), YK_EIO, "deeper");
  } else {
    CHECK_CODE(yk_saver_open("/proc/self/fdinfo", NULL, &s), YK_EIO, "/proc/self/fdinfo/lock");
  }
  CHECK_INT(chmod(folder, 0755), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_round_trip, folder_empty), cmocka_unit_test_setup(test_refuses, folder_empty),
    cmocka_unit_test_setup(test_keeps, folder_empty), cmocka_unit_test_setup(test_keeps_some_for_good, folder_empty),
    cmocka_unit_test_setup(test_in_background, folder_empty), cmocka_unit_test_setup(test_failure_in_background, folder_empty),
    cmocka_unit_test_setup(test_each_call_fails, folder_empty), cmocka_unit_test_setup(test_killed_at_each_call, folder_empty),
    cmocka_unit_test_setup(test_room, folder_empty), cmocka_unit_test_setup(test_read_only, folder_empty),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
