/*
 * get_variable: every row of the decision table with what its message must tell, the nodes a variable consists of, its
 * first value, its penalty and its collections.
 */
#include "graph/helpers.h"

static const char *get_at;     /* the line below */
static yk_variable *get(yk_graph *g, const char *name) {
  get_at = YK_HERE; return yk_get_variable(g, name, YK_F32, YK_SHAPE(2, 3), YK_ZEROS, NULL);
}

/* ---- the decision table ---- */

static void test_create(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  YK_DEVICE(g, "/cpu:0") YK_VARIABLE_SCOPE(g, "foo") v = get(g, "v");
  assert_non_null(v);
  CHECK_STR(yk_variable_name(v), "foo/v");
  CHECK_STR(yk_variable_device(v), "/device:CPU:0");
  CHECK_STR(yk_variable_where(v), get_at);
  CHECK_INT(yk_variable_desc(v)->dim[1], 3);
  assert_true(yk_variable_trainable(v));
  assert_ptr_equal(yk_variable_of(g, yk_read(v)), v);
  assert_null(yk_variable_of(g, yk_initial_value(v)));
  CHECK_INT(yk_variable_count(g), 1);
  assert_ptr_equal(yk_variable_get(g, 0), v);
  assert_null(yk_variable_get(g, 1));
  check_dump(g, 0,
    "foo/v = variable() dtype=f32 rank=2 dim=2,3 -> f32[2,3] @/device:CPU:0\n"
    "foo/v/Initializer/Const = constant() -> f32[2,3] @/device:CPU:0 with foo/v\n"
    "foo/v/Assign = assign(foo/v, foo/v/Initializer/Const) -> f32[2,3] @/device:CPU:0 with foo/v\n"
    "foo/v/read = read_variable(foo/v) -> f32[2,3] @/device:CPU:0 with foo/v\n");
  done(g);
}

static void test_exists(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  const char *first = YK_HERE; YK_VARIABLE_SCOPE(g, "foo") yk_get_variable(g, "v", YK_F32, YK_SHAPE(2, 3), YK_ZEROS, NULL);
  const char *second = YK_HERE; YK_VARIABLE_SCOPE(g, "foo") yk_get_variable(g, "v", YK_F32, YK_SHAPE(2, 3), YK_ZEROS, NULL);
  assert_null(get(g, "other"));                 /* nothing is made after an error */
  FAILED(g, YK_EINVAL, second, first, "'foo/v' already exists", "YK_VARIABLE_SCOPE_REUSE(g, \"foo\", YK_REUSE)", "YK_AUTO_REUSE");
  g = new_graph();
  get(g, "v");
  get(g, "v");
  FAILED(g, YK_EINVAL, "'v' already exists", "yk_reuse_variables", "YK_AUTO_REUSE");
}

static void test_reuse(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  YK_VARIABLE_SCOPE(g, "foo") v = get(g, "v");
  uint32_t nodes = g->nnode;
  YK_VARIABLE_SCOPE_REUSE(g, "foo", YK_REUSE) assert_ptr_equal(get(g, "v"), v);
  YK_VARIABLE_SCOPE_REUSE(g, "foo", YK_AUTO_REUSE) {
    assert_ptr_equal(get(g, "v"), v);
    yk_variable *w = get(g, "w");
    assert_ptr_not_equal(w, v);
    assert_ptr_equal(get(g, "w"), w);
  }
  YK_VARIABLE_SCOPE_REUSE(g, "foo", YK_REUSE)   /* unknown dims fit anything */
    assert_ptr_equal(yk_get_variable(g, "v", YK_F32, YK_SHAPE(-1, 3), YK_DEFAULT_INIT, NULL), v);
  CHECK_INT(g->nnode, nodes + 4);
  done(g);
}

static void test_missing(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  YK_VARIABLE_SCOPE(g, "conv1") { get(g, "weights"); get(g, "biases"); }
  YK_VARIABLE_SCOPE_REUSE(g, "conv1", YK_REUSE) get(g, "weigths");
  FAILED(g, YK_ENOTFOUND, "test_variables.c:", "'conv1/weigths' does not exist", "yk_get_variable",
         "nearest names: 'conv1/weights'", "YK_AUTO_REUSE");
}

static void test_other_shape_or_dtype(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  get(g, "v");
  yk_reuse_variables(yk_get_variable_scope(g));
  yk_get_variable(g, "v", YK_F32, YK_SHAPE(3, 2), YK_ZEROS, NULL);
  FAILED(g, YK_EINVAL, "'v'", "another shape", "asked f32[3,2]", "exists as f32[2,3]", get_at);
  g = new_graph();
  get(g, "v");
  yk_reuse_variables(yk_get_variable_scope(g));
  yk_get_variable(g, "v", YK_F64, YK_SHAPE(2, 3), YK_ZEROS, NULL);
  FAILED(g, YK_EINVAL, "'v'", "another dtype", "asked f64[2,3]", "exists as f32[2,3]");
}

