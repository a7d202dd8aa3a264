/*
 * test_detect_grad.c - what object detection builds out of several operations: gradients of all of it against differences, and
 * values against their formulae where a corner makes them easy to tell.
 */
#include <yoke/yoke.h>
#include "support/check.h"
#include "support/gradcheck.h"

enum { N = 6 };

/* Numbers between lo and hi that are no multiples of each other. */
static void spread(double *x, int n, double lo, double hi) {
  for (int i = 0; i < n; i++) x[i] = lo + (hi - lo) * (double)((i * (31 * i + 17)) % 97) / 97;
}

/* Boxes of sides 4 to 12. */
static void boxes(double *x, int n, int salt) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < 2; k++) {
      x[4 * i + k] = (i * 13 + k * 7 + salt) % 19;
      x[4 * i + k + 2] = x[4 * i + k] + 4 + (i * 5 + k * 3 + salt) % 8;
    }
}

static void check(gradcheck_point *p, const char *what) {
  gradcheck got;
  CHECK_OK(yk_graph_status(p->g));
  gradcheck_run(p, 1, &got);
  if (got.verdict != GRADCHECK_PASS) fail_msg("%s: %s: %s", what, gradcheck_name(got.verdict), got.text);
  assert_true(got.compared > 0);
  yk_graph_free(p->g);
}

static gradcheck_point point(uint16_t n, yk_shape shape, const double *const *at) {
  gradcheck_point p = { .nx = n, .ny = 1, .seed = 3 };
  CHECK_OK(yk_graph_new(&p.g));
  for (uint16_t i = 0; i < n; i++) {
    p.x[i] = yk_placeholder(p.g, NULL, YK_F64, shape);
    p.at[i] = at[i];
  }
  return p;
}

static void test_codes(void **state) {
  (void)state;
  double a[4 * N], b[4 * N], codes[4 * N];
  boxes(a, N, 0);
  boxes(b, N, 3);
  spread(codes, 4 * N, -1.5, 1.5);
  gradcheck_point p = point(2, YK_SHAPE(2, N / 2, 4), (const double *[]){ b, a });
  p.y[0] = yk_box_encode(p.g, p.x[0], p.x[1], NULL);
  check(&p, "encode");
  p = point(2, YK_SHAPE(2, N / 2, 4), (const double *[]){ codes, a });
  p.y[0] = yk_box_decode(p.g, p.x[0], p.x[1], (const double[]){ 0.3, 0.2, 0.5, 0.7 });
  check(&p, "decode");
}

static void test_smooth_l1(void **state) {
  (void)state;
  double x[24], y[24];
  spread(x, 24, -2, 2);
  spread(y, 24, 0.3, 0.31);
  for (int i = 0; i < 2; i++) {
    gradcheck_point p = point(2, YK_SHAPE(4, 6), (const double *[]){ x, y });
    p.y[0] = yk_smooth_l1(p.g, p.x[0], p.x[1], i ? 0.4 : 1);
    check(&p, "smooth_l1");
  }
}

static void test_loss(void **state) {
  (void)state;
  double logits[4 * N], codes[4 * N], target[4 * N], label[N] = { 0, 3, -1, 1, 0, 2 };
  spread(logits, 4 * N, -2, 2);
  spread(codes, 4 * N, -1, 1);
  spread(target, 4 * N, -1.7, 2.1);
  gradcheck_point p = point(2, YK_SHAPE(N, 4), (const double *[]){ logits, codes });
  p.nfixed = 2;
  p.fixed[0] = yk_placeholder(p.g, NULL, YK_I32, YK_SHAPE(N));
  p.fixed[1] = yk_placeholder(p.g, NULL, YK_F64, YK_SHAPE(N, 4));
  p.fixed_at[0] = label, p.fixed_at[1] = target;
  p.y[0] = yk_detection_loss(p.g, p.x[0], p.x[1], p.fixed[0], p.fixed[1]);
  check(&p, "detection_loss");
}

/* Boxes of each picture, [N, R, 4], without the numbers of pictures. */
static void test_regions(void **state) {
  (void)state;
  double x[2 * 7 * 6 * 2], at[2 * 3 * 4];
  spread(x, 2 * 7 * 6 * 2, -1, 1);
  boxes(at, 6, 1);
  gradcheck_point p = point(1, YK_SHAPE(2, 7, 6, 2), (const double *[]){ x });
  p.nfixed = 1;
  p.fixed[0] = yk_placeholder(p.g, NULL, YK_F64, YK_SHAPE(2, 3, 4));
  p.fixed_at[0] = at;
  p.y[0] = yk_roi_align(p.g, p.x[0], p.fixed[0], (yk_value){ 0 }, &(yk_roi_attrs){ .size = { 2, 3 }, .scale = 0.3 });
  CHECK_INT(yk_value_desc(p.g, p.y[0])->dim[0], 6);
  check(&p, "roi_align");
}

static void refused(yk_graph *g, const char *text) {
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, text);
  yk_graph_free(g);
}

static void test_errors(void **state) {
  (void)state;
  const yk_value none = { 0 };
  yk_graph *g[6];
  yk_value x[6], y[6], labels[6];
  for (int i = 0; i < 6; i++) {
    CHECK_OK(yk_graph_new(&g[i]));
    x[i] = yk_placeholder(g[i], NULL, YK_F32, YK_SHAPE(5, 4));
    y[i] = yk_placeholder(g[i], NULL, YK_F32, YK_SHAPE(5, 3));
    labels[i] = yk_placeholder(g[i], NULL, YK_I32, YK_SHAPE(-1));
  }
  yk_box_encode(g[0], x[0], y[0], NULL);
  refused(g[0], "box_encode: input 1 is no value [..., 4]");
  yk_box_decode(g[1], x[1], x[1], (const double[]){ 1, 1, -1, 1 });
  refused(g[1], "box_decode: a deviation is not above 0");
  yk_smooth_l1(g[2], x[2], x[2], 0);
  refused(g[2], "smooth_l1: needs two values and a beta above 0, not 0");
  yk_detection_loss(g[3], x[3], x[3], labels[3], x[3]);
  refused(g[3], "detection_loss: needs labels of known shape");
  yk_roi_align(g[4], yk_placeholder(g[4], NULL, YK_F32, YK_SHAPE(2, 8, 8, 1)), x[4], none, NULL);
  refused(g[4], "roi_align: without images, boxes must be [N, R, 4]");
  yk_smooth_l1(g[5], x[5], y[5], 1);
  refused(g[5], "[5,3]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_codes), cmocka_unit_test(test_smooth_l1), cmocka_unit_test(test_loss), cmocka_unit_test(test_regions),
    cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
