/*
 * choose.c - the best boxes of each picture: the best scores, corrected, cut at the edges, those that overlap too much left out.
 *
 * Shapes are known before a step runs, so there are always `most` rows; those behind the last box are zeros. Only candidates are
 * decoded. Where a box came from is not learnt through it: all is a constant for gradients.
 */
#include <yoke/math.h>
#include "base/alloc.h"
#include "base/error.h"
#include "detect/boxes.h"
#include "graph/graph.h"
#include "tensor/desc.h"

typedef struct chooser {
  const char *where;
  yk_graph *g;
  yk_choose_options o;
  yk_dtype dtype;
  int64_t pictures, boxes, classes;          /* N, A, C */
  yk_value edges, least, kinds;              /* [4] sides of the picture; the score to be above; i32 [C * most]: 0, .. 0, 1, .. 1, .. */
} chooser;

/* Scores [A, C] of boxes [A, 4], those without an area being too low to be taken. */
static yk_value eligible(const chooser *c, yk_value boxes, yk_value scores) {
  yk_value corner[2], zero = yk_scalar_at(c->where, c->g, c->dtype, 0);
  yk_split_at(c->where, c->g, boxes, 1, 2, NULL, corner);
  yk_value size = yk_sub_at(c->where, c->g, corner[1], corner[0]);
  yk_value side = yk_reduce_min_at(c->where, c->g, size, &(yk_reduce_attrs){ .naxes = 1, .axis = { 1 }, .keepdims = 1 });
  return yk_where_at(c->where, c->g, yk_greater_at(c->where, c->g, side, zero), scores, c->least);
}

/* The candidates of one picture, decoded: scores [A, C], codes [A, 4], anchors [A, 4] -> scores, boxes. */
static void decode(const chooser *c, const yk_value in[3], yk_value out[2]) {
  const char *where = c->where;
  yk_graph *g = c->g;
  yk_value x[3] = { in[0], in[1], in[2] }, top[2];
  if (c->o.candidates > 0 && c->o.candidates < c->boxes) {
    yk_top_k_at(where, g, yk_reduce_max_at(where, g, x[0], &(yk_reduce_attrs){ .naxes = 1, .axis = { 1 } }), c->o.candidates, top);
    for (int i = 0; i < 3; i++) x[i] = yk_gather_at(where, g, x[i], top[1], 0);
  }
  out[1] = yk_box_decode_at(where, g, x[1], x[2], c->o.deviation);
  if (c->o.height > 0) out[1] = yk_minimum_at(where, g, yk_relu_at(where, g, out[1]), c->edges);
  out[0] = eligible(c, out[1], x[0]);
}

/* The best ones of one class: scores [most], the least one behind the last box, and boxes [most, 4]. */
static void choose_class(const chooser *c, int64_t kind, const yk_value in[2], yk_value out[2]) {
  yk_nms_attrs attrs = { .max_outputs = c->o.most, .iou_threshold = c->o.iou, .score_threshold = c->o.score };
  yk_value index[2], none = yk_scalar_at(c->where, c->g, YK_I32, 0);
  yk_value score = yk_gather_at(c->where, c->g, in[0], yk_scalar_at(c->where, c->g, YK_I64, (double)kind), 1);
  yk_non_max_suppression_at(c->where, c->g, in[1], score, &attrs, index);
  yk_value real = yk_greater_equal_at(c->where, c->g, index[0], none), row = yk_maximum_at(c->where, c->g, index[0], none);
  out[0] = yk_where_at(c->where, c->g, real, yk_gather_at(c->where, c->g, score, row, 0), c->least);
  out[1] = yk_gather_at(c->where, c->g, in[1], row, 0);
}

/* One picture: in as for decode() -> boxes [most, 4], scores and classes [most], how many. part: room for 2 * classes values. */
static void choose(const chooser *c, const yk_value in[3], yk_value *part, yk_value out[4]) {
  const char *where = c->where;
  yk_graph *g = c->g;
  yk_value x[2], all[2], top[2];
  decode(c, in, x);
  for (int64_t k = 0; k < c->classes && yk_graph_status(g) == YK_OK; k++) {
    choose_class(c, k, x, all);
    for (int i = 0; i < 2; i++) part[i * c->classes + k] = all[i];
  }
  for (int i = 0; i < 2; i++) all[i] = yk_concat_at(where, g, (size_t)c->classes, part + i * c->classes, 0);
  yk_top_k_at(where, g, all[0], c->o.most, top);
  yk_value real = yk_greater_at(where, g, top[0], c->least), is = yk_cast_at(where, g, real, c->dtype), one = yk_cast_at(where, g, real, YK_I32);
  out[0] = yk_mul_at(where, g, yk_gather_at(where, g, all[1], top[1], 0), yk_expand_dims_at(where, g, is, 1));
  out[1] = yk_mul_at(where, g, top[0], is);
  out[2] = yk_mul_at(where, g, yk_gather_at(where, g, c->kinds, top[1], 0), one);
  out[3] = yk_reduce_sum_at(where, g, one, NULL);
}

/* ---- all pictures -------------------------------------------------------------------------------------------------------- */

