/*
 * frame.c - heads and tails of TFRecords, made and checked.
 *
 * One place for both directions, so that what is written here can be read here.
 */
#include "base/frame.h"
#include "base/crc32c.h"

static void put32(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void yk__frame_head(uint64_t n, uint8_t out[YK__FRAME_HEAD]) {
  put32(out, (uint32_t)n);
  put32(out + 4, (uint32_t)(n >> 32));
  put32(out + 8, yk__crc32c_masked(out, 8));
}

void yk__frame_tail(const void *data, size_t n, uint8_t out[YK__FRAME_TAIL]) {
  put32(out, yk__crc32c_masked(data, n));
}

void yk__frame_put(yk_str *s, const void *data, size_t n) {
  uint8_t head[YK__FRAME_HEAD], tail[YK__FRAME_TAIL];
  yk__frame_head(n, head);
  yk__frame_tail(data, n, tail);
  yk__str_put(s, (const char *)head, sizeof head);
  yk__str_put(s, data, n);
  yk__str_put(s, (const char *)tail, sizeof tail);
}

bool yk__frame_length(const uint8_t head[YK__FRAME_HEAD], uint64_t *n, uint32_t *is, uint32_t *want) {
  *is = get32(head + 8);
  *want = yk__crc32c_masked(head, 8);
  *n = get32(head) | (uint64_t)get32(head + 4) << 32;
  return *is == *want;
}

bool yk__frame_whole(const void *data, size_t n, const uint8_t tail[YK__FRAME_TAIL], uint32_t *is, uint32_t *want) {
  *is = get32(tail);
  *want = yk__crc32c_masked(data, n);
  return *is == *want;
}
