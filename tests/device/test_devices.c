/*
 * test_devices.c - a session's devices: names, limits, shares of the cores.
 *
 * The null driver stands in where only names and numbers matter, since its memory costs nothing.
 */
#include <pthread.h>
#include <yoke/session.h>
#include "base/alloc.h"
#include "base/thread.h"
#include "rig.h"

static void test_names(void **state) {
  (void)state;
  const yk_device_request want[] = {
    { .type = "CPU", .count = 1 }, { .type = "GPU", .driver = "null", .count = 2, .is_virtual = 1 }, { .type = "GPU",
                                                                                                       .driver = "cpu",
        .count = 1 },
  };
  yk_devices *all = NULL;
  OK(yk__devices_open(3, want, 0, &all));
  assert_int_equal(all->n, 4);
  static const char *const names[] = { "CPU:0", "GPU:0", "GPU:1", "GPU:2" };
  static const char *const drivers[] = { "cpu", "null", "null", "cpu" };
  for (uint16_t i = 0; i < 4; i++) {
    char name[YK__DEVICE_TEXT];
    snprintf(name, sizeof name, "/job:localhost/replica:0/task:0/device:%s", names[i]);
    assert_string_equal(all->at[i].name, name);
    assert_string_equal(all->at[i].driver->name, drivers[i]);
    assert_int_equal(all->at[i].index, i);
    yk_device_spec request;
    char shorter[16];
    snprintf(shorter, sizeof shorter, "/%s", names[i]);
    OK(yk__device_parse(shorter, &request));
    assert_true(yk__device_matches(&request, &all->at[i].spec));
  }
  assert_int_equal(all->at[1].is_virtual, 1);
  assert_int_equal(all->at[3].is_virtual, 0);
  char text[512], small[60];
  assert_non_null(strstr(yk__devices_text(all, text, sizeof text), "CPU:0, /job:localhost/replica:0/task:0/device:GPU:0, "));
  assert_int_equal(strlen(yk__devices_text(all, small, sizeof small)), sizeof small - 1);
  yk__devices_close(all);
  yk__devices_close(NULL);
}

static void test_refused(void **state) {
  (void)state;
  yk_devices *all = NULL;
  FAILS(EINVAL, yk__devices_open(0, NULL, 0, &all));
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "CPU", .count = 0 }, 0, &all));
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "", .count = 1 }, 0, &all));
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "A_TYPE_TOO_LONG_TO_BE_ONE", .count = 1 }, 0, &all));
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "CPU", .count = 1 }, -1, &all));
  FAILS(ENOTFOUND, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .driver = "cuda", .count = 1 }, 0, &all));
  SAYS("cuda");
  SAYS("GPU");
  assert_null(all);
}

static yk_device_memory memory(const yk_device *d) {
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  yk__device_memory(d, &m);
  return m;
}

static uint64_t in_use(const yk_device *d) { return memory(d).bytes_in_use; }
static uint64_t held(const yk_device *d) { return memory(d).bytes_held; }

