/*
 * Help, manual page and shell completion say the same as the parser; lists are complete and valid JSON.
 * The parser's own table is not looked at: each option that the help shows is tried.
 */
#include "run_yoke.h"

#include <ctype.h>
#include <yoke/op.h>

enum { MAX = 64 };
typedef struct words { char name[MAX][32]; char value[MAX][16]; int n; } words;

/* The indented first words, and the second ones in capitals, below the line `title`. */
static void list(const char *text, const char *title, words *out) {
  const char *p = strstr(text, title);
  *out = (words){ 0 };
  if (p == NULL) fail_msg("no %s in %s", title, text);
  for (p = strchr(p + strlen(title), '\n') + 1; p[0] == ' ' && p[1] == ' '; p = strchr(p, '\n') + 1) {
    assert_true(out->n < MAX);
    out->value[out->n][0] = '\0';
    CHECK_INT(sscanf(p, " %31s", out->name[out->n]), 1);
    const char *second = p + 2 + strlen(out->name[out->n]);
    if (second[0] == ' ' && second[1] != ' ') CHECK_INT(sscanf(second, " %15s", out->value[out->n]), 1);
    out->n++;
  }
  assert_true(out->n > 0);
}

static void commands(words *out) {
  char *help = SUCCEEDS("--help");
  list(help, "commands:", out);
  free(help);
}

static void options(const char *verb, words *out) {
  char *help = SUCCEEDS(verb, "--help");
  list(help, "\noptions:", out);
  free(help);
}

static char *source_file(const char *name) {
  char path[4096];
  const char *source = getenv("YOKE_SOURCE_DIR");
  assert_non_null(source);
  snprintf(path, sizeof path, "%s/%s", source, name);
  char *text = read_file(path);
  if (text == NULL) fail_msg("%s is missing", path);
  return text;
}

static void test_commands(void **state) {
  static const char *const want[] = { "train", "evaluate", "predict", "summary", "convert", "explain", "plan", "bench", "verify", "ops",
                                      "devices", "doctor", "config", "params" };
  words c;
  (void)state;
  commands(&c);
  CHECK_INT(c.n, sizeof want / sizeof want[0]);
  for (int i = 0; i < c.n; i++) assert_string_equal(c.name[i], want[i]);
  char *version = SUCCEEDS("--version"), *help = SUCCEEDS("help"), *again = SUCCEEDS("-h");
  assert_memory_equal(version, "yoke ", 5);
  assert_string_equal(help, again);
  free(version);
  free(help);
  free(again);
}

/* --help behind an option: the parser got past it. */
static void test_options_parse(void **state) {
  words c;
  (void)state;
  commands(&c);
  for (int v = 0; v < c.n; v++) {
    words o;
    options(c.name[v], &o);
    for (int i = 0; i < o.n; i++) {
      char *help = o.value[i][0] != '\0' ? SUCCEEDS(c.name[v], o.name[i], "1", "--help")
          : SUCCEEDS(c.name[v], o.name[i], "--help");
      assert_non_null(strstr(help, "usage: yoke"));
      free(help);
    }
  }
}

static void complete(const char *verb, const char *word, char **out) {
  static const char script[] = "source \"$YOKE_SOURCE_DIR/scripts/completion/yoke.bash\"; COMP_WORDS=(yoke \"$@\"); COMP_CWORD=$#; "
                               "_yoke; "
                               "for w in \"${COMPREPLY[@]}\"; do echo \"$w\"; done";
  const char *const argv[] = { "bash", "-c", script, "bash", verb, word, NULL };
  const char *const first[] = { "bash", "-c", script, "bash", word, NULL };
  CHECK_INT(run_program(verb != NULL ? argv : first, NULL, out), 0);
}

/* Completion offers exactly what the help shows. */
static void test_completion(void **state) {
  words c;
  char want[2048], *got;
  (void)state;
  commands(&c);
  complete(NULL, "", &got);
  for (int v = 0; v < c.n; v++)
    if (strstr(got, c.name[v]) == NULL) fail_msg("completion does not offer %s: %s", c.name[v], got);
  free(got);
  for (int v = 0; v < c.n; v++) {
    words o;
    size_t at = 0;
    options(c.name[v], &o);
    for (int i = 0; i < o.n; i++) at += (size_t)snprintf(want + at, sizeof want - at, "%s\n", o.name[i]);
    complete(c.name[v], "--", &got);
    if (strcmp(got, want) != 0) fail_msg("%s: completion offers\n%sthe help shows\n%s", c.name[v], got, want);
    free(got);
  }
  complete("train", "cif", &got);
  assert_string_equal(got, "cifar10\n");
  free(got);
}

