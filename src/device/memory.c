/*
 * memory.c - memory of a device: its pool, the pool's limit, and what the pool counts.
 *
 * GPUs, virtual ones too, have a pool that takes large regions and cuts them; a CPU device takes each piece by itself, since
 * host memory is shared with everybody. Pools of host devices belong to the process: sessions that open the same device alike
 * share one, so that a limit is a limit of the process, and peaks are those of the process.
 */
#include <string.h>
#include <yoke/session.h>
#include "base/error.h"
#include "device/pool.h"

typedef struct shared {            /* a pool, with a handle of its own on the device */
  struct shared *next;
  uint32_t refs;
  char type[YK__TYPE_BYTES];
  const yk_driver *driver;
  uint32_t ordinal;
  uint16_t number, part, parts;
  uint8_t is_virtual, growth;
  uint64_t total, limit;
  yk_dev *dev;
  bool own_dev;                    /* else the session's, and nobody shares it */
  yk_pool *pool;
} shared;

static _Atomic uint32_t lock;      /* of the list */
static shared *all;

static yk_code take(void *arg, size_t bytes, yk_mem *out) {
  shared *x = arg;
  return x->driver->mem_alloc(x->dev, YK_DEVICE_MEM, bytes, out);
}

static void give(void *arg, yk_mem mem) {
  shared *x = arg;
  x->driver->mem_free(x->dev, mem);
}

uint64_t yk__memory_whole(const yk_dev_info *info) {
  uint64_t free = info->bytes_free && info->bytes_free < info->bytes_total ? info->bytes_free : info->bytes_total, part = free / 20;
  uint64_t reserve = free < (uint64_t)2 << 30 ? (uint64_t)225 << 20 : part > (uint64_t)300 << 20 ? part : (uint64_t)300 << 20;
  return reserve < free ? free - reserve : free;
}

/* ---- pools of the process --------------------------------------------------------------------------------------- */

/* Only a device of the host may be opened more than once. */
static bool shareable(const yk_device *d) { return d->info.bus[0] == '\0'; }

static bool same(const shared *x, const yk_device *d) {
  if (!x->own_dev || !shareable(d) || x->driver != d->driver || x->ordinal != d->ordinal || x->number != d->number) return false;
  if (x->part != d->part || x->parts != d->parts || x->is_virtual != d->is_virtual || x->growth != d->growth) return false;
  return x->total == d->total && x->limit == d->limit && strcmp(x->type, d->spec.type) == 0;
}

static void drop(shared *x) {
  yk__pool_close(x->pool);
  if (x->own_dev && x->dev) x->driver->close(x->dev);
  yk__free(x);
}

static yk_code make(const yk_device *d, shared **out) {
  shared *x = yk__calloc(1, sizeof *x);
  if (x == NULL) return YK_ENOMEM;
  *x = (shared){ .refs = 1, .driver = d->driver, .ordinal = d->ordinal, .number = d->number, .part = d->part, .parts = d->parts,
                 .own_dev = shareable(d), .is_virtual = d->is_virtual, .growth = d->growth, .total = d->total, .limit = d->limit };
  memcpy(x->type, d->spec.type, sizeof x->type);
  yk_pool_policy policy = strcmp(x->type, "GPU") != 0 ? YK__POOL_EXACT : x->growth ? YK__POOL_GROWTH : YK__POOL_WHOLE;
  yk_pool_source source = { take, give, x };
  yk_code rc = YK_OK;
  if (x->own_dev) rc = x->driver->open(x->ordinal, &d->config, &x->dev);
  else x->dev = d->dev;
  if (rc == YK_OK) rc = yk__pool_open(policy, x->total, x->limit, d->info.alignment, &source, &x->pool);
  if (rc != YK_OK) { drop(x); return rc; }
  *out = x;
  return YK_OK;
}

yk_code yk__device_pool_open(yk_device *d) {
  yk_code rc = YK_OK;
  yk__lock(&lock);
  shared *x = all;
  while (x && !same(x, d)) x = x->next;
  if (x) {
    x->refs++;
  } else if ((rc = make(d, &x)) == YK_OK) {
    x->next = all;
    all = x;
  }
  if (rc == YK_OK) d->pool = x->pool;
  yk__unlock(&lock);
  return rc == YK_OK ? YK_OK : yk__fail_prefix(rc, "%s", d->name);
}

void yk__device_pool_close(yk_device *d) {
  if (d->pool == NULL) return;
  yk__lock(&lock);
  for (shared **at = &all; *at; at = &(*at)->next) {
    shared *x = *at;
    if (x->pool != d->pool) continue;
    if (--x->refs == 0) { *at = x->next; drop(x); }
    break;
  }
  d->pool = NULL;
  yk__unlock(&lock);
}

/* ---- a device's memory ------------------------------------------------------------------------------------------ */

yk_code yk__device_alloc(yk_device *d, size_t bytes, yk_mem *out) {
  yk_code rc = yk__pool_alloc(d->pool, bytes, out);
  return rc == YK_OK ? YK_OK : yk__fail_prefix(rc, "%s", d->name);
}

void yk__device_free(yk_device *d, yk_mem mem) {
  yk__pool_free(d->pool, mem);
}

uint64_t yk__device_rounded(const yk_device *d, uint64_t bytes) {
  if (d->pool) return yk__pool_rounded(d->pool, bytes);
  bool gpu = strcmp(d->spec.type, "GPU") == 0;             /* rehearsed */
  return gpu ? (bytes + YK__POOL_UNIT - 1) / YK__POOL_UNIT * YK__POOL_UNIT : bytes;
}

const yk_memory_counters *yk__device_counters(const yk_device *d) { return &d->pool->own; }

void yk__device_memory(const yk_device *d, yk_device_memory *out) {
  yk_pool *p = d->pool;
  if (p == NULL) {                                         /* rehearsed: nothing is ever taken */
    yk_device_memory none = { .size = out->size, .bytes_total = d->total, .bytes_limit = d->limit };
    memcpy(out, &none, out->size < sizeof none ? out->size : sizeof none);
    return;
  }
  yk__mutex_lock(&p->lock);
  const yk_memory_counters *n = &p->own;
  yk_device_memory m = {
    .size = out->size, .regions = (uint32_t)n->regions, .bytes_total = n->total, .bytes_limit = n->limit, .bytes_held = n->held,
    .peak_held = n->peak_held, .bytes_in_use = n->in_use, .peak_in_use = n->peak_in_use, .bytes_requested = n->requested,
    .largest_free = n->largest_free, .allocations = n->allocations, .refusals = n->refusals,
    .largest_allocation = n->largest_allocation };
  yk__mutex_unlock(&p->lock);
  uint64_t free = m.bytes_held - m.bytes_in_use;
  if (free > 0) m.fragmentation = 1 - (double)m.largest_free / (double)free;
  memcpy(out, &m, out->size < sizeof m ? out->size : sizeof m);
}

uint64_t yk__device_refusals(const yk_device *d) {
  yk_device_memory m = { .size = sizeof m };
  yk__device_memory(d, &m);
  return m.refusals;
}
