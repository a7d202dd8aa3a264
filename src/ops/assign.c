/*
 * assign.c - overwrite a variable, add to it, subtract from it. The result is the variable after the change, as a view
 * of its storage. No gradient flows: what was assigned is read again through the variable.
 */
#include "common.h"

static yk_code infer(const yk_infer *c) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_desc out;
  if (yk__shape_merge(&c->in[0], &c->in[1], &out) != YK_OK)
    return YK_FAIL(EINVAL, "the value is %s, but the variable is %s", yk__desc_text(&c->in[1], a, sizeof a),
                   yk__desc_text(&c->in[0], b, sizeof b));
  if (c->nin > 2) YK_TRY(yk__want_scalar(c, "guard", 2));
  c->out[0] = yk__as(&c->in[0], c->in[0].dtype);
  return YK_OK;
}

/* variable = keep * variable + times * value */
static yk_code store(const yk_ref *c, double keep, double times) {
  double *variable = (double *)(uintptr_t)c->in[0];
  int64_t n = yk__desc_count(&c->din[0]);
  bool off = c->nin > 2 && c->in[2] && c->in[2][0] == 0;
  for (int64_t i = 0; i < n; i++) {
    if (!off) variable[i] = (keep != 0 ? variable[i] : 0) + times * c->in[1][i];
    if (c->out[0]) c->out[0][i] = variable[i];
  }
  return YK_OK;
}

static yk_code ref_set(const yk_ref *c) { return store(c, 0, 1); }
static yk_code ref_add(const yk_ref *c) { return store(c, 1, 1); }
static yk_code ref_sub(const yk_ref *c) { return store(c, 1, -1); }

static const yk_port in_any[] = { { "ref", YK_ANYTYPE, YK_PORT_WRITE, 0 }, { "value", YK_ANYTYPE, 0, 1 }, YK__GUARD_PORT, { 0 } };
static const yk_port in_arith[] = { { "ref", YK__ARITH, YK_PORT_WRITE, 0 }, { "value", YK__ARITH, 0, 1 }, YK__GUARD_PORT, { 0 } };
static const yk_case cases[] = { YK__CASES_SAME_2(NULL, -2, 2), { "T[33]; T[33]; bool[]", NULL, -2, 2, 0 }, { 0 } };

/* Not YK_VIEW, although the result shows the variable: a view would not run. */
enum { TRAITS = YK_STATEFUL | YK_NO_GRAD };

const yk_op yk__op_assign = {
  .name = "assign", .label = "Assign", .doc = "overwrite a variable",
  .version = 1, .traits = TRAITS, .in = in_any, .out = yk__out1, .infer = infer, .ref = ref_set, .cases = cases,
};

const yk_op yk__op_assign_add = {
  .name = "assign_add", .label = "AssignAdd", .doc = "add to a variable",
  .version = 1, .traits = TRAITS, .in = in_arith, .out = yk__out1, .infer = infer, .ref = ref_add, .cases = cases,
};

const yk_op yk__op_assign_sub = {
  .name = "assign_sub", .label = "AssignSub", .doc = "subtract from a variable",
  .version = 1, .traits = TRAITS, .in = in_arith, .out = yk__out1, .infer = infer, .ref = ref_sub, .cases = cases,
};
