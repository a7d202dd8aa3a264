/*
 * op_attrs.h - the typed attributes of every operation, and the contract of its kernels.
 *
 * Rule of all structs: zero means the default, so `{0}` or NULL is always valid
 * and C's designated initialisers read like keyword arguments. Layout of
 * pictures is [N, H, W, C], of filters [H, W, I, O] (I = C/groups).
 *
 * Beside each op: inputs -> outputs. "like" inputs are shape-only. Formulae are
 * TensorFlow's unless said otherwise. An op without attributes is listed with
 * its family. `...` is a variadic port.
 */
#ifndef YK_OP_ATTRS_H
#define YK_OP_ATTRS_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sources (no kernel) ------------------------------------------------------------------------- */

/* constant: () -> value. The tensor is owned by the graph. */
typedef struct yk_constant_attrs { const yk_tensor *value; } yk_constant_attrs;

/* placeholder: () -> value. Must be fed; shape may have -1. */
typedef struct yk_placeholder_attrs { int32_t dtype; uint32_t rank; int64_t dim[YK_MAX_RANK]; } yk_placeholder_attrs;

/* variable: () -> ref (the storage itself; goes only into read_variable and YK_PORT_WRITE ports). */
typedef struct yk_variable_attrs { int32_t dtype; uint32_t rank; int64_t dim[YK_MAX_RANK]; uint32_t index; } yk_variable_attrs;

/* run_counter: () -> i64 scalar; the number of the session's run, set by the executor. The `step` of random ops. */

/* ---- variables ---------------------------------------------------------------------------------------
 * read_variable: ref -> value (view).      assign, assign_add, assign_sub: ref(write), value -> value after (view of ref).
 * assign_sum:      v...(write), x...                    -> op       sets of `of` variables and as many values of one shape, one set after
 *                  the other: each variable of a set becomes the sum of its values, from left to right. Made by the planner, of add_n and assign.
 * sgd_update:      w...(write), g..., lr                -> op       w -= lr*g
 * momentum_update: w...(write), a...(write), g..., lr, m -> op      a = m*a + g; w -= lr*a   (nesterov: w -= lr*g + lr*m*a)
 *                  keras: a = m*a - lr*g; w += a                    (nesterov: w += m*a - lr*g)
 * ema_update:      s...(write), v..., decay             -> op       s -= (1-decay)*(s - v)
 * Every operation with a (write) port takes one more input at the end if it is given one: guard, a bool scalar. Where it is false
 * nothing is written, and the result, if there is one, is the old value.
 * lr, m, decay are scalars of the dtype of w. All three are YK_MERGE: groups of n, then the shared scalars. */
typedef struct yk_assign_sum_attrs { uint32_t n; int32_t of; } yk_assign_sum_attrs;   /* YK_MERGE; n is a multiple of `of`; 0 = n */
typedef struct yk_update_attrs { uint32_t n; int32_t nesterov, keras; } yk_update_attrs;

/* The other optimizers' updates; all are YK_MERGE -> op, lr and powers are f32 scalars. beta1, beta2 and rho are rounded to f32
 * first, as TensorFlow does; each field is taken as it is (0 is 0), and an operation ignores those not named with it.
 * adam_update:     w..., m..., v... (write), g..., lr, p1, p2: with alpha = lr*sqrt(1-p2)/(1-p1),
 *                  m += (1-beta1)*(g-m); v += (1-beta2)*(g^2-v); w -= decay*lr*w + alpha*m/(sqrt(v)+epsilon), w on the right being the old one
 *                  nesterov: alpha*(beta1*m + (1-beta1)*g) instead of alpha*m. p1, p2 are beta1^t, beta2^t of this step (t from 1)
 * lamb_update:     w..., m..., v... (write), g..., lr, p1, p2: m, v as above; r = m/(1-p1)/(sqrt(v/(1-p2))+epsilon) + decay*w;
 *                  w -= lr*(|w|/|r|)*r with 2-norms over the variable; the quotient is 1 where either norm is 0
 * rmsprop_update:  w..., ms..., mom... (write), g..., lr: ms += (1-rho)*(g^2-ms); mom = momentum*mom + lr*g/sqrt(ms+epsilon); w -= mom
 *                  keras: sqrt(ms)+epsilon
 * rmsprop_centered_update: w..., ms..., mg..., mom... (write), g..., lr: also mg += (1-rho)*(g-mg); sqrt(ms-mg^2+epsilon)
 * adagrad_update:  w..., acc... (write), g..., lr: acc += g^2; w -= lr*g/sqrt(acc); keras: /(sqrt(acc)+epsilon). g = 0 leaves w alone.
 * adadelta_update: w..., a..., d... (write), g..., lr: a = rho*a+(1-rho)*g^2; u = g*sqrt(d+epsilon)/sqrt(a+epsilon); w -= lr*u;
 *                  d = rho*d+(1-rho)*u^2
 * ftrl_update:     w..., n..., z... (write), g..., lr: with p = lr_power, N = n+g^2: z += g + 2*shrinkage*w - (N^-p - n^-p)/lr*w; n = N;
 *                  w = |z| > l1 ? (l1*sign(z) - z)/(N^-p/lr + 2*l2) : 0
 * Of rows: sparse_sgd_update, sparse_momentum_update, sparse_rmsprop_update, sparse_rmsprop_centered_update, sparse_adagrad_update,
 * sparse_adadelta_update, sparse_ftrl_update have, instead of g..., values... [k, w's dims but the first] and rows... i32|i64 [k]:
 * values of one row are added in order, then the formula is applied to that row of w and the slots; other rows stay as they are.
 * A row out of range fails, telling it, and nothing is written. The first two have yk_update_attrs. */
