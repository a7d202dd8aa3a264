/*
 * Event files: the same bytes as TensorFlow's messages, records and histograms make (tests/golden/make_event_values.py), pictures read
 * back out of their PNGs, names, restarts, several threads; and everything that can go wrong, with the code and the message.
 */
#include "folder.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "base/alloc.h"
#include "base/frame.h"
#include "base/thread.h"
#include "store/disk.h"
#include "store/summary.h"
#include <yoke/yoke.h>

#define WALL 1500000000.25

static yk_summary_writer *w;

static void open_at(const yk_summary_options *given) {
  yk_summary_options o = YK_SUMMARY_OPTIONS_INIT;
  if (given != NULL) o = *given;
  o.wall_time = WALL;
  CHECK_OK(yk_summary_writer_open(folder, &o, &w));
}

/* The bytes of the writer's file, closed now; free(). */
static uint8_t *close_and_take(size_t *n) {
  char name[256];
  snprintf(name, sizeof name, "%s", strrchr(yk_summary_path(w), '/') + 1);
  CHECK_OK(yk_summary_close(w));
  uint8_t *b = take_file(name, n);
  assert_non_null(b);
  return b;
}

/* How many records a file has; all of them must be whole, both sums right, and nothing may be behind the last. */
static int count_records(const uint8_t *b, size_t n, uint64_t *last) {
  size_t at = 0;
  int count = 0;
  uint64_t length;
  uint32_t is, want;
  for (; at < n; at += (size_t)length + 16, count++) {
    if (n - at < 16 || !yk__frame_length(b + at, &length, &is, &want) || length > n - at - 16 ||
        !yk__frame_whole(b + at + 12, (size_t)length, b + at + 12 + length, &is, &want))
      fail_msg("record %d at %zu of %zu is not whole", count, at, n);
    if (last != NULL) *last = at;
  }
  return count;
}

static void expect_golden(const char *name) {
  char path[1024];
  size_t n, want_n;
  uint8_t *got = close_and_take(&n), *want = malloc(1 << 20);
  snprintf(path, sizeof path, "%s/golden/events/%s", getenv("YOKE_TEST_DATA"), name);
  FILE *f = fopen(path, "rb");
  if (f == NULL) fail_msg("%s cannot be read", path);
  want_n = fread(want, 1, 1 << 20, f);
  fclose(f);
  count_records(got, n, NULL);
  for (size_t i = 0; i < n && i < want_n; i++)
    if (got[i] != want[i]) fail_msg("%s: byte %zu is %02x, expected %02x (of %zu and %zu bytes)", name, i, got[i], want[i], n, want_n);
  CHECK_INT(n, want_n);
  free(got);
  free(want);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void put(const char *tag, int64_t step, yk_dtype dtype, yk_shape shape, const void *data) {
  yk_tensor *t;
  CHECK_OK(yk_tensor_from(dtype, shape, data, &t));
  CHECK_OK(yk_summary_histogram(w, tag, step, t));
  yk_tensor_free(t);
}

static void put_histograms(void) {
  static const double tiny[] = { 1e-12, -1e-12, 1e-13, 9e-13, 1.1e-12, 1e-300 }, huge[] = { 1e20, -1e20, 1e19, 3e38, -3e38, 1e-3 };
  double ramp[1000], powers[100];
  for (int i = 0; i < 1000; i++) ramp[i] = (i - 500) * 0.01;
  for (int i = 0; i < 100; i++) powers[i] = ldexp(i % 2 ? -1 : 1, i - 40);
  put("none", 1, YK_F32, YK_SHAPE(0), ramp);
  put("one", 1, YK_F32, YK_SCALAR, (const float[]){ 1 });
  put("zeros", 1, YK_F32, YK_SHAPE(3, 2), (const float[6]){ 0 });
  put("ramp", 2, YK_F64, YK_SHAPE(1000), ramp);
  put("tiny", 3, YK_F64, YK_SHAPE(6), tiny);
  put("huge", 3, YK_F64, YK_SHAPE(6), huge);
  put("powers", 4, YK_F64, YK_SHAPE(100), powers);
  put("whole", 5, YK_I32, YK_SHAPE(2, 3), (const int32_t[]){ -7, 0, 1, 2, 3, 1000000 });
}

static void test_golden(void **state) {
  yk_summary_options o = YK_SUMMARY_OPTIONS_INIT;
  (void)state;
  o.restart = true;
  o.step = 7;
  open_at(&o);
  CHECK_OK(yk_summary_scalar(w, "loss", 7, 2.5));
  CHECK_OK(yk_summary_scalar(w, "zero", 0, 0));
  CHECK_OK(yk_summary_scalar(w, "group/gr\xc3\xb6\xc3\x9f" "e", -3, -1e-30));
  CHECK_OK(yk_summary_scalar(w, "nan", (int64_t)1 << 40, (double)NAN));
  CHECK_OK(yk_summary_scalar(w, "inf", 8, (double)INFINITY));
  CHECK_OK(yk_summary_scalar(w, "inf", 9, -(double)INFINITY));
  put_histograms();
  CHECK_OK(yk_summary_text(w, "note", 6, "a *text*, gr\xc3\xb6\xc3\x9f" "er"));
  expect_golden("small.tfevents");
}

static void test_golden_graph(void **state) {
  yk_graph *g;
  yk_value top[2], last[2];
  (void)state;
  CHECK_OK(yk_graph_new(&g));
  yk_value x, w0 = { 0 }, y;
  YK_DEVICE(g, "/cpu:0") x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1, 2));
  w0 = yk_constant_f32(yk_named(g, "w"), YK_SHAPE(2, 3), (const float[]){ 1, 2, 3, 4, 5, 6 });
  YK_NAME_SCOPE(g, "layer") {
    YK_DEVICE(g, "/cpu:0") y = yk_matmul(g, x, w0, NULL);
    yk_top_k(g, y, 2, top);
    YK_CONTROL(g, 1, &w0) last[0] = yk_neg(g, top[0]);
  }
  last[1] = yk_shape(g, top[1]);
  yk_group(yk_named(g, "done"), 2, last);
  CHECK_OK(yk_graph_status(g));
  open_at(NULL);
  CHECK_OK(yk_summary_graph(w, g, NULL));
  expect_golden("graph.tfevents");
  yk_graph_free(g);
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

