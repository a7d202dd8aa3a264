/*
 * conv.h - what the members of the convolution family have in common.
 *
 * A convolution is a set of (x, w, y) cells that belong together; the forward pass and both
 * gradients visit the same set and differ only in which of the three they sum into. So there is
 * one geometry, one check and one reference loop for all of them.
 */
#ifndef YK_OPS_CONV_H
#define YK_OPS_CONV_H

#include "ops/common.h"
#include "ops/window.h"

typedef struct yk_conv {
  int64_t n, c, o, groups;       /* pictures, input channels, output channels; -1 = unknown */
  yk_window at[2];               /* vertical, horizontal */
} yk_conv;

/* Geometry of x [N,H,W,C] with w [h,w,C/groups,O]. EINVAL names what does not fit, with both shapes. */
yk_code yk__conv_of(const yk_conv2d_attrs *a, const yk_desc *x, const yk_desc *w, yk_conv *out) YK_CHECKED;
/* Output [N,H',W',O] of that, of x's dtype. */
yk_desc yk__conv_output(const yk_conv *c, const yk_desc *x);
/* Geometry as above, and dy checked to be of the output's shape; a size unknown in one is taken from the other. */
yk_code yk__conv_of_grad(const yk_conv2d_attrs *a, const yk_desc *x, const yk_desc *w, const yk_desc *dy, yk_conv *out) YK_CHECKED;

/* Which array the reference loop adds to. */
typedef enum yk_conv_sum { YK_CONV_TO_X, YK_CONV_TO_W, YK_CONV_TO_Y } yk_conv_sum;
/* For every cell that belongs together, add the product of the other two to the array named by `sum`, which is cleared first;
 * the others are only read. */
void yk__conv_ref(const yk_conv *c, yk_conv_sum sum, double *x, double *w, double *y);

/* Operations of any member: each cell of y, or of its gradient, takes a whole window of one filter w. */
double yk__conv_flops(const yk_desc *y, const yk_desc *w);

/* The attributes without those that only some members have (out, act, alpha): what gradients are built with. */
yk_conv2d_attrs yk__conv_plain(const yk_conv2d_attrs *a);

/* Attribute rows of every member; yk__conv_attrs has just these. */
#define YK__CONV_ATTRS                                              \
  YK__INTS(yk_conv2d_attrs, stride, 2, 1, 0, 65536),                \
  YK__INTS(yk_conv2d_attrs, dilation, 2, 1, 0, 65536),              \
  YK__INT(yk_conv2d_attrs, groups, 1, 0, 1 << 24),                  \
  YK__ENUM(yk_conv2d_attrs, padding, YK_SAME, YK_SAME, YK_EXPLICIT), \
  YK__INTS(yk_conv2d_attrs, pad, 4, 0, 0, 1 << 24)

extern const yk_attr yk__conv_attrs[];

#endif
