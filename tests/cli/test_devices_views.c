/*
 * `yoke devices` at work: topology, bench, watch, and a training that runs meanwhile; its JSON against the list of keys in
 * docs/devices.md. Measured numbers are held against zero, never against a time.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "run_yoke.h"

static int count(const char *text, const char *what) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, what)) != NULL; p++) n++;
  return n;
}

static void keep(const char *path, const char *text) {
  write_file(path, text, strlen(text));
}

/* ---- topology ------------------------------------------------------------------------------------------------------- */

static void test_topology(void **state) {
  (void)state;
  char *out = SUCCEEDS("devices", "--topology", "--virtual-gpus", "2:256MiB");
  if (count(out, "      peer") != 6 || count(out, "      self") != 3) fail_msg("%s", out);
  if (strstr(out, "\n/gpu:0 and /gpu:1 can train together: ") == NULL) fail_msg("%s", out);
  const char *speeds = strstr(out, "\nGB/s"), *row = speeds != NULL ? strstr(speeds, "\n/gpu:0 ") : NULL;
  double x[4];
  if (row == NULL || sscanf(row, "\n/gpu:0 %lf %lf %lf %lf", &x[0], &x[1], &x[2], &x[3]) != 4) fail_msg("%s", out);
  for (int i = 0; i < 4; i++)
    if (!(x[i] > 0 && x[i] < 1e5)) fail_msg("%g GB/s", x[i]);
  free(out);
  out = SUCCEEDS("devices", "--topology");
  if (strstr(out, "/cpu:0 is the only device: there is no pair\n") == NULL) fail_msg("%s", out);
  free(out);
}

static void test_topology_json(void **state) {
  (void)state;
  char *out = SUCCEEDS("devices", "--topology", "--json", "--virtual-gpus", "3:64MiB");
  check_json(out, false);
  CHECK_INT(count(out, "\"from\":"), 4 * 4 + 2 * 4);
  CHECK_INT(count(out, "\"exchange_100mb_ms\":"), 6);
  CHECK_INT(count(out, "\"together\":\"equal\""), 3);
  CHECK_INT(count(out, "\"together\":\"no\""), 3);
  for (const char *p = out; (p = strstr(p, "\"gigabytes_per_second\":")) != NULL; p++) {
    if (!(json_number(p, "gigabytes_per_second") > 0)) fail_msg("%.200s", p);
    if (!(json_number(p, "latency_us") > 0)) fail_msg("%.200s", p);
    if (!(json_number(p, "copies") >= 1)) fail_msg("%.200s", p);
  }
  keep("topology.json", out);
  free(out);
  out = SUCCEEDS("devices", "--topology", "--json", "--virtual-gpus", "1:1kB");       /* too small for any copy */
  check_json(out, false);
  assert_non_null(strstr(out, "\"gigabytes_per_second\":null"));
  assert_non_null(strstr(out, "\"exchange_100mb_ms\":null"));
  free(out);
}

/* ---- bench ---------------------------------------------------------------------------------------------------------- */

static void test_bench(void **state) {
  (void)state;
  char *out = SUCCEEDS("devices", "--bench", "--json", "--virtual-gpus", "1:256MiB");
  check_json(out, false);
  CHECK_INT(count(out, "\"rank\":"), 2);
  const char *bench = strstr(out, "\"bench\":");
  assert_non_null(bench);
  CHECK_INT(json_number(bench, "rank"), 1);
  CHECK_NEAR(json_number(bench, "of_the_fastest"), 1, 0);
  CHECK_INT(count(bench, "\"value\":"), 8);
  for (const char *p = bench; (p = strstr(p, "\"value\":")) != NULL; p++)
    if (!(json_number(p, "value") > 0) || !(json_number(p, "runs") >= 1)) fail_msg("%.200s", p);
  const char *first = strstr(bench, "\"training\":"), *second = strstr(first + 1, "\"training\":");
  if (!(json_number(first, "value") >= json_number(second, "value"))) fail_msg("the slower one comes first: %s", bench);
  CHECK_INT(json_number(first, "batch"), 128);
  keep("bench.json", out);
  free(out);
}

