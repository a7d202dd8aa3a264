/*
 * pool.c - allocate, split, extend, free, merge. The rules are those users know from their GPUs' pools.
 *
 * Searching starts in the bin of the size wanted and goes up; within a bin chunks are sorted by size, then by place. A chunk is
 * split if half of it or 128 MiB would be wasted. If nothing fits the pool extends by another region; if it may not, regions
 * without a chunk in use go back to the driver first. Every function that is not public has the lock.
 */
#include "device/pool.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include "base/error.h"

static const size_t GROWTH_BEGIN = (size_t)1 << 20, WASTE_AT_MOST = (size_t)128 << 20;

uint32_t yk__pool_bin(size_t bytes) {
  uint32_t bin = 0;
  for (size_t n = bytes / YK__POOL_UNIT; n > 1 && bin < YK__POOL_BINS - 1; n /= 2) bin++;
  return bin;
}

static uint64_t get(const _Atomic uint64_t *x) { return atomic_load_explicit(x, memory_order_relaxed); }
static void set(_Atomic uint64_t *x, uint64_t to) { atomic_store_explicit(x, to, memory_order_relaxed); }
static void raise_to(_Atomic uint64_t *x, uint64_t to) { if (get(x) < to) set(x, to); }

static size_t rounded(const yk_pool *p, size_t bytes) { return (bytes + p->unit - 1) / p->unit * p->unit; }

uint64_t yk__pool_rounded(const yk_pool *p, uint64_t bytes) {
  return p->policy == YK__POOL_EXACT || bytes > UINT64_MAX - p->unit ? bytes : rounded(p, (size_t)bytes);
}

