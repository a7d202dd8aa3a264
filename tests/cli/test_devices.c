/*
 * Choice of devices at the command line: every command of docs/devices.md prints what the page shows, every row of its table
 * of CUDA_VISIBLE_DEVICES holds, an absent GPU tells the libraries tried, and soft placement gives one notice.
 *
 * The libraries of a GPU's vendor are small fakes that the test compiles, so that each answer of theirs can be seen.
 */
#include <sys/stat.h>
#include <unistd.h>
#include "run_yoke.h"

static char *page(void) {
  char path[4096];
  const char *source = getenv("YOKE_SOURCE_DIR");
  if (source == NULL) fail_msg("YOKE_SOURCE_DIR is not set");
  snprintf(path, sizeof path, "%s/docs/devices.md", source);
  char *text = read_file(path);
  if (text == NULL) fail_msg("there is no %s", path);
  return text;
}

/* Ends the line at *p, steps over it and returns it; NULL at the end. */
static char *next_line(char **p) {
  char *line = *p, *end = strchr(line, '\n');
  if (*line == '\0') return NULL;
  *p = end != NULL ? end + 1 : line + strlen(line);
  if (end != NULL) *end = '\0';
  return line;
}

/* Does `line` look like `pattern`, where "..." stands for anything? */
static bool looks_like(const char *line, const char *pattern) {
  for (bool floating = false;; floating = true) {
    const char *gap = strstr(pattern, "...");
    size_t n = gap != NULL ? (size_t)(gap - pattern) : strlen(pattern);
    char piece[512];
    if (n >= sizeof piece) return false;
    snprintf(piece, sizeof piece, "%.*s", (int)n, pattern);
    if (gap == NULL && floating) return strlen(line) >= n && strcmp(line + strlen(line) - n, piece) == 0;
    const char *at = floating ? strstr(line, piece) : strncmp(line, piece, n) == 0 ? line : NULL;
    if (at == NULL || (gap == NULL && at[n] != '\0')) return false;
    if (gap == NULL) return true;
    line = at + n;
    pattern = gap + 3;
  }
}

static void test_patterns(void **state) {
  (void)state;
  assert_true(looks_like("abc", "abc"));
  assert_true(looks_like("abc", "a...c"));
  assert_true(looks_like("abc", "..."));
  assert_true(looks_like("", "..."));
  assert_true(looks_like("a b c d", "a ... c..."));
  assert_false(looks_like("abc", "ab"));
  assert_false(looks_like("abc", "b..."));
  assert_false(looks_like("abc", "...b"));
  assert_false(looks_like("abc", "a...d"));
}

/* Run one command in a shell and hold what it says against the lines at *p, up to the next command or the block's end. */
static void check_command(const char *command, char **p) {
  char script[2048], *out = NULL;
  snprintf(script, sizeof script, "exec 2>&1\n%s", command);
  const char *argv[] = { "sh", "-c", script, NULL };
  run_program(argv, NULL, &out);
  char *rest = out, *got;
  while (strncmp(*p, "$ ", 2) != 0 && strncmp(*p, "```", 3) != 0) {
    char *want = next_line(p);
    if (want == NULL) fail_msg("the block of \"%s\" does not end", command);
    got = next_line(&rest);
    if (got == NULL || !looks_like(got, want))
      fail_msg("%s\n  printed:  %s\n  the page: %s", command, got != NULL ? got : "(nothing more)", want);
  }
  if ((got = next_line(&rest)) != NULL) fail_msg("%s\n  printed more than the page shows: %s", command, got);
  free(out);
}

static void test_page(void **state) {
  char *text = page(), *p = text, *line;
  bool inside = false;
  int n = 0;
  (void)state;
  while ((line = next_line(&p)) != NULL) {
    if (strncmp(line, "```", 3) == 0) inside = strcmp(line, "```console") == 0;
    if (!inside || strncmp(line, "$ ", 2) != 0) continue;
    check_command(line + 2, &p);
    n++;
  }
  if (n < 10) fail_msg("%d commands were run, there should be at least 10", n);
  free(text);
}

/* The number in a cell: "GPU 1" -> 1, "-" -> -1. Steps over the cell. */
static int cell(char **p) {
  int number = -1;
  char *bar = strchr(*p, '|');
  if (bar == NULL) fail_msg("a row of the table ends early: %s", *p);
  if (strncmp(*p, " GPU ", 5) == 0) number = (int)strtol(*p + 5, NULL, 10);
  else if (strncmp(*p, " - ", 3) != 0) fail_msg("neither a GPU nor - in the table: %s", *p);
  *p = bar + 1;
  return number;
}

