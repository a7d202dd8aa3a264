/*
 * Scenes of figures: the same ones on every machine, boxes that fit what is drawn to the sample, and one clear error otherwise.
 */
#include "support/check.h"
#include "base/str.h"
#include <yoke/data.h>

#define HASH 0xf03a8e1f8d5ecb8eu

enum { N = 40, SIDE = 48, MOST = 4 };

static void drawn(uint64_t seed, uint64_t first, int64_t n, yk_tensor *out[3]) {
  CHECK_OK(yk_scenes_new(n, SIDE, MOST, out));
  CHECK_OK(yk_scenes_draw(seed, first, out));
}

static void drop(yk_tensor *out[3]) {
  for (int i = 0; i < 3; i++) yk_tensor_free(out[i]);
}

static void test_same_everywhere(void **state) {
  (void)state;
  yk_tensor *all[3], *one[3];
  uint64_t hash = 0;
  drawn(1, 0, N, all);
  for (int i = 0; i < 3; i++) hash = yk__hash(yk_tensor_data(all[i]), yk_tensor_bytes(all[i]), hash);
  if (hash != HASH) fail_msg("hash 0x%016llx, expected 0x%016llx", (unsigned long long)hash, (unsigned long long)HASH);
  drawn(1, 17, 1, one);                                    /* a scene does not depend on those around it */
  for (int i = 0; i < 3; i++) {
    const char *from = yk_tensor_data(all[i]);
    assert_memory_equal(from + 17 * yk_tensor_bytes(one[i]), yk_tensor_data(one[i]), yk_tensor_bytes(one[i]));
  }
  drop(one);
  drawn(2, 17, 1, one);
  assert_memory_not_equal((char *)yk_tensor_data(all[0]) + 17 * yk_tensor_bytes(one[0]), yk_tensor_data(one[0]), yk_tensor_bytes(one[0]));
  drop(one);
  drop(all);
}

/* How far pixel (y, x) is from the colour that the background has there, worked out from the scene's corners. */
static double departure(const float *picture, int y, int x) {
  double most = 0;
  for (int k = 0; k < 3; k++) {
    double first = picture[k], last = picture[3 * (SIDE * SIDE - 1) + k];
    most = fmax(most, fabs(picture[3 * (y * SIDE + x) + k] - (first + (last - first) * (x + y) / (2 * SIDE - 2))));
  }
  return most;
}

/* Along each side of a box, and not outside of it, there is something. Only scenes of one figure that leaves the corners free. */
static void test_boxes_fit(void **state) {
  (void)state;
  yk_tensor *t[3];
  int looked_at = 0, several = 0, seen[YK_SCENE_CLASSES] = { 0 };
  drawn(5, 100, 200, t);
  for (int64_t i = 0; i < 200; i++) {
    const float *picture = (float *)yk_tensor_data(t[0]) + i * SIDE * SIDE * 3, *box = (float *)yk_tensor_data(t[1]) + i * MOST * 4;
    int32_t class = ((int32_t *)yk_tensor_data(t[2]))[i * MOST];
    double lowest[2] = { SIDE, SIDE }, highest[2] = { 0, 0 };
    assert_true(box[2] > box[0] && box[3] > box[1] && box[0] >= 0 && box[1] >= 0 && box[2] <= SIDE && box[3] <= SIDE);
    assert_true(class >= 0 && class < YK_SCENE_CLASSES);
    if (box[6] > box[4]) { several++; continue; }
    if ((box[0] < 2 && box[1] < 2) || (box[2] > SIDE - 2 && box[3] > SIDE - 2)) continue;
    for (int y = 0; y < SIDE; y++)
      for (int x = 0; x < SIDE; x++) {
        if (departure(picture, y, x) < 0.17) continue;     /* noise, also at the corners: 0.05 each */
        lowest[0] = fmin(lowest[0], y), lowest[1] = fmin(lowest[1], x);
        highest[0] = fmax(highest[0], y + 1), highest[1] = fmax(highest[1], x + 1);
      }
    for (int k = 0; k < 2; k++)                            /* a pixel that is covered but a little does not stand out */
      if (!(lowest[k] >= floor(box[k]) && lowest[k] <= box[k] + 2 && highest[k] <= ceil(box[k + 2]) && highest[k] >= box[k + 2] - 2))
        fail_msg("scene %lld: axis %d goes from %g to %g, its box from %g to %g", (long long)i, k, lowest[k], highest[k], box[k], box[k + 2]);
    looked_at++;
    seen[class]++;
  }
  assert_true(looked_at > 20 && several > 100);
  for (int k = 0; k < YK_SCENE_CLASSES; k++) assert_true(seen[k] > 3);
  drop(t);
}

static void test_errors(void **state) {
  (void)state;
  yk_tensor *t[3], *other[3];
  CHECK_CODE(yk_scenes_new(0, 64, 3, t), YK_EINVAL, "0 scenes of 64 pixels");
  CHECK_CODE(yk_scenes_new(1, 31, 3, t), YK_EINVAL, "32 to 1024");
  CHECK_CODE(yk_scenes_new(1, 1025, 3, t), YK_EINVAL, "1025 pixels");
  CHECK_CODE(yk_scenes_new(1, 64, 65, t), YK_EINVAL, "up to 65 figures");
  CHECK_CODE(yk_scenes_new(1, 64, 3, NULL), YK_EINVAL, "place");
  drawn(1, 0, 2, t);
  CHECK_OK(yk_scenes_new(2, SIDE, MOST + 1, other));
  CHECK_CODE(yk_scenes_draw(1, 0, NULL), YK_EINVAL, "NULL");
  CHECK_CODE(yk_scenes_draw(1, 0, (yk_tensor *[]){ t[0], other[1], t[2] }), YK_EINVAL, "boxes: expected f32[2,4,4], got f32[2,5,4]");
  CHECK_CODE(yk_scenes_draw(1, 0, (yk_tensor *[]){ t[2], t[1], t[2] }), YK_EINVAL, "pictures: expected f32");
  CHECK_CODE(yk_scenes_draw(1, 0, (yk_tensor *[]){ t[0], NULL, t[2] }), YK_EINVAL, "got NULL");
  drop(t);
  drop(other);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_everywhere), cmocka_unit_test(test_boxes_fit), cmocka_unit_test(test_errors) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
