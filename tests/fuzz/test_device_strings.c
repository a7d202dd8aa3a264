/*
 * Device strings from a fixed seed. What prints must parse to the same device, in any order of its parts; what is taken must
 * survive printing; what is refused must say why in a short printable line and leave the output alone.
 *
 * Strings are put together from the words of the grammar and from damage, so that most come close to being right.
 */
#include "support/fuzz.h"
#include "tensor/device_spec.h"

enum { DEVICES = 20000, STRINGS = 100000 };

static fuzz source = { 20240229 };

static uint32_t draw(uint32_t n) {                 /* 0 .. n-1 */
  return fuzz_below(&source, n);
}

static int same(const yk_device_spec *a, const yk_device_spec *b) {
  return strcmp(a->job, b->job) == 0 && a->replica == b->replica && a->task == b->task && strcmp(a->type, b->type) == 0 &&
         a->id == b->id;
}

static int32_t any_number(void) {
  static const int32_t special[] = { 0, 1, 7, 10, 63, INT32_MAX };
  return draw(2) ? special[draw(6)] : (int32_t)draw(INT32_MAX);
}

static void any_word(char *out, uint32_t most, int upper) {
  static const char tail[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
  uint32_t n = 1 + draw(most);
  for (uint32_t i = 0; i < n; i++) {
    char c = tail[draw(i ? 37 : 26)];
    out[i] = (char)(upper && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  out[n] = '\0';
}

/* Any device there can be, each field set or not. */
static yk_device_spec any_device(void) {
  yk_device_spec d = YK__ANY_DEVICE;
  if (draw(2)) any_word(d.job, YK__JOB_BYTES - 1, 0);
  if (draw(2)) d.replica = any_number();
  if (draw(2)) d.task = any_number();
  if (draw(3) == 0) any_word(d.type, YK__TYPE_BYTES - 1, 1);
  else if (draw(2)) snprintf(d.type, sizeof d.type, "%s", draw(2) ? "GPU" : "CPU");
  if (draw(2)) d.id = any_number();
  return d;
}

/* The components of a canonical text, in another order, and sometimes in other words for the same. */
static void shuffle(const char *text, char *out, size_t bytes) {
  const char *part[8];
  size_t len[8];
  uint32_t n = 0;
  for (const char *p = text; *p; p += len[n++]) {
    part[n] = p;
    len[n] = 1 + strcspn(p + 1, "/");
  }
  out[0] = '\0';
  for (; n > 0; n--) {
    uint32_t k = draw(n);
    int shorter = strncmp(part[k], "/device:GPU:", 12) == 0 || strncmp(part[k], "/device:CPU:", 12) == 0;
    size_t skip = shorter && draw(2) ? 8 : 0, at = strlen(out);
    snprintf(out + at, bytes - at, "%s%.*s", skip ? "/" : "", (int)(len[k] - skip), part[k] + skip);
    part[k] = part[n - 1];
    len[k] = len[n - 1];
  }
}

static void test_every_device(void **state) {
  (void)state;
  for (uint64_t i = 0; i < fuzz_rounds(DEVICES); i++) {
    yk_device_spec d = any_device(), again = YK__ANY_DEVICE;
    char text[YK__DEVICE_TEXT], other[2 * YK__DEVICE_TEXT], back[YK__DEVICE_TEXT];
    yk__device_text(&d, text);
    CHECK_OK(yk__device_parse(text, &again));
    if (!same(&d, &again)) fail_msg("device %llu: \"%s\" is another device when parsed", (unsigned long long)i, text);
    shuffle(text, other, sizeof other);
    again = YK__ANY_DEVICE;
    CHECK_OK(yk__device_parse(other, &again));
    if (!same(&d, &again)) fail_msg("device %llu: \"%s\" and \"%s\" are two devices", (unsigned long long)i, text, other);
    if (strcmp(yk__device_text(&again, back), text) != 0) fail_msg("\"%s\" prints as \"%s\"", text, back);
    CHECK_INT(yk__device_empty(&d), text[0] == '\0');
  }
}

static const char *const starts[] = { "/gpu:0", "/cpu:1", "gpu:0", "", "/job:w/replica:0/task:1/device:GPU:0", "/device:CPU:*",
  "/task:3",
                                      "/job:*/gpu", NULL };
static const char *const words[] = { "/", "/job:", "/replica:", "/task:", "/device:", "/cpu", "/gpu", "/GPU:", "/CPU:", ":", "*",
  "0", "1",
                                     "12", "-1", "w", "GPU", "worker", "/device:GPU:", "2147483647", "2147483648", "99999999999", "_",
                                     " ", "\n", "\xff", "\x80", "%s%n", "//", "localhost", "tpu:0", "\"",
                                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL };

/* Put together from words, or a good one that was damaged. */
static void any_string(char *out, size_t bytes) {
  fuzz_words all = fuzz_count(words);
  if (draw(2)) {
    fuzz_text(&source, out, bytes, fuzz_count(starts), all);
    return;
  }
  out[0] = '\0';
  for (uint32_t n = draw(9); n > 0; n--) {
    size_t at = strlen(out);
    snprintf(out + at, bytes - at, "%s", words[draw(all.n)]);
  }
  size_t len = strlen(out);
  if (len > 0 && draw(4) == 0) out[draw((uint32_t)len)] = (char)(1 + draw(255));
}

static void check_refusal(uint64_t round, const char *text, const yk_device_spec *d, const yk_device_spec *before) {
  const char *m = yk_error_message();
  if (memcmp(d, before, sizeof *d)) fail_msg("\"%s\" was refused, but the output was written", text);
  if (strlen(m) < 20 || strlen(m) > 300) fail_msg("\"%s\": a message of %zu characters: %s", text, strlen(m), m);
  if (!strstr(m, "expected ")) fail_msg("\"%s\": the message does not say what was expected: %s", text, m);
  for (; *m; m++)
    if (*m < ' ' || *m > '~') fail_msg("\"%s\": the message has unprintable characters", text);
  fuzz_check_message(round, "a device string");
}

static void test_any_string(void **state) {
  uint64_t taken = 0, rounds = fuzz_rounds(STRINGS);
  yk_device_spec before;
  (void)state;
  memset(&before, 0x5A, sizeof before);
  for (uint64_t i = 0; i < rounds; i++) {
    char text[256], printed[YK__DEVICE_TEXT], twice[YK__DEVICE_TEXT];
    yk_device_spec d = before, again;
    any_string(text, sizeof text);
    yk_code rc = yk__device_parse(text, &d);
    if (rc != YK_OK) {
      CHECK_INT(rc, YK_EINVAL);
      check_refusal(i, text, &d, &before);
      continue;
    }
    taken++;
    CHECK_OK(yk__device_parse(yk__device_text(&d, printed), &again));
    if (memcmp(&d, &again, sizeof d)) fail_msg("\"%s\" prints as \"%s\", which is another device", text, printed);
    assert_string_equal(yk__device_text(&again, twice), printed);
  }
  if (taken < rounds / 50 || taken > rounds * 49 / 50)
    fail_msg("%llu of %llu strings were taken: this tries one side only", (unsigned long long)taken, (unsigned long long)rounds);
}

/* Merging with itself or with nothing changes nothing; what was merged asks for no less than the inner one did. */
static void test_merging(void **state) {
  (void)state;
  for (uint64_t i = 0; i < fuzz_rounds(DEVICES); i++) {
    yk_device_spec a = any_device(), b = any_device(), c = any_device(), none = YK__ANY_DEVICE;
    yk_device_spec aa = yk__device_merge(&a, &a), an = yk__device_merge(&a, &none), na = yk__device_merge(&none, &a);
    assert_true(same(&aa, &a) && same(&an, &a) && same(&na, &a));
    yk_device_spec ab = yk__device_merge(&a, &b), bc = yk__device_merge(&b, &c);
    yk_device_spec left = yk__device_merge(&ab, &c), right = yk__device_merge(&a, &bc);
    char l[YK__DEVICE_TEXT], r[YK__DEVICE_TEXT];
    if (!same(&left, &right))
      fail_msg("nesting is not associative: \"%s\" and \"%s\"", yk__device_text(&left, l), yk__device_text(&right, r));
    assert_true(yk__device_matches(&a, &ab));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_device), cmocka_unit_test(test_any_string), cmocka_unit_test(test_merging),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
