/*
 * Texts from outside: numbers and amounts, settings, groups of virtual GPUs and splits, names of values. Each is taken, and then
 * means what it is printed as again, or it is refused with a message and nothing is changed. Device strings and lists of GPUs
 * have files of their own.
 */
#include "support/fuzz.h"

#include "base/alloc.h"
#include "base/param.h"
#include "base/str.h"
#include "device/virtual.h"
#include <yoke/math.h>
#include <yoke/session.h>

enum { ROOM = 160 };

static const char *const device_starts[] = { "/gpu:0", "/cpu:1", "gpu:0", "", "/job:w/replica:0/task:1/device:GPU:0",
                                             "/device:CPU:*", "/task:3", "/job:*/gpu", NULL };
static const char *const device_words[] = { "/", ":", "//", "/job:", "/task:", "/replica:", "/device:", "/gpu:", "/cpu:", "*",
                                            "-1", "2147483647", "2147483648", "99999999999",
                                            "localhost", "GPU", "\x80", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL };

static void test_numbers(void **state) {
  static const char *const good[] = { "0", "-1", "+7", "9223372036854775807", "-9223372036854775808", "1.5", "1e10", "0.1",
                                      "512MiB", "1.5GiB", "64k", "2 kB", NULL };
  static const char *const words[] = { "9", "e", "E-", ".", "-", "inf", "nan", "0x", "p", "Ki", "B", "T", "1e400",
                                       "18446744073709551615", ",", NULL };
  fuzz f = { 2 };
  fuzz_words starts = fuzz_count(good), mixed = fuzz_count(words);
  uint64_t rounds = fuzz_rounds(60000), taken[3] = { 0 };
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[64], printed[64];
    int64_t i = 77;
    double x = 77;
    uint64_t bytes = 77;
    fuzz_text(&f, text, sizeof text, starts, mixed);
    if (yk__parse_i64(text, INT64_MIN, INT64_MAX, &i)) {
      int64_t again = 0;
      taken[0]++;
      snprintf(printed, sizeof printed, "%lld", (long long)i);
      assert_true(yk__parse_i64(printed, i, i, &again));
      if (again != i) fail_msg("'%s' is %lld, printed %lld", text, (long long)i, (long long)again);
      if (i != INT64_MAX && yk__parse_i64(text, i + 1, INT64_MAX, &again)) fail_msg("'%s' is below its lower bound", text);
    } else if (i != 77) fail_msg("'%s' was refused, but gave %lld", text, (long long)i);
    if (yk__parse_f64(text, &x)) {
      taken[1]++;
      if (!isfinite(x) || x != strtod(text, NULL)) fail_msg("'%s' is read as %g", text, x);
    } else if (x != 77) fail_msg("'%s' was refused, but gave %g", text, x);
    if (yk__parse_bytes(text, &bytes)) taken[2]++;
    else if (bytes != 77) fail_msg("'%s' was refused, but gave %llu", text, (unsigned long long)bytes);
  }
  for (int k = 0; k < 3; k++)
    if (taken[k] < rounds / 50 || taken[k] > rounds * 9 / 10) fail_msg("kind %d: %llu of %llu were taken", k,
        (unsigned long long)taken[k], (unsigned long long)rounds);
}

/* Each text that a call set is kept for ever, so this test is short; a refused one changes nothing. */
static void test_settings(void **state) {
  static const char *const values[] = { "0", "1", "true", "off", "17", "512MiB", "2:512MiB", "gpu:0,gpu:1", "ref,null", "/tmp",
                                        "", NULL };
  static const char *const words[] = { ",", ",,", ":", "-1", "99999999999999999999", "GiB", "\x80", "\n", "%s%n", NULL };
  fuzz f = { 3 };
  fuzz_words starts = fuzz_count(values), mixed = fuzz_count(words);
  size_t nparams;
  const yk_param_info *all = yk__param_all(&nparams);
  uint64_t rounds = fuzz_rounds(6000);
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM], name[64];
    const yk_param_info *p = &all[fuzz_below(&f, (uint32_t)nparams)];
    const char *before = yk__param(p->name);
    int64_t number = yk__param_int(p->name);
    fuzz_text(&f, text, sizeof text, starts, mixed);
    if (yk__param_set(p->name, text) == YK_OK) {
      assert_string_equal(yk__param(p->name), text);
      CHECK_INT(yk__param_origin_of(p->name), YK_FROM_CALL);
      CHECK_OK(yk__param_set(p->name, p->dflt));
    } else {
      if (!strstr(yk_error_message(), p->name)) fail_msg("\"%s\" does not name %s", yk_error_message(), p->name);
      fuzz_check_message(round, p->name);
      assert_ptr_equal(yk__param(p->name), before);
      CHECK_INT(yk__param_int(p->name), number);
    }
    const char *names[] = { p->name, NULL };
    fuzz_text(&f, name, sizeof name, fuzz_count(names), mixed);
    if (!yk__param(name)) {
      CHECK_INT(yk__param_set(name, "1"), YK_ENOTFOUND);
      fuzz_check_message(round, "a setting's name");
    }
  }
  for (size_t i = 0; i < nparams; i++) CHECK_OK(yk__param_set(all[i].name, all[i].dflt));
}

