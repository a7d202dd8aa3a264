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
 * One op that updates every moving pair once, by the mean over all its training uses (towers) so far. To be run each step INSTEAD of
 * the ops that yk_batch_norm added to YK_UPDATE_OPS. A pair used once keeps its op; one used n times gets a new one, on the device of
 * its variables. A graph without any gives an op that does nothing.
 */
/* Under a guard (yk_guard_push()) these updates heed it; what else is in YK_UPDATE_OPS was made before and does not. */
yk_value yk_batch_norm_updates_at(const char *where, yk_graph *g);
/* One op that runs what has to run beside a training step: yk_batch_norm_updates(), and everything else in YK_UPDATE_OPS. */
yk_value yk_update_ops_at(const char *where, yk_graph *g);
#define yk_batch_norm_updates(g) yk_batch_norm_updates_at(YK_HERE, g)
#define yk_update_ops(g)         yk_update_ops_at(YK_HERE, g)

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
#define yk_softmax(...)                      yk_softmax_at(YK_HERE, __VA_ARGS__)
#define yk_log_softmax(...)                  yk_log_softmax_at(YK_HERE, __VA_ARGS__)
#define yk_softmax_cross_entropy(...)        yk_softmax_cross_entropy_at(YK_HERE, __VA_ARGS__)
#define yk_sparse_softmax_cross_entropy(...) yk_sparse_softmax_cross_entropy_at(YK_HERE, __VA_ARGS__)
#define yk_sigmoid_cross_entropy(...)        yk_sigmoid_cross_entropy_at(YK_HERE, __VA_ARGS__)

/* ---- dropout ---------------------------------------------------------------------------------------------------- */

/* Zero each element with probability rate in [0, 1) and scale the rest by 1/(1-rate); another mask each run. seed 0 = derived from
 * the graph's. rate 0 is the identity. */
yk_value yk_dropout_at(const char *where, yk_graph *g, yk_value x, double rate, uint64_t seed);
#define yk_dropout(...) yk_dropout_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
