/*
 * Threads, teams, locks and words. Pieces of a loop must cover it exactly once
 * for every size, grain and team; hand-overs must not lose a wake-up.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/param.h"
#include "base/thread.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct cover { _Atomic int hits[300]; _Atomic int pieces; int64_t grain; _Atomic int small; } cover;

static void mark(int64_t begin, int64_t end, void *arg) {
  cover *c = arg;
  atomic_fetch_add(&c->pieces, 1);
  if (end - begin < c->grain) atomic_fetch_add(&c->small, 1);
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&c->hits[i], 1);
}

static void test_parallel_for(void **state) {
  static const int64_t sizes[] = { 0, 1, 2, 3, 7, 16, 100, 300 }, grains[] = { 1, 3, 50, 1000 };
  (void)state;
  for (int team = 1; team <= 5; team++) {
    yk__team_set(team);
    CHECK_INT(yk__team(), team);
    for (int s = 0; s < 8; s++) {
      for (int k = 0; k < 4; k++) {
        cover c = { .grain = grains[k] };
        int64_t n = sizes[s], want = n / grains[k] < team ? n / grains[k] : team;
        if (want < 1) want = n > 0;
        yk__parallel_for(n, grains[k], mark, &c);
        for (int64_t i = 0; i < 300; i++) {
          int hits = atomic_load(&c.hits[i]);
          if (hits != (i < n)) fail_msg("team %d, n %d, grain %d: item %d done %d times", team, (int)n, (int)grains[k], (int)i, hits);
        }
        CHECK_INT(atomic_load(&c.pieces), want);
        if (n >= grains[k]) CHECK_INT(atomic_load(&c.small), 0);
      }
    }
  }
  yk__team_set(0);
  CHECK_INT(yk__team(), 1);
}

static void nested(int64_t begin, int64_t end, void *arg) {
  for (int64_t i = begin; i < end; i++) yk__parallel_for(100, 1, mark, arg);
}

static void test_parallel_for_nests(void **state) {
  cover c = { .grain = 1 };
  (void)state;
  yk__team_set(2);
  yk__parallel_for(4, 1, nested, &c);
  for (int i = 0; i < 100; i++) CHECK_INT(atomic_load(&c.hits[i]), 4);
}

static void *team_of_new_thread(void *arg) {
  *(int *)arg = yk__team();
  yk__team_set(7);
  return NULL;
}

static void test_team_belongs_to_a_thread(void **state) {
  int seen = 0;
  yk_thread t;
  (void)state;
  yk__team_set(3);
  CHECK_OK(yk__thread_start(&t, "a name longer than fits", team_of_new_thread, &seen));
  yk__thread_join(&t);
  yk__thread_join(&t);                   /* a second join is harmless */
  CHECK_INT(seen, yk__ncores());
  CHECK_INT(yk__team(), 3);
}

typedef struct turns { _Atomic uint32_t word; uint32_t n; } turns;

static void *odd_turns(void *arg) {
  turns *t = arg;
  for (uint32_t i = 1; i < t->n; i += 2) {
    uint32_t now;
    while ((now = atomic_load(&t->word)) != i) yk__word_wait(&t->word, now);
    atomic_store(&t->word, i + 1);
    yk__word_wake(&t->word);
  }
  return NULL;
}

static void take_turns(uint32_t n) {
  turns t = { 0, n };
  yk_thread other;
  CHECK_OK(yk__thread_start(&other, "odd", odd_turns, &t));
  for (uint32_t i = 0; i < n; i += 2) {
    uint32_t now;
    while ((now = atomic_load(&t.word)) != i) yk__word_wait(&t.word, now);
    atomic_store(&t.word, i + 1);
    yk__word_wake(&t.word);
  }
  yk__thread_join(&other);
  CHECK_INT(atomic_load(&t.word), n);
}

/* With spinning, and without: then every turn is a sleep and a wake-up. */
static void test_words(void **state) {
  (void)state;
  take_turns(20000);
  CHECK_OK(yk__param_set("spin_us", "0"));
  take_turns(5000);
  CHECK_OK(yk__param_set("spin_us", "50"));
}

typedef struct box { yk_mutex m; yk_cond c; int full, taken; } box;

static void *take_boxes(void *arg) {
  box *b = arg;
  for (int i = 0; i < 500; i++) {
    yk__mutex_lock(&b->m);
    while (!b->full) yk__cond_wait(&b->c, &b->m);
    b->full = 0;
    b->taken++;
    yk__cond_broadcast(&b->c);
    yk__mutex_unlock(&b->m);
  }
  return NULL;
}

static void test_mutex_and_condition(void **state) {
  box b = { .full = 0 };
  yk_thread t;
  (void)state;
  yk__mutex_init(&b.m);
  yk__cond_init(&b.c);
  CHECK_OK(yk__thread_start(&t, "taker", take_boxes, &b));
  for (int i = 0; i < 500; i++) {
    yk__mutex_lock(&b.m);
    while (b.full) yk__cond_wait(&b.c, &b.m);
    b.full = 1;
    yk__cond_signal(&b.c);
    yk__mutex_unlock(&b.m);
  }
  yk__thread_join(&t);
  CHECK_INT(b.taken, 500);
  yk__mutex_lock(&b.m);
  CHECK_INT(yk__cond_wait_ms(&b.c, &b.m, 0), 0);
  CHECK_INT(yk__cond_wait_ms(&b.c, &b.m, 5), 0);
  yk__mutex_unlock(&b.m);
  yk__cond_free(&b.c);
  yk__mutex_free(&b.m);
}