static void check_refused(uint64_t round, const char *text, const void *out, uint16_t n) {
  if (out || n != 77) fail_msg("round %llu: '%s' was refused, but the result changed", (unsigned long long)round, text);
  if (!strstr(yk_error_message(), "expected "))
    fail_msg("round %llu: \"%s\" does not say what was expected", (unsigned long long)round, yk_error_message());
  for (const char *p = yk_error_message(); *p; p++)
    if (*p < ' ' || *p > '~') fail_msg("round %llu: the message has byte %d", (unsigned long long)round, *p);
  fuzz_check_message(round, "a text for GPUs");
}

/* What is taken, written out GPU by GPU, is taken to be the same. */
static void check_groups(uint64_t round, const char *text, uint64_t *taken) {
  yk_gpu_size *gpu = NULL, *again = NULL;
  uint16_t n = 77, same = 0;
  yk_str out = { 0 };
  char *printed = NULL;
  if (yk__virtual_parse("test", text, 64, &gpu, &n) != YK_OK) {
    check_refused(round, text, gpu, n);
    return;
  }
  ++*taken;
  if (n < 1 || n > 64) fail_msg("'%s' makes %u GPUs", text, n);
  for (uint16_t k = 0; k < n; k++) {
    yk__str_add(&out, "%s1", k ? "," : "");
    if (gpu[k].bytes || gpu[k].cores) yk__str_add(&out, ":");
    if (gpu[k].bytes) yk__str_add(&out, "%llu", (unsigned long long)gpu[k].bytes);
    if (gpu[k].cores) yk__str_add(&out, ":%u", (unsigned)gpu[k].cores);
  }
  CHECK_OK(yk__str_take(&out, &printed));
  CHECK_OK(yk__virtual_parse("test", printed, 64, &again, &same));
  CHECK_INT(same, n);
  for (uint16_t k = 0; k < n; k++)
    if (gpu[k].bytes != again[k].bytes || gpu[k].cores != again[k].cores) fail_msg("'%s' is not '%s'", text, printed);
  yk__free(printed);
  yk__free(gpu);
  yk__free(again);
}

static void check_splits(uint64_t round, const char *text, uint64_t *taken) {
  yk_gpu_split *split = NULL;
  uint16_t n = 77;
  uint32_t commas = 0, parts = 0;
  if (yk__split_parse("test", text, &split, &n) != YK_OK) {
    check_refused(round, text, split, n);
    return;
  }
  ++*taken;
  for (const char *p = text; *p; p++) commas += *p == ',';
  for (uint16_t k = 0; k < n; k++) {
    parts += split[k].nparts;
    for (uint16_t i = 0; i < k; i++)
      if (split[i].gpu == split[k].gpu) fail_msg("'%s': gpu:%u twice", text, split[k].gpu);
    for (uint16_t p = 0; p < split[k].nparts; p++)
      if (!split[k].part[p]) fail_msg("'%s': a part of no bytes", text);
  }
  CHECK_INT(parts, commas + 1);
  yk__free(split);
}

static void test_gpu_texts(void **state) {
  static const char *const groups[] = { "4", "2:512MiB", "2:1GiB:2,1:256MiB", "2::1", "1,1,1:1kB", NULL };
  static const char *const splits[] = { "gpu:0=256MiB,256MiB", "gpu:0=1GiB,gpu:2=1GiB,1", "/gpu:1=64k", "/device:GPU:3=1,2,3,4",
    NULL };
  static const char *const words[] = { ",", ":", "::", "=", "0", "65", "GiB", "gpu:1=", "cpu:0=", "99999999999999999999", " ",
    "-", "\x80", "\n", "%s%n", NULL };
  fuzz f = { 4 };
  uint64_t rounds = fuzz_rounds(40000), live = yk__alloc_live(), taken[2] = { 0 };
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM];
    fuzz_text(&f, text, sizeof text, fuzz_count(groups), fuzz_count(words));
    check_groups(round, text, &taken[0]);
    fuzz_text(&f, text, sizeof text, fuzz_count(splits), fuzz_count(words));
    check_splits(round, text, &taken[1]);
    CHECK_INT(yk__alloc_live(), live);
  }
  for (int k = 0; k < 2; k++)
    if (taken[k] < rounds / 50 || taken[k] > rounds * 9 / 10) fail_msg("kind %d: %llu of %llu were taken", k,
                                                                       (unsigned long long)taken[k],
                                                                       (unsigned long long)rounds);
}

