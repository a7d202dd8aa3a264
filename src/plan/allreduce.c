/*
 * allreduce.c - a sum that is only assigned to variables becomes one node that writes them all.
 *
 * A user's all-reduce is an add_n and, on each device, an assign of its result. The sum would be written, and read again by every
 * device; the joined node reads each value once and writes each variable where it lives, so it stands only where the device of the sum
 * reaches those of the variables. It takes as many values as there are variables, all of whose users are known: the assigns.
 */
#include "base/error.h"
#include "op/registry.h"
#include "plan/ir.h"

typedef struct yk_sums {
  yk_ir *ir;
  uint32_t *uses;              /* [nvalue] */
  uint32_t *assign;            /* [nnode] those of the sum at hand */
  uint32_t n;
} yk_sums;

/* No guard, no reader of the variable but this one, none of the result. */
static int plain_assign(const yk_sums *s, uint32_t id, uint16_t sum_dev) {
  const yk_ir_node *n = &s->ir->node[id];
  const yk_device *at = s->ir->req->devices->at;
  if (n->kind != YK_IR_OP || n->op != &yk__op_assign || (n->nin > 2 && n->in[2] != 0)) return 0;
  return s->uses[n->in[0]] == 1 && s->uses[n->out] == 0 && yk__device_reaches(&at[sum_dev], &at[n->dev]);
}

/* The assigns of the sum; false if anybody else reads it, or they are not as many as it has values. */
static int find_assigns(yk_sums *s, uint32_t sum) {
  const yk_ir *ir = s->ir;
  const yk_ir_node *n = &ir->node[sum];
  s->n = 0;
  if (n->kind != YK_IR_OP || n->op != &yk__op_add_n || n->nin < 2 || s->uses[n->out] != n->nin) return 0;
  if (!(YK_T(ir->value[n->out].desc.dtype) & YK_FLOATS)) return 0;
  for (uint32_t id = 1; id < ir->nnode; id++)
    if (ir->node[id].nin >= 2 && ir->node[id].in[1] == n->out && plain_assign(s, id, n->dev)) s->assign[s->n++] = id;
  return s->n == n->nin;
}

/* Nothing that one of the assigns waits for may come after the sum or after another one of them. */
static int free_to_join(const yk_sums *s, uint32_t sum, int *failed) {
  const yk_ir *ir = s->ir;
  for (uint32_t i = 0; i < s->n; i++) {
    const yk_ir_node *n = &ir->node[s->assign[i]];
    for (uint32_t k = 0; k < n->nctrl; k++) {
      if (n->ctrl[k] == sum || yk__ir_reaches(ir, sum, n->ctrl[k], failed)) return 0;
      for (uint32_t j = 0; j < s->n; j++)
        if (n->ctrl[k] == s->assign[j] || yk__ir_reaches(ir, s->assign[j], n->ctrl[k], failed)) return 0;
    }
  }
  return 1;
}

static yk_code join(yk_sums *s, uint32_t sum) {
  yk_ir *ir = s->ir;
  uint32_t *in = yk__bump(ir->mem, 2 * s->n * sizeof *in), last = s->assign[s->n - 1], id;
  yk_assign_sum_attrs *attrs = yk__bump(ir->mem, sizeof *attrs);
  if (in == NULL || attrs == NULL) return YK_ENOMEM;
  *attrs = (yk_assign_sum_attrs){ .n = s->n, .of = (int32_t)s->n };
  for (uint32_t i = 0; i < s->n; i++) {
    in[i] = ir->node[s->assign[i]].in[0];
    in[s->n + i] = ir->node[sum].in[i];
  }
  id = yk__ir_node(ir, YK_IR_OP, &yk__op_assign_sum, attrs, (uint16_t)(2 * s->n), in, 1, ir->node[last].origin, ir->node[sum].dev);
  if (id == 0) return YK_ENOMEM;
  for (uint32_t i = 0; i <= s->n; i++) {
    uint32_t old = i < s->n ? s->assign[i] : sum;
    for (uint32_t k = 0; k < ir->node[old].nctrl; k++)
      if (!yk__ir_ctrl(ir, id, ir->node[old].ctrl[k])) return YK_ENOMEM;
    yk__ir_succeed(ir, old, id);
  }
  return YK_OK;
}

static yk_code join_all(yk_sums *s) {
  uint32_t end = s->ir->nnode;
  int failed = 0;
  for (uint32_t id = 1; id < end; id++) {
    if (!find_assigns(s, id) || !free_to_join(s, id, &failed)) continue;
    YK_TRY(join(s, id));
  }
  return failed ? YK_ENOMEM : YK_OK;
}

yk_code yk__pass_allreduce(yk_ir *ir) {
  yk_sums s = { .ir = ir, .uses = yk__ir_uses(ir), .assign = yk__alloc((ir->nnode + 1u) * sizeof *s.assign) };
  yk_code rc = s.uses != NULL && s.assign != NULL ? join_all(&s) : YK_ENOMEM;
  yk__free(s.uses);
  yk__free(s.assign);
  return rc;
}
