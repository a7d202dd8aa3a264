/*
 * run_counter.c - the number of the session's run, as an i64 scalar. The executor writes it before a run starts;
 * random ops take it as their step, so each run draws other numbers and the same run draws the same ones.
 */
#include "common.h"

static yk_code infer(const yk_infer *c) {
  c->out[0] = yk__desc(YK_I64, YK_SCALAR);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  c->out[0][0] = 0;             /* a single evaluation is run number 0 */
  return YK_OK;
}

static const yk_port none[] = { { 0 } };
static const yk_case cases[] = { { "", NULL, 0, 0, 0 }, { 0 } };

const yk_op yk__op_run_counter = {
  .name = "run_counter", .label = "RunCounter", .doc = "the number of the session's run",
  .version = 1, .traits = YK_SOURCE | YK_NO_GRAD,
  .in = none, .out = yk__out1, .infer = infer, .ref = ref, .cases = cases,
};
