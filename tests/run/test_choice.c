/*
 * test_choice.c - which GPUs a session sees and what it says when operations move: CUDA_VISIBLE_DEVICES, the session's list,
 * yk_select_gpu(), soft placement with its lines of log; and that branches on two devices run at the same time.
 *
 * Overlap is read off the order of events in the trace: a kernel of each device began before one of the other ended.
 */
#include <stdlib.h>
#include <yoke/nn.h>
#include "base/alloc.h"
#include "base/log.h"
#include "base/param.h"
#include "run/run.h"
#include "run/support.h"

/* ---- which GPUs ------------------------------------------------------------------------------------------------ */

/* "2 0": the numbers of the machine's GPUs that became gpu:0, gpu:1. */
static char *seen(yk_session *s, char *buf, size_t n) {
  size_t at = 0;
  int gpus = 0;
  buf[0] = '\0';
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info info;
    char want[64];
    OK(yk_session_device(s, i, &info));
    if (strcmp(info.type, "GPU") != 0) {
      assert_int_equal(info.physical, -1);
      assert_string_equal(info.uuid, "");
      continue;
    }
    snprintf(want, sizeof want, "/job:localhost/replica:0/task:0/device:GPU:%d", gpus++);
    assert_string_equal(info.name, want);
    snprintf(want, sizeof want, "virtual:%d", (int)info.physical);
    assert_string_equal(info.bus, want);
    at += (size_t)snprintf(buf + at, n - at, "%s%d", at ? " " : "", (int)info.physical);
  }
  return buf;
}

static void expect_seen(int gpus, const char *cuda, const char *list, const char *want) {
  char got[64];
  yk_graph *g = new_graph();
  yk_session_options o = options(gpus);
  o.visible_devices = list;
  if (cuda) setenv("CUDA_VISIBLE_DEVICES", cuda, 1);
  yk_session *s = open_with(g, o);
  unsetenv("CUDA_VISIBLE_DEVICES");
  if (strcmp(seen(s, got, sizeof got), want) != 0)
    fail_msg("CUDA_VISIBLE_DEVICES=%s, list %s: \"%s\", expected \"%s\"", cuda ? cuda : "(unset)", list ? list : "(none)", got, want);
  assert_int_equal(yk_session_options_of(s)->virtual_gpus, (int)(yk_session_device_count(s) - 1));
  end(s, g);
}

static void test_lists(void **state) {
  (void)state;
  expect_seen(3, NULL, NULL, "0 1 2");
  expect_seen(3, NULL, "2,0", "2 0");
  expect_seen(3, NULL, "none", "");
  expect_seen(4, "3,2,1", NULL, "3 2 1");
  expect_seen(4, "3,2,1", "2,0", "1 3");                /* counts what is left */
  expect_seen(4, "0,99,1", NULL, "0");
  expect_seen(2, "", NULL, "");
  expect_seen(2, "-1", NULL, "");
  expect_seen(2, "0,0", NULL, "");
  expect_seen(2, "99", NULL, "");
  expect_seen(2, "abc", NULL, "");
  expect_seen(2, "1,0", NULL, "1 0");
  expect_seen(2, "\"1\"", "0", "1");
  expect_seen(0, "0", NULL, "");
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  expect_seen(12, "11,2", NULL, "11 2");                /* bus ids sort as numbers */
  unsetenv("CUDA_DEVICE_ORDER");
  yk_graph *g = new_graph();
  yk_session *s = NULL;
  yk_session_options o = options(2);
  o.visible_devices = "2";
  FAILS(yk_session_open(g, &o, &s), YK_ENOTFOUND, "\"2\" is no GPU; there are 2 GPUs");
  o.visible_devices = "0,0";
  FAILS(yk_session_open(g, &o, &s), YK_EINVAL, "twice");
  assert_null(s);
  yk_graph_free(g);
}