static const uint8_t *find(const uint8_t *b, size_t n, const char *what, size_t k) {
  for (size_t i = 0; i + k <= n; i++)
    if (memcmp(b + i, what, k) == 0) return b + i;
  return NULL;
}

static uint32_t get32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The pixels of the PNG at p, whose rows are as they are. */
static void read_png(const uint8_t *p, uint32_t width, uint32_t height, uint32_t channels, uint8_t *pixels) {
  size_t row = (size_t)width * channels;
  uLongf total = (uLongf)((row + 1) * height), want = total;
  uint8_t *rows = malloc(total);
  CHECK_INT(get32(p + 8), 13);
  CHECK_INT(get32(p + 16), width);
  CHECK_INT(get32(p + 20), height);
  CHECK_INT(get32(p + 29), crc32(0, p + 12, 17));
  CHECK_INT(memcmp(p + 37, "IDAT", 4), 0);
  uint32_t n = get32(p + 33);
  CHECK_INT(get32(p + 41 + n), crc32(0, p + 37, n + 4));
  CHECK_INT(uncompress(rows, &total, p + 41, n), Z_OK);
  CHECK_INT(total, want);
  for (uint32_t y = 0; y < height; y++) {
    CHECK_INT(rows[y * (row + 1)], 0);
    memcpy(pixels + y * row, rows + y * (row + 1) + 1, row);
  }
  CHECK_INT(memcmp(p + 41 + n + 4, "\0\0\0\0IEND\xae\x42\x60\x82", 12), 0);
  free(rows);
}

