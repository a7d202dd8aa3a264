/*
 * The reverse pass: which nodes it makes, where and under which names; sums, broadcasts undone, stopped values, second
 * order; and what its errors tell. Numbers are checked elsewhere, against finite differences.
 */
#include "graph/helpers.h"
#include "base/error.h"

static yk_value dx_of(yk_graph *g, yk_value y, yk_value x, const yk_gradient_options *o) {
  yk_value dx = { 0 };
  yk_gradients(g, 1, &y, NULL, 1, &x, o, &dx);
  return dx;
}

static void test_chain(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = { 0 }, y = { 0 };
  YK_DEVICE(g, "/gpu:1") {
    x = x2(g, "x");
    y = yk_relu(yk_named(g, "a/act"), x);
  }
  YK_DEVICE(g, "/cpu:0") y = yk_neg(g, y);
  YK_DEVICE(g, "/gpu:0") CHECK_INT(yk_value_desc(g, dx_of(g, y, x, NULL))->rank, 2);
  check_dump(g, 3,
    "gradients/grad_ys_0 = ones_like(Neg) -> f32[2,3] @/device:CPU:0\n"
    "gradients/Neg_grad/Neg = neg(gradients/grad_ys_0) -> f32[2,3] @/device:CPU:0\n"
    "gradients/a/act_grad/ReluGrad = relu_grad(gradients/Neg_grad/Neg, a/act) -> f32[2,3] @/device:GPU:1\n");
  YK_NAME_SCOPE(g, "tower") CHECK_STR(yk_value_name(g, dx_of(g, y, x, NULL)), "tower/gradients/a/act_grad/ReluGrad");
  dx_of(g, y, x, &(yk_gradient_options){ .name = "again" });
  assert_true(yk_find(g, "again/Neg_grad/Neg").id != 0);
  done(g);
}

static void test_sum_of_several(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), a = yk_neg(g, x), b = yk_square(g, x), c = yk_add(g, yk_mul(g, a, b), x), dx;
  dx = dx_of(g, c, x, NULL);
  const yk_node *n = yk__value_node(g, dx);
  CHECK_STR(n->op->name, "add_n");
  CHECK_INT(n->nin, 3);                            /* one node, however many arrive */
  CHECK_STR(n->name, "gradients/AddN");
  char *one = NULL, *two = NULL;                   /* and in the same order each time */
  yk_graph *again = new_graph();
  x = x2(again, "x");
  a = yk_neg(again, x);
  b = yk_square(again, x);
  dx_of(again, yk_add(again, yk_mul(again, a, b), x), x, NULL);
  CHECK_OK(yk_graph_dump(g, &one));
  CHECK_OK(yk_graph_dump(again, &two));
  CHECK_STR(one, two);
  yk_free(one);
  yk_free(two);
  done(g);
  done(again);
}

/* Gradients of a variable are summed at its home. */
static void test_sum_at_home(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_variable *v = NULL;
  yk_value loss[2] = { { 0 } }, x, dx = { 0 };
  YK_DEVICE(g, "/cpu:0") v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(2, 3), YK_ONES, NULL);
  YK_DEVICE(g, "/gpu:0") loss[0] = yk_square(g, yk_read(v));
  YK_DEVICE(g, "/gpu:1") loss[1] = yk_square(g, yk_read(v));
  x = yk_read(v);
  yk_gradients(g, 2, loss, NULL, 1, &x, NULL, &dx);
  CHECK_STR(yk_value_op(g, dx)->name, "add_n");
  CHECK_STR(yk_value_device(g, dx), "/device:CPU:0");
  CHECK_STR(yk_value_device(g, (yk_value){ yk__value_node(g, dx)->in[0] }), "/device:GPU:1");
  CHECK_STR(yk_value_device(g, (yk_value){ yk__value_node(g, dx)->in[1] }), "/device:GPU:0");
  done(g);
}

static void test_only_what_lies_between(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), w = x2(g, "w"), u = yk_exp(g, w), y = yk_mul(g, yk_relu(g, x), u), other = yk_exp(g, x);
  uint32_t nodes;
  yk_value in[3] = { x, other, x2(g, "elsewhere") }, dx[3] = { { 1 }, { 1 }, { 1 } };
  nodes = g->nnode;
  yk_gradients(g, 1, &y, NULL, 3, in, NULL, dx);
  assert_true(dx[0].id != 0);
  CHECK_INT(dx[1].id, 0);
  CHECK_INT(dx[2].id, 0);
  CHECK_INT(yk_find(g, "gradients/Exp_grad/Mul").id, 0);      /* w is no x */
  CHECK_INT(g->nnode, nodes + 4);                             /* ones, two products, relu_grad */
  yk_gradients(g, 1, &y, NULL, 3, in, &(yk_gradient_options){ .zeros_if_unconnected = true }, dx);
  CHECK_STR(yk_value_op(g, dx[2])->name, "zeros_like");
  CHECK_STR(yk_value_op(g, dx_of(g, x, x, NULL))->name, "ones_like");
  done(g);
}

