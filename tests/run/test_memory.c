/*
 * test_memory.c - limits, what is refused and how, plans that give way, and sessions that share a device's memory.
 *
 * Sizes of a gigabyte run on the null driver, whose memory nobody touches; where values are compared it is the CPU's, with pools
 * of a megabyte or two.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "base/alloc.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"
#include "run/support.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static yk_device_memory memory(const yk_session *s, size_t i) {
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  OK(yk_session_device_memory(s, i, &m));
  return m;
}

#define EQUAL(got, want)                                                                                      \
  do {                                                                                                        \
    unsigned long long got_ = (unsigned long long)(got), want_ = (unsigned long long)(want);                  \
    if (got_ != want_) fail_msg("line %d: %s is %llu, expected %llu", __LINE__, #got, got_, want_);           \
  } while (0)
#define SAYS(text) do { if (!strstr(yk_error_message(), (text))) fail_msg("\"%s\" lacks \"%s\"", yk_error_message(), (text)); } while (0)

/* ---- a step that cannot fit ------------------------------------------------------------------------------------- */

/* A variable of `n` floats on gpu:0, and a step over it that holds about as much twice again. */
typedef struct job { yk_variable *v; yk_value init, step; } job;
static job make_job(yk_graph *g, const char *name, int64_t n) {
  job j = { 0 };
  YK_DEVICE(g, "/gpu:0") {
    j.v = yk_get_variable(g, name, YK_F32, YK_SHAPE(n), YK_ONES, NULL);
    YK_NAME_SCOPE(g, name) {
      yk_value x = yk_read(j.v), sorted = yk_reshape(g, x, YK_SHAPE(n / 4, 4)), turned = yk_transpose(g, sorted, NULL);
      yk_value back = yk_transpose(g, turned, NULL);
      j.step = yk_reduce_sum(g, yk_mul(g, back, sorted), NULL);
    }
  }
  j.init = yk_initializer_op(j.v);
  return j;
}

static void test_refused_before_it_runs(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  job large = make_job(g, "large", 25 * MIB), small = make_job(g, "small", MIB);
  yk_session_options o = options(2);
  o.drivers = "null";
  o.virtual_gpu_bytes = 256 * MIB;
  yk_session *s = open_with(g, o);
  yk_tensor *out = NULL;
  run_target(s, large.init);                   /* its variables fit */
  EQUAL(memory(s, 1).bytes_held, 256 * MIB);
  yk_device_memory before = memory(s, 1);
  FAILS(yk_session_run(s, 0, NULL, 1, &large.step, 0, NULL, &out), YK_ENOMEM, "device:GPU:0: the step does not fit. It needs 300.");
  SAYS("200.00MiB for values between operations, 100.00MiB for variables (100.00MiB are there already); the limit is ");
  SAYS("the limit is 256.00MiB (268435456 bytes)");
  SAYS("The largest: ");
  SAYS("variable large f32[26214400] 100.00MiB");
  SAYS("value large_1/Transpose_1 f32[6553600,4] 100.00MiB");
  SAYS("f32[4,6553600] 100.00MiB");
  SAYS("a smaller batch");
  SAYS("larger virtual GPUs");
  assert_null(out);
  EQUAL(memory(s, 1).allocations, before.allocations);
  EQUAL(memory(s, 1).bytes_in_use, before.bytes_in_use);
  EQUAL(memory(s, 2).allocations, 0);
  run_target(s, small.init);                   /* the session stays usable */
  yk_tensor_free(run_fetch(s, small.step));
  end(s, g);
}