/* What cannot be measured is told, not 0. */
static void test_bench_reasons(void **state) {
  (void)state;
  setenv("YOKE_MEMORY_LIMIT", "1MiB", 1);
  char *out = SUCCEEDS("devices", "--bench");
  unsetenv("YOKE_MEMORY_LIMIT");
  if (strstr(out, "       -") == NULL || strstr(out, "/cpu:0, training step: ") == NULL) fail_msg("%s", out);
  free(out);
}

/* ---- watch ---------------------------------------------------------------------------------------------------------- */

static void test_watch(void **state) {
  (void)state;
  char *out = SUCCEEDS("devices", "--watch", "0.05", "--count", "3", "--virtual-gpus", "1:64MiB");
  CHECK_INT(count(out, "\n/cpu:0 "), 3);
  CHECK_INT(count(out, "\n/gpu:0 "), 3);
  if (strchr(out, '\033') != NULL) fail_msg("codes for a terminal in a file: %s", out);
  free(out);
  out = SUCCEEDS("devices", "--watch=0.05", "--count", "2", "--json");
  check_json(out, true);
  CHECK_INT(count(out, "\"version\":1"), 2);
  if (!(json_number(out, "interval") > 0)) fail_msg("%s", out);
  keep("watch.json", out);
  free(out);
}

static void test_watch_usage(void **state) {
  (void)state;
  FAILS(2, "--watch '0.001': expected a number from 0.05 to 86400", "devices", "--watch", "0.001");
  FAILS(2, "--count needs --watch", "devices", "--count", "2");
  FAILS(2, "exclude each other", "devices", "--watch", "--topology");
  FAILS(2, "exclude each other", "devices", "--bench", "--topology");
  FAILS(2, "unexpected argument 'x'", "devices", "--watch", "x");
  FAILS(2, "unknown option '--watch'", "train", "mlp", "--watch");
}

/* A child whose standard streams are a terminal of which we have the other end. */
static pid_t fork_on_terminal(int *ours) {
  int theirs;
  *ours = open_terminal(0, 0, &theirs);
  pid_t pid = fork();
  if (pid == 0) {
    setsid();
    for (int i = 0; i < 3; i++) dup2(theirs, i);
    alarm(60);
  }
  close(theirs);
  return pid;
}

/* Ctrl-C is how it ends: with success, the terminal as it was. */
static void test_watch_terminal(void **state) {
  char text[65536], program[4200];
  size_t n = 0;
  int terminal, status = 0;
  (void)state;
  snprintf(program, sizeof program, "%s/yoke", getenv("YOKE_BUILD_DIR"));
  pid_t pid = fork_on_terminal(&terminal);
  if (pid == 0) {
    execl(program, "yoke", "devices", "--watch", "0.05", (char *)NULL);
    _exit(127);
  }
  assert_true(pid > 0);
  bool sent = false;
  for (ssize_t got; n + 1 < sizeof text && (got = read(terminal, text + n, sizeof text - n - 1)) > 0;) {
    n += (size_t)got;
    text[n] = '\0';
    if (!sent && count(text, "\033[H\033[J") >= 3) {
      kill(pid, SIGINT);
      sent = true;
    }
  }
  text[n] = '\0';
  CHECK_INT(waitpid(pid, &status, 0), pid);
  close(terminal);
  if (status != 0 || strstr(text, "\033[?1049h\033[?25l") == NULL || n < 14 || strcmp(text + n - 14, "\033[?25h\033[?1049l") != 0)
    fail_msg("status 0x%x after %zu bytes: %s", (unsigned)status, n, n > 300 ? text + n - 300 : text);
}

/* ---- a training meanwhile ------------------------------------------------------------------------------------------- */

