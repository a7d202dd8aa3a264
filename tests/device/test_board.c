/*
 * The board: what a process publishes, what others read, and that neither a full disk, a killed process, a forked child nor a file
 * full of garbage harms anybody.
 *
 * Each test has a runtime folder of its own. Other processes are forked children, which leave by _exit.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "base/alloc.h"
#include "base/param.h"
#include "device/board.h"
#include "support/check.h"
#include "support/fuzz.h"

static char root[64], folder[YK__BOARD_PATH];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s;
  (void)type;
  (void)at;
  return remove(path);
}

static int setup(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/yoke-board-XXXXXX");
  if (mkdtemp(root) == NULL) return -1;
  setenv("XDG_RUNTIME_DIR", root, 1);
  yk__board_folder(folder);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int files(const char *where) {
  int n = 0;
  DIR *d = opendir(where);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  if (d != NULL) closedir(d);
  return n;
}

typedef struct opened { yk_graph *g; yk_session *s; } opened;

static opened open_session(const yk_session_options *o) {
  opened x = { 0 };
  CHECK_OK(yk_graph_new(&x.g));
  CHECK_OK(yk_session_open(x.g, o, &x.s));
  return x;
}

static void close_session(opened *x) {
  yk_session_close(x->s);
  yk_graph_free(x->g);
}

static yk_board read_board(uint32_t want) {
  yk_board b = { 0 };
  CHECK_OK(yk__board_read(folder, &b));
  if (b.n != want) fail_msg("%u processes on the board, expected %u", b.n, want);
  return b;
}

static yk_board_slot *find(yk_board *b, uint32_t i, const char *name) {
  for (uint32_t k = 0; k < YK__BOARD_SLOTS; k++) {
    yk_board_slot *s = &b->at[i].slot[k];
    if (atomic_load(&s->session) != 0 && strstr(s->name, name) != NULL) return s;
  }
  fail_msg("no %s on the board", name);
  return NULL;
}

/* ---- what is seen --------------------------------------------------------------------------------------------------- */

static void test_published(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  (void)state;
  o.virtual_gpus = 2;
  o.virtual_gpu_bytes = 100 << 20;
  o.per_process_gpu_memory_fraction = 0.4;
  o.allow_growth = true;
  CHECK_INT(files(folder), 0);
  yk__board_command("test me");
  opened x = open_session(&o);
  CHECK_INT(files(folder), 1);
  yk_board b = read_board(1);
  CHECK_INT(b.at[0].pid, getpid());
  CHECK_INT(b.at[0].start, yk__process_start(getpid()));
  assert_string_equal(b.at[0].command, "test me");
  yk_board_slot *gpu = find(&b, 0, "GPU:1"), *cpu = find(&b, 0, "CPU:0");
  CHECK_INT(atomic_load(&gpu->session), 1);
  CHECK_NEAR(gpu->fraction, 0.4, 0);
  CHECK_INT(gpu->growth, 1);
  CHECK_INT(gpu->is_virtual, 1);
  assert_string_equal(gpu->type, "GPU");
  assert_string_equal(gpu->driver, "cpu");
  assert_string_equal(gpu->bus, "virtual:1");
  if (strncmp(gpu->uuid, "GPU-", 4) != 0) fail_msg("uuid %s", gpu->uuid);
  CHECK_INT(atomic_load(&gpu->memory.total), 100 << 20);
  CHECK_INT(atomic_load(&gpu->memory.limit), 40 << 20);
  CHECK_INT(atomic_load(&gpu->memory.held), 0);
  CHECK_NEAR(cpu->fraction, 0, 0);
  CHECK_INT(cpu->growth, 0);
  yk__board_free(&b);
  yk__board_command("");
  close_session(&x);
  CHECK_INT(files(folder), 0);
  b = read_board(0);
  yk__board_free(&b);
}

