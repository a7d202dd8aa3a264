/*
 * loop_conv.c - preparing the convolutions in plain loops.
 *
 * The six ops are three computations: forward, towards the picture (also the transposed convolution, whose picture is its
 * output), and towards the filter. Argument numbers say which value plays which part.
 */
#include "loop_conv.h"
#include "padding.h"

#include <string.h>

yk_elem_fn yk__loop_act(int32_t act, double alpha, int f64, double *p) {
  static const struct { int16_t id; double dflt; } acts[] = {
    [YK_ACT_NONE] = { -1, 0 }, [YK_ACT_RELU] = { E_relu, 0 }, [YK_ACT_RELU6] = { E_relu6, 0 },
    [YK_ACT_LEAKY_RELU] = { E_leaky_relu, 0.2 }, [YK_ACT_ELU] = { E_elu, 1 }, [YK_ACT_SELU] = { E_selu, 0 },
    [YK_ACT_GELU] = { E_gelu, 0 }, [YK_ACT_SILU] = { E_silu, 0 }, [YK_ACT_TANH] = { E_tanh, 0 },
    [YK_ACT_SIGMOID] = { E_sigmoid, 0 }, [YK_ACT_SOFTPLUS] = { E_softplus, 0 } };
  if (act < 0 || (size_t)act >= sizeof acts / sizeof *acts || acts[act].id < 0) return NULL;
  p[0] = alpha != 0 ? alpha : acts[act].dflt;
  return yk__loop_elem()->fn[acts[act].id][f64 ? L_F64 : L_F32][L_VV];
}

static const yk_conv_kind kinds[] = {
  { "conv2d", "plain:conv2d", CONV_FORWARD, 0, 1, 2, 0, 0, 1, 2 },
  { "conv2d_bias_act", "plain:conv2d_bias_act", CONV_FORWARD, 0, 1, 3, 2, 0, 1, 3 },
  { "conv2d_grad_input", "plain:conv2d_grad_input", CONV_GRAD_INPUT, 0, 1, 3, 0, 3, 1, 0 },
  { "conv2d_transpose", "plain:conv2d_transpose", CONV_GRAD_INPUT, 0, 1, 2, 0, 2, 1, 0 },
  { "conv2d_grad_filter", "plain:conv2d_grad_filter", CONV_GRAD_FILTER, 0, 1, 3, 0, 0, 3, 1 },
  { "conv2d_grad_filter_bias", "plain:conv2d_grad_filter_bias", CONV_GRAD_FILTER, 0, 1, 3, 4, 0, 3, 1 },
};

const yk_conv_kind *yk__conv_kind(const char *op) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].op, op) == 0) return &kinds[i];
  return NULL;
}

void yk__conv_window(yk_kernel *k, const yk_conv_kind *kind, yk_window *window, int64_t *groups) {
  static const yk_conv2d_attrs none = { .act = 0 };
  const yk_conv2d_attrs *a = k->attrs ? k->attrs : &none;
  const yk_desc *x = yk__conv_arg(k, kind->picture), *w = yk__conv_arg(k, kind->filter), *y = yk__conv_arg(k, kind->other);
  yk_window *g = window;
  g->n = x->dim[0];
  g->h = x->dim[1];
  g->w = x->dim[2];
  g->c = x->dim[3];
  g->oh = y->dim[1];
  g->ow = y->dim[2];
  g->kh = w->dim[0];
  g->kw = w->dim[1];
  g->sh = a->stride[0] ? a->stride[0] : 1;
  g->sw = a->stride[1] ? a->stride[1] : 1;
  g->dh = a->dilation[0] ? a->dilation[0] : 1;
  g->dw = a->dilation[1] ? a->dilation[1] : 1;
  g->top = yk__cpu_padding(a->padding, g->h, g->oh, (g->kh - 1) * g->dh + 1, g->sh, &a->pad[0]).before;
  g->left = yk__cpu_padding(a->padding, g->w, g->ow, (g->kw - 1) * g->dw + 1, g->sw, &a->pad[2]).before;
  *groups = a->groups ? a->groups : 1;
}

yk_code yk__cpu_loop_conv(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_conv2d_attrs *a = k->attrs;
  const yk_conv_kind *kind = yk__conv_kind(p->spec->op);
  int f64 = yk__loop_is_f64(k);
  yk_conv_state *s;
  if (!kind) return YK_CPU_REFUSE("not a convolution");
  YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_CONV)->body[kind->kind][f64], kind->plain, &s));
  s->a = kind->a;
  s->b = kind->b;
  s->out = kind->out;
  s->bias = kind->bias;
  yk__conv_window(k, kind, &s->g, &s->groups);
  s->o = yk__conv_arg(k, kind->other)->dim[3];
  s->add = yk__loop_elem()->fn[E_add][f64 ? L_F64 : L_F32][L_VV];
  if (kind->kind == CONV_FORWARD && kind->bias && a) s->act = yk__loop_act(a->act, a->alpha, f64, s->p);
  yk__loop_workspace(p, kind->kind == CONV_GRAD_INPUT ? (uint64_t)yk__cpu_count(yk__conv_arg(k, kind->filter)) * (f64 ? 8 : 4) : 0);
  return YK_OK;
}
