/*
 * test_fusions.c - the fusion table is sound, and its entries make the attributes they should.
 *
 * Soundness is checked for every entry at once: ports exist, dtypes fit, no input of a link is lost. What the planner does
 * with the table is tested with the planner.
 */
#include "nn_support.h"
#include "ops/fusions.h"
#include "support/check.h"

static uint8_t ports(const yk_port *p) {
  uint8_t n = 0;
  while (p[n].name) n++;
  return n;
}

static const yk_fusion *entry(const char *name) {
  size_t n;
  const yk_fusion *f = yk__fusions(&n);
  for (size_t i = 0; i < n; i++)
    if (!strcmp(f[i].name, name)) return &f[i];
  fail_msg("no fusion %s", name);
  return NULL;
}

/* Is input `port` of link `i` fed from inside the group: by the link before, or as the value both siblings share? */
static int internal(const yk_fusion *f, uint8_t i, uint8_t port) {
  if (f->kind == YK_FUSE_CHAIN) return i > 0 && port == 0;
  return i == 1 && port == f->share[1];
}

/* batch_norm_grad's y is replaced by the y of relu_grad. */
static int replaced(const yk_fusion *f, uint8_t i, uint8_t port) {
  return f->fused == &yk__op_batch_norm_grad && i == 1 && port == 5;
}

static void check_ports(const yk_fusion *f) {
  CHECK_INT(f->nin, ports(f->fused->in));
  CHECK_INT(f->nout, ports(f->fused->out));
  for (uint8_t i = 0; i < f->nin; i++) {
    const yk_op *op = f->link[f->in[i].link];
    assert_non_null(op);
    if (f->in[i].port >= ports(op->in)) fail_msg("%s: %s has no input %u", f->name, op->name, f->in[i].port);
    CHECK_INT(f->fused->in[i].dtypes, op->in[f->in[i].port].dtypes);
    CHECK_INT(f->fused->in[i].flags & YK_PORT_SHAPE, op->in[f->in[i].port].flags & YK_PORT_SHAPE);
  }
  for (uint8_t i = 0; i < f->nout; i++) {
    const yk_op *op = f->link[f->out[i].link];
    assert_true(f->out[i].link < f->nlinks);
    if (op && f->out[i].port >= ports(op->out)) fail_msg("%s: %s has no output %u", f->name, op->name, f->out[i].port);
  }
}

/* Every input of every link is named once, or comes from inside. */
static void check_complete(const yk_fusion *f) {
  for (uint8_t l = 0; l < f->nlinks; l++)
    for (uint8_t p = 0; p < (f->link[l] ? ports(f->link[l]->in) : 1); p++) {
      int named = 0;
      for (uint8_t i = 0; i < f->nin; i++) named += f->in[i].link == l && f->in[i].port == p;
      if (named != !(internal(f, l, p) || replaced(f, l, p)))
        fail_msg("%s: input %u of link %u is named %d times", f->name, p, l, named);
    }
}

static void test_table(void **state) {
  (void)state;
  size_t n;
  const yk_fusion *f = yk__fusions(&n);
  assert_true(n >= 8);
  for (size_t i = 0; i < n; i++) {
    assert_true(f[i].nlinks >= 2 && f[i].nlinks <= YK_FUSE_LINKS && f[i].nin <= YK_FUSE_IN && f[i].nout <= YK_FUSE_OUT);
    assert_non_null(f[i].link[0]);
    assert_non_null(f[i].attrs);
    for (uint8_t l = 0; l < f[i].nlinks; l++)
      if (f[i].link[l]) assert_int_equal(f[i].link[l]->traits & YK_STATEFUL, 0);
    check_ports(&f[i]);
    check_complete(&f[i]);
    for (size_t k = 0; k < i; k++)         /* a longer entry would never be tried after a shorter one with the same start */
      if (f[k].link[0] == f[i].link[0] && f[k].link[1] == f[i].link[1] && f[k].nlinks < f[i].nlinks)
        fail_msg("%s stands before %s", f[k].name, f[i].name);
  }
}

static void test_act_of(void **state) {
  (void)state;
  static const struct { const yk_op *op; yk_act act; } row[] = {
    { &yk__op_relu, YK_ACT_RELU }, { &yk__op_relu6, YK_ACT_RELU6 }, { &yk__op_leaky_relu, YK_ACT_LEAKY_RELU },
    { &yk__op_elu, YK_ACT_ELU }, { &yk__op_selu, YK_ACT_SELU }, { &yk__op_gelu, YK_ACT_GELU }, { &yk__op_silu, YK_ACT_SILU },
    { &yk__op_tanh, YK_ACT_TANH }, { &yk__op_sigmoid, YK_ACT_SIGMOID }, { &yk__op_softplus, YK_ACT_SOFTPLUS },
    { &yk__op_exp, YK_ACT_NONE }, { &yk__op_relu_grad, YK_ACT_NONE }, { &yk__op_elu_grad, YK_ACT_NONE },
  };
  double alpha = 7;
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) CHECK_INT(yk__act_of(row[i].op, NULL, NULL), row[i].act);
  CHECK_INT(yk__act_of(&yk__op_leaky_relu, &(yk_alpha_attrs){ 0.3 }, &alpha), YK_ACT_LEAKY_RELU);
  CHECK_NEAR(alpha, 0.3, 0);
  CHECK_INT(yk__act_of(&yk__op_relu, NULL, &alpha), YK_ACT_RELU);
  CHECK_NEAR(alpha, 0, 0);
  CHECK_INT(yk__act_of(&yk__op_gelu, &(yk_gelu_attrs){ 1 }, &alpha), YK_ACT_NONE);
  CHECK_INT(yk__act_of(&yk__op_gelu, &(yk_gelu_attrs){ 0 }, &alpha), YK_ACT_GELU);
}

