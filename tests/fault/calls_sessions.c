/*
 * calls_sessions.c - sessions, single runs, variables' values and traces while memory runs out.
 *
 * Every case runs on a new session, since a plan that is kept needs no more memory; after the failure it is the same session
 * that has to work. Threads of streams are there where they matter, which is in a few cases: on a busy machine each hand-over
 * to a thread costs a time slice. The others have two devices of the reference driver, which works on the calling thread.
 */
#include "fault.h"

#include <unistd.h>

static yk_graph *g;
static yk_session *s, *none;
static yk_value x, y, sum, updated, init;
static yk_variable *v;
static yk_tensor *four, *six, *value, *out[2];
static char *text, path[64];
static int gpus;
static const char *drivers;

/* y = x*2 + v on the device of the case; `updated` adds the sum of y to v. */
static void make_graph(void) {
  CHECK_OK(yk_graph_new(&g));
  yk_device_push(g, gpus ? "/gpu:0" : "/cpu:0");
  x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1));
  YK_DEVICE(g, "/cpu:0") { v = yk_get_variable(g, "v", YK_F32, YK_SCALAR, YK_ONES, NULL); }
  y = yk_add(g, yk_mul(g, x, yk_scalar_f32(g, 2)), yk_read(v));
  YK_DEVICE(g, gpus > 1 ? "/gpu:1" : "") { sum = yk_reduce_sum(g, yk_relu(g, y), NULL); }
  updated = yk_assign_add(g, v, sum);
  yk_device_pop(g);
  init = yk_global_variables_initializer(g);
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(4), (const float[]){ 0, 1, 2, 3 }, &four));
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(6), (const float[]){ 0, 1, 2, 3, 4, 5 }, &six));
  CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, (const float[]){ 9 }, &value));
  s = none = NULL;
  text = NULL;
  out[0] = out[1] = NULL;
}

static yk_code open_it(yk_session **to) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  o.virtual_gpus = gpus;
  o.drivers = drivers;
  o.virtual_gpu_bytes = 1 << 20;
  o.cores = 1;
  return yk_session_open(g, &o, to);
}

/* v is set, not initialized by a run: no plan is kept that could give way to another one. */
static void open_session(void) {
  yk_tensor *one = NULL;
  make_graph();
  CHECK_OK(open_it(&s));
  CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, (const float[]){ 1 }, &one));
  CHECK_OK(yk_variable_set(s, v, one));
  yk_tensor_free(one);
}
static void use(int n, const char *list) { gpus = n; drivers = list; }
static void graph_on_cpu(void) { use(0, NULL); make_graph(); }
static void on_cpu(void) { use(0, NULL); open_session(); }
static void on_streams(void) { use(2, NULL); open_session(); }
static void on_gpus(void) { use(2, "ref"); open_session(); }

static void expect(const yk_tensor *t, double want) {
  assert_non_null(t);
  CHECK_NEAR(yk_tensor_at(t, 0), want, 0);
}

static void drop_out(void) {
  for (int i = 0; i < 2; i++) { yk_tensor_free(out[i]); out[i] = NULL; }
}

static void close_all(void) {
  drop_out();
  yk_free(text);
  yk_session_close(s);
  yk_graph_free(g);
  yk_tensor_free(four);
  yk_tensor_free(six);
  yk_tensor_free(value);
}

/* Nothing came out, nothing was changed: v is still 1. */
static void untouched(void) {
  assert_null(out[0]);
  assert_null(out[1]);
  assert_null(text);
  if (!s) return;
  yk_tensor *t = NULL;
  CHECK_OK(yk_variable_fetch(s, v, &t));
  expect(t, 1);
  yk_tensor_free(t);
}

/* ---- cases ---- */

static yk_code session_open(void) { return open_it(&s); }
static void no_session(void) { assert_null(s); assert_int_equal(yk_graph_frozen(g), 0); }
static void session_good(void) {
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
  CHECK_OK(yk_session_run(s, 1, &(yk_feed){ x, four }, 1, &sum, 0, NULL, out));
  expect(out[0], 16);
}

