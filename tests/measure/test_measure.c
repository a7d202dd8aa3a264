/*
 * Medians, ranks and sentences on numbers that the test chose; links and speeds on devices that are small, equal, unequal or of
 * a driver that does nothing. Measured numbers are only held against zero: how fast this machine is, is not tested.
 */
#include <time.h>
#include "base/alloc.h"
#include "base/error.h"
#include "measure/measure.h"
#include "support/check.h"

static const double BLINK = 0.05;                    /* seconds for all copies of a test */

/* ---- medians -------------------------------------------------------------------------------------------------------- */

static void test_median(void **state) {
  double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 }, one[] = { 7 };
  (void)state;
  CHECK_NEAR(yk__median(odd, 3), 2, 0);
  CHECK_NEAR(yk__median(even, 4), 2.5, 0);
  CHECK_NEAR(yk__median(one, 1), 7, 0);
}

static int calls;
static yk_code count_call(void *arg) {
  calls++;
  return arg != NULL && calls == *(const int *)arg ? YK_FAIL(EIO, "call %d", calls) : YK_OK;
}

static yk_code slow_call(void *arg) {
  (void)arg;
  nanosleep(&(struct timespec){ .tv_nsec = 600000000 }, NULL);
  return YK_OK;
}

static void test_repeat(void **state) {
  double median = -1;
  uint32_t runs = 99;
  int third = 3;
  (void)state;
  calls = 0;
  CHECK_OK(yk__repeat(count_call, NULL, 3, 5, 1e9, &median, &runs));
  CHECK_INT(calls, 5);
  CHECK_INT(runs, 5);
  assert_true(median > 0);
  calls = 0;
  CHECK_OK(yk__repeat(count_call, NULL, 3, 200, 0, &median, &runs));        /* out of time: the least */
  CHECK_INT(runs, 3);
  CHECK_OK(yk__repeat(slow_call, NULL, 100, 200, 0, &median, &runs));
  if (median < 0.6) fail_msg("sleeping 0.6 s took %g s", median);
  if (runs < 1 || runs > 2) fail_msg("%u runs of 0.6 s within the second that it has patience for", runs);
  calls = 0;
  CHECK_OK(yk__repeat(count_call, NULL, 1, 1000000, 1e9, &median, &runs));
  CHECK_INT(runs, YK__SAMPLES);
  calls = 0;
  median = -1;
  CHECK_CODE(yk__repeat(count_call, &third, 1, 10, 1e9, &median, &runs), YK_EIO, "call 3");
  CHECK_NEAR(median, -1, 0);
  CHECK_INT(runs, YK__SAMPLES);
}

static void test_short_name(void **state) {
  char buf[YK__SHORT_BYTES];
  (void)state;
  assert_string_equal(yk__short_name("/job:localhost/replica:0/task:0/device:GPU:12", buf), "/gpu:12");
  assert_string_equal(yk__short_name("/device:CPU:0", buf), "/cpu:0");
  assert_string_equal(yk__short_name("odd", buf), "/odd");
}

/* ---- which devices match -------------------------------------------------------------------------------------------- */

static yk_device_info device(const char *type, int id, const char *model, uint64_t bytes) {
  yk_device_info d = { .bytes_limit = bytes };
  snprintf(d.name, sizeof d.name, "/job:localhost/replica:0/task:0/device:%s:%d", type, id);
  snprintf(d.type, sizeof d.type, "%s", type);
  snprintf(d.model, sizeof d.model, "%s", model);
  snprintf(d.driver, sizeof d.driver, "x");
  return d;
}

static void check_match(yk_device_info a, yk_device_info b, yk_match want, const char *text) {
  char why[YK__WHY_BYTES], back[YK__WHY_BYTES];
  yk_match got = yk__match(&a, &b, why);
  if (got != want || strstr(why, text) == NULL || (want == YK__EQUAL && why[0] != '\0'))
    fail_msg("%s, %s: %s \"%s\", expected %s with \"%s\"", a.name, b.name, yk__match_text(got), why, yk__match_text(want), text);
  if (yk__match(&b, &a, back) != want) fail_msg("%s, %s: %s, the other way another answer", a.name, b.name, yk__match_text(want));
}

