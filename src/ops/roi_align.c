/*
 * roi_align.c - features inside boxes, on a grid of fixed size (He and others, Mask R-CNN, 2017), and the gradient to the features.
 *
 * Nothing is rounded to cells: a bin is the mean of samples x samples points, and a point lies between four cells. A point less than
 * a cell outside of the picture counts as on its border; one further away as zero.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include "ops/common.h"

static int64_t size_of(const yk_roi_attrs *a, int i) { return a && a->size[i] ? a->size[i] : 1; }
static int64_t samples_of(const yk_roi_attrs *a) { return a && a->samples ? a->samples : 2; }

/* y for these inputs. */
static yk_code shape(const void *attrs, const yk_desc *x, const yk_desc *boxes, const yk_desc *image, yk_desc *out) {
  char text[YK__DESC_TEXT];
  if (x->rank != 4) return YK_FAIL(EINVAL, "the picture is %s, expected rank 4 [N, H, W, C]", yk__desc_text(x, text, sizeof text));
  if (boxes->rank != 2 || yk__dims_clash(boxes->dim[1], 4))
    return YK_FAIL(EINVAL, "boxes are %s, expected [R, 4]", yk__desc_text(boxes, text, sizeof text));
  if (image->rank != 1 || yk__dims_clash(image->dim[0], boxes->dim[0]))
    return YK_FAIL(EINVAL, "image is %s, expected one number for each of the %lld boxes", yk__desc_text(image, text, sizeof text),
                   (long long)boxes->dim[0]);
  *out = (yk_desc){ .dtype = x->dtype, .rank = 4, .dim = { boxes->dim[0] < 0 ? image->dim[0] : boxes->dim[0], size_of(attrs, 0),
                                                           size_of(attrs, 1), x->dim[3] } };
  return YK_OK;
}

static yk_code infer(const yk_infer *c) { return shape(c->attrs, &c->in[0], &c->in[1], &c->in[2], &c->out[0]); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, roi_align_grad, c->attrs, 4, c->dout[0], c->in[1], c->in[2], c->in[0]);
  return YK_OK;
}

/* Sample s of bin i of a side that goes from lo to hi: the two cells around it and the weight of the second; 0 if it is outside. */
static int sample(const yk_roi_attrs *a, int side, double lo, double hi, int64_t i, int64_t s, int64_t size, int64_t at[2], double *weight) {
  const double scale = a && a->scale != 0 ? a->scale : 1, offset = a && a->aligned ? 0.5 : 0;
  double from = lo * scale - offset, length = (hi - lo) * scale;
  if (!(a && a->aligned)) length = fmax(length, 1);
  double place = from + length / (double)size_of(a, side) * ((double)i + ((double)s + 0.5) / (double)samples_of(a));
  if (!(place >= -1 && place <= (double)size)) return 0;
  place = fmin(fmax(place, 0), (double)(size - 1));
  at[0] = (int64_t)place;
  at[1] = at[0] + 1 < size ? at[0] + 1 : at[0];
  *weight = place - (double)at[0];
  return 1;
}

static yk_code check_images(const char *name, const double *image, int64_t n, int64_t images) {
  for (int64_t r = 0; r < n; r++)
    if (!(image[r] >= 0 && image[r] < (double)images))
      return YK_FAIL(EINVAL, "%s: box %lld is in image %lld, outside [0, %lld)", name, (long long)r, (long long)image[r], (long long)images);
  return YK_OK;
}

/* Goes over all cells of y and the four cells of x under each of their points: y += or dx +=. */
static void walk(const yk_roi_attrs *a, const yk_desc *x, const yk_desc *y, const double *boxes, const double *image, const double *from_x,
                 double *to_y, const double *from_y, double *to_x) {
  const int64_t n = yk__desc_count(y), samples = samples_of(a);
  for (int64_t i = 0; i < n; i++) {
    int64_t cell[YK_MAX_RANK], row[2] = { 0 }, column[2] = { 0 };
    yk__unravel(y, i, cell);
    const double *box = boxes + 4 * cell[0];
    for (int64_t s = 0; s < samples * samples; s++) {
      double down = 0, across = 0;
      if (!sample(a, 0, box[0], box[2], cell[1], s / samples, x->dim[1], row, &down)) continue;
      if (!sample(a, 1, box[1], box[3], cell[2], s % samples, x->dim[2], column, &across)) continue;
      for (int k = 0; k < 4; k++) {
        double weight = (k & 2 ? down : 1 - down) * (k & 1 ? across : 1 - across) / (double)(samples * samples);
        int64_t at[YK_MAX_RANK] = { (int64_t)image[cell[0]], row[k >> 1], column[k & 1], cell[3] }, j = yk__ravel(x, at);
        if (to_y) to_y[i] += weight * from_x[j];
        else to_x[j] += weight * from_y[i];
      }
    }
  }
}

static yk_code ref(const yk_ref *c) {
  YK_TRY(check_images("roi_align", c->in[2], c->din[2].dim[0], c->din[0].dim[0]));
  yk__ref_zero(c, 0);
  walk(c->attrs, &c->din[0], &c->dout[0], c->in[1], c->in[2], c->in[0], c->out[0], NULL, NULL);
  return YK_OK;
}

