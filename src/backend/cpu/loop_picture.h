/*
 * loop_picture.h - what preparing and running share in the kernels that read pictures between cells: resizing, and features in boxes.
 *
 * Channels are the innermost axis and what vectors run along. Sums of gradients are made by one thread each, in order.
 */
#ifndef YK_CPU_LOOP_PICTURE_H
#define YK_CPU_LOOP_PICTURE_H

#include "loop_nn.h"

enum { PICTURE_RESIZE, PICTURE_RESIZE_GRAD, PICTURE_ROI, PICTURE_ROI_GRAD };

/* A value between two cells of one side. */
typedef struct yk_between { int64_t at[2]; double weight; } yk_between;          /* weight of the second */

typedef struct yk_resize_state {
  yk_loop_body body;
  int64_t n, h, w, c, scale[2];        /* of the small picture */
  const yk_between *row, *column;      /* of each row and column of the large one */
  yk_between table[];
} yk_resize_state;

typedef struct yk_roi_state {
  yk_loop_body body;
  int64_t n, h, w, c, boxes, size[2], samples, stripe;     /* stripe: channels of one task of the gradient */
  double scale, offset;
  int32_t aligned;
} yk_roi_state;

#endif
