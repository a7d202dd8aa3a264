/*
 * test_math_ref.c - references of the basic ops against numbers worked out by hand.
 *
 * The references are the truth for every kernel, so nothing may check them but definitions: each row gives inputs and
 * the outputs that NumPy's or TensorFlow's definition of the op has for them. The text form keeps a row on a line.
 */
#include "support/check.h"
#include "support/opcase.h"
#include "device/device.h"
#include "op/registry.h"
#include "tensor/desc.h"

enum { MOST_VALUES = 64, MOST_OUT = 4 };

typedef struct row {
  const yk_op *op;
  const char *shapes;
  const void *attrs;
  double in[3 * MOST_VALUES / 2];      /* one input after the other; shape-only ones have none */
  double out[MOST_VALUES];             /* one output after the other */
} row;

#define A(type, ...) (&(const type){ __VA_ARGS__ })
#define V(...) { __VA_ARGS__ }

static yk_code evaluate(const row *r, opcase *c, yk_desc *dout, uint16_t nout, double (*out)[MOST_VALUES]) {
  double storage[OPCASE_MOST][MOST_VALUES];
  const double *in[OPCASE_MOST] = { NULL };
  double *outs[MOST_OUT];
  size_t at = 0;
  YK_TRY(yk__op_infer(r->op, r->attrs, c->in, c->n, dout, nout));
  for (uint16_t i = 0; i < c->n; i++) {
    const yk_port *port = yk__op_in_port(r->op, r->attrs, c->n, i);
    if (port->flags & YK_PORT_SHAPE) continue;
    int64_t n = yk__desc_count(&c->in[i]);
    for (int64_t k = 0; k < n; k++) storage[i][k] = r->in[at++];
    in[i] = storage[i];
  }
  for (uint16_t k = 0; k < nout; k++) outs[k] = out[k];
  yk_ref ref = { .in = in, .out = outs, .din = c->in, .dout = dout, .nin = c->n, .nout = nout, .attrs = r->attrs, .host = &yk__host };
  return r->op->ref(&ref);
}

static void run_row(const row *r) {
  opcase c;
  yk_desc dout[MOST_OUT];
  double out[MOST_OUT][MOST_VALUES];
  uint16_t nout = yk__op_nout(r->op, r->attrs);
  size_t at = 0;
  CHECK_OK(opcase_parse(r->shapes, YK_F64, &c));
  if (evaluate(r, &c, dout, nout, out) != YK_OK) fail_msg("%s(%s): %s", r->op->name, r->shapes, yk_error_message());
  for (uint16_t k = 0; k < nout; k++) {
    int64_t n = yk__desc_count(&dout[k]);
    for (int64_t i = 0; i < n; i++, at++) {
      double got = out[k][i], want = r->out[at];
      if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= 1e-9 * (1 + fabs(want))) continue;
      fail_msg("%s(%s): output %u[%lld] is %.15g, expected %.15g", r->op->name, r->shapes, k, (long long)i, got, want);
    }
  }
}

#define ROW(op, ...) run_row(&(const row){ &yk__op_##op, __VA_ARGS__ })

