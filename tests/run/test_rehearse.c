/*
 * test_rehearse.c - virtual GPUs of several sizes, split ones, and machines that only a file describes.
 *
 * The heart is that a rehearsal tells the truth: what it says a step takes is, to the byte, what the devices hold when it runs.
 */
#include <stdlib.h>
#include <unistd.h>
#include <yoke/nn.h>
#include <yoke/train.h>
#include "base/alloc.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"
#include "run/run.h"
#include "run/support.h"

#define MIB (1024ull * 1024)
static char path[64];

static void write_machine(const char *text) {
  FILE *f = fopen(path, "w");
  if (!f) fail_msg("%s cannot be written", path);
  fputs(text, f);
  fclose(f);
}

/* "1024 1024:2/2 256": MiB of each GPU, and which part of how many it is. */
static void expect_gpus(yk_session *s, const char *want) {
  char got[256] = "";
  int gpus = 0;
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    char name[64];
    OK(yk_session_device(s, i, &d));
    if (strcmp(d.type, "GPU") != 0) continue;
    snprintf(name, sizeof name, "/job:localhost/replica:0/task:0/device:GPU:%d", gpus++);
    assert_string_equal(d.name, name);
    size_t at = strlen(got);
    snprintf(got + at, sizeof got - at, "%s%llu", at ? " " : "", (unsigned long long)(d.bytes_limit / MIB));
    at = strlen(got);
    if (d.parts) snprintf(got + at, sizeof got - at, ":%u/%u", (unsigned)d.part + 1, (unsigned)d.parts);
  }
  if (strcmp(got, want) != 0) fail_msg("the GPUs are \"%s\", expected \"%s\"", got, want);
  assert_int_equal(yk_session_options_of(s)->virtual_gpus, gpus);
}

static yk_session_options grouped(const char *groups, const char *split) {
  yk_session_options o = options(0);
  o.virtual_gpu_groups = groups;
  o.split_gpus = split;
  o.virtual_gpu_bytes = 8 * MIB;
  o.cores = 0;
  return o;
}

static void test_groups(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = open_with(g, grouped("2:1GiB,1:256MiB", NULL));
  expect_gpus(s, "1024 1024 256");
  assert_string_equal(yk_session_options_of(s)->virtual_gpu_groups, "2:1GiB,1:256MiB");
  yk_session_close(s);
  s = open_with(g, grouped("1,2::1", ""));                       /* the default of the session */
  expect_gpus(s, "8 8 8");
  yk_session_close(s);
  setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);                        /* each keeps its size under its new number */
  s = open_with(g, grouped("1:1MiB,1:2MiB,1:4MiB", NULL));
  expect_gpus(s, "4 1");
  yk_session_close(s);
  unsetenv("CUDA_VISIBLE_DEVICES");
  OK(yk__param_set("virtual_gpus", "1:3MiB,1:5MiB"));
  yk_session_options o = options(0);
  s = open_with(g, o);
  expect_gpus(s, "3 5");
  yk_session_close(s);
  o.virtual_gpu_bytes = 7 * MIB;                                   /* the program's word holds against the setting */
  s = open_with(g, o);
  expect_gpus(s, "7 7");
  yk_session_close(s);
  o.virtual_gpus = 1;
  s = open_with(g, o);
  expect_gpus(s, "7");
  yk_session_close(s);
  o.virtual_gpu_groups = "2:1MiB";                                 /* groups take the place of the number */
  s = open_with(g, o);
  expect_gpus(s, "1 1");
  yk_session_close(s);
  OK(yk__param_set("virtual_gpus", "two"));
  o = options(0);
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL,
        "setting virtual_gpus (YOKE_VIRTUAL_GPUS) 'two': 'two' is no number of GPUs from 1 to 4096");
  OK(yk__param_set("virtual_gpus", "0"));
  s = open_with(g, o);
  expect_gpus(s, "");
  yk_session_close(s);
  OK(yk__param_set("virtual_gpus", ""));
  o = grouped("1:x", NULL);
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "yk_session_options.virtual_gpu_groups '1:x': 'x' is no amount of memory");
  yk_graph_free(g);
}

