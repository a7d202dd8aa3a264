/*
 * math.h - builders of the basic operations: constants, arithmetic, activations, reductions, shapes, random numbers.
 *
 * All return a value of graph g, {0} after a sticky error (see graph.h; each entry of an array `out` is {0} too), and are
 * called by the one thread that builds the graph. yk_add(g, a, b) is a macro for yk_add_at(where, g, a, b). Arrays and
 * structs passed in are copied. Each operation's exact formula is in op_attrs.h; gradients follow its conventions.
 * Shapes may hold unknown dims (-1) wherever the op can do without them.
 */
#ifndef YK_MATH_H
#define YK_MATH_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- constants and placeholders ------------------------------------------------------------------------------ */


/* A value fixed now. The node keeps a reference to the tensor; do not change its contents afterwards. dtype and shape
 * are the tensor's. */
yk_value yk_constant_at(const char *where, yk_graph *g, const yk_tensor *tensor);
#define yk_constant(...) yk_constant_at(YK_HERE, __VA_ARGS__)

/* A constant of `dtype` and `shape` from as many elements at `data`, which is copied; the second one for float. */
yk_value yk_constant_from_at(const char *where, yk_graph *g, yk_dtype dtype, yk_shape shape, const void *data);
yk_value yk_constant_f32_at(const char *where, yk_graph *g, yk_shape shape, const float *data);
#define yk_constant_from(...) yk_constant_from_at(YK_HERE, __VA_ARGS__)
#define yk_constant_f32(...) yk_constant_f32_at(YK_HERE, __VA_ARGS__)

/* A constant scalar; and a constant tensor of equal elements. x is rounded to dtype. */
yk_value yk_scalar_at(const char *where, yk_graph *g, yk_dtype dtype, double x);
yk_value yk_scalar_f32_at(const char *where, yk_graph *g, float x);
yk_value yk_fill_at(const char *where, yk_graph *g, yk_dtype dtype, yk_shape shape, double x);
#define yk_scalar(...) yk_scalar_at(YK_HERE, __VA_ARGS__)
#define yk_scalar_f32(...) yk_scalar_f32_at(YK_HERE, __VA_ARGS__)
#define yk_fill(...) yk_fill_at(YK_HERE, __VA_ARGS__)

/* A value that every run must be fed. Dims that differ from run to run are -1. name may be NULL. */
yk_value yk_placeholder_at(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape);
#define yk_placeholder(...) yk_placeholder_at(YK_HERE, __VA_ARGS__)

/* ---- one input, element by element --------------------------------------------------------------------------- */


/* x itself, under a name or on a device of its own; x as a constant for gradients; zeros and ones of the shape and
 * dtype of `like`. */
yk_value yk_identity_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_stop_gradient_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_zeros_like_at(const char *where, yk_graph *g, yk_value like);
yk_value yk_ones_like_at(const char *where, yk_graph *g, yk_value like);
#define yk_identity(...) yk_identity_at(YK_HERE, __VA_ARGS__)
#define yk_stop_gradient(...) yk_stop_gradient_at(YK_HERE, __VA_ARGS__)
#define yk_zeros_like(...) yk_zeros_like_at(YK_HERE, __VA_ARGS__)
#define yk_ones_like(...) yk_ones_like_at(YK_HERE, __VA_ARGS__)

/* x in another dtype: floats truncate towards zero and saturate when they become integers, NaN becomes 0. Gradients
 * flow between floats. */
yk_value yk_cast_at(const char *where, yk_graph *g, yk_value x, yk_dtype dtype);
#define yk_cast(...) yk_cast_at(YK_HERE, __VA_ARGS__)

