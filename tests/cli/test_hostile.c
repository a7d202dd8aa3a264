/*
 * The command in a hostile place: paths with line feeds and markup in them, disks that are full, files that are too large,
 * weights that are cut off, and arguments thrown together at random. Whatever happens is one line and a status that tells the
 * truth; files are whole or not there.
 */
#include "run_yoke.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/fuzz.h"

enum { RECORD = 3073 };

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 20, 10);
  return rc;
}

/* ---- what is quoted ------------------------------------------------------------------------------------------- */

#define ODD "a\nb\x1b[31m\tc"

static void test_one_line(void **state) {
  (void)state;
  FAILS(1, "a?b?[31m?c", "train", "mlp", "--data", ODD, "--out", "never");
  FAILS(1, "/proc/a?b", "train", "mlp", "--data", "set", "--out", "/proc/" ODD);
  FAILS(1, "absent/a?b", "train", "mlp", "--data", "set", "--out", "t", "--trace", "absent/" ODD);
  FAILS(1, "a?b?[31m?c/weights.safetensors", "evaluate", "mlp", "--data", "set", "--out", ODD);
  FAILS(2, "a?b?[31m?c", "train", ODD);
  FAILS(2, "a?b?[31m?c", "train", "mlp", "--" ODD);
  FAILS(2, "a?b?[31m?c", "train", "mlp", "--devices", ODD);
  FAILS(2, "a?b?[31m?c", "train", "mlp", "--batch", ODD);
  setenv("YOKE_CORES", ODD, 1);
  FAILS(2, "YOKE_CORES=a?b?[31m?c", "devices");
  setenv("YOKE_CORES", "1", 1);
  setenv("YOKE_DEVICES", ODD, 1);
  FAILS(2, "a?b?[31m?c", "train", "mlp");
  unsetenv("YOKE_DEVICES");
  assert_false(exists("never"));
}

/* A path as long as the command takes gives a line that is not longer than a screen. */
static void test_long_paths(void **state) {
  char text[3900];
  yoke_result r;
  (void)state;
  memset(text, 'p', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  YOKE(&r, "train", "mlp", "--data", text);
  CHECK_INT(r.status, 1);
  assert_true(strlen(r.err) < 5100 && strchr(r.err, '\n') == r.err + strlen(r.err) - 1);
  yoke_free(&r);
}

/* A run in a folder whose name is markup: its JSON is JSON, its page shows the name and does not obey it. */
static void test_odd_folder(void **state) {
  static const char name[] = "<script>alert(\"1\")&amp;'\n\x80\xC3\xA9";
  char path[256];
  (void)state;
  CHECK_INT(symlink("set", name), 0);
  char *out = SUCCEEDS("train", "mlp", "--data", name, "--steps", "4", "--json", "--out", "<b>&\"odd\"\n", "--trace", "<i>");
  check_json(out, true);
  free(out);
  static const char *const files[] = { "settings.json", "metrics.jsonl" };
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "<b>&\"odd\"\n/%s", files[i]);
    char *text = read_file(path);
    assert_non_null(text);
    check_json(text, i == 1);
    free(text);
  }
  char *page = read_file("<b>&\"odd\"\n/report.html");
  assert_non_null(page);
  assert_null(strstr(page, "<script"));
  assert_null(strstr(page, "<b>"));
  assert_non_null(strstr(page, "&lt;script&gt;alert(\\&quot;1\\&quot;)&amp;amp;"));
  free(page);
  char *trace = read_file("<i>");
  assert_non_null(trace);
  check_json(trace, false);
  free(trace);
  unlink(name);
}

/* ---- data and weights ----------------------------------------------------------------------------------------- */

static void test_oversized_data(void **state) {
  (void)state;
  write_cifar("huge", 2, 2);
  if (truncate("huge/data_batch_1.bin", (off_t)1000001 * RECORD) != 0) {
    print_message("no sparse files of 3 GB here: %s\n", strerror(errno));
    skip();
  }
  FAILS(1, "1000001 records", "train", "mlp", "--data", "huge", "--out", "never");
  CHECK_INT(truncate("huge/data_batch_1.bin", 2 * RECORD), 0);
  CHECK_INT(unlink("huge/test_batch.bin"), 0);
  CHECK_INT(mkfifo("huge/test_batch.bin", 0600), 0);
  FAILS(1, "not a regular file", "train", "mlp", "--data", "huge", "--out", "never");
  assert_false(exists("never"));
}