/* Variables that a step brings along are judged with it, and none of them is left behind. */
static void test_nothing_is_left_behind(void **state) {
  (void)state;
  yk_graph *g = new_graph(), *g2 = new_graph();
  job large = make_job(g, "large", 25 * MIB), middle = make_job(g, "middle", 15 * MIB), other = make_job(g2, "other", 20 * MIB);
  yk_session_options o = options(1);
  o.drivers = "null";
  o.virtual_gpu_bytes = 256 * MIB;
  yk_session *s = open_with(g, o), *s2 = open_with(g2, o);
  yk_tensor *out = NULL;
  FAILS(yk_session_run(s, 0, NULL, 1, &large.step, 0, NULL, &out), YK_ENOMEM, "100.00MiB for variables; the limit is");
  EQUAL(memory(s, 1).allocations, 0);
  EQUAL(memory(s, 1).bytes_held, 0);
  run_target(s2, other.init);                  /* 80 MiB of the same card, held by another session */
  FAILS(yk_session_run(s, 0, NULL, 1, &middle.step, 0, NULL, &out), YK_ENOMEM, "other sessions hold 80.");
  SAYS("bytes asked for");
  EQUAL(memory(s, 1).bytes_in_use, 80 * MIB);  /* the variable of 60 MiB was there for a moment; idle plans gave way */
  assert_true(memory(s, 1).refusals > 0);
  yk_session_close(s2);
  FAILS(yk_session_run(s, 0, NULL, 1, &middle.step, 0, NULL, &out), YK_EINVAL, "before it has a value");   /* it fits now */
  run_target(s, middle.init);
  yk_tensor_free(run_fetch(s, middle.step));
  yk_graph_free(g2);
  end(s, g);
}

/* The pool's own view goes to the log if it is asked for. */
static int dumped;
static void see_line(int level, const char *line, void *arg) {
  (void)level;
  (void)arg;
  dumped += strstr(line, "pool of /job:localhost") != NULL || strstr(line, "MaxAllocSize: ") != NULL;
}

static void test_dump(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  job large = make_job(g, "large", 25 * MIB);
  yk_session_options o = options(1);
  o.drivers = "null";
  o.virtual_gpu_bytes = 256 * MIB;
  yk_session *s = open_with(g, o);
  yk_tensor *out = NULL;
  yk__log_sink(see_line, NULL);
  for (int verbose = 2; verbose < 4; verbose++) {
    OK(yk__param_set("verbose", verbose == 2 ? "2" : "3"));
    dumped = 0;
    FAILS(yk_session_run(s, 0, NULL, 1, &large.step, 0, NULL, &out), YK_ENOMEM, "does not fit");
    EQUAL(dumped, verbose == 2 ? 0 : 2);
  }
  OK(yk__param_set("verbose", "2"));
  yk__log_sink(NULL, NULL);
  end(s, g);
}

