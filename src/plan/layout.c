/*
 * layout.c - passes 6 and 9: layouts are negotiated and kernels prepared.
 *
 * Each kernel is offered the layouts its inputs have and says what it wants; a
 * reorder is put only where the two differ. The first round is dry: a variable
 * whose layout is still open adopts the first wish, so that the second round
 * reads it, and everything that belongs to it, without any reorder. That round
 * keeps a dry kernel where each input has the layout that was offered or wished
 * for then, which is nearly everywhere. Layouts hold for values and for all
 * copies of a variable (its family) alike.
 */
#include "plan/layout.h"

#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "tensor/desc.h"

static uint16_t layout_of(const yk_ir *ir, uint32_t v) {
  uint32_t f = ir->value[v].family;
  return f != 0 ? ir->var_layout[f - 1] : ir->value[v].desc.layout;
}

static yk_device *device_of(const yk_ir *ir, uint32_t node) {
  return &ir->req->devices->at[ir->node[node].dev];
}

static int open_family(const yk_ir *ir, uint32_t v) {
  uint32_t f = ir->value[v].family;
  return f != 0 && !ir->req->var[f - 1].layout_settled;
}

/* The driver has said why; the rest of a refusal: operation, device, devices there are, a way out. */
static yk_code no_kernel(const yk_ir *ir, uint32_t id, const yk_device *d) {
  char w[256], why[512], have[512];
  const char *said = yk_error_message();
  snprintf(why, sizeof why, "%s", said[0] ? said : "no kernel");
  yk__devices_text(ir->req->devices, have, sizeof have);
  return YK_FAIL(EUNSUPPORTED, "%s cannot run on %s: %s. Devices: %s. Cast to a type that has a kernel ('yoke ops' lists them), or "
                 "place it on a device that has one", yk__ir_where(ir, id, w), d->name, why, have);
}

/* Prepare the kernel of node `id` with layouts in `in`, `out` as yk_kernel_spec says. */
static yk_code prepare(yk_layout *l, uint32_t id, yk_desc *in, yk_desc *out, uint16_t flags, yk_kernel **kernel, yk_kernel_info *info) {
  yk_ir *ir = l->ir;
  const yk_ir_node *n = &ir->node[id];
  yk_device *d = device_of(ir, id);
  yk_kernel_spec spec = { .size = sizeof spec, .op = n->op->name, .op_version = n->op->version, .nin = n->nin, .nout = n->nout,
                          .flags = (uint16_t)(flags | (ir->req->deterministic ? YK_SPEC_DETERMINISTIC : 0)),
                          .attrs = n->attrs, .in = in, .out = out };
  yk_code rc;
  char w[256];
  *info = (yk_kernel_info){ .size = sizeof *info };
  *kernel = NULL;
  rc = d->driver->kernel_prepare(d->dev, &spec, kernel, info);
  if (rc == YK_EUNSUPPORTED) return no_kernel(ir, id, d);
  if (rc != YK_OK) return yk__fail_prefix(rc, "%s on %s", yk__ir_where(ir, id, w), d->name);
  return YK_OK;
}

/* A node that brings `v` into `layout`, put into the new order. `epoch` keeps a variable's old and new contents apart. */
static yk_code reorder(yk_layout *l, uint32_t v, uint16_t layout, uint32_t user, uint32_t *out) {
  yk_ir *ir = l->ir;
  uint32_t f = ir->value[v].family, epoch = f != 0 ? l->epoch[f - 1] : 0, id;
  uint16_t dev = ir->node[ir->value[v].node].dev;
  yk_desc in_desc = ir->value[v].desc, out_desc = in_desc;
  yk_kernel *k;
  yk_kernel_info info;
  for (uint32_t i = 0; i < l->nmade; i++)
    if (l->made[i].value == v && l->made[i].layout == layout && l->made[i].epoch == epoch) {
      *out = l->made[i].result;
      return YK_OK;
    }
  id = yk__ir_node(ir, YK_IR_OP, &yk__op_reorder, NULL, 1, &v, 1, ir->node[user].origin, dev);
  if (id == 0) return YK_ENOMEM;
  in_desc.layout = layout_of(ir, v);
  out_desc.layout = layout;
  YK_TRY(prepare(l, id, &in_desc, &out_desc, YK_SPEC_FIXED, &k, &info));
  ir->node[id].kernel = k;
  ir->node[id].info = info;
  *out = ir->node[id].out;
  ir->value[*out].desc = out_desc;
  if (!YK_PUSH(l->made, l->nmade, l->made_cap, ((yk_made){ v, *out, epoch, layout }))) return YK_ENOMEM;
  return YK_PUSH(l->order, l->norder, l->order_cap, id) ? YK_OK : YK_ENOMEM;
}

