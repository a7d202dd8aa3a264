/*
 * test_conformance.c - what every driver must do, run against each built-in one.
 *
 * Only the driver's table is used, so the same tests fit a plugin. Each test runs on the CPU driver with a thread and
 * inline, on the reference driver, and on the null driver, where only the results of calls are compared.
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "rig.h"

static void test_memory(void **state) {
  static const size_t sizes[] = { 0, 1, 63, 64, 4096, (2u << 20) - 1, 2u << 20, (5u << 20) + 3 };
  rig r;
  rig_open(&r, *state);
  yk_dev_info info = { .size = sizeof info };
  OK(r.d->info(0, &info));
  assert_true(info.bytes_total > 0 && info.alignment > 0 && info.name[0]);
  FAILS(ENOTFOUND, r.d->info(7, &info));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    yk_mem m = { 0 };
    OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, sizes[i], &m));
    assert_non_null(m.base);                   /* NULL means "no data", which zero bytes are not */
    assert_int_equal(m.bytes, sizes[i]);
    void *p = NULL, *q = NULL;
    OK(r.d->mem_map(r.dev, m, &p));
    assert_int_equal((uintptr_t)p % info.alignment, 0);
    OK(r.d->mem_map(r.dev, rig_slice(m, sizes[i] / 2, 0), &q));
    assert_ptr_equal(q, (char *)p + sizes[i] / 2);
    if (r.v->real && sizes[i]) memset(p, 0x5a, sizes[i]);
    r.d->mem_free(r.dev, m);
  }
  yk_mem m = { .bytes = 77 };
  FAILS(ENOMEM, r.d->mem_alloc(r.dev, YK_DEVICE_MEM, SIZE_MAX - 4096, &m));
  assert_true(m.base == NULL && m.bytes == 77);
  rig_close(&r);
}

static void test_null_is_fine(void **state) {
  rig r;
  rig_open(&r, *state);
  r.d->mem_free(r.dev, (yk_mem){ 0 });
  r.d->stream_close(NULL);
  r.d->event_close(NULL);
  r.d->kernel_free(NULL);
  r.d->close(NULL);
  yk_stream *s = NULL;
  FAILS(EUNSUPPORTED, r.d->stream_open(r.dev, 0x80, &s));
  assert_null(s);
  rig_close(&r);
}

static void test_desc_bytes(void **state) {
  rig r;
  rig_open(&r, *state);
  uint64_t n = 0;
  OK(r.d->desc_bytes(r.dev, &(yk_desc){ .dtype = YK_F16, .rank = 3, .dim = { 3, 5, 7 } }, &n));
  assert_int_equal(n, 210);
  OK(r.d->desc_bytes(r.dev, &(yk_desc){ .dtype = YK_F64 }, &n));
  assert_int_equal(n, 8);
  OK(r.d->desc_bytes(r.dev, &(yk_desc){ .dtype = YK_F64, .rank = 2, .dim = { 0, 4 } }, &n));
  assert_int_equal(n, 0);
  n = 5;
  FAILS(EINVAL, r.d->desc_bytes(r.dev, &(yk_desc){ .dtype = YK_F32, .rank = 2, .dim = { 4, -1 } }, &n));
  FAILS(EINVAL, r.d->desc_bytes(r.dev, &(yk_desc){ .dtype = YK_F32, .rank = 2, .dim = { INT64_MAX, 16 } }, &n));
  assert_int_equal(n, 5);
  rig_close(&r);
}

