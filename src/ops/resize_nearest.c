/*
 * resize_nearest.c - a picture made larger by whole factors, each cell repeated; and the gradient, which is linear as well.
 *
 * The geometry is in resize.h.
 */
#include <yoke/nn.h>
#include "ops/resize.h"

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, resize_nearest_grad, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) { return yk__resize_ref(c, 0); }

static const yk_case cases[] = { YK__RESIZE_CASES };

const yk_op yk__op_resize_nearest = {
  .name = "resize_nearest", .label = "ResizeNearestNeighbor", .doc = "x [N,H,W,C] made larger by whole factors, each cell repeated.",
  .version = 1, .attr_bytes = sizeof(yk_resize_attrs), .traits = YK_PURE, .attrs = yk__resize_attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__resize_infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_resize_nearest_at(const char *where, yk_graph *g, yk_value x, int rows, int columns) {
  if (rows < 1 || columns < 1)
    return yk_graph_fail_at(where, g, YK_EINVAL, "resize_nearest: factors of %d and %d, expected 1 or more", rows, columns);
  return yk__build(where, g, &yk__op_resize_nearest, &(yk_resize_attrs){ { rows, columns } }, 1, x);
}

/* ---- resize_nearest_grad ------------------------------------------------------------------------------------------- */

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, resize_nearest, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static yk_code ref_grad(const yk_ref *c) { return yk__resize_ref_grad(c, 0); }

static const yk_case grad_cases[] = { YK__RESIZE_GRAD_CASES };

const yk_op yk__op_resize_nearest_grad = {
  .name = "resize_nearest_grad", .label = "ResizeNearestNeighborGrad", .doc = "Gradient of resize_nearest.",
  .version = 1, .attr_bytes = sizeof(yk_resize_attrs), .traits = YK_PURE, .attrs = yk__resize_attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__resize_infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = grad_cases,
};
