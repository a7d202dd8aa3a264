/*
 * truncated_normal.c - normal numbers, drawn again while they are two deviations or more from the mean. Each element
 * counts its own rounds, so how often one is drawn again changes nothing for the others.
 */
#include <yoke/math.h>
#include "random.h"

static double draw(const yk_ref *c, uint64_t seed, uint64_t i) {
  double z = 2;
  for (uint32_t round = 0; fabs(z) >= 2; round++) z = yk__random_z(c, seed, YK__STREAM_TRUNCATED, i, round);
  return z;
}

static yk_code ref(const yk_ref *c) {
  yk_random_attrs a = YK__ATTRS(yk_random_attrs, c);
  int64_t n = yk__desc_count(&c->dout[0]);
  double deviation = a.b == 0 ? 1 : a.b;
  for (int64_t i = 0; i < n; i++) c->out[0][i] = a.a + deviation * draw(c, a.seed, (uint64_t)i);
  return YK_OK;
}

static const yk_random_attrs plain = { .dtype = YK_F32, .rank = 1, .dim = { 33 }, .seed = 1 },
                             wide = { .dtype = YK_F64, .rank = 2, .dim = { 7, 5 }, .a = -3, .b = 5, .seed = 2 },
                             half = { .dtype = YK_F16, .rank = 2, .dim = { 4, 7 }, .a = 1, .b = 2, .seed = 3 },
                             brain = { .dtype = YK_BF16, .rank = 1, .dim = { 33 }, .seed = 4 },
                             one = { .dtype = YK_F32, .seed = 8 },
                             empty = { .dtype = YK_F32, .rank = 2, .dim = { 3, 0 }, .seed = 9 };
static const yk_case cases[] = {
  { "i64[]", &plain, 0, 9, 0 }, { "i64[]", &wide, 0, 9, 0 }, { "i64[]", &half, 0, 9, 0 }, { "i64[]", &brain, 0, 9, 0 },
  { "i64[]", &one, 0, 9, 0 }, { "i64[]", &empty, 0, 9, 0 }, { 0 }
};

static const yk_port out[] = { { "y", YK_FLOATS, 0, 0 }, { 0 } };

const yk_op yk__op_truncated_normal = {
  .name = "truncated_normal", .label = "TruncatedNormal", .doc = "normal numbers within two deviations of the mean",
  .version = 1, .attr_bytes = sizeof(yk_random_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = yk__random_attrs,
  .in = yk__random_in, .out = out, .infer = yk__random_infer, .ref = ref, .cases = cases,
};

yk_value yk_truncated_normal_at(const char *where, yk_graph *g, const yk_random_attrs *attrs) {
  return yk__random_build(where, g, &yk__op_truncated_normal, attrs);
}
