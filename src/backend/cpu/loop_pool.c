/*
 * loop_pool.c - preparing the pooling kernels.
 *
 * Turns attributes with their defaults into the geometry that loop_pool_isa.c runs over.
 */
#include "loop_pool.h"
#include "padding.h"

#include <string.h>

static void pool_window(yk_window *g, const yk_pool_attrs *a, const yk_desc *x, const yk_desc *y) {
  static const yk_pool_attrs none = { 0 };
  if (!a) a = &none;
  g->n = x->dim[0];
  g->h = x->dim[1];
  g->w = x->dim[2];
  g->c = x->dim[3];
  g->oh = y->dim[1];
  g->ow = y->dim[2];
  g->kh = a->window[0] ? a->window[0] : 1;
  g->kw = a->window[1] ? a->window[1] : 1;
  g->sh = a->stride[0] ? a->stride[0] : g->kh;
  g->sw = a->stride[1] ? a->stride[1] : g->kw;
  g->dh = g->dw = 1;
  g->top = yk__cpu_padding(a->padding, g->h, g->oh, g->kh, g->sh, &a->pad[0]).before;
  g->left = yk__cpu_padding(a->padding, g->w, g->ow, g->kw, g->sw, &a->pad[2]).before;
}

yk_code yk__cpu_loop_pool(yk_cpu_prepare *p) {
  static const struct { const char *op, *impl; int kind, x, y, index; } kinds[] = {     /* positions among inputs, then outputs */
    { "max_pool", "plain:max_pool", POOL_MAX, 0, 1, 2 }, { "max_pool_grad", "plain:max_pool_grad", POOL_MAX_GRAD, 3, 0, 1 },
    { "avg_pool", "plain:avg_pool", POOL_AVG, 0, 1, -1 }, { "avg_pool_grad", "plain:avg_pool_grad", POOL_AVG_GRAD, 2, 0, -1 } };
  yk_kernel *k = p->k;
  yk_pool_state *s;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const yk_desc *d[8] = { NULL };
    if (strcmp(kinds[i].op, p->spec->op) != 0) continue;
    for (uint32_t j = 0; j < k->nin + k->nout && j < 8; j++) d[j] = j < k->nin ? &k->in[j] : &k->out[j - k->nin];
    YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_POOL)->body[kinds[i].kind][yk__loop_is_f64(k)], kinds[i].impl, &s));
    pool_window(&s->g, k->attrs, d[kinds[i].x], d[kinds[i].y]);
    if (kinds[i].index >= 0) s->index_bytes = d[kinds[i].index]->dtype == YK_U8 ? 1 : 4;
    yk__loop_workspace(p, 0);
    return YK_OK;
  }
  return YK_CPU_REFUSE("not a pooling");
}
