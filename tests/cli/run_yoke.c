/*
 * run_yoke.c - see run_yoke.h. Output goes to files, not to pipes, so nothing can block; settings in the environment are
 * cleared first, so that the tests mean the same everywhere.
 */
#include "run_yoke.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORD = 3073, SECONDS = 120 };

static char folder[256], command[4096];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s;
  (void)type;
  (void)at;
  return remove(path);
}

extern char **environ;

static void clear_settings(void) {
  for (char **e = environ; *e != NULL;) {
    char name[64];
    size_t n = strcspn(*e, "=");
    bool ours = strncmp(*e, "YOKE_", 5) == 0 && strncmp(*e, "YOKE_BUILD_DIR", n) != 0 && strncmp(*e, "YOKE_SOURCE_DIR", n) != 0;
    if (!ours || n >= sizeof name) { e++; continue; }
    memcpy(name, *e, n);
    name[n] = '\0';
    unsetenv(name);
    e = environ;
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
}

int yoke_setup(void **state) {
  const char *build = getenv("YOKE_BUILD_DIR"), *tmp = getenv("TMPDIR");
  (void)state;
  if (build == NULL) { print_error("YOKE_BUILD_DIR is not set\n"); return -1; }
  snprintf(command, sizeof command, "%s/yoke", build);
  snprintf(folder, sizeof folder, "%s/yoke-cli-XXXXXX", tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) { print_error("%s: %s\n", folder, strerror(errno)); return -1; }
  clear_settings();
  setenv("XDG_RUNTIME_DIR", folder, 1);             /* what other tests run at the same time is not seen here */
  return 0;
}

int yoke_teardown(void **state) {
  (void)state;
  return chdir("/") != 0 || nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0;
}

/* out < 0: the file "out". */
static pid_t start(const char *program, const char *const *argv, const char *input, int out) {
  char *args[64];
  size_t n = 0;
  for (; argv[n] != NULL && n < 63; n++) args[n] = (char *)(uintptr_t)argv[n];
  args[n] = NULL;
  if (input != NULL) write_file("in", input, strlen(input));
  pid_t pid = fork();
  if (pid != 0) return pid;
  unlink("out");                                     /* new files, for the reason given at write_file() */
  unlink("err");
  int in = open(input != NULL ? "in" : "/dev/null", O_RDONLY);
  int file = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0666), err = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0666);
  dup2(in, 0);
  dup2(out < 0 ? file : out, 1);
  dup2(err, 2);
  alarm(SECONDS);
  execvp(program, args);
  _exit(127);
}

pid_t yoke_start(const char *const *argv) {
  return start(command, argv, NULL, -1);
}

pid_t yoke_start_on(int out, const char *const *argv) {
  return start(command, argv, NULL, out);
}

int open_terminal(unsigned short rows, unsigned short columns, int *theirs) {
  char name[256];
  struct winsize size = { .ws_row = rows, .ws_col = columns };
  int ours = posix_openpt(O_RDWR | O_NOCTTY);
  assert_true(ours >= 0);
  CHECK_INT(grantpt(ours), 0);
  CHECK_INT(unlockpt(ours), 0);
  CHECK_INT(ptsname_r(ours, name, sizeof name), 0);
  *theirs = open(name, O_RDWR | O_NOCTTY);
  assert_true(*theirs >= 0);
  if (rows > 0) CHECK_INT(ioctl(*theirs, TIOCSWINSZ, &size), 0);
  return ours;
}

static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

void yoke_wait(pid_t pid, yoke_result *r) {
  r->status = wait_for(pid);
  r->out = read_file("out");
  r->err = read_file("err");
}

void yoke_run(yoke_result *r, const char *const *argv) {
  yoke_wait(yoke_start(argv), r);
}

void yoke_free(yoke_result *r) {
  free(r->out);
  free(r->err);
}

int run_program(const char *const *argv, const char *input, char **out) {
  int status = wait_for(start(argv[0], argv, input, -1));
  if (out != NULL) *out = read_file("out");
  return status;
}

static size_t lines(const char *text) {
  size_t n = 0;
  for (; *text != '\0'; text++) n += *text == '\n';
  return n;
}

static void show(const char *const *argv, const yoke_result *r) {
  for (; *argv != NULL; argv++) print_error("%.100s ", *argv);
  print_error("\n  status %d\n  stdout: %.400s\n  stderr: %.1200s\n", r->status, r->out, r->err);
}