static yk_code run(void) { return yk_session_run(s, 1, &(yk_feed){ x, four }, 2, (const yk_value[]){ updated, y }, 0, NULL,
                                                 out); }
static void run_good(void) {
  expect(out[0], 17);
  expect(out[1], 1);
}

/* Another shape: the session has a plan, and makes a second one. It may give the first up for memory. */
static void with_plan(void) {
  on_gpus();
  CHECK_OK(yk_session_run(s, 1, &(yk_feed){ x, four }, 1, &y, 0, NULL, out));
  drop_out();
}
static yk_code run_six(void) { return yk_session_run(s, 1, &(yk_feed){ x, six }, 1, &sum, 0, NULL, out); }
static void six_good(void) {
  expect(out[0], 36);
  drop_out();
  CHECK_OK(yk_session_run(s, 1, &(yk_feed){ x, four }, 1, &sum, 0, NULL, out));
  expect(out[0], 16);
}

static yk_code explain(void) { return yk_session_explain(s, 1, &(yk_feed){ x, four }, 1, &y, 1, &updated, &text); }
static yk_code rehearse(void) {
  bool fits;
  return yk_session_rehearse(s, 1, &(yk_feed){ x, four }, 1, &y, 1, &updated, &fits, NULL, &text);
}
static void verdict_good(void) { assert_non_null(strstr(text, "the step fits\n")); }

/* A session of groups and parts; one on a machine from a file. */
static void graph_on_parts(void) { use(2, NULL); make_graph(); }
static yk_code open_parts(void) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  o.virtual_gpu_groups = "1:1MiB,1:2MiB";
  o.split_gpus = "gpu:1=1MiB,1MiB";
  o.cores = 1;
  return yk_session_open(g, &o, &s);
}
static void parts_good(void) { CHECK_INT(yk_session_device_count(s), 4); session_good(); }

static void graph_and_file(void) {
  graph_on_parts();
  snprintf(path, sizeof path, "/tmp/yoke-fault-%ld.json", (long)getpid());
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("{\"format\":\"yoke-machine\",\"version\":1,\"devices\":[{\"name\":\"/cpu:0\",\"driver\":\"ref\",\"bytes_limit\":99999},"
        "{\"name\":\"/gpu:0\",\"driver\":\"ref\",\"bytes_limit\":99999},{\"name\":\"/gpu:1\",\"driver\":\"ref\",\"bytes_limit\":99999}]}", f);
  CHECK_INT(fclose(f), 0);
}
static yk_code open_file(void) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  o.rehearse = path;
  return yk_session_open(g, &o, &s);
}
static void file_good(void) {
  CHECK_INT(yk_session_device_count(s), 3);
  CHECK_OK(rehearse());
  verdict_good();
}
static void close_file(void) {
  close_all();
  CHECK_INT(unlink(path), 0);
}

static yk_code placement(void) { return yk_session_placement(s, &text); }
static void text_good(void) { assert_non_null(strstr(text, "GPU:1")); }

static yk_code variable_fetch(void) { return yk_variable_fetch(s, v, &out[0]); }
static void fetch_good(void) { expect(out[0], 1); }
static yk_code variable_set(void) { return yk_variable_set(s, v, value); }
static void set_good(void) {
  CHECK_OK(yk_variable_fetch(s, v, &out[0]));
  expect(out[0], 9);
}
/* The first thing a session does: homes and storage are not there yet. */
static void fresh(void) {
  use(2, "ref");
  make_graph();
  CHECK_OK(open_it(&s));
}

/* ---- traces ---- */

static void trace_path(void) { snprintf(path, sizeof path, "/tmp/yoke-fault-%ld.json", (long)getpid()); }
static void traced(void) {
  on_streams();
  trace_path();
  CHECK_OK(yk_trace_start(s));
}
static yk_code trace_start(void) { return yk_trace_start(s); }
static void start_good(void) {
  trace_path();
  CHECK_OK(yk_session_run(s, 1, &(yk_feed){ x, four }, 1, &sum, 0, NULL, out));
  CHECK_OK(yk_trace_write(s, path));
  CHECK_INT(unlink(path), 0);
}
static void expect_in_trace(const char *what) {
  static char bytes[65536];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  bytes[fread(bytes, 1, sizeof bytes - 1, f)] = '\0';
  fclose(f);
  if (!strstr(bytes, what)) fail_msg("the trace lacks %s: %.2000s", what, bytes);
}
static const char *const parts[] = { "\"Mul\"", "\"Sum\"", "\"AssignAdd\"", "\"Feed\"", "\"Fetch\"", "\"CopyPeer\"",
                                     "\"dropped_events\":0" };

