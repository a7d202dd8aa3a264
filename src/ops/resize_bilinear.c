/*
 * resize_bilinear.c - a picture made larger by whole factors, values between the cells around; and the gradient, which is linear as well.
 *
 * The geometry is in resize.h.
 */
#include <yoke/nn.h>
#include "ops/resize.h"

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, resize_bilinear_grad, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) { return yk__resize_ref(c, 1); }

static const yk_case cases[] = { YK__RESIZE_CASES };

const yk_op yk__op_resize_bilinear = {
  .name = "resize_bilinear", .label = "ResizeBilinear", .doc = "x [N,H,W,C] made larger by whole factors, values between the cells around.",
  .version = 1, .attr_bytes = sizeof(yk_resize_attrs), .traits = YK_PURE, .attrs = yk__resize_attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__resize_infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_resize_bilinear_at(const char *where, yk_graph *g, yk_value x, int rows, int columns) {
  if (rows < 1 || columns < 1)
    return yk_graph_fail_at(where, g, YK_EINVAL, "resize_bilinear: factors of %d and %d, expected 1 or more", rows, columns);
  return yk__build(where, g, &yk__op_resize_bilinear, &(yk_resize_attrs){ { rows, columns } }, 1, x);
}

/* ---- resize_bilinear_grad ------------------------------------------------------------------------------------------- */

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, resize_bilinear, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) { return yk__resize_ref_grad(c, 1); }

static const yk_case grad_cases[] = { YK__RESIZE_GRAD_CASES };

const yk_op yk__op_resize_bilinear_grad = {
  .name = "resize_bilinear_grad", .label = "ResizeBilinearGrad", .doc = "Gradient of resize_bilinear.",
  .version = 1, .attr_bytes = sizeof(yk_resize_attrs), .traits = YK_PURE, .attrs = yk__resize_attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__resize_infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = grad_cases,
};