static void one_input(void **state) {
  (void)state;
  ROW(neg, "T[3]", NULL, V(1, -2, 0), V(-1, 2, 0));
  ROW(abs, "T[3]", NULL, V(1, -2, 0), V(1, 2, 0));
  ROW(sign, "T[4]", NULL, V(3, -2, 0, NAN), V(1, -1, 0, NAN));
  ROW(square, "T[2]", NULL, V(3, -0.5), V(9, 0.25));
  ROW(sqrt, "T[3]", NULL, V(9, 2, 0), V(3, 1.4142135623730951, 0));
  ROW(rsqrt, "T[2]", NULL, V(4, 0), V(0.5, INFINITY));
  ROW(reciprocal, "T[2]", NULL, V(4, -0.5), V(0.25, -2));
  ROW(exp, "T[2]", NULL, V(1, 0), V(2.718281828459045, 1));
  ROW(log, "T[2]", NULL, V(2.718281828459045, 1), V(1, 0));
  ROW(sin, "T[1]", NULL, V(0.5235987755982988), V(0.5));
  ROW(cos, "T[1]", NULL, V(1.0471975511965976), V(0.5));
  ROW(floor, "T[3]", NULL, V(1.5, -1.5, 2), V(1, -2, 2));
  ROW(ceil, "T[3]", NULL, V(1.5, -1.5, 2), V(2, -1, 2));
  ROW(clip, "T[4]", A(yk_clip_attrs, -1, 2), V(-3, -1, 0.5, 7), V(-1, -1, 0.5, 2));
  ROW(logical_not, "bool[2]", NULL, V(0, 1), V(1, 0));
  ROW(zeros_like, "T[2]", NULL, V(0), V(0, 0));
  ROW(ones_like, "T[2]", NULL, V(0), V(1, 1));
  ROW(identity, "T[2]", NULL, V(5, 6), V(5, 6));
}

static void casts(void **state) {
  (void)state;
  ROW(cast, "T[7]", A(yk_cast_attrs, YK_I32), V(1.9, -1.9, 3e9, -3e9, NAN, INFINITY, 0.5),
      V(1, -1, 2147483647, -2147483648.0, 0, 2147483647, 0));
  ROW(cast, "T[4]", A(yk_cast_attrs, YK_U8), V(255.9, 256, -1, 7.5), V(255, 255, 0, 7));
  ROW(cast, "T[3]", A(yk_cast_attrs, YK_BOOL), V(0, -0.1, 7), V(0, 1, 1));
  ROW(cast, "bool[2]", A(yk_cast_attrs, YK_F32), V(0, 1), V(0, 1));
}

static void activations(void **state) {
  (void)state;
  ROW(relu, "T[3]", NULL, V(-1, 0, 2), V(0, 0, 2));
  ROW(relu6, "T[4]", NULL, V(-1, 3, 6, 9), V(0, 3, 6, 6));
  ROW(leaky_relu, "T[2]", NULL, V(-1, 2), V(-0.2, 2));
  ROW(leaky_relu, "T[2]", A(yk_alpha_attrs, 0.5), V(-1, 2), V(-0.5, 2));
  ROW(elu, "T[2]", NULL, V(-1, 2), V(-0.6321205588285577, 2));
  ROW(selu, "T[2]", NULL, V(-1, 2), V(-1.1113307378125625, 2.101401974710961));
  ROW(gelu, "T[3]", NULL, V(-1, 0, 1), V(-0.15865525393145707, 0, 0.8413447460685429));
  ROW(gelu, "T[2]", A(yk_gelu_attrs, 1), V(1, -1), V(0.8411919906082768, -0.15880800939172324));
  ROW(silu, "T[2]", NULL, V(1, -1), V(0.7310585786300049, -0.2689414213699951));
  ROW(tanh, "T[2]", NULL, V(1, 0), V(0.7615941559557649, 0));
  ROW(sigmoid, "T[4]", NULL, V(0, 1, 1000, -1000), V(0.5, 0.7310585786300049, 1, 0));
  ROW(softplus, "T[4]", NULL, V(0, 1, 1000, -1000), V(0.6931471805599453, 1.3132616875182228, 1000, 0));
}