/* Ten names at most, the rest in one sum. */
static void test_many_names(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value all[30] = { { 0 } };
  char name[16];
  YK_DEVICE(g, "/gpu:0") {
    for (int i = 0; i < 30; i++) {
      snprintf(name, sizeof name, "v%02d", i);
      all[i] = yk_initializer_op(yk_get_variable(g, name, YK_F32, YK_SHAPE(16 * KIB * (i + 1)), YK_ZEROS, NULL));
    }
  }
  yk_session_options o = options(1);
  o.virtual_gpu_bytes = 8 * MIB;
  yk_session *s = open_with(g, o);
  FAILS(yk_session_run(s, 0, NULL, 0, NULL, 30, all, NULL), YK_ENOMEM,
        "The largest: variable v29 f32[491520] 1.88MiB, value v29/Initializer/Tile f32[491520] 1.88MiB, variable v28");
  SAYS("variable v21 f32[360448] 1.38MiB, ");
  SAYS(" more 14.");
  if (strstr(yk_error_message(), "variable v20")) fail_msg("%s", yk_error_message());
  end(s, g);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void test_fraction_and_growth(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  job small = make_job(g, "small", 8 * KIB);
  yk_session_options o = options(2);
  o.virtual_gpu_bytes = 256 * MIB;
  o.per_process_gpu_memory_fraction = 0.4;
  yk_session *s = open_with(g, o);
  EQUAL(memory(s, 1).bytes_total, 256 * MIB);
  EQUAL(memory(s, 1).bytes_limit, 107374182);
  EQUAL(memory(s, 1).bytes_held, 0);
  run_target(s, small.init);
  EQUAL(memory(s, 1).bytes_held, 107374182 / 256 * 256);       /* all of it, at the first allocation */
  EQUAL(memory(s, 1).peak_held, memory(s, 1).bytes_held);
  EQUAL(memory(s, 2).bytes_held, 0);
  assert_true(memory(s, 0).bytes_total == memory(s, 0).bytes_limit);       /* of a CPU there is no such fraction */
  yk_session_close(s);
  o.allow_growth = true;
  s = open_with(g, o);
  run_target(s, small.init);
  EQUAL(memory(s, 1).bytes_held, MIB);
  EQUAL(memory(s, 1).regions, 1);
  EQUAL(memory(s, 1).bytes_limit, 107374182);
  yk_device_memory m = memory(s, 1);
  if (m.fragmentation < 0 || m.fragmentation >= 1) fail_msg("fragmentation %g", m.fragmentation);
  double expected = 1 - (double)m.largest_free / (double)(m.bytes_held - m.bytes_in_use);
  if (m.fragmentation != expected) fail_msg("fragmentation %g, expected %g", m.fragmentation, expected);
  assert_true(m.bytes_requested <= m.bytes_in_use && m.largest_allocation >= 32 * KIB);
  end(s, g);
}

static void test_options(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = NULL;
  yk_session_options o = options(1);
  static const double bad[] = { -0.1, 1.01, 1e300, (double)NAN };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    o.per_process_gpu_memory_fraction = bad[i];
    FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "per_process_gpu_memory_fraction is ");
  }
  o.per_process_gpu_memory_fraction = 0.5;
  o.memory_limit = MIB;
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "per_process_gpu_memory_fraction and memory_limit of the session are both given: 0.5, and 1048576");
  static const char *const words[] = { "half", "0", "-1", "1.5", "0.4x" };
  o = options(1);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    OK(yk__param_set("memory.fraction", words[i]));
    FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "YOKE_MEMORY_FRACTION");
    SAYS(words[i]);
  }
  OK(yk__param_set("memory.fraction", "0.25"));
  OK(yk__param_set("memory.growth", "1"));
  o.virtual_gpu_bytes = 1000 * MIB;
  s = open_with(g, o);
  EQUAL(memory(s, 1).bytes_limit, 250 * MIB);
  assert_true(yk_session_options_of(s)->allow_growth);
  assert_true(yk_session_options_of(s)->per_process_gpu_memory_fraction == 0.25);
  yk_session_close(s);
  OK(yk__param_set("memory.limit", "10MiB"));
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "the settings memory.fraction and memory.limit are both given");
  o.memory_limit = 20 * MIB;                   /* the caller's word is the last one */
  s = open_with(g, o);
  EQUAL(memory(s, 1).bytes_limit, 20 * MIB);
  EQUAL(memory(s, 0).bytes_limit, 20 * MIB);
  yk_session_close(s);
  OK(yk__param_set("memory.fraction", ""));
  o = options(1);
  o.virtual_gpu_bytes = 5 * MIB;
  o.cpu_bytes = 3 * MIB;
  s = open_with(g, o);
  EQUAL(memory(s, 1).bytes_limit, 5 * MIB);    /* not more than there is */
  EQUAL(memory(s, 0).bytes_limit, 3 * MIB);
  yk_session_close(s);
  OK(yk__param_set("memory.limit", "0"));
  OK(yk__param_set("memory.growth", "0"));
  yk_graph_free(g);
}

static void test_asking(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = open_session(g, 1);
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  FAILS(yk_session_device_memory(s, 2, &m), YK_EINVAL, "device 2 of a session with 2 devices");
  FAILS(yk_session_device_memory(s, 0, NULL), YK_EINVAL, "device 0");
  FAILS(yk_session_device_memory(NULL, 0, &m), YK_EINVAL, "0 devices");
  m.size = 0;
  FAILS(yk_session_device_memory(s, 0, &m), YK_EINVAL, "yk_device_memory.size is 0");
  struct { yk_device_memory m; uint64_t behind; } old = { .m.size = offsetof(yk_device_memory, bytes_held), .behind = 7 };
  old.m.bytes_held = 77;
  OK(yk_session_device_memory(s, 0, &old.m));  /* a caller that knows less */
  EQUAL(old.m.bytes_held, 77);
  assert_true(old.m.bytes_limit > 0);
  end(s, g);
}

