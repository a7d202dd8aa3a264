/*
 * random_normal.c - normally distributed numbers with mean a and deviation b. Two elements share one block of random
 * words, but each is a pair of its own in the Box-Muller formula. With an input `like`, that one's shape and dtype are the result's.
 */
#include <yoke/math.h>
#include "random.h"

static yk_code infer(const yk_infer *c) {
  if (c->nin < 2) return yk__random_infer(c);
  YK_TRY(yk__want_scalar(c, "step", 0));
  c->out[0] = yk__as(&c->in[1], c->in[1].dtype);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  yk_random_attrs a = YK__ATTRS(yk_random_attrs, c);
  int64_t n = yk__desc_count(&c->dout[0]);
  double deviation = a.b == 0 ? 1 : a.b;
  for (int64_t i = 0; i < n; i++)
    c->out[0][i] = a.a + deviation * yk__random_z(c, a.seed, YK__STREAM_NORMAL, (uint64_t)i, 0);
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
  { "i64[]", &one, 0, 9, 0 }, { "i64[]", &empty, 0, 9, 0 }, { "i64[]; T[7,5]", &one, 0, 9, 0 }, { 0 }
};

static const yk_port in[] = {
  { "step", YK_T(YK_I64), YK_PORT_NODIFF, 0 }, { "like", YK_FLOATS, YK_PORT_NODIFF | YK_PORT_OPTIONAL, 0 }, { 0 } };
static const yk_port out[] = { { "y", YK_FLOATS, 0, 0 }, { 0 } };

const yk_op yk__op_random_normal = {
  .name = "random_normal", .label = "RandomStandardNormal", .doc = "normally distributed numbers",
  .version = 1, .attr_bytes = sizeof(yk_random_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = yk__random_attrs,
  .in = in, .out = out, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_random_normal_at(const char *where, yk_graph *g, const yk_random_attrs *attrs) {
  return yk__random_build(where, g, &yk__op_random_normal, attrs);
}

yk_value yk_random_normal_like_at(const char *where, yk_graph *g, yk_value like, double mean, double deviation, uint64_t seed) {
  yk_random_attrs a = { .a = mean, .b = deviation };
  yk_value step = yk__run_counter(g);
  a.seed = yk__seed(g, seed);
  return yk__build(where, g, &yk__op_random_normal, &a, 2, step, like);
}