static void test_given_seeds(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), y[2] = { yk_neg(g, x), yk_neg(g, x) }, dy[2] = { x2(g, "dy"), { 0 } }, dx = { 0 };
  yk_gradients(g, 2, y, dy, 1, &x, NULL, &dx);
  const yk_node *sum = yk__value_node(g, dx);
  CHECK_INT(sum->nin, 2);
  CHECK_INT(yk__value_node(g, (yk_value){ sum->in[1] })->in[0], dy[0].id);
  CHECK_STR(yk_value_name(g, yk_find(g, "gradients/grad_ys_1")), "gradients/grad_ys_1");
  done(g);
  g = new_graph();
  x = x2(g, "x");
  yk_value bad = yk_placeholder(g, "bad", YK_F32, YK_SHAPE(4));
  yk_gradients(g, 1, &x, &bad, 1, &x, NULL, &dx);
  FAILED(g, YK_EINVAL, "dys[0] is f32[4], but ys[0] is f32[2,3]");
  g = new_graph();
  x = x2(g, "x");
  yk_gradients(g, 1, &x, NULL, 1, &(yk_value){ 0 }, NULL, &dx);
  FAILED(g, YK_EINVAL, "xs[0] is empty");
}

/* ---- broadcasts ---- */

static int sums(yk_shape a, yk_shape b) {         /* bit 0: a's gradient is summed, bit 1: b's is */
  yk_graph *g = new_graph();
  yk_value in[2] = { yk_placeholder(g, "a", YK_F32, a), yk_placeholder(g, "b", YK_F32, b) }, y = yk_mul(g, in[0], in[1]), d[2];
  int bits = 0;
  yk_gradients(g, 1, &y, NULL, 2, in, NULL, d);
  for (int i = 0; i < 2; i++) {
    if (!strcmp(yk_value_op(g, d[i])->name, "sum_to")) bits |= 1 << i;
    CHECK_INT(yk_value_desc(g, d[i])->rank, i ? b.rank : a.rank);
  }
  done(g);
  return bits;
}

static void test_broadcasts_are_undone(void **state) {
  (void)state;
  CHECK_INT(sums(YK_SHAPE(2, 3), YK_SHAPE(2, 3)), 0);
  CHECK_INT(sums(YK_SHAPE(2, 3), YK_SHAPE(3)), 2);
  CHECK_INT(sums(YK_SHAPE(2, 1), YK_SHAPE(1, 3)), 3);
  CHECK_INT(sums(YK_SCALAR, YK_SHAPE(2, 3)), 1);
  CHECK_INT(sums(YK_SHAPE(-1, 3), YK_SHAPE(-1, 3)), 0);       /* the same unknown batch */
  CHECK_INT(sums(YK_SHAPE(-1, 3), YK_SHAPE(3)), 2);
  CHECK_INT(sums(YK_SHAPE(-1, 3), YK_SHAPE(1, 3)), 2);
  CHECK_INT(sums(YK_SHAPE(-1, 3), YK_SHAPE(4, 3)), 1);        /* unknown beside 4: may be 1 */
}

/* ---- stopping ---- */

static void test_stop(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), s = yk_exp(g, x), y = yk_mul(g, s, x), in[2] = { x, s }, dx[2];
  yk_gradients(g, 1, &y, NULL, 2, in, &(yk_gradient_options){ .stop = &s, .nstop = 1 }, dx);
  CHECK_STR(yk_value_op(g, dx[0])->name, "mul");              /* through the other factor only: no sum */
  assert_true(dx[1].id != 0);                                 /* a stopped value may be an x itself */
  CHECK_INT(dx_of(g, yk_mul(g, yk_stop_gradient(g, x), yk_floor(g, x)), x, NULL).id, 0);
  yk_value i = yk_placeholder(g, "i", YK_I32, YK_SHAPE(2, 3));
  CHECK_INT(dx_of(g, yk_mul(g, i, i), i, NULL).id, 0);        /* integers carry none */
  CHECK_INT(dx_of(g, yk_cast(g, i, YK_F32), i, NULL).id, 0);
  yk_value gated = { 0 };
  YK_CONTROL(g, 1, &x) gated = yk_neg(g, x2(g, "z"));
  CHECK_INT(dx_of(g, gated, x, NULL).id, 0);                  /* nor do control edges */
  done(g);
}

static void test_second_order(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), y = yk_reduce_sum(g, yk_mul(g, yk_square(g, x), yk_tanh(g, x)), NULL);
  yk_value first = dx_of(g, y, x, NULL), second = dx_of(g, first, x, NULL), third = dx_of(g, second, x, NULL);
  CHECK_INT(yk_value_desc(g, third)->dim[1], 3);
  CHECK_STR(yk_value_desc(g, first)->dtype == YK_F32 ? "f32" : "?", "f32");
  assert_true(yk_find(g, "gradients_2/AddN").id != 0);
  done(g);
}

