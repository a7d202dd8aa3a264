/*
 * test_compile.c - what the compiler makes of small graphs.
 *
 * Pruning, folding, merging, placement with its refusals, copies between devices, order of variable accesses, events and
 * memory: each on the null driver, which needs no kernels.
 */
#include "support.h"

static yk_value input(yk_fixture *f, yk_desc *d) {
  *d = (yk_desc){ .dtype = YK_F32, .rank = 2, .dim = { 4, 8 } };
  return yk_placeholder(f->g, "x", YK_F32, YK_SHAPE(-1, 8));
}

static void prunes_and_folds(void **state) {
  yk_fixture f;
  yk_desc d;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_value x = input(&f, &d), n = yk_cast(f.g, yk_dim(f.g, x, 0), YK_F32);
  yk_value y = yk_div(f.g, yk_exp(f.g, x), n);
  (void)yk_log(f.g, x);                                       /* nobody wants it */
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL));
  CHECK_INT(count_code(f.plan, YK_I_LAUNCH), 2);               /* exp, div: the batch size became a constant */
  CHECK_INT(count_kind(f.plan, YK_BUF_CONSTANT), 1);
  CHECK_NEAR(yk_tensor_at(f.plan->constant[f.plan->nconstant - 1], 0), 4.0, 0);
  fixture_close(&f);
}

static void merges_equal_nodes(void **state) {
  yk_fixture f;
  yk_desc d;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_value x = input(&f, &d), y = yk_add(f.g, yk_exp(f.g, x), yk_exp(f.g, x));
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL));
  CHECK_INT(count_label(f.plan, "Exp"), 1);
  fixture_close(&f);
}

/* A constant that comes of folding is not the equal one that has to wait for what uses it. */
static void keeps_constants_that_wait(void **state) {
  yk_fixture f;
  yk_value after = { 0 };
  (void)state;
  fixture_open(&f, "null", 0);
  yk_variable *v = yk_get_variable(f.g, "v", YK_F32, YK_SHAPE(4), YK_ZEROS, NULL);
  yk_value one = yk_mul(f.g, yk_scalar_f32(f.g, 0.5f), yk_scalar_f32(f.g, 2)), add = yk_assign_add(f.g, v, yk_mul(f.g, yk_read(v), one));
  YK_CONTROL(f.g, 1, &add) { after = yk_add(f.g, yk_read(v), yk_scalar_f32(f.g, 1)); }
  CHECK_OK(fixture_compile(&f, 0, NULL, NULL, 1, &after, 1, &add));
  fixture_close(&f);
}

static void names_what_is_missing(void **state) {
  yk_fixture f;
  yk_desc d;
  (void)state;
  fixture_open(&f, "null", 1);
  yk_value x = input(&f, &d), y = yk_exp(f.g, x), op = yk_no_op(f.g), far;
  CHECK_CODE(fixture_compile(&f, 0, NULL, NULL, 1, &y, 0, NULL), YK_EINVAL, "placeholder 'x'");
  CHECK_CODE(fixture_compile(&f, 1, &x, &d, 1, &op, 0, NULL), YK_EINVAL, "pass it as a target");
  yk_value twice[2] = { x, x };
  yk_desc dd[2] = { d, d };
  CHECK_CODE(fixture_compile(&f, 2, twice, dd, 1, &y, 0, NULL), YK_EINVAL, "fed twice");
  YK_DEVICE(f.g, "/gpu:7") { far = yk_exp(yk_named(f.g, "far"), x); }
  CHECK_CODE(fixture_compile(&f, 1, &x, &d, 1, &far, 0, NULL), YK_ENOTFOUND, "'far'");
  CHECK_CODE(fixture_compile(&f, 1, &x, &d, 1, &far, 0, NULL), YK_ENOTFOUND, "device:GPU:7");
  CHECK_CODE(fixture_compile(&f, 1, &x, &d, 1, &far, 0, NULL), YK_ENOTFOUND, "device:GPU:0");
  f.soft = 1;
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &far, 0, NULL));
  f.strict = 1;
  CHECK_CODE(fixture_compile(&f, 1, &x, &d, 1, &far, 0, NULL), YK_EUNSUPPORTED, "strict");
  fixture_close(&f);
}

