/*
 * nn.h - builders of neural-network operations: products, convolutions, pooling, normalisation, losses, dropout.
 *
 * Each yk_x(...) is a macro for yk_x_at(where, ...), see graph.h. Pictures are [N, H, W, C], filters [h, w, I, O]. An
 * attribute struct may be NULL: all defaults; its fields are described in op_attrs.h.
 *
 * All of them return a value of the graph, or {0} after a sticky error (EINVAL: shapes or attributes that do not fit, both
 * shown; see yk_graph_status). One thread at a time per graph. Inputs stay valid; nothing is owned by the caller.
 * Unknown dimensions (-1) are legal everywhere unless said otherwise.
 */
#ifndef YK_NN_H
#define YK_NN_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products ------------------------------------------------------------------------------------------ */

/* a [..., M, K] * b [..., K, N] -> [..., M, N], either one stored transposed; batch axes broadcast as in NumPy. */
yk_value yk_matmul_at(const char *where, yk_graph *g, yk_value a, yk_value b, const yk_matmul_attrs *attrs);
/* x [..., C] + b [C]. */
yk_value yk_bias_add_at(const char *where, yk_graph *g, yk_value x, yk_value b);
#define yk_matmul(...)   yk_matmul_at(YK_HERE, __VA_ARGS__)
#define yk_bias_add(...) yk_bias_add_at(YK_HERE, __VA_ARGS__)

/* ---- convolution ---------------------------------------------------------------------------------------- */

/*
 * y[n,i,j,o] = sum over (p, q, c) of x[n, i*s + p*d - before, j*s + q*d - before, c] * w[p,q,c,o], zero outside x; a
 * correlation: the filter is not flipped. x [N,H,W,C], w [h,w,C/groups,O] -> [N,H',W',O].
 * SAME: H' = ceil(H/s), padding max((H'-1)*s + (h-1)*d + 1 - H, 0) with the smaller half before. VALID: H' = ceil((H - (h-1)*d)/s).
 */
yk_value yk_conv2d_at(const char *where, yk_graph *g, yk_value x, yk_value w, const yk_conv2d_attrs *attrs);
/* Each channel with filters of its own: x [N,H,W,C], w [h,w,C,M] -> [N,H',W',C*M], output c*M + m from channel c. attrs->groups
 * must be 0, and w's dims known. */
yk_value yk_depthwise_conv2d_at(const char *where, yk_graph *g, yk_value x, yk_value w, const yk_conv2d_attrs *attrs);
/* The gradient of conv2d used forwards: x [N,H,W,C], w [h,w,O/groups,C] -> [N,H',W',O] with H' = H*s (SAME), (H-1)*s + (h-1)*d + 1
 * (VALID), less the padding (EXPLICIT), or attrs->out, refused unless conv2d leads from it to H. */
yk_value yk_conv2d_transpose_at(const char *where, yk_graph *g, yk_value x, yk_value w, const yk_conv2d_attrs *attrs);
#define yk_conv2d(...)           yk_conv2d_at(YK_HERE, __VA_ARGS__)
#define yk_depthwise_conv2d(...) yk_depthwise_conv2d_at(YK_HERE, __VA_ARGS__)
#define yk_conv2d_transpose(...) yk_conv2d_transpose_at(YK_HERE, __VA_ARGS__)

/* ---- pooling --------------------------------------------------------------------------------------------- */

/* Largest cell, or mean of the cells, under each window; padding cells never count. x [N,H,W,C] -> [N,H',W',C], sizes as conv2d.
 * The gradient of a maximum goes to the first one in reading order. yk_output(g, y, 1) of max_pool is the window index. */
yk_value yk_max_pool_at(const char *where, yk_graph *g, yk_value x, const yk_pool_attrs *attrs);
yk_value yk_avg_pool_at(const char *where, yk_graph *g, yk_value x, const yk_pool_attrs *attrs);
/* Over the whole picture: x [N,H,W,C] -> [N,C]. */
yk_value yk_global_max_pool_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_global_avg_pool_at(const char *where, yk_graph *g, yk_value x);
#define yk_max_pool(...)        yk_max_pool_at(YK_HERE, __VA_ARGS__)
#define yk_avg_pool(...)        yk_avg_pool_at(YK_HERE, __VA_ARGS__)
#define yk_global_max_pool(...) yk_global_max_pool_at(YK_HERE, __VA_ARGS__)
#define yk_global_avg_pool(...) yk_global_avg_pool_at(YK_HERE, __VA_ARGS__)

/* ---- pictures made larger, boxes in them --------------------------------------------------------------------- */

/* x [N,H,W,C] -> [N,H*rows,W*columns,C], by whole factors of 1 and more, in the geometry of half-pixel centres (Keras's UpSampling2D). */
yk_value yk_resize_nearest_at(const char *where, yk_graph *g, yk_value x, int rows, int columns);
yk_value yk_resize_bilinear_at(const char *where, yk_graph *g, yk_value x, int rows, int columns);
/* Greedy choice among boxes [N,4] (rows y1, x1, y2, x2) by scores [N]: out[0] indices i32 [max_outputs], best first, -1 behind the last;
 * out[1] how many, i32 scalar. attrs has max_outputs, at least. Returns out[0]. No gradient. TensorFlow's non_max_suppression. */
