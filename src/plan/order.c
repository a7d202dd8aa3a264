/*
 * order.c - one total order, with reads and writes of variables in their place.
 *
 * A consumer of a variable reads its storage when it runs. It runs after a
 * write only if it depends on that write; every other consumer runs before it.
 * Writers that do not depend on one another keep program order. Then the
 * schedule is made, from which streams take their work.
 */
#include "base/error.h"
#include "plan/ir.h"

static int is_view(const yk_ir_node *n) {
  return n->kind == YK_IR_OP && (n->op->traits & YK_VIEW) != 0;
}

/* `writer` overwrites `variable`: put it after everybody who uses the old value. */
static yk_code order_users(yk_ir *ir, uint32_t writer, uint32_t variable) {
  for (uint32_t id = 1; id < ir->nnode; id++) {
    const yk_ir_node *n = &ir->node[id];
    int uses = 0, writes = 0, failed = 0;
    if (id == writer || n->kind == YK_IR_DEAD || is_view(n)) continue;
    for (uint16_t i = 0; i < n->nin; i++) {
      if (!yk__ir_reads(n, i) || yk__ir_variable_behind(ir, n->in[i]) != variable) continue;
      uses = 1;
      writes |= yk__ir_writes(n, i);
    }
    if (!uses || (writes && n->origin > ir->node[writer].origin)) continue;      /* the later writer orders the pair */
    if (yk__ir_reaches(ir, writer, id, &failed)) continue;
    if (failed || !yk__ir_ctrl(ir, writer, id)) return YK_ENOMEM;
  }
  return YK_OK;
}

yk_code yk__pass_order(yk_ir *ir) {
  for (uint32_t id = 1; id < ir->nnode; id++)
    for (uint16_t i = 0; ir->node[id].kind == YK_IR_OP && i < ir->node[id].nin; i++)
      if (yk__ir_writes(&ir->node[id], i)) YK_TRY(order_users(ir, id, yk__ir_variable_behind(ir, ir->node[id].in[i])));
  return yk__ir_schedule(ir);
}