/* At kinks and poles, where differences say nothing. */
static void gradients_at_kinks(void **state) {
  (void)state;
  ROW(relu_grad, "T[3]; T[3]", NULL, V(5, 5, 5, 0, 2, 0), V(0, 5, 0));
  ROW(relu6_grad, "T[3]; T[3]", NULL, V(5, 5, 5, 0, 3, 6), V(0, 5, 0));
  ROW(leaky_relu_grad, "T[3]; T[3]", NULL, V(5, 5, 5, -1, 0, 1), V(1, 1, 5));
  ROW(elu_grad, "T[2]; T[2]", NULL, V(4, 4, -0.5, 2), V(2, 4));
  ROW(clip_grad, "T[4]; T[4]", A(yk_clip_attrs, -1, 1), V(5, 5, 5, 5, -1, 1, 1.5, 0), V(5, 5, 0, 5));
  ROW(sqrt_grad, "T[3]; T[3]", NULL, V(0, 1, 2, 0, 0, 4), V(0, INFINITY, 0.25));
  ROW(rsqrt_grad, "T[2]; T[2]", NULL, V(0, 2, INFINITY, 3), V(0, -27));
  ROW(reciprocal_grad, "T[2]; T[2]", NULL, V(0, 2, INFINITY, 3), V(0, -18));
  ROW(log_grad, "T[3]; T[3]", NULL, V(0, 1, 6, 0, 0, 3), V(0, INFINITY, 2));
  ROW(pow_grad_x, "T[3]; T[3]; T[3]", NULL, V(0, 1, 1, 0, 2, -3, -1, 3, 2), V(0, 12, -6));
  ROW(pow_grad_y, "T[3]; T[3]; T[3]", NULL, V(1, 1, 1, -2, 0, 2.718281828459045, 4, 0, 5), V(0, 0, 5));
}

static void two_inputs(void **state) {
  (void)state;
  ROW(add, "T[2,3]; T[3]", NULL, V(1, 2, 3, 4, 5, 6, 10, 20, 30), V(11, 22, 33, 14, 25, 36));
  ROW(sub, "T[2,1]; T[1,2]", NULL, V(1, 2, 10, 20), V(-9, -19, -8, -18));
  ROW(mul, "T[]; T[2]", NULL, V(3, 4, 5), V(12, 15));
  ROW(div, "T[3]; T[3]", NULL, V(1, 1, 0, 4, 0, 0), V(0.25, INFINITY, NAN));
  ROW(div_no_nan, "T[3]; T[3]", NULL, V(1, 1, 0, 4, 0, 0), V(0.25, 0, 0));
  ROW(pow, "T[3]; T[3]", NULL, V(2, -2, 9, 10, 3, 0.5), V(1024, -8, 3));
  ROW(maximum, "T[3]; T[3]", NULL, V(1, 5, 2, 3, 4, 2), V(3, 5, 2));
  ROW(minimum, "T[3]; T[3]", NULL, V(1, 5, 2, 3, 4, 2), V(1, 4, 2));
  ROW(squared_difference, "T[2]; T[2]", NULL, V(1, 5, 3, 4), V(4, 1));
  ROW(equal, "T[3]; T[3]", NULL, V(1, 2, NAN, 1, 3, NAN), V(1, 0, 0));
  ROW(not_equal, "T[3]; T[3]", NULL, V(1, 2, NAN, 1, 3, NAN), V(0, 1, 1));
  ROW(less, "T[3]; T[3]", NULL, V(1, 2, 3, 2, 2, 2), V(1, 0, 0));
  ROW(less_equal, "T[3]; T[3]", NULL, V(1, 2, 3, 2, 2, 2), V(1, 1, 0));
  ROW(greater, "T[3]; T[3]", NULL, V(1, 2, 3, 2, 2, 2), V(0, 0, 1));
  ROW(greater_equal, "T[3]; T[3]", NULL, V(1, 2, 3, 2, 2, 2), V(0, 1, 1));
  ROW(logical_and, "bool[4]; bool[4]", NULL, V(0, 0, 1, 1, 0, 1, 0, 1), V(0, 0, 0, 1));
  ROW(logical_or, "bool[4]; bool[4]", NULL, V(0, 0, 1, 1, 0, 1, 0, 1), V(0, 1, 1, 1));
  ROW(where, "bool[2,1]; T[2]; T[]", NULL, V(1, 0, 7, 8, -1), V(7, 8, -1, -1));
  ROW(add_n, "T[2]; T[2]; T[2]", NULL, V(1, 2, 10, 20, 100, 200), V(111, 222));
  ROW(sum_to, "T[2,3]; T[3]", NULL, V(1, 2, 3, 4, 5, 6), V(5, 7, 9));
  ROW(sum_to, "T[2,3]; T[2,1]", NULL, V(1, 2, 3, 4, 5, 6), V(6, 15));
  ROW(broadcast_to, "T[2,1]; T[2,3]", NULL, V(1, 2), V(1, 1, 1, 2, 2, 2));
}

