/*
 * zip.c - see zip.h.
 *
 * The directory at the end of the file is what counts; a member's own header is only stepped over. What is deflated is inflated to exactly the size
 * that the directory declares.
 */
#include "data/zip.h"
#include <inttypes.h>
#include <string.h>
#include <zlib.h>
#include "base/alloc.h"
#include "base/error.h"

enum { END = 22, END64 = 56, LOCATOR64 = 20, ENTRY = 46, LOCAL = 30, COMMENT = 65535, NAME = YK__ZIP_NAME, CHUNK = 1 << 16, ALIGN = 64,
      MOST_DIRECTORY = 1 << 24 };
enum { STORED = 0, DEFLATED = 8 };
#define NONE32 0xFFFFFFFFu

typedef struct yk_directory { int64_t at, bytes; uint64_t entries; } yk_directory;

static yk_code damaged(const yk_file *f, int64_t at, const char *why) {
  return YK_FAIL(ECORRUPT, "'%s': %s (offset %" PRId64 ")", f->path, why, at);
}

/* The end record of archives beyond 4 GiB. */
static yk_code find_end64(const yk_file *f, int64_t end, yk_directory *d) {
  uint8_t b[END64];
  if (end < LOCATOR64 + END64) return damaged(f, end, "the zip directory is said to be elsewhere, but nothing says where");
  YK_TRY(yk__file_read(f, end - LOCATOR64, b, LOCATOR64));
  if (memcmp(b, "PK\6\7", 4) != 0) return damaged(f, end - LOCATOR64, "expected the locator of a zip64 directory");
  uint64_t at = yk__le64(b + 8);
  if (at > (uint64_t)(f->bytes - END64))
    return damaged(f, end - LOCATOR64, "the zip64 directory is said to be beyond the end of the file");
  YK_TRY(yk__file_read(f, (int64_t)at, b, END64));
  if (memcmp(b, "PK\6\6", 4) != 0) return damaged(f, (int64_t)at, "expected a zip64 directory");
  uint64_t bytes = yk__le64(b + 40), begin = yk__le64(b + 48);
  if (bytes > (uint64_t)f->bytes || begin > (uint64_t)f->bytes)
    return damaged(f, (int64_t)at, "the zip64 directory is larger than the file");
  *d = (yk_directory){ .at = (int64_t)begin, .bytes = (int64_t)bytes, .entries = yk__le64(b + 32) };
  return YK_OK;
}

/* The end record is the last thing in the file but for a comment. */
static yk_code find_directory(const yk_file *f, yk_directory *d) {
  int64_t n = f->bytes < END + COMMENT ? f->bytes : END + COMMENT;
  if (n < END) return YK_FAIL(ECORRUPT, "'%s' has %" PRId64 " bytes, too few for a zip archive", f->path, f->bytes);
  uint8_t *tail = yk__alloc((size_t)n);
  if (tail == NULL) return YK_ENOMEM;
  yk_code rc = yk__file_read(f, f->bytes - n, tail, n);
  int64_t k = n - END;
  while (rc == YK_OK && k >= 0 && memcmp(tail + k, "PK\5\6", 4) != 0) k--;
  if (rc == YK_OK && k < 0)
    rc = YK_FAIL(ECORRUPT, "'%s' has no zip directory at its end; it is cut off or no archive", f->path);
  if (rc == YK_OK) {
    const uint8_t *e = tail + k;
    *d = (yk_directory){ .at = yk__le32(e + 16), .bytes = yk__le32(e + 12), .entries = yk__le16(e + 10) };
    if (yk__le32(e + 16) == NONE32 || yk__le16(e + 10) == 0xFFFF) rc = find_end64(f, f->bytes - n + k, d);
  }
  yk__free(tail);
  if (rc == YK_OK && (d->bytes > MOST_DIRECTORY || d->at > f->bytes - d->bytes))
    rc = damaged(f, d->at, "the zip directory does not fit in the file");
  return rc;
}

/* Sizes that 32 bits cannot hold are in an extra field, in this order, each only if it is needed. */
static bool take_extra(const uint8_t *p, int64_t n, uint32_t bytes, uint32_t packed, uint32_t at, yk_zip_member *m) {
  int64_t *want[3] = { bytes == NONE32 ? &m->bytes : NULL, packed == NONE32 ? &m->packed : NULL, at == NONE32 ? &m->at : NULL };
  if (want[0] == NULL && want[1] == NULL && want[2] == NULL) return true;
  for (; n >= 4; n -= 4 + yk__le16(p + 2), p += 4 + yk__le16(p + 2)) {
    int64_t len = yk__le16(p + 2), used = 4;
    if (len + 4 > n) return false;
    if (yk__le16(p) != 1) continue;
    for (int k = 0; k < 3; k++) {
      if (want[k] == NULL) continue;
      if (used + 8 > len + 4 || yk__le64(p + used) > (uint64_t)INT64_MAX) return false;
      *want[k] = (int64_t)yk__le64(p + used);
      used += 8;
    }
    return true;
  }
  return false;
}

