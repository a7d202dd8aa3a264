/*
 * Nested, partial and conflicting device scopes, as a table: what is open, from the outermost to the innermost, and the
 * device that a node made inside asks for. The replica setters have tables of their own.
 *
 * An entry is a device string; "!" is a barrier (NULL); "=S" a function that answers S, "?" one without an opinion; "@a"
 * sits with node a, "@" forgets whom to sit with. Node a asks for /gpu:1, node b for nothing, node c for /job:w/cpu:0.
 */
#include "graph/helpers.h"

enum { DEPTH = 6 };

static const struct { const char *scope[DEPTH], *want; } table[] = {
  /* one scope */
  { { "" }, "" },
  { { "/" }, "" },
  { { "!" }, "" },
  { { "/gpu:1" }, "/device:GPU:1" },
  { { "/gpu" }, "/device:GPU:*" },
  { { "/gpu:*" }, "/device:GPU:*" },
  { { "/device:*:2" }, "/device:*:2" },
  { { "/job:*" }, "" },
  { { "/task:2/job:w/gpu:0/replica:1" }, "/job:w/replica:1/task:2/device:GPU:0" },
  /* the inner one wins */
  { { "/cpu:0", "/gpu:1" }, "/device:GPU:1" },
  { { "/gpu:1", "/cpu:0" }, "/device:CPU:0" },
  { { "/gpu:0", "/gpu:1", "/gpu:2" }, "/device:GPU:2" },
  { { "/job:a", "/job:b" }, "/job:b" },
  { { "/replica:1", "/replica:2" }, "/replica:2" },
  { { "/task:1", "/task:2" }, "/task:2" },
  { { "/gpu:1", "/gpu:1" }, "/device:GPU:1" },
  /* the outer one fills in */
  { { "/job:w", "/gpu:1" }, "/job:w/device:GPU:1" },
  { { "/gpu:1", "/job:w" }, "/job:w/device:GPU:1" },
  { { "/job:w/gpu:1", "/cpu:0" }, "/job:w/device:CPU:0" },
  { { "/gpu:1", "/task:3" }, "/task:3/device:GPU:1" },
  { { "/job:w", "/replica:2", "/task:1", "/gpu:0" }, "/job:w/replica:2/task:1/device:GPU:0" },
  { { "/gpu:0", "/task:1", "/replica:2", "/job:w" }, "/job:w/replica:2/task:1/device:GPU:0" },
  { { "/job:a/replica:0/task:0/gpu:0", "/task:7" }, "/job:a/replica:0/task:7/device:GPU:0" },
  { { "/job:a/replica:0/task:0/gpu:0", "/job:b/task:7" }, "/job:b/replica:0/task:7/device:GPU:0" },
  { { "/job:a/replica:0/task:0/gpu:0", "/job:b/replica:1/task:1/cpu:1" }, "/job:b/replica:1/task:1/device:CPU:1" },
  { { "/task:5", "/job:w/task:0", "/gpu:3" }, "/job:w/task:0/device:GPU:3" },
  /* no effect */
  { { "/gpu:1", "" }, "/device:GPU:1" },
  { { "", "/gpu:1" }, "/device:GPU:1" },
  { { "/gpu:1", "/" }, "/device:GPU:1" },
  { { "/gpu:1", "", "/task:1", "" }, "/task:1/device:GPU:1" },
  /* type and number are two fields */
  { { "/cpu:1", "/gpu" }, "/device:GPU:1" },
  { { "/gpu:2", "/gpu:*" }, "/device:GPU:2" },
  { { "/gpu:*", "/gpu:2" }, "/device:GPU:2" },
  { { "/cpu:0", "/device:GPU" }, "/device:GPU:0" },
  { { "/gpu", "/device:*:3" }, "/device:GPU:3" },
  { { "/gpu:1", "/device:*:3" }, "/device:GPU:3" },
  { { "/gpu:1", "/device:*:*" }, "/device:GPU:1" },
  /* wildcards leave a field to the outer ones */
  { { "/job:w", "/job:*/gpu:0" }, "/job:w/device:GPU:0" },
  { { "/job:w/task:4", "/task:*" }, "/job:w/task:4" },
  { { "/replica:3", "/replica:*/task:1" }, "/replica:3/task:1" },
  { { "/device:GPU:*", "/job:w" }, "/job:w/device:GPU:*" },
  /* barriers */
  { { "/gpu:1", "!" }, "" },
  { { "/job:w/gpu:1", "!", "/cpu:0" }, "/device:CPU:0" },
  { { "/job:w", "!", "/gpu:1", "!" }, "" },
  { { "!", "/gpu:1", "/job:w" }, "/job:w/device:GPU:1" },
  { { "/job:a", "/gpu:0", "!", "/task:1", "" }, "/task:1" },
  { { "/gpu:1", "!", "" }, "" },
  { { "/job:w/gpu:1", "!", "/gpu" }, "/device:GPU:*" },
  /* functions: the answer replaces what the inner scopes gave, outer scopes fill in */
  { { "=/gpu:3" }, "/device:GPU:3" },
  { { "=/gpu:3", "/cpu:0" }, "/device:GPU:3" },
  { { "/cpu:0", "=/gpu:3" }, "/device:GPU:3" },
  { { "/job:w/cpu:0", "=/gpu:3", "/task:1" }, "/job:w/device:GPU:3" },
  { { "=" }, "" },
  { { "=", "/gpu:1" }, "" },
  { { "/task:2", "=", "/gpu:1" }, "/task:2" },
  { { "?", "/gpu:1" }, "/device:GPU:1" },
  { { "/job:w", "?", "/gpu:1" }, "/job:w/device:GPU:1" },
  { { "?" }, "" },
  { { "=/gpu:1", "=/gpu:2" }, "/device:GPU:1" },
  { { "=/job:w", "=/gpu:2", "/cpu:0" }, "/job:w" },
  { { "=/gpu:3", "!" }, "" },
  { { "=/gpu:3", "!", "/cpu:0" }, "/device:CPU:0" },
  { { "/gpu:1", "!", "=/task:1" }, "/task:1" },
  /* sitting with a node: its device replaces the scopes' */
  { { "@a" }, "/device:GPU:1" },
  { { "/cpu:0", "@a" }, "/device:GPU:1" },
  { { "@a", "/cpu:0" }, "/device:GPU:1" },
  { { "/job:w", "@a", "/task:2" }, "/device:GPU:1" },
  { { "/cpu:0", "@b" }, "" },
  { { "/cpu:0", "@b", "/gpu:2" }, "/device:GPU:2" },
  { { "@c", "/gpu:0" }, "/job:w/device:CPU:0" },
  { { "@a", "@" }, "" },
  { { "/gpu:0", "@a", "@" }, "" },
  { { "@a", "@", "/gpu:2" }, "/device:GPU:2" },
  { { "@b", "@a" }, "/device:GPU:1" },
  { { "@a", "@b" }, "/device:GPU:1" },
  { { "@a", "@c" }, "/job:w/device:CPU:0" },
  { { "=/gpu:3", "@b" }, "" },
  { { "@b", "=/gpu:3" }, "/device:GPU:3" },
  { { "@a", "=/gpu:3" }, "/device:GPU:1" },
  { { "@a", "!" }, "/device:GPU:1" },
};

