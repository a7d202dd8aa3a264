/*
 * sparse_softmax_xent.c - cross entropy between softmax(logits) and the number of the right class.
 *
 * The same as softmax_xent with one-hot labels, without making them. A label that is no class fails and is shown.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code infer(const yk_infer *c) {
  char tl[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  const yk_desc *a = &c->in[0], *b = &c->in[1];
  if (a->rank != 2 || b->rank != 1 || yk__dims_clash(a->dim[0], b->dim[0]))
    return YK_FAIL(EINVAL, "logits are %s and labels are %s, expected [N, C] and [N]", yk__desc_text(a, tl, sizeof tl),
                   yk__desc_text(b, tb, sizeof tb));
  if (a->dim[1] == 0) return YK_FAIL(EINVAL, "logits are %s, expected at least one class", yk__desc_text(a, tl, sizeof tl));
  c->out[1] = yk__as(a, a->dtype);
  if (a->dim[0] < 0) c->out[1].dim[0] = b->dim[0];
  c->out[0] = (yk_desc){ .dtype = a->dtype, .rank = 1, .dim = { c->out[1].dim[0] } };
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  yk_value through = c->dout[1];
  if (c->dout[0].id) {
    yk_value loss = YK__OPA(c, expand_dims, &(yk_axes_attrs){ .naxes = 1, .axis = { 1 } }, 1, c->dout[0]);
    c->din[0] = YK__OP2(c, mul, loss, c->out[1]);
  }
  if (through.id) {
    yk_value d = YK__OP2(c, softmax_grad, through, YK__OP1(c, softmax, c->in[0]));
    c->din[0] = c->din[0].id ? YK__OP2(c, add, c->din[0], d) : d;
  }
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t rows = c->din[0].dim[0], n = c->din[0].dim[1];
  for (int64_t r = 0; r < rows; r++)
    if (!(c->in[1][r] >= 0 && c->in[1][r] < (double)n))
      return YK_FAIL(EINVAL, "label %lld of row %lld is outside [0, %lld)", (long long)c->in[1][r], (long long)r, (long long)n);
  for (int64_t r = 0; r < rows; r++) {
    const double *x = c->in[0] + r * n;
    int64_t label = (int64_t)c->in[1][r];
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) c->out[1][r * n + i] = exp(x[i] - top) / sum - (i == label ? 1 : 0);
    c->out[0][r] = log(sum) - (x[label] - top);
  }
  return YK_OK;
}

static const yk_case cases[] = {
  { "T[4,10]; i32[4]", NULL, 0, 9, 0 }, { "T[7,3]; i64[7]", NULL, 0, 2, 0 }, { "T[1,19]; i32[1]", NULL, 0, 9, 0 },
  { "T[3,1]; i32[3]", NULL, -0.4, 0.4, 0 }, { "T[0,5]; i64[0]", NULL, 0, 4, 0 }, { "T[16,10]; i32[16]", NULL, 0, 9, 0 },
  { 0 },
};

const yk_op yk__op_sparse_softmax_xent = {
  .name = "sparse_softmax_xent", .label = "SparseSoftmaxCrossEntropyWithLogits",
  .doc = "Cross entropy of softmax(logits) against class numbers; also softmax - one_hot(labels).",
  .version = 1, .traits = YK_PURE | YK_WIDE,
  .in = (const yk_port[]){ { "logits", YK_FLOATS, 0, 0 }, { "labels", YK__IDS, YK_PORT_NODIFF, 0 }, { 0 } },
  .out = (const yk_port[]){ { "loss", YK_FLOATS, 0, 1 }, { "backprop", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_sparse_softmax_cross_entropy_at(const char *where, yk_graph *g, yk_value logits, yk_value labels) {
  return yk__build(where, g, &yk__op_sparse_softmax_xent, NULL, 2, logits, labels);
}
