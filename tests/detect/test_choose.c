/*
 * The choice among boxes, against plain loops in double: several pictures and classes, candidates, edges, boxes without an
 * area, and no gradient. Against torchvision: tests/golden/test_detect.c.
 */
#include "support/check.h"
#include <yoke/yoke.h>

enum { N = 3, A = 40, C = 3, MOST = 8, HEIGHT = 50, WIDTH = 70 };

typedef struct box { double at[4], score; int class, number; } box;

static uint32_t state_of = 1;
static double draw(double lo, double hi) {
  state_of = state_of * 1664525u + 1013904223u;
  return lo + (hi - lo) * (double)(state_of >> 8) / (1 << 24);
}

static float logits[N][A][1 + C], codes[N][A][4], anchors[N][A][4];

static void fill(void) {
  state_of = 1;
  for (int n = 0; n < N; n++)
    for (int a = 0; a < A; a++) {
      for (int k = 0; k < 1 + C; k++) logits[n][a][k] = (float)draw(-2, 2);
      for (int k = 0; k < 4; k++) codes[n][a][k] = (float)draw(-1, 1);
      for (int k = 0; k < 2; k++) anchors[n][a][k] = (float)draw(-10, 55), anchors[n][a][k + 2] = anchors[n][a][k] + (float)draw(4, 30);
      if (a % 10 == 3) memset(anchors[n][a], 0, sizeof anchors[n][a]);
    }
}

static double overlap(const double *a, const double *b) {
  double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
  if (h <= 0 || w <= 0) return 0;
  return h * w / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - h * w);
}

static box decoded(int n, int a, int class) {
  const double by[2] = { 0.1, 0.2 }, side[2] = { HEIGHT, WIDTH };
  box b = { .class = class, .number = a };
  double sum = 0;
  for (int k = 0; k < 1 + C; k++) sum += exp(logits[n][a][k]);
  b.score = exp(logits[n][a][1 + class]) / sum;
  for (int k = 0; k < 2; k++) {
    double size = (double)anchors[n][a][k + 2] - anchors[n][a][k], middle = anchors[n][a][k] + size / 2 + codes[n][a][k] * by[0] * size;
    size *= exp(codes[n][a][k + 2] * by[1]);
    b.at[k] = fmin(fmax(middle - size / 2, 0), side[k]);
    b.at[k + 2] = fmin(fmax(middle + size / 2, 0), side[k]);
  }
  return b;
}

static int better(const void *x, const void *y) {
  const box *a = x, *b = y;
  if (a->score != b->score) return a->score > b->score ? -1 : 1;
  return a->class != b->class ? a->class - b->class : a->number - b->number;
}

/* Is box a of picture n among the `most` whose best class is likeliest? */
static bool candidate(int n, int a, int most) {
  int ahead = 0;
  double mine = 0;
  for (int k = 0; k < C; k++) mine = fmax(mine, decoded(n, a, k).score);
  for (int b = 0; b < A; b++) {
    double best = 0;
    for (int k = 0; k < C; k++) best = fmax(best, decoded(n, b, k).score);
    ahead += best > mine || (best == mine && b < a);
  }
  return most == 0 || ahead < most;
}

static int expected(int n, const yk_choose_options *o, box out[MOST]) {
  box all[A * C];
  int count = 0, taken = 0;
  for (int a = 0; a < A; a++)
    for (int k = 0; k < C; k++) {
      box b = decoded(n, a, k);
      if (b.score > o->score && b.at[2] > b.at[0] && b.at[3] > b.at[1] && candidate(n, a, o->candidates)) all[count++] = b;
    }
  qsort(all, (size_t)count, sizeof *all, better);
  for (int i = 0; i < count && taken < MOST; i++) {
    bool fits = true;
    for (int j = 0; j < taken && fits; j++) fits = out[j].class != all[i].class || overlap(out[j].at, all[i].at) <= o->iou;
    if (fits) out[taken++] = all[i];
  }
  return taken;
}

static yk_value constant(yk_graph *g, yk_shape s, const void *x) { return yk_constant_f32(g, s, x); }

