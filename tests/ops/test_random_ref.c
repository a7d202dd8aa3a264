/*
 * test_random_ref.c - random draws: the formulae word by word, and that the numbers look as they should.
 *
 * Every device must draw the same numbers, so the contract is bits, not distributions: elements are worked out here
 * once more from the block generator alone. The moments guard against a formula that is wrong in both places.
 */
#include <yoke/math.h>
#include "support/check.h"
#include "support/ref_eval.h"
#include "base/rng.h"
#include "device/device.h"
#include "op/registry.h"
#include "tensor/desc.h"

enum { MANY = 20000 };
static double drawn[MANY], other[MANY];

static void draw(const yk_op *op, yk_random_attrs a, double step, int64_t n, double *out) {
  yk_desc in = { .dtype = YK_I64 }, dout;
  a.rank = 1;
  a.dim[0] = n;
  CHECK_OK(yk__op_infer(op, &a, &in, 1, &dout, 1));
  yk_ref r = { .in = (const double *const[]){ &step }, .out = (double *const[]){ out }, .din = &in, .dout = &dout, .nin = 1,
               .nout = 1, .attrs = &a, .host = &yk__host };
  CHECK_OK(op->ref(&r));
}

static void uniform_by_the_word(void **state) {
  (void)state;
  uint32_t w[4];
  draw(&yk__op_random_uniform, (yk_random_attrs){ .seed = 42 }, 7, 100, drawn);
  for (uint64_t i = 0; i < 100; i++) {
    yk__rng_block(42, 1, 7, i / 4, 0, w);
    CHECK_NEAR(drawn[i], (double)(w[i % 4] >> 8) / 16777216.0, 0);
  }
  draw(&yk__op_random_uniform, (yk_random_attrs){ .dtype = YK_F64, .a = -2, .b = 6, .seed = 42 }, 7, 100, drawn);
  for (uint64_t i = 0; i < 100; i++) {
    yk__rng_block(42, 1, 7, i / 2, 0, w);
    uint32_t hi = w[i % 2 ? 2 : 0] >> 5, lo = w[i % 2 ? 3 : 1] >> 6;
    CHECK_NEAR(drawn[i], -2 + 8 * (((double)hi * 67108864.0 + lo) / 9007199254740992.0), 1e-15);
  }
  draw(&yk__op_random_uniform, (yk_random_attrs){ .dtype = YK_I32, .a = 1, .b = 7, .seed = 42 }, 7, 100, drawn);
  for (uint64_t i = 0; i < 100; i++) {
    yk__rng_block(42, 1, 7, i / 4, 0, w);
    CHECK_NEAR(drawn[i], floor(1 + 6 * ((double)(w[i % 4] >> 8) / 16777216.0)), 0);
  }
}

static double normal_by_hand(uint64_t seed, uint64_t stream, uint64_t step, uint64_t i, uint32_t round) {
  const double pi = 3.14159265358979323846;
  uint32_t w[4];
  yk__rng_block(seed, stream, step, i / 2, round, w);
  double u1 = ((w[i % 2 ? 2 : 0] >> 8) + 1.0) / 16777216.0, u2 = (w[i % 2 ? 3 : 1] >> 8) / 16777216.0;
  return sqrt(-2 * log(u1)) * cos(2 * pi * u2);
}

static void normal_by_the_word(void **state) {
  (void)state;
  int redrawn = 0;
  draw(&yk__op_random_normal, (yk_random_attrs){ .a = 3, .b = 0.5, .seed = 9 }, 2, 500, drawn);
  for (uint64_t i = 0; i < 500; i++) CHECK_NEAR(drawn[i], 3 + 0.5 * normal_by_hand(9, 2, 2, i, 0), 1e-14);
  draw(&yk__op_truncated_normal, (yk_random_attrs){ .seed = 9 }, 2, 500, drawn);
  for (uint64_t i = 0; i < 500; i++) {
    uint32_t round = 0;
    while (fabs(normal_by_hand(9, 3, 2, i, round)) >= 2) round++;
    redrawn += round > 0;
    CHECK_NEAR(drawn[i], normal_by_hand(9, 3, 2, i, round), 1e-14);
  }
  assert_in_range(redrawn, 5, 60);                 /* 4.6 % of 500 */
}

static void moments(const double *x, double *mean, double *variance, double *least, double *most) {
  *mean = *variance = 0;
  *least = *most = x[0];
  for (int i = 0; i < MANY; i++) {
    *mean += x[i] / MANY;
    *least = fmin(*least, x[i]);
    *most = fmax(*most, x[i]);
  }
  for (int i = 0; i < MANY; i++) *variance += (x[i] - *mean) * (x[i] - *mean) / MANY;
}