static void test_bad_requests(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_get_variable(g, "v", YK_F32, YK_SHAPE(2, -1), YK_ZEROS, NULL);
  FAILED(g, YK_EINVAL, "'v' is f32[2,?]", "every dimension must be known");
  g = new_graph();
  yk_get_variable(g, "a b", YK_F32, YK_SCALAR, YK_ZEROS, NULL);
  FAILED(g, YK_EINVAL, "'a b' is no name for a variable");
  g = new_graph();
  yk_get_variable(g, "v", YK_NONE, YK_SCALAR, YK_ZEROS, NULL);
  FAILED(g, YK_EINVAL, "variable 'v'");
  g = new_graph();
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3), &t));
  yk_get_variable(g, "v", YK_F32, YK_SHAPE(2, 3), ((yk_init){ .kind = YK_INIT_TENSOR, .tensor = t }), NULL);
  FAILED(g, YK_EINVAL, "'v' is f32[2,3]", "tensor it should start from is f32[3]");
  yk_tensor_free(t);
}

/* A node of the same name that is no variable only takes the name of the node. */
static void test_name_taken_by_another_node(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  x2(g, "v");
  yk_variable *v = get(g, "v");
  CHECK_STR(yk_variable_name(v), "v");
  CHECK_STR(yk_value_name(g, yk_read(v)), "v_1/read");
  done(g);
}

/* ---- first values ---- */

static const yk_node *initial_node(yk_graph *g, yk_init init, yk_shape shape, const char *name) {
  yk_variable *v = yk_get_variable(g, name, YK_F32, shape, init, NULL);
  CHECK_OK(yk_graph_status(g));
  return yk__value_node(g, yk_initial_value(v));
}

static void check_draw(yk_init_kind kind, yk_shape shape, const yk_op *op, double a, double b) {
  yk_graph *g = new_graph();
  const yk_node *n = initial_node(g, (yk_init){ .kind = kind, .a = -0.5, .b = 0.25 }, shape, "v");
  const yk_random_attrs *r = n->attrs;
  CHECK_STR(n->op->name, op->name);
  CHECK_NEAR(r->a, a, 1e-12);
  CHECK_NEAR(r->b, b, 1e-12);
  assert_true(r->seed != 0);
  done(g);
}

static void test_random_initializers(void **state) {
  (void)state;
  yk_shape filter = YK_SHAPE(5, 5, 3, 64), matrix = YK_SHAPE(384, 192), vector = YK_SHAPE(7);
  const double cut = .87962566103423978;
  double glorot = sqrt(6.0 / (25 * 3 + 25 * 64)), dense = sqrt(6.0 / (384 + 192));
  check_draw(YK_INIT_DEFAULT, matrix, &yk__op_random_uniform, -dense, dense);
  check_draw(YK_INIT_GLOROT_UNIFORM, filter, &yk__op_random_uniform, -glorot, glorot);
  check_draw(YK_INIT_GLOROT_UNIFORM, vector, &yk__op_random_uniform, -sqrt(6.0 / 14), sqrt(6.0 / 14));
  check_draw(YK_INIT_GLOROT_UNIFORM, YK_SCALAR, &yk__op_random_uniform, -sqrt(3.0), sqrt(3.0));
  check_draw(YK_INIT_GLOROT_NORMAL, matrix, &yk__op_truncated_normal, 0, sqrt(2.0 / (384 + 192)) / cut);
  check_draw(YK_INIT_HE_NORMAL, filter, &yk__op_truncated_normal, 0, sqrt(2.0 / 75) / cut);
  check_draw(YK_INIT_HE_UNIFORM, filter, &yk__op_random_uniform, -sqrt(6.0 / 75), sqrt(6.0 / 75));
  check_draw(YK_INIT_UNIFORM, matrix, &yk__op_random_uniform, -0.5, 0.25);
  check_draw(YK_INIT_NORMAL, matrix, &yk__op_random_normal, -0.5, 0.25);
  check_draw(YK_INIT_TRUNCATED_NORMAL, matrix, &yk__op_truncated_normal, -0.5, 0.25);
}

static uint64_t seed_of(yk_graph *g, const char *name, uint64_t seed) {
  const yk_node *n = initial_node(g, (yk_init){ .kind = YK_INIT_NORMAL, .seed = seed }, YK_SHAPE(2), name);
  return ((const yk_random_attrs *)n->attrs)->seed;
}

