/*
 * boxes.h - what the files of detection share: overlap, and the numbers by which codes are divided.
 *
 * On the host all of it is worked out in double from the floats given, so that equal overlaps come out equal wherever they are.
 */
#ifndef YK_DETECT_BOXES_H
#define YK_DETECT_BOXES_H

#include <yoke/detect.h>

/* A side grows by so much at most: log(1000/16). */
#define YK__MOST_GROWTH 4.1351665567423558

/* Intersection over union of boxes [4]; 0 if one has no area. */
double yk__box_overlap(const float *a, const float *b);
/* Its area, above 0 unless the row is no box. */
double yk__box_area(const float *box);
/* Are all boxes of f32 [..., 4] finite, with corners the right way round? `what` and the place are in the error. */
yk_code yk__boxes_check(const char *what, const yk_tensor *boxes) YK_CHECKED;
/* Are all elements of an i32 tensor, NULL standing for zeros, at least 0 and below n? */
yk_code yk__classes_check(const char *what, const yk_tensor *classes, int32_t n) YK_CHECKED;
/* Row i of boxes; element i of classes, 0 if there are none. */
const float *yk__box_at(const yk_tensor *boxes, int64_t i);
int32_t yk__class_at(const yk_tensor *classes, int64_t i);
/* The four numbers given or the usual ones; NULL if one of them is not above 0. */
const double *yk__box_deviation(const double *deviation);

#endif