static void test_uuid(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_device_info info;
  yk_session *s = open_session(g, 3);
  OK(yk_session_device(s, 2, &info));
  end(s, g);
  expect_seen(3, info.uuid, NULL, "1");
  info.uuid[12] = '\0';
  expect_seen(3, info.uuid, NULL, "1");
  expect_seen(3, "GPU-00000000", NULL, "");
}

static void test_select(void **state) {
  (void)state;
  FAILS(yk_select_gpu(-2), YK_EINVAL, "-2 is no GPU");
  OK(yk_select_gpu(1));
  expect_seen(3, NULL, NULL, "1");
  expect_seen(3, "2,0", NULL, "0");
  expect_seen(3, NULL, "2", "2");                       /* a session that chooses itself */
  OK(yk_select_gpu(-1));
  expect_seen(3, NULL, NULL, "");
  OK(yk_select_gpu(7));
  yk_graph *g = new_graph();
  yk_session *s = NULL;
  yk_session_options o = options(3);
  FAILS(yk_session_open(g, &o, &s), YK_ENOTFOUND, "\"7\" is no GPU");
  yk_graph_free(g);
  OK(yk__param_set("visible_devices", ""));
  expect_seen(2, NULL, NULL, "0 1");
}

/* The number behind "device:" is the one that CUDA_VISIBLE_DEVICES left, the bus tells the machine's. */
static void test_numbers(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_device_info info;
  setenv("CUDA_VISIBLE_DEVICES", "3,1", 1);
  yk_session_options o = options(4);
  o.visible_devices = "1";
  yk_session *s = open_with(g, o);
  unsetenv("CUDA_VISIBLE_DEVICES");
  OK(yk_session_device(s, 1, &info));
  assert_int_equal(info.platform, 1);
  assert_int_equal(info.physical, 1);
  assert_string_equal(info.name, "/job:localhost/replica:0/task:0/device:GPU:0");
  end(s, g);
}

/* ---- what moves is told when the session is made ------------------------------------------------------------------ */

static char told[4096];
static int ntold;
static void hear(int level, const char *line, void *arg) {
  (void)arg;
  if (level > YK_LOG_NOTICE) return;
  ntold++;
  snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", line);
}

/* A list of GPUs on a machine without any is refused, or with soft placement told. */
static void test_list_without_gpus(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session *s = NULL;
  yk_session_options o = options(0);
  o.visible_devices = "0";
  FAILS(yk_session_open(g, &o, &s), YK_ENOTFOUND, "there is no GPU");
  o.allow_soft_placement = true;
  told[0] = '\0';
  ntold = 0;
  yk__log_sink(hear, NULL);
  s = open_with(g, o);
  yk__log_sink(NULL, NULL);
  assert_int_equal(yk_session_device_count(s), 1);
  if (ntold != 1 || !strstr(told, "goes on without")) fail_msg("%d lines: %s", ntold, told);
  end(s, g);
}

static yk_graph *moving(yk_value *y) {
  yk_graph *g = new_graph();
  YK_DEVICE(g, "/gpu:3") {
    yk_value head = yk_fill(g, YK_F32, YK_SHAPE(2), 1);
    YK_COLOCATE(g, head) { *y = yk_neg(yk_named(g, "y"), yk_exp(g, head)); }
  }
  return g;
}

