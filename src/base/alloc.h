/*
 * alloc.h - the only door to malloc.
 *
 * Counts what is live, can fail on request (fault tests), and zeroes nothing
 * unless asked. Sizes are checked: n*size never wraps.
 */
#ifndef YK_BASE_ALLOC_H
#define YK_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

/* All return NULL after setting the thread's ENOMEM message. yk__free(NULL) is fine. */
void *yk__alloc(size_t bytes);
void *yk__calloc(size_t n, size_t bytes);
void *yk__realloc(void *p, size_t n, size_t bytes);        /* p survives a failure */
void *yk__alloc_aligned(size_t bytes, size_t align);       /* freed by yk__free too */
char *yk__strdup(const char *s);
char *yk__strndup(const char *s, size_t n);
void  yk__free(void *p);

/* Number of allocations made so far in this process, and those still live. */
uint64_t yk__alloc_count(void);
uint64_t yk__alloc_live(void);

/*
 * For tests: the n-th allocation of this thread from now on (1 = the next) fails once, or that one and all after it; 0 turns it
 * off. An object of a bump allocator and an item pushed on a growing array count too, whether or not there was room left, so
 * every place that ever needs memory can be hit. Returns how many were refused since the call before.
 */
uint64_t yk__alloc_fail_at(uint64_t n);
uint64_t yk__alloc_fail_from(uint64_t n);
/* Is it this one that was asked to fail? Then the message is set. */
int yk__alloc_refused(size_t bytes);

/*
 * Bump allocator: many small objects with one lifetime (a graph, a plan).
 * One thread at a time. Zero-initialised struct is an empty arena.
 */
typedef struct yk_bump { struct yk_bump_block *head; size_t used; } yk_bump;
void *yk__bump(yk_bump *b, size_t bytes);                  /* zeroed, 16-byte aligned; NULL = ENOMEM */
char *yk__bump_str(yk_bump *b, const char *s);
void *yk__bump_copy(yk_bump *b, const void *p, size_t bytes);
void  yk__bump_free(yk_bump *b);

/*
 * Growing arrays: `YK_PUSH(arr, n, cap, item)` with arr a pointer, n and cap
 * uint32_t lvalues. Evaluates to 0 on ENOMEM (array untouched), else 1.
 */
int yk__grow(void **arr, uint32_t *cap, uint32_t need, size_t item_bytes);
#define YK_PUSH(arr, n, cap, item)                                               \
  (yk__grow((void **)&(arr), &(cap), (n) + 1u, sizeof *(arr)) ? ((arr)[(n)++] = (item), 1) : 0)

#endif
