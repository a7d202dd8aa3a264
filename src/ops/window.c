/*
 * window.c - output size and padding of a sliding window, one axis at a time.
 *
 * The formulae are TensorFlow's: SAME gives ceil(in / stride) cells and puts the odd padding cell behind; VALID counts
 * whole windows only. A dilated window spans (size - 1) * dilation + 1 cells.
 */
#include "ops/window.h"

#include "base/error.h"

static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

const char *yk__padding_name(int32_t padding) {
  return padding == YK_SAME ? "SAME" : padding == YK_VALID ? "VALID" : "EXPLICIT";
}

yk_code yk__window_of(const char *axis, int64_t in, int64_t size, int64_t stride, int64_t dilation, int32_t padding,
                      const int32_t pad[2], yk_window *out) {
  yk_window w = { .in = in, .out = -1, .size = size, .stride = stride ? stride : 1, .dilation = dilation ? dilation : 1 };
  int64_t span = size < 0 ? -1 : (size - 1) * w.dilation + 1;
  if (size == 0) return YK_FAIL(EINVAL, "the window has 0 cells of %s, expected at least 1", axis);
  if (padding == YK_EXPLICIT) {
    w.before = pad[0];
    w.after = pad[1];
  }
  if (in < 0) {
    *out = w;
    return YK_OK;
  }
  if (padding == YK_SAME) {
    w.out = (in + w.stride - 1) / w.stride;
    if (size > 0) {
      int64_t total = max64((w.out - 1) * w.stride + span - in, 0);
      w.before = in > 0 ? total / 2 : 0;
      w.after = in > 0 ? total - total / 2 : 0;
    }
  } else if (size > 0) {
    int64_t padded = in + w.before + w.after;
    if (span > padded)
      return YK_FAIL(EINVAL, "the window spans %lld cells of %s, more than the %lld of the input%s", (long long)span, axis,
                     (long long)padded, padding == YK_EXPLICIT ? " with its padding" : " (use SAME padding, or a larger input)");
    w.out = (padded - span) / w.stride + 1;
  }
  *out = w;
  return YK_OK;
}

int64_t yk__window_start(const yk_window *w, int64_t o) { return o * w->stride - w->before; }

yk_code yk__window_2d(const int64_t in[2], const int64_t size[2], const int32_t stride[2], const int32_t dilation[2],
                      int32_t padding, const int32_t pad[4], yk_window out[2]) {
  static const char *const axis[2] = { "height", "width" };
  yk_window w[2];
  if (padding != YK_EXPLICIT && (pad[0] | pad[1] | pad[2] | pad[3]))
    return YK_FAIL(EINVAL, "pad=%d,%d,%d,%d is given but padding is %s, expected EXPLICIT", pad[0], pad[1], pad[2], pad[3],
                   yk__padding_name(padding));
  for (int i = 0; i < 2; i++)
    YK_TRY(yk__window_of(axis[i], in[i], size[i], stride[i], dilation[i], padding, pad + 2 * i, &w[i]));
  out[0] = w[0];
  out[1] = w[1];
  return YK_OK;
}
