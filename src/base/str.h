/*
 * str.h - a growing string, and a string-to-number hash map.
 *
 * The string never fails in the middle of a chain of appends: the first ENOMEM
 * is remembered and reported once by yk__str_take().
 */
#ifndef YK_BASE_STR_H
#define YK_BASE_STR_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

typedef struct yk_str { char *s; size_t n, cap; int failed; } yk_str;   /* {0} = empty */
void yk__str_add(yk_str *b, const char *fmt, ...) YK_PRINTF(2, 3);
void yk__str_put(yk_str *b, const char *s, size_t n);
yk_code yk__str_take(yk_str *b, char **out) YK_CHECKED;   /* caller frees *out; b is empty again */
void yk__str_free(yk_str *b);

/* The text as XML and HTML have it: <, >, & and quotes escaped; U+FFFD for what is no character there. */
void yk__str_put_xml(yk_str *b, const char *text);

/* Bytes of the UTF-8 character at s (1 for a NUL), or 0 if there is none: to escape what JSON does not allow. */
size_t yk__utf8(const char *s);

/* Parse a whole string as a decimal integer in [lo, hi]; false if it is anything else. */
int yk__parse_i64(const char *s, int64_t lo, int64_t hi, int64_t *out);
int yk__parse_f64(const char *s, double *out);
/* "512MiB", "1.5GiB", "1000", "64k": bytes. k, Ki, KiB are 1024, kB is 1000; likewise M, G, T. False if malformed. */
int yk__parse_bytes(const char *s, uint64_t *out);

/* "512B", "1.5KiB", "300.00MiB". Returns buf. */
enum { YK__BYTES_TEXT = 24 };
char *yk__bytes_text(uint64_t bytes, char buf[YK__BYTES_TEXT]);

/* Edit distance, for "did you mean"; only the first 128 characters count. */
uint32_t yk__str_distance(const char *a, const char *b);

/* Map from string to uint32_t; copies keys; insertion never moves values' meaning. {0} = empty. */
typedef struct yk_map { struct yk_map_slot *slot; uint32_t n, cap; } yk_map;
int  yk__map_get(const yk_map *m, const char *key, uint32_t *out);     /* 1 if present */
int  yk__map_set(yk_map *m, const char *key, uint32_t value);          /* 0 on ENOMEM */
void yk__map_free(yk_map *m);

/* 64-bit hash (stable across runs and machines), to be chained through `seed`. */
uint64_t yk__hash(const void *p, size_t bytes, uint64_t seed);

#endif
