/*
 * png.c - pictures as PNG files, in memory.
 *
 * The pixels are stored, not compressed: a summary has few pictures of a few kilobytes, and this takes no library. A file is a
 * signature and chunks: header, one stream of pixels in the frame of zlib, end.
 */
#include "store/summary.h"

enum { STORED = 65535 };             /* bytes that a stored block holds at most */

static void put32(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * (3 - i));
}

/* The checksum of chunks: CRC-32, polynomial 0xEDB88320 reflected, four bits at a time. */
static uint32_t crc32(const uint8_t *b, size_t n) {
  static const uint32_t table[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
  };
  uint32_t crc = 0xFFFFFFFF;
  for (; n > 0; n--, b++) {
    crc = crc >> 4 ^ table[(crc ^ *b) & 15];
    crc = crc >> 4 ^ table[(crc ^ (uint32_t)*b >> 4) & 15];
  }
  return crc ^ 0xFFFFFFFF;
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
  put32(sum, crc32((uint8_t *)out->s + at + 4, out->n - at - 4));
  yk__str_put(out, (const char *)sum, sizeof sum);
}

typedef struct stream { yk_str *out; uint64_t left; uint32_t room, a, b; } stream;   /* bytes to come; of these, in this block; sums */

/* Stored bytes, with the head of a block before each that begins one. */
static void store(stream *s, const uint8_t *p, size_t n) {
  while (n > 0) {
    if (s->room == 0) {
      s->room = s->left < STORED ? (uint32_t)s->left : STORED;
      const uint8_t head[5] = { s->left <= STORED, (uint8_t)s->room, (uint8_t)(s->room >> 8), (uint8_t)~s->room,
                                (uint8_t)(~s->room >> 8) };
      yk__str_put(s->out, (const char *)head, sizeof head);
    }
    size_t part = n < s->room ? n : s->room;
    yk__str_put(s->out, (const char *)p, part);
    for (size_t i = 0; i < part; i++) {
      s->a = (s->a + p[i]) % 65521;
      s->b = (s->b + s->a) % 65521;
    }
    s->room -= (uint32_t)part;
    s->left -= part;
    p += part;
    n -= part;
  }
}

void yk__png_put(yk_str *out, const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels) {
  static const uint8_t kind[5] = { 0, 0, 0, 2, 6 };
  uint8_t header[13] = { 0 }, sum[4];
  size_t row = (size_t)width * channels;
  stream s = { .out = out, .left = (uint64_t)(row + 1) * height, .a = 1 };
  put32(header, width);
  put32(header + 4, height);
  header[8] = 8;                                     /* bits a channel */
  header[9] = kind[channels];
  yk__str_put(out, "\x89PNG\r\n\x1a\n", 8);
  size_t at = begin_chunk(out, "IHDR");
  yk__str_put(out, (const char *)header, sizeof header);
  end_chunk(out, at);
  at = begin_chunk(out, "IDAT");
  yk__str_put(out, "\x78\x01", 2);                   /* zlib, no preset dictionary */
  for (uint32_t y = 0; y < height; y++) {
    store(&s, (const uint8_t *)"", 1);               /* the row as it is */
    store(&s, pixels + row * y, row);
  }
  put32(sum, s.b << 16 | s.a);
  yk__str_put(out, (const char *)sum, sizeof sum);
  end_chunk(out, at);
  end_chunk(out, begin_chunk(out, "IEND"));
}
