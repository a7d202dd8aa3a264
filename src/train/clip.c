/*
 * clip.c - gradients limited: element by element, each by its norm, all by their common norm.
 *
 * Norms are computed where the gradients are, so that only scalars travel. A sparse gradient stays sparse: its values are
 * what is clipped and what the norm is of.
 */
#include <math.h>
#include "train/train.h"

static void empty(const yk_graph *g, size_t n, yk_gradient *grads) {
  for (size_t i = 0; i < n && g->status != YK_OK; i++) grads[i].grad = (yk_value){ 0 };
}

/* What the norm of a gradient is of. */
static yk_value elements(const yk_graph *g, yk_value grad) {
  yk_value values = grad;
  yk_gradient_rows(g, grad, &values, NULL);
  return values;
}

/* `clipped` in place of the elements of `grad`. */
static yk_value with_elements(const char *where, yk_graph *g, yk_value grad, yk_value clipped) {
  yk_value rows;
  if (!yk_gradient_rows(g, grad, NULL, &rows)) return clipped;
  return yk__rows_like(where, g, clipped, rows, grad);
}

/* Nodes of a gradient go where it is. */
static void open_place(const char *where, yk_graph *g, yk_value grad) {
  yk_device_push_at(where, g, NULL);
  yk_device_push_at(where, g, yk_value_device(g, grad));
}

static void close_place(const char *where, yk_graph *g) {
  yk_device_pop_at(where, g);
  yk_device_pop_at(where, g);
}

static yk_dtype dtype_of(const yk_graph *g, yk_value v) {
  const yk_desc *d = yk_value_desc(g, v);
  return d != NULL ? (yk_dtype)d->dtype : YK_NONE;
}

/* The number x in the dtype of `like`. */
static yk_value number(const char *where, yk_graph *g, yk_value like, double x) {
  return g->status == YK_OK ? yk_scalar_at(where, g, dtype_of(g, like), x) : (yk_value){ 0 };
}

/* Half the sum of squares, in f32 for f16 and bf16, whose squares overflow. */
static yk_value half_squares(const char *where, yk_graph *g, yk_value x) {
  yk_dtype t = dtype_of(g, x);
  return yk_l2_loss_at(where, g, t == YK_F16 || t == YK_BF16 ? yk_cast_at(where, g, x, YK_F32) : x);
}

/* The root of twice a sum. */
static yk_value norm_of(const char *where, yk_graph *g, yk_value half) {
  return yk_sqrt_at(where, g, yk_mul_at(where, g, half, number(where, g, half, 2)));
}

static yk_value in_dtype(const char *where, yk_graph *g, yk_value x, yk_dtype t) {
  return dtype_of(g, x) == t ? x : yk_cast_at(where, g, x, t);
}

static bool valid_norm(const char *where, yk_graph *g, double norm) {
  if (norm > 0 && isfinite(norm)) return true;
  yk_graph_fail_at(where, g, YK_EINVAL, "gradients cannot be clipped to a norm of %g; expected a number above 0", norm);
  return false;
}

void yk_clip_by_value_at(const char *where, yk_graph *g, double lo, double hi, size_t n, yk_gradient *grads) {
  if (!(lo <= hi)) yk_graph_fail_at(where, g, YK_EINVAL, "gradients cannot be clipped to [%g, %g]", lo, hi);
  yk_name_scope_push_at(where, g, "clip_by_value");
  for (size_t i = 0; i < n && g->status == YK_OK; i++) {
    yk_value x = grads[i].grad;
    if (x.id == 0) continue;
    open_place(where, g, x);
    grads[i].grad = with_elements(where, g, x, yk_clip_at(where, g, elements(g, x), lo, hi));
    close_place(where, g);
  }
  yk_name_scope_pop_at(where, g);
  empty(g, n, grads);
}

