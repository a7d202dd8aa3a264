/*
 * example.h - tf.Example: a map from names to lists of bytes, floats or integers, in protocol buffer form.
 *
 * Nothing is copied: a found feature points into the record.
 */
#ifndef YK_DATA_EXAMPLE_H
#define YK_DATA_EXAMPLE_H

#include <stdbool.h>
#include <yoke/data.h>

typedef struct yk_span { const uint8_t *p, *end; } yk_span;
typedef enum yk_list_kind { YK_LIST_NONE, YK_LIST_BYTES, YK_LIST_FLOATS, YK_LIST_INTS } yk_list_kind;
typedef struct yk_entry { yk_span name; yk_list_kind kind; yk_span list; } yk_entry;   /* list: the message BytesList, FloatList or Int64List */

/* The features of a record one after the other: *at begins as NULL; false at the end, and where the record is malformed, with *why set. */
bool yk__example_next(yk_span record, const uint8_t **at, yk_entry *out, const char **why);
/* The feature of that name; the last one if there are several. kind NONE: there is none. ECORRUPT: the record is malformed. */
yk_code yk__example_find(yk_span record, const char *name, yk_entry *out) YK_CHECKED;
bool yk__span_is(yk_span s, const char *text);

/* Values in a list; -1: it is malformed. */
int64_t yk__list_count(const yk_entry *e);
/* Exactly n floats or integers as `dtype`; ECORRUPT: another number of them, another kind, or one out of range. */
yk_code yk__list_numbers(const yk_entry *e, yk_dtype dtype, int64_t n, void *out) YK_CHECKED;
/* The only value of a list of bytes. */
yk_code yk__list_bytes(const yk_entry *e, yk_span *out) YK_CHECKED;

#endif