/* Counters on the board are the pool's and the session's own. */
static void test_counts(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  yk_value y = { 0 };
  (void)state;
  o.virtual_gpus = 2;
  o.virtual_gpu_bytes = 64 << 20;
  o.allow_growth = true;
  CHECK_OK(yk_graph_new(&g));
  YK_DEVICE(g, "/gpu:0") { y = yk_neg(g, yk_read(yk_get_variable(g, "x", YK_F32, YK_SHAPE(1000), YK_ONES, NULL))); }
  YK_DEVICE(g, "/gpu:1") { y = yk_neg(g, y); }
  yk_value init = yk_global_variables_initializer(g);
  CHECK_OK(yk_session_open(g, &o, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
  CHECK_OK(yk_step_prepare(s, 0, NULL, 0, NULL, 1, &y, &step));
  yk_board b = read_board(1);
  uint64_t before = atomic_load(&find(&b, 0, "GPU:0")->work.runs);
  yk__board_free(&b);
  for (int i = 0; i < 5; i++) CHECK_OK(yk_step_run(step, NULL, NULL));
  b = read_board(1);
  yk_board_slot *gpu = find(&b, 0, "GPU:0");
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  CHECK_OK(yk_session_device_memory(s, 1, &m));
  CHECK_INT(atomic_load(&gpu->work.runs), before + 5);
  CHECK_INT(atomic_load(&find(&b, 0, "GPU:1")->work.runs), 5);
  assert_true(m.bytes_held > 0);
  if (atomic_load(&gpu->work.stream_ns) == 0) fail_msg("a stream that worked was never busy");
  CHECK_INT(atomic_load(&gpu->memory.held), m.bytes_held);
  CHECK_INT(atomic_load(&gpu->memory.in_use), m.bytes_in_use);
  CHECK_INT(atomic_load(&gpu->memory.peak_in_use), m.peak_in_use);
  yk__board_free(&b);
  yk_step_free(step);
  yk_session_close(s);
  yk_graph_free(g);
}

/* A stream tells how long it worked once it has run out of work; one on the calling thread tells nothing. */
static void test_busy(void **state) {
  const yk_driver *driver = yk__driver_find("cpu");
  yk_dev_config config = { .size = sizeof config, .ncores = 1 };
  yk_dev *dev;
  yk_stream *stream;
  yk_mem mem;
  uint64_t before = 0, after = 0, failed = 0;
  (void)state;
  assert_non_null(driver);
  assert_true(YK_HAS(driver, stream_busy));
  CHECK_OK(driver->open(0, &config, &dev));
  CHECK_OK(driver->mem_alloc(dev, YK_DEVICE_MEM, 1 << 20, &mem));
  CHECK_OK(driver->stream_open(dev, YK_STREAM_INLINE, &stream));
  before = 77;
  CHECK_CODE(driver->stream_busy(stream, &before), YK_EUNSUPPORTED, "calling thread");
  CHECK_INT(before, 77);
  driver->stream_close(stream);
  CHECK_OK(driver->stream_open(dev, 0, &stream));
  CHECK_OK(driver->stream_busy(stream, &before));
  for (int i = 0; i < 100000 && after <= before; i++) {      /* it may look for more before it counts */
    CHECK_OK(driver->fill(stream, mem, (uint8_t)i));
    CHECK_OK(driver->stream_sync(stream, &failed));
    CHECK_OK(driver->stream_busy(stream, &after));
  }
  if (after <= before) fail_msg("busy for %llu ns before, for %llu after", (unsigned long long)before, (unsigned long long)after);
  driver->stream_close(stream);
  driver->mem_free(dev, mem);
  driver->close(dev);
}

/* One file for all sessions; it goes with the last. */
static void test_sessions(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  (void)state;
  opened x = open_session(NULL), y = open_session(&o);
  yk_board b = read_board(1);
  CHECK_INT(atomic_load(&b.at[0].sessions), 2);
  CHECK_INT(atomic_load(&b.at[0].slot[0].session), 1);
  CHECK_INT(atomic_load(&b.at[0].slot[1].session), 2);
  yk__board_free(&b);
  close_session(&x);
  b = read_board(1);
  CHECK_INT(atomic_load(&b.at[0].slot[0].session), 0);
  CHECK_INT(atomic_load(&b.at[0].slot[1].session), 2);
  yk__board_free(&b);
  o.cpu_devices = YK__BOARD_SLOTS + 4;                       /* more than there is room for: one slot is taken */
  opened z = open_session(&o);
  b = read_board(1);
  CHECK_INT(atomic_load(&b.at[0].hidden), 5);
  yk__board_free(&b);
  close_session(&z);
  b = read_board(1);
  CHECK_INT(atomic_load(&b.at[0].hidden), 0);
  yk__board_free(&b);
  close_session(&y);
  CHECK_INT(files(folder), 0);
}

/* ---- other processes ------------------------------------------------------------------------------------------------ */

/* A child that opens a session, says so through a pipe, and waits to be killed, or leaves without closing. */
static pid_t start_child(bool leaves) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) fail_msg("no pipe");
  pid_t pid = fork();
  if (pid == 0) {
    yk_graph *g;
    yk_session *s;
    if (yk_graph_new(&g) != YK_OK || yk_session_open(g, NULL, &s) != YK_OK || write(ends[1], "x", 1) != 1) _exit(1);
    if (leaves) _exit(0);
    for (;;) pause();
  }
  close(ends[1]);
  if (read(ends[0], &byte, 1) != 1) fail_msg("the child opened no session");
  close(ends[0]);
  return pid;
}

