/*
 * TFRecord files with tf.Example: those that TensorFlow wrote, those that we write, and broken ones, whose errors name file, record
 * and offset. Passing over corrupt records: how many, and what comes in their place.
 */
#include "data/files.h"
#include <unistd.h>

static const yk_feature spec[] = {
  { .name = "x", .dtype = YK_F32, .shape = { 1, { 3 } } },
  { .name = "id", .component = "number", .dtype = YK_I64, .shape = { 0, { 0 } } },
  { .name = "raw", .dtype = YK_U8, .shape = { 1, { 2 } } },
  { .name = "label", .dtype = YK_I32, .shape = { 0, { 0 } } },
};
static const yk_dataset_options with_spec = { .size = sizeof(yk_dataset_options), .nfeatures = 4, .features = spec };

typedef struct row { float x[3]; int64_t id; uint8_t raw[2]; int32_t label; } row;

static void check_numeric(const yk_dataset *d, int64_t n) {
  CHECK_INT(yk_dataset_size(d), n);
  CHECK_INT(yk_dataset_classes(d), 3);
  check_component(d, 0, "x", YK_F32, YK_SHAPE(3));
  check_component(d, 1, "number", YK_I64, YK_SCALAR);
  check_component(d, 2, "raw", YK_U8, YK_SHAPE(2));
  check_component(d, 3, "label", YK_I32, YK_SCALAR);
  for (int64_t i = 0; i < n; i++) {
    row r;
    CHECK_OK(yk_dataset_read(d, i, (void *const[]){ r.x, &r.id, r.raw, &r.label }));
    CHECK_NEAR((double)r.x[0], (double)i, 0);
    CHECK_NEAR((double)r.x[1], (double)-i, 0);
    CHECK_NEAR((double)r.x[2], 0.5 * (double)i, 0);
    CHECK_INT(r.id, -i - 1);
    CHECK_INT(r.raw[0], i);
    CHECK_INT(r.raw[1], 255 - i);
    CHECK_INT(r.label, i % 3);
  }
}

static void test_tensorflow_wrote(void **state) {
  static const char *const name[] = { "tfrecord/numeric.tfrecord", "tfrecord/numeric_gzip.tfrecord",
                                     "tfrecord/numeric_zlib.tfrecord" };
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    yk_dataset *d = opened(golden(name[i]), &with_spec, YK_TRAIN);
    assert_string_equal(yk_dataset_name(d), "tfrecord");
    check_numeric(d, 6);
    yk_dataset_free(d);
  }
  yk_dataset *d = opened(golden(name[0]), NULL, YK_TRAIN);               /* found out: texts are left out, the label comes last */
  CHECK_INT(yk_dataset_components(d), 3);
  check_component(d, 2, "label", YK_I32, YK_SCALAR);
  yk_dataset_free(d);
}

static void test_pictures(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  uint8_t image[6 * 8 * 3];
  int32_t label;
  (void)state;
  yk_dataset *d = opened(golden("tfrecord/pictures.tfrecord"), NULL, YK_TRAIN);
  CHECK_INT(yk_dataset_components(d), 2);
  check_component(d, 0, "image", YK_U8, YK_SHAPE(6, 8, 3));
  check_component(d, 1, "label", YK_I32, YK_SCALAR);
  CHECK_INT(yk_dataset_classes(d), 4);
  CHECK_OK(yk_dataset_read(d, 0, (void *const[]){ image, &label }));
  for (int y = 0; y < 6; y++)
    for (int x = 0; x < 8; x++)
      for (int k = 0; k < 3; k++) CHECK_INT(image[(y * 8 + x) * 3 + k], (y * 23 + x * 31 + k * 70 + (x - 3) * (y - 2) * 4) & 255);
  CHECK_OK(yk_dataset_read(d, 3, (void *const[]){ image, &label }));     /* of another size */
  CHECK_INT(label, 3);
  yk_dataset_free(d);
  o.height = 4;
  o.channels = 1;
  d = opened(golden("tfrecord/pictures.tfrecord"), &o, YK_TRAIN);
  check_component(d, 0, "image", YK_U8, YK_SHAPE(4, 4, 1));
  yk_dataset_free(d);
  d = opened(golden("tfrecord/raw.tfrecord"), NULL, YK_TRAIN);           /* bytes, with height, width and depth beside them */
  check_component(d, 0, "image", YK_U8, YK_SHAPE(3, 4, 3));
  CHECK_OK(yk_dataset_read(d, 0, (void *const[]){ image, &label }));
  CHECK_INT(label, 7);
  CHECK_INT(image[35], (2 * 23 + 3 * 31 + 140) & 255);
  yk_dataset_free(d);
}