typedef struct yk_rule_attrs {
  uint32_t n;
  int32_t nesterov, keras, unused;
  double beta1, beta2, rho, momentum, epsilon, decay, lr_power, l1, l2, shrinkage;
} yk_rule_attrs;

/* ---- element-wise, all without attributes unless a struct follows ------------------------------------
 * one input:  identity stop_gradient(views)  neg abs sign square sqrt rsqrt reciprocal exp log sin cos floor ceil
 *             relu relu6 elu selu silu tanh sigmoid softplus (floats) logical_not (bool) zeros_like ones_like (shape-only input)
 * two inputs, NumPy broadcasting, same dtype: add sub mul div div_no_nan pow maximum minimum squared_difference
 *             -> same dtype; equal not_equal less less_equal greater greater_equal -> bool; logical_and logical_or (bool)
 * where: cond(bool), a, b -> a or b, all three broadcast.     add_n: x... (same shape) -> sum, added left to right
 * activation gradients (dy and one of x, y, all of one shape) -> dx:
 *             relu_grad(dy, y) relu6_grad(dy, y) leaky_relu_grad(dy, x) elu_grad(dy, y) selu_grad(dy, y) gelu_grad(dy, x)
 *             silu_grad(dy, x) tanh_grad(dy, y) sigmoid_grad(dy, y) softplus_grad(dy, x)
 * guarded gradients (dy, ...; result 0 where dy = 0): sqrt_grad(dy, y) = dy/(2y); rsqrt_grad(dy, y) = -dy*y^3/2;
 *             reciprocal_grad(dy, y) = -dy*y^2; log_grad(dy, x) = dy/x
 *             pow_grad_x(dy, x, y) = dy*y*x^(y-1), pow_grad_y(dy, x, z) = dy*z*log(x) with log = 0 where x <= 0: inputs already of dy's shape */
typedef struct yk_alpha_attrs { double alpha; } yk_alpha_attrs;           /* leaky_relu(_grad): 0 = 0.2; elu(_grad): 0 = 1 */
typedef struct yk_gelu_attrs { int32_t approximate; } yk_gelu_attrs;      /* gelu(_grad): 1 = the tanh form */
typedef struct yk_clip_attrs { double lo, hi; } yk_clip_attrs;            /* clip: x -> y; clip_grad: dy, x -> dx (inclusive bounds) */
typedef struct yk_cast_attrs { int32_t dtype; } yk_cast_attrs;            /* cast: x -> y; float to integer truncates and saturates, NaN gives 0 */
/* all_finite: x... (floats of any types, shapes and layouts) -> bool scalar: no element is NaN or, unless nan_only, infinite. */
typedef struct yk_finite_attrs { int32_t nan_only; } yk_finite_attrs;
typedef struct yk_check_attrs { const char *message; } yk_check_attrs;    /* check_numerics: x -> x; fails on NaN or infinity, telling which and the message */

