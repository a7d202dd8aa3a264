/*
 * `yoke train --resume`: a run that was killed, stopped or finished goes on as if nothing had been: the same weights byte for byte,
 * the same metrics line by line. And all that it must refuse.
 */
#include "run_yoke.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <yoke/yoke.h>

#define NET "train", "cifar10", "--data", "set", "--batch", "6", "--interval", "0"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);                      /* teams of threads on a busy machine mostly wait for each other */
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

/* Of each line of progress or evaluation what does not depend on the clock: its beginning up to the accuracy, all in one text. */
static char *results(const char *path) {
  char *text = read_file(path), *to = text;
  if (text == NULL) fail_msg("%s is missing", path);
  for (char *line = text; *line != '\0';) {
    char *end = strchr(line, '\n'), *next = end != NULL ? end + 1 : line + strlen(line);
    bool wanted = strncmp(line, "{\"event\":\"progress\"", 19) == 0 || strncmp(line, "{\"event\":\"evaluation\"", 21) == 0;
    char *stop = strstr(line, "accuracy\":");
    if (wanted && stop != NULL && stop < next) {
      stop = strchr(stop, ',');
      assert_non_null(stop);
      size_t n = (size_t)(stop - line);
      memmove(to, line, n);
      to += n;
      *to++ = '\n';
    }
    line = next;
  }
  *to = '\0';
  return text;
}

static void same_results(const char *a, const char *b) {
  char *p = results(a), *q = results(b);
  assert_true(strlen(p) > 100);
  if (strcmp(p, q) != 0) fail_msg("%s:\n%.1500s\n%s:\n%.1500s", a, p, b, q);
  free(p);
  free(q);
}

static void rest(void) {
  nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* Start a run, kill it once `path` is there, and see that it did not get to its end. */
static void kill_once_there(const char *path, const char *weights, const char *const *argv) {
  yoke_result r;
  pid_t pid = yoke_start(argv);
  for (int i = 0; i < 20000 && !exists(path); i++) rest();
  kill(pid, SIGKILL);
  yoke_wait(pid, &r);
  if (!exists(path)) fail_msg("%s never came: status %d, %s", path, r.status, r.err);
  if (r.status != 1000 + SIGKILL || exists(weights)) fail_msg("it ended before it was killed: status %d", r.status);
  yoke_free(&r);
}

#define STARTED(...) ((const char *const[]){ "yoke", __VA_ARGS__, NULL })

static void test_killed(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "24", "--out", "a"));
  kill_once_there("b/checkpoints/ckpt-8.safetensors", "b/weights.safetensors",
                  STARTED(NET, "--steps", "24", "--out", "b", "--checkpoint-every", "4"));
  char *early = SUCCEEDS("evaluate", "cifar10", "--data", "set", "--out", "b");
  assert_non_null(strstr(early, "from b/checkpoints/ckpt-"));
  free(early);
  char *out = SUCCEEDS("train", "cifar10", "--interval", "0", "--out", "b", "--resume");       /* all options are known */
  assert_non_null(strstr(out, "resumed from b/checkpoints/ckpt-"));
  free(out);
  same_files("a/weights.safetensors", "b/weights.safetensors");
  same_results("a/metrics.jsonl", "b/metrics.jsonl");
  assert_true(exists("b/checkpoints/ckpt-24.safetensors"));
}

static void test_killed_on_four_devices(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "12", "--out", "a4", "--virtual-gpus", "4:64MiB"));
  kill_once_there("b4/checkpoints/ckpt-3.safetensors", "b4/weights.safetensors",
                  STARTED(NET, "--steps", "12", "--out", "b4", "--virtual-gpus", "4:64MiB", "--checkpoint-every", "3"));
  char *out = SUCCEEDS("train", "cifar10", "--interval", "0", "--out", "b4", "--resume", "--json");
  check_json(out, true);
  assert_non_null(strstr(out, "{\"event\":\"resume\",\"checkpoint\":\"b4/checkpoints/ckpt-"));
  assert_non_null(strstr(out, "\"other_devices\":false"));
  assert_non_null(strstr(out, "/gpu:3"));
  free(out);
  same_files("a4/weights.safetensors", "b4/weights.safetensors");
  same_results("a4/metrics.jsonl", "b4/metrics.jsonl");
}