static void test_images(void **state) {
  static uint8_t big[130 * 200 * 4], back[130 * 200 * 4];
  static const float grey[] = { -1, 0, 0.5f, 0.25f, (float)NAN, (float)INFINITY };
  const uint8_t *p;
  yk_tensor *t, *f;
  size_t n;
  (void)state;
  for (size_t i = 0; i < sizeof big; i++) big[i] = (uint8_t)(i * 7 + i / 256);
  CHECK_OK(yk_tensor_from(YK_U8, YK_SHAPE(1, 130, 200, 4), big, &t));
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2, 1, 3, 1), grey, &f));
  open_at(NULL);
  CHECK_OK(yk_summary_image(w, "big", 1, t, 1));
  CHECK_OK(yk_summary_image(w, "grey", 1, f, 0));
  uint8_t *b = close_and_take(&n);
  CHECK_INT(count_records(b, n, NULL), 3);
  assert_non_null(find(b, n, "\x09" "big/image\"", 11));
  p = find(b, n, "\x89PNG", 4);
  read_png(p, 200, 130, 4, back);
  CHECK_INT(memcmp(back, big, sizeof big), 0);
  assert_non_null(p = find(b, n, "\x0c" "grey/image/0\"", 14));
  read_png(find(p, 200, "\x89PNG", 4), 3, 1, 1, back);
  const uint8_t want[] = { 1, 128, 191, 255, 255, 255 };              /* 127 up and down; then the greatest, and two that are not */
  CHECK_INT(memcmp(back, want, 3), 0);
  assert_non_null(p = find(b, n, "\x0c" "grey/image/1\"", 14));
  read_png(find(p, 200, "\x89PNG", 4), 3, 1, 1, back);
  CHECK_INT(memcmp(back, want + 3, 3), 0);
  free(b);
  yk_tensor_free(t);
  yk_tensor_free(f);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void test_names(void **state) {
  yk_summary_options o = YK_SUMMARY_OPTIONS_INIT;
  yk_summary_writer *other;
  char deep[128];
  (void)state;
  o.wall_time = 5;
  snprintf(deep, sizeof deep, "%s/a/b", folder);
  CHECK_OK(yk_summary_writer_open(deep, &o, &w));
  assert_non_null(strstr(yk_summary_path(w), "/a/b/events.out.tfevents.0000000005."));
  CHECK_OK(yk_summary_writer_open(deep, &o, &other));
  CHECK_INT(strcmp(yk_summary_path(other) + strlen(yk_summary_path(w)), ".1"), 0);
  CHECK_INT(unlink(yk_summary_path(w)), 0);
  CHECK_INT(unlink(yk_summary_path(other)), 0);
  CHECK_OK(yk_summary_close(other));
  CHECK_OK(yk_summary_close(w));
  o.suffix = ".v2";
  CHECK_OK(yk_summary_writer_open(deep, &o, &w));
  assert_string_equal(yk_summary_path(w) + strlen(yk_summary_path(w)) - 3, ".v2");
  CHECK_INT(unlink(yk_summary_path(w)), 0);
  CHECK_OK(yk_summary_close(w));
  CHECK_INT(rmdir(deep), 0);
  *strrchr(deep, '/') = '\0';
  CHECK_INT(rmdir(deep), 0);
}

static int64_t size_now(void) {
  struct stat s;
  CHECK_INT(stat(yk_summary_path(w), &s), 0);
  return s.st_size;
}

/* The greeting at once, the rest when asked for, and by itself when it is much. */
static void test_flush(void **state) {
  (void)state;
  CHECK_OK(yk_summary_writer_open(folder, NULL, &w));
  int64_t greeting = size_now();
  assert_true(greeting > 16);
  CHECK_OK(yk_summary_scalar(w, "x", 1, 1));
  CHECK_INT(size_now(), greeting);
  CHECK_OK(yk_summary_flush(w));
  int64_t one = size_now();
  assert_true(one > greeting);
  for (int i = 0; i < 20000; i++) CHECK_OK(yk_summary_scalar(w, "x", i, i));
  assert_true(size_now() > one + (1 << 18));
  size_t n;
  uint8_t *b = close_and_take(&n);
  CHECK_INT(count_records(b, n, NULL), 20002);
  free(b);
  yk_summary_options o = YK_SUMMARY_OPTIONS_INIT;
  o.flush_seconds = 1e-9;
  CHECK_OK(yk_summary_writer_open(folder, &o, &w));
  greeting = size_now();
  CHECK_OK(yk_summary_scalar(w, "x", 1, 1));
  assert_true(size_now() > greeting);
  CHECK_OK(yk_summary_close(w));
}

static void *write_many(void *arg) {
  for (int i = 0; i < 3000; i++)
    if (yk_summary_scalar(w, arg, i, i) != YK_OK) return arg;
  return NULL;
}