/* x, or a failure of the run if it holds NaN or infinity, telling which and `message` (copied; may be NULL). */
yk_value yk_check_numerics_at(const char *where, yk_graph *g, yk_value x, const char *message);
#define yk_check_numerics(...) yk_check_numerics_at(YK_HERE, __VA_ARGS__)
/* Bool scalar: does none of n values of float types, 1 or more, hold a NaN or, unless nan_only, an infinity? Has no gradient. */
yk_value yk_all_finite_at(const char *where, yk_graph *g, size_t n, const yk_value *x, bool nan_only);
#define yk_all_finite(...) yk_all_finite_at(YK_HERE, __VA_ARGS__)

/* -x, |x|, sign (-1, 0, 1), x*x: floats and integers. */
yk_value yk_neg_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_abs_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_sign_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_square_at(const char *where, yk_graph *g, yk_value x);
#define yk_neg(...) yk_neg_at(YK_HERE, __VA_ARGS__)
#define yk_abs(...) yk_abs_at(YK_HERE, __VA_ARGS__)
#define yk_sign(...) yk_sign_at(YK_HERE, __VA_ARGS__)
#define yk_square(...) yk_square_at(YK_HERE, __VA_ARGS__)

/* Floats. Gradients of sqrt, rsqrt (1/sqrt), reciprocal (1/x) and log are 0 where what flows back is 0, even at a
 * pole. */
yk_value yk_sqrt_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_rsqrt_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_reciprocal_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_exp_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_log_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_sin_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_cos_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_floor_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_ceil_at(const char *where, yk_graph *g, yk_value x);
#define yk_sqrt(...) yk_sqrt_at(YK_HERE, __VA_ARGS__)
#define yk_rsqrt(...) yk_rsqrt_at(YK_HERE, __VA_ARGS__)
#define yk_reciprocal(...) yk_reciprocal_at(YK_HERE, __VA_ARGS__)
#define yk_exp(...) yk_exp_at(YK_HERE, __VA_ARGS__)
#define yk_log(...) yk_log_at(YK_HERE, __VA_ARGS__)
#define yk_sin(...) yk_sin_at(YK_HERE, __VA_ARGS__)
#define yk_cos(...) yk_cos_at(YK_HERE, __VA_ARGS__)
#define yk_floor(...) yk_floor_at(YK_HERE, __VA_ARGS__)
#define yk_ceil(...) yk_ceil_at(YK_HERE, __VA_ARGS__)

/* x limited to [lo, hi]; EINVAL if lo > hi. The gradient passes where lo <= x <= hi. */
yk_value yk_clip_at(const char *where, yk_graph *g, yk_value x, double lo, double hi);
#define yk_clip(...) yk_clip_at(YK_HERE, __VA_ARGS__)

/* not x: bool. */
yk_value yk_logical_not_at(const char *where, yk_graph *g, yk_value x);
#define yk_logical_not(...) yk_logical_not_at(YK_HERE, __VA_ARGS__)

/* ---- activations: floats, any shape -------------------------------------------------------------------------- */


/* relu max(x, 0); relu6 min(max(x, 0), 6); selu with its fixed constants; silu x*sigmoid(x); softplus log(1 + exp(x)). */
yk_value yk_relu_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_relu6_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_selu_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_silu_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_tanh_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_sigmoid_at(const char *where, yk_graph *g, yk_value x);
yk_value yk_softplus_at(const char *where, yk_graph *g, yk_value x);
#define yk_relu(...) yk_relu_at(YK_HERE, __VA_ARGS__)
#define yk_relu6(...) yk_relu6_at(YK_HERE, __VA_ARGS__)
#define yk_selu(...) yk_selu_at(YK_HERE, __VA_ARGS__)
#define yk_silu(...) yk_silu_at(YK_HERE, __VA_ARGS__)
#define yk_tanh(...) yk_tanh_at(YK_HERE, __VA_ARGS__)
#define yk_sigmoid(...) yk_sigmoid_at(YK_HERE, __VA_ARGS__)
#define yk_softplus(...) yk_softplus_at(YK_HERE, __VA_ARGS__)

