/*
 * Descriptions of machines, changed in every way that fuzz.h knows, and JSON of any kind. A description is taken, and then every
 * device of it is whole and can be planned for, or it is refused with one message that names the source, and nothing is left in
 * memory.
 */
#include "support/fuzz.h"

#include "base/alloc.h"
#include "base/jread.h"
#include "device/device.h"
#include "device/machine.h"

enum { ROOM = 2048 };

#define HEAD "{\"format\":\"yoke-machine\",\"version\":1,"
#define CPU "{\"name\":\"/cpu:0\",\"driver\":\"cpu\",\"bytes_limit\":8000}"

static const char *const starts[] = {
  HEAD "\"devices\":[" CPU "]}",
  HEAD "\"host\":{\"cpu\":\"EPYC\",\"cores\":96,\"bytes\":1000},\"devices\":[" CPU ",{\"name\":\"/gpu:0\",\"type\":\"GPU\",\"driver\":\"cuda\","
       "\"model\":\"H100\",\"bus\":\"0000:01:00.0\",\"uuid\":\"GPU-1\",\"virtual\":false,\"physical\":3,\"bytes_total\":100,\"bytes_limit\":90,"
       "\"first_core\":0,\"cores\":0,\"compute_capability\":\"9.0\",\"fast_types\":\"bf16\","
       "\"part\":1,\"parts\":2,\"gflops_f32\":1e5,\"gbytes_per_s\":3000.5}],"
       "\"links\":[{\"from\":\"gpu:0\",\"to\":\"/cpu:0\",\"kind\":\"pcie\",\"bytes_per_s\":2.5e10}]}",
  HEAD "\n\"devices\" : [" CPU ",\n{\"name\":\"/gpu:0\",\"virtual\":true,\"bytes_total\":1},{\"bytes_limit\":5,\"name\":\"gpu:1\"}], "
       "\"later\":[[],{}]}\n", NULL
};
static const char *const words[] = {
  "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u0041", "\\ud800", "\\ud83d\\ude00", "\\n", "\"name\":", "\"bytes_limit\":", "\"devices\":[",
  "\"links\":[", "\"version\":2,", "\"format\":\"x\",", "/gpu:1", "/cpu:0", "9223372036854775807", "9223372036854775808", "-1", "0", "01",
  "1e3", "null",
  "true", "\xC3\xA9", "\xFF", "\x01", "%s%n", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", NULL
};

/* What was taken keeps its promises. */
static void check_machine(const yk_machine *m) {
  yk_devices *all = NULL;
  if (m->n < 1) fail_msg("a machine without devices");
  for (uint16_t i = 0; i < m->n; i++) {
    const yk_machine_device *d = &m->device[i];
    if (d->bytes_limit < 1 || d->bytes_limit > d->bytes_total)
      fail_msg("%s: %llu bytes of %llu", d->name, (unsigned long long)d->bytes_limit, (unsigned long long)d->bytes_total);
    for (const char *c = d->model; *c; c++)
      if ((unsigned char)*c < ' ') fail_msg("%s: the model has byte %d", d->name, *c);
  }
  for (uint32_t i = 0; i < m->nlink; i++) assert_true(m->link[i].from < m->n && m->link[i].to < m->n);
  CHECK_OK(yk__devices_rehearse(m, "null", &all));
  CHECK_INT(all->n, m->n);
  for (uint16_t i = 0; i < all->n; i++)
    for (uint16_t k = 0; k < i; k++)
      if (strcmp(all->at[i].name, all->at[k].name) == 0) fail_msg("%s is there twice", all->at[i].name);
  yk__devices_close(all);
}

static void test_machines(void **state) {
  fuzz f = { 21 };
  uint64_t rounds = fuzz_rounds(40000), taken = 0, live = yk__alloc_live();
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM];
    yk_machine *m = NULL;
    fuzz_text(&f, text, sizeof text, fuzz_count(starts), fuzz_count(words));
    size_t n = strlen(text);
    char *tight = malloc(n ? n : 1);                 /* so that one byte too far is seen */
    assert_non_null(tight);
    memcpy(tight, text, n);
    yk_code rc = yk__machine_parse("m.json", tight, n, &m);
    if (rc == YK_OK) {
      taken++;
      check_machine(m);
    } else {
      const char *says = yk_error_message();
      assert_null(m);
      if (rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED) fail_msg("round %llu: %s: %s", (unsigned long long)round, yk_code_name(rc),
                                                               says);
      if (!strstr(says, "m.json") || !strstr(says, "expected")) fail_msg("round %llu: \"%s\"", (unsigned long long)round, says);
      for (const char *c = says; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) fail_msg("round %llu: the message has byte %d", (unsigned long long)round, *c);
      fuzz_check_message(round, "a machine");
    }
    yk__machine_free(m);
    free(tight);
    CHECK_INT(yk__alloc_live(), live);
  }
  if (taken < rounds / 50 || taken > rounds * 3 / 4) fail_msg("%llu of %llu were taken", (unsigned long long)taken,
                                                              (unsigned long long)rounds);
}

/* The reader alone: passing over a value never goes beyond the text, and what was passed over is passed over again. */
static void test_json(void **state) {
  static const char *const values[] = { "[1,2.5e3,-0,{\"a\":[null,true,false]},\"x\\u00e9\"]", "{}", "\"text\"",
    "{\"a\":{\"b\":{\"c\":[]}}}", NULL };
  fuzz f = { 22 };
  uint64_t rounds = fuzz_rounds(60000), taken = 0, live = yk__alloc_live();
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[ROOM];
    fuzz_text(&f, text, sizeof text, fuzz_count(values), fuzz_count(words));
    size_t n = strlen(text);
    char *tight = malloc(n ? n : 1);
    assert_non_null(tight);
    memcpy(tight, text, n);
    yk_jread r = { .what = "t", .s = tight, .n = n, .lines = 1 };
    if (yk__jread_skip(&r) == YK_OK) {
      yk_jread again = { .what = "t", .s = tight, .n = r.at };
      taken++;
      CHECK_OK(yk__jread_skip(&again));
      CHECK_INT(again.at, r.at);
    } else {
      CHECK_INT(strncmp(yk_error_message(), "t:", 2), 0);
      fuzz_check_message(round, "JSON");
    }
    assert_true(r.at <= n);
    free(tight);
    CHECK_INT(yk__alloc_live(), live);
  }
  if (taken < rounds / 50 || taken > rounds * 3 / 4) fail_msg("%llu of %llu were taken", (unsigned long long)taken,
                                                              (unsigned long long)rounds);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_machines), cmocka_unit_test(test_json) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