/* How many pictures, boxes and classes there are, from anchors and the numbers of elements; false if these make no sense. */
static bool count(chooser *c, const yk_value in[3]) {
  const yk_desc *l = yk_value_desc(c->g, in[0]), *b = yk_value_desc(c->g, in[1]), *a = yk_value_desc(c->g, in[2]);
  if (l == NULL || b == NULL || a == NULL || (a->rank != 2 && a->rank != 3)) return false;
  const int64_t logits = yk__desc_count(l), codes = yk__desc_count(b), anchors = yk__desc_count(a), across = a->dim[a->rank - 2];
  if (logits < 1 || codes < 4 || anchors < 4 || a->dim[a->rank - 1] != 4 || codes % (4 * across) != 0 || logits % (codes / 4) != 0) return false;
  c->dtype = (yk_dtype)l->dtype;
  c->boxes = across;
  c->pictures = codes / 4 / across;
  c->classes = logits / (codes / 4) - 1;
  return c->classes > 0 && (a->rank == 2 || a->dim[0] == c->pictures);
}

static bool usable(chooser *c, const yk_value in[3]) {
  const yk_choose_options *o = &c->o;
  if (yk_graph_status(c->g) != YK_OK) return false;
  if (!count(c, in))
    yk_graph_fail_at(c->where, c->g, YK_EINVAL,
                     "choose_boxes: needs logits [N, A, 1 + C], codes [N, A, 4] and anchors [A, 4] or [N, A, 4], all known");
  else if (o->candidates < 0 || o->most < 0 || o->height < 0 || o->width < 0 || (o->height > 0) != (o->width > 0))
    yk_graph_fail_at(c->where, c->g, YK_EINVAL, "choose_boxes: %ld of %ld boxes in a picture of %lld x %lld", (long)o->most, (long)o->candidates,
                     (long long)o->height, (long long)o->width);
  if (c->o.most == 0) c->o.most = 1;
  return yk_graph_status(c->g) == YK_OK;
}

static yk_code constants(chooser *c) {
  yk_value side[4];
  int32_t *kind = yk__calloc((size_t)(c->classes * c->o.most), sizeof *kind);
  if (kind == NULL) return YK_ENOMEM;
  for (int64_t i = 0; i < c->classes * c->o.most; i++) kind[i] = (int32_t)(i / c->o.most);
  c->kinds = yk_constant_from_at(c->where, c->g, YK_I32, YK_SHAPE(c->classes * c->o.most), kind);
  yk__free(kind);
  c->least = yk_scalar_at(c->where, c->g, c->dtype, c->o.score);
  for (int i = 0; i < 4; i++) side[i] = yk_scalar_at(c->where, c->g, c->dtype, (double)(i % 2 ? c->o.width : c->o.height));
  c->edges = yk_stack_at(c->where, c->g, 4, side, 0);
  return yk_graph_status(c->g);
}

/* Logits, codes and anchors -> probabilities [N, A, C], codes [N, A, 4], anchors, all constants for gradients. */
static void prepare(const chooser *c, yk_value in[3]) {
  const char *where = c->where;
  yk_graph *g = c->g;
  for (int k = 0; k < 3; k++) in[k] = yk_stop_gradient_at(where, g, in[k]);
  in[0] = yk_softmax_at(where, g, yk_reshape_at(where, g, in[0], YK_SHAPE(c->pictures, c->boxes, 1 + c->classes)));
  in[0] = yk_slice_at(where, g, in[0], (const int64_t[]){ 0, 0, 1 }, (const int64_t[]){ -1, -1, -1 });
  in[1] = yk_reshape_at(where, g, in[1], YK_SHAPE(c->pictures, c->boxes, 4));
}

static void choose_all(chooser *c, const yk_value in[3], yk_value *part, yk_value out[4]) {
  const bool own = yk_value_desc(c->g, in[2])->rank == 3;
  for (int64_t i = 0; i < c->pictures && yk_graph_status(c->g) == YK_OK; i++) {
    yk_value one[3], at = yk_scalar_at(c->where, c->g, YK_I64, (double)i), got[4];
    for (int k = 0; k < 3; k++) one[k] = k == 2 && !own ? in[k] : yk_gather_at(c->where, c->g, in[k], at, 0);
    choose(c, one, part + 4 * c->pictures, got);
    for (int k = 0; k < 4; k++) part[k * c->pictures + i] = got[k];
  }
  for (int k = 0; k < 4; k++) out[k] = yk_stack_at(c->where, c->g, (size_t)c->pictures, part + k * c->pictures, 0);
}

yk_value yk_choose_boxes_at(const char *where, yk_graph *g, yk_value logits, yk_value codes, yk_value anchors,
                            const yk_choose_options *options, yk_value out[4]) {
  chooser c = { .where = where, .g = g, .o = options != NULL ? *options : (yk_choose_options){ .most = 0 } };
  yk_value in[3] = { logits, codes, anchors };
  for (int i = 0; i < 4; i++) out[i] = (yk_value){ 0 };
  if (!usable(&c, in)) return out[0];
  yk_value *part = yk__calloc((size_t)(4 * c.pictures + 2 * c.classes), sizeof *part);
  if (part == NULL || constants(&c) == YK_ENOMEM) yk_graph_fail_at(where, g, YK_ENOMEM, "choose_boxes: no memory");
  prepare(&c, in);
  if (yk_graph_status(g) == YK_OK) choose_all(&c, in, part, out);
  yk__free(part);
  for (int i = 0; i < 4 && yk_graph_status(g) != YK_OK; i++) out[i] = (yk_value){ 0 };
  return out[0];
}