/* x, or alpha*x below 0 (alpha 0 = 0.2); x, or alpha*(exp(x) - 1) below 0 (alpha 0 = 1, never negative). */
yk_value yk_leaky_relu_at(const char *where, yk_graph *g, yk_value x, double alpha);
yk_value yk_elu_at(const char *where, yk_graph *g, yk_value x, double alpha);
#define yk_leaky_relu(...) yk_leaky_relu_at(YK_HERE, __VA_ARGS__)
#define yk_elu(...) yk_elu_at(YK_HERE, __VA_ARGS__)

/* x * Phi(x), exactly or in the tanh form. */
yk_value yk_gelu_at(const char *where, yk_graph *g, yk_value x, bool tanh_approximation);
#define yk_gelu(...) yk_gelu_at(YK_HERE, __VA_ARGS__)

/* ---- two inputs of one dtype, broadcasting ------------------------------------------------------------------- */


/* Floats and integers; maximum and minimum also u8, and a tie sends the whole gradient to a. */
yk_value yk_add_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_sub_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_mul_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_maximum_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_minimum_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_squared_difference_at(const char *where, yk_graph *g, yk_value a, yk_value b);
#define yk_add(...) yk_add_at(YK_HERE, __VA_ARGS__)
#define yk_sub(...) yk_sub_at(YK_HERE, __VA_ARGS__)
#define yk_mul(...) yk_mul_at(YK_HERE, __VA_ARGS__)
#define yk_maximum(...) yk_maximum_at(YK_HERE, __VA_ARGS__)
#define yk_minimum(...) yk_minimum_at(YK_HERE, __VA_ARGS__)
#define yk_squared_difference(...) yk_squared_difference_at(YK_HERE, __VA_ARGS__)

/* Floats. div_no_nan is 0 where b is 0. */
yk_value yk_div_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_div_no_nan_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_pow_at(const char *where, yk_graph *g, yk_value a, yk_value b);
#define yk_div(...) yk_div_at(YK_HERE, __VA_ARGS__)
#define yk_div_no_nan(...) yk_div_no_nan_at(YK_HERE, __VA_ARGS__)
#define yk_pow(...) yk_pow_at(YK_HERE, __VA_ARGS__)

/* Comparisons: bool. */
yk_value yk_equal_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_not_equal_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_less_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_less_equal_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_greater_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_greater_equal_at(const char *where, yk_graph *g, yk_value a, yk_value b);
#define yk_equal(...) yk_equal_at(YK_HERE, __VA_ARGS__)
#define yk_not_equal(...) yk_not_equal_at(YK_HERE, __VA_ARGS__)
#define yk_less(...) yk_less_at(YK_HERE, __VA_ARGS__)
#define yk_less_equal(...) yk_less_equal_at(YK_HERE, __VA_ARGS__)
#define yk_greater(...) yk_greater_at(YK_HERE, __VA_ARGS__)
#define yk_greater_equal(...) yk_greater_equal_at(YK_HERE, __VA_ARGS__)

/* bool and bool: bool. */
yk_value yk_logical_and_at(const char *where, yk_graph *g, yk_value a, yk_value b);
yk_value yk_logical_or_at(const char *where, yk_graph *g, yk_value a, yk_value b);
#define yk_logical_and(...) yk_logical_and_at(YK_HERE, __VA_ARGS__)
#define yk_logical_or(...) yk_logical_or_at(YK_HERE, __VA_ARGS__)

/* a where cond (bool) holds, else b; all three broadcast. */
yk_value yk_where_at(const char *where, yk_graph *g, yk_value cond, yk_value a, yk_value b);
#define yk_where(...) yk_where_at(YK_HERE, __VA_ARGS__)

/* Sum of n >= 1 values of one shape and dtype, added left to right. */
yk_value yk_add_n_at(const char *where, yk_graph *g, size_t n, const yk_value *xs);
#define yk_add_n(...) yk_add_n_at(YK_HERE, __VA_ARGS__)

