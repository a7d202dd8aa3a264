/*
 * alloc.c - malloc and free, counted, and failing on request.
 *
 * Everything the library takes from the C heap passes here, so a test can fail
 * any one allocation and can see whether all came back. The counters are
 * process-wide; the request to fail belongs to one thread.
 */
#include "base/alloc.h"
#include "base/error.h"

#include <yoke/graph.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t made, live;
static _Thread_local struct { uint64_t left, refused; int stays; } fault;      /* left 0: nothing is asked for */

uint64_t yk__alloc_count(void) {
  return atomic_load_explicit(&made, memory_order_relaxed);
}

uint64_t yk__alloc_live(void) {
  return atomic_load_explicit(&live, memory_order_relaxed);
}

static uint64_t ask(uint64_t n, int stays) {
  uint64_t refused = fault.refused;
  fault.left = n;
  fault.stays = stays;
  fault.refused = 0;
  return refused;
}

uint64_t yk__alloc_fail_at(uint64_t n) {
  return ask(n, 0);
}

uint64_t yk__alloc_fail_from(uint64_t n) {
  return ask(n, 1);
}

static void *out_of_memory(size_t bytes) {
  yk__fail(YK_ENOMEM, __FILE__, __LINE__, "out of host memory: %zu bytes asked for", bytes);
  return NULL;
}

int yk__alloc_refused(size_t bytes) {
  if (fault.left == 0) return 0;
  if (fault.left > 1) { fault.left--; return 0; }
  if (!fault.stays) fault.left = 0;
  fault.refused++;
  (void)out_of_memory(bytes);
  return 1;
}

static void *counted(void *p, size_t bytes) {
  if (!p) return out_of_memory(bytes);
  atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return p;
}

void *yk__alloc(size_t bytes) {
  if (yk__alloc_refused(bytes)) return NULL;
  return counted(malloc(bytes ? bytes : 1), bytes);
}

void *yk__calloc(size_t n, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(n, bytes, &total)) return out_of_memory(SIZE_MAX);
  if (yk__alloc_refused(total)) return NULL;
  return counted(calloc(1, total ? total : 1), total);
}

void *yk__realloc(void *p, size_t n, size_t bytes) {
  size_t total;
  void *q;
  if (__builtin_mul_overflow(n, bytes, &total)) return out_of_memory(SIZE_MAX);
  if (!p) return yk__alloc(total);
  if (yk__alloc_refused(total)) return NULL;
  q = realloc(p, total ? total : 1);
  if (!q) return out_of_memory(total);
  atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
  return q;
}

void *yk__alloc_aligned(size_t bytes, size_t align) {
  void *p = NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  if (yk__alloc_refused(bytes)) return NULL;
  if (posix_memalign(&p, align, bytes ? bytes : 1) != 0) p = NULL;
  return counted(p, bytes);
}

char *yk__strdup(const char *s) {
  return yk__strndup(s, strlen(s));
}

char *yk__strndup(const char *s, size_t n) {
  size_t len = strnlen(s, n);
  char *copy = yk__alloc(len + 1);
  if (!copy) return NULL;
  memcpy(copy, s, len);
  copy[len] = '\0';
  return copy;
}

void yk__free(void *p) {
  if (!p) return;
  atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  free(p);
}

void yk_free(void *p) {
  yk__free(p);
}

int yk__grow(void **arr, uint32_t *cap, uint32_t need, size_t item_bytes) {
  void *p;
  uint32_t n = *cap;
  if (need <= n && need != 0) return !yk__alloc_refused(item_bytes);
  if (need == 0) {                       /* n + 1 wrapped: the array is full at 2^32 - 1 items */
    out_of_memory(SIZE_MAX);
    return 0;
  }
  n = n < 4 ? 8 : n > UINT32_MAX / 2 ? UINT32_MAX : n * 2;
  if (n < need) n = need;
  memcpy(&p, arr, sizeof p);             /* *arr is a T *, not a void *: go through bytes */
  p = yk__realloc(p, n, item_bytes);
  if (!p) return 0;
  memcpy(arr, &p, sizeof p);
  *cap = n;
  return 1;
}
