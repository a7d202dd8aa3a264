/*
 * header.h - the JSON header of a safetensors file, and nothing more of JSON.
 *
 * The parser accepts exactly what the format allows: an object of objects with three
 * known keys each, and a "__metadata__" object of strings, here called notes.
 */
#ifndef YK_STORE_HEADER_H
#define YK_STORE_HEADER_H

#include <yoke/checkpoint.h>
#include "base/str.h"

typedef struct yk_st_entry { char *name; yk_desc desc; uint64_t begin, end; } yk_st_entry;
typedef struct yk_st_note { char *key, *value; } yk_st_note;
typedef struct yk_st_header {                                                               /* {0} = empty */
  yk_st_entry *entry; uint32_t n, cap;
  yk_map index;                      /* by name */
  yk_st_note *note; uint32_t nnotes, note_cap;
} yk_st_header;

/* Parse n bytes of JSON. ECORRUPT tells the offset and what was expected; `out` must be freed in any case. */
yk_code yk__st_parse(const char *text, size_t n, yk_st_header *out) YK_CHECKED;
void    yk__st_free(yk_st_header *h);
/* Value of a note, or NULL. */
const char *yk__st_note(const yk_st_header *h, const char *key);
/* The header of dense tensors in this order, its length a multiple of 8. *out: yk__free(). */
yk_code yk__st_make(size_t n, const char *const *name, const yk_desc *const *desc, size_t nnotes, const yk_note *note,
                    char **out) YK_CHECKED;
/* The format's name of a dtype, "F32", or NULL; and the reverse, YK_NONE if unknown. */
const char *yk__st_dtype(yk_dtype t);
yk_dtype    yk__st_dtype_parse(const char *name);

#endif
