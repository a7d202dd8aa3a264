/*
 * CSV files: what quotes, line ends, headers and labels mean, and where each mistake is said to be.
 */
#include "data/files.h"

static yk_dataset *read_csv(const char *text, const yk_dataset_options *o) {
  put_text("t.csv", text);
  return opened(in_folder("t.csv"), o, YK_TRAIN);
}

#define BAD(text, options, code, ...) put_text("t.csv", text), REFUSED(in_folder("t.csv"), options, YK_TRAIN, code, "t.csv'", __VA_ARGS__)

/* Row i is these features and that label. */
static void check_row(const yk_dataset *d, int64_t i, uint32_t n, const float *x, int32_t label) {
  float got[16];
  int32_t y;
  check_component(d, 0, "x", YK_F32, YK_SHAPE((int64_t)n));
  CHECK_OK(yk_dataset_read(d, i, (void *const[]){ got, &y }));
  CHECK_INT(y, label);
  for (uint32_t k = 0; k < n; k++)
    if (got[k] != x[k]) fail_msg("row %lld, feature %u: got %.9g, expected %.9g", (long long)i, k, (double)got[k], (double)x[k]);
}

static void test_plain(void **state) {
  (void)state;
  yk_dataset *d = read_csv("1,2.5,0\n-3,4e2,2\n.5,+7,1\n", NULL);
  assert_string_equal(yk_dataset_name(d), "csv");
  CHECK_INT(yk_dataset_size(d), 3);
  CHECK_INT(yk_dataset_classes(d), 3);
  CHECK_INT(yk_dataset_shape(d).rank, 0);
  check_row(d, 0, 2, (float[]){ 1, 2.5f }, 0);
  check_row(d, 1, 2, (float[]){ -3, 400 }, 2);
  check_row(d, 2, 2, (float[]){ 0.5f, 7 }, 1);
  yk_dataset_free(d);
}

static void test_quotes_and_line_ends(void **state) {
  (void)state;
  yk_dataset *d = read_csv("\xEF\xBB\xBF\"a \"\"b\"\"\",\"kind, of\nit\"\r\n\r\n\"1\",\"x,\"\"y\"\"\nz\"\r\n 2 ,w", NULL);
  CHECK_INT(yk_dataset_size(d), 2);
  CHECK_INT(yk_dataset_classes(d), 2);
  assert_string_equal(yk_dataset_class_name(d, 0), "w");
  assert_string_equal(yk_dataset_class_name(d, 1), "x,\"y\"\nz");
  check_row(d, 0, 1, (float[]){ 1 }, 1);
  check_row(d, 1, 1, (float[]){ 2 }, 0);
  yk_dataset_free(d);
}

/* Exactly what strtod gives, whichever way it is read. */
static void test_numbers(void **state) {
  static const char *const text[] = { "0", "-0", "123456789012345", "1234567890123456", "0.1", "3.14159265358979", "1e-30",
                                     "0.000000000000001",
                                      "99999.99999", "1E5", "12345678.9012345678" };
  (void)state;
  for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
    char line[64];
    snprintf(line, sizeof line, "%s,0\n", text[i]);
    yk_dataset *d = read_csv(line, NULL);
    check_row(d, 0, 1, (float[]){ (float)strtod(text[i], NULL) }, 0);
    yk_dataset_free(d);
  }
}

static void test_labels(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  (void)state;
  yk_dataset *d = read_csv("species,a,b\ncat,1,2\nant,3,4\ncat,5,6\n", NULL);      /* by its title */
  CHECK_INT(yk_dataset_classes(d), 2);
  assert_string_equal(yk_dataset_class_name(d, 0), "ant");
  check_row(d, 0, 2, (float[]){ 1, 2 }, 1);
  check_row(d, 1, 2, (float[]){ 3, 4 }, 0);
  yk_dataset_free(d);
  d = read_csv("y,side,x\n1,left,2\n3,right,4\n", NULL);                    /* the only text */
  check_row(d, 1, 2, (float[]){ 3, 4 }, 1);
  yk_dataset_free(d);
  d = read_csv("y,a,b\n1,2,3\n", NULL);
  check_row(d, 0, 2, (float[]){ 2, 3 }, 1);
  yk_dataset_free(d);
  o.label = "b";
  d = read_csv("a,b,c\n1,2,3\n4,5,6\n", &o);
  check_row(d, 1, 2, (float[]){ 4, 6 }, 5);
  CHECK_INT(yk_dataset_classes(d), 6);
  yk_dataset_free(d);
  o.label = "1";
  d = read_csv("1,2,3\n4,5,6\n", &o);
  check_row(d, 1, 2, (float[]){ 5, 6 }, 4);
  yk_dataset_free(d);
  o.label = "nothing";
  BAD("a,b\n1,2\n", &o, YK_EINVAL, "no column 'nothing'", "there are 2");
  o.label = "3";
  BAD("1,2\n", &o, YK_EINVAL, "no column '3' (it has no header)");
  o = (yk_dataset_options)YK_DATASET_OPTIONS_INIT;
  o.classes = 3;
  BAD("1,2\n2,3\n", &o, YK_ECORRUPT, ":2:3: field 2 is '3'", "(record 1, offset 4)");
  o.types = "number,class";                                                 /* whole numbers in their order, not that of text */
  o.classes = 0;
  d = read_csv("0,10\n1,-1\n2,9\n", &o);
  assert_string_equal(yk_dataset_class_name(d, 0), "-1");
  assert_string_equal(yk_dataset_class_name(d, 2), "10");
  check_row(d, 0, 1, (float[]){ 0 }, 2);
  yk_dataset_free(d);
}