static char told[1024];
static void hear(int level, const char *line, void *arg) {
  (void)arg;
  if (level <= YK_LOG_NOTICE) snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", line);
}

static void test_cores(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_device_info d;
  yk_session_options o = grouped("1::3,2::1", NULL);
  yk_session *s = NULL;
  o.cores = 4;
  s = open_with(g, o);
  static const uint32_t first[] = { 0, 0, 3, 0 }, n[] = { 4, 3, 1, 1 };
  for (size_t i = 0; i < 4; i++) {
    OK(yk_session_device(s, i, &d));
    if (d.first_core != first[i] || d.ncores != n[i])
      fail_msg("%s: %u cores from %u, expected %u from %u", d.name, d.ncores, d.first_core, n[i], first[i]);
  }
  yk_session_close(s);
  o.virtual_gpu_groups = "1,2::5";
  s = NULL;
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "virtual GPU 1 is to have 5 cores, the session has 4");
  assert_null(s);
  o.allow_soft_placement = true;
  told[0] = '\0';
  yk__log_sink(hear, NULL);
  s = open_with(g, o);
  yk__log_sink(NULL, NULL);
  if (!strstr(told, "virtual GPU 1 and others asked for more cores than the session's 4")) fail_msg("it said: %s", told);
  OK(yk_session_device(s, 2, &d));
  assert_int_equal(d.ncores, 4);
  end(s, g);
}

static void test_splits(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = open_with(g, grouped("2:8MiB", "gpu:0=4MiB,2MiB"));
  expect_gpus(s, "4:1/2 2:2/2 8");
  yk_device_info a, b, c;
  OK(yk_session_device(s, 1, &a));
  OK(yk_session_device(s, 2, &b));
  OK(yk_session_device(s, 3, &c));
  assert_int_equal(a.physical, 0);
  assert_int_equal(b.physical, 0);
  assert_int_equal(c.physical, 1);
  assert_string_equal(a.uuid, b.uuid);
  assert_string_equal(a.bus, "virtual:0");
  assert_int_equal(a.first_core, b.first_core);
  yk_session_close(s);
  s = open_with(g, grouped("3:8MiB", "gpu:2=1MiB,1MiB,gpu:0=8MiB"));
  expect_gpus(s, "8:1/1 8 1:1/2 1:2/2");
  yk_session_close(s);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);                          /* the number is the visible one's */
  s = open_with(g, grouped("1:8MiB,1:6MiB", "gpu:0=3MiB,3MiB"));
  expect_gpus(s, "3:1/2 3:2/2");
  OK(yk_session_device(s, 1, &a));
  assert_int_equal(a.physical, 1);
  yk_session_close(s);
  unsetenv("CUDA_VISIBLE_DEVICES");
  OK(yk__param_set("split_gpus", "gpu:1=1MiB,1MiB"));
  s = open_with(g, grouped("2:8MiB", NULL));
  expect_gpus(s, "8 1:1/2 1:2/2");
  yk_session_close(s);
  s = open_with(g, grouped("2:8MiB", "gpu:0=8MiB"));
  expect_gpus(s, "8:1/1 8");
  yk_session_close(s);
  OK(yk__param_set("split_gpus", ""));
  static const struct { const char *split; const char *says; } bad[] = {
    { "gpu:2=1MiB", "gpu:2 is to be split, and there are 2 GPUs" },
    { "gpu:0=5MiB,4MiB", "device:GPU:0 is to be split into 2 parts of together 9437184 bytes, but has 8388608" },
    { "gpu:1=9MiB", "device:GPU:1 is to be split into 1 parts of together 9437184 bytes, but has 8388608" },
    { "gpu:0=x", "'x' is no amount of memory" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    yk_session_options o = grouped("2:8MiB", bad[i].split);
    s = NULL;
    FAILS(yk_session_open(g, &o, &s), YK_EINVAL, bad[i].says);
    assert_null(s);
  }
  yk_session_options o = grouped("2:8MiB", "gpu:0=4MiB,4MiB");
  o.per_process_gpu_memory_fraction = 0.5;
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "split_gpus and a memory fraction of 0.5 are both given");
  yk_graph_free(g);
}