/* Momentum, statistics of normalisation, a schedule that depends on the length of the run. */
static void test_residual_network(void **state) {
  (void)state;
  free(SUCCEEDS("train", "resnet20", "--data", "set", "--batch", "4", "--steps", "6", "--interval", "0", "--out", "ra"));
  free(SUCCEEDS("train", "resnet20", "--data", "set", "--batch", "4", "--steps", "6", "--interval", "0", "--out", "rb",
                "--checkpoint-every", "3", "--keep", "3"));
  unlink("rb/checkpoints/ckpt-6.safetensors");       /* as if it had been killed after the first */
  yoke_result r;
  YOKE(&r, "train", "resnet20", "--out", "rb", "--resume", "--interval", "0");
  CHECK_INT(r.status, 0);
  assert_non_null(strstr(r.err, "ckpt-6.safetensors"));      /* it is said to be missing */
  assert_non_null(strstr(r.out, "resumed from rb/checkpoints/ckpt-3.safetensors, of step 3"));
  yoke_free(&r);
  same_files("ra/weights.safetensors", "rb/weights.safetensors");
  same_results("ra/metrics.jsonl", "rb/metrics.jsonl");
}

/* Ctrl-C saves; a run at its end can be made longer, and is then the run that was longer from the start. */
static void test_stopped_and_longer(void **state) {
  yoke_result r;
  (void)state;
  free(SUCCEEDS(NET, "--steps", "9", "--out", "s", "--checkpoint-every", "1000"));
  char *out = SUCCEEDS(NET, "--out", "s", "--resume");                /* nothing is left to do */
  assert_non_null(strstr(out, "resumed from s/checkpoints/ckpt-9.safetensors"));
  free(out);
  char *metrics = read_file("s/metrics.jsonl");
  char *first = strstr(metrics, "\"event\":\"end\"");
  assert_non_null(first);
  assert_null(strstr(first + 1, "\"event\":\"end\""));              /* once, not twice */
  free(metrics);
  pid_t pid = yoke_start(STARTED(NET, "--steps", "100000", "--out", "s", "--resume"));
  for (int i = 0; i < 20000; i++) {
    char *text = read_file("s/metrics.jsonl");
    bool going = strstr(text, "\"event\":\"progress\",\"step\":15,") != NULL;
    free(text);
    if (going) break;
    rest();
  }
  kill(pid, SIGINT);
  yoke_wait(pid, &r);
  CHECK_INT(r.status, 130);
  yoke_free(&r);
  yk_checkpoint *c;
  CHECK_OK(yk_checkpoint_latest("s/checkpoints", &c));
  int64_t step = yk_checkpoint_step(c);
  assert_true(step >= 15);
  yk_checkpoint_close(c);
  char steps[32];
  snprintf(steps, sizeof steps, "%lld", (long long)step + 5);
  free(SUCCEEDS(NET, "--steps", steps, "--out", "s", "--resume"));
  free(SUCCEEDS(NET, "--steps", steps, "--out", "t"));
  same_files("s/weights.safetensors", "t/weights.safetensors");
  same_results("s/metrics.jsonl", "t/metrics.jsonl");
}

static void test_other_devices(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "4", "--out", "d", "--checkpoint-every", "2"));
  char *out = SUCCEEDS(NET, "--steps", "8", "--out", "d", "--resume", "--virtual-gpus", "2:64MiB", "--json");
  assert_non_null(strstr(out, "\"other_devices\":true"));
  CHECK_INT(json_number(last_line(out), "steps"), 8);
  free(out);
  out = SUCCEEDS(NET, "--steps", "12", "--out", "d", "--resume", "--devices", "cpu:0", "--json");
  CHECK_INT(json_number(last_line(out), "steps"), 12);
  free(out);
}