/* ---- writing ---- */

static void write_numeric(const char *name, int64_t n) {
  yk_record_writer *w;
  CHECK_OK(yk_record_writer_open(in_folder(name), &w));
  for (int64_t i = 0; i < n; i++) {
    row r = { { (float)i, (float)-i, 0.5f * (float)i }, -i - 1, { (uint8_t)i, (uint8_t)(255 - i) }, (int32_t)(i % 3) };
    CHECK_OK(yk_record_write_example(w, 4, spec, (const void *const[]){ r.x, &r.id, r.raw, &r.label }));
  }
  CHECK_OK(yk_record_writer_close(w));
}

static void test_round_trip(void **state) {
  (void)state;
  write_numeric("out.tfrecord", 200);
  yk_dataset *d = opened(in_folder("out.tfrecord"), &with_spec, YK_TRAIN);
  check_numeric(d, 200);
  yk_dataset_free(d);
  /* the bytes of TensorFlow's for the same example, but for the order of the features, which a map does not have */
  size_t n, m;
  uint8_t *ours = get_all(in_folder("out.tfrecord"), &n), *theirs = get_all(golden("tfrecord/numeric.tfrecord"), &m);
  CHECK_INT(ours[0], theirs[0]);
  free(ours);
  free(theirs);
}

static void test_records(void **state) {
  static const char hello[] = "\5\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19";
  yk_record_writer *w;
  yk_record_reader *r;
  const void *bytes;
  size_t n;
  (void)state;
  CHECK_OK(yk_record_writer_open(in_folder("raw.tfrecord"), &w));
  assert_int_not_equal(access(in_folder("raw.tfrecord"), 0), 0);          /* not yet */
  CHECK_OK(yk_record_write(w, "hello", 5));
  CHECK_OK(yk_record_write(w, NULL, 0));
  CHECK_OK(yk_record_writer_close(w));
  uint8_t *all = get_all(in_folder("raw.tfrecord"), &n);
  CHECK_INT(n, 21 + 16);
  assert_memory_equal(all, hello, 21);
  free(all);
  CHECK_OK(yk_record_reader_open(in_folder("raw.tfrecord"), &r));
  CHECK_OK(yk_record_read(r, &bytes, &n));
  CHECK_INT(n, 5);
  assert_memory_equal(bytes, "hello", 5);
  CHECK_OK(yk_record_read(r, &bytes, &n));
  CHECK_INT(n, 0);
  assert_non_null(bytes);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(yk_record_read(r, &bytes, &n));
    assert_null(bytes);
  }
  yk_record_reader_close(r);
  CHECK_OK(yk_record_reader_open(golden("tfrecord/numeric_gzip.tfrecord"), &r));
  for (int i = 0; i < 6; i++) {
    CHECK_OK(yk_record_read(r, &bytes, &n));
    assert_non_null(bytes);
  }
  yk_record_reader_close(r);
  yk_record_reader_close(NULL);
  CHECK_OK(yk_record_writer_open(in_folder("dropped.tfrecord"), &w));
  CHECK_OK(yk_record_write(w, "x", 1));
  yk_record_writer_drop(w);
  yk_record_writer_drop(NULL);
  CHECK_OK(yk_record_writer_close(NULL));
  assert_int_not_equal(access(in_folder("dropped.tfrecord"), 0), 0);
  CHECK_CODE(yk_record_writer_open(in_folder("no/such/folder"), &w), YK_EIO, "no/such/folder' cannot be created");
  CHECK_CODE(yk_record_reader_open(in_folder("absent"), &r), YK_ENOTFOUND, "absent'");
  CHECK_CODE(yk_record_write(NULL, "x", 1), YK_EINVAL, "needs a writer");
  CHECK_CODE(yk_record_writer_open(NULL, &w), YK_EINVAL, "needs a path");
  CHECK_CODE(yk_record_reader_open(NULL, &r), YK_EINVAL, "needs a path");
  CHECK_CODE(yk_record_read(NULL, &bytes, &n), YK_EINVAL, "needs a reader");
}

