/*
 * Attribute structs as data, and ports: ranges, text, equality, hash, counts and dtypes of inputs. The ops here are made
 * up, one for each kind of field and port.
 */
#include "support/check.h"
#include <yoke/tensor.h>
#include "base/error.h"
#include "op/registry.h"
#include "tensor/desc.h"

typedef struct attrs {
  uint32_t n;
  int32_t flag, padding, dtype, stride[2];
  double rate;
  int64_t dim[4];
  uint64_t seed;
  const char *message;
  const void *value;
} attrs;

#define FIELD(f, k, n, d, lo, hi) { #f, k, offsetof(attrs, f), n, d, lo, hi }
static const yk_attr table[] = {
  FIELD(n, YK_INT, 1, 0, 0, 3), FIELD(flag, YK_FLAG, 1, 0, 0, 0), FIELD(padding, YK_ENUM, 1, 0, 0, 2),
  FIELD(dtype, YK_ENUM, 1, 0, 0, YK_NDTYPES - 1), FIELD(stride, YK_INTS, 2, 1, 1, 100), FIELD(rate, YK_REAL, 1, 0.5, 0.1, 1),
  FIELD(dim, YK_DIMS, 4, 0, -1, 1e12), FIELD(seed, YK_SEED, 1, 0, 0, 0), FIELD(message, YK_STRING, 1, 0, 0, 0),
  FIELD(value, YK_POINTER, 1, 0, 0, 0), { 0 },
};

static const yk_port pair[] = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, 0, 1 }, { 0 } };
static const yk_port out[] = { { "y", YK_ANYTYPE, 0, 0 }, { 0 } };
static yk_code first(const yk_infer *c) { c->out[0] = c->in[0]; return YK_OK; }
static yk_code reject(const yk_infer *c) { (void)c; return YK_FAIL(EINVAL, "shapes differ"); }

#define MADE(title, trait, ports) { .name = "made", .label = title, .attr_bytes = sizeof(attrs), .attrs = table, .traits = trait, \
                                    .in = ports, .out = out, .infer = first }
static const yk_op plain = MADE("Made", 0, pair);

static void test_ranges(void **state) {
  (void)state;
  CHECK_OK(yk__attrs_check(&plain, NULL));
  CHECK_OK(yk__attrs_check(&plain, &(attrs){ .n = 3, .flag = 1, .stride = { 1, 100 }, .rate = 0.1, .dim = { -1, 7 }, .seed = 9 }));
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .n = 4 }), YK_EINVAL, "Made: attribute n is 4, expected 0 to 3");
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .flag = 2 }), YK_EINVAL, "attribute flag is 2, expected 0 to 1");
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .padding = -1 }), YK_EINVAL, "attribute padding is -1");
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .stride = { 2, -2 } }), YK_EINVAL, "attribute stride[1] is -2, expected 1 to 100");
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .rate = 0.05 }), YK_EINVAL, "attribute rate is 0.05");
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .rate = NAN }), YK_EINVAL, "attribute rate is not a number");
  CHECK_CODE(yk__attrs_check(&plain, &(attrs){ .dim = { 1, -2 } }), YK_EINVAL, "attribute dim[1] is -2");
}

static void check_text(const attrs *a, const char *want) {
  char got[256];
  yk__attrs_text(&plain, a, got, sizeof got);
  if (strcmp(got, want)) fail_msg("text is \"%s\", expected \"%s\"", got, want);
}

static void test_text(void **state) {
  (void)state;
  char small[8];
  check_text(NULL, "");
  check_text(&(attrs){ .stride = { 1, 1 }, .rate = 0.5 }, "");
  check_text(&(attrs){ .n = 2, .flag = 1, .padding = YK_VALID, .dtype = YK_BF16, .stride = { 2, 2 }, .rate = 0.25,
                       .dim = { 3, 0, -1 }, .seed = 7, .message = "why", .value = "x" },
             "n=2 flag=1 padding=VALID dtype=bf16 stride=2,2 rate=0.25 dim=3,0,-1 seed=7 message=\"why\"");
  assert_string_equal(yk__attrs_text(&plain, &(attrs){ .n = 2, .flag = 1 }, small, sizeof small), "n=2 fla");
}

static void test_equality(void **state) {
  (void)state;
  char one[] = "same", two[] = "same";
  attrs a = { .n = 2, .rate = 0.25, .message = one }, b = { .n = 2, .rate = 0.25, .message = two }, c = b;
  c.dim[3] = 1;
  assert_true(yk__attrs_equal(&plain, &a, &b));
  assert_true(yk__attrs_hash(&plain, &a, 1) == yk__attrs_hash(&plain, &b, 1));
  assert_true(yk__attrs_hash(&plain, &a, 1) != yk__attrs_hash(&plain, &a, 2));
  assert_false(yk__attrs_equal(&plain, &a, &c));
  assert_true(yk__attrs_hash(&plain, &a, 1) != yk__attrs_hash(&plain, &c, 1));
  assert_true(yk__attrs_equal(&plain, NULL, &(attrs){ 0 }));
  b.message = NULL;
  assert_false(yk__attrs_equal(&plain, &a, &b));
}

static const yk_desc f = { .dtype = YK_F32, .rank = 1, .dim = { 4 } }, d = { .dtype = YK_F64, .rank = 1, .dim = { 4 } },
                     i = { .dtype = YK_I32 }, none = { 0 };