static void copies_between_devices_once(void **state) {
  yk_fixture f;
  yk_desc d;
  yk_value a, b, c;
  (void)state;
  fixture_open(&f, "null", 2);
  yk_value x = input(&f, &d);
  YK_DEVICE(f.g, "/gpu:0") { a = yk_exp(f.g, x); }
  YK_DEVICE(f.g, "/gpu:1") {
    b = yk_log(f.g, a);
    c = yk_neg(f.g, a);
  }
  yk_value both[2] = { b, c };
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 2, both, 0, NULL));
  CHECK_INT(count_code(f.plan, YK_I_COPY_PEER), 1);
  CHECK_INT(count_code(f.plan, YK_I_RECORD), 1);
  CHECK_INT(count_code(f.plan, YK_I_WAIT), 1);
  CHECK_INT(f.plan->nstream, 2);
  fixture_close(&f);
}

/* A reader that does not depend on the write comes before it, one that does comes after. */
static void orders_variable_accesses(void **state) {
  yk_fixture f;
  uint32_t at_write = 0, at_before = 0, at_after = 0;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_variable *v = yk_get_variable(f.g, "v", YK_F32, YK_SHAPE(4), YK_ONES, NULL);
  yk_value add = yk_assign_add(yk_named(f.g, "write"), v, yk_fill(f.g, YK_F32, YK_SHAPE(4), 1.0)), after;
  yk_value before = yk_exp(yk_named(f.g, "before"), yk_read(v));
  YK_CONTROL(f.g, 1, &add) { after = yk_exp(yk_named(f.g, "after"), yk_read(v)); }
  yk_value all[2] = { before, after };
  CHECK_OK(fixture_compile(&f, 0, NULL, NULL, 2, all, 1, &add));
  for (uint32_t i = 0; i < f.plan->ninstr; i++) {
    const char *name = f.plan->origin[f.plan->instr[i].origin].name;
    if (f.plan->instr[i].code != YK_I_LAUNCH) continue;
    if (strcmp(name, "write") == 0) at_write = i + 1;
    if (strcmp(name, "before") == 0) at_before = i + 1;
    if (strcmp(name, "after") == 0) at_after = i + 1;
  }
  assert_true(at_before != 0 && at_before < at_write && at_write < at_after);
  fixture_close(&f);
}

/* Launch number (from 1) of the node called `name`, 0 if there is none. */
static uint32_t launch_of(const yk_plan *p, const char *name) {
  for (uint32_t i = 0; i < p->ninstr; i++)
    if (p->instr[i].code == YK_I_LAUNCH && strcmp(p->origin[p->instr[i].origin].name, name) == 0) return i + 1;
  return 0;
}

/* Independent writers keep program order, and one that depends on a later reader of the value stays behind it. */
static void orders_several_writers(void **state) {
  yk_fixture f;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_variable *v = yk_get_variable(f.g, "v", YK_F32, YK_SHAPE(4), YK_ONES, NULL);
  yk_variable *w = yk_get_variable(f.g, "w", YK_F32, YK_SHAPE(4), YK_ONES, NULL);
  yk_value one = yk_fill(f.g, YK_F32, YK_SHAPE(4), 1.0);
  yk_value w1 = yk_assign_add(yk_named(f.g, "w1"), v, one), far = yk_exp(f.g, yk_neg(f.g, w1));
  yk_value swap = yk_assign(yk_named(f.g, "swap"), w, yk_neg(f.g, far)), w2 = yk_assign_add(yk_named(f.g, "w2"), v, one);
  yk_value old = yk_add(yk_named(f.g, "old"), yk_read(v), yk_read(w));
  yk_value all[3] = { w1, swap, w2 };
  CHECK_OK(fixture_compile(&f, 0, NULL, NULL, 1, &old, 3, all));
  uint32_t sum = launch_of(f.plan, "old"), a = launch_of(f.plan, "w1"), b = launch_of(f.plan, "w2"), c = launch_of(f.plan, "swap");
  if (sum == 0 || sum > a || a > b || sum > c || a > c) fail_msg("launches: old %u, w1 %u, w2 %u, swap %u", sum, a, b, c);
  fixture_close(&f);
}

