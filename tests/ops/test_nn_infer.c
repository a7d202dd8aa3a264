/*
 * test_nn_infer.c - shapes of the neural-network operations, known and unknown, and what they refuse.
 *
 * A row is an operation, its attributes, inputs, and either the outputs or the code and a part of the message. Refusals
 * must show the shapes or numbers that do not fit.
 */
#include "nn_support.h"
#include "support/check.h"
#include "tensor/desc.h"

typedef struct row { const yk_op *op; const void *attrs; const char *in, *out, *error; } row;

#define OP(name) &yk__op_##name
#define CONV(...)   &(const yk_conv2d_attrs){ __VA_ARGS__ }
#define POOL(...)   &(const yk_pool_attrs){ __VA_ARGS__ }
#define RNN(...)    &(const yk_rnn_attrs){ __VA_ARGS__ }
#define RESIZE(...) &(const yk_resize_attrs){ { __VA_ARGS__ } }
#define MATMUL(...) &(const yk_matmul_attrs){ __VA_ARGS__ }

static const row rows[] = {
  /* convolution: sizes */
  { OP(conv2d), NULL, "f32[128,24,24,3]; f32[5,5,3,64]", "f32[128,24,24,64]", NULL },
  { OP(conv2d), NULL, "f32[?,24,24,3]; f32[5,5,3,64]", "f32[?,24,24,64]", NULL },
  { OP(conv2d), NULL, "f32[?,?,?,?]; f32[?,?,?,?]", "f32[?,?,?,?]", NULL },
  { OP(conv2d), CONV(.stride = { 2, 2 }), "bf16[1,?,7,3]; bf16[3,3,3,8]", "bf16[1,?,4,8]", NULL },
  { OP(conv2d), CONV(.stride = { 2, 3 }, .padding = YK_VALID), "f64[2,8,9,3]; f64[3,4,3,4]", "f64[2,3,2,4]", NULL },
  { OP(conv2d), CONV(.dilation = { 2, 3 }, .padding = YK_VALID), "f32[1,5,7,1]; f32[3,3,1,1]", "f32[1,1,1,1]", NULL },
  { OP(conv2d), CONV(.groups = 8), "f32[1,5,5,8]; f32[3,3,1,16]", "f32[1,5,5,16]", NULL },
  { OP(conv2d), CONV(.padding = YK_EXPLICIT, .pad = { 2, 1, 0, 3 }), "f32[1,5,5,1]; f32[3,3,1,1]", "f32[1,6,6,1]", NULL },
  { OP(conv2d), NULL, "f32[0,5,5,3]; f32[3,3,3,8]", "f32[0,5,5,8]", NULL },
  /* convolution: refusals */
  { OP(conv2d), NULL, "f32[1,5,5,3]; f32[3,3,4,8]", NULL, "has 3 channels" },
  { OP(conv2d), NULL, "f32[1,5,5,3]; f32[3,3,4,8]", NULL, "f32[3,3,4,8]" },
  { OP(conv2d), CONV(.groups = 2), "f32[1,5,5,8]; f32[3,3,8,8]", NULL, "groups=2 takes 16" },
  { OP(conv2d), CONV(.groups = 3), "f32[1,5,5,6]; f32[3,3,2,8]", NULL, "8 outputs of filter f32[3,3,2,8] cannot be cut into 3 groups" },
  { OP(conv2d), CONV(.groups = 3), "f32[1,5,5,8]; f32[3,3,?,9]", NULL, "8 channels of picture f32[1,5,5,8] cannot be cut into 3 groups" },
  { OP(conv2d), CONV(.padding = YK_VALID), "f32[1,4,9,1]; f32[5,5,1,1]", NULL, "spans 5 cells of height, more than the 4" },
  { OP(conv2d), CONV(.padding = YK_VALID, .dilation = { 1, 4 }), "f32[1,9,8,1]; f32[3,3,1,1]", NULL, "spans 9 cells of width" },
  { OP(conv2d), CONV(.padding = YK_EXPLICIT, .pad = { 1, 1, 0, 0 }), "f32[1,2,9,1]; f32[5,5,1,1]", NULL, "with its padding" },
  { OP(conv2d), CONV(.pad = { 1, 1, 1, 1 }), "f32[1,4,4,1]; f32[3,3,1,1]", NULL, "padding is SAME, expected EXPLICIT" },
  { OP(conv2d), NULL, "f32[5,5,3]; f32[3,3,3,8]", NULL, "expected rank 4 [N, H, W, C]" },
  { OP(conv2d), NULL, "f32[1,5,5,3]; f32[3,3,8]", NULL, "expected rank 4 [h, w, channels/groups, outputs]" },
  { OP(conv2d), NULL, "f32[1,5,5,3]; f32[0,3,3,8]", NULL, "0 cells of height" },
  { OP(conv2d), NULL, "f32[1,5,5,3]; f32[3,3,3,0]", NULL, "has no channels" },
  { OP(conv2d), NULL, "f32[1,5,5,3]; f64[3,3,3,8]", NULL, "expected the dtype of input 0" },
  { OP(conv2d), NULL, "i32[1,5,5,3]; i32[3,3,3,8]", NULL, "expected dtype" },
  /* its gradients */
  { OP(conv2d_grad_input), NULL, "f32[?,24,24,64]; f32[5,5,3,64]; f32[?,24,24,3]", "f32[?,24,24,3]", NULL },
  { OP(conv2d_grad_input), NULL, "f32[7,24,24,64]; f32[5,5,3,64]; f32[?,24,24,?]", "f32[7,24,24,3]", NULL },
  { OP(conv2d_grad_input), NULL, "f32[2,5,5,8]; f32[3,3,3,8]; f32[2,6,5,3]", NULL, "dy is f32[2,5,5,8], but picture f32[2,6,5,3]" },
  { OP(conv2d_grad_filter), NULL, "f32[?,24,24,3]; f32[?,24,24,64]; f32[5,5,3,64]", "f32[5,5,3,64]", NULL },
  { OP(conv2d_grad_filter), NULL, "f32[2,5,5,3]; f32[3,5,5,8]; f32[3,3,3,8]", NULL, "gives f32[2,5,5,8]" },
  { OP(conv2d_grad_filter_bias), NULL, "f32[2,5,5,3]; f32[2,5,5,8]; f32[3,3,3,8]", "f32[3,3,3,8]; f32[8]", NULL },
  { OP(conv2d_bias_act), NULL, "f32[2,5,5,3]; f32[3,3,3,8]; f32[8]", "f32[2,5,5,8]", NULL },
  { OP(conv2d_bias_act), NULL, "f32[2,5,5,3]; f32[3,3,3,8]; f32[3]", NULL, "bias is f32[3]" },
  { OP(conv2d_bias_act), NULL, "f32[2,5,5,3]; f32[3,3,3,8]; f32[1,8]", NULL, "bias is f32[1,8]" },
  { OP(conv2d_transpose), CONV(.stride = { 2, 2 }), "f32[?,4,5,8]; f32[3,3,16,8]", "f32[?,8,10,16]", NULL },
  { OP(conv2d_transpose), CONV(.stride = { 2, 3 }, .padding = YK_VALID), "f32[1,4,5,8]; f32[3,5,16,8]", "f32[1,9,17,16]", NULL },
  { OP(conv2d_transpose), CONV(.stride = { 2, 2 }, .out = { 7, 10 }), "f32[1,4,5,8]; f32[3,3,16,8]", "f32[1,7,10,16]", NULL },
  { OP(conv2d_transpose), CONV(.stride = { 2, 2 }, .out = { 9, 10 }), "f32[1,4,5,8]; f32[3,3,16,8]", NULL, "over 9 cells of height gives 5" },
  { OP(conv2d_transpose), NULL, "f32[1,4,5,8]; f32[3,3,16,4]", NULL, "has 8 channels" },
  { OP(conv2d_transpose), NULL, "f32[?,?,?,?]; f32[?,?,?,?]", "f32[?,?,?,?]", NULL },
  /* pooling */
  { OP(max_pool), POOL(.window = { 3, 3 }, .stride = { 2, 2 }), "f32[128,24,24,64]", "f32[128,12,12,64]; u8[128,12,12,64]", NULL },
  { OP(max_pool), POOL(.window = { 2, 2 }, .padding = YK_VALID), "f32[?,5,?,?]", "f32[?,2,?,?]; u8[?,2,?,?]", NULL },
  { OP(max_pool), POOL(.window = { 16, 16 }), "f32[1,32,32,1]", "f32[1,2,2,1]; u8[1,2,2,1]", NULL },
  { OP(max_pool), POOL(.window = { 16, 17 }), "f32[1,32,34,1]", "f32[1,2,2,1]; i32[1,2,2,1]", NULL },
  { OP(max_pool), NULL, "f32[1,5,4,3]", "f32[1,5,4,3]; u8[1,5,4,3]", NULL },
  { OP(max_pool), POOL(.window = { 3, 3 }, .padding = YK_EXPLICIT, .pad = { 3, 0, 0, 0 }), "f32[1,5,4,3]", NULL, "padding only" },
  { OP(max_pool), POOL(.window = { 6, 3 }, .padding = YK_VALID), "f32[1,5,4,3]", NULL, "more than the 5" },
  { OP(max_pool), NULL, "f32[5,4,3]", NULL, "expected rank 4" },
  { OP(max_pool_grad), POOL(.window = { 2, 2 }), "f32[1,3,3,2]; u8[1,3,3,2]; f32[1,5,6,2]", "f32[1,5,6,2]", NULL },
  { OP(max_pool_grad), POOL(.window = { 2, 2 }), "f32[1,3,3,2]; i32[1,3,3,2]; f32[1,5,6,2]", NULL, "expected u8 for a window of 2 by 2" },
  { OP(max_pool_grad), POOL(.window = { 2, 2 }), "f32[1,2,3,2]; u8[1,2,3,2]; f32[1,5,6,2]", NULL, "pooling of f32[1,5,6,2] gives f32[1,3,3,2]" },
  { OP(max_pool_grad), POOL(.window = { 2, 2 }), "f32[1,3,3,2]; u8[1,3,2,2]; f32[1,5,6,2]", NULL, "expected the shape of dy" },
  { OP(avg_pool), POOL(.window = { 3, 2 }, .stride = { 1, 1 }), "f16[2,5,4,3]", "f16[2,5,4,3]", NULL },
  { OP(avg_pool_grad), POOL(.window = { 2, 2 }), "f32[?,3,3,2]; f32[?,5,6,2]", "f32[?,5,6,2]", NULL },
  /* products */
  { OP(matmul), NULL, "f32[?,2304]; f32[2304,384]", "f32[?,384]", NULL },
  { OP(matmul), MATMUL(.transpose_a = 1), "f32[7,4]; f32[7,5]", "f32[4,5]", NULL },
  { OP(matmul), MATMUL(.transpose_a = 1, .transpose_b = 1), "f32[7,4]; f32[5,7]", "f32[4,5]", NULL },
  { OP(matmul), NULL, "f32[2,1,4,3]; f32[6,3,5]", "f32[2,6,4,5]", NULL },
  { OP(matmul), NULL, "f32[4,3]; f32[6,3,5]", "f32[6,4,5]", NULL },
  { OP(matmul), NULL, "f32[4,7]; f32[5,7]", NULL, "has 7 columns, but b f32[5,7] has 5 rows" },
  { OP(matmul), MATMUL(.transpose_b = 1), "f32[4,7]; f32[7,5]", NULL, "f32[7,5] transposed has 5 rows" },
  { OP(matmul), NULL, "f32[7]; f32[7,5]", NULL, "expected at least rank 2" },
  { OP(matmul), NULL, "f32[2,4,7]; f32[3,7,5]", NULL, "MatMul" },
  { OP(matmul_bias_act), NULL, "f32[4,7]; f32[7,5]; f32[5]", "f32[4,5]", NULL },
  { OP(matmul_bias_act), NULL, "f32[4,7]; f32[7,5]; f32[4]", NULL, "bias is f32[4]" },
  { OP(matmul_grad_bias), MATMUL(.transpose_a = 1), "f32[9,7]; f32[9,5]", "f32[7,5]; f32[5]", NULL },
  { OP(matmul_grad_bias), MATMUL(.transpose_a = 1), "f32[2,9,7]; f32[2,9,5]", NULL, "expected rank 2" },
  { OP(bias_add), NULL, "f32[?,?,?,64]; f32[64]", "f32[?,?,?,64]", NULL },
  { OP(bias_add), NULL, "f32[2,?]; f32[5]", "f32[2,5]", NULL },
  { OP(bias_add), NULL, "f32[2,3]; f32[4]", NULL, "bias is f32[4]" },
  { OP(bias_add), NULL, "f32[2,3]; f32[1,3]", NULL, "bias is f32[1,3]" },
  { OP(bias_add_grad), NULL, "f32[?,24,24,64]", "f32[64]", NULL },
  /* normalisation */
  { OP(lrn), NULL, "f32[?,12,12,64]", "f32[?,12,12,64]", NULL },
  { OP(lrn), NULL, "f32[]", NULL, "at least rank 1" },
  { OP(batch_norm_train), NULL, "f32[?,8,8,16]; f32[16]; f32[16]", "f32[?,8,8,16]; f32[16]; f32[16]", NULL },
  { OP(batch_norm_train), NULL, "f16[4,16]; f32[16]; f32[16]", "f16[4,16]; f32[16]; f32[16]", NULL },
  { OP(batch_norm_train), NULL, "f64[4,?]; f64[16]; f64[16]", "f64[4,16]; f64[16]; f64[16]", NULL },
  { OP(batch_norm_train), NULL, "f64[4,16]; f32[16]; f32[16]", NULL, "gamma is f32[16], expected dtype f64" },
  { OP(batch_norm_train), NULL, "f32[4,16]; f32[16]; f32[8]", NULL, "beta is f32[8]" },
  { OP(batch_norm_train), NULL, "f32[16]; f32[16]; f32[16]", NULL, "at least rank 2" },
  { OP(batch_norm_train), &(const yk_norm_attrs){ .epsilon = 1 }, "f32[4,16]; f32[4]; f32[16]", NULL, "gamma is f32[4]" },
  { OP(batch_norm_grad), NULL, "bf16[4,3]; bf16[4,3]; f32[3]; f32[3]; f32[3]; bf16[4,3]", "bf16[4,3]; f32[3]; f32[3]", NULL },
  { OP(batch_norm_grad), NULL, "f32[5,3]; f32[4,3]; f32[3]; f32[3]; f32[3]; f32[4,3]", NULL, "dy is f32[5,3] and x is f32[4,3]" },
  { OP(batch_norm_infer), NULL, "f32[4,3]; f32[3]; f32[3]; f32[3]; f32[3]", "f32[4,3]", NULL },
  { OP(batch_norm_infer), NULL, "f32[4,3]; f32[3]; f32[3]; f32[3]; f32[2]", NULL, "var is f32[2]" },
  { OP(lstm), NULL, "f32[?,140,?]; f32[64,256]; f32[?,64]", "f32[?,140,64]; f32[?,64]; f32[?,64]; f32[?,140,256]; f32[?,140,64]", NULL },
  { OP(lstm), NULL, "f32[2,3,12]; f32[3,12]; f32[4,3]", NULL, "h is f32[4,3]" },
  { OP(lstm), NULL, "f32[2,3,14]; f32[3,12]", NULL, "z is f32[2,3,14]" },
  { OP(gru), NULL, "f32[2,?,9]; f32[3,9]", "f32[2,?,3]; f32[2,3]; f32[2,?,12]; f32[2,?,3]", NULL },
  { OP(gru), RNN(.reset_before = 1), "f32[2,5,9]; f32[3,9]; f32[2,3]; bool[2,5]; f32[9]", NULL, "no recurrent bias" },
  { OP(simple_rnn), NULL, "f64[2,5,3]; f64[3,3]; f64[2,3]; bool[2,4]", NULL, "mask is bool[2,4]" },
  { OP(resize_bilinear), RESIZE(2, 3), "f32[?,5,?,3]", "f32[?,10,?,3]", NULL },
  { OP(resize_nearest_grad), RESIZE(2, 3), "f32[1,10,10,3]", NULL, "no multiple of the scale 3" },
  { OP(non_max_suppression), NULL, "f32[9,5]; f32[9]", NULL, "expected [N, 4]" },
  { OP(non_max_suppression), NULL, "f32[9,4]; f32[8]", NULL, "9 boxes and 8 scores" },
  { OP(roi_align), &(yk_roi_attrs){ .size = { 7, 6 } }, "f32[2,9,9,?]; f32[?,4]; i32[5]", "f32[5,7,6,?]", NULL },
  { OP(roi_align), NULL, "f32[2,9,9,3]; f32[6,4]; i32[5]", NULL, "each of the 6 boxes" },
  { OP(layer_norm), NULL, "f16[2,?,8]; f32[8]; f32[8]", "f16[2,?,8]; f32[2,?]; f32[2,?]", NULL },
  { OP(layer_norm), NULL, "f32[2,0]; f32[0]; f32[0]", NULL, "rows of 0 elements" },
  { OP(layer_norm_grad), NULL, "f32[2,8]; f32[2,8]; f32[8]; f32[2]; f32[2]", "f32[2,8]; f32[8]; f32[8]", NULL },
  { OP(layer_norm_grad), NULL, "f32[2,8]; f32[2,8]; f32[8]; f32[3]; f32[2]", NULL, "mean is f32[3], expected f32[2]" },
  /* losses, dropout */
  { OP(softmax), NULL, "f32[?,10]", "f32[?,10]", NULL },
  { OP(softmax), NULL, "f32[]", NULL, "at least rank 1" },
  { OP(softmax_xent), NULL, "f32[?,10]; f32[5,10]", "f32[5]; f32[5,10]", NULL },
  { OP(softmax_xent), NULL, "f32[5,10]; f32[5,9]", NULL, "labels are f32[5,9]" },
  { OP(softmax_xent), NULL, "f32[5,0]; f32[5,0]", NULL, "at least one class" },
  { OP(sparse_softmax_xent), NULL, "f32[?,10]; i64[7]", "f32[7]; f32[7,10]", NULL },
  { OP(sparse_softmax_xent), NULL, "f32[7,10]; i32[7,1]", NULL, "expected [N, C] and [N]" },
  { OP(sparse_softmax_xent), NULL, "f32[7,10]; f32[7]", NULL, "expected dtype" },
  { OP(sigmoid_xent), NULL, "f32[3,?]; f32[?,4]", "f32[3,4]", NULL },
  { OP(dropout), &(const yk_dropout_attrs){ .rate = 0.5 }, "f16[?,8]; i64[]", "f16[?,8]; u8[?,8]", NULL },
  { OP(dropout), &(const yk_dropout_attrs){ .rate = 1 }, "f32[4]; i64[]", NULL, "rate is 1, expected at least 0 and less than 1" },
  { OP(dropout), &(const yk_dropout_attrs){ .rate = 0.5 }, "f32[4]; i64[1]", NULL, "expected a scalar" },
};

