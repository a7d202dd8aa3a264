/*
 * fusions.h - which groups of nodes may become one node: the fusion pass's table.
 *
 * The pass itself knows no operation. It walks the table in order (longer and better entries come first), looks for nodes that match an
 * entry's links, asks the entry for the fused node's attributes, and rewires as `in` and `out` say. Everything it needs is here.
 *
 * Two kinds of entry:
 *   YK_FUSE_CHAIN     link[i+1] reads output 0 of link[i] at its input 0, and nothing else reads it: no other node's data input, no
 *                     fetch. (A shape-only reader may be given the fused node's output 0 instead, where out[0] is the last link's: the
 *                     shape is the same.)
 *   YK_FUSE_SIBLINGS  input share[0] of link[0] and input share[1] of link[1] are one value; the links do not depend on each other. If
 *                     several nodes match one link, take the first in order; each node joins one group only.
 *
 * In both: all links sit on one device, none is stateful, and every control dependency of a link becomes one of the fused node; do not
 * fuse where that, or a data path between siblings, would make a cycle. Input i of the fused node is what in[i] names, output i replaces what
 * out[i] names; outputs of links that are not listed have no reader. lower() of the fused operation gives the links back.
 */
#ifndef YK_OPS_FUSIONS_H
#define YK_OPS_FUSIONS_H

#include <stddef.h>
#include "op/registry.h"

typedef enum yk_fusion_kind { YK_FUSE_CHAIN, YK_FUSE_SIBLINGS } yk_fusion_kind;
enum { YK_FUSE_LINKS = 3, YK_FUSE_IN = 6, YK_FUSE_OUT = 3 };

/* A matched node, as the pass shows it to an entry: its attributes (never NULL if the op has any) and the descriptions of its inputs
 * and outputs, shapes known. Borrowed for the call. */
typedef struct yk_fusion_node { const yk_op *op; const void *attrs; const yk_desc *in, *out; } yk_fusion_node;

typedef struct yk_fusion_port { uint8_t link, port; } yk_fusion_port;

typedef struct yk_fusion {
  const char    *name;                    /* "conv2d+bias+act", for explain */
  yk_fusion_kind kind;
  uint8_t        nlinks, nin, nout;
  const yk_op   *link[YK_FUSE_LINKS];     /* NULL = any operation for which yk__act_of() tells an activation */
  uint8_t        share[2];                /* YK_FUSE_SIBLINGS only */
  const yk_op   *fused;
  yk_fusion_port in[YK_FUSE_IN], out[YK_FUSE_OUT];
  /* Fill `attrs`, zeroed and fused->attr_bytes long, from the nlinks matched nodes. False: these shapes or attributes cannot be fused;
   * `attrs` is undefined then, and the pass tries the next entry. */
  int          (*attrs)(const yk_fusion_node *node, void *attrs);
} yk_fusion;

/* The table; *count entries. Constant; any thread. */
const yk_fusion *yk__fusions(size_t *count);
/* Does `op` with `attrs` fit link `i` of the entry? Tells about the operation only, not about how nodes are connected. */
int yk__fusion_fits(const yk_fusion *f, uint8_t i, const yk_op *op, const void *attrs);

/*
 * The yk_act that does what `op` with `attrs` (NULL = defaults) does, its slope in *alpha (0 = its default one; NULL = not wanted).
 * YK_ACT_NONE if op is no activation, or one that the enumeration cannot express: gelu in its tanh form.
 */
yk_act yk__act_of(const yk_op *op, const void *attrs, double *alpha);

#endif
