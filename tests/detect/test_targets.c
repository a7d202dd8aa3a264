/*
 * Anchors, and what boxes are to learn. Labels by hand and by chance; what a random choice leaves; rows that are no boxes; one
 * clear error otherwise. Against torchvision: tests/golden/test_detect.c.
 */
#include "support/check.h"
#include <yoke/detect.h>

static yk_tensor *f32(yk_shape s, const float *x) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_F32, s, x, &t));
  return t;
}

static yk_tensor *i32(yk_shape s, const int32_t *x) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_from(YK_I32, s, x, &t));
  return t;
}

static const int32_t *ints(const yk_tensor *t) { return yk_tensor_data(t); }

/* ---- anchors ----------------------------------------------------------------------------------------------------------- */

static void test_anchors(void **state) {
  (void)state;
  static const double sizes[] = { 8, 20 }, ratios[] = { 1, 4, 0.25 };
  yk_tensor *t;
  CHECK_OK(yk_anchors(&(yk_anchor_options){ .rows = 3, .columns = 2, .stride = 6, .nsizes = 2, .sizes = sizes, .nratios = 3, .ratios = ratios }, &t));
  CHECK_INT(yk_tensor_desc(t)->rank, 2);
  CHECK_INT(yk_tensor_desc(t)->dim[0], 3 * 2 * 3 * 2);
  for (int64_t row = 0, i = 0; row < 3; row++)
    for (int64_t column = 0; column < 2; column++)
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 2; s++, i++) {
          double b[4];
          for (int k = 0; k < 4; k++) b[k] = yk_tensor_at(t, 4 * i + k);
          CHECK_NEAR((b[0] + b[2]) / 2, 6 * (double)row + 3, 1e-5);
          CHECK_NEAR((b[1] + b[3]) / 2, 6 * (double)column + 3, 1e-5);
          CHECK_NEAR((b[2] - b[0]) * (b[3] - b[1]), sizes[s] * sizes[s], 1e-3);
          CHECK_NEAR((b[2] - b[0]) / (b[3] - b[1]), ratios[r], 1e-5);
        }
  yk_tensor_free(t);
  CHECK_OK(yk_anchors(&(yk_anchor_options){ .rows = 1, .columns = 1, .stride = 2, .nsizes = 1, .sizes = sizes }, &t));
  const float square[4] = { -3, -3, 5, 5 };
  assert_memory_equal(yk_tensor_data(t), square, sizeof square);
  yk_tensor_free(t);
}

static void test_anchor_errors(void **state) {
  (void)state;
  static const double sizes[] = { 8, 0 };
  yk_anchor_options o = { .rows = 1, .columns = 1, .stride = 1, .nsizes = 1, .sizes = sizes };
  yk_tensor *t;
  CHECK_CODE(yk_anchors(NULL, &t), YK_EINVAL, "NULL");
  o.rows = 0;
  CHECK_CODE(yk_anchors(&o, &t), YK_EINVAL, "0 x 1 cells");
  o.rows = 1, o.stride = -1;
  CHECK_CODE(yk_anchors(&o, &t), YK_EINVAL, "every -1 pixels");
  o.stride = 1, o.nsizes = 0;
  CHECK_CODE(yk_anchors(&o, &t), YK_EINVAL, "0 sizes");
  o.nsizes = 2;
  CHECK_CODE(yk_anchors(&o, &t), YK_EINVAL, "not above 0");
  o.nsizes = 1, o.nratios = 1;
  CHECK_CODE(yk_anchors(&o, &t), YK_EINVAL, "not above 0");
}

/* ---- targets ----------------------------------------------------------------------------------------------------------- */

/* Five boxes, one of which is none, in two pictures: the second one shows nothing. */
static const float FIVE[20] = { 0, 0, 10, 10, 0, 0, 10, 7, 50, 50, 60, 60, 5, 5, 5, 9, 0, 0, 10, 4 };
static const float THINGS[16] = { 0, 0, 10, 10, 0, 20, 10, 30 };