static void test_types(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  float x, y;
  (void)state;
  o.types = "skip,number,number";
  yk_dataset *d = read_csv("id,a,price\nx1,2,30\nx2,3,40\n", &o);
  check_component(d, 1, "y", YK_F32, YK_SCALAR);
  CHECK_INT(yk_dataset_classes(d), 0);
  CHECK_OK(yk_dataset_read(d, 1, (void *const[]){ &x, &y }));
  CHECK_NEAR((double)x, 3, 0);
  CHECK_NEAR((double)y, 40, 0);
  yk_dataset_free(d);
  d = read_csv("1,2.5\n2,3\n", NULL);                                        /* a real number is no class */
  check_component(d, 1, "y", YK_F32, YK_SCALAR);
  yk_dataset_free(d);
  d = read_csv("5\n6\n", NULL);                                              /* one column: features only */
  CHECK_INT(yk_dataset_components(d), 1);
  yk_dataset_free(d);
  o.types = "number";
  BAD("1,2\n", &o, YK_EINVAL, "1 types are given for the 2 columns");
  o.types = "class,class";
  BAD("1,2\n", &o, YK_EINVAL, "only the label");
  o.types = "number,float";
  put_text("t.csv", "1,2\n");
  REFUSED(in_folder("t.csv"), &o, YK_TRAIN, YK_EINVAL, "type 2 of 'number,float'");
  o.types = "skip,class";
  BAD("1,2\n", &o, YK_EINVAL, "no column of numbers besides the label");
  BAD("a,b\n1,x,2\n", NULL, YK_ECORRUPT, ":2:1: 3 fields; the header has 2");
  BAD("u,v,w\n1,x,z\n", NULL, YK_EINVAL, ":2:3: column 2 ('v') holds text, 'x'");
}

static void test_header(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  (void)state;
  o.header = 1;
  yk_dataset *d = read_csv("10,20\n1,2\n", &o);
  CHECK_INT(yk_dataset_size(d), 1);
  yk_dataset_free(d);
  o.header = -1;
  BAD("a,b\n1,2\n", &o, YK_EINVAL, ":1:1: column 1 holds text");
  o.header = 0;
  o.delimiter = ';';
  d = read_csv("a;b\n1;2\n", &o);
  check_row(d, 0, 1, (float[]){ 1 }, 2);
  yk_dataset_free(d);
  put_text("t.tsv", "a\tb\n1\t2\n");
  d = opened(in_folder("t.tsv"), NULL, YK_TRAIN);
  check_row(d, 0, 1, (float[]){ 1 }, 2);
  yk_dataset_free(d);
}

static void test_malformed(void **state) {
  (void)state;
  BAD("", NULL, YK_ECORRUPT, "holds no rows");
  BAD("\n\n", NULL, YK_ECORRUPT, "holds no rows");
  yk_dataset_options titles = { .size = sizeof titles, .header = 1 }, none = { .size = sizeof none, .header = -1 };
  BAD("a,b\n", &titles, YK_ECORRUPT, "behind its header");
  BAD("1,2\n3\n", NULL, YK_ECORRUPT, ":2:1: 1 fields; expected 2 (record 1, offset 4)");
  BAD("1,2\n3,4,5\n", NULL, YK_ECORRUPT, ":2:1: 3 fields; expected 2");
  BAD("1,2\n3,\n", NULL, YK_ECORRUPT, ":2:3: field 2 is ''");
  BAD("a,b\n1,2\n\nx,4\n", NULL, YK_ECORRUPT, ":4:1: field 1 ('a') is 'x'; expected a number (record 1, offset 9)");
  BAD("1,2\n3,-1\n", NULL, YK_ECORRUPT, ":2:3: field 2 is '-1'; expected a class");
  BAD("1,2\n3,1.5\n", NULL, YK_ECORRUPT, ":2:3: field 2 is '1.5'; expected a class");
  BAD("1,2\n\"3,4\n", NULL, YK_ECORRUPT, ":3:1: the file ends within quotes (record 1, offset 4)");
  BAD("1,2\n\"3\"4,5\n", NULL, YK_ECORRUPT, ":2:4: text behind a closing quote");
  BAD("1,2\n3\"4,5\n", NULL, YK_ECORRUPT, ":2:2: a quote within a field");
  BAD("1,2\n3,4\r5,6\n", NULL, YK_ECORRUPT, "a carriage return that is not followed");
  put("t.csv", "1,2\n3,\0004\n", 9);
  REFUSED(in_folder("t.csv"), NULL, YK_TRAIN, YK_ECORRUPT, ":2:3: a byte of 0");
  BAD("nan,2,b\n", &none, YK_EINVAL, "holds text, 'nan'");
}

