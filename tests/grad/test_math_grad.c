/*
 * test_math_grad.c - every gradient in the registry against differences, first and second order.
 *
 * Goes over the table, not over a list: an op that is added without a right gradient fails here. Each input for which
 * an op builds a gradient must have been seen with a gradient that is not zero, in at least one of the op's cases.
 */
#include "support/check.h"
#include "support/gradcheck.h"
#include "support/opcase.h"
#include "op/registry.h"

typedef struct tally { int ops, cases, failed, unsupported, empty; long long compared; } tally;

/* Half-precision twins of a case test rounding, which the references do not do. */
static int is_half(const yk_case *c) { return strstr(c->shapes, "f16") != NULL; }

/* The gaps that are known and documented. A new one is a failure until it is written down here. */
static int may_refuse(const yk_op *op, int order) {
  static const char *const first[] = { "batch_norm_grad", "batch_norm_infer_grad", "layer_norm_grad", "lrn_grad", "max_pool_grad",
                                       "reduce_prod_grad", "lstm_grad", "gru_grad", "simple_rnn_grad" };
  static const char *const second[] = { "batch_norm_train", "batch_norm_infer", "layer_norm", "lrn", "max_pool", "reduce_prod",
                                        "lstm", "gru", "simple_rnn" };
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    if (!strcmp(op->name, first[i]) || (order == 2 && !strcmp(op->name, second[i]))) return 1;
  return 0;
}

static void one_op(const yk_op *op, int order, tally *t) {
  uint8_t built[GRADCHECK_INPUTS] = { 0 }, nonzero[GRADCHECK_INPUTS] = { 0 };
  long long compared = 0;
  int supported = 0, refused = 0, failures = 0;
  for (const yk_case *c = op->cases; c->shapes; c++) {
    gradcheck g;
    if (is_half(c)) continue;
    gradcheck_case(op, c, order, &g);
    t->cases++;
    if (g.verdict == GRADCHECK_FAIL) {
      print_error("FAIL %s\n", g.text);
      failures++;
    }
    t->empty += g.verdict == GRADCHECK_EMPTY;
    refused |= g.verdict == GRADCHECK_UNSUPPORTED;
    supported |= g.verdict != GRADCHECK_UNSUPPORTED && g.verdict != GRADCHECK_EMPTY;
    compared += g.compared;
    for (uint16_t i = 0; i < g.nx; i++) {
      built[i] |= g.built[i];
      nonzero[i] |= g.nonzero[i];
    }
  }
  for (int i = 0; i < GRADCHECK_INPUTS && supported && !failures; i++)
    if (built[i] && !nonzero[i]) {
      print_error("MISTRUSTED %s, order %d: the gradient of float input %d is zero in all cases\n", op->name, order, i);
      failures++;
    }
  if (supported && compared == 0) {
    print_error("FAIL %s, order %d: nothing was compared\n", op->name, order);
    failures++;
  }
  t->ops += supported;
  t->unsupported += refused;
  if (refused && !may_refuse(op, order)) {
    print_error("FAIL %s: no gradient of order %d\n", op->name, order);
    failures++;
  }
  t->failed += failures;
  t->compared += compared;
}

static tally sweep(int order) {
  tally t = { 0 };
  size_t n = 0;
  const yk_op *const *all = yk_op_all(&n);
  const char *only = getenv("GRAD_OP");
  for (size_t i = 0; i < n; i++)
    if (gradcheck_applies(all[i]) && (!only || !strcmp(only, all[i]->name))) one_op(all[i], order, &t);
  print_message("order %d: %d ops, %d cases (%d empty), %lld elements compared, %d ops without, %d failures\n", order, t.ops,
                t.cases, t.empty, t.compared, t.unsupported, t.failed);
  return t;
}

static void first_order(void **state) {
  (void)state;
  tally t = sweep(1);
  CHECK_INT(t.failed, 0);
  assert_true(t.compared > 5000);
}

static void second_order(void **state) {
  (void)state;
  tally t = sweep(2);
  CHECK_INT(t.failed, 0);
  assert_true(t.compared > 5000);
}

/* Every op says one of two things: here is my gradient, or it is zero by definition. */
static void every_op_takes_a_stand(void **state) {
  (void)state;
  size_t n = 0;
  const yk_op *const *all = yk_op_all(&n);
  assert_true(n > 100);
  for (size_t i = 0; i < n; i++) {
    if (!all[i]->grad && !(all[i]->traits & YK_NO_GRAD)) fail_msg("%s has neither a gradient nor YK_NO_GRAD", all[i]->name);
    if (all[i]->grad && (all[i]->traits & YK_NO_GRAD)) fail_msg("%s has a gradient and YK_NO_GRAD", all[i]->name);
    if (!all[i]->ref) fail_msg("%s has no reference", all[i]->name);
    if (!all[i]->cases && all[i] != &yk__op_constant) fail_msg("%s has no cases", all[i]->name);
    if (!all[i]->doc || !all[i]->label || !all[i]->version) fail_msg("%s lacks doc, label or version", all[i]->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_op_takes_a_stand),
    cmocka_unit_test(first_order),
    cmocka_unit_test(second_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
