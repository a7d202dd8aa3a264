/*
 * reorder.c - the same value in another layout. Made by the planner only, where a kernel wants a layout that its input
 * does not have; both layouts stand in the kernel spec. In a graph everything is plain, so it is a copy there.
 */
#include "common.h"

static const yk_case cases[] = { { "T[2,3,4,5]", NULL, 0, 0, 0 }, { 0 } };

const yk_op yk__op_reorder = {
  .name = "reorder", .label = "Reorder", .doc = "x in another layout",
  .version = 1, .traits = YK_PURE | YK_NO_GRAD,
  .in = yk__any1, .out = yk__out1, .infer = yk__infer_same, .ref = yk__ref_copy, .cases = cases,
};
