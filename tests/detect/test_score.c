/*
 * Recall and average precision, by hand. Against pycocotools: tests/golden/test_detect.c.
 */
#include "support/check.h"
#include <yoke/detect.h>

static yk_tensor *tensor(yk_dtype t, yk_shape s, const void *x) {
  yk_tensor *out = NULL;
  CHECK_OK(yk_tensor_from(t, s, x, &out));
  return out;
}

/* One picture with two things of class 0, at 0 and at 20, and one of class 1 at 40; boxes 10 wide beginning at `at`. */
static void add(yk_detection_score *s, size_t n, const float *at, const float *score, const int32_t *class) {
  float found[8][4], there[3][4];
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < 4; k++) found[i][k] = k % 2 ? at[i] + (k > 1 ? 10 : 0) : k > 1 ? 10 : 0;
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 4; k++) there[i][k] = (float)(k % 2 ? 20 * i + (k > 1 ? 10 : 0) : k > 1 ? 10 : 0);
  yk_tensor *boxes = tensor(YK_F32, YK_SHAPE(1, (int64_t)n, 4), found), *scores = tensor(YK_F32, YK_SHAPE(1, (int64_t)n), score);
  yk_tensor *classes = tensor(YK_I32, YK_SHAPE(1, (int64_t)n), class), *truth = tensor(YK_F32, YK_SHAPE(1, 3, 4), there);
  yk_tensor *kinds = tensor(YK_I32, YK_SHAPE(1, 3), (const int32_t[]){ 0, 0, 1 });
  CHECK_OK(yk_detection_score_add(s, boxes, scores, classes, truth, kinds));
  yk_tensor_free(boxes), yk_tensor_free(scores), yk_tensor_free(classes), yk_tensor_free(truth), yk_tensor_free(kinds);
}

static void test_by_hand(void **state) {
  (void)state;
  yk_detection_score *s;
  CHECK_OK(yk_detection_score_new(3, 0.5, &s));
  assert_true(isnan(yk_detection_recall(s, -1)) && isnan(yk_average_precision(s, -1)));
  /* wrong class, right, the same thing twice, right */
  add(s, 4, (const float[]){ 40, 0, 1, 22 }, (const float[]){ 0.9f, 0.8f, 0.7f, 0.6f }, (const int32_t[]){ 0, 0, 0, 0 });
  CHECK_NEAR(yk_detection_recall(s, 0), 1, 0);
  CHECK_NEAR(yk_average_precision(s, 0), 0.5, 1e-12);      /* precisions 0, 1/2, 1/3, 1/2 */
  CHECK_NEAR(yk_detection_recall(s, 1), 0, 0);
  CHECK_NEAR(yk_average_precision(s, 1), 0, 0);
  assert_true(isnan(yk_detection_recall(s, 2)) && isnan(yk_average_precision(s, 3)) && isnan(yk_average_precision(s, -2)));
  CHECK_NEAR(yk_detection_recall(s, -1), 0.5, 1e-12);      /* over the classes that were there */
  CHECK_NEAR(yk_average_precision(s, -1), 0.25, 1e-12);
  /* another picture, better scores, in any order: right, right; 2 of 2 and 4 of 6 in all */
  add(s, 3, (const float[]){ 20, 40, 0 }, (const float[]){ 0.95f, 0.2f, 0.99f }, (const int32_t[]){ 0, 1, 0 });
  CHECK_NEAR(yk_detection_recall(s, 0), 1, 0);
  CHECK_NEAR(yk_average_precision(s, 0), (51 * 1.0 + 25 * 0.75 + 25 * 4.0 / 6) / 101, 1e-12);
  CHECK_NEAR(yk_detection_recall(s, 1), 0.5, 1e-12);
  CHECK_NEAR(yk_average_precision(s, 1), 51 / 101.0, 1e-12);
  yk_detection_score_free(s);
  yk_detection_score_free(NULL);
}

/* The overlap that counts: boxes moved by 3 of 10 have 7/13. */
static void test_overlap(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    yk_detection_score *s;
    CHECK_OK(yk_detection_score_new(2, i ? 0.54 : 0.53, &s));
    add(s, 1, (const float[]){ 3 }, (const float[]){ 1 }, (const int32_t[]){ 0 });
    CHECK_NEAR(yk_detection_recall(s, 0), i ? 0 : 0.5, 0);
    yk_detection_score_free(s);
  }
}

static void test_errors(void **state) {
  (void)state;
  yk_detection_score *s;
  const float box[4] = { 0, 0, 1, 1 }, wrong[4] = { 0, 5, 1, 1 }, one = 1, nan = NAN;
  yk_tensor *boxes = tensor(YK_F32, YK_SHAPE(1, 1, 4), box), *bad = tensor(YK_F32, YK_SHAPE(1, 1, 4), wrong);
  yk_tensor *scores = tensor(YK_F32, YK_SHAPE(1, 1), &one), *no = tensor(YK_F32, YK_SHAPE(1, 1), &nan);
  yk_tensor *class = tensor(YK_I32, YK_SHAPE(1, 1), (const int32_t[]){ 2 });
  CHECK_CODE(yk_detection_score_new(0, 0.5, &s), YK_EINVAL, "0 classes");
  CHECK_CODE(yk_detection_score_new(1, 1.5, &s), YK_EINVAL, "overlap of 1.5");
  CHECK_OK(yk_detection_score_new(2, 0, &s));
  CHECK_CODE(yk_detection_score_add(NULL, boxes, scores, NULL, boxes, NULL), YK_EINVAL, "NULL");
  CHECK_CODE(yk_detection_score_add(s, bad, scores, NULL, boxes, NULL), YK_EINVAL, "boxes [0, 0] is (0, 5, 1, 1)");
  CHECK_CODE(yk_detection_score_add(s, boxes, no, NULL, boxes, NULL), YK_EINVAL, "scores [0, 0] is NaN");
  CHECK_CODE(yk_detection_score_add(s, boxes, scores, class, boxes, NULL), YK_EINVAL, "classes [0, 0] is 2; expected a class from 0 to 1");
  CHECK_CODE(yk_detection_score_add(s, boxes, scores, NULL, boxes, class), YK_EINVAL, "classes of the truth [0, 0] is 2");
  CHECK_CODE(yk_detection_score_add(s, boxes, boxes, NULL, boxes, NULL), YK_EINVAL, "scores: expected f32[1,1], got f32[1,1,4]");
  assert_true(isnan(yk_detection_recall(s, -1)));          /* none of these counts */
  CHECK_OK(yk_detection_score_add(s, boxes, scores, NULL, boxes, NULL));
  CHECK_NEAR(yk_average_precision(s, -1), 1, 1e-12);
  yk_detection_score_free(s);
  yk_tensor_free(boxes), yk_tensor_free(bad), yk_tensor_free(scores), yk_tensor_free(no), yk_tensor_free(class);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_hand), cmocka_unit_test(test_overlap), cmocka_unit_test(test_errors) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
