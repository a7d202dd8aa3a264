/*
 * builders.c - a call of every builder, made from builders.def. What takes more than an expression, because it returns
 * nothing or needs a frame around it, is a function here.
 */
#include "fault.h"

static yk_value constant(const fault_inputs *in) {
  yk_tensor *t = NULL;
  if (yk_tensor_new(YK_F32, YK_SHAPE(3), &t) != YK_OK) return yk_graph_fail_at(YK_HERE, in->g, YK_ENOMEM, "%s",
      yk_error_message());
  yk_value v = yk_constant(in->g, t);
  yk_tensor_free(t);
  return v;
}

/* Outputs of a failure: {0}. */
static yk_value both(yk_value a, yk_value b) {
  if (!a.id != !b.id) fail_msg("one output is value %u, the other %u", a.id, b.id);
  return a;
}

static yk_value moments(const fault_inputs *in) {
  yk_value mean = { 77 }, variance = { 78 };
  yk_moments(in->g, in->x, 0, NULL, false, &mean, &variance);
  return both(mean, variance);
}

static yk_value norm_twice(const fault_inputs *in) {
  yk_value y = { 0 };
  for (int i = 0; i < 2; i++)
    YK_VARIABLE_SCOPE_REUSE(in->g, "norm", YK_AUTO_REUSE) {
      y = yk_batch_norm(in->g, in->image, &(yk_batch_norm_options){ .training = true });
    }
  return y;
}

static yk_value norm_updates(const fault_inputs *in) {
  norm_twice(in);
  return yk_batch_norm_updates(in->g);
}

static yk_value update_ops(const fault_inputs *in) {
  norm_twice(in);
  yk_add_to_collection(in->g, YK_UPDATE_OPS, in->a);
  return yk_update_ops(in->g);
}

/* A layer of 2 units with `gates` gates over one sequence; all of its outputs or none. */
static yk_value recurrent(const fault_inputs *in, int gates) {
  yk_graph *g = in->g;
  yk_value x = yk_fill(g, YK_F32, YK_SHAPE(1, 3, 2), 1), w = yk_fill(g, YK_F32, YK_SHAPE(2, 2 * gates), 1), none = { 0 };
  yk_value bias = yk_fill(g, YK_F32, YK_SHAPE(2 * gates), 1), out[3] = { { 77 }, { 78 }, { 79 } };
  if (gates == 4) yk_lstm(g, x, w, w, bias, none, none, none, NULL, out);
  if (gates == 3) yk_gru(g, x, w, w, bias, bias, none, none, NULL, out);
  if (gates == 1) yk_simple_rnn(g, x, w, w, bias, none, none, NULL, out);
  return both(out[0], out[1]);
}

static yk_value detect(const fault_inputs *in, int what) {
  yk_graph *g = in->g;
  yk_value boxes = yk_fill(g, YK_F32, YK_SHAPE(2, 4), 1), out[2] = { { 77 }, { 78 } };
  if (what == 1) return yk_box_iou(g, boxes, boxes);
  if (what == 2) return yk_roi_align(g, in->image, yk_fill(g, YK_F32, YK_SHAPE(2, 3, 4), 1), (yk_value){ 0 }, NULL);
  if (what == 3) return yk_detection_loss(g, boxes, boxes, in->index, boxes);
  if (what == 4) {
    yk_value chosen[4] = { { 77 }, { 78 }, { 79 }, { 80 } };
    yk_choose_boxes(g, boxes, boxes, boxes, NULL, chosen);
    return both(both(chosen[0], chosen[1]), both(chosen[2], chosen[3]));
  }
  yk_non_max_suppression(g, boxes, yk_fill(g, YK_F32, YK_SHAPE(2), 1), NULL, out);
  return both(out[0], out[1]);
}

static yk_value name_scope(const fault_inputs *in) {
  yk_value y = { 0 };
  YK_NAME_SCOPE(in->g, "scope") { y = yk_relu(in->g, in->x); }
  return y;
}

static yk_value device_scope(const fault_inputs *in) {
  yk_value y = { 0 };
  YK_DEVICE(in->g, "/gpu:1") { y = yk_relu(in->g, in->x); }
  return y;
}

static const char *second(const yk_op *op, const char *name, const char *so_far, void *arg) {
  (void)op;
  (void)name;
  (void)so_far;
  return arg;
}

