/*
 * zip_write.c - see zip_write.h.
 *
 * Sizes are 32 bits wide, as in the first zip archives; Python and every other reader take them.
 */
#include "store/zip_write.h"
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include "base/alloc.h"
#include "base/error.h"
#include "store/disk.h"

enum { END = 22, ENTRY = 46, LOCAL = 30 };         /* bytes of the records, without names */
#define LIMIT 0xFFFFFFFFu

static void put(uint8_t **p, uint64_t x, int bytes) {
  for (int i = 0; i < bytes; i++, x >>= 8) *(*p)++ = (uint8_t)x;
}

/* What a member's own header and its entry in the directory have in common: version 2.0, stored, of the first day of 1980. */
static void put_common(uint8_t **p, const yk_zip_part *m, uint32_t crc) {
  put(p, 20, 2);
  put(p, 0, 4);
  put(p, 0x00210000, 4);
  put(p, crc, 4);
  put(p, m->bytes, 4);
  put(p, m->bytes, 4);
  put(p, strlen(m->name), 2);
  put(p, 0, 2);
}

static void put_name(uint8_t **p, const char *name) {
  memcpy(*p, name, strlen(name));
  *p += strlen(name);
}

typedef struct writing {
  uint32_t n;
  const yk_zip_part *part;
  uint8_t *heads, *p;
  yk_piece *piece;                 /* [2n + 1]: header and bytes of each part, then the directory */
  uint32_t *crc;
} writing;

static void put_parts(writing *w) {
  for (uint32_t i = 0; i < w->n; i++) {
    const yk_zip_part *part = &w->part[i];
    uint8_t *from = w->p;
    w->crc[i] = (uint32_t)crc32_z(crc32(0, NULL, 0), part->data, part->bytes);
    put(&w->p, 0x04034b50, 4);
    put_common(&w->p, part, w->crc[i]);
    put_name(&w->p, part->name);
    w->piece[2 * i] = (yk_piece){ from, (size_t)(w->p - from) };
    w->piece[2 * i + 1] = (yk_piece){ part->data, part->bytes };
  }
}

/* Returns how many bytes are before the directory. */
static uint64_t put_directory(writing *w) {
  uint8_t *from = w->p;
  uint64_t at = 0;
  for (uint32_t i = 0; i < w->n; i++) {
    put(&w->p, 0x02014b50, 4);
    put(&w->p, 20, 2);
    put_common(&w->p, &w->part[i], w->crc[i]);
    put(&w->p, 0, 10);                                     /* comment, disk, attributes */
    put(&w->p, at, 4);
    put_name(&w->p, w->part[i].name);
    at += w->piece[2 * i].bytes + w->part[i].bytes;
  }
  uint64_t size = (uint64_t)(w->p - from);
  put(&w->p, 0x06054b50, 4);
  put(&w->p, 0, 4);
  put(&w->p, w->n, 2);
  put(&w->p, w->n, 2);
  put(&w->p, size, 4);
  put(&w->p, at, 4);
  put(&w->p, 0, 2);
  w->piece[2 * w->n] = (yk_piece){ from, (size_t)(w->p - from) };
  return at;
}

yk_code yk__zip_write(const char *path, uint32_t n, const yk_zip_part *part) {
  size_t room = END;
  for (uint32_t i = 0; i < n; i++) {
    room += ENTRY + LOCAL + 2 * strlen(part[i].name);
    if (part[i].bytes >= LIMIT) return YK_FAIL(EUNSUPPORTED, "'%s': a part of 4 GiB; archives hold smaller ones here", path);
  }
  writing w = { .n = n, .part = part, .heads = yk__alloc(room), .piece = yk__calloc(2 * n + 1u, sizeof(yk_piece)),
                .crc = yk__calloc(n + 1u, sizeof(uint32_t)) };
  yk_code rc = w.heads != NULL && w.piece != NULL && w.crc != NULL ? YK_OK : YK_ENOMEM;
  w.p = w.heads;
  if (rc == YK_OK) {
    put_parts(&w);
    rc = put_directory(&w) < LIMIT ? yk__disk_write(path, 2 * n + 1u, w.piece)
                                   : YK_FAIL(EUNSUPPORTED, "'%s': an archive of 4 GiB or more", path);
  }
  yk__free(w.heads);
  yk__free(w.piece);
  yk__free(w.crc);
  return rc;
}