static void test_labels(void **state) {
  (void)state;
  yk_tensor *boxes = f32(YK_SHAPE(5, 4), FIVE), *truth = f32(YK_SHAPE(2, 2, 4), THINGS), *out[2];
  yk_tensor *classes = i32(YK_SHAPE(2, 2), (const int32_t[]){ 6, 2, 0, 0 });
  CHECK_OK(yk_box_targets_new(2, 5, out));
  CHECK_OK(yk_box_targets(boxes, truth, classes, &(yk_target_options){ .positive = 0.6, .negative = 0.5 }, out));
  assert_memory_equal(yk_tensor_data(out[0]), ((const int32_t[]){ 7, 7, 0, -1, 0, 0, 0, 0, -1, 0 }), 10 * sizeof(int32_t));
  const double code[8] = { 0, 0, 0, 0, 0, 1.5 / 7 / 0.1, 0, log(10.0 / 7) / 0.2 };
  for (int i = 0; i < 40; i++) CHECK_NEAR(yk_tensor_at(out[1], i), i < 8 ? code[i] : 0, 1e-6);
  CHECK_OK(yk_box_targets(boxes, truth, NULL, &(yk_target_options){ .positive = 0.6, .negative = 0.3 }, out));
  assert_memory_equal(yk_tensor_data(out[0]), ((const int32_t[]){ 1, 1, 0, -1, -1 }), 5 * sizeof(int32_t));   /* 0.4: between */
  /* boxes of each picture its own, another deviation, and the best one although it overlaps little */
  float two[2 * 2 * 4] = { 0, 0, 10, 4, 0, 26, 10, 36, 1, 1, 2, 2, 0, 0, 0, 0 };
  yk_tensor *own = f32(YK_SHAPE(2, 2, 4), two), *pair[2];
  const double deviation[4] = { 1, 2, 1, 1 };
  CHECK_OK(yk_box_targets_new(2, 2, pair));
  CHECK_OK(yk_box_targets(own, truth, classes, &(yk_target_options){ .positive = 0.6, .best = true, .deviation = deviation }, pair));
  assert_memory_equal(yk_tensor_data(pair[0]), ((const int32_t[]){ 7, 3, 0, -1 }), 4 * sizeof(int32_t));
  const double seen[8] = { 0, 0.75 / 2, 0, log(2.5), 0, -0.6 / 2, 0, 0 };
  for (int i = 0; i < 16; i++) CHECK_NEAR(yk_tensor_at(pair[1], i), i < 8 ? seen[i] : 0, 1e-6);
  for (int i = 0; i < 2; i++) yk_tensor_free(out[i]), yk_tensor_free(pair[i]);
  yk_tensor_free(boxes), yk_tensor_free(truth), yk_tensor_free(classes), yk_tensor_free(own);
}

static int64_t count(const yk_tensor *label, int64_t from, int64_t to, int lo, int hi) {
  int64_t n = 0;
  for (int64_t i = from; i < to; i++) n += ints(label)[i] >= lo && ints(label)[i] <= hi;
  return n;
}

/* 60 boxes that show the thing and 100 that do not, in each of 2 pictures: what is chosen, how evenly, and that a seed repeats.
 */
static void test_choice(void **state) {
  (void)state;
  enum { SHOW = 60, ALL = 160, SEEDS = 300 };
  float box[ALL][4], thing[8] = { 0, 0, 10, 10, 0, 0, 10, 10 };
  int often[ALL] = { 0 };
  for (int i = 0; i < ALL; i++) {
    float at = i < SHOW ? 0.01f * (float)i : 20 + (float)i;
    for (int k = 0; k < 4; k++) box[i][k] = at + (k > 1 ? 10 : 0);
  }
  yk_tensor *boxes = f32(YK_SHAPE(ALL, 4), box[0]), *truth = f32(YK_SHAPE(2, 1, 4), thing), *out[2], *again[2];
  CHECK_OK(yk_box_targets_new(2, ALL, out));
  CHECK_OK(yk_box_targets_new(2, ALL, again));
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    yk_target_options o = { .most = 40, .fraction = 0.25, .seed = seed };
    CHECK_OK(yk_box_targets(boxes, truth, NULL, &o, out));
    for (int64_t p = 0; p < 2; p++) {
      CHECK_INT(count(out[0], p * ALL, p * ALL + ALL, 1, 1), 10);
      CHECK_INT(count(out[0], p * ALL, p * ALL + ALL, 0, 0), 30);
    }
    for (int i = 0; i < 2 * ALL; i++) often[i % ALL] += ints(out[0])[i] >= 0;
    CHECK_OK(yk_box_targets(boxes, truth, NULL, &o, again));
    assert_memory_equal(yk_tensor_data(out[0]), yk_tensor_data(again[0]), yk_tensor_bytes(out[0]));
  }
  assert_memory_not_equal(ints(out[0]), ints(out[0]) + ALL, ALL * sizeof(int32_t));      /* pictures choose by themselves */
  for (int i = 0; i < ALL; i++) {                          /* 600 draws of 1 in 6, or of 3 in 10: within 5 deviations */
    double p = i < SHOW ? 10.0 / SHOW : 30.0 / (ALL - SHOW), mean = 2 * SEEDS * p;
    CHECK_NEAR(often[i], mean, 5 * sqrt(mean * (1 - p)));
  }
  /* too few of one kind leave room for the other one */
  CHECK_OK(yk_box_targets(boxes, truth, NULL, &(yk_target_options){ .most = 150, .fraction = 0.5 }, out));
  CHECK_INT(count(out[0], 0, ALL, 1, 1), 60);
  CHECK_INT(count(out[0], 0, ALL, 0, 0), 90);
  for (int i = 0; i < 2; i++) yk_tensor_free(out[i]), yk_tensor_free(again[i]);
  yk_tensor_free(boxes), yk_tensor_free(truth);
}

