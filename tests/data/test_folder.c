/*
 * Pictures: what JPEG and PNG files decode to, against TensorFlow's and Pillow's pixels; folders of classes; and pictures that cannot
 * be decoded, each told with its file.
 */
#include "data/files.h"
#include "data/picture.h"

#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PIXELS = 4096 };

typedef struct line { char name[64], fit[16]; int64_t h, w, c; uint8_t pixel[MOST_PIXELS]; } line;

/* One line of pictures.txt; false at the end. */
static bool next_line(FILE *f, line *l) {
  char word[64];
  long long h, w, c;
  *l = (line){ .h = 0 };
  if (fscanf(f, "%63s", word) != 1) return false;
  memcpy(l->name, word, sizeof word);
  if (strcmp(word, "resize") == 0) CHECK_INT(fscanf(f, "%63s %15s", l->name, l->fit), 2);
  CHECK_INT(fscanf(f, "%lld %lld %lld ", &h, &w, &c), 3);
  l->h = h, l->w = w, l->c = c;
  assert_true(h * w * c <= MOST_PIXELS);
  for (int64_t i = 0; i < h * w * c; i++) {
    unsigned v;
    CHECK_INT(fscanf(f, "%2x", &v), 1);
    l->pixel[i] = (uint8_t)v;
  }
  return true;
}

/* What is read is that, but for `most` levels. JPEG decoders may round otherwise; libraries resize in bytes, we do not. */
static void check_pixels(const line *l, const uint8_t *got, int most) {
  for (int64_t i = 0; i < l->h * l->w * l->c; i++)
    if (abs(got[i] - l->pixel[i]) > most)
      fail_msg("%s %s %lldx%lldx%lld: value %lld is %d, expected %d", l->name, l->fit, (long long)l->h, (long long)l->w,
               (long long)l->c, (long long)i,
               got[i], l->pixel[i]);
}

static void test_golden(void **state) {
  static line l;
  int lines = 0;
  FILE *f = fopen(golden("pictures/pictures.txt"), "r");
  (void)state;
  assert_non_null(f);
  for (; next_line(f, &l); lines++) {
    static uint8_t got[MOST_PIXELS];
    char path[128];
    size_t n;
    int64_t h, w;
    bool jpeg = strstr(l.name, ".jpg") != NULL;
    snprintf(path, sizeof path, "pictures/%s", l.name);
    uint8_t *all = get_all(golden(path), &n);
    yk_target t = { .height = l.h, .width = l.w, .channels = l.c,
                   .fit = strcmp(l.fit, "crop") == 0 ? YK_FIT_CROP : YK_FIT_STRETCH };
    CHECK_OK(yk__picture_size(all, n, &h, &w));
    CHECK_INT(h, 10);
    CHECK_INT(w, 9);
    CHECK_OK(yk__picture_read(all, n, &t, got));
    /* TensorFlow makes grey of RGB in PNGs with other weights; we have no such line */
    check_pixels(&l, got, l.fit[0] != '\0' ? 1 : jpeg ? 2 : 0);
    free(all);
  }
  fclose(f);
  if (lines < 20) fail_msg("only %d pictures were compared", lines);
}

/* Every prefix and every changed byte: a picture or an error, nothing else. */
static void test_damaged(void **state) {
  static const char *const name[] = { "rgb.png", "palette.png", "rgb.jpg", "progressive.jpg", "grey16.png" };
  (void)state;
  for (size_t k = 0; k < sizeof name / sizeof name[0]; k++) {
    char path[128];
    size_t n;
    uint8_t out[4 * 4 * 3];
    snprintf(path, sizeof path, "pictures/%s", name[k]);
    uint8_t *all = get_all(golden(path), &n);
    yk_target t = { .height = 4, .width = 4, .channels = 3 };
    uint64_t live = yk__alloc_live();
    for (size_t i = 0; i < n; i++) {
      uint8_t *tight = malloc(i + 1);
      memcpy(tight, all, i);
      yk_code rc = yk__picture_read(tight, i, &t, out);
      if (rc == YK_OK && i < n - 2) fail_msg("%s: %zu of %zu bytes are a picture", name[k], i, n);
      if (rc != YK_OK) CHECK_INT(rc, YK_ECORRUPT);
      free(tight);
    }
    for (size_t i = 0; i < n; i++) {
      all[i] ^= (uint8_t)(1u << i % 8);
      yk_code rc = yk__picture_read(all, n, &t, out);
      if (rc != YK_OK && rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED) fail_msg("%s: byte %zu: %s", name[k], i, yk_error_message());
      all[i] ^= (uint8_t)(1u << i % 8);
    }
    yk_error_clear();
    CHECK_INT(yk__alloc_live(), live);
    free(all);
  }
}

