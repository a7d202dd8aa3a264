/*
 * test_trace.c - what a session shows: the timeline file, the placement log, its devices, the plan as text.
 *
 * The timeline must be JSON to the letter (a small parser here checks it), hold one
 * event a kernel and copy, and replace an older file as a whole.
 */
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>
#include "run/support.h"

/* ---- JSON: each skips one thing and returns what follows, NULL if it is malformed ------------------------------- */

static const char *value(const char *p);

static const char *space(const char *p) {
  while (isspace((unsigned char)*p)) p++;
  return p;
}

static const char *string(const char *p) {
  if (*p++ != '"') return NULL;
  for (; *p != '"'; p++) {
    if ((unsigned char)*p < 0x20) return NULL;
    if (*p != '\\') continue;
    p++;
    if (*p == 'u') {
      for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)*++p)) return NULL;
    } else if (!strchr("\"\\/bfnrt", *p)) {
      return NULL;
    }
  }
  return p + 1;
}

static const char *items(const char *p, char close, int keyed) {
  p = space(p + 1);
  if (*p == close) return p + 1;
  for (;;) {
    if (keyed) {
      p = string(space(p));
      if (!p || *(p = space(p)) != ':') return NULL;
      p++;
    }
    p = value(space(p));
    if (!p) return NULL;
    p = space(p);
    if (*p == close) return p + 1;
    if (*p++ != ',') return NULL;
  }
}

static const char *value(const char *p) {
  char *end_of;
  if (*p == '{') return items(p, '}', 1);
  if (*p == '[') return items(p, ']', 0);
  if (*p == '"') return string(p);
  strtod(p, &end_of);
  return end_of == p ? NULL : end_of;
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("%s was not written", path);
  static char text[1 << 20];
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  return text;
}

static int count(const char *text, const char *what) {
  int n = 0;
  for (; (text = strstr(text, what)) != NULL; text++) n++;
  return n;
}

/* ---- timeline --------------------------------------------------------------------------------------------------- */

static void test_timeline(void **state) {
  (void)state;
  const char *path = "trace_test.json";
  yk_graph *g = new_graph();
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4)), a = { 0 }, b = { 0 };
  YK_DEVICE(g, "/gpu:0") { a = yk_mul(yk_named(g, "a"), x, yk_scalar_f32(g, 2)); }
  YK_DEVICE(g, "/gpu:1") { b = yk_add(yk_named(g, "b"), a, yk_scalar_f32(g, 1)); }
  yk_session *s = open_session(g, 2);
  yk_tensor *t = ramp(YK_SHAPE(4)), *out;
  FAILS(yk_trace_write(s, path), YK_EINVAL, "yk_trace_start()");
  OK(yk_trace_start(s));
  for (int i = 0; i < 3; i++) {
    OK(yk_session_run(s, 1, &(yk_feed){ x, t }, 1, &b, 0, NULL, &out));
    expect_line(out, 4, 2, 1);
    yk_tensor_free(out);
    OK(yk_session_run(s, 1, &(yk_feed){ x, t }, 1, &a, 0, NULL, &out));     /* one stream: inline */
    yk_tensor_free(out);
  }
  FAILS(yk_trace_write(s, "no/such/folder/trace.json"), YK_EIO, "no/such/folder/trace.json");
  OK(yk_trace_write(s, path));
  const char *text = read_file(path), *rest = value(text);
  if (!rest || *space(rest)) fail_msg("not JSON:\n%s", text);
  if (count(text, "\"name\":\"Add\"") != 3) fail_msg("%d Add, expected 3:\n%s", count(text, "\"name\":\"Add\""), text);
  if (count(text, "\"name\":\"Mul\"") != 6) fail_msg("%d Mul, expected 6:\n%s", count(text, "\"name\":\"Mul\""), text);
  assert_true(count(text, "\"name\":\"Feed\"") >= 6);
  assert_true(count(text, "\"name\":\"Fetch\"") >= 6);
  assert_true(count(text, "\"name\":\"CopyPeer\"") >= 3);
  assert_true(count(text, "\"args\":{\"name\":\"b\",\"origin\":\"") == 3 + 3);     /* the kernel and the fetch */
  assert_true(count(text, "device:GPU:1\"") == 1);
  assert_true(count(text, "test_trace.c:") > 0);
  OK(yk_session_run(s, 1, &(yk_feed){ x, t }, 1, &b, 0, NULL, &out));      /* off again */
  yk_tensor_free(out);
  FAILS(yk_trace_write(s, path), YK_EINVAL, "no trace");
  OK(yk_trace_start(s));
  OK(yk_trace_write(s, path));                 /* empty, and replaces the other */
  text = read_file(path);
  rest = value(text);
  if (!rest || *space(rest)) fail_msg("not JSON:\n%s", text);
  assert_int_equal(count(text, "\"ph\":\"X\""), 0);
  remove(path);
  yk_tensor_free(t);
  end(s, g);
}

/* ---- placement -------------------------------------------------------------------------------------------------- */

/* What the calls between begin and end write to stdout. */
static int saved;
static const char *captured = "placement_test.txt";
static void capture_begin(void) {
  fflush(stdout);
  saved = dup(1);
  if (!freopen(captured, "w", stdout)) fail_msg("cannot redirect stdout");
}

static char *capture_end(void) {
  fflush(stdout);
  dup2(saved, 1);
  close(saved);
  char *text = read_file(captured);
  remove(captured);
  return text;
}