/* assign gives a value before it is used; assign_add needs one. */
static void knows_what_must_be_initialized(void **state) {
  yk_fixture f;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_variable *v = yk_get_variable(f.g, "v", YK_F32, YK_SHAPE(4), YK_ONES, NULL);
  yk_value ones = yk_fill(f.g, YK_F32, YK_SHAPE(4), 1.0);
  yk_value set = yk_neg(f.g, yk_assign(f.g, v, ones)), add = yk_neg(f.g, yk_assign_add(f.g, v, ones));
  CHECK_OK(fixture_compile(&f, 0, NULL, NULL, 1, &set, 0, NULL));
  CHECK_INT(f.plan->nreads, 0);
  CHECK_INT(f.plan->nwrites, 1);
  CHECK_OK(fixture_compile(&f, 0, NULL, NULL, 1, &add, 0, NULL));
  CHECK_INT(f.plan->nreads, 1);
  CHECK_INT(f.plan->nwrites, 1);
  fixture_close(&f);
}

static void joins_updates(void **state) {
  yk_fixture f;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_value op[5];
  for (int i = 0; i < 5; i++) {
    char name[8];
    snprintf(name, sizeof name, "v%d", i);
    yk_variable *v = yk_get_variable(f.g, name, YK_F32, YK_SHAPE(4, i + 1), YK_ZEROS, NULL);
    yk_value grad = yk_exp(f.g, yk_read(v));
    op[i] = yk_sgd_update(f.g, 1, &v, &grad, yk_scalar_f32(f.g, 0.1f));   /* equal constants count as one */
  }
  yk_value all = yk_group(f.g, 5, op);
  CHECK_OK(fixture_compile(&f, 0, NULL, NULL, 0, NULL, 1, &all));
  CHECK_INT(count_code(f.plan, YK_I_LAUNCH), 6);
  CHECK_INT(f.plan->nwrites, 5);
  fixture_close(&f);
}

/* A chain of element-wise ops lives in at most two buffers; the arena is no larger than what is alive at once, plus a tenth. */
static void reuses_memory(void **state) {
  yk_fixture f;
  yk_desc d = { .dtype = YK_F32, .rank = 1, .dim = { 100000 } };
  (void)state;
  fixture_open(&f, "null", 0);
  yk_value x = yk_placeholder(f.g, "x", YK_F32, YK_SHAPE(100000)), y = x;
  for (int i = 0; i < 20; i++) y = yk_exp(f.g, y);
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL));
  CHECK_INT(f.plan->narena, 1);
  assert_true(f.plan->arena[0].bytes <= 2 * 400128);
  fixture_close(&f);
}

static void empty_batches_need_no_kernels(void **state) {
  yk_fixture f;
  yk_desc d = { .dtype = YK_F32, .rank = 2, .dim = { 0, 8 } };
  (void)state;
  fixture_open(&f, "null", 0);
  yk_value x = yk_placeholder(f.g, "x", YK_F32, YK_SHAPE(-1, 8)), y = yk_exp(f.g, x), s = yk_reduce_sum(f.g, y, NULL);
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &s, 0, NULL));
  CHECK_INT(count_code(f.plan, YK_I_LAUNCH), 0);
  CHECK_INT(count_code(f.plan, YK_I_FILL), 1);
  fixture_close(&f);
}

