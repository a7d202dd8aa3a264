/*
 * test_math_infer.c - shapes of the basic ops: what comes out, and what is refused with which words.
 *
 * One table: op, inputs (-1 = not known yet), attributes, and either the outputs or a piece of the message. Driven
 * through yk__op_infer(), as the graph builder and the planner do it.
 */
#include "support/check.h"
#include "support/opcase.h"
#include "op/registry.h"
#include "tensor/desc.h"

typedef struct row { const yk_op *op; const char *in; const void *attrs; const char *out, *error; } row;

#define A(type, ...) (&(const type){ __VA_ARGS__ })
#define GIVES(op, in, attrs, out)   { &yk__op_##op, in, attrs, out, NULL }
#define REFUSES(op, in, attrs, why) { &yk__op_##op, in, attrs, NULL, why }

static char *outputs_text(const yk_desc *out, uint16_t n, char *buf, size_t bytes) {
  size_t at = 0;
  char one[YK__DESC_TEXT];
  buf[0] = 0;
  for (uint16_t k = 0; k < n; k++)
    at += (size_t)snprintf(buf + at, bytes - at, "%s%s", k ? "; " : "",
                           out[k].dtype == YK_NONE ? "op" : yk__desc_text(&out[k], one, sizeof one));
  return buf;
}

static yk_code infer_as(const row *r, yk_dtype t, char *text, size_t bytes) {
  opcase c;
  yk_desc out[16];
  uint16_t nout = yk__op_nout(r->op, r->attrs);
  YK_TRY(opcase_parse(r->in, t, &c));
  YK_TRY(yk__attrs_check(r->op, r->attrs));
  YK_TRY(yk__op_infer(r->op, r->attrs, c.in, c.n, out, nout));
  outputs_text(out, nout, text, bytes);
  return YK_OK;
}

static yk_code infer(const row *r, char *text, size_t bytes) { return infer_as(r, YK_F32, text, bytes); }

static void run_table(const row *table, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const row *r = &table[i];
    char text[512] = "";
    yk_code code = infer(r, text, sizeof text);
    if (r->error) {
      if (code != YK_EINVAL) fail_msg("%s(%s): got %s %s, expected EINVAL", r->op->name, r->in, yk_code_name(code), text);
      if (!strstr(yk_error_message(), r->error))
        fail_msg("%s(%s): message \"%s\" lacks \"%s\"", r->op->name, r->in, yk_error_message(), r->error);
      if (!strstr(yk_error_message(), r->op->label) && !strstr(yk_error_message(), r->op->name))
        fail_msg("%s(%s): message \"%s\" does not name the op", r->op->name, r->in, yk_error_message());
      yk_error_clear();
    } else {
      if (code != YK_OK) fail_msg("%s(%s): %s", r->op->name, r->in, yk_error_message());
      if (strcmp(text, r->out)) fail_msg("%s(%s): got %s, expected %s", r->op->name, r->in, text, r->out);
    }
  }
}

#define RUN(table) run_table(table, sizeof(table) / sizeof *(table))

static void sources(void **state) {
  (void)state;
  const row table[] = {
    GIVES(placeholder, "", A(yk_placeholder_attrs, .dtype = YK_F32, .rank = 2, .dim = { -1, 7 }), "f32[?,7]"),
    REFUSES(placeholder, "", A(yk_placeholder_attrs, .rank = 1, .dim = { 3 }), "dtype"),
    REFUSES(placeholder, "", A(yk_placeholder_attrs, .dtype = YK_F32, .rank = 9), "rank"),
    GIVES(variable, "", A(yk_variable_attrs, .dtype = YK_F16, .rank = 1, .dim = { 7 }), "f16[7]"),
    REFUSES(variable, "", A(yk_variable_attrs, .dtype = YK_F32, .rank = 1, .dim = { -1 }), "-1"),
    GIVES(run_counter, "", NULL, "i64[]"),
    REFUSES(constant, "", NULL, "no tensor"),
    GIVES(no_op, "", NULL, "op"),
    REFUSES(dequeue, "", NULL, "source"),
  };
  RUN(table);
}