static int physical(const char **json) {
  const char *p = strstr(*json, "\"physical\":");
  if (p == NULL) return -1;
  *json = p + 11;
  return (int)strtol(p + 11, NULL, 10);
}

static void test_table(void **state) {
  char *text = page(), *p = text, *line;
  int rows = 0;
  (void)state;
  while ((line = next_line(&p)) != NULL) {
    bool unset = strncmp(line, "| not set |", 11) == 0;
    if (!unset && strncmp(line, "| `\"", 4) != 0) continue;
    char *value = line + 4, *end = strstr(value, "\"` |"), *cells = unset ? line + 11 : end + 4;
    if (!unset && end == NULL) fail_msg("a row without its value: %s", line);
    if (!unset) {
      *end = '\0';
      setenv("CUDA_VISIBLE_DEVICES", value, 1);
    }
    int want[2];
    for (int i = 0; i < 2; i++) want[i] = cell(&cells);
    setenv("YOKE_VERBOSE", "1", 1);                    /* without the notices on lists that end early */
    char *out = SUCCEEDS("devices", "--json", "--virtual-gpus", "2");
    unsetenv("YOKE_VERBOSE");
    const char *json = out;
    for (int i = 0; i < 3; i++) {
      int got = physical(&json), expected = i < 2 ? want[i] : -1;
      if (got != expected) fail_msg("CUDA_VISIBLE_DEVICES=%s: gpu:%d is GPU %d, the page says %d", unset ? "(unset)" : value, i, got, expected);
    }
    free(out);
    unsetenv("CUDA_VISIBLE_DEVICES");
    rows++;
  }
  if (rows < 15) fail_msg("%d rows, there should be at least 15", rows);
  free(text);
}

/* ---- an absent GPU ----------------------------------------------------------------------------------------------- */

static int count(const char *text, char c) {
  int n = 0;
  for (; *text; text++) n += *text == c;
  return n;
}

static void make_library(const char *folder, const char *code) {
  char path[256], source[256];
  mkdir(folder, 0777);
  snprintf(source, sizeof source, "%s/fake.c", folder);
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
  write_file(source, code, strlen(code));
  const char *argv[] = { "cc", "-shared", "-fPIC", "-o", path, source, NULL };
  CHECK_INT(run_program(argv, NULL, NULL), 0);
}

static void test_libraries(void **state) {
  static const struct { const char *code, *says; } fakes[] = {
    { "int cuInit(unsigned f) { return 0; } int cuDeviceGetCount(int *n) { *n = 2; return 0; }", "libcuda.so.1: found, sees 2 GPUs, but" },
    { "int cuInit(unsigned f) { return 0; } int cuDeviceGetCount(int *n) { *n = 0; return 0; }", "libcuda.so.1: found, but it sees no GPU" },
    { "int cuInit(unsigned f) { return 100; } int cuDeviceGetCount(int *n) { return 3; }", "libcuda.so.1: found, but it fails with code 100" },
    { "int nothing;", "libcuda.so.1: found, but it lacks cuInit" },
    { "int cuInit(unsigned f) { __builtin_trap(); } int cuDeviceGetCount(int *n) { return 0; }", "libcuda.so.1: found, but it crashes" },
  };
  const char *before = getenv("LD_LIBRARY_PATH");
  char *old = before ? strdup(before) : NULL;
  (void)state;
  for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++) {
    char folder[64], path[4200], here[4096];
    snprintf(folder, sizeof folder, "fake%zu", i);
    make_library(folder, fakes[i].code);
    if (getcwd(here, sizeof here) == NULL) fail_msg("where are we?");
    snprintf(path, sizeof path, "%s/%s", here, folder);
    setenv("LD_LIBRARY_PATH", path, 1);
    FAILS(3, fakes[i].says, "train", "mlp", "--devices", "gpu:0");
  }
  if (old) setenv("LD_LIBRARY_PATH", old, 1);
  else unsetenv("LD_LIBRARY_PATH");
  free(old);
}

static void test_absent(void **state) {
  (void)state;
  FAILS(3, "no usable GPU for /gpu:0; there is cpu:0 (tried libcuda.so.1: ", "train", "mlp", "--devices", "gpu:0");
  FAILS(3, "libnvidia-ml.so.1: ", "evaluate", "mlp", "--devices", "gpu:0", "--out", "nowhere");
  FAILS(3, "there is cpu:0, gpu:0, gpu:1 (tried", "explain", "mlp", "--devices", "gpu:2", "--virtual-gpus", "2");
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  FAILS(3, "CUDA_VISIBLE_DEVICES is \"-1\"", "explain", "mlp", "--devices", "gpu:0", "--virtual-gpus", "2");
  unsetenv("CUDA_VISIBLE_DEVICES");
  setenv("YOKE_VISIBLE_DEVICES", "1", 1);
  FAILS(3, "visible_devices is \"1\"", "explain", "mlp", "--devices", "gpu:1", "--virtual-gpus", "2");
  unsetenv("YOKE_VISIBLE_DEVICES");
}

