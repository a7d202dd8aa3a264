/*
 * record.h - TFRecord files: records one after the other, each with its length, and checksums of both.
 *
 * Nothing marks the beginning of a record, so behind a damaged length nothing in that file can be found any more. The framing itself
 * is in base/frame.h.
 */
#ifndef YK_DATA_RECORD_H
#define YK_DATA_RECORD_H

#include <stdbool.h>
#include "base/frame.h"
#include "data/file.h"

typedef struct yk_record_file {
  yk_file f;
  void *block;                     /* the records of a compressed file, inflated; else NULL */
  int64_t bytes;                   /* of all records */
} yk_record_file;

/* A file; compressed ones are inflated, to at most max_bytes (0: 4 GiB). */
yk_code yk__record_open(const char *path, int64_t max_bytes, yk_record_file *out) YK_CHECKED;
void yk__record_close(yk_record_file *r);
/* Does a file begin with a record? */
bool yk__record_begins(const yk_file *f);

/* Length of the data of record `i` at offset `at`, its head checked: it fits in the file. ECORRUPT. */
yk_code yk__record_length(const yk_record_file *r, int64_t i, int64_t at, const uint8_t head[YK__FRAME_HEAD],
                          int64_t *n) YK_CHECKED;
/* Head, data and tail of record i, `n` bytes of data, into `room` (all of them); both checksums verified. */
yk_code yk__record_get(const yk_record_file *r, int64_t i, int64_t at, int64_t n, uint8_t *room) YK_CHECKED;
/* Bytes of the file, inflated if it is compressed. */
yk_code yk__record_bytes(const yk_record_file *r, int64_t at, void *out, int64_t n) YK_CHECKED;

#endif