static void variables(void **state) {
  (void)state;
  const row table[] = {
    GIVES(read_variable, "f32[4,7]", NULL, "f32[4,7]"),
    GIVES(assign, "i32[3]; i32[3]", NULL, "i32[3]"),
    GIVES(assign, "f32[3]; f32[-1]", NULL, "f32[3]"),
    REFUSES(assign, "f32[3]; f32[4]", NULL, "f32[4]"),
    REFUSES(assign, "f32[3]; f64[3]", NULL, "f64[3]"),
    REFUSES(assign_add, "bool[3]; bool[3]", NULL, "bool"),
    GIVES(sgd_update, "T[3]; T[3]; T[]", NULL, "op"),
    GIVES(sgd_update, "T[3]; T[4,5]; T[3]; T[4,5]; T[]", A(yk_update_attrs, .n = 2), "op"),
    REFUSES(sgd_update, "T[3]; T[4,5]; T[4,5]; T[3]; T[]", A(yk_update_attrs, .n = 2), "variable 0 is f32[3]"),
    REFUSES(sgd_update, "T[3]; T[3]; T[1]", NULL, "scalar"),
    REFUSES(sgd_update, "T[3]; T[3]; f64[]", NULL, "f64"),
    REFUSES(sgd_update, "i32[3]; i32[3]; i32[]", NULL, "i32"),
    GIVES(momentum_update, "T[3]; T[3]; T[3]; T[]; T[]", A(yk_update_attrs, .nesterov = 1), "op"),
    REFUSES(momentum_update, "T[3]; T[2]; T[3]; T[]; T[]", NULL, "f32[2]"),
    REFUSES(momentum_update, "T[3]; T[3]; T[3]; T[]", NULL, "inputs"),
    GIVES(ema_update, "T[3]; T[3]; T[]", NULL, "op"),
  };
  RUN(table);
}

static void elementwise(void **state) {
  (void)state;
  const row table[] = {
    GIVES(neg, "i32[3,-1]", NULL, "i32[3,?]"),
    REFUSES(exp, "i32[3]", NULL, "i32"),
    REFUSES(neg, "u8[3]", NULL, "u8"),
    GIVES(add, "T[4,7]; T[7]", NULL, "f32[4,7]"),
    GIVES(add, "T[-1,7]; T[1]", NULL, "f32[?,7]"),
    GIVES(add, "T[-1,7]; T[5,1]", NULL, "f32[5,7]"),
    GIVES(mul, "T[]; T[0,3]", NULL, "f32[0,3]"),
    REFUSES(add, "T[4,7]; T[4]", NULL, "f32[4]"),
    REFUSES(add, "T[4]; f64[4]", NULL, "f64"),
    GIVES(less, "T[4,1]; T[7]", NULL, "bool[4,7]"),
    GIVES(equal, "bool[2]; bool[2]", NULL, "bool[2]"),
    REFUSES(logical_and, "T[2]; T[2]", NULL, "bool"),
    GIVES(where, "bool[4,1]; T[7]; T[]", NULL, "f32[4,7]"),
    GIVES(where, "bool[]; i64[3]; i64[1]", NULL, "i64[3]"),
    REFUSES(where, "T[3]; T[3]; T[3]", NULL, "bool"),
    GIVES(add_n, "T[3,-1]; T[-1,5]", NULL, "f32[3,5]"),
    REFUSES(add_n, "T[3]; T[1]", NULL, "1"),
    REFUSES(add_n, "T[3]; f64[3]", NULL, "f64"),
    GIVES(relu_grad, "T[3,-1]; T[-1,5]", NULL, "f32[3,5]"),
    REFUSES(relu_grad, "T[3]; T[4]", NULL, "4"),
    GIVES(cast, "T[3]", A(yk_cast_attrs, YK_I64), "i64[3]"),
    REFUSES(cast, "T[3]", NULL, "dtype"),
    REFUSES(clip, "T[3]", A(yk_clip_attrs, 2, 1), "lo <= hi"),
    REFUSES(elu, "T[3]", A(yk_alpha_attrs, -1), "alpha"),
    GIVES(zeros_like, "bool[3]", NULL, "bool[3]"),
    GIVES(sum_to, "T[4,7,5]; T[7,1]", NULL, "f32[7,1]"),
    GIVES(sum_to, "T[-1,5]; T[5]", NULL, "f32[5]"),
    REFUSES(sum_to, "T[7]; T[4,7]", NULL, "does not broadcast"),
    REFUSES(sum_to, "T[7]; T[3]", NULL, "does not broadcast"),
    GIVES(broadcast_to, "T[7,1]; i32[4,7,5]", NULL, "f32[4,7,5]"),
    REFUSES(broadcast_to, "T[4]; T[3]", NULL, "does not broadcast"),
  };
  RUN(table);
}

