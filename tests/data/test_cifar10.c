/*
 * The CIFAR-10 reader. Files made here, good and broken in every way that has its own message; and the real data set where
 * there is one: the folder that YOKE_TEST_CIFAR10 names, or ../shared/data/cifar10-small beside the source tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/check.h"
#include "base/alloc.h"
#include <yoke/data.h>

enum { PLANE = 1024, RECORD = 1 + 3 * PLANE };

static char folder[64];

static const char *in_folder(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void write_bytes(const char *name, const void *bytes, size_t n) {
  FILE *f = fopen(in_folder(name), "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

/* Byte `p` of plane `plane` of record i of a file. */
static uint8_t byte_of(int file, int64_t i, int plane, int p) {
  return (uint8_t)(file * 50 + i * 31 + plane * 77 + p * 3 + p / 32);
}

/* n records with labels (file + i) % 10; then `extra` bytes more. */
static void write_file(const char *name, int file, int64_t n, size_t extra) {
  size_t bytes = (size_t)n * RECORD + extra;
  uint8_t *all = calloc(bytes + 1, 1);
  assert_non_null(all);
  for (int64_t i = 0; i < n; i++) {
    all[i * RECORD] = (uint8_t)((file + i) % 10);
    for (int k = 0; k < 3; k++)
      for (int p = 0; p < PLANE; p++) all[i * RECORD + 1 + k * PLANE + p] = byte_of(file, i, k, p);
  }
  write_bytes(name, all, bytes);
  free(all);
}

static void write_train_file(int file, int64_t n) {
  char name[32];
  snprintf(name, sizeof name, "data_batch_%d.bin", file);
  write_file(name, file, n, 0);
}

static int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "cifar10-test-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int tear_down(void **state) {
  static const char *const names[] = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                                       "test_batch.bin" };
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (unlink(in_folder(names[i])) != 0) rmdir(in_folder(names[i]));
  return rmdir(folder);
}

static void check_record(const yk_dataset *d, int64_t at, int file, int64_t i) {
  const uint8_t *image = yk_dataset_image(d, at);
  CHECK_INT(yk_dataset_label(d, at), (file + i) % 10);
  for (int p = 0; p < PLANE; p++)
    for (int k = 0; k < 3; k++)
      if (image[3 * p + k] != byte_of(file, i, k, p))
        fail_msg("picture %lld, pixel %d, channel %d: got %d, expected %d", (long long)at, p, k, image[3 * p + k], byte_of(file, i, k, p));
}

static void test_all_files(void **state) {
  yk_dataset *d;
  (void)state;
  for (int file = 1; file <= 5; file++) write_train_file(file, file);
  write_file("test_batch.bin", 9, 2, 0);
  CHECK_OK(yk_dataset_cifar10(folder, YK_TRAIN, &d));
  CHECK_INT(yk_dataset_size(d), 15);
  CHECK_INT(yk_dataset_classes(d), 10);
  assert_string_equal(yk_dataset_name(d), "cifar10");
  assert_string_equal(yk_dataset_class_name(d, 0), "airplane");
  assert_string_equal(yk_dataset_class_name(d, 9), "truck");
  assert_null(yk_dataset_class_name(d, 10));
  assert_null(yk_dataset_class_name(d, -1));
  CHECK_INT(yk_dataset_shape(d).rank, 3);
  CHECK_INT(yk_dataset_shape(d).dim[0], 32);
  CHECK_INT(yk_dataset_shape(d).dim[1], 32);
  CHECK_INT(yk_dataset_shape(d).dim[2], 3);
  for (int64_t file = 1, at = 0; file <= 5; file++)
    for (int64_t i = 0; i < file; i++) check_record(d, at++, (int)file, i);
  assert_null(yk_dataset_image(d, 15));
  assert_null(yk_dataset_image(d, -1));
  CHECK_INT(yk_dataset_label(d, 15), -1);
  yk_dataset_free(d);
  CHECK_OK(yk_dataset_cifar10(folder, YK_TEST, &d));
  CHECK_INT(yk_dataset_size(d), 2);
  check_record(d, 1, 9, 1);
  yk_dataset_free(d);
}