/* Input i of node `id` shall have `layout`. Dry round: an open family takes the wish, everything else is assumed reordered. */
static yk_code demand(yk_layout *l, uint32_t id, uint16_t i, uint16_t layout) {
  yk_ir *ir = l->ir;
  uint32_t v = ir->node[id].in[i], got;
  if (layout_of(ir, v) == layout) return YK_OK;
  if (l->dry) {
    uint32_t f = ir->value[v].family;
    if (open_family(ir, v) && !l->wished[f - 1]) {
      ir->var_layout[f - 1] = layout;
      l->wished[f - 1] = 1;
    }
    return YK_OK;
  }
  YK_TRY(reorder(l, v, layout, id, &got));
  ir->node[id].in[i] = got;
  return YK_OK;
}

static void share(yk_ir *ir, uint32_t out, uint32_t in) {
  ir->value[out].root = ir->value[in].root;
  ir->value[out].family = ir->value[in].family;
  ir->value[out].desc.layout = ir->value[in].desc.layout;
}

/* A view of the same shape shows any layout; one that changes the shape needs the plain one. */
static yk_code do_view(yk_layout *l, uint32_t id) {
  yk_ir *ir = l->ir;
  uint32_t in = ir->node[id].in[0], out = ir->node[id].out;
  if (yk__desc_same_shape(&ir->value[in].desc, &ir->value[out].desc)) {
    share(ir, out, in);
    return YK_OK;
  }
  if (l->dry && open_family(ir, in)) l->wished[ir->value[in].family - 1] = 1;     /* stays plain unless somebody wished before */
  YK_TRY(demand(l, id, 0, YK_LAYOUT_PLAIN));
  in = ir->node[id].in[0];
  ir->value[out].root = ir->value[in].root;
  ir->value[out].family = 0;
  ir->value[out].desc.layout = YK_LAYOUT_PLAIN;
  return YK_OK;
}

static yk_code do_copy(yk_layout *l, uint32_t id) {
  yk_ir *ir = l->ir;
  uint32_t in = ir->node[id].in[0], out = ir->node[id].out;
  uint32_t from = ir->value[in].node;
  if (device_of(ir, from)->driver != device_of(ir, id)->driver) {
    YK_TRY(demand(l, id, 0, YK_LAYOUT_PLAIN));
    ir->value[out].desc.layout = YK_LAYOUT_PLAIN;
    return YK_OK;
  }
  ir->value[out].family = ir->value[in].family;
  ir->value[out].desc.layout = ir->value[in].desc.layout;
  return YK_OK;
}

static int is_empty(const yk_desc *d) {
  return d->dtype == YK_NONE || yk__desc_count(d) == 0;
}

/* Does this node run at all? Empty outputs need no work; sums of nothing are zero. */
static yk_ir_action action_of(const yk_ir *ir, const yk_ir_node *n) {
  int all_empty = 1, some_input_empty = 0;
  for (uint16_t i = 0; i < n->nin; i++) {
    if (yk__ir_writes(n, i)) return YK_IR_RUN;
    if (yk__ir_reads(n, i) && is_empty(&ir->value[n->in[i]].desc)) some_input_empty = 1;
  }
  for (uint16_t k = 0; k < n->nout; k++)
    if (!is_empty(&ir->value[n->out + k].desc)) all_empty = 0;
  if (all_empty) return n->nin > 0 && (n->op->traits & YK_STATEFUL) ? YK_IR_RUN : YK_IR_NOTHING;
  return some_input_empty && (n->op->traits & YK_ZERO_ON_EMPTY) ? YK_IR_ZERO : YK_IR_RUN;
}

/* Layouts the kernel settled on become the outputs'; an in-place writer's output shows the variable itself. */
static void take_outputs(yk_layout *l, uint32_t id, const yk_desc *out) {
  yk_ir *ir = l->ir;
  const yk_ir_node *n = &ir->node[id];
  for (uint16_t k = 0; k < n->nout; k++) ir->value[n->out + k].desc.layout = out[k].layout == YK_LAYOUT_ANY ? YK_LAYOUT_PLAIN : out[k].layout;
  if (n->nin > 0 && yk__ir_writes(n, 0) && ir->value[n->out].desc.dtype != YK_NONE) share(ir, n->out, n->in[0]);
}

static void count_writes(yk_layout *l, const yk_ir_node *n) {
  for (uint16_t i = 0; i < n->nin; i++)
    if (yk__ir_writes(n, i) && l->ir->value[n->in[i]].family != 0) l->epoch[l->ir->value[n->in[i]].family - 1]++;
}

/* Dry round, joined updates: an open variable takes the layout that another tensor of its place in the groups has, so that a moving
 * average settles on the layout of what it follows. */
