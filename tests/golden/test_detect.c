/*
 * test_detect.c - the parts of object detection against torchvision, PyTorch and pycocotools.
 *
 * detect_values.txt holds inputs and what these made of them; see make_detect_values.py. Both sides work in float32, but for
 * matching and scores, where labels must be equal and precisions agree to the rounding of a sum.
 */
#include <yoke/yoke.h>
#include "support/check.h"

enum { LINE = 1 << 17 };

/* The array `name` of the file as a tensor of `dtype`. */
static yk_tensor *array(const char *name, yk_dtype dtype) {
  static char line[LINE];
  const char *folder = getenv("YOKE_TEST_DATA");
  char path[1024];
  yk_tensor *t = NULL;
  snprintf(path, sizeof path, "%s/golden/detect_values.txt", folder ? folder : "tests");
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("cannot read %s", path);
  while (t == NULL && fgets(line, sizeof line, f)) {
    size_t n = strlen(name);
    if (strncmp(line, name, n) != 0 || line[n] != ' ') continue;
    yk_shape s = { .rank = 0 };
    char *at = line + n;
    do s.dim[s.rank++] = strtol(at + 1, &at, 10); while (*at == 'x');
    CHECK_OK(yk_tensor_new(dtype, s, &t));
    for (int64_t i = 0; i < yk_tensor_count(t); i++) {
      double x = strtod(at, &at);
      if (dtype == YK_F32) ((float *)yk_tensor_data(t))[i] = (float)x;
      else ((int32_t *)yk_tensor_data(t))[i] = (int32_t)x;
    }
  }
  fclose(f);
  if (t == NULL) fail_msg("%s has no array %s", path, name);
  return t;
}

static void same(const char *what, const yk_tensor *got, const char *name, double tolerance) {
  yk_tensor *want = array(name, yk_tensor_desc(got)->dtype == YK_I32 ? YK_I32 : YK_F32);
  CHECK_INT(yk_tensor_count(got), yk_tensor_count(want));
  for (int64_t i = 0; i < yk_tensor_count(got); i++) {
    double x = yk_tensor_at(got, i), y = yk_tensor_at(want, i);
    if (!(fabs(x - y) <= tolerance * fmax(1, fabs(y)))) fail_msg("%s, element %lld: got %.9g, expected %.9g", what, (long long)i, x, y);
  }
  yk_tensor_free(want);
}

/* A value of the graph, run in a session of its own. */
static void run(yk_graph *g, size_t n, const yk_value *fetch, yk_tensor **out) {
  yk_session *s;
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(yk_session_open(g, NULL, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, n, fetch, 0, NULL, out));
  yk_session_close(s);
}

static yk_value given(yk_graph *g, const char *name, yk_dtype dtype) {
  yk_tensor *t = array(name, dtype);
  yk_value v = yk_constant(g, t);
  yk_tensor_free(t);
  return v;
}

static void test_code(void **state) {
  (void)state;
  yk_graph *g;
  yk_tensor *out[2];
  CHECK_OK(yk_graph_new(&g));
  yk_value anchors = given(g, "code_anchors", YK_F32);
  yk_value v[2] = { yk_box_encode(g, given(g, "code_boxes", YK_F32), anchors, NULL),
                    yk_box_decode(g, given(g, "code_codes", YK_F32), anchors, NULL) };
  run(g, 2, v, out);
  same("encoded", out[0], "code_encoded", 2e-5);
  same("decoded", out[1], "code_decoded", 2e-6);
  for (int i = 0; i < 2; i++) yk_tensor_free(out[i]);
  yk_graph_free(g);
}

static void test_match(void **state) {
  (void)state;
  yk_tensor *boxes = array("match_boxes", YK_F32), *truth = array("match_truth", YK_F32), *numbers, *out[2];
  const int64_t pictures = yk_tensor_desc(truth)->dim[0], most = yk_tensor_desc(truth)->dim[1];
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(pictures, most), &numbers));
  for (int64_t i = 0; i < pictures * most; i++) ((int32_t *)yk_tensor_data(numbers))[i] = (int32_t)(i % most);
  CHECK_OK(yk_box_targets_new(pictures, yk_tensor_desc(boxes)->dim[0], out));
  CHECK_OK(yk_box_targets(boxes, truth, numbers, NULL, out));
  same("labels", out[0], "match_low", 0);
  CHECK_OK(yk_box_targets(boxes, truth, numbers, &(yk_target_options){ .positive = 0.7, .negative = 0.3, .best = true }, out));
  same("labels with the best", out[0], "match_best", 0);
  for (int i = 0; i < 2; i++) yk_tensor_free(out[i]);
  yk_tensor_free(boxes), yk_tensor_free(truth), yk_tensor_free(numbers);
}

