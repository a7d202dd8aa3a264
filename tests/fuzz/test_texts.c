/*
 * Texts from outside: device strings, numbers and amounts, settings, names of values, CUDA_VISIBLE_DEVICES, device lists of a
 * session. Each is taken, and then means what it is printed as again, or it is refused with a message and nothing is changed.
 */
#include "support/fuzz.h"

#include "base/alloc.h"
#include "base/param.h"
#include "base/str.h"
#include "device/visible.h"
#include "tensor/device_spec.h"
#include <yoke/math.h>
#include <yoke/session.h>

enum { ROOM = 160 };

static const char *const device_starts[] = { "/gpu:0", "/cpu:1", "gpu:0", "", "/job:w/replica:0/task:1/device:GPU:0",
                                             "/device:CPU:*", "/task:3", "/job:*/gpu", NULL };
static const char *const device_words[] = { "/", ":", "//", "/job:", "/task:", "/replica:", "/device:", "/gpu:", "/cpu:", "*",
                                            "-1", "2147483647", "2147483648", "99999999999",
                                            "localhost", "GPU", "\x80", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL };

static void test_device_strings(void **state) {
  fuzz f = { 1 };
  fuzz_words starts = fuzz_count(device_starts), words = fuzz_count(device_words);
  uint64_t taken = 0, rounds = fuzz_rounds(60000);
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM], printed[YK__DEVICE_TEXT], again[YK__DEVICE_TEXT];
    yk_device_spec d, e, before;
    memset(&before, 0x5A, sizeof before);
    d = before;
    fuzz_text(&f, text, sizeof text, starts, words);
    if (yk__device_parse(text, &d) != YK_OK) {
      if (memcmp(&d, &before, sizeof d)) fail_msg("round %llu: '%s' was refused, but the result changed",
                                                  (unsigned long long)round, text);
      if (!strstr(yk_error_message(), "expected")) fail_msg("round %llu: \"%s\" does not say what was expected",
                                                            (unsigned long long)round, yk_error_message());
      for (const char *p = yk_error_message(); *p; p++)
        if (*p < ' ' || *p > '~') fail_msg("round %llu: the message has byte %d", (unsigned long long)round, *p);
      fuzz_check_message(round, "a device string");
      continue;
    }
    taken++;
    yk__device_text(&d, printed);
    if (yk__device_parse(printed, &e) != YK_OK) fail_msg("round %llu: '%s' is printed as '%s', which is refused: %s",
                                                         (unsigned long long)round, text, printed, yk_error_message());
    yk__device_text(&e, again);
    assert_string_equal(printed, again);
    if (memcmp(&d, &e, sizeof d)) fail_msg("round %llu: '%s' is printed as '%s', which means something else",
                                           (unsigned long long)round, text, printed);
  }
  if (taken < rounds / 50 || taken > rounds / 2) fail_msg("%llu of %llu were taken", (unsigned long long)taken,
                                                          (unsigned long long)rounds);
}

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

/* A session's own list: all of it, or an error and nothing. */
static void check_visible_list(uint64_t round, const char *text, uint16_t count) {
  uint16_t out[9], n = 77;
  memset(out, 0xEE, sizeof out);
  if (yk__visible_list(text, count, out, &n) != YK_OK) {
    CHECK_INT(n, 77);
    CHECK_INT(out[count], 0xEEEE);
    fuzz_check_message(round, "a session's list of GPUs");
    return;
  }
  CHECK_INT(out[count], 0xEEEE);
  if (n > count) fail_msg("\"%s\": %u of %u devices", text, n, count);
  for (uint16_t i = 0; i < n; i++)
    if (out[i] >= count) fail_msg("\"%s\": device %u of %u", text, out[i], count);
}

/* Never more than there are, none twice; anything may be in the environment. */
static void test_visible_devices(void **state) {
  static const char *const starts[] = { "0", "0,1,2", "\"1,0\"", "'3'", "", "-1", " 2 , 1 ", "NoDevFiles", "GPU-8932f937", NULL };
  static const char *const words[] = { ",", "\"", "'", " ", "-1", "99999999999", "7", "\t", "\xFF", NULL };
  static const yk_gpu_id gpus[8] = { { "GPU-8932f937", "0000:01:00.0", 1 }, { "GPU-8932aaaa", "0000:02:00.0", 1 },
                                     { "MIG-11", "0000:03:00.0", 1 }, { "", "", 1 }, { "", "", 1 }, { "", "", 1 }, { "", "", 1 },
                                     { "", "", 1 } };
  fuzz f = { 4 };
  uint64_t rounds = fuzz_rounds(60000);
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM];
    uint16_t out[9], count = (uint16_t)fuzz_below(&f, 9);
    memset(out, 0xEE, sizeof out);
    fuzz_text(&f, text, sizeof text, fuzz_count(starts), fuzz_count(words));
    uint16_t n = yk__visible_devices(text, count, fuzz_below(&f, 2) ? gpus : NULL, out);
    if (n > count) fail_msg("\"%s\": %u of %u devices", text, n, count);
    for (uint16_t i = 0; i < n; i++) {
      if (out[i] >= count) fail_msg("\"%s\": device %u of %u", text, out[i], count);
      for (uint16_t k = 0; k < i; k++)
        if (out[i] == out[k]) fail_msg("\"%s\": device %u twice", text, out[i]);
    }
    CHECK_INT(out[count], 0xEEEE);
    check_visible_list(round, text, count);
  }
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
    cmocka_unit_test(test_device_strings), cmocka_unit_test(test_numbers), cmocka_unit_test(test_settings),
    cmocka_unit_test(test_visible_devices), cmocka_unit_test(test_graph_names), cmocka_unit_test(test_driver_lists),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
