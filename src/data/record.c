/*
 * record.c - reading TFRecord files, and the reader that a program uses on its own.
 *
 * Each error tells file, number of the record from 0, and the offset where it begins. Gzip and zlib wrap the whole file, which is then
 * inflated when it is opened; offsets are those in what came out.
 */
#include "data/record.h"

#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/frame.h"
#include <yoke/data.h>

#define DEFAULT_MOST ((int64_t)4 << 30)

bool yk__record_begins(const yk_file *f) {
  uint8_t head[YK__FRAME_HEAD];
  uint64_t n;
  uint32_t is, want;
  if (f->bytes < YK__FRAME_HEAD + YK__FRAME_TAIL) return false;
  if (yk__file_read(f, 0, head, sizeof head) == YK_OK) return yk__frame_length(head, &n, &is, &want);
  yk_error_clear();
  return false;
}

/* The two bytes that a zlib stream begins with: deflate, and a checksum of both. */
static bool is_zlib(const yk_file *f) {
  uint8_t b[2];
  if (f->bytes < 8) return false;
  if (yk__file_read(f, 0, b, 2) == YK_OK) return (b[0] & 15) == 8 && b[0] >> 4 <= 7 && (b[0] << 8 | b[1]) % 31 == 0;
  yk_error_clear();
  return false;
}

yk_code yk__record_open(const char *path, int64_t max_bytes, yk_record_file *out) {
  yk_record_file r = { .block = NULL };
  YK_TRY(yk__file_open(path, &r.f));
  r.bytes = r.f.bytes;
  if (!yk__record_begins(&r.f) && (yk__is_gzip(&r.f) || is_zlib(&r.f))) {
    yk_packed p = { .f = &r.f, .packed = r.f.bytes };
    yk_code rc = yk__inflate_all(&p, max_bytes > 0 ? max_bytes : DEFAULT_MOST, &r.block, &r.bytes);
    yk__file_rest(&r.f);
    if (rc != YK_OK) {
      yk__record_close(&r);
      return rc;
    }
  }
  *out = r;
  return YK_OK;
}

void yk__record_close(yk_record_file *r) {
  yk__file_close(&r->f);
  yk__free(r->block);
  *r = (yk_record_file){ .block = NULL };
}

yk_code yk__record_bytes(const yk_record_file *r, int64_t at, void *out, int64_t n) {
  if (r->block == NULL) return yk__file_read(&r->f, at, out, n);
  if (n > 0) memcpy(out, (const uint8_t *)r->block + at, (size_t)n);
  return YK_OK;
}

static yk_code bad_sum(const yk_record_file *r, int64_t i, int64_t at, const char *what, uint32_t is, uint32_t want) {
  return YK_FAIL(ECORRUPT, "'%s': record %" PRId64 " (offset %" PRId64 "): the checksum of its %s is %08x, expected %08x",
                 r->f.path, i, at, what, is,
                 want);
}

yk_code yk__record_length(const yk_record_file *r, int64_t i, int64_t at, const uint8_t head[YK__FRAME_HEAD], int64_t *n) {
  uint32_t is, want;
  uint64_t length;
  int64_t left = r->bytes - at - YK__FRAME_HEAD - YK__FRAME_TAIL;
  if (!yk__frame_length(head, &length, &is, &want)) return bad_sum(r, i, at, "length", is, want);
  if (left < 0 || length > (uint64_t)left)
    return YK_FAIL(ECORRUPT, "'%s': record %" PRId64 " (offset %" PRId64 ") has %" PRIu64 " bytes of data, but the file ends after %" PRId64
                   "; it is cut off", r->f.path, i, at, length, left > 0 ? left : 0);
  *n = (int64_t)length;
  return YK_OK;
}

yk_code yk__record_get(const yk_record_file *r, int64_t i, int64_t at, int64_t n, uint8_t *room) {
  int64_t length;
  uint32_t is, want;
  YK_TRY(yk__record_bytes(r, at, room, YK__FRAME_HEAD + n + YK__FRAME_TAIL));
  YK_TRY(yk__record_length(r, i, at, room, &length));
  if (length != n)
    return YK_FAIL(ECORRUPT, "'%s': record %" PRId64 " (offset %" PRId64 ") was changed after it was opened", r->f.path, i, at);
  if (yk__frame_whole(room + YK__FRAME_HEAD, (size_t)n, room + YK__FRAME_HEAD + n, &is, &want)) return YK_OK;
  return bad_sum(r, i, at, "data", is, want);
}

/* ---- a reader for programs ---- */

struct yk_record_reader {
  yk_record_file r;
  int64_t i, at;
  uint8_t *room;
  size_t bytes;
};

yk_code yk_record_reader_open(const char *path, yk_record_reader **out) {
  if (path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_record_reader_open needs a path and a place for the result");
  yk_record_reader *r = yk__calloc(1, sizeof *r);
  if (r == NULL) return YK_ENOMEM;
  yk_code rc = yk__record_open(path, 0, &r->r);
  if (rc == YK_OK) *out = r;
  else yk__free(r);
  return rc;
}

static yk_code make_room(yk_record_reader *r, size_t bytes) {
  if (bytes <= r->bytes) return YK_OK;
  uint8_t *room = yk__realloc(r->room, bytes, 1);
  if (room == NULL) return YK_ENOMEM;
  r->room = room;
  r->bytes = bytes;
  return YK_OK;
}

yk_code yk_record_read(yk_record_reader *r, const void **bytes, size_t *n) {
  uint8_t head[YK__FRAME_HEAD];
  int64_t length;
  if (r == NULL || bytes == NULL || n == NULL) return YK_FAIL(EINVAL, "yk_record_read needs a reader and places for the result");
  if (r->at == r->r.bytes) {
    *bytes = NULL;
    *n = 0;
    return YK_OK;
  }
  if (r->r.bytes - r->at < YK__FRAME_HEAD)
    return YK_FAIL(ECORRUPT, "'%s': record %" PRId64 " (offset %" PRId64 ") is cut off after %" PRId64 " bytes", r->r.f.path,
                   r->i, r->at,
                   r->r.bytes - r->at);
  YK_TRY(yk__record_bytes(&r->r, r->at, head, sizeof head));
  YK_TRY(yk__record_length(&r->r, r->i, r->at, head, &length));
  YK_TRY(make_room(r, (size_t)length + YK__FRAME_HEAD + YK__FRAME_TAIL));
  YK_TRY(yk__record_get(&r->r, r->i, r->at, length, r->room));
  r->i++;
  r->at += YK__FRAME_HEAD + length + YK__FRAME_TAIL;
  *bytes = r->room + YK__FRAME_HEAD;
  *n = (size_t)length;
  return YK_OK;
}

void yk_record_reader_close(yk_record_reader *r) {
  if (r == NULL) return;
  yk__record_close(&r->r);
  yk__free(r->room);
  yk__free(r);
}