static void reductions(void **state) {
  (void)state;
  ROW(reduce_sum, "T[2,3]", NULL, V(1, 2, 3, 4, 5, 6), V(21));
  ROW(reduce_sum, "T[2,3]", A(yk_reduce_attrs, .naxes = 1, .axis = { 0 }), V(1, 2, 3, 4, 5, 6), V(5, 7, 9));
  ROW(reduce_sum, "T[0,2]", A(yk_reduce_attrs, .naxes = 1, .axis = { 0 }), V(0), V(0, 0));
  ROW(reduce_mean, "T[2,3]", A(yk_reduce_attrs, .naxes = 1, .axis = { -1 }, .keepdims = 1), V(1, 2, 3, 4, 5, 6), V(2, 5));
  ROW(reduce_mean, "T[0]", NULL, V(0), V(NAN));
  ROW(reduce_min, "T[2,3]", A(yk_reduce_attrs, .naxes = 1, .axis = { 1 }), V(3, 1, 2, 4, 6, 5), V(1, 4));
  ROW(reduce_max, "T[3]", NULL, V(-3, -1, -2), V(-1));
  ROW(reduce_max, "T[0]", NULL, V(0), V(-INFINITY));
  ROW(reduce_prod, "T[4]", NULL, V(1, 2, 3, 4), V(24));
  ROW(reduce_prod, "T[0]", NULL, V(0), V(1));
  ROW(reduce_prod_grad, "T[]; T[3]", NULL, V(2, 0, 3, 4), V(24, 0, 0));
  ROW(reduce_prod_grad, "T[]; T[3]", NULL, V(2, 0, 3, 0), V(0, 0, 0));
  ROW(reduce_grad, "T[2]; T[2,3]", A(yk_reduce_attrs, .naxes = 1, .axis = { 1 }, .mean = 1), V(3, 6), V(1, 1, 1, 2, 2, 2));
  ROW(reduce_grad, "T[3]; T[2,3]", A(yk_reduce_attrs, .naxes = 1, .axis = { 0 }), V(1, 2, 3), V(1, 2, 3, 1, 2, 3));
  ROW(argmax, "T[2,3]", A(yk_arg_attrs, 1, 0), V(1, 5, 5, 7, 7, 2), V(1, 0));
  ROW(argmin, "T[2,3]", A(yk_arg_attrs, 0, 0), V(1, 5, 5, 7, 5, 2), V(0, 0, 1));
  ROW(l2_loss, "T[2,2]", NULL, V(1, 2, 3, 4), V(15));
}

static void shapes(void **state) {
  (void)state;
  ROW(shape, "T[4,7,0]", NULL, V(0), V(4, 7, 0));
  ROW(size, "T[4,7]", NULL, V(0), V(28));
  ROW(dim, "T[4,7]", A(yk_axis_attrs, -1), V(0), V(7));
  ROW(transpose, "T[2,3]", NULL, V(1, 2, 3, 4, 5, 6), V(1, 4, 2, 5, 3, 6));
  ROW(transpose, "T[2,1,3]", A(yk_transpose_attrs, 3, { 2, 0, 1 }), V(1, 2, 3, 4, 5, 6), V(1, 4, 2, 5, 3, 6));
  ROW(reshape, "T[2,2]", A(yk_reshape_attrs, 1, { -1 }), V(1, 2, 3, 4), V(1, 2, 3, 4));
}

