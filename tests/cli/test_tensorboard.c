/*
 * `yoke train --tensorboard`: event files that are whole, with every kind of event in them; the same weights as without; a resumed run
 * that goes on; and folders and disks that refuse.
 */
#include "run_yoke.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

typedef struct seen { int records, files; char text[1 << 20]; size_t n; } seen;   /* text: what is printable, of all records */

static void read_file_of(seen *s, const char *path) {
  yk_record_reader *r;
  const void *bytes;
  size_t n;
  CHECK_OK(yk_record_reader_open(path, &r));
  for (;;) {
    CHECK_OK(yk_record_read(r, &bytes, &n));
    if (bytes == NULL) break;
    s->records++;
    for (size_t i = 0; i < n && n < 30000 && s->n + 2 < sizeof s->text; i++) {
      char c = ((const char *)bytes)[i];
      s->text[s->n++] = (char)(c >= ' ' && c <= '~' ? c : '.');
    }
    if (s->n + 1 < sizeof s->text) s->text[s->n++] = '\n';
  }
  yk_record_reader_close(r);
}

/* All event files of a folder. */
static seen *read_events(const char *folder) {
  char path[600];
  seen *s = calloc(1, sizeof *s);
  DIR *d = opendir(folder);
  if (d == NULL) fail_msg("%s is not there", folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (strncmp(e->d_name, "events.out.tfevents.", 20) != 0) continue;
    s->files++;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    read_file_of(s, path);
  }
  closedir(d);
  return s;
}

static void expect(const seen *s, const char *what) {
  if (strstr(s->text, what) == NULL) fail_msg("'%s' is in none of the %d records of %d files", what, s->records, s->files);
}

static void test_two_steps(void **state) {
  static const char *const train[] = { "brain.Event:2", "loss", "accuracy", "learning_rate", "examples_per_second", "epoch",
                                       "memory_MiB/CPU:0", "input/image/0", "input/image/5", ".PNG", "settings", "conv1/weights" };
  (void)state;
  free(SUCCEEDS(NET, "--steps", "2", "--out", "a"));
  free(SUCCEEDS(NET, "--steps", "2", "--out", "b", "--tensorboard", "logs/b"));
  same_files("a/weights.safetensors", "b/weights.safetensors");
  seen *s = read_events("logs/b/train");
  CHECK_INT(s->files, 1);
  for (size_t i = 0; i < sizeof train / sizeof train[0]; i++) expect(s, train[i]);
  int progress = 5 + 2, variables = 10;             /* scalars a report, on one device; tensors that learn */
  CHECK_INT(s->records, 1 + 3 + 2 * progress + 2 * variables);       /* greeting; graph, settings, pictures */
  free(s);
  s = read_events("logs/b/eval");
  CHECK_INT(s->records, 1 + 2);
  expect(s, "accuracy");
  free(s);
}

/* Of every second step, on one device and on several; nothing else changes. */
static void test_gradients(void **state) {
  static const char *const devices[] = { "1:64MiB", "2:64MiB" }, *const strategies[] = { "home", "mirrored" };
  char bare[16], told[16], logs[32], events[40];
  (void)state;
  for (int i = 0; i < 2; i++) {
    snprintf(bare, sizeof bare, "g%d", i);
    snprintf(told, sizeof told, "h%d", i);
    snprintf(logs, sizeof logs, "logs/h%d", i);
    snprintf(events, sizeof events, "%s/train", logs);
    free(SUCCEEDS(NET, "--steps", "5", "--virtual-gpus", devices[i], "--strategy", strategies[i], "--clip-norm", "5", "--out", bare));
    free(SUCCEEDS(NET, "--steps", "5", "--virtual-gpus", devices[i], "--strategy", strategies[i], "--clip-norm", "5", "--out", told, "--tensorboard",
                  logs, "--gradient-histograms", "2"));
    char a[40], b[40];
    snprintf(a, sizeof a, "%s/weights.safetensors", bare);
    snprintf(b, sizeof b, "%s/weights.safetensors", told);
    same_files(a, b);
    seen *s = read_events(events);
    int n = 0;
    for (const char *p = s->text; (p = strstr(p, "gradients/")) != NULL; p++) n++;
    CHECK_INT(n, 2 * 10);                           /* steps 2 and 4; the network's ten variables */
    expect(s, "gradients/conv1/weights");
    expect(s, "gradients/softmax_linear/biases");
    free(s);
  }
  FAILS(2, "--gradient-histograms needs --tensorboard", NET, "--steps", "2", "--gradient-histograms", "2", "--out", "never");
  FAILS(1, "the step changed nothing", NET, "--steps", "40", "--lr", "1e6", "--tensorboard", "logs/n", "--gradient-histograms", "1", "--quiet",
        "--out", "nan");
}

