/*
 * Device, colocation and control scopes: what a node made inside gets. The table of devices is checked as text, as a
 * user writes and reads them.
 */
#include "graph/helpers.h"

static const char *device_of(yk_graph *g) { return yk_value_device(g, x2(g, "x")); }

static void test_merging(void **state) {
  (void)state;
  static const char *const table[][4] = {     /* outer, middle, inner, result */
    { "", "", "", "" },
    { "/gpu:1", "", "", "/device:GPU:1" },
    { "/cpu:0", "/gpu:1", "", "/device:GPU:1" },
    { "/job:w/gpu:1", "/cpu:0", "", "/job:w/device:CPU:0" },
    { "/gpu:1", "/task:3", "", "/task:3/device:GPU:1" },
    { "/job:w", "/replica:2", "/task:1/gpu:0", "/job:w/replica:2/task:1/device:GPU:0" },
    { "/gpu:1", NULL, "", "" },
    { "/job:w/gpu:1", NULL, "/cpu:0", "/device:CPU:0" },
    { "/gpu:1", "/gpu:2", NULL, "" },
    { "/device:GPU:*", "/job:w", "", "/job:w/device:GPU:*" },
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yk_graph *g = new_graph();
    YK_DEVICE(g, table[i][0]) YK_DEVICE(g, table[i][1]) YK_DEVICE(g, table[i][2]) CHECK_STR(device_of(g), table[i][3]);
    CHECK_STR(device_of(g), "");
    done(g);
  }
}

typedef struct chooser { const char *answer, *op, *so_far; char seen[64]; } chooser;

static const char *choose(const yk_op *op, const char *name, const char *so_far, void *arg) {
  chooser *c = arg;
  snprintf(c->seen, sizeof c->seen, "%s %s %s", op->label, name, so_far);
  return c->answer;
}

static void test_function(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  chooser c = { .answer = "/gpu:3" };
  yk_device_push(g, "/job:w/cpu:0");
  yk_device_push_fn(g, choose, &c);
  YK_DEVICE(g, "/task:1") CHECK_STR(device_of(g), "/job:w/device:GPU:3");    /* replaces what inner scopes gave */
  CHECK_STR(c.seen, "Placeholder x /task:1");
  c.answer = NULL;
  YK_DEVICE(g, "/task:1") CHECK_STR(device_of(g), "/job:w/task:1/device:CPU:0");
  c.answer = "/gpu:x";
  device_of(g);
  yk_device_pop(g);
  yk_device_pop(g);
  FAILED(g, YK_EINVAL, "device function", "gpu:x");
}

static void test_bad_device(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  YK_DEVICE(g, "/gpu:0/cpu:0") x2(g, "x");
  const char *here = "test_scopes.c:";
  FAILED(g, YK_EINVAL, here, "/gpu:0/cpu:0");
}

static uint32_t group_of(const yk_graph *g, yk_value v) { return yk__value_node(g, v)->colocate; }

static void test_colocation(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value a, b, c = { 0 }, d = { 0 }, e = { 0 }, f = { 0 };
  YK_DEVICE(g, "/gpu:1") a = x2(g, "a");
  b = x2(g, "b");
  YK_DEVICE(g, "/cpu:0") YK_COLOCATE(g, a) {
    YK_DEVICE(g, "/gpu:2") c = x2(g, "c");
    YK_COLOCATE(g, ((yk_value){ 0 })) d = x2(g, "d");
  }
  YK_DEVICE(g, "/cpu:0") YK_COLOCATE(g, b) {
    e = x2(g, "e");
    YK_DEVICE(g, "/gpu:2") f = x2(g, "f");
  }
  CHECK_STR(yk_value_device(g, c), "/device:GPU:1");          /* a's device replaces the scopes */
  CHECK_INT(group_of(g, c), group_of(g, a));
  CHECK_STR(yk_value_device(g, d), "");                       /* outer colocation and devices forgotten */
  CHECK_INT(group_of(g, d), yk__value_node(g, d)->id);
  CHECK_STR(yk_value_device(g, e), "");                       /* b has none, the outer device is hidden */
  CHECK_STR(yk_value_device(g, f), "/device:GPU:2");
  CHECK_INT(group_of(g, f), group_of(g, b));
  YK_COLOCATE(g, f) YK_COLOCATE(g, c) x2(g, "both");          /* unites the groups */
  CHECK_INT(group_of(g, b), group_of(g, a));
  CHECK_INT(group_of(g, e), group_of(g, a));
  CHECK_INT(group_of(g, d), yk__value_node(g, d)->id);
  done(g);
}

static void check_control(const yk_graph *g, yk_value v, const char *want) {
  char got[256] = "";
  const yk_node *n = yk__value_node(g, v);
  for (uint32_t i = 0; i < n->nctrl; i++)
    snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", yk__node(g, n->ctrl[i])->name);
  CHECK_STR(got, want);
}

static void test_control(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value a = x2(g, "a"), b = x2(g, "b"), outside = yk_relu(g, a);
  YK_CONTROL(g, 2, ((yk_value[]){ a, b })) {
    check_control(g, x2(g, "c"), "a b");
    YK_CONTROL(g, 2, ((yk_value[]){ outside, b })) check_control(g, x2(g, "d"), "a b Relu");
    YK_CONTROL(g, 0, NULL) check_control(g, x2(g, "e"), "");
    YK_CONTROL(g, 0, NULL) YK_CONTROL(g, 1, &outside) check_control(g, x2(g, "f"), "Relu");
    check_control(g, outside, "");                            /* made outside: not touched */
  }
  check_control(g, x2(g, "h"), "");
  check_control(g, yk_group(yk_named(g, "both"), 2, ((yk_value[]){ a, b })), "a b");
  check_control(g, yk_group(g, 0, NULL), "");
  CHECK_STR(yk_value_name(g, yk_group(g, 1, &a)), "group_deps_1");
  CHECK_INT(yk_value_desc(g, yk_find(g, "both"))->dtype, YK_NONE);
  done(g);
  g = new_graph();
  yk_group(g, 2, ((yk_value[]){ x2(g, "a"), { 0 } }));
  FAILED(g, YK_EINVAL, "entry 1 of 2 is empty");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_merging), cmocka_unit_test(test_function), cmocka_unit_test(test_bad_device),
    cmocka_unit_test(test_colocation), cmocka_unit_test(test_control),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
