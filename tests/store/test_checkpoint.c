/*
 * Reading: a checkpoint in which any byte is changed, or that is cut off anywhere, is refused with its name, and the one before
 * it is found; a list in which any byte is changed costs no checkpoint. Then restoring: all, a part, under other names, and the
 * exact account of what does not fit.
 */
#include "folder.h"
#include "net.h"

#include <unistd.h>
#include "base/log.h"

static net n;
static char said[4096];
static int warnings;

static void listen(int level, const char *line, void *arg) {
  (void)arg;
  warnings += level == YK_LOG_WARNING;
  snprintf(said, sizeof said, "%s", line);
}

static int setup(void **state) {
  int rc = folder_setup(state);
  if (rc == 0) net_open(&n);
  yk__log_sink(listen, NULL);
  return rc;
}

static int teardown(void **state) {
  yk__log_sink(NULL, NULL);
  net_close(&n);
  return folder_teardown(state);
}

/* Steps 1 and 2, with their values. */
static int two_checkpoints(void **state) {
  yk_saver *s;
  if (folder_empty(state) != 0) return -1;
  CHECK_OK(yk_saver_open(folder, NULL, &s));
  for (int i = 1; i <= 2; i++) {
    net_set(&n, i);
    CHECK_OK(yk_saver_save(s, n.s, i, 1, &(yk_note){ "text", i == 1 ? "one" : "two" }));
  }
  CHECK_OK(yk_saver_close(s));
  net_set(&n, 7);
  warnings = 0;
  return 0;
}

static void expect_step(int64_t want, const char *what, size_t at) {
  yk_checkpoint *c = NULL;
  yk_code rc = yk_checkpoint_latest(folder, &c);
  if (rc != YK_OK) fail_msg("%s %zu: %s (%s)", what, at, yk_code_name(rc), yk_error_message());
  if (yk_checkpoint_step(c) != want) fail_msg("%s %zu: step %lld, expected %lld", what, at, (long long)yk_checkpoint_step(c), (long long)want);
  yk_checkpoint_close(c);
}

static void expect_damaged(const char *what, size_t at) {
  yk_checkpoint *c = NULL;
  yk_code rc = yk_checkpoint_open(in_folder("ckpt-2.safetensors"), &c);
  if (rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED) fail_msg("%s %zu: %s, expected ECORRUPT", what, at, yk_code_name(rc));
  if (strstr(yk_error_message(), "ckpt-2.safetensors'") == NULL) fail_msg("%s %zu: \"%s\" names no file", what, at, yk_error_message());
  assert_null(c);
  yk_error_clear();
  warnings = 0;
  expect_step(1, what, at);
  if (warnings != 1 || strstr(said, "ckpt-2.safetensors") == NULL) fail_msg("%s %zu: %d warnings, the last \"%s\"", what, at, warnings, said);
}

static void test_every_byte_changed(void **state) {
  static const uint8_t flips[] = { 0x01, 0x20, 0x80, 0xFF };
  size_t bytes;
  uint8_t *b = take_file("ckpt-2.safetensors", &bytes);
  (void)state;
  for (size_t at = 0; at < bytes; at++) {
    uint8_t flip = flips[at % 4];
    b[at] ^= flip;
    put_file("ckpt-2.safetensors", b, bytes);
    expect_damaged("changed byte", at);
    b[at] ^= flip;
  }
  put_file("ckpt-2.safetensors", b, bytes);
  expect_step(2, "mended", 0);
  free(b);
}

static void test_every_length(void **state) {
  size_t bytes;
  uint8_t *b = take_file("ckpt-2.safetensors", &bytes);
  (void)state;
  for (size_t k = 0; k < bytes; k++) {
    put_file("ckpt-2.safetensors", b, k);
    expect_damaged("length", k);
  }
  b = realloc(b, bytes + 8);
  assert_non_null(b);
  memset(b + bytes, 0, 8);
  put_file("ckpt-2.safetensors", b, bytes + 8);
  expect_damaged("length", bytes + 8);
  free(b);
}

/* A whole checkpoint in place of another one: only the list knows better. */
static void test_wrong_file(void **state) {
  size_t bytes;
  uint8_t *b = take_file("ckpt-1.safetensors", &bytes);
  (void)state;
  put_file("ckpt-2.safetensors", b, bytes);
  warnings = 0;
  expect_step(1, "wrong file", 0);
  CHECK_INT(warnings, 1);
  assert_non_null(strstr(said, "is not the file in the list: step 1"));
  free(b);
}

