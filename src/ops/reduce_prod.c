/*
 * reduce_prod.c - product over axes, and its gradient. The gradient of one factor is the product of all the others,
 * taken without dividing, so zeros among the factors give exact results.
 */
#include <yoke/math.h>
#include "reduce.h"

static double eval(double so_far, double x) { return so_far * x; }
static yk_code ref(const yk_ref *c) { return yk__reduce_ref(c, 1, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, reduce_prod_grad, c->attrs, 2, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_REDUCE(0.8, 1.2), { "T[0,7]", &yk__reduce_first, 0, 0, 0 }, { 0 } };

const yk_op yk__op_reduce_prod = {
  .name = "reduce_prod", .label = "Prod", .doc = "product over axes",
  .version = 1, .attr_bytes = sizeof(yk_reduce_attrs), .traits = YK_PURE | YK_WIDE, .attrs = yk__reduce_attrs,
  .in = yk__arith1, .out = yk__out1, .infer = yk__reduce_infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_reduce_prod_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs) {
  return yk__reduce_build(where, g, &yk__op_reduce_prod, x, attrs);
}

/* ---- reduce_prod_grad ------------------------------------------------------------------------------------------------ */

static yk_code grad_infer(const yk_infer *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  yk_desc want, merged;
  YK_TRY(yk__reduce_shape(&c->in[1], &a, &want));
  YK_TRY(yk__shape_merge(&c->in[0], &want, &merged));
  return yk__infer_like(c);
}

/* For each element, the product of the others of its group: quadratic, but plain. */
static yk_code grad_ref(const yk_ref *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  const yk_desc *x = &c->din[1];
  int64_t mine[YK_MAX_RANK], other[YK_MAX_RANK], n = yk__desc_count(x);
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(x, i, mine);
    int64_t place = yk__reduce_place(x, &a, mine);
    double product = c->in[0][place];
    for (int64_t k = 0; k < n; k++) {
      yk__unravel(x, k, other);
      if (k != i && yk__reduce_place(x, &a, other) == place) product *= c->in[1][k];
    }
    c->out[0][i] = product;
  }
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "reduce_prod has no second derivative here; build the product from mul if you need one");
}

static const yk_case grad_cases[] = {
  { "T[]; T[]", NULL, 0.8, 1.2, 0 }, { "T[]; T[33]", NULL, 0.8, 1.2, 0 }, { "T[33]; T[7,33]", &yk__reduce_first, 0.8, 1.2, 0 },
  { "T[7]; T[7,33]", &yk__reduce_last, 0.8, 1.2, 0 }, { "T[4,1,5]; T[4,7,5]", &yk__reduce_mid_keep, 0.8, 1.2, 0 },
  { "T[3,5]; T[2,3,4,5]", &yk__reduce_two, 0.8, 1.2, 0 }, { "T[1,1]; T[4,7]", &yk__reduce_keep, 0.8, 1.2, 0 },
  { "T[0]; T[0,7]", &yk__reduce_last, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_reduce_prod_grad = {
  .name = "reduce_prod_grad", .label = "ProdGrad", .doc = "dy times the product of the other factors",
  .version = 1, .attr_bytes = sizeof(yk_reduce_attrs), .traits = YK_PURE, .attrs = yk__reduce_attrs,
  .in = yk__grad2, .out = yk__out1, .infer = grad_infer, .grad = grad_grad, .ref = grad_ref, .cases = grad_cases,
};