static void check(const yk_choose_options *o, bool flat) {
  yk_graph *g;
  yk_session *s;
  yk_value v[4];
  yk_tensor *t[4];
  CHECK_OK(yk_graph_new(&g));
  yk_choose_boxes(g, constant(g, flat ? YK_SHAPE(N * A, 1 + C) : YK_SHAPE(N, A, 1 + C), logits),
                  constant(g, flat ? YK_SHAPE(N, A / 8, 2, 16) : YK_SHAPE(N, A, 4), codes), constant(g, YK_SHAPE(N, A, 4), anchors), o, v);
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(yk_session_open(g, NULL, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, 4, v, 0, NULL, t));
  for (int n = 0; n < N; n++) {
    box want[MOST];
    int count = expected(n, o, want);
    CHECK_INT(yk_tensor_at(t[3], n), count);
    for (int i = 0; i < MOST; i++) {
      for (int k = 0; k < 4; k++) CHECK_NEAR(yk_tensor_at(t[0], (n * MOST + i) * 4 + k), i < count ? want[i].at[k] : 0, 1e-4);
      CHECK_NEAR(yk_tensor_at(t[1], n * MOST + i), i < count ? want[i].score : 0, 1e-6);
      CHECK_INT(yk_tensor_at(t[2], n * MOST + i), i < count ? want[i].class : 0);
    }
  }
  for (int i = 0; i < 4; i++) yk_tensor_free(t[i]);
  yk_session_close(s);
  yk_graph_free(g);
}

static void test_plain_loops(void **state) {
  (void)state;
  fill();
  yk_choose_options o = { .height = HEIGHT, .width = WIDTH, .most = MOST, .iou = 0.3 };
  for (int flat = 0; flat < 2; flat++) check(&o, flat);
  o.candidates = 12;
  check(&o, false);
  o.score = 0.45;                                          /* so few that rows are empty */
  check(&o, false);
  memset(logits, 0, sizeof logits);                        /* all alike: the lower class, the earlier box */
  o.score = 0;
  check(&o, false);
}

/* Nothing is learnt through a choice: a loss that has another part gets the gradient of that part alone. */
static void test_no_gradient(void **state) {
  (void)state;
  yk_graph *g;
  yk_value v[4];
  CHECK_OK(yk_graph_new(&g));
  yk_variable *w = yk_get_variable(g, "codes", YK_F32, YK_SHAPE(1, 2, 4), YK_ZEROS, NULL);
  yk_choose_boxes(g, yk_fill(g, YK_F32, YK_SHAPE(1, 2, 2), 1), yk_read(w), yk_fill(g, YK_F32, YK_SHAPE(2, 4), 1), NULL, v);
  yk_gradient grad;
  yk_compute_gradients(g, yk_reduce_sum(g, v[0], NULL), 1, &w, &grad, 1);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "codes");
  yk_graph_free(g);
}

static void refused(yk_shape logit, yk_shape code, yk_shape anchor, const yk_choose_options *o, const char *text) {
  yk_graph *g;
  yk_value v[4] = { { 7 }, { 7 }, { 7 }, { 7 } };
  CHECK_OK(yk_graph_new(&g));
  yk_choose_boxes(g, yk_placeholder(g, NULL, YK_F32, logit), yk_placeholder(g, NULL, YK_F32, code), yk_placeholder(g, NULL, YK_F32, anchor), o, v);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, text);
  for (int i = 0; i < 4; i++) CHECK_INT(v[i].id, 0);
  yk_graph_free(g);
}

static void test_errors(void **state) {
  (void)state;
  const char *needs = "choose_boxes: needs logits [N, A, 1 + C]";
  refused(YK_SHAPE(-1, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(5, 4), NULL, needs);
  refused(YK_SHAPE(2, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(4, 4), NULL, needs);
  refused(YK_SHAPE(2, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(3, 5, 4), NULL, needs);
  refused(YK_SHAPE(2, 5, 1), YK_SHAPE(2, 5, 4), YK_SHAPE(5, 4), NULL, needs);
  refused(YK_SHAPE(2, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(20), NULL, needs);
  refused(YK_SHAPE(2, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(5, 4), &(yk_choose_options){ .height = 4 }, "picture of 4 x 0");
  refused(YK_SHAPE(2, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(5, 4), &(yk_choose_options){ .most = -1 }, "-1 of 0 boxes");
  refused(YK_SHAPE(2, 5, 2), YK_SHAPE(2, 5, 4), YK_SHAPE(5, 4), &(yk_choose_options){ .deviation = (const double[]){ 0, 1, 1, 1 } }, "deviation");
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_plain_loops), cmocka_unit_test(test_no_gradient), cmocka_unit_test(test_errors) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