static void test_loss(void **state) {
  (void)state;
  yk_graph *g;
  yk_tensor *out[3], *start[2] = { array("loss_logits", YK_F32), array("loss_codes", YK_F32) };
  yk_variable *v[2];
  yk_gradient grads[2];
  CHECK_OK(yk_graph_new(&g));
  for (int i = 0; i < 2; i++)
    v[i] = yk_get_variable(g, i ? "codes" : "logits", YK_F32, YK_SHAPE(2, 9, 4), (yk_init){ .kind = YK_INIT_TENSOR, .tensor = start[i] }, NULL);
  yk_value loss = yk_detection_loss(g, yk_read(v[0]), yk_read(v[1]), given(g, "loss_label", YK_I32), given(g, "loss_target", YK_F32));
  yk_compute_gradients(g, loss, 2, v, grads, 2);
  yk_value init = yk_global_variables_initializer(g), fetch[3] = { loss, grads[0].grad, grads[1].grad };
  yk_session *s;
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(yk_session_open(g, NULL, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
  CHECK_OK(yk_session_run(s, 0, NULL, 3, fetch, 0, NULL, out));
  same("loss", out[0], "loss_value", 1e-6);
  same("gradient of logits", out[1], "loss_dlogits", 1e-6);
  same("gradient of codes", out[2], "loss_dcodes", 1e-6);
  for (int i = 0; i < 3; i++) yk_tensor_free(out[i]);
  for (int i = 0; i < 2; i++) yk_tensor_free(start[i]);
  yk_session_close(s);
  yk_graph_free(g);
}

static void test_choose(void **state) {
  (void)state;
  static const char *const names[] = { "choose_boxes", "choose_scores", "choose_classes", "choose_count" };
  yk_graph *g;
  yk_value v[4];
  yk_tensor *out[4];
  CHECK_OK(yk_graph_new(&g));
  yk_choose_boxes(g, given(g, "choose_logits", YK_F32), given(g, "choose_codes", YK_F32), given(g, "choose_anchors", YK_F32),
                  &(yk_choose_options){ .height = 30, .width = 40, .most = 6, .iou = 0.4, .score = 0.3 }, v);
  run(g, 4, v, out);
  for (int i = 0; i < 4; i++) same(names[i], out[i], names[i], i < 2 ? 2e-6 : 0);
  for (int i = 0; i < 4; i++) yk_tensor_free(out[i]);
  yk_graph_free(g);
}

static void test_score(void **state) {
  (void)state;
  yk_tensor *boxes = array("score_boxes", YK_F32), *scores = array("score_scores", YK_F32), *classes = array("score_classes", YK_I32);
  yk_tensor *truth = array("score_truth", YK_F32), *kinds = array("score_truth_classes", YK_I32);
  yk_tensor *precision = array("score_precision", YK_F32), *recall = array("score_recall", YK_F32);
  yk_detection_score *s;
  double mean[2] = { 0, 0 };
  CHECK_OK(yk_detection_score_new(3, 0, &s));
  CHECK_OK(yk_detection_score_add(s, boxes, scores, classes, truth, kinds));
  for (int32_t k = 0; k < 3; k++) {
    CHECK_NEAR(yk_average_precision(s, k), yk_tensor_at(precision, k), 1e-7);
    CHECK_NEAR(yk_detection_recall(s, k), yk_tensor_at(recall, k), 1e-7);
    mean[0] += yk_average_precision(s, k) / 3;
    mean[1] += yk_detection_recall(s, k) / 3;
  }
  CHECK_NEAR(yk_average_precision(s, -1), mean[0], 1e-12);
  CHECK_NEAR(yk_detection_recall(s, -1), mean[1], 1e-12);
  yk_detection_score_free(s);
  yk_tensor_free(boxes), yk_tensor_free(scores), yk_tensor_free(classes), yk_tensor_free(truth), yk_tensor_free(kinds);
  yk_tensor_free(precision), yk_tensor_free(recall);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_code), cmocka_unit_test(test_match), cmocka_unit_test(test_loss), cmocka_unit_test(test_choose),
    cmocka_unit_test(test_score),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
