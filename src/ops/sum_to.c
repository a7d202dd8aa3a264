/*
 * sum_to.c - undo a broadcast: sum over the axes along which a value of the shape of "like" was spread. Autodiff puts
 * it where a gradient has the broadcast shape; its own gradient is the broadcast again.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  int skip = c->in[0].rank - c->in[1].rank;
  for (int k = 0; k < c->in[1].rank; k++) {
    int64_t to = c->in[1].dim[k];
    if (skip < 0 || (to != 1 && yk__dims_clash(to, c->in[0].dim[k + skip])))
      return YK_FAIL(EINVAL, "%s does not broadcast to %s, so the sum cannot go back", yk__desc_text(&c->in[1], a, sizeof a),
                     yk__desc_text(&c->in[0], b, sizeof b));
  }
  return yk__infer_like(c);
}

static yk_code ref(const yk_ref *c) {
  int64_t index[YK_MAX_RANK], n = yk__desc_count(&c->din[0]);
  yk__ref_zero(c, 0);
  for (int64_t i = 0; i < n; i++) {
    yk__unravel(&c->din[0], i, index);
    c->out[0][yk__ravel_broadcast(&c->dout[0], &c->din[0], index)] += c->in[0][i];
  }
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, broadcast_to, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_port in[] = { { "x", YK__ARITH, 0, 0 }, { "like", YK_ANYTYPE, YK_PORT_SHAPE | YK_PORT_NODIFF, 0 }, { 0 } };
static const yk_case cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[5]", NULL, 0, 0, 0 },
  { "T[4,7,5]; T[7,1]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,7,5]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,1,5]", NULL, 0, 0, 0 },
  { "T[2,3,4,5]; T[1,3,1,5]", NULL, 0, 0, 0 }, { "T[0,7]; T[7]", NULL, 0, 0, 0 }, { "T[3,0]; T[3,0]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_sum_to = {
  .name = "sum_to", .label = "SumTo", .doc = "x summed over the axes along which like was broadcast",
  .version = 1, .traits = YK_PURE | YK_ZERO_ON_EMPTY,
  .in = in, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_sum_to_at(const char *where, yk_graph *g, yk_value x, yk_value like) {
  return yk__build(where, g, &yk__op_sum_to, NULL, 2, x, like);
}