/* The newest one is damaged: a warning, and the one before it. */
static void test_damaged(void **state) {
  yoke_result r;
  struct stat s;
  (void)state;
  free(SUCCEEDS(NET, "--steps", "8", "--out", "g", "--checkpoint-every", "4"));
  CHECK_INT(stat("g/checkpoints/ckpt-8.safetensors", &s), 0);
  char *b = read_file("g/checkpoints/ckpt-8.safetensors");
  b[s.st_size / 2] ^= 1;
  write_file("g/checkpoints/ckpt-8.safetensors", b, (size_t)s.st_size);
  YOKE(&r, NET, "--out", "g", "--resume");
  CHECK_INT(r.status, 0);
  assert_non_null(strstr(r.err, "ckpt-8.safetensors': the checksum of its data is"));
  assert_non_null(strstr(r.out, "ckpt-4.safetensors, of step 4"));
  yoke_free(&r);
  write_file("g/checkpoints/ckpt-4.safetensors", b, 1000);
  write_file("g/checkpoints/ckpt-8.safetensors", b, 1000);
  write_file("g/checkpoints/ckpt-8-2.safetensors", b, 1000);
  YOKE(&r, NET, "--out", "g", "--resume");
  CHECK_INT(r.status, 1);
  assert_non_null(strstr(r.err, "yoke train: --resume: none of the "));
  yoke_free(&r);
  free(b);
}

static void test_refused(void **state) {
  (void)state;
  FAILS(2, "--resume needs --out DIR", NET, "--resume");
  FAILS(2, "--checkpoint-every 'often': expected a number of steps, or a time", NET, "--checkpoint-every", "often");
  FAILS(2, "--checkpoint-every '0': expected", NET, "--checkpoint-every", "0");
  FAILS(2, "--keep needs --checkpoint-every", NET, "--keep", "3");
  FAILS(2, "--keep-every needs --checkpoint-every", NET, "--keep-every", "3");
  free(SUCCEEDS(NET, "--steps", "2", "--out", "f", "--checkpoint-every", "10m", "--keep", "1"));
  FAILS(1, "'f' has checkpoints of an earlier run: go on with --resume, or name another folder", NET, "--out", "f");
  FAILS(1, "was made with network cifar10, this run has mlp", "train", "mlp", "--data", "set", "--batch", "6", "--out", "f", "--resume");
  FAILS(1, "was made with batch 6, this run has 7", "train", "cifar10", "--batch", "7", "--out", "f", "--resume");
  FAILS(1, "was made with seed 1, this run has 2", NET, "--seed", "2", "--out", "f", "--resume");
  FAILS(1, "was made with data cifar10, this run has shapes10", "train", "cifar10", "--data", "shapes10", "--out", "f", "--resume");
  FAILS(1, "is of step 2 already, this run has 1 steps", NET, "--steps", "1", "--out", "f", "--resume");
  write_cifar("less", 36, 17);
  FAILS(1, "training pictures of 37, this run has 36", "train", "cifar10", "--data", "less", "--out", "f", "--resume");
  char *out = SUCCEEDS(NET, "--steps", "1", "--out", "fresh", "--resume", "--checkpoint-every", "1");   /* nothing to go on from */
  assert_null(strstr(out, "resumed"));
  free(out);
}

