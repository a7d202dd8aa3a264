/*
 * no_op.c - nothing, after its control inputs: how several ops become one thing to run. Not pure, since two of them
 * with different control inputs must not become one.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) {
  (void)c;
  return YK_OK;
}

static const yk_port none[] = { { 0 } };
static const yk_case cases[] = { { "", NULL, 0, 0, 0 }, { 0 } };

const yk_op yk__op_no_op = {
  .name = "no_op", .label = "NoOp", .doc = "nothing, after its control inputs",
  .version = 1, .traits = YK_NO_GRAD,
  .in = none, .out = yk__out_op, .infer = yk__infer_op, .ref = ref, .cases = cases,
};

yk_value yk_no_op_at(const char *where, yk_graph *g) { return yk__build(where, g, &yk__op_no_op, NULL, 0); }
