/*
 * fusions.c - the table of fusions, and how each makes the attributes of its fused node.
 *
 * An entry is right if lower() of the fused operation gives back the links it names: the tests compare the two. Whether a
 * fusion pays is the table's business too; whether the nodes are free to be fused is the pass's.
 */
#include "ops/fusions.h"

#include <string.h>

/* ---- attributes -------------------------------------------------------------------------------------------- */

static int conv_bias(const yk_fusion_node *n, void *attrs) {
  yk_conv2d_attrs *a = attrs;
  *a = *(const yk_conv2d_attrs *)n[0].attrs;
  memset(a->out, 0, sizeof a->out);
  a->act = YK_ACT_NONE;
  a->alpha = 0;
  return 1;
}

static int conv_bias_act(const yk_fusion_node *n, void *attrs) {
  yk_conv2d_attrs *a = attrs;
  conv_bias(n, a);
  a->act = (int32_t)yk__act_of(n[2].op, n[2].attrs, &a->alpha);
  return a->act != YK_ACT_NONE;
}

/* Kernels take plain matrices; a batched product stays as it is. */
static int matmul_bias(const yk_fusion_node *n, void *attrs) {
  const yk_matmul_attrs *m = n[0].attrs;
  yk_matmul_attrs *a = attrs;
  if (n[0].in[0].rank != 2 || n[0].in[1].rank != 2) return 0;
  *a = (yk_matmul_attrs){ .transpose_a = m->transpose_a, .transpose_b = m->transpose_b };
  return 1;
}

static int matmul_bias_act(const yk_fusion_node *n, void *attrs) {
  yk_matmul_attrs *a = attrs;
  if (!matmul_bias(n, a)) return 0;
  a->act = (int32_t)yk__act_of(n[2].op, n[2].attrs, &a->alpha);
  return a->act != YK_ACT_NONE;
}

/* Only a weight gradient reads dy as it is stored: [B, N], summed over its rows. */
static int matmul_grad_bias(const yk_fusion_node *n, void *attrs) {
  const yk_matmul_attrs *m = n[0].attrs;
  yk_matmul_attrs *a = attrs;
  if (n[0].in[0].rank != 2 || n[0].in[1].rank != 2 || !m->transpose_a || m->transpose_b) return 0;
  *a = (yk_matmul_attrs){ .transpose_a = 1 };
  return 1;
}

static int norm_relu(const yk_fusion_node *n, void *attrs) {
  const yk_norm_attrs *m = n[0].attrs;
  yk_norm_attrs *a = attrs;
  if (m->act != YK_ACT_NONE) return 0;
  *a = (yk_norm_attrs){ .epsilon = m->epsilon, .act = YK_ACT_RELU };
  return 1;
}

static int norm_grad_relu(const yk_fusion_node *n, void *attrs) {
  const yk_norm_attrs *m = n[1].attrs;
  yk_norm_attrs *a = attrs;
  if (m->act != YK_ACT_NONE) return 0;
  *a = (yk_norm_attrs){ .epsilon = m->epsilon, .act = YK_ACT_RELU };
  return 1;
}

/* ---- the table --------------------------------------------------------------------------------------------- */

