/*
 * Lists of visible GPUs from a fixed seed: CUDA_VISIBLE_DEVICES and the session's own. Whatever is written there, what comes out
 * is a list of different GPUs that exist; and wherever the strict list is taken, the driver's reading of it is the same.
 */
#include "support/fuzz.h"
#include "device/visible.h"

enum { STRINGS = 100000, GPUS = 5, UNTOUCHED = 0xEEEE };

static fuzz source = { 20240301 };

static uint32_t draw(uint32_t n) {                 /* 0 .. n-1 */
  return fuzz_below(&source, n);
}

static const yk_gpu_id gpus[GPUS] = {
  { "GPU-11112222-aaaa", "0000:c1:00.0", 1 }, { "GPU-11113333-bbbb", "0000:3b:00.0", 1 }, { "GPU-4444", "0000:5e:00.0", 1 },
  { "MIG-4444", "0000:02:00.0", 1 },          { "", "0000:03:00.0", 1 },
};

static const char *const starts[] = { "0", "0,1,2", "\"1,0\"", "'3'", "", "-1", " 2 , 1 ", "NoDevFiles", "GPU-11112222-aaaa",
  NULL };
static const char *const words[] = { ",", ",", ",", "0", "1", "2", "3", "4", "5", "12", "-1", " ", "\"", "'", "GPU-", "GPU-1111",
  "GPU-11112",
                                     "GPU-4444", "MIG-4444", "MIG-", "none", "x", "\t", "\xff", "99999999999999999999", "%s%n", NULL };

/* Put together from words, or a good one that was damaged. */
static void any_text(char *out, size_t bytes) {
  fuzz_words all = fuzz_count(words);
  if (draw(2)) {
    fuzz_text(&source, out, bytes, fuzz_count(starts), all);
    return;
  }
  out[0] = '\0';
  for (uint32_t n = draw(10); n > 0; n--) {
    size_t at = strlen(out);
    snprintf(out + at, bytes - at, "%s", words[draw(all.n)]);
  }
  size_t len = strlen(out);
  if (len > 0 && draw(4) == 0) out[draw((uint32_t)len)] = (char)(1 + draw(255));
}

/* `out` has room for `count`, and one more that must stay as it was. */
static void check_list(const char *text, const char *what, const uint16_t *out, uint16_t n, uint16_t count) {
  if (n > count) fail_msg("%s \"%s\": %u of %u GPUs", what, text, n, count);
  for (uint16_t k = 0; k < n; k++) {
    if (out[k] >= count) fail_msg("%s \"%s\": GPU %u of %u", what, text, out[k], count);
    for (uint16_t i = 0; i < k; i++)
      if (out[i] == out[k]) fail_msg("%s \"%s\": GPU %u twice", what, text, out[k]);
  }
  if (out[count] != UNTOUCHED) fail_msg("%s \"%s\": written beyond %u GPUs", what, text, count);
}

/* The driver reads the text as the session's strict list means it, wherever that is taken. */
static void check_alike(const char *text, uint16_t count, const uint16_t *seen, uint16_t nseen, const uint16_t *mine,
                        uint16_t nmine) {
  if (nmine == 0 || strspn(text, " \t\n\v\f\r\"'") == strlen(text)) return;         /* empty: all here, none there */
  if (strchr(" \t\n\v\f\r", text[0]) && strpbrk(text, "\"'")) return;              /* the driver wants its quote first */
  if (nseen != nmine || memcmp(seen, mine, nmine * sizeof *mine) != 0)
    fail_msg("\"%s\" of %u: %u GPUs for the driver, %u for the session", text, count, nseen, nmine);
}

static void test_any_text(void **state) {
  uint64_t some = 0, taken = 0, rounds = fuzz_rounds(STRINGS);
  (void)state;
  for (uint64_t i = 0; i < rounds; i++) {
    char text[256];
    uint16_t seen[GPUS + 1], mine[GPUS + 1], count = (uint16_t)draw(GPUS + 1), nmine = 99;
    memset(seen, 0xEE, sizeof seen);
    memset(mine, 0xEE, sizeof mine);
    any_text(text, sizeof text);
    uint16_t nseen = yk__visible_devices(text, count, draw(4) ? gpus : NULL, seen);
    check_list(text, "CUDA_VISIBLE_DEVICES", seen, nseen, count);
    some += nseen > 0;
    if (yk__visible_list(text, count, mine, &nmine) != YK_OK) {
      CHECK_INT(nmine, 99);
      CHECK_INT(mine[count], UNTOUCHED);
      if (!strstr(yk_error_message(), "expected ")) fail_msg("\"%s\": %s", text, yk_error_message());
      fuzz_check_message(i, "a session's list of GPUs");
      continue;
    }
    check_list(text, "the session's list", mine, nmine, count);
    taken++;
    check_alike(text, count, seen, nseen, mine, nmine);
  }
  if (some < rounds / 50 || taken < rounds / 50) fail_msg("only %llu and %llu of %llu lists were taken", (unsigned long long)some,
                                                          (unsigned long long)taken, (unsigned long long)rounds);
}

/* An order is a rearrangement. */
static void test_orders(void **state) {
  static const char *const order[] = { NULL, "PCI_BUS_ID", "FASTEST_FIRST", "", "x" };
  (void)state;
  for (int i = 0; i < 2000; i++) {
    yk_gpu_id some[GPUS];
    uint16_t out[GPUS + 1], count = (uint16_t)draw(GPUS + 1);
    memset(out, 0xEE, sizeof out);
    for (int k = 0; k < GPUS; k++) {
      some[k] = gpus[draw(GPUS)];
      some[k].speed = draw(3);
    }
    yk__gpu_order(order[draw(5)], count, some, out);
    check_list("", "order", out, count, count);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_text), cmocka_unit_test(test_orders) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
