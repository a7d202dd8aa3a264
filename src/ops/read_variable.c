/*
 * read_variable.c - the value a variable has at this point of the step. A view of the storage: nothing is copied
 * unless someone overwrites the variable while the value is still needed.
 */
#include "common.h"

static yk_code grad(yk_grad *c) {
  c->din[0] = c->dout[0];
  return YK_OK;
}

static const yk_port in[] = { { "ref", YK_ANYTYPE, 0, 0 }, { 0 } };
static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_read_variable = {
  .name = "read_variable", .label = "Identity", .doc = "the value of a variable",
  .version = 1, .traits = YK_STATEFUL | YK_VIEW,
  .in = in, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = yk__ref_copy, .cases = cases,
};