static void test_limits(void **state) {
  (void)state;
  const yk_device_request want[] = {
    { .type = "CPU", .count = 1 }, { .type = "GPU", .count = 1, .is_virtual = 1 },
    { .type = "GPU", .count = 1, .is_virtual = 1, .total = 4096, .limit = 1024 },
    { .type = "GPU", .count = 1, .is_virtual = 1, .total = 1 << 20, .fraction = 0.4 },
    { .type = "GPU", .count = 1, .is_virtual = 1, .total = 1 << 20, .limit = 2 << 20, .growth = 1 },
  };
  yk_devices *all = NULL;
  OK(yk__devices_open(5, want, 0, &all));
  uint64_t total = all->at[0].info.bytes_total;
  assert_int_equal(all->at[0].limit, total);
  assert_int_equal(all->at[1].limit, total / 4);
  assert_int_equal(all->at[2].limit, 1024);
  assert_int_equal(all->at[2].total, 4096);
  assert_int_equal(all->at[3].limit, (1 << 20) * 4 / 10);
  assert_int_equal(all->at[4].limit, 1 << 20);          /* not more than there is */
  yk_device *d = &all->at[2];
  yk_mem a = { 0 }, b = { 0 }, c = { .bytes = 3 };
  assert_int_equal(held(d), 0);
  OK(yk__device_alloc(d, 600, &a));
  assert_int_equal(held(d), 1024);                      /* all of it, from the first allocation on */
  OK(yk__device_alloc(d, 0, &b));
  assert_null(b.base);
  FAILS(ENOMEM, yk__device_alloc(d, 401, &c));
  SAYS("device:GPU:1: 401 bytes asked for, 1024 in use, the limit is 1024");     /* 600 are not worth a split */
  assert_true(c.base == NULL && c.bytes == 3);
  FAILS(ENOMEM, yk__device_alloc(d, SIZE_MAX, &c));
  yk__device_free(d, a);
  yk__device_free(d, b);
  yk__device_free(d, (yk_mem){ 0 });
  assert_int_equal(in_use(d), 0);
  OK(yk__device_alloc(d, 512, &a));
  OK(yk__device_alloc(d, 512, &c));
  assert_ptr_equal(a.base, c.base);
  assert_int_equal(a.offset + 512, c.offset);
  yk__device_free(d, a);
  assert_int_equal(in_use(d), 512);
  assert_int_equal(memory(d).peak_in_use, 1024);
  assert_int_equal(memory(d).refusals, 2);
  yk__device_free(d, c);
  assert_int_equal(in_use(d), 0);
  OK(yk__device_alloc(d, 100, &a));
  assert_int_equal(in_use(d), 256);
  assert_int_equal(memory(d).bytes_requested, 100);
  yk__device_free(d, a);
  assert_int_equal(in_use(d), 0);
  yk__alloc_fail_at(1);                                 /* the host itself has none left: counted back */
  FAILS(ENOMEM, yk__device_alloc(&all->at[0], 100, &a));
  yk__alloc_fail_at(0);
  SAYS("device:CPU:0");
  assert_int_equal(in_use(&all->at[0]), 0);
  yk__devices_close(all);
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .count = 1, .limit = 5, .fraction = 0.5 }, 0, &all));
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .count = 1, .fraction = 1.5 }, 0, &all));
}

/* Who opens the same device under the same limit shares its pool; under another one, or as another card, has his own. */
static void test_shared(void **state) {
  (void)state;
  const yk_device_request want = { .type = "GPU", .count = 2, .is_virtual = 1, .total = 1 << 20 };
  const uint16_t second[] = { 1 };
  yk_device_request one = want, less = want, growing = want;
  one.count = 1;
  one.numbers = second;
  less.limit = 1 << 19;
  growing.growth = 1;
  yk_devices *a = NULL, *b = NULL, *c = NULL, *d = NULL;
  uint64_t live = yk__alloc_live();
  OK(yk__devices_open(1, &want, 0, &a));
  OK(yk__devices_open(1, &one, 0, &b));
  OK(yk__devices_open(1, &less, 0, &c));
  OK(yk__devices_open(1, &growing, 0, &d));
  yk_mem mem = { 0 }, more = { 0 };
  OK(yk__device_alloc(&a->at[1], 600000, &mem));
  assert_int_equal(in_use(&a->at[0]), 0);
  assert_int_equal(in_use(&b->at[0]), in_use(&a->at[1]));       /* its GPU:0 is the machine's second */
  FAILS(ENOMEM, yk__device_alloc(&b->at[0], 600000, &more));
  assert_int_equal(in_use(&c->at[1]), 0);
  assert_int_equal(in_use(&d->at[1]), 0);
  yk__device_free(&a->at[1], mem);
  yk__devices_close(a);                                         /* the pool lives on in b */
  OK(yk__device_alloc(&b->at[0], 600000, &more));
  yk__device_free(&b->at[0], more);
  yk__devices_close(d);
  yk__devices_close(c);
  yk__devices_close(b);
  assert_int_equal(yk__alloc_live(), live);
}

/* What a card that nobody limits gives: all that is free but a reserve. */
static void test_whole_card(void **state) {
  (void)state;
  static const struct { uint64_t free, whole; } row[] = {      /* MiB */
    { 100, 100 }, { 225, 225 }, { 1024, 799 }, { 2048, 1748 }, { 4096, 3796 }, { 8192, 7783 }, { 81920, 77824 },
  };
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    uint64_t whole = yk__memory_whole(&(yk_dev_info){ .bytes_free = row[i].free << 20, .bytes_total = (uint64_t)90000 << 20 }) >> 20;
    if (whole + 1 < row[i].whole || whole > row[i].whole)
      fail_msg("%llu MiB free: %llu, expected %llu", (unsigned long long)row[i].free, (unsigned long long)whole,
               (unsigned long long)row[i].whole);
  }
}

