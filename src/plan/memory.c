/*
 * memory.c - pass 11: every value gets a place.
 *
 * Lifetimes are positions in the total order. A value read by another device's
 * stream, or fetched, lives to the end of the step, because nothing orders its
 * stream after that reader. Places are chosen largest first, each at the lowest
 * gap among the buffers alive at the same time: one arena a device.
 */
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "plan/ir.h"
#include "tensor/desc.h"

enum { ALIGN = 64 };

typedef struct yk_life { uint32_t first, last; } yk_life;

typedef struct yk_memory {
  yk_ir *ir;
  yk_life *life;               /* [nvalue] of roots */
  uint32_t *storage;           /* [nvalue] root -> root whose place it takes over (in place) */
  uint32_t nbuf_cap;
} yk_memory;

static yk_device *device_at(const yk_ir *ir, uint16_t dev) {
  return &ir->req->devices->at[dev];
}

static int overwritable(const yk_ir *ir, uint32_t root) {
  uint8_t kind = ir->node[ir->value[root].node].kind;
  return kind == YK_IR_OP || kind == YK_IR_COPY || kind == YK_IR_FEED;
}

static void touch(yk_memory *m, uint32_t v, uint32_t pos) {
  yk_life *l = &m->life[m->ir->value[v].root];
  if (l->first > pos) l->first = pos;
  if (l->last < pos) l->last = pos;
  m->ir->value[m->ir->value[v].root].used = 1;
}

static void find_lives(yk_memory *m) {
  yk_ir *ir = m->ir;
  uint32_t end = ir->norder;
  for (uint32_t v = 0; v < ir->nvalue; v++) m->life[v] = (yk_life){ UINT32_MAX, 0 };
  for (uint32_t t = 0; t < ir->norder; t++) {
    const yk_ir_node *n = &ir->node[ir->order[t]];
    int constant = n->kind == YK_IR_CONSTANT || n->kind == YK_IR_COUNTER;
    if (n->kind == YK_IR_OP && n->action == YK_IR_NOTHING) continue;
    for (uint16_t k = 0; k < n->nout; k++)
      if (ir->value[n->out + k].desc.dtype != YK_NONE) touch(m, n->out + k, constant ? 0 : t);
    if (constant) touch(m, n->out, end);
    for (uint16_t i = 0; i < n->nin; i++)
      if (yk__ir_reads(n, i)) touch(m, n->in[i], ir->node[ir->value[ir->value[n->in[i]].root].node].dev != n->dev ? end : t);
  }
  for (uint32_t i = 0; i < ir->req->nfetch; i++) {
    touch(m, ir->fetch[i], end);
    ir->value[ir->value[ir->fetch[i]].root].fetched = 1;
  }
}

static yk_code root_bytes(const yk_ir *ir, uint32_t root, uint64_t *out) {
  yk_device *d = device_at(ir, ir->node[ir->value[root].node].dev);
  yk_desc desc = ir->value[root].desc;
  if (ir->value[root].family != 0) desc.layout = ir->var_layout[ir->value[root].family - 1];
  return d->driver->desc_bytes(d->dev, &desc, out);
}

static uint32_t place_of(const yk_memory *m, uint32_t root) {
  while (m->storage[root] != root) root = m->storage[root];
  return root;
}

/* Let out[0] of the node at position t take over the place of an input that dies here. */
static yk_code try_in_place(yk_memory *m, uint32_t t) {
  yk_ir *ir = m->ir;
  const yk_ir_node *n = &ir->node[ir->order[t]];
  uint64_t bytes, have;
  if (n->kind != YK_IR_OP || n->action != YK_IR_RUN || n->info.inplace == 0 || n->nout == 0) return YK_OK;
  if (ir->value[n->out].root != n->out || ir->value[n->out].desc.dtype == YK_NONE) return YK_OK;
  YK_TRY(root_bytes(ir, n->out, &bytes));
  for (uint16_t i = 0; i < n->nin && i < 32; i++) {
    uint32_t place, others = 0;
    if (!(n->info.inplace >> i & 1u) || !yk__ir_reads(n, i)) continue;
    place = place_of(m, ir->value[n->in[i]].root);
    if (!overwritable(ir, place) || m->life[place].last != t) continue;
    for (uint16_t j = 0; j < n->nin; j++)
      if (j != i && yk__ir_reads(n, j) && place_of(m, ir->value[n->in[j]].root) == place) others++;
    YK_TRY(root_bytes(ir, place, &have));
    if (others > 0 || have != bytes) continue;
    m->storage[n->out] = place;
    m->life[place].last = m->life[n->out].last;
    return YK_OK;
  }
  return YK_OK;
}

static yk_code add_buf(yk_memory *m, const yk_buf *b, uint32_t *id) {
  yk_plan *p = m->ir->plan;
  if (!YK_PUSH(p->buf, p->nbuf, m->nbuf_cap, *b)) return YK_ENOMEM;
  *id = p->nbuf - 1;
  return YK_OK;
}

/* One arena a device that the step uses, variables' homes included. */
static yk_code arena_of(yk_ir *ir, uint16_t dev, uint16_t *out) {
  yk_plan *p = ir->plan;
  for (uint16_t a = 0; a < p->narena; a++)
    if (p->arena[a].dev == dev) {
      *out = a;
      return YK_OK;
    }
  p->arena[p->narena] = (yk_arena){ .dev = dev };
  *out = (uint16_t)p->narena++;
  return YK_OK;
}

