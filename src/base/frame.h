/*
 * frame.h - the framing of TFRecord files: length, checksum of the length, data, checksum of the data.
 *
 * Every number has its little end first, and checksums are masked CRC-32C. Nothing marks the beginning of a record: who reads must
 * know where one begins, and behind a damaged length nothing can be found any more.
 */
#ifndef YK_BASE_FRAME_H
#define YK_BASE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

enum { YK__FRAME_HEAD = 12, YK__FRAME_TAIL = 4 };

/* What goes before n bytes of data, and behind them. */
void yk__frame_head(uint64_t n, uint8_t out[YK__FRAME_HEAD]);
void yk__frame_tail(const void *data, size_t n, uint8_t out[YK__FRAME_TAIL]);
/* Append a whole record. Out of memory is remembered in `s`, which then may hold a part of it. */
void yk__frame_put(yk_str *s, const void *data, size_t n);

/* The length that a head tells. False: its checksum is `is`, but should be `want`. */
bool yk__frame_length(const uint8_t head[YK__FRAME_HEAD], uint64_t *n, uint32_t *is, uint32_t *want);
/* Do the n bytes of data fit the tail behind them? False as above. */
bool yk__frame_whole(const void *data, size_t n, const uint8_t tail[YK__FRAME_TAIL], uint32_t *is, uint32_t *want);

#endif