static void test_match(void **state) {
  (void)state;
  yk_device_info a = device("GPU", 0, "H", 1 << 30), b = device("GPU", 1, "H", 1 << 30);
  check_match(a, b, YK__EQUAL, "");
  check_match(a, device("CPU", 0, "H", 1 << 30), YK__APART, "one is a GPU, the other a CPU");
  check_match(a, device("GPU", 1, "A", 1 << 30), YK__UNEQUAL, "H and A");
  check_match(a, device("GPU", 1, "H", 3u << 29), YK__UNEQUAL, "1.00 and 1.50 GiB");
  check_match(a, device("GPU", 1, "H", 1 << 20), YK__APART, "/gpu:1 has 1.0 MiB");
  a.ncores = 2;
  b.ncores = 1;
  check_match(a, b, YK__UNEQUAL, "2 and 1 cores");
}

/* n devices with links of 1 GB/s and 10 us. */
static yk_topology made(size_t n, yk_device_info *d, yk_link *between) {
  for (size_t i = 0; i < n * n; i++)
    between[i] = (yk_link){ .kind = i / n == i % n ? YK__LINK_SELF : YK__LINK_PEER, .measured = true, .bytes_per_second = 1e9,
                            .latency = 1e-5 };
  return (yk_topology){ .n = n, .device = d, .between = between };
}

static void check_sentences(const yk_topology *t, const char *want) {
  yk_str out = { 0 };
  yk__together(t, &out);
  if (out.s == NULL || strcmp(out.s, want) != 0) fail_msg("told\n%sexpected\n%s", out.s != NULL ? out.s : "nothing\n", want);
  yk__str_free(&out);
}

static void test_sentences(void **state) {
  yk_link between[16];
  yk_device_info d[4] = { device("CPU", 0, "C", 1 << 30), device("GPU", 0, "H", 1 << 30), device("GPU", 1, "H", 1 << 30),
                          device("GPU", 2, "A", 1 << 30) };
  (void)state;
  yk_topology t = made(1, d, between);
  check_sentences(&t, "/cpu:0 is the only device: there is no pair\n");
  t = made(2, d, between);
  check_sentences(&t, "there is one GPU, hence no pair of them\n/cpu:0 keeps the variables and is no partner for a GPU, whose pace it "
                      "would set: 100 MB of gradients reach it in 100.0 ms, and weights go back in 100.0 ms\n");
  t = made(2, d + 1, between);
  between[1].bytes_per_second = 5e8;
  CHECK_NEAR(yk__exchange_seconds(&t, 0, 1), 0.20001, 1e-9);
  check_sentences(&t, "/gpu:0 and /gpu:1 can train together: equal devices with 1.00 GiB each; gradients go from one to the other "
                      "directly, by the driver's peer copy: 100 MB in 200.0 ms\n");
  between[1].kind = between[2].kind = YK__LINK_HOST;
  d[1].is_virtual = d[2].is_virtual = true;
  d[1].ncores = d[2].ncores = 1;
  check_sentences(&t, "/gpu:0 and /gpu:1 can train together: equal devices with 1.00 GiB each; gradients go from one to the other "
                      "through host memory, in two copies: 100 MB in 200.0 ms; they share host cores, so together they are no faster "
                      "than one; they are virtual, so this rehearses cards and does not time them\n");
  between[1].measured = false;
  CHECK_NEAR(yk__exchange_seconds(&t, 0, 1), -1, 0);
  d[2].first_core = 1;
  d[1].is_virtual = d[2].is_virtual = false;
  check_sentences(&t, "/gpu:0 and /gpu:1 can train together: equal devices with 1.00 GiB each; gradients go from one to the other "
                      "through host memory, in two copies (not measured)\n");
}

