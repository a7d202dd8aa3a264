/*
 * pool_dump.c - everything a pool knows, as text, for whoever did not get what he asked for.
 *
 * From the outside in: the request, the bins, the chunks of each region, sums by size, totals, and the whole of it as a map of
 * a hundred characters. Nothing here changes the pool.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "device/pool.h"

enum { MAP = 100 };

typedef struct sums { uint64_t n, used, bytes, used_bytes, asked; } sums;

static bool in_use(const yk_chunk *c) { return c->bin == YK__POOL_IN_USE; }

static const char *human(uint64_t bytes, char buf[YK__BYTES_TEXT]) { return yk__bytes_text(bytes, buf); }

/* By the bin that a chunk would be in if it were free. */
static void sum_bins(const yk_pool *p, sums bin[YK__POOL_BINS]) {
  for (const yk_region *r = p->first; r; r = r->after)
    for (const yk_chunk *c = r->first; c; c = c->after) {
      sums *s = &bin[yk__pool_bin(c->bytes)];
      s->n++;
      s->bytes += c->bytes;
      if (!in_use(c)) continue;
      s->used++;
      s->used_bytes += c->bytes;
      s->asked += c->asked;
    }
}

static void put_bins(const yk_pool *p, yk_str *out) {
  sums bin[YK__POOL_BINS] = { { 0 } };
  char a[YK__BYTES_TEXT], b[YK__BYTES_TEXT], c[YK__BYTES_TEXT];
  sum_bins(p, bin);
  for (uint32_t i = 0; i < YK__POOL_BINS; i++)
    yk__str_add(out, "bin (%" PRIu64 "): %" PRIu64 " chunks, %" PRIu64 " in use; %s in chunks, %s in use, %s asked for\n",
                (uint64_t)YK__POOL_UNIT << i, bin[i].n, bin[i].used, human(bin[i].bytes, a), human(bin[i].used_bytes, b),
                human(bin[i].asked, c));
}

static void put_neighbour(yk_str *out, const char *where, const yk_chunk *c) {
  char a[YK__BYTES_TEXT];
  if (c) yk__str_add(out, ", %s it %s %s", where, human(c->bytes, a), in_use(c) ? "in use" : "free");
}

/* The free chunks of the bin where the search began. */
static void put_wanted(const yk_pool *p, size_t bytes, yk_str *out) {
  char a[YK__BYTES_TEXT];
  uint32_t bin = yk__pool_bin((size_t)yk__pool_rounded(p, bytes));
  yk__str_add(out, "bin for %s is that of %" PRIu64 "\n", human(bytes, a), (uint64_t)YK__POOL_UNIT << bin);
  for (const yk_chunk *c = p->bin[bin].least; c; c = c->more) {
    yk__str_add(out, "  free %s", human(c->bytes, a));
    put_neighbour(out, "before", c->before);
    put_neighbour(out, "behind", c->after);
    yk__str_put(out, "\n", 1);
  }
}

static void put_chunks(const yk_pool *p, yk_str *out) {
  for (const yk_region *r = p->first; r; r = r->after) {
    yk__str_add(out, "region %" PRIu64 " of size %zu\n", r->number, r->mem.bytes);
    for (const yk_chunk *c = r->first; c; c = c->after)
      yk__str_add(out, "%s at %p+%zu of size %zu\n", in_use(c) ? "InUse" : "Free ", r->mem.base, r->mem.offset + c->offset,
                  c->bytes);
  }
}

static int by_size(const void *a, const void *b) {
  const size_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static void put_sizes(const yk_pool *p, yk_str *out) {
  size_t n = 0, *size;
  char a[YK__BYTES_TEXT];
  for (const yk_region *r = p->first; r; r = r->after) n += r->used;
  if ((size = yk__alloc((n + 1) * sizeof *size)) == NULL) { yk_error_clear(); return; }
  n = 0;
  for (const yk_region *r = p->first; r; r = r->after)
    for (const yk_chunk *c = r->first; c; c = c->after)
      if (in_use(c)) size[n++] = c->bytes;
  qsort(size, n, sizeof *size, by_size);
  for (size_t i = 0, same = 1; i < n; i += same) {
    for (same = 1; i + same < n && size[i + same] == size[i];) same++;
    yk__str_add(out, "%zu chunks of size %zu totalling %s\n", same, size[i], human((uint64_t)same * size[i], a));
  }
  yk__free(size);
}

/* '*' used, 'x' wasted by rounding, '_' free: of each hundredth what there is most of. */
static void put_map(const yk_pool *p, uint64_t held, yk_str *out) {
  uint64_t part[MAP][3] = { { 0 } }, at = 0;
  char map[MAP + 1] = "";
  if (held == 0) return;
  double each = (double)held / MAP;
  for (const yk_region *r = p->first; r; r = r->after)
    for (const yk_chunk *c = r->first; c; c = c->after) {
      uint64_t end[3] = { at + c->asked, at + (in_use(c) ? c->bytes : c->asked), at + c->bytes };
      for (int kind = 0; kind < 3; kind++)
        while (at < end[kind]) {
          uint32_t i = (uint32_t)((double)at / each);
          if (i > MAP - 1) i = MAP - 1;
          uint64_t stop = i == MAP - 1 ? held : (uint64_t)((double)(i + 1) * each);
          if (stop <= at) stop = at + 1;
          if (stop > end[kind]) stop = end[kind];
          part[i][kind] += stop - at;
          at = stop;
        }
    }
  for (int i = 0; i < MAP; i++) {
    const uint64_t *n = part[i];
    map[i] = n[0] >= n[1] && n[0] >= n[2] && n[0] > 0 ? '*' : n[1] > n[2] ? 'x' : '_';
  }
  yk__str_add(out, "%s\n", map);
}

static void put_totals(const yk_pool *p, yk_str *out) {
  const yk_memory_counters *n = p->count;
  uint64_t limit = n->limit, held = n->held;
  yk__str_add(out, "held: %" PRIu64 ", limit: %" PRIu64 ", available: %" PRIu64 ", next region: %zu\n", held, limit,
              limit > held ? limit - held : 0, p->policy == YK__POOL_EXACT ? 0 : p->next);
  yk__str_add(out, "Limit:        %20" PRIu64 "\nInUse:        %20" PRIu64 "\nMaxInUse:     %20" PRIu64 "\n", limit,
              (uint64_t)n->in_use, (uint64_t)n->peak_in_use);
  yk__str_add(out, "NumAllocs:    %20" PRIu64 "\nMaxAllocSize: %20" PRIu64 "\n", (uint64_t)n->allocations,
              (uint64_t)n->largest_allocation);
}

void yk__pool_dump(yk_pool *p, const char *name, size_t bytes, yk_str *out) {
  char a[YK__BYTES_TEXT];
  yk__mutex_lock(&p->lock);
  yk__str_add(out, "pool of %s: no room for %s, rounded to %" PRIu64 "\n", name, human(bytes, a), yk__pool_rounded(p, bytes));
  put_bins(p, out);
  put_wanted(p, bytes, out);
  put_chunks(p, out);
  put_sizes(p, out);
  yk__str_add(out, "in use, all together: %s\n", human(p->count->in_use, a));
  put_totals(p, out);
  put_map(p, p->count->held, out);
  yk__mutex_unlock(&p->lock);
}