/* The list's checksum is over its text, so a change of blanks is one too; only behind its end may anything stand. */
static void test_list_changed(void **state) {
  size_t bytes;
  uint8_t *b = take_file("checkpoint.json", &bytes);
  (void)state;
  for (size_t at = 0; at + 1 < bytes; at++) {
    b[at] ^= 0x11;
    put_file("checkpoint.json", b, bytes);
    warnings = 0;
    expect_step(2, "changed byte of the list", at);
    if (warnings != 1 || strstr(said, "checkpoint.json' is damaged") == NULL) fail_msg("byte %zu: %d warnings, \"%s\"", at, warnings, said);
    b[at] ^= 0x11;
    put_file("checkpoint.json", b, at);
    expect_step(2, "length of the list", at);
  }
  unlink(in_folder("checkpoint.json"));
  expect_step(2, "no list", 0);
  yk_saver *s;                                       /* and it is made anew, with what it had */
  CHECK_OK(yk_saver_open(folder, &(yk_saver_options){ .size = sizeof(yk_saver_options), .keep = 2 }, &s));
  CHECK_OK(yk_saver_save(s, n.s, 3, 0, NULL));
  CHECK_OK(yk_saver_close(s));
  assert_true(has_file("checkpoint.json") && has_file("ckpt-2.safetensors") && !has_file("ckpt-1.safetensors"));
  free(b);
}

static void test_missing(void **state) {
  yk_checkpoint *c = NULL;
  (void)state;
  unlink(in_folder("ckpt-2.safetensors"));
  expect_step(1, "the newest is missing", 0);
  put_file("ckpt-1.safetensors", "no checkpoint", 13);
  CHECK_CODE(yk_checkpoint_latest(folder, &c), YK_ECORRUPT, "none of the 2 checkpoints");
  folder_empty(NULL);
  CHECK_CODE(yk_checkpoint_latest(folder, &c), YK_ENOTFOUND, "no checkpoint in");
  CHECK_CODE(yk_checkpoint_latest("/none/such", &c), YK_ENOTFOUND, "/none/such");
  CHECK_CODE(yk_checkpoint_open(in_folder("ckpt-9.safetensors"), &c), YK_ENOTFOUND, "ckpt-9.safetensors");
  CHECK_CODE(yk_checkpoint_open(NULL, &c), YK_EINVAL, "path");
  assert_null(c);
}

/* ---- restoring ---- */

static yk_checkpoint *open_two(void) {
  yk_checkpoint *c = NULL;
  CHECK_OK(yk_checkpoint_open(in_folder("ckpt-2.safetensors"), &c));
  return c;
}

static void expect_compare(const yk_checkpoint *c, const yk_graph *g, const yk_restore_options *o, const char *want) {
  char *text = NULL;
  CHECK_OK(yk_checkpoint_compare(c, g, o, &text));
  assert_string_equal(text, want);
  yk_free(text);
}

static void test_restore_all(void **state) {
  yk_checkpoint *c = open_two();
  yk_session *fresh;
  (void)state;
  expect_compare(c, n.g, NULL, "");
  CHECK_OK(yk_checkpoint_restore(c, n.s, NULL));
  net_expect(&n, 2, "restored");
  CHECK_OK(yk_session_open(n.g, NULL, &fresh));      /* no initializer ran */
  CHECK_OK(yk_checkpoint_restore(c, fresh, NULL));
  net other = n;
  other.s = fresh;
  net_expect(&other, 2, "restored into a fresh session");
  yk_session_close(fresh);
  CHECK_CODE(yk_checkpoint_restore(c, NULL, NULL), YK_EINVAL, "session");
  CHECK_CODE(yk_checkpoint_restore(c, n.s, &(yk_restore_options){ .size = 1 }), YK_EINVAL, "YK_RESTORE_OPTIONS_INIT");
  yk_checkpoint_close(c);
}

/* Two variables fit, one is of another shape, one of another dtype, one is not in the file; "flag" is in no graph. */
static yk_graph *other_graph(yk_session **s, yk_variable **w) {
  yk_graph *g;
  yk_variable_options fixed = { .not_trainable = true };
  CHECK_OK(yk_graph_new(&g));
  YK_VARIABLE_SCOPE(g, "a") { *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2, 3), YK_ONES, NULL); }
  yk_get_variable(g, "new", YK_F32, YK_SHAPE(4), YK_ONES, NULL);
  yk_get_variable(g, "step", YK_I64, YK_SHAPE(1), YK_ONES, &fixed);
  YK_VARIABLE_SCOPE(g, "a") { yk_get_variable(g, "b", YK_F32, YK_SCALAR, YK_ONES, NULL); }
  yk_value init = yk_global_variables_initializer(g);
  CHECK_OK(yk_session_open(g, NULL, s));
  CHECK_OK(yk_session_run(*s, 0, NULL, 0, NULL, 1, &init, NULL));
  return g;
}

static double at(yk_session *s, const yk_variable *v, int64_t i) {
  yk_tensor *t;
  CHECK_OK(yk_variable_fetch(s, v, &t));
  double x = yk_tensor_at(t, i);
  yk_tensor_free(t);
  return x;
}