static void reductions(void **state) {
  (void)state;
  const row table[] = {
    GIVES(reduce_sum, "T[4,7,5]", NULL, "f32[]"),
    GIVES(reduce_sum, "T[4,7,5]", A(yk_reduce_attrs, .naxes = 2, .axis = { -1, 0 }), "f32[7]"),
    GIVES(reduce_sum, "T[4,-1,5]", A(yk_reduce_attrs, .naxes = 1, .axis = { 1 }, .keepdims = 1), "f32[4,1,5]"),
    GIVES(reduce_mean, "T[-1,10]", A(yk_reduce_attrs, .naxes = 1, .axis = { 0 }), "f32[10]"),
    GIVES(reduce_max, "u8[4,7]", A(yk_reduce_attrs, .keepdims = 1), "u8[1,1]"),
    REFUSES(reduce_mean, "i32[3]", NULL, "i32"),
    REFUSES(reduce_sum, "T[4,7]", A(yk_reduce_attrs, .naxes = 1, .axis = { 2 }), "axis 2"),
    REFUSES(reduce_sum, "T[4,7]", A(yk_reduce_attrs, .naxes = 2, .axis = { 1, -1 }), "twice"),
    REFUSES(reduce_sum, "T[]", A(yk_reduce_attrs, .naxes = 1), "axis 0"),
    GIVES(reduce_grad, "T[7]; T[4,7]", A(yk_reduce_attrs, .naxes = 1, .axis = { 0 }), "f32[4,7]"),
    REFUSES(reduce_grad, "T[4]; T[4,7]", A(yk_reduce_attrs, .naxes = 1, .axis = { 0 }), "the reduction gives f32[7]"),
    REFUSES(reduce_prod_grad, "T[4]; T[4,7]", NULL, "f32[4]"),
    GIVES(argmax, "T[4,7]", A(yk_arg_attrs, -1, YK_I32), "i32[4]"),
    GIVES(argmin, "T[4,7]", NULL, "i64[7]"),
    REFUSES(argmax, "T[]", NULL, "axis 0"),
    REFUSES(argmax, "T[3,0]", A(yk_arg_attrs, 1, 0), "empty"),
    REFUSES(argmax, "T[3]", A(yk_arg_attrs, 0, YK_F32), "i32 or i64"),
    GIVES(l2_loss, "T[4,-1]", NULL, "f32[]"),
  };
  RUN(table);
}

static void shapes(void **state) {
  (void)state;
  const row table[] = {
    GIVES(shape, "T[4,-1,5]", NULL, "i64[3]"), GIVES(size, "T[]", NULL, "i64[]"),
    GIVES(dim, "T[4,7]", A(yk_axis_attrs, -1), "i64[]"),
    REFUSES(dim, "T[]", NULL, "axis 0"),
    GIVES(reshape, "T[4,7,5]", A(yk_reshape_attrs, 2, { -1, 7 }), "f32[20,7]"),
    GIVES(reshape, "T[-1,7]", A(yk_reshape_attrs, 1, { -1 }), "f32[?]"),
    GIVES(reshape, "T[1,1]", NULL, "f32[]"),
    GIVES(reshape, "T[0,3]", A(yk_reshape_attrs, 2, { -1, 5 }), "f32[0,5]"),
    REFUSES(reshape, "T[4,7]", A(yk_reshape_attrs, 2, { -1, 5 }), "28 elements"),
    REFUSES(reshape, "T[4,7]", A(yk_reshape_attrs, 2, { -1, -1 }), "at most once"),
    REFUSES(reshape, "T[0,3]", A(yk_reshape_attrs, 2, { -1, 0 }), "0 elements"),
    GIVES(reshape_like, "T[4,7]; i32[28]", NULL, "f32[28]"),
    REFUSES(reshape_like, "T[4,7]; T[27]", NULL, "number of elements"),
    GIVES(expand_dims, "T[4,7]", A(yk_axes_attrs, 2, { 0, -1 }), "f32[1,4,7,1]"),
    REFUSES(expand_dims, "T[4]", A(yk_axes_attrs, 1, { 2 }), "axis 2"),
    REFUSES(expand_dims, "T[4]", NULL, "no axes"),
    REFUSES(expand_dims, "T[1,1,1,1,1,1,1,1]", A(yk_axes_attrs, 1, { 0 }), "rank 9"),
    GIVES(squeeze, "T[1,4,1,7]", NULL, "f32[4,7]"),
    GIVES(squeeze, "T[-1,1]", A(yk_axes_attrs, 1, { -1 }), "f32[?]"),
    REFUSES(squeeze, "T[-1,1]", NULL, "not known yet"),
    REFUSES(squeeze, "T[4,1]", A(yk_axes_attrs, 1, { 0 }), "4 elements"),
    GIVES(transpose, "T[4,-1,5]", NULL, "f32[5,?,4]"),
    GIVES(transpose, "T[4,7,5]", A(yk_transpose_attrs, 3, { 2, 0, 1 }), "f32[5,4,7]"),
    REFUSES(transpose, "T[4,7]", A(yk_transpose_attrs, 2, { 1, 1 }), "once"),
    REFUSES(transpose, "T[4,7]", A(yk_transpose_attrs, 1, { 0 }), "2 axes"),
  };
  RUN(table);
}

