/*
 * test_executor.c - the executor on hand-made plans: order, failures, time-outs.
 *
 * Plans are written out here, with kernels of the test's own on the CPU driver's
 * streams, so nothing depends on the planner or on real operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "backend/cpu/cpu.h"
#include "base/alloc.h"
#include "base/error.h"
#include "run/run.h"

enum { N = 4 };

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static yk_code twice(const yk_kernel *k, void *const *arg, void *workspace) {
  (void)k; (void)workspace;
  for (int i = 0; i < N; i++) ((float *)arg[1])[i] = 2 * ((const float *)arg[0])[i];
  return YK_OK;
}

static yk_code plus(const yk_kernel *k, void *const *arg, void *workspace) {
  (void)k; (void)workspace;
  for (int i = 0; i < N; i++) ((float *)arg[2])[i] = ((const float *)arg[0])[i] + ((const float *)arg[1])[i];
  return YK_OK;
}

static yk_code plus_counter(const yk_kernel *k, void *const *arg, void *workspace) {
  (void)k; (void)workspace;
  for (int i = 0; i < N; i++) ((float *)arg[2])[i] = ((const float *)arg[0])[i] + (float)*(const int64_t *)arg[1];
  return YK_OK;
}

static yk_code refuse_negative(const yk_kernel *k, void *const *arg, void *workspace) {
  (void)k; (void)workspace;
  for (int i = 0; i < N; i++)
    if (((const float *)arg[0])[i] < 0) return YK_FAIL(EINVAL, "element %d is %g", i, ((const float *)arg[0])[i]);
  return twice(k, arg, workspace);
}

static _Atomic int gate;                       /* 0: slow() waits */
static yk_code slow(const yk_kernel *k, void *const *arg, void *workspace) {
  while (atomic_load(&gate) == 0) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
  return twice(k, arg, workspace);
}

static void *room[8][4];
static yk_kernel make_kernel(yk_dev *dev, int slot, yk_code (*run)(const yk_kernel *, void *const *, void *), uint32_t nin) {
  return (yk_kernel){ .run = run, .impl = "test", .dev = dev, .nin = nin, .nout = 1, .inline_arg = room[slot] };
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static const yk_desc vec = { .dtype = YK_F32, .rank = 1, .dim = { N } };
static yk_origin origin[] = { { "a", "Twice", "user.c:1", NULL }, { "b", "Check", "user.c:2", NULL },
                              { "c", "Add", "user.c:3", NULL } };

typedef struct fixture { yk_devices *d; uint16_t at[2]; yk_kernel kernel[4]; yk_plan_kernel pk[4]; yk_plan p; } fixture;

static uint64_t in_use(const yk_device *d) {
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  yk__device_memory(d, &m);
  return m.bytes_in_use;
}

static void open_devices(fixture *f, uint16_t n) {
  const yk_device_request r = { .type = "CPU", .driver = "cpu", .count = n, .limit = 1 << 20 };
  assert_int_equal(yk__devices_open(1, &r, 1, &f->d), YK_OK);
}

/* Of which the second one is a virtual GPU with the same cores: they work on one stream. */
static void open_cpu_and_gpu(fixture *f) {
  const yk_device_request r[] = { { .type = "CPU", .driver = "cpu", .count = 1, .limit = 1 << 20 },
                                  { .type = "GPU", .driver = "cpu", .count = 1, .limit = 1 << 20, .is_virtual = 1 } };
  assert_int_equal(yk__devices_open(2, r, 1, &f->d), YK_OK);
}

static void kernels(fixture *f, uint32_t n, yk_code (*const run[])(const yk_kernel *, void *const *, void *),
                    const uint32_t *nin, const uint16_t *dev) {
  for (uint32_t i = 0; i < n; i++) {
    f->kernel[i] = make_kernel(f->d->at[dev[i]].dev, (int)i, run[i], nin[i]);
    f->pk[i] = (yk_plan_kernel){ .kernel = &f->kernel[i], .impl = "test", .workspace = YK_NO_BUF };
  }
  f->p.kernel = f->pk;
  f->p.nkernel = n;
  f->p.origin = origin;
  f->p.norigin = 3;
  f->p.devices = f->d;
}

#define BUF(k, a, i) { .kind = (k), .arena = (a), .index = 0, .offset = 64u * (i), .bytes = N * sizeof(float), \
                       .desc = { .dtype = YK_F32, .rank = 1, .dim = { N } } }