/* ---- reductions ------------------------------------------------------------------------------------------
 * reduce_sum reduce_mean reduce_min reduce_max reduce_prod: x -> y.
 * reduce_grad: dy, like -> dy spread over the reduced axes to like's shape, divided by their count if `mean`.
 * reduce_prod_grad: dy, x -> dx (exact with zeros).      l2_loss: x -> scalar sum(x^2)/2. */
typedef struct yk_reduce_attrs { uint32_t naxes; int32_t axis[YK_MAX_RANK]; int32_t keepdims; int32_t mean; } yk_reduce_attrs; /* naxes 0 = all; negative axes count from the end */
typedef struct yk_arg_attrs { int32_t axis; int32_t dtype; } yk_arg_attrs;  /* argmax, argmin: x -> first index of the extreme; dtype 0 = i64 */
/* sum_to: x, like -> x summed over the axes along which like was broadcast.   broadcast_to: x, like -> x spread to like's shape. */

/* ---- matmul -------------------------------------------------------------------------------------------------- */
typedef enum yk_act { YK_ACT_NONE, YK_ACT_RELU, YK_ACT_RELU6, YK_ACT_LEAKY_RELU, YK_ACT_ELU, YK_ACT_SELU, YK_ACT_GELU,
                      YK_ACT_SILU, YK_ACT_TANH, YK_ACT_SIGMOID, YK_ACT_SOFTPLUS } yk_act;
/* matmul: a [..., M, K], b [..., K, N] -> [..., M, N]; batch dims equal or broadcast.
 * matmul_bias_act: a, b, bias [N] -> act(a*b + bias)   (fused; lower = matmul, bias_add, act)
 * matmul_grad_bias: a, b -> a*b, sum of b over its M axis [N]   (fused filter gradient of a dense layer: transpose_a; b is dy)
 * bias_add: x [..., C], b [C] -> x + b.       bias_add_grad: dy [..., C] -> [C] */
typedef struct yk_matmul_attrs { int32_t transpose_a, transpose_b; int32_t act; double alpha; } yk_matmul_attrs;

/* ---- convolution -------------------------------------------------------------------------------------------- */
typedef enum yk_padding { YK_SAME, YK_VALID, YK_EXPLICIT } yk_padding;
/* conv2d: x [N,H,W,C], w [h,w,C/groups,O] -> y [N,H',W',O].
 * conv2d_bias_act: x, w, b [O] -> act(conv2d + b)                              (fused)
 * conv2d_grad_input: dy, w, like x -> dx.    conv2d_grad_filter: x, dy, like w -> dw.
 * conv2d_grad_filter_bias: x, dy, like w -> dw, db                             (fused)
 * conv2d_transpose: x [N,H,W,C], w [h,w,O,C] -> y [N,H',W',O]; SAME: H' = H*stride, VALID: H' = (H-1)*stride + window, unless out says more.
 * SAME pads as TensorFlow: total = max((ceil(H/stride)-1)*stride + (h-1)*dilation + 1 - H, 0), the smaller half before. */
typedef struct yk_conv2d_attrs {
  int32_t stride[2];             /* [vertical, horizontal]; 0 = 1 */
  int32_t dilation[2];           /* 0 = 1 */
  int32_t groups;                /* 0 = 1 */
  int32_t padding;               /* yk_padding */
  int32_t pad[4];                /* YK_EXPLICIT: top, bottom, left, right */
  int32_t out[2];                /* conv2d_transpose: output height and width; 0 = the smallest */
  int32_t act; double alpha;     /* fused forms only */
} yk_conv2d_attrs;

/* ---- pooling, [N,H,W,C] ------------------------------------------------------------------------------------
 * max_pool: x -> y, index. index (u8 if the window has at most 256 cells, else i32; shape of y) is the cell of the window,
 *           row*window_w + column, padding cells counted, of the first maximum. A driver may keep it in a private layout.
 * max_pool_grad: dy, index, like x -> dx.
 * avg_pool: x -> y, mean over the valid cells.       avg_pool_grad: dy, like x -> dx. */
typedef struct yk_pool_attrs {
  int32_t window[2];             /* height, width; 0 = 1 */
  int32_t stride[2];             /* 0 = window */
  int32_t padding;               /* yk_padding */
  int32_t pad[4];
} yk_pool_attrs;