static yk_code infer(const yk_op *op, const attrs *a, const yk_desc *in, uint16_t nin) {
  yk_desc got[2];
  return yk__op_infer(op, a, in, nin, got, 1);
}
#define IN(...) (const yk_desc[]){ __VA_ARGS__ }, (uint16_t)(sizeof((yk_desc[]){ __VA_ARGS__ }) / sizeof(yk_desc))

static void test_single_ports(void **state) {
  (void)state;
  CHECK_OK(infer(&plain, NULL, IN(f, f)));
  CHECK_CODE(infer(&plain, NULL, IN(f)), YK_EINVAL, "Made takes 2 inputs, got 1");
  CHECK_CODE(infer(&plain, NULL, IN(f, f, f)), YK_EINVAL, "Made takes 2 inputs, got 3");
  CHECK_CODE(infer(&plain, NULL, IN(i, f)), YK_EINVAL, "input 0 (a) is i32[], expected dtype f32 f64 f16 bf16");
  CHECK_CODE(infer(&plain, NULL, IN(f, d)), YK_EINVAL, "input 1 (b) is f64[4], expected the dtype of input 0 (a), which is f32[4]");
  CHECK_CODE(infer(&plain, NULL, IN(f, none)), YK_EINVAL, "input 1 (b) is an operation without a value");
  yk_op rejecting = plain;
  rejecting.infer = reject;
  CHECK_CODE(infer(&rejecting, NULL, IN(f, f)), YK_EINVAL, "Made: shapes differ");
  static const yk_port with_option[] = { { "a", YK_FLOATS, 0, 0 }, { "b", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { 0 } };
  static const yk_op optional = MADE("Opt", 0, with_option);
  CHECK_OK(infer(&optional, NULL, IN(f)));
  CHECK_OK(infer(&optional, NULL, IN(f, none)));
  CHECK_CODE(infer(&optional, NULL, IN(f, f, f)), YK_EINVAL, "Opt takes 1 to 2 inputs, got 3");
}

static const char *port_name(const yk_op *op, const attrs *a, uint16_t n, uint16_t k) {
  const yk_port *p = yk__op_in_port(op, a, n, k);
  return p ? p->name : "-";
}

static void test_variadic_ports(void **state) {
  (void)state;
  static const yk_port list[] = { { "dy", YK_FLOATS, 0, 0 }, { "x", YK_FLOATS, YK_PORT_VARIADIC, 2 }, { 0 } };
  static const yk_port groups[] = { { "w", YK_FLOATS, YK_PORT_VARIADIC, 0 }, { "g", YK_FLOATS, YK_PORT_VARIADIC, 1 },
                                    { "lr", YK_FLOATS, 0, 1 }, { 0 } };
  static const yk_op concat = MADE("Cat", 0, list), update = MADE("Upd", YK_MERGE, groups);
  CHECK_OK(infer(&concat, NULL, IN(f, d, d, d)));
  CHECK_CODE(infer(&concat, NULL, IN(f)), YK_EINVAL, "Cat takes 1 input");
  CHECK_CODE(infer(&concat, NULL, IN(f, d, f)), YK_EINVAL, "input 2 (x) is f32[4], expected the dtype of input 1 (x)");
  assert_string_equal(port_name(&concat, NULL, 4, 0), "dy");
  assert_string_equal(port_name(&concat, NULL, 4, 3), "x");
  assert_string_equal(port_name(&concat, NULL, 4, 4), "-");
  CHECK_OK(infer(&update, NULL, IN(f, f, f)));                          /* n 0 = one group */
  CHECK_OK(infer(&update, &(attrs){ .n = 2 }, IN(f, f, f, f, f)));
  CHECK_CODE(infer(&update, &(attrs){ .n = 2 }, IN(f, f, f)), YK_EINVAL, "Upd takes");
  CHECK_CODE(infer(&update, &(attrs){ .n = 2 }, IN(f, f, f, d, f)), YK_EINVAL, "input 3 (g) is f64[4]");
  assert_string_equal(port_name(&update, &(attrs){ .n = 2 }, 5, 1), "w");
  assert_string_equal(port_name(&update, &(attrs){ .n = 2 }, 5, 2), "g");
  assert_string_equal(port_name(&update, &(attrs){ .n = 2 }, 5, 4), "lr");
}

static void test_outputs(void **state) {
  (void)state;
  static const yk_port many[] = { { "y", YK_ANYTYPE, YK_PORT_VARIADIC, 0 }, { 0 } }, nothing[] = { { 0 } };
  yk_op op = plain;
  CHECK_INT(yk__op_nout(&op, NULL), 1);
  op.out = nothing;
  CHECK_INT(yk__op_nout(&op, NULL), 1);        /* the handle of the operation */
  op.out = many;
  CHECK_INT(yk__op_nout(&op, &(attrs){ .n = 3 }), 3);
  static const yk_attr source[] = { { "source", YK_POINTER, offsetof(yk_dequeue_attrs, source), 1, 0, 0, 0 }, { 0 } };
  op.attrs = source;
  yk_source s = { .ncomponents = 2 };
  CHECK_INT(yk__op_nout(&op, &(yk_dequeue_attrs){ .source = &s }), 2);
  op.out = out;
  yk_desc got[2];
  CHECK_CODE(yk__op_infer(&op, NULL, IN(f, f), got, 2), YK_EINTERNAL, "no port for output 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ranges), cmocka_unit_test(test_text), cmocka_unit_test(test_equality),
    cmocka_unit_test(test_single_ports), cmocka_unit_test(test_variadic_ports), cmocka_unit_test(test_outputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
