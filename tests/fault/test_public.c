/*
 * Every function of the public headers while memory runs out. The headers are read, so that a function which is declared
 * and neither has a case nor is known to take no memory fails the test by name.
 */
#include "fault.h"

#include <ctype.h>
#include <dirent.h>
#include "base/param.h"

enum { MOST_NAMES = 1024 };

static char declared[MOST_NAMES][64];
static size_t ndeclared;

/* ---- the headers ---- */

static char *read_header(const char *path) {
  FILE *f = fopen(path, "rb");
  char *s = calloc(1, 1 << 17);
  if (!f || !s) fail_msg("%s cannot be read", path);
  size_t n = fread(s, 1, (1 << 17) - 1, f);
  fclose(f);
  if (n == 0 || n == (1 << 17) - 1) fail_msg("%s: %zu bytes", path, n);
  return s;
}

/* Comments, and lines of the preprocessor with those that continue them, become blanks. */
static void blank(char *s) {
  for (char *p = s; *p; p++) {
    bool comment = p[0] == '/' && p[1] == '*', directive = *p == '#';
    if (!comment && !directive) continue;
    char *end = p;
    if (comment) end = strstr(p, "*/") ? strstr(p, "*/") + 2 : p + strlen(p);
    else while (*end && (*end != '\n' || end[-1] == '\\')) end++;
    memset(p, ' ', (size_t)(end - p));
  }
}

static void declare(const char *name, size_t n) {
  assert_true(ndeclared < MOST_NAMES && n < sizeof declared[0]);
  for (size_t i = 0; i < ndeclared; i++)
    if (strlen(declared[i]) == n && !memcmp(declared[i], name, n)) return;
  memcpy(declared[ndeclared], name, n);
  declared[ndeclared++][n] = '\0';
}

/* A public name before a '(' and outside braces declares a function; "(*name)(" and the arguments of one do not. */
static void read_names(const char *s) {
  int depth = 0;
  for (const char *p = s; *p; p++) {
    bool extern_c = *p == '{' && p - s > 4 && strstr(p - 4, "\"C\" {") == p - 4;
    if ((*p == '{' || *p == '(') && !extern_c) depth++;
    if ((*p == '}' || *p == ')') && depth > 0) depth--;
    if (depth || strncmp(p, "yk_", 3) || p[3] == '_' || (p > s && (isalnum((unsigned char)p[-1]) || p[-1] == '_'))) continue;
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_') n++;
    size_t gap = n;
    while (p[gap] == ' ') gap++;
    if (p[gap] == '(' && p[gap + 1] != '*') declare(p, n);
    p += n - 1;
  }
}

static int read_headers(void **state) {
  char folder[512], path[1024];
  (void)state;
  const char *root = getenv("YOKE_SOURCE_DIR");
  if (!root) { print_error("YOKE_SOURCE_DIR is not set\n"); return -1; }
  snprintf(folder, sizeof folder, "%s/include/yoke", root);
  DIR *d = opendir(folder);
  if (!d) { print_error("%s cannot be read\n", folder); return -1; }
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    char *s = read_header(path);
    blank(s);
    read_names(s);
    free(s);
  }
  closedir(d);
  return 0;
}

/* ---- is each covered? ---- */

static const fault_case *const tables[] = { fault_values, fault_data, fault_sessions, fault_steps, fault_training, fault_checkpoints,
                                            fault_events, fault_sync, fault_monitored, fault_keras, fault_fit, fault_detect };
enum { NTABLES = sizeof tables / sizeof tables[0] };

/* Covered, but not in the tables: towers and their copies by test_networks.c; what is set for the process stays allocated, so it is below. */
static const char *const elsewhere[] = { "yk_build_towers_at", "yk_check_replicas", "yk_select_gpu", NULL };

static bool listed(const char *const *list, const char *name) {
  for (; *list; list++)
    if (!strcmp(*list, name)) return true;
  return false;
}

static int cases_of(const char *name) {
  int n = listed(fault_silent, name) + listed(fault_freeing, name) + listed(elsewhere, name);
  for (const fault_builder *b = fault_builders; b->name; b++) n += !strcmp(b->name, name);
  for (size_t t = 0; t < NTABLES; t++)
    for (const fault_case *c = tables[t]; c->call; c++) n += !strcmp(c->names, name);
  return n;
}