/* ---- pictures made larger, and boxes in them ---------------------------------------------------------------------------
 * resize_nearest, resize_bilinear: x [N,H,W,C] -> y [N,H*scale,W*scale,C]. Cell i of y lies at (i + 1/2)/scale - 1/2 of x: the nearest
 *           cell's value, or between the two around it (at the border: the outermost one's).
 * resize_nearest_grad, resize_bilinear_grad: dy -> dx, by the same weights. */
typedef struct yk_resize_attrs { int32_t scale[2]; } yk_resize_attrs;     /* height, width; 0 = 1 */
/* Boxes are rows y1, x1, y2, x2.
 * non_max_suppression: boxes [N,4], scores [N] -> indices i32 [max_outputs], count i32 scalar. Of those with a score above score_threshold
 *           the best ones, best first, equal ones by lower index, leaving out each whose intersection over union with one taken before is
 *           above iou_threshold. -1 after the last one. Either corner may come first. */
typedef struct yk_nms_attrs { int32_t max_outputs; double iou_threshold, score_threshold; } yk_nms_attrs;  /* 0 = 1, 0.5; 0 as it is */
/* roi_align: x [N,H,W,C], boxes [R,4], image i32 [R] -> y [R,h,w,C] (He and others, 2017). With b = scale*box - offset (1/2 if aligned, else
 *           0, and then at least one cell wide and high) cut into size[0] x size[1] bins: the mean of samples x samples points of a bin, the
 *           middles of its equal parts, each between its four cells; a point more than a cell outside is 0. An image out of range fails.
 * roi_align_grad: dy, boxes, image, like x -> dx. */
typedef struct yk_roi_attrs { int32_t size[2], samples, aligned; double scale; } yk_roi_attrs;             /* 0 = 1, 2, no, 1 */

/* ---- normalisation ----------------------------------------------------------------------------------------------
 * lrn: x -> y = x * (bias + alpha * sum over |j-i| <= radius of x_j^2)^-beta, along the last axis; alpha is not divided by the window.
 * lrn_grad: dy, x -> dx. */
typedef struct yk_lrn_attrs { int32_t radius; double bias, alpha, beta; } yk_lrn_attrs;   /* 0 = 5, 1, 1, 0.5 */
/* batch_norm_train: x [..., C], gamma [C], beta [C] -> y = act((x-mean)/sqrt(var+epsilon)*gamma + beta), mean [C], var [C] (biased, of this batch).
 * batch_norm_grad:  dy, x, gamma, mean, var, y -> dx, dgamma, dbeta.   y is used only if act is not NONE (RELU only: dy*[y>0]).
 * batch_norm_infer: x, gamma, beta, mean, var -> y.   batch_norm_infer_grad: dy, x, gamma, mean, var -> dx, dgamma, dbeta.
 * Statistics, gamma, beta: f32 for x of f32, f16, bf16; f64 for f64.
 * layer_norm: x [..., C], gamma, beta -> y, mean [...], rstd [...] (over the last axis).  layer_norm_grad: dy, x, gamma, mean, rstd -> dx, dgamma, dbeta. */
typedef struct yk_norm_attrs { double epsilon; int32_t act; } yk_norm_attrs;              /* epsilon 0 = 1e-3 */

/* ---- softmax and losses: over the last axis, no attributes ----------------------------------------------------
 * softmax: x -> s.  softmax_grad: dy, s -> s*(dy - sum(dy*s)).   log_softmax: x -> l.  log_softmax_grad: dy, l -> dy - exp(l)*sum(dy)
 * softmax_xent: logits [N,C], labels [N,C] -> loss [N], backprop [N,C] = softmax - labels
 * sparse_softmax_xent: logits [N,C], labels i32|i64 [N] -> loss [N], backprop [N,C]; a label outside [0,C) fails, telling value and range
 * sigmoid_xent: x, z -> max(x,0) - x*z + log(1+exp(-|x|)) */