/* A run that is traced: it does without what the trace has no memory for, or fails whole. */
static void traced_good(void) {
  run_good();
  CHECK_OK(yk_trace_write(s, path));
  CHECK_INT(unlink(path), 0);
  CHECK_OK(yk_trace_start(s));                         /* the next timeline has all of it */
  drop_out();
  CHECK_OK(run());
  CHECK_OK(yk_trace_write(s, path));
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) expect_in_trace(parts[i]);
  CHECK_INT(unlink(path), 0);
}
static void traced_run(void) {
  traced();
  CHECK_OK(yk_session_run(s, 1, &(yk_feed){ x, four }, 1, &sum, 0, NULL, out));
  drop_out();
}
static yk_code trace_write(void) { return yk_trace_write(s, path); }
static void no_file(void) {
  char temporary[128];
  snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
  CHECK_INT(access(path, F_OK), -1);
  CHECK_INT(access(temporary, F_OK), -1);
}
static void write_good(void) {
  expect_in_trace("\"Sum\"");
  CHECK_INT(unlink(path), 0);
}

/* With a GPU a run survives one refusal: its pool then asks the driver for a smaller region. */
const fault_case fault_sessions[] = {
  { .names = "yk_session_open", .open = graph_on_cpu, .call = session_open, .intact = no_session, .good = session_good,
    .close = close_all, .least = 5 },
  { .names = "yk_session_open", .open = graph_on_parts, .call = open_parts, .intact = no_session, .good = parts_good,
    .close = close_all, .least = 15 },
  { .names = "yk_session_open", .open = graph_and_file, .call = open_file, .intact = no_session, .good = file_good,
    .close = close_file, .least = 15 },
  { .names = "yk_session_run", .open = on_cpu, .call = run, .intact = untouched, .good = run_good, .close = close_all,
    .least = 50 },
  { .names = "yk_session_run", .open = on_gpus, .call = run, .intact = untouched, .good = run_good, .close = close_all,
    .survives = true, .least = 50 },
  { .names = "yk_session_run", .open = on_streams, .call = run, .intact = untouched, .good = run_good, .close = close_all,
    .survives = true, .least = 50 },
  { .names = "yk_session_run", .open = with_plan, .call = run_six, .intact = untouched, .good = six_good, .close = close_all,
    .survives = true, .least = 50 },
  { .names = "yk_session_explain", .open = on_gpus, .call = explain, .intact = untouched, .good = text_good, .close = close_all,
    .least = 50 },
  { .names = "yk_session_rehearse", .open = on_gpus, .call = rehearse, .intact = untouched, .good = verdict_good,
    .close = close_all, .least = 50 },
  { .names = "yk_session_placement", .open = on_gpus, .call = placement, .intact = untouched, .good = text_good,
    .close = close_all, .least = 5 },
  { .names = "yk_variable_fetch", .open = on_gpus, .call = variable_fetch, .intact = untouched, .good = fetch_good,
    .close = close_all, .least = 2 },
  { .names = "yk_variable_set", .open = on_gpus, .call = variable_set, .intact = untouched, .good = set_good, .close = close_all,
    .least = 1 },
  { .names = "yk_variable_set", .open = fresh, .call = variable_set, .good = set_good, .close = close_all, .least = 5 },
  { .names = "yk_trace_start", .open = on_gpus, .call = trace_start, .good = start_good, .close = close_all },
  { .names = "yk_session_run", .open = traced, .call = run, .intact = untouched, .good = traced_good, .close = close_all,
    .survives = true, .least = 50 },
  { .names = "yk_trace_write", .open = traced_run, .call = trace_write, .intact = no_file, .good = write_good, .close = close_all,
    .least = 2 },
  { 0 },
};
