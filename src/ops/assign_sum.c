/*
 * assign_sum.c - an all-reduce into variables: each of a set of variables becomes the sum of as many values.
 *
 * The planner makes it out of one add_n and the assigns of its result to variables of several devices. Each value is then read once and
 * each variable written once, while a sum of its own would be written and read besides.
 */
#include "update.h"

static uint32_t set_of(const void *attrs) {
  const yk_assign_sum_attrs *a = attrs;
  return a && a->of > 0 ? (uint32_t)a->of : yk__update_n(attrs);
}

static yk_code infer(const yk_infer *c) {
  uint32_t n = yk__update_n(c->attrs), of = set_of(c->attrs);
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_desc merged;
  if (n % of != 0) return YK_FAIL(EINVAL, "%u variables are no sets of %u", n, of);
  for (uint32_t i = 0; i < n && i < c->nin; i++)
    if (yk__shape_merge(&c->in[i - i % of], &c->in[i], &merged) != YK_OK)
      return YK_FAIL(EINVAL, "variable %u is %s, but variable %u of its set is %s", i, yk__desc_text(&c->in[i], a, sizeof a), i - i % of,
                     yk__desc_text(&c->in[i - i % of], b, sizeof b));
  return yk__update_infer(c, 2, 0);
}

static yk_code ref(const yk_ref *c) {
  uint32_t n = yk__update_n(c->attrs), of = set_of(c->attrs);
  if (yk__update_off(c, 2 * n)) return YK_OK;
  for (uint32_t first = 0; first < n; first += of) {
    int64_t count = yk__desc_count(&c->din[first]);
    for (int64_t i = 0; i < count; i++) {
      double sum = c->in[n + first][i];
      for (uint32_t k = 1; k < of; k++) sum += c->in[n + first + k][i];
      for (uint32_t k = 0; k < of; k++) ((double *)(uintptr_t)c->in[first + k])[i] = sum;
    }
  }
  return YK_OK;
}

static const yk_attr attrs[] = { YK__COUNT(yk_assign_sum_attrs), YK__INT(yk_assign_sum_attrs, of, 0, 0, 16383), { 0 } };
static const yk_port in[] = { { "ref", YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_WRITE, 0 },
                              { "value", YK_FLOATS, YK_PORT_VARIADIC, 1 }, YK__UPDATE_END };
static const yk_assign_sum_attrs two = { .n = 2 }, sets = { .n = 4, .of = 2 };
static const yk_case cases[] = {
  { "T[]; T[]", NULL, 0, 0, 0 }, { "T[33]; T[33]; T[33]; T[33]", &two, 0, 0, 0 },
  { "T[4,7,5]; T[4,7,5]; T[4,7,5]; T[4,7,5]; bool[]", &two, 0, 0, 0 },
  { "T[7]; T[7]; T[3,2]; T[3,2]; T[7]; T[7]; T[3,2]; T[3,2]", &sets, 0, 0, 0 }, { "T[0,3]; T[0,3]; T[0,3]; T[0,3]", &two, 0, 0, 0 }, { 0 }
};

const yk_op yk__op_assign_sum = {
  .name = "assign_sum", .label = "AssignSum", .doc = "overwrite each of n variables with the sum of n values",
  .version = 1, .attr_bytes = sizeof(yk_assign_sum_attrs), .traits = YK_STATEFUL | YK_NO_GRAD | YK_MERGE | YK_FAR, .attrs = attrs, .in = in,
  .out = yk__out_op, .infer = infer, .ref = ref, .cases = cases,
};
