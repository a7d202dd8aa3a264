/*
 * detect.h - object detection: anchors, the coding of boxes, what boxes are to learn, the choice among them, how good it all is.
 *
 * Boxes are rows (y1, x1, y2, x2) in pixels of the picture, second corners not before the first, as in nn.h. Pictures show
 * different numbers of things, tensors have one shape: a row without an area is no box. With these parts a region proposal
 * network and the detector behind it (Ren, He, Girshick, Sun, 2015) are a few lines each: both score boxes and correct them,
 * the first one anchors, the second one what the first proposed. examples/two_stage_detector.c has it whole.
 *
 * yk_x(g, ...) build nodes: {0} after a sticky error, see graph.h. The others work on the host, on tensors of the caller: boxes
 * and scores are f32, classes and labels i32. EINVAL: a dtype or shape that does not fit, both shown; a box whose corners are
 * the wrong way round or not finite, a class out of range, both with their place.
 */
#ifndef YK_DETECT_H
#define YK_DETECT_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

/* Anchors over a feature map: at each of its cells one box for each ratio and size. */
typedef struct yk_anchor_options {
  int64_t rows, columns;           /* of the feature map */
  double stride;                   /* pixels from cell to cell */
  size_t nsizes, nratios;          /* up to 64 of each; no ratios = {1} */
  const double *sizes, *ratios;    /* square root of the area in pixels; height / width */
} yk_anchor_options;
/* *out: f32 [rows * columns * nratios * nsizes, 4], yk_tensor_free(). Number ((row*columns + column)*nratios + r)*nsizes + s
 * has its middle at ((row + 1/2)*stride, (column + 1/2)*stride). EINVAL: a number out of its range; ENOMEM. */
yk_code yk_anchors(const yk_anchor_options *options, yk_tensor **out) YK_CHECKED;

/*
 * A box as seen from another one, its anchor: ((yc - ya)/ha, (xc - xa)/wa, log(h/ha), log(w/wa)) with middles (yc, xc) and
 * sizes (h, w), each divided by its `deviation`, which brings codes to about 1 (NULL = 0.1, 0.1, 0.2, 0.2). boxes, anchors:
 * [..., 4], which broadcast; areas above 0. Decoding undoes it; a side grows by 1000/16 at most, so that no exp overflows.
 * Gradients flow to all of them.
 */
yk_value yk_box_encode_at(const char *where, yk_graph *g, yk_value boxes, yk_value anchors, const double deviation[4]);
yk_value yk_box_decode_at(const char *where, yk_graph *g, yk_value codes, yk_value anchors, const double deviation[4]);
#define yk_box_encode(...) yk_box_encode_at(YK_HERE, __VA_ARGS__)
#define yk_box_decode(...) yk_box_decode_at(YK_HERE, __VA_ARGS__)

/* ---- what boxes are to learn ------------------------------------------------------------------------------------- */

typedef struct yk_target_options {
  double positive, negative;       /* IoU from which on a box shows what it overlaps, and below which it is background: 0 = 0.5, `positive` */
  bool   best;                     /* so does, of each truth, the box that overlaps it most, however little */
  size_t most;                     /* at random this many are to be learnt at most, 0 = all; */
  double fraction;                 /* and of these at most this part, 0 = half, are not background */
  uint64_t seed;                   /* of the choice */
  const double *deviation;         /* [4], as above */
} yk_target_options;
/*
 * What A boxes, [A, 4] for all pictures or [N, A, 4], are to learn where N pictures show things in boxes truth [N, M, 4] of
 * classes [N, M] from 0 (NULL: all 0). out[0] labels i32 [N, A]: 1 + class, 0 for background, -1 for what is not to be learnt,
 * rows without an area among them. out[1] targets f32 [N, A, 4]: the truth as seen from the box, zeros unless the label is
 * above 0. A box shows the truth that it overlaps most. New: both, yk_tensor_free() each. Otherwise takes no memory; after an
 * error out is as it was.
 */