static yk_code make_root_buf(yk_memory *m, uint32_t root) {
  yk_ir *ir = m->ir;
  const yk_ir_node *n = &ir->node[ir->value[root].node];
  yk_buf b = { .kind = YK_BUF_ARENA, .index = n->index, .desc = ir->value[root].desc, .first = m->life[root].first, .last = m->life[root].last };
  if (ir->value[root].family != 0) b.desc.layout = ir->var_layout[ir->value[root].family - 1];
  if (n->kind == YK_IR_VARIABLE) b.kind = YK_BUF_VARIABLE;
  if (n->kind == YK_IR_CONSTANT) b.kind = YK_BUF_CONSTANT;
  if (n->kind == YK_IR_COUNTER) b.kind = YK_BUF_COUNTER;
  YK_TRY(root_bytes(ir, root, &b.bytes));
  YK_TRY(arena_of(ir, n->dev, &b.arena));
  return add_buf(m, &b, &ir->value[root].buf);
}

static yk_code make_bufs(yk_memory *m) {
  yk_ir *ir = m->ir;
  for (uint32_t v = 1; v < ir->nvalue; v++) {
    ir->value[v].buf = YK_NO_BUF;
    if (ir->value[v].root == v && ir->value[v].used && m->storage[v] == v) YK_TRY(make_root_buf(m, v));
  }
  for (uint32_t v = 1; v < ir->nvalue; v++) {
    uint32_t root = ir->value[v].root;
    if (ir->value[root].used) ir->value[v].buf = ir->value[place_of(m, root)].buf;
  }
  return YK_OK;
}

static yk_code make_workspaces(yk_memory *m) {
  yk_ir *ir = m->ir;
  for (uint32_t t = 0; t < ir->norder; t++) {
    yk_ir_node *n = &ir->node[ir->order[t]];
    yk_buf b = { .kind = YK_BUF_ARENA, .bytes = n->info.workspace, .first = t, .last = t,
                 .desc = { .dtype = YK_U8, .rank = 1, .dim = { (int64_t)n->info.workspace } } };
    n->workspace = YK_NO_BUF;
    if (n->kind != YK_IR_OP || n->kernel == NULL || n->info.workspace == 0) continue;
    YK_TRY(arena_of(ir, n->dev, &b.arena));
    YK_TRY(add_buf(m, &b, &n->workspace));
  }
  return YK_OK;
}

static int by_size(const void *a, const void *b) {
  const yk_buf *x = *(const yk_buf *const *)a, *y = *(const yk_buf *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x < y ? -1 : 1;
}

static int alive_together(const yk_buf *a, const yk_buf *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* `placed` is sorted by offset: walk it once and take the first gap that is wide enough. */
static uint64_t find_gap(yk_buf *const *placed, uint32_t n, const yk_buf *b) {
  uint64_t at = 0, need = (b->bytes + ALIGN - 1) / ALIGN * ALIGN;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t end = placed[i]->offset + (placed[i]->bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (!alive_together(placed[i], b)) continue;
    if (placed[i]->offset >= at + need) break;
    if (end > at) at = end;
  }
  return at;
}

static void place_arena(yk_plan *p, uint16_t arena, yk_buf **todo, yk_buf **placed) {
  uint32_t n = 0, nplaced = 0;
  uint64_t top = 0;
  for (uint32_t i = 0; i < p->nbuf; i++) {
    if (p->buf[i].arena != arena || p->buf[i].kind == YK_BUF_VARIABLE) continue;
    p->arena[arena].naive_bytes += p->buf[i].bytes;
    todo[n++] = &p->buf[i];
  }
  qsort(todo, n, sizeof *todo, by_size);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = nplaced++;
    todo[i]->offset = find_gap(placed, at, todo[i]);
    if (todo[i]->offset + todo[i]->bytes > top) top = todo[i]->offset + todo[i]->bytes;
    for (; at > 0 && placed[at - 1]->offset > todo[i]->offset; at--) placed[at] = placed[at - 1];
    placed[at] = todo[i];
  }
  p->arena[arena].bytes = (top + ALIGN - 1) / ALIGN * ALIGN;
}

static yk_code plan_memory(yk_memory *m) {
  yk_plan *p = m->ir->plan;
  yk_buf **room;
  find_lives(m);
  for (uint32_t v = 0; v < m->ir->nvalue; v++) m->storage[v] = v;
  for (uint32_t t = 0; t < m->ir->norder; t++) YK_TRY(try_in_place(m, t));
  YK_TRY(make_bufs(m));
  YK_TRY(make_workspaces(m));
  room = yk__alloc((2u * p->nbuf + 1u) * sizeof *room);
  if (room == NULL) return YK_ENOMEM;
  for (uint16_t a = 0; a < p->narena; a++) place_arena(p, a, room, room + p->nbuf);
  yk__free(room);
  return YK_OK;
}

yk_code yk__pass_memory(yk_ir *ir) {
  yk_memory m = { .ir = ir };
  yk_code rc = YK_ENOMEM;
  ir->plan->arena = yk__bump(ir->mem, (ir->req->devices->n + 1u) * sizeof *ir->plan->arena);
  m.life = yk__alloc((ir->nvalue + 1u) * sizeof *m.life);
  m.storage = yk__alloc((ir->nvalue + 1u) * sizeof *m.storage);
  if (ir->plan->arena != NULL && m.life != NULL && m.storage != NULL) rc = plan_memory(&m);
  yk__free(m.life);
  yk__free(m.storage);
  return rc;
}
