/*
 * Files from outside: safetensors and CIFAR-10, changed in every way that fuzz.h knows. A file is read, and then written and
 * read again it is the same, or it is refused with one message that names it, and nothing is left in memory.
 */
#include "support/fuzz.h"

#include <unistd.h>
#include "base/alloc.h"
#include "store/header.h"
#include "store/safetensors.h"
#include <yoke/data.h>

enum { RECORD = 3073, ROOM = 4096 };

static char folder[64], path[128], again[128];

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-fuzz-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static int teardown(void **state) {
  (void)state;
  return rmdir(folder);                              /* fails if anything was left behind */
}

static void put(const void *bytes, size_t n) {
  unlink(path);                                      /* a disk hurries when a file is overwritten, not when it is new */
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

static size_t get(const char *from, uint8_t *bytes, size_t room) {
  FILE *f = fopen(from, "rb");
  assert_non_null(f);
  size_t n = fread(bytes, 1, room, f);
  fclose(f);
  return n;
}

static const char *const words[] = {
  "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u0041", "\\ud800", "\\n", "\"dtype\":\"F32\"", "\"shape\":[",
    "\"data_offsets\":[0,4]", "\"__metadata__\":{", "\"F64\"",
  "9223372036854775807", "9223372036854775808", "-1", "0", "01", "1e3", "null", "true", "\xC3\xA9", "\xFF",
    ",\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", NULL
};

/* Everything that a reader hands out is looked at; then it is saved, and what was saved is read to be the same. */
static void check_read(uint64_t round, yk_safetensors *f) {
  size_t n = yk__safetensors_count(f);
  yk_saved *list = calloc(n + 1, sizeof *list);
  yk_safetensors *g = NULL;
  assert_non_null(list);
  for (size_t i = 0; i < n; i++) {
    yk_tensor *t = NULL;
    list[i].name = yk__safetensors_name(f, i);
    CHECK_OK(yk__safetensors_get(f, list[i].name, &t));
    list[i].tensor = t;
  }
  yk_code rc = yk__safetensors_write(again, n, list);
  if (rc == YK_OK) rc = yk__safetensors_open(again, &g);
  bool no_name = false;                              /* the format has names of no characters; we refuse to write one */
  for (size_t i = 0; i < n; i++) no_name |= !list[i].name[0];
  if (rc != YK_OK && !no_name) fail_msg("round %llu: read, but not to be saved and read again: %s", (unsigned long long)round,
                                        yk_error_message());
  for (size_t i = 0; i < n && rc == YK_OK; i++) {
    yk_tensor *t = NULL;
    CHECK_OK(yk__safetensors_get(g, list[i].name, &t));
    CHECK_INT(yk_tensor_bytes(t), yk_tensor_bytes(list[i].tensor));
    assert_memory_equal(yk_tensor_desc(t), yk_tensor_desc(list[i].tensor), sizeof(yk_desc));
    if (yk_tensor_bytes(t)) assert_memory_equal(yk_tensor_data(t), yk_tensor_data(list[i].tensor), yk_tensor_bytes(t));
    yk_tensor_free(t);
  }
  yk__safetensors_close(g);
  for (size_t i = 0; i < n; i++) yk_tensor_free((yk_tensor *)(uintptr_t)list[i].tensor);
  free(list);
  yk_error_clear();
}

static size_t sample(uint8_t *bytes) {
  static const float w[6] = { 1, -2, 3.5f, 0, 1e-30f, -1e30f };
  yk_tensor *a, *b;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2, 3), w, &a));
  CHECK_OK(yk_tensor_new(YK_I64, YK_SCALAR, &b));
  CHECK_OK(yk__safetensors_write(path, 2, (yk_saved[]){ { "conv1/weights", a }, { "odd \"name\"", b } }));
  yk_tensor_free(a);
  yk_tensor_free(b);
  return get(path, bytes, ROOM);
}

/* The header is changed, and its length told truly most of the time, so that the changes get past the first check. */
static size_t change(fuzz *f, uint8_t *bytes, size_t n) {
  uint8_t header[ROOM];
  size_t length = n > 8 ? (size_t)bytes[0] | (size_t)bytes[1] << 8 : 0;
  if (fuzz_below(f, 4) == 0 || length > n - 8) return fuzz_mutate(f, bytes, n, ROOM, fuzz_count(words));
  size_t data = n - 8 - length;
  memcpy(header, bytes + 8, length);
  size_t now = fuzz_mutate(f, header, length, ROOM - 8 - data, fuzz_count(words));
  memmove(bytes + 8 + now, bytes + 8 + length, data);
  memcpy(bytes + 8, header, now);
  bytes[0] = (uint8_t)now;
  bytes[1] = (uint8_t)(now >> 8);
  return 8 + now + data;
}