/* ---- recurrent layers: a whole sequence in one operation --------------------------------------------------------------
 * T steps over N sequences, U units. z [N,T,g*U] is x*kernel + bias of all steps (one product ahead of the sequence), recurrent [U,g*U].
 * h, c [N,U]: the state before the first step, zero if absent. mask bool [N,T]: a step where it is false leaves the state as it is; y is
 * then the output of the step before (0 if there is none), or 0 with zero_output. s below is a sigmoid or its hard form, a the activation.
 * go_backwards: from the last step to the first; y[:,0] is then the output of step T-1. Everything else is indexed by the step of z.
 * lstm: z [N,T,4U], recurrent, h, c, mask -> y [N,T,U], h, c [N,U] after the last step, gates [N,T,4U], cells [N,T,U] (for the gradient;
 *           0 and the state in masked steps). [i f g o] = [s s a s](z + h*recurrent); c = f*c + i*g; h = y = o*a(c)
 * lstm_grad: gates, recurrent, cells, dy, dh, dc, h, c, mask (from dy on each may be absent) -> dz, dh, dc (of the state before the first
 *           step), before [N,T,U]: h before each step, so that drecurrent = sum over steps of before'*dz; 0 in masked steps
 * gru: z [N,T,3U], recurrent, h, mask, bias [3U] -> y, h, gates [N,T,4U], states [N,T,U]. q = h*recurrent + bias; [u r] = s(z + q);
 *           n = a(z + r*q); h = y = u*h + (1-u)*n; gates are u, r, n and the q of n.
 *           reset_before: n = a(z + (r*h)*recurrent), no bias; gates are u, r, n and r*h.
 * gru_grad: gates, recurrent, states, dy, dh, h, mask -> dz [N,T,3U], dh, dq [N,T,3U] (of h*recurrent), before
 * simple_rnn: z [N,T,U], recurrent [U,U], h, mask -> y, h, states.   h = y = a(z + h*recurrent)
 * simple_rnn_grad: states, recurrent, dy, dh, h, mask -> dz, dh, before */
typedef enum yk_rnn_act { YK_RNN_TANH, YK_RNN_RELU, YK_RNN_LINEAR } yk_rnn_act;
typedef enum yk_rnn_gate {
  YK_RNN_SIGMOID,
  YK_RNN_HARD_SIGMOID,           /* clip(0.2*x + 0.5, 0, 1): Keras 2 */
  YK_RNN_HARD_SIGMOID_6          /* clip(x/6 + 0.5, 0, 1): Keras 3 */
} yk_rnn_gate;
typedef struct yk_rnn_attrs {
  int32_t activation;            /* yk_rnn_act */
  int32_t recurrent_activation;  /* yk_rnn_gate; of the gates: not of simple_rnn */
  int32_t go_backwards, zero_output;
  int32_t reset_before;          /* gru: the reset gate acts on h before its product, Keras's reset_after=False */
} yk_rnn_attrs;

/* dropout: x, step i64 -> y = x*mask/(1-rate), mask u8. Element i is kept if word i%4 of random_block(seed, stream 0, step, i/4, 0), as
 * uniform (w>>8)*2^-24, is >= rate.      dropout_grad: dy, mask -> dx */
typedef struct yk_dropout_attrs { double rate; uint64_t seed; } yk_dropout_attrs;

/* ---- shapes and data movement ----------------------------------------------------------------------------------
 * shape: like -> i64 [rank].   size: like -> i64 scalar.   dim: like -> i64 scalar, dim[axis].
 * reshape: x -> view; one dim may be -1.  reshape_like: x, like -> view of like's shape. */
typedef struct yk_axis_attrs { int32_t axis; } yk_axis_attrs;                             /* dim, concat, gather(_grad), reverse */
typedef struct yk_reshape_attrs { uint32_t rank; int64_t dim[YK_MAX_RANK]; } yk_reshape_attrs;
/* expand_dims: x -> view with dims of 1 inserted at `axis` (positions in the result).   squeeze: x -> view without them (naxes 0 = all dims of 1). */
typedef struct yk_axes_attrs { uint32_t naxes; int32_t axis[YK_MAX_RANK]; } yk_axes_attrs;
typedef struct yk_transpose_attrs { uint32_t rank; int32_t perm[YK_MAX_RANK]; } yk_transpose_attrs;  /* transpose: x -> y; rank 0 = reverse all */
/* reverse: x -> y with the elements along axis in the opposite order. */
/* concat: x... -> y along axis.      concat_grad: dy, like x... -> the piece that came from x[index] */
typedef struct yk_concat_grad_attrs { int32_t axis, index; } yk_concat_grad_attrs;
typedef struct yk_split_attrs { int32_t axis; uint32_t n; int64_t size[16]; } yk_split_attrs; /* split: x -> y... n pieces; all sizes 0 = equal ones; n <= 16 */
/* slice: x -> y.  slice_grad: dy, like x -> dx zero outside.  slice_like: x, like -> the part of like's shape starting at begin. */
typedef struct yk_slice_attrs { uint32_t rank; int64_t begin[YK_MAX_RANK], size[YK_MAX_RANK]; } yk_slice_attrs;   /* size -1 = to the end */
typedef struct yk_pad_attrs { uint32_t rank; int64_t before[YK_MAX_RANK], after[YK_MAX_RANK]; double value; } yk_pad_attrs;  /* pad: x -> y */
/* gather: params, indices i32|i64 -> params.shape[:axis] + indices.shape + params.shape[axis+1:]; an index out of range fails, telling it.
 * gather_grad: dy, indices, like params -> sums into zeros. */