static void test_refused_features(void **state) {
  yk_record_writer *w;
  yk_feature f = { .name = "h", .dtype = YK_BF16, .shape = YK_SCALAR };
  (void)state;
  CHECK_OK(yk_record_writer_open(in_folder("f.tfrecord"), &w));
  CHECK_CODE(yk_record_write_example(w, 1, &f, (const void *const[]){ "" }), YK_EINVAL, "feature 'h' is bf16");
  f.dtype = YK_F32;
  CHECK_CODE(yk_record_write_example(w, 1, &f, (const void *const[]){ NULL }), YK_EINVAL, "a name and a value");
  f.shape = YK_SHAPE(-1);
  CHECK_CODE(yk_record_write_example(w, 1, &f, (const void *const[]){ "" }), YK_EINVAL, "dimension of -1");
  CHECK_CODE(yk_record_write_example(w, 1, NULL, NULL), YK_EINVAL, "needs a writer, features");
  yk_record_writer_drop(w);
}

/* Every kind there and back, at its limits. */
static void test_kinds(void **state) {
  static const double f64[2] = { 0.5, -1e10 };
  static const int64_t i64[2] = { INT64_MIN, INT64_MAX };
  static const int32_t i32[2] = { INT32_MIN, INT32_MAX };
  static const uint8_t flags[2] = { 1, 0 };
  static const float missing[2] = { 3, 4 };
  yk_feature f[] = {
    { .name = "f64", .dtype = YK_F64, .shape = YK_SHAPE(2) }, { .name = "i64", .dtype = YK_I64, .shape = YK_SHAPE(2) },
    { .name = "i32", .dtype = YK_I32, .shape = YK_SHAPE(2) }, { .name = "flag", .dtype = YK_BOOL, .shape = YK_SHAPE(2) },
    { .name = "gone", .dtype = YK_F32, .shape = YK_SHAPE(2), .missing = missing },
  };
  yk_dataset_options o = { .size = sizeof o, .nfeatures = 5, .features = f };
  yk_record_writer *w;
  double a[2];
  int64_t b[2];
  int32_t c[2];
  uint8_t e[2];
  float g[2];
  (void)state;
  CHECK_OK(yk_record_writer_open(in_folder("kinds.tfrecord"), &w));
  CHECK_OK(yk_record_write_example(w, 4, f, (const void *const[]){ f64, i64, i32, flags }));
  CHECK_OK(yk_record_writer_close(w));
  yk_dataset *d = opened(in_folder("kinds.tfrecord"), &o, YK_TRAIN);
  CHECK_OK(yk_dataset_read(d, 0, (void *const[]){ a, b, c, e, g }));
  CHECK_NEAR(a[1], (double)-1e10f, 0);
  assert_memory_equal(b, i64, sizeof b);
  assert_memory_equal(c, i32, sizeof c);
  assert_memory_equal(e, flags, sizeof e);
  assert_memory_equal(g, missing, sizeof g);
  yk_dataset_free(d);
  f[1].dtype = YK_I32;
  d = opened(in_folder("kinds.tfrecord"), &o, YK_TRAIN);
  CHECK_CODE(yk_dataset_read(d, 0, (void *const[]){ a, b, c, e, g }), YK_ECORRUPT,
             "kinds.tfrecord': record 0 (offset 0): feature 'i64': value 0 is -9223372036854775808, which is no i32");
  yk_dataset_free(d);
  f[1].dtype = YK_I64;
  f[4].missing = NULL;
  d = opened(in_folder("kinds.tfrecord"), &o, YK_TRAIN);
  CHECK_CODE(yk_dataset_read(d, 0, (void *const[]){ a, b, c, e, g }), YK_ECORRUPT, "feature 'gone': is missing");
  yk_dataset_free(d);
  f[4].name = "i32";
  f[4].component = "again";
  d = opened(in_folder("kinds.tfrecord"), &o, YK_TRAIN);
  CHECK_CODE(yk_dataset_read(d, 0, (void *const[]){ a, b, c, e, g }), YK_ECORRUPT,
             "feature 'i32': holds integers; expected floats for f32");
  yk_dataset_free(d);
  f[4].component = "i64";
  REFUSED(in_folder("kinds.tfrecord"), &o, YK_TRAIN, YK_EINVAL, "two components are called 'i64'");
  f[4] = (yk_feature){ .name = "flag", .component = "again", .dtype = YK_I64, .shape = YK_SHAPE(3) };
  d = opened(in_folder("kinds.tfrecord"), &o, YK_TRAIN);
  CHECK_CODE(yk_dataset_read(d, 0, (void *const[]){ a, b, c, e, b }), YK_ECORRUPT, "feature 'flag': has 2 values; expected 3");
  yk_dataset_free(d);
  f[4].dtype = YK_F16;
  REFUSED(in_folder("kinds.tfrecord"), &o, YK_TRAIN, YK_EINVAL, "feature 'flag' is asked for as f16");
  f[4].dtype = YK_F32;
  f[4].shape = YK_SHAPE(INT64_MAX, 2);
  REFUSED(in_folder("kinds.tfrecord"), &o, YK_TRAIN, YK_EINVAL, "2^40 elements at most");
}