static const yk_fusion table[] = {
  /* Forward. The gradients of the activations that look at y (relu, tanh, ...) leave the value before them without a second reader; those
   * that look at x (gelu, ...) do not, and then the shorter entry applies. */
  { .name = "conv2d+bias+act", .kind = YK_FUSE_CHAIN, .nlinks = 3, .link = { &yk__op_conv2d, &yk__op_bias_add, NULL },
    .fused = &yk__op_conv2d_bias_act, .nin = 3, .in = { { 0, 0 }, { 0, 1 }, { 1, 1 } }, .nout = 1, .out = { { 2, 0 } },
    .attrs = conv_bias_act },
  { .name = "conv2d+bias", .kind = YK_FUSE_CHAIN, .nlinks = 2, .link = { &yk__op_conv2d, &yk__op_bias_add },
    .fused = &yk__op_conv2d_bias_act, .nin = 3, .in = { { 0, 0 }, { 0, 1 }, { 1, 1 } }, .nout = 1, .out = { { 1, 0 } },
    .attrs = conv_bias },
  { .name = "matmul+bias+act", .kind = YK_FUSE_CHAIN, .nlinks = 3, .link = { &yk__op_matmul, &yk__op_bias_add, NULL },
    .fused = &yk__op_matmul_bias_act, .nin = 3, .in = { { 0, 0 }, { 0, 1 }, { 1, 1 } }, .nout = 1, .out = { { 2, 0 } },
    .attrs = matmul_bias_act },
  { .name = "matmul+bias", .kind = YK_FUSE_CHAIN, .nlinks = 2, .link = { &yk__op_matmul, &yk__op_bias_add },
    .fused = &yk__op_matmul_bias_act, .nin = 3, .in = { { 0, 0 }, { 0, 1 }, { 1, 1 } }, .nout = 1, .out = { { 1, 0 } },
    .attrs = matmul_bias },
  { .name = "batch_norm+relu", .kind = YK_FUSE_CHAIN, .nlinks = 2, .link = { &yk__op_batch_norm_train, &yk__op_relu },
    .fused = &yk__op_batch_norm_train, .nin = 3, .in = { { 0, 0 }, { 0, 1 }, { 0, 2 } },
    .nout = 3, .out = { { 1, 0 }, { 0, 1 }, { 0, 2 } }, .attrs = norm_relu },

  /* Backward. relu_grad(dy, y) in front of batch_norm_grad(., x, gamma, mean, var, .) becomes batch_norm_grad(dy, x, gamma, mean, var, y)
   * with act set. It is right by itself, whether or not the forward pair was fused: masking by y > 0 is all that relu_grad does. */
  { .name = "relu_grad+batch_norm_grad", .kind = YK_FUSE_CHAIN, .nlinks = 2, .link = { &yk__op_relu_grad, &yk__op_batch_norm_grad },
    .fused = &yk__op_batch_norm_grad, .nin = 6, .in = { { 0, 0 }, { 1, 1 }, { 1, 2 }, { 1, 3 }, { 1, 4 }, { 0, 1 } },
    .nout = 3, .out = { { 1, 0 }, { 1, 1 }, { 1, 2 } }, .attrs = norm_grad_relu },
  { .name = "conv2d_grad_filter+bias_grad", .kind = YK_FUSE_SIBLINGS, .nlinks = 2,
    .link = { &yk__op_conv2d_grad_filter, &yk__op_bias_add_grad }, .share = { 1, 0 },
    .fused = &yk__op_conv2d_grad_filter_bias, .nin = 3, .in = { { 0, 0 }, { 0, 1 }, { 0, 2 } },
    .nout = 2, .out = { { 0, 0 }, { 1, 0 } }, .attrs = conv_bias },
  { .name = "matmul_grad+bias_grad", .kind = YK_FUSE_SIBLINGS, .nlinks = 2,
    .link = { &yk__op_matmul, &yk__op_bias_add_grad }, .share = { 1, 0 },
    .fused = &yk__op_matmul_grad_bias, .nin = 2, .in = { { 0, 0 }, { 0, 1 } },
    .nout = 2, .out = { { 0, 0 }, { 1, 0 } }, .attrs = matmul_grad_bias },
};

const yk_fusion *yk__fusions(size_t *count) {
  *count = sizeof table / sizeof table[0];
  return table;
}

int yk__fusion_fits(const yk_fusion *f, uint8_t i, const yk_op *op, const void *attrs) {
  if (i >= f->nlinks) return 0;
  return f->link[i] ? f->link[i] == op : yk__act_of(op, attrs, NULL) != YK_ACT_NONE;
}