static void test_copies(void **state) {
  static const size_t sizes[] = { 0, 1, 1000, 1024, 1025, 300 * 1024 + 7, (3u << 20) + 1 };
  rig r;
  rig_open(&r, *state);
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    size_t n = sizes[k];
    unsigned char *src = malloc(n + 1), *dst = malloc(n + 129);
    yk_mem a, b;
    for (size_t i = 0; i < n; i++) src[i] = (unsigned char)(i * 131 + k);
    memset(dst, 0, n + 129);
    OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, n, &a));
    OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, n + 128, &b));
    OK(r.d->fill(r.s, b, 0xee));
    OK(r.d->copy_in(r.s, a, src));
    OK(r.d->copy(r.s, rig_slice(b, 64, n), a));
    OK(r.d->copy_out(r.s, dst, b));
    OK(r.d->stream_sync(r.s, NULL));
    for (size_t i = 0; r.v->real && i < 64; i++)
      if (dst[i] != 0xee || dst[64 + n + i] != 0xee) fail_msg("size %zu: guard byte %zu is %x, %x", n, i, dst[i],
                                                              dst[64 + n + i]);
    for (size_t i = 0; r.v->real && i < n; i++)
      if (dst[64 + i] != src[i]) fail_msg("size %zu: byte %zu is %x, was %x", n, i, dst[64 + i], src[i]);
    FAILS(EINVAL, r.d->copy(r.s, b, a));       /* the source is shorter */
    OK(r.d->stream_sync(r.s, NULL));
    r.d->mem_free(r.dev, a);
    r.d->mem_free(r.dev, b);
    free(src);
    free(dst);
  }
  rig_close(&r);
}

/* Small host values may be reused at once, and everything happens in the order it was enqueued. */
static void test_order(void **state) {
  enum { N = 3000 };
  rig r;
  rig_open(&r, *state);
  int64_t *back = calloc(N, sizeof *back), value;
  yk_mem cell, log;
  OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, sizeof value, &cell));
  OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, N * sizeof value, &log));
  for (int64_t i = 0; i < N; i++) {
    value = i * i;
    if (i % 3 == 0) OK(r.d->fill(r.s, cell, (uint8_t)i));
    else OK(r.d->copy_in(r.s, cell, &value));
    OK(r.d->copy(r.s, rig_slice(log, (size_t)i * sizeof value, sizeof value), cell));
  }
  OK(r.d->copy_out(r.s, back, log));
  OK(r.d->stream_sync(r.s, NULL));
  for (int64_t i = 0; r.v->real && i < N; i++) {
    int64_t want = i * i;
    if (i % 3 == 0) memset(&want, (uint8_t)i, sizeof want);
    if (back[i] != want) fail_msg("entry %lld is %lld, expected %lld", (long long)i, (long long)back[i], (long long)want);
  }
  r.d->mem_free(r.dev, cell);
  r.d->mem_free(r.dev, log);
  free(back);
  rig_close(&r);
}

static yk_code pause_ms(void *self, int64_t rows, void *const *out) {
  (void)self;
  (void)rows;
  (void)out;
  nanosleep(&(struct timespec){ .tv_nsec = 30 * 1000 * 1000 }, NULL);
  return YK_OK;
}

/* More than any queue holds, behind a kernel that holds it up: the producer waits, nothing is lost or torn. */
static void test_overflow(void **state) {
  enum { N = 6000, WORDS = 125 };              /* 1000 bytes each: entries wrap at ever new places */
  rig r;
  rig_open(&r, *state);
  rig_call slow;
  rig_call_open(&r, r.dev, pause_ms, NULL, &slow);
  int64_t block[WORDS], *back = calloc((size_t)N * WORDS, sizeof *back);
  yk_mem all;
  OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, (size_t)N * sizeof block, &all));
  OK(rig_launch(&r, r.s, &slow));
  for (int64_t i = 0; i < N; i++) {
    size_t bytes = (size_t)(i % WORDS + 1) * sizeof block[0];
    for (int k = 0; k < WORDS; k++) block[k] = i * 1000 + k;
    OK(r.d->copy_in(r.s, rig_slice(all, (size_t)i * sizeof block, bytes), block));
  }
  OK(r.d->copy_out(r.s, back, all));
  OK(r.d->stream_sync(r.s, NULL));
  for (int64_t i = 0; r.v->real && i < N; i++)
    for (int64_t k = 0; k <= i % WORDS; k++)
      if (back[i * WORDS + k] != i * 1000 + k)
        fail_msg("block %lld word %lld is %lld", (long long)i, (long long)k, (long long)back[i * WORDS + k]);
  r.d->mem_free(r.dev, all);
  rig_call_close(&r, r.dev, &slow);
  free(back);
  rig_close(&r);
}