/* x summed over the axes along which `like` would be broadcast to it; x spread to the shape of `like`. */
yk_value yk_sum_to_at(const char *where, yk_graph *g, yk_value x, yk_value like);
yk_value yk_broadcast_to_at(const char *where, yk_graph *g, yk_value x, yk_value like);
#define yk_sum_to(...) yk_sum_to_at(YK_HERE, __VA_ARGS__)
#define yk_broadcast_to(...) yk_broadcast_to_at(YK_HERE, __VA_ARGS__)

/* ---- reductions ---------------------------------------------------------------------------------------------- */


/* Over the axes of attrs (NULL = all of them; negative axes count from the end), which vanish unless keepdims.
 * sum, prod: floats and integers; mean: floats; min, max: also u8, equal extremes share the gradient. */
yk_value yk_reduce_sum_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs);
yk_value yk_reduce_mean_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs);
yk_value yk_reduce_min_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs);
yk_value yk_reduce_max_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs);
yk_value yk_reduce_prod_at(const char *where, yk_graph *g, yk_value x, const yk_reduce_attrs *attrs);
#define yk_reduce_sum(...) yk_reduce_sum_at(YK_HERE, __VA_ARGS__)
#define yk_reduce_mean(...) yk_reduce_mean_at(YK_HERE, __VA_ARGS__)
#define yk_reduce_min(...) yk_reduce_min_at(YK_HERE, __VA_ARGS__)
#define yk_reduce_max(...) yk_reduce_max_at(YK_HERE, __VA_ARGS__)
#define yk_reduce_prod(...) yk_reduce_prod_at(YK_HERE, __VA_ARGS__)

/* First index of the largest or smallest element along `axis`, i64; the axis vanishes. */
yk_value yk_argmax_at(const char *where, yk_graph *g, yk_value x, int axis);
yk_value yk_argmin_at(const char *where, yk_graph *g, yk_value x, int axis);
#define yk_argmax(...) yk_argmax_at(YK_HERE, __VA_ARGS__)
#define yk_argmin(...) yk_argmin_at(YK_HERE, __VA_ARGS__)

/* Half the sum of squares: scalar. */
yk_value yk_l2_loss_at(const char *where, yk_graph *g, yk_value x);
#define yk_l2_loss(...) yk_l2_loss_at(YK_HERE, __VA_ARGS__)

/* ---- shapes -------------------------------------------------------------------------------------------------- */


/* The shape of a value as i64 [rank], its number of elements, one of its dims: i64 scalars. */
yk_value yk_shape_at(const char *where, yk_graph *g, yk_value like);
yk_value yk_size_at(const char *where, yk_graph *g, yk_value like);
yk_value yk_dim_at(const char *where, yk_graph *g, yk_value like, int axis);
#define yk_shape(...) yk_shape_at(YK_HERE, __VA_ARGS__)
#define yk_size(...) yk_size_at(YK_HERE, __VA_ARGS__)
#define yk_dim(...) yk_dim_at(YK_HERE, __VA_ARGS__)

/* The elements of x in another shape: one dim may be -1; of the shape of `like`; [dim 0, everything else]. */
yk_value yk_reshape_at(const char *where, yk_graph *g, yk_value x, yk_shape shape);
yk_value yk_reshape_like_at(const char *where, yk_graph *g, yk_value x, yk_value like);
yk_value yk_flatten_at(const char *where, yk_graph *g, yk_value x);
#define yk_reshape(...) yk_reshape_at(YK_HERE, __VA_ARGS__)
#define yk_reshape_like(...) yk_reshape_like_at(YK_HERE, __VA_ARGS__)
#define yk_flatten(...) yk_flatten_at(YK_HERE, __VA_ARGS__)