static void movement(void **state) {
  (void)state;
  const row table[] = {
    GIVES(concat, "T[4,7]; T[4,2]; T[-1,1]", A(yk_axis_attrs, -1), "f32[4,10]"),
    GIVES(concat, "T[-1,7]; T[4,7]", NULL, "f32[?,7]"),
    REFUSES(concat, "T[4,7]; T[3,7]", A(yk_axis_attrs, 1), "must agree"),
    REFUSES(concat, "T[4]; i32[4]", NULL, "i32"),
    REFUSES(concat, "T[]; T[]", NULL, "axis 0"),
    GIVES(concat_grad, "T[4,9]; T[4,7]; T[4,2]", A(yk_concat_grad_attrs, 1, 1), "f32[4,2]"),
    REFUSES(concat_grad, "T[4,9]; T[4,7]; T[4,2]", A(yk_concat_grad_attrs, 1, 2), "index 2"),
    REFUSES(concat_grad, "T[4,8]; T[4,7]; T[4,2]", A(yk_concat_grad_attrs, 1, 0), "8"),
    GIVES(split, "T[6,5]", A(yk_split_attrs, .n = 3), "f32[2,5]; f32[2,5]; f32[2,5]"),
    GIVES(split, "T[6,5]", A(yk_split_attrs, .axis = 1, .n = 2, .size = { 1, 4 }), "f32[6,1]; f32[6,4]"),
    GIVES(split, "T[-1]", A(yk_split_attrs, .n = 2), "f32[?]; f32[?]"),
    REFUSES(split, "T[7]", A(yk_split_attrs, .n = 2), "share"),
    REFUSES(split, "T[7]", A(yk_split_attrs, .n = 2, .size = { 3, 3 }), "add up to 6"),
    REFUSES(split, "T[7]", A(yk_split_attrs, .n = 17), "n"),
    GIVES(slice, "T[4,7]", A(yk_slice_attrs, 2, { 1, 2 }, { -1, 3 }), "f32[3,3]"),
    GIVES(slice, "T[-1,7]", A(yk_slice_attrs, 2, { 1, 7 }, { -1, 0 }), "f32[?,0]"),
    REFUSES(slice, "T[4]", A(yk_slice_attrs, 1, { 2 }, { 3 }), "beyond the end"),
    REFUSES(slice, "T[4]", A(yk_slice_attrs, 1, { 5 }, { -1 }), "begin 5"),
    REFUSES(slice, "T[4]", A(yk_slice_attrs, 2, { 0, 0 }, { 1, 1 }), "1 axes"),
    GIVES(slice_grad, "T[2]; T[4]", A(yk_slice_attrs, 1, { 2 }, { 2 }), "f32[4]"),
    REFUSES(slice_grad, "T[3]; T[4]", A(yk_slice_attrs, 1, { 2 }, { 3 }), "beyond"),
    GIVES(slice_like, "T[4,7]; T[2,-1]", A(yk_slice_attrs, 2, { 1, 1 }, { 0 }), "f32[2,?]"),
    GIVES(pad, "T[4,-1]", A(yk_pad_attrs, 2, { 1, 1 }, { 0, 2 }, 0), "f32[5,?]"),
    REFUSES(pad, "T[4]", A(yk_pad_attrs, 2, { 0 }, { 0 }, 0), "1 axes"),
    REFUSES(pad, "T[4]", A(yk_pad_attrs, 1, { -1 }, { 0 }, 0), "before"),
    GIVES(gather, "T[10,5]; i32[2,3]", NULL, "f32[2,3,5]"),
    GIVES(gather, "T[10,5]; i64[]", A(yk_axis_attrs, -1), "f32[10]"),
    REFUSES(gather, "T[10]; T[3]", NULL, "i32 i64"),
    REFUSES(gather, "T[]; i32[3]", NULL, "axis 0"),
    REFUSES(gather_grad, "T[3,5]; i32[2]; T[10,5]", NULL, "3"),
    GIVES(one_hot, "i64[-1]", A(yk_one_hot_attrs, .depth = 10), "f32[?,10]"),
    GIVES(one_hot, "i32[]", A(yk_one_hot_attrs, .depth = 3, .dtype = YK_BOOL), "bool[3]"),
    REFUSES(one_hot, "i32[3]", NULL, "depth"),
    GIVES(tile, "T[4,-1]", A(yk_tile_attrs, 2, { 2, 3 }), "f32[8,?]"),
    REFUSES(tile, "T[4]", NULL, "0 entries"),
    REFUSES(tile_grad, "T[7]; T[4]", A(yk_tile_attrs, 1, { 2 }), "7"),
    GIVES(top_k, "T[4,7]", A(yk_top_k_attrs, 3), "f32[4,3]; i32[4,3]"),
    REFUSES(top_k, "T[4,2]", A(yk_top_k_attrs, 3), "2 elements"),
    REFUSES(top_k, "T[]", NULL, "scalar"),
    GIVES(in_top_k, "T[-1,10]; i64[32]", A(yk_top_k_attrs, 5), "bool[32]"),
    REFUSES(in_top_k, "T[4,10]; i64[5]", NULL, "5"),
    REFUSES(in_top_k, "T[10]; i64[10]", NULL, "rank 2"),
    GIVES(batch_shard, "T[10,5]", A(yk_shard_attrs, 0, 4), "f32[3,5]"),
    GIVES(batch_shard, "T[10,5]", A(yk_shard_attrs, 3, 4), "f32[2,5]"),
    GIVES(batch_shard, "T[-1,5]", A(yk_shard_attrs, 3, 4), "f32[?,5]"), GIVES(batch_shard, "T[2]", A(yk_shard_attrs, 3, 4), "f32[0]"),
    REFUSES(batch_shard, "T[10]", A(yk_shard_attrs, 4, 4), "shard 4 of 4"),
    REFUSES(batch_shard, "T[]", NULL, "scalar"),
    REFUSES(batch_shard_grad, "T[2]; T[10]", A(yk_shard_attrs, 0, 4), "2"),
  };
  RUN(table);
}