static void test_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const row *r = &rows[i];
    yk_desc in[NN_PORTS], out[NN_PORTS] = { { 0 } };
    uint16_t nin = nn_parse(r->in, in, NN_PORTS), nout = yk__op_nout(r->op, r->attrs);
    yk_code rc = yk__op_infer(r->op, r->attrs, in, nin, out, nout);
    char got[512];
    if (r->error) {
      if (rc != YK_EINVAL) fail_msg("row %zu, %s(%s): %s, expected EINVAL", i, r->op->name, r->in, yk_code_name(rc));
      if (!strstr(yk_error_message(), r->error))
        fail_msg("row %zu, %s(%s): message \"%s\" lacks \"%s\"", i, r->op->name, r->in, yk_error_message(), r->error);
      if (!strstr(yk_error_message(), r->op->label)) fail_msg("message \"%s\" does not name %s", yk_error_message(), r->op->label);
      yk_error_clear();
      continue;
    }
    if (rc != YK_OK) fail_msg("row %zu, %s(%s): %s", i, r->op->name, r->in, yk_error_message());
    if (strcmp(nn_text(out, nout, got), r->out)) fail_msg("row %zu, %s(%s): got %s, expected %s", i, r->op->name, r->in, got, r->out);
  }
}

/* Attributes out of range are refused before any shape is looked at. */
static void test_ranges(void **state) {
  (void)state;
  CHECK_CODE(yk__attrs_check(OP(conv2d), CONV(.stride = { -1, 1 })), YK_EINVAL, "stride");
  CHECK_CODE(yk__attrs_check(OP(conv2d), CONV(.groups = -2)), YK_EINVAL, "groups");
  CHECK_CODE(yk__attrs_check(OP(conv2d), CONV(.padding = 3)), YK_EINVAL, "padding");
  CHECK_CODE(yk__attrs_check(OP(conv2d), CONV(.padding = YK_EXPLICIT, .pad = { 0, -1, 0, 0 })), YK_EINVAL, "pad");
  CHECK_CODE(yk__attrs_check(OP(conv2d_bias_act), CONV(.act = 11)), YK_EINVAL, "act");
  CHECK_CODE(yk__attrs_check(OP(max_pool), POOL(.window = { -3, 1 })), YK_EINVAL, "window");
  CHECK_CODE(yk__attrs_check(OP(batch_norm_train), &(yk_norm_attrs){ .act = YK_ACT_TANH }), YK_EINVAL, "act");
  CHECK_CODE(yk__attrs_check(OP(batch_norm_train), &(yk_norm_attrs){ .epsilon = -1 }), YK_EINVAL, "epsilon");
  CHECK_CODE(yk__attrs_check(OP(lrn), &(yk_lrn_attrs){ .radius = -1 }), YK_EINVAL, "radius");
  CHECK_CODE(yk__attrs_check(OP(lstm), &(yk_rnn_attrs){ .activation = 3 }), YK_EINVAL, "activation");
  CHECK_CODE(yk__attrs_check(OP(gru), &(yk_rnn_attrs){ .recurrent_activation = -1 }), YK_EINVAL, "recurrent_activation");
  CHECK_CODE(yk__attrs_check(OP(resize_nearest), &(yk_resize_attrs){ { -2, 1 } }), YK_EINVAL, "scale");
  CHECK_CODE(yk__attrs_check(OP(non_max_suppression), &(yk_nms_attrs){ .iou_threshold = 1.5 }), YK_EINVAL, "iou_threshold");
  CHECK_CODE(yk__attrs_check(OP(dropout), &(yk_dropout_attrs){ .rate = 1.5 }), YK_EINVAL, "rate");
}

