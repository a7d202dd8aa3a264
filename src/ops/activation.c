/*
 * activation.c - activations by number, for ops that have one built in. A fused op names its activation by yk_act;
 * this is the one place that knows which op, which gradient and which formula each number stands for.
 */
#include "common.h"
#include "fusions.h"

/* What the gradient op of an activation looks at. */
typedef enum sees { SEES_Y, SEES_X } sees;
typedef struct activation { const yk_op *op, *grad; sees of; } activation;

static const activation table[] = {
  [YK_ACT_NONE]       = { NULL, NULL, SEES_Y },
  [YK_ACT_RELU]       = { &yk__op_relu, &yk__op_relu_grad, SEES_Y },
  [YK_ACT_RELU6]      = { &yk__op_relu6, &yk__op_relu6_grad, SEES_Y },
  [YK_ACT_LEAKY_RELU] = { &yk__op_leaky_relu, &yk__op_leaky_relu_grad, SEES_X },
  [YK_ACT_ELU]        = { &yk__op_elu, &yk__op_elu_grad, SEES_Y },
  [YK_ACT_SELU]       = { &yk__op_selu, &yk__op_selu_grad, SEES_Y },
  [YK_ACT_GELU]       = { &yk__op_gelu, &yk__op_gelu_grad, SEES_X },
  [YK_ACT_SILU]       = { &yk__op_silu, &yk__op_silu_grad, SEES_X },
  [YK_ACT_TANH]       = { &yk__op_tanh, &yk__op_tanh_grad, SEES_Y },
  [YK_ACT_SIGMOID]    = { &yk__op_sigmoid, &yk__op_sigmoid_grad, SEES_Y },
  [YK_ACT_SOFTPLUS]   = { &yk__op_softplus, &yk__op_softplus_grad, SEES_X },
};
enum { NACTIVATIONS = sizeof table / sizeof table[0] };

/* Only leaky_relu and elu have an alpha; a fused gelu is the exact one. */
static const void *attrs_of(const yk_op *op, const yk_alpha_attrs *alpha) {
  return op == &yk__op_leaky_relu || op == &yk__op_leaky_relu_grad || op == &yk__op_elu || op == &yk__op_elu_grad ? alpha : NULL;
}

yk_value yk__act_build(const char *where, yk_graph *g, int act, double alpha, yk_value x) {
  if (act == YK_ACT_NONE) return x;
  if (act < 0 || act >= NACTIVATIONS) return yk_graph_fail_at(where, g, YK_EINVAL, "no activation has number %d", act);
  return yk__build(where, g, table[act].op, attrs_of(table[act].op, &(yk_alpha_attrs){ alpha }), 1, x);
}

yk_value yk__act_grad_build(const char *where, yk_graph *g, int act, double alpha, yk_value dy, yk_value x, yk_value y) {
  if (act == YK_ACT_NONE) return dy;
  if (act < 0 || act >= NACTIVATIONS) return yk_graph_fail_at(where, g, YK_EINVAL, "no activation has number %d", act);
  return yk__build(where, g, table[act].grad, attrs_of(table[act].grad, &(yk_alpha_attrs){ alpha }), 2, dy,
                   table[act].of == SEES_X ? x : y);
}

double yk__act_ref(int act, double alpha, double x) {
  yk_alpha_attrs a = { alpha };
  yk_desc scalar = { .dtype = YK_F64 };
  double y = x;
  const double *in[1] = { &x };
  double *out[1] = { &y };
  yk_ref c = { .in = in, .out = out, .din = &scalar, .dout = &scalar, .nin = 1, .nout = 1 };
  if (act <= YK_ACT_NONE || act >= NACTIVATIONS) return x;
  c.attrs = attrs_of(table[act].op, &a);
  return table[act].op->ref(&c) == YK_OK ? y : NAN;
}

yk_act yk__act_of(const yk_op *op, const void *attrs, double *alpha) {
  const yk_alpha_attrs *a = attrs_of(op, attrs);
  if (op == &yk__op_gelu && attrs && ((const yk_gelu_attrs *)attrs)->approximate) return YK_ACT_NONE;
  for (int i = YK_ACT_RELU; i < NACTIVATIONS; i++) {
    if (table[i].op != op) continue;
    if (alpha) *alpha = a ? a->alpha : 0;
    return (yk_act)i;
  }
  return YK_ACT_NONE;
}
