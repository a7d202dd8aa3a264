/*
 * broadcast_to.c - spread a value to the shape of another one by the rules of broadcasting. Its gradient sums the
 * spread copies up again.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  int skip = c->in[1].rank - c->in[0].rank;
  for (int k = 0; k < c->in[0].rank; k++) {
    int64_t from = c->in[0].dim[k];
    if (skip < 0 || (from != 1 && yk__dims_clash(from, c->in[1].dim[k + skip])))
      return YK_FAIL(EINVAL, "%s does not broadcast to %s", yk__desc_text(&c->in[0], a, sizeof a),
                     yk__desc_text(&c->in[1], b, sizeof b));
  }
  return yk__infer_like(c);
}

static double eval(const double *v, const void *attrs) {
  (void)attrs;
  return v[0];
}

static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OP2(c, sum_to, c->dout[0], c->in[0]);
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[]; T[33]", NULL, 0, 0, 0 }, { "T[5]; T[4,7,5]", NULL, 0, 0, 0 },
  { "T[7,1]; T[4,7,5]", NULL, 0, 0, 0 }, { "T[4,7,5]; T[4,7,5]", NULL, 0, 0, 0 }, { "T[4,1,5]; T[4,7,5]", NULL, 0, 0, 0 },
  { "T[1,3,1,5]; T[2,3,4,5]", NULL, 0, 0, 0 }, { "T[7]; T[0,7]", NULL, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_broadcast_to = {
  .name = "broadcast_to", .label = "BroadcastTo", .doc = "x spread to the shape of like",
  .version = 1, .traits = YK_PURE,
  .in = yk__any_like, .out = yk__out1, .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_broadcast_to_at(const char *where, yk_graph *g, yk_value x, yk_value like) {
  return yk__build(where, g, &yk__op_broadcast_to, NULL, 2, x, like);
}
