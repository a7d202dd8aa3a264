/*
 * reduce_grad.c - spread a reduced tensor back over the axes that were reduced, divided by their count if it was a
 * mean. The gradient of reduce_sum and reduce_mean; its own gradient is the reduction again.
 */
#include "reduce.h"

static yk_code infer(const yk_infer *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  yk_desc want, merged, dy = yk__as(&c->in[0], c->in[0].dtype);
  char t[YK__DESC_TEXT], u[YK__DESC_TEXT];
  YK_TRY(yk__reduce_shape(&c->in[1], &a, &want));
  want.dtype = dy.dtype;
  if (yk__shape_merge(&dy, &want, &merged) != YK_OK)
    return YK_FAIL(EINVAL, "dy is %s, but the reduction gives %s", yk__desc_text(&dy, t, sizeof t),
                   yk__desc_text(&want, u, sizeof u));
  return yk__infer_like(c);
}

static yk_code ref(const yk_ref *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  const yk_desc *x = &c->dout[0];
  int64_t index[YK_MAX_RANK], n = yk__desc_count(x);
  double count = a.mean ? (double)yk__reduce_count(x, &a) : 1;
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(x, i, index);
    c->out[0][i] = c->in[0][yk__reduce_place(x, &a, index)] / count;
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_reduce_attrs a = YK__ATTRS(yk_reduce_attrs, c);
  int mean = a.mean;
  a.mean = 0;
  c->din[0] = mean ? YK__OPA(c, reduce_mean, &a, 1, c->dout[0]) : YK__OPA(c, reduce_sum, &a, 1, c->dout[0]);
  return YK_OK;
}

static const yk_reduce_attrs mean_all = { .mean = 1 }, mean_two = { .naxes = 2, .axis = { -2, 0 }, .mean = 1 },
                             mean_keep = { .naxes = 1, .axis = { 1 }, .keepdims = 1, .mean = 1 };
static const yk_case cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[]; T[33]", NULL, 0, 0, 0 }, { "T[]; T[4,7,5]", &mean_all, 0, 0, 0 },
  { "T[33]; T[7,33]", &yk__reduce_first, 0, 0, 0 }, { "T[7]; T[7,33]", &yk__reduce_last, 0, 0, 0 },
  { "T[4,1,5]; T[4,7,5]", &yk__reduce_mid_keep, 0, 0, 0 }, { "T[4,1,5]; T[4,7,5]", &mean_keep, 0, 0, 0 },
  { "T[3,5]; T[2,3,4,5]", &yk__reduce_two, 0, 0, 0 }, { "T[3,5]; T[2,3,4,5]", &mean_two, 0, 0, 0 },
  { "T[1,1]; T[4,7]", &yk__reduce_keep, 0, 0, 0 }, { "T[7]; T[0,7]", &yk__reduce_first, 0, 0, 0 }, { 0 }
};

/* The extremes of integers need it too, to spread the result: any number. "like" may have another dtype. */
static const yk_port in[] = { { "dy", YK_NUMBERS, 0, 0 }, { "like", YK_ANYTYPE, YK_PORT_SHAPE | YK_PORT_NODIFF, 0 }, { 0 } };

const yk_op yk__op_reduce_grad = {
  .name = "reduce_grad", .label = "ReduceGrad", .doc = "dy spread over the reduced axes",
  .version = 1, .attr_bytes = sizeof(yk_reduce_attrs), .traits = YK_PURE, .attrs = yk__reduce_attrs,
  .in = in, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};
