/*
 * loop_matmul.c - preparing the matrix products in plain loops.
 *
 * Works out which matrix of either factor belongs to each matrix of the result; the loops are in loop_matmul_isa.c.
 */
#include "loop_matmul.h"
#include "loop_conv.h"

#include <string.h>

/* Stride in matrices of x along batch dim `d` of the result y: 0 where x is broadcast. */
static int64_t batch_stride(const yk_desc *x, const yk_desc *y, uint32_t d) {
  uint32_t back = y->rank - d;                           /* position from the end, the matrix dims being 2 and 1 */
  if (back > x->rank || x->dim[x->rank - back] == 1) return 0;
  return yk__loop_span(x, x->rank - back + 1, x->rank - 2);
}

yk_code yk__cpu_loop_matmul(yk_cpu_prepare *p) {
  static const yk_matmul_attrs none = { .act = 0 };
  yk_kernel *k = p->k;
  const yk_matmul_attrs *attrs = k->attrs ? k->attrs : &none;
  const yk_desc *a = &k->in[0], *b = &k->in[1], *y = &k->out[0];
  int f64 = yk__loop_is_f64(k);
  yk_matmul_state *s;
  YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_MATMUL)->body[0][f64], "plain:matmul", &s));
  s->transpose_a = attrs->transpose_a;
  s->transpose_b = attrs->transpose_b;
  s->m = y->dim[y->rank - 2];
  s->n = y->dim[y->rank - 1];
  s->k = a->dim[a->rank - (s->transpose_a ? 2 : 1)];
  s->batch = yk__loop_span(y, 0, y->rank - 2);
  s->b_matrices = yk__loop_span(b, 0, b->rank - 2);
  s->nbatch = y->rank - 2u;
  for (uint32_t d = 0; d < s->nbatch; d++) {
    s->dim[d] = y->dim[d];
    s->a_stride[d] = batch_stride(a, y, d);
    s->b_stride[d] = batch_stride(b, y, d);
  }
  s->out = k->nin;
  s->add = yk__loop_elem()->fn[E_add][f64 ? L_F64 : L_F32][L_VV];
  if (strcmp(p->spec->op, "matmul_bias_act") == 0) {
    s->bias = 2;
    s->act = yk__loop_act(attrs->act, attrs->alpha, f64, s->p);
  } else if (strcmp(p->spec->op, "matmul_grad_bias") == 0) {
    s->bias_grad = 3;
  }
  yk__loop_workspace(p, s->transpose_b ? (uint64_t)yk__cpu_count(b) * (f64 ? 8 : 4) : 0);
  return YK_OK;
}
