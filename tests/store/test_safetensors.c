/*
 * Safetensors files: what is written is read back bit for bit, by the format's own rules; every file that is cut off or
 * changed is refused with a message, and no failure leaves a file behind.
 */
#include "support/check.h"

#include <sys/stat.h>
#include <unistd.h>
#include "base/alloc.h"
#include "store/safetensors.h"

static char folder[64], path[96];

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-store-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/t.safetensors", folder);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  remove(path);
  return rmdir(folder);                              /* fails if anything else was left behind */
}

static void put(const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

/* A file of this header and n zero bytes. */
static void put_header(const char *header, size_t n) {
  static uint8_t file[8192];
  size_t length = strlen(header);
  memset(file, 0, sizeof file);
  for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)length >> 8 * i);
  memcpy(file + 8, header, length);
  put(file, 8 + length + n);
}

static void write_sample(void) {
  static const float w[6] = { 1, -2, 3.5f, 0, 1e-30f, -1e30f };
  static const int64_t step = 1234567890123;
  static const uint8_t u[3] = { 0, 128, 255 };
  yk_tensor *a, *b, *c, *d;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2, 3), w, &a));
  CHECK_OK(yk_tensor_from(YK_I64, YK_SCALAR, &step, &b));
  CHECK_OK(yk_tensor_from(YK_U8, YK_SHAPE(3), u, &c));
  CHECK_OK(yk_tensor_new(YK_BF16, YK_SHAPE(4, 0), &d));
  const yk_saved list[] = { { "conv1/weights", a }, { "global_step", b }, { "odd \"name\"\\\t", c }, { "none", d } };
  CHECK_OK(yk__safetensors_write(path, 4, list));
  yk_tensor_free(a);
  yk_tensor_free(b);
  yk_tensor_free(c);
  yk_tensor_free(d);
}

static void test_round_trip(void **state) {
  yk_safetensors *f;
  yk_tensor *t;
  (void)state;
  write_sample();
  CHECK_OK(yk__safetensors_open(path, &f));
  CHECK_INT(yk__safetensors_count(f), 4);
  assert_string_equal(yk__safetensors_name(f, 0), "conv1/weights");
  assert_null(yk__safetensors_name(f, 4));
  CHECK_OK(yk__safetensors_get(f, "conv1/weights", &t));
  CHECK_INT(yk_tensor_desc(t)->rank, 2);
  CHECK_INT(yk_tensor_desc(t)->dim[1], 3);
  CHECK_NEAR(yk_tensor_at(t, 2), 3.5, 0);
  CHECK_NEAR(yk_tensor_at(t, 5), (double)-1e30f, 0);
  yk_tensor_free(t);
  CHECK_OK(yk__safetensors_get(f, "global_step", &t));
  CHECK_INT(*(const int64_t *)yk_tensor_data(t), 1234567890123);
  yk_tensor_free(t);
  CHECK_OK(yk__safetensors_get(f, "odd \"name\"\\\t", &t));
  CHECK_INT(((const uint8_t *)yk_tensor_data(t))[2], 255);
  yk_tensor_free(t);
  CHECK_INT(yk__safetensors_desc(f, "none")->dtype, YK_BF16);
  CHECK_CODE(yk__safetensors_get(f, "conv1/weight", &t), YK_ENOTFOUND, "no tensor 'conv1/weight'");
  yk__safetensors_close(f);
  yk__safetensors_close(NULL);
}

/* The bytes that the format promises to other readers. */
static void test_bytes(void **state) {
  static const uint8_t want[] = "\70\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}   \7\11";
  static const uint8_t two[2] = { 7, 9 };
  uint8_t got[128];
  yk_tensor *t;
  (void)state;
  CHECK_OK(yk_tensor_from(YK_U8, YK_SHAPE(2), two, &t));
  CHECK_OK(yk__safetensors_write(path, 1, &(yk_saved){ "a", t }));
  yk_tensor_free(t);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  CHECK_INT(fread(got, 1, sizeof got, f), sizeof want - 1);
  fclose(f);
  assert_memory_equal(got, want, sizeof want - 1);
}

static void test_write_refuses(void **state) {
  struct stat s;
  yk_tensor *t;
  (void)state;
  remove(path);
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2), &t));
  CHECK_CODE(yk__safetensors_write(path, 2, (yk_saved[]){ { "a", t }, { "a", t } }), YK_EINVAL, "'a'");
  CHECK_CODE(yk__safetensors_write(path, 1, &(yk_saved){ "", t }), YK_EINVAL, "no name");
  CHECK_CODE(yk__safetensors_write(path, 1, &(yk_saved){ "a", NULL }), YK_EINVAL, "'a'");
  CHECK_CODE(yk__safetensors_write("/proc/none/x", 1, &(yk_saved){ "a", t }), YK_EIO, "'/proc/none/x'");
  CHECK_INT(stat(path, &s), -1);
  CHECK_INT(mkdir(path, 0777), 0);                   /* in the way of the rename: the temporary file goes again */
  CHECK_CODE(yk__safetensors_write(path, 1, &(yk_saved){ "a", t }), YK_EIO, "cannot be written");
  CHECK_INT(rmdir(path), 0);
  yk_tensor_free(t);
}

static void test_missing(void **state) {
  yk_safetensors *f = NULL;
  (void)state;
  remove(path);
  CHECK_CODE(yk__safetensors_open(path, &f), YK_ENOTFOUND, path);
  CHECK_CODE(yk__safetensors_open(folder, &f), YK_EIO, folder);
  assert_null(f);
}