void yoke_fails(int status, const char *text, const char *const *argv, const char *file, int line) {
  yoke_result r;
  yoke_run(&r, argv);
  if (r.status != status || r.out[0] != '\0' || lines(r.err) != 1 || strstr(r.err, text) == NULL || strlen(r.err) > 2000) {
    show(argv, &r);
    print_error("expected status %d, nothing on stdout, and one short line on stderr with \"%s\"\n", status, text);
    _fail(file, line);
  }
  yoke_free(&r);
}

char *yoke_succeeds(const char *const *argv, const char *file, int line) {
  yoke_result r;
  yoke_run(&r, argv);
  if (r.status != 0 || r.err[0] != '\0') {
    show(argv, &r);
    print_error("expected status 0 and nothing on stderr\n");
    _fail(file, line);
  }
  free(r.err);
  return r.out;
}

/* ---- files -------------------------------------------------------------------------------------------------- */

bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t n = 0, cap = 0, got;
  if (f == NULL) return NULL;
  do {
    if (cap - n < 4097) {
      cap = cap * 2 + 8192;
      text = realloc(text, cap);
      assert_non_null(text);
    }
    got = fread(text + n, 1, cap - n - 1, f);
    n += got;
  } while (got > 0);
  fclose(f);
  text[n] = '\0';
  return text;
}

void write_file(const char *path, const void *data, size_t n) {
  unlink(path);                                      /* a disk hurries when a file is overwritten, not when it is new */
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(data, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

/* Each class has its own brightness. */
static void write_records(const char *path, int n) {
  uint8_t *bytes = malloc((size_t)n * RECORD);
  assert_non_null(bytes);
  for (int i = 0; i < n; i++) {
    uint8_t *r = bytes + (size_t)i * RECORD;
    r[0] = (uint8_t)(i % 10);
    for (int p = 1; p < RECORD; p++) r[p] = (uint8_t)((p % 1024 / 100 == r[0] ? 200 : 20) + (p * 7 + i * 13) % 50);
  }
  write_file(path, bytes, (size_t)n * RECORD);
  free(bytes);
}

/* A header of 128 bytes, then the numbers. */
void write_npy(const char *path, const char *type, const char *shape, const void *data, size_t bytes) {
  enum { HEAD = 128, INTRO = 10 };
  char head[HEAD + 1];
  int n = snprintf(head + INTRO, sizeof head - INTRO, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
  assert_true(n < HEAD - INTRO);
  memcpy(head, "\x93NUMPY\x01\x00\x76\x00", INTRO);
  memset(head + INTRO + n, ' ', (size_t)(HEAD - INTRO - n));
  head[HEAD - 1] = '\n';
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(head, 1, HEAD, f), HEAD);
  CHECK_INT(fwrite(data, 1, bytes, f), bytes);
  CHECK_INT(fclose(f), 0);
}

void write_cifar(const char *where, int train, int test) {
  char path[512];
  mkdir(where, 0777);
  snprintf(path, sizeof path, "%s/data_batch_1.bin", where);
  write_records(path, train);
  snprintf(path, sizeof path, "%s/test_batch.bin", where);
  write_records(path, test);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

void check_json(const char *text, bool by_line) {
  static const char whole[] = "import json,sys; json.load(sys.stdin)";
  static const char line[] = "import json,sys\nfor l in sys.stdin: json.loads(l)";
  const char *argv[] = { "python3", "-c", by_line ? line : whole, NULL };
  int status = run_program(argv, text, NULL);
  if (status != 0) fail_msg("python3 gave %d: this is not JSON: %.600s", status, text);
}

const char *last_line(char *text) {
  size_t n = strlen(text);
  while (n > 0 && text[n - 1] == '\n') text[--n] = '\0';
  char *newline = strrchr(text, '\n');
  return newline != NULL ? newline + 1 : text;
}

double json_number(const char *text, const char *key) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "\"%s\":", key);
  const char *p = strstr(text, pattern);
  if (p == NULL) fail_msg("no %s in %s", pattern, text);
  return strtod(p + strlen(pattern), NULL);
}

void same_files(const char *a, const char *b) {
  struct stat x, y;
  CHECK_INT(stat(a, &x), 0);
  CHECK_INT(stat(b, &y), 0);
  CHECK_INT(x.st_size, y.st_size);
  char *p = read_file(a), *q = read_file(b);
  if (memcmp(p, q, (size_t)x.st_size) != 0) fail_msg("%s and %s differ", a, b);
  free(p);
  free(q);
}
