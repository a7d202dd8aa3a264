/*
 * zip.h - zip archives that somebody else made: what is in them, read without trust.
 *
 * Members are stored or deflated; encrypted ones are refused. Checksums are verified before anything is given out.
 */
#ifndef YK_DATA_ZIP_H
#define YK_DATA_ZIP_H

#include <stdbool.h>
#include "data/file.h"

enum { YK__ZIP_NAME = 256 };
typedef struct yk_zip_member {
  char name[YK__ZIP_NAME];
  unsigned method, flags;
  uint32_t crc;
  int64_t packed, bytes, at;
  bool stored;                     /* once it was found */
} yk_zip_member;
typedef struct yk_zip { yk_zip_member *m; uint32_t n, cap; } yk_zip;   /* m: yk__free() */

/* Errors, all of them: ECORRUPT naming file and offset, EUNSUPPORTED, EIO, ENOMEM. */
yk_code yk__zip_list(const yk_file *f, yk_zip *out) YK_CHECKED;
/* Where the member's bytes begin, into m->at; once. */
yk_code yk__zip_find(const yk_file *f, yk_zip_member *m) YK_CHECKED;
/* Is the checksum of a stored member right? */
yk_code yk__zip_check(const yk_file *f, const yk_zip_member *m) YK_CHECKED;
/* The bytes of a member that was found, checked; *out: yk__free(). */
yk_code yk__zip_extract(const yk_file *f, const yk_zip_member *m, void **out) YK_CHECKED;

#endif