static void test_account(void **state) {
  yk_checkpoint *c = open_two();
  yk_session *s;
  yk_variable *w;
  yk_graph *g = other_graph(&s, &w);
  yk_restore_options o = YK_RESTORE_OPTIONS_INIT;
  (void)state;
  expect_compare(c, g, NULL, "missing new: the file has no tensor 'new' for this variable f32[4]\n"
                 "mismatch step: tensor 'step' is i64[], the variable is i64[1]\n"
                 "mismatch a/b: tensor 'a/b' is f64[], the variable is f32[]\n"
                 "unexpected flag: no variable takes this tensor bool[5]\n");
  CHECK_CODE(yk_checkpoint_restore(c, s, NULL), YK_EINVAL, "1 missing, 1 unexpected, 2 mismatched; nothing was changed. missing new: ");
  CHECK_NEAR(at(s, w, 1), 1, 0);
  o.allow_missing = o.allow_unexpected = true;       /* a mismatch never is allowed */
  CHECK_CODE(yk_checkpoint_restore(c, s, &o), YK_EINVAL, "0 missing, 0 unexpected, 2 mismatched; nothing was changed. mismatch step: ");
  o.nonly = 2;
  o.only = (const char *const[]){ "a/w", "new" };
  CHECK_OK(yk_checkpoint_restore(c, s, &o));
  CHECK_NEAR(at(s, w, 1), (double)(2001.0f / 7), 0);
  CHECK_NEAR(at(s, yk_variable_get(g, 1), 0), 1, 0);
  o.allow_missing = false;
  CHECK_CODE(yk_checkpoint_restore(c, s, &o), YK_ENOTFOUND, "1 missing, 0 unexpected, 0 mismatched");
  o.only = (const char *const[]){ "a/w", "gone/" };
  CHECK_CODE(yk_checkpoint_restore(c, s, &o), YK_EINVAL, "'gone/'");
  yk_session_close(s);
  yk_graph_free(g);
  yk_checkpoint_close(c);
}

static void test_renames(void **state) {
  yk_checkpoint *c = open_two();
  yk_session *s;
  yk_graph *g;
  yk_restore_options o = YK_RESTORE_OPTIONS_INIT;
  (void)state;
  CHECK_OK(yk_graph_new(&g));
  yk_variable *w = NULL, *b = NULL, *steps = yk_get_variable(g, "count", YK_I64, YK_SCALAR, YK_ZEROS, NULL);
  YK_VARIABLE_SCOPE(g, "model") YK_VARIABLE_SCOPE(g, "first") {
    w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(2, 3), YK_ZEROS, NULL);
    b = yk_get_variable(g, "b", YK_F64, YK_SCALAR, YK_ZEROS, NULL);
  }
  CHECK_OK(yk_session_open(g, NULL, &s));
  o.allow_unexpected = true;
  o.nrenames = 2;
  o.renames = (const yk_rename[]){ { "count", "step" }, { "model/first/", "a/" } };
  CHECK_OK(yk_checkpoint_restore(c, s, &o));
  CHECK_NEAR(at(s, w, 5), (double)(2005.0f / 7), 0);
  CHECK_NEAR(at(s, b, 0), 2000.0 / 7, 0);
  CHECK_NEAR(at(s, steps, 0), 2000, 0);
  expect_compare(c, g, &o, "unexpected flag: no variable takes this tensor bool[5]\n");
  o.renames = (const yk_rename[]){ { "count", "step" }, { "model/second/", "a/" } };
  o.allow_missing = true;
  CHECK_CODE(yk_checkpoint_restore(c, s, &o), YK_EINVAL, "the rename from tensor 'a/' to variable 'model/second/' is for no variable");
  o.renames = (const yk_rename[]){ { "count", "step" }, { "model/first/", "a" } };
  CHECK_CODE(yk_checkpoint_restore(c, s, &o), YK_EINVAL, "both must be whole names, or starts");
  yk_session_close(s);
  yk_graph_free(g);
  yk_checkpoint_close(c);
}

/* Files of others are read too, and have no step. */
static void test_foreign(void **state) {
  static const char file[] = "\70\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}   \7\11";
  yk_checkpoint *c;
  yk_tensor *t;
  (void)state;
  put_file("foreign.safetensors", file, sizeof file - 1);
  CHECK_OK(yk_checkpoint_open(in_folder("foreign.safetensors"), &c));
  CHECK_INT(yk_checkpoint_step(c), -1);
  assert_null(yk_checkpoint_note(c, "yoke.step"));
  CHECK_OK(yk_checkpoint_get(c, "a", &t));
  CHECK_NEAR(yk_tensor_at(t, 1), 9, 0);
  yk_tensor_free(t);
  yk_checkpoint_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_every_byte_changed, two_checkpoints), cmocka_unit_test_setup(test_every_length, two_checkpoints),
    cmocka_unit_test_setup(test_wrong_file, two_checkpoints), cmocka_unit_test_setup(test_list_changed, two_checkpoints),
    cmocka_unit_test_setup(test_missing, two_checkpoints), cmocka_unit_test_setup(test_restore_all, two_checkpoints),
    cmocka_unit_test_setup(test_account, two_checkpoints), cmocka_unit_test_setup(test_renames, two_checkpoints),
    cmocka_unit_test_setup(test_foreign, two_checkpoints),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
