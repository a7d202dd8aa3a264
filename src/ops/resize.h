/*
 * resize.h - geometry of pictures made larger by whole factors.
 *
 * The nearest form is the bilinear one with weights of 0 and 1, so both share everything but where a cell takes its value from.
 */
#ifndef YK_OPS_RESIZE_H
#define YK_OPS_RESIZE_H

#include "ops/common.h"

extern const yk_attr yk__resize_attrs[];
extern const yk_resize_attrs yk__resize_2, yk__resize_3x2;

/* Sizes times the factors, or divided by them (EINVAL unless they divide). */
yk_code yk__resize_infer(const yk_infer *c) YK_CHECKED;
yk_code yk__resize_infer_grad(const yk_infer *c) YK_CHECKED;

/* y of x by the weights, or what flows back: dx of dy. */
yk_code yk__resize_ref(const yk_ref *c, int bilinear) YK_CHECKED;
yk_code yk__resize_ref_grad(const yk_ref *c, int bilinear) YK_CHECKED;

#define YK__RESIZE_CASES                                                                                          \
  { "T[2,3,4,5]", &yk__resize_2, 0, 0, 0 }, { "T[1,4,3,16]", &yk__resize_3x2, 0, 0, 0 }, { "T[2,1,1,3]", &yk__resize_2, 0, 0, 0 }, \
  { "T[1,3,2,1]", NULL, 0, 0, 0 }, { "T[0,2,2,3]", &yk__resize_2, 0, 0, 0 }, { 0 }
#define YK__RESIZE_GRAD_CASES                                                                                     \
  { "T[2,6,8,5]", &yk__resize_2, 0, 0, 0 }, { "T[1,12,6,16]", &yk__resize_3x2, 0, 0, 0 }, { "T[2,2,2,3]", &yk__resize_2, 0, 0, 0 }, \
  { "T[1,3,2,1]", NULL, 0, 0, 0 }, { "T[0,4,4,3]", &yk__resize_2, 0, 0, 0 }, { 0 }

#endif