/* Values move between parts, and each part is held to its limit. */
static void test_run_on_parts(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value a = { 0 }, b = { 0 }, big = { 0 };
  YK_DEVICE(g, "/gpu:0") { a = yk_fill(g, YK_F32, YK_SHAPE(8), 3); }
  YK_DEVICE(g, "/gpu:1") { b = yk_add(g, a, a); }
  const yk_random_attrs many = { .dtype = YK_F32, .rank = 1, .dim = { 1 << 19 } };
  YK_DEVICE(g, "/gpu:1") { big = yk_relu(g, yk_random_uniform(g, &many)); }
  yk_session *s = open_with(g, grouped("1:8MiB", "gpu:0=4MiB,1MiB"));
  yk_tensor *t = run_fetch(s, b);
  expect_line(t, 8, 0, 6);
  yk_tensor_free(t);
  FAILS(yk_session_run(s, 0, NULL, 1, &big, 0, NULL, &t), YK_ENOMEM, "the limit is 1.00MiB (1048576 bytes)");
  t = run_fetch(s, b);                                             /* the session stays usable */
  yk_tensor_free(t);
  end(s, g);
}

/* ---- what a step takes ------------------------------------------------------------------------------------------- */

typedef struct net { yk_graph *g; yk_value x, loss, train, init; } net;

static net make_net(void) {
  net n = { .g = new_graph() };
  yk_graph *g = n.g;
  n.x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(16, 24));
  yk_variable *w = NULL, *v = NULL;
  yk_value h = { 0 };
  YK_DEVICE(g, "/cpu:0") {
    w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(24, 40), YK_ONES, NULL);
    yk_get_variable(g, "unused", YK_F32, YK_SHAPE(100), YK_ZEROS, NULL);
  }
  YK_DEVICE(g, "/gpu:1") { v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(40, 8), YK_ONES, NULL); }
  YK_DEVICE(g, "/gpu:0") { h = yk_relu(g, yk_matmul(yk_named(g, "first"), n.x, yk_read(w), NULL)); }
  YK_DEVICE(g, "/gpu:1") {
    n.loss = yk_reduce_sum(g, yk_matmul(g, h, yk_read(v), NULL), NULL);
    n.train = yk_assign_add(g, v, yk_mul(g, yk_read(v), yk_scalar_f32(g, 0.5f)));
  }
  n.init = yk_global_variables_initializer(g);
  OK(yk_graph_status(g));
  return n;
}

static yk_code rehearse(yk_session *s, const net *n, bool *fits, yk_device_use *use, char **text) {
  return yk_session_rehearse(s, 1, &(yk_feed){ n->x, NULL }, 1, &n->loss, 1, &n->train, fits, use, text);
}