/* A CPU device holds what is in use, to the byte. */
static void test_host_memory(void **state) {
  (void)state;
  yk_devices *all = NULL;
  OK(yk__devices_open(1, &(yk_device_request){ .type = "CPU", .count = 1, .limit = 1000 }, 0, &all));
  yk_device *d = &all->at[0];
  yk_mem a = { 0 }, b = { 0 };
  OK(yk__device_alloc(d, 600, &a));
  assert_int_equal(held(d), 600);
  FAILS(ENOMEM, yk__device_alloc(d, 401, &b));
  SAYS("401 bytes asked for, 600 in use, the limit is 1000");
  OK(yk__device_alloc(d, 400, &b));
  yk__device_free(d, a);
  assert_int_equal(held(d), 400);
  assert_int_equal(in_use(d), 400);
  assert_int_equal(memory(d).peak_held, 1000);
  yk__device_free(d, b);
  assert_int_equal(held(d), 0);
  yk__devices_close(all);
}

static void check_shares(uint16_t cpus, uint16_t gpus, int cores, const uint32_t *first, const uint32_t *n) {
  const yk_device_request want[] = { { .type = "CPU", .driver = "null", .count = cpus }, { .type = "GPU", .driver = "null",
                                                                                           .count = gpus } };
  yk_devices *all = NULL;
  OK(yk__devices_open(2, want, cores, &all));
  for (uint16_t i = 0; i < all->n; i++) {
    const yk_dev_config *c = &all->at[i].config;
    if (c->first_core != first[i] || c->ncores != n[i])
      fail_msg("%u CPUs, %u GPUs, %d cores: %s has %u from %u, expected %u from %u", cpus, gpus, cores, all->at[i].name,
               c->ncores, c->first_core, n[i], first[i]);
    if (c->pin && (int)(c->first_core + c->ncores) > yk__ncores()) fail_msg("%s pinned to cores that are not there",
                                                                            all->at[i].name);
  }
  yk__devices_close(all);
}

#define LIST(...) (const uint32_t[]){ __VA_ARGS__ }
static void test_shares(void **state) {
  (void)state;
  check_shares(1, 0, 8, LIST(0), LIST(8));
  check_shares(4, 0, 8, LIST(0, 2, 4, 6), LIST(2, 2, 2, 2));
  check_shares(1, 4, 8, LIST(0, 0, 2, 4, 6), LIST(8, 2, 2, 2, 2));      /* the CPU works while the GPUs wait */
  check_shares(2, 3, 8, LIST(0, 0, 0, 3, 6), LIST(8, 8, 3, 3, 2));
  check_shares(0, 5, 2, LIST(0, 1, 0, 1, 0), LIST(1, 1, 1, 1, 1));      /* more devices than cores */
  uint32_t all = (uint32_t)yk__ncores();
  check_shares(1, 0, 0, LIST(0), LIST(all));
}

/* GPUs that name their cores get them first; the others share the rest, or take turns where there is none. */
static void check_asked(int cores, uint16_t n, const uint32_t *asked, const uint32_t *first, const uint32_t *got) {
  yk_device_request want[8] = { { .type = "CPU", .driver = "null", .count = 1 } };
  yk_devices *all = NULL;
  for (uint16_t k = 0; k < n; k++) want[k + 1] = (yk_device_request){ .type = "GPU", .driver = "null", .count = 1, .cores = asked[k] };
  OK(yk__devices_open((uint16_t)(n + 1), want, cores, &all));
  assert_int_equal(all->at[0].config.ncores, cores);
  for (uint16_t k = 0; k < n; k++) {
    const yk_dev_config *c = &all->at[k + 1].config;
    if (c->first_core != first[k] || c->ncores != got[k])
      fail_msg("%d cores, GPU %u asks for %u: it has %u from %u, expected %u from %u", cores, k, asked[k], c->ncores, c->first_core, got[k],
               first[k]);
  }
  yk__devices_close(all);
}

static void test_asked_cores(void **state) {
  (void)state;
  check_asked(8, 3, LIST(2, 2, 4), LIST(0, 2, 4), LIST(2, 2, 4));
  check_asked(8, 3, LIST(0, 4, 0), LIST(4, 0, 6), LIST(2, 4, 2));       /* the others share what is left */
  check_asked(8, 4, LIST(3, 0, 0, 0), LIST(0, 3, 5, 7), LIST(3, 2, 2, 1));
  check_asked(4, 3, LIST(3, 3, 1), LIST(0, 0, 3), LIST(3, 3, 1));       /* from the beginning again */
  check_asked(2, 3, LIST(2, 0, 0), LIST(0, 0, 1), LIST(2, 1, 1));       /* nothing is left: one core each, in turn */
  check_asked(1, 2, LIST(1, 1), LIST(0, 0), LIST(1, 1));
  yk_devices *all = NULL;
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .driver = "null", .count = 1, .cores = 5 }, 4, &all));
  SAYS("5 cores each are asked for, there are 4");
  assert_null(all);
}