/* Knowing less about an input must never make infer fail or contradict itself: every dim of every case, made unknown in turn. */
static void test_partial(void **state) {
  (void)state;
  static const yk_op *const ops[] = {
    OP(conv2d), OP(conv2d_bias_act), OP(conv2d_grad_input), OP(conv2d_grad_filter), OP(conv2d_grad_filter_bias), OP(conv2d_transpose),
    OP(max_pool), OP(max_pool_grad), OP(avg_pool), OP(avg_pool_grad), OP(matmul), OP(matmul_bias_act), OP(matmul_grad_bias),
    OP(bias_add), OP(bias_add_grad), OP(lrn), OP(lrn_grad), OP(batch_norm_train), OP(batch_norm_grad), OP(batch_norm_infer),
    OP(batch_norm_infer_grad), OP(layer_norm), OP(layer_norm_grad), OP(softmax), OP(softmax_grad), OP(log_softmax),
    OP(lstm), OP(lstm_grad), OP(gru), OP(gru_grad), OP(simple_rnn), OP(simple_rnn_grad), OP(resize_nearest), OP(resize_nearest_grad),
    OP(resize_bilinear), OP(resize_bilinear_grad), OP(non_max_suppression), OP(roi_align), OP(roi_align_grad),
    OP(log_softmax_grad), OP(softmax_xent), OP(sparse_softmax_xent), OP(sigmoid_xent), OP(dropout), OP(dropout_grad),
  };
  for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
    for (const yk_case *c = ops[o]->cases; c->shapes; c++) {
      char text[256], a[512], b[512];
      size_t k = 0;
      yk_desc in[NN_PORTS], full[NN_PORTS], part[NN_PORTS];
      uint16_t nin, nout = yk__op_nout(ops[o], c->attrs);
      for (const char *s = c->shapes; *s && k < sizeof text - 4; s++) {      /* T is f64 here */
        if (*s == 'T' && s[1] == '[') k += (size_t)snprintf(text + k, 4, "f64");
        else text[k++] = *s;
      }
      text[k] = 0;
      nin = nn_parse(text, in, NN_PORTS);
      CHECK_OK(yk__op_infer(ops[o], c->attrs, in, nin, full, nout));
      for (uint16_t i = 0; i < nin; i++)
        for (int d = 0; d < in[i].rank; d++) {
          int64_t known = in[i].dim[d];
          in[i].dim[d] = -1;
          if (yk__op_infer(ops[o], c->attrs, in, nin, part, nout) != YK_OK)
            fail_msg("%s(%s): dim %d of input %u unknown: %s", ops[o]->name, text, d, i, yk_error_message());
          for (uint16_t y = 0; y < nout; y++) {
            int fits = part[y].rank == full[y].rank && part[y].dtype == full[y].dtype;
            for (int e = 0; fits && e < full[y].rank; e++) fits = part[y].dim[e] < 0 || part[y].dim[e] == full[y].dim[e];
            if (!fits)
              fail_msg("%s(%s), dim %d of input %u unknown: output %u is %s, but %s with all known", ops[o]->name, text, d, i, y,
                       nn_text(&part[y], 1, a), nn_text(&full[y], 1, b));
          }
          in[i].dim[d] = known;
        }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_ranges), cmocka_unit_test(test_partial) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