static void end_child(pid_t pid, int signal) {
  if (signal != 0) kill(pid, signal);
  if (waitpid(pid, NULL, 0) != pid) fail_msg("no child %d", (int)pid);
}

static void test_killed(void **state) {
  (void)state;
  pid_t a = start_child(false), b = start_child(false);
  yk_board board = read_board(2);
  CHECK_INT(board.at[0].pid, a < b ? a : b);
  CHECK_INT(board.at[1].pid, a < b ? b : a);
  yk__board_free(&board);
  end_child(a, SIGKILL);
  CHECK_INT(files(folder), 2);
  board = read_board(1);
  CHECK_INT(board.at[0].pid, b);
  CHECK_INT(files(folder), 1);
  yk__board_free(&board);
  end_child(b, SIGKILL);
  end_child(start_child(true), 0);                           /* the next writer sweeps too */
  opened x = open_session(NULL);
  CHECK_INT(files(folder), 1);
  close_session(&x);
}

/* A child has a board of its own, whatever it inherited, and leaves its parent's alone. */
static void test_forked(void **state) {
  int status = 0;
  (void)state;
  opened x = open_session(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    yk_graph *g;
    yk_session *s;
    yk_board b = { 0 };
    if (yk_graph_new(&g) != YK_OK || yk_session_open(g, NULL, &s) != YK_OK) _exit(2);
    if (yk__board_read(folder, &b) != YK_OK || b.n != 2) _exit(10 + (int)b.n);
    yk_session_close(x.s);
    yk_session_close(s);
    yk__board_free(&b);
    if (yk__board_read(folder, &b) != YK_OK || b.n != 1 || b.at[0].pid != getppid() || atomic_load(&b.at[0].slot[0].session) != 1) _exit(4);
    _exit(0);
  }
  if (waitpid(pid, &status, 0) != pid || status != 0) fail_msg("the child ended with status 0x%x", (unsigned)status);
  yk_board b = read_board(1);
  CHECK_INT(atomic_load(&b.at[0].slot[0].session), 1);
  yk__board_free(&b);
  close_session(&x);
  CHECK_INT(files(folder), 0);
}

/* ---- where nothing can be published --------------------------------------------------------------------------------- */

static void check_private(const char *what) {
  opened x = open_session(NULL);
  yk_board b = { 0 };
  CHECK_OK(yk__board_read(folder, &b));
  if (b.n != 0) fail_msg("%s: %u processes are seen", what, b.n);
  yk__board_free(&b);
  close_session(&x);
}

