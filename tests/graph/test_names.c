/*
 * Names of nodes and name scopes: made unique, opened again, re-entered, refused. The series and the spelling of names
 * follow TensorFlow 1.15.
 */
#include "graph/helpers.h"

static const char *name_of(yk_graph *g, const char *name) { return yk_value_name(g, x2(g, name)); }

static void test_unique_names(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  CHECK_STR(name_of(g, "x"), "x");
  CHECK_STR(name_of(g, "x"), "x_1");
  CHECK_STR(name_of(g, "x_2"), "x_2");
  CHECK_STR(name_of(g, "x"), "x_3");          /* x_2 is taken */
  CHECK_STR(name_of(g, "X"), "X_4");          /* the same name but for capitals */
  CHECK_STR(name_of(g, "x_1"), "x_1_1");
  CHECK_STR(name_of(g, "y"), "y");
  done(g);
}

static void test_label_is_the_default_name(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, NULL);
  CHECK_STR(yk_value_name(g, yk_mul(g, x, x)), "Mul");
  CHECK_STR(yk_value_name(g, yk_mul(g, x, x)), "Mul_1");
  CHECK_STR(yk_value_name(g, yk_mul(yk_named(g, "area"), x, x)), "area");
  CHECK_STR(yk_value_name(g, yk_mul(g, x, x)), "Mul_2");         /* a name is for one node only */
  done(g);
}

static void test_name_scopes(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  CHECK_STR(yk_name_scope(g), "");
  YK_NAME_SCOPE(g, "a") {
    CHECK_STR(yk_name_scope(g), "a/");
    CHECK_STR(name_of(g, "x"), "a/x");
    YK_NAME_SCOPE(g, "b") CHECK_STR(name_of(g, "x"), "a/b/x");
    YK_NAME_SCOPE(g, "b") CHECK_STR(name_of(g, "x"), "a/b_1/x");
    YK_NAME_SCOPE(g, NULL) CHECK_STR(name_of(g, "x"), "x");
    YK_NAME_SCOPE(g, "") CHECK_STR(name_of(g, "x"), "x_1");
    YK_NAME_SCOPE(g, "a/b/") CHECK_STR(name_of(g, "x"), "a/b/x_1");     /* exactly that scope */
    YK_NAME_SCOPE(g, "_hidden") CHECK_STR(yk_name_scope(g), "a/_hidden/");
  }
  YK_NAME_SCOPE(g, "a") CHECK_STR(name_of(g, "x"), "a_1/x");
  YK_NAME_SCOPE(g, "A") CHECK_STR(yk_name_scope(g), "A_2/");
  CHECK_STR(yk_name_scope(g), "");
  done(g);
}

static void test_find(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "input"), y = yk_relu(yk_named(g, "hidden"), x);
  CHECK_INT(yk_find(g, "input").id, x.id);
  CHECK_INT(yk_find(g, "hidden:0").id, y.id);
  CHECK_INT(yk_find(g, "hidden:1").id, 0);
  assert_non_null(strstr(yk_error_message(), "1 output"));
  CHECK_INT(yk_find(g, "hiden").id, 0);
  assert_non_null(strstr(yk_error_message(), "'hidden'"));
  CHECK_INT(yk_output(g, y, 0).id, y.id);
  CHECK_INT(yk_output(g, y, 1).id, 0);
  assert_null(yk_value_name(g, (yk_value){ 0 }));
  assert_null(yk_value_desc(g, (yk_value){ 12345 }));
  done(g);
}

static void test_bad_names(void **state) {
  (void)state;
  static const char *const bad[] = { "_x", "a b", "caf\xc3\xa9", "-a", "a:0", "/a" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    yk_graph *g = new_graph();
    CHECK_INT(x2(g, bad[i]).id, 0);
    FAILED(g, YK_EINVAL, bad[i], "is no name for a node");
  }
  yk_graph *g = new_graph();
  yk_name_scope_push(g, "a b"); const char *here = YK_HERE;
  FAILED(g, YK_EINVAL, here, "'a b' is no name for a name scope");
}

static void test_unbalanced(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_name_scope_pop(g); const char *here = YK_HERE;
  FAILED(g, YK_EINVAL, here, "pop of a name scope, but none is open");
  g = new_graph();
  yk_name_scope_push(g, "a"); const char *opened = YK_HERE;
  yk_device_pop(g);
  yk_name_scope_pop(g);
  FAILED(g, YK_EINVAL, "pop of a device scope, but the innermost open scope is the name scope opened at", opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_unique_names), cmocka_unit_test(test_label_is_the_default_name),
    cmocka_unit_test(test_name_scopes), cmocka_unit_test(test_find), cmocka_unit_test(test_bad_names),
    cmocka_unit_test(test_unbalanced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
