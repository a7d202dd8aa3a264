/*
 * proto.c - the wire format of protocol buffers, written.
 *
 * Numbers and lengths take as few bytes as they can, as every other writer does it, so that equal messages are equal bytes.
 */
#include "base/proto.h"
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, LONGEST = 10 };

static size_t encode(uint64_t v, char out[LONGEST]) {
  size_t n = 0;
  for (; v > 127; v >>= 7) out[n++] = (char)(v | 128);
  out[n++] = (char)v;
  return n;
}

void yk__proto_varint(yk_str *s, uint64_t v) {
  char b[LONGEST];
  yk__str_put(s, b, encode(v, b));
}

static void tag(yk_str *s, uint32_t field, uint32_t wire) {
  yk__proto_varint(s, (uint64_t)field << 3 | wire);
}

static void fixed(yk_str *s, uint64_t bits, size_t n) {
  char b[8];
  for (size_t i = 0; i < n; i++) b[i] = (char)(bits >> 8 * i);
  yk__str_put(s, b, n);
}

static void put_double(yk_str *s, double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  fixed(s, bits, sizeof bits);
}

void yk__proto_int(yk_str *s, uint32_t field, int64_t v) {
  tag(s, field, VARINT);
  yk__proto_varint(s, (uint64_t)v);
}

void yk__proto_double(yk_str *s, uint32_t field, double v) {
  tag(s, field, FIXED64);
  put_double(s, v);
}

void yk__proto_float(yk_str *s, uint32_t field, float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  tag(s, field, FIXED32);
  fixed(s, bits, sizeof bits);
}

void yk__proto_bytes(yk_str *s, uint32_t field, const void *p, size_t n) {
  tag(s, field, LENGTH);
  yk__proto_varint(s, n);
  yk__str_put(s, p, n);
}

void yk__proto_text(yk_str *s, uint32_t field, const char *text) {
  yk__proto_bytes(s, field, text, strlen(text));
}

void yk__proto_doubles(yk_str *s, uint32_t field, const double *v, size_t n) {
  if (n == 0) return;
  tag(s, field, LENGTH);
  yk__proto_varint(s, n * sizeof *v);
  for (size_t i = 0; i < n; i++) put_double(s, v[i]);
}

size_t yk__proto_begin(yk_str *s, uint32_t field) {
  tag(s, field, LENGTH);
  return s->n;
}

void yk__proto_end(yk_str *s, size_t begin) {
  char b[LONGEST];
  if (s->failed) return;
  size_t body = s->n - begin, n = encode(body, b);
  yk__str_put(s, b, n);                              /* room for it */
  if (s->failed) return;
  memmove(s->s + begin + n, s->s + begin, body);
  memcpy(s->s + begin, b, n);
}