static void test_private(void **state) {
  struct rlimit before, small;
  (void)state;
  CHECK_OK(yk__param_set("board", "0"));
  check_private("switched off");
  CHECK_INT(files(folder), 0);
  CHECK_OK(yk__param_set("board", "1"));
  CHECK_INT(mkdir(folder, 0777), 0);
  CHECK_INT(chmod(folder, 0777), 0);
  check_private("a folder that others may enter");
  CHECK_INT(chmod(folder, 0700), 0);
  signal(SIGXFSZ, SIG_IGN);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 4096;                                     /* as good as a full disk */
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  check_private("no room");
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  CHECK_INT(files(folder), 0);
  CHECK_INT(rmdir(folder), 0);
  CHECK_INT(symlink("/tmp", folder), 0);
  check_private("a link");
  CHECK_INT(unlink(folder), 0);
  int file = open(folder, O_CREAT | O_WRONLY, 0600);
  assert_true(file >= 0);
  close(file);
  check_private("a file");
  CHECK_INT(unlink(folder), 0);
  setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1);
  check_private("no folder");
  setenv("XDG_RUNTIME_DIR", root, 1);
}

static void test_folder(void **state) {
  char buf[YK__BOARD_PATH], want[64], text[600];
  (void)state;
  setenv("XDG_RUNTIME_DIR", "relative", 1);
  snprintf(want, sizeof want, "/dev/shm/yoke-%lu", (unsigned long)geteuid());
  assert_string_equal(yk__board_folder(buf), want);
  unsetenv("XDG_RUNTIME_DIR");
  assert_string_equal(yk__board_folder(buf), want);
  memset(text, 'x', sizeof text - 1);
  text[0] = '/';
  text[sizeof text - 1] = '\0';
  setenv("XDG_RUNTIME_DIR", text, 1);
  assert_string_equal(yk__board_folder(buf), "");
  check_private("a path that is too long");
  setenv("XDG_RUNTIME_DIR", root, 1);
}

/* ---- files that are not what they should be ------------------------------------------------------------------------- */