typedef struct yk_one_hot_attrs { int64_t depth; double on, off; int32_t dtype; } yk_one_hot_attrs;  /* one_hot: i32|i64 [...] -> [..., depth]; on = off = 0 means 1, 0; dtype 0 = f32; other indices give off */
typedef struct yk_tile_attrs { uint32_t rank; int64_t multiple[YK_MAX_RANK]; } yk_tile_attrs;        /* tile: x -> y;  tile_grad: dy, like x -> dx */
typedef struct yk_top_k_attrs { int32_t k; } yk_top_k_attrs;   /* top_k: x -> values, indices i32, descending, ties by lower index; 0 = 1.
                                                                  top_k_grad: dy, indices, like x -> dx.
                                                                  in_top_k: predictions [N,C], targets i32|i64 [N] -> bool [N]; ties count as in; a target out of range or a non-finite row gives false */
/* batch_shard: x [N, ...] -> rows of shard `index` of `count`: N/count rows each, the first N%count shards one more, in order.
 * batch_shard_grad: dy, like x -> dx zero outside. */
typedef struct yk_shard_attrs { uint32_t index, count; } yk_shard_attrs;

/* ---- random ---------------------------------------------------------------------------------------------------------
 * random_uniform:   step i64 -> a + (b-a)*u, u = (word>>8)*2^-24 of word i%4 of random_block(seed, 1, step, i/4, 0); f64 uses two words:
 *                   u = (hi>>5)*2^-27... = ((hi>>5)*2^26 + (lo>>6)) * 2^-53 with hi, lo = words 2(i%2), 2(i%2)+1 of block i/2. Integers: floor(a + (b-a)*u).
 * random_normal:    step, like? -> a + b*z, shaped as like; Box-Muller on block i/2, words p = 2(i%2), p+1: u1 = ((w_p>>8)+1)*2^-24,
 *                   u2 = (w_{p+1}>>8)*2^-24, z = sqrt(-2 ln u1) * cos(2 pi u2); stream 2.
 * truncated_normal: step -> a + b*z, z drawn as above with stream 3 and round 0, 1, ... until |z| < 2.  (b is the deviation before truncation.)
 * Defaults: uniform a = b = 0 means [0,1); normal b = 0 means 1. */
typedef struct yk_random_attrs { int32_t dtype; uint32_t rank; int64_t dim[YK_MAX_RANK]; double a, b; uint64_t seed; } yk_random_attrs;

/* ---- control and data ------------------------------------------------------------------------------------------------
 * no_op: control inputs only -> op (also what `group` makes). */

/* dequeue: () -> one value per component, [rows, component dims...], from a source shared by several dequeue ops (host only). */
enum { YK_MAX_COMPONENTS = 128 };  /* that an example has at most: the inputs and outputs of the largest network (network.h) */
typedef struct yk_source {
  void *self;
  /* Fill `rows` examples into out[component]; blocks until there are enough. [any thread]
   * ERANGE once nothing is left, ECANCELLED once it was closed before that. */
  yk_code (*next)(void *self, int64_t rows, void *const *out);
  uint32_t ncomponents;
  yk_desc component[YK_MAX_COMPONENTS];          /* one example each, without the batch dimension */
} yk_source;
typedef struct yk_dequeue_attrs { const yk_source *source; int64_t rows; } yk_dequeue_attrs;

/* replica_sum: x -> the sum of x over the nodes of one group, a replica each, in the order of replicas. A step must have all of them; one
 * alone is its input. */
typedef struct yk_replica_attrs { uint64_t group; uint32_t replica; } yk_replica_attrs;

/* reorder: x -> x in another layout. Made by the planner only; both layouts are given in the kernel spec. */

#ifdef __cplusplus
}
#endif
#endif
