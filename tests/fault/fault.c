/*
 * fault.c - the two loops of fault.h. Both count what is live before a case opens anything and after it closed everything,
 * so a leak shows whatever the sanitizer thinks of it.
 */
#include "fault.h"
#include <stdlib.h>
#include "graph/graph.h"

typedef uint64_t (*asker)(uint64_t n);

enum { MOST = 100000, QUICK = 7, QUICK_FROM = 10 };

/* The thread has a message, and it tells of memory: "out of host memory", or how many bytes there were not. */
static void expect_no_memory(const char *who, uint64_t n, yk_code rc) {
  if (rc != YK_ENOMEM)
    fail_msg("%s, allocation %llu: %s (%s), expected ENOMEM", who, (unsigned long long)n, yk_code_name(rc), yk_error_message());
  if (!strstr(yk_error_message(), "memory") && !strstr(yk_error_message(), "bytes"))
    fail_msg("%s, allocation %llu: the message \"%s\" does not tell of memory", who, (unsigned long long)n, yk_error_message());
}

static void expect_live(const char *who, uint64_t n, uint64_t live) {
  if (yk__alloc_live() == live) return;
  fail_msg("%s, allocation %llu: %lld more allocations are live than before", who, (unsigned long long)n,
           (long long)(yk__alloc_live() - live));
}

/* The allocation to refuse after the n-th. Under a sanitizer, told by YOKE_TEST_QUICK, one in seven: a release build tries them all. */
static uint64_t after(const fault_case *c, uint64_t n) {
  uint64_t stride = c->stride && n > 100 ? c->stride : 1;
  return n + (n > QUICK_FROM && getenv("YOKE_TEST_QUICK") && stride < QUICK ? QUICK : stride);
}

static uint64_t loop(const fault_case *c, asker ask, uint64_t first) {
  for (uint64_t n = first; n < MOST; n = after(c, n)) {
    uint64_t live = yk__alloc_live();
    if (c->open) c->open();
    yk_error_clear();
    ask(n);
    yk_code rc = c->call();
    uint64_t refused = ask(0);
    if (refused > 0 && !(c->survives && rc == YK_OK)) {
      expect_no_memory(c->names, n, rc);
      if (c->intact) c->intact();
      yk_error_clear();
      rc = c->call();
    }
    if (rc == YK_OK && yk_error_message()[0])
      fail_msg("%s, allocation %llu: it worked, but left the message \"%s\"", c->names, (unsigned long long)n,
               yk_error_message());
    if (rc != YK_OK)
      fail_msg("%s, allocation %llu refused (%llu in all), then called with memory: %s (%s)", c->names, (unsigned long long)n,
               (unsigned long long)refused, yk_code_name(rc), yk_error_message());
    if (c->good) c->good();
    if (c->close) c->close();
    yk_error_clear();
    expect_live(c->names, n, live);
    if (refused == 0) return n - 1;
  }
  fail_msg("%s: still not done after %d allocations", c->names, MOST);
  return 0;
}

void fault_run(const fault_case *c) {
  uint64_t once = loop(c, yk__alloc_fail_at, 1), gone = loop(c, yk__alloc_fail_from, c->stride ? 2 : 1);
  if (once < c->least) fail_msg("%s: %llu allocations, expected at least %llu", c->names, (unsigned long long)once,
                                (unsigned long long)c->least);
  if (!c->survives && !c->stride) CHECK_INT(once, gone);
}

/* ---- builders ------------------------------------------------------------------------------------------------- */

static yk_code no_rows(void *self, int64_t rows, void *const *out) {
  (void)self;
  (void)rows;
  (void)out;
  return YK_ECANCELLED;
}

static yk_value numbers(yk_graph *g, yk_dtype t, yk_shape shape) {
  return yk_fill(g, t, shape, 1);
}

