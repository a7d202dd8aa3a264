/*
 * where.c - a where the condition holds, else b, all three broadcasting together. The branch not taken gets a
 * gradient of exactly 0.
 */
#include <yoke/math.h>
#include "common.h"

static const yk_port in[] = {
  { "cond", YK_T(YK_BOOL), YK_PORT_NODIFF, 0 }, { "a", YK_ANYTYPE, 0, 0 }, { "b", YK_ANYTYPE, 0, 2 }, { 0 }
};

static double eval(const double *v, const void *attrs) {
  (void)attrs;
  return v[0] != 0 ? v[1] : v[2];
}

static yk_code ref(const yk_ref *c) { return yk__ref_map(c, eval); }

static yk_code grad(yk_grad *c) {
  yk_value zero = YK__NUM(c, c->dout[0], 0);
  c->din[1] = YK__OP3(c, where, c->in[0], c->dout[0], zero);
  c->din[2] = YK__OP3(c, where, c->in[0], zero, c->dout[0]);
  return YK_OK;
}

static const yk_case cases[] = {
  { "bool[]; T[]; T[]", NULL, 0, 2, 0 }, { "bool[33]; T[33]; T[33]", NULL, 0, 2, 0 },
  { "bool[4,7,5]; T[4,7,5]; T[4,7,5]", NULL, 0, 2, 0 }, { "bool[7]; T[4,7]; T[]", NULL, 0, 2, 0 },
  { "bool[4,1]; T[7]; T[4,7]", NULL, 0, 2, 0 }, { "bool[]; T[7,1]; T[1,5]", NULL, 0, 2, 0 },
  { "bool[0,3]; T[3]; T[]", NULL, 0, 2, 0 }, { 0 }
};

const yk_op yk__op_where = {
  .name = "where", .label = "Select", .doc = "a where cond holds, else b",
  .version = 1, .traits = YK_PURE | YK_ELEMENTWISE,
  .in = in, .out = yk__out1, .infer = yk__infer_broadcast, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_where_at(const char *where, yk_graph *g, yk_value cond, yk_value a, yk_value b) {
  return yk__build(where, g, &yk__op_where, NULL, 3, cond, a, b);
}
