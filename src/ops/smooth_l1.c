/*
 * smooth_l1.c - a loss for numbers of which some are far off: quadratic near zero, then straight.
 *
 * With m = min(d, beta) both branches are m*(d - m/2)/beta, so nothing has to be chosen and the gradient is that of the formula.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include "ops/common.h"

yk_value yk_smooth_l1_at(const char *where, yk_graph *g, yk_value x, yk_value y, double beta) {
  const yk_desc *d = yk_value_desc(g, x);
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  if (d == NULL || !(beta > 0) || !isfinite(beta))
    return yk_graph_fail_at(where, g, YK_EINVAL, "smooth_l1: needs two values and a beta above 0, not %g", beta);
  yk_dtype t = (yk_dtype)d->dtype;
  yk_value far = yk_abs_at(where, g, yk_sub_at(where, g, x, y));
  yk_value near = yk_minimum_at(where, g, far, yk_scalar_at(where, g, t, beta));
  yk_value rest = yk_sub_at(where, g, far, yk_mul_at(where, g, near, yk_scalar_at(where, g, t, 0.5)));
  return yk_mul_at(where, g, yk_mul_at(where, g, near, rest), yk_scalar_at(where, g, t, 1 / beta));
}