static void test_resumed(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "2", "--out", "r", "--tensorboard", "logs/r", "--checkpoint-every", "2"));
  free(SUCCEEDS(NET, "--steps", "3", "--out", "r", "--resume"));
  seen *s = read_events("logs/r/train");
  CHECK_INT(s->files, 2);
  CHECK_INT(s->records, 1 + 3 + 2 * 7 + 2 * 10 + 2 + 1 + 7 + 10);    /* the second: greeting, restart; graph; one step */
  free(s);
}

/* ---- the steps of one curve, as a reader understands them ---- */

enum { MOST_STEPS = 64, MOST_FILES = 8 };
typedef struct curve { int64_t step[MOST_STEPS]; float value[MOST_STEPS]; int n; } curve;

typedef struct field { uint64_t number, wire, bits; const uint8_t *bytes; size_t n; } field;

static uint64_t varint(const uint8_t **p, const uint8_t *end) {
  uint64_t v = 0;
  for (int shift = 0; *p < end && shift < 64; shift += 7) {
    uint8_t b = *(*p)++;
    v |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80) break;
  }
  return v;
}

/* The next field of a message; false at its end. */
static bool next_field(const uint8_t **p, const uint8_t *end, field *f) {
  if (*p >= end) return false;
  uint64_t key = varint(p, end);
  *f = (field){ .number = key >> 3, .wire = key & 7 };
  if (f->wire == 0) {
    f->bits = varint(p, end);
    return true;
  }
  f->n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : (size_t)varint(p, end);
  assert_true(f->n <= (size_t)(end - *p));
  f->bytes = *p;
  *p += f->n;
  return true;
}

/* The scalar of that tag in a summary, if it is there. */
static bool scalar(const field *summary, const char *tag, float *value) {
  const uint8_t *p = summary->bytes, *end = p + summary->n;
  field v, f;
  while (next_field(&p, end, &v)) {
    const uint8_t *q = v.bytes, *last = q + v.n;
    bool mine = false, has = false;
    while (v.number == 1 && next_field(&q, last, &f)) {
      mine |= f.number == 1 && f.n == strlen(tag) && memcmp(f.bytes, tag, f.n) == 0;
      has |= f.number == 2 && f.wire == 5;
      if (f.number == 2 && f.wire == 5) memcpy(value, f.bytes, sizeof *value);
    }
    if (mine && has) return true;
  }
  return false;
}