/* What it says, the devices hold when it runs; with a byte less, it says no and running fails. */
static void test_tells_the_truth(void **state) {
  (void)state;
  net n = make_net();
  yk_device_use use[3], again[3];
  char *text = NULL;
  bool fits = false;
  yk_session *s = open_session(n.g, 2);
  OK(rehearse(s, &n, &fits, use, &text));
  assert_true(fits);
  if (!strstr(text, "the step fits\n")) fail_msg("%s", text);
  if (!strstr(text, "/gpu:0 -> /gpu:1") || !strstr(text, "/cpu:0 -> /gpu:0") || !strstr(text, "caller -> /gpu:0"))
    fail_msg("%s", text);
  yk_free(text);
  assert_int_equal(use[0].variables, 2);
  assert_int_equal(use[1].variables, 0);
  assert_int_equal(use[2].variables, 1);
  assert_int_equal(use[2].variable_bytes, 40 * 8 * 4);
  assert_true(use[1].operations > 0 && use[2].operations > 0);
  yk_session_close(s);
  for (int device = 1; device < 3; device++)
    for (uint64_t less = 0; less <= 1; less++) {
      char groups[64];
      uint64_t need[3];
      for (int i = 0; i < 3; i++) need[i] = use[i].variable_bytes + use[i].arena_bytes - (i == device ? less : 0);
      snprintf(groups, sizeof groups, "1:%llu,1:%llu", (unsigned long long)need[1], (unsigned long long)need[2]);
      yk_session_options o = options(0);
      o.virtual_gpu_groups = groups;
      s = open_with(n.g, o);
      OK(rehearse(s, &n, &fits, again, &text));
      if (fits != (less == 0)) fail_msg("GPU %d with %llu bytes less:\n%s", device - 1, (unsigned long long)less, text);
      char want[64];
      snprintf(want, sizeof want, "/gpu:%d needs %llu bytes of %llu; the largest on /gpu:%d: ", device - 1,
               (unsigned long long)(need[device] + less), (unsigned long long)need[device], device - 1);
      if (less && !strstr(text, want)) fail_msg("\"%s\" is not in\n%s", want, text);
      if (less && device == 1 && !strstr(text, "(2560 bytes)"))      /* 16 by 40 */
        fail_msg("the largest value is not named:\n%s", text);
      yk_free(text);
      yk_tensor *x = ramp(YK_SHAPE(16, 24)), *out = NULL;
      for (size_t v = 0; v < yk_variable_count(n.g); v++) {        /* set, not initialized by a run: nothing else takes memory */
        yk_variable *var = yk_variable_get(n.g, v);
        const yk_desc *d = yk_variable_desc(var);
        yk_tensor *value = ramp(d->rank == 2 ? YK_SHAPE(d->dim[0], d->dim[1]) : YK_SHAPE(d->dim[0]));
        OK(yk_variable_set(s, var, value));
        yk_tensor_free(value);
      }
      yk_code rc = yk_session_run(s, 1, &(yk_feed){ n.x, x }, 1, &n.loss, 1, &n.train, &out);
      if ((rc == YK_OK) != (less == 0))
        fail_msg("GPU %d with %llu bytes less: %s", device - 1, (unsigned long long)less, yk_error_message());
      yk_error_clear();
      for (size_t i = 0; i < 3 && rc == YK_OK; i++) {
        yk_device_info d;
        OK(yk_session_device(s, i, &d));
        if (d.bytes_peak != need[i])
          fail_msg("%s held %llu bytes, the rehearsal said %llu", d.name, (unsigned long long)d.bytes_peak, (unsigned long long)need[i]);
      }
      yk_tensor_free(out);
      yk_tensor_free(x);
      yk_session_close(s);
    }
  yk_graph_free(n.g);
}

/* ---- a machine from a file --------------------------------------------------------------------------------------- */

#define HEAD "{\"format\":\"yoke-machine\",\"version\":1,\"devices\":[{\"name\":\"/cpu:0\",\"driver\":\"cpu\",\"bytes_limit\":64000000000}"
#define GPU(k, bytes) \
  ",{\"name\":\"/gpu:" k "\",\"driver\":\"cuda\",\"model\":\"H100\",\"bus\":\"0000:0" k ":00.0\",\"bytes_limit\":" bytes ",\"physical\":" k "}"

static yk_session_options rehearsing(void) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  o.drivers = driver;
  o.rehearse = path;
  return o;
}

