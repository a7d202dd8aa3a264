/*
 * kernels.c - which drivers of a session have no kernel for an operation in a data type.
 *
 * Found out by asking the drivers, once an operation, and kept with the devices.
 * Shapes are not known when a graph is placed, so the question is the one that
 * `yoke ops` answers: is there a kernel for any case of the operation in this type?
 */
#include "op/kernels.h"
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "op/registry.h"
#include "plan/place.h"

typedef struct yk_kernel_table {     /* one block of memory, owned by the devices */
  size_t nops;
  uint32_t ndrivers;
  yk_support answer[];               /* [nops][ndrivers]; UNASKED until asked */
} yk_kernel_table;

enum { UNASKED = 1 << 0 };           /* a bit that is no dtype: YK_T(YK_NONE) */

uint32_t yk__place_driver(const yk_devices *d, uint16_t dev) {
  uint32_t n = 0;
  for (uint16_t i = 0; i < d->n; i++) {
    if (d->at[i].driver == d->at[dev].driver) return n;
    uint16_t k = 0;
    while (k < i && d->at[k].driver != d->at[i].driver) k++;
    n += k == i;                     /* the first device of another driver */
  }
  return n;
}

static uint32_t count_drivers(const yk_devices *d) {
  uint32_t n = 0;
  for (uint16_t i = 0; i < d->n; i++) {
    uint32_t k = yk__place_driver(d, i);
    if (k + 1 > n) n = k + 1;
  }
  return n;
}

static yk_code make_table(yk_devices *d, uint32_t ndrivers) {
  size_t nops;
  yk_op_all(&nops);
  yk_kernel_table *t = yk__alloc(sizeof *t + nops * ndrivers * sizeof t->answer[0]);
  if (!t) return YK_ENOMEM;
  t->nops = nops;
  t->ndrivers = ndrivers;
  for (size_t i = 0; i < nops * ndrivers; i++) t->answer[i] = (yk_support){ UNASKED, 0 };
  d->kernels = t;
  return YK_OK;
}

static size_t number_of(const yk_op *op, size_t nops) {
  size_t n;
  const yk_op *const *all = yk_op_all(&n);
  for (size_t i = 0; i < nops; i++)
    if (all[i] == op) return i;
  return nops;
}

/* The type that an operation is asked about: of its first input, or of its result. */
static uint8_t type_of(const yk_graph *g, const yk_node *n) {
  for (uint16_t i = 0; i < n->nin; i++)
    if (n->in[i]) return g->value[n->in[i]].desc.dtype;
  return n->nout ? g->value[n->first].desc.dtype : YK_NONE;
}

yk_code yk__place_lacks(const yk_graph *g, yk_devices *d, const yk_node *n, uint32_t *out) {
  uint8_t type = type_of(g, n);
  uint32_t ndrivers = d->kernels ? ((yk_kernel_table *)d->kernels)->ndrivers : count_drivers(d), lacks = 0;
  *out = 0;
  if (ndrivers < 2 || ndrivers > YK__MAX_DRIVERS || type == YK_NONE || (n->op->traits & (YK_SOURCE | YK_VIEW))) return YK_OK;
  if (!d->kernels) YK_TRY(make_table(d, ndrivers));
  yk_kernel_table *t = d->kernels;
  size_t op = number_of(n->op, t->nops);
  if (op == t->nops) return YK_OK;
  for (uint16_t i = 0; i < d->n; i++) {
    uint32_t k = yk__place_driver(d, i);
    yk_support *s = &t->answer[op * ndrivers + k];
    if (s->all == UNASKED && s->some == 0) *s = yk__kernel_support(d->at[i].driver, d->at[i].dev, n->op);
    if (((s->all | s->some) >> type & 1u) == 0) lacks |= 1u << k;
  }
  *out = lacks;
  return YK_OK;
}