/* Cut anywhere, a file is refused: at no length does it look whole. */
static void test_every_truncation(void **state) {
  uint8_t whole[1024];
  (void)state;
  write_sample();
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(whole, 1, sizeof whole, file);
  fclose(file);
  assert_true(n > 100 && n < sizeof whole);
  for (size_t cut = 0; cut < n; cut++) {
    yk_safetensors *f = NULL;
    put(whole, cut);
    CHECK_CODE(yk__safetensors_open(path, &f), YK_ECORRUPT, path);
    assert_null(f);
  }
  whole[n] = 0;
  put(whole, n + 1);
  yk_safetensors *f = NULL;
  CHECK_CODE(yk__safetensors_open(path, &f), YK_ECORRUPT, "the tensors take");
}

/* Any single byte of the header changed: read or refused, but never a crash or a read outside (sanitizers look on). */
static void test_every_changed_byte(void **state) {
  static const uint8_t values[] = { 0, '"', '{', '}', '[', ',', '9', '\\', 0xFF };
  uint8_t whole[1024];
  size_t refused = 0;
  (void)state;
  write_sample();
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(whole, 1, sizeof whole, file);
  fclose(file);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < sizeof values; k++) {
      uint8_t old = whole[i];
      yk_safetensors *f = NULL;
      whole[i] = values[k];
      put(whole, n);
      if (yk__safetensors_open(path, &f) != YK_OK) refused++;
      yk__safetensors_close(f);
      yk_error_clear();
      whole[i] = old;
    }
  assert_true(refused > n);
}

static void test_headers(void **state) {
  static const struct { const char *header; size_t bytes; yk_code code; const char *text; } bad[] = {
    { "", 0, YK_ECORRUPT, "expected '{'" },
    { "[]", 0, YK_ECORRUPT, "expected '{'" },
    { "{} x", 0, YK_ECORRUPT, "nothing behind" },
    { "{\"a\"}", 0, YK_ECORRUPT, "':'" },
    { "{\"a\":1}", 0, YK_ECORRUPT, "'{'" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, YK_ECORRUPT, "data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "once each" },
    { "{\"a\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, YK_EUNSUPPORTED, "'F8'" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "',' or ']'" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "2^63" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, YK_ECORRUPT, "too large" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "no more numbers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, YK_ECORRUPT, "needs 8 bytes" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, YK_ECORRUPT, "offsets 4 to 0" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 4, YK_ECORRUPT, "cut off" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, YK_ECORRUPT, "no more numbers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, YK_ECORRUPT, "two offsets" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
      YK_ECORRUPT, "twice" },
    { "{\"a\\u0000\":{}}", 0, YK_ECORRUPT, "escape" },
    { "{\"a\\q\":{}}", 0, YK_ECORRUPT, "escape" },
    { "{\"__metadata__\":{\"x\":1}}", 0, YK_ECORRUPT, "string" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2,
      YK_ECORRUPT, "overlaps" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    yk_safetensors *f = NULL;
    put_header(bad[i].header, bad[i].bytes);
    CHECK_CODE(yk__safetensors_open(path, &f), bad[i].code, bad[i].text);
    assert_null(f);
  }
}

/* What other writers do: metadata, blanks, escapes, tensors in another order than their names. */
static void test_foreign_headers(void **state) {
  yk_safetensors *f;
  (void)state;
  put_header("{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\\n\"}, \"b\\u00e9\" : {\"shape\":[ 2 ],\"dtype\":\"F32\",\"data_offsets\":[4,12]},\n"
             "\"a\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}   ", 12);
  CHECK_OK(yk__safetensors_open(path, &f));
  CHECK_INT(yk__safetensors_count(f), 2);
  assert_non_null(yk__safetensors_desc(f, "b\xC3\xA9"));
  CHECK_INT(yk__safetensors_desc(f, "a")->rank, 0);
  yk__safetensors_close(f);
  put_header("{}", 0);
  CHECK_OK(yk__safetensors_open(path, &f));
  CHECK_INT(yk__safetensors_count(f), 0);
  yk__safetensors_close(f);
}

/* Each allocation may fail: ENOMEM, nothing lost, the file of before still there. */
static void test_out_of_memory(void **state) {
  (void)state;
  write_sample();
  uint64_t live = yk__alloc_live();
  for (uint64_t n = 1;; n++) {
    yk_safetensors *f = NULL;
    yk__alloc_fail_at(n);
    yk_code rc = yk__safetensors_open(path, &f);
    yk__alloc_fail_at(0);
    yk__safetensors_close(f);
    CHECK_INT(yk__alloc_live(), live);
    if (rc == YK_OK) break;
    CHECK_INT(rc, YK_ENOMEM);
  }
  yk_tensor *t;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2), &t));
  live = yk__alloc_live();
  for (uint64_t n = 1;; n++) {
    yk__alloc_fail_at(n);
    yk_code rc = yk__safetensors_write(path, 1, &(yk_saved){ "a", t });
    yk__alloc_fail_at(0);
    CHECK_INT(yk__alloc_live(), live);
    if (rc == YK_OK) break;
    CHECK_INT(rc, YK_ENOMEM);
  }
  yk_tensor_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_round_trip), cmocka_unit_test(test_bytes), cmocka_unit_test(test_write_refuses),
        cmocka_unit_test(test_missing),
    cmocka_unit_test(test_every_truncation), cmocka_unit_test(test_every_changed_byte), cmocka_unit_test(test_headers),
    cmocka_unit_test(test_foreign_headers), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