static void test_unequal_sentences(void **state) {
  yk_link between[16];
  yk_device_info d[4] = { device("GPU", 0, "H", 1 << 30), device("GPU", 1, "H", 1 << 30), device("GPU", 2, "A", 1 << 30),
                          device("GPU", 3, "H", 1 << 20) };
  (void)state;
  yk_topology t = made(3, d, between);
  check_sentences(&t, "/gpu:0 and /gpu:1 can train together: equal devices with 1.00 GiB each; gradients go from one to the other "
                      "directly, by the driver's peer copy: 100 MB in 100.0 ms\n"
                      "/gpu:0 and /gpu:2 can train together, but are unequal (H and A): the slower one sets the pace, since each gets "
                      "the same share of a batch; gradients go from one to the other directly, by the driver's peer copy: 100 MB in "
                      "100.0 ms\n");
  t = made(2, d + 2, between);
  check_sentences(&t, "/gpu:2 and /gpu:3 cannot train together: /gpu:3 has 1.0 MiB of memory, which no network fits into\n");
}

/* ---- measured links ------------------------------------------------------------------------------------------------- */

static yk_session *open_session(const yk_session_options *o, yk_graph **g) {
  yk_session *s = NULL;
  CHECK_OK(yk_graph_new(g));
  CHECK_OK(yk_session_open(*g, o, &s));
  return s;
}

static void check_link(const yk_link *l, yk_link_kind kind) {
  if (l->kind != kind) fail_msg("a link of kind %s, expected %s", yk__link_text(l->kind), yk__link_text(kind));
  if (!l->measured || !(l->bytes_per_second > 0) || !(l->latency > 0) || l->copies < 1 || l->bytes == 0 ||
      !isfinite(l->bytes_per_second))
    fail_msg("%s: measured %d, %g bytes/s, %g s, %u copies of %llu bytes: %s", yk__link_text(kind), l->measured,
             l->bytes_per_second, l->latency, l->copies, (unsigned long long)l->bytes, l->why);
}

static void test_virtual_gpus(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  yk_topology t = { 0 };
  yk_str out = { 0 };
  (void)state;
  o.virtual_gpus = 2;
  o.virtual_gpu_bytes = 64 << 20;
  yk_session *s = open_session(&o, &g);
  CHECK_OK(yk__topology_measure(s, 0, &t));
  yk__topology_free(&t);
  uint64_t live = yk__alloc_live();                          /* with streams and pools */
  CHECK_OK(yk__topology_measure(s, BLINK, &t));
  CHECK_INT(t.n, 3);
  for (size_t i = 0; i < 3; i++) {
    check_link(&t.in[i], YK__LINK_HOST);
    check_link(&t.out[i], YK__LINK_HOST);
    for (size_t k = 0; k < 3; k++) check_link(&t.between[3 * i + k], i == k ? YK__LINK_SELF : YK__LINK_PEER);
  }
  CHECK_INT(t.between[3 * 1 + 2].bytes, 16 << 20);           /* a quarter of what the GPUs have */
  yk__together(&t, &out);
  assert_non_null(strstr(out.s, "/gpu:0 and /gpu:1 can train together: equal devices"));
  assert_non_null(strstr(out.s, "/cpu:0 keeps the variables"));
  for (size_t i = 0; i < 3; i++) {                           /* everything was given back */
    yk_device_info d;
    CHECK_OK(yk_session_device(s, i, &d));
    CHECK_INT(d.bytes_in_use, 0);
  }
  yk__str_free(&out);
  yk__topology_free(&t);
  CHECK_INT(t.n, 0);
  CHECK_INT(yk__alloc_live(), live);
  yk_session_close(s);
  yk_graph_free(g);
}