static void test_machine(void **state) {
  (void)state;
  net n = make_net();
  yk_device_use here[3], there[3];
  yk_device_info d;
  char *text = NULL;
  bool fits = false;
  yk_session *s = open_session(n.g, 2);
  OK(rehearse(s, &n, &fits, here, &text));
  yk_free(text);
  yk_session_close(s);
  write_machine(HEAD GPU("0", "80000000000") GPU("1", "80000000000")
                "],\"links\":[{\"from\":\"/gpu:0\",\"to\":\"/gpu:1\",\"bytes_per_s\":1e9}]}");
  s = open_with(n.g, rehearsing());
  assert_int_equal(yk_session_device_count(s), 3);
  OK(yk_session_device(s, 2, &d));
  assert_string_equal(d.name, "/job:localhost/replica:0/task:0/device:GPU:1");
  assert_string_equal(d.driver, "cuda");
  assert_string_equal(d.stand_in, driver ? driver : "cpu");
  assert_string_equal(d.model, "H100");
  assert_string_equal(d.bus, "0000:01:00.0");
  assert_false(d.is_virtual);
  assert_int_equal(d.physical, 1);
  assert_int_equal(d.bytes_limit, 80000000000);
  OK(yk_session_device(s, 0, &d));
  assert_string_equal(d.driver, "cpu");
  assert_string_equal(d.stand_in, "");
  OK(rehearse(s, &n, &fits, there, &text));
  assert_true(fits);
  if (!strstr(text, "'cuda' is not here: '")) fail_msg("%s", text);
  if (!strstr(text, " ms at 1.00 GB/s\n")) fail_msg("%s", text);
  yk_free(text);
  for (int i = 0; i < 3; i++) {                                    /* the same as for virtual GPUs that are here */
    assert_int_equal(there[i].operations, here[i].operations);
    assert_int_equal(there[i].variable_bytes, here[i].variable_bytes);
    if (!driver) continue;                                         /* the CPU's kernels ask for scratch memory by their cores */
    assert_int_equal(there[i].arena_bytes, here[i].arena_bytes);
  }
  OK(yk_session_placement(s, &text));
  if (!strstr(text, "first: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0\n")) fail_msg("%s", text);
  yk_free(text);
  end(s, n.g);
}

/* Nothing runs, and nothing of the machine's size is taken. */
static void test_nothing_runs(void **state) {
  (void)state;
  write_machine(HEAD GPU("0", "400000000000000") "]}");
  yk_graph *g = new_graph();
  yk_value y = { 0 };
  yk_variable *v = NULL;
  YK_DEVICE(g, "/gpu:0") {
    v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(1 << 20, 1 << 18), YK_ZEROS, NULL);        /* a tebibyte */
    y = yk_reduce_sum(g, yk_relu(g, yk_read(v)), NULL);
  }
  uint64_t live = yk__alloc_live();
  yk_session *s = open_with(g, rehearsing());
  yk_tensor *t = NULL, *small = ramp(YK_SHAPE(4));
  yk_step *step = NULL;
  yk_device_use use[2];
  char *text = NULL;
  bool fits = false;
  FAILS(yk_session_run(s, 0, NULL, 1, &y, 0, NULL, &t), YK_EUNSUPPORTED,
        "a step cannot run: the session rehearses the machine of \"");
  FAILS(yk_variable_fetch(s, v, &t), YK_EUNSUPPORTED, "variables have no values: the session rehearses");
  FAILS(yk_variable_set(s, v, small), YK_EUNSUPPORTED, "variables have no values: the session rehearses");
  OK(yk_step_prepare(s, 0, NULL, 1, &y, 0, NULL, &step));
  FAILS(yk_step_run(step, NULL, NULL), YK_EUNSUPPORTED, "a step cannot run");
  yk_step_free(step);
  assert_null(t);
  OK(yk_session_rehearse(s, 0, NULL, 1, &y, 0, NULL, &fits, use, &text));
  assert_true(fits);
  assert_true(use[1].variable_bytes == (uint64_t)1 << 40 && use[1].arena_bytes >= (uint64_t)1 << 40);
  assert_false(yk_graph_frozen(g));
  yk_free(text);
  yk_tensor_free(small);
  yk_session_close(s);
  assert_int_equal(yk__alloc_live(), live);
  assert_true(yk__rss_peak_bytes() < (uint64_t)2 << 30);
  write_machine(HEAD GPU("0", "1000000000") "]}");
  s = open_with(g, rehearsing());
  OK(yk_session_rehearse(s, 0, NULL, 1, &y, 0, NULL, &fits, use, &text));
  assert_false(fits);
  assert_false(use[1].fits);
  assert_true(use[0].fits);
  if (!strstr(text, "the step does not fit on 1 of 2 devices: /gpu:0 needs ") || !strstr(text, "v f32[1048576,262144]"))
    fail_msg("%s", text);
  yk_free(text);
  end(s, g);
}

