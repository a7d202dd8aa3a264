/*
 * The graph itself: its sticky error with file and line, freezing, seeds, verification, and running out of memory at
 * every allocation there is.
 */
#include "graph/helpers.h"
#include "base/alloc.h"

static void test_sticky_error(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), y = yk_placeholder(g, "y", YK_F32, YK_SHAPE(4, 5));
  const char *here = YK_HERE; yk_value bad = yk_relu(g, yk_add(g, x, y));
  CHECK_INT(bad.id, 0);
  CHECK_INT(yk_relu(g, x).id, 0);                    /* nothing is built any more */
  yk_name_scope_push(g, "a");                        /* and scopes do nothing, in balance or not */
  yk_device_pop(g);
  yk_variable_scope_push(g, "b", NULL);
  assert_null(yk_get_variable(g, "v", YK_F32, YK_SCALAR, YK_ZEROS, NULL));
  yk_add_to_collection(g, "losses", x);
  CHECK_INT(yk_get_collection(g, "losses", NULL, NULL, 0), 0);
  yk_value dx = { 77 };
  yk_gradients(g, 1, &x, NULL, 1, &x, NULL, &dx);
  CHECK_INT(dx.id, 0);
  CHECK_INT(g->nnode, 3);
  FAILED(g, YK_EINVAL, here, "Add", "[2,3]", "[4,5]");
}

static void test_inputs_are_checked(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_mul(g, x2(g, "x"), (yk_value){ 0 });
  FAILED(g, YK_EINVAL, "test_graph.c:", "Mul: input 1 (b) is empty ({0})");
  g = new_graph();
  yk_mul(g, (yk_value){ 999 }, x2(g, "x"));
  FAILED(g, YK_EINVAL, "Mul: input 0 (a) is not a value of this graph");
  g = new_graph();
  yk_mul(g, x2(g, "x"), yk_placeholder(g, "i", YK_I32, YK_SCALAR));
  FAILED(g, YK_EINVAL, "Mul: input 1 (b) is i32[]", "the dtype of input 0 (a), which is f32[2,3]");
  g = new_graph();
  yk_relu(g, yk_placeholder(g, "i", YK_I32, YK_SCALAR));
  FAILED(g, YK_EINVAL, "Relu: input 0", "i32[]", "expected dtype f32 f64 f16 bf16");
  g = new_graph();
  yk_value x = x2(g, "x");
  yk_add_node(g, &yk__op_mul, NULL, &x, 1, 0);
  FAILED(g, YK_EINVAL, "Mul takes 2 inputs, got 1");
  g = new_graph();
  yk_relu(g, yk_no_op(g));
  FAILED(g, YK_EINVAL, "is an operation without a value");
  g = new_graph();
  yk_add_node(g, NULL, NULL, NULL, 0, 0);
  FAILED(g, YK_EINVAL, "no operation given");
}

static void test_failure_by_a_model(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  CHECK_INT(yk_graph_fail_at("model.c:7", g, YK_EUNSUPPORTED, "layer %d", 3).id, 0);
  yk_graph_fail_at("model.c:8", g, YK_EINVAL, "later");       /* the first one is kept */
  FAILED(g, YK_EUNSUPPORTED, "model.c:7: layer 3");
}

static void test_freeze(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x");
  uint64_t version = g->version;
  yk__graph_freeze(g);
  assert_true(yk_graph_frozen(g));
  YK_NAME_SCOPE(g, "a") CHECK_STR(yk_name_scope(g), "a/");     /* looking around is allowed */
  yk_graph_unfreeze(g);
  yk_relu(g, x);
  assert_true(g->version > version);
  yk__graph_freeze(g);
  yk_relu(g, x); const char *here = YK_HERE;
  FAILED(g, YK_EINVAL, here, "Relu cannot be added", "frozen", "yk_graph_unfreeze");
}

static void test_run_counter_is_one(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value a = { 0 };
  yk_named(g, "mine");
  YK_DEVICE(g, "/gpu:0") YK_NAME_SCOPE(g, "n") a = yk__run_counter(g);
  CHECK_INT(yk__run_counter(g).id, a.id);
  CHECK_STR(yk_value_name(g, a), "run_counter");
  CHECK_STR(yk_value_device(g, a), "");
  CHECK_STR(yk_value_name(g, x2(g, NULL)), "mine");           /* the name waits for the node it was meant for */
  done(g);
}