/* A file with these bytes, held as a living process holds it. */
static int hold(const char *name, const void *bytes, size_t n) {
  char path[YK__BOARD_PATH + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
  assert_true(file >= 0);
  CHECK_INT(write(file, bytes, n), n);
  CHECK_INT(flock(file, LOCK_EX | LOCK_NB), 0);
  return file;
}

static yk_board_page *good_page(void) {
  yk_board_page *p = calloc(1, sizeof *p);
  assert_non_null(p);
  memcpy(p->magic, yk__board_magic, sizeof p->magic);
  p->version = YK__BOARD_VERSION;
  p->bytes = sizeof *p;
  p->pid = getpid();
  p->start = yk__process_start(getpid());
  snprintf(p->command, sizeof p->command, "somebody");
  for (int i = 0; i < 4; i++) {
    snprintf(p->slot[i].name, sizeof p->slot[i].name, "/device:GPU:%d", i);
    atomic_store(&p->slot[i].session, 1);
  }
  return p;
}

static void test_foreign_files(void **state) {
  (void)state;
  yk_board_page *p = good_page();
  CHECK_INT(mkdir(folder, 0700), 0);
  int file = hold("1-2.board", p, sizeof *p);
  yk_board b = read_board(1);
  yk__board_free(&b);
  close(file);
  struct { const char *what; size_t n; } cases[] = { { "empty", 0 }, { "short", sizeof *p - 1 }, { "one byte", 1 } };
  for (size_t i = 0; i < 3; i++) {
    file = hold("1-2.board", p, cases[i].n);
    b = read_board(0);
    CHECK_INT(files(folder), 1);                             /* held: it stays */
    close(file);
    b = read_board(0);
    CHECK_INT(files(folder), 0);                             /* nobody's: it goes */
  }
  p->version = YK__BOARD_VERSION + 1;
  file = hold("1-2.board", p, sizeof *p);
  b = read_board(0);
  close(file);
  p->version = YK__BOARD_VERSION;
  p->start += 12345;                                         /* the number of a process that is another now */
  file = hold("1-2.board", p, sizeof *p);
  b = read_board(0);
  CHECK_INT(files(folder), 1);
  close(file);
  p->start = 0;
  p->pid = -1;
  file = hold("1-2.board", p, sizeof *p);
  b = read_board(0);
  close(file);
  b = read_board(0);
  CHECK_INT(files(folder), 0);
  file = hold("notes.txt", "mine", 4);                       /* no name of ours: never touched */
  close(file);
  file = hold(".1-2", "new", 3);                             /* about to be finished by somebody */
  close(file);
  b = read_board(0);
  CHECK_INT(files(folder), 2);
  free(p);
  CHECK_INT(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_bad_slots(void **state) {
  (void)state;
  yk_board_page *p = good_page();
  CHECK_INT(mkdir(folder, 0700), 0);
  memset(p->slot[0].name, 'x', sizeof p->slot[0].name);      /* a text without an end */
  p->slot[1].fraction = 7;
  atomic_store(&p->slot[2].memory.held, UINT64_MAX);
  int file = hold("1-2.board", p, sizeof *p);
  yk_board b = read_board(1);
  for (int i = 0; i < 5; i++) CHECK_INT(atomic_load(&b.at[0].slot[i].session), i == 3);
  yk__board_free(&b);
  memset(p->command, 'x', sizeof p->command);
  close(file);
  file = hold("1-2.board", p, sizeof *p);
  b = read_board(0);
  close(file);
  free(p);
  CHECK_INT(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_garbage(void **state) {
  static const char *const words[] = { "yokebrd", "\xff\xff\xff\xff", "/job:localhost", "GPU-", NULL };
  fuzz f = { 7 };
  yk_board_page *good = good_page(), *bad = calloc(1, sizeof *bad);
  uint64_t seen = 0;
  (void)state;
  assert_non_null(bad);
  CHECK_INT(mkdir(folder, 0700), 0);
  for (uint64_t round = 0; round < fuzz_rounds(200); round++) {
    memcpy(bad, good, sizeof *bad);
    size_t n = fuzz_mutate(&f, (uint8_t *)bad, fuzz_below(&f, 2) ? 4096 : sizeof *bad, sizeof *bad, fuzz_count(words));
    if (fuzz_below(&f, 2)) n = sizeof *bad;
    int file = hold("1-2.board", bad, n);
    yk_board b = { 0 };
    CHECK_OK(yk__board_read(folder, &b));
    for (uint32_t i = 0; i < b.n; i++) {
      seen++;
      if (memchr(b.at[i].command, 0, sizeof b.at[i].command) == NULL) fail_msg("round %llu: a command without end", (unsigned long long)round);
      for (int k = 0; k < YK__BOARD_SLOTS; k++) {
        const yk_board_slot *s = &b.at[i].slot[k];
        if (atomic_load(&s->session) != 0 && (memchr(s->name, 0, sizeof s->name) == NULL || !(s->fraction >= 0)))
          fail_msg("round %llu: slot %d", (unsigned long long)round, k);
      }
    }
    yk__board_free(&b);
    close(file);
  }
  if (seen == 0) fail_msg("no page survived: the test looks at nothing");
  free(good);
  free(bad);
  CHECK_INT(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_out_of_memory(void **state) {
  yk_board b = { .n = 77 };
  (void)state;
  opened x = open_session(NULL);
  for (uint64_t n = 1; n <= 2; n++) {
    yk__alloc_fail_at(n);
    CHECK_CODE(yk__board_read(folder, &b), YK_ENOMEM, "");
    yk__alloc_fail_at(0);
    CHECK_INT(b.n, 77);
  }
  b = read_board(1);
  yk__board_free(&b);
  CHECK_INT(b.n, 0);
  close_session(&x);
}

static void test_process_start(void **state) {
  (void)state;
  assert_true(yk__process_start(getpid()) > 0);
  CHECK_INT(yk__process_start(-5), 0);
  CHECK_INT(yk__process_start(INT64_MAX), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(test_published), TEST(test_counts), TEST(test_busy), TEST(test_sessions), TEST(test_killed), TEST(test_forked), TEST(test_private),
    TEST(test_folder), TEST(test_foreign_files), TEST(test_bad_slots), TEST(test_garbage), TEST(test_out_of_memory),
    TEST(test_process_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
