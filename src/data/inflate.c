/*
 * inflate.c - zlib, with bounds on what may come out.
 *
 * Deflate makes a byte of at most 1032, so a size that was declared is refused before memory is taken for it when the packed bytes
 * cannot hold it; a size that nobody declared grows up to the caller's limit. Zlib's own memory comes from our allocator.
 */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/file.h"

enum { CHUNK = 65536, MOST_FROM_ONE = 1032, SLACK = 64 };

typedef struct yk_inflater {
  z_stream z;
  const yk_packed *from;
  int64_t read;                    /* packed bytes taken from the file */
  int ended;
  uint8_t *chunk;                  /* [CHUNK] */
} yk_inflater;

static void *z_alloc(void *arg, unsigned n, unsigned bytes) {
  (void)arg;
  return yk__calloc(n, bytes);
}

static void z_free(void *arg, void *p) {
  (void)arg;
  yk__free(p);
}

static yk_code begin(const yk_packed *p, yk_inflater *s) {
  *s = (yk_inflater){ .from = p };
  s->z.zalloc = z_alloc;
  s->z.zfree = z_free;
  s->chunk = yk__alloc(CHUNK);
  if (s->chunk == NULL) return YK_ENOMEM;
  int rc = inflateInit2(&s->z, p->raw ? -MAX_WBITS : MAX_WBITS + 32);
  if (rc == Z_OK) return YK_OK;
  yk__free(s->chunk);
  return rc == Z_MEM_ERROR ? YK_ENOMEM : YK_FAIL(EINTERNAL, "zlib could not begin: %d", rc);
}

static void end(yk_inflater *s) {
  inflateEnd(&s->z);
  yk__free(s->chunk);
}

static yk_code damaged(const yk_inflater *s, const char *why) {
  return YK_FAIL(ECORRUPT, "'%s': the compressed data at offset %" PRId64 " is damaged near offset %" PRId64 ": %s",
                 s->from->f->path, s->from->at,
                 s->from->at + s->read - (int64_t)s->z.avail_in, why);
}

/* More packed bytes, once those at hand are used up. */
static yk_code refill(yk_inflater *s) {
  int64_t left = s->from->packed - s->read, n = left < CHUNK ? left : CHUNK;
  if (s->z.avail_in > 0) return YK_OK;
  if (n == 0) return damaged(s, "it is cut off");
  YK_TRY(yk__file_read(s->from->f, s->from->at + s->read, s->chunk, n));
  s->read += n;
  s->z.next_in = s->chunk;
  s->z.avail_in = (unsigned)n;
  return YK_OK;
}

/* One member has ended; gzip allows another behind it. */
static void next_member(yk_inflater *s) {
  if (s->from->raw || (s->z.avail_in == 0 && s->read == s->from->packed)) s->ended = 1;
  else inflateReset(&s->z);
}

/* Up to n bytes to `out`; *got < n only at the end. */
static yk_code pump(yk_inflater *s, uint8_t *out, int64_t n, int64_t *got) {
  *got = 0;
  while (*got < n && !s->ended) {
    int64_t ask = n - *got < (int64_t)1 << 30 ? n - *got : (int64_t)1 << 30;
    YK_TRY(refill(s));
    s->z.next_out = out + *got;
    s->z.avail_out = (unsigned)ask;
    int rc = inflate(&s->z, Z_NO_FLUSH);
    *got += ask - (int64_t)s->z.avail_out;
    if (rc == Z_STREAM_END) next_member(s);
    else if (rc == Z_MEM_ERROR) return YK_ENOMEM;
    else if (rc != Z_OK && rc != Z_BUF_ERROR) return damaged(s, s->z.msg != NULL ? s->z.msg : "zlib does not accept it");
  }
  return YK_OK;
}

yk_code yk__inflate_head(const yk_packed *p, void *out, int64_t n) {
  yk_inflater s;
  int64_t got = 0;
  YK_TRY(begin(p, &s));
  yk_code rc = pump(&s, out, n, &got);
  if (rc == YK_OK && got < n)
    rc = YK_FAIL(ECORRUPT, "'%s' holds only %" PRId64 " bytes once inflated; expected at least %" PRId64, p->f->path, got, n);
  end(&s);
  return rc;
}

/* All n bytes and then the end. */
static yk_code pump_exactly(yk_inflater *s, uint8_t *out, int64_t n) {
  uint8_t more;
  int64_t got, extra;
  YK_TRY(pump(s, out, n, &got));
  if (got < n)
    return YK_FAIL(ECORRUPT, "'%s': %" PRId64 " bytes come out of the compressed data at offset %" PRId64 ", where %" PRId64 " are declared",
                   s->from->f->path, got, s->from->at, n);
  YK_TRY(pump(s, &more, 1, &extra));
  if (extra == 0) return YK_OK;
  return YK_FAIL(ECORRUPT, "'%s': more than the declared %" PRId64 " bytes come out of the compressed data at offset %" PRId64,
                 s->from->f->path, n,
                 s->from->at);
}

yk_code yk__inflate(const yk_packed *p, void **out, int64_t n) {
  yk_inflater s;
  if (n / MOST_FROM_ONE > p->packed + SLACK)
    return YK_FAIL(ECORRUPT, "'%s' declares %" PRId64 " bytes, more than its %" PRId64 " compressed ones can hold", p->f->path,
                   n, p->packed);
  uint8_t *all = yk__alloc((size_t)n + 1);
  if (all == NULL) return YK_FAIL(ENOMEM, "no memory for the %" PRId64 " bytes that '%s' inflates to", n, p->f->path);
  yk_code rc = begin(p, &s);
  if (rc == YK_OK) {
    rc = pump_exactly(&s, all, n);
    end(&s);
  }
  if (rc == YK_OK) *out = all;
  else yk__free(all);
  return rc;
}

static yk_code pump_all(yk_inflater *s, int64_t limit, uint8_t **all, int64_t *n) {
  int64_t room = 0;
  for (int64_t got; !s->ended; *n += got) {
    if (*n > limit)
      return YK_FAIL(ECORRUPT, "'%s' inflates to more than the %" PRId64 " bytes that are allowed (option max_bytes)",
                     s->from->f->path, limit);
    if (*n == room) {
      room = room == 0 ? CHUNK : 2 * room;
      if (room > limit + 1) room = limit + 1;
      uint8_t *more = yk__realloc(*all, (size_t)room, 1);
      if (more == NULL) return YK_FAIL(ENOMEM, "no memory for what '%s' inflates to", s->from->f->path);
      *all = more;
    }
    YK_TRY(pump(s, *all + *n, room - *n, &got));
  }
  return YK_OK;
}

yk_code yk__inflate_all(const yk_packed *p, int64_t limit, void **out, int64_t *n) {
  yk_inflater s;
  uint8_t *all = NULL;
  int64_t have = 0;
  YK_TRY(begin(p, &s));
  yk_code rc = pump_all(&s, limit, &all, &have);
  end(&s);
  if (rc != YK_OK) {
    yk__free(all);
    return rc;
  }
  *out = all;
  *n = have;
  return YK_OK;
}

int yk__is_gzip(const yk_file *f) {
  uint8_t magic[2];
  if (f->bytes < 18) return 0;
  if (yk__file_read(f, 0, magic, 2) == YK_OK) return magic[0] == 0x1F && magic[1] == 0x8B;
  yk_error_clear();
  return 0;
}