/* One entry of the directory; *size of it. */
static yk_code take_entry(const yk_file *f, const uint8_t *p, int64_t left, int64_t at, yk_zip_member *m, int64_t *size) {
  if (left < ENTRY || memcmp(p, "PK\1\2", 4) != 0) return damaged(f, at, "expected an entry of the zip directory");
  int64_t name = yk__le16(p + 28), extra = yk__le16(p + 30), comment = yk__le16(p + 32);
  *size = ENTRY + name + extra + comment;
  if (*size > left) return damaged(f, at, "an entry of the zip directory goes beyond its end");
  *m = (yk_zip_member){ .flags = yk__le16(p + 8), .method = yk__le16(p + 10), .crc = yk__le32(p + 16), .packed = yk__le32(p + 20),
                    .bytes = yk__le32(p + 24), .at = yk__le32(p + 42) };
  if (name >= NAME) return damaged(f, at, "a member's name is too long");
  memcpy(m->name, p + ENTRY, (size_t)name);
  if (!take_extra(p + ENTRY + name, extra, yk__le32(p + 24), yk__le32(p + 20), yk__le32(p + 42), m))
    return damaged(f, at, "an entry of the zip directory lacks its 64-bit sizes");
  if (m->flags & 1u) return YK_FAIL(EUNSUPPORTED, "'%s': member '%s' is encrypted", f->path, m->name);
  return YK_OK;
}

/* Behind the member's own header, whose name and extra field may have other lengths. */
yk_code yk__zip_find(const yk_file *f, yk_zip_member *m) {
  uint8_t b[LOCAL];
  if (m->at > f->bytes - LOCAL) return damaged(f, m->at, "a member is said to be beyond the end of the file");
  YK_TRY(yk__file_read(f, m->at, b, LOCAL));
  if (memcmp(b, "PK\3\4", 4) != 0) return damaged(f, m->at, "expected the header of a member");
  m->at += LOCAL + yk__le16(b + 26) + yk__le16(b + 28);
  if (m->packed > f->bytes - m->at) return damaged(f, m->at, "a member goes beyond the end of the file");
  if (m->method == STORED && m->packed != m->bytes) return damaged(f, m->at, "a stored member has two different sizes");
  m->stored = m->method == STORED;
  if (m->method == STORED || m->method == DEFLATED) return YK_OK;
  return YK_FAIL(EUNSUPPORTED, "'%s': member '%s' is compressed by method %u; known are 0 (stored) and 8 (deflated)", f->path,
                 m->name, m->method);
}

static yk_code check_sum(const yk_file *f, const yk_zip_member *m, uint32_t got) {
  if (got == m->crc) return YK_OK;
  return YK_FAIL(ECORRUPT, "'%s': member '%s' (offset %" PRId64 ") has checksum %08x, expected %08x", f->path, m->name, m->at,
                 got, m->crc);
}

/* The stored bytes, read and summed piece by piece, so that each is summed while it is in the cache; into `to`, or `piece` over and over. */
static yk_code read_stored(const yk_file *f, const yk_zip_member *m, uint8_t *to, uint8_t *piece) {
  uLong crc = crc32(0, NULL, 0);
  for (int64_t done = 0, n; done < m->bytes; done += n) {
    uint8_t *at = piece != NULL ? piece : to + done;
    n = m->bytes - done < CHUNK ? m->bytes - done : CHUNK;
    YK_TRY(yk__file_read(f, m->at + done, at, n));
    crc = crc32_z(crc, at, (size_t)n);
  }
  return check_sum(f, m, (uint32_t)crc);
}

yk_code yk__zip_check(const yk_file *f, const yk_zip_member *m) {
  uint8_t *piece = yk__alloc(CHUNK);
  yk_code rc = piece != NULL ? read_stored(f, m, NULL, piece) : YK_ENOMEM;
  yk__free(piece);
  return rc;
}

yk_code yk__zip_list(const yk_file *f, yk_zip *l) {
  yk_directory d = { 0 };
  YK_TRY(find_directory(f, &d));
  uint8_t *all = yk__alloc((size_t)d.bytes + 1);
  if (all == NULL) return YK_ENOMEM;
  yk_code rc = yk__file_read(f, d.at, all, d.bytes);
  for (int64_t p = 0, size = 0; rc == YK_OK && p < d.bytes && l->n < d.entries; p += size) {
    yk_zip_member m;
    rc = take_entry(f, all + p, d.bytes - p, d.at + p, &m, &size);
    if (rc == YK_OK && !YK_PUSH(l->m, l->n, l->cap, m)) rc = YK_ENOMEM;
  }
  yk__free(all);
  return rc;
}

yk_code yk__zip_extract(const yk_file *f, const yk_zip_member *m, void **out) {
  void *block = NULL;
  yk_code rc;
  if (m->stored) {
    block = yk__alloc_aligned((size_t)m->bytes + 1, ALIGN);
    rc = block != NULL ? read_stored(f, m, block, NULL) : YK_ENOMEM;
  } else {
    rc = yk__inflate(&(yk_packed){ .f = f, .at = m->at, .packed = m->packed, .raw = 1 }, &block, m->bytes);
    if (rc == YK_OK) rc = check_sum(f, m, (uint32_t)crc32_z(crc32(0, NULL, 0), block, (size_t)m->bytes));
  }
  if (rc == YK_OK) *out = block;
  else yk__free(block);
  return rc;
}
