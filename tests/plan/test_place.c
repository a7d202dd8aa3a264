/*
 * test_place.c - where nodes go: groups that must sit together, host-only operations, missing kernels, soft placement, what
 * is told of it, and what is refused in which words.
 *
 * Devices are opened on the null driver. A "dumb" device has a driver of the test's own, which is the null driver without
 * kernels for some operations, so that missing kernels are seen on a machine where every real device has them all.
 */
#include "support.h"

static yk_driver dumb;
static const yk_driver *null_driver;

/* No kernel for Exp at all, none for Add in i32. */
static yk_code dumb_prepare(yk_dev *dev, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info) {
  if (strcmp(spec->op, "exp") == 0) return YK_EUNSUPPORTED;
  if (strcmp(spec->op, "add") == 0 && spec->in[0].dtype == YK_I32) return YK_EUNSUPPORTED;
  return null_driver->kernel_prepare(dev, spec, out, info);
}

/* The last `n` GPUs become dumb. */
static void open_dumb(yk_fixture *f, uint16_t ngpu, uint16_t n) {
  fixture_open(f, "null", ngpu);
  null_driver = f->devices->at[0].driver;
  dumb = *null_driver;
  dumb.kernel_prepare = dumb_prepare;
  dumb.name = "dumb";
  for (uint16_t i = 0; i < n; i++) f->devices->at[f->devices->n - 1 - i].driver = &dumb;
}

static yk_code place(yk_fixture *f, uint16_t *dev, char **moves) {
  yk_place_request r = { .graph = f->g, .devices = f->devices, .var = f->var, .nvar = f->g->nvariable, .soft = f->soft };
  yk_str text = { 0 };
  CHECK_OK(yk_graph_status(f->g));
  yk_code rc = yk__place_graph(&r, dev, &text);
  if (rc == YK_OK && moves) CHECK_OK(yk__str_take(&text, moves));
  yk__str_free(&text);
  return rc;
}

static void check_where(yk_fixture *f, const uint16_t *dev, yk_value v, const char *want) {
  const yk_node *n = yk__value_node(f->g, v);
  const char *got = strstr(f->devices->at[dev[n->id]].name, "device:");
  if (strcmp(got + 7, want) != 0) fail_msg("'%s' is on %s, expected %s", n->name, got + 7, want);
}

static void check_words(const char *text, const char *const *words) {
  for (; *words; words++)
    if (!strstr(text, *words)) fail_msg("\"%s\" lacks \"%s\"", text, *words);
}
#define WORDS(text, ...) check_words((text), (const char *const[]){ __VA_ARGS__, NULL })

/* The graph is refused with `code`, and the message has all the words. */
static void check_refused(yk_fixture *f, yk_code code, const char *const *words) {
  uint16_t dev[64];
  yk_code rc = place(f, dev, NULL);
  if (rc != code) fail_msg("got %s (%s), expected %s", yk_code_name(rc), yk_error_message(), yk_code_name(code));
  check_words(yk_error_message(), words);
  yk_error_clear();
}
#define REFUSED(f, code, ...) check_refused((f), (code), (const char *const[]){ __VA_ARGS__, NULL })

static int lines(const char *text) {
  int n = 0;
  for (; *text; text++) n += *text == '\n';
  return n;
}

static yk_value input(yk_fixture *f, const char *name) { return yk_placeholder(f->g, name, YK_F32, YK_SHAPE(2, 3)); }

/* ---- where nodes go ------------------------------------------------------------------------------------------------ */

static void test_preferences(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  char *moves;
  yk_value cpu, any_gpu, one, number;
  (void)state;
  fixture_open(&f, "null", 2);
  yk_value x = input(&f, "x"), free_one = yk_exp(f.g, x);
  YK_DEVICE(f.g, "/cpu:0") cpu = yk_exp(f.g, x);
  YK_DEVICE(f.g, "/gpu:*") any_gpu = yk_exp(f.g, x);
  YK_DEVICE(f.g, "/job:localhost/replica:0/task:0/device:GPU:1") one = yk_exp(f.g, x);
  YK_DEVICE(f.g, "/device:*:1") number = yk_exp(f.g, x);
  CHECK_OK(place(&f, dev, &moves));
  check_where(&f, dev, free_one, "GPU:0");
  check_where(&f, dev, cpu, "CPU:0");
  check_where(&f, dev, any_gpu, "GPU:0");
  check_where(&f, dev, one, "GPU:1");
  check_where(&f, dev, number, "GPU:1");
  assert_string_equal(moves, "");
  yk_free(moves);
  fixture_close(&f);
}