/* CPU devices compute in one memory. */
static void test_one_memory(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  yk_topology t = { 0 };
  (void)state;
  o.cpu_devices = 2;
  o.cpu_bytes = 64 << 20;
  yk_session *s = open_session(&o, &g);
  CHECK_OK(yk__topology_measure(s, BLINK, &t));
  check_link(&t.between[1], YK__LINK_MEMORY);
  check_link(&t.between[2], YK__LINK_MEMORY);
  yk__topology_free(&t);
  yk_session_close(s);
  yk_graph_free(g);
}

/* A driver without peer copies. */
static void test_drivers(void **state) {
  static const char *const drivers[] = { "null", "ref" };
  (void)state;
  for (int i = 0; i < 2; i++) {
    yk_session_options o = YK_SESSION_OPTIONS_INIT;
    yk_graph *g;
    yk_topology t = { 0 };
    o.drivers = drivers[i];
    o.virtual_gpus = 1;
    o.virtual_gpu_bytes = 32 << 20;
    yk_session *s = open_session(&o, &g);
    CHECK_OK(yk__topology_measure(s, BLINK, &t));
    check_link(&t.between[1], YK__LINK_PEER);
    check_link(&t.between[2], YK__LINK_PEER);
    yk__topology_free(&t);
    yk_session_close(s);
    yk_graph_free(g);
  }
}

/* A device too small for anything tells so, and the others are measured. */
static void test_no_memory(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  yk_topology t = { 0 };
  (void)state;
  o.virtual_gpus = 1;
  o.virtual_gpu_bytes = 1000;
  yk_session *s = open_session(&o, &g);
  CHECK_OK(yk__topology_measure(s, BLINK, &t));
  check_link(&t.between[0], YK__LINK_SELF);
  for (int i = 1; i < 4; i++)
    if (t.between[i].measured || strstr(t.between[i].why, "GPU:0") == NULL) fail_msg("link %d: %s", i, t.between[i].why);
  assert_false(t.in[1].measured);
  CHECK_NEAR(yk__exchange_seconds(&t, 0, 1), -1, 0);
  yk__topology_free(&t);
  yk_session_close(s);
  yk_graph_free(g);
}

static void test_topology_out_of_memory(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  yk_topology t = { .n = 77 };
  uint64_t n = 1;
  (void)state;
  o.virtual_gpus = 1;
  o.virtual_gpu_bytes = 1 << 20;
  o.cpu_bytes = 1 << 20;
  yk_session *s = open_session(&o, &g);
  CHECK_CODE(yk__topology_measure(NULL, 0, &t), YK_EINVAL, "no session");
  for (; n < 100; n++) {
    yk__alloc_fail_at(n);
    yk_code rc = yk__topology_measure(s, 0, &t);
    uint64_t refused = yk__alloc_fail_at(0);
    if (rc == YK_OK) yk__topology_free(&t);
    if (refused == 0) break;
    if (rc != YK_OK && rc != YK_ENOMEM) fail_msg("allocation %d: %s: %s", (int)n, yk_code_name(rc), yk_error_message());
    if (rc != YK_OK) CHECK_INT(t.n, 77);
    t.n = 77;
    yk_error_clear();
  }
  if (n < 7 || n == 100) fail_msg("%d allocations", (int)n);
  yk_session_close(s);
  yk_graph_free(g);
}

/* ---- speeds --------------------------------------------------------------------------------------------------------- */

static void test_bench(void **state) {
  static const struct { yk_bench_what what; int64_t size; } want[] = {
    { YK__BENCH_F32, 512 }, { YK__BENCH_BF16, 512 }, { YK__BENCH_MEMORY, 2 << 20 },
  };
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  (void)state;
  o.virtual_gpus = 1;
  o.virtual_gpu_bytes = 8 << 20;
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    yk_number x;
    yk__bench(&o, "/job:localhost/replica:0/task:0/device:GPU:0", want[i].what, &x);
    if (!x.measured || !(x.value > 0) || !isfinite(x.value) || x.runs < 1)
      fail_msg("%zu: %g in %u runs: %s", i, x.value, x.runs, x.why);
    if (x.size > want[i].size || x.size < want[i].size / 4)
      fail_msg("%zu: size %lld, expected at most %lld", i, (long long)x.size, (long long)want[i].size);
    assert_string_equal(x.why, "");
    assert_string_equal(yk_error_message(), "");
  }
}

