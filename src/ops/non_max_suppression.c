/*
 * non_max_suppression.c - of boxes that overlap, the ones with the best scores.
 *
 * Greedy: boxes are looked at from the best score down, and one is taken unless it overlaps too much with one taken before.
 * Overlap is intersection over union; a box without an area overlaps nothing. What comes out is fixed in size, since shapes are
 * known before a step runs: indices, -1 behind the last, and how many there are.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code infer(const yk_infer *c) {
  const yk_nms_attrs a = YK__ATTRS(yk_nms_attrs, c);
  char text[YK__DESC_TEXT];
  YK_TRY(yk__want_rank(c, 0, 2));
  YK_TRY(yk__want_rank(c, 1, 1));
  if (yk__dims_clash(c->in[0].dim[1], 4))
    return YK_FAIL(EINVAL, "boxes are %s, expected [N, 4]", yk__desc_text(&c->in[0], text, sizeof text));
  if (yk__dims_clash(c->in[0].dim[0], c->in[1].dim[0]))
    return YK_FAIL(EINVAL, "%lld boxes and %lld scores", (long long)c->in[0].dim[0], (long long)c->in[1].dim[0]);
  c->out[0] = (yk_desc){ .dtype = YK_I32, .rank = 1, .dim = { a.max_outputs ? a.max_outputs : 1 } };
  c->out[1] = (yk_desc){ .dtype = YK_I32 };
  return YK_OK;
}

static double overlap(const double *a, const double *b) {
  double area[2], size[2];
  for (int i = 0; i < 2; i++) {
    double lo = fmax(fmin(a[i], a[i + 2]), fmin(b[i], b[i + 2])), hi = fmin(fmax(a[i], a[i + 2]), fmax(b[i], b[i + 2]));
    size[i] = fmax(hi - lo, 0);
  }
  area[0] = fabs(a[2] - a[0]) * fabs(a[3] - a[1]);
  area[1] = fabs(b[2] - b[0]) * fabs(b[3] - b[1]);
  if (!(area[0] > 0) || !(area[1] > 0)) return 0;
  return size[0] * size[1] / (area[0] + area[1] - size[0] * size[1]);
}

/* The best box behind `last` in the order of scores (-1: the best of all); -1 if there is none. */
static int64_t next_best(const double *score, int64_t n, int64_t last, double least) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; i++) {
    if (!(score[i] > least)) continue;
    if (last >= 0 && !(score[i] < score[last] || (score[i] == score[last] && i > last))) continue;
    if (best < 0 || score[i] > score[best]) best = i;
  }
  return best;
}

static yk_code ref(const yk_ref *c) {
  const yk_nms_attrs a = YK__ATTRS(yk_nms_attrs, c);
  const double limit = a.iou_threshold != 0 ? a.iou_threshold : 0.5;
  const int64_t n = c->din[1].dim[0], most = c->dout[0].dim[0];
  int64_t taken = 0;
  for (int64_t i = -1; taken < most && (i = next_best(c->in[1], n, i, a.score_threshold)) >= 0;) {
    int fits = 1;
    for (int64_t j = 0; j < taken && fits; j++) fits = !(overlap(c->in[0] + 4 * i, c->in[0] + 4 * (int64_t)c->out[0][j]) > limit);
    if (fits) c->out[0][taken++] = (double)i;
  }
  c->out[1][0] = (double)taken;
  while (taken < most) c->out[0][taken++] = -1;
  return YK_OK;
}

static const yk_attr attrs[] = { YK__INT(yk_nms_attrs, max_outputs, 1, 1, 1 << 24), YK__REAL(yk_nms_attrs, iou_threshold, 0.5, 0, 1),
                                 YK__REAL(yk_nms_attrs, score_threshold, 0, -YK__HUGE, YK__HUGE), { 0 } };
static const yk_nms_attrs five = { .max_outputs = 5 }, many = { .max_outputs = 40, .iou_threshold = 0.2, .score_threshold = 0.3 },
                          all = { .max_outputs = 9, .iou_threshold = 0.9, .score_threshold = -10 };
static const yk_case cases[] = {
  { "T[20,4]; T[20]", &five, 0, 1, 0 }, { "T[33,4]; T[33]", &many, 0, 1, 0 }, { "T[7,4]; T[7]", &all, 0, 0, 0 },
  { "T[3,4]; T[3]", NULL, 0, 1, 0 }, { "T[0,4]; T[0]", &five, 0, 1, 0 }, { 0 }
};

const yk_op yk__op_non_max_suppression = {
  .name = "non_max_suppression", .label = "NonMaxSuppressionV4", .doc = "Indices of the best boxes that do not overlap too much, and how many.",
  .version = 1, .attr_bytes = sizeof(yk_nms_attrs), .traits = YK_PURE | YK_NO_GRAD | YK_WIDE, .attrs = attrs,
  .in = (const yk_port[]){ { "boxes", YK_FLOATS, YK_PORT_NODIFF, 0 }, { "scores", YK_FLOATS, YK_PORT_NODIFF, 1 }, { 0 } },
  .out = (const yk_port[]){ { "indices", YK_T(YK_I32), 0, 0 }, { "count", YK_T(YK_I32), 0, 0 }, { 0 } },
  .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_non_max_suppression_at(const char *where, yk_graph *g, yk_value boxes, yk_value scores, const yk_nms_attrs *options,
                                   yk_value out[2]) {
  out[0] = yk__build(where, g, &yk__op_non_max_suppression, options, 2, boxes, scores);
  out[1] = yk_output(g, out[0], 1);
  return yk__outputs(g, 2, out);
}

/* ---- box_iou: out of simple operations, so it has a gradient ------------------------------------------------------------ */

/* Corner coordinate i of all boxes, as a column [N,1] or a row [1,N]. */
static void corners(const char *where, yk_graph *g, yk_value boxes, int row, yk_value out[4]) {
  yk_split_at(where, g, boxes, 1, 4, NULL, out);
  for (int i = 0; i < 4 && row; i++) out[i] = yk_transpose_at(where, g, out[i], NULL);
}

static yk_value length(const char *where, yk_graph *g, yk_value lo, yk_value hi) { return yk_sub_at(where, g, hi, lo); }

yk_value yk_box_iou_at(const char *where, yk_graph *g, yk_value a, yk_value b) {
  yk_value p[4], q[4], common = { 0 };
  corners(where, g, a, 0, p);
  corners(where, g, b, 1, q);
  for (int i = 0; i < 2; i++) {
    yk_value lo = yk_maximum_at(where, g, p[i], q[i]), hi = yk_minimum_at(where, g, p[i + 2], q[i + 2]);
    yk_value size = yk_relu_at(where, g, length(where, g, lo, hi));
    common = i ? yk_mul_at(where, g, common, size) : size;
  }
  yk_value area_a = yk_mul_at(where, g, length(where, g, p[0], p[2]), length(where, g, p[1], p[3]));
  yk_value area_b = yk_mul_at(where, g, length(where, g, q[0], q[2]), length(where, g, q[1], q[3]));
  return yk_div_no_nan_at(where, g, common, yk_sub_at(where, g, yk_add_at(where, g, area_a, area_b), common));
}
