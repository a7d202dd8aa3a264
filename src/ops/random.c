/*
 * random.c - attributes, shape rule and the normal draw of the random ops. See random.h, and op_attrs.h for the formulae.
 */
#include <string.h>
#include "random.h"

const yk_attr yk__random_attrs[] = {
  YK__DTYPE(yk_random_attrs, dtype), YK__INT(yk_random_attrs, rank, 0, 0, YK_MAX_RANK),
  YK__DIMS(yk_random_attrs, dim, YK_MAX_RANK, 0), YK__REAL(yk_random_attrs, a, 0, -YK__HUGE, YK__HUGE),
  YK__REAL(yk_random_attrs, b, 0, -YK__HUGE, YK__HUGE), YK__SEED(yk_random_attrs, seed), { 0 }
};

const yk_port yk__random_in[] = { { "step", YK_T(YK_I64), YK_PORT_NODIFF, 0 }, { 0 } };

yk_code yk__random_infer(const yk_infer *c) {
  yk_random_attrs a = YK__ATTRS(yk_random_attrs, c);
  yk_shape shape = { a.rank, { 0 } };
  yk_dtype dtype = a.dtype ? (yk_dtype)a.dtype : YK_F32;
  if (a.rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "rank %u, at most %d is possible", a.rank, YK_MAX_RANK);
  memcpy(shape.dim, a.dim, sizeof shape.dim);
  YK_TRY(yk__want_scalar(c, "step", 0));
  YK_TRY(yk__shape_check(dtype, &shape, 0));
  c->out[0] = yk__desc(dtype, shape);
  return YK_OK;
}

double yk__random_z(const yk_ref *c, uint64_t seed, uint64_t stream, uint64_t i, uint32_t round) {
  uint32_t w[4], p = 2 * (uint32_t)(i % 2);
  c->host->random_block(seed, stream, (uint64_t)(int64_t)c->in[0][0], i / 2, round, w);
  double u1 = ((double)(w[p] >> 8) + 1) * 0x1p-24, u2 = (double)(w[p + 1] >> 8) * 0x1p-24;
  return sqrt(-2 * log(u1)) * cos(6.283185307179586476925 * u2);
}

yk_value yk__random_build(const char *where, yk_graph *g, const yk_op *op, const yk_random_attrs *attrs) {
  yk_random_attrs a = attrs ? *attrs : (yk_random_attrs){ 0 };
  yk_value step = yk__run_counter(g);
  a.seed = yk__seed(g, a.seed);
  return yk__build(where, g, op, &a, 1, step);
}
