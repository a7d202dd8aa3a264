/*
 * layout.h - state of the layout negotiation; private to layout.c.
 *
 * Kept apart so that the pass itself stays short.
 */
#ifndef YK_PLAN_LAYOUT_H
#define YK_PLAN_LAYOUT_H

#include "plan/ir.h"

typedef struct yk_made { uint32_t value, result, epoch; uint16_t layout; } yk_made;   /* a reorder made already */

/* A kernel of the dry round, and the layouts it was offered and has settled on. */
typedef struct yk_tried {
  yk_kernel *kernel;           /* NULL: none, or taken */
  yk_kernel_info info;
  uint16_t *layout;            /* [nin] offered, [nin] wanted, [nout] given */
} yk_tried;

typedef struct yk_layout {
  yk_ir *ir;
  int dry;
  yk_tried *tried;             /* [nnode] of the dry round; the wet one makes more nodes */
  uint32_t ntried;
  uint32_t *epoch;             /* [nvariable] writes so far, in order */
  uint8_t *wished;             /* [nvariable] the open layout was claimed */
  yk_made *made;               uint32_t nmade, made_cap;
  uint32_t *order;             uint32_t norder, order_cap;
} yk_layout;

#endif