static yk_value device_function(const fault_inputs *in) {
  static char spec[] = "/gpu:1";
  yk_device_push_fn(in->g, second, spec);
  yk_value y = yk_relu(in->g, in->x);
  yk_device_pop(in->g);
  return y;
}

static yk_value replicas(const fault_inputs *in) {
  static const char *const devices[] = { "/gpu:0", "/gpu:1" };
  yk_value y = { 0 };
  yk_replica_setter *s = yk_replica_setter_new(in->g, &(yk_replica_options){ .ndevices = 2, .devices = devices });
  if (s == NULL) return y;
  yk_replica_push(in->g, s);
  y = yk_read(yk_get_variable(in->g, "spread", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL));
  yk_device_pop(in->g);
  return y;
}

static yk_value colocate(const fault_inputs *in) {
  yk_value y = { 0 };
  YK_COLOCATE(in->g, in->a) { y = yk_relu(in->g, in->x); }
  return y;
}

static yk_value scaled(const fault_inputs *in, int what) {
  yk_loss_scale s;
  yk_gradient grad[1] = { { in->b, in->v } };
  yk_loss_scale_new(in->g, 0, 0, &s);
  if (what == 0 || s.scale == NULL) return s.scale != NULL ? yk_read(s.scale) : (yk_value){ 0 };
  if (what == 1) return yk_scale_loss(in->g, &s, in->loss);
  if (what == 2) yk_unscale_gradients(in->g, &s, 1, grad);
  return what == 2 ? grad[0].grad : yk_loss_scale_update(in->g, &s, yk_all_finite(in->g, 1, &in->x, false));
}

static yk_value mixed(const fault_inputs *in) {
  yk_value v = { 0 };
  YK_PRECISION(in->g, YK_BF16) { v = yk_matmul(in->g, in->x, in->b, NULL); }
  return v;
}

static yk_value guarded(const fault_inputs *in) {
  yk_value v = { 0 }, ok = yk_all_finite(in->g, 1, &in->x, false);
  YK_GUARD(in->g, ok) { v = yk_assign(in->g, in->v, in->b); }
  return v;
}

static yk_value control(const fault_inputs *in) {
  yk_value y = { 0 };
  YK_CONTROL(in->g, 1, &in->a) { y = yk_relu(in->g, in->x); }
  return y;
}

static yk_value get_variable(const fault_inputs *in) {
  static const char *const keys[] = { "mine", NULL };
  yk_variable_options o = { .regularizer = { .l2 = 0.5 }, .collections = keys };
  yk_variable *v = yk_get_variable(in->g, "fresh", YK_F32, YK_SHAPE(2, 3), YK_GLOROT_UNIFORM, &o);
  return yk_read(v);
}

static yk_value variable_scope(const fault_inputs *in) {
  yk_tensor *t = NULL;
  yk_value y = { 0 };
  if (yk_tensor_new(YK_F32, YK_SHAPE(3), &t) != YK_OK) return yk_graph_fail_at(YK_HERE, in->g, YK_ENOMEM, "%s",
      yk_error_message());
  yk_variable_scope_push(in->g, "layer", &(yk_scope_options){ .init = { .kind = YK_INIT_TENSOR, .tensor = t } });
  y = yk_read(yk_get_variable(in->g, "bias", YK_F32, YK_SHAPE(3), YK_DEFAULT_INIT, NULL));
  yk_variable_scope_pop(in->g);
  yk_tensor_free(t);
  return y;
}

static yk_value variable_scope_enter(const fault_inputs *in) {
  yk_variable_scope *scope = NULL;
  yk_value y = { 0 };
  YK_VARIABLE_SCOPE(in->g, "layer") { scope = yk_get_variable_scope(in->g); }
  yk_variable_scope_enter(in->g, scope, &(yk_scope_options){ .reuse = YK_AUTO_REUSE });
  y = yk_read(yk_get_variable(in->g, "bias", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL));
  yk_variable_scope_pop(in->g);
  return y;
}

static yk_value collection(const fault_inputs *in) {
  yk_value v = { 0 };
  yk_add_to_collection(in->g, "a key of one's own", in->a);
  (void)yk_get_collection(in->g, "a key of one's own", NULL, &v, 1);
  return yk_graph_status(in->g) == YK_OK ? v : (yk_value){ 0 };
}