static const char *answer(const yk_op *op, const char *name, const char *so_far, void *arg) {
  (void)op;
  (void)name;
  (void)so_far;
  return arg;
}

static void open_scope(yk_graph *g, const char *scope, const yk_value *node) {
  switch (scope[0]) {
  case '!': yk_device_push(g, NULL); return;
  case '?': yk_device_push_fn(g, answer, NULL); return;
  case '=': yk_device_push_fn(g, answer, (void *)(uintptr_t)(scope + 1)); return;
  case '@': yk_colocate_push(g, scope[1] ? node[scope[1] - 'a'] : (yk_value){ 0 }); return;
  default: yk_device_push(g, scope);
  }
}

static void close_scope(yk_graph *g, const char *scope) {
  if (scope[0] == '@') yk_colocate_pop(g);
  else yk_device_pop(g);
}

static void show(size_t i, const char *got) {
  char line[256] = "";
  for (int k = 0; k < DEPTH && table[i].scope[k]; k++)
    snprintf(line + strlen(line), sizeof line - strlen(line), " { %s", table[i].scope[k]);
  fail_msg("row %zu,%s: \"%s\", expected \"%s\"", i, line, got, table[i].want);
}

static void test_table(void **state) {
  (void)state;
  assert_true(sizeof table / sizeof *table >= 60);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    yk_graph *g = new_graph();
    yk_value node[3];
    int n = 0;
    YK_DEVICE(g, "/gpu:1") node[0] = x2(g, "a");
    node[1] = x2(g, "b");
    YK_DEVICE(g, "/job:w/cpu:0") node[2] = x2(g, "c");
    for (; n < DEPTH && table[i].scope[n]; n++) open_scope(g, table[i].scope[n], node);
    yk_value inside = x2(g, "x");
    while (n > 0) close_scope(g, table[i].scope[--n]);
    CHECK_OK(yk_graph_status(g));
    if (strcmp(yk_value_device(g, inside), table[i].want) != 0) show(i, yk_value_device(g, inside));
    CHECK_STR(yk_value_device(g, x2(g, "after")), "");      /* nothing is left open */
    done(g);
  }
}