static void test_cut_weights(void **state) {
  (void)state;
  free(SUCCEEDS("train", "mlp", "--data", "set", "--steps", "1", "--quiet", "--out", "w"));
  struct stat s;
  CHECK_INT(stat("w/weights.safetensors", &s), 0);
  static const double part[] = { 0.99999999, 0.5, 1e-4, 1e-6, 0 };
  for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
    CHECK_INT(truncate("w/weights.safetensors", (off_t)(part[i] * (double)s.st_size)), 0);
    FAILS(1, "w/weights.safetensors'", "evaluate", "mlp", "--data", "set", "--out", "w");
  }
}

/* Memory limits that the network does not fit into: told, and no trace of the run but its settings. */
static void test_too_little_memory(void **state) {
  (void)state;
  FAILS(1, "step 1: /job:localhost/replica:0/task:0/device:GPU:0: the step does not fit. It needs ", "train", "mlp", "--data",
        "set", "--out", "small", "--trace", "small.json", "--virtual-gpus", "1:1MiB", "--devices", "gpu:0", "--quiet");
  assert_false(exists("small.json"));
  assert_false(exists("small/weights.safetensors"));
  assert_false(exists("small/report.html"));
}

/* ---- full disks ------------------------------------------------------------------------------------------------- */

static int temporary_files(const char *folder) {
  DIR *d = opendir(folder);
  int n = 0;
  if (d == NULL) return 0;
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += strstr(e->d_name, ".tmp") != NULL;
  closedir(d);
  return n;
}

/* What a run leaves that could not write its weights. */
static void check_leftovers(const char *folder) {
  char path[256];
  snprintf(path, sizeof path, "%s/weights.safetensors", folder);
  assert_false(exists(path));
  CHECK_INT(temporary_files(folder), 0);
  snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
  char *text = read_file(path);
  if (text == NULL) return;
  if (text[0]) check_json(text, true);
  free(text);
}

static yoke_result run_quiet(const char *folder) {
  yoke_result r;
  YOKE(&r, "train", "mlp", "--data", "set", "--steps", "40", "--interval", "0", "--quiet", "--out", folder);
  return r;
}

static void expect_failure(yoke_result *r, const char *text) {
  size_t n = 0;
  for (const char *p = r->err; *p; p++) n += *p == '\n';
  if (r->status != 1 || n != 1 || !strstr(r->err, text)) fail_msg("status %d, stderr \"%s\"; expected 1 and one line with \"%s\"",
                                                                  r->status, r->err, text);
  yoke_free(r);
}

/* Anyone can have this one: a limit on the size of files. */
static void test_file_size_limit(void **state) {
  struct rlimit before, tight;
  (void)state;
  static const rlim_t limits[] = { 1 << 20, 3000, 20,
                                   0 };       /* weights do not fit; nor all metrics; nor one line; nor the settings */
  static const char *const names[] = { "l0", "l1", "l2", "l3" };
  signal(SIGXFSZ, SIG_IGN);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (int i = 0; i < 2; i++) {
    tight = before;
    tight.rlim_cur = limits[i];
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
    yoke_result r = run_quiet(names[i]);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_failure(&r, "File too large");
    check_leftovers(names[i]);
  }
  signal(SIGXFSZ, SIG_DFL);
}

static bool small_disk(const char *options) {
  mkdir("disk", 0777);
  if (mount("tmpfs", "disk", "tmpfs", 0, options) == 0) return true;
  print_message("SKIPPED: a full disk needs the right to mount one: %s\n", strerror(errno));
  return false;
}

static void test_full_disk(void **state) {
  (void)state;
  if (!small_disk("size=1m")) skip();
  yoke_result r = run_quiet("disk/run");
  int left = umount("disk") == 0 && mount("tmpfs", "disk", "tmpfs", 0, "size=4k,nr_inodes=8") == 0;
  expect_failure(&r, "No space left on device");
  if (!left) fail_msg("the disk cannot be made anew: %s", strerror(errno));
  write_file("disk/fill", (const char[4096]){ 1 }, 4096);
  yoke_result full = run_quiet("disk/run");
  bool settings = exists("disk/run/settings.json"), weights = exists("disk/run/weights.safetensors");
  int temporary = temporary_files("disk/run");
  CHECK_INT(umount("disk"), 0);
  expect_failure(&full, "--out: 'disk/run/settings.json' cannot be written: No space left on device");
  assert_false(settings);
  assert_false(weights);
  CHECK_INT(temporary, 0);
}