/* Where the usual batch does not fit, a smaller one is taken and told; where none fits, the reason. */
static void test_bench_batch(void **state) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_number x;
  (void)state;
  o.virtual_gpus = 1;
  o.virtual_gpu_bytes = 24 << 20;
  yk__bench(&o, "/job:localhost/replica:0/task:0/device:GPU:0", YK__BENCH_TRAINING, &x);
  if (!x.measured || !(x.value > 0) || x.size >= YK__REFERENCE_BATCH || x.size < 1)
    fail_msg("%g at batch %lld: %s", x.value, (long long)x.size, x.why);
  assert_non_null(strstr(x.why, "a batch of 128 does not fit"));
  o.virtual_gpu_bytes = 1 << 20;
  yk__bench(&o, "/job:localhost/replica:0/task:0/device:GPU:0", YK__BENCH_TRAINING, &x);
  if (x.measured || strstr(x.why, "GPU:0") == NULL) fail_msg("%g: %s", x.value, x.why);
  yk__bench(&o, "/job:localhost/replica:0/task:0/device:GPU:7", YK__BENCH_F32, &x);
  if (x.measured || strstr(x.why, "GPU:7") == NULL) fail_msg("%g: %s", x.value, x.why);
}

static void test_rank(void **state) {
  yk_bench b[5] = { 0 };
  size_t order[5], want[5] = { 3, 1, 0, 2, 4 };
  (void)state;
  b[0].of[YK__BENCH_TRAINING] = (yk_number){ .measured = true, .value = 10 };
  b[1].of[YK__BENCH_TRAINING] = (yk_number){ .measured = true, .value = 20 };
  b[2].of[YK__BENCH_F32] = (yk_number){ .measured = true, .value = 1e12 };
  b[3].of[YK__BENCH_TRAINING] = (yk_number){ .measured = true, .value = 20 };
  b[3].of[YK__BENCH_F32] = (yk_number){ .measured = true, .value = 5 };
  b[1].of[YK__BENCH_F32] = (yk_number){ .measured = true, .value = 4 };
  yk__bench_rank(5, b, order);
  for (int i = 0; i < 5; i++)
    if (order[i] != want[i]) fail_msg("place %d has device %zu, expected %zu", i, order[i], want[i]);
  CHECK_NEAR(yk__bench_share(5, b, 0), 0.5, 1e-12);
  CHECK_NEAR(yk__bench_share(5, b, 3), 1, 0);
  CHECK_NEAR(yk__bench_share(5, b, 2), -1, 0);
  b[0].of[YK__BENCH_TRAINING].measured = b[1].of[YK__BENCH_TRAINING].measured = b[3].of[YK__BENCH_TRAINING].measured = false;
  CHECK_NEAR(yk__bench_share(5, b, 3), 5e-12, 1e-20);
  CHECK_NEAR(yk__bench_share(5, b, 4), -1, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_median), cmocka_unit_test(test_repeat), cmocka_unit_test(test_short_name), cmocka_unit_test(test_match),
    cmocka_unit_test(test_sentences), cmocka_unit_test(test_unequal_sentences), cmocka_unit_test(test_virtual_gpus),
    cmocka_unit_test(test_one_memory), cmocka_unit_test(test_drivers), cmocka_unit_test(test_no_memory),
    cmocka_unit_test(test_topology_out_of_memory), cmocka_unit_test(test_bench), cmocka_unit_test(test_bench_batch),
    cmocka_unit_test(test_rank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