static const float x[N] = { 1, 2, 3, 4 };

static void expect(const float *got, float a, float b, float c, float d) {
  const float want[N] = { a, b, c, d };
  for (int i = 0; i < N; i++)
    if (got[i] != want[i]) fail_msg("element %d: %g, expected %g", i, (double)got[i], (double)want[i]);
}

/* feed x; b = check(x); c = b + counter; fetch c, all on one device */
static void single_plan(fixture *f) {
  static yk_instr instr[] = { { YK_I_FEED, 0, 1, 0, 0, 0 }, { YK_I_LAUNCH, 0, 2, 1, 0, 1 }, { YK_I_LAUNCH, 0, 3, 3, 1, 2 },
                              { YK_I_FETCH, 0, 1, 6, 0, 2 } };
  static uint32_t arg[] = { 0, 0, 1, 1, 3, 2, 2 };
  static yk_buf buf[] = { BUF(YK_BUF_ARENA, 0, 0), BUF(YK_BUF_ARENA, 0, 1), BUF(YK_BUF_ARENA, 0, 2), BUF(YK_BUF_COUNTER, 0, 3) };
  static yk_arena arena[] = { { 0, 256, 256 } };
  static uint16_t stream_dev[] = { 0 };
  static yk_plan_value feed[1], fetch[1];
  buf[3].bytes = 8;
  feed[0].desc = fetch[0].desc = vec;
  open_devices(f, 1);
  kernels(f, 2, (yk_code (*const[])(const yk_kernel *, void *const *, void *)){ refuse_negative, plus_counter },
          (uint32_t[]){ 1, 2 }, (uint16_t[]){ 0, 0 });
  f->p.instr = instr; f->p.ninstr = 4; f->p.arg = arg; f->p.narg = 7; f->p.buf = buf; f->p.nbuf = 4; f->p.arena = arena;
  f->p.narena = 1;
  f->p.stream_dev = stream_dev; f->p.nstream = 1; f->p.feed = feed; f->p.nfeed = 1; f->p.fetch = fetch; f->p.nfetch = 1;
  f->p.uses_counter = 1;
}

static void test_single_inline(void **state) {
  (void)state;
  fixture f = { 0 };
  single_plan(&f);
  yk_run *r;
  assert_int_equal(yk__run_new(&f.p, f.d, NULL, &r), YK_OK);
  assert_true(r->is_inline);
  float out[N] = { 0 };
  const void *feed[] = { x };
  void *fetch[] = { out };
  yk_io io = { .feed = feed, .fetch = fetch, .counter = 7, .timeout_ms = 1000 };
  assert_int_equal(yk__run_go(r, &io), YK_OK);
  expect(out, 9, 11, 13, 15);
  uint64_t before = yk__alloc_count();
  for (io.counter = 0; io.counter < 1000; io.counter++) assert_int_equal(yk__run_go(r, &io), YK_OK);
  assert_int_equal(yk__alloc_count(), before);
  expect(out, 1001, 1003, 1005, 1007);
  yk__run_free(r);
  assert_int_equal(in_use(&f.d->at[0]), 0);
  yk__devices_close(f.d);
}

static void test_single_failure(void **state) {
  (void)state;
  fixture f = { 0 };
  single_plan(&f);
  yk_run *r;
  assert_int_equal(yk__run_new(&f.p, f.d, NULL, &r), YK_OK);
  const float bad[N] = { 1, 2, -3, 4 };
  float out[N] = { 0 };
  const void *feed[] = { bad };
  void *fetch[] = { out };
  yk_io io = { .feed = feed, .fetch = fetch, .timeout_ms = -1 };
  assert_int_equal(yk__run_go(r, &io), YK_EINVAL);
  assert_string_equal(yk_error_message(), "b (Check) at user.c:2: element 2 is -3");
  expect(out, 0, 0, 0, 0);
  feed[0] = x;
  assert_int_equal(yk__run_go(r, &io), YK_OK);
  expect(out, 2, 4, 6, 8);
  yk__run_free(r);
  yk__devices_close(f.d);
}