static void random_numbers(void **state) {
  (void)state;
  const row table[] = {
    GIVES(random_uniform, "i64[]", A(yk_random_attrs, .rank = 2, .dim = { 3, 4 }), "f32[3,4]"),
    GIVES(random_uniform, "i64[]", A(yk_random_attrs, .dtype = YK_I32, .b = 9), "i32[]"),
    GIVES(truncated_normal, "i64[]", A(yk_random_attrs, .dtype = YK_F64, .rank = 1, .dim = { 0 }), "f64[0]"),
    REFUSES(random_normal, "i64[]", A(yk_random_attrs, .rank = 1, .dim = { -1 }), "-1"),
    REFUSES(random_normal, "i64[2]", NULL, "scalar"),
    REFUSES(random_normal, "i32[]", NULL, "i32"),
  };
  RUN(table);
}

/* Do all ports that a case writes as T take dtype t? */
static int takes(const yk_op *op, const yk_case *c, yk_dtype t) {
  opcase k;
  CHECK_OK(opcase_parse(c->shapes, t, &k));
  for (uint16_t i = 0; i < k.n; i++) {
    const yk_port *port = yk__op_in_port(op, c->attrs, k.n, i);
    if (k.is_t[i] && (!port || !(port->dtypes & YK_T(t)))) return 0;
  }
  return 1;
}

/* Every case of every op is accepted, with T as each dtype that its ports take. */
static void all_cases_infer(void **state) {
  (void)state;
  size_t n = 0, done = 0;
  const yk_op *const *all = yk_op_all(&n);
  for (size_t i = 0; i < n; i++)
    for (const yk_case *c = all[i]->cases; c && c->shapes; c++) {
      char text[512];
      row r = { all[i], c->shapes, c->attrs, NULL, NULL };
      size_t before = done;
      for (int t = YK_F32; t < YK_NDTYPES; t++) {
        if (!takes(all[i], c, (yk_dtype)t)) continue;
        if (infer_as(&r, (yk_dtype)t, text, sizeof text) != YK_OK)
          fail_msg("%s(%s), T = %s: %s", all[i]->name, c->shapes, yk_dtype_name((yk_dtype)t), yk_error_message());
        done++;
      }
      if (done == before) fail_msg("%s(%s): no dtype fits T", all[i]->name, c->shapes);
    }
  assert_true(done > 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sources),  cmocka_unit_test(variables), cmocka_unit_test(elementwise),    cmocka_unit_test(reductions),
    cmocka_unit_test(shapes),   cmocka_unit_test(movement),  cmocka_unit_test(random_numbers), cmocka_unit_test(all_cases_infer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
