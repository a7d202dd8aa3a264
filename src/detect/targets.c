/*
 * targets.c - what boxes are to learn in a picture whose things are known, and the loss of learning it.
 *
 * Every overlap is worked out where it is needed, twice if need be, rather than kept: nothing is allocated in a training loop.
 */
#include <math.h>
#include <string.h>
#include <yoke/math.h>
#include "base/error.h"
#include "base/rng.h"
#include "detect/boxes.h"
#include "tensor/desc.h"

enum { STREAM = 310 };

/* One picture: its boxes, what it shows, and where to write. */
typedef struct picture {
  int64_t n, ntruth;
  const float *box, *truth;
  int32_t *label;
  uint64_t number;
} picture;

/* The truth that a box overlaps most; the first one of equals. */
static int64_t shown(const picture *p, int64_t i, double *overlap) {
  int64_t best = 0;
  *overlap = 0;
  for (int64_t t = 0; t < p->ntruth; t++) {
    double o = yk__box_overlap(p->box + 4 * i, p->truth + 4 * t);
    if (o > *overlap) *overlap = o, best = t;
  }
  return best;
}

/* Labels by overlap: 1 + the number of the truth, 0, -1. */
static void mark(const picture *p, double high, double low) {
  for (int64_t i = 0; i < p->n; i++) {
    double overlap;
    int64_t t = shown(p, i, &overlap);
    p->label[i] = !(yk__box_area(p->box + 4 * i) > 0) ? -1 : overlap >= high ? 1 + (int32_t)t : overlap < low ? 0 : -1;
  }
}

/* So that no truth is without a box: the box that overlaps it most, or several, counts for what it shows. */
static void mark_best(const picture *p) {
  for (int64_t t = 0; t < p->ntruth; t++) {
    double most = 0, overlap;
    for (int64_t i = 0; i < p->n; i++) most = fmax(most, yk__box_overlap(p->box + 4 * i, p->truth + 4 * t));
    for (int64_t i = 0; i < p->n && most > 0; i++)
      if (yk__box_overlap(p->box + 4 * i, p->truth + 4 * t) == most) p->label[i] = 1 + (int32_t)shown(p, i, &overlap);
  }
}

/* Of the boxes that show something (things) or of background, at most `most` keep their label. Returns how many do. */
static size_t thin(const picture *p, bool things, size_t most, uint64_t seed) {
  size_t left = 0, kept = 0;
  for (int64_t i = 0; i < p->n; i++) left += p->label[i] >= 0 && (p->label[i] > 0) == things;
  for (int64_t i = 0; i < p->n && left > 0; i++) {
    if (p->label[i] < 0 || (p->label[i] > 0) != things) continue;
    if (yk__rng_below(seed, STREAM, 2 * p->number + things, (uint64_t)i, left--) < most - kept) kept++;   /* as likely as any of the rest */
    else p->label[i] = -1;
  }
  return kept;
}

static void encode(const float *box, const float *anchor, const double *by, float *code) {
  for (int i = 0; i < 2; i++) {
    double size = (double)box[i + 2] - box[i], unit = (double)anchor[i + 2] - anchor[i];
    code[i] = (float)(((double)box[i] + box[i + 2] - anchor[i] - anchor[i + 2]) / 2 / unit / by[i]);
    code[i + 2] = (float)(log(size / unit) / by[i + 2]);
  }
}

