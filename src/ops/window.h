/*
 * window.h - where a sliding window goes along one axis of a picture.
 *
 * Convolution and pooling share this arithmetic, so that SAME, VALID and explicit
 * padding mean one thing everywhere. Unknown sizes (-1) are legal and stay unknown.
 */
#ifndef YK_OPS_WINDOW_H
#define YK_OPS_WINDOW_H

#include <yoke/op_attrs.h>

typedef struct yk_window {
  int64_t in, out;               /* cells of the input and of the output; -1 = unknown */
  int64_t size, stride, dilation;
  int64_t before, after;         /* padding cells; 0 while `in` is unknown */
} yk_window;

/*
 * Window of `size` cells over `in` cells. stride and dilation 0 mean 1; pad = { before, after } counts only with YK_EXPLICIT.
 * `axis` ("height") goes into the message. EINVAL: window below one cell, or larger than the padded input.
 */
yk_code yk__window_of(const char *axis, int64_t in, int64_t size, int64_t stride, int64_t dilation, int32_t padding,
                      const int32_t pad[2], yk_window *out) YK_CHECKED;

/* First input cell under output cell o, negative within the padding. */
int64_t yk__window_start(const yk_window *w, int64_t o);

/* Both axes of a picture. window, stride, dilation: [vertical, horizontal]; pad: top, bottom, left, right.
 * Also EINVAL: pad given though the padding is not explicit. */
yk_code yk__window_2d(const int64_t in[2], const int64_t size[2], const int32_t stride[2], const int32_t dilation[2],
                      int32_t padding, const int32_t pad[4], yk_window out[2]) YK_CHECKED;

/* "SAME", "VALID" or "EXPLICIT". */
const char *yk__padding_name(int32_t padding);

#endif