static void *ask_stream(void *arg) {
  yk_stream *s = NULL;
  return yk__device_stream(arg, &s) == YK_OK ? s : NULL;
}

static void test_stream(void **state) {
  (void)state;
  enum { ASKERS = 4 };
  yk_devices *all = NULL;
  OK(yk__devices_open(1, &(yk_device_request){ .type = "CPU", .count = 1 }, 1, &all));
  pthread_t t[ASKERS];
  void *got[ASKERS];
  for (int i = 0; i < ASKERS; i++) assert_int_equal(pthread_create(&t[i], NULL, ask_stream, &all->at[0]), 0);
  for (int i = 0; i < ASKERS; i++) assert_int_equal(pthread_join(t[i], &got[i]), 0);
  assert_non_null(got[0]);
  for (int i = 1; i < ASKERS; i++) assert_ptr_equal(got[i], got[0]);
  OK(all->at[0].driver->stream_sync(got[0], NULL));
  yk__devices_close(all);
}

/* One virtual GPU has the CPU device's cores, so one thread serves both; of two each has its own, and the CPU device's stream, whose
 * work they would feel, keeps to one core. */
static void test_one_thread_for_the_same_cores(void **state) {
  (void)state;
  for (uint16_t ngpu = 1; ngpu <= 2; ngpu++) {
    const yk_device_request want[] = { { .type = "CPU", .count = 1 }, { .type = "GPU", .count = ngpu, .is_virtual = 1 } };
    yk_devices *all = NULL;
    yk_stream *home = NULL, *gpu = NULL;
    OK(yk__devices_open(2, want, 4, &all));
    assert_int_equal(all->at[0].config.ncores, 4);
    assert_int_equal(all->at[0].config.stream_cores, ngpu == 1 ? 0 : 1);
    assert_int_equal(all->at[1].config.stream_cores, 0);
    OK(yk__device_stream(&all->at[0], &home));
    OK(yk__device_stream(&all->at[1], &gpu));
    if ((home == gpu) != (ngpu == 1)) fail_msg("with %u GPUs: the streams are %p and %p", ngpu, (void *)home, (void *)gpu);
    yk__devices_close(all);
  }
}

static void test_same_memory(void **state) {
  (void)state;
  const yk_device_request want[] = { { .type = "CPU", .count = 2 }, { .type = "CPU", .driver = "null", .count = 1 },
                                     { .type = "GPU", .count = 1, .is_virtual = 1 } };
  yk_devices *all = NULL;
  OK(yk__devices_open(3, want, 0, &all));
  assert_true(yk__device_same_memory(&all->at[0], &all->at[1]));
  assert_false(yk__device_same_memory(&all->at[0], &all->at[2]));
  assert_false(yk__device_same_memory(&all->at[0], &all->at[3]));
  assert_true(yk__device_same_memory(&all->at[3], &all->at[3]));
  yk__devices_close(all);
}

/* Every allocation on the way fails once: a clean ENOMEM, nothing left behind. */
static void test_out_of_memory(void **state) {
  (void)state;
  const yk_device_request want[] = { { .type = "CPU", .count = 1 }, { .type = "GPU", .count = 2, .is_virtual = 1 } };
  uint64_t live = yk__alloc_live();
  yk_code rc = YK_ENOMEM;
  int tries = 0;
  for (uint64_t n = 1; rc != YK_OK; n++, tries++) {
    assert_true(n < 100);
    yk_devices *all = NULL;
    yk_stream *s = NULL;
    yk__alloc_fail_at(n);
    rc = yk__devices_open(2, want, 1, &all);
    if (rc == YK_OK) {
      rc = yk__device_stream(&all->at[1], &s);
      if (rc != YK_OK) assert_null(s);
      yk__devices_close(all);
    } else {
      assert_null(all);
    }
    yk__alloc_fail_at(0);
    if (rc != YK_OK) FAILS(ENOMEM, rc);
    assert_int_equal(yk__alloc_live(), live);
  }
  assert_true(tries >= 7);                     /* list, devices, three opened, a stream and its queue */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),  cmocka_unit_test(test_refused), cmocka_unit_test(test_limits),
    cmocka_unit_test(test_host_memory), cmocka_unit_test(test_shared), cmocka_unit_test(test_whole_card),
    cmocka_unit_test(test_shares), cmocka_unit_test(test_stream),  cmocka_unit_test(test_out_of_memory),
    cmocka_unit_test(test_one_thread_for_the_same_cores),          cmocka_unit_test(test_same_memory),
    cmocka_unit_test(test_asked_cores),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
