/*
 * Variable scopes: names of variables against names of nodes, what is inherited, scopes named by default, and jumping
 * to a scope opened before. Expected names are those of TensorFlow 1.15.
 */
#include "graph/helpers.h"

static yk_variable *get(yk_graph *g, const char *name) {
  return yk_get_variable(g, name, YK_F32, YK_SHAPE(2, 3), YK_DEFAULT_INIT, NULL);
}

static const char *op_name(yk_graph *g) { return yk_value_name(g, x2(g, "op")); }
static const char *scope_name(yk_graph *g) { return yk_variable_scope_name(yk_get_variable_scope(g)); }

/* Opened twice: the same variable, but ops go to foo/ and then foo_1/. */
static void test_open_twice(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  YK_VARIABLE_SCOPE(g, "foo") {
    v = get(g, "v");
    CHECK_STR(op_name(g), "foo/op");
  }
  YK_VARIABLE_SCOPE_REUSE(g, "foo", YK_REUSE) {
    assert_ptr_equal(get(g, "v"), v);
    CHECK_STR(op_name(g), "foo_1/op");
    CHECK_STR(scope_name(g), "foo");
  }
  CHECK_STR(yk_variable_name(v), "foo/v");
  done(g);
}

static void test_nested(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  YK_NAME_SCOPE(g, "tower_0") YK_VARIABLE_SCOPE(g, "a") YK_VARIABLE_SCOPE(g, "b") {
    CHECK_STR(yk_variable_name(get(g, "v")), "a/b/v");       /* name scopes do not count */
    CHECK_STR(op_name(g), "tower_0/a/b/op");
    CHECK_STR(scope_name(g), "a/b");
  }
  CHECK_STR(scope_name(g), "");
  done(g);
}

static void test_reuse_is_inherited(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  YK_VARIABLE_SCOPE(g, "a") YK_VARIABLE_SCOPE(g, "b") v = get(g, "v");
  YK_VARIABLE_SCOPE_REUSE(g, "a", YK_REUSE) {
    YK_VARIABLE_SCOPE(g, "b") assert_ptr_equal(get(g, "v"), v);
    YK_VARIABLE_SCOPE_REUSE(g, "b", YK_REUSE_INHERIT) assert_ptr_equal(get(g, "v"), v);
    YK_VARIABLE_SCOPE_REUSE(g, "b", YK_AUTO_REUSE) get(g, "new");
  }
  YK_VARIABLE_SCOPE(g, "a") {
    yk_reuse_variables(yk_get_variable_scope(g));
    YK_VARIABLE_SCOPE(g, "b") assert_ptr_equal(get(g, "v"), v);
  }
  YK_VARIABLE_SCOPE(g, "a") YK_VARIABLE_SCOPE(g, "b") get(g, "other");      /* not reusing any more */
  done(g);
}

static void test_defaults_are_inherited(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_scope_options outer = { .init = YK_CONSTANT(3), .regularizer = { .l2 = 1 } };
  yk_scope_options inner = { .init = YK_CONSTANT(4), .regularizer = { .none = true } };
  yk_variable *a, *b, *c;
  yk_variable_scope_push(g, "outer", &outer);
  YK_VARIABLE_SCOPE(g, "same") a = get(g, "v");
  yk_variable_scope_push(g, "other", &inner);
  b = get(g, "v");
  c = yk_get_variable(g, "own", YK_F32, YK_SHAPE(2), YK_CONSTANT(5), NULL);
  yk_variable_scope_pop(g);
  yk_variable_scope_pop(g);
  yk_variable *const all[] = { a, b, c };
  for (int i = 0; i < 3; i++) {
    const yk_constant_attrs *attrs = yk__value_node(g, yk_initial_value(all[i]))->attrs;
    CHECK_NEAR(yk_tensor_at(attrs->value, 0), 3 + i, 0);
  }
  CHECK_INT(yk_get_collection(g, YK_REGULARIZATION_LOSSES, NULL, NULL, 0), 1);
  done(g);
}

static void push_default(yk_graph *g, const char *name, const char *want) {
  yk_variable_scope_push(g, NULL, &(yk_scope_options){ .default_name = name });
  CHECK_STR(scope_name(g), want);
}