static void test_fits(void **state) {
  (void)state;
  const yk_fusion *f = entry("conv2d+bias+act");
  assert_true(yk__fusion_fits(f, 0, &yk__op_conv2d, NULL));
  assert_false(yk__fusion_fits(f, 0, &yk__op_matmul, NULL));
  assert_true(yk__fusion_fits(f, 1, &yk__op_bias_add, NULL));
  assert_true(yk__fusion_fits(f, 2, &yk__op_tanh, NULL));
  assert_false(yk__fusion_fits(f, 2, &yk__op_gelu, &(yk_gelu_attrs){ 1 }));
  assert_false(yk__fusion_fits(f, 2, &yk__op_exp, NULL));
  assert_false(yk__fusion_fits(f, 3, &yk__op_relu, NULL));
}

static void test_conv_attrs(void **state) {
  (void)state;
  yk_conv2d_attrs conv = { .stride = { 2, 1 }, .dilation = { 1, 3 }, .groups = 2, .padding = YK_EXPLICIT, .pad = { 1, 2, 3, 4 } }, got = { 0 };
  yk_alpha_attrs leaky = { 0.1 };
  yk_fusion_node n[3] = { { .op = &yk__op_conv2d, .attrs = &conv }, { .op = &yk__op_bias_add },
                          { .op = &yk__op_leaky_relu, .attrs = &leaky } };
  assert_true(entry("conv2d+bias+act")->attrs(n, &got));
  CHECK_INT(got.act, YK_ACT_LEAKY_RELU);
  CHECK_NEAR(got.alpha, 0.1, 0);
  got.act = 0;
  got.alpha = 0;
  assert_true(yk__attrs_equal(&yk__op_conv2d_bias_act, &got, &conv));
  assert_true(entry("conv2d+bias")->attrs(n, &got));
  assert_true(yk__attrs_equal(&yk__op_conv2d_bias_act, &got, &conv));
  n[0].op = &yk__op_conv2d_grad_filter;
  n[1].op = &yk__op_bias_add_grad;
  assert_true(entry("conv2d_grad_filter+bias_grad")->attrs(n, &got));
  assert_true(yk__attrs_equal(&yk__op_conv2d_grad_filter_bias, &got, &conv));
}

static void test_matmul_attrs(void **state) {
  (void)state;
  yk_matmul_attrs m = { .transpose_b = 1 }, got = { 0 };
  yk_desc flat[2], batched[2];
  nn_parse("f32[4,7]; f32[5,7]", flat, 2);
  nn_parse("f32[2,4,7]; f32[5,7]", batched, 2);
  yk_fusion_node n[3] = { { .op = &yk__op_matmul, .attrs = &m, .in = flat }, { .op = &yk__op_bias_add }, { .op = &yk__op_sigmoid } };
  assert_true(entry("matmul+bias+act")->attrs(n, &got));
  CHECK_INT(got.act, YK_ACT_SIGMOID);
  CHECK_INT(got.transpose_b, 1);
  assert_true(entry("matmul+bias")->attrs(n, &got));
  CHECK_INT(got.act, YK_ACT_NONE);
  n[0].in = batched;
  assert_false(entry("matmul+bias+act")->attrs(n, &got));
  assert_false(entry("matmul+bias")->attrs(n, &got));
  n[0].in = flat;
  assert_false(entry("matmul_grad+bias_grad")->attrs(n, &got));
  m = (yk_matmul_attrs){ 0 };              /* a forward product that happens to share its b with a bias gradient */
  assert_false(entry("matmul_grad+bias_grad")->attrs(n, &got));
  m = (yk_matmul_attrs){ .transpose_a = 1 };
  assert_true(entry("matmul_grad+bias_grad")->attrs(n, &got));
  CHECK_INT(got.transpose_a, 1);
}

static void test_norm_attrs(void **state) {
  (void)state;
  yk_norm_attrs norm = { .epsilon = 0.01 }, got = { 0 };
  yk_fusion_node n[2] = { { .op = &yk__op_batch_norm_train, .attrs = &norm }, { .op = &yk__op_relu } };
  yk_fusion_node back[2] = { { .op = &yk__op_relu_grad }, { .op = &yk__op_batch_norm_grad, .attrs = &norm } };
  assert_true(entry("batch_norm+relu")->attrs(n, &got));
  CHECK_INT(got.act, YK_ACT_RELU);
  CHECK_NEAR(got.epsilon, 0.01, 0);
  got = (yk_norm_attrs){ 0 };
  assert_true(entry("relu_grad+batch_norm_grad")->attrs(back, &got));
  CHECK_INT(got.act, YK_ACT_RELU);
  CHECK_NEAR(got.epsilon, 0.01, 0);
  norm.act = YK_ACT_RELU;                  /* already fused once: relu(relu(x)) stays */
  assert_false(entry("batch_norm+relu")->attrs(n, &got));
  assert_false(entry("relu_grad+batch_norm_grad")->attrs(back, &got));
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_act_of), cmocka_unit_test(test_fits),
                                      cmocka_unit_test(test_conv_attrs), cmocka_unit_test(test_matmul_attrs), cmocka_unit_test(test_norm_attrs) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
