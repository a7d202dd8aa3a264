/*
 * test_gradcheck.c - does the gradient checker catch wrong gradients? Ops that are wrong on purpose must fail.
 *
 * A checker that passes everything looks just like one that works. Each op here computes x^3 or a sum and has one
 * mistake in its gradient; the right one must pass, each wrong one must not, and for the stated reason.
 */
#include "support/check.h"
#include "support/gradcheck.h"
#include <yoke/math.h>
#include "ops/common.h"

static double cube(double x) { return x * x * x; }
static yk_code cube_ref(const yk_ref *c) { return yk__ref_unary(c, cube); }

/* dy * 3 x^2, times `factor`, plus `extra`. */
static void cube_grad(yk_grad *c, double factor, double extra) {
  yk_value slope = YK__OP2(c, mul, YK__OP1(c, square, c->in[0]), YK__NUM(c, c->in[0], 3 * factor));
  c->din[0] = YK__OP2(c, add, YK__OP2(c, mul, c->dout[0], slope), YK__NUM(c, c->in[0], extra));
}

static yk_code right(yk_grad *c) { cube_grad(c, 1, 0); return YK_OK; }
static yk_code scaled(yk_grad *c) { cube_grad(c, 3, 0); return YK_OK; }
static yk_code slightly_scaled(yk_grad *c) { cube_grad(c, 1.0002, 0); return YK_OK; }
static yk_code flipped(yk_grad *c) { cube_grad(c, -1, 0); return YK_OK; }
static yk_code shifted(yk_grad *c) { cube_grad(c, 1, 1e-4); return YK_OK; }
static yk_code zero(yk_grad *c) { cube_grad(c, 0, 0); return YK_OK; }
static yk_code missing(yk_grad *c) { (void)c; return YK_OK; }
static yk_code not_a_number(yk_grad *c) { cube_grad(c, NAN, 0); return YK_OK; }
static yk_code infinite(yk_grad *c) { cube_grad(c, INFINITY, 0); return YK_OK; }
static yk_code refused(yk_grad *c) { (void)c; return YK_FAIL(EUNSUPPORTED, "not today"); }

/* Forgets dy. */
static yk_code deaf(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, YK__OP1(c, square, c->in[0]), YK__NUM(c, c->in[0], 3));
  return YK_OK;
}

/* Right in value, but each element gets its neighbour's: off by one. */
static yk_code neighbours(yk_grad *c) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  int64_t n = d->dim[0], one = 1, rest = n - 1, none = 0;
  cube_grad(c, 1, 0);
  yk_value head = yk_slice_at(c->where, c->g, c->din[0], &none, &one), tail = yk_slice_at(c->where, c->g, c->din[0], &one, &rest);
  c->din[0] = yk_concat_at(c->where, c->g, 2, (yk_value[]){ tail, head }, 0);
  return YK_OK;
}

/* Wrong in the last element only. */
static yk_code last_lost(yk_grad *c) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  int64_t n = d->dim[0] - 1, none = 0, one = 1;
  cube_grad(c, 1, 0);
  c->din[0] = yk_pad_at(c->where, c->g, yk_slice_at(c->where, c->g, c->din[0], &none, &n), &none, &one, 0);
  return YK_OK;
}

/* A scalar where a vector belongs: autodiff must refuse or the checker must. */
static yk_code wrong_shape(yk_grad *c) {
  c->din[0] = yk_reduce_sum_at(c->where, c->g, c->dout[0], NULL);
  return YK_OK;
}

static const yk_case cases[] = { { "T[9]", NULL, 0.5, 2, 0 }, { 0 } };
static const yk_case no_elements[] = { { "T[0]", NULL, 0.5, 2, 0 }, { 0 } };

static gradcheck check(yk_code (*grad)(yk_grad *c), yk_code (*ref)(const yk_ref *c), int order, const yk_case *one) {
  yk_op op = { .name = "fake", .label = "Fake", .doc = "made for this test", .version = 1, .traits = YK_PURE, .in = yk__float1,
               .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = ref, .cases = one };
  gradcheck g;
  gradcheck_case(&op, one, order, &g);
  return g;
}

static void expect(const char *what, gradcheck g, gradcheck_verdict want) {
  if (g.verdict != want)
    fail_msg("%s: verdict %s, expected %s (%s)", what, gradcheck_name(g.verdict), gradcheck_name(want), g.text);
}