static void test_default_name(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  for (int i = 0; i < 3; i++) {
    static const char *const want[] = { "dense", "dense_1", "dense_2" }, *const inner[] = { "dense/p", "dense_1/p", "dense_2/p" };
    push_default(g, "dense", want[i]);
    push_default(g, "p", inner[i]);       /* counted anew in each parent */
    yk_variable_scope_pop(g);
    yk_variable_scope_pop(g);
  }
  YK_VARIABLE_SCOPE(g, "a") push_default(g, "p", "a/p"), yk_variable_scope_pop(g);
  YK_VARIABLE_SCOPE(g, "a") push_default(g, "p", "a/p"), yk_variable_scope_pop(g);      /* leaving a forgot what was below */
  yk_variable_scope_push(g, "named", &(yk_scope_options){ .default_name = "ignored" });
  CHECK_STR(scope_name(g), "named");
  yk_variable_scope_pop(g);
  done(g);
  g = new_graph();
  yk_variable_scope_push(g, NULL, &(yk_scope_options){ .default_name = "p", .reuse = YK_AUTO_REUSE });
  FAILED(g, YK_EINVAL, "default_name 'p' cannot be reused");
  g = new_graph();
  yk_variable_scope_push(g, NULL, NULL);
  FAILED(g, YK_EINVAL, "neither a name nor a default_name");
}

static void test_enter(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable_scope *s = NULL;
  yk_variable *v = NULL;
  YK_VARIABLE_SCOPE(g, "a") YK_VARIABLE_SCOPE(g, "b") {
    s = yk_get_variable_scope(g);
    v = get(g, "v");
    push_default(g, "p", "a/b/p");
    yk_variable_scope_pop(g);
  }
  YK_VARIABLE_SCOPE(g, "elsewhere") {
    yk_variable_scope_enter(g, s, &(yk_scope_options){ .reuse = YK_REUSE });
    CHECK_STR(scope_name(g), "a/b");                          /* wherever we are */
    CHECK_STR(op_name(g), "elsewhere/b/op");                  /* the last component, under the present name scope */
    CHECK_STR(yk_variable_scope_name_scope(yk_get_variable_scope(g)), "a/b/");    /* of the first opening */
    assert_ptr_equal(get(g, "v"), v);
    yk_variable_scope_pop(g);
    CHECK_STR(scope_name(g), "elsewhere");
    yk_variable_scope_enter(g, s, NULL);                      /* reuse is the scope's own, not the one around */
    CHECK_STR(yk_variable_name(get(g, "w")), "a/b/w");
    yk_variable_scope_pop(g);
  }
  YK_NAME_SCOPE(g, "n") {
    yk_variable_scope *root = NULL;
    yk_graph *other = new_graph();
    root = yk_get_variable_scope(g);
    YK_VARIABLE_SCOPE(g, "x") {
      yk_variable_scope_enter(g, root, NULL);
      CHECK_STR(op_name(g), "n/x/op");                        /* the root has no name to open */
      CHECK_STR(yk_variable_name(get(g, "r")), "r");
      yk_variable_scope_pop(g);
    }
    yk_variable_scope_enter(other, root, NULL);
    FAILED(other, YK_EINVAL, "belongs to another graph");
  }
  done(g);
}

static void test_no_name_scope(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_scope_options o = { .no_name_scope = true };
  YK_NAME_SCOPE(g, "n") {
    yk_variable_scope_push(g, "a", &o);
    CHECK_STR(op_name(g), "n/op");
    CHECK_STR(yk_variable_name(get(g, "v")), "a/v");
    CHECK_STR(yk_variable_scope_name_scope(yk_get_variable_scope(g)), "n/");
    yk_variable_scope_pop(g);
  }
  CHECK_STR(yk_name_scope(g), "");
  done(g);
}

static void test_bad_scopes(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable_scope_push(g, "a b", NULL);
  FAILED(g, YK_EINVAL, "'a b' is no name for a variable scope");
  g = new_graph();
  yk_variable_scope_push(g, "a", NULL);
  yk_name_scope_pop(g);
  FAILED(g, YK_EINVAL, "pop of a name scope, but the innermost open scope is the variable scope");
  g = new_graph();
  yk_variable_scope_push(g, "a", &(yk_scope_options){ .reuse = (yk_reuse)7 });
  FAILED(g, YK_EINVAL, "reuse is 7");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_open_twice), cmocka_unit_test(test_nested), cmocka_unit_test(test_reuse_is_inherited),
    cmocka_unit_test(test_defaults_are_inherited), cmocka_unit_test(test_default_name), cmocka_unit_test(test_enter),
    cmocka_unit_test(test_no_name_scope), cmocka_unit_test(test_bad_scopes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