/* ---- broken files ---- */

static void test_broken(void **state) {
  size_t n;
  (void)state;
  write_numeric("whole.tfrecord", 5);
  uint8_t *b = get_all(in_folder("whole.tfrecord"), &n);
  size_t one = n / 5;
  char offset[32];
#define BROKEN(length, code, ...)                                                                                                  \
  put("b.tfrecord", b, length), REFUSED(in_folder("b.tfrecord"), &with_spec, YK_TRAIN, code, "b.tfrecord'", __VA_ARGS__)
  BROKEN(0, YK_ECORRUPT, "is empty");
  snprintf(offset, sizeof offset, "offset %zu", 4 * one);
  BROKEN(n - 1, YK_ECORRUPT, "record 4", offset, "cut off");
  BROKEN(4 * one + 5, YK_ECORRUPT, "record 4", offset, "cut off after 5 bytes");
  snprintf(offset, sizeof offset, "offset %zu", 2 * one);
  b[2 * one + 2] ^= 1;                                                    /* length */
  BROKEN(n, YK_ECORRUPT, "record 2", offset, "checksum of its length");
  b[2 * one + 2] ^= 1;
  b[2 * one + 20] ^= 1;                                                   /* data: met when they are read */
  yk_dataset_options o = with_spec;
  o.classes = 3;
  put("b.tfrecord", b, n);
  yk_dataset *d = opened(in_folder("b.tfrecord"), &o, YK_TRAIN);
  row r;
  CHECK_OK(yk_dataset_read(d, 1, (void *const[]){ r.x, &r.id, r.raw, &r.label }));
  CHECK_CODE(yk_dataset_read(d, 2, (void *const[]){ r.x, &r.id, r.raw, &r.label }), YK_ECORRUPT, offset);
  CHECK_CODE(yk_dataset_read(d, 5, (void *const[]){ r.x, &r.id, r.raw, &r.label }), YK_EINVAL, "there is no example 5");
  yk_dataset_free(d);
  BROKEN(n, YK_ECORRUPT, "record 2", offset, "checksum of its data is");  /* or when labels are counted */
  b[2 * one + 20] ^= 1;
  o.classes = 2;
  put("b.tfrecord", b, n);
  d = opened(in_folder("b.tfrecord"), &o, YK_TRAIN);
  CHECK_CODE(yk_dataset_read(d, 2, (void *const[]){ r.x, &r.id, r.raw, &r.label }), YK_ECORRUPT,
             "feature 'label' is 2; expected a class from 0 to 1");
  yk_dataset_free(d);
  free(b);
}

/* A record of these bytes. */
static void put_record(const char *name, const void *bytes, size_t n) {
  yk_record_writer *w;
  CHECK_OK(yk_record_writer_open(in_folder(name), &w));
  CHECK_OK(yk_record_write(w, bytes, n));
  CHECK_OK(yk_record_writer_close(w));
}

static void test_malformed_examples(void **state) {
  static const struct { const char *bytes; size_t n; const char *text; } bad[] = {
    { "\x0A\x05x", 3, "it is no tf.Example" },
    { "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 11, "it is no tf.Example" },
    { "\x0B", 1, "it is no tf.Example" },
    { "\x0A\x02\x0A\x09", 4, "its features are malformed" },
    { "\x0A\x04\x0A\x02\x0A\x09", 6, "a feature of it is malformed" },
    { "", 0, "feature 'x': is missing" },
  };
  static const yk_feature f = { .name = "x", .dtype = YK_F32 };
  yk_dataset_options o = { .size = sizeof o, .nfeatures = 1, .features = &f };
  float x;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    put_record("m.tfrecord", bad[i].bytes, bad[i].n);
    yk_dataset *d = opened(in_folder("m.tfrecord"), &o, YK_TRAIN);
    CHECK_CODE(yk_dataset_read(d, 0, (void *const[]){ &x }), YK_ECORRUPT, bad[i].text);
    yk_dataset_free(d);
  }
  /* {x: float_list: one value, unpacked}, and behind it an unknown field, which is stepped over */
  put_record("m.tfrecord", "\x0A\x10\x0A\x0E\x0A\x01x\x12\x09\x12\x07\x0D\x00\x00\x00\x40\x10\x01", 18);
  yk_dataset *d = opened(in_folder("m.tfrecord"), &o, YK_TRAIN);
  CHECK_OK(yk_dataset_read(d, 0, (void *const[]){ &x }));
  CHECK_NEAR((double)x, 2, 0);
  yk_dataset_free(d);
  o = (yk_dataset_options){ .size = sizeof o, .label = "y" };
  REFUSED(in_folder("m.tfrecord"), &o, YK_TRAIN, YK_EINVAL, "no feature 'y'");
  put_record("m.tfrecord", "", 0);
  REFUSED(in_folder("m.tfrecord"), NULL, YK_TRAIN, YK_EINVAL, "no feature of it is a picture or numbers");
}