static void test_moves_are_told_once(void **state) {
  (void)state;
  yk_value y;
  yk_graph *g = moving(&y);
  yk_session_options o = options(1);
  o.allow_soft_placement = true;
  told[0] = '\0';
  ntold = 0;
  yk__log_sink(hear, NULL);
  yk_session *s = open_with(g, o);
  if (ntold != 1) fail_msg("%d lines when the session was made, expected 1:\n%s", ntold, told);
  if (!strstr(told, "and 2 more that must sit together ask for /device:GPU:3, and there is no such device; they run on /job:localhost"
              "/replica:0/task:0/device:GPU:0")) fail_msg("%s", told);
  for (int i = 0; i < 3; i++) yk_tensor_free(run_fetch(s, y));
  if (ntold != 1) fail_msg("%d lines after the first step, expected no more:\n%s", ntold, told);
  yk_graph_unfreeze(g);
  yk_value late;
  YK_DEVICE(g, "/gpu:4") { late = yk_neg(yk_named(g, "late"), y); }
  for (int i = 0; i < 2; i++) yk_tensor_free(run_fetch(s, late));
  if (ntold != 2) fail_msg("%d lines after one more node, expected 2:\n%s", ntold, told);
  if (!strstr(told, "'late' (Neg, ")) fail_msg("%s", told);
  yk__log_sink(NULL, NULL);
  end(s, g);
}

static void test_refused_when_made(void **state) {
  (void)state;
  yk_value y;
  yk_graph *g = moving(&y);
  yk_session *s = NULL;
  yk_session_options o = options(1);
  FAILS(yk_session_open(g, &o, &s), YK_ENOTFOUND, "/device:GPU:3");
  o.allow_soft_placement = o.strict = true;
  FAILS(yk_session_open(g, &o, &s), YK_EUNSUPPORTED, "the session is strict");
  assert_null(s);
  o.strict = false;
  yk__log_sink(hear, NULL);
  s = open_with(g, o);
  yk__log_sink(NULL, NULL);
  yk_graph_unfreeze(g);
  yk_tensor *t = NULL;
  yk_value late;
  YK_DEVICE(g, "/job:other") { late = yk_neg(yk_named(g, "late"), y); }   /* refused when it comes; the session stays usable */
  FAILS(yk_session_run(s, 0, NULL, 1, &late, 0, NULL, &t), YK_ENOTFOUND, "'late'");
  assert_null(t);
  end(s, g);
}

/* A variable that was initialised on one device stays there when a later node asks for another. */
static void test_variables_stay(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(4), YK_ONES, NULL);
  yk_value init = yk_global_variables_initializer(g), add;
  yk_session *s = open_session(g, 1);
  run_target(s, init);
  yk_graph_unfreeze(g);
  YK_DEVICE(g, "/cpu:0") { add = yk_assign_add(g, v, yk_fill(g, YK_F32, YK_SHAPE(4), 2)); }
  run_target(s, add);
  yk_tensor *t = NULL;
  OK(yk_variable_fetch(s, v, &t));
  expect_line(t, 4, 0, 3);
  yk_tensor_free(t);
  end(s, g);
}