/* Sources follow their users if these agree. */
static void test_sources(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  yk_value a, b;
  (void)state;
  fixture_open(&f, "null", 2);
  yk_value both = yk_scalar_f32(f.g, 1), only = yk_scalar_f32(f.g, 2), x = input(&f, "x");
  YK_DEVICE(f.g, "/gpu:1") a = yk_add(f.g, yk_add(f.g, x, both), only);
  YK_DEVICE(f.g, "/cpu:0") b = yk_add(f.g, x, both);
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, only, "GPU:1");
  check_where(&f, dev, both, "GPU:0");
  check_where(&f, dev, a, "GPU:1");
  check_where(&f, dev, b, "CPU:0");
  fixture_close(&f);
}

/* A variable, what reads it and what writes it are one group; its own request wins. */
static void test_variables(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  yk_variable *v, *free_one;
  yk_value add, far;
  (void)state;
  fixture_open(&f, "null", 2);
  YK_DEVICE(f.g, "/cpu:0") v = yk_get_variable(f.g, "v", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
  free_one = yk_get_variable(f.g, "w", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
  YK_DEVICE(f.g, "/gpu:1") {
    add = yk_assign_add(f.g, v, yk_read(v));
    far = yk_assign_add(f.g, free_one, yk_read(v));
  }
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, v->ref, "CPU:0");
  check_where(&f, dev, v->read, "CPU:0");
  check_where(&f, dev, add, "CPU:0");
  check_where(&f, dev, free_one->ref, "GPU:1");        /* nobody else asked for anything */
  check_where(&f, dev, far, "GPU:1");
  check_where(&f, dev, free_one->assign, "GPU:1");
  fixture_close(&f);
}

/* A variable that has memory stays, whatever is built later. */
static void test_variables_stay(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  yk_value late;
  (void)state;
  fixture_open(&f, "null", 2);
  yk_variable *v = yk_get_variable(f.g, "v", YK_F32, YK_SHAPE(2), YK_ONES, NULL);
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, v->ref, "GPU:0");
  f.var[0].dev = dev[yk__value_node(f.g, v->ref)->id];
  f.var[0].mem.base = &f;                              /* as if it had been initialised there */
  YK_DEVICE(f.g, "/cpu:0") late = yk_assign_add(f.g, v, yk_read(v));
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, v->ref, "GPU:0");
  check_where(&f, dev, late, "GPU:0");
  fixture_close(&f);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------ */

static void test_absent(void **state) {
  yk_fixture f;
  (void)state;
  fixture_open(&f, "null", 1);
  YK_DEVICE(f.g, "/gpu:7") (void)yk_exp(yk_named(f.g, "far"), input(&f, "x"));
  REFUSED(&f, YK_ENOTFOUND, "'x' (Placeholder, ", "test_place.c:", "/device:GPU:7", "no such device", "device:CPU:0, ", "device:GPU:0",
          "Check the device string", "soft placement");
  fixture_close(&f);
  fixture_open(&f, "null", 1);
  YK_DEVICE(f.g, "/job:worker/gpu:0") (void)input(&f, "x");
  f.soft = 1;                                          /* soft placement does not change the task */
  REFUSED(&f, YK_ENOTFOUND, "'x'", "/job:worker/device:GPU:0", "no such device");
  fixture_close(&f);
}

static void test_conflict(void **state) {
  yk_fixture f;
  yk_value a, b;
  (void)state;
  fixture_open(&f, "null", 2);
  YK_DEVICE(f.g, "/gpu:0") a = input(&f, "a");
  YK_DEVICE(f.g, "/gpu:1") b = input(&f, "b");
  YK_COLOCATE(f.g, a) YK_COLOCATE(f.g, b) (void)input(&f, "c");
  REFUSED(&f, YK_EINVAL, "'b' (Placeholder, ", "asks for /device:GPU:1", "must sit with 'a' (Placeholder, ", "asks for /device:GPU:0",
          "Devices: ", "device:CPU:0", "do not colocate them");
  fixture_close(&f);
}

