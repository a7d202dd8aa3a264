/*
 * pool.h - best fit with coalescing: one pool a device, pieces cut from regions that the driver gave.
 *
 * The idea: free pieces ("chunks") lie in 21 bins by size, so the smallest that is large enough is found at once; a chunk that
 * is given back merges with its free neighbours, so that nothing stays cut for ever. The pool never looks at the memory: a
 * chunk is the region's handle, an offset and a size, and all records are its own. It decides how much memory a program holds:
 * all at once, growing, or each piece by itself.
 */
#ifndef YK_DEVICE_POOL_H
#define YK_DEVICE_POOL_H

#include <stdbool.h>
#include "base/alloc.h"
#include "base/str.h"
#include "base/thread.h"
#include "device/device.h"

enum { YK__POOL_UNIT = 256, YK__POOL_BINS = 21, YK__POOL_BUCKETS = 256, YK__POOL_IN_USE = YK__POOL_BINS };

typedef enum yk_pool_policy {
  YK__POOL_WHOLE,                  /* the first allocation takes the whole limit */
  YK__POOL_GROWTH,                 /* regions of 1, 2, 4 ... MiB as they are needed */
  YK__POOL_EXACT                   /* a region a request, given back with it: for memory that is shared with everybody */
} yk_pool_policy;

typedef struct yk_pool_source {    /* where regions come from */
  yk_code (*take)(void *arg, size_t bytes, yk_mem *out);
  void (*give)(void *arg, yk_mem mem);
  void *arg;
} yk_pool_source;

typedef struct yk_chunk {
  struct yk_region *region;
  struct yk_chunk *before, *after;     /* its neighbours in the region */
  struct yk_chunk *less, *more;        /* free: smaller and larger ones of its bin; in use: `more` is the next of its bucket */
  size_t offset, bytes;                /* offset from the region's begin; bytes as rounded */
  size_t asked;                        /* what the caller wanted of it; 0 if free */
  uint32_t bin;                        /* YK__POOL_IN_USE if handed out */
} yk_chunk;

typedef struct yk_region {
  yk_mem mem;
  yk_chunk *first;
  struct yk_region *before, *after;    /* in the order they were taken */
  uint64_t number;
  uint32_t used;                       /* chunks in use */
} yk_region;

typedef struct yk_pool {               /* the inside is for pool.c, pool_dump.c and tests */
  yk_mutex lock;
  yk_pool_policy policy;
  yk_pool_source source;
  size_t unit, next;                   /* sizes are multiples of unit; size of the next region */
  bool backed_off;
  yk_memory_counters *count;           /* -> own */
  struct { yk_chunk *least, *most; } bin[YK__POOL_BINS];
  yk_chunk *bucket[YK__POOL_BUCKETS];  /* those in use, by place */
  yk_region *first, *last;
  uint64_t nregion;                    /* taken so far */
  yk_chunk *spare_chunk;               /* records for later, linked by `more` */
  yk_region *spare_region;             /* linked by `after` */
  uint32_t nspare;
  yk_bump records;
  yk_memory_counters own;
} yk_pool;

/* What `source` points to must outlive the pool. Nothing is taken yet. */
yk_code yk__pool_open(yk_pool_policy policy, uint64_t total, uint64_t limit, uint32_t alignment, const yk_pool_source *source,
                      yk_pool **out) YK_CHECKED;
/* Gives every region back, whatever is still in use. */
void    yk__pool_close(yk_pool *p);
/* out->bytes is what was asked for. 0 bytes: base NULL. ENOMEM tells why: limit, cut into pieces, or what the driver said. */
yk_code yk__pool_alloc(yk_pool *p, size_t bytes, yk_mem *out) YK_CHECKED;
void    yk__pool_free(yk_pool *p, yk_mem mem);
/* What a request of that many bytes takes. */
uint64_t yk__pool_rounded(const yk_pool *p, uint64_t bytes);
/* Everything the pool knows, in lines, as it looks to somebody who wants `bytes` and did not get them: bins, chunks, sums, a map. */
void    yk__pool_dump(yk_pool *p, const char *name, size_t bytes, yk_str *out);
uint32_t yk__pool_bin(size_t bytes);

#endif