void yk_clip_by_norm_at(const char *where, yk_graph *g, double norm, size_t n, yk_gradient *grads) {
  (void)valid_norm(where, g, norm);
  yk_name_scope_push_at(where, g, "clip_by_norm");
  for (size_t i = 0; i < n && g->status == YK_OK; i++) {
    yk_value x = grads[i].grad, values = elements(g, x), have, most;
    if (x.id == 0) continue;
    open_place(where, g, x);
    have = norm_of(where, g, half_squares(where, g, values));
    most = number(where, g, have, norm);
    most = in_dtype(where, g, yk_div_at(where, g, most, yk_maximum_at(where, g, have, most)), dtype_of(g, values));
    grads[i].grad = with_elements(where, g, x, yk_mul_at(where, g, values, most));
    close_place(where, g);
  }
  yk_name_scope_pop_at(where, g);
  empty(g, n, grads);
}

/* The halves of all squares, each where its gradient is, added up here. */
static yk_value sum_halves(const char *where, yk_graph *g, size_t n, const yk_gradient *grads, yk_value *halves) {
  size_t found = 0;
  yk_dtype t = YK_F32;
  for (size_t i = 0; i < n && g->status == YK_OK; i++) {
    if (grads[i].grad.id == 0) continue;
    open_place(where, g, grads[i].grad);
    halves[found] = half_squares(where, g, elements(g, grads[i].grad));
    close_place(where, g);
    if (dtype_of(g, halves[found++]) == YK_F64) t = YK_F64;
  }
  if (found == 0 && g->status == YK_OK) return yk_graph_fail_at(where, g, YK_EINVAL, "none of the %zu variables has a gradient to take a norm of", n);
  for (size_t i = 0; i < found; i++) halves[i] = in_dtype(where, g, halves[i], t);
  return found == 1 ? halves[0] : yk_add_n_at(where, g, found, halves);
}

yk_value yk_global_norm_at(const char *where, yk_graph *g, size_t n, const yk_gradient *grads) {
  yk_value *halves, norm;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  halves = yk__calloc(n + 1, sizeof *halves);
  if (halves == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the norms of %zu gradients", n);
  yk_name_scope_push_at(where, g, "global_norm");
  norm = norm_of(where, g, sum_halves(where, g, n, grads, halves));
  yk_name_scope_pop_at(where, g);
  yk__free(halves);
  return g->status == YK_OK ? norm : (yk_value){ 0 };
}

/* norm * min(1/N, 1/norm) + (N - N): the last term is 0, or NaN if N is not finite. */
static yk_value factor(const char *where, yk_graph *g, yk_value have, double norm) {
  yk_value least = yk_minimum_at(where, g, yk_reciprocal_at(where, g, have), number(where, g, have, 1 / norm));
  return yk_add_at(where, g, yk_mul_at(where, g, least, number(where, g, have, norm)), yk_sub_at(where, g, have, have));
}

void yk__clip_from(const char *where, yk_graph *g, yk_value have, double norm, size_t n, yk_gradient *grads) {
  yk_value scale = { 0 };
  yk_name_scope_push_at(where, g, "clip_by_global_norm");
  if (g->status == YK_OK) scale = factor(where, g, have, norm);
  for (size_t i = 0; i < n && g->status == YK_OK; i++) {
    yk_value x = grads[i].grad, values = elements(g, x);
    if (x.id == 0) continue;
    open_place(where, g, x);
    grads[i].grad = with_elements(where, g, x, yk_mul_at(where, g, values, in_dtype(where, g, scale, dtype_of(g, values))));
    close_place(where, g);
  }
  yk_name_scope_pop_at(where, g);
  empty(g, n, grads);
}

yk_value yk_clip_by_global_norm_at(const char *where, yk_graph *g, double norm, size_t n, yk_gradient *grads) {
  yk_value have = { 0 };
  if (g->status == YK_OK && valid_norm(where, g, norm)) have = yk_global_norm_at(where, g, n, grads);
  yk__clip_from(where, g, have, norm, n, grads);
  return g->status == YK_OK ? have : (yk_value){ 0 };
}