/* The first bad string is kept, with the place of the scope; what comes after it is not built. */
static void test_refusals(void **state) {
  static const struct { const char *outer, *inner, *words; } bad[] = {
    { "", "/gpu:0/cpu:0", "\"cpu:0\" comes after another" }, { "/gpu:x", "/cpu:0", "\"gpu:x\" has no device number" },
    { "/job:w", "/tpu:0", "\"tpu:0\" is not understood" },   { "=/gpu:-1", "", "device function" },
    { "", "=/nowhere:1", "device function" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    yk_graph *g = new_graph();
    open_scope(g, bad[i].outer, NULL);
    open_scope(g, bad[i].inner, NULL);
    CHECK_INT(x2(g, "x").id, 0);
    FAILED(g, YK_EINVAL, bad[i].outer[0] == '=' || bad[i].inner[0] == '=' ? "helpers.h:" : "test_device_scopes.c:", bad[i].words);
  }
}

/* ---- replica setters -------------------------------------------------------------------------------------------- */

static const char *home(yk_graph *g, const char *name, int64_t n) {
  return yk_variable_device(yk_get_variable(g, name, YK_F32, YK_SHAPE(n), YK_ZEROS, NULL));
}

static void test_round_robin(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_replica_setter *s = yk_replica_setter_new(g, &(yk_replica_options){ .ps_tasks = 2 });
  YK_REPLICA(g, s) {
    CHECK_STR(home(g, "w1", 100), "/job:ps/task:0");
    CHECK_STR(yk_value_device(g, x2(g, "x")), "/job:worker");
    CHECK_STR(home(g, "b1", 1), "/job:ps/task:1");
    CHECK_STR(home(g, "w2", 100), "/job:ps/task:0");          /* counts variables, not bytes */
  }
  CHECK_STR(home(g, "out", 1), "");
  YK_DEVICE(g, "/job:worker/task:3") YK_REPLICA(g, s) CHECK_STR(home(g, "b2", 1), "/job:ps/task:1");   /* counts on */
  CHECK_INT(yk_replica_bytes(s, 0), 800);
  CHECK_INT(yk_replica_bytes(s, 1), 8);
  CHECK_INT(yk_replica_bytes(s, 2), 0);
  /* all nodes of a variable are at home */
  CHECK_STR(yk_value_device(g, yk_find(g, "w2/read")), "/job:ps/task:0");
  CHECK_STR(yk_value_device(g, yk_find(g, "w2/Assign")), "/job:ps/task:0");
  done(g);
}

static void test_by_size(void **state) {
  static const struct { const char *name; int64_t n; const char *want; } given[] = {
    { "a", 100, "/device:GPU:0" }, { "b", 10, "/device:GPU:1" }, { "c", 10, "/device:GPU:2" }, { "d", 50, "/device:GPU:1" },
    { "e", 50, "/device:GPU:2" }, { "f", 1, "/device:GPU:1" }, { "g", 60, "/device:GPU:2" }, { "h", 1, "/device:GPU:1" },
    { "i", 60, "/device:GPU:1" }, { "j", 1, "/device:GPU:0" },
  };
  const char *const gpus[] = { "/gpu:0", "/gpu:1", "/gpu:2" };
  (void)state;
  yk_graph *g = new_graph();
  yk_replica_setter *s = yk_replica_setter_new(g, &(yk_replica_options){ .ndevices = 3, .devices = gpus, .by_size = true,
                                                                         .worker_device = "/cpu:0" });
  YK_REPLICA(g, s) {
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) CHECK_STR(home(g, given[i].name, given[i].n), given[i].want);
    CHECK_STR(yk_value_device(g, x2(g, "x")), "/device:CPU:0");
  }
  CHECK_INT(yk_replica_bytes(s, 0), 4 * 101);
  CHECK_INT(yk_replica_bytes(s, 1), 4 * 122);
  CHECK_INT(yk_replica_bytes(s, 2), 4 * 120);
  done(g);
}