static const yk_attr attrs[] = { YK__INTS(yk_roi_attrs, size, 2, 1, 0, 4096), YK__INT(yk_roi_attrs, samples, 2, 1, 64),
                                 YK__FLAG(yk_roi_attrs, aligned), YK__REAL(yk_roi_attrs, scale, 1, 0, YK__HUGE), { 0 } };
static const yk_roi_attrs two = { .size = { 2, 2 } }, wide = { .size = { 3, 2 }, .samples = 3, .aligned = 1, .scale = 2 },
                          one = { .size = { 2, 3 }, .samples = 1, .aligned = 1 };
/* Values, images among them, lie in [0, 1] or [0, 3]: there are as many pictures. */
static const yk_case cases[] = {
  { "T[2,5,4,3]; T[6,4]; i32[6]", &two, 0, 1, 0 }, { "T[4,6,5,16]; T[5,4]; i32[5]", &wide, 0, 3, 0 },
  { "T[4,3,3,1]; T[7,4]; i32[7]", &one, 0, 3, 0 }, { "T[2,2,2,2]; T[3,4]; i32[3]", NULL, 0, 1, 0 },
  { "T[2,5,4,3]; T[0,4]; i32[0]", &two, 0, 1, 0 }, { 0 }
};
#define BOXES { "boxes", YK_FLOATS, YK_PORT_NODIFF, 1 }, { "image", YK_T(YK_I32), YK_PORT_NODIFF, 0 }

const yk_op yk__op_roi_align = {
  .name = "roi_align", .label = "RoiAlign", .doc = "Features x [N,H,W,C] inside boxes, on a grid of fixed size.",
  .version = 1, .attr_bytes = sizeof(yk_roi_attrs), .traits = YK_PURE | YK_WIDE, .attrs = attrs,
  .in = (const yk_port[]){ { "x", YK_FLOATS, 0, 0 }, BOXES, { 0 } }, .out = yk__out1,
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

/* Boxes [N, R, 4] as [N*R, 4], and the number of the picture of each. */
static yk_value flattened(const char *where, yk_graph *g, yk_value *boxes) {
  const yk_desc *d = yk_value_desc(g, *boxes);
  int64_t n = d != NULL && d->rank == 3 && d->dim[0] >= 0 && d->dim[1] >= 0 && d->dim[2] == 4 ? d->dim[0] * d->dim[1] : -1;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  if (n < 0) return yk_graph_fail_at(where, g, YK_EINVAL, "roi_align: without images, boxes must be [N, R, 4] with N and R known");
  int32_t *number = yk__calloc((size_t)n + 1, sizeof *number);
  if (number == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "roi_align: no memory for %lld boxes", (long long)n);
  for (int64_t i = 0; i < n; i++) number[i] = (int32_t)(i / d->dim[1]);
  yk_value images = yk_constant_from_at(where, g, YK_I32, YK_SHAPE(n), number);
  yk__free(number);
  *boxes = yk_reshape_at(where, g, *boxes, YK_SHAPE(n, 4));
  return images;
}

yk_value yk_roi_align_at(const char *where, yk_graph *g, yk_value x, yk_value boxes, yk_value images, const yk_roi_attrs *options) {
  if (images.id == 0) images = flattened(where, g, &boxes);
  return yk__build(where, g, &yk__op_roi_align, options, 3, x, boxes, images);
}

/* ---- roi_align_grad: dy, boxes, image, like x -> dx ------------------------------------------------------------------ */

static yk_code infer_grad(const yk_infer *c) {
  yk_desc want, merged, dy = yk__as(&c->in[0], c->in[3].dtype);
  YK_TRY(shape(c->attrs, &c->in[3], &c->in[1], &c->in[2], &want));
  YK_TRY(yk__shape_merge(&dy, &want, &merged));
  return yk__infer_like(c);
}

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, roi_align, c->attrs, 3, c->dout[0], c->in[1], c->in[2]);
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) {
  YK_TRY(check_images("roi_align_grad", c->in[2], c->din[2].dim[0], c->din[3].dim[0]));
  yk__ref_zero(c, 0);
  walk(c->attrs, &c->din[3], &c->din[0], c->in[1], c->in[2], NULL, NULL, c->in[0], c->out[0]);
  return YK_OK;
}

static const yk_case grad_cases[] = {
  { "T[6,2,2,3]; T[6,4]; i32[6]; T[2,5,4,3]", &two, 0, 1, 0 }, { "T[5,3,2,16]; T[5,4]; i32[5]; T[4,6,5,16]", &wide, 0, 3, 0 },
  { "T[7,2,3,1]; T[7,4]; i32[7]; T[4,3,3,1]", &one, 0, 3, 0 }, { "T[0,2,2,3]; T[0,4]; i32[0]; T[2,5,4,3]", &two, 0, 1, 0 }, { 0 }
};

const yk_op yk__op_roi_align_grad = {
  .name = "roi_align_grad", .label = "RoiAlignGrad", .doc = "Gradient of roi_align to the features.",
  .version = 1, .attr_bytes = sizeof(yk_roi_attrs), .traits = YK_PURE | YK_ZERO_ON_EMPTY, .attrs = attrs,
  .in = (const yk_port[]){ { "dy", YK_FLOATS, 0, 0 }, BOXES, { "like", YK_FLOATS, YK_PORT_SHAPE | YK_PORT_NODIFF, 1 }, { 0 } },
  .out = yk__out1, .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = grad_cases,
};
