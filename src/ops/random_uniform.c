/*
 * random_uniform.c - numbers spread evenly over [a, b). Floats have 24 random bits, f64 has 53; integers are the floor
 * of the same numbers.
 */
#include <yoke/math.h>
#include "random.h"

/* Element i in [0, 1). */
static double unit(const yk_ref *c, uint64_t seed, uint64_t step, uint64_t i) {
  uint32_t w[4];
  if (c->dout[0].dtype != YK_F64) {
    c->host->random_block(seed, YK__STREAM_UNIFORM, step, i / 4, 0, w);
    return (double)(w[i % 4] >> 8) * 0x1p-24;
  }
  c->host->random_block(seed, YK__STREAM_UNIFORM, step, i / 2, 0, w);
  return ((double)(w[2 * (i % 2)] >> 5) * 0x1p26 + (double)(w[2 * (i % 2) + 1] >> 6)) * 0x1p-53;
}

static yk_code ref(const yk_ref *c) {
  yk_random_attrs a = YK__ATTRS(yk_random_attrs, c);
  int64_t n = yk__desc_count(&c->dout[0]);
  int whole = (YK_T(c->dout[0].dtype) & YK_FLOATS) == 0;
  double hi = a.a == 0 && a.b == 0 ? 1 : a.b;
  for (int64_t i = 0; i < n; i++) {
    double x = a.a + (hi - a.a) * unit(c, a.seed, (uint64_t)(int64_t)c->in[0][0], (uint64_t)i);
    c->out[0][i] = whole ? floor(x) : x;
  }
  return YK_OK;
}

static const yk_random_attrs plain = { .dtype = YK_F32, .rank = 1, .dim = { 33 }, .seed = 1 },
                             wide = { .dtype = YK_F64, .rank = 2, .dim = { 7, 5 }, .a = -3, .b = 5, .seed = 2 },
                             half = { .dtype = YK_F16, .rank = 2, .dim = { 4, 7 }, .a = 1, .b = 2, .seed = 3 },
                             brain = { .dtype = YK_BF16, .rank = 1, .dim = { 33 }, .seed = 4 },
                             dice = { .dtype = YK_I32, .rank = 1, .dim = { 33 }, .a = 1, .b = 7, .seed = 5 },
                             longs = { .dtype = YK_I64, .rank = 1, .dim = { 7 }, .a = -100, .b = 100, .seed = 6 },
                             bytes = { .dtype = YK_U8, .rank = 1, .dim = { 33 }, .b = 256, .seed = 7 },
                             one = { .dtype = YK_F32, .seed = 8 },
                             empty = { .dtype = YK_F32, .rank = 2, .dim = { 3, 0 }, .seed = 9 };
static const yk_case cases[] = {
  { "i64[]", &plain, 0, 9, 0 }, { "i64[]", &wide, 0, 9, 0 }, { "i64[]", &half, 0, 9, 0 }, { "i64[]", &brain, 0, 9, 0 },
  { "i64[]", &dice, 0, 9, 0 }, { "i64[]", &longs, 0, 9, 0 }, { "i64[]", &bytes, 0, 9, 0 }, { "i64[]", &one, 0, 9, 0 },
  { "i64[]", &empty, 0, 9, 0 }, { 0 }
};

static const yk_port out[] = { { "y", YK_NUMBERS, 0, 0 }, { 0 } };

const yk_op yk__op_random_uniform = {
  .name = "random_uniform", .label = "RandomUniform", .doc = "numbers spread evenly over [a, b)",
  .version = 1, .attr_bytes = sizeof(yk_random_attrs), .traits = YK_PURE | YK_NO_GRAD, .attrs = yk__random_attrs,
  .in = yk__random_in, .out = out, .infer = yk__random_infer, .ref = ref, .cases = cases,
};

yk_value yk_random_uniform_at(const char *where, yk_graph *g, const yk_random_attrs *attrs) {
  return yk__random_build(where, g, &yk__op_random_uniform, attrs);
}