static void test_seeds_depend_on_names_only(void **state) {
  (void)state;
  yk_graph *a = new_graph(), *b = new_graph(), *c = new_graph();
  uint64_t va = seed_of(a, "v", 0), wa = seed_of(a, "w", 0);
  yk_relu(b, x2(b, "x"));
  uint64_t wb = seed_of(b, "w", 0), vb = seed_of(b, "v", 0);
  yk_graph_set_seed(c, 7);
  assert_true(va == vb && wa == wb && va != wa);
  assert_true(seed_of(c, "v", 0) != va);
  CHECK_INT(seed_of(c, "fixed", 12345), 12345);
  done(a);
  done(b);
  done(c);
}

static double constant_at(const yk_node *n, int64_t i) { return yk_tensor_at(((const yk_constant_attrs *)n->attrs)->value, i); }

static void test_other_initializers(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  CHECK_NEAR(constant_at(initial_node(g, YK_ONES, YK_SHAPE(2, 2), "ones"), 3), 1, 0);
  CHECK_NEAR(constant_at(initial_node(g, YK_CONSTANT(0.1), YK_SHAPE(2), "c"), 1), (double)0.1f, 0);
  yk_variable *i = yk_get_variable(g, "i", YK_I64, YK_SCALAR, YK_DEFAULT_INIT, NULL);
  CHECK_NEAR(constant_at(yk__value_node(g, yk_initial_value(i)), 0), 0, 0);
  float data[] = { 1, 2, 3 };
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(3), data, &t));
  const yk_node *n = initial_node(g, (yk_init){ .kind = YK_INIT_TENSOR, .tensor = t }, YK_SHAPE(3), "t");
  ((float *)yk_tensor_data(t))[2] = 9;                       /* it was copied */
  yk_tensor_free(t);
  CHECK_NEAR(constant_at(n, 2), 3, 0);
  yk_variable *from = yk_variable_get(g, 1);
  n = initial_node(g, (yk_init){ .kind = YK_INIT_VALUE, .value = yk_initial_value(from) }, YK_SHAPE(2), "copy");
  CHECK_INT(n->first, yk_initial_value(from).id);
  n = initial_node(g, YK_CONSTANT(3), YK_SHAPE(300, 400), "big");  /* no large tensor in the graph */
  CHECK_STR(n->op->name, "tile");
  CHECK_INT(yk_value_desc(g, (yk_value){ n->first })->dim[1], 400);
  done(g);
}

/* ---- penalties, collections, updates ---- */

static size_t count(const yk_graph *g, const char *key) { return yk_get_collection(g, key, NULL, NULL, 0); }

static yk_value own_penalty(yk_graph *g, yk_value w, void *arg) {
  ++*(int *)arg;
  return yk_l2_loss(yk_named(g, "own"), w);
}

static void test_regularizers(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_scope_options decay = { .regularizer = { .l2 = 0.5 } };
  yk_variable_options none = { .regularizer = { .none = true } };
  int calls = 0;
  yk_variable_options own = { .regularizer = { .fn = own_penalty, .arg = &calls } };
  yk_device_push(g, "/cpu:0");
  yk_variable_scope_push(g, "a", &decay);
  get(g, "w");
  yk_get_variable(g, "free", YK_F32, YK_SHAPE(2), YK_ZEROS, &none);
  yk_get_variable(g, "step", YK_I64, YK_SCALAR, YK_ZEROS, NULL);
  yk_get_variable(g, "own", YK_F32, YK_SHAPE(2), YK_ZEROS, &own);
  yk_variable_scope_pop(g);
  yk_device_pop(g);
  YK_VARIABLE_SCOPE_REUSE(g, "a", YK_REUSE) get(g, "w");
  yk_value loss[4];
  CHECK_INT(yk_get_collection(g, YK_REGULARIZATION_LOSSES, NULL, loss, 4), 2);
  CHECK_INT(calls, 1);
  CHECK_STR(yk_value_name(g, loss[0]), "a/w/Regularizer/Mul");
  CHECK_STR(yk_value_device(g, loss[0]), "/device:CPU:0");
  CHECK_STR(yk_value_name(g, loss[1]), "a/own/Regularizer/own");
  done(g);
}

