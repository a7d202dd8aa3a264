/*
 * zeros_like.c - a tensor of zeros with the shape and dtype of another one. Only the shape of the input matters, so it need
 * not be computed, and no gradient flows.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) {
  int64_t n = yk__desc_count(&c->dout[0]);
  for (int64_t i = 0; i < n; i++) c->out[0][i] = 0;
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_zeros_like = {
  .name = "zeros_like", .label = "ZerosLike", .doc = "zeros of the shape and dtype of the input",
  .version = 1, .traits = YK_PURE | YK_NO_GRAD,
  .in = yk__like1, .out = yk__out1, .infer = yk__infer_same, .ref = ref, .cases = cases,
};

yk_value yk_zeros_like_at(const char *where, yk_graph *g, yk_value like) {
  return yk__build(where, g, &yk__op_zeros_like, NULL, 1, like);
}