/* ---- folders ---- */

static void copy(const char *from, const char *to) {
  char path[128];
  size_t n;
  snprintf(path, sizeof path, "pictures/%s", from);
  uint8_t *all = get_all(golden(path), &n);
  put(to, all, n);
  free(all);
}

static void test_classes(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  uint8_t image[10 * 9 * 3];
  int32_t label;
  (void)state;
  copy("rgb.png", "set/train/cat/b.PNG");
  copy("grey.jpg", "set/train/cat/a.jpeg");
  copy("rgba.png", "set/train/ant/x.png");
  copy("rgb.jpg", "set/test/dog/x.jpg");
  copy("rgb.jpg", "set/test/cat/x.jpg");
  put_text("set/train/cat/notes.txt", "not a picture");
  put_text("set/train/cat/.hidden.png", "not looked at");
  yk_dataset *d = opened(in_folder("set"), NULL, YK_TRAIN);
  assert_string_equal(yk_dataset_name(d), "folder");
  CHECK_INT(yk_dataset_size(d), 3);
  CHECK_INT(yk_dataset_classes(d), 3);
  assert_string_equal(yk_dataset_class_name(d, 0), "ant");
  assert_string_equal(yk_dataset_class_name(d, 2), "dog");
  check_component(d, 0, "image", YK_U8, YK_SHAPE(10, 9, 3));
  for (int64_t i = 0; i < 3; i++) {
    CHECK_OK(yk_dataset_read(d, i, (void *const[]){ image, &label }));
    CHECK_INT(label, i == 0 ? 0 : 1);
    CHECK_INT(yk_dataset_label(d, i), label);
  }
  CHECK_INT(image[0], ((0 - 3) * (0 - 2) * 4) & 255);                      /* b.PNG, its first pixel */
  yk_dataset_free(d);
  o.height = 5;
  o.width = 4;
  o.channels = 1;
  d = opened(in_folder("set"), &o, YK_TEST);
  CHECK_INT(yk_dataset_size(d), 2);
  CHECK_INT(yk_dataset_classes(d), 3);
  check_component(d, 0, "image", YK_U8, YK_SHAPE(5, 4, 1));
  CHECK_OK(yk_dataset_read(d, 0, (void *const[]){ image, &label }));
  CHECK_INT(label, 1);
  CHECK_OK(yk_dataset_read(d, 1, (void *const[]){ image, &label }));
  CHECK_INT(label, 2);
  yk_dataset_free(d);
  d = opened(in_folder("set/train"), NULL, YK_TRAIN);                       /* without parts */
  CHECK_INT(yk_dataset_classes(d), 2);
  yk_dataset_free(d);
  REFUSED(in_folder("set/train"), NULL, YK_TEST, YK_ENOTFOUND, "no test part");
  o.classes = 7;
  REFUSED(in_folder("set"), &o, YK_TRAIN, YK_EINVAL, "3 classes (sub-folders); 7 were asked for");
}

/* The queue reads and decodes in its threads; the stream is the same for any number of them. */
static void test_queue(void **state) {
  yk_dataset_options file = YK_DATASET_OPTIONS_INIT;
  static float want[40 * 8 * 8 * 3], got[40 * 8 * 8 * 3];
  int32_t label[40];
  int64_t n;
  (void)state;
  for (int i = 0; i < 9; i++) {
    char name[64];
    snprintf(name, sizeof name, "many/%c/%d.png", 'a' + i % 3, i);
    copy(i % 2 ? "rgb.png" : "palette.png", name);
  }
  file.height = 9;
  yk_dataset *d = opened(in_folder("many"), &file, YK_TRAIN);
  for (int32_t threads = 1; threads < 6; threads += 2) {
    yk_queue_options o = { .size = sizeof o, .augment = YK_AUGMENT_CIFAR_TRAIN, .image_size = 8, .shuffle = true, .seed = 3,
                          .threads = threads };
    yk_queue *q;
    CHECK_OK(yk_queue_open(d, &o, &q));
    CHECK_OK(yk_queue_take(q, YK_TAKE_ALL, 40, (void *const[]){ threads == 1 ? want : got, label }, &n));
    if (threads > 1) assert_memory_equal(got, want, sizeof want);
    yk_queue_close(q);
  }
  yk_dataset_free(d);
}