static void test_threads(void **state) {
  yk_thread t[3];
  static const char *const tags[] = { "a", "bb", "ccc" };
  (void)state;
  CHECK_OK(yk_summary_writer_open(folder, NULL, &w));
  for (int i = 0; i < 3; i++) CHECK_OK(yk__thread_start(&t[i], "writer", write_many, (void *)(uintptr_t)tags[i]));
  for (int i = 0; i < 3; i++) yk__thread_join(&t[i]);
  size_t n;
  uint8_t *b = close_and_take(&n);
  CHECK_INT(count_records(b, n, NULL), 9001);
  free(b);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void test_arguments(void **state) {
  yk_summary_options o = YK_SUMMARY_OPTIONS_INIT;
  yk_tensor *t, *odd;
  yk_graph *g, *h;
  yk_session *s;
  (void)state;
  CHECK_CODE(yk_summary_writer_open(NULL, NULL, &w), YK_EINVAL, "no folder");
  CHECK_CODE(yk_summary_writer_open("", NULL, &w), YK_EINVAL, "no folder");
  CHECK_CODE(yk_summary_writer_open(folder, NULL, NULL), YK_EINVAL, "nowhere");
  CHECK_CODE(yk_summary_writer_open(folder, &(yk_summary_options){ 0 }, &w), YK_EINVAL, "YK_SUMMARY_OPTIONS_INIT");
  o.flush_seconds = -1;
  CHECK_CODE(yk_summary_writer_open(folder, &o, &w), YK_EINVAL, "flush_seconds is -1");
  o = (yk_summary_options)YK_SUMMARY_OPTIONS_INIT;
  o.wall_time = (double)NAN;
  CHECK_CODE(yk_summary_writer_open(folder, &o, &w), YK_EINVAL, "wall_time");
  o = (yk_summary_options)YK_SUMMARY_OPTIONS_INIT;
  o.suffix = "a/b";
  CHECK_CODE(yk_summary_writer_open(folder, &o, &w), YK_EINVAL, "'a/b'");
  CHECK_INT(count_files(""), 2);                      /* "." and ".." */
  CHECK_CODE(yk_summary_scalar(NULL, "x", 1, 1), YK_EINVAL, "NULL writer");
  CHECK_CODE(yk_summary_flush(NULL), YK_EINVAL, "NULL writer");
  CHECK_OK(yk_summary_close(NULL));
  assert_null(yk_summary_path(NULL));
  open_at(NULL);
  int64_t greeting = size_now();
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(3), (const float[]){ 1, (float)NAN, 2 }, &odd));
  CHECK_OK(yk_tensor_new(YK_U8, YK_SHAPE(2, 4, 4, 2), &t));
  CHECK_CODE(yk_summary_scalar(w, NULL, 1, 1), YK_EINVAL, "NULL tag");
  CHECK_CODE(yk_summary_scalar(w, "", 1, 1), YK_EINVAL, "empty");
  CHECK_CODE(yk_summary_text(w, "a\xff", 1, "x"), YK_EINVAL, "byte 1 of the tag is not UTF-8");
  CHECK_CODE(yk_summary_text(w, "a", 1, NULL), YK_EINVAL, "NULL text");
  CHECK_CODE(yk_summary_text(w, "a", 1, "b\xc3"), YK_EINVAL, "byte 1 of the text is not UTF-8");
  CHECK_CODE(yk_summary_histogram(w, "h", 1, NULL), YK_EINVAL, "'h': NULL tensor");
  CHECK_CODE(yk_summary_histogram(w, "h", 1, odd), YK_EINVAL, "'h': element 1 is nan");
  CHECK_CODE(yk_summary_image(w, "i", 1, NULL, 0), YK_EINVAL, "'i': NULL tensor");
  CHECK_CODE(yk_summary_image(w, "i", 1, odd, 0), YK_EINVAL, "expected u8 or f32 [N, height, width, 1, 3 or 4]");
  CHECK_CODE(yk_summary_image(w, "i", 1, t, 0), YK_EINVAL, "u8[2,4,4,2]");
  CHECK_CODE(yk_summary_image(w, "i", 1, t, -1), YK_EINVAL, "-1 pictures");
  CHECK_CODE(yk_summary_graph(w, NULL, NULL), YK_EINVAL, "NULL graph");
  CHECK_OK(yk_graph_new(&g));
  CHECK_OK(yk_graph_new(&h));
  CHECK_OK(yk_session_open(h, NULL, &s));
  CHECK_CODE(yk_summary_graph(w, g, s), YK_EINVAL, "of another graph");
  CHECK_OK(yk_summary_flush(w));
  CHECK_INT(size_now(), greeting);
  CHECK_OK(yk_summary_close(w));
  yk_session_close(s);
  yk_graph_free(g);
  yk_graph_free(h);
  yk_tensor_free(t);
  yk_tensor_free(odd);
}