static void distributions(void **state) {
  (void)state;
  double mean, variance, least, most;
  draw(&yk__op_random_uniform, (yk_random_attrs){ .seed = 5 }, 0, MANY, drawn);
  moments(drawn, &mean, &variance, &least, &most);
  CHECK_NEAR(mean, 0.5, 0.01);
  CHECK_NEAR(variance, 1.0 / 12, 0.003);
  assert_true(least >= 0 && most < 1);
  draw(&yk__op_random_normal, (yk_random_attrs){ .seed = 5 }, 0, MANY, drawn);
  moments(drawn, &mean, &variance, &least, &most);
  CHECK_NEAR(mean, 0, 0.03);
  CHECK_NEAR(variance, 1, 0.04);
  assert_true(least < -3 && most > 3);
  draw(&yk__op_truncated_normal, (yk_random_attrs){ .seed = 5 }, 0, MANY, drawn);
  moments(drawn, &mean, &variance, &least, &most);
  CHECK_NEAR(mean, 0, 0.03);
  CHECK_NEAR(sqrt(variance), 0.87962566103423978, 0.015);
  assert_true(least > -2 && most < 2);
  draw(&yk__op_random_uniform, (yk_random_attrs){ .dtype = YK_I64, .a = 1, .b = 7, .seed = 5 }, 0, MANY, drawn);
  moments(drawn, &mean, &variance, &least, &most);
  CHECK_NEAR(mean, 3.5, 0.05);
  CHECK_NEAR(least, 1, 0);
  CHECK_NEAR(most, 6, 0);
}

static int equal_draws(int n) {
  int equal = 0;
  for (int i = 0; i < n; i++) equal += drawn[i] == other[i];
  return equal;
}

static void coordinates_matter(void **state) {
  (void)state;
  const yk_op *const ops[] = { &yk__op_random_uniform, &yk__op_random_normal, &yk__op_truncated_normal };
  for (int k = 0; k < 3; k++) {
    draw(ops[k], (yk_random_attrs){ .seed = 1 }, 0, 1000, drawn);
    draw(ops[k], (yk_random_attrs){ .seed = 1 }, 0, 700, other);
    CHECK_INT(equal_draws(700), 700);               /* a longer tensor starts with the same numbers */
    draw(ops[k], (yk_random_attrs){ .seed = 2 }, 0, 1000, other);
    assert_true(equal_draws(1000) < 5);
    draw(ops[k], (yk_random_attrs){ .seed = 1 }, 1, 1000, other);
    assert_true(equal_draws(1000) < 5);
  }
}

/* Through the builders: seeds of their own, other numbers each run, the same ones in the same run. */
static void seeds_in_a_graph(void **state) {
  (void)state;
  yk_graph *g;
  CHECK_OK(yk_graph_new(&g));
  yk_random_attrs a = { .rank = 1, .dim = { 50 } };
  yk_value v[] = { yk_random_uniform(g, &a), yk_random_uniform(g, &a) };
  a.seed = 12;
  yk_value same[] = { yk_random_normal(g, &a), yk_random_normal(g, &a) };
  CHECK_OK(yk_graph_status(g));
  ref_eval *e = ref_eval_new(g);
  CHECK_OK(ref_eval_run(e, 2, v));
  memcpy(drawn, ref_eval_data(e, v[0]), 50 * sizeof *drawn);
  memcpy(other, ref_eval_data(e, v[1]), 50 * sizeof *other);
  assert_true(equal_draws(50) < 3);
  CHECK_OK(ref_eval_run(e, 2, v));
  memcpy(other, ref_eval_data(e, v[0]), 50 * sizeof *other);
  assert_true(equal_draws(50) < 3);
  ref_eval_counter(e, 0);
  CHECK_OK(ref_eval_run(e, 2, v));
  memcpy(other, ref_eval_data(e, v[0]), 50 * sizeof *other);
  CHECK_INT(equal_draws(50), 50);
  CHECK_OK(ref_eval_run(e, 2, same));
  memcpy(drawn, ref_eval_data(e, same[0]), 50 * sizeof *drawn);
  memcpy(other, ref_eval_data(e, same[1]), 50 * sizeof *other);
  CHECK_INT(equal_draws(50), 50);
  ref_eval_free(e);
  yk_graph_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(uniform_by_the_word), cmocka_unit_test(normal_by_the_word), cmocka_unit_test(distributions),
    cmocka_unit_test(coordinates_matter),  cmocka_unit_test(seeds_in_a_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