/* The page with its "\-" as "-". */
static char *manual(void) {
  char *text = source_file("docs/yoke.1"), *to = text;
  for (const char *from = text; *from != '\0'; from++)
    if (!(from[0] == '\\' && from[1] == '-')) *to++ = *from;
  *to = '\0';
  return text;
}

/* Does the entry of `option` say that `verb` takes it? Entries end with "Commands: a, b." */
static bool says(const char *page, const char *option, const char *verb) {
  char head[64];
  for (const char *p = page; (p = strstr(p, ".TP\n.B")) != NULL; p++) {
    const char *name = p + 4 + strcspn(p + 4, "-"), *end = strstr(p + 1, ".TP\n"), *who = strstr(p, "Commands: ");
    size_t n = strcspn(name, " \"\n");
    snprintf(head, sizeof head, "%.*s", (int)n, name);
    if (strcmp(head, option) != 0) continue;
    if (who == NULL || (end != NULL && who > end)) return true;      /* one that all take */
    const char *found = strstr(who, verb);
    return found != NULL && found < who + strcspn(who, "\n");
  }
  return false;
}

static void test_manual(void **state) {
  words c, models;
  char *page = manual(), pattern[64];
  (void)state;
  commands(&c);
  for (int v = 0; v < c.n; v++) {
    words o;
    snprintf(pattern, sizeof pattern, "B yoke %s", c.name[v]);
    if (strstr(page, pattern) == NULL) fail_msg("the manual has no \"%s\"", pattern);
    options(c.name[v], &o);
    for (int i = 0; i < o.n; i++)
      if (!says(page, o.name[i], c.name[v])) fail_msg("the manual does not say that %s takes %s", c.name[v], o.name[i]);
  }
  char *help = SUCCEEDS("train", "--help");
  list(help, "networks:", &models);
  for (int i = 0; i < models.n; i++) {
    snprintf(pattern, sizeof pattern, ".B %s\n", models.name[i]);
    if (strstr(page, pattern) == NULL) fail_msg("the manual does not describe %s", models.name[i]);
  }
  free(help);
  free(page);
}

static void test_lists(void **state) {
  size_t n;
  const yk_op *const *ops = yk_op_all(&n);
  char pattern[96];
  (void)state;
  char *text = SUCCEEDS("ops"), *json = SUCCEEDS("ops", "--json"), *none = SUCCEEDS("ops", "--no-gradient", "--json");
  check_json(json, false);
  check_json(none, false);
  for (size_t i = 0; i < n; i++) {
    snprintf(pattern, sizeof pattern, "\"name\":\"%s\"", ops[i]->name);
    if (strstr(json, pattern) == NULL || strstr(text, ops[i]->name) == NULL) fail_msg("ops does not list %s", ops[i]->name);
    if ((strstr(none, pattern) == NULL) != (ops[i]->grad != NULL)) fail_msg("ops --no-gradient is wrong about %s", ops[i]->name);
  }
  /* Training needs these on the CPU. */
  assert_non_null(strstr(json, "\"name\":\"conv2d\""));
  const char *conv = strstr(strstr(json, "\"name\":\"conv2d\""), "\"cpu\":{\"dtypes\":[");
  assert_memory_equal(conv + 17, "\"f32\"", 5);
  free(text);
  free(json);
  free(none);
}

static void test_devices_and_params(void **state) {
  (void)state;
  char *devices = SUCCEEDS("devices", "--json", "--virtual-gpus", "2:512MiB");
  check_json(devices, false);
  assert_non_null(strstr(devices, "device:GPU:1"));
  CHECK_INT(json_number(strstr(devices, "device:GPU:1"), "bytes_limit"), 512 << 20);
  free(devices);
  setenv("YOKE_CORES", "1", 1);
  char *params = SUCCEEDS("params", "--json");
  unsetenv("YOKE_CORES");
  check_json(params, false);
  if (strstr(params, "\"value\":\"1\",\"default\":\"0\",\"origin\":\"environment\"") == NULL) fail_msg("%s", params);
  free(params);
  params = SUCCEEDS("params");
  assert_non_null(strstr(params, "YOKE_VERBOSE"));
  free(params);
}

static void test_explain(void **state) {
  (void)state;
  char *plan = SUCCEEDS("explain", "resnet20", "--batch", "4", "--virtual-gpus", "2", "--lr", "0.5");
  assert_non_null(strstr(plan, "GPU:1"));
  assert_non_null(strstr(plan, "arena"));
  assert_non_null(strstr(plan, "launch"));
  free(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_commands), cmocka_unit_test(test_options_parse), cmocka_unit_test(test_completion),
        cmocka_unit_test(test_manual),
    cmocka_unit_test(test_lists), cmocka_unit_test(test_devices_and_params), cmocka_unit_test(test_explain),
  };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
