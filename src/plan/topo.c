/*
 * topo.c - topological order with program order as the tie-breaker.
 *
 * Kahn's algorithm with a heap keyed by the graph node a node came from, so a
 * plan runs in the order in which the user wrote the program wherever the edges
 * allow it, and does so the same way every time.
 */
#include "base/error.h"
#include "plan/ir.h"

typedef struct yk_topo {
  const yk_ir *ir;
  uint32_t *heap, nheap;
  uint32_t *waiting;           /* [nnode] edges not yet satisfied */
  uint32_t *first, *next, *to; /* users of a node as linked lists over edges */
} yk_topo;

static int before(const yk_ir *ir, uint32_t a, uint32_t b) {
  const yk_ir_node *x = &ir->node[a], *y = &ir->node[b];
  return x->origin != y->origin ? x->origin < y->origin : a < b;
}

static void heap_push(yk_topo *t, uint32_t id) {
  uint32_t i = t->nheap++;
  while (i > 0 && before(t->ir, id, t->heap[(i - 1) / 2])) {
    t->heap[i] = t->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  t->heap[i] = id;
}

static uint32_t heap_pop(yk_topo *t) {
  uint32_t top = t->heap[0], last = t->heap[--t->nheap], i = 0;
  for (;;) {
    uint32_t c = 2 * i + 1;
    if (c >= t->nheap) break;
    if (c + 1 < t->nheap && before(t->ir, t->heap[c + 1], t->heap[c])) c++;
    if (!before(t->ir, t->heap[c], last)) break;
    t->heap[i] = t->heap[c];
    i = c;
  }
  t->heap[i] = last;
  return top;
}

static uint32_t count_edges(const yk_ir *ir) {
  uint32_t edges = 1;
  for (uint32_t id = 1; id < ir->nnode; id++)
    if (ir->node[id].kind != YK_IR_DEAD) edges += ir->node[id].nin + ir->node[id].nctrl;
  return edges;
}

static void link_edges(yk_topo *t) {
  uint32_t e = 1;
  for (uint32_t id = 1; id < t->ir->nnode; id++) {
    const yk_ir_node *n = &t->ir->node[id];
    if (n->kind == YK_IR_DEAD) continue;
    for (uint32_t k = 0; k < n->nin + n->nctrl; k++) {
      uint32_t p = yk__ir_pred(t->ir, n, k);
      if (p == 0) continue;
      t->to[e] = id;
      t->next[e] = t->first[p];
      t->first[p] = e++;
      t->waiting[id]++;
    }
  }
}

static uint32_t drain(yk_topo *t, uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t id = 1; id < t->ir->nnode; id++)
    if (t->ir->node[id].kind != YK_IR_DEAD && t->waiting[id] == 0) heap_push(t, id);
  while (t->nheap > 0) {
    uint32_t id = heap_pop(t);
    order[n++] = id;
    for (uint32_t e = t->first[id]; e != 0; e = t->next[e])
      if (--t->waiting[t->to[e]] == 0) heap_push(t, t->to[e]);
  }
  return n;
}

static uint32_t live_count(const yk_ir *ir) {
  uint32_t n = 0;
  for (uint32_t id = 1; id < ir->nnode; id++) n += ir->node[id].kind != YK_IR_DEAD;
  return n;
}

uint32_t *yk__ir_topo(const yk_ir *ir, uint32_t *n) {
  uint32_t edges = count_edges(ir), *order = yk__alloc((ir->nnode + 1u) * sizeof *order);
  yk_topo t = { .ir = ir };
  uint32_t *room = yk__calloc(3u * (ir->nnode + 1u) + 2u * edges, sizeof *room);
  *n = 0;
  if (order == NULL || room == NULL) goto fail;
  t.heap = room;
  t.waiting = t.heap + ir->nnode + 1;
  t.first = t.waiting + ir->nnode + 1;
  t.next = t.first + ir->nnode + 1;
  t.to = t.next + edges;
  link_edges(&t);
  *n = drain(&t, order);
  if (*n != live_count(ir)) {
    (void)YK_FAIL(EINTERNAL, "the step's operations wait for one another in a circle");
    *n = 0;
    goto fail;
  }
  yk__free(room);
  return order;
fail:
  yk__free(room);
  yk__free(order);
  return NULL;
}