/* Every option that a run may change on its way: each works, one after the other, or says what it was and what it is. */
static void test_other_options(void **state) {
  static const char *const fine[][2] = {
    { "--lr", "0.01" }, { "--schedule", "cosine:warm_up=2" }, { "--clip-norm", "1" }, { "--nan-check", "off" }, { "--precision", "bf16" },
    { "--strategy", "mirrored" }, { "--replicas", "3" }, { "--deterministic", NULL }, { "--sync-batch-norm", NULL }, { "--precision", "f16" },
    { "--checkpoint-every", "1" }, { "--optimizer", "momentum:momentum=0.5" },
    { "--tensorboard", "o/board" }, { "--soft-placement", NULL },
  };
  static const struct { const char *optimizer, *says; } other[] = {
    { "adam", "was made with optimizer momentum:momentum=0.5, this run has adam, which keeps other variables: missing" },
    { "sgd", "this run has sgd, which keeps" },
    { "adadelta", "this run has adadelta, which keeps" },
  };
  char steps[16];
  (void)state;
  setenv("YOKE_VERBOSE", "1", 1);                    /* bf16 may be slow here */
  free(SUCCEEDS("train", "resnet20", "--data", "set", "--batch", "6", "--optimizer", "momentum:momentum=0.9", "--steps", "1", "--out", "o",
                "--checkpoint-every", "1"));
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
    snprintf(steps, sizeof steps, "%zu", i + 2);
    const char *argv[] = { "yoke", "train", "resnet20", "--out", "o", "--resume", "--steps", steps, "--json", fine[i][0], fine[i][1], NULL };
    char *out = yoke_succeeds(argv, __FILE__, __LINE__);
    if (strstr(out, "{\"event\":\"resume\"") == NULL) fail_msg("%s: it began anew: %s", fine[i][0], out);
    CHECK_INT(json_number(last_line(out), "steps"), i + 2);
    free(out);
  }
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    FAILS(1, other[i].says, "train", "resnet20", "--out", "o", "--resume", "--steps", "90", "--optimizer", other[i].optimizer);
  FAILS(1, "was made with batch 6, this run has 5", "train", "resnet20", "--out", "o", "--resume", "--batch", "5");
  unsetenv("YOKE_VERBOSE");
}

/* No room for one: told before the first step. */
static void test_no_room(void **state) {
  struct rlimit before, tight;
  (void)state;
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = 1000000;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
  FAILS(1, "but none may be larger than 1000000 (ulimit -f)", NET, "--steps", "3", "--out", "n", "--checkpoint-every", "1", "--quiet");
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK_INT(exists("n/weights.safetensors"), 0);
}

/* The folder of the checkpoints is taken away while the run is going: warnings, then the end; and once it is back, it goes on. */
static void test_disk_goes_away(void **state) {
  yoke_result r;
  (void)state;
  pid_t pid = yoke_start(STARTED(NET, "--steps", "100000", "--out", "w", "--checkpoint-every", "2"));
  for (int i = 0; i < 20000 && !exists("w/checkpoints/ckpt-4.safetensors"); i++) rest();
  CHECK_INT(rename("w/checkpoints", "w/elsewhere"), 0);
  yoke_wait(pid, &r);
  CHECK_INT(r.status, 1);
  assert_non_null(strstr(r.err, "'w/checkpoints"));
  assert_non_null(strstr(r.err, "the last 3 checkpoints could not be written"));
  yoke_free(&r);
  char *metrics = read_file("w/metrics.jsonl");
  assert_non_null(strstr(metrics, "\"event\":\"checkpoint_failed\""));
  assert_non_null(strstr(metrics, "\"in_a_row\":3"));
  free(metrics);
  CHECK_INT(rename("w/elsewhere", "w/checkpoints"), 0);
  yk_checkpoint *c;
  CHECK_OK(yk_checkpoint_latest("w/checkpoints", &c));
  assert_true(yk_checkpoint_step(c) >= 4);
  yk_checkpoint_close(c);
}

/* Another program reads the format by its rules, checks the sums, and finds in the last checkpoint what is in the weights. */
static void test_another_reader(void **state) {
  char script[4096];
  (void)state;
  free(SUCCEEDS(NET, "--steps", "3", "--out", "p", "--checkpoint-every", "1", "--keep", "1"));
  snprintf(script, sizeof script, "%s/scripts/check_checkpoint.py", getenv("YOKE_SOURCE_DIR"));
  const char *argv[] = { "python3", script, "--weights", "p/weights.safetensors", "p/checkpoints", NULL };
  char *out = NULL;
  int status = run_program(argv, NULL, &out);
  if (status != 0 || strstr(out, "1 checkpoints") == NULL) fail_msg("status %d: %s", status, out);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_killed), cmocka_unit_test(test_killed_on_four_devices), cmocka_unit_test(test_residual_network),
    cmocka_unit_test(test_stopped_and_longer), cmocka_unit_test(test_other_devices), cmocka_unit_test(test_damaged),
    cmocka_unit_test(test_refused), cmocka_unit_test(test_no_room), cmocka_unit_test(test_disk_goes_away),
    cmocka_unit_test(test_another_reader), cmocka_unit_test(test_other_options),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
