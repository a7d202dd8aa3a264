/*
 * calls_detect.c - scenes, anchors, targets and scores of object detection while memory runs out.
 *
 * One set of globals serves all cases: they run one after the other.
 */
#include "fault.h"

static yk_tensor *made[3], *scores;
static yk_detection_score *score;

static void nothing(void) { made[0] = made[1] = made[2] = scores = NULL; score = NULL; }
static void none_made(void) { for (int i = 0; i < 3; i++) assert_null(made[i]); }
static void close_all(void) {
  for (int i = 0; i < 3; i++) yk_tensor_free(made[i]);
  yk_tensor_free(scores);
  yk_detection_score_free(score);
  nothing();
}

static yk_code anchors(void) {
  static const double sizes[] = { 8, 16 };
  return yk_anchors(&(yk_anchor_options){ .rows = 2, .columns = 3, .stride = 4, .nsizes = 2, .sizes = sizes }, &made[0]);
}
static yk_code scenes(void) { return yk_scenes_new(2, 32, 3, made); }
static yk_code targets(void) { return yk_box_targets_new(2, 5, made); }
static yk_code score_new(void) { return yk_detection_score_new(YK_SCENE_CLASSES, 0.5, &score); }
static void no_score(void) { assert_null(score); }

/* What is there is found: its boxes as they are, all with one score. */
static void score_open(void) {
  nothing();
  CHECK_OK(yk_scenes_new(2, 32, 3, made));
  CHECK_OK(yk_scenes_draw(1, 0, made));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2, 3), &scores));
  CHECK_OK(yk_detection_score_new(YK_SCENE_CLASSES, 0.5, &score));
}
static yk_code score_add(void) { return yk_detection_score_add(score, made[1], scores, made[2], made[1], made[2]); }
static void not_counted(void) { assert_true(isnan(yk_detection_recall(score, -1))); }
static void all_found(void) { CHECK_NEAR(yk_detection_recall(score, -1), 1, 0); }

const fault_case fault_detect[] = {
  { .names = "yk_anchors", .open = nothing, .call = anchors, .intact = none_made, .close = close_all, .least = 2 },
  { .names = "yk_scenes_new", .open = nothing, .call = scenes, .intact = none_made, .close = close_all, .least = 6 },
  { .names = "yk_box_targets_new", .open = nothing, .call = targets, .intact = none_made, .close = close_all, .least = 4 },
  { .names = "yk_detection_score_new", .open = nothing, .call = score_new, .intact = no_score, .close = close_all, .least = 2 },
  { .names = "yk_detection_score_add", .open = score_open, .call = score_add, .intact = not_counted, .good = all_found,
    .close = close_all, .least = 2 },
  { 0 },
};
