/*
 * softmax_xent.c - cross entropy between softmax(logits) and rows of probabilities.
 *
 * The second output, softmax - labels, is the gradient of the loss for rows of labels that sum to one, and is what
 * the backward pass multiplies by whatever the sum is.
 */
#include <yoke/nn.h>
#include "ops/common.h"

static yk_code infer(const yk_infer *c) {
  char tl[YK__DESC_TEXT], tb[YK__DESC_TEXT];
  const yk_desc *a = &c->in[0], *b = &c->in[1];
  yk_desc rows;
  if (a->rank != 2 || b->rank != 2 || yk__dims_clash(a->dim[0], b->dim[0]) || yk__dims_clash(a->dim[1], b->dim[1]))
    return YK_FAIL(EINVAL, "logits are %s and labels are %s, expected one shape [N, C]", yk__desc_text(a, tl, sizeof tl),
                   yk__desc_text(b, tb, sizeof tb));
  if (a->dim[1] == 0) return YK_FAIL(EINVAL, "logits are %s, expected at least one class", yk__desc_text(a, tl, sizeof tl));
  YK_TRY(yk__shape_merge(a, b, &rows));
  c->out[1] = yk__as(&rows, a->dtype);
  c->out[0] = (yk_desc){ .dtype = a->dtype, .rank = 1, .dim = { c->out[1].dim[0] } };
  return YK_OK;
}

/* logits: dloss*backprop, and what comes through backprop itself, which is softmax - labels. labels: -dloss*log_softmax - dbackprop. */
static yk_code grad(yk_grad *c) {
  yk_value loss = { 0 }, through = c->dout[1];
  if (c->dout[0].id) {
    loss = YK__OPA(c, expand_dims, &(yk_axes_attrs){ .naxes = 1, .axis = { 1 } }, 1, c->dout[0]);
    c->din[0] = YK__OP2(c, mul, loss, c->out[1]);
    c->din[1] = YK__OP1(c, neg, YK__OP2(c, mul, loss, YK__OP1(c, log_softmax, c->in[0])));
  }
  if (through.id) {
    yk_value d = YK__OP2(c, softmax_grad, through, YK__OP1(c, softmax, c->in[0]));
    c->din[0] = c->din[0].id ? YK__OP2(c, add, c->din[0], d) : d;
    c->din[1] = c->din[1].id ? YK__OP2(c, sub, c->din[1], through) : YK__OP1(c, neg, through);
  }
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  int64_t rows = c->din[0].dim[0], n = c->din[0].dim[1];
  for (int64_t r = 0; r < rows; r++) {
    const double *x = c->in[0] + r * n, *labels = c->in[1] + r * n;
    double top = -INFINITY, sum = 0, loss = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) {
      loss -= labels[i] * (x[i] - top - log(sum));
      c->out[1][r * n + i] = exp(x[i] - top) / sum - labels[i];
    }
    c->out[0][r] = loss;
  }
  return YK_OK;
}

/* Equal logits and labels of 1/C sum to one, so that the derivative can be compared with a difference quotient. */
static const yk_case cases[] = {
  { "T[3,4]; T[3,4]", NULL, 0.25, 0.25, 0 },
  { "T[5,8]; T[5,8]", NULL, 0.125, 0.125, 0 },
  { 0 },
};

const yk_op yk__op_softmax_xent = {
  .name = "softmax_xent", .label = "SoftmaxCrossEntropyWithLogits",
  .doc = "Cross entropy of softmax(logits) against rows of probabilities; also softmax - labels.",
  .version = 1, .traits = YK_PURE | YK_WIDE,
  .in = (const yk_port[]){ { "logits", YK_FLOATS, 0, 0 }, { "labels", YK_FLOATS, 0, 1 }, { 0 } },
  .out = (const yk_port[]){ { "loss", YK_FLOATS, 0, 1 }, { "backprop", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases,
};

yk_value yk_softmax_cross_entropy_at(const char *where, yk_graph *g, yk_value logits, yk_value labels) {
  return yk__build(where, g, &yk__op_softmax_xent, NULL, 2, logits, labels);
}
