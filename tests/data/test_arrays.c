/*
 * IDX and NumPy files: those that NumPy wrote, in every kind and order of numbers; and broken ones, each with its own message. What
 * they should hold is computed here from the formula that the generator has.
 */
#include "data/files.h"

static int64_t number(int64_t i) { return (i * 7 + 3) % 251; }

/* ---- IDX ---- */

static void check_mnist(const yk_dataset *d, int64_t n) {
  static const int32_t label[] = { 3, 1, 4, 1, 5, 0 };
  uint8_t image[20];
  int32_t y;
  CHECK_INT(yk_dataset_size(d), n);
  check_component(d, 0, "image", YK_U8, YK_SHAPE(4, 5, 1));
  check_component(d, 1, "label", YK_I32, YK_SCALAR);
  for (int64_t i = 0; i < n; i++) {
    CHECK_OK(yk_dataset_read(d, i, (void *const[]){ image, &y }));
    CHECK_INT(y, label[i]);
    CHECK_INT(yk_dataset_label(d, i), label[i]);
    for (int64_t k = 0; k < 20; k++) CHECK_INT(image[k], number(20 * i + k));
  }
}

static void test_mnist(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  (void)state;
  yk_dataset *d = opened(golden("mnist"), NULL, YK_TRAIN);
  assert_string_equal(yk_dataset_name(d), "idx");
  CHECK_INT(yk_dataset_classes(d), 6);
  CHECK_INT(yk_dataset_shape(d).rank, 3);
  assert_null(yk_dataset_image(d, 0));                   /* in the file */
  check_mnist(d, 6);
  yk_dataset_free(d);
  d = opened(golden("mnist"), NULL, YK_TEST);            /* compressed */
  CHECK_INT(yk_dataset_classes(d), 4);
  check_mnist(d, 2);
  yk_dataset_free(d);
  o.classes = 10;
  d = opened(golden("mnist/train-images-idx3-ubyte"), &o, YK_TRAIN);
  CHECK_INT(yk_dataset_classes(d), 10);
  check_mnist(d, 6);
  yk_dataset_free(d);
  o.classes = 5;
  REFUSED(golden("mnist"), &o, YK_TRAIN, YK_ECORRUPT, "train-labels-idx1-ubyte", "label 5 of record 4 (offset 12)");
  REFUSED(golden("mnist/train-images-idx3-ubyte"), NULL, YK_TEST, YK_ENOTFOUND, "no test part");
}

static void test_idx_types(void **state) {
  static const struct { const char *name; yk_dtype dtype; } kind[] = {
    { "int8", YK_I32 }, { "int16", YK_I32 }, { "int32", YK_I32 }, { "float32", YK_F32 }, { "float64", YK_F64 }
  };
  (void)state;
  for (size_t i = 0; i < sizeof kind / sizeof kind[0]; i++) {
    char name[64];
    snprintf(name, sizeof name, "idx/%s.idx2", kind[i].name);
    yk_dataset *d = opened(golden(name), NULL, YK_TRAIN);
    union { int32_t i[2]; float f[2]; double d[2]; } x;
    check_component(d, 0, "x", kind[i].dtype, YK_SHAPE(2));
    CHECK_INT(yk_dataset_size(d), 3);
    CHECK_INT(yk_dataset_classes(d), 0);
    for (int64_t k = 0; k < 6; k++) {
      CHECK_OK(yk_dataset_read(d, k / 2, (void *const[]){ &x }));
      CHECK_NEAR(kind[i].dtype == YK_I32 ? x.i[k % 2] : kind[i].dtype == YK_F32 ? (double)x.f[k % 2] : x.d[k % 2],
                 (double)number(k) - 100, 0);
    }
    yk_dataset_free(d);
  }
}

static void test_bad_idx(void **state) {
  static const uint8_t good[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4 };
  static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 0 };
  uint8_t b[64];
  (void)state;