/* A dim of 1 put in at `axis` of the result; dims of 1 taken out (attrs NULL = all of them). */
yk_value yk_expand_dims_at(const char *where, yk_graph *g, yk_value x, int axis);
yk_value yk_squeeze_at(const char *where, yk_graph *g, yk_value x, const yk_axes_attrs *attrs);
#define yk_expand_dims(...) yk_expand_dims_at(YK_HERE, __VA_ARGS__)
#define yk_squeeze(...) yk_squeeze_at(YK_HERE, __VA_ARGS__)

/* Axis k of the result is axis perm[k] of x; perm NULL = axes in reverse order, else as many entries as x has axes. */
yk_value yk_transpose_at(const char *where, yk_graph *g, yk_value x, const int32_t *perm);
#define yk_transpose(...) yk_transpose_at(YK_HERE, __VA_ARGS__)

/* ---- joining, cutting, picking ------------------------------------------------------------------------------- */


/* n >= 1 values one after the other along `axis`; n values of one shape stacked along a new axis. */
yk_value yk_concat_at(const char *where, yk_graph *g, size_t n, const yk_value *xs, int axis);
yk_value yk_stack_at(const char *where, yk_graph *g, size_t n, const yk_value *xs, int axis);
#define yk_concat(...) yk_concat_at(YK_HERE, __VA_ARGS__)
#define yk_stack(...) yk_stack_at(YK_HERE, __VA_ARGS__)

/* x cut into n pieces along `axis`, out[n]; sizes NULL = equal ones. At most 16 pieces. Returns out[0]. */
yk_value yk_split_at(const char *where, yk_graph *g, yk_value x, int axis, size_t n, const int64_t *sizes, yk_value *out);
/* The slices of x along `axis`, which vanishes: out[n], n being that dim. Returns out[0]. */
yk_value yk_unstack_at(const char *where, yk_graph *g, yk_value x, int axis, size_t n, yk_value *out);
#define yk_split(...) yk_split_at(YK_HERE, __VA_ARGS__)
#define yk_unstack(...) yk_unstack_at(YK_HERE, __VA_ARGS__)

/* size elements from begin, in each of as many axes as x has; size -1 = to the end. */
yk_value yk_slice_at(const char *where, yk_graph *g, yk_value x, const int64_t *begin, const int64_t *size);
#define yk_slice(...) yk_slice_at(YK_HERE, __VA_ARGS__)

/* x with `before` and `after` more elements of `value` at the ends of each axis. */
yk_value yk_pad_at(const char *where, yk_graph *g, yk_value x, const int64_t *before, const int64_t *after, double value);
#define yk_pad(...) yk_pad_at(YK_HERE, __VA_ARGS__)

/* The slices of params along `axis` that the indices (i32 or i64) name: params[:axis] + indices + params[axis+1:].
 * The run fails on an index out of range. */
yk_value yk_gather_at(const char *where, yk_graph *g, yk_value params, yk_value indices, int axis);
#define yk_gather(...) yk_gather_at(YK_HERE, __VA_ARGS__)

/* [..., depth] with `on` at the index (i32 or i64), `off` elsewhere; attrs has the depth, at least. */
yk_value yk_one_hot_at(const char *where, yk_graph *g, yk_value indices, const yk_one_hot_attrs *attrs);
#define yk_one_hot(...) yk_one_hot_at(YK_HERE, __VA_ARGS__)

/* x with the elements along `axis` in the opposite order. */
yk_value yk_reverse_at(const char *where, yk_graph *g, yk_value x, int axis);
#define yk_reverse(...) yk_reverse_at(YK_HERE, __VA_ARGS__)

/* x repeated multiple[k] times along axis k, one entry for each axis. */
yk_value yk_tile_at(const char *where, yk_graph *g, yk_value x, const int64_t *multiple);
#define yk_tile(...) yk_tile_at(YK_HERE, __VA_ARGS__)

/* The k largest elements along the last axis, descending, equal ones by lower index: out[0] values, out[1] indices (i32).
 * Returns the values. */