static void movement(void **state) {
  (void)state;
  ROW(concat, "T[2,2]; T[2,1]", A(yk_axis_attrs, 1), V(1, 2, 3, 4, 8, 9), V(1, 2, 8, 3, 4, 9));
  ROW(concat_grad, "T[2,3]; T[2,2]; T[2,1]", A(yk_concat_grad_attrs, 1, 1), V(1, 2, 8, 3, 4, 9), V(8, 9));
  ROW(split, "T[2,3]", A(yk_split_attrs, 1, 2, { 1, 2 }), V(1, 2, 3, 4, 5, 6), V(1, 4, 2, 3, 5, 6));
  ROW(slice, "T[2,3]", A(yk_slice_attrs, 2, { 0, 1 }, { -1, 2 }), V(1, 2, 3, 4, 5, 6), V(2, 3, 5, 6));
  ROW(slice_grad, "T[2]; T[4]", A(yk_slice_attrs, 1, { 1 }, { 2 }), V(5, 6), V(0, 5, 6, 0));
  ROW(slice_like, "T[4]; T[2]", A(yk_slice_attrs, 1, { 1 }, { 0 }), V(1, 2, 3, 4), V(2, 3));
  ROW(pad, "T[2]", A(yk_pad_attrs, 1, { 1 }, { 2 }, 9), V(1, 2), V(9, 1, 2, 9, 9));
  ROW(gather, "T[3,2]; i32[3]", NULL, V(1, 2, 3, 4, 5, 6, 2, 0, 2), V(5, 6, 1, 2, 5, 6));
  ROW(gather, "T[2,3]; i32[2]", A(yk_axis_attrs, 1), V(1, 2, 3, 4, 5, 6, 2, 0), V(3, 1, 6, 4));
  ROW(gather_grad, "T[3]; i32[3]; T[4]", NULL, V(1, 2, 3, 2, 0, 2), V(2, 0, 4, 0));
  ROW(one_hot, "i32[3]", A(yk_one_hot_attrs, .depth = 3), V(1, -1, 5), V(0, 1, 0, 0, 0, 0, 0, 0, 0));
  ROW(one_hot, "i32[1]", A(yk_one_hot_attrs, .depth = 3, .on = 5, .off = 2), V(2), V(2, 2, 5));
  ROW(tile, "T[1,2]", A(yk_tile_attrs, 2, { 2, 2 }), V(1, 2), V(1, 2, 1, 2, 1, 2, 1, 2));
  ROW(tile_grad, "T[4]; T[2]", A(yk_tile_attrs, 1, { 2 }), V(1, 2, 10, 20), V(11, 22));
  ROW(top_k, "T[2,4]", A(yk_top_k_attrs, 2), V(1, 4, 4, 2, 9, 0, 3, 3), V(4, 4, 9, 3, 1, 2, 0, 2));
  ROW(top_k_grad, "T[1,2]; i32[1,2]; T[1,4]", A(yk_top_k_attrs, 2), V(5, 6, 2, 0), V(6, 0, 5, 0));
  ROW(in_top_k, "T[5,3]; i32[5]", A(yk_top_k_attrs, 1), V(1, 2, 3, 3, 3, 1, 1, NAN, 0, 1, 2, 3, 1, 2, 3, 2, 1, 0, 3, 1),
      V(1, 1, 0, 0, 0));
  ROW(in_top_k, "T[2,3]; i64[2]", A(yk_top_k_attrs, 2), V(1, 2, 3, 1, 2, 3, 1, 0), V(1, 0));
  ROW(batch_shard, "T[5]", A(yk_shard_attrs, 0, 2), V(1, 2, 3, 4, 5), V(1, 2, 3));
  ROW(batch_shard, "T[5]", A(yk_shard_attrs, 1, 2), V(1, 2, 3, 4, 5), V(4, 5));
  ROW(batch_shard_grad, "T[2]; T[5]", A(yk_shard_attrs, 1, 2), V(8, 9), V(0, 0, 0, 8, 9));
}