/* device 0: feed x, a = 2x, record; device 1: wait, copy, b = check(a') or slow, record;
 * device 0: wait, copy back, c = a + b'', fetch */
static void double_plan(fixture *f, yk_code (*middle)(const yk_kernel *, void *const *, void *), bool with_gpu) {
  static yk_instr instr[] = {
    { YK_I_FEED, 0, 1, 0, 0, 0 }, { YK_I_LAUNCH, 0, 2, 1, 0, 0 }, { YK_I_RECORD, 0, 0, 0, 0, 0 },
    { YK_I_WAIT, 1, 0, 0, 0, 1 }, { YK_I_COPY_PEER, 1, 2, 3, 0, 0 }, { YK_I_LAUNCH, 1, 2, 5, 1, 1 },
    { YK_I_RECORD, 1, 0, 0, 1, 1 },
    { YK_I_WAIT, 0, 0, 0, 1, 2 }, { YK_I_COPY_PEER, 0, 2, 7, 0, 1 }, { YK_I_LAUNCH, 0, 3, 9, 2, 2 },
    { YK_I_FETCH, 0, 1, 12, 0, 2 },
  };
  static uint32_t arg[] = { 0, 0, 1, 4, 1, 4, 5, 2, 5, 1, 2, 3, 3 };
  static yk_buf buf[] = { BUF(YK_BUF_ARENA, 0, 0), BUF(YK_BUF_ARENA, 0, 1), BUF(YK_BUF_ARENA, 0, 2), BUF(YK_BUF_ARENA, 0, 3),
                          BUF(YK_BUF_ARENA, 1, 0), BUF(YK_BUF_ARENA, 1, 1) };
  static yk_arena arena[] = { { 0, 256, 256 }, { 1, 128, 128 } };
  static uint16_t stream_dev[] = { 0, 1 }, event_stream[] = { 0, 1 };
  static yk_plan_value feed[1], fetch[1];
  feed[0].desc = fetch[0].desc = vec;
  if (with_gpu) open_cpu_and_gpu(f);
  else open_devices(f, 2);
  kernels(f, 3, (yk_code (*const[])(const yk_kernel *, void *const *, void *)){ twice, middle, plus }, (uint32_t[]){ 1, 1, 2 },
          (uint16_t[]){ 0, 1, 0 });
  f->p.instr = instr; f->p.ninstr = 11; f->p.arg = arg; f->p.narg = 13; f->p.buf = buf; f->p.nbuf = 6; f->p.arena = arena;
  f->p.narena = 2;
  f->p.stream_dev = stream_dev; f->p.nstream = 2; f->p.event_stream = event_stream; f->p.nevent = 2;
  f->p.feed = feed; f->p.nfeed = 1; f->p.fetch = fetch; f->p.nfetch = 1;
}

static void check_two_devices(bool with_gpu) {
  fixture f = { 0 };
  double_plan(&f, refuse_negative, with_gpu);
  yk_run *r;
  assert_int_equal(yk__run_new(&f.p, f.d, NULL, &r), YK_OK);
  assert_false(r->is_inline);
  assert_int_equal(r->lane[0].stream == r->lane[1].stream, with_gpu);
  float out[N] = { 0 };
  const float bad[N] = { 1, -2, 3, 4 };
  const void *feed[] = { x };
  void *fetch[] = { out };
  yk_io io = { .feed = feed, .fetch = fetch, .timeout_ms = 60000 };
  for (int turn = 0; turn < 50; turn++) {
    io.timeout_ms = turn % 2 ? 60000 : -1;
    memset(out, 0, sizeof out);
    feed[0] = x;
    assert_int_equal(yk__run_go(r, &io), YK_OK);
    expect(out, 6, 12, 18, 24);
    feed[0] = bad;
    assert_int_equal(yk__run_go(r, &io), YK_EINVAL);
    assert_string_equal(yk_error_message(), "b (Check) at user.c:2: element 1 is -4");
  }
  yk__run_free(r);
  yk__devices_close(f.d);
}