static yk_code no_rows(void *self, int64_t rows, void *const *out) {
  (void)self; (void)rows; (void)out;
  return YK_OK;
}

/* Host objects are on the CPU, with whatever sits with them. */
static void test_host_only(void **state) {
  const yk_source source = { .next = no_rows, .ncomponents = 1, .component = { { .dtype = YK_F32 } } };
  yk_fixture f;
  uint16_t dev[64];
  char *moves;
  yk_value out, friend_of = { 0 };
  (void)state;
  fixture_open(&f, "null", 1);
  yk_dequeue(f.g, &source, 2, &out);
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, out, "CPU:0");
  fixture_close(&f);
  fixture_open(&f, "null", 1);
  YK_DEVICE(f.g, "/gpu:0") yk_dequeue(yk_named(f.g, "batch"), &source, 2, &out);
  YK_COLOCATE(f.g, out) friend_of = yk_exp(f.g, out);
  REFUSED(&f, YK_EUNSUPPORTED, "'batch' (", "test_place.c:", "asks for /device:GPU:0, which exists", "works on host objects", "Devices: ",
          "sits with 1 other: 'Exp'", "Put it on /cpu:0");
  f.soft = 1;
  CHECK_OK(place(&f, dev, &moves));
  check_where(&f, dev, out, "CPU:0");
  check_where(&f, dev, friend_of, "CPU:0");
  CHECK_INT(lines(moves), 1);
  WORDS(moves, "'batch' (", "works on host objects", "they run on ", "CPU:0");
  yk_free(moves);
  fixture_close(&f);
}

static void test_missing_kernel(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  yk_value e, whole, part, i;
  (void)state;
  open_dumb(&f, 2, 1);                                 /* GPU:1 has no Exp, and Add not in i32 */
  yk_value x = input(&f, "x"), n = yk_placeholder(f.g, "n", YK_I32, YK_SHAPE(2));
  YK_DEVICE(f.g, "/gpu:1") part = yk_add(yk_named(f.g, "part"), x, x);
  YK_DEVICE(f.g, "/gpu:*") e = yk_exp(yk_named(f.g, "e"), x);
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, part, "GPU:1");
  check_where(&f, dev, e, "GPU:0");
  YK_DEVICE(f.g, "/gpu:1") whole = yk_add(yk_named(f.g, "whole"), n, n);
  REFUSED(&f, YK_EUNSUPPORTED, "'whole' (Add, ", "asks for /device:GPU:1, which exists", "no kernel for Add", "device:GPU:0 has",
          "Devices: ", "'yoke ops'", "soft placement");
  f.soft = 1;
  char *moves;
  CHECK_OK(place(&f, dev, &moves));
  check_where(&f, dev, whole, "GPU:0");
  CHECK_INT(lines(moves), 1);
  WORDS(moves, "'whole' (Add, ", "asks for /device:GPU:1", "no kernel for Add", "it runs on /job:localhost/replica:0/task:0/device:GPU:0");
  yk_free(moves);
  fixture_close(&f);
  open_dumb(&f, 1, 1);
  f.soft = 1;
  YK_DEVICE(f.g, "/gpu:0") i = yk_exp(f.g, input(&f, "x"));
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, i, "CPU:0");
  fixture_close(&f);
  open_dumb(&f, 1, 1);
  yk_value unasked = yk_exp(f.g, input(&f, "x"));
  CHECK_OK(place(&f, dev, NULL));
  check_where(&f, dev, unasked, "CPU:0");              /* without a request: a device that can, no error */
  fixture_close(&f);
}

/* One member without a kernel moves them all, with one line. */
static void test_group_moves(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  char *moves;
  yk_value head, b = { 0 }, c = { 0 };
  (void)state;
  open_dumb(&f, 1, 1);
  f.soft = 1;
  YK_DEVICE(f.g, "/gpu:0") head = yk_neg(yk_named(f.g, "head"), input(&f, "x"));
  YK_COLOCATE(f.g, head) {
    b = yk_exp(yk_named(f.g, "b"), head);
    c = yk_neg(yk_named(f.g, "c"), b);
  }
  CHECK_OK(place(&f, dev, &moves));
  check_where(&f, dev, head, "CPU:0");
  check_where(&f, dev, b, "CPU:0");
  check_where(&f, dev, c, "CPU:0");
  CHECK_INT(lines(moves), 1);
  WORDS(moves, "soft placement: 'b' (Exp, ", "and 2 more that must sit together ask for /device:GPU:0", "they run on ", "CPU:0");
  yk_free(moves);
  f.soft = 0;
  REFUSED(&f, YK_EUNSUPPORTED, "'b' (Exp, ", "sits with 2 others: 'head' (Neg, asks for /device:GPU:0)", "'c' (Neg");
  fixture_close(&f);
}

