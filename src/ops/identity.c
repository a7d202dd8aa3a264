/*
 * identity.c - the same value again. A view: it gives a value a name or a device, and costs nothing where both agree.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code grad(yk_grad *c) {
  c->din[0] = c->dout[0];
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_identity = {
  .name = "identity", .label = "Identity", .doc = "x itself",
  .version = 1, .traits = YK_PURE | YK_VIEW,
  .in = yk__any1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = yk__ref_copy, .cases = cases,
};

yk_value yk_identity_at(const char *where, yk_graph *g, yk_value x) { return yk__build(where, g, &yk__op_identity, NULL, 1, x); }