typedef struct step { uint64_t *x, mul, add; } step;
static yk_code advance(void *self, int64_t rows, void *const *out) {
  step *s = self;
  *s->x = *s->x * s->mul + s->add;             /* unsynchronised on purpose: only events order the two streams */
  memcpy(out[0], s->x, sizeof *s->x);
  return rows == 1 ? YK_OK : YK_EINTERNAL;
}

/* Two streams take turns on one number, ordered by two events that are recorded again each time. */
static void test_event_chain(void **state) {
  enum { TURNS = 2000 };
  rig r;
  rig_open(&r, *state);
  yk_stream *other;
  yk_event *mine, *theirs;
  OK(r.d->stream_open(r.dev, r.v->flags, &other));
  OK(r.d->event_open(r.dev, &mine));
  OK(r.d->event_open(r.dev, &theirs));
  uint64_t x = 1, want = 1, back = 0;
  step a = { &x, 3, 1 }, b = { &x, 5, 2 };
  rig_call ca, cb;
  rig_call_open(&r, r.dev, advance, &a, &ca);
  rig_call_open(&r, r.dev, advance, &b, &cb);
  for (int i = 0; i < TURNS; i++) {
    OK(r.d->event_wait(r.s, theirs));          /* the first time: never recorded, so nothing to wait for */
    OK(rig_launch(&r, r.s, &ca));
    OK(r.d->event_record(r.s, mine));
    OK(r.d->event_wait(other, mine));
    OK(rig_launch(&r, other, &cb));
    OK(r.d->event_record(other, theirs));
    want = (want * 3 + 1) * 5 + 2;
  }
  OK(r.d->copy_out(other, &back, cb.out));
  OK(r.d->stream_sync(other, NULL));
  OK(r.d->stream_sync(r.s, NULL));
  if (r.v->real && (x != want || back != want))
    fail_msg("after %d turns %llu, copied %llu, expected %llu", TURNS, (unsigned long long)x, (unsigned long long)back,
             (unsigned long long)want);
  OK(r.d->event_query(mine));
  OK(r.d->event_query(theirs));
  rig_call_close(&r, r.dev, &ca);
  rig_call_close(&r, r.dev, &cb);
  r.d->event_close(mine);
  r.d->event_close(theirs);
  r.d->stream_close(other);
  rig_close(&r);
}

static yk_code at_gate(void *self, int64_t rows, void *const *out) {
  (void)rows;
  (void)out;
  while (!atomic_load((atomic_int *)self)) sched_yield();
  return YK_OK;
}

static void test_event_states(void **state) {
  rig r;
  rig_open(&r, *state);
  atomic_int gate = r.v->threaded ? 0 : 1;
  rig_call wait;
  yk_event *e;
  uint64_t ns = 1;
  rig_call_open(&r, r.dev, at_gate, &gate, &wait);
  OK(r.d->event_open(r.dev, &e));
  OK(r.d->event_query(e));
  FAILS(EINVAL, r.d->event_time(e, &ns));
  assert_int_equal(ns, 1);
  uint64_t before = yk__host.now_ns(), last = before;
  for (int round = 0; round < 3; round++) {
    if (r.v->threaded) atomic_store(&gate, 0);
    OK(rig_launch(&r, r.s, &wait));
    OK(r.d->event_record(r.s, e));
    if (r.v->threaded) {
      FAILS(EBUSY, r.d->event_query(e));
      FAILS(EBUSY, r.d->event_time(e, &ns));
      if (YK_HAS(r.d, event_sync)) FAILS(EBUSY, r.d->event_sync(e, 2));
    }
    atomic_store(&gate, 1);
    if (YK_HAS(r.d, event_sync)) OK(r.d->event_sync(e, round % 2 ? 60000 : 0));
    OK(r.d->stream_sync(r.s, NULL));
    OK(r.d->event_query(e));
    OK(r.d->event_time(e, &ns));
    if (ns < last || ns > yk__host.now_ns()) fail_msg("round %d fired at %llu, not after %llu", round, (unsigned long long)ns,
                                                      (unsigned long long)last);
    last = ns;
  }
  rig_call_close(&r, r.dev, &wait);
  r.d->event_close(e);
  rig_close(&r);
}