/* A list that ends early is told once, though the command opens several sessions. */
static void test_cut_list(void **state) {
  yoke_result r;
  (void)state;
  setenv("CUDA_VISIBLE_DEVICES", "0,99,1", 1);
  YOKE(&r, "explain", "mlp", "--batch", "8", "--virtual-gpus", "2", "--log-device-placement");
  unsetenv("CUDA_VISIBLE_DEVICES");
  if (r.status != 0 || count(r.err, '\n') != 1 || !strstr(r.err, "\"99\" is no GPU, which ends the list; 1 of 2 GPUs can be seen"))
    fail_msg("status %d, stderr: %s", r.status, r.err);
  yoke_free(&r);
}

/* One line, however many devices are absent and operations there are. */
static void test_one_notice(void **state) {
  static const struct { const char *devices, *gpus, *names, *instead; } table[] = {
    { "gpu:0", NULL, "no usable GPU for /gpu:0; ", "runs on /cpu:0 instead" },
    { "gpu:0,gpu:1", NULL, "no usable GPU for /gpu:0, /gpu:1; ", "runs on /cpu:0 instead" },
    { "gpu:5", "2", "no usable GPU for /gpu:5; ", "runs on /gpu:0 instead" },
    { "gpu:1,gpu:7", "2", "no usable GPU for /gpu:7; ", "runs on /gpu:0 instead" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yoke_result r;
    if (table[i].gpus) setenv("YOKE_VIRTUAL_GPUS", table[i].gpus, 1);
    YOKE(&r, "explain", "mlp", "--batch", "8", "--soft-placement", "--devices", table[i].devices);
    unsetenv("YOKE_VIRTUAL_GPUS");
    if (r.status != 0 || count(r.err, '\n') != 1 || !strstr(r.err, table[i].names) || !strstr(r.err, table[i].instead))
      fail_msg("--devices %s: status %d, stderr: %s", table[i].devices, r.status, r.err);
    yoke_free(&r);
  }
  write_cifar("set", 20, 10);
  yoke_result r;
  YOKE(&r, "train", "mlp", "--data", "set", "--steps", "1", "--batch", "4", "--out", "soft", "--devices", "gpu:0", "--soft-placement");
  if (r.status != 0 || count(r.err, '\n') != 1) fail_msg("status %d, stderr: %s", r.status, r.err);
  if (!strstr(r.out, "mlp on /cpu:0 (for the absent /gpu:0), ")) fail_msg("%s", r.out);
  yoke_free(&r);
  free(SUCCEEDS("train", "mlp", "--data", "set", "--steps", "1", "--batch", "4", "--out", "quiet", "--devices", "gpu:0", "--soft-placement",
                "--quiet"));
}

static void test_auto(void **state) {
  (void)state;
  char *out = SUCCEEDS("train", "mlp", "--data", "set", "--steps", "1", "--batch", "4", "--out", "a", "--devices", "auto");
  if (!strstr(out, "mlp on /cpu:0 (chosen by auto: no usable GPU, tried libcuda.so.1: ")) fail_msg("%s", out);
  free(out);
  out = SUCCEEDS("train", "mlp", "--data", "set", "--steps", "1", "--batch", "4", "--out", "b", "--devices", "auto", "--virtual-gpus", "2");
  if (!strstr(out, "mlp on /gpu:0 /gpu:1 (virtual) (chosen by auto), ")) fail_msg("%s", out);
  free(out);
}

/* The commands of the page find this build's program. */
static int setup(void **state) {
  char path[8192];
  const char *build = getenv("YOKE_BUILD_DIR"), *old = getenv("PATH");
  int rc = yoke_setup(state);
  if (rc != 0) return rc;
  snprintf(path, sizeof path, "%.4000s:%.4000s", build, old != NULL ? old : "/usr/bin:/bin");
  setenv("PATH", path, 1);
  unsetenv("CUDA_DEVICE_ORDER");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_patterns), cmocka_unit_test(test_page), cmocka_unit_test(test_table), cmocka_unit_test(test_libraries),
    cmocka_unit_test(test_absent), cmocka_unit_test(test_cut_list), cmocka_unit_test(test_one_notice), cmocka_unit_test(test_auto),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