static yk_code check(const yk_tensor *boxes, const yk_tensor *truth, const yk_tensor *classes, yk_target_options *o,
                     yk_tensor *const out[2]) {
  if (boxes == NULL || truth == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_box_targets: NULL argument");
  const yk_desc *b = yk_tensor_desc(boxes), *t = yk_tensor_desc(truth);
  const int64_t pictures = t->dim[0], n = b->rank > 1 ? b->dim[b->rank - 2] : 0;
  YK_TRY(yk__tensor_want("boxes", boxes, YK_F32, b->rank == 2 ? YK_SHAPE(n, 4) : YK_SHAPE(pictures, n, 4)));
  YK_TRY(yk__tensor_want("truth", truth, YK_F32, YK_SHAPE(pictures, -1, 4)));
  if (classes != NULL) YK_TRY(yk__tensor_want("classes", classes, YK_I32, YK_SHAPE(pictures, t->dim[1])));
  YK_TRY(yk__tensor_want("labels", out[0], YK_I32, YK_SHAPE(pictures, n)));
  YK_TRY(yk__tensor_want("targets", out[1], YK_F32, YK_SHAPE(pictures, n, 4)));
  YK_TRY(yk__boxes_check("boxes", boxes));
  YK_TRY(yk__boxes_check("truth", truth));
  YK_TRY(yk__classes_check("classes", classes, INT32_MAX));
  if (o->positive == 0) o->positive = 0.5;
  if (o->negative == 0) o->negative = o->positive;
  if (o->fraction == 0) o->fraction = 0.5;
  if (!(o->negative > 0 && o->negative <= o->positive && o->positive <= 1) || !(o->fraction > 0 && o->fraction <= 1))
    return YK_FAIL(EINVAL, "boxes are background below an overlap of %g, show something from %g on, and a part of %g does; expected "
                   "0 to 1, the second not below the first", o->negative, o->positive, o->fraction);
  o->deviation = yk__box_deviation(o->deviation);
  return o->deviation != NULL ? YK_OK : YK_FAIL(EINVAL, "targets of boxes: a deviation is not above 0");
}

yk_code yk_box_targets_new(int64_t pictures, int64_t boxes, yk_tensor *out[2]) {
  yk_tensor *label;
  if (out == NULL) return YK_FAIL(EINVAL, "yk_box_targets_new needs a place for the result");
  YK_TRY(yk_tensor_new(YK_I32, YK_SHAPE(pictures, boxes), &label));
  yk_code rc = yk_tensor_new(YK_F32, YK_SHAPE(pictures, boxes, 4), &out[1]);
  if (rc == YK_OK) out[0] = label;
  else yk_tensor_free(label);
  return rc;
}

yk_code yk_box_targets(const yk_tensor *boxes, const yk_tensor *truth, const yk_tensor *classes, const yk_target_options *options,
                       yk_tensor *const out[2]) {
  yk_target_options o = options != NULL ? *options : (yk_target_options){ .positive = 0 };
  YK_TRY(check(boxes, truth, classes, &o, out));
  const int64_t pictures = yk_tensor_desc(out[0])->dim[0], n = yk_tensor_desc(out[0])->dim[1], m = yk_tensor_desc(truth)->dim[1];
  const bool own = yk_tensor_desc(boxes)->rank == 3;
  float *code = yk_tensor_data(out[1]);
  memset(code, 0, (size_t)(pictures * n * 4) * sizeof *code);
  for (int64_t k = 0; k < pictures; k++) {
    picture p = { .n = n, .ntruth = m, .box = yk__box_at(boxes, own ? k * n : 0), .truth = yk__box_at(truth, k * m),
                  .label = (int32_t *)yk_tensor_data(out[0]) + k * n, .number = (uint64_t)k };
    mark(&p, o.positive, o.negative);
    if (o.best) mark_best(&p);
    if (o.most > 0) thin(&p, false, o.most - thin(&p, true, (size_t)((double)o.most * o.fraction), o.seed), o.seed);
    for (int64_t i = 0; i < n; i++) {
      int64_t t = p.label[i] - 1;
      if (t < 0) continue;
      encode(p.truth + 4 * t, p.box + 4 * i, o.deviation, code + 4 * (k * n + i));
      p.label[i] = 1 + yk__class_at(classes, k * m + t);
    }
  }
  return YK_OK;
}

/* ---- the loss ---------------------------------------------------------------------------------------------------------- */

yk_value yk_detection_loss_at(const char *where, yk_graph *g, yk_value logits, yk_value codes, yk_value label, yk_value target) {
  const yk_desc *d = yk_value_desc(g, logits), *l = yk_value_desc(g, label);
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  const int64_t n = l != NULL ? yk__desc_count(l) : 0, elements = d != NULL ? yk__desc_count(d) : 0;
  if (n < 1 || elements < n || elements % n != 0)
    return yk_graph_fail_at(where, g, YK_EINVAL,
                            "detection_loss: needs labels of known shape, not %lld, and as many logits for each, not %lld in all",
                            (long long)n, (long long)elements);
  yk_dtype t = (yk_dtype)d->dtype;
  yk_value none = yk_scalar_at(where, g, (yk_dtype)l->dtype, 0);
  logits = yk_reshape_at(where, g, logits, YK_SHAPE(n, elements / n));
  codes = yk_reshape_at(where, g, codes, YK_SHAPE(n, 4));
  target = yk_reshape_at(where, g, target, YK_SHAPE(n, 4));
  label = yk_reshape_at(where, g, label, YK_SHAPE(n));
  yk_value counts = yk_cast_at(where, g, yk_greater_equal_at(where, g, label, none), t);
  yk_value shows = yk_cast_at(where, g, yk_greater_at(where, g, label, none), t);
  yk_value learnt = yk_maximum_at(where, g, yk_reduce_sum_at(where, g, counts, NULL), yk_scalar_at(where, g, t, 1));
  yk_value kind = yk_sparse_softmax_cross_entropy_at(where, g, logits, yk_maximum_at(where, g, label, none));
  yk_value place = yk_reduce_sum_at(where, g, yk_smooth_l1_at(where, g, codes, target, 1), &(yk_reduce_attrs){ .naxes = 1, .axis = { 1 } });
  yk_value both = yk_add_at(where, g, yk_mul_at(where, g, kind, counts), yk_mul_at(where, g, place, shows));
  return yk_div_at(where, g, yk_reduce_sum_at(where, g, both, NULL), learnt);
}
