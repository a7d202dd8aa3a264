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
  yk_ir_edges users;
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

static void count_waits(yk_topo *t) {
  for (uint32_t e = 1; e < t->users.n; e++) t->waiting[t->users.edge[e].to]++;
}

static uint32_t drain(yk_topo *t, uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t id = 1; id < t->ir->nnode; id++)
    if (t->ir->node[id].kind != YK_IR_DEAD && t->waiting[id] == 0) heap_push(t, id);
  while (t->nheap > 0) {
    uint32_t id = heap_pop(t);
    order[n++] = id;
    for (uint32_t e = t->users.first[id]; e != 0; e = t->users.edge[e].next)
      if (--t->waiting[t->users.edge[e].to] == 0) heap_push(t, t->users.edge[e].to);
  }
  return n;
}

static uint32_t live_count(const yk_ir *ir) {
  uint32_t n = 0;
  for (uint32_t id = 1; id < ir->nnode; id++) n += ir->node[id].kind != YK_IR_DEAD;
  return n;
}

static yk_code sort(yk_topo *t, uint32_t *order, uint32_t *n) {
  if (!yk__ir_edges(t->ir, &t->users)) return YK_ENOMEM;
  t->waiting = t->heap + t->ir->nnode + 1;
  count_waits(t);
  *n = drain(t, order);
  return *n == live_count(t->ir) ? YK_OK : YK_FAIL(EINTERNAL, "the step's operations wait for one another in a circle");
}

yk_code yk__ir_topo(const yk_ir *ir, uint32_t **out, uint32_t *n) {
  uint32_t *order = yk__alloc((ir->nnode + 1u) * sizeof *order), *room = yk__calloc(2u * (ir->nnode + 1u), sizeof *room), count = 0;
  yk_topo t = { .ir = ir, .heap = room };
  yk_code rc = order && room ? sort(&t, order, &count) : YK_ENOMEM;
  yk__ir_edges_free(&t.users);
  yk__free(room);
  if (rc != YK_OK) {
    yk__free(order);
    return rc;
  }
  *out = order;
  *n = count;
  return YK_OK;
}