static uint64_t left(const yk_pool *p) {
  uint64_t limit = get(&p->count->limit), held = get(&p->count->held);
  return limit > held ? limit - held : 0;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* Whatever is done for one request needs two chunks and a region at most: taken before anything is changed. */
static yk_code reserve(yk_pool *p) {
  while (p->nspare < 2) {
    yk_chunk *c = yk__bump(&p->records, sizeof *c);
    if (c == NULL) return YK_ENOMEM;
    c->more = p->spare_chunk;
    p->spare_chunk = c;
    p->nspare++;
  }
  if (p->spare_region == NULL) p->spare_region = yk__bump(&p->records, sizeof *p->spare_region);
  return p->spare_region ? YK_OK : YK_ENOMEM;
}

static yk_chunk *new_chunk(yk_pool *p, yk_region *r, size_t offset, size_t bytes) {
  yk_chunk *c = p->spare_chunk;
  p->spare_chunk = c->more;
  p->nspare--;
  *c = (yk_chunk){ .region = r, .offset = offset, .bytes = bytes, .bin = YK__POOL_IN_USE };
  return c;
}

static void drop_chunk(yk_pool *p, yk_chunk *c) {
  c->more = p->spare_chunk;
  p->spare_chunk = c;
  p->nspare++;
}

/* ---- bins ------------------------------------------------------------------------------------------------------- */

static bool before(const yk_chunk *a, const yk_chunk *b) {
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  if (a->region != b->region) return a->region->number < b->region->number;
  return a->offset < b->offset;
}

static void bin_put(yk_pool *p, yk_chunk *c) {
  uint32_t bin = c->bin = yk__pool_bin(c->bytes);
  yk_chunk *less = p->bin[bin].most;
  while (less && before(c, less)) less = less->less;
  c->less = less;
  c->more = less ? less->more : p->bin[bin].least;
  if (c->more) c->more->less = c; else p->bin[bin].most = c;
  if (less) less->more = c; else p->bin[bin].least = c;
}

static void bin_take(yk_pool *p, yk_chunk *c) {
  if (c->less) c->less->more = c->more; else p->bin[c->bin].least = c->more;
  if (c->more) c->more->less = c->less; else p->bin[c->bin].most = c->less;
  c->less = c->more = NULL;
  c->bin = YK__POOL_IN_USE;
}

static yk_chunk *best(const yk_pool *p, size_t bytes) {
  for (uint32_t bin = yk__pool_bin(bytes); bin < YK__POOL_BINS; bin++) {
    yk_chunk *c = p->bin[bin].least;
    while (c && c->bytes < bytes) c = c->more;
    if (c) return c;
  }
  return NULL;
}

/* ---- chunks in use, found by place ------------------------------------------------------------------------------ */

static yk_chunk **bucket(yk_pool *p, const void *base, size_t offset) {
  uint64_t h = ((uint64_t)(uintptr_t)base + offset) / 64 * 0x9E3779B97F4A7C15u;
  return &p->bucket[h >> 56];
}

static void remember(yk_pool *p, yk_chunk *c) {
  yk_chunk **b = bucket(p, c->region->mem.base, c->region->mem.offset + c->offset);
  c->more = *b;
  *b = c;
}

static yk_chunk *recall(yk_pool *p, yk_mem mem) {
  for (yk_chunk **c = bucket(p, mem.base, mem.offset); *c; c = &(*c)->more) {
    yk_chunk *found = *c;
    if (found->region->mem.base != mem.base || found->region->mem.offset + found->offset != mem.offset) continue;
    *c = found->more;
    found->more = NULL;
    return found;
  }
  return NULL;
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static void held(yk_pool *p, uint64_t bytes, uint64_t regions) {
  set(&p->count->held, bytes);
  set(&p->count->regions, regions);
  raise_to(&p->count->peak_held, bytes);
}

static yk_code take_region(yk_pool *p, size_t bytes, yk_chunk **out) {
  yk_mem mem = { 0 };
  YK_TRY(p->source.take(p->source.arg, bytes, &mem));
  yk_region *r = p->spare_region;
  p->spare_region = r->after;
  *r = (yk_region){ .mem = mem, .before = p->last, .number = p->nregion++ };
  if (p->last) p->last->after = r; else p->first = r;
  p->last = r;
  *out = r->first = new_chunk(p, r, 0, bytes);
  held(p, get(&p->count->held) + bytes, get(&p->count->regions) + 1);
  return YK_OK;
}

/* A region with one chunk, which is in no bin and in no bucket. */
static void give_region(yk_pool *p, yk_region *r) {
  if (r->before) r->before->after = r->after; else p->first = r->after;
  if (r->after) r->after->before = r->before; else p->last = r->before;
  held(p, get(&p->count->held) - r->mem.bytes, get(&p->count->regions) - 1);
  drop_chunk(p, r->first);
  p->source.give(p->source.arg, r->mem);
  r->after = p->spare_region;
  p->spare_region = r;
}

/* Another region that has room for `bytes`. EBUSY: the limit does not let it; else what the driver says. */
static yk_code extend(yk_pool *p, size_t bytes, yk_chunk **out) {
  uint64_t room = left(p) / p->unit * p->unit;
  bool doubled = false;
  if (bytes > room) return YK_EBUSY;
  for (; p->next < bytes; p->next *= 2) doubled = true;
  size_t want = p->next < room ? p->next : (size_t)room;
  yk_code rc = take_region(p, want, out);
  if (rc == YK_ENOMEM && !p->backed_off) {             /* others have some of it: as much as there is, once in a life */
    p->backed_off = true;
    while (rc == YK_ENOMEM) {
      size_t less = rounded(p, want - want / 10);
      want = less < want ? less : want - p->unit;
      if (want < bytes) break;
      yk_error_clear();
      rc = take_region(p, want, out);
    }
  }
  if (rc == YK_OK && !doubled && p->next <= SIZE_MAX / 4) p->next *= 2;
  return rc;
}

/* Regions that nobody uses go back if that makes room for `bytes`. */
static bool trim(yk_pool *p, size_t bytes) {
  uint64_t could = left(p);
  bool any = false;
  for (yk_region *r = p->first; r; r = r->after)
    if (r->used == 0) could += r->mem.bytes;
  if (could < bytes) return false;
  for (yk_region *r = p->first, *next; r; r = next) {
    next = r->after;
    if (r->used > 0) continue;
    bin_take(p, r->first);
    give_region(p, r);
    any = true;
  }
  return any;
}

/* ---- allocate and free ------------------------------------------------------------------------------------------ */

static void split(yk_pool *p, yk_chunk *c, size_t bytes) {
  yk_chunk *rest = new_chunk(p, c->region, c->offset + bytes, c->bytes - bytes);
  c->bytes = bytes;
  rest->before = c;
  rest->after = c->after;
  if (c->after) c->after->before = rest;
  c->after = rest;
  bin_put(p, rest);
}

static yk_code refuse(yk_pool *p, size_t bytes, yk_code rc) {
  const yk_memory_counters *n = p->count;
  uint64_t free = get(&n->held) - get(&n->in_use), most = get(&n->largest_free);
  char pieces[96] = "";
  set(&p->count->refusals, get(&n->refusals) + 1);
  if (free >= bytes && free > 0)
    snprintf(pieces, sizeof pieces, "; %" PRIu64 " are free, but the largest piece has %" PRIu64, free, most);
  if (rc != YK_EBUSY)                                  /* the driver has said why */
    return yk__fail_prefix(rc, "%zu bytes asked for, %" PRIu64 " in use, the limit is %" PRIu64 "%s", bytes, get(&n->in_use),
                           get(&n->limit), pieces);
  return YK_FAIL(ENOMEM, "%zu bytes asked for, %" PRIu64 " in use, the limit is %" PRIu64 "%s", bytes, get(&n->in_use),
                 get(&n->limit), pieces);
}

static void count_in_use(yk_pool *p, uint64_t in_use, uint64_t requested) {
  yk_memory_counters *n = p->count;
  uint64_t most = 0;
  for (uint32_t bin = YK__POOL_BINS; bin-- > 0 && most == 0;)
    if (p->bin[bin].most) most = p->bin[bin].most->bytes;
  set(&n->in_use, in_use);
  set(&n->requested, requested);
  set(&n->largest_free, most);
  raise_to(&n->peak_in_use, in_use);
}

static yk_code find(yk_pool *p, size_t want, yk_chunk **out) {
  yk_chunk *c = best(p, want);
  if (c) { bin_take(p, c); *out = c; return YK_OK; }
  yk_code rc = extend(p, want, out);
  if ((rc == YK_EBUSY || rc == YK_ENOMEM) && trim(p, want)) rc = extend(p, want, out);
  return rc;
}

static yk_code allocate(yk_pool *p, size_t bytes, yk_mem *out) {
  yk_memory_counters *n = p->count;
  size_t want = p->policy == YK__POOL_EXACT ? bytes : rounded(p, bytes);
  yk_chunk *c = NULL;
  yk_code rc = YK_EBUSY;
  YK_TRY(reserve(p));
  if (bytes <= get(&n->limit) && want >= bytes) {
    if (p->policy != YK__POOL_EXACT) rc = find(p, want, &c);
    else if (want <= left(p)) rc = take_region(p, want, &c);
  }
  if (rc != YK_OK) return refuse(p, bytes, rc);
  if (p->policy != YK__POOL_EXACT && (c->bytes / 2 >= want || c->bytes - want >= WASTE_AT_MOST)) split(p, c, want);
  c->asked = bytes;
  c->region->used++;
  remember(p, c);
  count_in_use(p, get(&n->in_use) + c->bytes, get(&n->requested) + bytes);
  set(&n->allocations, get(&n->allocations) + 1);
  raise_to(&n->largest_allocation, c->bytes);
  *out = (yk_mem){ .base = c->region->mem.base, .offset = c->region->mem.offset + c->offset, .bytes = bytes };
  return YK_OK;
}

/* `c` swallows the neighbour behind it. */
static void swallow(yk_pool *p, yk_chunk *c) {
  yk_chunk *next = c->after;
  c->bytes += next->bytes;
  c->after = next->after;
  if (c->after) c->after->before = c;
  drop_chunk(p, next);
}

static void release(yk_pool *p, yk_chunk *c) {
  uint64_t in_use = get(&p->count->in_use) - c->bytes, requested = get(&p->count->requested) - c->asked;
  c->asked = 0;
  c->region->used--;
  if (p->policy == YK__POOL_EXACT) {
    give_region(p, c->region);
  } else {
    if (c->after && c->after->bin != YK__POOL_IN_USE) { bin_take(p, c->after); swallow(p, c); }
    if (c->before && c->before->bin != YK__POOL_IN_USE) { c = c->before; bin_take(p, c); swallow(p, c); }
    bin_put(p, c);
  }
  count_in_use(p, in_use, requested);
}

/* ---- the pool --------------------------------------------------------------------------------------------------- */

yk_code yk__pool_open(yk_pool_policy policy, uint64_t total, uint64_t limit, uint32_t alignment, const yk_pool_source *source,
                      yk_pool **out) {
  yk_pool *p = yk__calloc(1, sizeof *p);
  if (p == NULL) return YK_ENOMEM;
  size_t align = alignment > 1 ? alignment : 1;
  yk__mutex_init(&p->lock);
  p->policy = policy;
  p->source = *source;
  p->unit = (YK__POOL_UNIT + align - 1) / align * align;
  p->count = &p->own;
  set(&p->own.total, total);
  set(&p->own.limit, limit);
  if (policy == YK__POOL_GROWTH && limit > GROWTH_BEGIN) limit = GROWTH_BEGIN;
  p->next = rounded(p, limit < SIZE_MAX / 4 ? (size_t)limit : SIZE_MAX / 4);
  if (p->next == 0) p->next = p->unit;
  *out = p;
  return YK_OK;
}

void yk__pool_close(yk_pool *p) {
  if (p == NULL) return;
  for (yk_region *r = p->first; r; r = r->after) p->source.give(p->source.arg, r->mem);
  yk__bump_free(&p->records);
  yk__mutex_free(&p->lock);
  yk__free(p);
}

yk_code yk__pool_alloc(yk_pool *p, size_t bytes, yk_mem *out) {
  if (bytes == 0) { *out = (yk_mem){ 0 }; return YK_OK; }
  yk__mutex_lock(&p->lock);
  yk_code rc = allocate(p, bytes, out);
  yk__mutex_unlock(&p->lock);
  return rc;
}

void yk__pool_free(yk_pool *p, yk_mem mem) {
  if (mem.base == NULL) return;
  yk__mutex_lock(&p->lock);
  yk_chunk *c = recall(p, mem);
  assert(c != NULL);
  if (c) release(p, c);
  yk__mutex_unlock(&p->lock);
}