/* Two towers fed from the host device: its stream hands out both inputs before it waits for the first result. */
static void feeds_all_towers_first(void **state) {
  yk_fixture f;
  yk_desc d = { .dtype = YK_F32, .rank = 1, .dim = { 1000 } };
  yk_value y[2], x, sum;
  uint32_t first_wait = UINT32_MAX, last_make = 0;
  (void)state;
  fixture_open(&f, "null", 2);
  x = yk_placeholder(f.g, "x", YK_F32, YK_SHAPE(1000));
  for (int i = 0; i < 2; i++) {
    yk_value in;
    YK_DEVICE(f.g, "/cpu:0") { in = yk_mul(yk_named(f.g, "make"), x, yk_scalar_f32(f.g, (float)i)); }
    YK_DEVICE(f.g, i ? "/gpu:1" : "/gpu:0") { y[i] = yk_exp(f.g, yk_exp(f.g, in)); }
    YK_DEVICE(f.g, "/cpu:0") { y[i] = yk_neg(f.g, y[i]); }
  }
  YK_DEVICE(f.g, "/cpu:0") { sum = yk_add(f.g, y[0], y[1]); }
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &sum, 0, NULL));
  for (uint32_t i = 0; i < f.plan->ninstr; i++) {
    const yk_instr *in = &f.plan->instr[i];
    int host = f.plan->stream_dev[in->stream] == 0;
    if (host && in->code == YK_I_WAIT && first_wait == UINT32_MAX) first_wait = i;
    if (in->code == YK_I_LAUNCH && strncmp(f.plan->origin[in->origin].name, "make", 4) == 0) last_make = i;
  }
  assert_true(first_wait != UINT32_MAX && last_make < first_wait);
  fixture_close(&f);
}

static void explains_itself(void **state) {
  yk_fixture f;
  yk_desc d;
  char *text;
  (void)state;
  fixture_open(&f, "null", 0);
  yk_value x = input(&f, &d), y = yk_exp(yk_named(f.g, "y"), x);
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL));
  CHECK_OK(yk__plan_explain(f.plan, &text));
  assert_non_null(strstr(text, "CPU:0  feed      x (Placeholder) f32[4,8]@"));
  assert_non_null(strstr(text, "y (Exp)"));
  assert_non_null(strstr(text, "1 kernels (0 reorders), 0 copies between devices, 0 events, 1 streams"));
  yk_free(text);
  fixture_close(&f);
}

/* What another device waits for goes first, though it comes last in the program. */
static void feeds_others_first(void **state) {
  yk_fixture f;
  yk_desc d;
  const char *first = NULL;
  (void)state;
  fixture_open(&f, "null", 1);
  yk_value x = input(&f, &d), y = x, z = x;
  YK_DEVICE(f.g, "/cpu:0") {
    for (int i = 0; i < 5; i++) y = yk_exp(f.g, y);
    z = yk_log(f.g, x);
  }
  YK_DEVICE(f.g, "/gpu:0") { z = yk_exp(f.g, z); }
  const yk_value both[] = { y, z };
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 2, both, 0, NULL));
  for (uint32_t i = 0; i < f.plan->ninstr && first == NULL; i++)
    if (f.plan->instr[i].code == YK_I_LAUNCH) first = f.plan->origin[f.plan->instr[i].origin].label;
  assert_string_equal(first, "Log");
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(prunes_and_folds),
    cmocka_unit_test(merges_equal_nodes),
    cmocka_unit_test(keeps_constants_that_wait),
    cmocka_unit_test(names_what_is_missing),
    cmocka_unit_test(copies_between_devices_once),
    cmocka_unit_test(orders_variable_accesses),
    cmocka_unit_test(orders_several_writers),
    cmocka_unit_test(knows_what_must_be_initialized),
    cmocka_unit_test(joins_updates),
    cmocka_unit_test(reuses_memory),
    cmocka_unit_test(empty_batches_need_no_kernels),
    cmocka_unit_test(feeds_all_towers_first),
    cmocka_unit_test(feeds_others_first),
    cmocka_unit_test(explains_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