static void test_safetensors(void **state) {
  fuzz f = { 11 };
  uint8_t good[ROOM], bytes[ROOM];
  uint64_t rounds = fuzz_rounds(6000), read = 0;
  (void)state;
  snprintf(path, sizeof path, "%s/t", folder);
  snprintf(again, sizeof again, "%s/again", folder);
  size_t size = sample(good);
  uint64_t live = yk__alloc_live();
  for (uint64_t round = 0; round < rounds; round++) {
    yk_safetensors *file = NULL;
    memcpy(bytes, good, size);
    put(bytes, change(&f, bytes, size));
    yk_code rc = yk__safetensors_open(path, &file);
    if (rc == YK_OK) {
      read++;
      check_read(round, file);
    } else {
      assert_null(file);
      if (rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED) fail_msg("round %llu: %s", (unsigned long long)round, yk_error_message());
      if (!strstr(yk_error_message(), path)) fail_msg("round %llu: \"%s\" does not name the file", (unsigned long long)round,
                                                      yk_error_message());
      fuzz_check_message(round, "a safetensors file");
    }
    yk__safetensors_close(file);
    CHECK_INT(yk__alloc_live(), live);
  }
  remove(again);
  CHECK_INT(remove(path), 0);
  if (read < rounds / 100 || read > rounds * 3 / 4) fail_msg("%llu of %llu were read", (unsigned long long)read,
                                                             (unsigned long long)rounds);
}

/* The header parser alone, without a file around it: many more rounds. */
static void test_headers(void **state) {
  static const char *const starts[] = {
    "{}", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[0,2]},"
    "\"b\\u00e9\":{\"data_offsets\":[2,2],\"shape\":[0,9],\"dtype\":\"BOOL\"}}  ", NULL
  };
  fuzz f = { 12 };
  uint64_t rounds = fuzz_rounds(80000), read = 0, live = yk__alloc_live();
  (void)state;
  for (uint64_t round = 0; round < rounds; round++) {
    char text[600];
    yk_st_header h = { 0 };
    fuzz_text(&f, text, sizeof text, fuzz_count(starts), fuzz_count(words));
    size_t n = strlen(text);
    char *tight = malloc(n ? n : 1);                 /* so that one byte too far is seen */
    assert_non_null(tight);
    memcpy(tight, text, n);
    if (yk__st_parse(tight, n, &h) == YK_OK) read++;
    else fuzz_check_message(round, "a header");
    yk__st_free(&h);
    free(tight);
    CHECK_INT(yk__alloc_live(), live);
  }
  if (read < rounds / 200 || read > rounds * 3 / 4) fail_msg("%llu of %llu were read", (unsigned long long)read,
                                                             (unsigned long long)rounds);
}

/* CIFAR-10: any bytes of a whole number of records with labels below 10 are pictures; nothing else is. */
static void test_cifar10(void **state) {
  enum { MOST = 3 * RECORD + 50 };
  static uint8_t bytes[MOST];
  static const char *const none[] = { NULL };
  fuzz f = { 13 };
  uint64_t rounds = fuzz_rounds(3000), live = yk__alloc_live(), read = 0;
  (void)state;
  snprintf(path, sizeof path, "%s/test_batch.bin", folder);
  for (uint64_t round = 0; round < rounds; round++) {
    yk_dataset *d = NULL;
    size_t n = (1 + fuzz_below(&f, 3)) * RECORD;
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(i % RECORD == 0 ? fuzz_below(&f, 10) : i * 7);
    switch (fuzz_below(&f, 3)) {
      case 0: n = fuzz_mutate(&f, bytes, n, MOST, fuzz_count(none)); break;
      case 1: bytes[fuzz_below(&f, (uint32_t)n)] = (uint8_t)fuzz_below(&f, 256); break;
      default: bytes[fuzz_below(&f, (uint32_t)(n / RECORD)) * RECORD] = (uint8_t)fuzz_below(&f, 14); break;
    }
    bool good = n > 0 && n % RECORD == 0;
    for (size_t i = 0; i < n; i += RECORD) good = good && bytes[i] < 10;
    put(bytes, n);
    yk_code rc = yk_dataset_cifar10(folder, YK_TEST, &d);
    if ((rc == YK_OK) != good) fail_msg("round %llu: %zu bytes: %s (%s)", (unsigned long long)round, n, yk_code_name(rc),
                                        yk_error_message());
    if (good) {
      read++;
      CHECK_INT(yk_dataset_size(d), n / RECORD);
      for (int64_t i = 0; i < yk_dataset_size(d); i++) CHECK_INT(yk_dataset_label(d, i), bytes[i * RECORD]);
      CHECK_INT(yk_dataset_image(d, 0)[1], bytes[1 + 1024]);
    } else {
      CHECK_INT(rc, YK_ECORRUPT);
      assert_null(d);
      if (!strstr(yk_error_message(), path)) fail_msg("round %llu: \"%s\" does not name the file", (unsigned long long)round,
                                                      yk_error_message());
      fuzz_check_message(round, "a CIFAR-10 file");
    }
    yk_dataset_free(d);
    CHECK_INT(yk__alloc_live(), live);
  }
  CHECK_INT(remove(path), 0);
  if (read < rounds / 10) fail_msg("only %llu of %llu were read", (unsigned long long)read, (unsigned long long)rounds);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_headers), cmocka_unit_test(test_safetensors),
                                      cmocka_unit_test(test_cifar10) };
  return cmocka_run_group_tests(tests, setup, teardown);
}