static void test_each_has_a_case(void **state) {
  int missing = 0;
  (void)state;
  if (ndeclared < 200) fail_msg("only %zu functions were found in the headers", ndeclared);
  for (size_t i = 0; i < ndeclared; i++) {
    if (cases_of(declared[i]) > 0) continue;
    print_error("%s is declared in include/yoke, but has no case in tests/fault\n", declared[i]);
    missing++;
  }
  CHECK_INT(missing, 0);
}

static bool is_declared(const char *name) {
  for (size_t i = 0; i < ndeclared; i++)
    if (!strcmp(declared[i], name)) return true;
  return false;
}

static void test_each_case_has_a_function(void **state) {
  (void)state;
  for (const fault_builder *b = fault_builders; b->name; b++)
    if (!is_declared(b->name)) fail_msg("%s has a case, but is not declared", b->name);
  for (const char *const *n = fault_silent; *n; n++)
    if (!is_declared(*n)) fail_msg("%s is listed as silent, but is not declared", *n);
  for (const char *const *n = fault_freeing; *n; n++)
    if (!is_declared(*n)) fail_msg("%s is listed as freeing, but is not declared", *n);
}

/* ---- the cases ---- */

static void run_table(const fault_case *c) {
  for (; c->call; c++) fault_run(c);
}

static void test_values(void **state) { (void)state; run_table(fault_values); }
static void test_data(void **state) { (void)state; run_table(fault_data); }
static void test_sessions(void **state) { (void)state; run_table(fault_sessions); }
static void test_steps(void **state) { (void)state; run_table(fault_steps); }
static void test_checkpoints(void **state) { (void)state; run_table(fault_checkpoints); }
static void test_events(void **state) { (void)state; run_table(fault_events); }
static void test_monitored(void **state) { (void)state; run_table(fault_monitored); }
static void test_sync(void **state) { (void)state; run_table(fault_sync); }
static void test_keras(void **state) { (void)state; run_table(fault_keras); }
static void test_detect(void **state) { (void)state; run_table(fault_detect); }
static void test_fit(void **state) { (void)state; run_table(fault_fit); }
static void test_silent(void **state) { (void)state; fault_call_silent(); }

/* The text of a setting is kept for good, once. Without memory for it the setting stays what it was. */
static void test_select_gpu(void **state) {
  uint64_t live = yk__alloc_live();
  (void)state;
  for (int from = 0; from < 2; from++) {
    CHECK_OK(yk_select_gpu(-1));
    from ? yk__alloc_fail_from(1) : yk__alloc_fail_at(1);
    yk_code rc = yk_select_gpu(60 + from);
    CHECK_INT(yk__alloc_fail_at(0) > 0, 1);
    CHECK_CODE(rc, YK_ENOMEM, "memory");
    assert_string_equal(yk__param("visible_devices"), "none");
    CHECK_OK(yk_select_gpu(60 + from));
    CHECK_OK(yk_select_gpu(60 + from));
  }
  CHECK_INT(yk__alloc_live() - live, 3);               /* "none", "60", "61" */
  CHECK_OK(yk__param_set("visible_devices", ""));
}

static void test_builders(void **state) {
  (void)state;
  for (const fault_builder *b = fault_builders; b->name; b++) fault_build(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_has_a_case), cmocka_unit_test(test_each_case_has_a_function), cmocka_unit_test(test_silent),
    cmocka_unit_test(test_values), cmocka_unit_test(test_data),
    cmocka_unit_test(test_builders), cmocka_unit_test(test_sessions), cmocka_unit_test(test_steps),
    cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_events), cmocka_unit_test(test_sync),
        cmocka_unit_test(test_monitored), cmocka_unit_test(test_keras), cmocka_unit_test(test_detect),
    cmocka_unit_test(test_fit), cmocka_unit_test(test_select_gpu),
  };
  setenv("OMP_NUM_THREADS", "1", 0);
  return cmocka_run_group_tests(tests, read_headers, NULL);
}