/* Names given to nodes, scopes and variables, device strings of scopes, and what is looked up. */
static void test_graph_names(void **state) {
  static const char *const starts[] = { "conv1", "tower_0/conv1", "a/", "x:0", "", ".hidden", "a_1", "Relu", NULL };
  static const char *const words[] = { "/", "//", ":", ":1", "_1", "_", " ", "\x80", "%s", "A", "a", "-", "..", NULL };
  fuzz f = { 5 };
  uint64_t live = yk__alloc_live(), rounds = fuzz_rounds(3000), built = 0;
  fuzz_words from = fuzz_count(starts), mixed = fuzz_count(words), devices = fuzz_count(device_starts),
    parts = fuzz_count(device_words);
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[4][ROOM];
    yk_graph *g;
    CHECK_OK(yk_graph_new(&g));
    bool odd = fuzz_below(&f, 4) > 0;                  /* at most one of them is: one alone is refused often enough */
    uint32_t which = fuzz_below(&f, 4);
    for (uint32_t i = 0; i < 3; i++) {
      if (odd && i == which) fuzz_text(&f, text[i], ROOM, from, mixed);
      else snprintf(text[i], ROOM, "%s", starts[fuzz_below(&f, 2)]);
    }
    if (odd && which == 3) fuzz_text(&f, text[3], ROOM, devices, parts);
    else snprintf(text[3], ROOM, "/gpu:1");
    YK_NAME_SCOPE(g, text[0]) {
      YK_DEVICE(g, text[3]) {
        yk_value v = yk_no_op(yk_named(g, text[1]));
        yk_add_to_collection(g, text[2], v);
        YK_VARIABLE_SCOPE(g, text[2]) { yk_get_variable(g, text[1], YK_F32, YK_SHAPE(2), YK_ZEROS, NULL); }
      }
    }
    if (yk_graph_status(g) == YK_OK) {
      char *dump = NULL;
      built++;
      CHECK_OK(yk_graph_verify(g));
      CHECK_OK(yk_graph_dump(g, &dump));
      yk_free(dump);
      for (size_t i = 0; i < yk_variable_count(g); i++) assert_int_equal(yk_find(g, yk_value_name(g, yk_read(yk_variable_get(g,
          i)))).id, yk_read(yk_variable_get(g, i)).id);
    } else {
      fuzz_check_message(round, "names of a graph");
    }
    if (!yk_find(g, text[2]).id) fuzz_check_message(round, "a look-up");
    yk_graph_free(g);
    CHECK_INT(yk__alloc_live(), live);
  }
  if (built < rounds / 50) fail_msg("only %llu of %llu graphs were built", (unsigned long long)built, (unsigned long long)rounds);
}

/* Drivers named in a session's options. */
static void test_driver_lists(void **state) {
  static const char *const starts[] = { "ref", "null", "cpu", "ref,null", "", NULL };
  static const char *const words[] = { ",", "cuda", "\x80", " ", "%n", NULL };
  fuzz f = { 6 };
  uint64_t rounds = fuzz_rounds(300);
  yk_graph *g;
  (void)state;
  CHECK_OK(yk_graph_new(&g));
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM];
    yk_session_options o = YK_SESSION_OPTIONS_INIT;
    yk_session *s = NULL;
    fuzz_text(&f, text, sizeof text, fuzz_count(starts), fuzz_count(words));
    o.drivers = text;
    o.cores = 1;
    if (yk_session_open(g, &o, &s) != YK_OK) {
      assert_null(s);
      fuzz_check_message(round, "a list of drivers");
    }
    yk_session_close(s);
  }
  yk_graph_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_numbers), cmocka_unit_test(test_settings),
    cmocka_unit_test(test_gpu_texts), cmocka_unit_test(test_graph_names), cmocka_unit_test(test_driver_lists),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
