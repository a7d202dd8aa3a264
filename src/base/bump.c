/*
 * bump.c - the bump allocator: objects that die together.
 *
 * A list of blocks, newest first; an object that does not fit opens a block at
 * least twice as large as the last one, up to a limit. There is no way to give
 * back a single object, which is the point.
 */
#include "base/alloc.h"

#include <string.h>

enum { FIRST_BLOCK = 4096, LAST_BLOCK = 256 * 1024, ALIGN = 16 };

struct yk_bump_block {
  struct yk_bump_block *next;
  char *at, *end;                        /* free part */
  size_t bytes;                          /* of the whole block */
};

static struct yk_bump_block *block_new(size_t last, size_t need) {
  size_t bytes = last ? last * 2 : FIRST_BLOCK;
  struct yk_bump_block *b;
  if (bytes > LAST_BLOCK) bytes = LAST_BLOCK;
  if (need > SIZE_MAX - sizeof *b - ALIGN) need = SIZE_MAX - sizeof *b - ALIGN;
  if (bytes < need + sizeof *b + ALIGN) bytes = need + sizeof *b + ALIGN;
  b = yk__calloc(1, bytes);
  if (!b) return NULL;
  b->bytes = bytes;
  b->end = (char *)b + bytes;
  b->at = (char *)(b + 1);
  b->at += (ALIGN - (uintptr_t)b->at % ALIGN) % ALIGN;
  return b;
}

void *yk__bump(yk_bump *b, size_t bytes) {
  struct yk_bump_block *block = b->head;
  size_t take = bytes > SIZE_MAX - ALIGN ? SIZE_MAX - ALIGN : (bytes + ALIGN - 1) / ALIGN * ALIGN;
  char *p;
  if (yk__alloc_refused(bytes)) return NULL;
  if (!block || take > (size_t)(block->end - block->at)) {
    struct yk_bump_block *fresh = block_new(block ? block->bytes : 0, take);
    if (!fresh) return NULL;
    if (block && take > LAST_BLOCK / 4) {        /* one large object must not waste the rest of the current block */
      fresh->next = block->next;
      block->next = fresh;
    } else {
      fresh->next = block;
      b->head = fresh;
    }
    block = fresh;
  }
  p = block->at;
  block->at += take;
  b->used += take;
  return p;
}

char *yk__bump_str(yk_bump *b, const char *s) {
  return yk__bump_copy(b, s, strlen(s) + 1);
}

void *yk__bump_copy(yk_bump *b, const void *p, size_t bytes) {
  void *copy = yk__bump(b, bytes);
  if (copy && bytes) memcpy(copy, p, bytes);
  return copy;
}

void yk__bump_free(yk_bump *b) {
  struct yk_bump_block *block = b->head;
  while (block) {
    struct yk_bump_block *next = block->next;
    yk__free(block);
    block = next;
  }
  b->head = NULL;
  b->used = 0;
}