yk_value yk_top_k_at(const char *where, yk_graph *g, yk_value x, int k, yk_value out[2]);
#define yk_top_k(...) yk_top_k_at(YK_HERE, __VA_ARGS__)

/* Is the target class (i32 or i64 [N]) among the k largest predictions [N, C]? bool [N]. Ties count as in. */
yk_value yk_in_top_k_at(const char *where, yk_graph *g, yk_value predictions, yk_value targets, int k);
#define yk_in_top_k(...) yk_in_top_k_at(YK_HERE, __VA_ARGS__)

/* Rows of shard `index` of `count`: N/count rows each, the first N%count shards one more. */
yk_value yk_batch_shard_at(const char *where, yk_graph *g, yk_value x, unsigned index, unsigned count);
#define yk_batch_shard(...) yk_batch_shard_at(YK_HERE, __VA_ARGS__)

/* ---- random numbers: new ones each run, the same ones in the same run of the same seed ----------------------- */


/* attrs: dtype (0 = f32), shape, a and b, seed (0 = derived from the graph's). Uniform over [a, b) (both 0 = [0, 1));
 * normal with mean a, deviation b (0 = 1); truncated: drawn again beyond two deviations. */
yk_value yk_random_uniform_at(const char *where, yk_graph *g, const yk_random_attrs *attrs);
yk_value yk_random_normal_at(const char *where, yk_graph *g, const yk_random_attrs *attrs);
yk_value yk_truncated_normal_at(const char *where, yk_graph *g, const yk_random_attrs *attrs);
/* Normal numbers (deviation 0 = 1, seed 0 = derived) of the shape and dtype of `like`, whose shape may differ from run to run. */
yk_value yk_random_normal_like_at(const char *where, yk_graph *g, yk_value like, double mean, double deviation, uint64_t seed);
#define yk_random_normal_like(...) yk_random_normal_like_at(YK_HERE, __VA_ARGS__)
#define yk_random_uniform(...) yk_random_uniform_at(YK_HERE, __VA_ARGS__)
#define yk_random_normal(...) yk_random_normal_at(YK_HERE, __VA_ARGS__)
#define yk_truncated_normal(...) yk_truncated_normal_at(YK_HERE, __VA_ARGS__)

/* ---- updates of n variables at once; the results are operations to run --------------------------------------- */


/* w -= lr*g. Scalars have the dtype of the variables, all of one dtype; n is at most 16383 (so below too). */
yk_value yk_sgd_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *w, const yk_value *grad, yk_value lr);
/* a = momentum*a + g; w -= lr*a, or in Nesterov's form w -= lr*g + lr*momentum*a. */
yk_value yk_momentum_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *w, yk_variable *const *a,
                               const yk_value *grad, yk_value lr, yk_value momentum, bool nesterov);
/* s -= (1 - decay)*(s - v). */
yk_value yk_ema_update_at(const char *where, yk_graph *g, size_t n, yk_variable *const *s, const yk_value *v, yk_value decay);
#define yk_sgd_update(...) yk_sgd_update_at(YK_HERE, __VA_ARGS__)
#define yk_momentum_update(...) yk_momentum_update_at(YK_HERE, __VA_ARGS__)
#define yk_ema_update(...) yk_ema_update_at(YK_HERE, __VA_ARGS__)

/* ---- control and data ---------------------------------------------------------------------------------------- */


/* Nothing, after the control inputs in force. */
yk_value yk_no_op_at(const char *where, yk_graph *g);
#define yk_no_op(g) yk_no_op_at(YK_HERE, g)

/* The next `rows` examples of a source: out[k] is component k, [rows, its dims...]. The source must outlive the graph.
 * Returns out[0]. */
yk_value yk_dequeue_at(const char *where, yk_graph *g, const yk_source *source, int64_t rows, yk_value out[]);
#define yk_dequeue(...) yk_dequeue_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