/* Groups that move alike are told in one line, others in lines of their own. */
static void test_report(void **state) {
  yk_fixture f;
  uint16_t dev[64];
  char *moves;
  yk_value a, b;
  (void)state;
  fixture_open(&f, "null", 1);
  f.soft = 1;
  YK_DEVICE(f.g, "/gpu:5") {
    yk_value x = input(&f, "x");
    for (int i = 0; i < 10; i++) x = yk_exp(f.g, x);
  }
  YK_DEVICE(f.g, "/gpu:6") (void)input(&f, "y");
  CHECK_OK(place(&f, dev, &moves));
  CHECK_INT(lines(moves), 2);
  WORDS(moves, "'x' (Placeholder, ", "and 10 more ask for /device:GPU:5, and there is no such device; they run on ", "GPU:0",
        "'y' (Placeholder, ", "asks for /device:GPU:6");
  yk_free(moves);
  fixture_close(&f);
  fixture_open(&f, "null", 2);
  f.soft = 1;
  YK_DEVICE(f.g, "/gpu:0") a = input(&f, "a");
  YK_DEVICE(f.g, "/gpu:1") b = input(&f, "b");
  YK_COLOCATE(f.g, a) YK_COLOCATE(f.g, b) (void)input(&f, "c");
  CHECK_OK(place(&f, dev, &moves));
  CHECK_INT(lines(moves), 1);
  WORDS(moves, "'a' (Placeholder, ", "and 2 more that must sit together ask for /device:GPU:0 and /device:GPU:1; they run on ", "GPU:0");
  check_where(&f, dev, b, "GPU:0");
  yk_free(moves);
  fixture_close(&f);
}

/* The notes of moved nodes are in the plan; a strict compilation refuses them. */
static void test_strict(void **state) {
  yk_fixture f;
  yk_desc d = { .dtype = YK_F32, .rank = 2, .dim = { 2, 3 } };
  yk_value x, y;
  (void)state;
  open_dumb(&f, 1, 1);
  x = input(&f, "x");
  YK_DEVICE(f.g, "/gpu:0") y = yk_exp(yk_named(f.g, "y"), x);
  f.soft = 1;
  CHECK_OK(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL));
  f.strict = 1;
  CHECK_CODE(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL), YK_EUNSUPPORTED, "no kernel for its group");
  fixture_close(&f);
}

/* Where no device has a kernel, the step is refused when it is compiled, in the same words. */
static void test_no_kernel_anywhere(void **state) {
  yk_fixture f;
  yk_desc d = { .dtype = YK_F32, .rank = 2, .dim = { 2, 3 } };
  yk_value x, y;
  (void)state;
  open_dumb(&f, 1, 1);
  f.devices->at[0].driver = &dumb;                     /* now both are */
  x = input(&f, "x");
  y = yk_exp(yk_named(f.g, "y"), x);
  yk_error_clear();
  CHECK_INT(fixture_compile(&f, 1, &x, &d, 1, &y, 0, NULL), YK_EUNSUPPORTED);
  WORDS(yk_error_message(), "y (Exp)", "test_place.c:", "cannot run on /job:localhost/replica:0/task:0/device:GPU:0: no kernel", "Devices: ",
        "device:CPU:0", "'yoke ops'");
  yk_error_clear();
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_preferences), cmocka_unit_test(test_sources), cmocka_unit_test(test_variables),
    cmocka_unit_test(test_variables_stay), cmocka_unit_test(test_absent), cmocka_unit_test(test_conflict),
    cmocka_unit_test(test_host_only),     cmocka_unit_test(test_missing_kernel), cmocka_unit_test(test_group_moves), cmocka_unit_test(test_report),
    cmocka_unit_test(test_strict), cmocka_unit_test(test_no_kernel_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
