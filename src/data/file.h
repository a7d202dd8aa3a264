/*
 * file.h - files that somebody else made: opened without trust, read at an offset, inflated within bounds.
 *
 * Nothing is mapped: a file that becomes shorter while it is read is then an error and not a signal. All reads may be done by any
 * thread at the same time.
 */
#ifndef YK_DATA_FILE_H
#define YK_DATA_FILE_H

#include <stdint.h>
#include <yoke/status.h>

enum { YK__PATH_BYTES = 4096 };

typedef struct yk_file {
  char *path;                      /* owned; NULL: nothing is open */
  int fd;                          /* -1: opened for each read, of a set with very many files */
  int64_t bytes;
} yk_file;

/* A regular file. ENOTFOUND, EIO (also: not a regular file), each naming it. `out` is to be closed. */
yk_code yk__file_open(const char *path, yk_file *out) YK_CHECKED;
/* n bytes from `at`, all of them: EIO. */
yk_code yk__file_read(const yk_file *f, int64_t at, void *out, int64_t n) YK_CHECKED;
/* Give back the descriptor, but stay readable. */
void yk__file_rest(yk_file *f);
void yk__file_close(yk_file *f);

/* "folder/name" in a buffer; EINVAL if it does not fit. */
yk_code yk__path_join(const char *folder, const char *name, char out[YK__PATH_BYTES]) YK_CHECKED;
/* 'f': a regular file, 'd': a folder, 0: nothing that can be read, or something else. */
int yk__path_kind(const char *path);
int yk__ends_with(const char *text, const char *end);          /* letters' case does not matter */
/* Names in a folder, sorted by their bytes, without those that begin with a dot; EIO. The list and each name are the caller's. */
typedef struct yk_name_list { char **name; uint32_t n, cap; } yk_name_list;
yk_code yk__folder_names(const char *path, yk_name_list *out) YK_CHECKED;
void yk__name_list_free(yk_name_list *l);

/* ---- compressed data: inflate.c ---------------------------------------------------------------------------------------- */

/* `packed` bytes at `at` of a file. */
typedef struct yk_packed {
  const yk_file *f;
  int64_t at, packed;
  int raw;                         /* deflate alone (zip); else with gzip's or zlib's header */
} yk_packed;

/* The first n bytes of what comes out. ECORRUPT naming the file: damaged, or fewer. */
yk_code yk__inflate_head(const yk_packed *p, void *out, int64_t n) YK_CHECKED;
/* Exactly n bytes, and the end. ECORRUPT: damaged, more or fewer; also, before memory is taken, more than so few packed bytes can hold. */
yk_code yk__inflate(const yk_packed *p, void **out, int64_t n) YK_CHECKED;
/* Whatever comes out, at most `limit`. */
yk_code yk__inflate_all(const yk_packed *p, int64_t limit, void **out, int64_t *n) YK_CHECKED;
/* Does the file begin as gzip does? */
int yk__is_gzip(const yk_file *f);

/* ---- big and little ends ------------------------------------------------------------------------------------------------ */

static inline uint16_t yk__le16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t yk__le32(const uint8_t *p) { return (uint32_t)yk__le16(p) | (uint32_t)yk__le16(p + 2) << 16; }
static inline uint64_t yk__le64(const uint8_t *p) { return (uint64_t)yk__le32(p) | (uint64_t)yk__le32(p + 4) << 32; }
static inline uint32_t yk__be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

#endif