/* ---- ops made to fail ---- */

static const yk_port one[] = { { "x", YK_FLOATS, 0, 0 }, { 0 } };
static yk_code same(const yk_infer *c) { c->out[0] = c->in[0]; return YK_OK; }
static yk_code two(const yk_infer *c) { c->out[0] = c->out[1] = c->in[0]; return YK_OK; }
static yk_code refuse(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivative not known");
}
static yk_code break_down(yk_grad *c) {
  (void)c;
  return YK_FAIL(EINVAL, "some reason");
}
static yk_code wrong_shape(yk_grad *c) {
  c->din[0] = yk_reduce_sum_at(c->where, c->g, c->dout[0], NULL);
  return YK_OK;
}
static yk_code wrong_dtype(yk_grad *c) {
  c->din[0] = yk_cast_at(c->where, c->g, c->dout[0], YK_F64);
  return YK_OK;
}
static int missing;
static yk_code look(yk_grad *c) {                 /* two outputs: notes which have no gradient */
  missing = (c->dout[0].id == 0) + 2 * (c->dout[1].id == 0);
  c->din[0] = c->dout[0].id ? c->dout[0] : c->dout[1];
  return YK_OK;
}

#define BAD(title, fn) { .name = title, .label = title, .in = one, .out = one, .infer = same, .grad = fn }
static const yk_op no_grad = BAD("NoGrad", NULL), refusing = BAD("Refusing", refuse), breaking = BAD("Breaking", break_down),
                   misshapen = BAD("Misshapen", wrong_shape), mistyped = BAD("Mistyped", wrong_dtype);
static const yk_port pair[] = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 0 }, { 0 } };
static const yk_op pairing = { .name = "pairing", .label = "Pairing", .in = one, .out = pair, .infer = two, .grad = look };

static yk_graph *with_bad(const yk_op *op) {
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), bad = yk_add_node(yk_named(g, "deep/bad"), op, NULL, &x, 1, 0);
  dx_of(g, yk_neg(yk_named(g, "loss"), yk_relu(yk_named(g, "mid"), bad)), x, NULL);
  return g;
}

static void test_errors(void **state) {
  (void)state;
  FAILED(with_bad(&no_grad), YK_EUNSUPPORTED, "NoGrad 'deep/bad' (made at ", "test_gradients.c:", "has no gradient",
         "the way to it: loss -> mid -> deep/bad");
  FAILED(with_bad(&refusing), YK_EUNSUPPORTED, "Refusing 'deep/bad'", "second derivative not known", "loss -> mid -> deep/bad");
  FAILED(with_bad(&breaking), YK_EINVAL, "gradient of Breaking 'deep/bad'", "some reason");
  FAILED(with_bad(&misshapen), YK_EINTERNAL, "gradient of Misshapen 'deep/bad' for input 0 is f32[], but the input is f32[2,3]");
  FAILED(with_bad(&mistyped), YK_EINTERNAL, "gradient of Mistyped 'deep/bad' for input 0 is f64[2,3]");
}

static void test_long_way(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), y = yk_add_node(yk_named(g, "bad"), &no_grad, NULL, &x, 1, 0);
  for (int i = 0; i < 100; i++) y = yk_neg(yk_named(g, "n"), y);
  dx_of(g, y, x, NULL);
  FAILED(g, YK_EUNSUPPORTED, "n_99 -> n_98 -> n_97 -> n_96 -> n_95 -> n_94 -> ... -> n_4 -> n_3 -> n_2 -> n_1 -> n -> bad");
}

static void test_missing_output_gradients(void **state) {
  (void)state;
  yk_graph *g = new_graph();
  yk_value x = x2(g, "x"), a = yk_add_node(g, &pairing, NULL, &x, 1, 0), b = yk_output(g, a, 1);
  missing = 0;
  assert_true(dx_of(g, yk_neg(g, b), x, NULL).id != 0);
  CHECK_INT(missing, 1);
  dx_of(g, yk_neg(g, a), x, NULL);
  CHECK_INT(missing, 2);
  dx_of(g, yk_add(g, a, b), x, NULL);
  CHECK_INT(missing, 0);
  done(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_chain), cmocka_unit_test(test_sum_of_several), cmocka_unit_test(test_sum_at_home),
    cmocka_unit_test(test_only_what_lies_between), cmocka_unit_test(test_given_seeds),
    cmocka_unit_test(test_broadcasts_are_undone), cmocka_unit_test(test_stop), cmocka_unit_test(test_second_order),
    cmocka_unit_test(test_errors), cmocka_unit_test(test_long_way), cmocka_unit_test(test_missing_output_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
