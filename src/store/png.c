/*
 * png.c - pictures as PNG files, in memory.
 *
 * A file is a signature and chunks: header, the rows of pixels compressed by zlib, end. Rows are not filtered, since the pictures
 * of a summary are few and small.
 */
#include <stdbool.h>
#include <zlib.h>
#include "base/alloc.h"
#include "store/summary.h"

static void put32(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * (3 - i));
}

static size_t begin_chunk(yk_str *out, const char *type) {
  size_t at = out->n;
  yk__str_put(out, "\0\0\0\0", 4);
  yk__str_put(out, type, 4);
  return at;
}

static void end_chunk(yk_str *out, size_t at) {
  uint8_t sum[4];
  if (out->failed) return;
  put32((uint8_t *)out->s + at, (uint32_t)(out->n - at - 8));
  put32(sum, (uint32_t)crc32(0, (uint8_t *)out->s + at + 4, (uInt)(out->n - at - 4)));
  yk__str_put(out, (const char *)sum, sizeof sum);
}

/* ---- pixels: one stream of zlib ---------------------------------------------------------------------------------- */

static voidpf take(voidpf arg, uInt n, uInt bytes) {
  (void)arg;
  return yk__calloc(n, bytes);
}

static void give(voidpf arg, voidpf p) {
  (void)arg;
  yk__free(p);
}

/* All that the stream makes of n more bytes. False: it failed. */
static bool press(z_stream *z, const uint8_t *p, size_t n, int how, yk_str *out) {
  uint8_t room[4096];
  z->next_in = (z_const Bytef *)(uintptr_t)p;
  z->avail_in = (uInt)n;
  do {
    z->next_out = room;
    z->avail_out = sizeof room;
    if (deflate(z, how) == Z_STREAM_ERROR) return false;
    yk__str_put(out, (const char *)room, sizeof room - z->avail_out);
  } while (z->avail_out == 0);
  return true;
}

/* Each row with a byte in front: as it is. */
static void put_rows(yk_str *out, const uint8_t *pixels, size_t row, uint32_t height) {
  z_stream z = { .zalloc = take, .zfree = give };
  bool good = deflateInit(&z, Z_DEFAULT_COMPRESSION) == Z_OK;
  for (uint32_t y = 0; y < height && good; y++)
    good = press(&z, (const uint8_t *)"", 1, Z_NO_FLUSH, out) && press(&z, pixels + row * y, row, Z_NO_FLUSH, out);
  if (good) good = press(&z, NULL, 0, Z_FINISH, out);
  deflateEnd(&z);
  if (!good) out->failed = 1;                        /* it only fails for want of memory */
}

void yk__png_put(yk_str *out, const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels) {
  static const uint8_t kind[5] = { 0, 0, 0, 2, 6 };
  uint8_t header[13] = { 0 };
  put32(header, width);
  put32(header + 4, height);
  header[8] = 8;                                     /* bits a channel */
  header[9] = kind[channels];
  yk__str_put(out, "\x89PNG\r\n\x1a\n", 8);
  size_t at = begin_chunk(out, "IHDR");
  yk__str_put(out, (const char *)header, sizeof header);
  end_chunk(out, at);
  at = begin_chunk(out, "IDAT");
  put_rows(out, pixels, (size_t)width * channels, height);
  end_chunk(out, at);
  end_chunk(out, begin_chunk(out, "IEND"));
}
