/*
 * boxes.c - boxes as seen from others, in a graph and on the host.
 *
 * In a graph both corners of all boxes are handled at once, as halves [..., 2] of the last axis. A code leaves out where the
 * anchor is and how large: what is learnt is the same everywhere.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <yoke/math.h>
#include "base/error.h"
#include "detect/boxes.h"
#include "graph/graph.h"

double yk__box_area(const float *box) { return ((double)box[2] - box[0]) * ((double)box[3] - box[1]); }

double yk__box_overlap(const float *a, const float *b) {
  double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
  if (!(h > 0) || !(w > 0)) return 0;
  return h * w / (yk__box_area(a) + yk__box_area(b) - h * w);
}

const double *yk__box_deviation(const double *deviation) {
  static const double usual[4] = { 0.1, 0.1, 0.2, 0.2 };
  const double *d = deviation != NULL ? deviation : usual;
  for (int i = 0; i < 4; i++)
    if (!(d[i] > 0) || !isfinite(d[i])) return NULL;
  return d;
}

const float *yk__box_at(const yk_tensor *boxes, int64_t i) { return (const float *)yk_tensor_data(boxes) + 4 * i; }
int32_t yk__class_at(const yk_tensor *classes, int64_t i) { return classes != NULL ? ((const int32_t *)yk_tensor_data(classes))[i] : 0; }

/* "truth [3, 1]: ": which row of boxes or of classes, whose last `inner` axes are not counted, row i is. */
static yk_code refuse(const char *what, const yk_tensor *t, uint32_t inner, int64_t i, const char *why) {
  const yk_desc *d = yk_tensor_desc(t);
  if (d->rank - inner < 2) return YK_FAIL(EINVAL, "%s [%" PRId64 "] %s", what, i, why);
  int64_t across = d->dim[d->rank - inner - 1];
  return YK_FAIL(EINVAL, "%s [%" PRId64 ", %" PRId64 "] %s", what, i / across, i % across, why);
}

yk_code yk__boxes_check(const char *what, const yk_tensor *boxes) {
  char why[160];
  for (int64_t i = 0; i < yk_tensor_count(boxes) / 4; i++) {
    const float *b = yk__box_at(boxes, i);
    if (isfinite(b[0]) && isfinite(b[1]) && b[2] >= b[0] && b[3] >= b[1] && isfinite(b[2]) && isfinite(b[3])) continue;
    snprintf(why, sizeof why, "is (%g, %g, %g, %g), which is no box (y1, x1, y2, x2)", b[0], b[1], b[2], b[3]);
    return refuse(what, boxes, 1, i, why);
  }
  return YK_OK;
}

yk_code yk__classes_check(const char *what, const yk_tensor *classes, int32_t n) {
  char why[80];
  for (int64_t i = 0; classes != NULL && i < yk_tensor_count(classes); i++) {
    int32_t c = yk__class_at(classes, i);
    if (c >= 0 && c < n) continue;
    snprintf(why, sizeof why, "is %ld; expected a class from 0 to %ld", (long)c, (long)n - 1);
    return refuse(what, classes, 0, i, why);
  }
  return YK_OK;
}

/* ---- in a graph ---------------------------------------------------------------------------------------------------- */

typedef struct boxes { yk_value middle, size; } boxes;

static yk_value number(const char *where, yk_graph *g, yk_value like, double x) {
  const yk_desc *d = yk_value_desc(g, like);
  return yk_scalar_at(where, g, d != NULL ? (yk_dtype)d->dtype : YK_F32, x);
}

static yk_value scaled(const char *where, yk_graph *g, yk_value x, double by) { return yk_mul_at(where, g, x, number(where, g, x, by)); }

static boxes measure(const char *where, yk_graph *g, yk_value corners) {
  yk_value half[2];
  yk_split_at(where, g, corners, -1, 2, NULL, half);
  return (boxes){ scaled(where, g, yk_add_at(where, g, half[0], half[1]), 0.5), yk_sub_at(where, g, half[1], half[0]) };
}

/* [4] of the dtype of `like`: each number, or one over it. */
static yk_value four(const char *where, yk_graph *g, yk_value like, const double *x, bool inverse) {
  yk_value one[4];
  for (int i = 0; i < 4; i++) one[i] = number(where, g, like, inverse ? 1 / x[i] : x[i]);
  return yk_stack_at(where, g, 4, one, 0);
}

static bool usable(const char *where, yk_graph *g, const char *what, yk_value a, yk_value b, const double *deviation) {
  const yk_value both[2] = { a, b };
  if (yk_graph_status(g) != YK_OK) return false;
  for (int i = 0; i < 2; i++) {
    const yk_desc *d = yk_value_desc(g, both[i]);
    if (d == NULL || d->rank == 0 || d->dim[d->rank - 1] != 4)
      return yk_graph_fail_at(where, g, YK_EINVAL, "%s: input %d is no value [..., 4]", what, i), false;
  }
  if (deviation == NULL) yk_graph_fail_at(where, g, YK_EINVAL, "%s: a deviation is not above 0", what);
  return deviation != NULL;
}

yk_value yk_box_encode_at(const char *where, yk_graph *g, yk_value box, yk_value anchors, const double deviation[4]) {
  const double *by = yk__box_deviation(deviation);
  if (!usable(where, g, "box_encode", box, anchors, by)) return (yk_value){ 0 };
  boxes b = measure(where, g, box), a = measure(where, g, anchors);
  yk_value half[2] = { yk_div_at(where, g, yk_sub_at(where, g, b.middle, a.middle), a.size),
                       yk_log_at(where, g, yk_div_at(where, g, b.size, a.size)) };
  return yk_mul_at(where, g, yk_concat_at(where, g, 2, half, -1), four(where, g, box, by, true));
}

yk_value yk_box_decode_at(const char *where, yk_graph *g, yk_value codes, yk_value anchors, const double deviation[4]) {
  const double *by = yk__box_deviation(deviation);
  yk_value part[2], half[2];
  if (!usable(where, g, "box_decode", codes, anchors, by)) return (yk_value){ 0 };
  boxes a = measure(where, g, anchors);
  yk_split_at(where, g, yk_mul_at(where, g, codes, four(where, g, codes, by, false)), -1, 2, NULL, part);
  yk_value growth = yk_exp_at(where, g, yk_minimum_at(where, g, part[1], number(where, g, codes, YK__MOST_GROWTH)));
  yk_value middle = yk_add_at(where, g, a.middle, yk_mul_at(where, g, part[0], a.size));
  yk_value reach = scaled(where, g, yk_mul_at(where, g, growth, a.size), 0.5);
  half[0] = yk_sub_at(where, g, middle, reach);
  half[1] = yk_add_at(where, g, middle, reach);
  return yk_concat_at(where, g, 2, half, -1);
}