static yk_code broken(void *self, int64_t rows, void *const *out) {
  (void)rows;
  (void)out;
  return (yk__host.fail)(YK_EDEVICE, __FILE__, __LINE__, "the wheel came off %s", (const char *)self);
}

/* Work after a failure is skipped until the sync, which tells who it was; events fire all the same. */
static void test_failure(void **state) {
  rig r;
  rig_open(&r, *state);
  if (!r.v->real) {                            /* nothing can fail where nothing is done */
    rig_close(&r);
    return;
  }
  yk_stream *other;
  yk_event *e;
  yk_mem m;
  rig_call bad;
  uint64_t failed = 99;
  unsigned char back[4] = { 1, 1, 1, 1 };
  OK(r.d->stream_open(r.dev, r.v->flags, &other));
  OK(r.d->event_open(r.dev, &e));
  OK(r.d->mem_alloc(r.dev, YK_DEVICE_MEM, sizeof back, &m));
  rig_call_open(&r, r.dev, broken, (void *)(uintptr_t)"the cart", &bad);
  for (int round = 0; round < 2; round++) {    /* twice: a sync leaves a working stream */
    OK(r.d->fill(r.s, m, 0x11));
    OK(r.d->event_record(r.s, e));             /* not counted */
    OK(r.d->copy_out(r.s, back, m));
    yk_code now = rig_launch(&r, r.s, &bad);   /* entry 2 */
    if (r.v->flags & YK_STREAM_INLINE) FAILS(EDEVICE, now);
    else OK(now);
    OK(r.d->fill(r.s, m, 0x22));
    (void)rig_launch(&r, r.s, &bad);
    OK(r.d->event_record(r.s, e));
    OK(r.d->event_wait(other, e));             /* does not hang */
    OK(r.d->stream_sync(other, &failed));
    FAILS(EDEVICE, r.d->event_query(e));
    yk_error_clear();
    FAILS(EDEVICE, r.d->stream_sync(r.s, &failed));
    SAYS("the wheel came off the cart");
    assert_int_equal(failed, 2);
    OK(r.d->stream_sync(r.s, &failed));
    OK(r.d->copy_out(r.s, back, m));
    OK(r.d->event_record(r.s, e));
    OK(r.d->stream_sync(r.s, &failed));
    OK(r.d->event_query(e));
    for (int i = 0; i < 4; i++) assert_int_equal(back[i], 0x11);
  }
  rig_call_close(&r, r.dev, &bad);
  r.d->mem_free(r.dev, m);
  r.d->event_close(e);
  r.d->stream_close(other);
  rig_close(&r);
}

/* Closing does what is still enqueued. */
static void test_close_drains(void **state) {
  rig r;
  rig_open(&r, *state);
  yk_stream *s;
  uint64_t x = 0;
  step add = { &x, 1, 1 };
  rig_call c;
  rig_call_open(&r, r.dev, advance, &add, &c);
  OK(r.d->stream_open(r.dev, r.v->flags, &s));
  for (int i = 0; i < 500; i++) OK(rig_launch(&r, s, &c));
  r.d->stream_close(s);
  assert_int_equal(x, r.v->real ? 500 : 0);
  rig_call_close(&r, r.dev, &c);
  rig_close(&r);
}

/* Eight devices at once pass a number round: each waits for the one before, takes its bytes and adds to them. */
static yk_code add_own(void *self, int64_t rows, void *const *out) {
  int64_t x;
  (void)rows;
  memcpy(&x, out[0], sizeof x);
  x = x * 2 + *(const int64_t *)self;
  memcpy(out[0], &x, sizeof x);
  return YK_OK;
}