/* ---- plans give way --------------------------------------------------------------------------------------------- */

/* y = x*x + x over a fed x, on the first device of the type; c tells whether it is right. */
typedef struct poly { yk_graph *g; yk_value x, y; const char *device; } poly;
static poly make_poly(const char *device) {
  poly p = { .g = new_graph(), .device = device };
  YK_DEVICE(p.g, device) {
    p.x = yk_placeholder(p.g, "x", YK_F32, YK_SHAPE(-1));
    p.y = yk_add(p.g, yk_mul(p.g, p.x, p.x), p.x);
  }
  return p;
}

static void run_step(yk_step *step, const yk_tensor *x) {
  const yk_tensor *const *out;
  OK(yk_step_run(step, &x, &out));
  for (int64_t i = 0; i < yk_tensor_count(x); i += 997) {
    double v = yk_tensor_at(x, i);
    if (yk_tensor_at(out[0], i) != v * v + v) fail_msg("element %lld: %g", (long long)i, yk_tensor_at(out[0], i));
  }
}

/* Training and evaluation by turns on a device that has not the memory for both at once. */
static void test_turns(void **state) {
  (void)state;
  static const char *const devices[] = { "/gpu:0", "/cpu:0" };
  for (int k = 0; k < 2; k++) {
    poly p = make_poly(devices[k]);
    yk_session_options o = options(1);
    o.memory_limit = MIB;
    o.virtual_gpu_bytes = MIB;
    yk_session *s = open_with(p.g, o);
    yk_tensor *x[3];
    yk_step *step[3];
    for (int i = 0; i < 3; i++) {
      x[i] = ramp(YK_SHAPE(80 * KIB + 1000 * i));
      for (int64_t e = 0; e < yk_tensor_count(x[i]); e++) ((float *)yk_tensor_data(x[i]))[e] = (float)(e % 1000 + i);
      OK(yk_step_prepare(s, 1, &p.x, 1, &p.y, 0, NULL, &step[i]));
    }
    for (int turn = 0; turn < 12; turn++) {
      run_step(step[turn % 3], x[turn % 3]);
      assert_true(memory(s, (size_t)(1 - k)).peak_held <= MIB);
    }
    run_step(step[0], x[0]);
    run_step(step[0], x[0]);
    uint64_t before = yk__alloc_count(), taken = memory(s, (size_t)(1 - k)).allocations;
    for (int i = 0; i < 10; i++) run_step(step[0], x[0]);              /* nothing is taken while it stays the same one */
    EQUAL(yk__alloc_count(), before);
    EQUAL(memory(s, (size_t)(1 - k)).allocations, taken);
    for (int i = 0; i < 3; i++) { yk_step_free(step[i]); yk_tensor_free(x[i]); }
    end(s, p.g);
  }
}

/* Three steps, two of which fit: the one used least recently gives way. */
static void test_least_recent(void **state) {
  (void)state;
  poly p = make_poly("/gpu:0");
  yk_session_options o = options(1);
  o.virtual_gpu_bytes = 2 * MIB;
  yk_session *s = open_with(p.g, o);
  yk_tensor *x = ramp(YK_SHAPE(100 * KIB)), *y = ramp(YK_SHAPE(100 * KIB - 100)), *z = ramp(YK_SHAPE(100 * KIB - 200));
  for (int64_t e = 0; e < 100 * KIB - 200; e++)
    ((float *)yk_tensor_data(x))[e] = ((float *)yk_tensor_data(y))[e] = ((float *)yk_tensor_data(z))[e] = (float)(e % 100);
  yk_step *a, *b, *c;
  OK(yk_step_prepare(s, 1, &p.x, 1, &p.y, 0, NULL, &a));
  OK(yk_step_prepare(s, 1, &p.x, 1, &p.y, 0, NULL, &b));
  OK(yk_step_prepare(s, 1, &p.x, 1, &p.y, 0, NULL, &c));
  run_step(a, x);
  run_step(b, y);
  run_step(a, x);
  uint64_t taken = memory(s, 1).allocations;
  run_step(c, z);                              /* b's memory */
  uint64_t more = memory(s, 1).allocations;
  assert_true(more > taken);
  run_step(a, x);
  run_step(c, z);
  EQUAL(memory(s, 1).allocations, more);
  run_step(b, y);
  assert_true(memory(s, 1).allocations > more);
  yk_step_free(a);
  yk_step_free(b);
  yk_step_free(c);
  yk_tensor_free(x);
  yk_tensor_free(y);
  yk_tensor_free(z);
  end(s, p.g);
}