static void test_some_files(void **state) {
  yk_dataset *d;
  (void)state;
  write_train_file(2, 3);
  write_train_file(5, 1);
  CHECK_OK(yk_dataset_cifar10(folder, YK_TRAIN, &d));
  CHECK_INT(yk_dataset_size(d), 4);
  check_record(d, 0, 2, 0);
  check_record(d, 3, 5, 0);
  yk_dataset_free(d);
  d = (yk_dataset *)(uintptr_t)1;
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TEST, &d), YK_ENOTFOUND, "test_batch.bin");
  CHECK_INT((uintptr_t)d, 1);
}

static void test_missing(void **state) {
  yk_dataset *d;
  (void)state;
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TRAIN, &d), YK_ENOTFOUND, folder);
  CHECK_CODE(yk_dataset_cifar10("no/such/folder", YK_TRAIN, &d), YK_ENOTFOUND, "no/such/folder");
  write_train_file(1, 1);
  CHECK_CODE(yk_dataset_cifar10(in_folder("data_batch_1.bin"), YK_TRAIN, &d), YK_ENOTFOUND, "data_batch_1.bin'; expected a folder");
  CHECK_CODE(yk_dataset_cifar10(NULL, YK_TRAIN, &d), YK_EINVAL, "folder");
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TRAIN, NULL), YK_EINVAL, "place for the result");
  CHECK_CODE(yk_dataset_cifar10(folder, (yk_split)2, &d), YK_EINVAL, "2");
}

static void test_long_path(void **state) {
  static char path[5000];
  yk_dataset *d;
  (void)state;
  memset(path, 'x', sizeof path - 1);
  CHECK_CODE(yk_dataset_cifar10(path, YK_TRAIN, &d), YK_EINVAL, "longer than");
}

static void test_broken_sizes(void **state) {
  yk_dataset *d;
  (void)state;
  write_train_file(1, 2);
  write_file("data_batch_3.bin", 3, 2, 17);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TRAIN, &d), YK_ECORRUPT,
             "data_batch_3.bin' has 6163 bytes, not a multiple of 3073: 2 whole records and 17");
  write_bytes("data_batch_3.bin", "", 0);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TRAIN, &d), YK_ECORRUPT, "data_batch_3.bin' is empty");
  write_bytes("data_batch_3.bin", "P", 1);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TRAIN, &d), YK_ECORRUPT, "has 1 bytes");
}

static void test_label_out_of_range(void **state) {
  uint8_t all[3 * RECORD] = { 0 };
  yk_dataset *d = NULL;
  uint64_t live = yk__alloc_live();
  (void)state;
  all[0] = 9;
  all[2 * RECORD] = 10;
  write_bytes("test_batch.bin", all, sizeof all);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TEST, &d), YK_ECORRUPT, "test_batch.bin': label 10 of record 2 (offset 6146)");
  assert_null(d);
  CHECK_INT(yk__alloc_live(), live);
  write_bytes("test_batch.bin", all, 2 * RECORD);
  CHECK_OK(yk_dataset_cifar10(folder, YK_TEST, &d));
  CHECK_INT(yk_dataset_label(d, 0), 9);
  yk_dataset_free(d);
}

/* A file of three gigabytes that takes no room: refused before memory is asked for. */
static void test_oversized(void **state) {
  yk_dataset *d;
  uint64_t made = yk__alloc_count();
  int fd = open(in_folder("test_batch.bin"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  (void)state;
  assert_true(fd >= 0);
  if (ftruncate(fd, (off_t)1000001 * RECORD) != 0) {
    print_message("no sparse files of 3 GB here: %s\n", strerror(errno));
    close(fd);
    skip();
  }
  close(fd);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TEST, &d), YK_ECORRUPT, "test_batch.bin' has 1000001 records");
  CHECK_INT(yk__alloc_count(), made);
}

static void test_not_a_file(void **state) {
  yk_dataset *d;
  (void)state;
  CHECK_INT(mkdir(in_folder("test_batch.bin"), 0700), 0);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TEST, &d), YK_EIO, "test_batch.bin' is not a regular file");
  CHECK_INT(mkfifo(in_folder("data_batch_4.bin"), 0600), 0);
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TRAIN, &d), YK_EIO, "data_batch_4.bin' is not a regular file");
}

