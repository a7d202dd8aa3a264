/*
 * Data sets from memory. Pictures are copied, labels are checked, and every way to ask for something that is not there has an
 * answer.
 */
#include "support/check.h"
#include "base/alloc.h"
#include <yoke/data.h>

static void test_copied(void **state) {
  uint8_t images[3 * 2 * 4 * 1], labels[3] = { 0, 255, 7 };
  yk_dataset *d;
  (void)state;
  for (size_t i = 0; i < sizeof images; i++) images[i] = (uint8_t)(10 * i);
  CHECK_OK(yk_dataset_images(3, 2, 4, 1, images, labels, 256, &d));
  memset(images, 0, sizeof images);
  labels[1] = 0;
  CHECK_INT(yk_dataset_size(d), 3);
  CHECK_INT(yk_dataset_classes(d), 256);
  assert_string_equal(yk_dataset_name(d), "images");
  assert_null(yk_dataset_class_name(d, 0));
  CHECK_INT(yk_dataset_shape(d).rank, 3);
  CHECK_INT(yk_dataset_shape(d).dim[0], 2);
  CHECK_INT(yk_dataset_shape(d).dim[1], 4);
  CHECK_INT(yk_dataset_shape(d).dim[2], 1);
  CHECK_INT(yk_dataset_label(d, 1), 255);
  for (int64_t i = 0; i < 3; i++)
    for (int p = 0; p < 8; p++) CHECK_INT(yk_dataset_image(d, i)[p], 10 * (8 * i + p));
  assert_null(yk_dataset_image(d, 3));
  assert_null(yk_dataset_image(d, -1));
  CHECK_INT(yk_dataset_label(d, 3), -1);
  CHECK_INT(yk_dataset_label(d, -1), -1);
  yk_dataset_free(d);
}

static void test_refusals(void **state) {
  uint8_t images[12] = { 0 }, labels[3] = { 0, 1, 2 };
  yk_dataset *d = NULL;
  (void)state;
  CHECK_CODE(yk_dataset_images(0, 2, 2, 1, images, labels, 3, &d), YK_EINVAL, "n 0");
  CHECK_CODE(yk_dataset_images(3, 0, 2, 1, images, labels, 3, &d), YK_EINVAL, "0x2x1");
  CHECK_CODE(yk_dataset_images(3, 2, -1, 1, images, labels, 3, &d), YK_EINVAL, "2x-1x1");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 0, images, labels, 3, &d), YK_EINVAL, "2x2x0");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 1, images, labels, 0, &d), YK_EINVAL, "0 classes");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 1, images, labels, 257, &d), YK_EINVAL, "257 classes");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 1, NULL, labels, 3, &d), YK_EINVAL, "images");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 1, images, NULL, 3, &d), YK_EINVAL, "labels");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 1, images, labels, 3, NULL), YK_EINVAL, "result");
  CHECK_CODE(yk_dataset_images(3, 2, 2, 1, images, labels, 2, &d), YK_EINVAL, "label 2 of picture 2 is not below 2");
  CHECK_CODE(yk_dataset_images(3, INT64_MAX / 2, 2, 2, images, labels, 3, &d), YK_EINVAL, "too large");
  assert_null(d);
}

static void test_no_memory(void **state) {
  uint8_t images[4] = { 0 }, labels[1] = { 0 };
  uint64_t live = yk__alloc_live();
  yk_dataset *d = NULL;
  (void)state;
  for (uint64_t n = 1; n <= 3; n++) {
    yk__alloc_fail_at(n);
    CHECK_CODE(yk_dataset_images(1, 2, 2, 1, images, labels, 1, &d), YK_ENOMEM, "memory");
    CHECK_INT(yk__alloc_live(), live);
  }
  yk__alloc_fail_at(0);
  assert_null(d);
  CHECK_OK(yk_dataset_images(1, 2, 2, 1, images, labels, 1, &d));
  yk_dataset_free(d);
  CHECK_INT(yk__alloc_live(), live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_copied),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
