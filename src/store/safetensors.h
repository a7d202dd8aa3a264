/*
 * safetensors.h - tensors in a file that other tools read too.
 *
 * The format: 8 bytes of header length (little-endian), a JSON object that maps each
 * name to {"dtype", "shape", "data_offsets"}, then the bytes, dense, row-major,
 * little-endian, without holes. A reader checks all of it before it hands anything out.
 */
#ifndef YK_STORE_SAFETENSORS_H
#define YK_STORE_SAFETENSORS_H

#include <yoke/tensor.h>

enum { YK__ST_LENGTH = 8 };          /* bytes of the header's length */
/* Notes with a CRC-32C each, eight hexadecimal digits: of length and header, with zeros in place of these digits; of the data. A
 * file that has them is held to them. Other notes of ours begin with "yoke." too. */
#define YK__ST_HEADER_SUM "yoke.header_crc32c"
#define YK__ST_DATA_SUM   "yoke.data_crc32c"

typedef struct yk_safetensors yk_safetensors;     /* a file, read and checked */
typedef struct yk_saved { const char *name; const yk_tensor *tensor; } yk_saved;

/* n tensors with distinct names to `path`: written to a temporary name beside it, synced, renamed; on failure nothing is left.
 * Errors: EINVAL (a name twice or empty, a tensor without data), EIO naming the file. */
yk_code yk__safetensors_write(const char *path, size_t n, const yk_saved *tensors) YK_CHECKED;

/* Errors, each naming the file: ENOTFOUND, EIO, ECORRUPT telling what is wrong and where, EUNSUPPORTED naming a tensor of another
 * dtype. *out: yk__safetensors_close(). */
yk_code yk__safetensors_open(const char *path, yk_safetensors **out) YK_CHECKED;
void    yk__safetensors_close(yk_safetensors *f);
size_t  yk__safetensors_count(const yk_safetensors *f);
/* Borrowed, in the order of the header; NULL past the end. */
const char *yk__safetensors_name(const yk_safetensors *f, size_t i);
/* NULL if there is none of that name. */
const yk_desc *yk__safetensors_desc(const yk_safetensors *f, const char *name);
/* A copy. ENOTFOUND if there is none. *out is the caller's. */
yk_code yk__safetensors_get(const yk_safetensors *f, const char *name, yk_tensor **out) YK_CHECKED;

/* Value of a note of the header, or NULL; size of the file; a tensor's dense bytes, unaligned, or NULL. Borrowed. */
const char *yk__safetensors_note(const yk_safetensors *f, const char *key);
size_t      yk__safetensors_bytes(const yk_safetensors *f);
const void *yk__safetensors_data(const yk_safetensors *f, const char *name);

/* For writers of their own: the length as it stands in the file; the sum of a header of n bytes whose digits are at `digits`. */
void     yk__st_put_length(size_t n, uint8_t out[YK__ST_LENGTH]);
uint32_t yk__st_header_sum(const uint8_t length[YK__ST_LENGTH], const char *header, size_t n, const char *digits);

#endif