#define IDX(n, ...)                                                                                                                \
  put("a-images-idx3-ubyte", b, n),                                                                                                \
    REFUSED(in_folder("a-images-idx3-ubyte"), NULL, YK_TRAIN, YK_ECORRUPT, "a-images-idx3-ubyte'", __VA_ARGS__)
  memcpy(b, good, sizeof good);
  IDX(0, "0 bytes, too few");
  IDX(3, "3 bytes, too few");
  IDX(15, "15 bytes, too few");
  IDX(sizeof good - 1, "19 bytes where its header declares 20; it is cut off");
  IDX(sizeof good + 1, "21 bytes where its header declares 20");
  b[1] = 1;
  IDX(sizeof good, "begins with 00 01 08 03 at offset 0");
  b[1] = 0, b[2] = 10;
  IDX(sizeof good, "begins with 00 00 0a 03");
  b[2] = 8, b[3] = 9;
  IDX(sizeof good, "rank 9 at offset 3");
  b[3] = 0;
  IDX(sizeof good, "rank 0");
  b[3] = 3, memset(b + 4, 0xFF, 12);
  IDX(sizeof good, "impossibly large");
  memcpy(b, good, sizeof good);
  memset(b + 4, 0, 4);
  IDX(16, "holds no examples");
  put("a-images-idx3-ubyte", good, sizeof good);
  put("a-labels-idx1-ubyte", labels, sizeof labels);
  REFUSED(in_folder("a-images-idx3-ubyte"), NULL, YK_TRAIN, YK_ECORRUPT, "has 3 examples of 'label', but there are 2 of 'image'");
  /* compressed: damaged, cut off, and declaring far more than it can hold */
  size_t n;
  uint8_t *z = get_all(golden("mnist/t10k-images-idx3-ubyte.gz"), &n);
  put("b-images-idx3-ubyte.gz", z, n - 9);
  REFUSED(in_folder("b-images-idx3-ubyte.gz"), NULL, YK_TRAIN, YK_ECORRUPT, "b-images-idx3-ubyte.gz'", "cut off");
  z[n - 5] ^= 1;
  put("b-images-idx3-ubyte.gz", z, n);
  REFUSED(in_folder("b-images-idx3-ubyte.gz"), NULL, YK_TRAIN, YK_ECORRUPT, "damaged near offset");
  free(z);
}

/* ---- .npy ---- */