static fault_inputs make_inputs(void) {
  static yk_source source = { .next = no_rows, .ncomponents = 2, .component = { { .dtype = YK_F32, .rank = 3, .dim = { 24, 24,
      3 } }, { .dtype = YK_I32 } } };
  fault_inputs in = { .source = &source };
  CHECK_OK(yk_graph_new(&in.g));
  yk_graph *g = in.g;
  in.x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4, 6));
  in.image = yk_placeholder(g, "image", YK_F32, YK_SHAPE(2, 8, 8, 4));
  in.filter = numbers(g, YK_F32, YK_SHAPE(3, 3, 4, 8));
  in.a = numbers(g, YK_F32, YK_SHAPE(4, 6));
  in.b = numbers(g, YK_F32, YK_SHAPE(6, 5));
  in.bias = numbers(g, YK_F32, YK_SHAPE(6));
  in.cond = numbers(g, YK_BOOL, YK_SHAPE(4, 6));
  in.index = numbers(g, YK_I32, YK_SHAPE(2));
  in.labels = numbers(g, YK_I32, YK_SHAPE(4));
  in.step = yk_scalar(g, YK_I64, 0);
  in.v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(6, 5), YK_ZEROS, NULL);
  in.w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(6, 5), YK_ZEROS, NULL);
  in.slot = yk_get_variable(g, "slot", YK_F32, YK_SHAPE(6, 5), YK_ZEROS, &(yk_variable_options){ .not_trainable = true });
  in.counter = yk_global_step(g);
  in.loss = yk_reduce_sum(g, yk_matmul(g, in.x, yk_add(g, yk_read(in.v), yk_read(in.w)), NULL), NULL);
  CHECK_OK(yk_graph_status(g));
  return in;
}

/* What was there before is there still, and a failed graph takes nothing more. */
static void expect_sticky(const char *who, uint64_t n, const fault_inputs *in) {
  yk_graph *g = in->g;
  yk_session *s = NULL;
  char *text = NULL, message[512];
  expect_no_memory(who, n, YK_ENOMEM);                     /* what the builder left behind */
  yk_error_clear();
  expect_no_memory(who, n, yk_graph_status(g));            /* what the graph keeps: with the place of the call */
  snprintf(message, sizeof message, "%s", yk_error_message());
  if (!strstr(message, ".def:") && !strstr(message, ".c:")) fail_msg("%s, allocation %llu: \"%s\" names no place", who,
                                                                     (unsigned long long)n, message);
  size_t nnode = g->nnode;
  assert_int_equal(yk_relu(g, in->x).id, 0);
  CHECK_INT(g->nnode, nnode);
  assert_string_equal(yk_value_name(g, in->x), "x");
  assert_int_equal(yk_find(g, "x").id, in->x.id);
  CHECK_CODE(yk_session_open(g, NULL, &s), YK_ENOMEM, message);
  assert_null(s);
  CHECK_OK(yk_graph_dump(g, &text));
  yk_free(text);
  g->status = YK_OK;                                       /* as if nothing had been: what was built is whole */
  yk_code rc = yk_graph_verify(g);
  if (rc != YK_OK) fail_msg("%s, allocation %llu: the graph is not whole: %s", who, (unsigned long long)n, yk_error_message());
}

static void build_loop(const fault_builder *b, asker ask) {
  for (uint64_t n = 1; n < MOST; n++) {
    uint64_t live = yk__alloc_live();
    fault_inputs in = make_inputs();
    yk_error_clear();
    ask(n);
    yk_value v = b->build(&in);
    uint64_t refused = ask(0);
    if (refused > 0) {
      if (v.id) fail_msg("%s, allocation %llu: refused, and yet value %u was returned", b->name, (unsigned long long)n, v.id);
      expect_sticky(b->name, n, &in);
    } else {
      CHECK_OK(yk_graph_status(in.g));
      CHECK_OK(yk_graph_verify(in.g));
      if (!v.id) fail_msg("%s: no value and no error", b->name);
    }
    yk_graph_free(in.g);
    expect_live(b->name, n, live);
    if (refused == 0) {
      if (n < 2) fail_msg("%s: takes no memory, so it cannot fail: list it in silent.c", b->name);
      return;
    }
  }
}

void fault_build(const fault_builder *b) {
  build_loop(b, yk__alloc_fail_at);
  build_loop(b, yk__alloc_fail_from);
}