static void test_seeds(void **state) {
  (void)state;
  yk_graph *a = new_graph(), *b = new_graph();
  uint64_t first = yk__seed(a, 0);
  CHECK_INT(yk__seed(a, 42), 42);
  assert_true(yk__seed(a, 0) != first);
  assert_true(yk__seed(b, 0) == first);
  yk_graph_set_seed(b, 1);
  assert_true(yk__seed(b, 0) != first);
  done(a);
  done(b);
}

/* Descriptions that were handed out stay where they are while the graph grows. */
static void test_descriptions_stay(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x");
  const yk_desc *d = yk_value_desc(g, x);
  for (int i = 0; i < 1000; i++) x = yk_relu(g, x);
  CHECK_INT(d->rank, 2);
  CHECK_INT(d->dim[1], 3);
  CHECK_INT(yk_value_desc(g, x)->dim[1], 3);
  CHECK_STR(yk_value_name(g, x), "Relu_999");
  done(g);
}

static void test_verify_finds(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = yk_relu(g, x2(g, "x")), y = yk_relu(g, x);
  yk_node *n = g->node[yk__value_node(g, y)->id];
  g->value[x.id].desc.dim[0] = 9;
  CHECK_CODE(yk_graph_verify(g), YK_EINTERNAL, "Relu");
  g->value[x.id].desc.dim[0] = 2;
  uint32_t later = y.id, *in = (uint32_t *)(uintptr_t)n->in;
  in[0] = later;
  CHECK_CODE(yk_graph_verify(g), YK_EINTERNAL, "not made before");
  in[0] = x.id;
  n->name = "Relu";
  CHECK_CODE(yk_graph_verify(g), YK_EINTERNAL, "not unique");
  n->name = "Relu_1";
  n->colocate = n->id + 5;
  CHECK_CODE(yk_graph_verify(g), YK_EINTERNAL, "sits with");
  n->colocate = n->id;
  n->device.id = 3;
  CHECK_CODE(yk_graph_verify(g), YK_EINTERNAL, "its device is");
  n->device = YK__ANY_DEVICE;
  done(g);
}

static void build_all(yk_graph *g) {
  yk_scope_options o = { .regularizer = { .l2 = 0.1 } };
  yk_variable_scope_push(g, "layer", &o);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2, 3), YK_DEFAULT_INIT, NULL);
  yk_value x = x2(g, "x"), y = { 0 }, dx = { 0 }, read = yk_read(w);
  YK_DEVICE(g, "/gpu:0") YK_CONTROL(g, 1, &x) y = yk_relu(g, yk_mul(g, x, read));
  y = yk_reduce_sum(g, yk_check_numerics(g, y, "activations"), NULL);
  yk_gradients(g, 1, &y, NULL, 1, &read, NULL, &dx);
  yk_assign_sub(g, w, dx);
  yk_global_variables_initializer(g);
  yk_add_to_collection(g, YK_LOSSES, y);
  yk_variable_scope_enter(g, yk_get_variable_scope(g), NULL);
  yk_variable_scope_pop(g);
  yk_variable_scope_pop(g);
}

static void test_out_of_memory(void **state) {
  (void)state;
  uint64_t live = yk__alloc_live(), n = 1;
  for (yk_code code = YK_ENOMEM; code != YK_OK; n++) {
    yk_graph *g = NULL;
    yk__alloc_fail_at(n);
    code = yk_graph_new(&g);
    if (code == YK_OK) {
      build_all(g);
      code = yk_graph_status(g);
    }
    yk__alloc_fail_at(0);
    if (code != YK_OK && code != YK_ENOMEM) fail_msg("allocation %llu: %s", (unsigned long long)n, yk_error_message());
    if (code == YK_OK) CHECK_OK(yk_graph_verify(g));
    yk_graph_free(g);
    CHECK_INT(yk__alloc_live(), live);
  }
  assert_true(n > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sticky_error), cmocka_unit_test(test_inputs_are_checked), cmocka_unit_test(test_failure_by_a_model),
    cmocka_unit_test(test_freeze), cmocka_unit_test(test_run_counter_is_one), cmocka_unit_test(test_seeds),
    cmocka_unit_test(test_descriptions_stay), cmocka_unit_test(test_verify_finds), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
