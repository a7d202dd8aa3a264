/*
 * header.h - the JSON header of a safetensors file, and nothing more of JSON.
 *
 * The parser accepts exactly what the format allows: an object of objects with three
 * known keys each, and a "__metadata__" object of strings, which is passed over.
 */
#ifndef YK_STORE_HEADER_H
#define YK_STORE_HEADER_H

#include <yoke/tensor.h>
#include "base/str.h"

typedef struct yk_st_entry { char *name; yk_desc desc; uint64_t begin, end; } yk_st_entry;
typedef struct yk_st_header { yk_st_entry *entry; uint32_t n, cap; yk_map index; } yk_st_header;   /* {0} = empty */

/* Parse n bytes of JSON. ECORRUPT tells the offset and what was expected; `out` must be freed in any case. */
yk_code yk__st_parse(const char *text, size_t n, yk_st_header *out) YK_CHECKED;
void    yk__st_free(yk_st_header *h);
/* The format's name of a dtype, "F32", or NULL; and the reverse, YK_NONE if unknown. */
const char *yk__st_dtype(yk_dtype t);
yk_dtype    yk__st_dtype_parse(const char *name);
/* Append `s` as a JSON string. */
void yk__st_quote(yk_str *out, const char *s);

#endif