static void test_target_errors(void **state) {
  (void)state;
  float bad[16] = { 0, 0, 10, 10, 0, 20, 10, 30, 4, 4, 3, 8 }, infinite[20] = { 0, 0, INFINITY, 10 };
  yk_tensor *boxes = f32(YK_SHAPE(5, 4), FIVE), *truth = f32(YK_SHAPE(2, 2, 4), THINGS), *wrong = f32(YK_SHAPE(2, 2, 4), bad), *out[2];
  yk_tensor *far = f32(YK_SHAPE(5, 4), infinite), *class = i32(YK_SHAPE(2, 2), (const int32_t[]){ 0, -3, 0, 0 });
  const double flat[4] = { 1, 1, 0, 1 };
  CHECK_OK(yk_box_targets_new(2, 5, out));
  CHECK_OK(yk_box_targets(boxes, truth, NULL, NULL, out));
  int32_t before[10];
  memcpy(before, yk_tensor_data(out[0]), sizeof before);
  CHECK_CODE(yk_box_targets(boxes, wrong, NULL, NULL, out), YK_EINVAL, "truth [1, 0] is (4, 4, 3, 8), which is no box (y1, x1, y2, x2)");
  CHECK_CODE(yk_box_targets(far, truth, NULL, NULL, out), YK_EINVAL, "boxes [0] is (0, 0, inf, 10)");
  CHECK_CODE(yk_box_targets(boxes, truth, class, NULL, out), YK_EINVAL, "classes [0, 1] is -3");
  CHECK_CODE(yk_box_targets(truth, truth, NULL, NULL, out), YK_EINVAL, "labels: expected i32[2,2], got i32[2,5]");
  CHECK_CODE(yk_box_targets(boxes, boxes, NULL, NULL, out), YK_EINVAL, "truth: expected f32[5,?,4], got f32[5,4]");
  CHECK_CODE(yk_box_targets(boxes, truth, boxes, NULL, out), YK_EINVAL, "classes: expected i32[2,2], got f32[5,4]");
  CHECK_CODE(yk_box_targets(boxes, truth, NULL, &(yk_target_options){ .positive = 0.3, .negative = 0.4 }, out), YK_EINVAL, "below an overlap of 0.4");
  CHECK_CODE(yk_box_targets(boxes, truth, NULL, &(yk_target_options){ .positive = 1.5 }, out), YK_EINVAL, "1.5");
  CHECK_CODE(yk_box_targets(boxes, truth, NULL, &(yk_target_options){ .most = 3, .fraction = -1 }, out), YK_EINVAL, "a part of -1");
  CHECK_CODE(yk_box_targets(boxes, truth, NULL, &(yk_target_options){ .deviation = flat }, out), YK_EINVAL, "deviation");
  CHECK_CODE(yk_box_targets(NULL, truth, NULL, NULL, out), YK_EINVAL, "NULL");
  assert_memory_equal(before, yk_tensor_data(out[0]), sizeof before);
  for (int i = 0; i < 2; i++) yk_tensor_free(out[i]);
  yk_tensor_free(boxes), yk_tensor_free(truth), yk_tensor_free(wrong), yk_tensor_free(far), yk_tensor_free(class);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_anchors), cmocka_unit_test(test_anchor_errors), cmocka_unit_test(test_labels), cmocka_unit_test(test_choice),
    cmocka_unit_test(test_target_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