/* Inner scopes win field by field, and with no_merge whole; another job is none of the setter's business. */
static void test_setter_merges(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_replica_setter *s = yk_replica_setter_new(g, &(yk_replica_options){ .ps_tasks = 2, .ps_device = "/job:ps/cpu:0",
                                                                         .worker_device = "/job:worker/gpu:0" });
  yk_replica_setter *alone = yk_replica_setter_new(g, &(yk_replica_options){ .ps_tasks = 2, .no_merge = true });
  yk_replica_setter *nothing = yk_replica_setter_new(g, NULL);
  YK_REPLICA(g, s) {
    YK_DEVICE(g, "/gpu:1") CHECK_STR(home(g, "a", 1), "/job:ps/task:0/device:GPU:1");
    YK_DEVICE(g, "/job:other") CHECK_STR(home(g, "b", 1), "/job:other");
    YK_DEVICE(g, "/job:ps") CHECK_STR(home(g, "c", 1), "/job:ps/task:1/device:CPU:0");
    YK_DEVICE(g, "/task:9") CHECK_STR(home(g, "d", 1), "/job:ps/task:9/device:CPU:0");     /* counted all the same */
    CHECK_STR(home(g, "e", 1), "/job:ps/task:1/device:CPU:0");
    YK_DEVICE(g, "/gpu:3") CHECK_STR(yk_value_device(g, x2(g, "x")), "/job:worker/device:GPU:3");
    YK_DEVICE(g, NULL) CHECK_STR(home(g, "f", 1), "");
  }
  YK_DEVICE(g, "/replica:1") YK_REPLICA(g, s) CHECK_STR(home(g, "g", 1), "/job:ps/replica:1/task:0/device:CPU:0");
  YK_REPLICA(g, alone) {
    YK_DEVICE(g, "/gpu:1") CHECK_STR(home(g, "h", 1), "/device:GPU:1");
    CHECK_STR(home(g, "i", 1), "/job:ps/task:0");
    YK_DEVICE(g, "/gpu:1") CHECK_STR(yk_value_device(g, x2(g, "y")), "/device:GPU:1");
  }
  YK_DEVICE(g, "/gpu:2") YK_REPLICA(g, nothing) CHECK_STR(home(g, "j", 1), "/device:GPU:2");
  done(g);
}

static void test_setter_refusals(void **state) {
  const char *const bad[] = { "/gpu:0", "/gpu:x" };
  (void)state;
  yk_graph *g = new_graph();
  assert_null(yk_replica_setter_new(g, &(yk_replica_options){ .ndevices = 2, .devices = bad }));
  FAILED(g, YK_EINVAL, "yk_replica_options.devices", "gpu:x", "test_device_scopes.c:");
  g = new_graph();
  assert_null(yk_replica_setter_new(g, &(yk_replica_options){ .ps_tasks = 1, .worker_device = "worker" }));
  FAILED(g, YK_EINVAL, "yk_replica_options.worker_device", "worker");
  g = new_graph();
  assert_null(yk_replica_setter_new(g, &(yk_replica_options){ .ps_tasks = 1, .ndevices = 1, .devices = bad }));
  FAILED(g, YK_EINVAL, "exclude each other");
  g = new_graph();
  assert_null(yk_replica_setter_new(g, &(yk_replica_options){ .ps_tasks = 100000 }));
  FAILED(g, YK_EINVAL, "at most 65536");
  g = new_graph();
  assert_null(yk_replica_setter_new(g, &(yk_replica_options){ .ndevices = 1 }));
  FAILED(g, YK_EINVAL, "devices is NULL");
  g = new_graph();
  YK_REPLICA(g, NULL) x2(g, "x");
  FAILED(g, YK_EINVAL, "setter is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table), cmocka_unit_test(test_refusals), cmocka_unit_test(test_round_robin),
    cmocka_unit_test(test_by_size), cmocka_unit_test(test_setter_merges), cmocka_unit_test(test_setter_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