yk_code yk_box_targets_new(int64_t pictures, int64_t boxes, yk_tensor *out[2]) YK_CHECKED;
yk_code yk_box_targets(const yk_tensor *boxes, const yk_tensor *truth, const yk_tensor *classes, const yk_target_options *options,
                       yk_tensor *const out[2]) YK_CHECKED;
/*
 * The loss of a stage from its logits [N, A, 1 + classes] and codes [N, A, 4], or as many elements in that order, with label
 * i32 [N, A] and target [N, A, 4] from above, known -> scalar: softmax cross entropy, and smooth L1 (beta 1) summed over the
 * codes of those with label > 0; both divided by the number of those with label >= 0.
 */
yk_value yk_detection_loss_at(const char *where, yk_graph *g, yk_value logits, yk_value codes, yk_value label, yk_value target);
#define yk_detection_loss(...) yk_detection_loss_at(YK_HERE, __VA_ARGS__)

/* ---- the choice among boxes -------------------------------------------------------------------------------------- */

typedef struct yk_choose_options {
  int64_t height, width;           /* of the picture: boxes end at its edges; 0: nowhere */
  int32_t candidates;              /* so many with the best scores are looked at, 0 = all */
  int32_t most;                    /* and so many are taken of a picture at most, 0 = 1 */
  double  iou, score;              /* at most so much overlap among those taken (0 = 0.5), and a probability above this */
  const double *deviation;         /* [4], as above */
} yk_choose_options;
/*
 * In each of N pictures and of each of C classes the best boxes that do not overlap too much, then the best of all, by the
 * softmax of logits [N, A, 1 + C], of which 0 is background. codes [N, A, 4] correct anchors [A, 4] or [N, A, 4]; logits and
 * codes may have another shape of as many elements in that order. -> out[0] boxes [N, most, 4], out[1] scores [N, most], best
 * first, out[2] classes from 0, i32 [N, most], out[3] how many, i32 [N]; zeros behind the last one. All dims must be known.
 * Boxes without an area are never taken, so none come of the empty rows of an earlier choice. All are constants for gradients.
 * Returns out[0]. Both stages end so: the first one with C = 1, the second one with what the first one chose as anchors. Equal
 * scores: the lower class, the earlier box.
 */
yk_value yk_choose_boxes_at(const char *where, yk_graph *g, yk_value logits, yk_value codes, yk_value anchors, const yk_choose_options *options,
                            yk_value out[4]);
#define yk_choose_boxes(...) yk_choose_boxes_at(YK_HERE, __VA_ARGS__)

/* ---- how good it is ---------------------------------------------------------------------------------------------- */

/* Found things against those that are there. One thread at a time. */
typedef struct yk_detection_score yk_detection_score;
/* A thing is found by a box of its class with at least this `iou` (0 = 0.5). *out: yk_detection_score_free(). EINVAL, ENOMEM. */
yk_code yk_detection_score_new(int32_t classes, double iou, yk_detection_score **out) YK_CHECKED;
void    yk_detection_score_free(yk_detection_score *s);
/* N more pictures: boxes found [N, K, 4] with scores [N, K] and classes [N, K] from 0, and true ones [N, M, 4], [N, M]; classes
 * NULL: all 0. From the best score down each takes the thing of its class that it overlaps most, of those not taken. After an
 * error, ENOMEM among them, no picture of these counts. */
yk_code yk_detection_score_add(yk_detection_score *s, const yk_tensor *boxes, const yk_tensor *scores, const yk_tensor *classes,
                               const yk_tensor *truth, const yk_tensor *truth_classes) YK_CHECKED;
/* Of a class, or with -1 the mean over all classes that were there: the part of things found; and average precision, the
 * precision at recalls 0, 0.01, ... 1, each the best at that recall or beyond, as COCO counts it. NaN if nothing was there, or
 * no such class. */
double yk_detection_recall(const yk_detection_score *s, int32_t class_number);
double yk_average_precision(yk_detection_score *s, int32_t class_number);

#ifdef __cplusplus
}
#endif
#endif