static double number_at(yk_dtype t, const void *p, int64_t i) {
  switch (t) {
    case YK_F32: return (double)((const float *)p)[i];
    case YK_F64: return ((const double *)p)[i];
    case YK_I32: return ((const int32_t *)p)[i];
    case YK_I64: return (double)((const int64_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
  }
}

/* [4, 3, 2] of number(i) - 100, or its sign or size. */
static void check_grid(const char *name, yk_dtype dtype, int way) {
  double buffer[6];
  char path[64];
  snprintf(path, sizeof path, "npy/%s.npy", name);
  yk_dataset *d = opened(golden(path), NULL, YK_TRAIN);
  check_component(d, 0, "x", dtype, YK_SHAPE(3, 2));
  CHECK_INT(yk_dataset_size(d), 4);
  assert_string_equal(yk_dataset_name(d), "npy");
  for (int64_t i = 0; i < 24; i++) {
    double want = (double)number(i) - 100;
    want = way == 1 ? fabs(want) : way == 2 ? want > 0 : want;
    CHECK_OK(yk_dataset_read(d, i / 6, (void *const[]){ buffer }));
    double got;
    if (dtype == YK_F16) {
      yk_tensor *t;
      CHECK_OK(yk_tensor_from(YK_F16, YK_SHAPE(6), buffer, &t));
      got = yk_tensor_at(t, i % 6);
      yk_tensor_free(t);
    } else {
      got = number_at(dtype, buffer, i % 6);
    }
    if (got != want) fail_msg("%s: number %lld is %g, expected %g", name, (long long)i, got, want);
  }
  yk_dataset_free(d);
}

static void test_npy(void **state) {
  (void)state;
  check_grid("c_f4l", YK_F32, 0);
  check_grid("c_f4b", YK_F32, 0);
  check_grid("c_f8l", YK_F64, 0);
  check_grid("c_f8b", YK_F64, 0);
  check_grid("c_f2l", YK_F16, 0);
  check_grid("c_f2b", YK_F16, 0);
  check_grid("c_i8l", YK_I64, 0);
  check_grid("c_i8b", YK_I64, 0);
  check_grid("c_i4l", YK_I32, 0);
  check_grid("c_i4b", YK_I32, 0);
  check_grid("c_i2l", YK_I32, 0);
  check_grid("c_u2b", YK_I32, 1);
  check_grid("c_u4l", YK_I64, 1);
  check_grid("c_i1l", YK_I32, 0);
  check_grid("bool", YK_BOOL, 2);
  check_grid("fortran", YK_F32, 0);
  check_grid("fortran_big", YK_I32, 0);
  check_grid("version2", YK_F32, 0);
  check_grid("version3", YK_F32, 0);
}

static void test_refused_npy(void **state) {
  (void)state;
  REFUSED(golden("npy/pickled.npy"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "pickled.npy'", "pickled Python objects");
  REFUSED(golden("npy/text.npy"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "text.npy'", "'<U2'");
  REFUSED(golden("npy/complex.npy"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "'<c16'");
  REFUSED(golden("npy/records.npy"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "several fields");
  REFUSED(golden("npy/scalar.npy"), NULL, YK_TRAIN, YK_ECORRUPT, "is one number");
  REFUSED(golden("npy/none.npy"), NULL, YK_TRAIN, YK_ECORRUPT, "holds no examples");
}

/* A file of version 1 with this header and four bytes of data. */
static void put_npy(const char *header) {
  uint8_t b[512] = "\x93NUMPY\x01";
  size_t n = strlen(header);
  b[8] = (uint8_t)n;
  b[9] = (uint8_t)(n >> 8);
  memcpy(b + 10, header, n);
  put("a.npy", b, 10 + n + 4);
}

static void test_bad_headers(void **state) {
  static const struct { const char *header, *text; } bad[] = {
    { "", "expected '{'" },
    { "{", "expected a text in quotes" },
    { "{'descr'", "'descr', 'fortran_order' and 'shape', each once" },
    { "{'descr': '<f4'}", "'descr', 'fortran_order' and 'shape'" },
    { "{'descr': '<f4', 'descr': '<f4'}", "each once" },
    { "{'other': 3}", "each once" },
    { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "True or False" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "a tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1", "',' or ')'" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a dimension" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "below 2^63" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9)}", "impossibly large" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "it is cut off" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "nothing after" },
    { "{'descr': 'f4' 'fortran_order': False, 'shape': (1,)}", "',' or '}'" },
    { "{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", "where its header declares" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    put_npy(bad[i].header);
    REFUSED(in_folder("a.npy"), NULL, YK_TRAIN, YK_ECORRUPT, "a.npy'", bad[i].text);
  }
  put_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}");
  REFUSED(in_folder("a.npy"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "more than 8 dimensions");
  put_npy(" { \"shape\" : ( 1L , ) , \"fortran_order\":True,'descr':'<f4'}\n");
  yk_dataset_free(opened(in_folder("a.npy"), NULL, YK_TRAIN));
  put("a.npy", "\x93NUMPY\x04\x00\x02\x00{}", 12);
  REFUSED(in_folder("a.npy"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "version 4.0");
  put("a.npy", "\x93NUMPX\x01\x00\x02\x00{}", 12);
  REFUSED(in_folder("a.npy"), NULL, YK_TRAIN, YK_ECORRUPT, "does not begin with");
  put("a.npy", "\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14);
  REFUSED(in_folder("a.npy"), NULL, YK_TRAIN, YK_ECORRUPT, "declares a header of 4294967295 bytes");
  put("a.npy", "\x93NUM", 4);
  REFUSED(in_folder("a.npy"), NULL, YK_TRAIN, YK_ECORRUPT, "cut off");
}

/* ---- .npz, and folders of .npy ---- */

static void check_parts(const char *path, const char *name) {
  static const int32_t label[] = { 2, 0, 1, 2, 1, 0, 2 };
  for (int split = YK_TRAIN; split <= YK_TEST; split++) {
    yk_dataset *d = opened(path, NULL, (yk_split)split);
    int64_t first = split == YK_TEST ? 5 : 0;
    uint8_t image[12];
    int32_t y;
    assert_string_equal(yk_dataset_name(d), name);
    CHECK_INT(yk_dataset_size(d), split == YK_TEST ? 2 : 5);
    CHECK_INT(yk_dataset_classes(d), 3);
    check_component(d, 0, "image", YK_U8, YK_SHAPE(2, 2, 3));
    check_component(d, 1, "label", YK_I32, YK_SCALAR);
    for (int64_t i = 0; i < yk_dataset_size(d); i++) {
      CHECK_OK(yk_dataset_read(d, i, (void *const[]){ image, &y }));
      CHECK_INT(y, label[first + i]);
      for (int64_t k = 0; k < 12; k++) CHECK_INT(image[k], number((first + i) * 12 + k));
    }
    yk_dataset_free(d);
  }
}

static void test_npz(void **state) {
  (void)state;
  check_parts(golden("npz/stored.npz"), "npz");
  check_parts(golden("npz/deflated.npz"), "npz");
  check_parts(golden("npy_folder"), "npy");
  yk_dataset *d = opened(golden("npz/targets.npz"), NULL, YK_TRAIN);
  double x[3];
  float y;
  check_component(d, 0, "x", YK_F64, YK_SHAPE(3));
  check_component(d, 1, "y", YK_F32, YK_SCALAR);
  CHECK_OK(yk_dataset_read(d, 7, (void *const[]){ x, &y }));
  CHECK_NEAR(x[2], (double)number(23) - 100, 0);
  CHECK_NEAR((double)y, ((double)number(7) - 100) / 2, 0);
  yk_dataset_free(d);
  REFUSED(golden("npz/targets.npz"), NULL, YK_TEST, YK_ENOTFOUND, "no test part");
  REFUSED(golden("npz"), NULL, YK_TRAIN, YK_EINVAL, "several .npz files");
}

static void test_bad_npz(void **state) {
  size_t n;
  (void)state;
  uint8_t *b = get_all(golden("npz/stored.npz"), &n);
#define NPZ(length, ...) put("a.npz", b, length), REFUSED(in_folder("a.npz"), NULL, YK_TRAIN, YK_ECORRUPT, "a.npz'", __VA_ARGS__)
  NPZ(0, "too few for a zip archive");
  NPZ(21, "too few for a zip archive");
  NPZ(n - 1, "no zip directory at its end");
  b[200] ^= 1;                                                           /* in the data of the first member */
  NPZ(n, "has checksum", "member 'y_train.npy'");
  b[200] ^= 1;
  b[n - 22 + 16] ^= 4;
  NPZ(n, "expected an entry of the zip directory");
  b[n - 22 + 16] ^= 4;
  b[n - 22 + 18] = 0x70;
  NPZ(n, "does not fit in the file");
  free(b);
  b = get_all(golden("npz/deflated.npz"), &n);
  uint8_t *entry = b;
  while (memcmp(entry, "PK\1\2", 4) != 0) entry++;
  entry[25] = 1;                                                         /* of y_train.npy: 256 bytes more than there are */
  NPZ(n, "are declared");
  memset(entry + 24, 0x7F, 4);
  NPZ(n, "more than its", "can hold");
  entry[10] = 12;
  put("a.npz", b, n);
  REFUSED(in_folder("a.npz"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "compressed by method 12");
  entry[8] |= 1;
  put("a.npz", b, n);
  REFUSED(in_folder("a.npz"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "encrypted");
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_mnist), cmocka_unit_test(test_idx_types), cmocka_unit_test(test_bad_idx), cmocka_unit_test(test_npy),
    cmocka_unit_test(test_refused_npy), cmocka_unit_test(test_bad_headers), cmocka_unit_test(test_npz), cmocka_unit_test(test_bad_npz),
  };
  return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