static void test_no_folder(void **state) {
  char path[128];
  (void)state;
  put_file("file", "x", 1);
  snprintf(path, sizeof path, "%s/file", folder);
  CHECK_CODE(yk_summary_writer_open(path, NULL, &w), YK_EIO, "the folder '");
  CHECK_CODE(yk_summary_writer_open("/proc/none", NULL, &w), YK_EIO, "the folder '/proc/none' cannot be made");
  watch_call(1, EACCES, "open");
  CHECK_CODE(yk_summary_writer_open(folder, NULL, &w), YK_EIO, "cannot be created: Permission denied");
  yk__disk_watch(NULL);
  watch_call(1, ENOSPC, "write");
  CHECK_CODE(yk_summary_writer_open(folder, NULL, &w), YK_EIO, "cannot be written: No space left");
  yk__disk_watch(NULL);
  CHECK_INT(count_files(""), 3);                      /* ".", "..", "file" */
}

/* The first failure is told, then that the writer is closed; what was in the file before is whole. */
static void expect_closed(yk_code rc, const char *reason) {
  size_t n;
  char name[256];
  CHECK_CODE(rc, YK_EIO, reason);
  CHECK_CODE(yk_summary_scalar(w, "x", 3, 1), YK_EIO, "is closed: an earlier write failed");
  CHECK_CODE(yk_summary_flush(w), YK_EIO, "is closed");
  snprintf(name, sizeof name, "%s", strrchr(yk_summary_path(w), '/') + 1);
  CHECK_CODE(yk_summary_close(w), YK_EIO, "is closed");
  uint8_t *b = take_file(name, &n);
  CHECK_INT(count_records(b, n, NULL), 2);
  free(b);
}

static void test_disk_full(void **state) {
  static const int errors[] = { ENOSPC, EDQUOT, EFBIG, EIO };
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    CHECK_OK(yk_summary_writer_open(folder, NULL, &w));
    CHECK_OK(yk_summary_scalar(w, "x", 1, 1));
    CHECK_OK(yk_summary_flush(w));
    CHECK_OK(yk_summary_scalar(w, "x", 2, 1));
    watch_call(1, errors[i], "write");
    yk_code rc = yk_summary_flush(w);
    yk__disk_watch(NULL);
    expect_closed(rc, "cannot be written");
  }
  CHECK_OK(yk_summary_writer_open(folder, NULL, &w));
  watch_call(1, EIO, "fsync");
  CHECK_CODE(yk_summary_close(w), YK_EIO, "cannot be written");
  yk__disk_watch(NULL);
}

static void test_file_size_limit(void **state) {
  struct rlimit before, tight;
  (void)state;
  CHECK_OK(yk_summary_writer_open(folder, NULL, &w));
  CHECK_OK(yk_summary_scalar(w, "x", 1, 1));
  CHECK_OK(yk_summary_flush(w));
  CHECK_OK(yk_summary_scalar(w, "x", 2, 1));
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
  tight = before;
  tight.rlim_cur = (rlim_t)size_now() + 10;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
  yk_code rc = yk_summary_flush(w);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_closed(rc, "ulimit -f");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_golden, folder_empty), cmocka_unit_test_setup(test_golden_graph, folder_empty),
    cmocka_unit_test_setup(test_images, folder_empty), cmocka_unit_test_setup(test_names, folder_empty),
    cmocka_unit_test_setup(test_flush, folder_empty), cmocka_unit_test_setup(test_threads, folder_empty),
    cmocka_unit_test_setup(test_arguments, folder_empty), cmocka_unit_test_setup(test_no_folder, folder_empty),
    cmocka_unit_test_setup(test_disk_full, folder_empty), cmocka_unit_test_setup(test_file_size_limit, folder_empty),
  };
  return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
