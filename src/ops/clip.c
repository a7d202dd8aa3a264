/*
 * clip.c - x limited to [lo, hi], and its gradient. The bounds are inclusive: an element that lies on one passes
 * its gradient through.
 */
#include <yoke/math.h>
#include "common.h"

static double eval(const double *v, const void *attrs) {
  const yk_clip_attrs *a = attrs;
  return v[0] < a->lo ? a->lo : v[0] > a->hi ? a->hi : v[0];
}

static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code infer(const yk_infer *c) {
  yk_clip_attrs a = YK__ATTRS(yk_clip_attrs, c);
  if (!(a.lo <= a.hi)) return YK_FAIL(EINVAL, "bounds %g and %g are the wrong way round; expected lo <= hi", a.lo, a.hi);
  return yk__infer_same_all(c);
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, clip_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_attr attrs[] = {
  YK__REAL(yk_clip_attrs, lo, 0, -HUGE_VAL, HUGE_VAL), YK__REAL(yk_clip_attrs, hi, 0, -HUGE_VAL, HUGE_VAL), { 0 }
};
static const yk_clip_attrs unit = { -1, 1 }, top = { -HUGE_VAL, 1 };
static const yk_case cases[] = { YK__CASES_1(&unit, -3, 3), { "T[4,7]", &top, -3, 3, 0 }, { 0 } };

const yk_op yk__op_clip = {
  .name = "clip", .label = "ClipByValue", .doc = "x limited to [lo, hi]",
  .version = 1, .attr_bytes = sizeof(yk_clip_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__arith1, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_clip_at(const char *where, yk_graph *g, yk_value x, double lo, double hi) {
  return yk__build(where, g, &yk__op_clip, &(yk_clip_attrs){ lo, hi }, 1, x);
}

/* ---- clip_grad --------------------------------------------------------------------------------------------------- */

static double grad_eval(const double *v, const void *attrs_) {
  const yk_clip_attrs *a = attrs_;
  return v[1] >= a->lo && v[1] <= a->hi ? v[0] : 0;
}

static yk_code grad_ref(const yk_ref *c) { return yk__ref_map(c, grad_eval); }

static yk_code grad_grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, clip_grad, c->attrs, 2, c->dout[0], c->in[1]);   /* flat in x */
  return YK_OK;
}

static const yk_case grad_cases[] = { YK__CASES_SAME_2(&unit, -3, 3), { "T[4,7]; T[4,7]", &top, -3, 3, 0 }, { 0 } };

const yk_op yk__op_clip_grad = {
  .name = "clip_grad", .label = "ClipByValueGrad", .doc = "dy where x is inside [lo, hi], else 0",
  .version = 1, .attr_bytes = sizeof(yk_clip_attrs), .traits = YK_PURE | YK_ELEMENTWISE, .attrs = attrs,
  .in = yk__grad2, .out = yk__out1, .infer = infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