static void test_collections(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  const char *const local[] = { YK_LOCAL_VARIABLES, NULL };
  yk_variable *v = get(g, "v"), *moving, *here;
  moving = yk_get_variable(g, "m", YK_F32, YK_SHAPE(2), YK_ZEROS, &(yk_variable_options){ .not_trainable = true });
  here = yk_get_variable(g, "l", YK_F32, YK_SHAPE(2), YK_ZEROS, &(yk_variable_options){ .collections = local });
  yk_value out[4];
  CHECK_INT(yk_get_collection(g, YK_GLOBAL_VARIABLES, NULL, out, 4), 2);
  assert_ptr_equal(yk_variable_of(g, out[0]), v);
  assert_ptr_equal(yk_variable_of(g, out[1]), moving);
  CHECK_INT(yk_get_collection(g, YK_TRAINABLE_VARIABLES, NULL, out, 4), 2);
  assert_ptr_equal(yk_variable_of(g, out[1]), here);
  CHECK_INT(count(g, YK_LOCAL_VARIABLES), 1);
  CHECK_INT(count(g, YK_UPDATE_OPS), 0);
  YK_NAME_SCOPE(g, "tower_1") yk_add_to_collection(g, YK_LOSSES, x2(g, "x"));
  YK_NAME_SCOPE(g, "tower_10") yk_add_to_collection(g, YK_LOSSES, x2(g, "x"));
  yk_add_to_collection(g, YK_LOSSES, yk_find(g, "tower_1/x"));
  CHECK_INT(yk_get_collection(g, YK_LOSSES, "tower_1/", out, 1), 2);   /* duplicates kept; `max` respected */
  CHECK_INT(yk_get_collection(g, YK_LOSSES, "tower_1", NULL, 0), 3);
  CHECK_INT(yk_get_collection(g, YK_LOSSES, "ower_1", NULL, 0), 0);    /* anchored at the start */
  done(g);
  g = new_graph();
  yk_add_to_collection(g, "losses", (yk_value){ 0 });
  FAILED(g, YK_EINVAL, "'losses' is empty");
}

static void test_updates_sit_with_the_variable(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  yk_value add = { 0 };
  YK_DEVICE(g, "/cpu:0") v = get(g, "v");
  YK_DEVICE(g, "/gpu:0") {
    yk_value twice = yk_mul(g, yk_read(v), yk_scalar_f32(g, 2));
    CHECK_STR(yk_value_device(g, twice), "/device:GPU:0");            /* a borrower */
    add = yk_assign_add(g, v, twice);
  }
  CHECK_STR(yk_value_device(g, add), "/device:CPU:0");
  CHECK_INT(yk__value_node(g, add)->colocate, yk__value_node(g, yk_read(v))->colocate);
  yk_value init = yk_global_variables_initializer(g);
  CHECK_STR(yk_value_name(g, init), "init");
  CHECK_INT(yk__value_node(g, init)->nctrl, 1);
  CHECK_INT(yk__value_node(g, init)->ctrl[0], yk__value_node(g, yk_initializer_op(v))->id);
  done(g);
}

static void test_one_update_has_one_home(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *w[2] = { NULL };
  YK_DEVICE(g, "/gpu:0") w[0] = get(g, "a");
  YK_DEVICE(g, "/gpu:1") w[1] = get(g, "b");
  yk_value grad[2] = { x2(g, "x"), x2(g, "x") };
  yk_sgd_update(g, 2, w, grad, yk_scalar_f32(g, 0.1f));
  FAILED(g, YK_EINVAL, "variables of two homes", "'a' on '/device:GPU:0'", "'b' on '/device:GPU:1'");
}

/* A variable made under control dependencies does not wait for them. */
static void test_no_control_dependencies(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x");
  yk_variable *v = NULL;
  YK_CONTROL(g, 1, &x) v = get(g, "v");
  CHECK_INT(yk__value_node(g, yk_initializer_op(v))->nctrl, 0);
  CHECK_INT(yk__value_node(g, yk_read(v))->nctrl, 0);
  done(g);
}

static void test_storage_is_not_a_value(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = get(g, "v");
  yk_relu(g, v->ref);
  FAILED(g, YK_EINVAL, "storage of variable 'v'", "yk_read()");
  g = new_graph();
  yk_value x = x2(g, "x");
  yk__build(YK_HERE, g, &yk__op_assign, NULL, 2, x, x);
  FAILED(g, YK_EINVAL, "must be a variable", "'x'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_create), cmocka_unit_test(test_exists), cmocka_unit_test(test_reuse), cmocka_unit_test(test_missing),
    cmocka_unit_test(test_other_shape_or_dtype), cmocka_unit_test(test_bad_requests),
    cmocka_unit_test(test_name_taken_by_another_node), cmocka_unit_test(test_random_initializers),
    cmocka_unit_test(test_seeds_depend_on_names_only), cmocka_unit_test(test_other_initializers),
    cmocka_unit_test(test_regularizers), cmocka_unit_test(test_collections),
    cmocka_unit_test(test_updates_sit_with_the_variable), cmocka_unit_test(test_one_update_has_one_home),
    cmocka_unit_test(test_no_control_dependencies),
    cmocka_unit_test(test_storage_is_not_a_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