static void test_eight_devices(void **state) {
  enum { DEVICES = 8, LAPS = 40 };
  rig r;
  rig_open(&r, *state);
  yk_dev *dev[DEVICES];
  yk_stream *s[DEVICES];
  yk_event *e[DEVICES];
  rig_call c[DEVICES];
  int64_t own[DEVICES], back = 0, want = 0;
  for (int i = 0; i < DEVICES; i++) {
    own[i] = i + 1;
    dev[i] = rig_device(&r);
    OK(r.d->stream_open(dev[i], r.v->flags, &s[i]));
    OK(r.d->event_open(dev[i], &e[i]));
    rig_call_open(&r, dev[i], add_own, &own[i], &c[i]);
    OK(r.d->fill(s[i], c[i].out, 0));
    OK(r.d->event_record(s[i], e[i]));
  }
  for (int i = 0; i < DEVICES * LAPS; i++) {
    int k = i % DEVICES, before = (i + DEVICES - 1) % DEVICES;
    OK(r.d->event_wait(s[k], e[before]));
    OK(r.d->copy_peer(s[k], c[k].out, dev[before], c[before].out));
    OK(rig_launch(&r, s[k], &c[k]));
    OK(r.d->event_record(s[k], e[k]));
    want = (int64_t)((uint64_t)want * 2 + (uint64_t)own[k]) & 0xffffffffff;
    if (k == DEVICES - 1) {                    /* keep the number small: start the lap's low bits again */
      OK(r.d->fill(s[k], rig_slice(c[k].out, 5, 3), 0));
      OK(r.d->event_record(s[k], e[k]));
    }
  }
  OK(r.d->copy_out(s[DEVICES - 1], &back, c[DEVICES - 1].out));
  for (int i = DEVICES; i-- > 0;) OK(r.d->stream_sync(s[i], NULL));
  if (r.v->real && back != want) fail_msg("after %d laps %lld, expected %lld", LAPS, (long long)back, (long long)want);
  for (int i = 0; i < DEVICES; i++) {
    rig_call_close(&r, dev[i], &c[i]);
    r.d->event_close(e[i]);
    r.d->stream_close(s[i]);
    r.d->close(dev[i]);
  }
  rig_close(&r);
}

static void test_unknown_op(void **state) {
  rig r;
  rig_open(&r, *state);
  yk_desc in = { .dtype = YK_F32, .rank = 1, .dim = { 4 } }, out = in;
  out.layout = YK_LAYOUT_ANY;
  yk_kernel_spec spec = { .size = sizeof spec, .op = "no_such_op", .nin = 1, .nout = 1, .in = &in, .out = &out };
  yk_kernel_info info = { .size = sizeof info, .workspace = 7 };
  yk_kernel *k = NULL;
  if (r.v->real) {
    FAILS(EUNSUPPORTED, r.d->kernel_prepare(r.dev, &spec, &k, &info));
    SAYS("no_such_op");
    assert_true(k == NULL && info.workspace == 7 && out.layout == YK_LAYOUT_ANY);
  } else {
    OK(r.d->kernel_prepare(r.dev, &spec, &k, &info));
    r.d->kernel_free(k);
  }
  rig_close(&r);
}

int main(void) {
  static const rig_variant variants[] = {
    { "cpu", 0, 1, 1 }, { "cpu", YK_STREAM_INLINE, 1, 0 }, { "ref", 0, 1, 0 }, { "ref", YK_STREAM_INLINE, 1, 0 }, { "null", 0, 0,
                                                                                                                    0 },
  };
  int failures = 0;
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
    void *v = (void *)(uintptr_t)&variants[i];
#define T(f) cmocka_unit_test_prestate(f, v)
    const struct CMUnitTest tests[] = {
      T(test_memory), T(test_null_is_fine), T(test_desc_bytes), T(test_copies), T(test_order), T(test_overflow),
          T(test_event_chain),
      T(test_event_states), T(test_failure), T(test_close_drains), T(test_eight_devices), T(test_unknown_op),
    };
#undef T
    print_message("driver %s%s\n", variants[i].driver, variants[i].flags ? ", inline" : "");
    failures += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return failures;
}