yk_value yk_non_max_suppression_at(const char *where, yk_graph *g, yk_value boxes, yk_value scores, const yk_nms_attrs *attrs,
                                   yk_value out[2]);
/* What features x [N,H,W,C] are in boxes [R,4] (y1, x1, y2, x2 in pixels of the picture; attrs->scale: cells a pixel) of images i32 [R]:
 * [R,h,w,C], attrs->size being h and w (He, Gkioxari, Dollar, Girshick, 2017). images {0}: boxes [N,R,4], known, are R of each picture; [N*R,h,w,C].
 * The gradient goes to x. The run fails on an image out of range. */
yk_value yk_roi_align_at(const char *where, yk_graph *g, yk_value x, yk_value boxes, yk_value images, const yk_roi_attrs *attrs);
/* Intersection over union of every box of a [N,4] with every one of b [M,4], second corners not before the first: [N,M]; 0 for an empty
 * union. */
yk_value yk_box_iou_at(const char *where, yk_graph *g, yk_value a, yk_value b);
#define yk_resize_nearest(...)      yk_resize_nearest_at(YK_HERE, __VA_ARGS__)
#define yk_resize_bilinear(...)     yk_resize_bilinear_at(YK_HERE, __VA_ARGS__)
#define yk_non_max_suppression(...) yk_non_max_suppression_at(YK_HERE, __VA_ARGS__)
#define yk_roi_align(...)           yk_roi_align_at(YK_HERE, __VA_ARGS__)
#define yk_box_iou(...)             yk_box_iou_at(YK_HERE, __VA_ARGS__)

/* ---- normalisation ---------------------------------------------------------------------------------------- */

/* x [..., C] -> x_i * (bias + alpha * sum over |j-i| <= radius of x_j^2)^-beta (Krizhevsky et al., 2012). */
yk_value yk_lrn_at(const char *where, yk_graph *g, yk_value x, const yk_lrn_attrs *attrs);
/* x [..., C], gamma [C], beta [C] -> (x - mean)/sqrt(var + epsilon)*gamma + beta over each row (Ba, Kiros, Hinton, 2016).
 * gamma, beta: f32, or f64 if x is. */
yk_value yk_layer_norm_at(const char *where, yk_graph *g, yk_value x, yk_value gamma, yk_value beta, const yk_norm_attrs *attrs);
/* Mean and biased variance over `naxes` axes (0 = all; negative from the end), into *mean and *variance ({0} after an error). */
void yk_moments_at(const char *where, yk_graph *g, yk_value x, uint32_t naxes, const int32_t *axes, bool keepdims,
                   yk_value *mean, yk_value *variance);
#define yk_lrn(...)        yk_lrn_at(YK_HERE, __VA_ARGS__)
#define yk_layer_norm(...) yk_layer_norm_at(YK_HERE, __VA_ARGS__)
#define yk_moments(...)    yk_moments_at(YK_HERE, __VA_ARGS__)

typedef struct yk_batch_norm_options {
  bool   training;               /* use and keep track of this batch's statistics; otherwise the moving ones */
  double momentum, epsilon;      /* 0 = 0.99, 1e-3: moving = momentum*moving + (1-momentum)*batch */
  bool   no_scale, no_center;    /* leave gamma, beta out (1 and 0) */
  bool   sync;                   /* training: the exact statistics over all replicas (uses of one moving pair), whatever their shares;
                                    all of them must be part of a step. Slower: in several passes over x */
  bool   unbiased;               /* the moving variance follows n/(n-1) times the batch's, n elements a channel: Keras 2's for pictures */
  bool   in_turn;                /* uses of one moving pair are calls of one layer, each of which moves it, as in Keras; otherwise they
                                    are towers, and their mean does */
} yk_batch_norm_options;

/*
 * Batch normalisation (Ioffe, Szegedy, 2015) of x [..., C], C known -> [..., C]. options NULL: inference.
 *
 * Variables gamma (ones), beta (zeros), moving_mean (zeros), moving_variance (ones; both not trainable), all [C] and f32 (f64 for
 * f64), are those of the current variable scope: open one around each layer. In training the first use of a moving pair adds ONE op
 * that updates both to YK_UPDATE_OPS. Later uses of the same pair (reuse: more towers) share the variables and add no op; their
 * statistics are remembered for yk_batch_norm_updates().
 */
yk_value yk_batch_norm_at(const char *where, yk_graph *g, yk_value x, const yk_batch_norm_options *options);
#define yk_batch_norm(...) yk_batch_norm_at(YK_HERE, __VA_ARGS__)

/*
 * One op that updates every moving pair, by the mean over all its training uses (towers) so far, or, in_turn, by one use after the
 * other. To be run each step INSTEAD of the ops that yk_batch_norm added to YK_UPDATE_OPS. A pair used once keeps its op; one used n
 * times gets a new one, on the device of its variables. A graph without any gives an op that does nothing.
 */