static int mask_size(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
  return CPU_COUNT(&set);
}

static void *count_cores(void *arg) {
  *(int *)arg = mask_size();
  return NULL;
}

static void *pin_and_start(void *arg) {
  int *seen = arg;
  yk_thread t;
  if (yk__pin(0, 1)) seen[0] = mask_size();
  if (yk__thread_start(&t, "child", count_cores, &seen[1]) == YK_OK) yk__thread_join(&t);
  return NULL;
}

static void test_pinning(void **state) {
  int seen[2] = { 0, 0 }, all = mask_size();
  yk_thread t;
  (void)state;
  CHECK_OK(yk__thread_start(&t, "pinned", pin_and_start, seen));
  yk__thread_join(&t);
  CHECK_INT(seen[0], 1);
  CHECK_INT(seen[1], all);               /* a child of a pinned thread is not pinned */
  CHECK_INT(yk__pin(0, 0), 0);
  CHECK_INT(yk__pin(-1, 1), 0);
  CHECK_INT(yk__pin(0, 100000), 0);
  CHECK_INT(mask_size(), all);
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void at(char *out, const char *root, const char *rest) {
  snprintf(out, 300, "%.200s/%s", root, rest);
}

/* A made-up cgroup tree, version 2 under a/b and version 1 under cpu/x. */
static void test_cgroup_quota(void **state) {
  char root[] = "/tmp/yoke-cgroup-XXXXXX", p[300], member[300];
  static const char *const files[] = { "cpu.max", "a/cpu.max", "a/b/cpu.max", "cpu/x/cpu.cfs_quota_us", "cpu/x/cpu.cfs_period_us",
                                       "self" };
  static const char *const folders[] = { "cpu/x", "cpu", "a/b", "a", "" };
  (void)state;
  assert_non_null(mkdtemp(root));
  for (int i = 3; i >= 0; i--) {
    at(p, root, folders[i]);
    CHECK_INT(mkdir(p, 0700), 0);
  }
  at(member, root, "self");
  at(p, root, "a/cpu.max"), write_file(p, "max 100000\n");
  at(p, root, "a/b/cpu.max"), write_file(p, "350000 100000\n");
  write_file(member, "0::/a/b\n");
  CHECK_INT(yk__cgroup_cores(member, root), 4);              /* three and a half, rounded up */
  at(p, root, "cpu.max"), write_file(p, "200000 100000\n");
  CHECK_INT(yk__cgroup_cores(member, root), 2);              /* a folder above is tighter */
  write_file(member, "0::/not/there\n");
  CHECK_INT(yk__cgroup_cores(member, root), 2);              /* seen from within a container: only the root is there */
  at(p, root, "cpu/x/cpu.cfs_quota_us"), write_file(p, "100000\n");
  at(p, root, "cpu/x/cpu.cfs_period_us"), write_file(p, "100000\n");
  write_file(member, "3:cpuset:/x\n2:cpu,cpuacct:/x\n");
  CHECK_INT(yk__cgroup_cores(member, root), 1);
  at(p, root, "cpu/x/cpu.cfs_quota_us"), write_file(p, "-1\n");
  CHECK_INT(yk__cgroup_cores(member, root), 0);
  CHECK_INT(yk__cgroup_cores("/no/such/file", root), 0);
  for (size_t i = 0; i < 6; i++) at(p, root, files[i]), remove(p);
  for (size_t i = 0; i < 5; i++) at(p, root, folders[i]), rmdir(p);
}

static void test_cores_setting(void **state) {
  int all = yk__ncores();
  (void)state;
  assert_true(all >= 1);
  CHECK_OK(yk__param_set("cores", "1"));
  CHECK_INT(yk__ncores(), 1);
  CHECK_OK(yk__param_set("cores", "1000000"));
  CHECK_INT(yk__ncores(), all);
  CHECK_OK(yk__param_set("cores", "0"));
}

static void test_clock_and_memory(void **state) {
  uint64_t a = yk__now_ns(), b = yk__now_ns();
  (void)state;
  assert_true(a > 0 && b >= a);
  assert_true(yk__rss_peak_bytes() > 100000);
}

static void test_start_without_memory(void **state) {
  yk_thread t = { NULL };
  uint64_t live = yk__alloc_live();
  int seen;
  (void)state;
  yk__alloc_fail_at(1);
  CHECK_CODE(yk__thread_start(&t, "none", count_cores, &seen), YK_ENOMEM, "memory");
  assert_null(t.impl);
  CHECK_INT(yk__alloc_live(), live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parallel_for), cmocka_unit_test(test_parallel_for_nests),
    cmocka_unit_test(test_team_belongs_to_a_thread),
    cmocka_unit_test(test_words), cmocka_unit_test(test_mutex_and_condition), cmocka_unit_test(test_pinning),
    cmocka_unit_test(test_cgroup_quota), cmocka_unit_test(test_cores_setting), cmocka_unit_test(test_clock_and_memory),
    cmocka_unit_test(test_start_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