/* The n-th allocation fails, for every n: a clean ENOMEM while devices are chosen and the graph is placed, and nothing leaks. */
static void test_out_of_memory(void **state) {
  (void)state;
  yk_value y;
  yk_graph *g = moving(&y);
  uint64_t live = yk__alloc_live(), n = 1;
  yk__log_sink(hear, NULL);
  for (int done = 0; !done; n++) {
    yk_session *s = NULL;
    yk_session_options o = options(3);
    o.visible_devices = "2,0";
    o.allow_soft_placement = true;
    yk__alloc_fail_at(n);
    yk_code rc = yk_session_open(g, &o, &s);
    yk__alloc_fail_at(0);
    done = rc == YK_OK;
    if (!done && rc != YK_ENOMEM) fail_msg("allocation %d: %s: %s", (int)n, yk_code_name(rc), yk_error_message());
    yk_session_close(s);
    if (yk__alloc_live() != live) fail_msg("allocation %d: %d leaked", (int)n, (int)(yk__alloc_live() - live));
  }
  yk__log_sink(NULL, NULL);
  assert_true(n > 10);
  yk_graph_free(g);
  for (int done = 0, k = 1; !done; k++) {
    const char *const gpus[] = { "/gpu:0", "/gpu:1" };
    yk_replica_setter *s;
    g = new_graph();
    yk__alloc_fail_at((uint64_t)k);
    s = yk_replica_setter_new(g, &(yk_replica_options){ .ndevices = 2, .devices = gpus, .by_size = true });
    YK_REPLICA(g, s) (void)yk_get_variable(g, "v", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
    yk__alloc_fail_at(0);
    done = yk_graph_status(g) == YK_OK;
    if (!done && yk_graph_status(g) != YK_ENOMEM) fail_msg("allocation %d: %s", k, yk_error_message());
    yk_graph_free(g);
  }
}

/* ---- independent branches ----------------------------------------------------------------------------------------- */

enum { SIDE = 96, CHAIN = 8, TRIES = 200 };

static yk_value branch(yk_graph *g, const char *device) {
  yk_value x = { 0 };
  YK_DEVICE(g, device) {
    x = yk_fill(g, YK_F32, YK_SHAPE(SIDE, SIDE), 0.01);
    yk_value w = yk_placeholder(g, "w", YK_F32, YK_SHAPE(SIDE, SIDE));
    for (int i = 0; i < CHAIN; i++) x = yk_matmul(g, x, w, NULL);
  }
  return x;
}

static bool is_kernel_of(const yk_trace_event *e, uint16_t dev) {
  const yk_plan *p = e->entry->plan;
  const yk_instr *in = &p->instr[e->instr];
  return in->code == YK_I_LAUNCH && p->stream_dev[in->stream] == dev && strcmp(p->origin[in->origin].label, "MatMul") == 0;
}

/* Did a kernel of each device begin before one of the other ended? */
static bool interleave(const yk_trace *t, uint16_t a, uint16_t b, int *kernels) {
  bool a_in_b = false, b_in_a = false;
  *kernels = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    if (is_kernel_of(&t->event[i], a) || is_kernel_of(&t->event[i], b)) ++*kernels;
    for (uint32_t k = 0; k < t->n; k++) {
      if (!is_kernel_of(&t->event[i], a) || !is_kernel_of(&t->event[k], b)) continue;
      a_in_b |= t->event[i].start < t->event[k].end;
      b_in_a |= t->event[k].start < t->event[i].end;
    }
  }
  return a_in_b && b_in_a;
}

static void test_branches_overlap(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value fetch[2] = { branch(g, "/gpu:0"), branch(g, "/gpu:1") };
  yk_value w[2] = { yk_find(g, "w"), yk_find(g, "w_1") };
  yk_session_options o = options(2);
  o.cores = 2;
  yk_session *s = open_with(g, o);
  yk_tensor *x = ramp(YK_SHAPE(SIDE, SIDE)), *out[2];
  yk_feed feed[2] = { { w[0], x }, { w[1], x } };
  bool overlap = false;
  int kernels = 0, tries = 0;
  for (; tries < TRIES && !overlap; tries++) {            /* a busy machine may run them one after the other now and then */
    OK(yk_trace_start(s));
    OK(yk_session_run(s, 2, feed, 2, fetch, 0, NULL, out));
    overlap = interleave(&s->trace, 1, 2, &kernels);
    assert_int_equal(kernels, 2 * CHAIN);
    yk_tensor_free(out[0]);
    yk_tensor_free(out[1]);
  }
  if (!overlap) fail_msg("in %d steps no kernel of gpu:0 ran while one of gpu:1 did", tries);
  yk_tensor_free(x);
  end(s, g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lists), cmocka_unit_test(test_uuid), cmocka_unit_test(test_select), cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_list_without_gpus), cmocka_unit_test(test_moves_are_told_once),
    cmocka_unit_test(test_refused_when_made), cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_variables_stay),
    cmocka_unit_test(test_branches_overlap),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  unsetenv("CUDA_DEVICE_ORDER");
  unsetenv("YOKE_VISIBLE_DEVICES");
  driver = "ref";
  int failed = cmocka_run_group_tests_name("choice of devices, ref", tests, NULL, NULL);
  driver = NULL;
  return failed + cmocka_run_group_tests_name("choice of devices, cpu", tests, NULL, NULL);
}