/* Updates change their inputs in place. The numbers are TensorFlow's for w = 1 and a gradient of 0.5 in three steps. */
static void updates(void **state) {
  (void)state;
  const yk_desc scalar[5] = { { .dtype = YK_F64 }, { .dtype = YK_F64 }, { .dtype = YK_F64 }, { .dtype = YK_F64 },
                              { .dtype = YK_F64 } };
  const double lr = 0.1, m = 0.9, g = 0.5, plain[] = { 0.95, 0.855, 0.7195 }, nesterov[] = { 0.905, 0.7695, 0.59755 };
  for (int form = 0; form < 2; form++) {
    double w = 1, a = 0;
    for (int step = 0; step < 3; step++) {
      yk_ref r = { .in = (const double *const[]){ &w, &a, &g, &lr, &m }, .din = scalar, .nin = 5,
                   .attrs = A(yk_update_attrs, .n = 1, .nesterov = form) };
      CHECK_OK(yk__op_momentum_update.ref(&r));
      CHECK_NEAR(w, form ? nesterov[step] : plain[step], 1e-12);
    }
  }
  double w = 1, s = 1, v = 3, decay = 0.75, out = 0;
  yk_ref sgd = { .in = (const double *const[]){ &w, &g, &lr }, .din = scalar, .nin = 3 };
  CHECK_OK(yk__op_sgd_update.ref(&sgd));
  CHECK_NEAR(w, 0.95, 1e-12);
  yk_ref ema = { .in = (const double *const[]){ &s, &v, &decay }, .din = scalar, .nin = 3 };
  CHECK_OK(yk__op_ema_update.ref(&ema));
  CHECK_NEAR(s, 1.5, 1e-12);
  yk_ref assign = { .in = (const double *const[]){ &w, &v }, .out = (double *const[]){ &out }, .din = scalar, .dout = scalar,
                    .nin = 2, .nout = 1 };
  CHECK_OK(yk__op_assign_sub.ref(&assign));
  CHECK_NEAR(w, -2.05, 1e-12);
  CHECK_NEAR(out, -2.05, 1e-12);
  CHECK_OK(yk__op_assign_add.ref(&assign));
  CHECK_NEAR(w, 0.95, 1e-12);
  CHECK_OK(yk__op_assign.ref(&assign));
  CHECK_NEAR(w, 3, 0);
}

static yk_code evaluate_row(const row *r) {
  opcase c;
  yk_desc dout[MOST_OUT];
  double out[MOST_OUT][MOST_VALUES];
  YK_TRY(opcase_parse(r->shapes, YK_F64, &c));
  return evaluate(r, &c, dout, yk__op_nout(r->op, r->attrs), out);
}

static void failures_tell(void **state) {
  (void)state;
  row range = { &yk__op_gather, "T[3]; i32[2]", NULL, { 1, 2, 3, 0, 3 }, { 0 } };
  CHECK_CODE(evaluate_row(&range), YK_EINVAL, "index 3 (element 1) is outside [0, 3)");
  row negative = { &yk__op_gather, "T[3]; i32[2]", NULL, { 1, 2, 3, -1, 0 }, { 0 } };
  CHECK_CODE(evaluate_row(&negative), YK_EINVAL, "index -1 (element 0)");
  row bad = { &yk__op_check_numerics, "T[3]", A(yk_check_attrs, "the loss"), { 1, NAN, 2 }, { 0 } };
  CHECK_CODE(evaluate_row(&bad), YK_EINVAL, "element 1 is NaN: the loss");
  row large = { &yk__op_check_numerics, "T[2]", NULL, { 1, INFINITY }, { 0 } };
  CHECK_CODE(evaluate_row(&large), YK_EINVAL, "infinite");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_input),  cmocka_unit_test(casts),      cmocka_unit_test(activations), cmocka_unit_test(gradients_at_kinks),
    cmocka_unit_test(two_inputs), cmocka_unit_test(reductions), cmocka_unit_test(shapes),      cmocka_unit_test(movement),
    cmocka_unit_test(updates),    cmocka_unit_test(failures_tell),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
