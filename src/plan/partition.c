/*
 * partition.c - pass 5: every edge between memories becomes an explicit copy.
 *
 * CPU devices share the host's memory: what one of them made, another one reads where it is. So do sums, which touch each byte once,
 * wherever their device reaches the other's memory: a copy would be written and read once more.
 * Feeds, constants and the run counter are made on each device that uses them
 * instead. A copy is made once per value and device; a variable that is written
 * in the same step is copied again for those who must see the new value.
 */
#include <string.h>
#include "base/error.h"
#include "plan/ir.h"

typedef struct yk_moved { uint32_t value, result, writer; uint16_t dev; } yk_moved;

typedef struct yk_partition {
  yk_ir *ir;
  yk_moved *moved;             uint32_t nmoved, moved_cap;
  uint32_t *writer;            uint32_t nwriter, writer_cap;    /* node ids that write variables */
} yk_partition;

static int is_source(const yk_ir_node *n) {
  return n->kind == YK_IR_FEED || n->kind == YK_IR_CONSTANT || n->kind == YK_IR_COUNTER;
}

/* The last writer of `variable` that `user` comes after; 0 if none. */
static uint32_t writer_before(yk_partition *p, uint32_t variable, uint32_t user, int *failed) {
  uint32_t found = 0;
  for (uint32_t w = 0; w < p->nwriter; w++) {
    const yk_ir_node *n = &p->ir->node[p->writer[w]];
    for (uint16_t i = 0; i < n->nin; i++) {
      if (!yk__ir_writes(n, i) || yk__ir_variable_behind(p->ir, n->in[i]) != variable) continue;
      if (yk__ir_reaches(p->ir, p->writer[w], user, failed)) found = p->writer[w];
    }
  }
  return found;
}

/* May `user` on `dev` use what lies on device `from` where it is? */
static int in_place(const yk_ir *ir, uint32_t user, uint16_t dev, uint16_t from) {
  const yk_device *at = ir->req->devices->at;
  if (yk__device_same_memory(&at[from], &at[dev])) return 1;
  return (ir->node[user].op->traits & YK_FAR) != 0 && yk__device_reaches(&at[dev], &at[from]);
}

static uint32_t instance(yk_partition *p, uint32_t v, uint16_t dev) {
  yk_ir *ir = p->ir;
  yk_ir_node n = ir->node[ir->value[v].node];
  uint32_t id;
  if (n.dev == YK__NO_DEV || n.dev == dev) {
    ir->node[ir->value[v].node].dev = dev;
    return v;
  }
  id = yk__ir_node(ir, (yk_ir_kind)n.kind, n.op, n.attrs, 0, NULL, 1, n.origin, dev);
  if (id == 0) return 0;
  ir->node[id].index = n.index;
  ir->value[ir->node[id].out].desc = ir->value[v].desc;
  return ir->node[id].out;
}

static uint32_t copy_to(yk_partition *p, uint32_t v, uint16_t dev, uint32_t user, uint32_t writer) {
  yk_ir *ir = p->ir;
  uint32_t origin = ir->node[ir->value[v].node].origin, id;
  id = yk__ir_node(ir, YK_IR_COPY, NULL, NULL, 1, &v, 1, writer ? ir->node[user].origin : origin, dev);
  if (id == 0 || (writer != 0 && !yk__ir_ctrl(ir, id, writer))) return 0;
  ir->value[ir->node[id].out].desc = ir->value[v].desc;
  return ir->node[id].out;
}

/* Value `v` as user node `user` on `dev` may read it. */
static yk_code bring(yk_partition *p, uint32_t v, uint16_t dev, uint32_t user, uint32_t *out) {
  yk_ir *ir = p->ir;
  uint32_t at = ir->value[v].node, writer = 0, variable;
  int failed = 0;
  yk_moved m;
  if (ir->node[at].dev == dev || (!is_source(&ir->node[at]) && in_place(ir, user, dev, ir->node[at].dev))) {
    *out = v;
    return YK_OK;
  }
  if (!is_source(&ir->node[at]) && (variable = yk__ir_variable_behind(ir, v)) != 0) writer = writer_before(p, variable, user, &failed);
  if (failed) return YK_ENOMEM;
  for (uint32_t i = 0; i < p->nmoved; i++)
    if (p->moved[i].value == v && p->moved[i].dev == dev && p->moved[i].writer == writer) {
      *out = p->moved[i].result;
      return YK_OK;
    }
  m = (yk_moved){ .value = v, .dev = dev, .writer = writer };
  m.result = is_source(&ir->node[at]) ? instance(p, v, dev) : copy_to(p, v, dev, user, writer);
  if (m.result == 0 || !YK_PUSH(p->moved, p->nmoved, p->moved_cap, m)) return YK_ENOMEM;
  *out = m.result;
  return YK_OK;
}

static yk_code partition(yk_partition *p) {
  yk_ir *ir = p->ir;
  uint32_t end = ir->nnode;
  for (uint32_t id = 1; id < end; id++)
    for (uint16_t i = 0; ir->node[id].kind == YK_IR_OP && i < ir->node[id].nin; i++)
      if (yk__ir_writes(&ir->node[id], i)) {
        if (!YK_PUSH(p->writer, p->nwriter, p->writer_cap, id)) return YK_ENOMEM;
        break;
      }
  for (uint32_t id = 1; id < end; id++) {
    if (is_source(&ir->node[id])) ir->node[id].dev = YK__NO_DEV;       /* made where used */
  }
  for (uint32_t id = 1; id < end; id++) {
    if (ir->node[id].kind != YK_IR_OP) continue;
    for (uint16_t i = 0; i < ir->node[id].nin; i++) {
      uint32_t v = ir->node[id].in[i], moved;
      char w[256];
      if (!yk__ir_reads(&ir->node[id], i)) continue;
      if (yk__ir_writes(&ir->node[id], i) && ir->node[ir->value[v].node].dev != ir->node[id].dev &&
          !in_place(ir, id, ir->node[id].dev, ir->node[ir->value[v].node].dev))
        return YK_FAIL(EINTERNAL, "%s writes a variable of another device", yk__ir_where(ir, id, w));
      YK_TRY(bring(p, v, ir->node[id].dev, id, &moved));
      ir->node[id].in[i] = moved;
    }
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++) {                      /* a fetched source is read on device 0 */
    yk_ir_node *n = &ir->node[ir->value[ir->fetch[i]].node];
    if (n->dev == YK__NO_DEV) n->dev = 0;
  }
  return YK_OK;
}

yk_code yk__pass_partition(yk_ir *ir) {
  yk_partition p = { .ir = ir };
  yk_code rc = partition(&p);
  yk__free(p.moved);
  yk__free(p.writer);
  for (uint32_t id = 1; id < ir->nnode && rc == YK_OK; id++)            /* sources that only shapes were wanted of */
    if (is_source(&ir->node[id]) && ir->node[id].dev == YK__NO_DEV) yk__ir_kill(ir, id);
  return rc;
}