/* Two sessions on one card: plans of the one give way to the other's. */
static void test_two_sessions(void **state) {
  (void)state;
  poly p[2] = { make_poly("/gpu:0"), make_poly("/gpu:0") };
  yk_session_options o = options(1);
  o.virtual_gpu_bytes = MIB;
  yk_session *s[2];
  yk_step *step[2];
  yk_tensor *x = ramp(YK_SHAPE(100 * KIB));
  for (int64_t e = 0; e < yk_tensor_count(x); e++) ((float *)yk_tensor_data(x))[e] = (float)(e % 1000);
  for (int i = 0; i < 2; i++) {
    s[i] = open_with(p[i].g, o);
    OK(yk_step_prepare(s[i], 1, &p[i].x, 1, &p[i].y, 0, NULL, &step[i]));
  }
  for (int turn = 0; turn < 10; turn++) run_step(step[turn % 2], x);
  EQUAL(memory(s[0], 1).peak_held, MIB);
  EQUAL(memory(s[1], 1).allocations, memory(s[0], 1).allocations);
  yk_session_close(s[0]);
  yk_step_free(step[0]);
  run_step(step[1], x);
  yk_step_free(step[1]);
  yk_session_close(s[1]);
  yk_tensor_free(x);
  for (int i = 0; i < 2; i++) yk_graph_free(p[i].g);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* A source that says when somebody waits for it, and gives nothing until the gate opens. */
static _Atomic int inside, gate;
static yk_code next_when_open(void *self, int64_t rows, void *const *out) {
  (void)self;
  atomic_store(&inside, 1);
  while (!atomic_load(&gate)) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  for (int64_t i = 0; i < rows; i++) ((float *)out[0])[i] = (float)(i % 100);
  return YK_OK;
}

typedef struct runner { yk_step *step; yk_code code; _Atomic int ended; yk_thread thread; } runner;
static void *run_it(void *arg) {
  runner *r = arg;
  r->code = yk_step_run(r->step, NULL, NULL);
  atomic_store(&r->ended, 1);
  return NULL;
}

static void *open_gate(void *arg) {
  nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
  atomic_store(&gate, 1);
  return arg;
}

/* All on the CPU, so that the two steps do not share a stream. */
static void test_waits(void **state) {
  (void)state;
  const yk_source source = { .next = next_when_open, .ncomponents = 1, .component = { { .dtype = YK_F32 } } };
  poly p = make_poly("/cpu:0");
  yk_value batch = { 0 };
  YK_DEVICE(p.g, "/cpu:0") { yk_dequeue(yk_named(p.g, "input"), &source, 100 * KIB, &batch); }
  yk_value sum = yk_reduce_sum(p.g, yk_mul(p.g, batch, batch), NULL);
  yk_session_options o = options(0);
  o.cpu_bytes = MIB;
  yk_session *s = open_with(p.g, o);
  yk_tensor *x = ramp(YK_SHAPE(120 * KIB));
  for (int64_t e = 0; e < yk_tensor_count(x); e++) ((float *)yk_tensor_data(x))[e] = (float)(e % 1000);
  yk_step *step;
  runner r = { 0 };
  yk_thread opener;
  OK(yk_step_prepare(s, 0, NULL, 1, &sum, 0, NULL, &r.step));
  OK(yk_step_prepare(s, 1, &p.x, 1, &p.y, 0, NULL, &step));
  for (int turn = 0; turn < 2; turn++) {       /* the wait is too short; it is long enough */
    atomic_store(&gate, 0);
    atomic_store(&inside, 0);
    atomic_store(&r.ended, 0);
    OK(yk__thread_start(&r.thread, "runner", run_it, &r));
    while (!atomic_load(&inside) && !atomic_load(&r.ended)) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (!atomic_load(&inside)) { yk__thread_join(&r.thread); OK(r.code); }
    OK(yk__param_set("memory.wait_ms", turn ? "10000" : "30"));
    if (turn == 0) {
      FAILS(yk_step_run(step, (const yk_tensor *[]){ x }, NULL), YK_ENOMEM, "steps that are running hold ");
      SAYS("values of a step that is running");
      atomic_store(&gate, 1);
    } else {
      OK(yk__thread_start(&opener, "opener", open_gate, NULL));
      run_step(step, x);
      yk__thread_join(&opener);
    }
    yk__thread_join(&r.thread);
    OK(r.code);
  }
  OK(yk__param_set("memory.wait_ms", "10000"));
  yk_step_free(step);
  yk_step_free(r.step);
  yk_tensor_free(x);
  end(s, p.g);
}

/* Threads whose steps never fit at once: each gets its turn, and every result is right. */
typedef struct worker { yk_session *s; poly p; int64_t n; yk_thread thread; yk_code code; char said[400]; int wrong; } worker;
static void *work(void *arg) {
  worker *w = arg;
  yk_step *step = NULL;
  yk_tensor *x = NULL;
  w->code = yk_tensor_new(YK_F32, YK_SHAPE(w->n), &x);
  for (int64_t e = 0; e < w->n && w->code == YK_OK; e++) ((float *)yk_tensor_data(x))[e] = (float)(e % 1000);
  if (w->code == YK_OK) w->code = yk_step_prepare(w->s, 1, &w->p.x, 1, &w->p.y, 0, NULL, &step);
  for (int i = 0; i < 30 && w->code == YK_OK; i++) {
    const yk_tensor *const *out;
    w->code = yk_step_run(step, (const yk_tensor *[]){ x }, &out);
    for (int64_t e = 0; e < w->n && w->code == YK_OK; e += 331) {
      double v = (double)(e % 1000);
      w->wrong += yk_tensor_at(out[0], e) != v * v + v;
    }
  }
  if (w->code != YK_OK) snprintf(w->said, sizeof w->said, "%.399s", yk_error_message());
  yk_step_free(step);
  yk_tensor_free(x);
  return NULL;
}

static void test_crowd(void **state) {
  (void)state;
  enum { N = 4 };
  for (int sessions = 1; sessions <= 2; sessions++) {
    poly p[2] = { make_poly("/gpu:0"), make_poly("/gpu:0") };
    yk_session_options o = options(1);
    o.virtual_gpu_bytes = MIB;
    yk_session *s[2] = { open_with(p[0].g, o), open_with(p[1].g, o) };
    worker w[N];
    for (int i = 0; i < N; i++) {
      int k = i % sessions;
      w[i] = (worker){ .s = s[k], .p = p[k], .n = 90 * KIB + 1000 * i };
      OK(yk__thread_start(&w[i].thread, "worker", work, &w[i]));
    }
    for (int i = 0; i < N; i++) {
      yk__thread_join(&w[i].thread);
      if (w[i].code != YK_OK || w[i].wrong) fail_msg("worker %d: %s, %d wrong: %s", i, yk_code_name(w[i].code), w[i].wrong, w[i].said);
    }
    EQUAL(memory(s[0], 1).peak_held, MIB);
    for (int i = 0; i < 2; i++) end(s[i], p[i].g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refused_before_it_runs), cmocka_unit_test(test_nothing_is_left_behind), cmocka_unit_test(test_dump),
    cmocka_unit_test(test_many_names), cmocka_unit_test(test_fraction_and_growth), cmocka_unit_test(test_options),
    cmocka_unit_test(test_asking), cmocka_unit_test(test_turns), cmocka_unit_test(test_least_recent),
    cmocka_unit_test(test_two_sessions), cmocka_unit_test(test_waits), cmocka_unit_test(test_crowd),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
