/*
 * loop_softmax.c - preparing the softmax family, and the check of sparse labels.
 *
 * Labels are data from outside, so all of them are checked before a row is computed; the row loops are in loop_softmax_isa.c.
 */
#include "loop_softmax.h"

#include <string.h>

static yk_code sparse_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_softmax_state *s = k->state;
  for (int64_t r = 0; r < s->rows; r++) {
    int64_t label = yk__loop_label(arg[1], s->label_dtype, r);
    if (label < 0 || label >= s->n)
      return YK_CPU_FAIL(EINVAL, "sparse_softmax_xent: the label of row %lld is %lld, outside [0, %lld)", (long long)r,
                         (long long)label, (long long)s->n);
  }
  return s->rows_body(k, arg, workspace);
}

yk_code yk__cpu_loop_softmax(yk_cpu_prepare *p) {
  static const struct { const char *op, *impl; uint32_t kind, out; } kinds[] = {
    { "softmax", "plain:softmax", SM_SOFTMAX, 1 }, { "softmax_grad", "plain:softmax_grad", SM_SOFTMAX_GRAD, 2 },
    { "log_softmax", "plain:log_softmax", SM_LOG_SOFTMAX, 1 },
    { "log_softmax_grad", "plain:log_softmax_grad", SM_LOG_SOFTMAX_GRAD, 2 },
    { "softmax_xent", "plain:softmax_xent", SM_XENT, 3 },
    { "sparse_softmax_xent", "plain:sparse_softmax_xent", SM_SPARSE_XENT, 3 } };
  const yk_desc *x = &p->k->in[0];
  yk_loop_run body = yk__loop_bodies(LOOP_SOFTMAX)->body[0][yk__loop_is_f64(p->k)];
  yk_softmax_state *s;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].op, p->spec->op) != 0) continue;
    int sparse = kinds[i].kind == SM_SPARSE_XENT;
    YK_TRY(yk__loop_body(p, sizeof *s, sparse ? sparse_run : body, kinds[i].impl, &s));
    s->rows_body = body;
    s->kind = kinds[i].kind;
    s->out = kinds[i].out;
    s->n = x->dim[x->rank - 1];
    s->rows = yk__loop_span(x, 0, x->rank - 1);
    if (sparse) s->label_dtype = p->k->in[1].dtype;
    if (s->kind < SM_XENT) p->inplace = p->k->nin == 1 ? 1 : 3;
    yk__loop_workspace(p, 0);
    return YK_OK;
  }
  return YK_CPU_REFUSE("not of the softmax family");
}