static yk_value gradients(const fault_inputs *in) {
  yk_value xs[2] = { in->x, yk_read(in->v) }, dx[2] = { { 77 }, { 78 } };
  yk_gradients(in->g, 1, &in->loss, NULL, 2, xs, NULL, dx);
  return both(dx[0], dx[1]);
}

static yk_value compute_gradients(const fault_inputs *in) {
  yk_gradient pair[4] = { { { 0 }, NULL } };
  size_t n = yk_compute_gradients(in->g, in->loss, 0, NULL, pair, 4);
  CHECK_INT(n, 2);
  return pair[1].grad;
}

static yk_value sum_gradients(const fault_inputs *in) {
  yk_gradient tower[2][2] = { { { in->b, in->v }, { in->b, in->w } }, { { in->b, in->v }, { in->b, in->w } } },
    sum[2] = { { { 0 }, NULL } };
  const yk_gradient *all[2] = { tower[0], tower[1] };
  yk_sum_gradients(in->g, 2, all, 2, sum);
  return sum[1].grad;
}

/* Adam takes most: slots and powers; RMSProp keeps the gradient of the lookups sparse. */
static yk_value apply_gradients(const fault_inputs *in) {
  yk_value twice[2] = { yk_gather(in->g, yk_read(in->v), in->index, 0), yk_gather(in->g, yk_read(in->v), in->labels, 0) };
  yk_value loss = yk_reduce_sum(in->g, yk_concat(in->g, 2, twice, 0), NULL);
  yk_gradient pair = { { 0 }, in->v };
  yk_compute_gradients(in->g, loss, 1, &in->v, &pair, 1);
  yk_value parts[2] = { yk_apply_gradients(in->g, &YK_ADAM(0.1), 1, &pair, in->counter),
                        yk_apply_gradients(in->g, &YK_RMSPROP(0.1), 1, &pair, NULL) };
  return yk_group(in->g, 2, parts);
}

static yk_value clipped(const fault_inputs *in, int how) {
  yk_value values = yk_gather(in->g, yk_read(in->v), in->index, 0), norm = { 1 };
  yk_gradient pair[2] = { { { 0 }, in->v }, { in->b, in->w } };
  yk_compute_gradients(in->g, yk_reduce_sum(in->g, values, NULL), 1, &in->v, pair, 1);
  if (how == 0) yk_clip_by_value(in->g, -1, 1, 2, pair);
  if (how == 1) yk_clip_by_norm(in->g, 1, 2, pair);
  if (how == 2) norm = yk_clip_by_global_norm(in->g, 1, 2, pair);
  return norm.id ? both(pair[0].grad, pair[1].grad) : norm;
}

static yk_value accumulated(const fault_inputs *in, bool apply) {
  yk_gradient pair[2] = { { in->b, in->v }, { in->b, in->w } }, mean[2] = { { { 0 }, NULL } };
  yk_value add = yk_accumulate_gradients(in->g, 4, 2, pair, mean);
  return apply ? yk_apply_accumulated(in->g, &YK_SGD(0.1), 2, mean, in->counter) : both(add, mean[1].grad);
}

/* Of a graph that has none yet, where it is made. */
static yk_value global_step(const fault_inputs *in) {
  yk_graph *g = NULL;
  if (yk_graph_new(&g) != YK_OK) return yk_graph_fail_at(YK_HERE, in->g, YK_ENOMEM, "%s", yk_error_message());
  yk_value v = yk_read(yk_global_step(g));
  yk_code rc = yk_graph_status(g);
  if (rc != YK_OK) yk_graph_fail_at(YK_HERE, in->g, rc, "%s", yk_error_message());
  yk_graph_free(g);
  return v;
}

#define X(name, expression)                                            \
  static yk_value build_##name(const fault_inputs *in) {               \
    yk_graph *g = in->g;                                               \
    yk_value out[4] = { { 0 } };                                       \
    (void)g;                                                           \
    (void)out;                                                         \
    return expression;                                                 \
  }
#include "builders.def"
#undef X

const fault_builder fault_builders[] = {
#define X(name, expression) { "yk_" #name "_at", build_##name },
#include "builders.def"
#undef X
  { NULL, NULL },
};