static void test_bad_pictures(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  uint8_t image[4 * 4 * 3];
  int32_t label;
  (void)state;
  static const uint8_t huge[] = "\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\x7F\0\0\0\x7F\0\0\0\x08\x02\0\0\0\0\0\0\0";
  copy("rgb.png", "bad/a/0.png");
  put_text("bad/a/1.png", "");
  put_text("bad/a/2.jpg", "GIF89a");
  copy("cmyk.jpg", "bad/a/3.jpg");
  put("bad/a/4.png", huge, sizeof huge - 1);
  o.height = 4;
  yk_dataset *d = opened(in_folder("bad"), &o, YK_TRAIN);
#define READ(i) yk_dataset_read(d, i, (void *const[]){ image, &label })
  CHECK_OK(READ(0));
  CHECK_CODE(READ(1), YK_ECORRUPT, "bad/a/1.png' (record 1, offset 0): it is empty");
  CHECK_CODE(READ(2), YK_ECORRUPT, "bad/a/2.jpg' (record 2, offset 0): it is neither a JPEG nor a PNG: it begins with 47 49");
  CHECK_CODE(READ(3), YK_EUNSUPPORTED, "bad/a/3.jpg' (record 3, offset 0): the JPEG cannot be decoded: it is in CMYK");
  CHECK_CODE(READ(4), YK_ECORRUPT, "bad/a/4.png' (record 4, offset 0): the PNG cannot be decoded");
  unlink(in_folder("bad/a/0.png"));
  CHECK_CODE(READ(0), YK_ENOTFOUND, "bad/a/0.png'");
  yk_dataset_free(d);
  o = (yk_dataset_options)YK_DATASET_OPTIONS_INIT;
  REFUSED(in_folder("bad"), &o, YK_TRAIN, YK_ECORRUPT, "bad/a/1.png' (record 0, offset 0): it is empty");
  copy("rgb.png", "bad/a/0.png");
  unlink(in_folder("bad/a/3.jpg"));
  o.skip = 3;
  d = opened(in_folder("bad"), &o, YK_TRAIN);
  static uint8_t whole[10 * 9 * 3];
  for (int64_t i = 0; i < 4; i++) CHECK_OK(yk_dataset_read(d, i, (void *const[]){ whole, &label }));
  CHECK_INT(yk_dataset_skipped(d, NULL), 3);
  yk_dataset_free(d);
}

static void test_bad_folders(void **state) {
  (void)state;
  mkdir(in_folder("none"), 0777);
  REFUSED(in_folder("none"), NULL, YK_TRAIN, YK_ENOTFOUND, "none' is no data set that is known", "sub-folders with pictures");
  mkdir(in_folder("none/a"), 0777);
  REFUSED(in_folder("none"), NULL, YK_TRAIN, YK_ENOTFOUND, "no .jpg, .jpeg or .png file in the folder");
  put_text("gif/a/x.gif", "GIF89a");
  REFUSED(in_folder("gif"), NULL, YK_TRAIN, YK_EUNSUPPORTED, "gif/a/x.gif' is neither a JPEG nor a PNG; convert it");
  copy("rgb.png", "deep/a/b/x.png");
  REFUSED(in_folder("deep"), NULL, YK_TRAIN, YK_EINVAL, "deep/a/b' is a folder in the folder of a class");
  mkdir(in_folder("loop"), 0777);
  mkdir(in_folder("loop/a"), 0777);
  CHECK_INT(symlink("x.png", in_folder("loop/a/x.png")), 0);
  REFUSED(in_folder("loop"), NULL, YK_TRAIN, YK_EIO, "loop/a/x.png' is not a regular file");
  mkdir(in_folder("only"), 0777);
  copy("rgb.png", "only/test/a/x.png");
  REFUSED(in_folder("only"), NULL, YK_TRAIN, YK_ENOTFOUND, "no training part");
}