static void align_groups(yk_layout *l, uint32_t id) {
  yk_ir *ir = l->ir;
  const yk_ir_node *n = &ir->node[id];
  uint32_t per;
  if (!l->dry || !(n->op->traits & YK_MERGE)) return;
  per = *(const uint32_t *)n->attrs;
  for (uint32_t i = 0; i < n->nin; i++)
    for (uint32_t j = i % per; j < n->nin && layout_of(ir, n->in[i]) != YK_LAYOUT_PLAIN; j += per) {
      uint32_t f = ir->value[n->in[j]].family;
      if (!open_family(ir, n->in[j]) || l->wished[f - 1] || !yk__desc_same_shape(&ir->value[n->in[i]].desc, &ir->value[n->in[j]].desc)) continue;
      ir->var_layout[f - 1] = layout_of(ir, n->in[i]);
      l->wished[f - 1] = 1;
    }
}

/* Dry round: keep the kernel with what it was offered (in `offered`) and now has. */
static yk_code keep(yk_layout *l, uint32_t id, const uint16_t *offered, const yk_desc *in, const yk_desc *out, yk_kernel *k,
                    const yk_kernel_info *info) {
  const yk_ir_node *n = &l->ir->node[id];
  yk_tried *t = &l->tried[id];
  t->kernel = k;
  t->info = *info;
  t->layout = yk__bump(l->ir->mem, (2u * n->nin + n->nout) * sizeof *t->layout);
  if (t->layout == NULL) return YK_ENOMEM;
  for (uint16_t i = 0; i < n->nin; i++) {
    t->layout[i] = offered[i];
    t->layout[n->nin + i] = in[i].layout;
  }
  for (uint16_t j = 0; j < n->nout; j++) t->layout[2 * n->nin + j] = out[j].layout;
  return YK_OK;
}

/* Wet round: the dry round's kernel, if it fits what is offered now; it still wants what it wanted. NULL if there is none. */
static yk_kernel *take_tried(yk_layout *l, uint32_t id, yk_desc *in, yk_desc *out, yk_kernel_info *info) {
  const yk_ir_node *n = &l->ir->node[id];
  yk_tried *t = id < l->ntried ? &l->tried[id] : NULL;
  yk_kernel *k;
  if (t == NULL || t->kernel == NULL) return NULL;
  for (uint16_t i = 0; i < n->nin; i++)
    if (in[i].layout != t->layout[i] && in[i].layout != t->layout[n->nin + i]) return NULL;
  for (uint16_t i = 0; i < n->nin; i++) in[i].layout = t->layout[n->nin + i];
  for (uint16_t j = 0; j < n->nout; j++) out[j].layout = t->layout[2 * n->nin + j];
  k = t->kernel;
  t->kernel = NULL;
  *info = t->info;
  return k;
}

/* Reorders and wishes that the kernel's choice asks for. */
static yk_code settle_inputs(yk_layout *l, uint32_t id, const yk_desc *in, const char *impl) {
  yk_ir *ir = l->ir;
  for (uint16_t i = 0; i < ir->node[id].nin; i++) {
    char w[256];
    if (!yk__ir_reads(&ir->node[id], i) || in[i].layout == layout_of(ir, ir->node[id].in[i])) continue;
    if (yk__ir_writes(&ir->node[id], i) && !(l->dry && open_family(ir, ir->node[id].in[i])))
      return YK_FAIL(EUNSUPPORTED, "%s: the kernel '%s' does not take the variable's layout", yk__ir_where(ir, id, w), impl);
    YK_TRY(demand(l, id, i, in[i].layout));
  }
  return YK_OK;
}

static yk_code choose_kernel(yk_layout *l, uint32_t id, yk_desc *in, yk_desc *out, uint16_t *offered) {
  yk_ir *ir = l->ir;
  yk_kernel *k = NULL;
  yk_kernel_info info;
  yk_code rc = YK_OK;
  for (uint16_t i = 0; i < ir->node[id].nin; i++) offered[i] = in[i].layout;
  if (!l->dry) k = take_tried(l, id, in, out, &info);
  if (k == NULL) YK_TRY(prepare(l, id, in, out, 0, &k, &info));
  if (l->dry) rc = keep(l, id, offered, in, out, k, &info);
  else {
    ir->node[id].kernel = k;
    ir->node[id].info = info;
  }
  if (rc == YK_OK) rc = settle_inputs(l, id, in, info.impl);
  if (rc == YK_OK) take_outputs(l, id, out);
  return rc;
}