static yk_graph *matmul_like(yk_value *y) {
  yk_graph *g = new_graph();
  YK_DEVICE(g, "/gpu:1") {
    yk_value one = yk_fill(g, YK_F32, YK_SHAPE(2), 1), two = yk_fill(g, YK_F32, YK_SHAPE(2), 2);
    *y = yk_add(yk_named(g, "sum"), one, two);
  }
  return g;
}

static void test_placement_log(void **state) {
  (void)state;
  yk_value y;
  yk_graph *g = matmul_like(&y);
  yk_session_options o = options(2);
  o.log_device_placement = true;
  capture_begin();
  yk_session *s = open_with(g, o);
  yk_tensor *a = run_fetch(s, y), *b = run_fetch(s, y);
  char *text = capture_end();
  expect_line(a, 2, 0, 3);
  yk_tensor_free(a);
  yk_tensor_free(b);
  const char *first = "Device mapping:\n/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: virtual GPU (";
  if (strncmp(text, first, strlen(first)) != 0) fail_msg("%s", text);
  assert_int_equal(count(text, "pci bus id: virtual:1, compute capability: none\n"), 1);
  assert_int_equal(count(text, "device:CPU:0 ->"), 0);
  if (count(text, "sum: (Add): /job:localhost/replica:0/task:0/device:GPU:1\n") != 1) fail_msg("%s", text);     /* once */
  yk_graph_unfreeze(g);                        /* a later node is logged too, the others are not again */
  yk_value z = yk_neg(yk_named(g, "late"), y);
  capture_begin();
  a = run_fetch(s, z);
  yk_tensor_free(a);
  assert_string_equal(capture_end(), "late: (Neg): /job:localhost/replica:0/task:0/device:GPU:0\n");
  end(s, g);
}

static void test_no_devices(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_session_options o = options(0);
  o.log_device_placement = true;
  capture_begin();
  yk_session *s = open_with(g, o);
  char *text = capture_end();
  assert_string_equal(text, "Device mapping: no known devices.\n");
  end(s, g);
}

static void test_visible(void **state) {
  (void)state;
  yk_value y;
  yk_graph *g = matmul_like(&y);
  yk_device_info info;
  setenv("CUDA_VISIBLE_DEVICES", "\"2,0\"", 1);
  yk_session *s = open_session(g, 3);
  assert_int_equal(yk_session_device_count(s), 3);
  OK(yk_session_device(s, 1, &info));
  assert_string_equal(info.name, "/job:localhost/replica:0/task:0/device:GPU:0");
  assert_string_equal(info.bus, "virtual:2");
  assert_true(info.is_virtual);
  OK(yk_session_device(s, 2, &info));
  assert_string_equal(info.bus, "virtual:0");
  FAILS(yk_session_device(s, 3, &info), YK_EINVAL, "device 3");
  yk_session_close(s);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  yk_session_options o = options(3);
  s = NULL;
  FAILS(yk_session_open(g, &o, &s), YK_ENOTFOUND, "GPU:1");        /* asked for by name and absent: never silently the CPU */
  assert_null(s);
  unsetenv("CUDA_VISIBLE_DEVICES");
  yk_graph_free(g);
}

static void test_explain(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1, 2)), y = yk_add(yk_named(g, "y"), x, x);
  yk_session *s = open_session(g, 0);
  yk_tensor *t = ramp(YK_SHAPE(3, 2));
  char *text = NULL;
  FAILS(yk_session_explain(s, 0, NULL, 1, &y, 0, NULL, &text), YK_EINVAL, "placeholder x");
  FAILS(yk_session_explain(s, 1, &(yk_feed){ x, NULL }, 1, &y, 0, NULL, &text), YK_EINVAL, "expected a tensor f32[?,2]");
  assert_null(text);
  OK(yk_session_explain(s, 1, &(yk_feed){ x, t }, 1, &y, 0, NULL, &text));
  if (!strstr(text, "f32[3,2]")) fail_msg("%s", text);
  yk_free(text);
  assert_false(yk_graph_frozen(g));            /* looking is not running */
  yk_tensor_free(t);
  end(s, g);
}

/* Whatever the place of a call looks like: JSON, in UTF-8, with nothing lost. */
static void test_odd_places(void **state) {
  (void)state;
  const char *path = "trace_odd.json";
  yk_graph *g = new_graph();
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4));
  yk_value y = yk_relu_at("d\xC3\xA9j\xC3\xA0 \"vu\"\\\n\xFF.c:1", g, x);
  yk_session *s = open_session(g, 0);
  yk_tensor *t = ramp(YK_SHAPE(4)), *out;
  OK(yk_trace_start(s));
  OK(yk_session_run(s, 1, &(yk_feed){ x, t }, 1, &y, 0, NULL, &out));
  OK(yk_trace_write(s, path));
  const char *text = read_file(path), *rest = value(text);
  if (!rest || *space(rest)) fail_msg("not JSON:\n%s", text);
  if (!strstr(text, "\"origin\":\"d\xC3\xA9j\xC3\xA0 \\\"vu\\\"\\\\\\u000a\\u00ff.c:1\"")) fail_msg("%s", text);
  remove(path);
  yk_tensor_free(out);
  yk_tensor_free(t);
  end(s, g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_timeline), cmocka_unit_test(test_odd_places), cmocka_unit_test(test_placement_log), cmocka_unit_test(test_no_devices),
    cmocka_unit_test(test_visible), cmocka_unit_test(test_explain),
  };
  unsetenv("CUDA_VISIBLE_DEVICES");
  driver = "ref";
  int failed = cmocka_run_group_tests_name("views of a session, ref", tests, NULL, NULL);
  driver = NULL;
  return failed + cmocka_run_group_tests_name("views of a session, cpu", tests, NULL, NULL);
}