/* An event onto the curve. What a restart forgets are the steps from its own on. */
static void take_event(curve *c, const char *tag, const uint8_t *p, size_t n) {
  enum { STEP = 2, SUMMARY = 5, SESSION_LOG = 7 };
  const uint8_t *end = p + n;
  int64_t step = 0;
  bool found = false, restart = false;
  float value = 0;
  field f;
  while (next_field(&p, end, &f)) {
    if (f.number == STEP) step = (int64_t)f.bits;
    restart |= f.number == SESSION_LOG;
    found |= f.number == SUMMARY && scalar(&f, tag, &value);
  }
  while (restart && c->n > 0 && c->step[c->n - 1] >= step) c->n--;
  if (!found) return;
  assert_true(c->n < MOST_STEPS);
  c->step[c->n] = step;
  c->value[c->n++] = value;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* Of all files of a folder, in the order in which they were made, which is that of their names. */
static curve read_curve(const char *folder, const char *tag) {
  char path[MOST_FILES][600];
  int files = 0;
  curve c = { .n = 0 };
  DIR *d = opendir(folder);
  if (d == NULL) fail_msg("%s is not there", folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    if (strncmp(e->d_name, "events.out.tfevents.", 20) == 0 && files < MOST_FILES)
      snprintf(path[files++], sizeof path[0], "%s/%s", folder, e->d_name);
  closedir(d);
  qsort(path, (size_t)files, sizeof path[0], by_name);
  for (int i = 0; i < files; i++) {
    yk_record_reader *r;
    const void *bytes;
    size_t n;
    CHECK_OK(yk_record_reader_open(path[i], &r));
    while (yk_record_read(r, &bytes, &n) == YK_OK && bytes != NULL) take_event(&c, tag, bytes, n);      /* the last may be cut */
    yk_error_clear();
    yk_record_reader_close(r);
  }
  return c;
}

/* Killed between two checkpoints and gone on, twice: every step once, with the loss that a run without a stop tells. */
static void test_every_step_once(void **state) {
  static const char *const killed[] = { "yoke", NET, "--steps", "12", "--out", "k", "--tensorboard", "logs/k", "--checkpoint-every", "3",
                                        "--resume", NULL };
  static const char *const kept[] = { "k/checkpoints/ckpt-3.safetensors", "k/checkpoints/ckpt-6.safetensors" };
  (void)state;
  free(SUCCEEDS(NET, "--steps", "12", "--out", "u", "--tensorboard", "logs/u"));
  for (int i = 0; i < 2; i++) {
    yoke_result r;
    pid_t pid = yoke_start(killed);
    for (int k = 0; k < 20000 && !exists(kept[i]); k++) nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    kill(pid, SIGKILL);
    yoke_wait(pid, &r);
    if (!exists(kept[i])) fail_msg("%s never came: status %d, %s", kept[i], r.status, r.err);
    yoke_free(&r);
    nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 100000000 }, NULL);        /* names of event files have their second */
  }
  free(SUCCEEDS(NET, "--steps", "12", "--out", "k", "--tensorboard", "logs/k", "--resume"));
  same_files("u/weights.safetensors", "k/weights.safetensors");
  curve want = read_curve("logs/u/train", "loss"), got = read_curve("logs/k/train", "loss");
  CHECK_INT(want.n, 12);
  for (int i = 0; i < got.n || i < want.n; i++) {
    if (i >= got.n) fail_msg("the curve ends after step %lld", (long long)(i > 0 ? got.step[i - 1] : 0));
    if (got.step[i] != i + 1) fail_msg("point %d of the curve is of step %lld", i + 1, (long long)got.step[i]);
    if (i >= want.n || memcmp(&got.value[i], &want.value[i], sizeof got.value[0]) != 0)
      fail_msg("step %d: the loss is told as %.9g, without a stop it was %.9g", i + 1, (double)got.value[i], (double)want.value[i]);
  }
}

static void test_refused(void **state) {
  struct rlimit before, tight;
  yoke_result r;
  (void)state;
  write_file("plain", "x", 1);
  FAILS(1, "--tensorboard: the folder 'plain/train' cannot be made", NET, "--steps", "2", "--out", "n", "--tensorboard", "plain");
  CHECK_INT(exists("n/weights.safetensors"), 0);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = 20000;                            /* settings and metrics fit, the graph does not, nor do the weights */
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
  YOKE(&r, NET, "--steps", "1", "--out", "f", "--tensorboard", "logs/f");
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK_INT(r.status, 1);
  if (strstr(r.err, "--tensorboard: '") == NULL || strstr(r.err, "ulimit -f") == NULL) fail_msg("it says: %s", r.err);
  yoke_free(&r);
}

/* TensorBoard itself, where it is installed. */
static void test_another_reader(void **state) {
  char script[4096];
  (void)state;
  free(SUCCEEDS(NET, "--steps", "2", "--out", "p", "--tensorboard", "logs/p"));
  snprintf(script, sizeof script, "%s/scripts/check_tensorboard.py", getenv("YOKE_SOURCE_DIR"));
  const char *argv[] = { "python3", script, "--optional", "--metrics", "p/metrics.jsonl", "logs/p", NULL };
  char *out = NULL;
  int status = run_program(argv, NULL, &out);
  if (status != 0) fail_msg("status %d: %s", status, out);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_two_steps), cmocka_unit_test(test_gradients), cmocka_unit_test(test_resumed), cmocka_unit_test(test_every_step_once),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_another_reader),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