static void test_unreadable(void **state) {
  yk_dataset *d;
  (void)state;
  write_file("test_batch.bin", 0, 1, 0);
  CHECK_INT(chmod(in_folder("test_batch.bin"), 0), 0);
  if (access(in_folder("test_batch.bin"), R_OK) == 0) {
    print_message("this user (root?) may read everything\n");
    skip();
  }
  CHECK_CODE(yk_dataset_cifar10(folder, YK_TEST, &d), YK_EIO, "test_batch.bin");
}

static void test_no_memory(void **state) {
  uint64_t live = yk__alloc_live(), n = 1;
  yk_dataset *d = NULL;
  (void)state;
  write_file("test_batch.bin", 0, 2, 0);
  for (;; n++) {
    yk_code rc;
    yk__alloc_fail_at(n);
    rc = yk_dataset_cifar10(folder, YK_TEST, &d);
    yk__alloc_fail_at(0);
    if (rc == YK_OK) break;
    CHECK_INT(rc, YK_ENOMEM);
    assert_null(d);
    CHECK_INT(yk__alloc_live(), live);
  }
  yk_error_clear();
  CHECK_INT(n, 7);                         /* the set, its two names, its reader, pictures, labels */
  yk_dataset_free(d);
  CHECK_INT(yk__alloc_live(), live);
}

static const char *real_folder(void) {
  static char beside[4096];
  const char *given = getenv("YOKE_TEST_CIFAR10"), *source = getenv("YOKE_SOURCE_DIR");
  if (given != NULL) return given;
  snprintf(beside, sizeof beside, "%s/../shared/data/cifar10-small", source != NULL ? source : ".");
  return access(beside, R_OK) == 0 ? beside : NULL;
}

/* Whatever part of CIFAR-10 is there: every class in number, and pictures that look like pictures. */
static void test_real(void **state) {
  const char *path = real_folder();
  (void)state;
  if (path == NULL) {
    print_message("no CIFAR-10 here; YOKE_TEST_CIFAR10 may name its folder\n");
    skip();
  }
  for (int split = YK_TRAIN; split <= YK_TEST; split++) {
    int64_t count[10] = { 0 }, n;
    double sum = 0, steps = 0;
    yk_dataset *d;
    CHECK_OK(yk_dataset_cifar10(path, (yk_split)split, &d));
    n = yk_dataset_size(d);
    assert_true(n >= 100);
    for (int64_t i = 0; i < n; i++) {
      const uint8_t *image = yk_dataset_image(d, i);
      count[yk_dataset_label(d, i)]++;
      for (int p = 0; p < 3 * PLANE; p++) sum += image[p];
      for (int p = 3; p < 3 * PLANE; p++) steps += p / 3 % 32 ? abs(image[p] - image[p - 3]) : 0;
    }
    for (int k = 0; k < 10; k++)
      if (count[k] * 10 < n * 6 / 10 || count[k] * 10 > n * 14 / 10)
        fail_msg("%lld of %lld pictures are of class %d", (long long)count[k], (long long)n, k);
    CHECK_NEAR(sum / (double)n / (3 * PLANE), 120.7, 3);                 /* the mean of all of CIFAR-10 is 120.7 */
    CHECK_NEAR(steps / (double)n / (3 * 32 * 31), 11, 4);               /* neighbours of one channel are alike: planes are not mixed up */
    yk_dataset_free(d);
  }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
    IN_FOLDER(test_all_files),
    IN_FOLDER(test_some_files),
    IN_FOLDER(test_missing),
    cmocka_unit_test(test_long_path),
    IN_FOLDER(test_broken_sizes),
    IN_FOLDER(test_label_out_of_range),
    IN_FOLDER(test_oversized),
    IN_FOLDER(test_not_a_file),
    IN_FOLDER(test_unreadable),
    IN_FOLDER(test_no_memory),
    cmocka_unit_test(test_real),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