/* Under a guard (yk_guard_push()) these updates heed it; what else is in YK_UPDATE_OPS was made before and does not. */
yk_value yk_batch_norm_updates_at(const char *where, yk_graph *g);
/* One op that runs what has to run beside a training step: yk_batch_norm_updates(), and everything else in YK_UPDATE_OPS. */
yk_value yk_update_ops_at(const char *where, yk_graph *g);
#define yk_batch_norm_updates(g) yk_batch_norm_updates_at(YK_HERE, g)
#define yk_update_ops(g)         yk_update_ops_at(YK_HERE, g)

/* ---- recurrent layers ---------------------------------------------------------------------------------------- */

/*
 * A layer over whole sequences: x [N,T,C], kernel [C,g*U], recurrent [U,g*U], bias [g*U] (or {0}), all of one float type; the state
 * before the first step h (and c) [N,U], {0} = zeros; mask bool [N,T] or {0}: where it is false the step changes nothing. Outputs,
 * an entry each of out[]: y [N,T,U] of all steps, then h (and c) [N,U] after the last one. Returns y. Formulae: op_attrs.h; order of
 * gates, masks and go_backwards are those of Keras's layers, whose weights fit as they are. No second derivatives.
 */
/* g = 4, gates i, f, c, o (Hochreiter, Schmidhuber, 1997; Gers, Schmidhuber, Cummins, 2000). */
yk_value yk_lstm_at(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value recurrent, yk_value bias, yk_value h, yk_value c,
                    yk_value mask, const yk_rnn_attrs *attrs, yk_value out[3]);
/* g = 3, gates z, r, h (Cho and others, 2014). recurrent_bias [3U] or {0} is added to h*recurrent; there is none with reset_before. */
yk_value yk_gru_at(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value recurrent, yk_value bias, yk_value recurrent_bias,
                   yk_value h, yk_value mask, const yk_rnn_attrs *attrs, yk_value out[2]);
/* g = 1: h = tanh(x*kernel + bias + h*recurrent) (Elman, 1990). */
yk_value yk_simple_rnn_at(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value recurrent, yk_value bias, yk_value h,
                          yk_value mask, const yk_rnn_attrs *attrs, yk_value out[2]);
#define yk_lstm(...)       yk_lstm_at(YK_HERE, __VA_ARGS__)
#define yk_gru(...)        yk_gru_at(YK_HERE, __VA_ARGS__)
#define yk_simple_rnn(...) yk_simple_rnn_at(YK_HERE, __VA_ARGS__)

/* ---- softmax and losses -------------------------------------------------------------------------------------- */

/* Over the last axis: x [..., C] -> [..., C]. */
yk_value yk_softmax_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_log_softmax_at(const char *where, yk_graph *g, yk_value x);
/* logits [N,C], labels [N,C] (rows of probabilities) -> loss [N] = -sum(labels * log_softmax(logits)). The gradient assumes rows that
 * sum to one; it flows to the labels too (wrap them in stop_gradient if it should not). */
yk_value yk_softmax_cross_entropy_at(const char *where, yk_graph *g, yk_value logits, yk_value labels);
/* logits [N,C], labels i32 or i64 [N] -> loss [N] = -log_softmax(logits)[label]. A label outside [0,C) fails the run, telling it. */
yk_value yk_sparse_softmax_cross_entropy_at(const char *where, yk_graph *g, yk_value logits, yk_value labels);
/* Element-wise, one shape: max(x,0) - x*z + log(1 + exp(-|x|)). */
yk_value yk_sigmoid_cross_entropy_at(const char *where, yk_graph *g, yk_value logits, yk_value labels);
/* Element-wise, one shape: d^2/(2 beta) up to d = |x - y| = beta (above 0), d - beta/2 beyond it (Girshick, 2015). */
yk_value yk_smooth_l1_at(const char *where, yk_graph *g, yk_value x, yk_value y, double beta);
#define yk_softmax(...)                      yk_softmax_at(YK_HERE, __VA_ARGS__)
#define yk_log_softmax(...)                  yk_log_softmax_at(YK_HERE, __VA_ARGS__)
#define yk_softmax_cross_entropy(...)        yk_softmax_cross_entropy_at(YK_HERE, __VA_ARGS__)
#define yk_sparse_softmax_cross_entropy(...) yk_sparse_softmax_cross_entropy_at(YK_HERE, __VA_ARGS__)
#define yk_sigmoid_cross_entropy(...)        yk_sigmoid_cross_entropy_at(YK_HERE, __VA_ARGS__)
#define yk_smooth_l1(...)                    yk_smooth_l1_at(YK_HERE, __VA_ARGS__)

/* ---- dropout ---------------------------------------------------------------------------------------------------- */

/* Zero each element with probability rate in [0, 1) and scale the rest by 1/(1-rate); another mask each run. seed 0 = derived from
 * the graph's. rate 0 is the identity. */
yk_value yk_dropout_at(const char *where, yk_graph *g, yk_value x, double rate, uint64_t seed);
#define yk_dropout(...) yk_dropout_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