static void test_full_disk_leftovers(void **state) {
  (void)state;
  if (!small_disk("size=64k")) skip();
  yoke_result r = run_quiet("disk/run");
  bool weights = exists("disk/run/weights.safetensors");
  int temporary = temporary_files("disk/run");
  char *metrics = read_file("disk/run/metrics.jsonl"), *settings = read_file("disk/run/settings.json");
  CHECK_INT(umount("disk"), 0);
  expect_failure(&r, "No space left on device");
  assert_false(weights);
  CHECK_INT(temporary, 0);
  assert_non_null(settings);
  check_json(settings, false);
  if (metrics) check_json(metrics, true);
  free(metrics);
  free(settings);
}

static void test_full_output(void **state) {
  static const char *const commands[] = { "ops", "params", "devices", "--help" };
  (void)state;
  if (access("/dev/full", W_OK) != 0) { print_message("SKIPPED: there is no /dev/full\n"); skip(); }
  char line[4400];
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    snprintf(line, sizeof line, "'%s/yoke' %s > /dev/full 2> said", getenv("YOKE_BUILD_DIR"), commands[i]);
    const char *argv[] = { "sh", "-c", line, NULL };
    int status = run_program(argv, NULL, NULL);
    char *said = read_file("said");
    if (status != 1 || !strstr(said, "standard output")) fail_msg("yoke %s: status %d, \"%s\"", commands[i], status, said);
    free(said);
  }
}

/* ---- arguments at random ------------------------------------------------------------------------------------------ */

/* All of them are refused or harmless: "train" and "evaluate" never find their data. */
static void test_random_arguments(void **state) {
  static const char *const words[] = { "train", "evaluate", "explain", "ops", "devices", "params", "mlp", "cifar10", "--batch",
                                       "8", "--batch=0", "--devices", "/gpu:-1", "cpu:0",
                                       "--virtual-gpus", "2:64MiB", "--json", "--quiet", "--", "--seed", "-7", "--lr", "1e-3",
                                         "--lr=nan", "--steps=3", "--out", "x", "--trace=y",
                                       "--soft-placement", "--no-gradient", "", "-", "--interval", "0", "--epochs", "0.5",
                                         "--bogus", "\xFF\xFE" };
  fuzz f = { 21 };
  uint64_t rounds = fuzz_rounds(60), status[4] = { 0 };
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    const char *argv[16] = { "yoke" };
    uint32_t n = 1 + fuzz_below(&f, 8);
    argv[1] = words[fuzz_below(&f, 8) ? fuzz_below(&f, 6) : fuzz_below(&f, sizeof words / sizeof words[0])];
    for (uint32_t i = 2; i <= n; i++) argv[i] = words[fuzz_below(&f, sizeof words / sizeof words[0])];
    bool reads = !strcmp(argv[1], "train") || !strcmp(argv[1], "evaluate");
    if (reads) { argv[++n] = "--data"; argv[++n] = "no-such-folder"; }
    yoke_result r;
    yoke_run(&r, argv);
    size_t lines = 0;
    for (const char *p = r.err; *p; p++) lines += *p == '\n';
    bool good = r.status == 0 ? lines == 0 && !reads : r.status >= 1 && r.status <= 3 && lines == 1 && !strncmp(r.err, "yoke", 4);
    if (!good) {
      for (uint32_t i = 0; i <= n; i++) print_error("'%s' ", argv[i]);
      fail_msg("round %llu: status %d, stderr %.1000s", (unsigned long long)round, r.status, r.err);
    }
    status[r.status]++;
    yoke_free(&r);
  }
  if (status[0] == 0 || status[2] == 0) fail_msg("%llu succeeded, %llu were refused", (unsigned long long)status[0],
                                                 (unsigned long long)status[2]);
  assert_false(exists("x"));
  assert_false(exists("y"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_line), cmocka_unit_test(test_long_paths), cmocka_unit_test(test_odd_folder),
      cmocka_unit_test(test_oversized_data),
    cmocka_unit_test(test_cut_weights), cmocka_unit_test(test_too_little_memory), cmocka_unit_test(test_file_size_limit),
      cmocka_unit_test(test_full_disk),
    cmocka_unit_test(test_full_disk_leftovers), cmocka_unit_test(test_full_output), cmocka_unit_test(test_random_arguments),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
