/*
 * check_numerics.c - the same value, or a failure if an element is NaN or infinite. Not a view: the check must run.
 * The gradient is checked too, under the same message.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code ref(const yk_ref *c) {
  yk_check_attrs a = YK__ATTRS(yk_check_attrs, c);
  int64_t n = yk__desc_count(&c->din[0]);
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(c->in[0][i]))
      return YK_FAIL(EINVAL, "check_numerics: element %lld is %s: %s", (long long)i,
                     isnan(c->in[0][i]) ? "NaN" : "infinite", a.message ? a.message : "no message given");
  return yk__ref_copy(c);
}

static yk_code grad(yk_grad *c) {
  c->din[0] = YK__OPA(c, check_numerics, c->attrs, 1, c->dout[0]);
  return YK_OK;
}

static const yk_attr attrs[] = { YK__STRING(yk_check_attrs, message), { 0 } };
static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_check_numerics = {
  .name = "check_numerics", .label = "CheckNumerics", .doc = "x, or a failure if it holds NaN or infinity",
  .version = 1, .attr_bytes = sizeof(yk_check_attrs), .traits = YK_PURE, .attrs = attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_check_numerics_at(const char *where, yk_graph *g, yk_value x, const char *message) {
  return yk__build(where, g, &yk__op_check_numerics, &(yk_check_attrs){ message }, 1, x);
}