static void passes_what_is_right(void **state) {
  (void)state;
  gradcheck g = check(right, cube_ref, 1, cases);
  expect("right", g, GRADCHECK_PASS);
  CHECK_INT(g.compared, 9);
  CHECK_INT(g.built[0], 1);
  CHECK_INT(g.nonzero[0], 1);
  expect("right, second order", check(right, cube_ref, 2, cases), GRADCHECK_PASS);
}

static void catches_what_is_wrong(void **state) {
  (void)state;
  expect("scaled", check(scaled, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("scaled a little", check(slightly_scaled, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("sign flipped", check(flipped, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("shifted", check(shifted, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("zero", check(zero, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("missing", check(missing, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("NaN", check(not_a_number, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("infinite", check(infinite, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("deaf to dy", check(deaf, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("off by one", check(neighbours, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("last element lost", check(last_lost, cube_ref, 1, cases), GRADCHECK_FAIL);
  expect("wrong shape", check(wrong_shape, cube_ref, 1, cases), GRADCHECK_FAIL);
}

/* The message names the op, the element and both numbers. */
static void tells_what_is_wrong(void **state) {
  (void)state;
  gradcheck g = check(flipped, cube_ref, 1, cases);
  const char *const parts[] = { "fake(T[9])", "input 0[0]", "gradient -", "difference quotient", "ratio -1" };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(g.text, parts[i])) fail_msg("\"%s\" lacks \"%s\"", g.text, parts[i]);
}

/* A first derivative that is right with a second one that is not. */
static yk_code square_right(yk_grad *c) {
  c->din[0] = YK__OP2(c, mul, c->dout[0], YK__OP2(c, mul, c->in[0], YK__NUM(c, c->in[0], 2)));
  return YK_OK;
}

static yk_code through_a_wall(yk_grad *c) {
  cube_grad(c, 1, 0);
  c->din[0] = YK__OP1(c, stop_gradient, c->din[0]);
  return YK_OK;
}
static double sq(double x) { return x * x; }
static yk_code square_ref(const yk_ref *c) { return yk__ref_unary(c, sq); }

static void looks_at_the_second_order(void **state) {
  (void)state;
  expect("square", check(square_right, square_ref, 2, cases), GRADCHECK_PASS);
  expect("first order of a wall", check(through_a_wall, cube_ref, 1, cases), GRADCHECK_PASS);
  expect("second order of a wall", check(through_a_wall, cube_ref, 2, cases), GRADCHECK_FAIL);
}

/* Agreement in nothing is no agreement. */
static double flat(double x) { return x > 1e9 ? x : 1; }
static yk_code flat_ref(const yk_ref *c) { return yk__ref_unary(c, flat); }
static yk_code nan_ref(const yk_ref *c) { c->out[0][0] = NAN; return YK_OK; }
static yk_code unwritten_ref(const yk_ref *c) { (void)c; return YK_OK; }

static void mistrusts_zeros(void **state) {
  (void)state;
  expect("flat with a zero gradient", check(zero, flat_ref, 1, cases), GRADCHECK_MISTRUSTED);
  gradcheck g = check(missing, flat_ref, 1, cases);
  expect("flat without a gradient", g, GRADCHECK_PASS);
  CHECK_INT(g.built[0], 0);
  expect("no elements", check(right, cube_ref, 1, no_elements), GRADCHECK_EMPTY);
  expect("NaN forwards", check(right, nan_ref, 1, cases), GRADCHECK_FAIL);
  expect("nothing written", check(right, unwritten_ref, 1, cases), GRADCHECK_FAIL);
}

static void knows_a_refusal(void **state) {
  (void)state;
  gradcheck g = check(refused, cube_ref, 1, cases);
  expect("refused", g, GRADCHECK_UNSUPPORTED);
  if (!strstr(g.text, "not today")) fail_msg("\"%s\" lacks the op's own words", g.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(passes_what_is_right),      cmocka_unit_test(catches_what_is_wrong), cmocka_unit_test(tells_what_is_wrong),
    cmocka_unit_test(looks_at_the_second_order), cmocka_unit_test(mistrusts_zeros),       cmocka_unit_test(knows_a_refusal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