static void test_skipping(void **state) {
  static const char text[] = "1,0\n2,x\n3,1\n\"4,1\n5,1\n6\n7,1\n";
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  const char *first;
  (void)state;
  o.skip = 3;
  yk_dataset *d = read_csv(text, &o);
  CHECK_INT(yk_dataset_size(d), 4);
  check_row(d, 1, 1, (float[]){ 3 }, 1);
  check_row(d, 2, 1, (float[]){ 5 }, 1);
  check_row(d, 3, 1, (float[]){ 7 }, 1);
  CHECK_INT(yk_dataset_skipped(d, &first), 3);
  if (strstr(first, ":2:3: field 2 is 'x'") == NULL) fail_msg("the first is told as \"%s\"", first);
  yk_dataset_free(d);
  o.skip = 2;
  BAD(text, &o, YK_ECORRUPT, "more than 2 corrupt records", ":6:1: 1 fields");
  o.skip = 100;
  o.header = 1;
  o.types = "number,class";
  BAD("a,b\nx,1\ny,2\n", &o, YK_ECORRUPT, "holds no good rows");
}

/* Classes are the same in both parts, though each lacks one. */
static void test_parts(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  (void)state;
  put_text("parts/train.csv", "a,b\n1,dog\n2,cat\n");
  put_text("parts/test.csv", "a,b\n3,emu\n4,dog\n");
  yk_dataset *train = opened(in_folder("parts"), NULL, YK_TRAIN), *test = opened(in_folder("parts"), NULL, YK_TEST);
  CHECK_INT(yk_dataset_classes(train), 3);
  CHECK_INT(yk_dataset_classes(test), 3);
  check_row(train, 0, 1, (float[]){ 1 }, 1);
  check_row(test, 0, 1, (float[]){ 3 }, 2);
  check_row(test, 1, 1, (float[]){ 4 }, 1);
  yk_dataset_free(train);
  yk_dataset_free(test);
  put_text("parts/train2.csv", "a,b\n1,dog\n");
  REFUSED(in_folder("parts"), NULL, YK_TRAIN, YK_EINVAL, "several CSV files");
  /* one file for both: the tests are a part of it, none of which is trained on */
  put_text("one.csv", "0,0\n1,0\n2,0\n3,0\n4,0\n5,0\n6,0\n7,0\n8,0\n9,0\n");
  REFUSED(in_folder("one.csv"), NULL, YK_TEST, YK_ENOTFOUND, "no test part", "holdout");
  o.holdout = 0.3;
  train = opened(in_folder("one.csv"), &o, YK_TRAIN), test = opened(in_folder("one.csv"), &o, YK_TEST);
  CHECK_INT(yk_dataset_size(train), 7);
  CHECK_INT(yk_dataset_size(test), 3);
  int seen[10] = { 0 };
  for (int64_t i = 0; i < 10; i++) {
    float x;
    int32_t y;
    CHECK_OK(yk_dataset_read(i < 7 ? train : test, i < 7 ? i : i - 7, (void *const[]){ &x, &y }));
    seen[(int)x]++;
  }
  for (int i = 0; i < 10; i++) CHECK_INT(seen[i], 1);
  yk_dataset_free(train);
  yk_dataset_free(test);
  o.holdout = 0.99;
  REFUSED(in_folder("one.csv"), &o, YK_TRAIN, YK_EINVAL, "leaves none to learn from");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plain), cmocka_unit_test(test_quotes_and_line_ends), cmocka_unit_test(test_numbers), cmocka_unit_test(test_labels),
    cmocka_unit_test(test_types), cmocka_unit_test(test_header), cmocka_unit_test(test_malformed), cmocka_unit_test(test_skipping),
    cmocka_unit_test(test_parts),
  };
  return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