static yk_code do_kernel(yk_layout *l, uint32_t id) {
  yk_ir *ir = l->ir;
  uint16_t nin = ir->node[id].nin, nout = ir->node[id].nout;
  yk_desc *in = yk__calloc(nin + nout + 1u, sizeof *in), *out = in + nin;
  uint16_t *offered = yk__alloc((nin + 1u) * sizeof *offered);
  yk_code rc = in == NULL || offered == NULL ? YK_ENOMEM : YK_OK;
  for (uint16_t i = 0; i < nin && rc == YK_OK; i++) {
    if (ir->node[id].in[i] == 0) continue;
    in[i] = ir->value[ir->node[id].in[i]].desc;
    in[i].layout = yk__ir_reads(&ir->node[id], i) ? layout_of(ir, ir->node[id].in[i]) : YK_LAYOUT_PLAIN;
  }
  for (uint16_t j = 0; j < nout && rc == YK_OK; j++) {
    out[j] = ir->value[ir->node[id].out + j].desc;
    out[j].layout = YK_LAYOUT_ANY;
  }
  if (rc == YK_OK) rc = choose_kernel(l, id, in, out, offered);
  yk__free(in);
  yk__free(offered);
  return rc;
}

static yk_code do_node(yk_layout *l, uint32_t id) {
  yk_ir *ir = l->ir;
  yk_ir_node *n = &ir->node[id];
  for (uint16_t k = 0; k < n->nout; k++) {
    ir->value[n->out + k].root = n->out + k;
    ir->value[n->out + k].family = 0;
    ir->value[n->out + k].desc.layout = YK_LAYOUT_PLAIN;
  }
  if (n->kind == YK_IR_VARIABLE) ir->value[n->out].family = n->index + 1;
  if (n->kind == YK_IR_COPY) return do_copy(l, id);
  if (n->kind != YK_IR_OP) return YK_OK;
  if (n->op->traits & YK_VIEW) {
    n->action = YK_IR_NOTHING;
    return do_view(l, id);
  }
  n->action = (uint8_t)action_of(ir, n);
  if (n->action != YK_IR_RUN) return YK_OK;
  align_groups(l, id);
  YK_TRY(do_kernel(l, id));
  count_writes(l, &ir->node[id]);
  return YK_OK;
}

static yk_code round_of(yk_layout *l) {
  yk_ir *ir = l->ir;
  memset(l->epoch, 0, ir->req->graph->nvariable * sizeof *l->epoch);
  l->norder = 0;
  for (uint32_t t = 0; t < ir->norder; t++) {
    YK_TRY(do_node(l, ir->order[t]));
    if (!YK_PUSH(l->order, l->norder, l->order_cap, ir->order[t])) return YK_ENOMEM;
  }
  for (uint32_t i = 0; i < ir->req->nfetch && !l->dry; i++) {
    uint32_t v = ir->fetch[i];
    if (layout_of(ir, v) != YK_LAYOUT_PLAIN) YK_TRY(reorder(l, v, YK_LAYOUT_PLAIN, ir->value[v].node, &ir->fetch[i]));
  }
  return YK_OK;
}

static yk_code negotiate(yk_layout *l) {
  yk_ir *ir = l->ir;
  int open = 0;
  for (uint32_t t = 0; t < ir->norder; t++) {
    const yk_ir_node *n = &ir->node[ir->order[t]];
    if (n->kind == YK_IR_VARIABLE && !ir->req->var[n->index].layout_settled) open = 1;
  }
  for (uint32_t i = 0; i < ir->req->graph->nvariable; i++) ir->var_layout[i] = ir->req->var[i].desc.layout;
  l->dry = 1;
  if (open) {
    l->tried = yk__calloc(ir->nnode, sizeof *l->tried);
    if (l->tried == NULL) return YK_ENOMEM;
    l->ntried = ir->nnode;
    YK_TRY(round_of(l));
  }
  l->dry = 0;
  YK_TRY(round_of(l));
  yk__free(ir->order);
  ir->order = l->order;
  ir->norder = l->norder;
  ir->order_cap = l->order_cap;
  l->order = NULL;
  return YK_OK;
}

yk_code yk__pass_layout(yk_ir *ir) {
  yk_layout l = { .ir = ir };
  uint32_t n = ir->req->graph->nvariable + 1u;
  yk_code rc = YK_ENOMEM;
  ir->var_layout = yk__bump(ir->mem, n * sizeof *ir->var_layout);
  l.epoch = yk__calloc(n, sizeof *l.epoch);
  l.wished = yk__calloc(n, 1);
  if (ir->var_layout != NULL && l.epoch != NULL && l.wished != NULL) rc = negotiate(&l);
  for (uint32_t id = 1; id < l.ntried; id++)
    if (l.tried[id].kernel != NULL) device_of(ir, id)->driver->kernel_free(l.tried[id].kernel);
  yk__free(l.tried);
  yk__free(l.epoch);
  yk__free(l.wished);
  yk__free(l.made);
  yk__free(l.order);
  return rc;
}