static void test_running_job(void **state) {
  static const char *const train[] = { "yoke", "train", "mlp", "--data", "set", "--batch", "8", "--steps", "1000000", "--quiet", "--out",
                                       "seen", "--virtual-gpus", "2:256MiB", "--devices", "gpu:0,gpu:1", NULL };
  (void)state;
  write_cifar("set", 80, 8);
  setenv("YOKE_MEMORY_FRACTION", "0.4", 1);
  setenv("YOKE_MEMORY_GROWTH", "1", 1);
  pid_t pid = yoke_start(train);
  unsetenv("YOKE_MEMORY_FRACTION");
  unsetenv("YOKE_MEMORY_GROWTH");
  char *out = NULL;
  const char *gpu = NULL;
  for (int i = 0; i < 600; i++) {                            /* until it trains */
    free(out);
    out = SUCCEEDS("devices", "--json", "--virtual-gpus", "2:256MiB");
    const char *jobs = strstr(out, "\"jobs\":");
    gpu = jobs != NULL ? strstr(jobs, "device:GPU:1\"") : NULL;
    if (gpu != NULL && json_number(gpu, "steps") >= 3) break;
    usleep(100000);
  }
  kill(pid, SIGTERM);
  yoke_result r;
  yoke_wait(pid, &r);
  if (gpu == NULL) fail_msg("the job was not seen: %s\n%s", out, r.err);
  check_json(out, false);
  CHECK_INT(json_number(strstr(out, "\"jobs\":"), "pid"), pid);
  assert_non_null(strstr(out, "\"command\":\"yoke train mlp\""));
  double total = json_number(gpu, "bytes_total"), limit = json_number(gpu, "bytes_limit"), held = json_number(gpu, "bytes_held");
  CHECK_NEAR(total, 256 << 20, 0);
  CHECK_NEAR(json_number(gpu, "fraction"), 0.4, 1e-9);
  if (strncmp(strstr(gpu, "\"growth\":"), "\"growth\":true", 13) != 0) fail_msg("%.600s", gpu);
  CHECK_NEAR(limit, floor(0.4 * total), 256);
  if (!(held > 0 && held <= limit && json_number(gpu, "bytes_in_use") <= held)) fail_msg("%.600s", gpu);
  CHECK_INT(json_number(strstr(out, "\"processes\":[{"), "pid"), pid);
  keep("job.json", out);
  free(out);
  yoke_free(&r);
}

/* What only devices of other kinds have. */
static void keep_others(void) {
  static const char machine[] = "{\"format\":\"yoke-machine\",\"version\":1,\"devices\":[{\"name\":\"/cpu:0\",\"bytes_limit\":8589934592},"
                                "{\"name\":\"/gpu:0\",\"driver\":\"cuda\",\"model\":\"a card\",\"bytes_limit\":1000000}]}";
  keep("small.machine", machine);
  char *out = SUCCEEDS("devices", "--json", "--rehearse", "small.machine");
  check_json(out, false);
  assert_non_null(strstr(out, "\"jobs\":[]"));
  keep("rehearsed.json", out);
  free(out);
  out = SUCCEEDS("devices", "--json", "--virtual-gpus", "1:64MiB", "--split", "gpu:0=32MiB,32MiB");
  keep("split.json", out);
  free(out);
}

/* Every key is listed, and everything that is listed exists. The outputs of the tests above. */
static void test_keys(void **state) {
  char script[4200], page[4200], *text = NULL;
  (void)state;
  snprintf(script, sizeof script, "%s/tests/cli/devices_keys.py", getenv("YOKE_SOURCE_DIR"));
  snprintf(page, sizeof page, "%s/docs/devices.md", getenv("YOKE_SOURCE_DIR"));
  const char *argv[] = { "python3", script, page, "topology.json", "bench.json", "watch.json", "job.json", "rehearsed.json",
                         "split.json", NULL };
  keep_others();
  int status = run_program(argv, NULL, &text);
  if (status != 0) fail_msg("docs/devices.md: %s", text);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_topology), cmocka_unit_test(test_topology_json), cmocka_unit_test(test_bench),
    cmocka_unit_test(test_bench_reasons), cmocka_unit_test(test_watch), cmocka_unit_test(test_watch_usage),
    cmocka_unit_test(test_watch_terminal), cmocka_unit_test(test_running_job), cmocka_unit_test(test_keys),
  };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
