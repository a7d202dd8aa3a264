/*
 * padding.h - cells of padding along one axis of a picture.
 *
 * Every kernel that slides a window asks here, so that plain loops, Winograd and
 * oneDNN agree on where a window starts.
 */
#ifndef YK_CPU_PADDING_H
#define YK_CPU_PADDING_H

#include <yoke/op_attrs.h>

typedef struct yk_edges { int64_t before, after; } yk_edges;

/* `in` and `out` cells, a window that covers `window` cells, dilation included; pad: [2], of explicit padding. SAME splits as
 * TensorFlow does: the odd cell comes after. */
static inline yk_edges yk__cpu_padding(int32_t kind, int64_t in, int64_t out, int64_t window, int64_t stride, const int32_t *pad) {
  int64_t total = (out - 1) * stride + window - in;
  if (kind == YK_EXPLICIT) return (yk_edges){ pad[0], pad[1] };
  if (kind == YK_VALID || total <= 0) return (yk_edges){ 0, 0 };
  return (yk_edges){ total / 2, total - total / 2 };
}

#endif