static void test_two_devices(void **state) {
  (void)state;
  check_two_devices(false);
}

static void test_two_devices_on_one_stream(void **state) {
  (void)state;
  check_two_devices(true);
}

/* Devices of different drivers, one of which cannot copy between devices: through the host, the same result. */
static void test_two_drivers(void **state) {
  (void)state;
  fixture f = { 0 };
  double_plan(&f, refuse_negative, false);
  yk_driver other = *f.d->at[1].driver;
  const yk_driver *mine = f.d->at[1].driver;
  other.copy_peer = NULL;
  f.d->at[1].driver = &other;
  yk_run *r;
  assert_int_equal(yk__run_new(&f.p, f.d, NULL, &r), YK_OK);
  assert_non_null(r->bounce);
  float out[N] = { 0 };
  const float bad[N] = { 1, 2, 3, -4 };
  const void *feed[] = { x };
  void *fetch[] = { out };
  yk_io io = { .feed = feed, .fetch = fetch, .timeout_ms = 60000 };
  for (int turn = 0; turn < 10; turn++) {
    memset(out, 0, sizeof out);
    feed[0] = x;
    assert_int_equal(yk__run_go(r, &io), YK_OK);
    expect(out, 6, 12, 18, 24);
    feed[0] = bad;
    assert_int_equal(yk__run_go(r, &io), YK_EINVAL);
    assert_string_equal(yk_error_message(), "b (Check) at user.c:2: element 3 is -8");
  }
  yk__run_free(r);
  f.d->at[1].driver = mine;
  yk__devices_close(f.d);
}

static void check_time_out(bool with_gpu) {
  fixture f = { 0 };
  double_plan(&f, slow, with_gpu);
  yk_run *r;
  assert_int_equal(yk__run_new(&f.p, f.d, NULL, &r), YK_OK);
  float out[N] = { 0 };
  const void *feed[] = { x };
  void *fetch[] = { out };
  yk_io io = { .feed = feed, .fetch = fetch, .timeout_ms = 30 };
  atomic_store(&gate, 0);
  assert_int_equal(yk__run_go(r, &io), YK_ECANCELLED);
  assert_non_null(strstr(yk_error_message(), "user.c:"));
  assert_non_null(strstr(yk_error_message(), "30 ms"));
  assert_true(r->busy);
  assert_int_equal(yk__run_drain(r, 20), YK_ECANCELLED);
  atomic_store(&gate, 1);
  assert_int_equal(yk__run_drain(r, 60000), YK_OK);
  assert_false(r->busy);
  memset(out, 0, sizeof out);
  assert_int_equal(yk__run_go(r, &io), YK_OK);
  expect(out, 6, 12, 18, 24);
  yk__run_free(r);
  yk__devices_close(f.d);
}

static void test_time_out(void **state) {
  (void)state;
  check_time_out(false);
  check_time_out(true);
}

static void test_too_large(void **state) {
  (void)state;
  fixture f = { 0 };
  single_plan(&f);
  yk_arena large[] = { { 0, 1 << 21, 1 << 21 } };
  f.p.arena = large;
  yk_run *r = NULL;
  assert_int_equal(yk__run_new(&f.p, f.d, NULL, &r), YK_ENOMEM);
  assert_null(r);
  assert_non_null(strstr(yk_error_message(), "2097152 bytes asked for, 0 in use, the limit is 1048576"));
  assert_non_null(strstr(yk_error_message(), "CPU:0"));
  assert_int_equal(in_use(&f.d->at[0]), 0);
  yk__devices_close(f.d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_single_inline), cmocka_unit_test(test_single_failure), cmocka_unit_test(test_two_devices),
    cmocka_unit_test(test_two_devices_on_one_stream),
    cmocka_unit_test(test_two_drivers), cmocka_unit_test(test_time_out), cmocka_unit_test(test_too_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
