/*
 * Data files from outside: IDX, NumPy, zip, CSV, TFRecord, JPEG and PNG, changed in every way that fuzz.h knows. A file is opened and
 * all its examples are read, or it is refused with one message that names it; nothing is left in memory either way.
 */
#include "support/fuzz.h"

#include <sys/stat.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/crc32c.h"
#include <yoke/data.h>

enum { ROOM = 1 << 14, MOST_EXAMPLE = 1 << 16 };

static char folder[64], path[128];

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-fuzz-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static int teardown(void **state) {
  (void)state;
  return rmdir(folder);                              /* fails if anything was left behind */
}

static void put(const uint8_t *bytes, size_t n) {
  unlink(path);                                      /* a disk hurries when a file is overwritten, not when it is new */
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

static size_t golden(const char *name, uint8_t *bytes) {
  char from[512];
  snprintf(from, sizeof from, "%s/golden/data/%s", getenv("YOKE_TEST_DATA"), name);
  FILE *f = fopen(from, "rb");
  if (f == NULL) fail_msg("%s cannot be read", from);
  size_t n = fread(bytes, 1, ROOM, f);
  fclose(f);
  assert_true(n < ROOM);
  return n;
}

static void check_message(uint64_t round, yk_code rc) {
  if (rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED && rc != YK_EINVAL && rc != YK_ENOMEM)
    fail_msg("round %llu: %s: %s", (unsigned long long)round, yk_code_name(rc), yk_error_message());
  if (rc != YK_ENOMEM && strstr(yk_error_message(), folder) == NULL)
    fail_msg("round %llu: \"%s\" does not name the file", (unsigned long long)round, yk_error_message());
  fuzz_check_message(round, "a data file");
}

/* Read what there is; examples may be large where a shape was changed, then only the first is looked at for its size. */
static void read_examples(uint64_t round, const yk_dataset *d) {
  static uint8_t room[YK_MAX_COMPONENTS][MOST_EXAMPLE];
  void *out[YK_MAX_COMPONENTS];
  for (uint32_t k = 0; k < yk_dataset_components(d); k++) {
    const yk_desc *c = yk_dataset_component(d, k);
    int64_t bytes = (int64_t)yk_dtype_bytes((yk_dtype)c->dtype);
    for (int i = 0; i < c->rank; i++) bytes *= c->dim[i];
    if (bytes > MOST_EXAMPLE) return;
    out[k] = room[k];
  }
  for (int64_t i = 0; i < yk_dataset_size(d) && i < 50; i++) {
    yk_code rc = yk_dataset_read(d, i, out);
    if (rc != YK_OK) check_message(round, rc);
    else if (yk_dataset_classes(d) > 0 && yk_dataset_label(d, i) >= yk_dataset_classes(d))
      fail_msg("round %llu: label out of range",
                                                                                                    (unsigned long long)round);
  }
}

/* What a round may do with the changed bytes before they are written: make checksums fit again. */
typedef void (*mend_fn)(fuzz *f, uint8_t *bytes, size_t n);

static void nothing(fuzz *f, uint8_t *bytes, size_t n) {
  (void)f;
  (void)bytes;
  (void)n;
}

static void run(const char *name, const char *from, const char *in, uint64_t seed, uint64_t often, const char *const *words,
                mend_fn mend) {
  static uint8_t good[ROOM], bytes[ROOM];
  fuzz f = { seed };
  uint64_t rounds = fuzz_rounds(often), opened = 0, live = yk__alloc_live();
  size_t size = golden(from, good);
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  o.max_bytes = 1 << 20;
  for (uint64_t round = 0; round < rounds; round++) {
    yk_dataset *d = NULL;
    memcpy(bytes, good, size);
    size_t n = fuzz_mutate(&f, bytes, size, ROOM, fuzz_count(words));
    mend(&f, bytes, n);
    put(bytes, n);
    o.skip = fuzz_below(&f, 3);
    yk_code rc = yk_dataset_open(in != NULL ? folder : path, &o, YK_TRAIN, &d);
    if (rc == YK_OK) {
      opened++;
      read_examples(round, d);
    } else {
      assert_null(d);
      check_message(round, rc);
    }
    yk_dataset_free(d);
    yk_error_clear();
    CHECK_INT(yk__alloc_live(), live);
  }
  CHECK_INT(remove(path), 0);
  if (opened < rounds / 400)
    fail_msg("%s: only %llu of %llu were opened", from, (unsigned long long)opened, (unsigned long long)rounds);
}

static const char *const no_words[] = { NULL };

static void test_idx(void **state) {
  (void)state;
  run("a-images-idx3-ubyte", "mnist/train-images-idx3-ubyte", NULL, 21, 600, no_words, nothing);
  run("a-images-idx3-ubyte.gz", "mnist/t10k-images-idx3-ubyte.gz", NULL, 22, 400, no_words, nothing);
}

static void test_npy(void **state) {
  static const char *const words[] = { "'descr': ", "'<f4'", "'|O'", "'>i2'", "True", "False", "'shape': ", "(4,)", "(", ")",
                                      "{", "}", ",", "99999999999",
                                       "9223372036854775807", "[('a', '<f4')]", "L", NULL };
  (void)state;
  run("a.npy", "npy/c_f4l.npy", NULL, 23, 1200, words, nothing);
  run("a.npy", "npy/fortran_big.npy", NULL, 24, 600, words, nothing);
}

static void test_npz(void **state) {
  static const char *const words[] = { "PK", "x_train.npy", "y_train.npy", ".npy", NULL };
  (void)state;
  run("a.npz", "npz/stored.npz", NULL, 25, 1000, words, nothing);
  run("a.npz", "npz/deflated.npz", NULL, 26, 1000, words, nothing);
}

/* The checksum of each length, and of the data most of the time, is made right, so that changes get past it. */
static void mend_records(fuzz *f, uint8_t *bytes, size_t n) {
  for (size_t at = 0; at + 16 <= n && fuzz_below(f, 20) > 0;) {
    size_t length = (size_t)bytes[at] | (size_t)bytes[at + 1] << 8, left = n - at - 16;
    if (length > left) length = left;
    uint8_t head[8] = { (uint8_t)length, (uint8_t)(length >> 8) };
    uint32_t sum[2] = { yk__crc32c_masked(head, 8), yk__crc32c_masked(bytes + at + 12, length) };
    memcpy(bytes + at, head, 8);
    for (int i = 0; i < 4; i++) {
      bytes[at + 8 + (size_t)i] = (uint8_t)(sum[0] >> 8 * i);
      bytes[at + 12 + length + (size_t)i] = (uint8_t)(sum[1] >> 8 * i);
    }
    at += 16 + length;
  }
}

static void test_tfrecord(void **state) {
  static const char *const words[] = { "\x0A", "\x12", "\x1A", "\x0A\x05label", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
                                      "\x0D", "\x08", NULL };
  (void)state;
  run("a.tfrecord", "tfrecord/numeric.tfrecord", NULL, 27, 500, words, nothing);
  run("a.tfrecord", "tfrecord/numeric.tfrecord", NULL, 28, 1500, words, mend_records);
  run("a.tfrecord", "tfrecord/pictures.tfrecord", NULL, 29, 800, words, mend_records);
  run("a.tfrecord", "tfrecord/numeric_gzip.tfrecord", NULL, 30, 500, words, nothing);
}

static void test_pictures(void **state) {
  static const char *const words[] = { "IHDR", "IDAT", "PLTE", "tRNS", "IEND", "\xFF\xD8", "\xFF\xD9", "\xFF\xC0", "\xFF\xC2",
                                      "\xFF\xDA", "\xFF\xC4", NULL };
  char class[128];
  (void)state;
  snprintf(class, sizeof class, "%s/a", folder);
  CHECK_INT(mkdir(class, 0777), 0);
  run("a/1.png", "pictures/rgb.png", "a", 31, 400, words, nothing);
  run("a/1.png", "pictures/palette_alpha.png", "a", 32, 400, words, nothing);
  run("a/1.jpg", "pictures/rgb.jpg", "a", 33, 400, words, nothing);
  run("a/1.jpg", "pictures/progressive.jpg", "a", 34, 400, words, nothing);
  CHECK_INT(rmdir(class), 0);
}

static void test_csv(void **state) {
  static const char *const words[] = { ",", "\"", "\n", "\r\n", "\"\"", "1e999", "-", "nan", "0x1", "9999999999999999999",
                                      "\xEF\xBB\xBF", "\xFF", NULL };
  static const char *const starts[] = { "a,b,c\n1,2,x\n3,4,y\n", "1.5,2,0\n2,3,1\n", "\"a\",\"b\"\n\"1\",\"2\"\r\n", NULL };
  fuzz f = { 35 };
  uint64_t rounds = fuzz_rounds(3000), opened = 0, live = yk__alloc_live();
  (void)state;
  snprintf(path, sizeof path, "%s/a.csv", folder);
  for (uint64_t round = 0; round < rounds; round++) {
    char text[600];
    yk_dataset *d = NULL;
    yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
    fuzz_text(&f, text, sizeof text, fuzz_count(starts), fuzz_count(words));
    put((const uint8_t *)text, strlen(text));
    o.skip = fuzz_below(&f, 3);
    o.header = (int32_t)fuzz_below(&f, 3) - 1;
    yk_code rc = yk_dataset_open(path, &o, YK_TRAIN, &d);
    if (rc == YK_OK) {
      opened++;
      read_examples(round, d);
    } else {
      check_message(round, rc);
    }
    yk_dataset_free(d);
    yk_error_clear();
    CHECK_INT(yk__alloc_live(), live);
  }
  CHECK_INT(remove(path), 0);
  if (opened < rounds / 100) fail_msg("only %llu of %llu were opened", (unsigned long long)opened, (unsigned long long)rounds);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_idx), cmocka_unit_test(test_npy), cmocka_unit_test(test_npz), cmocka_unit_test(test_tfrecord),
    cmocka_unit_test(test_pictures), cmocka_unit_test(test_csv),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