/* ---- passing over ---- */

static void test_skipping(void **state) {
  yk_dataset_options o = with_spec;
  const char *first;
  size_t n;
  (void)state;
  write_numeric("skip.tfrecord", 10);
  uint8_t *b = get_all(in_folder("skip.tfrecord"), &n);
  size_t one = n / 10;
  b[3 * one + 30] ^= 1;
  b[4 * one + 30] ^= 1;
  b[8 * one] ^= 1;                                                        /* a length: what follows is lost with it */
  put("skip.tfrecord", b, n);
  o.skip = 3;
  yk_dataset *d = opened(in_folder("skip.tfrecord"), &o, YK_TRAIN);
  CHECK_INT(yk_dataset_size(d), 8);
  CHECK_INT(yk_dataset_skipped(d, NULL), 1);
  for (int again = 0; again < 2; again++)
    for (int64_t i = 0; i < 8; i++) {
      row r;
      CHECK_OK(yk_dataset_read(d, i, (void *const[]){ r.x, &r.id, r.raw, &r.label }));
      CHECK_INT(-r.id - 1, i == 3 || i == 4 ? 5 : i);
    }
  CHECK_INT(yk_dataset_skipped(d, &first), 3);
  if (strstr(first, "record 8") == NULL) fail_msg("the first is told as \"%s\"", first);
  yk_dataset_free(d);
  o.skip = 2;
  d = opened(in_folder("skip.tfrecord"), &o, YK_TRAIN);
  row r;
  CHECK_CODE(yk_dataset_read(d, 3, (void *const[]){ r.x, &r.id, r.raw, &r.label }), YK_ECORRUPT, "more than 2 corrupt records: ");
  yk_dataset_free(d);
  for (size_t i = 0; i < 8; i++) b[i * one + 30] ^= (uint8_t)(i == 3 || i == 4 ? 0 : 1);
  put("skip.tfrecord", b, n);
  o.skip = 100;
  o.classes = 3;
  d = opened(in_folder("skip.tfrecord"), &o, YK_TRAIN);
  CHECK_CODE(yk_dataset_read(d, 0, (void *const[]){ r.x, &r.id, r.raw, &r.label }), YK_ECORRUPT, "all 8 records are corrupt");
  yk_dataset_free(d);
  free(b);
}

static void test_shards(void **state) {
  yk_dataset_options o = with_spec;
  (void)state;
  for (int i = 0; i < 70; i++) {                                          /* more than are kept open */
    char name[64];
    snprintf(name, sizeof name, "shards/train-%05d-of-00070.tfrecord", i);
    put_text(name, "");
    write_numeric(name, 3);
  }
  write_numeric("shards/val-0.tfrecord", 2);
  yk_dataset *d = opened(in_folder("shards"), &o, YK_TRAIN);
  CHECK_INT(yk_dataset_size(d), 210);
  for (int64_t i = 0; i < 210; i++) {
    row r;
    CHECK_OK(yk_dataset_read(d, i, (void *const[]){ r.x, &r.id, r.raw, &r.label }));
    CHECK_INT(r.id, -(i % 3) - 1);
  }
  yk_dataset_free(d);
  d = opened(in_folder("shards"), &o, YK_TEST);
  CHECK_INT(yk_dataset_size(d), 2);
  yk_dataset_free(d);
}

static void test_bomb(void **state) {
  yk_dataset_options o = with_spec;
  (void)state;
  o.max_bytes = 100;
  REFUSED(golden("tfrecord/numeric_gzip.tfrecord"), &o, YK_TRAIN, YK_ECORRUPT, "inflates to more than the 100 bytes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_tensorflow_wrote), cmocka_unit_test(test_pictures), cmocka_unit_test(test_round_trip), cmocka_unit_test(test_records),
    cmocka_unit_test(test_refused_features), cmocka_unit_test(test_kinds), cmocka_unit_test(test_broken), cmocka_unit_test(test_malformed_examples),
    cmocka_unit_test(test_skipping), cmocka_unit_test(test_shards), cmocka_unit_test(test_bomb),
  };
  return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