static void test_refused(void **state) {
  (void)state;
  net n = make_net();
  yk_session *s = NULL;
  yk_session_options o = rehearsing();
  bool fits = true;
  char *text = NULL;
  write_machine(HEAD "]}");
  FAILS(yk_session_open(n.g, &o, &s), YK_ENOTFOUND, "there is no such device");       /* the graph asks for GPUs */
  o.virtual_gpus = 2;
  FAILS(yk_session_open(n.g, &o, &s), YK_EINVAL, "brings all devices with it");
  o = rehearsing();
  o.split_gpus = "gpu:0=1MiB";
  FAILS(yk_session_open(n.g, &o, &s), YK_EINVAL, "brings all devices with it");
  o = rehearsing();
  o.visible_devices = "0";
  FAILS(yk_session_open(n.g, &o, &s), YK_EINVAL, "brings all devices with it");
  o = rehearsing();
  write_machine(HEAD);
  FAILS(yk_session_open(n.g, &o, &s), YK_ECORRUPT, path);
  remove(path);
  FAILS(yk_session_open(n.g, &o, &s), YK_ENOTFOUND, path);
  assert_null(s);
  s = open_session(n.g, 2);
  FAILS(yk_session_rehearse(NULL, 0, NULL, 1, &n.loss, 0, NULL, &fits, NULL, &text), YK_EINVAL, "NULL session");
  FAILS(yk_session_rehearse(s, 0, NULL, 1, &n.loss, 0, NULL, NULL, NULL, &text), YK_EINVAL, "NULL output");
  FAILS(yk_session_rehearse(s, 0, NULL, 1, &n.loss, 0, NULL, &fits, NULL, NULL), YK_EINVAL, "NULL output");
  FAILS(yk_session_rehearse(s, 0, NULL, 1, &n.loss, 0, NULL, &fits, NULL, &text), YK_EINVAL, "placeholder x");
  assert_null(text);
  assert_true(fits);
  OK(rehearse(s, &n, &fits, NULL, &text));
  yk_free(text);
  end(s, n.g);
}

/* Settings for this machine's devices mean nothing to another one's. */
static void test_settings_do_not_count(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  write_machine(HEAD GPU("0", "1048576") "]}");
  OK(yk__param_set("virtual_gpus", "3"));
  OK(yk__param_set("visible_devices", "2"));
  OK(yk__param_set("split_gpus", "gpu:1=1MiB"));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  yk_session *s = open_with(g, rehearsing());
  unsetenv("CUDA_VISIBLE_DEVICES");
  assert_int_equal(yk_session_device_count(s), 2);
  OK(yk__param_set("virtual_gpus", ""));
  OK(yk__param_set("visible_devices", ""));
  OK(yk__param_set("split_gpus", ""));
  end(s, g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_groups), cmocka_unit_test(test_cores), cmocka_unit_test(test_splits),
    cmocka_unit_test(test_run_on_parts),
    cmocka_unit_test(test_tells_the_truth), cmocka_unit_test(test_machine), cmocka_unit_test(test_nothing_runs),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_settings_do_not_count),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  snprintf(path, sizeof path, "/tmp/yoke-rehearse-%ld.json", (long)getpid());
  driver = "ref";
  int failed = cmocka_run_group_tests_name("rehearsal, ref", tests, NULL, NULL);
  driver = NULL;
  failed += cmocka_run_group_tests_name("rehearsal, cpu", tests, NULL, NULL);
  remove(path);
  return failed;
}