/* ---- what is not recognised, or cannot be opened ---- */

static void test_open(void **state) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  yk_dataset *d;
  (void)state;
  REFUSED(in_folder("absent"), NULL, YK_TRAIN, YK_ENOTFOUND, "there is no file", "absent'");
  put_text("what.bin", "some bytes that nobody knows");
  REFUSED(in_folder("what.bin"), NULL, YK_TRAIN, YK_ENOTFOUND, "what.bin' is no data set that is known", "*.tfrecord",
          "by its name");
  CHECK_INT(mkfifo(in_folder("pipe.csv"), 0600), 0);
  REFUSED(in_folder("pipe.csv"), NULL, YK_TRAIN, YK_EIO, "pipe.csv' is not a regular file");
  CHECK_INT(symlink("self.csv", in_folder("self.csv")), 0);
  REFUSED(in_folder("self.csv"), NULL, YK_TRAIN, YK_EIO, "self.csv'");
  REFUSED("/dev/zero", NULL, YK_TRAIN, YK_EIO, "not a regular file");
  /* by what it begins with, and by what it is said to be */
  size_t n;
  uint8_t *all = get_all(golden("tfrecord/numeric.tfrecord"), &n);
  put("records", all, n);
  free(all);
  d = opened(in_folder("records"), NULL, YK_TRAIN);
  assert_string_equal(yk_dataset_name(d), "tfrecord");
  yk_dataset_free(d);
  put_text("table.txt", "1,0\n2,1\n");
  o.format = "csv";
  d = opened(in_folder("table.txt"), &o, YK_TRAIN);
  CHECK_INT(yk_dataset_size(d), 2);
  yk_dataset_free(d);
  o.format = "npy";
  REFUSED(in_folder("table.txt"), &o, YK_TRAIN, YK_ECORRUPT, "table.txt'");
  o.format = "xml";
  REFUSED(in_folder("table.txt"), &o, YK_TRAIN, YK_EINVAL, "no data format 'xml'", "known are cifar10");
  o.format = "cifar10";
  REFUSED(in_folder("what.bin"), &o, YK_TRAIN, YK_ENOTFOUND, "data_batch_1.bin");
  static char deep[5000];
  memset(deep, 'x', sizeof deep - 1);
  REFUSED(deep, NULL, YK_TRAIN, YK_EINVAL, "a path of 4999 characters");
  CHECK_CODE(yk_dataset_open(NULL, NULL, YK_TRAIN, &d), YK_EINVAL, "needs a path");
  CHECK_CODE(yk_dataset_open("x", NULL, (yk_split)2, &d), YK_EINVAL, "splits train");
  CHECK_CODE(yk_dataset_read(NULL, 0, NULL), YK_EINVAL, "needs a data set");
}

static void test_options(void **state) {
  const char *path = golden("mnist");
  (void)state;
#define OPTION(field, value, text)                                                                                                 \
  do {                                                                                                                             \
    yk_dataset_options o = YK_DATASET_OPTIONS_INIT;                                                                                \
    o.field = value;                                                                                                               \
    REFUSED(path, &o, YK_TRAIN, YK_EINVAL, text);                                                                                  \
  } while (0)
  OPTION(size, 2, "yk_dataset_options.size is 2");
  OPTION(channels, 2, "1 or 3 channels, not 2");
  OPTION(height, -1, "not -1x-1");
  OPTION(width, 100000, "not 100000x100000");
  OPTION(fit, (yk_fit)9, "no fit 9");
  OPTION(holdout, 1, "a holdout of 1");
  OPTION(holdout, (double)NAN, "a holdout of nan");
  OPTION(skip, -1, "skip -1");
  OPTION(classes, -1, "classes -1");
  OPTION(max_bytes, -1, "max_bytes -1");
  OPTION(nfeatures, 129, "129 features");
  OPTION(nfeatures, 1, "1 features; expected at most 128, and where they are");
  OPTION(delimiter, '"', "delimiter");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_golden), cmocka_unit_test(test_damaged), cmocka_unit_test(test_classes), cmocka_unit_test(test_queue),
    cmocka_unit_test(test_bad_pictures), cmocka_unit_test(test_bad_folders), cmocka_unit_test(test_open), cmocka_unit_test(test_options),
  };
  return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
