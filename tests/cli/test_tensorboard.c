/*
 * `yoke train --tensorboard`: event files that are whole, with every kind of event in them; the same weights as without; a resumed run
 * that goes on; and folders and disks that refuse.
 */
#include "run_yoke.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yoke/yoke.h>

#define NET "train", "cifar10", "--data", "set", "--batch", "6", "--interval", "0"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 17);
  return rc;
}

typedef struct seen { int records, files; char text[1 << 16]; size_t n; } seen;   /* text: what is printable, of all records */

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
    s->text[s->n++] = '\n';
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

static void test_resumed(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "2", "--out", "r", "--tensorboard", "logs/r", "--checkpoint-every", "2"));
  free(SUCCEEDS(NET, "--steps", "3", "--out", "r", "--resume"));
  seen *s = read_events("logs/r/train");
  CHECK_INT(s->files, 2);
  CHECK_INT(s->records, 1 + 3 + 2 * 7 + 2 * 10 + 2 + 1 + 7 + 10);    /* the second: greeting, restart; graph; one step */
  free(s);
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
    cmocka_unit_test(test_two_steps), cmocka_unit_test(test_resumed), cmocka_unit_test(test_refused),
    cmocka_unit_test(test_another_reader),
  };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
